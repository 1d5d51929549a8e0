/* SPDX-License-Identifier: Apache-2.0 */
/*
 * go: what unwind rows have of programs of Go, whose goroutines leave their stack for that
 * of the thread. Part of symbolize/symbolize.h.
 */
#ifndef SYMBOLIZE_ROWS_GO_H
#define SYMBOLIZE_ROWS_GO_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/abi.h"

/*
 * How a function of Go's runtime left the stack of its caller for that of the thread's g0,
 * and what the goroutine's g has of it. X(NAME, word in text tables)
 */
#define SYMBOLIZER_SWITCHES(X)                                             \
	X(OTHER, "elsewhere") /* not known */                              \
	X(CALL,                                                            \
	  "elsewhere:call") /* as if it was interrupted in another call */ \
	X(C, "elsewhere:c") /* likewise; or it was on g0's already */      \
	X(PARK,                                                            \
	  "elsewhere:park") /* the caller; or it does not run any more */  \
	X(GROW, "elsewhere:grow") /* likewise */                           \
	X(VDSO, "elsewhere:vdso") /* nothing: its frame pointer leads there */

enum symbolizer_switch {
#define X(name, word) SYMBOLIZER_SWITCH_##name,
	SYMBOLIZER_SWITCHES(X)
#undef X
	SYMBOLIZER_SWITCH_MAX,
};

/* Of a program of Go. All zero: not known. */
struct symbolizer_go {
	int32_t tls; /* where a thread has its g: bytes from the thread pointer */
	int32_t curg; /* offset in runtime.m; it depends on the version of Go */
};

/* Whether the sampling program knows it, bpf/sampler/sampler_go.bpf.h. */
static inline bool symbolizer_go_is_known(const struct symbolizer_go *go)
{
	return go->tls && go->tls % 8 == 0 && go->tls / 8 >= INT16_MIN &&
	       go->tls / 8 <= INT16_MAX &&
	       (go->curg == ABI_GO_CURG || go->curg == ABI_GO_CURG_OLD);
}

#endif /* SYMBOLIZE_ROWS_GO_H */
