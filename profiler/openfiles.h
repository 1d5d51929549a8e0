/* SPDX-License-Identifier: Apache-2.0 */
/* openfiles: a budget for executables held open, under RLIMIT_NOFILE. */
#ifndef PROFILER_OPENFILES_H
#define PROFILER_OPENFILES_H

/*
 * Raises the soft limit, up to the hard one, to what 'wanted' executables and
 * all else need. Worker processes that run already keep theirs.
 */
void openfiles_raise(unsigned int wanted);
/*
 * 0: the limit is sufficient for BPF and all else that is always open, on this
 * number of CPUs; or the least sufficient limit. With less, some step would
 * fail without naming the reason: libbpf takes a failed probe for a missing
 * feature of the kernel.
 */
unsigned int openfiles_least(void);
/*
 * For how many of 'wanted' executables the limit leaves room, beside what is
 * open now and what clients and the opening of files need; 1 at least.
 */
unsigned int openfiles_budget(unsigned int wanted);

#endif /* PROFILER_OPENFILES_H */
