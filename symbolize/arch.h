/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arch: what symbolize has to know of the machine it runs on. Another machine
 * is another pair of files like arch_x86_64.[ch]. Files of other machines have
 * symbols, but no names of PLT stubs and no unwind rows.
 */
#ifndef SYMBOLIZE_ARCH_H
#define SYMBOLIZE_ARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__x86_64__)
#include "symbolize/arch_x86_64.h"
#else
#error "no unwind rows for this machine"
#endif

struct symbolizer_elf;
struct symbolizer_rows_build;
struct symbolizer_rows_gap;
struct symbolizer_go;
struct symbolizer_rule;
struct symbolizer_src;

/*
 * Whether local untyped symbols in files of machine 'm' only mark code and data
 * inside functions, as on ARM and RISC-V.
 */
#define ARCH_MARKS_CODE(m) ((m) != EM_X86_64 && (m) != EM_386)

/* The program counter in a signal handler's third argument. */
uintptr_t arch_signal_pc(const void *context);

/* Sets the registers that have a rule where CFI gives none. */
void arch_rule_default(struct symbolizer_rule *rule);
/* The address that a signal handler returns to, on the kernel's rt_sigframe. */
void arch_rule_sigreturn(struct symbolizer_rule *rule);
/*
 * A function's code where its frame has 'size' bytes; 'fp_saved': first of them
 * the frame pointer. The other registers of *rule stay.
 */
void arch_rule_frame(struct symbolizer_rule *rule, int32_t size, bool fp_saved);
/*
 * Sets *out by the code of runtime.systemstack at [start, end); false: it is not
 * understood, and *out stays.
 */
bool arch_go_layout(struct symbolizer_elf *e, struct symbolizer_src *code,
		    uint64_t start, uint64_t end, struct symbolizer_go *out);
/*
 * The address from which on the frame pointer is saved, in a Go function whose
 * frame has 'size' bytes at 'loc'; UINT64_MAX: it is not saved.
 */
uint64_t arch_go_fp_saved(struct symbolizer_elf *e, struct symbolizer_src *code,
			  uint64_t loc, int32_t size);

/* What a relocation changes in debug information of a relocatable file. */
struct arch_relocation {
	uint8_t size; /* bytes, 4 or 8; 0: nothing */
	bool relative; /* the value is less the address of these bytes */
	bool is_signed; /* of 4 bytes: how the value has to fit */
};

/* By type; false: it is not known. */
bool arch_relocation(uint32_t type, struct arch_relocation *out);

/* Whether an expression is the CFA of a lazy PLT stub; *n as in SYMBOLIZER_PLT. */
bool arch_plt_expr(const uint8_t *expr, size_t len, int32_t *n);
/*
 * The length of the stub that these ARCH_PLT_STUB bytes at 'at' begin with, and
 * the slot it jumps through; 0: no stub.
 */
size_t arch_plt_stub(const uint8_t *code, uint64_t at, uint64_t *slot);

/* Whether 8 bytes of code begin a process, not a library's first function. */
bool arch_is_start(const uint8_t *code);
/*
 * The address of main() that the code of an entry point at 'at' passes on, if it is
 * that of glibc: behind it __libc_start_main() is called, which does not return.
 */
bool arch_start_main(const uint8_t *code, size_t len, uint64_t at,
		     uint64_t *to);
/* The target of the call or jump of 5 bytes at 'at'; false: it is neither. */
bool arch_branch(const uint8_t *code, uint64_t at, uint64_t *to);

/* Functions that never return, where main() and threads end. */
struct arch_exits {
	uint64_t exit, thread_exit; /* addresses; 0: not known */
	bool any; /* any call counts as one of exit */
};

/*
 * Adds a root at each indirect call after which one of 'exits' is called with
 * its result, and the rows of code that signal handlers return to. 'code' begins
 * at 'at'; the caller's next piece overlaps this one by ARCH_STARTS_OVERLAP.
 * Like the next two: 0, -ENOMEM or -E2BIG.
 */
int arch_add_starts(struct symbolizer_rows_build *b, uint64_t at,
		    const uint8_t *code, size_t len,
		    const struct arch_exits *exits);
/* Adds the rows of _init() or _fini() at 'at'. */
int arch_add_init(struct symbolizer_rows_build *b, uint64_t at,
		  const uint8_t *code, size_t len);
/* Adds rows in a gap, whose first bytes are 'code', if it is known code. */
int arch_add_gap(struct symbolizer_rows_build *b,
		 const struct symbolizer_rows_gap *gap, const uint8_t *code,
		 size_t len);

#endif /* SYMBOLIZE_ARCH_H */
