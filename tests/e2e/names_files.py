# names_files PROFD COUNT [-d DIR] FILE...: compares COUNT random addresses of the code of
# each FILE. Where there is DWARF: functions, inlined calls, files and lines, with
# llvm-symbolizer and eu-addr2line; elsewhere: functions, with all symbols of the address. -d DIR: where separate debug files are, instead of /usr/lib/debug.
# Prints a line of counts for each file, one of their sums, and some addresses of each
# cause that may be an error of profd. Fails if a program did not answer.
#
#   same            all three agree
#   none            no program has a function or a line
#   padding         the others have a line, and no function: between two functions
#   alias           the symbol that names the last function: names of one address
#   part            one has the symbol of a part or copy of a function (.cold,
#                   .constprop.0), another the name of the function
#   directory       one has the file with more directories
#   linkage         profd has the linker's name, others one without namespaces and types
#   data            others name data in a section of code: profd names functions only
#   more            only profd has lines or files: the others cannot decompress them
#   sttfile         only one has a file, without a directory: that of a symbol table
#   llvm:WHAT       profd and eu-addr2line agree, llvm-symbolizer does not
#   eu:WHAT         profd and llvm-symbolizer agree, eu-addr2line does not
#   each:WHAT       no two agree; WHAT is compared with llvm-symbolizer
#   profd:WHAT      the two others agree, profd does not
#   nm, nm:alias    the name of the only symbol at the address, or one of several
#   nm:none         no symbol at the address, and no name
#   nm:start        main or _start of a stripped program, by the code at its entry point
#   nm:sizeless     the name of a symbol without a size that begins before the address
#   nm:other        another name
# WHAT: chain (the number of functions), name, file, line.
import bisect, collections, json, os, random, re, subprocess, sys

profd, count, arguments = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
debug_dir, options = "/usr/lib/debug", []
if arguments[0] == "-d":
    debug_dir, arguments = arguments[1], arguments[2:]
    options = ["--debug-dir", debug_dir]
llvm = os.environ.get("LLVM_SYMBOLIZER", "llvm-symbolizer")
part = re.compile(r"\.(part|cold|constprop|isra|lto_priv|localalias|llvm|cfi)(\.\d+)*"
                  r"|\.\d+$|\.__uniq\.\d+")


def output(*command, text=None):
    return subprocess.run(command, input=text, capture_output=True, text=True,
                          errors="replace").stdout


class File:
    def __init__(self, path):
        self.path = path
        self.code, self.dwarf, self.symbols = [], False, []
        self.entries = None
        self.sections(path, True)
        note = re.search(r"Build ID: (\w\w)(\w+)", output("readelf", "-n", path))
        debug = note and "%s/.build-id/%s/%s.debug" % (debug_dir, note[1], note[2])
        tables = output("readelf", "-sW", path)
        if debug and os.path.exists(debug):
            self.sections(debug, False)
            tables += output("readelf", "-sW", debug)
        self.aliases(tables)

    def sections(self, path, code):
        for line in output("readelf", "-SW", path).splitlines():
            m = re.match(r"\s*\[ *\d+\] (\S+)\s+(\S+)\s+(\w+) (\w+) (\w+) \w+\s+(\S*)", line)
            if not m:
                continue
            name, kind, at, _, size, flags = m.groups()
            if re.match(r"\.z?debug_info$", name) and kind != "NOBITS":
                self.dwarf = True
            if code and "X" in flags and kind == "PROGBITS" and ".plt" not in name:
                self.code.append((int(at, 16), int(size, 16)))

    def aliases(self, tables):
        at, values = collections.defaultdict(set), collections.defaultdict(set)
        for line in tables.splitlines():
            w = line.split()
            if len(w) < 8 or w[3] not in ("FUNC", "IFUNC", "NOTYPE", "OBJECT") or \
                    w[6] in ("UND", "ABS"):
                continue
            name = w[7].split("@")[0] or w[7]
            value, size = int(w[1], 16), int(w[2], 0)
            at[value].add((name, size, w[3]))
            values[name].add(value)
        self.at, self.values = at, values
        self.starts = sorted(at)
        # The longest symbol that begins at or before each start: how far to look back.
        self.reach, most = [], 0
        for value in self.starts:
            most = max([most] + [value + s for _, s, _ in at[value]])
            self.reach.append(most)

    def covering(self, address):
        """Names of the symbols with this address, those without a size before it."""
        names, sizeless = set(), set()
        i = bisect.bisect_right(self.starts, address) - 1
        while i >= 0:
            value = self.starts[i]
            for name, size, kind in self.at[value]:
                if size and value <= address < value + size:
                    names.add(name)
                elif not size:
                    sizeless.add(name)
            if self.reach[i] <= address and sizeless:
                break
            i -= 1
        return names, sizeless

    def start_at(self, address):
        """The name of a function that the entry point tells, by its unwind information."""
        if self.entries is None:
            entry = re.search(r"Entry point address:\s+0x(\w+)", output("readelf", "-h", self.path))
            entry = int(entry[1], 16)
            code = output("objdump", "-d", "--start-address=%d" % entry,
                          "--stop-address=%d" % (entry + 64), self.path)
            main = re.search(r"\b(?:lea|mov) .*%[re]di(?:\s+# ([0-9a-f]+))?", code)
            at = main and (main[1] or re.search(r"\$0x([0-9a-f]+)", main[0])[1])
            self.entries = {entry: "_start"}
            if at:
                self.entries[int(at, 16)] = "main"
            self.fdes = [(int(a, 16), int(b, 16)) for a, b in re.findall(
                r"pc=([0-9a-f]+)\.\.([0-9a-f]+)",
                output("readelf", "--debug-dump=frames", self.path))]
        return next((self.entries[a] for a, b in self.fdes
                     if a in self.entries and a <= address < b), None)

    def choose(self):
        total = sum(size for _, size in self.code)
        chooser, chosen = random.Random(1), []
        for _ in range(count if total else 0):
            n = chooser.randrange(total)
            for start, size in self.code:
                if n < size:
                    chosen.append(start + n)
                    break
                n -= size
        return sorted(chosen)

    def is_data(self, name):
        return all(kind == "OBJECT" for value in self.values[name]
                   for other, _, kind in self.at[value] if other == name)

    def same_symbol(self, a, b):
        return a == b or bool(self.values[a] & self.values[b])


def normal(name):
    return os.path.normpath(name) if name and name != "??" else ""


def ask_profd(path, text):
    for line in output(profd, "debug", "symbolize", "-j", *options, path,
                       text=text).splitlines():
        one = json.loads(line)
        yield [(f["system_name"].split("@")[0], normal(f.get("file", "")), f.get("line", 0))
               for f in one["frames"]]


def ask_llvm(path, text):
    more = ["--debug-file-directory=" + debug_dir] if options else []
    for line in output(llvm, "--obj=" + path, "--inlines", "--output-style=JSON",
                       "--no-demangle", *more, text=text).splitlines():
        frames = [(f["FunctionName"].split("@")[0], normal(f["FileName"]), f["Line"])
                  for f in json.loads(line).get("Symbol", [])]
        yield [] if frames == [("", "", 0)] else frames


def ask_eu(path, text):
    more = ["--debuginfo-path=" + debug_dir] if options else []
    blocks = re.split(r"(?m)^0x[0-9a-f]{16}$\n",
                      output("eu-addr2line", "-afi", *more, "-e", path, text=text))
    for block in blocks[1:]:
        lines, frames = block.splitlines(), []
        for i in range(0, len(lines) - 1, 2):
            name = re.sub(r" inlined at .*", "", lines[i]).split("@")[0]
            m = re.match(r"(.*?):(\d+)(:\d+)?$", lines[i + 1])
            frames.append(("" if name == "??" else name,
                           normal(m[1]) if m else "", int(m[2]) if m else 0))
        yield [] if frames == [("", "", 0)] else frames


def same_name(file, a, b, last, soft):
    """Whether two names are of one function; why they are not equal goes to soft."""
    if a == b:
        return True
    if last and file.same_symbol(a, b):
        soft.add("alias")
        return True
    # Debug information has no names of parts and of copies of functions.
    if last and part.sub("", a) == part.sub("", b):
        soft.add("part")
        return True
    if last and file.same_symbol(part.sub("", a), part.sub("", b)):
        soft.add("part")
        return True
    # DWARF of some compilers has no linkage names of local functions.
    if last and a.startswith("_Z") and "%d%s" % (len(b), b) in a:
        soft.add("linkage")
        return True
    return False


def same_path(a, b, soft):
    if a == b:
        return True
    if not a or not b:
        soft.add("sttfile")
        return "/" not in a + b
    soft.add("directory")
    return a.endswith("/" + b) or b.endswith("/" + a)


def differ(file, x, y, soft):
    """What differs; what does not count as a difference goes to soft."""
    if not x and len(y) == 1 and not y[0][0]:
        soft.add("padding")
        return ""
    if len(x) != len(y):
        return "chain"
    for i, (f, g) in enumerate(zip(x, y)):
        if not same_name(file, f[0], g[0], i == len(x) - 1, soft):
            return "name"
    if not all(same_path(f[1], g[1], soft) for f, g in zip(x, y)):
        return "file"
    if [f[2] for f in x] != [f[2] for f in y]:
        return "line"
    return ""


def cause_dwarf(file, x, l, e):
    if not x and not l and not e:
        return "none"
    if not x and all(len(y) == 1 and file.is_data(y[0][0]) for y in (l, e)):
        return "data"
    if x and x[0][2] and not any(f[2] for f in l + e):
        return "more"
    if x and x[0][1] and not any(f[1] or f[2] for f in l + e):
        return "more"
    soft = set()
    xl, xe = differ(file, x, l, soft), differ(file, x, e, soft)
    if not xl and not xe:
        return "+".join(sorted(soft)) or "same"
    if not xe:
        return "llvm:" + xl
    if not xl:
        return "eu:" + xe
    return ("each:" if differ(file, l, e, set()) else "profd:") + xl


def cause_nm(file, address, x):
    names, sizeless = file.covering(address)
    if not x:
        return "nm:none" if not names else "nm:other"
    if x[-1][0] in names:
        return "nm" if len(names) == 1 else "nm:alias"
    if not names and x[-1][0] == file.start_at(address):
        return "nm:start"
    return "nm:sizeless" if x[-1][0] in sizeless and not names else "nm:other"


sums, shown, lost = collections.Counter(), collections.defaultdict(list), []
for path in arguments:
    file = File(path)
    addresses = file.choose()
    text = "".join("%#x\n" % a for a in addresses)
    ours = list(ask_profd(path, text))
    others = [list(ask_llvm(path, text)), list(ask_eu(path, text))] if file.dwarf else []
    if any(len(a) != len(addresses) for a in [ours] + others):
        lost.append(path)
        print("%s: answers %s of %d" % (path, [len(a) for a in [ours] + others],
                                        len(addresses)))
        continue
    causes = collections.Counter()
    for i, address in enumerate(addresses):
        answers = [ours[i]] + [o[i] for o in others]
        cause = cause_dwarf(file, *answers) if others else \
            cause_nm(file, address, ours[i])
        causes[cause] += 1
        if re.match("profd|each|nm:other", cause) or os.environ.get("NAMES_SHOW") == cause:
            shown[cause].append("%s %#x: %s" % (path, address, " | ".join(map(str, answers))
                                               + (" | %s %s" % file.covering(address)
                                                  if not others else "")))
    sums += causes
    print("%s: %s" % (path, " ".join("%s=%d" % c for c in sorted(causes.items()))))
    sys.stdout.flush()
print("files %d: %s" % (len(arguments), " ".join("%s=%d" % c for c in sorted(sums.items()))))
limit = int(os.environ.get("NAMES_SHOWN", "5"))
for cause, lines in sorted(shown.items()):
    chooser = random.Random(1)
    for line in sorted(chooser.sample(lines, min(limit, len(lines)))):
        print("%s: %s" % (cause, line[:700]))
sys.exit(bool(lost))
