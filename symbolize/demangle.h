/* SPDX-License-Identifier: Apache-2.0 */
/*
 * demangle: C++ and Rust names for reading, by libiberty, with a bound on what
 * a name may cost. By its substitutions a hostile symbol of a kilobyte can stand
 * for more text than there is memory, and for more work than there is time:
 * libiberty searches an argument pack of a C++ type of n levels in 2^n steps, and
 * counts up to 2^64 lifetimes of a Rust type, without a character of output.
 */
#ifndef SYMBOLIZE_DEMANGLE_H
#define SYMBOLIZE_DEMANGLE_H

#include <stdbool.h>

#include "base/strbuf.h"

/* Longest text made; what would be longer stays as the linker has it. */
#define SYMBOLIZER_DEMANGLED_MAX 8192
/* CPU time of one name, in ticks of SYMBOLIZER_DEMANGLE_TICK_MS. */
#define SYMBOLIZER_DEMANGLE_TICKS 2
#define SYMBOLIZER_DEMANGLE_TICK_MS 10

/*
 * Starts the clock by which names are bounded: SIGPROF every tick of CPU time of
 * this process, for good. It makes system calls, symbolizer_demangle() none. For
 * a process of one thread. 0 or -errno.
 *
 * Where it was not called, names have no bound of time: only those of the kernel
 * and the vDSO are demangled there, in any thread, and no C++ names.
 */
int symbolizer_demangle_start(void);

/* What names cost; added up. */
struct symbolizer_demangle_cost {
	unsigned int ticks; /* of CPU time that passed in names */
	unsigned int exceeded; /* names that were given up for their time */
};

/*
 * Appends to 'out'. False, and 'out' as it was: not mangled, or too much.
 * 'cost' may be NULL.
 */
bool symbolizer_demangle(const char *name, struct strbuf *out,
			 struct symbolizer_demangle_cost *cost);

#endif /* SYMBOLIZE_DEMANGLE_H */
