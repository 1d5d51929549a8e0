/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flow: unwind rows of code without CFI, such as musl's, from its instructions. From
 * each known start of a function all paths are followed, with what a frame is at each
 * instruction: how far the CFA is from the stack pointer, and where the caller's
 * registers are. What cannot be told has no row: a gap between functions is not guessed
 * to be one, and an instruction that two paths reach with different frames has none.
 *
 * Starts are symbols, the entry and targets of calls; an address that is only stored or
 * loaded is one if no path leads to it. Tables of switch statements are read. What
 * follows a call of a function that never returns is not reached by it.
 */
#ifndef SYMBOLIZE_ROWS_FLOW_H
#define SYMBOLIZE_ROWS_FLOW_H

#include "base/base.h"
#include "symbolize/arch.h"
#include "symbolize/rows/rows.h"

#define FLOW_TEXT_MAX (2U << 20) /* bytes of code; more has no rows */
#define FLOW_NODES_MAX (512U << 10) /* instructions */
#define FLOW_STEPS_MAX (4U << 20) /* some seconds */
#define FLOW_SPAN (64U << 10) /* bytes of a function about an indirect jump */
#define FLOW_TABLE_MAX 1024 /* entries */

#define FLOW_NOWHERE UINT32_MAX
#define FLOW_NO_REG 0xff

enum flow_op {
	FLOW_PLAIN, /* sets the registers in 'writes' */
	FLOW_NOTHING,
	FLOW_PUSH, /* a, or FLOW_NO_REG: something else */
	FLOW_POP,
	FLOW_ADD_SP, /* n */
	FLOW_SP_FROM, /* sp = a + n */
	FLOW_FROM_SP, /* a = sp + n */
	FLOW_STORE, /* a at b + n */
	FLOW_LOAD, /* a from b + n */
	FLOW_LEAVE, /* sp = fp, then a pop of fp */
	FLOW_LOSE_SP, /* sp is changed otherwise */
	FLOW_ADDRESS, /* a = to */
	FLOW_CONSTANT, /* likewise, in a file of fixed addresses */
	FLOW_COPY, /* a = b */
	FLOW_TABLE, /* a = an entry, of 4 bytes, of the table at b */
	FLOW_SUM, /* a = a + b */
	FLOW_COMPARE, /* something with n */
	/* What follows is not executed next, or not only. */
	FLOW_BRANCH, /* to */
	FLOW_JUMP,
	FLOW_JUMP_REG, /* a, or FLOW_NO_REG: something else */
	FLOW_JUMP_TABLE, /* an entry, of 8 bytes, of the table at 'to' */
	FLOW_CALL, /* to, or FLOW_NOWHERE: by a pointer */
	FLOW_RETURN, /* or a jump to a function elsewhere */
	FLOW_STOP, /* never executed, or ends the process */
};

/* Registers have their DWARF numbers; addresses are less a base. */
struct flow_insn {
	uint32_t at, to;
	int32_t n;
	uint16_t writes; /* a set */
	uint8_t len, op, a, b;
};

/* Decodes the instruction at address 'at'; 'to' is less 'base'. */
void arch_flow_decode(const uint8_t *code, size_t len, uint64_t at,
		      uint64_t base, struct flow_insn *out);
/* What a call may change. */
extern const uint16_t arch_flow_scratch;

/*
 * Adds rows where earlier functions of 'b' have none; 'e' has its tables
 * (symbolizer_elf_tables()). 0 or -ENOMEM; code that is too large or takes too long
 * adds none.
 */
int symbolizer_flow(struct symbolizer_elf *e, struct symbolizer_rows_build *b);

/* --- what its files share ---------------------------------------------------- */

#define FLOW_REGS 16
#define FLOW_UNKNOWN INT32_MIN
#define FLOW_LOST (-1)

/* What a register has, in its upper bits; the rest is an address, less the base. */
#define FLOW_KIND 0xc0000000U
#define FLOW_IS_ADDRESS 0x40000000U /* the address */
#define FLOW_IS_ENTRY 0x80000000U /* an entry of the table there */
#define FLOW_IS_TARGET 0xc0000000U /* the sum of the two */
#define FLOW_VALUE_MAX 0x40000000U

/* The frame before an instruction. */
struct flow_state {
	int32_t sp; /* CFA less sp, or FLOW_UNKNOWN */
	int32_t fp; /* CFA less the frame pointer, if it is one */
	/*
	 * The caller's registers: 0 unchanged, above 0 so many bytes below the CFA, or
	 * FLOW_LOST.
	 */
	int32_t saved[FLOW_REGS];
	uint32_t reg[FLOW_REGS]; /* 0: anything */
};

struct flow_node {
	struct flow_insn in;
	struct flow_state state;
	bool reached, queued;
	bool returns; /* a return may follow */
	bool wrong; /* a return with another frame than a function begins with follows */
	bool cut; /* a call behind which another function begins */
};

enum flow_mark_kind {
	FLOW_START = 1, /* of a function */
	FLOW_WEAK = 2, /* ... if no path leads there */
	FLOW_DATA = 4, /* ... but not if it is a table */
};

/* Addresses of 32 bits are less 'base', that of the file's first segment. */
struct flow {
	struct symbolizer_elf *e;
	uint64_t base;
	bool fixed; /* addresses are those of the process */
	uint32_t start, size; /* of the code */
	uint8_t *code, *marks;
	uint32_t *index; /* by byte of the code: node + 1 */
	struct flow_node *nodes;
	size_t n_nodes, cap_nodes;
	uint32_t *queue; /* addresses */
	size_t n_queue, cap_queue;
	uint32_t targets[FLOW_TABLE_MAX]; /* of the last table */
	size_t n_targets;
	uint32_t *tables; /* addresses, in no order */
	size_t n_tables, cap_tables;
	uint32_t *final; /* functions elsewhere that never return, in no order */
	size_t n_final, cap_final;
	uint64_t steps;
	int err;
};

static inline bool flow_is_start(const struct flow *f, uint32_t at)
{
	return f->marks[at - f->start] & FLOW_START;
}

/* NULL: no instruction of a path is there. */
struct flow_node *flow_at(const struct flow *f, uint32_t at);
/*
 * Reads the code of 'e', which has its tables, and where functions start. 0, -ENOMEM, or
 * -E2BIG: there is too much, or none. flow_fini() follows, whatever it returns.
 */
int flow_init(struct flow *f, struct symbolizer_elf *e);
void flow_fini(struct flow *f);
bool flow_is_final(const struct flow *f, uint32_t at);
/* Sets f->targets to those of an indirect jump; none: they are not known. */
void flow_table(struct flow *f, const struct flow_insn *in,
		const struct flow_state *st);
/* Sets the state of each instruction that is reached. 0, -ENOMEM, -E2BIG. */
int flow_solve(struct flow *f);

#endif /* SYMBOLIZE_ROWS_FLOW_H */
