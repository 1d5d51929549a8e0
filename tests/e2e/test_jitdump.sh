#!/bin/bash
# Names and lines of code by the jitdump of its program: code that replaces other code
# at its address, that moves, and that is gone; at the time of each sample. And a
# jitdump that is a symlink by the time it is opened. Two jitdumps and a perf map in one
# process. Stacks through code without frame
# pointers, by the unwind information in a jitdump.
. "$(dirname "$0")/lib.sh"
HZ=997
mkdir "$T/run"
cp "$E2E/prog_jit" "$T/run"
cat >"$T/all" <<'END'
#!/bin/bash
cd "$1" || exit 1
# The first function is replaced, the second moves to another slot, where a third
# replaces it. Where it was, code without an entry follows.
./prog_jit -j 0:one:300 0:two:200 '0:>2:200' 0:-:200 2:three:200
# Its name is another file's soon.
mkdir own
cd own || exit 1
../prog_jit -j 0:four:300 &
until ls jit-*.dump; do :; done >/dev/null 2>&1
ln -s /etc/shadow link
mv -T link jit-*.dump
wait
cd ..
# Two jitdumps and a perf map of one process; the last function is where the first was.
./prog_jit -u 2:+in_map:200 0:dump_a:200 1:@dump_b:300 0:@dump_c:300 1:dump_d:200 &
wait $!
rm -f "/tmp/perf-$!.map"
# Without frame pointers and without unwind information; with it.
./prog_jit -n 0:blind:300
./prog_jit -u 0:seen:300 '0:>2:200' 0:again:300 5:further:200
END
chmod +x "$T/all"
watch "$T/p.pb.gz" -F $HZ -- "$T/all" "$T/run"
is "recorded" $? 0
diag "$(cat "$T/p.pb.gz.log")"
check_profile "$T/p.pb.gz"
samples "$T/p.pb.gz" >"$T/samples"
# named NAME MS
named() {
	about "$1" "$(total "$T/samples" "^$1@")" $(($2 * HZ / 1000)) 3
}
named one 300
named two 400
named three 200
named four 300
about "code that has moved away has no name" \
	"$(total "$T/samples" '^\[anon\]@')" $((200 * HZ / 1000)) 3
# whole NAME MS: all its stacks lead to main, and to what called that.
whole() {
	named "$1" "$2"
	check "$1: stacks are whole" fine \
		"$(total "$T/samples" "^$1@.*;jit_step@.*;main@.*_start@")" \
		"$(total "$T/samples" "^$1@")" 99
}
named in_map 200
whole dump_a 200
whole dump_b 300
whole dump_c 300
whole dump_d 200
whole one 300
# The code at ip is copied once the first samples were seen, later on a busy machine.
num "without unwind information the code ahead leads to the callers" "$(percent \
	"$(total "$T/samples" '^blind@.*;jit_step@.*;main@.*_start@')" \
	"$(total "$T/samples" '^blind@')")" '>=' 50
num "... and no other is complete" "$(total "$T/samples" '^blind@.*_start@[^;]*$')" == \
	"$(total "$T/samples" '^blind@.*;jit_step@.*;main@.*_start@')"
whole seen 500
whole again 300
whole further 200
check "the loop is line 11" grep -q '^ *[0-9.]*ms .* one jit.src:11$' \
	<(pprof -top -lines "$T/p.pb.gz")
plan
