// SPDX-License-Identifier: Apache-2.0
/*
 * The path of a span: each moment is in one step, waits are explained by what their wakers
 * did meanwhile, and where that ends is said. Waits have their stacks, each given once.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/base.h"
#include "reporter/ledger/why.h"

#define ON ABI_WAIT_WHAT_ON
#define SLEEP ABI_WAIT_WHAT(35, ABI_WAIT_SLEEP, 0)
#define PIPE ABI_WAIT_WHAT(0, ABI_WAIT_PIPE, 0)
#define WOKEN ABI_WAIT_WHAT(ABI_WAIT_NO_CALL, ABI_WAIT_WOKEN, 0)

static const struct reporter_segment *list;
static size_t n_list;

static struct reporter_segment segment(uint32_t tid, uint64_t begin,
				       uint64_t end, uint32_t what,
				       enum abi_waker_kind kind, uint32_t by)
{
	struct reporter_segment s = { .latency = 0 };

	s.of.key.tgid = s.of.tid = tid;
	s.of.begin = begin;
	s.of.end = end;
	s.of.what = what;
	s.of.waker.kind = kind;
	s.of.waker.key.tgid = s.of.waker.tid = by;
	return s;
}

static const struct reporter_segment *find(void *arg, const struct abi_key *key,
					   uint32_t tid, uint64_t time,
					   uint64_t *until)
{
	*until = 0;
	for (size_t i = 0; i < n_list; i++) {
		if (list[i].of.tid != tid || list[i].of.begin >= time)
			continue;
		if (list[i].of.end >= time)
			return &list[i];
		*until = MAX(*until, list[i].of.end);
	}
	return NULL;
}

/* Its steps that are not followed adjoin, from 'from' to 'to'. */
static struct reporter_step *path(const struct reporter_segment *s, size_t n,
				  uint32_t tid, uint64_t from, uint64_t to,
				  size_t *n_steps)
{
	const struct why_opts opts = { .find = find };
	const struct abi_key key = { .tgid = tid };
	struct reporter_step *steps;
	uint64_t at = from;

	list = s;
	n_list = n;
	steps = why_path(&opts, &key, tid, from, to, n_steps);
	assert_non_null(steps);
	for (size_t i = 0; i < *n_steps; i++) {
		if (steps[i].end == REPORTER_STEP_FOLLOWED)
			continue;
		assert_int_equal(steps[i].segment.of.begin, at);
		at = steps[i].segment.of.end;
	}
	assert_int_equal(at, to);
	return steps;
}

static void check(const struct reporter_step *s, uint32_t depth, uint32_t tid,
		  uint64_t begin, uint64_t end, enum reporter_step_end how)
{
	assert_int_equal(s->depth, depth);
	assert_int_equal(s->segment.of.tid, tid);
	assert_int_equal(s->segment.of.begin, begin);
	assert_int_equal(s->segment.of.end, end);
	assert_int_equal(s->end, how);
}

/* A client sends, a server works, sleeps, works and answers. */
static void test_server(void **state)
{
	const struct reporter_segment s[] = {
		segment(1, 0, 10, ON, 0, 0),
		segment(1, 10, 90, PIPE, ABI_WAKER_TASK, 2),
		segment(1, 90, 95, WOKEN, 0, 0),
		segment(1, 95, 120, ON, 0, 0),
		segment(2, 0, 9, PIPE, ABI_WAKER_TASK, 1),
		segment(2, 9, 12, WOKEN, 0, 0),
		segment(2, 12, 30, ON, 0, 0),
		segment(2, 30, 70, SLEEP, ABI_WAKER_IRQ, 0),
		segment(2, 70, 71, WOKEN, 0, 0),
		segment(2, 71, 100, ON, 0, 0),
	};
	struct reporter_step *p;
	size_t n;

	p = path(s, ARRAY_SIZE(s), 1, 5, 100, &n);
	assert_int_equal(n, 9);
	check(&p[0], 0, 1, 5, 10, REPORTER_STEP_ITSELF);
	check(&p[1], 0, 1, 10, 90, REPORTER_STEP_FOLLOWED);
	check(&p[2], 1, 2, 10, 12, REPORTER_STEP_ITSELF);
	check(&p[3], 1, 2, 12, 30, REPORTER_STEP_ITSELF);
	check(&p[4], 1, 2, 30, 70, REPORTER_STEP_INTERRUPT);
	check(&p[5], 1, 2, 70, 71, REPORTER_STEP_ITSELF);
	check(&p[6], 1, 2, 71, 90, REPORTER_STEP_ITSELF);
	check(&p[7], 0, 1, 90, 95, REPORTER_STEP_ITSELF);
	check(&p[8], 0, 1, 95, 100, REPORTER_STEP_ITSELF);
	free(p);
}

/* What was not recorded is a step, of the thread or of its waker. */
static void test_unrecorded(void **state)
{
	const struct reporter_segment s[] = {
		segment(1, 0, 10, ON, 0, 0),
		segment(1, 20, 50, PIPE, ABI_WAKER_TASK, 3),
		segment(1, 50, 60, PIPE, ABI_WAKER_SOFTIRQ, 3),
		segment(1, 60, 70, PIPE, ABI_WAKER_NONE, 0),
	};
	struct reporter_step *p;
	size_t n;

	p = path(s, ARRAY_SIZE(s), 1, 0, 80, &n);
	assert_int_equal(n, 6);
	check(&p[0], 0, 1, 0, 10, REPORTER_STEP_ITSELF);
	check(&p[1], 0, 1, 10, 20, REPORTER_STEP_GAP);
	check(&p[2], 0, 1, 20, 50, REPORTER_STEP_UNRECORDED);
	check(&p[3], 0, 1, 50, 60, REPORTER_STEP_PERHAPS);
	check(&p[4], 0, 1, 60, 70, REPORTER_STEP_UNSEEN);
	check(&p[5], 0, 1, 70, 80, REPORTER_STEP_GAP);
	free(p);
	p = path(s, 0, 9, 5, 8, &n);
	assert_int_equal(n, 1);
	check(&p[0], 0, 9, 5, 8, REPORTER_STEP_GAP);
	free(p);
}

/* Interrupts are the end of a path; what a soft one has interrupted is not followed. */
static void test_interrupts(void **state)
{
	const struct reporter_segment s[] = {
		segment(1, 0, 10, PIPE, ABI_WAKER_IRQ, 0),
		segment(1, 10, 20, PIPE, ABI_WAKER_SOFTIRQ, 2),
		segment(1, 20, 30, PIPE, ABI_WAKER_SOFTIRQ, 0),
		segment(1, 30, 40, PIPE, ABI_WAKER_UNKNOWN, 2),
		segment(2, 0, 40, ON, 0, 0),
	};
	struct reporter_step *p;
	size_t n;

	p = path(s, ARRAY_SIZE(s), 1, 0, 40, &n);
	assert_int_equal(n, 4);
	check(&p[0], 0, 1, 0, 10, REPORTER_STEP_INTERRUPT);
	check(&p[1], 0, 1, 10, 20, REPORTER_STEP_PERHAPS);
	check(&p[2], 0, 1, 20, 30, REPORTER_STEP_INTERRUPT);
	check(&p[3], 0, 1, 30, 40, REPORTER_STEP_PERHAPS);
	free(p);
}

/*
 * A wake-up takes some time: its waker may wait by then, even for the one that it woke. That
 * wait's end does not explain it.
 */
static void test_delivery(void **state)
{
	struct reporter_segment s[] = {
		segment(1, 0, 50, PIPE, ABI_WAKER_TASK, 2),
		segment(1, 50, 60, ON, 0, 0),
		segment(2, 0, 10, SLEEP, ABI_WAKER_IRQ, 0),
		segment(2, 10, 45, ON, 0, 0),
		segment(2, 45, 60, PIPE, ABI_WAKER_TASK, 1),
	};
	struct reporter_step *p;
	size_t n;

	for (int open = 0; open < 2; open++) {
		s[4].of.flags = open ? ABI_SEGMENT_OPEN : 0;
		p = path(s, ARRAY_SIZE(s), 1, 0, 60, &n);
		assert_int_equal(n, 5);
		check(&p[0], 0, 1, 0, 50, REPORTER_STEP_FOLLOWED);
		check(&p[1], 1, 2, 0, 10, REPORTER_STEP_INTERRUPT);
		check(&p[2], 1, 2, 10, 45, REPORTER_STEP_ITSELF);
		check(&p[3], 1, 2, 45, 50, REPORTER_STEP_DELIVERY);
		check(&p[4], 0, 1, 50, 60, REPORTER_STEP_ITSELF);
		free(p);
	}
}

/* A span that begins and ends within waits has the part of the path in between. */
static void test_clipped(void **state)
{
	const struct reporter_segment s[] = {
		segment(1, 0, 90, PIPE, ABI_WAKER_TASK, 2),
		segment(2, 0, 70, SLEEP, ABI_WAKER_IRQ, 0),
		segment(2, 70, 100, ON, 0, 0),
	};
	struct reporter_step *p;
	size_t n;

	p = path(s, ARRAY_SIZE(s), 1, 20, 50, &n);
	assert_int_equal(n, 2);
	check(&p[0], 0, 1, 20, 50, REPORTER_STEP_FOLLOWED);
	check(&p[1], 1, 2, 20, 50, REPORTER_STEP_INTERRUPT);
	free(p);
}

/* The end of the records: what has not ended yet is not explained. */
static void test_open(void **state)
{
	struct reporter_segment s[] = {
		segment(1, 0, 10, ON, 0, 0),
		segment(1, 10, 50, PIPE, 0, 0),
	};
	struct reporter_step *p;
	size_t n;

	s[1].of.flags = ABI_SEGMENT_OPEN;
	p = path(s, ARRAY_SIZE(s), 1, 0, 50, &n);
	assert_int_equal(n, 2);
	check(&p[1], 0, 1, 10, 50, REPORTER_STEP_OPEN);
	free(p);
}

#define RANDOM 400
#define THREADS 5

/* Whatever is recorded, the steps are the span. */
static void test_random(void **state)
{
	static struct reporter_segment s[RANDOM * THREADS];
	size_t n, steps;
	uint64_t at, to;
	uint32_t what;

	srand(1);
	for (int round = 0; round < 200; round++) {
		n = 0;
		for (uint32_t tid = 1; tid <= THREADS; tid++) {
			for (at = 0; at < RANDOM; at = to) {
				to = at + 1 + (uint64_t)rand() % 20;
				what = rand() % 2 ? ON : PIPE;
				if (rand() % 10)
					s[n++] = segment(
						tid, at, to, what,
						(uint32_t)rand() %
							ABI_WAKER_MAX,
						1 + (uint32_t)rand() % THREADS);
			}
		}
		free(path(s, n, 1, 5, RANDOM - 5, &steps));
	}
}

/* Two that wait for each other, as far as the records go. */
static void test_circle(void **state)
{
	const struct reporter_segment s[] = {
		segment(1, 0, 50, PIPE, ABI_WAKER_TASK, 2),
		segment(2, 0, 50, PIPE, ABI_WAKER_TASK, 1),
	};
	struct reporter_step *p;
	size_t n;

	p = path(s, ARRAY_SIZE(s), 1, 0, 50, &n);
	assert_int_equal(n, 3);
	check(&p[0], 0, 1, 0, 50, REPORTER_STEP_FOLLOWED);
	check(&p[1], 1, 2, 0, 50, REPORTER_STEP_FOLLOWED);
	check(&p[2], 2, 1, 0, 50, REPORTER_STEP_CIRCLE);
	free(p);
}

#define CHAIN 100

/* A chain of wakers is not followed for ever, nor are many steps. */
static void test_bounds(void **state)
{
	static struct reporter_segment s[WHY_STEPS * 2];
	struct reporter_step *p;
	size_t n;

	for (uint32_t i = 0; i < CHAIN; i++)
		s[i] = segment(i + 1, 0, 50, PIPE, ABI_WAKER_TASK, i + 2);
	p = path(s, CHAIN, 1, 0, 50, &n);
	assert_int_equal(n, WHY_DEPTH);
	check(&p[n - 1], WHY_DEPTH - 1, WHY_DEPTH, 0, 50, REPORTER_STEP_DEEP);
	free(p);
	for (uint32_t i = 0; i < ARRAY_SIZE(s); i++)
		s[i] = segment(1, i, i + 1, ON, 0, 0);
	p = path(s, ARRAY_SIZE(s), 1, 0, ARRAY_SIZE(s), &n);
	assert_true(n <= WHY_STEPS + WHY_DEPTH);
	assert_int_equal(p[0].end, REPORTER_STEP_MANY);
	free(p);
}

/* --- stacks ------------------------------------------------------------------------- */

#define ALONE 100000 /* of sites: no other has that stack */
#define DEEP 200000 /* more frames than are given */
#define LONG 200001 /* likewise, of names that are long */
#define GONE 300000

static size_t asked;
static char long_name[5000];

/* Sites that are equal modulo 1000 have the same stack, but for those that are alone. */
static size_t frames(void *arg, uint64_t site, struct reporter_step_frame *out,
		     size_t max)
{
	static char names[2][32];
	size_t n = site / DEEP == 1 ? 1000 : 2;

	asked++;
	if (site >= GONE)
		return 0;
	snprintf(names[0], sizeof(names[0]), "wait_%u",
		 (unsigned int)(site < ALONE ? site % 1000 : site));
	snprintf(names[1], sizeof(names[1]), "main");
	for (size_t i = 0; i < n && i < max; i++)
		out[i] = (struct reporter_step_frame){
			.function = site == LONG ? long_name : names[i > 0],
			.file = "/src/prog.c",
			.line = (uint32_t)i + 1,
			.mapping = "/bin/prog",
			.inlined = !i,
		};
	return n;
}

static struct reporter_segment wait_at(uint64_t site, uint64_t begin,
				       uint64_t end)
{
	struct reporter_segment s =
		segment(1, begin, end, SLEEP, ABI_WAKER_IRQ, 0);

	s.of.site = site;
	return s;
}

static void with_stacks(struct reporter_path *p,
			const struct reporter_segment *s, size_t n)
{
	*p = (struct reporter_path){ 0 };
	p->steps = path(s, n, 1, s[0].of.begin, s[n - 1].of.end, &p->n);
	assert_int_equal(p->n, n);
	asked = 0;
	assert_int_equal(reporter_path_stacks(p, frames, NULL), 0);
}

/* The line of a step. */
static json_t *line(const struct reporter_path *p, size_t i)
{
	struct strbuf sb = STRBUF_INIT;
	json_t *o;

	ledger_step(p, i, NULL, 0, &sb);
	o = json_loads(strbuf_str(&sb), 0, NULL);
	assert_non_null(o);
	assert_true(sb.len < 32 << 10);
	strbuf_fini(&sb);
	return o;
}

static void check_line(const struct reporter_path *p, size_t i, int stack,
		       size_t n, const char *no_stack)
{
	json_t *o = line(p, i), *frames = json_object_get(o, "frames"),
	       *number = json_object_get(o, "stack");
	const char *why = json_string_value(json_object_get(o, "no_stack"));

	assert_int_equal(number ? json_integer_value(number) : -1, stack);
	assert_int_equal(json_array_size(frames), n);
	assert_string_equal(why ?: "", no_stack);
	json_decref(o);
}

/* Equal ones are one, with the first step that has it; what has none says why. */
static void test_stacks(void **state)
{
	const struct reporter_segment s[] = {
		wait_at(1007, 0, 10),
		segment(1, 10, 20, ON, 0, 0),
		wait_at(1008, 20, 90),
		wait_at(2007, 90, 100),
		wait_at(ABI_WAIT_SITE_RING, 100, 110),
		wait_at(ABI_WAIT_SITE_NONE, 110, 120),
		wait_at(GONE, 120, 130),
		wait_at(1008, 130, 140),
	};
	struct reporter_path p;
	json_t *o, *f, *want;

	with_stacks(&p, s, ARRAY_SIZE(s));
	assert_int_equal(p.nstacks, 2);
	assert_int_equal(asked, 4);
	check_line(&p, 0, 0, 2, "");
	check_line(&p, 1, -1, 0, "");
	check_line(&p, 2, 1, 2, "");
	check_line(&p, 3, 0, 0, "");
	check_line(&p, 4, -1, 0, "ring");
	check_line(&p, 5, -1, 0, "");
	check_line(&p, 6, -1, 0, "lost");
	check_line(&p, 7, 1, 0, "");
	o = line(&p, 2);
	f = json_array_get(json_object_get(o, "frames"), 0);
	want = json_pack("{s:s, s:s, s:i, s:s, s:b}", "function", "wait_8",
			 "file", "/src/prog.c", "line", 1, "mapping",
			 "/bin/prog", "inlined", 1);
	assert_true(json_equal(f, want));
	assert_null(json_object_get(o, "cut"));
	json_decref(want);
	json_decref(o);
	reporter_path_fini(&p);
}

/* Of many those with most time are given, and their number does not grow. */
static void test_many_stacks(void **state)
{
	static struct reporter_segment s[WHY_STEPS];
	struct reporter_path p;
	uint64_t at = 0;
	size_t with = 0;

	for (size_t i = 0; i < ARRAY_SIZE(s); i++) {
		s[i] = wait_at(ALONE + i, at, at + 1 + i);
		at = s[i].of.end;
	}
	with_stacks(&p, s, ARRAY_SIZE(s));
	assert_int_equal(p.nstacks, REPORTER_STACKS_MAX);
	assert_in_range(asked, REPORTER_STACKS_MAX, 256);
	for (size_t i = 0; i < p.n; i++)
		with += p.steps[i].stack > 0;
	assert_int_equal(with, REPORTER_STACKS_MAX);
	check_line(&p, p.n - 1, REPORTER_STACKS_MAX - 1, 2, "");
	check_line(&p, p.n - REPORTER_STACKS_MAX, 0, 2, "");
	check_line(&p, p.n - REPORTER_STACKS_MAX - 1, -1, 0, "many");
	check_line(&p, 0, -1, 0, "many");
	reporter_path_fini(&p);
}

/* One stack in all steps is given once. */
static void test_one_stack(void **state)
{
	static struct reporter_segment s[WHY_STEPS];
	struct strbuf sb = STRBUF_INIT;
	struct reporter_path p;
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(s); i++)
		s[i] = wait_at(1007, i, i + 1);
	with_stacks(&p, s, ARRAY_SIZE(s));
	assert_int_equal(p.nstacks, 1);
	for (size_t i = 0; i < p.n; i++)
		ledger_step(&p, i, NULL, 0, &sb);
	for (const char *t = strbuf_str(&sb); (t = strstr(t, "wait_7")); t++)
		n++;
	assert_int_equal(n, 1);
	strbuf_fini(&sb);
	reporter_path_fini(&p);
}

static void check_cut(uint64_t site, size_t n)
{
	const struct reporter_segment s[] = { wait_at(site, 0, 10) };
	struct reporter_path p;
	json_t *o;

	with_stacks(&p, s, ARRAY_SIZE(s));
	o = line(&p, 0);
	assert_int_equal(json_array_size(json_object_get(o, "frames")), n);
	assert_true(json_is_true(json_object_get(o, "cut")));
	json_decref(o);
	reporter_path_fini(&p);
}

/* A stack that is too deep, or whose names are too long, is cut, and says so. */
static void test_cut_stack(void **state)
{
	memset(long_name, 'x', sizeof(long_name) - 1);
	check_cut(DEEP, REPORTER_STACK_FRAMES);
	check_cut(LONG, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_server),
		cmocka_unit_test(test_unrecorded),
		cmocka_unit_test(test_interrupts),
		cmocka_unit_test(test_delivery),
		cmocka_unit_test(test_clipped),
		cmocka_unit_test(test_open),
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_circle),
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_stacks),
		cmocka_unit_test(test_many_stacks),
		cmocka_unit_test(test_one_stack),
		cmocka_unit_test(test_cut_stack),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
