// SPDX-License-Identifier: Apache-2.0
/* gopclntab: from the table to rows; see symbolize/rows/gopclntab.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "symbolize/rows/gopclntab.h"

#define SECTION ".gopclntab"
#define SIGRETURN "runtime.sigreturn" /* with a suffix in newer versions */

/* A function's table of pcs; nobody writes one that long. */
#define PCS_BYTES_MAX (1U << 20)
/* All of them, since many may share one. */
#define PCS_STEPS_MAX (1U << 26)
#define DELTA_MAX (INT32_MAX - 8) /* of rsp */

#define FLAG_TOP_FRAME 1
#define FLAG_SP_WRITE 2

#define DWARF_RBP 6
#define DWARF_RSP 7

/* The table while it is read, with a window into each of its parts. */
struct reader {
	struct gopclntab g;
	struct symbolizer_rows_build *b;
	struct symbolizer_rows_info *info;
	struct symbolizer_src list, func, pcs, name, code;
	uint64_t steps; /* of pc tables so far */
	int err;
};

struct func {
	uint64_t start, end;
	uint64_t at; /* from the table's start */
	uint32_t pcs; /* from the pc tables' start; 0: nothing is known */
	bool root;
	bool switches; /* its caller is on another stack */
	bool sigreturn; /* a signal handler returns to it */
};

static void gopclntab_note(struct reader *r, uint64_t at, const char *what)
{
	symbolizer_rows_note(r->info, SECTION, at, r->g.off + at, what);
}

/* 'len' bytes at 'at' of the table. */
static bool gopclntab_read_at(const struct reader *r,
			      struct symbolizer_src *src, uint64_t at,
			      void *dst, size_t len)
{
	return at <= r->g.size && len <= r->g.size - at &&
	       symbolizer_src_read(src, r->g.off + at, dst, len) == 0;
}

/* --- one function ---------------------------------------------------------- */

/*
 * Functions above which there is no frame. Newer versions mark them (1.17 on); the
 * names are for older ones. Where the kernel enters, no version says it.
 */
static const char *const root_names[] = {
	"_rt0_amd64",		"_rt0_amd64_linux", "_rt0_amd64_lib",
	"_rt0_amd64_linux_lib", "runtime.clone",    "runtime.goexit",
	"runtime.mstart",	"runtime.rt0_go",   NULL,
};

/*
 * Those that change to another stack, likewise. A signal handler's first function
 * is marked as a top of a stack; what was interrupted is on another one.
 */
static const char *const switch_names[] = {
	"gogo",
	"runtime.asmcgocall",
	"runtime.gogo",
	"runtime.mcall",
	"runtime.morestack",
	"runtime.nanotime1",
	"runtime.sigtramp",
	"runtime.systemstack",
	"runtime.walltime1",
	NULL,
};

static bool is_one_of(const char *const *names, const char *name)
{
	for (; *names; names++)
		if (!strcmp(*names, name))
			return true;
	return false;
}

/* What a function is, by its name and flags. */
static void name_func(struct reader *r, struct func *f, uint8_t flag)
{
	uint64_t limit = r->g.off + r->g.size;
	char name[32];
	uint32_t at;

	if (!gopclntab_read_at(r, &r->func, f->at + r->g.format->pc_size, &at,
			       4) ||
	    at > r->g.size - r->g.names ||
	    symbolizer_src_string(&r->name, r->g.off + r->g.names + at, limit,
				  name, sizeof(name)) < 0)
		*name = '\0';
	/* It leaves a frame that leads back on both of its stacks. */
	if (!strcmp(name, "runtime.cgocallback"))
		flag &= (uint8_t)~FLAG_SP_WRITE;
	f->switches = is_one_of(switch_names, name);
	f->root = !f->switches &&
		  (f->start == r->g.e->entry || is_one_of(root_names, name) ||
		   (flag & FLAG_TOP_FRAME));
	f->switches |= !f->root && (flag & FLAG_SP_WRITE);
	f->sigreturn = !strncmp(name, SIGRETURN, strlen(SIGRETURN));
}

/* The function 'i' of the list; false: damage was noted. */
static bool func_read(struct reader *r, uint64_t i, struct func *f)
{
	const struct gopclntab_format *format = r->g.format;
	uint64_t list = r->g.funcs + i * 2 * format->pc_size;
	uint64_t pc = 0, next = 0, at = 0;
	uint8_t flag = 0;

	if (!gopclntab_read_at(r, &r->list, list, &pc, format->pc_size) ||
	    !gopclntab_read_at(r, &r->list, list + format->pc_size, &at,
			       format->pc_size) ||
	    !gopclntab_read_at(r, &r->list, list + 2 * format->pc_size, &next,
			       format->pc_size)) {
		gopclntab_note(r, list, "a list of functions that is cut off");
		return false;
	}
	f->at = r->g.func_base + at;
	f->start = r->g.text + pc;
	f->end = r->g.text + next;
	if (next < pc || f->end < f->start) {
		gopclntab_note(r, list, "functions that go backwards");
		return false;
	}
	if (at > r->g.size ||
	    !gopclntab_read_at(r, &r->func, f->at + format->pc_size + 12,
			       &f->pcs, 4) ||
	    (format->flag_at &&
	     !gopclntab_read_at(r, &r->func, f->at + format->flag_at, &flag,
				1))) {
		gopclntab_note(r, list,
			       "a function that leads beyond its table");
		return false;
	}
	name_func(r, f, flag);
	return true;
}

/* Bytes of a table of pcs, as they come. */
struct stream {
	struct reader *r;
	uint64_t at, end;
	uint8_t buf[64];
	size_t i, n;
	bool bad;
};

static uint8_t stream_byte(struct stream *s)
{
	if (s->i == s->n) {
		s->n = (size_t)MIN(s->end - s->at, (uint64_t)sizeof(s->buf));
		s->i = 0;
		if (!s->n ||
		    !gopclntab_read_at(s->r, &s->r->pcs, s->at, s->buf, s->n)) {
			s->n = 0;
			s->bad = true;
			return 0;
		}
		s->at += s->n;
	}
	return s->buf[s->i++];
}

/* A number of 32 bits, seven a byte. */
static uint32_t stream_number(struct stream *s)
{
	uint32_t v = 0, shift = 0;
	uint8_t byte;

	do {
		byte = stream_byte(s);
		if (shift > 28)
			s->bad = true;
		else
			v |= (uint32_t)(byte & 0x7f) << shift;
		shift += 7;
	} while ((byte & 0x80) && !s->bad);
	return v;
}

/*
 * Where rbp is kept under the return address once rsp has moved to 'delta' at
 * 'loc': at once by "push %rbp" just done (1.21 on), or after the next
 * instruction, "mov %rbp, delta-8(%rsp)". UINT64_MAX: it is not.
 */
static uint64_t rbp_kept_from(struct reader *r, uint64_t loc, int32_t delta)
{
	struct symbolizer_elf *e = r->g.e;
	uint8_t b[9] = { 0 };
	uint64_t off;
	int32_t disp;

	if (!symbolizer_elf_offset(e, loc - 1, &off) ||
	    symbolizer_src_read(&r->code, off, b, sizeof(b)))
		return UINT64_MAX;
	if (b[0] == 0x55 && delta == 8)
		return loc;
	if (b[1] == 0x48 && b[2] == 0x89 && b[3] == 0x6c && b[4] == 0x24)
		return (int8_t)b[5] == delta - 8 ? loc + 5 : UINT64_MAX;
	if (b[1] != 0x48 || b[2] != 0x89 || b[3] != 0xac || b[4] != 0x24)
		return UINT64_MAX;
	memcpy(&disp, b + 5, sizeof(disp));
	return disp == delta - 8 ? loc + 8 : UINT64_MAX;
}

static int add_row(struct reader *r, const struct func *f, uint64_t at,
		   int32_t delta, bool rbp)
{
	struct symbolizer_rule rule = {
		.cfa = { SYMBOLIZER_REG, DWARF_RSP, 0, delta + 8 },
		.regs = { [DWARF_RSP] = { SYMBOLIZER_CFA, 0, 0, 0 },
			  [SYMBOLIZER_REG_RA] = { SYMBOLIZER_AT_CFA, 0, 0,
						  -8 } },
	};

	if (f->sigreturn)
		symbolizer_rows_sigreturn(&rule);
	if (rbp)
		rule.regs[DWARF_RBP] =
			(struct symbolizer_value){ SYMBOLIZER_AT_CFA, 0, 0,
						   -16 };
	if (f->root || f->switches)
		rule.regs[SYMBOLIZER_REG_RA] = (struct symbolizer_value){
			.from = f->root ? SYMBOLIZER_UNDEFINED
					: SYMBOLIZER_ELSEWHERE,
		};
	return symbolizer_rows_add(r->b, at, &rule);
}

/* The rows of one function as they come; what is wrong with it, or NULL. */
static const char *gopclntab_walk(struct reader *r, const struct func *f,
				  uint64_t *locp)
{
	uint64_t base = r->g.pcs + f->pcs, kept = 0; /* 0: not known yet */
	struct stream s = { .r = r, .at = base };
	uint32_t step, by;
	int32_t delta = -1;
	uint64_t loc;

	if (base >= r->g.size)
		return "pcs beyond their table";
	s.end = MIN(r->g.size, base + PCS_BYTES_MAX);
	for (loc = f->start; loc < f->end && !r->err; loc += by) {
		*locp = loc;
		step = stream_number(&s);
		if (!step && loc != f->start)
			return NULL;
		by = stream_number(&s);
		delta = (int32_t)((uint32_t)delta +
				  ((step >> 1) ^ -(step & 1)));
		if (s.bad || !by)
			return "pcs that are cut off";
		/* One takes its return address off the stack, before vfork. */
		if (delta < -8 || delta > DELTA_MAX || delta % 8)
			return "a stack pointer that moves to nowhere";
		if (++r->steps > PCS_STEPS_MAX)
			return "more pcs than a table holds";
		if (delta > 0 && !kept)
			kept = rbp_kept_from(r, loc, delta);
		r->err = add_row(r, f, loc, delta, delta > 0 && kept <= loc);
		if (!r->err && delta > 0 && kept > loc && kept < loc + by)
			r->err = add_row(r, f, kept, delta, true);
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
	if (bad)
		gopclntab_note(r, f->at, bad);
	if (r->err == -E2BIG) {
		gopclntab_note(r, f->at,
			       "more rules or rows than a table holds");
		r->err = 0;
	}
}

/* --- the table ------------------------------------------------------------- */

/* A window of its own onto the same bytes. */
static void gopclntab_window(struct symbolizer_src *to,
			     const struct symbolizer_src *from)
{
	if (from->buf)
		symbolizer_src_mem(to, from->buf, (size_t)from->size);
	else
		symbolizer_src_fd(to, from->fd, from->size);
}

static int read_table(struct reader *r, const char *damage)
{
	struct func f;

	if (damage) {
		gopclntab_note(r, 0, damage);
		return 0;
	}
	for (uint64_t i = 0; i < r->g.n_funcs && !r->err; i++) {
		if (!func_read(r, i, &f))
			break;
		if (r->steps > PCS_STEPS_MAX)
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
	int err = 0;

	if (!r)
		return -ENOMEM;
	r->b = b;
	r->info = info;
	if (symbolizer_gopclntab_find(&r->g, e, &damage)) {
		*any = true;
		gopclntab_window(&r->list, e->src);
		gopclntab_window(&r->func, e->src);
		gopclntab_window(&r->pcs, e->src);
		gopclntab_window(&r->name, e->src);
		gopclntab_window(&r->code, e->src);
		err = read_table(r, damage);
	}
	free(r);
	return err;
}
