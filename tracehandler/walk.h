/* SPDX-License-Identifier: Apache-2.0 */
/*
 * walk: a stack by the unwind rows of what is mapped. Like unwind.h pure: no
 * allocation, no system call, nothing kept between two calls.
 */
#ifndef TRACEHANDLER_WALK_H
#define TRACEHANDLER_WALK_H

#include "symbolize/symbolize.h"
#include "tracehandler/unwind.h"

/*
 * The rows of what is mapped at 'pc' and the address the file itself has for
 * it; NULL: none.
 */
typedef const struct symbolizer_rows *(*trace_rows_fn)(void *arg, uint64_t pc,
						       uint64_t *vaddr);

/*
 * Fills up to 'max' addresses, the interrupted one first: return addresses come
 * as they lie on the stack, but those that a signal interrupted one further, so
 * that each but the first less one is in its function. Where no row says
 * anything, by the frame pointer, if that leads to a place farther up. Says in
 * '*why' how it ended. Returns how many.
 *
 * The copy has to begin 128 bytes below the stack pointer: a function may keep
 * registers in that red zone (System V ABI, 3.2.2), and rows of an epilogue
 * speak of what was just popped as if it lay there still.
 */
size_t trace_walk(const struct trace_stack *s, trace_rows_fn rows, void *arg,
		  uint64_t *pcs, size_t max, enum trace_end *why);

#endif /* TRACEHANDLER_WALK_H */
