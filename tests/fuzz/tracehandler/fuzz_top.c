// SPDX-License-Identifier: Apache-2.0
/*
 * Fuzz target: any code, registers and stack of an interrupted function without rows. The
 * input is a byte of flags, the length of the code (one byte), the code, sp and fp as
 * offsets in the stack (one byte each), and the stack.
 */
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "tracehandler/unwind/top.h"

#define STACK 0x7ffd0000ULL

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_code(void *arg, uint64_t addr)
{
	return addr % 3 == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct abi_regs regs = { .ip = 3 };
	struct trace_stack s = { .regs = &regs, .is_code = is_code };
	enum trace_top_known known;
	struct trace_top top;
	size_t len;

	if (size < 4)
		return 0;
	s.compat = data[0] & 1;
	len = MIN(MIN((size_t)data[1], size - 4), (size_t)ABI_CODE_MAX);
	s.code = data + 4;
	s.code_len = len;
	regs.gpr[ABI_REG_SP] = STACK + data[2];
	regs.gpr[ABI_REG_BP] = STACK + data[3];
	s.here.bytes = data + 4 + len;
	s.here.start = STACK;
	s.here.size = (uint32_t)(size - 4 - len);
	known = trace_top(&s, &top);
	if (known == TRACE_TOP_FOUND &&
	    (top.sp <= regs.gpr[ABI_REG_SP] || !top.ip))
		abort();
	if (known == TRACE_TOP_FRAME &&
	    regs.gpr[ABI_REG_BP] < regs.gpr[ABI_REG_SP])
		abort();
	return 0;
}
