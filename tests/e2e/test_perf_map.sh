#!/bin/bash
# Names of code that a program makes, from its perf map: in time as the map grows or is
# written anew, in a pid and mount namespace of its own, after the process has ended. And maps that are
# none of the process's user: they are not read, and do no harm.
. "$(dirname "$0")/lib.sh"
jit=$E2E/prog_jit
user=65534 other=65533
at=10000000000 # where its code is
chmod 755 "$T"
cp "$jit" "$T/prog_jit"

start_profd maps --window 60 --freq 997

# --- names -------------------------------------------------------------------
# A map is read within 2 s, also on a busy machine.
# The third function is at the address of the first.
background "$T/prog_jit" 0:one_a:800 1:one_b:400 0:one_c:800 2:-:100
growing=$pid
cat >"$T/inside" <<END
exec 3<"$T/prog_jit"
mount -t tmpfs none /tmp
cat <&3 >/tmp/prog_jit
chmod 755 /tmp/prog_jit
/tmp/prog_jit 0:two_a:300:2000 & wait
END
background unshare -p -f -m --mount-proc bash "$T/inside"
inside=$pid
background setpriv --reuid $user --regid $user --clear-groups \
	"$T/prog_jit" "0:LazyCompile:300" 1:short:30
mine=$pid
# At one address: a map of equal size, a longer and a shorter one, two other files.
background "$T/prog_jit" '0:=new_a:400:2000' '0:=new_b:400' '0:=new_longer:400' '0:=new_c:400' \
	'0:~new_d:400' '0:~new_e:400'
anew=$pid
# In a memfd; where there is no line it has the file's name.
background "$T/prog_jit" -m 0:in_memfd:300 1:-:200
memfd=$pid
wait "$growing" "$inside" "$mine" "$anew" "$memfd"
for p in "$growing" "$mine" "$anew" "$memfd"; do
	rm -f "/tmp/perf-$p.map"
done

# --- maps that must not be read ------------------------------------------------
echo "$at 1000 SECRET" >"$T/secret"
cp "$T/secret" "$T/others"
chmod 600 "$T/secret"
chmod 644 "$T/others"
chown $other "$T/others"
# case UID COMMAND: with the command's map at $map; the program writes none itself.
case_of() {
	background setpriv --reuid "$1" --regid "$1" --clear-groups bash -c \
		'read -rN1 _; exec "$0" 0:-:250' "$T/prog_jit" <"$T/go"
	map=/tmp/perf-$pid.map
	maps+=("$map")
	pids+=("$pid")
	shift
	map=$map bash -c "$1"
}
mkfifo "$T/go"
exec 9<>"$T/go"
maps=() pids=()
case_of $user "ln -s '$T/secret' \$map"
case_of $user 'ln -s /etc/shadow $map'
case_of $user 'mkfifo $map; chmod 666 $map; chown '$user' $map'
case_of $user 'mkdir $map; chown '$user' $map'
case_of $user "cp '$T/others' \$map; chown $other \$map"
case_of $user "cp '$T/secret' \$map; chmod 600 \$map"
case_of 0 'mknod $map c 1 5'
case_of 0 "cp '$T/secret' \$map.2; ln \$map.2 \$map; rm -f '$T/gone'"
refused=${#pids[@]}
# Read, but not whole.
case_of $user 'truncate -s 2G $map; chown '$user' $map'
# Root's, and readable for all.
case_of $user "echo '$at 1000 root_says' >\$map; chmod 644 \$map"
before=$(cpu_ns "$profd")
for ((i = 0; i < ${#pids[@]}; i++)); do
	printf x >&9
done
wait "${pids[@]}"
sleep 1
diag "profd used $((($(cpu_ns "$profd") - before) / 1000000)) ms of CPU time"
rm -rf "${maps[@]}" /tmp/perf-*.map.2
ask /metrics >"$T/metrics"
value() { awk -v n="profd_symbolize_$1" '$1 == n { print $2 }' "$T/metrics"; }
num "maps were refused" "$(value code_refused_total)" '>=' "$refused"
num "one was read in part" "$(value code_cut_total)" == 1
num "no opening hangs" "$(value opener_hung_total)" == 0
num "no worker failed" "$(value worker_failed_total)" == 0
num "nothing is quarantined" "$(value quarantined_total)" == 0
# A busy machine may degrade it: late tables, for one.
like "it is not failing" "$(ask /healthz)" '^(ok|degraded)'
stop_profd
is "profd ends well" $? 0
check_profile "$archive"/*/*.pb*
for f in "$archive"/*/*.pb*; do
	samples "$f"
done >"$T/samples"

# --- what it shows -------------------------------------------------------------
# named NAME MS: the function has the samples of its CPU time.
named() {
	about "$1" "$(total "$T/samples" "^$1@")" $(($2 * 997 / 1000)) "${3:-5}"
}
named one_b 400 10
# The map is looked at ten times a second.
named one_a 800 15
named one_c 800 15
named two_a 300
named in_memfd 300
named 'memfd:doublemapper[+]0x10[0-9a-f]' 200
for name in a b longer c d e; do
	named "new_$name" 400 15
done
named LazyCompile 300
named short 30 50
named root_says 250
unnamed=$(awk -F '\t' -v pids=" ${pids[*]:0:refused+1} " '
	index(pids, " " $3 " ") && /\t\[anon\]@/ { n += $1 }
	END { print n + 0 }' "$T/samples")
about "a refused map names nothing" "$unnamed" $(((refused + 1) * 250 * 997 / 1000)) 5
is "... least of all with what it must not read" \
	"$(awk -F '\t' -v pids=" ${pids[*]} " '
		index(pids, " " $3 " ") && $10 ~ /SECRET|root:/ {
			print $10
		}' "$T/samples" | sort | uniq -c)" ""
# --- a real one, which is no part of Debian's build dependencies ------------------
if [[ ${NAMES_ALL:-} && $(command -v node) ]]; then
	cat >"$T/fib.js" <<-'END'
		function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2) }
		const end = Date.now() + 2000
		while (Date.now() < end) fib(22)
	END
	(cd "$T" && watch "$T/node.pb.gz" -F 997 -- node --perf-basic-prof fib.js)
	samples "$T/node.pb.gz" >"$T/node"
	all=$(total "$T/node")
	num "node runs" "$(total "$T/node" 'fib .*fib.js')" '>=' $((all / 2))
	num "0.1 % of its stacks have code without a name" \
		"$(percent "$(total "$T/node" '\[anon\]@')" "$all")" '<=' 0.1
	find /tmp -maxdepth 1 -name 'perf-*.map' -newer "$T/fib.js" -delete
fi

check "go tool pprof shows them" grep -qE ' one_a$' <(pprof -top "$archive"/*/*.pb*)
plan
