// SPDX-License-Identifier: Apache-2.0
/* libquark: order of records, entity ids, argument lists, text, copies. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "processmanager/quark/event.c"
#include "processmanager/quark/order.c"
#include "processmanager/quark/record.c"

static struct vault *vault;
static struct pool records = { .size = sizeof(struct quark_record) };

static void add(struct quark_order *o, uint64_t time, uint32_t mark)
{
	struct quark_raw *raw =
		quark_raw_new(vault, mark, time, &mark, sizeof(mark));

	assert_non_null(raw);
	quark_order_add(o, raw);
}

static uint32_t pop(struct quark_order *o, uint64_t *time)
{
	struct quark_raw *raw = quark_order_pop(o);
	uint32_t mark;

	assert_non_null(raw);
	*time = raw->time;
	mark = raw->kind;
	vault_give(raw);
	return mark;
}

static void test_order(void **state)
{
	struct quark_order o;
	uint64_t time, last = 0;
	unsigned int seed = 1;
	uint32_t i, mark;

	assert_int_equal(vault_new(&vault), 0);
	quark_order_init(&o);
	add(&o, 20, 1);
	add(&o, 10, 2);
	add(&o, 20, 3); /* records of equal times keep their order */
	add(&o, 15, 4);
	mark = pop(&o, &time);
	assert_int_equal(mark, 2);
	assert_int_equal(pop(&o, &time), 4);
	assert_int_equal(pop(&o, &time), 1);
	assert_int_equal(pop(&o, &time), 3);
	assert_null(quark_order_pop(&o));
	for (i = 0; i < 1000; i++)
		add(&o, rand_r(&seed) % 500, i);
	assert_int_equal(o.count, 1000);
	for (i = 0; i < 900; i++) {
		pop(&o, &time);
		assert_true(time >= last);
		last = time;
	}
	quark_order_fini(&o);
	assert_int_equal(o.count, 0);
	vault_free(vault);
}

static void test_entity_id(void **state)
{
	char id[17];

	/* base64 of 01 02 03 04, 05 06 07 08 09 0a 0b 0c */
	quark_entity_id(id, 0x04030201, 0x0c0b0a0908070605ULL);
	assert_string_equal(id, "AQIDBAUGBwgJCgsM");
	quark_entity_id(id, UINT32_MAX, UINT64_MAX);
	assert_string_equal(id, "////////////////");
}

static void test_cmdline(void **state)
{
	struct quark_cmdline_iter it;

	quark_cmdline_iter_init(&it, "a\0\0b c\0", 7);
	assert_string_equal(quark_cmdline_iter_next(&it), "a");
	assert_string_equal(quark_cmdline_iter_next(&it), "");
	assert_string_equal(quark_cmdline_iter_next(&it), "b c");
	assert_null(quark_cmdline_iter_next(&it));
	assert_null(quark_cmdline_iter_next(&it));
	/* Cut in the middle of an argument. */
	quark_cmdline_iter_init(&it, "ab\0cd", 5);
	assert_string_equal(quark_cmdline_iter_next(&it), "ab");
	assert_string_equal(quark_cmdline_iter_next(&it), "cd");
	assert_null(quark_cmdline_iter_next(&it));
	quark_cmdline_iter_init(&it, NULL, 12);
	assert_null(quark_cmdline_iter_next(&it));
}

static struct quark_span span(const char *s)
{
	return (struct quark_span){ s, strlen(s) };
}

static struct quark_record *sample(void)
{
	struct quark_spans init = {
		.exe = span("/bin/a\033[31m"),
		.cmdline = { "a\0two\nlines", 12 },
		.cwd = span("/"),
	};
	struct quark_record *r = quark_record_new(&records);

	assert_non_null(r);
	quark_record_set_strings(r, quark_strings_new(&init));
	r->p.pid = 7;
	strcpy(r->p.comm, "a");
	return r;
}

static void test_strings_shared(void **state)
{
	struct quark_record *r = sample(), *c = quark_record_copy(r);

	assert_ptr_equal(r->p.exe, c->p.exe);
	assert_null(c->p.cgroup);
	assert_null(c->p.env);
	quark_record_put(r);
	assert_string_equal(c->p.cwd, "/");
	quark_record_put(c);
}

static char *dump(const struct quark_event *ev)
{
	char *buf = NULL;
	size_t size;
	FILE *f = open_memstream(&buf, &size);

	assert_int_equal(quark_event_dump(ev, f), 0);
	fclose(f);
	return buf;
}

static void test_dump(void **state)
{
	struct quark_record *r = sample();
	struct quark_event ev = {
		.events = QUARK_EV_FORK | QUARK_EV_EXEC | QUARK_EV_EXIT,
		.process = &r->p,
		.time = 5,
	};
	char *s;

	r->p.flags = QUARK_F_EXIT;
	r->p.wait_status = 11 | 0x80;
	r->p.exit_code = 139;
	s = dump(&ev);
	assert_non_null(strstr(s, "->7 (FORK+EXEC+EXIT)\n"));
	assert_non_null(strstr(s, "[ a, two\\x0alines ]"));
	assert_non_null(strstr(s, "exit_code=139 signal=11 core"));
	/* Control characters of a file's name do not reach the terminal. */
	assert_null(strchr(s, '\033'));
	free(s);
	memset(&ev, 0, sizeof(ev));
	ev.events = QUARK_EV_GAP;
	ev.gap_lost = 3;
	ev.gap_kinds = QUARK_EV_EXEC | QUARK_EV_REAP;
	s = dump(&ev);
	assert_non_null(strstr(s, "->0 (GAP)\n"));
	assert_non_null(strstr(s, "LOST\t3 from=0 to=0 kinds=EXEC+REAP\n"));
	free(s);
	quark_record_put(r);
}

static void test_dump_full(void **state)
{
	struct quark_event ev = { .events = QUARK_EV_GAP };
	FILE *f = fopen("/dev/full", "w");

	assert_non_null(f);
	setvbuf(f, NULL, _IONBF, 0);
	assert_int_equal(quark_event_dump(&ev, f), -1);
	fclose(f);
}

static void test_dup(void **state)
{
	struct quark_record *r = sample();
	struct quark_event ev = { .events = QUARK_EV_EXEC, .process = &r->p };
	struct quark_event *copy = quark_event_dup(&ev);
	struct quark_process *p = quark_process_dup(&r->p);

	quark_record_put(r);
	assert_string_equal(copy->process->exe, "/bin/a\033[31m");
	assert_int_equal(copy->process->cmdline_len, 12);
	assert_memory_equal(copy->process->cmdline, "a\0two\nlines", 12);
	assert_null(copy->process->env);
	assert_string_equal(p->cwd, "/");
	free(copy); /* one block: valgrind knows */
	free(p);
	memset(&ev, 0, sizeof(ev));
	copy = quark_event_dup(&ev);
	assert_null(copy->process);
	free(copy);
}

/* Into the caller's memory: nothing is written if it is too small. */
static void test_copy(void **state)
{
	struct quark_record *r = sample();
	struct quark_event ev = { .events = QUARK_EV_EXEC, .process = &r->p };
	size_t need = quark_event_copy(&ev, NULL, 0), i;
	struct quark_event *copy = malloc(need);
	unsigned char *bytes = (void *)copy;

	memset(copy, 0xaa, need);
	assert_int_equal(quark_event_copy(&ev, copy, need - 1), need);
	for (i = 0; i < need; i++)
		assert_int_equal(bytes[i], 0xaa);
	assert_int_equal(quark_event_copy(&ev, copy, need), need);
	quark_record_put(r);
	assert_string_equal(copy->process->exe, "/bin/a\033[31m");
	assert_memory_equal(copy->process->cmdline, "a\0two\nlines", 12);
	free(copy);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_entity_id),
		cmocka_unit_test(test_cmdline),
		cmocka_unit_test(test_strings_shared),
		cmocka_unit_test(test_dump),
		cmocka_unit_test(test_dump_full),
		cmocka_unit_test(test_dup),
		cmocka_unit_test(test_copy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
