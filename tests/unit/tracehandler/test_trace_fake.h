/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the trace handler's tests: a fake process manager, whose answers the
 * tests control, synthetic samples, and the traces that were delivered.
 */
#ifndef TESTS_UNIT_TEST_TRACE_FAKE_H
#define TESTS_UNIT_TEST_TRACE_FAKE_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "tracehandler/tracehandler.h"

#define MS CLOCK_NSEC_PER_MSEC
#define STACK 0x7ffd00001000ULL
#define CODE 0x400000ULL /* where the program is mapped, from offset 0x1000 */
#define JIT 0x500000ULL
#define LIB 0x600000ULL
#define KERNEL 0xffffffff81000000ULL

/* --- the process manager ------------------------------------------------- */

struct pm_exe {
	enum pm_exe_kind kind;
	const char *base;
	int refs;
	int asked; /* requests made */
	int rows_asked;
	int hurried;
	int again; /* looked for anew */
	int open_error;
	uint64_t serial;
	uint8_t file_id[16];
};

struct pm_image {
	bool provisional;
	bool selected;
	bool agent; /* one listens */
};

/* What it was told, last and how often. */
static struct {
	unsigned int n;
	struct pm_trace_ids ids;
	uint8_t stack_id[16];
	uint16_t count;
} told;

struct ask {
	struct pm_exe *exe;
	uint64_t offsets[64];
	void *tags[64];
	size_t n;
	pm_names_fn fn;
	void *arg;
};

struct rows_ask {
	struct pm_exe *exe;
	uint64_t time; /* of executable memory */
	symbolizer_rows_fn fn;
	void *arg;
};

struct pm {
	struct pm_exe program, library, kernel, vsyscall, anon;
	struct pm_exe dumps[2]; /* of the anonymous memory, if */
	size_t ndumps; /* ... it has jitdumps of its own */
	bool hold_rows; /* else answered immediately: no rows */
	bool bare; /* the library is no ELF file */
	bool maybe; /* the anonymous memory may be a copy of the library */
	bool swapped; /* the library is mapped in place of the program */
	int views;
	struct rows_ask rows[16];
	size_t nrows;
	struct pm_image image;
	enum pm_find elsewhere;
	bool no_memory;
	bool perf_map, jitdump; /* of its anonymous memory */
	uint32_t version; /* ... from 'since' on; before, the one before */
	uint64_t since;
	struct ask held[16]; /* collected names, by executable */
	size_t nheld;
	struct ask asks[16]; /* ... in requests */
	size_t nasks;
};

static struct pm pm;

struct pm_image *pm_image_get(struct pm *p, const struct abi_key *key,
			      uint64_t time)
{
	return p->no_memory ? NULL : &p->image;
}

bool pm_image_provisional(const struct pm_image *img)
{
	return img->provisional;
}

bool pm_image_selected(const struct pm_image *img)
{
	return img->selected;
}

bool pm_apm_listens(const struct pm_image *img)
{
	return img->agent;
}

const char *pm_notify_apm(struct pm *p, struct pm_image *img,
			  const struct pm_trace_ids *ids,
			  const uint8_t stack_id[16], uint16_t count)
{
	told.n++;
	told.ids = *ids;
	memcpy(told.stack_id, stack_id, sizeof(told.stack_id));
	told.count = count;
	return img->agent ? "" : NULL;
}

struct pm_view {
	struct pm was;
};

struct pm_view *pm_view_new(struct pm *p, struct pm_image *img, uint64_t time)
{
	struct pm_view *view = malloc(sizeof(*view));

	assert_non_null(view);
	view->was = *p;
	p->views++;
	return view;
}

void pm_view_free(struct pm_view *view)
{
	pm.views -= !!view;
	free(view);
}

static inline enum pm_find find(const struct pm *p, uint64_t addr,
				struct pm_mapping *out)
{
	struct pm_exe *exe = p->swapped ? &pm.library : &pm.program;

	if (addr - CODE < 0x10000) {
		*out = (struct pm_mapping){ CODE, CODE + 0x10000, 0x1000,
					    exe,  NULL,		  NULL };
		return PM_FOUND;
	}
	if (addr - LIB < 0x10000) {
		*out = (struct pm_mapping){ LIB,
					    LIB + 0x10000,
					    0x1000,
					    &pm.library,
					    p->bare ? &pm.anon : NULL,
					    NULL };
		return PM_FOUND;
	}
	if (addr - JIT < 0x10000) {
		*out = (struct pm_mapping){
			JIT,	  JIT + 0x10000, 0,
			&pm.anon, NULL,		 p->maybe ? &pm.library : NULL
		};
		return PM_FOUND;
	}
	return p->elsewhere;
}

enum pm_find pm_image_find(struct pm *p, struct pm_image *img, uint64_t time,
			   uint64_t addr, struct pm_mapping *out)
{
	return find(p, addr, out);
}

enum pm_find pm_view_find(struct pm_view *view, uint64_t addr,
			  struct pm_mapping *out)
{
	return find(&view->was, addr, out);
}

bool pm_image_may_have_code(const struct pm *p, const struct pm_image *img,
			    uint64_t time, uint64_t addr)
{
	struct pm_mapping m;

	return find(p, addr, &m) != PM_NOT_MAPPED;
}

bool pm_view_may_have_code(const struct pm_view *view, uint64_t addr)
{
	struct pm_mapping m;

	return find(&view->was, addr, &m) != PM_NOT_MAPPED;
}

void pm_view_each(struct pm_view *view,
		  void (*fn)(void *arg, const struct pm_mapping *map),
		  void *arg)
{
	static const uint64_t at[] = { CODE, JIT, LIB };
	struct pm_mapping m;

	for (size_t i = 0; i < ARRAY_SIZE(at); i++)
		if (!find(&view->was, at[i], &m))
			fn(arg, &m);
}

void pm_exe_info(const struct pm_exe *exe, struct pm_exe_info *out)
{
	memset(out, 0, sizeof(*out));
	out->kind = exe->kind;
	out->base = out->path = exe->base;
	out->serial = exe->serial;
	out->open_error = exe->open_error;
	out->rows = PM_EXE_NOT_ASKED;
	memcpy(out->ident.file_id, exe->file_id, sizeof(exe->file_id));
}

const struct symbolizer_segment *pm_exe_segments(const struct pm_exe *exe,
						 size_t *np)
{
	static const struct symbolizer_segment seg = { 0x11000, 0x1000,
						       0x10000 };

	*np = exe->kind == PM_EXE_FILE;
	return &seg;
}

struct pm_exe *pm_exe_get(struct pm_exe *exe)
{
	exe->refs++;
	return exe;
}

void pm_exe_put(struct pm_exe *exe)
{
	exe->refs--;
}

struct pm_exe *pm_exe_root(const struct pm_exe *exe)
{
	return (struct pm_exe *)exe;
}

struct pm_exe *pm_exe_kernel(struct pm *p)
{
	return &p->kernel;
}

struct pm_exe *pm_exe_vsyscall(struct pm *p)
{
	return &p->vsyscall;
}

struct pm_code_state pm_exe_code(struct pm_exe *exe, uint64_t time)
{
	assert_true(exe == &pm.anon || exe - pm.dumps < 2);
	return (struct pm_code_state){
		.version = time < pm.since ? pm.version - 1 : pm.version,
		.timed = pm.jitdump,
		.named = pm.perf_map || pm.jitdump,
	};
}

void pm_exe_code_again(struct pm_exe *exe)
{
	exe->again++;
}

struct pm_exe *pm_image_memory(const struct pm_image *img)
{
	return &pm.anon;
}

size_t pm_exe_code_dumps(struct pm_exe *exe, struct pm_exe **out)
{
	assert_ptr_equal(exe, &pm.anon);
	out[0] = exe;
	for (size_t i = 0; i < pm.ndumps; i++)
		out[i] = &pm.dumps[i];
	return pm.ndumps ? pm.ndumps : pm.jitdump;
}

size_t pm_exe_code_sources(struct pm_exe *exe, struct pm_exe **out)
{
	size_t n = exe == &pm.anon ? pm_exe_code_dumps(exe, out) : 0;

	if (!n || pm.ndumps)
		out[n++] = exe;
	return n;
}

int pm_exe_name_at(struct pm_exe *exe, uint64_t offset, uint64_t time,
		   void *tag, pm_names_fn fn, void *arg)
{
	struct ask *a = pm.held;

	while (a < pm.held + pm.nheld && a->exe != exe)
		a++;
	if (a == pm.held + pm.nheld) {
		assert_true(pm.nheld++ < ARRAY_SIZE(pm.held));
		*a = (struct ask){ .exe = exe, .fn = fn, .arg = arg };
		exe->refs++;
	}
	assert_true(a->n < ARRAY_SIZE(a->offsets));
	a->offsets[a->n] = offset;
	a->tags[a->n++] = tag;
	return 0;
}

/* One request an executable at a time. */
void pm_names_send(struct pm *p)
{
	for (size_t i = 0, k; i < p->nheld && !p->no_memory;) {
		for (k = 0; k < p->nasks; k++)
			if (p->asks[k].exe == p->held[i].exe)
				break;
		if (k < p->nasks) {
			i++;
			continue;
		}
		assert_true(p->nasks < ARRAY_SIZE(p->asks));
		p->held[i].exe->asked++;
		p->asks[p->nasks++] = p->held[i];
		memmove(&p->held[i], &p->held[i + 1],
			(--p->nheld - i) * sizeof(p->held[0]));
	}
}

static inline void answer_none(struct ask a)
{
	a.fn(a.arg, -ECANCELED, a.tags, NULL, a.n);
	a.exe->refs--;
}

void pm_names_cancel(struct pm *p, pm_names_fn fn, void *arg)
{
	while (p->nheld)
		answer_none(p->held[--p->nheld]);
	while (p->nasks)
		answer_none(p->asks[--p->nasks]);
}

int pm_exe_rows(struct pm_exe *exe, symbolizer_rows_fn fn, void *arg)
{
	if (pm.no_memory)
		return -ENOMEM;
	assert_int_equal(exe->kind, PM_EXE_FILE);
	assert_true(pm.nrows < ARRAY_SIZE(pm.rows));
	exe->rows_asked++;
	exe->refs++;
	pm.rows[pm.nrows++] = (struct rows_ask){ exe, 0, fn, arg };
	return 0;
}

int pm_exe_code_rows(struct pm_exe *exe, uint64_t time, symbolizer_rows_fn fn,
		     void *arg)
{
	assert_int_equal(exe->kind, PM_EXE_ANON);
	assert_true(pm.nrows < ARRAY_SIZE(pm.rows));
	exe->rows_asked++;
	exe->refs++;
	pm.rows[pm.nrows++] = (struct rows_ask){ exe, time, fn, arg };
	return 0;
}

void pm_exe_hurry(struct pm_exe *exe)
{
	exe->hurried++;
}

/* Answers the oldest request for rows. */
static inline void answer_rows(int err, struct symbolizer_rows *rows)
{
	struct rows_ask a = pm.rows[0];

	assert_true(pm.nrows > 0);
	memmove(&pm.rows[0], &pm.rows[1], --pm.nrows * sizeof(a));
	a.fn(a.arg, err, rows);
	a.exe->refs--;
}

/* Answers the oldest request: functions of 256 bytes, none in the first 4 KiB. */
static inline void answer(int err)
{
	struct symbolizer_function functions[64];
	struct symbolizer_symbol syms[64];
	char names[64][32];
	struct ask a = pm.asks[0];
	size_t i;

	assert_true(pm.nasks > 0);
	memmove(&pm.asks[0], &pm.asks[1], --pm.nasks * sizeof(a));
	memset(syms, 0, sizeof(syms));
	for (i = 0; i < a.n; i++) {
		uint64_t off = a.offsets[i];

		syms[i].offset = off;
		syms[i].vaddr = off + (a.exe->kind == PM_EXE_FILE) * 0x10000;
		if (off - 0x1000 < 0x1000)
			continue;
		syms[i].start = syms[i].vaddr & ~255ULL;
		syms[i].size = 256;
		snprintf(names[i], sizeof(names[i]), "fn_%llx",
			 (unsigned long long)off >> 8);
		functions[i] = (struct symbolizer_function){ names[i], names[i],
							     "", 0, 0 };
		syms[i].functions = &functions[i];
		syms[i].nfunctions = 1;
	}
	a.fn(a.arg, err, a.tags, err ? NULL : syms, a.n);
	a.exe->refs--;
	pm_names_send(&pm);
}

/* --- traces -------------------------------------------------------------- */

#define OUT_MAX 128

struct out {
	size_t n;
	uint64_t time[OUT_MAX];
	char text[OUT_MAX][512]; /* names, leaf first, each with a ';' behind */
	struct reporter_frame leaf[OUT_MAX]; /* without its lines */
	uint64_t start[OUT_MAX]; /* of the leaf's function */
	char thread[16];
};

/* Called for each trace, too, if set. */
static void (*resolved_too)(const struct reporter_trace *t);

static inline void resolved(void *arg, const struct reporter_trace *t)
{
	struct out *o = arg;
	char *text;
	size_t i, k;

	assert_true(o->n < OUT_MAX);
	assert_ptr_equal(t->image, &pm.image);
	o->time[o->n] = t->time;
	text = o->text[o->n];
	text[0] = '\0';
	for (i = 0; i < t->nframes; i++) {
		const struct reporter_frame *f = &t->frames[i];

		for (k = 0; k < f->nlines; k++) {
			const struct reporter_function *fn =
				f->lines[k].function;

			assert_non_null(fn->system_name);
			assert_non_null(fn->file);
			assert_true(strlen(text) + strlen(fn->name) < 510);
			strcat(strcat(text, fn->name), ";");
		}
		assert_true(k > 0);
	}
	if (t->nframes) {
		o->leaf[o->n] = t->frames[0];
		o->start[o->n] = o->leaf[o->n].lines->function->start;
		o->leaf[o->n].lines = NULL;
	}
	snprintf(o->thread, sizeof(o->thread), "%s", t->thread);
	o->n++;
	if (resolved_too)
		resolved_too(t);
}

/* --- samples ------------------------------------------------------------- */

struct rec {
	uint8_t buf[4096];
	size_t len;
};

static inline void part(struct rec *r, uint32_t type, const void *data,
			size_t len, const void *more, size_t morelen)
{
	struct abi_part p = { type, len + morelen };

	memcpy(r->buf + r->len, &p, sizeof(p));
	memcpy(r->buf + r->len + sizeof(p), data, len);
	if (morelen)
		memcpy(r->buf + r->len + sizeof(p) + len, more, morelen);
	r->len += sizeof(p) + ((len + morelen + 7) & ~7UL);
}

static inline void finish(struct rec *r, uint64_t time, uint32_t flags)
{
	struct abi_sample h = { .size = r->len, .flags = flags, .time = time };

	h.tid = 7;
	h.cpu = 1;
	strcpy(h.comm, "worker");
	memcpy(r->buf, &h, sizeof(h));
}

/* A kernel stack of nk addresses, unless 0, then user code: pcs, leaf first. */
static inline void sample(struct rec *r, uint64_t time, size_t nk,
			  const uint64_t *pcs, size_t n, enum abi_stack_end end)
{
	uint64_t k[8], words[64] = { 0 };
	struct abi_regs regs = { .ip = n ? pcs[0] : 0 };
	struct abi_stack stack = { STACK, sizeof(words), end, 0 };
	size_t i;

	memset(r, 0, sizeof(*r));
	r->len = sizeof(struct abi_sample);
	for (i = 0; i < nk; i++)
		k[i] = KERNEL + 0x1000 * i;
	if (nk)
		part(r, ABI_PART_KSTACK, k, nk * 8, NULL, 0);
	for (i = 1; i < n; i++) {
		words[2 * i] = i + 1 < n ? STACK + 16 * (i + 1) : 0;
		words[2 * i + 1] = pcs[i];
	}
	regs.gpr[ABI_REG_SP] = STACK;
	regs.gpr[ABI_REG_BP] = STACK + 16;
	if (n) {
		part(r, ABI_PART_REGS, &regs, sizeof(regs), NULL, 0);
		part(r, ABI_PART_STACK, &stack, sizeof(stack), words,
		     sizeof(words));
	}
	finish(r, time, nk ? 0 : ABI_SAMPLE_USER);
}

/* --- the tests ----------------------------------------------------------- */

struct fixture {
	struct trace_handler *th;
	struct out out;
	struct trace_stats st;
};

static inline struct fixture *begin(struct trace_opts opts)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	memset(&pm, 0, sizeof(pm));
	pm.program = (struct pm_exe){ PM_EXE_FILE, "program", 1, .serial = 1 };
	pm.library = (struct pm_exe){ PM_EXE_FILE, "library", 1, .serial = 2 };
	pm.kernel = (struct pm_exe){ PM_EXE_KERNEL, "[kernel.kallsyms]", 1,
				     .serial = 3 };
	pm.anon = (struct pm_exe){ PM_EXE_ANON, "//anon", 1, .serial = 4 };
	for (size_t i = 0; i < ARRAY_SIZE(pm.dumps); i++)
		pm.dumps[i] = (struct pm_exe){ PM_EXE_ANON, "//anon", 1,
					       .serial = 6 + i };
	pm.vsyscall = (struct pm_exe){ PM_EXE_VSYSCALL, "[vsyscall]", 1,
				       .serial = 5 };
	pm.elsewhere = PM_NOT_MAPPED;
	opts.pm = &pm;
	opts.resolved = resolved;
	opts.arg = &f->out;
	assert_int_equal(trace_handler_new(&f->th, &opts), 0);
	return f;
}

/* No request or reference may be left. */
static inline void finish_all(struct fixture *f)
{
	trace_handler_free(f->th);
	while (pm.nrows)
		answer_rows(-ECANCELED, NULL);
	assert_int_equal(pm.nasks + pm.nheld, 0);
	assert_int_equal(pm.views, 0);
	assert_int_equal(pm.library.refs, 1);
	assert_int_equal(pm.program.refs, 1);
	assert_int_equal(pm.kernel.refs, 1);
	assert_int_equal(pm.vsyscall.refs, 1);
	assert_int_equal(pm.dumps[0].refs + pm.dumps[1].refs, 2);
	assert_int_equal(pm.anon.refs, 1);
	free(f);
}

static inline void give(struct fixture *f, const struct rec *r)
{
	assert_int_equal(trace_handler_sample(f->th, r->buf, r->len), 0);
	while (pm.nrows && !pm.hold_rows)
		answer_rows(-ENODATA, NULL);
	trace_handler_get_stats(f->th, &f->st);
}

static inline void tick(struct fixture *f, uint64_t now)
{
	trace_handler_tick(f->th, now, false);
	trace_handler_get_stats(f->th, &f->st);
}

static inline struct abi_regs *regs_of(struct rec *r)
{
	return (void *)(r->buf + sizeof(struct abi_sample) +
			sizeof(struct abi_part));
}

#endif /* TESTS_UNIT_TEST_TRACE_FAKE_H */
