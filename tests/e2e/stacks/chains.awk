# Which stacks of a program of test_stacks.sh are what they have to be. Reads
# what samples() of ../lib.sh prints and gives, tab-separated:
#   mode NAME COUNT    right stacks of that mode
#   only NAME COUNT    right stacks without one: start, exit, beginnings of threads
#   exec - COUNT       samples inside execve, or after the memory was given back
#   bad CHAIN COUNT    the rest
#   ends REASON COUNT  of all, stacks with that last frame
# -v prog: path of the program; -v kind: modes, throw, rust or go; -v names: what nm -n says of its twin with
# symbols, if it has none; -v ld: the entry of ld.so, in hexadecimal digits.
#
# A stack is written as a chain of words, leaf first: st_NAME (Go: what is in
# package main, and the roots of the runtime) and main as they are, with *N for N in a row and @FILE outside of the program; _start, of the
# program or of ld.so; L any number of library functions, V the vDSO, Y vtime() of
# the vsyscall page, kernel frames left out; [why_it_ends]; ? for what has no place
# in such a program.

function hex(s,	i, n) {
	n = 0
	s = tolower(s)
	for (i = 1; i <= length(s); i++)
		n = n * 16 + index("123456789abcdef", substr(s, i, 1))
	return n
}

# Functions that have lost their names.
function by_address(address,	low, high, mid) {
	low = 1
	high = n_names
	while (low < high) {
		mid = int((low + high + 1) / 2)
		if (at[mid] <= address)
			low = mid
		else
			high = mid - 1
	}
	return n_names && at[low] <= address ? called[low] : "?"
}

function word(frame,	name, file, base) {
	match(frame, /@[^@]*$/)
	name = substr(frame, 1, RSTART - 1)
	file = substr(frame, RSTART + 1)
	base = file
	sub(/.*\//, "", base)
	if (file == "[vsyscall]")
		return name == "vtime" ? "Y" : "?"
	if (name ~ /^\[kernel\]\+0xffffffffff5fffff/) # the page is no code of the kernel
		return "?"
	if (file ~ /^\[kernel|^\[bpf|^\[module/)
		return ""
	if (file == "[vdso]")
		return "V"
	if (file == "") {
		gsub(/ /, "_", name)
		return name ~ /^\[.*\]$/ ? name : "?"
	}
	if (file == prog) {
		if (n_names && match(name, /\+0x[0-9a-f]+$/))
			name = by_address(hex(substr(name, RSTART + 3)))
		sub(/\.(cold|part|isra|constprop).*/, "", name)
		if (kind == "go" && name ~ go_words)
			return name
		if (name ~ /^(main|_start|_?_?start_c|\?)$/ ||
		    name ~ /^st_[a-z_]+$/)
			return name
		return "L"
	}
	if (base ~ /^ld-linux/ && match(name, /\+0x[0-9a-f]+$/) &&
	    hex(substr(name, RSTART + 3)) - hex(ld) < 80 &&
	    hex(substr(name, RSTART + 3)) >= hex(ld))
		return "_start"
	if (name ~ /^st_[a-z_]+$/)
		return name "@" base
	return base ~ /\.so/ ? "L" : "?"
}

function chain(stack,	n, i, frames, w, last, times, out) {
	n = split(stack, frames, ";")
	last = out = ""
	times = 0
	for (i = 1; i <= n + 1; i++) {
		w = i <= n ? word(frames[i]) : ""
		if (i <= n && w == "")
			continue
		if (w == last) {
			times++
			continue
		}
		if (last != "")
			out = out (out == "" ? "" : " ") last \
				(times > 1 && last != "L" ? "*" times : "")
		last = w
		times = 1
	}
	return out
}

function mode(name, regex) {
	n_modes++
	mode_name[n_modes] = name
	mode_regex[n_modes] = "^(" regex ")$"
}

# Any tail of the chain that begins in these words will do: the sample may have
# come before the innermost was called.
function tails(words,	n, i, w, out) {
	n = split(words, w, " ")
	out = ""
	for (i = 1; i <= n; i++)
		out = "(" out w[i] " )?"
	gsub(/LEAF/, "(st_spin |(V )?L )?st_work", out)
	return "((V )?L )?" out
}

function c_modes(	leaf) {
	leaf = "(st_spin |(V )?L )?st_work "
	mode("chain", tails("LEAF st_c st_b st_a") "st_mode_chain" end)
	mode("recursion", "(" leaf "st_recurse\\*1000 |" \
		"st_recurse(\\*[0-9]+)? )?st_mode_recursion" end)
	mode("alloca", "(" leaf "st_room\\*5 |st_room(\\*[0-9]+)? )?" \
		"st_mode_alloca" end)
	mode("tail", tails("LEAF st_tail_target") "st_mode_tail" end)
	mode("noreturn", tails("LEAF st_never st_before") "st_mode_noreturn" end)
	mode("signal", "(" tails("LEAF st_on_inner") "L )?" \
		tails("LEAF st_on_outer") "L st_mode_signal" end)
	mode("altstack", "(" tails("LEAF st_on_inner") "L )?" \
		tails("LEAF st_on_outer") "L st_mode_altstack" end)
	mode("signal", "(L )?st_mode_signal" end)
	mode("altstack", "(L )?st_mode_altstack" end)
	mode("async", "((st_spin )?st_on_timer L (V |(V )?L )?)?" \
		tails("LEAF st_c st_b st_a") "st_mode_async" end)
	mode("vfork", tails("LEAF st_in_vfork") "st_mode_vfork" end)
	mode("threads", tails("LEAF st_c st_b st_a") "st_thread" root)
	mode("vdso", "(V )?(L )?st_mode_vdso" end)
	mode("vsyscall", "(Y )?(L )?st_mode_vsyscall" end)
	mode("callback", "((V )?L )?((st_spin )?st_compare L )?st_mode_callback" end)
	mode("context", tails("LEAF") "st_coroutine" root)
	mode("context", tails("LEAF") "st_mode_context" end)
	mode("plt", "(st_called@libcalled.so |(V )?L )?st_mode_plt" end)
	mode("dlopen", "(((V )?L )?st_one@libone.so |L )?st_run_one " \
		"st_mode_dlopen" end)
	mode("dlopen", "(((V )?L )?st_two@libtwo.so |L )?st_run_two " \
		"st_mode_dlopen" end)
}

# Looking for a handler it is all there; then it is cut back frame by frame.
function throw_modes() {
	mode("in_flight", "L st_throw st_descend\\*30 st_mode_throw" end)
	mode("cleanup", "st_clean st_descend(\\*[0-9]+)? st_mode_throw" end)
	mode("rest", "((V )?L )?(st_throw )?(st_descend(\\*[0-9]+)? )?" \
		"st_mode_throw" end)
}

# main is C's, and calls Rust's.
function rust_modes(	below) {
	below = "st_rounds (L main L _start|L)"
	mode("deep", "(L )?(st_spin )?st_deep\\*3[01] " below)
	mode("sort", "(L )?(st_spin )?L st_sort " below)
	mode("panic", "L st_panic(\\*[0-9]+)? (L )?" below)
	# _Unwind_Resume writes the registers of the frame that it goes to over
	# those that it saved. Rust's own frames are found by one of them, %rbp.
	mode("resume", "L (\\[another_stack\\]|st_rounds st_panic(\\*[0-9]+)? " \
		"(L )?" below ")")
	mode("rest", "((L )?st_spin )?(st_deep(\\*[0-9]+)? |st_sort )?" below)
	mode("rest", "(V )?L " below)
}

# Goroutines end in goexit, also below what runs on a thread's own stack. There the
# scheduler has no goroutine, and ends in what called it; or in the thread's start.
# "lost" are stacks whose goroutine was not found.
function go_modes(	own, change, goroutine) {
	own = "runtime\\.goexit(\\.abi0)?"
	change = "runtime\\.(mcall|systemstack|morestack|asmcgocall)(\\.abi0)? "
	goroutine = "(main\\.(stSpin|stSort\\.func1|stSort|cpuTime|_Cfunc[^ ]*|stCall|" \
		"stGo|stBack) |main\\.stDeep(\\*[0-9]+)? |L )*" \
		"((main\\.stWorker main\\.main\\.func1|main\\.main L) )?" own
	mode("deep", "((L )?main\\.stSpin )?main\\.stDeep\\*21 " \
		"main\\.main L " own)
	mode("deep", "((L )?main\\.stSpin )?main\\.stDeep\\*101 " \
		"main\\.stWorker main\\.main\\.func1 " own)
	mode("sort", "(L )?(main\\.stSort\\.func1 L )?main\\.stSort " \
		"main\\.stWorker main\\.main\\.func1 " own)
	mode("rest", "(V )?(L )?(main\\.cpuTime )?(main\\.stDeep(\\*[0-9]+)? )?(main\\.stWorker main\\.main\\.func1|" \
		"main\\.main L) " own)
	mode("go", "(L )?main\\.stGo main\\.stCall main\\.main L " own)
	mode("c", "((L )?st_spin )?st_c(_back)? (L )?" change "L " \
		"(main\\._Cfunc_st_c(_back)?(\\.abi0)? )?main\\.stCall main\\.main L " own)
	mode("back", "(L )?main\\.stGo (main\\.stBack )?L (runtime\\.systemstack_switch(\\.abi0)? L )?" \
		"main\\._Cfunc_st_c_back(\\.abi0)? main\\.stCall main\\.main L " own)
	mode("rest", "(L )?(main\\._Cfunc[^ ]* )?(main\\.stCall )?main\\.main L " own)
	mode("switched", "((V )?L )?" change goroutine)
	mode("scheduler", "(V )?L runtime\\.(mcall|morestack)(\\.abi0)?")
	mode("scheduler", "((V )?L )?(runtime\\.(mstart0|mstart1|mstartm0) )*" \
		"(runtime\\.(mstart|rt0_go|clone)(\\.abi0)?|_rt0_amd64_linux)")
	mode("lost", "(V )?(L )?(st_spin )?(st_c(_back)? (L )?)?" \
		"((runtime\\.(sigtramp|mstart0|mstart1|mstartm0)(\\.abi0)?|" change ") ?)*" \
		"\\[another_stack\\]")
	mode("runtime", "L " own)
	mode("thread", "(V )?L")
}

BEGIN {
	FS = OFS = "\t"
	if (names != "") {
		while ((getline line < names) > 0) {
			split(line, part, " ")
			if (part[2] !~ /^[tTwWi]$/)
				continue
			n_names++
			at[n_names] = hex(part[1])
			called[n_names] = part[3]
		}
	}
	end = " main L _start"
	root = " L"
	if (libc == "musl") # the call of main() is known as a root
		end = " main L( _start_c)?( _start)?"
	go_words = "^(main\\.|runtime\\.(goexit|mstart|mcall|systemstack|" \
		"asmcgocall|rt0_go|morestack|sigreturn)|_rt0_amd64_linux$)"
	if (kind == "throw")
		throw_modes()
	else if (kind == "rust")
		rust_modes()
	else if (kind == "go")
		go_modes()
	else
		c_modes()
}

$7 == prog {
	c = chain($10)
	if (match(c, /\[[^ ]*\]$/))
		ends[substr(c, RSTART)] += $1
	if (c ~ /^(L )?\[exec\]$/ || c == "" || c == "[no_user_stack]") {
		exec += $1
		next
	}
	for (i = 1; i <= n_modes; i++)
		if (c ~ mode_regex[i]) {
			good[mode_name[i]] += $1
			next
		}
	if (c ~ /^((V )?L )?(main L )?_start$/ || c ~ /^L st_mode_threads /)
		only["start"] += $1
	else
		bad[c] += $1
}

END {
	for (c in good)
		print "mode", c, good[c]
	for (c in only)
		print "only", c, only[c]
	print "exec", "-", exec + 0
	for (c in bad)
		print "bad", c, bad[c]
	for (c in ends)
		print "ends", c, ends[c]
}
