/* SPDX-License-Identifier: Apache-2.0 */
/*
 * openfiles: room for the executables that are held open, under the limit of
 * file descriptors that a process has (RLIMIT_NOFILE).
 */
#ifndef PROFILER_OPENFILES_H
#define PROFILER_OPENFILES_H

/*
 * Raises our own soft limit, as far as the hard one goes, so that 'wanted'
 * executables and all else find room. What runs already has its own limit.
 */
void openfiles_raise(unsigned int wanted);
/*
 * Whether BPF and what else runs all the time fit under the limit, on this many
 * CPUs: 0, or how many descriptors that takes at least. With fewer it would
 * fail at some step or other, and not say why: libbpf takes what it cannot
 * probe for what the kernel does not have.
 */
unsigned int openfiles_least(void);
/*
 * How many of 'wanted' there is room for beside what is open now and what
 * clients and the opening of files itself will need; 1 at least.
 */
unsigned int openfiles_budget(unsigned int wanted);

#endif /* PROFILER_OPENFILES_H */
