# names_objects PROFD FILE...: compares relocatable files with llvm-symbolizer and
# addr2line at three addresses of each function: functions, inlined calls, files, lines.
# Both take an offset in the first section only, so they get a copy of the file with the
# addresses of its sections set: those of a module in the kernel, computed here, and those
# of data far behind. It has no .debug_aranges, which llvm-symbolizer 14 reads without
# relocating it.
# Prints a count by cause, then some of what differs:
#   same     all three are equal
#   nolines  equal names; there is no line in the file
#   sttfile  equal, but for a file name that llvm-symbolizer takes from a symbol of type FILE
#   alias    equal, but for the name of the last function: another symbol of the address
#   label    llvm-symbolizer has an untyped label inside of the function for its name
#   chain    addr2line 2.40 has fewer inlined calls of clang's DWARF 5, or another file
#   llvm, addr2line   what differs from that one
import bisect, collections, json, os, re, struct, subprocess, sys, tempfile

profd, paths = sys.argv[1], sys.argv[2:]

def output(*command, text=None):
    return subprocess.run(command, input=text, capture_output=True, text=True).stdout

class Object:
    def __init__(self, path):
        self.data = data = bytearray(open(path, "rb").read())
        shoff, = struct.unpack_from("<Q", data, 40)
        n, names = struct.unpack_from("<HH", data, 60)
        self.headers = [shoff + 64 * i for i in range(n)]
        self.sections = [struct.unpack_from("<IIQQQQIIQQ", data, at) for at in self.headers]
        self.names = [self.text(names, s[0]) for s in self.sections]
        self.place()
        self.read_symbols()

    def text(self, table, at):
        start = self.sections[table][4] + at
        return self.data[start:self.data.index(0, start)].decode()

    # layout_sections() of kernel/module/main.c
    def place(self):
        self.start, at = {}, 0
        for init in False, True:
            for i, s in enumerate(self.sections):
                if s[2] & 6 != 6 or s[1] not in (1, 8) or self.names[i].startswith(".init") != init:
                    continue
                at += -at % max(s[8], 1)
                self.start[i] = at
                at += s[5]

    def read_symbols(self):
        self.functions, self.labels = [], set()
        self.at = collections.defaultdict(set)
        for i, s in enumerate(self.sections):
            for off in range(s[4], s[4] + s[5], 24) if s[1] == 2 else ():
                name, info, _, index, value, size = struct.unpack_from("<IBBHQQ", self.data, off)
                if index not in self.start or info & 15 not in (0, 2, 10) or not name:
                    continue
                value += self.start[index]
                self.at[value].add(self.text(s[6], name))
                if info & 15 == 0:
                    self.labels.add(self.text(s[6], name))
                if info & 15 != 0 and size:
                    self.functions.append((value, size))

    def placed(self):
        data = bytearray(self.data)
        beyond = 1 << 30
        for i, s in enumerate(self.sections):
            if i in self.start:
                struct.pack_into("<Q", data, self.headers[i] + 16, self.start[i])
            elif s[2] & 2:
                struct.pack_into("<Q", data, self.headers[i] + 16, beyond)
                beyond += s[5] + 4096
            elif self.names[i].endswith("debug_aranges"):
                struct.pack_into("<Q", data, self.headers[i] + 32, 0)
        return bytes(data)

def normal(name):
    return os.path.normpath(name) if name else ""

def by_profd(path, text):
    for line in output(profd, "debug", "symbolize", "-j", path, text=text).splitlines():
        yield [(f["system_name"], normal(f.get("file", "")), f.get("line", 0))
               for f in json.loads(line).get("frames", [])]

def by_llvm(path, text):
    for line in output("llvm-symbolizer", "--obj=" + path, "--inlines", "--output-style=JSON",
                       "--no-demangle", text=text).splitlines():
        yield [(f["FunctionName"], normal(f["FileName"]), f["Line"])
               for f in json.loads(line)["Symbol"]]

# -a prints the address before the functions.
def by_addr2line(path, text):
    frames = None
    lines = iter(output("addr2line", "-afie", path, text=text).splitlines())
    for line in lines:
        if line.startswith("0x"):
            if frames is not None:
                yield frames
            frames = []
            continue
        file, _, number = next(lines).split(" (disc")[0].rpartition(":")
        frames.append((line.replace("??", ""), normal(file.replace("??", "")),
                       int(number) if number.isdigit() else 0))
    if frames is not None:
        yield frames

# addr2line has no names of parts of functions.
def bare(name):
    return re.sub(r"(\.(isra|part|constprop|cold)\b(\.\d+)?)+$", "", name)

def cause_of(o, address, x, y, z):
    def same(a, b):
        return a[0] == b[0] or bare(a[0]) == b[0] or \
            any(a[0] in s and b[0] in s for s in around(o, address))
    if x and len(x) == len(y) and y[-1][0] in o.labels and \
            x[:-1] == y[:-1] and x[-1][1:] == y[-1][1:] and same(x[-1], z[-1]):
        return "label"
    if not x or len(x) != len(y) or x[:-1] != y[:-1] or not same(x[-1], y[-1]):
        return "llvm"
    sttfile = not x[-1][1] and y[-1][2] == 0
    if x[-1][1:] != y[-1][1:] and not sttfile:
        return "llvm"
    if len(x) != len(z) or not sttfile and [f[1:] for f in x] != [f[1:] for f in z]:
        return "chain" if x[-1][1] and z and z[0][2] == x[0][2] else "addr2line"
    if not same(x[-1], z[-1]):
        return "addr2line"
    if x[-1][0] != y[-1][0]:
        return "alias"
    return "sttfile" if sttfile and x[-1][1:] != y[-1][1:] else \
        "same" if x[-1][2] else "nolines"

# The symbols of the function with this address.
def around(o, address):
    i = bisect.bisect_right(o.functions, (address, 1 << 62)) - 1
    return [o.at[o.functions[i][0]]] if i >= 0 else []

causes, shown, files = collections.Counter(), [], 0
for path in paths:
    o = Object(path)
    o.functions.sort()
    points = sorted({a for start, size in o.functions
                     for a in (start, start + size // 2, start + size - 1)})
    if not points:
        continue
    files += 1
    text = "".join("%#x\n" % a for a in points)
    with tempfile.NamedTemporaryFile() as f:
        f.write(o.placed())
        f.flush()
        answers = [list(by_profd(path, text)), list(by_llvm(f.name, text)),
                   list(by_addr2line(f.name, text))]
    if [len(a) for a in answers] != [len(points)] * 3:
        causes["answers"] += 1
        shown.append("%s: %s answers" % (path, [len(a) for a in answers]))
        continue
    for address, x, y, z in zip(points, *answers):
        cause = cause_of(o, address, x, y, z)
        causes[cause] += 1
        if cause in ("llvm", "addr2line") and len(shown) < 6:
            shown.append("%s: %s: %#x: %s, not %s" %
                         (os.path.basename(path), cause, address, x, y if cause == "llvm" else z))
print("files=%d " % files + " ".join("%s=%d" % item for item in sorted(causes.items())))
for text in shown:
    print(text[:600])
