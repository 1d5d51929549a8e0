# Reads the output of `go tool pprof -raw`; samples() and mappings() in lib.sh describe
# the output. With -v mode=mappings the latter.

function label(key,	at, rest) {
	at = match(" " labels, "[ ]" key ":\\[")
	if (!at)
		return ""
	rest = substr(labels, at + length(key) + 2)
	if (match(rest, /\] [a-z_.]+:\[/))
		return substr(rest, 1, RSTART - 1)
	sub(/\]$/, "", rest)
	return rest
}

function end_of_sample() {
	if (!open)
		return
	n++
	line[n] = count "\t" ns "\t" label("pid") "\t" label("tid") "\t" \
		label("comm") "\t" label("thread") "\t" label("exe") "\t" \
		label("process") "\t" label("image")
	ids[n] = locations
	open = 0
}

function stack(list,	id, i, k, out) {
	k = split(list, id, " ")
	for (i = 1; i <= k; i++)
		out = out (i > 1 ? ";" : "") frame(name[id[i]], file[at[id[i]]])
	return out
}

# The functions of a location, the innermost inlined one first.
function frame(names, where) {
	gsub(SUBSEP, "@" where ";", names)
	return names "@" where
}

function function_name(text) {
	sub(/ [^ ]*:[0-9]+(:[0-9]+)? s=[0-9]+(\(.*\))?$/, "", text)
	return text
}

/^Samples:/ { section = "samples"; getline; next }
/^Locations/ { end_of_sample(); section = "locations"; next }
/^Mappings/ { end_of_sample(); section = "mappings"; next }

section == "samples" && /^ +[0-9]+ +[0-9]+: / {
	end_of_sample()
	count = $1
	ns = $2
	sub(/:$/, "", ns)
	locations = $0
	sub(/^[^:]*: */, "", locations)
	labels = ""
	open = 1
	next
}
section == "samples" {
	sub(/^ +/, "")
	sub(/ +$/, "")
	labels = labels (labels == "" ? "" : " ") $0
	next
}

# "     1: 0x401136 M=1 name file:line s=0"; a name may contain spaces.
section == "locations" && /^ +[0-9]+: 0x/ {
	id = $1
	sub(/:$/, "", id)
	at[id] = ""
	rest = $0
	sub(/^ *[0-9]+: 0x[0-9a-f]+ /, "", rest)
	if (match(rest, /^M=[0-9]+ /)) {
		at[id] = substr(rest, 3, RLENGTH - 3)
		rest = substr(rest, RLENGTH + 1)
	}
	sub(/^\[F\] /, "", rest)
	name[id] = function_name(rest)
	next
}
# Further lines of a location are the callers of inlined functions.
section == "locations" {
	sub(/^ +/, "")
	name[id] = name[id] SUBSEP function_name($0)
	next
}

# "1: 0x0/0x1000/0x0 file build-id [FN]"
section == "mappings" && /^[0-9]+: 0x/ {
	id = $1
	sub(/:$/, "", id)
	rest = $0
	sub(/^[0-9]+: [^ ]+ /, "", rest)
	sub(/ *(\[[FNLI]+\])*$/, "", rest)
	build = ""
	if (match(rest, / [0-9a-f]+$/)) {
		build = substr(rest, RSTART + 1)
		rest = substr(rest, 1, RSTART - 1)
	}
	sub(/ +$/, "", rest)
	file[id] = rest
	if (mode == "mappings")
		print rest " " build
}

END {
	end_of_sample()
	if (mode == "mappings")
		exit
	for (i = 1; i <= n; i++)
		print line[i] "\t" stack(ids[i])
}
