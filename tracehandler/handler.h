/* SPDX-License-Identifier: Apache-2.0 */
/*
 * handler: the stages of a sample. Each calls only the next. Tables and names come
 * by completions, after which the samples and traces that wait (wait.h) are checked:
 *
 *   handler -> unwind/stack -> frames -> names
 *
 * `make lint` (rule-includes) proves that direction. The stores beneath them (wait,
 * cache, record, unwind/tables, unwind/rules) call none of them.
 */
#ifndef TRACEHANDLER_HANDLER_H
#define TRACEHANDLER_HANDLER_H

#include "tracehandler/unwind/stack.h"

struct trace_handler {
	struct trace_opts opts;
	struct trace_stats stats;
	struct trace_waits waits;
	struct vault *vault; /* of records that wait */
	struct trace_stacks stacks;
	struct trace_frames frames;
};

#endif /* TRACEHANDLER_HANDLER_H */
