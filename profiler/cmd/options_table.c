// SPDX-License-Identifier: Apache-2.0
/* options_table: the table, and how text becomes a value of each type. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <time.h>

#include "profiler/cmd/options_table.h"

/* The words that options.def uses. */
#define KEY true
#define NO_KEY false
enum {
#define X(name, word, args, help) name = OPTIONS_##name,
	OPTIONS_COMMANDS(X)
#undef X
};

const struct options_entry options_table[OPTIONS_ID_MAX] = {
#define OPTION(id, name, key, type, letter, commands, lowest, highest, \
	       metavar, def, help)                                     \
	[OPTIONS_ID_##id] = {                                          \
		name,                                                  \
		key,                                                   \
		OPTIONS_TYPE_##type,                                   \
		letter,                                                \
		commands,                                              \
		lowest,                                                \
		highest,                                               \
		metavar,                                               \
		def,                                                   \
		help,                                                  \
		offsetof(struct options, id),                          \
	},
#include "profiler/cmd/options.def"
#undef OPTION
};

const struct options_command_entry options_commands[OPTIONS_COMMAND_MAX] = {
#define X(name, word, args, help) [OPTIONS_BIT_##name] = { #word, args, help },
	OPTIONS_COMMANDS(X)
#undef X
};

const struct options_entry *options_find(enum options_command cmd,
					 const char *name)
{
	size_t i;

	for (i = 0; i < OPTIONS_ID_MAX; i++)
		if (options_table[i].commands & 1U << cmd &&
		    !strcmp(options_table[i].name, name))
			return &options_table[i];
	return NULL;
}

const struct options_entry *options_key(const char *name)
{
	size_t i;

	for (i = 0; i < OPTIONS_ID_MAX; i++)
		if (options_table[i].key &&
		    !strcmp(options_table[i].name, name))
			return &options_table[i];
	return NULL;
}

/* --- numbers --------------------------------------------------------------*/

struct unit {
	const char *suffix;
	uint64_t factor;
};

static const struct unit units_none[] = { { "", 1 }, { NULL, 0 } };
static const struct unit units_size[] = {
	{ "", 1 }, { "K", 1 << 10 }, { "M", 1 << 20 }, { NULL, 0 }
};
static const struct unit units_time[] = {
	{ "", 1 }, { "s", 1 }, { "m", 60 }, { "h", 3600 }, { NULL, 0 }
};

/* Digits and a unit, within the entry's range. */
static int options_parse_number(const struct options_entry *e, const char *text,
				const struct unit *unit, uint64_t *out)
{
	unsigned long long v;
	char *end;

	if (!isdigit((unsigned char)*text))
		return -EINVAL;
	errno = 0;
	v = strtoull(text, &end, 10);
	if (errno)
		return -EINVAL;
	while (unit->suffix && strcmp(unit->suffix, end))
		unit++;
	if (!unit->suffix || __builtin_mul_overflow(v, unit->factor, &v))
		return -EINVAL;
	if (v < e->lowest || v > e->highest)
		return -EINVAL;
	*out = v;
	return 0;
}

/* --- addresses ------------------------------------------------------------*/

static bool is_host_port(const char *text)
{
	const char *colon = strrchr(text, ':');
	size_t digits;

	if (!colon || colon == text)
		return false;
	digits = strspn(colon + 1, "0123456789");
	return digits && digits <= 5 && !colon[1 + digits] &&
	       atoi(colon + 1) <= 65535;
}

static bool is_address(const char *text)
{
	struct sockaddr_un sun;

	if (strncmp(text, "unix:", 5))
		return is_host_port(text);
	return text[5] && strlen(text + 5) < sizeof(sun.sun_path);
}

/* --- values ---------------------------------------------------------------*/

static int set_string(struct options *o, const char *text, const char **out)
{
	*out = arena_memdup(&o->arena, text, strlen(text) + 1);
	return *out ? 0 : -ENOMEM;
}

/* A list grows by a new one: lists are short, and the arena is freed whole. */
static void *options_grow(struct options *o, const void *items, size_t n,
			  size_t size)
{
	char *p = arena_alloc(&o->arena, (n + 1) * size);

	if (p && n)
		memcpy(p, items, n * size);
	return p;
}

static int add_string(struct options *o, const char *text,
		      struct options_strings *list)
{
	const char **items =
		options_grow(o, list->items, list->n, sizeof(*list->items));

	if (!items || set_string(o, text, &items[list->n]))
		return -ENOMEM;
	list->items = items;
	list->n++;
	return 0;
}

static int add_number(struct options *o, uint64_t v,
		      struct options_numbers *list)
{
	uint64_t *items = options_grow(o, list->items, list->n, sizeof(*items));

	if (!items)
		return -ENOMEM;
	items[list->n] = v;
	list->items = items;
	list->n++;
	return 0;
}

/* By itself: where snprintf() is a macro its arguments may hold no directive. */
#define X(name, word, syslog) " " #word
static const char level_words[] = LOG_LEVELS(X);
#undef X

#define X(name, word) " " #word
static const char source_words[] = SOURCES(X);
#undef X

static int source_parse(const char *text)
{
	static const char *const words[] = {
#define X(name, word) [SOURCE_##name] = #word,
		SOURCES(X)
#undef X
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(words); i++)
		if (!strcmp(words[i], text))
			return i;
	return -1;
}

/* Of a profile's name, behind ".pb.". Or -EINVAL. */
static int format_parse(const char *text)
{
	char name[16];

	if (strlen(text) > 3)
		return -EINVAL;
	snprintf(name, sizeof(name), "x.pb.%s", text);
	return reporter_format_of(name);
}

#define X(name, word) " " #word
static const char sort_words[] = OPTIONS_SORTS(X);
#undef X

/* OPTIONS_SORT_NONE: no such key. */
static enum options_sort sort_parse(const char *text)
{
	static const char *const words[] = {
#define X(name, word) [OPTIONS_SORT_##name] = #word,
		OPTIONS_SORTS(X)
#undef X
	};
	size_t i;

	for (i = 1; i < ARRAY_SIZE(words); i++)
		if (!strcmp(words[i], text))
			return i;
	return OPTIONS_SORT_NONE;
}

const char *options_words(const struct options_entry *e)
{
	switch (e->type) {
	case OPTIONS_TYPE_SORT:
		return sort_words + 1;
	case OPTIONS_TYPE_LEVEL:
		return level_words + 1;
	case OPTIONS_TYPE_SOURCE:
		return source_words + 1;
	default:
		return NULL;
	}
}

/* --- times ----------------------------------------------------------------*/

/*
 * A moment in the user's zone, to the day, the minute or the second; one without
 * a day is of today, or of yesterday if it were still to come.
 */
static bool parse_moment(const char *text, time_t now, time_t *out)
{
	static const char *const formats[] = { "%Y-%m-%d %H:%M:%S",
					       "%Y-%m-%dT%H:%M:%S",
					       "%Y-%m-%d %H:%M",
					       "%Y-%m-%dT%H:%M",
					       "%Y-%m-%d",
					       "%H:%M:%S",
					       "%H:%M" };
	struct tm tm;
	char *end;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(formats); i++) {
		localtime_r(&now, &tm);
		tm.tm_hour = tm.tm_min = tm.tm_sec = 0;
		tm.tm_isdst = -1;
		end = strptime(text, formats[i], &tm);
		if (!end || *end)
			continue;
		*out = mktime(&tm);
		if (formats[i][1] == 'H' && *out > now) {
			tm.tm_mday--;
			tm.tm_isdst = -1;
			*out = mktime(&tm);
		}
		return *out >= 0;
	}
	return false;
}

/* "5m": so long ago; or a moment. */
static int parse_time(const char *text, uint64_t *out)
{
	static const struct options_entry ago = { .highest = 366 * 86400ULL };
	time_t now = time(NULL), t;
	uint64_t v;

	if (!options_parse_number(&ago, text, units_time, &v)) {
		*out = now > (time_t)v ? now - v : 0;
		return 0;
	}
	if (!parse_moment(text, now, &t))
		return -EINVAL;
	*out = t;
	return 0;
}

/* What a value of 'e' may be, for a message. */
static void options_describe_range(const struct options_entry *e, char *why,
				   size_t len)
{
	switch (e->type) {
	case OPTIONS_TYPE_NUMBER:
	case OPTIONS_TYPE_NUMBERS:
		snprintf(why, len,
			 "must be a number from %" PRIu64 " to %" PRIu64,
			 e->lowest, e->highest);
		break;
	case OPTIONS_TYPE_SIZE:
		snprintf(why, len,
			 "must be a size from %" PRIu64 "K to %" PRIu64
			 "K (64K, 65536)",
			 e->lowest >> 10, e->highest >> 10);
		break;
	case OPTIONS_TYPE_SECONDS:
		snprintf(why, len,
			 "must be a time from %" PRIu64 " to %" PRIu64
			 " seconds (90, 90s, 5m)",
			 e->lowest, e->highest);
		break;
	case OPTIONS_TYPE_LEVEL:
		snprintf(why, len, "must be one of%s", level_words);
		break;
	case OPTIONS_TYPE_SOURCE:
		snprintf(why, len, "must be one of%s", source_words);
		break;
	case OPTIONS_TYPE_FORMAT:
		snprintf(why, len, "must be gz or zst");
		break;
	case OPTIONS_TYPE_ADDRESSES:
		snprintf(why, len, "must be unix:PATH or HOST:PORT");
		break;
	case OPTIONS_TYPE_SERVER:
		snprintf(why, len,
			 "must be unix:PATH, HOST:PORT or http://HOST:PORT");
		break;
	case OPTIONS_TYPE_SORT:
		snprintf(why, len, "must be one of%s", sort_words);
		break;
	case OPTIONS_TYPE_TIME:
		snprintf(why, len,
			 "must be how long ago (90, 5m, 2h) or a time "
			 "(14:30, 2026-08-21 14:30)");
		break;
	case OPTIONS_TYPE_STRING:
	case OPTIONS_TYPE_STRINGS:
	case OPTIONS_TYPE_FLAG:
		snprintf(why, len, "must not be empty");
	}
}

static int set_value(struct options *o, const struct options_entry *e,
		     const char *text)
{
	void *member = (char *)o + e->offset;
	uint64_t v;

	switch (e->type) {
	case OPTIONS_TYPE_FLAG:
		*(options_FLAG *)member = true;
		return 0;
	case OPTIONS_TYPE_NUMBER:
		return options_parse_number(e, text, units_none, member);
	case OPTIONS_TYPE_SIZE:
		return options_parse_number(e, text, units_size, member);
	case OPTIONS_TYPE_SECONDS:
		return options_parse_number(e, text, units_time, member);
	case OPTIONS_TYPE_NUMBERS:
		if (options_parse_number(e, text, units_none, &v))
			return -EINVAL;
		return add_number(o, v, member);
	case OPTIONS_TYPE_STRING:
		return *text ? set_string(o, text, member) : -EINVAL;
	case OPTIONS_TYPE_SERVER:
		if (!is_address(text) && strncmp(text, "http://", 7))
			return -EINVAL;
		return set_string(o, text, member);
	case OPTIONS_TYPE_STRINGS:
		return *text ? add_string(o, text, member) : -EINVAL;
	case OPTIONS_TYPE_TIME:
		return parse_time(text, member);
	case OPTIONS_TYPE_SORT:
		*(options_SORT *)member = sort_parse(text);
		return *(options_SORT *)member ? 0 : -EINVAL;
	case OPTIONS_TYPE_ADDRESSES:
		return is_address(text) ? add_string(o, text, member) : -EINVAL;
	case OPTIONS_TYPE_SOURCE:
		if (source_parse(text) < 0)
			return -EINVAL;
		*(options_SOURCE *)member = source_parse(text);
		return 0;
	case OPTIONS_TYPE_FORMAT:
		if (format_parse(text) < 0)
			return -EINVAL;
		*(options_FORMAT *)member = format_parse(text);
		return 0;
	case OPTIONS_TYPE_LEVEL:
		if (log_level_parse(text) < 0)
			return -EINVAL;
		*(options_LEVEL *)member = log_level_parse(text);
		return 0;
	}
	return -EINVAL;
}

int options_set(struct options *o, const struct options_entry *e,
		const char *text, char *why, size_t len)
{
	int err = set_value(o, e, text);

	if (err == -EINVAL)
		options_describe_range(e, why, len);
	return err;
}
