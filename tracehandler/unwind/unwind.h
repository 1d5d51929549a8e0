/* SPDX-License-Identifier: Apache-2.0 */
/* unwind: the addresses of a copied stack, by frame pointers. Pure. */
#ifndef TRACEHANDLER_UNWIND_H
#define TRACEHANDLER_UNWIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "bpf/abi.h"

/*
 * How a stack ends. X(NAME, counter of trace_stats, text of its mark). In the text,
 * %s is the file of the last frame, %u the copied KiB. ROOT has no mark.
 */
#define TRACE_ENDS(X)                                        \
	X(ROOT, stack_root, NULL)                            \
	X(NO_CFI, stack_no_cfi, "[no unwind info: %s]")      \
	X(GONE, stack_gone, "[file gone: %s]")               \
	X(UNREAD, stack_unread, "[file not read: %s]")       \
	X(NO_FP, stack_no_fp, "[no frame pointer]")          \
	X(TOP, stack_top, "[caller not certain]")            \
	X(BROKEN, stack_broken, "[broken frame: %s]")        \
	X(OTHER, stack_other, "[another stack]")             \
	X(CAP, stack_cap, "[stack cut at %u KiB]")           \
	X(FAULT, stack_fault, "[page not present]")          \
	X(RING, stack_none, "[ring full: stack not copied]") \
	X(NONE, stack_none, "[no user stack]")               \
	X(EXEC, stack_exec, "[exec]")                        \
	X(LATE, stack_late, "[tables late]")                 \
	X(DEPTH, stack_depth, "[depth limit]")

enum trace_end {
#define X(name, counter, text) TRACE_END_##name,
	TRACE_ENDS(X)
#undef X
	TRACE_END_MAX,
};

/* A copy of a part of a stack: the bytes at [start, start + size). */
struct trace_piece {
	const uint8_t *bytes;
	uint64_t start;
	uint32_t size;
	enum abi_stack_end end;
	uint64_t holes; /* as in struct abi_stack */
};

/* Reads 'len' bytes at 'at', at most a page; false: not copied. */
static inline bool trace_piece_read(const struct trace_piece *p, uint64_t at,
				    void *out, size_t len)
{
	uint64_t page;

	if (at < p->start || p->size < len || at - p->start > p->size - len)
		return false;
	if (p->holes) {
		page = at / ABI_STACK_PAGE - p->start / ABI_STACK_PAGE;
		if (page < ABI_STACK_HOLES && p->holes >> page & 1)
			return false;
		page = (at + len - 1) / ABI_STACK_PAGE -
		       p->start / ABI_STACK_PAGE;
		if (page < ABI_STACK_HOLES && p->holes >> page & 1)
			return false;
	}
	memcpy(out, p->bytes + (at - p->start), len);
	return true;
}

struct trace_stack {
	const struct abi_regs *regs;
	struct trace_piece here; /* of the stack that sp is on */
	struct trace_piece
		left; /* of the one left for a signal's, or of go; or none */
	const struct abi_go
		*go; /* the goroutine that left its stack for g0's; or NULL */
	bool compat; /* 32-bit code: words of four bytes */
	const uint8_t *code; /* what is at ip; code_len 0: not known */
	size_t code_len;
	/* Something executable is there, or that is not known. NULL: not known. */
	bool (*is_code)(void *arg, uint64_t addr);
	void *arg; /* its first argument */
	bool *bare; /* out, or NULL: the interrupted function has no rows */
	uint32_t *by_code; /* out, or NULL: frames with rows made from instructions */
};

/* No stack is larger: an address farther from a copy is on another stack. */
#define TRACE_STACK_MAX (1ULL << 30)

/*
 * Follows the frame pointers; from the interrupted function as top.h has it. Fills 'pcs'
 * with up to 'max' addresses, the interrupted one first, the others return addresses as
 * on the stack, and returns their number. Sets '*why' to how the stack ended.
 */
size_t trace_unwind_fp(const struct trace_stack *stack, uint64_t *pcs,
		       size_t max, enum trace_end *why);

#endif /* TRACEHANDLER_UNWIND_H */
