/* SPDX-License-Identifier: Apache-2.0 */
/*
 * privilege: the kernel features and capabilities that profd needs, checked
 * before anything starts, and messages that name what is missing.
 */
#ifndef PROFILER_PRIVILEGE_H
#define PROFILER_PRIVILEGE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/capability.h>

/* The files that are read; tests have their own. */
struct privilege_host {
	const char *release; /* NULL: uname(2)'s */
	const char *btf;
	const char *pid_ns; /* a link that names the pid namespace */
	const char *paranoid; /* kernel.perf_event_paranoid */
	const char *proc; /* "/proc" */
};

extern const struct privilege_host privilege_this_host;

/*
 * 0: BPF can be used. -ENOSYS: the kernel is too old or has no BTF; -EPERM: a
 * required capability is missing; -ENOTSUP: not in the root pid namespace;
 * -ENOENT: unknown pid namespace. On error one line is in 'msg'.
 */
int privilege_check(const struct privilege_host *host, cap_t caps, char *msg,
		    size_t len);

/*
 * The same for perf events without BPF, of the whole host or of the user's own
 * processes. -EPERM names the capability and the sysctl.
 */
int privilege_check_perf(const struct privilege_host *host, cap_t caps,
			 bool whole, char *msg, size_t len);
/* After the kernel refused it nevertheless. */
void privilege_explain_perf(const char *what, char *msg, size_t len);

/*
 * After the kernel refused 'what' with EPERM or EACCES: which capabilities this
 * process lacks.
 */
void privilege_explain(const char *what, char *msg, size_t len);

/*
 * The i-th thing that is missing but not required, and the consequence
 * ("CAP_SYSLOG: ..."): capabilities that 'caps' lacks, and files that /proc
 * lacks. NULL beyond the last. Static.
 */
const char *privilege_degraded(const struct privilege_host *host, cap_t caps,
			       size_t i);

#endif /* PROFILER_PRIVILEGE_H */
