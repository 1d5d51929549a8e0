/* SPDX-License-Identifier: Apache-2.0 */
/*
 * privilege: what profd needs of the kernel and of whoever runs it, asked
 * before anything starts, and named when it is missing.
 */
#ifndef PROFILER_PRIVILEGE_H
#define PROFILER_PRIVILEGE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/capability.h>

/* Where to look; a test has its own. */
struct privilege_host {
	const char *release; /* NULL: uname(2)'s */
	const char *btf;
	const char *pid_ns; /* a link that names the pid namespace */
	const char *paranoid; /* kernel.perf_event_paranoid */
	const char *proc; /* what stands in for /proc */
};

extern const struct privilege_host privilege_this_host;

/*
 * 0 when this kernel, and our place on it, will do. -ENOSYS: too old or
 * without BTF; -EPERM: without the capabilities that nothing goes without;
 * -ENOTSUP: not in the root pid namespace; -ENOENT: which one is not to be
 * found out. One line is in 'msg' then.
 */
int privilege_check(const struct privilege_host *host, cap_t caps, char *msg,
		    size_t len);

/*
 * The same for perf events without BPF, of the whole host or of one's own
 * processes. -EPERM names the capability and the sysctl.
 */
int privilege_check_perf(const struct privilege_host *host, cap_t caps,
			 bool whole, char *msg, size_t len);
/* After the kernel refused it all the same. */
void privilege_explain_perf(const char *what, char *msg, size_t len);

/*
 * After the kernel refused 'what' with EPERM or EACCES: which capabilities
 * this process lacks now.
 */
void privilege_explain(const char *what, char *msg, size_t len);

/*
 * The i-th thing that is missing and profd can do without, and what it then
 * cannot do ("CAP_SYSLOG: ..."): capabilities that 'caps' lacks, and what the
 * host does not show. NULL beyond the last. Static.
 */
const char *privilege_degraded(const struct privilege_host *host, cap_t caps,
			       size_t i);

#endif /* PROFILER_PRIVILEGE_H */
