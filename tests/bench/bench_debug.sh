#!/bin/bash
# What debug packages cost: CPU time of profd and its helpers where libc6-dbg and
# python3-dbg (or what is installed of them) give names and lines, beside the same load
# where an empty directory is mounted over /usr/lib/debug. At the start, with and without
# what an earlier profd has left in --cache; later on, with a hundred processes that stay;
# and with processes of some milliseconds each, as a share of their CPU time.
. "$(dirname "$0")/lib.sh"
DEBUG=/usr/lib/debug

# Each uses other parts of libc and Python than the one before.
modules=(json csv decimal difflib tarfile email argparse statistics textwrap sqlite3)
work=(
	'json.loads(json.dumps({str(i): [i, i / 7] for i in range(2000)}))'
	'list(csv.reader(["%d,%s" % (i, "x" * (i % 9)) for i in range(3000)]))'
	'[decimal.Decimal(i).sqrt() for i in range(300)]'
	'difflib.ndiff(["a%d" % i for i in range(90)], ["b%d" % i for i in range(90)])'
	'[tarfile.TarInfo("n%d" % i).tobuf() for i in range(300)]'
	'[email.message_from_string("Subject: %d\n\nx" % i) for i in range(90)]'
	'[argparse.ArgumentParser(str(i)).format_help() for i in range(20)]'
	'statistics.stdev([i * 0.3 for i in range(2000)])'
	'[textwrap.fill("word " * 99, i + 20) for i in range(20)]'
	'sqlite3.connect(":memory:").executescript("create table t(a);" * 1)'
)
stays() { # N
	/usr/bin/python3 - "$1" "${modules[$1 % 10]}" "${work[$1 % 10]}" <<-'PYTHON'
		import sys, importlib
		module, work = sys.argv[2], compile(sys.argv[3], "work", "eval")
		names = {module: importlib.import_module(module)}
		while True:
		    eval(work, names)
		    sorted(str(i * int(sys.argv[1])) for i in range(500))
	PYTHON
}

short() {
	while :; do
		sh -c 'for i in 1 2 3; do expr $i + 1; done | sort -n | awk "{ print }"'
		/usr/bin/python3 -c 'import json, re'
		perl -e 'print join ",", sort map { sqrt } 1 .. 999'
		ls -lR /usr/include/linux | gzip | md5sum
	done >/dev/null 2>&1
}

# Seconds of CPU time of profd and its helpers.
used_now() {
	ask /metrics | awk '/^(process_cpu|profd_helper_cpu)_seconds_total/ { n += $2 }
		END { print n }'
}
# over SECONDS: percent of one CPU.
over() {
	local before since=$EPOCHREALTIME
	before=$(used_now)
	sleep "$1"
	calc "($(used_now) - $before) / ($EPOCHREALTIME - $since) * 100"
}

# Prints CPU seconds of the first ten seconds twice, and the two shares.
measure() {
	local cold warm steady loads=() before ticks
	for ((i = 0; i < 100; i++)); do
		background stays "$i"
		loads+=("$pid")
	done
	sleep 5
	start_profd cold --cache "$T/cache"
	sleep 10
	cold=$(used_now)
	sleep 5
	steady=$(over "$SECONDS_EACH")
	stop_profd
	start_profd warm --cache "$T/cache"
	sleep 10
	warm=$(used_now)
	stop "${loads[@]}"

	loads=()
	for ((i = 0; i < CPUS; i++)); do
		background short
		loads+=("$pid")
	done
	sleep 5
	before=$(used_now) ticks=$(busy_ticks)
	sleep "$SECONDS_EACH"
	before=$(calc "$(used_now) - $before") ticks=$(($(busy_ticks) - ticks))
	stop "${loads[@]}"
	stop_profd
	echo "$cold $warm $steady $(calc "$before / ($ticks / 100 - $before) * 100")" >&3
}

if [[ ${1:-} == measure ]]; then
	measure
	exit
fi
mkdir "$T/empty"
for ((round = 0; round < ROUNDS; round++)); do
	bash "$0" measure >>"$T/with"
	unshare -m sh -c 'mount --bind "$1" "$2" && exec bash "$0" measure' \
		"$0" "$T/empty" "$DEBUG" >>"$T/without"
done
i=1
for name in "start CPU seconds" "restart CPU seconds" "steady percent of one CPU" \
	"churn percent of the load"; do
	figure "debug_${name%% *}" "$(median "$(cut -d ' ' -f $i "$T/with")")" \
		"${name#* }" null \
		"without debug packages" "$(median "$(cut -d ' ' -f $i "$T/without")")"
	i=$((i + 1))
done
