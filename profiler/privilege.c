// SPDX-License-Identifier: Apache-2.0
/* privilege: see profiler/privilege.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <linux/bpf.h>
#include <linux/btf.h>

#include "base/base.h"
#include "profiler/privilege.h"

/* The oldest kernel that is tested. */
#define OLDEST_MAJOR 6
#define OLDEST_MINOR 1

/* PROC_PID_INIT_INO of include/linux/proc_ns.h: the first pid namespace. */
#define ROOT_PID_NS "pid:[4026531836]"

/*
 * CAP_SYS_ADMIN includes CAP_BPF and CAP_PERFMON since they were split off from
 * it in 5.8.
 */
static const struct {
	const char *name;
	cap_value_t cap, instead;
	const char *without; /* NULL: it is required */
} capabilities[] = {
	{ "CAP_BPF", CAP_BPF, CAP_SYS_ADMIN, NULL },
	{ "CAP_PERFMON", CAP_PERFMON, CAP_SYS_ADMIN, NULL },
	{ "CAP_SYS_PTRACE", CAP_SYS_PTRACE, CAP_SYS_PTRACE,
	  "CAP_SYS_PTRACE: mappings and files of other users' processes "
	  "cannot be read" },
	{ "CAP_SYSLOG", CAP_SYSLOG, CAP_SYSLOG,
	  "CAP_SYSLOG: the kernel hides its addresses, so its functions have "
	  "no names" },
	{ "CAP_DAC_READ_SEARCH", CAP_DAC_READ_SEARCH, CAP_DAC_READ_SEARCH,
	  "CAP_DAC_READ_SEARCH: executables that others may not read have no "
	  "names" },
};

const struct privilege_host privilege_this_host = {
	.btf = "/sys/kernel/btf/vmlinux",
	.pid_ns = "/proc/self/ns/pid",
	.paranoid = "/proc/sys/kernel/perf_event_paranoid",
	.proc = "/proc",
};

/*
 * procfs(5) may not be mounted, or be mounted so that it has less. The first
 * missing file explains the others. Process 2 is a kernel thread on every host.
 */
static const struct {
	const char *name, *without;
} proc_files[] = {
	{ "self/stat",
	  "/proc: it is not mounted: without arguments and mappings of "
	  "processes that were there before, CPU time of running processes, "
	  "names of kernel functions, and the number of missing samples" },
	{ "stat",
	  "/proc: mounted for processes only (subset=pid): without names of "
	  "kernel functions and the number of missing samples" },
	{ "2/stat",
	  "/proc: others' processes are hidden (hidepid, and no "
	  "CAP_SYS_PTRACE): without mappings of those that were there before" },
};

static bool privilege_has(cap_t caps, cap_value_t cap)
{
	cap_flag_value_t v = CAP_CLEAR;

	return !cap_get_flag(caps, cap, CAP_EFFECTIVE, &v) && v == CAP_SET;
}

static bool privilege_lacks(cap_t caps, size_t i)
{
	return !privilege_has(caps, capabilities[i].cap) &&
	       !privilege_has(caps, capabilities[i].instead);
}

/* "missing CAP_BPF, CAP_PERFMON (...)"; false: nothing is missing. */
static bool privilege_missing(cap_t caps, struct strbuf *out)
{
	bool any = false;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(capabilities); i++) {
		if (!privilege_lacks(caps, i))
			continue;
		strbuf_puts(out, any ? ", " : "missing ");
		strbuf_puts(out, capabilities[i].name);
		any = true;
	}
	if (any)
		strbuf_puts(out, " (run as root or see profd(8))");
	return any;
}

const char *privilege_degraded(const struct privilege_host *host, cap_t caps,
			       size_t i)
{
	char path[128];
	size_t c;

	for (c = 0; c < ARRAY_SIZE(capabilities); c++)
		if (capabilities[c].without && privilege_lacks(caps, c) && !i--)
			return capabilities[c].without;
	for (c = 0; !i && c < ARRAY_SIZE(proc_files); c++) {
		snprintf(path, sizeof(path), "%s/%s", host->proc,
			 proc_files[c].name);
		/* access(2) would ignore the capabilities. */
		if (faccessat(AT_FDCWD, path, F_OK, AT_EACCESS))
			return proc_files[c].without;
	}
	return NULL;
}

static int check_caps(cap_t caps, char *msg, size_t len)
{
	struct strbuf sb = STRBUF_INIT;
	bool lacks = false;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(capabilities); i++)
		lacks |= !capabilities[i].without && privilege_lacks(caps, i);
	if (!lacks)
		return 0;
	privilege_missing(caps, &sb);
	snprintf(msg, len, "not permitted: %s",
		 sb.failed ? "out of memory" : sb.data);
	strbuf_fini(&sb);
	return -EPERM;
}

/* libbpf returns ESRCH, "No such process", for each of these errors. */
static int check_btf(const struct privilege_host *host, char *msg, size_t len)
{
	char text[sizeof(uint16_t) + 1];
	ssize_t n = procfs_read(AT_FDCWD, host->btf, text, sizeof(text));
	uint16_t magic = 0;

	if (n == sizeof(magic))
		memcpy(&magic, text, sizeof(magic));
	if (magic == BTF_MAGIC)
		return 0;
	snprintf(
		msg, len,
		"%s: %s: profd needs a kernel with BTF "
		"(CONFIG_DEBUG_INFO_BTF=y) and sysfs at /sys, or --source perf",
		host->btf, n < 0 ? strerror(-(int)n) : "is no BTF");
	return -ENOSYS;
}

static int check_kernel(const struct privilege_host *host, char *msg,
			size_t len)
{
	unsigned int major, minor;
	struct utsname uts;

	if (uname(&uts))
		return -errno;
	if (sscanf(host->release ? host->release : uts.release, "%u.%u", &major,
		   &minor) == 2 &&
	    (major < OLDEST_MAJOR ||
	     (major == OLDEST_MAJOR && minor < OLDEST_MINOR))) {
		snprintf(msg, len,
			 "kernel %u.%u is too old: profd needs %d.%d or newer, "
			 "or --source perf",
			 major, minor, OLDEST_MAJOR, OLDEST_MINOR);
		return -ENOSYS;
	}
	return check_btf(host, msg, len);
}

static int in_pid_ns(char *msg, size_t len)
{
	snprintf(msg, len,
		 "inside a pid namespace: profd must run in the host's "
		 "(docker run --pid=host, hostPID: true)");
	return -ENOTSUP;
}

/*
 * Pids in perf records are those of the opener's namespace, BPF's those of the
 * root namespace: in any other the streams could not be joined. -ENOENT:
 * unknown.
 */
static int check_pid_ns(const struct privilege_host *host, char *msg,
			size_t len)
{
	char link[64];
	ssize_t n = readlink(host->pid_ns, link, sizeof(link) - 1);
	int err = -errno;

	if (n < 0) {
		snprintf(msg, len, "%s: %s", host->pid_ns, strerror(-err));
		return err == -ENOENT ? err : -ENOTSUP;
	}
	link[n] = '\0';
	return strcmp(link, ROOT_PID_NS) ? in_pid_ns(msg, len) : 0;
}

/* BPF returns the pid in the root namespace, getpid(2) that in profd's own. */
static int check_pid_by_bpf(char *msg, size_t len)
{
	static const struct bpf_insn program[] = {
		{ .code = BPF_JMP | BPF_CALL,
		  .imm = BPF_FUNC_get_current_pid_tgid },
		{ .code = BPF_ALU64 | BPF_RSH | BPF_K,
		  .dst_reg = BPF_REG_0,
		  .imm = 32 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	LIBBPF_OPTS(bpf_test_run_opts, run);
	int err, fd;

	fd = bpf_prog_load(BPF_PROG_TYPE_RAW_TRACEPOINT, "pid_by_bpf",
			   "Dual BSD/GPL", program, ARRAY_SIZE(program), NULL);
	if (fd < 0)
		return -ENOENT;
	err = bpf_prog_test_run_opts(fd, &run);
	close(fd);
	if (err)
		return -ENOENT;
	return run.retval == (uint32_t)getpid() ? 0 : in_pid_ns(msg, len);
}

int privilege_check(const struct privilege_host *host, cap_t caps, char *msg,
		    size_t len)
{
	int err = check_kernel(host, msg, len);

	if (!err)
		err = check_caps(caps, msg, len);
	if (!err)
		err = check_pid_ns(host, msg, len);
	return err == -ENOENT ? check_pid_by_bpf(msg, len) : err;
}

/* 0 or -errno. */
static int read_paranoid(const struct privilege_host *host, int *out)
{
	char text[32];
	ssize_t n = procfs_read(AT_FDCWD, host->paranoid, text, sizeof(text));

	if (n < 0)
		return (int)n;
	return sscanf(text, "%d", out) == 1 ? 0 : -EIO;
}

/*
 * For the user's own processes only an attempt can show it: distributions have
 * added levels above 2, at which the kernel refuses.
 */
int privilege_check_perf(const struct privilege_host *host, cap_t caps,
			 bool whole, char *msg, size_t len)
{
	int paranoid = 0;
	int err = whole ? check_pid_ns(host, msg, len) : 0;

	if (err)
		return err;
	err = read_paranoid(host, &paranoid);
	if (err) {
		snprintf(msg, len, "%s: %s: this kernel has no perf events",
			 host->paranoid, strerror(-err));
		return -ENOSYS;
	}
	if (!whole || paranoid <= 0 || privilege_has(caps, CAP_PERFMON) ||
	    privilege_has(caps, CAP_SYS_ADMIN))
		return 0;
	snprintf(msg, len,
		 "perf events of the whole host: not permitted: missing "
		 "CAP_PERFMON, and kernel.perf_event_paranoid is %d, not 0 "
		 "(run as root, or record a command or processes of your own)",
		 paranoid);
	return -EPERM;
}

void privilege_explain_perf(const char *what, char *msg, size_t len)
{
	int paranoid = 0;

	read_paranoid(&privilege_this_host, &paranoid);
	snprintf(
		msg, len,
		"%s: not permitted: kernel.perf_event_paranoid is %d; without "
		"CAP_PERFMON only processes of one's own, which did not change "
		"their user, may be watched",
		what, paranoid);
}

void privilege_explain(const char *what, char *msg, size_t len)
{
	struct strbuf sb = STRBUF_INIT;
	cap_t caps = cap_get_proc();

	if (!caps || !privilege_missing(caps, &sb))
		strbuf_puts(&sb, "the kernel forbids it, though no capability "
				 "is missing (lockdown, a security module or a "
				 "seccomp filter)");
	snprintf(msg, len, "%s: not permitted: %s", what,
		 sb.failed ? "out of memory" : sb.data);
	strbuf_fini(&sb);
	cap_free(caps);
}
