// SPDX-License-Identifier: Apache-2.0
/* When profd is well, degraded or failing; and the limits of users. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/base.h"
#include "profiler/health.h"
#include "profiler/limits.h"
#include "reporter/health.h"
#include "reporter/internal.h"

#define SEC CLOCK_NSEC_PER_SEC
#define PERIOD (60 * SEC)

static struct {
	struct health h;
	uint64_t now, losses[LOSS_MAX], samples, passed;
	struct reporter_health out;
} t;

static int setup(void **state)
{
	memset(&t, 0, sizeof(t));
	t.now = 1000 * SEC;
	return 0;
}

/* Seconds in which all goes as it should. */
static void seconds(unsigned int n)
{
	while (n--) {
		t.now += SEC;
		t.passed += SEC;
		t.samples += 100;
		health_tick(&t.h, t.now, t.losses, t.samples, t.passed, PERIOD);
	}
}

static size_t reasons(void)
{
	t.out.n = 0;
	health_report(&t.h, &t.out);
	return t.out.n;
}

static void all_is_well(void **state)
{
	/* What was lost before anybody looked is not lost in its time. */
	t.losses[LOSS_NOMEM] = 7;
	seconds(1);
	assert_int_equal(reasons(), 0);
	seconds(200);
	assert_int_equal(reasons(), 0);
}

/* Any user can have them, and some writers have nothing else. */
static void samples_without_their_trace_degrade_nothing(void **state)
{
	seconds(30);
	t.losses[LOSS_TRACE_TORN] += 5;
	t.losses[LOSS_TRACE_UNREAD] += 5;
	t.losses[LOSS_TRACE_FULL] += 5;
	t.losses[LOSS_TRACE_USER] += 5;
	seconds(1);
	assert_int_equal(reasons(), 0);
}

static void a_loss_degrades_until_a_clean_period(void **state)
{
	static const enum loss some[] = { LOSS_RING_FULL, LOSS_TABLES_LATE,
					  LOSS_NAMES_LATE, LOSS_MAPPING };
	size_t i;

	seconds(30);
	for (i = 0; i < ARRAY_SIZE(some); i++)
		t.losses[some[i]] += 5;
	seconds(1);
	assert_int_equal(reasons(), ARRAY_SIZE(some));
	for (i = 0; i < t.out.n; i++) {
		assert_false(t.out.reasons[i].failing);
		assert_non_null(strstr(t.out.reasons[i].text, ": 5"));
	}
	assert_string_equal(t.out.reasons[0].text,
			    "samples lost: ring full: 5");
	/* The rest of its period, and a clean one. */
	seconds(60);
	assert_int_equal(reasons(), ARRAY_SIZE(some));
	seconds(60);
	assert_int_equal(reasons(), 0);
}

static void a_few_missing_samples_are_no_loss(void **state)
{
	seconds(30);
	t.losses[LOSS_MISSED] += 10;
	seconds(1);
	assert_int_equal(reasons(), 0);
	t.losses[LOSS_MISSED] += 100;
	seconds(1);
	assert_int_equal(reasons(), 1);
	assert_false(t.out.reasons[0].failing);
}

static void no_samples_of_busy_cpus_is_a_failure(void **state)
{
	unsigned int i;

	seconds(30);
	for (i = 0; i < 30; i++) {
		t.samples -= 100; /* none */
		t.losses[LOSS_MISSED] += 100;
		seconds(1);
	}
	assert_true(reasons() >= 1);
	assert_true(t.out.reasons[0].failing);
	assert_non_null(strstr(t.out.reasons[0].text, "no samples come"));
	/* They come again. */
	seconds(20);
	assert_true(reasons() >= 1);
	assert_false(t.out.reasons[0].failing);
	seconds(120);
	assert_int_equal(reasons(), 0);
	/* An idle host has none either. */
	for (i = 0; i < 30; i++) {
		t.samples -= 100;
		seconds(1);
	}
	assert_int_equal(reasons(), 0);
}

static void samples_that_are_not_handed_on_are_a_failure(void **state)
{
	unsigned int i;

	seconds(30);
	for (i = 0; i < 30; i++) {
		t.passed -= SEC;
		seconds(1);
	}
	assert_int_equal(reasons(), 1);
	assert_true(t.out.reasons[0].failing);
	seconds(20);
	assert_int_equal(reasons(), 0);
}

/* --- limits ---------------------------------------------------------------- */

static uint64_t count_of(const struct limits *l, uint32_t uid, enum limit what)
{
	size_t i;

	for (i = 0; i < l->n; i++)
		if (l->users[i].uid == uid)
			return l->users[i].counts[what];
	return 0;
}

static void limits_are_kept_by_user_and_bounded(void **state)
{
	static struct limits l;
	uint64_t sum = 0;
	uint32_t uid;
	size_t i;

	limits_note(&l, 65534, LIMIT_CONNECTIONS, 500);
	limits_note(&l, 65534, LIMIT_ARGUMENTS, 5);
	limits_note(&l, 65534, LIMIT_CONNECTIONS, 1);
	limits_note(&l, 0, LIMIT_CONNECTIONS, 2);
	assert_int_equal(count_of(&l, 65534, LIMIT_CONNECTIONS), 501);
	assert_int_equal(count_of(&l, 65534, LIMIT_ARGUMENTS), 5);
	assert_int_equal(count_of(&l, 0, LIMIT_CONNECTIONS), 2);
	/* As many users as one may have by subordinate ids. */
	for (uid = 100000; uid < 165536; uid++)
		limits_note(&l, uid, LIMIT_CONNECTIONS, 3);
	assert_int_equal(l.n, LIMITS_USERS);
	assert_int_equal(count_of(&l, 65534, LIMIT_CONNECTIONS), 501);
	assert_int_equal(count_of(&l, 165535, LIMIT_CONNECTIONS), 3);
	for (i = 0; i <= LIMITS_USERS; i++)
		sum += l.users[i].counts[LIMIT_CONNECTIONS];
	assert_int_equal(sum, 501 + 2 + 3 * 65536);
}

static void collect(void *arg, struct reporter_metrics *m)
{
	limits_collect(arg, m);
	limits_collect_unnamed(m, "moves", "moves", 9);
	limits_collect_unnamed(m, "wakeups", "wake-ups", 0);
}

static void has(struct reporter *r, enum metrics_form form, const char *text)
{
	size_t len;
	char *s = metrics_text(r, form, &len);

	assert_non_null(s);
	if (!strstr(s, text))
		fail_msg("no \"%s\" in: %s", text, s);
	free(s);
}

static void limits_are_told_with_their_users(void **state)
{
	static const struct reporter_event_type cpu = {
		.name = "cpu",
		.label = "the CPU clock",
		.count = { "samples", "count" },
	};
	static struct limits l;
	struct reporter *r;
	struct reporter_opts o = { .hostname = "h",
				   .version = "1",
				   .freq_hz = 99,
				   .event_types = &cpu,
				   .nevent_types = 1,
				   .window_s = 60,
				   .collect = collect,
				   .arg = &l };
	const char *where;
	uv_loop_t loop;
	size_t len;
	char *s;

	limits_note(&l, 65534, LIMIT_STACKS, 4);
	assert_int_equal(uv_loop_init(&loop), 0);
	o.loop = &loop;
	assert_int_equal(reporter_new(&r, &o, &where), 0);
	has(r, METRICS_TEXT,
	    "\nlimited: uid 65534, copies of deep stacks, 4 times\n");
	has(r, METRICS_TEXT, "\nlimited: all users, moves, 9 times\n");
	has(r, METRICS_JSON, "{\"uid\":65534,\"what\":\"stacks\",\"n\":4}");
	has(r, METRICS_JSON, "{\"what\":\"moves\",\"n\":9}");
	has(r, METRICS_PROMETHEUS,
	    "\nprofd_limited_total{what=\"stacks\"} 4\n");
	s = metrics_text(r, METRICS_TEXT, &len);
	assert_null(strstr(s, "wake-ups"));
	free(s);
	reporter_free(r);
	uv_run(&loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(&loop), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup(name, setup)
		T(all_is_well),
		T(samples_without_their_trace_degrade_nothing),
		T(a_loss_degrades_until_a_clean_period),
		T(a_few_missing_samples_are_no_loss),
		T(no_samples_of_busy_cpus_is_a_failure),
		T(samples_that_are_not_handed_on_are_a_failure),
		T(limits_are_kept_by_user_and_bounded),
		T(limits_are_told_with_their_users),
#undef T
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
