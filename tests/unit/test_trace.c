// SPDX-License-Identifier: Apache-2.0
/*
 * The trace handler over a process manager of our own: samples in, traces out,
 * and what happens in between while names are missing.
 */
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
#define KERNEL 0xffffffff81000000ULL

/* --- the process manager ------------------------------------------------- */

struct pm_exe {
	enum pm_exe_kind kind;
	const char *base;
	int refs;
	int asked; /* requests made */
};

struct pm_image {
	bool provisional;
};

struct ask {
	struct pm_exe *exe;
	uint64_t offsets[64];
	size_t n;
	symbolizer_resolve_fn fn;
	void *arg;
};

struct pm {
	struct pm_exe program, kernel, anon, mark;
	struct pm_image image;
	enum pm_find elsewhere;
	bool no_memory;
	struct ask asks[16];
	size_t nasks;
};

static struct pm pm;

struct pm_image *pm_image_get(struct pm *p, const struct abi_key *key,
			      uint64_t time)
{
	return p->no_memory ? NULL : &p->image;
}

void pm_image_info(const struct pm_image *img, struct pm_image_info *out)
{
	memset(out, 0, sizeof(*out));
	out->provisional = img->provisional;
}

enum pm_find pm_image_find(struct pm *p, struct pm_image *img, uint64_t addr,
			   struct pm_mapping *out)
{
	if (addr - CODE < 0x10000) {
		*out = (struct pm_mapping){ CODE, CODE + 0x10000, 0x1000,
					    &p->program };
		return PM_FOUND;
	}
	if (addr - JIT < 0x10000) {
		*out = (struct pm_mapping){ JIT, JIT + 0x10000, 0, &p->anon };
		return PM_FOUND;
	}
	return p->elsewhere;
}

void pm_exe_info(const struct pm_exe *exe, struct pm_exe_info *out)
{
	memset(out, 0, sizeof(*out));
	out->kind = exe->kind;
	out->base = exe->base;
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

struct pm_exe *pm_exe_kernel(struct pm *p)
{
	return &p->kernel;
}

struct pm_exe *pm_exe_mark(struct pm *p)
{
	return &p->mark;
}

int pm_exe_resolve(struct pm_exe *exe, const uint64_t *offsets, size_t n,
		   symbolizer_resolve_fn fn, void *arg)
{
	struct ask *a = &pm.asks[pm.nasks++];

	if (pm.no_memory) {
		pm.nasks--;
		return -ENOMEM;
	}
	assert_true(pm.nasks <= ARRAY_SIZE(pm.asks));
	assert_in_range(n, 1, ARRAY_SIZE(a->offsets));
	exe->asked++;
	exe->refs++;
	a->exe = exe;
	memcpy(a->offsets, offsets, n * sizeof(*offsets));
	a->n = n;
	a->fn = fn;
	a->arg = arg;
	return 0;
}

/* Answers the oldest request: functions of 256 bytes, none in the first 4 KiB. */
static void answer(int err)
{
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
		syms[i].name = names[i];
		syms[i].system_name = names[i];
	}
	a.fn(a.arg, err, err ? NULL : syms, err ? 0 : a.n);
	a.exe->refs--;
}

/* --- what comes out ------------------------------------------------------ */

#define OUT_MAX 128

struct out {
	size_t n;
	uint64_t time[OUT_MAX];
	char text[OUT_MAX][512]; /* names, leaf first, each with a ';' behind */
	struct reporter_frame leaf[OUT_MAX];
	char thread[16];
};

static void resolved(void *arg, const struct reporter_trace *t)
{
	struct out *o = arg;
	char *text;
	size_t i;

	assert_true(o->n < OUT_MAX);
	assert_ptr_equal(t->image, &pm.image);
	o->time[o->n] = t->time;
	text = o->text[o->n];
	text[0] = '\0';
	for (i = 0; i < t->nframes; i++) {
		assert_non_null(t->frames[i].name);
		assert_non_null(t->frames[i].system_name);
		assert_true(strlen(text) + strlen(t->frames[i].name) < 510);
		strcat(strcat(text, t->frames[i].name), ";");
	}
	if (t->nframes)
		o->leaf[o->n] = t->frames[0];
	snprintf(o->thread, sizeof(o->thread), "%s", t->thread);
	o->n++;
}

/* --- samples ------------------------------------------------------------- */

struct rec {
	uint8_t buf[4096];
	size_t len;
};

static void part(struct rec *r, uint32_t type, const void *data, size_t len,
		 const void *more, size_t morelen)
{
	struct abi_part p = { type, len + morelen };

	memcpy(r->buf + r->len, &p, sizeof(p));
	memcpy(r->buf + r->len + sizeof(p), data, len);
	if (morelen)
		memcpy(r->buf + r->len + sizeof(p) + len, more, morelen);
	r->len += sizeof(p) + ((len + morelen + 7) & ~7UL);
}

static void finish(struct rec *r, uint64_t time, uint32_t flags)
{
	struct abi_sample h = { .size = r->len, .flags = flags, .time = time };

	h.tid = 7;
	h.cpu = 1;
	strcpy(h.comm, "worker");
	memcpy(r->buf, &h, sizeof(h));
}

/* A kernel stack of nk addresses, unless 0, then user code: pcs, leaf first. */
static void sample(struct rec *r, uint64_t time, size_t nk, const uint64_t *pcs,
		   size_t n, enum abi_stack_end end)
{
	uint64_t k[8], words[64] = { 0 };
	struct abi_regs regs = { .ip = n ? pcs[0] : 0 };
	struct abi_stack stack = { STACK, sizeof(words), end };
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
	regs.gpr[ABI_REG_BP] = n > 1 ? STACK + 16 : 0;
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

static struct fixture *begin(struct trace_opts opts)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	memset(&pm, 0, sizeof(pm));
	pm.program = (struct pm_exe){ PM_EXE_FILE, "program", 1, 0 };
	pm.kernel = (struct pm_exe){ PM_EXE_KERNEL, "[kernel.kallsyms]", 1, 0 };
	pm.anon = (struct pm_exe){ PM_EXE_ANON, "//anon", 1, 0 };
	pm.mark = (struct pm_exe){ PM_EXE_MARK, "[mark]", 1, 0 };
	pm.elsewhere = PM_NOT_MAPPED;
	opts.pm = &pm;
	opts.resolved = resolved;
	opts.arg = &f->out;
	assert_int_equal(trace_handler_new(&f->th, &opts), 0);
	return f;
}

/* Nothing may be owed to anybody afterwards. */
static void finish_all(struct fixture *f)
{
	trace_handler_free(f->th);
	while (pm.nasks)
		answer(-ECANCELED);
	assert_int_equal(pm.program.refs, 1);
	assert_int_equal(pm.kernel.refs, 1);
	assert_int_equal(pm.anon.refs, 1);
	assert_int_equal(pm.mark.refs, 1);
	free(f);
}

static void give(struct fixture *f, const struct rec *r)
{
	assert_int_equal(trace_handler_sample(f->th, r->buf, r->len), 0);
	trace_handler_get_stats(f->th, &f->st);
}

static void tick(struct fixture *f, uint64_t now)
{
	trace_handler_tick(f->th, now);
	trace_handler_get_stats(f->th, &f->st);
}

static const uint64_t two[] = { CODE + 0x1200, CODE + 0x2300 };

/*
 * Names are asked for at a tick, once a frame; return addresses less one; a
 * trace goes out when all are there, and the next one at once.
 */
static void test_names(void **state)
{
	struct fixture *f = begin((struct trace_opts){ 0 });
	struct rec r;

	sample(&r, 100, 0, two, 2, ABI_STACK_WHOLE);
	give(f, &r);
	assert_int_equal(pm.nasks, 0);
	assert_int_equal(trace_handler_oldest(f->th), 100);
	tick(f, 1000 * MS);
	assert_int_equal(pm.nasks, 1);
	assert_int_equal(pm.asks[0].n, 2);
	assert_int_equal(pm.asks[0].offsets[0], 0x2200);
	assert_int_equal(pm.asks[0].offsets[1], 0x32ff);
	assert_int_equal(f->out.n, 0);
	answer(0);
	assert_int_equal(f->out.n, 1);
	assert_string_equal(f->out.text[0], "fn_22;fn_32;");
	assert_string_equal(f->out.thread, "worker");
	assert_int_equal(f->out.leaf[0].offset, 0x2200);
	assert_int_equal(f->out.leaf[0].vaddr, 0x12200);
	assert_int_equal(f->out.leaf[0].start, 0x12200);
	assert_int_equal(trace_handler_oldest(f->th), UINT64_MAX);
	give(f, &r);
	assert_int_equal(f->out.n, 2);
	assert_string_equal(f->out.text[1], "fn_22;fn_32;");
	assert_int_equal(f->st.cache_misses, 2);
	assert_int_equal(f->st.cache_hits, 2);
	assert_int_equal(f->st.stack_root, 2);
	assert_int_equal(f->st.frames, 4);
	finish_all(f);
}

static void test_kernel_before_user(void **state)
{
	struct fixture *f = begin((struct trace_opts){ 0 });
	struct rec r;

	sample(&r, 100, 3, two, 2, ABI_STACK_WHOLE);
	give(f, &r);
	tick(f, MS);
	assert_int_equal(pm.nasks, 2);
	assert_int_equal(pm.kernel.asked, 1);
	answer(0);
	answer(0);
	assert_string_equal(f->out.text[0],
			    "fn_ffffffff810000;fn_ffffffff81000f;"
			    "fn_ffffffff81001f;fn_22;fn_32;");
	finish_all(f);
}

/* Without a symbol: the file and the address in it; kernel and JIT likewise. */
static void test_unnamed(void **state)
{
	static const uint64_t pcs[] = { CODE + 0x10, JIT + 0x21, 0x900001 };
	struct fixture *f = begin((struct trace_opts){ 0 });
	struct rec r;

	sample(&r, 1, 1, pcs, 3, ABI_STACK_WHOLE);
	give(f, &r);
	tick(f, MS);
	answer(pm.asks[0].exe == &pm.kernel ? -EACCES : 0);
	answer(pm.asks[0].exe == &pm.kernel ? -EACCES : 0);
	assert_string_equal(f->out.text[0],
			    "[kernel]+0xffffffff81000000;program+0x11010;"
			    "[anon]+0x500020;[unmapped]+0x900000;");
	give(f, &r);
	assert_string_equal(f->out.text[1], f->out.text[0]);
	assert_int_equal(pm.nasks, 0);
	assert_int_equal(f->st.not_mapped, 2);
	assert_int_equal(pm.program.asked, 1);
	finish_all(f);
}

static void test_mapping_lost(void **state)
{
	static const uint64_t pcs[] = { 0x900000 };
	struct fixture *f = begin((struct trace_opts){ 0 });
	struct rec r;

	sample(&r, 1, 0, pcs, 1, ABI_STACK_WHOLE);
	give(f, &r);
	pm.elsewhere = PM_LOST;
	give(f, &r);
	assert_string_equal(f->out.text[0], "[unmapped]+0x900000;");
	assert_string_equal(f->out.text[1], "[mapping lost]+0x900000;");
	assert_int_not_equal(f->out.leaf[0].offset, f->out.leaf[1].offset);
	finish_all(f);
}

/* Why a stack ends is its last frame, and counted. */
static void test_ends(void **state)
{
	struct fixture *f = begin((struct trace_opts){ .max_frames = 2 });
	static const uint64_t jit[] = { JIT, JIT + 1, JIT + 2 };
	struct rec r;
	struct abi_regs *regs;

	sample(&r, 1, 0, jit, 3, ABI_STACK_WHOLE);
	give(f, &r);
	assert_string_equal(f->out.text[0],
			    "[anon]+0x500000;[anon]+0x500000;[depth limit];");
	sample(&r, 1, 0, jit, 1, ABI_STACK_CAP);
	regs = (void *)(r.buf + sizeof(struct abi_sample) +
			sizeof(struct abi_part));
	regs->gpr[ABI_REG_BP] = STACK + 8192;
	give(f, &r);
	assert_string_equal(f->out.text[1],
			    "[anon]+0x500000;[stack copy limit];");
	regs->gpr[ABI_REG_BP] = 1;
	give(f, &r);
	assert_string_equal(f->out.text[2],
			    "[anon]+0x500000;[no frame pointer];");
	assert_int_equal(f->out.leaf[2].offset, JIT);
	assert_int_equal(f->st.stack_depth, 1);
	assert_int_equal(f->st.stack_cap, 1);
	assert_int_equal(f->st.stack_no_fp, 1);
	finish_all(f);
}

static void test_no_user_side(void **state)
{
	static const struct {
		uint32_t flags;
		const char *text;
	} t[] = {
		{ ABI_SAMPLE_KTHREAD, "" },
		{ ABI_SAMPLE_EXEC, "[exec];" },
		{ ABI_SAMPLE_NOMM, "[no user stack];" },
	};
	struct fixture *f = begin((struct trace_opts){ 0 });
	char want[64];
	struct rec r;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(t); i++) {
		sample(&r, i, 1, NULL, 0, ABI_STACK_WHOLE);
		finish(&r, i, t[i].flags);
		give(f, &r);
	}
	tick(f, MS);
	answer(0);
	assert_int_equal(f->out.n, ARRAY_SIZE(t));
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		snprintf(want, sizeof(want), "fn_ffffffff810000;%s", t[i].text);
		assert_string_equal(f->out.text[i], want);
	}
	assert_int_equal(f->st.stack_exec, 1);
	assert_int_equal(f->st.stack_none, 1);
	finish_all(f);
}

/* One request an executable at a time; what comes meanwhile goes together. */
static void test_one_request_at_a_time(void **state)
{
	struct fixture *f = begin((struct trace_opts){ 0 });
	uint64_t pc;
	struct rec r;

	for (pc = CODE + 0x2000; pc < CODE + 0x2500; pc += 0x100) {
		sample(&r, pc, 0, &pc, 1, ABI_STACK_WHOLE);
		give(f, &r);
		tick(f, MS);
	}
	assert_int_equal(pm.nasks, 1);
	assert_int_equal(pm.asks[0].n, 1);
	answer(0);
	assert_int_equal(f->out.n, 1);
	assert_int_equal(pm.nasks, 1);
	assert_int_equal(pm.asks[0].n, 4);
	answer(0);
	assert_int_equal(f->out.n, 5);
	assert_int_equal(pm.nasks, 0);
	assert_int_equal(pm.program.asked, 2);
	finish_all(f);
}

/* The wait has an end, counted from the first tick; the name comes to use later. */
static void test_deadline(void **state)
{
	struct fixture *f = begin((struct trace_opts){ .wait_ms = 500 });
	struct rec r;

	sample(&r, 100, 0, two, 2, ABI_STACK_WHOLE);
	give(f, &r);
	tick(f, 9000 * MS);
	tick(f, 9499 * MS);
	assert_int_equal(f->out.n, 0);
	tick(f, 9500 * MS);
	assert_int_equal(f->out.n, 1);
	assert_string_equal(f->out.text[0], "program+0x12200;program+0x132ff;");
	assert_int_equal(f->st.names_late, 1);
	assert_int_equal(f->st.unnamed, 2);
	assert_int_equal(f->st.waiting, 0);
	answer(0);
	assert_int_equal(f->out.n, 1);
	give(f, &r);
	assert_string_equal(f->out.text[1], "fn_22;fn_32;");
	assert_int_equal(f->st.names_late, 1);
	finish_all(f);
}

/* An error that may pass is not remembered; one of the file is. */
static void test_errors(void **state)
{
	struct fixture *f = begin((struct trace_opts){ 0 });
	struct rec r;

	sample(&r, 100, 0, two, 1, ABI_STACK_WHOLE);
	give(f, &r);
	tick(f, MS);
	answer(-EMFILE);
	assert_string_equal(f->out.text[0], "program+0x12200;");
	give(f, &r);
	assert_int_equal(f->out.n, 1);
	tick(f, MS);
	answer(-ENOENT);
	assert_string_equal(f->out.text[1], "program+0x12200;");
	give(f, &r);
	assert_int_equal(f->out.n, 3);
	assert_int_equal(f->st.names_late, 0);
	finish_all(f);
}

/* Of several frames any may be forgotten; the others are still found. */
static void test_forget_among_others(void **state)
{
	static const uint64_t mixed[] = { CODE + 0x1200, JIT + 1, CODE + 0x2300,
					  JIT + 0x101 };
	struct fixture *f = begin((struct trace_opts){ .cache_frames = 4 });
	struct rec r;

	sample(&r, 1, 0, mixed, 4, ABI_STACK_WHOLE);
	give(f, &r);
	tick(f, MS);
	answer(-ETIMEDOUT);
	give(f, &r);
	assert_int_equal(f->st.cache_entries, 4);
	assert_int_equal(f->st.cache_evicted, 0);
	assert_int_equal(f->st.cache_misses, 4);
	tick(f, MS);
	answer(0);
	assert_string_equal(f->out.text[1],
			    "fn_22;[anon]+0x500000;fn_32;[anon]+0x500100;");
	give(f, &r);
	assert_int_equal(f->out.n, 3);
	finish_all(f);
}

static void test_byte_limit(void **state)
{
	struct fixture *f = begin((struct trace_opts){ .wait_bytes = 1000 });
	struct rec r;
	int i;

	for (i = 0; i < 20; i++) {
		sample(&r, 100 + i, 0, two, 2, ABI_STACK_WHOLE);
		give(f, &r);
	}
	assert_true(f->out.n > 10 && f->out.n < 20);
	assert_int_equal(f->st.names_late, f->out.n);
	assert_int_equal(f->st.waiting, 20 - f->out.n);
	assert_int_equal(f->out.time[0], 100);
	assert_int_equal(trace_handler_oldest(f->th), 100 + f->out.n);
	finish_all(f);
}

/* Samples that came out of order do not hide an older one. */
static void test_oldest(void **state)
{
	static const uint64_t times[] = { 50, 70, 60, 40 };
	struct fixture *f = begin((struct trace_opts){ 0 });
	struct rec r;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(times); i++) {
		sample(&r, times[i], 0, two, 1, ABI_STACK_WHOLE);
		give(f, &r);
	}
	assert_int_equal(trace_handler_oldest(f->th), 40);
	tick(f, MS);
	answer(0);
	assert_int_equal(f->out.n, 4);
	for (i = 0; i < 4; i++)
		assert_int_equal(f->out.time[i], 40 + 10 * i);
	finish_all(f);
}

/* An image that has no exec event yet is waited for, then placed. */
static void test_provisional(void **state)
{
	static const uint64_t pcs[] = { JIT };
	struct fixture *f = begin((struct trace_opts){ .wait_ms = 100 });
	struct rec r;

	pm.image.provisional = true;
	sample(&r, 100, 0, pcs, 1, ABI_STACK_WHOLE);
	give(f, &r);
	tick(f, MS);
	assert_int_equal(f->out.n, 0);
	assert_int_equal(trace_handler_oldest(f->th), 100);
	pm.image.provisional = false;
	tick(f, 2 * MS);
	assert_int_equal(f->out.n, 1);
	assert_string_equal(f->out.text[0], "[anon]+0x500000;");
	pm.image.provisional = true;
	sample(&r, 200, 0, two, 1, ABI_STACK_WHOLE);
	give(f, &r);
	tick(f, 1000 * MS);
	tick(f, 1100 * MS);
	assert_int_equal(f->out.n, 1);
	tick(f, 1101 * MS);
	assert_int_equal(f->out.n, 2);
	assert_string_equal(f->out.text[1], "program+0x12200;");
	assert_int_equal(f->st.names_late, 1);
	assert_int_equal(f->st.samples, 2);
	finish_all(f);
}

static void test_flush(void **state)
{
	struct fixture *f = begin((struct trace_opts){ 0 });
	struct rec r;

	sample(&r, 1, 0, two, 2, ABI_STACK_WHOLE);
	give(f, &r);
	pm.image.provisional = true;
	give(f, &r);
	tick(f, MS);
	trace_handler_flush(f->th);
	assert_int_equal(f->out.n, 2);
	assert_int_equal(trace_handler_oldest(f->th), UINT64_MAX);
	assert_string_equal(f->out.text[1], "program+0x12200;program+0x132ff;");
	finish_all(f); /* ... with a request under way */
}

/* The cache holds its bound, what waits stays whole, the used ones stay. */
static void test_cache_is_bounded(void **state)
{
	struct fixture *f = begin((struct trace_opts){ .cache_frames = 8 });
	uint64_t pc = CODE + 0x2000;
	struct rec r;
	int i;

	sample(&r, 1, 0, &pc, 1, ABI_STACK_WHOLE);
	give(f, &r);
	tick(f, MS);
	answer(0);
	for (i = 1; i <= 40; i++) {
		give(f, &r); /* used all the time */
		pc = CODE + 0x2000 + 0x10 * i;
		struct rec other;

		sample(&other, 1 + i, 0, &pc, 1, ABI_STACK_WHOLE);
		give(f, &other);
	}
	assert_int_equal(f->st.cache_entries, 8);
	assert_int_equal(f->st.cache_evicted, 33);
	assert_int_equal(f->out.n, 41);
	tick(f, MS);
	answer(0);
	assert_int_equal(f->out.n, 81);
	finish_all(f);
}

static void test_bad_records(void **state)
{
	struct fixture *f = begin((struct trace_opts){ 0 });
	struct rec r;

	sample(&r, 1, 0, two, 2, ABI_STACK_WHOLE);
	assert_int_equal(trace_handler_sample(f->th, r.buf, r.len - 8),
			 -EINVAL);
	assert_int_equal(trace_handler_sample(f->th, r.buf, 3), -EINVAL);
	pm.no_memory = true;
	assert_int_equal(trace_handler_sample(f->th, r.buf, r.len), -ENOMEM);
	pm.no_memory = false;
	give(f, &r);
	pm.no_memory = true; /* a request that cannot be made is tried again */
	tick(f, MS);
	pm.no_memory = false;
	tick(f, MS);
	answer(0);
	assert_int_equal(f->out.n, 1);
	assert_int_equal(f->st.bad_records, 2);
	assert_int_equal(f->st.nomem, 1);
	assert_int_equal(f->st.samples, 2);
	finish_all(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_kernel_before_user),
		cmocka_unit_test(test_unnamed),
		cmocka_unit_test(test_mapping_lost),
		cmocka_unit_test(test_ends),
		cmocka_unit_test(test_no_user_side),
		cmocka_unit_test(test_one_request_at_a_time),
		cmocka_unit_test(test_deadline),
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_forget_among_others),
		cmocka_unit_test(test_byte_limit),
		cmocka_unit_test(test_oldest),
		cmocka_unit_test(test_provisional),
		cmocka_unit_test(test_flush),
		cmocka_unit_test(test_cache_is_bounded),
		cmocka_unit_test(test_bad_records),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
