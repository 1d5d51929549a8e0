#!/bin/bash
# The scrape configurations of profd(8). promtool accepts the one for Prometheus; profd
# answers the requests that Parca and Alloy make with theirs; a compile storm sampled as
# often as on 64 busy CPUs stays below the limits of Pyroscope, and its label sets, each
# of which would be a series, are few with the default labels.
#
# 64 CPUs at 99 Hz are 6,336 samples a second: the CPUs of this host take as many. There
# are fewer processes than on such a host, but a sample of each tick, and the labels shown
# have no value for a process. SCRAPE_LOADS="storm python" runs other loads as well.
. "$(dirname "$0")/lib.sh"
cpus=64 loads=${SCRAPE_LOADS:-storm} seconds=4
hz=$((cpus * 99 / $(nproc)))

# --- the configurations ---
configuration() { # configuration NAME: as in the manual page
	awk -v name="$1" '$0 == ".\\\" configuration: " name { on = 1; next }
		on && /^\.Bd/ { body = 1; next }
		body && /^\.Ed/ { exit }
		body' "$ROOT/docs/profd.8"
}
for name in prometheus parca alloy; do
	configuration $name >"$T/$name.conf"
	check "there is a configuration for $name" test -s "$T/$name.conf"
done
echo 0123456789abcdef >"$T/profd.token"
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 1 \
	-subj /CN=profd -keyout "$T/key.pem" -out "$T/profd.pem" 2>/dev/null
sed -i "s,/etc/prometheus/,$T/," "$T/prometheus.conf"
check "promtool accepts that for Prometheus" promtool check config "$T/prometheus.conf"
is "Parca: all other types are off" \
	"$(grep -B 1 'enabled: false' "$T/parca.conf" | grep -o '[a-z]*:$' | tr -d '\n')" \
	memory:block:goroutine:mutex:
is "Alloy: all other types are off" \
	"$(sed -n 's/.*profile\.\([a-z]*\) .*enabled = false.*/\1/p' "$T/alloy.conf" |
		tr '\n' ' ')" "memory block goroutine mutex "
# word FILE KEY: what is in the first brackets of the line with the key.
word() { sed -n "s/^[ \"]*$2\"\{0,1\}[ :=]*[^\"a-z0-9]*\"\{0,1\}\([a-z0-9_,]*\).*/\1/p" "$1"; }
parca="seconds=$(word "$T/parca.conf" scrape_interval | tr -d s)"
parca+="&labels=$(word "$T/parca.conf" labels | head -n 1)"
alloy="seconds=$(word "$T/alloy.conf" delta_profiling_duration | tr -d s)"
alloy+="&labels=$(word "$T/alloy.conf" labels)"
alloy+="&label_prefix=$(word "$T/alloy.conf" label_prefix)"
is "what Parca asks for" "$parca" "seconds=10&labels=none"
# Shorter: the storm keeps all CPUs busy meanwhile.
parca=${parca/seconds=10/seconds=$seconds}
is "what Alloy asks for" "$alloy" \
	"seconds=3&labels=comm,unit,container,pod&label_prefix=profd_"

# --- loads ---
load_storm() {
	while :; do
		for f in "$ROOT"/base/*.c "$ROOT"/symbolize/*.c; do
			gcc -I"$ROOT" -I"$B" -D_GNU_SOURCE -O1 -g -c -o "$T/o.$1" "$f"
		done
	done 2>/dev/null
}
load_python() {
	while :; do
		/usr/bin/python3 -m compileall -q -f -d x /usr/lib/python3/dist-packages
	done >/dev/null 2>&1
}

# --- as the servers ask ---
# get NAME QUERY: as Go's HTTP client does, over TCP.
get() {
	curl -sS --max-time 60 -H 'User-Agent: Go-http-client/1.1' \
		-H 'Accept-Encoding: gzip' -D "$T/$1.head" -o "$T/$1.pb.gz" \
		-w '%{http_code} %{content_type}' "$url/debug/pprof/profile?$2" \
		>"$T/$1.answer"
}
# sizes NAME: $n samples, $raw bytes before compression, $taken ticks, $sets of labels
# of processes of the load.
sizes() {
	raw=$(zcat "$T/$1.pb.gz" | wc -c)
	pprof -raw "$T/$1.pb.gz" >"$T/$1.raw"
	read -r n taken < <(awk '/^Locations/ { exit }
		/^ +[0-9]+ +[0-9]+:/ { n++; taken += $1 }
		END { print n, taken }' "$T/$1.raw")
	sets=$(sed -n '/^Locations/q; s/^                //p' "$T/$1.raw" |
		grep -E 'comm:\[(gcc|cc1|as|bash|sh|collect2)\]' | sort -u | wc -l)
	diag "$1: $n samples of $taken taken, $raw bytes, $sets label sets"
}
start_profd scrape -F $hz --window 3600 --ring-size 64M
for load in $loads; do
	workers=()
	for ((i = 0; i <= $(nproc); i++)); do
		background "load_$load" $i
		workers+=("$pid")
	done
	used "${workers[0]}" 1 || bail "the load runs"
	sleep 1 # its tables and names are read
	get alloy "$alloy" &
	one=$!
	get parca "$parca" &
	two=$!
	get default "seconds=$seconds" &
	three=$!
	get all "seconds=$seconds&labels=all" &
	wait "$one" "$two" "$three" $!
	for pid in "${workers[@]}"; do
		pkill -KILL -P "$pid"
		kill -KILL "$pid"
	done
	wait "${workers[@]}" 2>/dev/null
	for name in alloy parca default; do
		is "$load, $name: an answer that it takes" "$(cat "$T/$name.answer")" \
			"200 application/octet-stream"
		is "$load, $name: no encoding" "$(grep -ci content-encoding "$T/$name.head")" 0
		check_profile "$T/$name.pb.gz"
	done
	sizes parca
	num "$load, parca: the samples of $cpus busy CPUs" "$taken" '>' $((cpus * 99 * seconds / 2))
	sizes default
	if [[ $load == storm ]]; then
		num "$load: label sets with the default labels" "$sets" '<=' 60
		num "$load: ... which are those of processes" "$sets" '>' 2
		sizes all
		num "$load: with all labels they are many" "$sets" '>' 60
	fi
	sizes alloy
	num "$load, alloy: fewer than 16,000 samples" "$n" '<' 16000
	num "$load, alloy: less than 2 MiB" "$raw" '<' $((2 << 20))
done
for path in allocs block goroutine mutex; do
	is "no profile: $path" "$(curl -s -o /dev/null -w '%{http_code}' \
		"$url/debug/pprof/$path")" 404
done
is "no sample was lost" "$(metric profd_sampler_ring_full_total)" 0
plan
