/* SPDX-License-Identifier: Apache-2.0 */
/* expr: DWARF expressions of unwind rules, over a frame. Pure, and bounded. */
#ifndef TRACEHANDLER_EXPR_H
#define TRACEHANDLER_EXPR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbolize/symbolize.h"

/* A frame: its registers, as far as they are known. */
struct trace_frame_regs {
	uint64_t v[SYMBOLIZER_REGS]; /* the last one is the address */
	uint32_t known; /* a bit each */
};

/* A word of the frame's memory; false: it is not at hand. */
typedef bool (*trace_read_fn)(void *arg, uint64_t at, uint64_t *out);

/*
 * The value of an expression that begins with 'cfa' on its stack, if that is
 * not NULL. False: it asks for what is not known, or makes no sense.
 */
bool trace_expr(const uint8_t *code, size_t len,
		const struct trace_frame_regs *regs, const uint64_t *cfa,
		trace_read_fn read, void *arg, uint64_t *out);

#endif /* TRACEHANDLER_EXPR_H */
