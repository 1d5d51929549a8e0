// SPDX-License-Identifier: Apache-2.0
/*
 * sandbox: see symbolize/reader/sandbox.h. The order matters: first the steps
 * that need privilege, then the privilege is dropped, then the system calls
 * that these steps use are forbidden.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/close_range.h>
#include <seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/capability.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/base.h"
#include "symbolize/reader/sandbox.h"
#include "symbolize/symbolize.h"

/* The socket, /dev/null twice, the file, three debug files, units, a memfd. */
#define SANDBOX_FILES 12
#define SANDBOX_NETWORK_FILES 64 /* libcurl's */
#define SANDBOX_NETWORK_THREADS 8 /* which resolve names */

/*
 * A user id per process: these are unused in systemd's list of ranges ("Users,
 * Groups, UIDs and GIDs on systemd systems"). A user namespace usually doesn't
 * map this range, but does map nobody.
 */
#define SANDBOX_UID_BASE SYMBOLIZER_UID_BASE
#define SANDBOX_UID_NOBODY 65534U

/*
 * A far bound: files are mapped, however large, and their pages can be dropped. What
 * cannot is private writable memory.
 */
#define SANDBOX_AS (16ULL << 30)

/* The address sanitizer maps terabytes, and uses little of it. */
#ifdef __SANITIZE_ADDRESS__
#define SANDBOX_NO_MEMORY 2
#else
#define SANDBOX_NO_MEMORY 0
#endif

static int sandbox_close_all(const struct sandbox_opts *o, uid_t *uid)
{
	return close_range(3, ~0U, 0) || chdir("/") ? -errno : 0;
}

static bool sandbox_has(cap_t caps, cap_value_t cap)
{
	cap_flag_value_t v = CAP_CLEAR;

	return !cap_get_flag(caps, cap, CAP_EFFECTIVE, &v) && v == CAP_SET;
}

static int sandbox_become(uid_t uid)
{
	if (setgroups(0, NULL) || setresgid(uid, uid, uid) ||
	    setresuid(uid, uid, uid))
		return -errno;
	return 0;
}

/* Only if profd, with the same capabilities, can still kill it. */
static int own_uid(const struct sandbox_opts *o, uid_t *uid)
{
	cap_t caps = cap_get_proc();
	bool can = caps && sandbox_has(caps, CAP_SETUID) &&
		   sandbox_has(caps, CAP_SETGID) && sandbox_has(caps, CAP_KILL);
	int err = 0;

	cap_free(caps);
	if (can) {
		err = sandbox_become(SANDBOX_UID_BASE + (uid_t)getpid());
		if (err == -EINVAL)
			err = sandbox_become(SANDBOX_UID_NOBODY);
		/* A user namespace may map neither, and forbid setgroups(). */
		if (err == -EINVAL || err == -EPERM)
			err = 0;
	}
	*uid = getuid();
	return err;
}

static int drop_bounding(const struct sandbox_opts *o, uid_t *uid)
{
	/* Fails without CAP_SETPCAP, but then only an exec would matter. */
	for (cap_value_t c = 0; c < cap_max_bits(); c++)
		cap_drop_bound(c);
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ? -errno : 0;
}

static int drop_caps(const struct sandbox_opts *o, uid_t *uid)
{
	cap_t none = cap_init(), left = NULL;
	int err = -ENOMEM;

	if (!none)
		return err;
	if (cap_reset_ambient() || cap_set_proc(none)) {
		err = -errno;
		goto out;
	}
	left = cap_get_proc();
	err = left && cap_compare(left, none) == 0 ? 0 : -EPERM;
out:
	cap_free(left);
	cap_free(none);
	return err;
}

/* After own_uid(), since a change of the user id undoes both. */
static int sandbox_hide(const struct sandbox_opts *o, uid_t *uid)
{
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) ||
	    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0))
		return -errno;
	return 0;
}

/* The private writable memory in use, in bytes; see proc_pid_status(5). */
static size_t sandbox_data(void)
{
	char text[4096];
	const char *at = NULL;

	if (procfs_read(AT_FDCWD, "/proc/self/status", text, sizeof(text)) > 0)
		at = strstr(text, "\nVmData:");
	/* Without /proc this is 0, and the limit is lower. */
	return at ? strtoul(at + 8, NULL, 10) << 10 : 0;
}

/* A lower hard limit, as that of `ulimit -f`, stays; raising it is forbidden. */
static int sandbox_limit(__rlimit_resource_t what, const struct rlimit *want)
{
	struct rlimit rl;

	if (getrlimit(what, &rl))
		return -errno;
	if (rl.rlim_max > want->rlim_max)
		rl.rlim_max = want->rlim_max;
	rl.rlim_cur =
		want->rlim_cur < rl.rlim_max ? want->rlim_cur : rl.rlim_max;
	return setrlimit(what, &rl) ? -errno : 0;
}

static int sandbox_limits(const struct sandbox_opts *o, uid_t *uid)
{
	size_t data = sandbox_data() + o->memory;
	rlim_t files = o->network ? SANDBOX_NETWORK_FILES : SANDBOX_FILES;
	rlim_t threads = o->network ? SANDBOX_NETWORK_THREADS : 0;
	const struct {
		__rlimit_resource_t what;
		struct rlimit limit;
	} limits[] = {
		{ RLIMIT_CPU, { o->cpu_s, o->cpu_s + 1 } },
		{ RLIMIT_FSIZE, { o->file_bytes, o->file_bytes } },
		{ RLIMIT_NOFILE, { files, files } },
		{ RLIMIT_NPROC, { threads, threads } },
		{ RLIMIT_CORE, { 0, 0 } },
		/* The last ones: SANDBOX_NO_MEMORY. */
		{ RLIMIT_DATA, { data, data } },
		{ RLIMIT_AS, { SANDBOX_AS, SANDBOX_AS } },
	};

	int err = 0;

	for (size_t i = 0; i < ARRAY_SIZE(limits) - SANDBOX_NO_MEMORY && !err;
	     i++)
		/* Its user id may be that of other processes, which count. */
		if (!(o->network && limits[i].what == RLIMIT_NPROC &&
		      getuid() != SANDBOX_UID_BASE + (uid_t)getpid()))
			err = sandbox_limit(limits[i].what, &limits[i].limit);
	return err;
}

/* Memory allocation, files, and exit. */
static const int plain_calls[] = {
	SCMP_SYS(brk),
	SCMP_SYS(munmap),
	SCMP_SYS(mremap),
	SCMP_SYS(madvise),
	SCMP_SYS(futex),
	SCMP_SYS(getrandom),
	SCMP_SYS(pread64),
	SCMP_SYS(lseek),
	SCMP_SYS(write),
	SCMP_SYS(close),
	SCMP_SYS(clock_gettime),
	SCMP_SYS(exit),
	SCMP_SYS(exit_group),
	SCMP_SYS(rt_sigreturn),
	SCMP_SYS(restart_syscall),
#ifdef __SANITIZE_ADDRESS__
	SCMP_SYS(sched_yield),
	SCMP_SYS(sigaltstack),
	SCMP_SYS(getpid),
	SCMP_SYS(gettid),
#endif
};

/* What no server needs, and attacks on kernels used. */
static const int network_refused[] = {
	SCMP_SYS(execve),
	SCMP_SYS(execveat),
	SCMP_SYS(ptrace),
	SCMP_SYS(process_vm_readv),
	SCMP_SYS(process_vm_writev),
	SCMP_SYS(bpf),
	SCMP_SYS(perf_event_open),
	SCMP_SYS(userfaultfd),
	SCMP_SYS(io_uring_setup),
	SCMP_SYS(unshare),
	SCMP_SYS(setns),
	SCMP_SYS(mount),
	SCMP_SYS(umount2),
	SCMP_SYS(pivot_root),
	SCMP_SYS(chroot),
	SCMP_SYS(add_key),
	SCMP_SYS(request_key),
	SCMP_SYS(keyctl),
	SCMP_SYS(init_module),
	SCMP_SYS(finit_module),
	SCMP_SYS(kexec_load),
	SCMP_SYS(kexec_file_load),
};

#define NO_EXEC SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0)
#define ON_SOCKET SCMP_A0(SCMP_CMP_EQ, SANDBOX_SOCKET)

static const struct {
	int call;
	struct scmp_arg_cmp arg;
} bound_calls[] = {
	{ SCMP_SYS(mmap), NO_EXEC },
	{ SCMP_SYS(mprotect), NO_EXEC },
	{ SCMP_SYS(recvmsg), ON_SOCKET },
	{ SCMP_SYS(sendmsg), ON_SOCKET },
	{ SCMP_SYS(memfd_create),
	  SCMP_A1(SCMP_CMP_EQ, MFD_CLOEXEC | MFD_ALLOW_SEALING) },
	{ SCMP_SYS(fcntl), SCMP_A1(SCMP_CMP_EQ, F_ADD_SEALS) },
};

static int network_filter(void)
{
	scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ALLOW);
	int err = ctx ? 0 : -ENOMEM;

	for (size_t i = 0; i < ARRAY_SIZE(network_refused) && !err; i++)
		err = seccomp_rule_add(ctx, SCMP_ACT_KILL_PROCESS,
				       network_refused[i], 0);
	if (!err)
		err = seccomp_load(ctx);
	seccomp_release(ctx);
	return err;
}

static int worker_filter(void)
{
	scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_KILL_PROCESS);
	int err = ctx ? 0 : -ENOMEM;

	for (size_t i = 0; i < ARRAY_SIZE(plain_calls) && !err; i++)
		err = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, plain_calls[i], 0);
	for (size_t i = 0; i < ARRAY_SIZE(bound_calls) && !err; i++)
		err = seccomp_rule_add_array(ctx, SCMP_ACT_ALLOW,
					     bound_calls[i].call, 1,
					     &bound_calls[i].arg);
	if (!err)
		err = seccomp_load(ctx);
	seccomp_release(ctx);
	return err;
}

static int sandbox_filter(const struct sandbox_opts *o, uid_t *uid)
{
	return o->network ? network_filter() : worker_filter();
}

int sandbox_enter(const struct sandbox_opts *o, uid_t *uid, const char **what)
{
	static const struct {
		const char *what;
		int (*step)(const struct sandbox_opts *o, uid_t *uid);
	} steps[] = {
		{ "close_range", sandbox_close_all },
		{ "no_new_privs", drop_bounding },
		{ "user id", own_uid },
		{ "capabilities", drop_caps },
		{ "prctl", sandbox_hide },
		{ "resource limits", sandbox_limits },
		{ "seccomp", sandbox_filter },
	};
	int err = 0;

	for (size_t i = 0; i < ARRAY_SIZE(steps) && !err; i++) {
		*what = steps[i].what;
		err = steps[i].step(o, uid);
	}
	return err;
}
