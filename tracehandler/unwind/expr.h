/* SPDX-License-Identifier: Apache-2.0 */
/* expr: evaluates DWARF expressions of unwind rules. Pure, and bounded. */
#ifndef TRACEHANDLER_EXPR_H
#define TRACEHANDLER_EXPR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbolize/symbolize.h"

/* The known registers of a frame. */
struct trace_frame_regs {
	uint64_t v[SYMBOLIZER_REGS]; /* the last is the return address */
	uint32_t known; /* a bit each */
};

/* Reads a word of the process's memory; false: it was not copied. */
typedef bool (*trace_read_fn)(void *arg, uint64_t at, uint64_t *out);

/*
 * The value of an expression, which begins with 'cfa' on its stack unless that is
 * NULL. False: it is invalid, or something it needs is not known.
 */
bool trace_expr(const uint8_t *code, size_t len,
		const struct trace_frame_regs *regs, const uint64_t *cfa,
		trace_read_fn read, void *arg, uint64_t *out);

#endif /* TRACEHANDLER_EXPR_H */
