/* SPDX-License-Identifier: Apache-2.0 */
/*
 * demangle: C++ and Rust names by libiberty, with a limit on the cost of a name.
 * By substitutions a hostile symbol of a kilobyte can stand for more text than
 * fits into memory, and take for ever: libiberty searches an argument pack of a
 * C++ type of n levels in 2^n steps, and counts up to 2^64 lifetimes of a Rust
 * type without output.
 */
#ifndef SYMBOLIZE_DEMANGLE_H
#define SYMBOLIZE_DEMANGLE_H

#include <stdbool.h>

#include "base/strbuf.h"

/* Names with longer text stay mangled. */
#define SYMBOLIZER_DEMANGLED_MAX 8192
/* CPU time of one name, in ticks of SYMBOLIZER_DEMANGLE_TICK_MS. */
#define SYMBOLIZER_DEMANGLE_TICKS 2
#define SYMBOLIZER_DEMANGLE_TICK_MS 10

/*
 * Starts the clock that limits names: SIGPROF every tick of this process's CPU
 * time from now on, for a process of one thread. symbolizer_demangle() makes no
 * system calls. 0 or -errno.
 *
 * Without the clock names have no limit of time, and C++ names are not demangled:
 * then only names of the kernel and the vDSO are, in any thread.
 */
int symbolizer_demangle_start(void);

/* The cost of names, accumulated. */
struct symbolizer_demangle_cost {
	unsigned int ticks; /* of CPU time */
	unsigned int exceeded; /* names that took too long */
};

/*
 * Appends to 'out'. False, without a change: it is not mangled, or costs too much.
 * 'cost' may be NULL.
 */
bool symbolizer_demangle(const char *name, struct strbuf *out,
			 struct symbolizer_demangle_cost *cost);

#endif /* SYMBOLIZE_DEMANGLE_H */
