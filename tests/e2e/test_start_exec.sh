#!/bin/bash
# Programs that exec while profd starts, as in a build: each of their samples has its
# mappings, from the first one on.
. "$(dirname "$0")/lib.sh"

# lives TSV [REGEX]: processes of five samples and more; those of which four fifths
# match.
lives() {
	awk -F '\t' -v re="${2:-}" '
		{ n[$3] += $1 }
		re != "" && $10 ~ re { m[$3] += $1 }
		END {
			for (pid in n)
				k += n[pid] >= 5 && (re == "" || m[pid] > n[pid] * 0.8)
			print k + 0
		}' "$1"
}

background "$E2E/prog_storm" execs 60
storm=$pid
for i in {1..5}; do
	sleep 0.3
	check "recording $i" record "$T/$i.pb.gz" -a -d 1 -F 997
done
end_group "$storm"
for i in {1..5}; do
	samples "$T/$i.pb.gz" | awk -F '\t' '$7 ~ /prog_storm$/' >>"$T/all"
done
num "many were sampled" "$(lives "$T/all")" '>' 100
is "of none are the mappings missing as long as it lives" \
	"$(lives "$T/all" 'mapping lost')" 0
lost=$(total "$T/all" 'mapping lost')
check "of $lost samples they are" fine $(($(total "$T/all") - lost)) "$(total "$T/all")" 99
plan
