# names_oracle PROFD FILE COUNT [OPTION...]: compares random addresses of the code of FILE
# with llvm-symbolizer: functions, inlined calls, files and lines. OPTIONs are profd's.
# Prints a count by cause, then some of what differs:
#   same     equal
#   none     neither has a name
#   padding  llvm-symbolizer has a line, and no function: between two functions
#   sttfile  equal, but for a file name that llvm-symbolizer takes from a symbol of type
#            FILE: it has no directory, or no line
#   alias    equal, but for the name of the last function: another symbol of the address,
#            whose file llvm-symbolizer may take from a symbol of type FILE
#   line, name, chain  what differs
import json, os, random, re, subprocess, sys, collections

profd, path, count, options = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4:]

def output(*command, text=None):
    return subprocess.run(command, input=text, capture_output=True, text=True).stdout

def code():
    section = re.search(r"\] \.text\s+\S+\s+(\S+)\s+\S+\s+(\S+)",
                        output("readelf", "-SW", path))
    return int(section[1], 16), int(section[1], 16) + int(section[2], 16)

def aliases():
    at = collections.defaultdict(set)
    for line in output("readelf", "-sW", path).splitlines():
        words = line.split()
        if len(words) == 8 and words[3] in ("FUNC", "IFUNC", "NOTYPE"):
            at[plain(words[7])].add(words[1])
    return at

# Without a symbol version, and the mark of Go's linker for functions in assembly.
def plain(name):
    return name.split("@")[0].removesuffix(".abi0")

def normal(name):
    return os.path.normpath(name) if name else ""

start, end = code()
chooser = random.Random(1)
text = "".join("%#x\n" % a for a in sorted(chooser.randrange(start, end) for _ in range(count)))
ours = output(profd, "debug", "symbolize", "-j", *options, path, text=text).splitlines()
theirs = output("llvm-symbolizer", "--obj=" + path, "--inlines", "--output-style=JSON",
                "--no-demangle", text=text).splitlines()
names, causes, shown = aliases(), collections.Counter(), []
if not len(ours) == len(theirs) == count:
    print("answers", len(ours), len(theirs))
for one, other in zip(map(json.loads, ours), map(json.loads, theirs)):
    x = [(plain(f["system_name"]), normal(f.get("file", "")), f.get("line", 0))
         for f in one.get("frames", [])]
    y = [(plain(f["FunctionName"]), normal(f["FileName"]), f["Line"]) for f in other["Symbol"]]
    if x == y:
        cause = "same"
    elif not x and y[0][0] == "":
        cause = "padding" if y[0][1] else "none"
    elif len(x) != len(y) or not x:
        cause = "chain"
    elif [f[0] for f in x] != [f[0] for f in y]:
        cause = "name"
        same = x[-1][1:] == y[-1][1:] or not x[-1][1] and y[-1][2] == 0
        if x[:-1] == y[:-1] and same and names[x[-1][0]] & names[y[-1][0]]:
            cause = "alias"
    elif x[:-1] == y[:-1] and (x[-1][1] == "" and "/" not in y[-1][1] or y[-1][2] == 0):
        cause = "sttfile"
    else:
        cause = "line"
    causes[cause] += 1
    if cause in ("line", "name", "chain") and len(shown) < 3:
        shown.append("%s: %s, not %s" % (one["address"], x, y))
print(" ".join("%s=%d" % item for item in sorted(causes.items())))
for text in shown:
    print(text[:600])
