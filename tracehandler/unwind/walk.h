/* SPDX-License-Identifier: Apache-2.0 */
/*
 * walk: a stack by the unwind rows of what is mapped. Like unwind.h pure: no
 * allocation, no system call, nothing kept between two calls but the rules that
 * were looked up.
 */
#ifndef TRACEHANDLER_WALK_H
#define TRACEHANDLER_WALK_H

#include "tracehandler/unwind/rules.h"
#include "tracehandler/unwind/unwind.h"

/* What is known of an address. */
enum trace_code_state {
	TRACE_CODE_NONE, /* nothing is mapped there */
	TRACE_CODE_LOST, /* nobody knows whether something is */
	TRACE_CODE_HERE, /* code; 'rows' are its rows, if it has any */
	TRACE_CODE_LATE, /* code, whose rows are still to come */
};

struct trace_code {
	uint64_t start, end; /* so far it is true; of HERE and LATE */
	uint64_t bias; /* to be added: the address the file has for it */
	const struct symbolizer_rows *rows; /* or NULL */
	enum trace_code_state state;
};

typedef void (*trace_code_fn)(void *arg, uint64_t pc, struct trace_code *out);

/*
 * Fills up to 'max' addresses, the interrupted one first: return addresses come
 * as they lie on the stack, but those that a signal interrupted one further, so
 * that each but the first less one is in its function. Where no row says
 * anything, by the frame pointer, if that leads farther up and to other code.
 * Says in '*why' how it ended; the last address is then the one that led no
 * farther. TRACE_END_LATE: it needs rows that are still to come. 'rules' may be
 * NULL. Returns how many.
 */
size_t trace_walk(const struct trace_stack *s, struct trace_rules *rules,
		  trace_code_fn code, void *arg, uint64_t *pcs, size_t max,
		  enum trace_end *why);

#endif /* TRACEHANDLER_WALK_H */
