#!/bin/bash
# Both sources, BPF and plain perf events, give the same stacks for the same programs:
# the same chains of functions with the same shares, within chance. Stacks larger than
# perf copies (16 KiB, and one stack) are left out.
. "$(dirname "$0")/lib.sh"
S=$E2E/stacks

cat >"$T/run" <<END
$S/modes_gcc 150 chain alloca tail noreturn signal async vfork threads callback plt vdso
$S/modes_clang 150 chain alloca tail noreturn signal async vfork threads callback
$S/modes_static 150 chain alloca tail signal callback
$S/throw_gcc 450
END
for source in bpf perf; do
	watch "$T/$source.pb.gz" --source $source -F 1327 -- \
		xargs -a "$T/run" -P 2 -L 1 env
	is "$source: recorded" $? 0 || diag "$(cat "$T/$source.pb.gz.log")"
	check_profile "$T/$source.pb.gz"
	samples "$T/$source.pb.gz" >"$T/$source"
	whole "$T/$source" >"$T/ends"
	good=$(ending "$T/ends" whole) bad=$(ending "$T/ends" part)
	fine "$good" $((good + bad)) 99.5
	result $? "$source: $good of $((good + bad)) stacks are whole"
	diag "$source: $(tr '\t\n' ' ,' <"$T/ends")"
	# A program and its functions, leaf first; libraries and kernel left out.
	awk -F '\t' '{
		n = split($10, f, ";")
		chain = ""
		for (i = 1; i <= n; i++) {
			if (f[i] !~ /^(st_[a-z_]*|main|_start)(\.[a-z0-9.]+)?@/)
				continue
			sub(/[.@].*/, "", f[i])
			chain = chain " " f[i]
		}
		sub(/.*\//, "", $7)
		if ($7 !~ /^(modes|throw)_/)
			next
		sum[$7 chain] += $1
		sum[$7 " all"] += $1
	} END {
		for (k in sum)
			print sum[k] "\t" k
	}' "$T/$source" | sort -rn >"$T/$source.chains"
	num "$source: enough samples" "$(awk -F '\t' '$2 ~ / all$/ { n += $1 }
		END { print n + 0 }' "$T/$source.chains")" '>=' 3000
done

awk -F '\t' '
	NR == FNR { one[$2] = $1; next }
	{ two[$2] = $1 }
	END {
		for (k in one)
			two[k] += 0
		for (k in two) {
			split(k, part, " ")
			n = one[part[1] " all"]
			m = two[part[1] " all"]
			if (part[2] == "all" || !n || !m)
				continue
			p = (one[k] + two[k]) / (n + m)
			off = one[k] / n - two[k] / m
			off = off < 0 ? -off : off
			printf "%s\t%d of %d\t%d of %d\t%s\n", \
				(off > 5 * sqrt(p * (1 - p) * (1 / n + 1 / m)) + 0.01 ? \
				"OFF" : p > 0.01 ? "same" : "rare"), one[k], n, two[k], m, k
		}
	}' "$T/bpf.chains" "$T/perf.chains" | sort >"$T/compared"
is "no chain has another share" "$(grep ^OFF "$T/compared")" ""
num "chains with a percent or more" "$(grep -c ^same "$T/compared")" '>=' 30
diag "$(grep ^same "$T/compared" | cut -c 1-110)"
plan
