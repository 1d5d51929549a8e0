// SPDX-License-Identifier: Apache-2.0
/*
 * moment: times as people write them; see moment.h. Absolute ones are
 * those of RFC 3339, with less of it: a date alone, no seconds, a blank for the T.
 */
#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/base.h"
#include "reporter/request/moment.h"

#define MOMENT_EPOCH_MIN 100000000 /* seconds */
#define MOMENT_AGO_MAX (INT64_MAX / 4) /* 73 years */
#define MOMENT_YEAR_MIN 1970
#define MOMENT_YEAR_MAX 2261 /* the last whole one of 64 bits of nanoseconds */

static const int64_t moment_second = (int64_t)CLOCK_NSEC_PER_SEC;

/* Digits, from 'least' to 'most' of them; false: others. */
static bool moment_digits(const char **p, int least, int most, int64_t *out)
{
	int n = 0;

	for (*out = 0; n < most && isdigit((unsigned char)**p); n++)
		*out = *out * 10 + (*(*p)++ - '0');
	return n >= least;
}

static bool moment_char(const char **p, char c)
{
	if (**p != c)
		return false;
	(*p)++;
	return true;
}

/* ".123" of a second; nothing is 0. Digits after the ninth count nothing. */
static bool moment_fraction(const char **p, int64_t *ns)
{
	int64_t unit = moment_second / 10;

	*ns = 0;
	if (!moment_char(p, '.'))
		return true;
	if (!isdigit((unsigned char)**p))
		return false;
	for (; isdigit((unsigned char)**p); (*p)++, unit /= 10)
		*ns += (**p - '0') * unit;
	return true;
}

/* Seconds since 1970; without '@' a low number is how long ago. */
static bool moment_epoch(const char *p, int64_t *out)
{
	bool at = moment_char(&p, '@');
	int64_t v, ns;

	if (!moment_digits(&p, at ? 1 : 9, 10, &v) ||
	    !moment_fraction(&p, &ns) || *p || (!at && v < MOMENT_EPOCH_MIN) ||
	    v >= INT64_MAX / moment_second)
		return false;
	*out = v * moment_second + ns;
	return true;
}

int reporter_duration_parse(const char *text, int64_t *out)
{
	static const struct {
		const char *suffix;
		int64_t ns;
	} units[] = {
		{ "", CLOCK_NSEC_PER_SEC },
		{ "ms", CLOCK_NSEC_PER_MSEC },
		{ "s", CLOCK_NSEC_PER_SEC },
		{ "m", 60 * CLOCK_NSEC_PER_SEC },
		{ "h", 3600 * CLOCK_NSEC_PER_SEC },
		{ "d", 86400 * CLOCK_NSEC_PER_SEC },
	};
	int64_t v, ns;
	size_t i = 0;

	if (!moment_digits(&text, 1, 9, &v) || !moment_fraction(&text, &ns))
		return -EINVAL;
	while (i < ARRAY_SIZE(units) && strcmp(units[i].suffix, text) != 0)
		i++;
	if (i == ARRAY_SIZE(units) || v >= MOMENT_AGO_MAX / units[i].ns)
		return -EINVAL;
	/* A unit is a multiple of 10^6 ns: nothing is lost, nothing overflows. */
	*out = v * units[i].ns + ns / 1000 * (units[i].ns / 1000) / 1000;
	return 0;
}

static bool moment_date(const char **p, struct tm *tm)
{
	int64_t year, month, day;

	if (!moment_digits(p, 4, 4, &year) || !moment_char(p, '-') ||
	    !moment_digits(p, 2, 2, &month) || !moment_char(p, '-') ||
	    !moment_digits(p, 2, 2, &day))
		return false;
	tm->tm_year = (int)year - 1900;
	tm->tm_mon = (int)month - 1;
	tm->tm_mday = (int)day;
	return year >= MOMENT_YEAR_MIN && year <= MOMENT_YEAR_MAX && month &&
	       month <= 12 && day && day <= 31;
}

/* "14:30", "14:30:05.25". */
static bool moment_clock(const char **p, struct tm *tm, int64_t *ns)
{
	int64_t hour, minute, second = 0;

	*ns = 0;
	if (!moment_digits(p, 2, 2, &hour) || !moment_char(p, ':') ||
	    !moment_digits(p, 2, 2, &minute))
		return false;
	if (moment_char(p, ':') &&
	    (!moment_digits(p, 2, 2, &second) || !moment_fraction(p, ns)))
		return false;
	tm->tm_hour = (int)hour;
	tm->tm_min = (int)minute;
	tm->tm_sec = (int)second;
	return hour < 24 && minute < 60 && second <= 60;
}

/* "Z", "+01:00", "-0530": the offset; *zoned: there is one. */
static bool moment_zone(const char **p, bool *zoned, int64_t *offset)
{
	int64_t hours, minutes, sign = **p == '-' ? -1 : 1;

	*zoned = **p;
	*offset = 0;
	if (!*zoned || moment_char(p, 'Z'))
		return true;
	if (!moment_char(p, '+') && !moment_char(p, '-'))
		return false;
	if (!moment_digits(p, 2, 2, &hours))
		return false;
	moment_char(p, ':');
	if (!moment_digits(p, 2, 2, &minutes))
		return false;
	*offset = sign * (hours * 3600 + minutes * 60);
	return hours < 24 && minutes < 60;
}

/* The time of 'tm'; without a date the last such time, of today or of yesterday. */
static int64_t moment_local(struct tm *tm, bool dated, int64_t now)
{
	struct tm copy = *tm;
	int64_t t;

	copy.tm_isdst = -1;
	t = mktime(&copy);
	if (dated || t <= now / moment_second)
		return t;
	tm->tm_mday--;
	tm->tm_isdst = -1;
	return mktime(tm);
}

static bool moment_absolute(const char *p, int64_t now, bool local,
			    int64_t *out)
{
	time_t today = now / moment_second;
	bool dated = strlen(p) > 4 && p[4] == '-', clock, zoned = false;
	int64_t ns = 0, offset = 0, t;
	struct tm tm;

	localtime_r(&today, &tm);
	tm.tm_hour = tm.tm_min = tm.tm_sec = 0;
	if (dated && !moment_date(&p, &tm))
		return false;
	clock = !dated || moment_char(&p, 'T') || moment_char(&p, ' ');
	if (clock && !moment_clock(&p, &tm, &ns))
		return false;
	/* A clock in a zone is of some day there: that has to be given. */
	if (dated && !moment_zone(&p, &zoned, &offset))
		return false;
	if (*p || (!zoned && !local))
		return false;
	t = zoned ? timegm(&tm) - offset : moment_local(&tm, dated, now);
	if (t < 0 || t >= INT64_MAX / moment_second)
		return false;
	*out = t * moment_second + ns;
	return true;
}

int reporter_moment_parse(const char *text, int64_t now, bool local,
			  int64_t *out)
{
	int64_t ago = 0;

	if (moment_epoch(text, out) || moment_absolute(text, now, local, out))
		return 0;
	if (strcmp(text, "now") != 0 &&
	    reporter_duration_parse(text + (*text == '-'), &ago))
		return -EINVAL;
	*out = MAX(now - ago, 0);
	return 0;
}
