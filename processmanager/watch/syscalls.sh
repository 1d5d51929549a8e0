#!/bin/bash
# syscalls.sh >arch_x86.def: the system calls of x86-64 as rows for calls.c. Numbers and
# names are those of asm/unistd_64.h; arguments are the kernel's own, of tracefs; to be
# run as root on a kernel of which all calls are to be known. Names, numbers and arguments
# of what is not there are below.
set -eu
export LC_ALL=C
header=${UNISTD:-/usr/include/x86_64-linux-gnu/asm/unistd_64.h}
events=${TRACEFS:-/sys/kernel/tracing}/events/syscalls
[ -d "$events/sys_enter_openat" ] || {
	echo "syscalls.sh: no events in $events: mount -t tracefs tracefs /sys/kernel/tracing" >&2
	exit 1
}

# NUMBER NAME: newer than the header of Debian 12 (arch/x86/entry/syscalls/syscall_64.tbl).
newer='335 uretprobe 336 uprobe 451 cachestat 452 fchmodat2 453 map_shadow_stack
454 futex_wake 455 futex_wait 456 futex_requeue 457 statmount 458 listmount
459 lsm_get_self_attr 460 lsm_set_self_attr 461 lsm_list_modules 462 mseal 463 setxattrat
464 getxattrat 465 listxattrat 466 removexattrat 467 open_tree_attr 468 file_getattr
469 file_setattr'

# NAME WORD...: the kernel's word for it first if it is another one, then those of libc,
# of 32-bit calls, and of Kindling's probe.
words='stat newstat stat64
fstat newfstat fstat64
lstat newlstat lstat64
newfstatat . fstatat fstatat64
uname newuname
sendfile sendfile64
umount2 umount
_sysctl sysctl
pread64 . pread
pwrite64 . pwrite
lseek . llseek _llseek
mmap . mmap2
prlimit64 . prlimit
fadvise64 . fadvise'

# NAME: TYPE ARGUMENT, ...: which this kernel was built without.
prototypes='init_module: void *umod, unsigned long len, const char *uargs
delete_module: const char *name_user, unsigned int flags
finit_module: int fd, const char *uargs, int flags
kexec_load: unsigned long entry, unsigned long nr_segments, void *segments, unsigned long flags
kexec_file_load: int kernel_fd, int initrd_fd, unsigned long cmdline_len, const char *cmdline_ptr, unsigned long flags
map_shadow_stack: unsigned long addr, unsigned long size, unsigned int flags
lookup_dcookie: u64 cookie64, char *buf, size_t len
uselib: const char *library'

# CATEGORY: NAME...; "fd": by the kind of the descriptor; the rest are "other".
categories='fd: read pread64 readv preadv preadv2 recvfrom recvmsg recvmmsg write pwrite64
 writev pwritev pwritev2 sendto sendmsg sendmmsg sendfile close dup dup2 dup3 fcntl ioctl
 splice
file: open openat openat2 creat stat lstat fstat newfstatat statx lseek getcwd chdir fchdir
 mkdir mkdirat rmdir unlink unlinkat link linkat rename renameat renameat2 symlink symlinkat
 getdents getdents64 flock mount umount2 mount_setattr access faccessat faccessat2 chmod
 fchmod fchmodat fchmodat2 copy_file_range memfd_create
net: socket bind connect listen accept accept4 shutdown getsockname getpeername setsockopt
 getsockopt
ipc: socketpair pipe pipe2 eventfd eventfd2 futex futex_waitv inotify_init inotify_init1
process: execve execveat clone clone3 fork vfork getrlimit setrlimit prlimit64 ptrace setns
 semop semctl semget chroot setsid setpgid unshare pidfd_open
memory: brk mmap munmap
signal: signalfd signalfd4 kill tkill tgkill pidfd_send_signal
sleep: nanosleep
time: timerfd_create
user: setuid getuid setgid getgid setresuid getresuid setresgid getresgid geteuid getegid
 quotactl
wait: epoll_wait epoll_pwait epoll_pwait2 poll ppoll select'

paths='filename pathname path oldname newname new_root put_old special specialfile
 dev_name dir_name from_pathname to_pathname library'
named_paths='acct umount2 name_to_handle_at' # whose argument "name" is one
# Whose result is a descriptor, if they succeed.
opens='open openat openat2 creat open_by_handle_at open_tree open_tree_attr memfd_create
 memfd_secret fsopen fsmount fspick mq_open socket accept accept4 dup dup2 dup3 eventfd
 eventfd2 signalfd signalfd4 timerfd_create epoll_create epoll_create1 inotify_init
 inotify_init1 fanotify_init userfaultfd pidfd_open pidfd_getfd perf_event_open
 io_uring_setup'
pairs='fildes usockvec' # pointers to two descriptors that the call makes
ends='close close_range execve execveat' # which may end the descriptor they are given
fds='fd dfd ufd pidfd epfd oldfd newfd olddfd newdfd fd_in fd_out in_fd out_fd from_dfd
 to_dfd mountdirfd group_fd fs_fd fdin fdout fanotify_fd ruleset_fd fildes kernel_fd
 initrd_fd mqdes'

{
	sed -n 's/^#define __NR_\([a-z0-9_]*\) \([0-9]*\)$/\2 \1/p' "$header"
	xargs -n 2 <<<"$newer"
} | sort -nu | while read -r nr name; do
	symbol=$(awk -v n="$name" '$1 == n { print $2 }' <<<"$words")
	[[ -n $symbol && $symbol != . ]] || symbol=$name
	if [ -d "$events/sys_enter_$symbol" ]; then
		args=$(sed -n '/__syscall_nr/d; /common_/d; s/.*field:\([^;]*\);\toffset.*/\1/p' \
			"$events/sys_enter_$symbol/format" | paste -sd,)
	else
		args=$(sed -n "s/^$name: //p" <<<"$prototypes")
	fi
	echo "$nr|$name|$symbol|$args"
done | awk -F '|' -v words="$words" -v categories="$categories" -v paths="$paths" \
	-v named_paths="$named_paths" -v fds="$fds" -v opens="$opens" -v pairs="$pairs" \
	-v ends="$ends" '
function set(list, into,   w, n, i) {
	n = split(list, w, /[ \n]+/)
	for (i = 1; i <= n; i++)
		into[w[i]] = 1
}
function kind(type, arg, call) {
	if (type ~ /char *$/ || type ~ /char \* *$/)
		return arg in is_path || arg == "name" && call in is_named ? "PATH" : "POINTER"
	if (type ~ /\*/ || type ~ /cap_user_/)
		return arg in is_pair ? "PAIR" : "POINTER"
	if (arg in is_fd)
		return call in is_end ? "ENDS" : "FD"
	gsub(/const /, "", type)
	sub(/ *$/, "", type)
	if (type ~ /^(int|__s32|pid_t|clockid_t|key_t|timer_t|mqd_t|key_serial_t|rwf_t)$/)
		return "INT"
	if (type ~ /^(unsigned|unsigned int|u32|__u32|uid_t|gid_t|qid_t|enum .*)$/)
		return "UINT"
	if (type == "umode_t")
		return "MODE"
	if (type ~ /^(long|off_t|loff_t)$/)
		return "LONG"
	if (type ~ /^(unsigned long|size_t|u64|__u64|aio_context_t)$/)
		return "ULONG"
	print "syscalls.sh: " call ": what is a " type "?" >"/dev/stderr"
	exit 1
}
BEGIN {
	set(paths, is_path)
	set(named_paths, is_named)
	set(fds, is_fd)
	set(opens, is_open)
	set(pairs, is_pair)
	set(ends, is_end)
	n = split(words, line, "\n")
	for (i = 1; i <= n; i++) {
		name = line[i]
		sub(/ .*/, "", name)
		sub(/^[^ ]* (\. )?/, "", line[i])
		published[name] = line[i]
	}
	n = split(categories, w, /[ \n]+/)
	for (i = 1; i <= n; i++)
		if (w[i] ~ /:$/)
			at = substr(w[i], 1, length(w[i]) - 1)
		else
			category[w[i]] = at
	print "/* SPDX-License-Identifier: Apache-2.0 */"
	print "/*"
	print " * arch_x86: the system calls of x86-64, with the names of their arguments in the kernel,"
	print " * as syscalls.sh prints them. CALL(number, name, the kernel'\''s name, other names,"
	print " * category, arguments...); NO_EXIT: which never return; OPENS: whose result is a"
	print " * descriptor."
	print " */"
}
{
	of = $2 in category ? category[$2] : "other"
	row = $2 ~ /^(exit|exit_group|rt_sigreturn)$/ ? "NO_EXIT" : $2 in is_open ? "OPENS" : "CALL"
	printf "%s(%d, %s, \"%s\", \"%s\", %s", row, $1, $2, $3, published[$2],
		of == "fd" ? "BY_FD" : "\"" of "\""
	n = split($4, arg, ", *")
	for (i = 1; i <= n; i++) {
		name = arg[i]
		sub(/.*[ *]/, "", name)
		type = substr(arg[i], 1, length(arg[i]) - length(name))
		printf ", %s(%s)", kind(type, name, $2), name
	}
	print ")"
}'
