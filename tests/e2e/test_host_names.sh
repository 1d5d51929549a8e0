#!/bin/bash
# A profile of the host while it compiles, interprets and searches: nearly every frame has
# a name where a file on the host has one. With NAMES_ALL=1 for a minute, also with node
# and java and their perf maps, if they are there.
. "$(dirname "$0")/lib.sh"
export E2E_SRC
seconds=4
((${NAMES_ALL:-0})) && seconds=60

cat >"$T/compile.sh" <<'END'
end=$((SECONDS + $1))
while ((SECONDS < end)); do
	gcc -O2 -c -o /dev/null "$E2E_SRC/prog_spin.c" -I"$E2E_SRC/../.." -DNAME=x
	git -C "$E2E_SRC" log -p -2 >/dev/null
	find /usr/share/doc -name '*.gz' >/dev/null
done 2>/dev/null
END
cat >"$T/spin.py" <<'END'
import json, re, sys, time, zlib
end = time.time() + int(sys.argv[1])
while time.time() < end:
    text = json.dumps([{"a": i} for i in range(2000)])
    re.findall(r"\d+", text), zlib.compress(text.encode())
END
cat >"$T/spin.js" <<'END'
const end = Date.now() + 1000 * process.argv[2];
while (Date.now() < end)
	JSON.stringify(Array.from({ length: 5000 }, (_, i) => String(i))).length;
END
cat >"$T/Spin.java" <<'END'
public class Spin {
	public static void main(String[] a) {
		long end = System.currentTimeMillis() + 1000 * Long.parseLong(a[0]), s = 0;
		while (System.currentTimeMillis() < end)
			s += String.valueOf(s).hashCode();
		System.exit(s == 1 ? 1 : 0);
	}
}
END
background bash "$T/compile.sh" "$seconds"
background python3 "$T/spin.py" "$seconds"
if ((${NAMES_ALL:-0})); then
	command -v node >/dev/null &&
		background env -C "$T" node --perf-basic-prof "$T/spin.js" "$seconds" &&
		maps=/tmp/perf-$pid.map
	command -v java >/dev/null &&
		background java -XX:+UnlockDiagnosticVMOptions \
			-XX:+DumpPerfMapAtExit "$T/Spin.java" "$seconds"
fi
"$PROFD" record -q -f -a -d "$seconds" --cache "$T/cache" -o "$T/host.pb.gz"
is "recorded" $? 0
check_profile "$T/host.pb.gz"
pprof -raw "$T/host.pb.gz" >"$T/raw"
python3 "$E2E_SRC/host_names.py" "$T/raw" >"$T/figures"
read -r frames invented missing <"$T/figures"
diag "frames, invented names, names missed: $(cat "$T/figures")"
num "there are frames" "$frames" '>=' $((seconds * 500))
num "99.9 % have the name that the host has" \
	"$(awk -v n="$frames" -v m="$missing" 'BEGIN { print n ? m / n : 1 }')" '<=' 0.001
rm -f "${maps:-$T/none}"
plan
