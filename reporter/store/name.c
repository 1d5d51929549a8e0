// SPDX-License-Identifier: Apache-2.0
/* name: see reporter/store/name.h. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/base.h"
#include "reporter/store/name.h"

#define NAME_CPU "cpu-"
#define NAME_WAIT "wait-"
#define NAME_TMP ".tmp"
#define NAME_HOST_MAX 64
#define NAME_DIGITS_MAX 8 /* of a duration or a copy */
#define NAME_TIME "20261123T110000Z"

/*
 * A window begins at a boundary of the wall clock as it was when the window was
 * opened. By its end the clock may have been slewed, 500 ppm at most (adjtimex(2)):
 * an hour later that is 1.8 s, a minute later 30 ms.
 */
#define NAME_SLACK_NS (50 * CLOCK_NSEC_PER_MSEC)

/* No name that begins with one prefix begins with the other. */
static const struct {
	const char *prefix, *ending;
} name_kinds[] = {
#define X(name, ending)                          \
	[STORE_##name] = { NAME_CPU, (ending) }, \
	[STORE_WAIT_##name] = { NAME_WAIT, (ending) },
	REPORTER_FORMATS(X)
#undef X
		[STORE_TIMES] = { NAME_CPU, STORE_TIMES_ENDING },
	[STORE_WAIT_TIMES] = { NAME_WAIT, STORE_TIMES_ENDING },
};

void store_file(char name[STORE_FILE_MAX], const char *stem,
		enum store_kind kind)
{
	snprintf(name, STORE_FILE_MAX, "%s%s%s", name_kinds[kind].prefix,
		 stem + strlen(NAME_CPU), name_kinds[kind].ending);
}

void store_name_stem(const struct store_name *n, const char *name,
		     char stem[STORE_STEM_MAX])
{
	size_t prefix = strlen(name_kinds[n->kind].prefix);

	snprintf(stem, STORE_STEM_MAX, NAME_CPU "%.*s", (int)(n->stem - prefix),
		 name + prefix);
}

/* The last 'sep' of the first 'len' bytes; -1: none. */
static int name_last(const char *s, size_t len, char sep)
{
	while (len-- > 0)
		if (s[len] == sep)
			return (int)len;
	return -1;
}

/* A number that fills s[from, to). */
static bool name_number(const char *s, size_t from, size_t to, uint64_t *out)
{
	if (from >= to || to - from > NAME_DIGITS_MAX)
		return false;
	for (*out = 0; from < to; from++) {
		if (!isdigit((unsigned char)s[from]))
			return false;
		*out = *out * 10 + (s[from] - '0');
	}
	return true;
}

static bool name_time(const char *s, int64_t *out)
{
	uint64_t part[6];
	size_t i, at = 0;
	struct tm tm;

	for (i = 0; i < ARRAY_SIZE(part); i++) {
		size_t len = i ? 2 : 4;

		if (i == 3 && s[at++] != 'T')
			return false;
		if (!name_number(s, at, at + len, &part[i]))
			return false;
		at += len;
	}
	if (s[at] != 'Z' || part[1] < 1 || part[1] > 12 || part[2] < 1 ||
	    part[2] > 31 || part[3] > 23 || part[4] > 59 || part[5] > 60)
		return false;
	tm = (struct tm){ .tm_year = (int)part[0] - 1900,
			  .tm_mon = (int)part[1] - 1,
			  .tm_mday = (int)part[2],
			  .tm_hour = (int)part[3],
			  .tm_min = (int)part[4],
			  .tm_sec = (int)part[5] };
	*out = timegm(&tm);
	return true;
}

/* The stem, from its end: the host may have any of the separators. */
static bool name_parse_stem(const char *s, size_t len, struct store_name *out)
{
	const size_t time_len = strlen(NAME_TIME);
	const size_t prefix = strlen(name_kinds[out->kind].prefix);
	int dash = name_last(s, len, '-');
	uint64_t copy;

	if (len - prefix + strlen(NAME_CPU) >= STORE_STEM_MAX)
		return false;
	if (dash > 0 && name_number(s, dash + 1, len, &copy)) {
		out->copy = copy;
		len = dash;
		dash = name_last(s, len, '-');
	}
	if (dash < 0 || s[len - 1] != 's' ||
	    !name_number(s, dash + 1, len - 1, &out->seconds))
		return false;
	len = dash;
	/* At least a byte of the host, and a dash behind it. */
	return len >= prefix + 2 + time_len && s[len - time_len - 1] == '-' &&
	       name_time(s + len - time_len, &out->begin);
}

/* Strips the ending of a temporary file, ".0badcafe.tmp". */
static bool name_is_tmp(const char *name, size_t *len)
{
	size_t tail = strlen(NAME_TMP);
	int dot;

	if (*len <= tail || memcmp(name + *len - tail, NAME_TMP, tail))
		return false;
	dot = name_last(name, *len - tail, '.');
	if (dot < 0 ||
	    strspn(name + dot + 1, "0123456789abcdef") != *len - tail - dot - 1)
		return false;
	*len = dot;
	return true;
}

bool store_name_parse(const char *name, struct store_name *out)
{
	size_t i, n, len = strlen(name);

	memset(out, 0, sizeof(*out));
	out->tmp = name_is_tmp(name, &len);
	for (i = 0; i < ARRAY_SIZE(name_kinds); i++) {
		n = strlen(name_kinds[i].ending);
		if (len > n + strlen(name_kinds[i].prefix) &&
		    !strncmp(name, name_kinds[i].prefix,
			     strlen(name_kinds[i].prefix)) &&
		    !memcmp(name + len - n, name_kinds[i].ending, n))
			break;
	}
	if (i == ARRAY_SIZE(name_kinds))
		return false;
	out->kind = i;
	out->stem = len - n;
	return name_parse_stem(name, out->stem, out);
}

bool store_day_parse(const char *name)
{
	static const char digits[] = "9999-99-99";
	size_t i;

	for (i = 0; i < STORE_DAY_MAX - 1; i++)
		if (digits[i] == '9' ? !isdigit((unsigned char)name[i])
				     : name[i] != digits[i])
			return false;
	return !name[i];
}

static void name_format(char *buf, size_t len, const char *format,
			int64_t wall_ns)
{
	time_t sec = (wall_ns + (int64_t)NAME_SLACK_NS) /
		     (int64_t)CLOCK_NSEC_PER_SEC;
	struct tm tm;

	gmtime_r(&sec, &tm);
	strftime(buf, len, format, &tm);
}

void store_day(char day[STORE_DAY_MAX], int64_t wall_ns)
{
	name_format(day, STORE_DAY_MAX, "%Y-%m-%d", wall_ns);
}

void store_stem(char stem[STORE_STEM_MAX], const char *host, int64_t wall_ns,
		uint64_t duration_ns)
{
	uint64_t len =
		(duration_ns + CLOCK_NSEC_PER_SEC / 2) / CLOCK_NSEC_PER_SEC;
	char name[NAME_HOST_MAX + 1], when[32];
	size_t i;

	for (i = 0; host[i] && i < NAME_HOST_MAX; i++)
		name[i] = isalnum((unsigned char)host[i]) ||
					  strchr("._-", host[i])
				  ? host[i]
				  : '_';
	name[i] = '\0';
	name_format(when, sizeof(when), "%Y%m%dT%H%M%SZ", wall_ns);
	snprintf(stem, STORE_STEM_MAX, NAME_CPU "%s-%s-%llus", name, when,
		 (unsigned long long)MAX(len, 1));
}
