// SPDX-License-Identifier: Apache-2.0
/* Any bytes as a sample record, which is parsed and its stack walked. */
#include <stdlib.h>

#include "tracehandler/record.h"
#include "tracehandler/unwind/unwind.h"

#define MAX_FRAMES 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	volatile uint64_t sum = 0;
	uint64_t pcs[MAX_FRAMES];
	struct trace_record rec;
	struct trace_stack stack;
	enum trace_end why;
	size_t i, n;

	if (trace_record_parse(data, size, &rec))
		return 0;
	for (i = 0; i < rec.nkstack; i++)
		sum += trace_record_kpc(&rec, i);
	for (i = 0; i < rec.stack.size; i++)
		sum += rec.stack.bytes[i];
	for (i = 0; i < rec.left.size; i++)
		sum += rec.left.bytes[i];
	stack = (struct trace_stack){
		.regs = &rec.regs,
		.here = rec.stack,
		.left = rec.left,
		.compat = rec.head.flags & ABI_SAMPLE_COMPAT,
	};
	n = trace_unwind_fp(&stack, pcs, MAX_FRAMES, &why);
	if (!n || n > MAX_FRAMES || why >= TRACE_END_MAX)
		abort();
	return 0;
}
