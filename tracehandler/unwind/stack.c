// SPDX-License-Identifier: Apache-2.0
/* stack: see tracehandler/unwind/stack.h. */
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "tracehandler/unwind/stack.h"

/*
 * Keys of marks. An end is enum trace_end and, above it, what its text needs. An
 * address without a mapping has one of these bits inverted, which no user address
 * has set alone.
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

int trace_stacks_init(struct trace_stacks *s, struct trace_frames *frames,
		      struct trace_waits *waits)
{
	s->opts = frames->opts;
	s->frames = frames;
	s->stats = frames->stats;
	s->pcs = calloc(s->opts->max_frames, sizeof(*s->pcs));
	if (!s->pcs || trace_rules_init(&s->rules) ||
	    trace_tables_init(&s->tables, s->opts->table_bytes, waits,
			      &s->rules))
		return -ENOMEM;
	return 0;
}

void trace_stacks_fini(struct trace_stacks *s)
{
	trace_tables_fini(&s->tables);
	trace_rules_fini(&s->rules);
	free(s->pcs);
}

/* --- the walk ----------------------------------------------------------------- */

/* The least recently used place. */
static struct trace_place *stack_place_new(struct trace_user *u)
{
	return &u->places[u->next++ % ARRAY_SIZE(u->places)];
}

/* The kernel reports it as a mapping in /proc only. */
static struct trace_place *stack_place_vsyscall(struct trace_user *u)
{
	struct trace_place *place = stack_place_new(u);

	*place = (struct trace_place){
		.map = { .start = ARCH_VSYSCALL,
			 .end = ARCH_VSYSCALL + ARCH_VSYSCALL_SIZE,
			 .exe = pm_exe_vsyscall(u->owner->opts->pm) },
		.kind = PM_EXE_VSYSCALL,
	};
	return place;
}

/* Sets u->at if found. A stack alternates between few files. */
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
	if (arch_is_vsyscall(pc)) {
		u->at = stack_place_vsyscall(u);
		return PM_FOUND;
	}
	if (u->take->view)
		found = pm_view_find(u->take->view, pc, &map);
	else
		found = pm_image_find(u->owner->opts->pm, u->take->image,
				      u->take->rec->head.time, pc, &map);
	if (found != PM_FOUND)
		return found;
	pm_exe_info(map.exe, &info);
	u->at = stack_place_new(u);
	u->at->map = map;
	u->at->kind = info.kind;
	return PM_FOUND;
}

/*
 * The executable memory that has the names and rows of what is at u->at: JITs map files
 * without ELF as well. NULL: it is other code.
 */
static struct pm_exe *stack_memory(const struct trace_user *u)
{
	return u->at->kind == PM_EXE_ANON ? u->at->map.exe : u->at->map.code;
}

/* The rows of a file, for as much of u->at as one segment covers; or of memory. */
static void stack_rows(const struct trace_user *u, uint64_t pc,
		       const struct trace_table *table, struct trace_code *out)
{
	uint64_t offset = pc - u->at->map.start + u->at->map.pgoff;
	const struct symbolizer_segment *seg;
	size_t i, n = 0;

	if (stack_memory(u)) {
		out->rows = table->rows;
		return;
	}
	seg = pm_exe_segments(u->at->map.exe, &n);
	for (i = 0; i < n; i++) {
		if (offset - seg[i].offset >= seg[i].size)
			continue;
		out->rows = table->rows;
		out->by_code = table->by_code;
		out->bias = seg[i].vaddr - seg[i].offset + u->at->map.pgoff -
			    u->at->map.start;
		out->start =
			pc - MIN(offset - seg[i].offset, pc - u->at->map.start);
		out->end = pc + MIN(seg[i].offset + seg[i].size - offset,
				    u->at->map.end - pc);
		return;
	}
}

static bool stack_may_have_rows(enum pm_exe_kind kind)
{
	return kind == PM_EXE_FILE || kind == PM_EXE_VDSO;
}

/*
 * The table of executable memory for an address; NULL: none. With several jitdumps the
 * first that has a row for it, or one that is still being read; '*several' then.
 */
static struct trace_table *stack_memory_table(const struct trace_user *u,
					      struct pm_exe *memory,
					      uint64_t pc, bool *several)
{
	struct pm_exe *dumps[PM_CODE_DUMPS];
	uint64_t time = u->take->rec->head.time;
	struct trace_table *table, *late = NULL;
	size_t i, n;

	/* Perf maps have names only. */
	if (!pm_exe_code(memory, time).timed)
		return NULL;
	n = pm_exe_code_dumps(memory, dumps);
	*several = n > 1;
	for (i = 0; i < n; i++) {
		table = trace_tables_code(&u->owner->tables, dumps[i],
					  pm_exe_code(dumps[i], time).version,
					  time);
		if (!table)
			continue;
		if (n == 1 || (table->state == TRACE_TABLE_HERE &&
			       symbolizer_rows_find(table->rows, pc)))
			return table;
		if (table->state == TRACE_TABLE_ASKED)
			late = table;
	}
	return late;
}

/* The table for u->at; NULL: none, or no memory. */
static struct trace_table *stack_table(const struct trace_user *u, uint64_t pc,
				       bool *several)
{
	struct pm_exe *memory = stack_memory(u);
	struct trace_table *table;

	/* Once that file is open it is known whose code it is. */
	if (u->at->map.maybe) {
		table = trace_tables_get(&u->owner->tables, u->at->map.maybe);
		if (table && table->state == TRACE_TABLE_ASKED)
			return table;
	}
	if (memory)
		return stack_memory_table(u, memory, pc, several);
	return stack_may_have_rows(u->at->kind)
		       ? trace_tables_get(&u->owner->tables, u->at->map.exe)
		       : NULL;
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
	bool several = false;

	out->state = states[stack_find(u, pc)];
	if (out->state != TRACE_CODE_HERE)
		return;
	out->start = u->at->map.start;
	out->end = u->at->map.end;
	out->bare = u->at->kind == PM_EXE_VSYSCALL;
	table = stack_table(u, pc, &several);
	if (several) {
		out->start = pc;
		out->end = pc + 1;
	}
	if (table && table->state == TRACE_TABLE_HERE)
		stack_rows(u, pc, table, out);
	if (out->rows && !u->go.tls)
		u->go = symbolizer_rows_go(out->rows);
	if (!table || table->state != TRACE_TABLE_ASKED)
		return;
	u->late = true;
	if (u->take->hurry)
		return;
	out->state = TRACE_CODE_LATE;
	u->take->late = table;
}

static bool stack_is_code(void *arg, uint64_t addr)
{
	const struct trace_user *u = arg;

	if (u->take->view)
		return pm_view_may_have_code(u->take->view, addr);
	return pm_image_may_have_code(u->owner->opts->pm, u->take->image,
				      u->take->rec->head.time, addr);
}

static void stack_walk(struct trace_user *u)
{
	const struct trace_record *rec = u->take->rec;
	const struct trace_opts *opts = u->owner->opts;
	bool bare = false;
	struct trace_stack stack = {
		.regs = &rec->regs,
		.here = rec->stack,
		.left = rec->left,
		.compat = rec->head.flags & ABI_SAMPLE_COMPAT,
		.code = rec->code,
		.code_len = rec->code_len,
		.is_code = stack_is_code,
		.arg = u,
		.bare = &bare,
		.by_code = &u->by_code,
		.go = rec->has_go ? &rec->go : NULL,
	};
	size_t max = u->owner->opts->max_frames;

	if (stack.compat)
		u->n = trace_unwind_fp(&stack, u->owner->pcs, max, &u->why);
	else
		u->n = trace_walk(&stack, &u->owner->rules, stack_code, u,
				  u->owner->pcs, max, &u->why);
	if (bare && !rec->code && opts->want_code)
		opts->want_code(opts->arg, rec->head.key.tgid);
	if (u->go.tls && !rec->has_go && opts->want_go)
		opts->want_go(opts->arg, rec->head.key.tgid, &u->go);
	if (!rec->has_stack)
		u->why = TRACE_END_NONE;
	else if (u->late && u->take->hurry)
		u->why = TRACE_END_LATE;
}

int trace_user_walk(struct trace_user *u, struct trace_stacks *s,
		    struct trace_take *take)
{
	*u = (struct trace_user){ .owner = s, .take = take };
	take->late = NULL;
	if (take->rec->has_regs)
		stack_walk(u);
	else if (take->rec->head.flags & ABI_SAMPLE_EXEC)
		u->why = TRACE_END_EXEC;
	else
		u->why = TRACE_END_NONE;
	return u->why == TRACE_END_LATE && !take->hurry ? -EAGAIN : 0;
}

/* --- its frames ---------------------------------------------------------------- */

/* The offset that identifies it in its executable; after stack_find(). */
static uint64_t stack_offset(const struct trace_user *u, uint64_t pc)
{
	if (stack_may_have_rows(u->at->kind))
		return pc - u->at->map.start + u->at->map.pgoff;
	return pc;
}

/*
 * The executable memory that may name it, and how; NULL: other code, or a file whose
 * process has no names for it.
 */
static struct pm_exe *stack_named_memory(const struct trace_user *u,
					 struct pm_code_state *st)
{
	struct pm_exe *memory = stack_memory(u);

	if (!memory)
		return NULL;
	*st = pm_exe_code(memory, u->take->rec->head.time);
	return st->named || u->at->kind == PM_EXE_ANON ? memory : NULL;
}

static int stack_push_vsyscall(struct trace_user *u, uint64_t pc)
{
	size_t i = (pc - ARCH_VSYSCALL) / ARCH_VSYSCALL_STEP;
	struct symbolizer_function fn = { .file = "" };
	struct symbolizer_symbol sym = { .offset = pc, .vaddr = pc };

	if (i < ARRAY_SIZE(arch_vsyscalls)) {
		fn.name = fn.system_name = arch_vsyscalls[i];
		sym.start = ARCH_VSYSCALL + i * ARCH_VSYSCALL_STEP;
		sym.size = ARCH_VSYSCALL_STEP;
		sym.functions = &fn;
		sym.nfunctions = 1;
	}
	return trace_frames_named(u->owner->frames, u->at->map.exe, &sym);
}

static int stack_push(struct trace_user *u, uint64_t pc)
{
	enum pm_find found = stack_find(u, pc);
	bool lost = found == PM_LOST;
	struct pm_code_state st;
	struct pm_exe *memory, *file;

	memory = found == PM_FOUND ? stack_named_memory(u, &st) : NULL;
	if (memory) {
		file = u->at->kind == PM_EXE_ANON ? NULL : u->at->map.exe;
		return trace_frames_memory(u->owner->frames, memory, pc, st,
					   file, stack_offset(u, pc));
	}
	if (found == PM_FOUND && u->at->kind == PM_EXE_VSYSCALL)
		return stack_push_vsyscall(u, pc);
	if (found == PM_FOUND)
		return trace_frames_code(u->owner->frames, u->at->map.exe,
					 stack_offset(u, pc));
	u->owner->stats->not_mapped++;
	return trace_frames_mark(u->owner->frames,
				 pc ^ (lost ? STACK_LOST : STACK_UNMAPPED), pc,
				 "[%s]+0x%" PRIx64,
				 lost ? "mapping lost" : "unmapped", pc);
}

/* Why the file at u->at has no rows. */
static enum trace_end stack_no_rows(struct trace_user *u)
{
	struct trace_table *table;

	if (u->at->kind == PM_EXE_ANON)
		return TRACE_END_NO_FP;
	if (u->at->kind != PM_EXE_FILE)
		return TRACE_END_NO_CFI;
	table = trace_tables_get(&u->owner->tables, u->at->map.exe);
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

/* Why the stack ended; after its last frame, which u->at is of. */
static int stack_push_end(struct trace_user *u)
{
	const struct trace_record *rec = u->take->rec;
	uint32_t kib = (rec->stack.size + rec->left.size) / 1024;
	struct pm_exe_info info = { .base = "[unknown]" };
	enum trace_end why = u->why;

	if (why == TRACE_END_NO_CFI)
		why = stack_no_rows(u);
	(*(uint64_t *)((char *)u->owner->stats + stack_ends[why].counter))++;
	switch (why) {
	case TRACE_END_ROOT:
		return 0;
	case TRACE_END_CAP:
		return trace_frames_mark(u->owner->frames,
					 why | (uint64_t)kib << STACK_WHY_BITS,
					 why, stack_ends[why].text, kib);
	case TRACE_END_NO_CFI:
	case TRACE_END_GONE:
	case TRACE_END_UNREAD:
	case TRACE_END_BROKEN:
		pm_exe_info(u->at->map.exe, &info);
		return trace_frames_mark(u->owner->frames,
					 why | info.serial << STACK_WHY_BITS,
					 why, stack_ends[why].text, info.base);
	default:
		return trace_frames_mark(u->owner->frames, why, why, "%s",
					 stack_ends[why].text);
	}
}

/* Kernel threads have no user stack. */
static bool stack_has_user(const struct trace_user *u)
{
	const struct trace_record *rec = u->take->rec;

	return rec->has_regs || !(rec->head.flags & ABI_SAMPLE_KTHREAD);
}

static int stack_push_user(struct trace_user *u)
{
	int err = 0;

	if (!stack_has_user(u))
		return 0;
	for (size_t i = 0; i < u->n && !err; i++)
		err = stack_push(u, u->owner->pcs[i] - !!i);
	return err ? err : stack_push_end(u);
}

/* All but the first are return addresses; less one they are in the call. */
static uint64_t stack_kernel_pc(const struct trace_user *u, size_t i)
{
	return trace_record_kpc(u->take->rec, i) - !!i;
}

static int stack_push_kernel(struct trace_user *u)
{
	struct pm_exe *kernel = pm_exe_kernel(u->owner->opts->pm);
	size_t i, n = MIN(u->take->rec->nkstack, ABI_KSTACK_MAX);
	int err = 0;

	for (i = 0; i < n && !err; i++)
		err = trace_frames_kernel(u->owner->frames, kernel,
					  stack_kernel_pc(u, i),
					  u->take->rec->head.time);
	return err;
}

/*
 * Fills frames->repeats.keys with the keys of its frames and returns their number; 0
 * if some are not code, or their names depend on the time, or there are too many.
 */
static size_t stack_keys(struct trace_user *u)
{
	struct pm_exe *kernel = pm_exe_kernel(u->owner->opts->pm);
	uint64_t *keys = u->owner->frames->repeats.keys, pc;
	struct pm_code_state st;
	struct pm_exe *memory;
	size_t i, n = MIN(u->take->rec->nkstack, ABI_KSTACK_MAX);

	for (i = 0; i < n; i++)
		keys[i] = trace_cache_key(kernel, stack_kernel_pc(u, i), 0);
	if (!stack_has_user(u))
		return n;
	if (u->why != TRACE_END_ROOT || u->n > TRACE_REPEATS_FRAMES - n)
		return 0;
	for (i = 0; i < u->n; i++) {
		pc = u->owner->pcs[i] - !!i;
		if (stack_find(u, pc) != PM_FOUND)
			return 0;
		memory = stack_named_memory(u, &st);
		if (memory && st.timed)
			return 0;
		keys[n + i] = memory ? trace_cache_key(memory, pc, st.version)
				     : trace_cache_key(u->at->map.exe,
						       stack_offset(u, pc), 0);
	}
	return n + i;
}

int trace_stacks_take(struct trace_stacks *s, struct trace_take *take)
{
	const struct abi_sample *head = &take->rec->head;
	struct trace_user u;
	int err;

	err = trace_user_walk(&u, s, take);
	if (err)
		return err;
	s->stats->by_code += u.by_code;
	if (trace_frames_again(s->frames, head, take->image, stack_keys(&u))) {
		s->stats->stack_root += stack_has_user(&u);
		return 0;
	}
	err = stack_push_kernel(&u);
	if (!err)
		err = stack_push_user(&u);
	return trace_frames_end(s->frames, head, take->image, take->deadline,
				err);
}

/* --- its tables --------------------------------------------------------------- */

static void stack_ask(void *arg, const struct pm_mapping *map)
{
	struct trace_stacks *s = arg;
	struct pm_exe_info info;

	pm_exe_info(map->exe, &info);
	if (stack_may_have_rows(info.kind) && !map->code)
		trace_tables_get(&s->tables, map->exe);
}

void trace_stacks_ask(struct trace_stacks *s, struct pm_view *view)
{
	pm_view_each(view, stack_ask, s);
}
