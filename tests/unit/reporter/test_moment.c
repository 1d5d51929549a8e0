// SPDX-License-Identifier: Apache-2.0
/* Times and durations as people write them. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include "base/base.h"
#include "reporter/request/moment.h"

#define S 1000000000LL
/* 2026-11-23T12:00:00.5Z, which is 14:00 in the zone of this test. */
#define NOW (1795435200LL * S + S / 2)

static void moments(void **state)
{
	static const struct {
		const char *text;
		bool local;
		int64_t want; /* -1: refused */
	} cases[] = {
		{ "now", false, NOW },
		{ "90", false, NOW - 90 * S },
		{ "-90", false, NOW - 90 * S },
		{ "-10m", false, NOW - 600 * S },
		{ "1.5h", false, NOW - 5400 * S },
		{ "200ms", false, NOW - S / 5 },
		{ "7d", false, NOW - 7 * 86400 * S },
		{ "99999d", false, -1 },
		{ "10x", false, -1 },
		{ "--1", false, -1 },
		{ "", true, -1 },
		{ "-", true, -1 },
		{ "@1795435200.25", false, 1795435200LL * S + S / 4 },
		{ "@0", true, 0 },
		{ "@99", true, 99 * S },
		{ "@", true, -1 },
		{ "@-1", true, -1 },
		{ "@@1", true, -1 },
		{ "1795435200", false, 1795435200LL * S },
		{ "1795435200.25", false, 1795435200LL * S + S / 4 },
		{ "1795435200.1234567891", false, 1795435200123456789LL },
		{ "9999999999", false, -1 },
		{ "1795435200x", false, -1 },
		{ "2026-11-23T12:00:00Z", false, 1795435200LL * S },
		{ "2026-11-23T12:00:00.5Z", false, NOW },
		{ "2026-11-23 13:00:00+01:00", false, 1795435200LL * S },
		{ "2026-11-23T06:30-0530", false, 1795435200LL * S },
		{ "2026-11-23T12:00:00", false, -1 },
		{ "2026-11-23T14:00:00", true, 1795435200LL * S },
		{ "2026-11-23 14:00", true, 1795435200LL * S },
		{ "2026-11-23", true, (1795435200LL - 14 * 3600) * S },
		{ "2026-11-23Z", false, (1795435200LL - 12 * 3600) * S },
		{ "14:00", true, 1795435200LL * S },
		{ "14:00:00.25", true, 1795435200LL * S + S / 4 },
		{ "14:00", false, -1 },
		/* Not in the future: that of yesterday. */
		{ "14:01", true, (1795435260LL - 86400) * S },
		{ "24:00", true, -1 },
		{ "14:60", true, -1 },
		{ "14:00:61", true, -1 },
		{ "14:00Z", true, -1 },
		{ "2026-13-23T12:00:00Z", false, -1 },
		{ "2026-11-32T12:00:00Z", false, -1 },
		{ "1969-11-23T12:00:00Z", false, -1 },
		{ "2262-11-23T12:00:00Z", false, -1 },
		{ "2026-11-23T12:00:00+25:00", false, -1 },
		{ "2026-11-23T12:00:00.Z", false, -1 },
		{ "2026-11-23T12:00:00Z ", false, -1 },
		{ "yesterday", true, -1 },
	};
	int64_t got;
	int err;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		err = reporter_moment_parse(cases[i].text, NOW, cases[i].local,
					    &got);
		if (err)
			got = -1;
		if (got != cases[i].want)
			print_message("%s: %lld\n", cases[i].text,
				      (long long)got);
		assert_int_equal(got, cases[i].want);
	}
}

static void durations(void **state)
{
	static const struct {
		const char *text;
		int64_t want;
	} cases[] = {
		{ "1", S },	      { "0.25s", S / 4 },
		{ "10m", 600 * S },   { "-1s", -1 },
		{ "", -1 },	      { ".5s", -1 },
		{ "1h30m", -1 },      { "1.5d", 129600 * S },
		{ "999999999d", -1 }, { "14:00", -1 },
	};
	int64_t got;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		if (reporter_duration_parse(cases[i].text, &got))
			got = -1;
		assert_int_equal(got, cases[i].want);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(moments),
		cmocka_unit_test(durations),
	};

	setenv("TZ", "EET-2", 1);
	tzset();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
