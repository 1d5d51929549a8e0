// SPDX-License-Identifier: Apache-2.0
/* gopclntab: makes rows of the table; see symbolize/rows/gopclntab.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "symbolize/rows/gopclntab.h"

#define SECTION ".gopclntab"
#define SIGRETURN "runtime.sigreturn" /* with a suffix in newer versions */
#define SYSTEMSTACK "runtime.systemstack"

#define PCS_STEPS_MAX (1U << 26) /* of all together: functions may share one */
#define DELTA_MAX (INT32_MAX - 8) /* of the stack pointer */

#define FLAG_TOP_FRAME 1
#define FLAG_SP_WRITE 2

enum {
	LIST,
	FUNC,
	PCS,
	NAME,
	CODE,
	WINDOWS
};

/* The table being read, with a window into each of its parts. */
struct reader {
	struct gopclntab g;
	struct symbolizer_rows_build *b;
	struct symbolizer_rows_info *info;
	struct symbolizer_src src[WINDOWS];
	uint64_t steps; /* of pc tables so far */
	int err;
};

struct func {
	uint64_t start, end;
	uint64_t at; /* from the table's start */
	uint32_t pcs; /* from the start of the pc tables; 0: there are none */
	bool root;
	bool switches; /* its caller is on another stack: */
	enum symbolizer_switch how;
	bool sigreturn; /* signal handlers return to it */
};

static void gopclntab_note(struct reader *r, uint64_t at, const char *what)
{
	symbolizer_rows_note(r->info, SECTION, at, r->g.off + at, what);
}

/* --- one function ---------------------------------------------------------- */

/*
 * Functions without a caller, and functions that switch stacks. Go 1.17 and later
 * mark them, except for those that the kernel starts. They mark the first one of
 * a signal handler as a root, but what it interrupted is on another stack.
 */
static const char *const root_names[] = {
	ARCH_GO_ROOTS,	  "runtime.clone",  "runtime.goexit",
	"runtime.mstart", "runtime.rt0_go", NULL,
};
static const struct {
	const char *name;
	enum symbolizer_switch how;
	bool flagged; /* only in versions whose function changes the stack */
} switches[] = {
	{ "gogo", SYMBOLIZER_SWITCH_OTHER, false },
	{ "runtime.asmcgocall", SYMBOLIZER_SWITCH_C, false },
	{ "runtime.gogo", SYMBOLIZER_SWITCH_OTHER, false },
	{ "runtime.mcall", SYMBOLIZER_SWITCH_PARK, false },
	{ "runtime.morestack", SYMBOLIZER_SWITCH_GROW, false },
	{ "runtime.nanotime1", SYMBOLIZER_SWITCH_VDSO, false },
	{ "runtime.sigtramp", SYMBOLIZER_SWITCH_OTHER, false },
	{ SYSTEMSTACK, SYMBOLIZER_SWITCH_CALL, false },
	{ "runtime.vgetrandom1", SYMBOLIZER_SWITCH_VDSO, true },
	{ "runtime.walltime1", SYMBOLIZER_SWITCH_VDSO, false },
	{ "time.now", SYMBOLIZER_SWITCH_VDSO, true },
};

static bool is_one_of(const char *const *names, const char *name)
{
	while (*names && strcmp(*names, name) != 0)
		names++;
	return *names;
}

static void name_switch(struct reader *r, struct func *f, const char *name,
			uint8_t flag)
{
	f->switches = false;
	f->how = SYMBOLIZER_SWITCH_OTHER;
	for (size_t i = 0; i < ARRAY_SIZE(switches) && !f->switches; i++) {
		if (strcmp(switches[i].name, name) != 0)
			continue;
		f->switches = !switches[i].flagged || (flag & FLAG_SP_WRITE);
		f->how = switches[i].how;
	}
	/* There may be one for each calling convention. */
	if (!strcmp(name, SYSTEMSTACK) && !r->info->go.tls)
		arch_go_layout(r->g.e, &r->src[CODE], f->start, f->end,
			       &r->info->go);
}

/* Sets the kind of a function by its name and flags. */
static void name_func(struct reader *r, struct func *f, uint8_t flag)
{
	uint64_t limit = r->g.off + r->g.size;
	char name[32];
	uint32_t at;

	if (!symbolizer_gopclntab_at(&r->g, &r->src[FUNC],
				     f->at + r->g.format->pc_size, &at, 4) ||
	    at > r->g.size - r->g.names ||
	    symbolizer_src_string(&r->src[NAME], r->g.off + r->g.names + at,
				  limit, name, sizeof(name)) < 0)
		*name = '\0';
	/* It leaves a frame with a return address on both of its stacks. */
	if (!strcmp(name, "runtime.cgocallback"))
		flag &= (uint8_t)~FLAG_SP_WRITE;
	name_switch(r, f, name, flag);
	f->root = !f->switches &&
		  (f->start == r->g.e->entry || is_one_of(root_names, name) ||
		   (flag & FLAG_TOP_FRAME));
	f->switches |= !f->root && (flag & FLAG_SP_WRITE);
	f->sigreturn = !strncmp(name, SIGRETURN, strlen(SIGRETURN));
}

/* Reads function 'i' of the list; false: damage was noted. */
static bool func_read(struct reader *r, uint64_t i, struct func *f)
{
	const struct gopclntab_format *format = r->g.format;
	uint64_t list = r->g.funcs + i * 2 * format->pc_size;
	uint64_t word[3] = { 0 }; /* address, place, address of the next one */
	uint8_t flag = 0;

	for (size_t k = 0; k < ARRAY_SIZE(word); k++) {
		if (symbolizer_gopclntab_at(&r->g, &r->src[LIST],
					    list + k * format->pc_size,
					    &word[k], format->pc_size))
			continue;
		gopclntab_note(r, list, "a list of functions that is cut off");
		return false;
	}
	f->start = r->g.text + word[0];
	f->at = r->g.func_base + word[1];
	f->end = r->g.text + word[2];
	if (word[2] < word[0] || f->end < f->start) {
		gopclntab_note(r, list, "functions that go backwards");
		return false;
	}
	if (word[1] > r->g.size ||
	    !symbolizer_gopclntab_at(&r->g, &r->src[FUNC],
				     f->at + format->pc_size + 12, &f->pcs,
				     4) ||
	    (format->flag_at &&
	     !symbolizer_gopclntab_at(&r->g, &r->src[FUNC],
				      f->at + format->flag_at, &flag, 1))) {
		gopclntab_note(r, list,
			       "a function that leads beyond its table");
		return false;
	}
	name_func(r, f, flag);
	return true;
}

static int add_row(struct reader *r, const struct func *f, uint64_t at,
		   int32_t delta, bool fp_saved)
{
	struct symbolizer_rule rule = { 0 };

	if (f->sigreturn)
		arch_rule_sigreturn(&rule);
	else
		arch_rule_frame(&rule, delta, fp_saved);
	if (f->root || f->switches)
		rule.regs[SYMBOLIZER_REG_RA] = (struct symbolizer_value){
			.from = f->root ? SYMBOLIZER_UNDEFINED
					: SYMBOLIZER_ELSEWHERE,
			.n = f->root ? 0 : (int32_t)f->how,
		};
	return symbolizer_rows_add(r->b, at, &rule);
}

/* Adds the rows of one function up to *locp. What is wrong with it, or NULL. */
static const char *gopclntab_walk(struct reader *r, const struct func *f,
				  uint64_t *locp)
{
	uint64_t at = r->g.pcs + f->pcs, saved = 0; /* 0: not known yet */
	uint64_t end = MIN(r->g.size, at + GOPCLNTAB_PCS_MAX), loc, next;
	uint32_t step, by;
	int32_t delta = -1;
	int more;

	if (at >= r->g.size)
		return "pcs beyond their table";
	for (loc = f->start; loc < f->end && !r->err; loc = next) {
		*locp = loc;
		more = symbolizer_gopclntab_step(&r->g, &r->src[PCS], &at, end,
						 loc == f->start, &step, &by);
		if (more <= 0)
			return more ? "pcs that are cut off" : NULL;
		delta = (int32_t)((uint32_t)delta +
				  ((step >> 1) ^ -(step & 1)));
		next = loc + (uint64_t)by * ARCH_GO_UNIT;
		/* One pops its return address, before vfork: below 0. */
		if (delta < -ARCH_ENTRY_CFA || delta > DELTA_MAX || delta % 8)
			return "a stack pointer that moves to nowhere";
		if (++r->steps > PCS_STEPS_MAX)
			return "more pcs than a table holds";
		if (delta > 0 && !saved)
			saved = arch_go_fp_saved(r->g.e, &r->src[CODE], loc,
						 delta);
		r->err = add_row(r, f, loc, delta, delta > 0 && saved <= loc);
		if (!r->err && delta > 0 && saved > loc && saved < next)
			r->err = add_row(r, f, saved, delta, true);
	}
	*locp = loc;
	return NULL;
}

static void add_func(struct reader *r, const struct func *f)
{
	uint64_t loc = f->start;
	const char *bad = NULL;

	if (f->pcs == 0 || f->end == f->start)
		return;
	if (symbolizer_rows_func(r->b, f->start, f->end, &r->err)) {
		bad = gopclntab_walk(r, f, &loc);
		if (!r->err && loc < f->end)
			r->err = symbolizer_rows_add(r->b, loc, NULL);
	}
	if (r->err == -E2BIG) {
		bad = bad ? bad : "more rules or rows than a table holds";
		r->err = 0;
	}
	if (bad)
		gopclntab_note(r, f->at, bad);
}

/* --- the table ------------------------------------------------------------- */

static int read_table(struct reader *r)
{
	struct func f;

	for (uint64_t i = 0; i < r->g.n_funcs && !r->err; i++) {
		if (!func_read(r, i, &f) || r->steps > PCS_STEPS_MAX)
			break;
		add_func(r, &f);
	}
	return r->err;
}

int symbolizer_gopclntab_read(struct symbolizer_elf *e,
			      struct symbolizer_rows_build *b,
			      struct symbolizer_rows_info *info, bool *any)
{
	struct reader *r = calloc(1, sizeof(*r)); /* 40 KiB of windows */
	const char *damage;
	bool found;
	int err = 0;

	if (!r)
		return -ENOMEM;
	r->b = b;
	r->info = info;
	found = symbolizer_gopclntab_find(&r->g, e, &damage);
	*any |= found;
	if (damage)
		gopclntab_note(r, 0, damage);
	for (size_t i = 0; i < WINDOWS; i++) {
		if (e->src->buf)
			symbolizer_src_mem(&r->src[i], e->src->buf,
					   (size_t)e->src->size);
		else
			symbolizer_src_fd(&r->src[i], e->src->fd, e->src->size);
	}
	if (found && !damage)
		err = read_table(r);
	free(r);
	return err;
}
