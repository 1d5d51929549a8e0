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
 * How many of 'wanted' there is room for beside what is open now and what
 * clients and the opening of files itself will need; 1 at least.
 */
unsigned int openfiles_budget(unsigned int wanted);

#endif /* PROFILER_OPENFILES_H */
