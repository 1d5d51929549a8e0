// SPDX-License-Identifier: Apache-2.0
/*
 * stack: the user stack of a sample: walked by what was mapped at its time, and
 * then frame by frame given its meaning. What could not be placed, and why the
 * stack ended, are frames too.
 */
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "tracehandler/handler.h"

/*
 * Keys of marks. Ends are enum trace_end and, above it, what the text needs;
 * addresses that could not be placed are told apart from them, and from each
 * other, by bits that no user address has set alone.
 */
#define STACK_UNMAPPED (1ULL << 62)
#define STACK_LOST (1ULL << 61)
#define STACK_WHY_BITS 8

static const struct {
	const char *text;
	size_t counter; /* offset in struct trace_stats */
} stack_ends[] = {
#define X(name, counter, text) { text, offsetof(struct trace_stats, counter) },
	TRACE_ENDS(X)
#undef X
};

/* Stacks go to and fro between few files. Found, it is u->at. */
static enum pm_find stack_find(struct trace_user *u, uint64_t pc)
{
	struct trace_place *place;
	struct pm_exe_info info;
	struct pm_mapping map;
	enum pm_find found;

	for (size_t i = 0; i < ARRAY_SIZE(u->places); i++) {
		place = &u->places[i];
		if (pc >= place->map.start && pc < place->map.end) {
			u->at = place;
			return PM_FOUND;
		}
	}
	if (u->take->view)
		found = pm_view_find(u->take->view, pc, &map);
	else
		found = pm_image_find(u->th->opts.pm, u->take->image,
				      u->take->rec->head.time, pc, &map);
	if (found != PM_FOUND)
		return found;
	pm_exe_info(map.exe, &info);
	u->at = &u->places[u->next++ % ARRAY_SIZE(u->places)];
	u->at->map = map;
	u->at->kind = info.kind;
	return PM_FOUND;
}

/* Rows of a file that came; what of it the mapping at hand shows. */
static void stack_rows(const struct trace_user *u, uint64_t pc,
		       const struct trace_table *table, struct trace_code *out)
{
	uint64_t offset = pc - u->at->map.start + u->at->map.pgoff;
	const struct symbolizer_segment *seg;
	size_t i, n = 0;

	seg = pm_exe_segments(u->at->map.exe, &n);
	for (i = 0; i < n; i++) {
		if (offset - seg[i].offset >= seg[i].size)
			continue;
		out->rows = table->rows;
		out->bias = seg[i].vaddr - seg[i].offset + u->at->map.pgoff -
			    u->at->map.start;
		out->start =
			pc - MIN(offset - seg[i].offset, pc - u->at->map.start);
		out->end = pc + MIN(seg[i].offset + seg[i].size - offset,
				    u->at->map.end - pc);
		return;
	}
}

static void stack_code(void *arg, uint64_t pc, struct trace_code *out)
{
	static const enum trace_code_state states[] = {
		[PM_FOUND] = TRACE_CODE_HERE,
		[PM_NOT_MAPPED] = TRACE_CODE_NONE,
		[PM_LOST] = TRACE_CODE_LOST,
	};
	struct trace_user *u = arg;
	struct trace_table *table;

	out->state = states[stack_find(u, pc)];
	if (out->state != TRACE_CODE_HERE)
		return;
	out->start = u->at->map.start;
	out->end = u->at->map.end;
	if (u->at->kind != PM_EXE_FILE && u->at->kind != PM_EXE_VDSO)
		return;
	table = trace_tables_get(&u->th->tables, u->at->map.exe);
	if (table && table->state == TRACE_TABLE_HERE)
		stack_rows(u, pc, table, out);
	if (!table || table->state != TRACE_TABLE_ASKED)
		return;
	u->late = true;
	if (u->take->hurry)
		return;
	out->state = TRACE_CODE_LATE;
	u->take->late = table;
}

static struct trace_piece piece_of(const struct abi_stack *stack,
				   const uint8_t *bytes)
{
	return (struct trace_piece){ bytes, stack->start, stack->size,
				     stack->end, stack->holes };
}

static void stack_walk(struct trace_user *u)
{
	const struct trace_record *rec = u->take->rec;
	struct trace_stack stack = {
		.regs = &rec->regs,
		.here = piece_of(&rec->stack, rec->stack_bytes),
		.left = piece_of(&rec->left, rec->left_bytes),
		.compat = rec->head.flags & ABI_SAMPLE_COMPAT,
	};
	size_t max = u->th->opts.max_frames;

	if (stack.compat)
		u->n = trace_unwind_fp(&stack, u->th->pcs, max, &u->why);
	else
		u->n = trace_walk(&stack, &u->th->rules, stack_code, u,
				  u->th->pcs, max, &u->why);
	if (!rec->has_stack)
		u->why = TRACE_END_NONE;
	else if (u->late && u->take->hurry)
		u->why = TRACE_END_LATE;
}

int trace_user_walk(struct trace_user *u, struct trace_handler *th,
		    struct trace_take *take)
{
	uint32_t flags = take->rec->head.flags;

	memset(u, 0, sizeof(*u));
	u->th = th;
	u->take = take;
	take->late = NULL;
	if (take->rec->has_regs)
		stack_walk(u);
	else
		u->why = flags & ABI_SAMPLE_EXEC ? TRACE_END_EXEC
						 : TRACE_END_NONE;
	return u->why == TRACE_END_LATE && !take->hurry ? -EAGAIN : 0;
}

static int stack_push(struct trace_user *u, uint64_t pc)
{
	switch (stack_find(u, pc)) {
	case PM_FOUND:
		break;
	case PM_LOST:
		u->th->stats.not_mapped++;
		return trace_push_mark(u->th, pc ^ STACK_LOST, pc,
				       "[mapping lost]+0x%" PRIx64, pc);
	default:
		u->th->stats.not_mapped++;
		return trace_push_mark(u->th, pc ^ STACK_UNMAPPED, pc,
				       "[unmapped]+0x%" PRIx64, pc);
	}
	if (u->at->kind != PM_EXE_ANON && u->at->kind != PM_EXE_KERNEL)
		pc = pc - u->at->map.start + u->at->map.pgoff;
	return trace_push_code(u->th, u->at->map.exe, u->at->kind, pc);
}

/* Of a file without rows: whether it has none, or they could not be had. */
static enum trace_end stack_no_rows(struct trace_user *u)
{
	struct trace_table *table;

	if (u->at->kind == PM_EXE_ANON)
		return TRACE_END_NO_FP;
	if (u->at->kind != PM_EXE_FILE)
		return TRACE_END_NO_CFI;
	table = trace_tables_get(&u->th->tables, u->at->map.exe);
	if (!table || table->state != TRACE_TABLE_NONE)
		return TRACE_END_NO_CFI;
	switch (table->err) {
	case -ENOENT:
	case -ESRCH:
	case -ESTALE:
		return TRACE_END_GONE;
	case -ENODATA:
	case -ENOEXEC:
	case -ENOTSUP:
		return TRACE_END_NO_CFI;
	default:
		return TRACE_END_UNREAD;
	}
}

/* Why it ended; after its last frame, whose mapping is still at hand. */
static int stack_push_end(struct trace_user *u)
{
	const struct trace_record *rec = u->take->rec;
	uint32_t kib = (rec->stack.size + rec->left.size) / 1024;
	struct pm_exe_info info = { .base = "[unknown]" };
	enum trace_end why = u->why;

	if (why == TRACE_END_NO_CFI)
		why = stack_no_rows(u);
	(*(uint64_t *)((char *)&u->th->stats + stack_ends[why].counter))++;
	switch (why) {
	case TRACE_END_ROOT:
		return 0;
	case TRACE_END_CAP:
		return trace_push_mark(u->th,
				       why | (uint64_t)kib << STACK_WHY_BITS,
				       why, stack_ends[why].text, kib);
	case TRACE_END_NO_CFI:
	case TRACE_END_GONE:
	case TRACE_END_UNREAD:
	case TRACE_END_BROKEN:
		pm_exe_info(u->at->map.exe, &info);
		return trace_push_mark(u->th,
				       why | info.serial << STACK_WHY_BITS, why,
				       stack_ends[why].text, info.base);
	default:
		return trace_push_mark(u->th, why, why, "%s",
				       stack_ends[why].text);
	}
}

int trace_user_push(struct trace_user *u)
{
	const struct trace_record *rec = u->take->rec;
	int err = 0;

	if (!rec->has_regs && rec->head.flags & ABI_SAMPLE_KTHREAD)
		return 0;
	for (size_t i = 0; i < u->n && !err; i++)
		err = stack_push(u, u->th->pcs[i] - !!i);
	return err ? err : stack_push_end(u);
}
