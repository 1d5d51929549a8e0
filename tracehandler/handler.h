/* SPDX-License-Identifier: Apache-2.0 */
/*
 * handler: the stages of a sample. Each calls only the next. After a completion of
 * tables or names the pending samples and traces (wait.h) are checked:
 *
 *   handler -> unwind/stack -> frames -> names
 *
 * `make lint` (rule-includes) proves that direction. The other files (wait, cache,
 * repeats, record, unwind/tables, unwind/rules) include no stage.
 */
#ifndef TRACEHANDLER_HANDLER_H
#define TRACEHANDLER_HANDLER_H

#include "tracehandler/unwind/stack.h"

struct trace_handler {
	struct trace_opts opts;
	struct trace_stats stats;
	struct trace_waits waits;
	struct trace_waits named; /* for names, with opts.all_names */
	struct vault *vault; /* of pending records */
	struct trace_stacks stacks;
	struct trace_frames frames;
};

#endif /* TRACEHANDLER_HANDLER_H */
