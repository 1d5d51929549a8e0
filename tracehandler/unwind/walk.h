/* SPDX-License-Identifier: Apache-2.0 */
/*
 * walk: walks a stack by unwind rows. Like unwind.h pure: no allocation, no system
 * call, no state between two calls but the cache of rules.
 */
#ifndef TRACEHANDLER_WALK_H
#define TRACEHANDLER_WALK_H

#include "tracehandler/unwind/rules.h"
#include "tracehandler/unwind/unwind.h"

/* What is at an address. */
enum trace_code_state {
	TRACE_CODE_NONE, /* nothing is mapped there */
	TRACE_CODE_LOST, /* mapping records were dropped: not known */
	TRACE_CODE_HERE, /* code; 'rows' are its rows, if it has any */
	TRACE_CODE_LATE, /* code whose rows are still being read */
};

struct trace_code {
	uint64_t start, end; /* of HERE and LATE: the addresses it applies to */
	uint64_t bias; /* added to an address it gives that in the file */
	const struct symbolizer_rows *rows; /* or NULL */
	enum trace_code_state state;
	bool by_code; /* the rows are made from its instructions */
	bool bare; /* its functions have nothing on the stack but their return address */
};

typedef void (*trace_code_fn)(void *arg, uint64_t pc, struct trace_code *out);

/*
 * Fills 'pcs' with up to 'max' addresses, the interrupted one first, and returns
 * their number. Return addresses are as on the stack, addresses that a signal
 * interrupted one more, so that each but the first less one is in its function.
 * Without rows it follows the frame pointer, if that leads up and to code. Sets
 * '*why' to how the walk ended; the last address is that of the frame whose caller
 * was not found. TRACE_END_LATE: rows it needs are still being read. 'rules' may be
 * NULL.
 */
size_t trace_walk(const struct trace_stack *s, struct trace_rules *rules,
		  trace_code_fn code, void *arg, uint64_t *pcs, size_t max,
		  enum trace_end *why);

#endif /* TRACEHANDLER_WALK_H */
