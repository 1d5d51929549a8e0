#!/bin/bash
# A program that spends its time in system calls: kernel functions by name below the
# call, with the user frames above them in the same stack.
. "$(dirname "$0")/lib.sh"
out=$T/dd.pb.gz

record "$out" -F 997 -- timeout 2 dd if=/dev/zero of=/dev/null
is "the status of timeout(1) is passed on" $? 124
check_profile "$out"
samples "$out" | awk -F '\t' '$7 ~ /dd$/' >"$T/dd"
taken=$(total "$T/dd")
# At most 1,994; how many depends on other load.
num "dd was sampled all along" "$taken" '>=' 60

# At least a third: reading zeroes in pieces of 512 bytes is system calls only.
kernel='@[[]kernel.kallsyms[]]'
inside=$(total "$T/dd" "$kernel")
num "a third of the samples are in the kernel" "$(percent "$inside" "$taken")" \
	'>=' 33
awk -F '\t' -v k="$kernel" '$10 ~ k' "$T/dd" >"$T/kernel"
# The other ten percent: the first and last instructions of the entry code, where no
# system call is on the stack, and interrupts.
call='(do_syscall_64|entry_SYSCALL_64[a-z_]*)@[[]kernel.kallsyms[]]'
calls=$(total "$T/kernel" "$call")
num "nine of ten of these show the system call" \
	"$(percent "$calls" "$inside")" '>=' 90
paths='(vfs_read|vfs_write|read_(iter_)?zero|write_null|ksys_(read|write))'
num "the file system's functions have their names" \
	"$(percent "$(total "$T/kernel" "$paths@")" "$inside")" '>=' 33
is "no kernel frame without a name" \
	"$(cut -f 10 "$T/dd" | tr ';' '\n' | grep "$kernel" |
		grep -cE '^(0x|.*\+0x)')" 0

awk -F '\t' -v c="$call" '$10 ~ c' "$T/kernel" >"$T/calls"
# Leaf first: kernel frames, then user frames, and no kernel frame after those.
order="^([^;]*$kernel;)+([^;]*@[^;[]*(;|\$))+"
num "user frames stand above the system call in 99 % of them" \
	"$(percent "$(total "$T/calls" "$order")" "$calls")" '>=' 99
is "no kernel frame stands above a user frame" \
	"$(total "$T/dd" "@/[^;]*;([^;]*;)*[^;]*$kernel")" 0
num "the C library's read and write called nine of ten" \
	"$(percent "$(total "$T/calls" \
		';_*(libc_)?(read|write)@[^;]*libc[.-]')" "$calls")" '>=' 90
plan
