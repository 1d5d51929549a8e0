/* SPDX-License-Identifier: Apache-2.0 */
/* arch_x86_64: System V ABI, AMD64 Architecture Processor Supplement. */
#ifndef TRACEHANDLER_ARCH_X86_64_H
#define TRACEHANDLER_ARCH_X86_64_H

#include <stdbool.h>
#include <string.h>

#include "bpf/abi.h"
#include "symbolize/symbolize.h"

#define ARCH_WORD 8

/* Registers by DWARF number, 3.6.2; the return address has one, too. */
#define ARCH_REG_FP 6 /* rbp */
#define ARCH_REG_SP 7 /* rsp */
#define ARCH_REG_RA 16
/* In Go's calls of the vDSO the stack pointer from before, see nanotime1. */
#define ARCH_REG_GO_SP 12

/* Callee-saved registers, 3.2.1: rbx rbp r12..r15. */
#define ARCH_SAVED 6
static const uint8_t arch_saved[ARCH_SAVED] = { 3, 6, 12, 13, 14, 15 };

/* The caller's registers, of a frame with a frame pointer, 3.2.2. */
#define ARCH_FP_RULE                                                         \
	{                                                                    \
		.cfa = { SYMBOLIZER_REG, ARCH_REG_FP, 0, 16 },               \
		.regs = { [ARCH_REG_FP] = { SYMBOLIZER_AT_CFA, 0, 0, -16 },  \
			  [ARCH_REG_SP] = { SYMBOLIZER_CFA, 0, 0, 0 },       \
			  [ARCH_REG_RA] = { SYMBOLIZER_AT_CFA, 0, 0, -8 } }, \
	}

/*
 * The vsyscall page (the kernel's uapi/asm/vsyscall.h): where the kernel still has it, a
 * function is a fault that the kernel emulates; there is nothing to read.
 */
#define ARCH_VSYSCALL 0xffffffffff600000ULL
#define ARCH_VSYSCALL_SIZE 4096
#define ARCH_VSYSCALL_STEP 1024 /* from one function to the next */
static const char *const arch_vsyscalls[] = { "vgettimeofday", "vtime",
					      "vgetcpu" };

static inline bool arch_is_vsyscall(uint64_t pc)
{
	return pc - ARCH_VSYSCALL < ARCH_VSYSCALL_SIZE;
}

static inline void arch_regs(const struct abi_regs *r,
			     uint64_t out[SYMBOLIZER_REGS])
{
	memcpy(out, r->gpr, sizeof(r->gpr));
	out[ARCH_REG_RA] = r->ip;
}

#endif /* TRACEHANDLER_ARCH_X86_64_H */
