/* SPDX-License-Identifier: Apache-2.0 */
/* arch_x86_64: System V ABI, AMD64 Architecture Processor Supplement. */
#ifndef SYMBOLIZE_ARCH_X86_64_H
#define SYMBOLIZE_ARCH_X86_64_H

#define SYMBOLIZER_MACHINE "x86-64"

/* Registers by DWARF number, 3.6.2: rax..r15 and the return address. */
#define SYMBOLIZER_REGS 17
#define SYMBOLIZER_REG_FP 6 /* rbp */
#define SYMBOLIZER_REG_SP 7 /* rsp */
#define SYMBOLIZER_REG_RA 16

#define ARCH_FP_NAME "rbp"
#define ARCH_MACHINE EM_X86_64
#define ARCH_R_RELATIVE R_X86_64_RELATIVE
#define ARCH_R_IRELATIVE R_X86_64_IRELATIVE
#define ARCH_R_TPOFF R_X86_64_TPOFF64
#define ARCH_R_TLSDESC R_X86_64_TLSDESC
#define ARCH_R_DTPMOD R_X86_64_DTPMOD64
#define ARCH_SHT_UNWIND SHT_X86_64_UNWIND

/* CFA less stack pointer at a function's first instruction. */
#define ARCH_ENTRY_CFA 8

#define ARCH_FUNCTION_ALIGN 16 /* of most functions */
#define ARCH_PLT_STUB 16 /* bytes of the longest stub */
#define ARCH_PLT_ALIGN 8
/*
 * A lazy stub pushes after its ninth byte or its eleventh, and no instruction
 * begins in between: this stands for both.
 */
#define ARCH_PLT_PUSH 9

/* Of pieces for arch_add_starts(): 8 bytes before a call of 5, less one. */
#define ARCH_STARTS_OVERLAP 12

/* Go: bytes of a unit in tables of pcs; functions in which the kernel starts. */
#define ARCH_GO_UNIT 1
#define ARCH_GO_ROOTS                                       \
	"_rt0_amd64", "_rt0_amd64_linux", "_rt0_amd64_lib", \
		"_rt0_amd64_linux_lib"

#endif /* SYMBOLIZE_ARCH_X86_64_H */
