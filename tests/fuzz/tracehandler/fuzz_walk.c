// SPDX-License-Identifier: Apache-2.0
/*
 * Fuzz target: a stack of any bytes, with registers of any value, by the rows of
 * any .eh_frame. The input is the length of .eh_frame (two bytes), .eh_frame, 18
 * registers and the stack.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "symbolize/rows/cfi.h"
#include "tracehandler/unwind/walk.h"

#define TEXT 0x10000
#define TEXT_SIZE 0x40000
#define FRAMES 256

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void find(void *arg, uint64_t pc, struct trace_code *out)
{
	if (pc - TEXT >= TEXT_SIZE) {
		out->state = pc & 1 ? TRACE_CODE_LOST : TRACE_CODE_NONE;
		return;
	}
	out->state = TRACE_CODE_HERE;
	out->start = TEXT;
	out->end = TEXT + TEXT_SIZE;
	out->rows = arg;
}

static struct symbolizer_rows *read_rows(const uint8_t *data, size_t size)
{
	struct symbolizer_rows_build b = {
		.base = TEXT, .exec[0] = { TEXT, TEXT + TEXT_SIZE }, .n_exec = 1
	};
	struct symbolizer_rows_info info = { 0 };
	struct symbolizer_rows *rows = NULL;
	struct symbolizer_src src;
	struct cfi_section s = { .src = &src,
				 .name = "fuzz",
				 .size = size,
				 .vaddr = TEXT + TEXT_SIZE,
				 .eh = true };

	symbolizer_src_mem(&src, data, size);
	if (symbolizer_cfi_read(&s, &b, &info) ||
	    symbolizer_rows_end(&b, &info, &rows))
		rows = NULL;
	symbolizer_rows_build_fini(&b);
	return rows;
}

/* With a cache of rules the stack is the same. */
static void walk_again(const struct trace_stack *s, struct trace_rules *rules,
		       struct symbolizer_rows *rows, const uint64_t *want,
		       size_t n_want, enum trace_end want_why)
{
	uint64_t pcs[FRAMES];
	enum trace_end why;

	if (trace_walk(s, rules, find, rows, pcs, FRAMES, &why) != n_want ||
	    why != want_why || memcmp(pcs, want, n_want * sizeof(*pcs)))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct abi_regs regs = { 0 };
	struct trace_stack s = { .regs = &regs };
	struct symbolizer_rows *rows;
	struct trace_rules rules;
	uint64_t pcs[FRAMES];
	enum trace_end why;
	uint16_t len = 0;
	size_t n;

	if (size < 2 + sizeof(regs))
		return 0;
	memcpy(&len, data, 2);
	data += 2;
	size -= 2;
	len = (uint16_t)MIN(len, size - sizeof(regs));
	rows = read_rows(data, len);
	if (!rows)
		return 0;
	memcpy(&regs, data + len, sizeof(regs));
	s.here.bytes = data + len + sizeof(regs);
	s.here.size = (uint32_t)(size - len - sizeof(regs));
	s.here.start = regs.gpr[ABI_REG_SP] & ~0xffULL;
	s.here.end = regs.flags & 3;
	s.here.holes = regs.flags >> 5 & 7;
	if (regs.flags & 4) { /* the second half is of another stack */
		s.left = s.here;
		s.here.size /= 2;
		s.left.bytes += s.here.size;
		s.left.size -= s.here.size;
		s.left.start = regs.gpr[3];
		s.left.end = regs.flags >> 3 & 3;
	}
	n = trace_walk(&s, NULL, find, rows, pcs, FRAMES, &why);
	if (n == 0 || n > FRAMES || pcs[0] != regs.ip ||
	    (why == TRACE_END_DEPTH && n != FRAMES))
		abort();
	if (trace_rules_init(&rules) == 0) {
		walk_again(&s, &rules, rows, pcs, n, why);
		walk_again(&s, &rules, rows, pcs, n, why);
	}
	trace_rules_fini(&rules);
	symbolizer_rows_free(rows);
	return 0;
}
