// SPDX-License-Identifier: Apache-2.0
/* options_table: the table of options, and parsing of values. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <time.h>

#include "profiler/cmd/options_table.h"

/* For options.def. */
#define KEY true
#define NO_KEY false
enum {
#define X(name, ...) name = OPTIONS_##name,
	OPTIONS_COMMANDS(X)
#undef X
#define X(name, ...) DEBUG_##name = OPTIONS_DEBUG_##name,
	OPTIONS_DEBUG_COMMANDS(X)
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
#define X(name, id, word, args, help) \
	[OPTIONS_BIT_##name] = { word, args, help },
	OPTIONS_COMMANDS(X)
#undef X
};

const struct options_command_entry options_debug_commands[OPTIONS_DEBUG_MAX] = {
#define X(name, function, word, args, help) \
	[OPTIONS_DEBUG_BIT_##name] = { word, args, help },
	OPTIONS_DEBUG_COMMANDS(X)
#undef X
};

int options_debug_command(const char *word)
{
	for (int i = 0; i < OPTIONS_DEBUG_MAX; i++)
		if (!strcmp(options_debug_commands[i].word, word))
			return i;
	return -1;
}

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

/* --- types ----------------------------------------------------------------*/

#define X(name, word, ...) " " #word
static const struct {
	const char *must; /* for a message; of a number, before its range */
	const char *unit; /* ... and after each end of it */
	const char *examples;
	const char *words; /* the values of an enum in its order; or NULL */
	unsigned int first; /* the value of the first word */
} options_types[] = {
	[OPTIONS_TYPE_FLAG] = { .must = "be yes or no" },
	[OPTIONS_TYPE_NUMBER] = { "a number", "", "" },
	[OPTIONS_TYPE_NUMBERS] = { "a number", "", "" },
	[OPTIONS_TYPE_SIZE] = { "a size", "K", " (64K, 65536)" },
	[OPTIONS_TYPE_SECONDS] = { "a time", "", " seconds (90, 90s, 5m)" },
	[OPTIONS_TYPE_DURATION] = { "be a time from 100us to 1h (500us, 1ms, "
				    "2s)" },
	[OPTIONS_TYPE_LIMIT] = { "be no or a size of 1M or more (500M, 2G)" },
	[OPTIONS_TYPE_AGE] = { "be no or a time of a minute or more (90m, 12h, 7d)" },
	[OPTIONS_TYPE_FREE] = { "be no, a size (500M, 2G) or a share of the "
				"disk from 1% to 99%" },
	[OPTIONS_TYPE_STRING] = { "not be empty" },
	[OPTIONS_TYPE_STRINGS] = { "not be empty" },
	[OPTIONS_TYPE_ADDRESSES] = { "be unix:PATH or HOST:PORT" },
	[OPTIONS_TYPE_URLS] = { "be http://HOST or https://HOST, perhaps "
				"with :PORT and /PATH" },
	[OPTIONS_TYPE_SERVER] = { "be unix:PATH, HOST:PORT or "
				  "http[s]://HOST:PORT" },
	[OPTIONS_TYPE_TIME] = { "be how long ago (90, 5m, 2h) or a time "
				"(14:30, 2026-08-21 14:30)" },
	[OPTIONS_TYPE_LEVEL] = { .words = LOG_LEVELS(X), .first = LOG_ERROR },
	[OPTIONS_TYPE_SOURCE] = { .words = SOURCES(X), .first = SOURCE_AUTO },
	[OPTIONS_TYPE_SORT] = { .words = OPTIONS_SORTS(X),
				.first = OPTIONS_SORT_CPU },
	[OPTIONS_TYPE_COLUMN] = { .words = OPTIONS_COLUMNS(X),
				  .first = OPTIONS_COLUMN_FLAT },
	[OPTIONS_TYPE_EXPORT] = { .words = REPORTER_QUERY_FORMATS(X),
				  .first = REPORTER_QUERY_PPROF },
	[OPTIONS_TYPE_FORMAT] = { .words = " gz zst", .first = REPORTER_GZIP },
	[OPTIONS_TYPE_ARGS] = { .words = REPORTER_ARGS(X),
				.first = REPORTER_ARGS_FULL },
	[OPTIONS_TYPE_SWITCH] = { .words = " no yes", .first = OPTIONS_NO },
};
#undef X

_Static_assert(REPORTER_ZSTD == REPORTER_GZIP + 1, "the order of gz zst");

const char *options_words(const struct options_entry *e)
{
	const char *words = options_types[e->type].words;

	return words ? words + 1 : NULL;
}

/* What a value of 'e' must be, for a message. */
static void options_describe(const struct options_entry *e, char *why,
			     size_t len)
{
	const char *unit = options_types[e->type].unit;
	unsigned int shift = e->type == OPTIONS_TYPE_SIZE ? 10 : 0;

	if (options_words(e))
		snprintf(why, len, "must be one of %s", options_words(e));
	else if (options_types[e->type].unit)
		snprintf(why, len,
			 "must be %s from %" PRIu64 "%s to %" PRIu64 "%s%s",
			 options_types[e->type].must, e->lowest >> shift, unit,
			 e->highest >> shift, unit,
			 options_types[e->type].examples);
	else
		snprintf(why, len, "must %s", options_types[e->type].must);
}

/* An enum, by its words. */
static int options_parse_word(const struct options_entry *e, const char *text,
			      unsigned int *out)
{
	const char *p = options_words(e);
	unsigned int i = options_types[e->type].first;
	size_t n;

	for (; *p; p += n + (p[n] == ' '), i++) {
		n = strcspn(p, " ");
		if (n != strlen(text) || memcmp(p, text, n))
			continue;
		*out = i;
		return 0;
	}
	return -EINVAL;
}

/* Digits and a unit, within the entry's range. */
static int options_parse_number(const struct options_entry *e, const char *text,
				uint64_t *out)
{
	static const struct {
		enum options_type type;
		const char *suffix;
		uint64_t factor;
	} units[] = {
		{ OPTIONS_TYPE_SIZE, "K", 1 << 10 },
		{ OPTIONS_TYPE_SIZE, "M", 1 << 20 },
		{ OPTIONS_TYPE_SECONDS, "s", 1 },
		{ OPTIONS_TYPE_SECONDS, "m", 60 },
		{ OPTIONS_TYPE_SECONDS, "h", 3600 },
		{ OPTIONS_TYPE_DURATION, "us", 1000 },
		{ OPTIONS_TYPE_DURATION, "ms", CLOCK_NSEC_PER_MSEC },
		{ OPTIONS_TYPE_DURATION, "s", CLOCK_NSEC_PER_SEC },
		{ OPTIONS_TYPE_DURATION, "m", 60 * CLOCK_NSEC_PER_SEC },
		{ OPTIONS_TYPE_DURATION, "h", 3600 * CLOCK_NSEC_PER_SEC },
		{ OPTIONS_TYPE_LIMIT, "K", 1 << 10 },
		{ OPTIONS_TYPE_LIMIT, "M", 1 << 20 },
		{ OPTIONS_TYPE_LIMIT, "G", 1 << 30 },
		{ OPTIONS_TYPE_LIMIT, "T", 1ULL << 40 },
		{ OPTIONS_TYPE_AGE, "s", 1 },
		{ OPTIONS_TYPE_AGE, "m", 60 },
		{ OPTIONS_TYPE_AGE, "h", 3600 },
		{ OPTIONS_TYPE_AGE, "d", 86400 },
	};
	unsigned long long v;
	char *end;
	size_t i;

	if (!isdigit((unsigned char)*text))
		return -EINVAL;
	errno = 0;
	v = strtoull(text, &end, 10);
	if (errno)
		return -EINVAL;
	for (i = 0; *end && i < ARRAY_SIZE(units); i++)
		if (units[i].type == e->type && !strcmp(units[i].suffix, end))
			break;
	if (i == ARRAY_SIZE(units) ||
	    (*end && __builtin_mul_overflow(v, units[i].factor, &v)))
		return -EINVAL;
	if (v < e->lowest || v > e->highest)
		return -EINVAL;
	*out = v;
	return 0;
}

/* A number, or none: 0 and "no". */
static int options_parse_limit(const struct options_entry *e, const char *text,
			       uint64_t *out)
{
	if (strcmp(text, "no") && strcmp(text, "0"))
		return options_parse_number(e, text, out);
	*out = 0;
	return 0;
}

/* Bytes, or percent: "5%". */
static int options_parse_space(const struct options_entry *e, const char *text,
			       struct options_space *out)
{
	struct options_entry bytes = *e;
	char *end;

	bytes.type = OPTIONS_TYPE_LIMIT;
	*out = (struct options_space){ 0 };
	if (!strchr(text, '%'))
		return options_parse_limit(&bytes, text, &out->bytes);
	if (!isdigit((unsigned char)*text))
		return -EINVAL;
	out->percent = strtoul(text, &end, 10);
	return !strcmp(end, "%") && out->percent && out->percent < 100 &&
			       end - text <= 2
		       ? 0
		       : -EINVAL;
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

static bool is_url(const char *text)
{
	return !strncmp(text, "http://", 7) || !strncmp(text, "https://", 8);
}

/* --- values ---------------------------------------------------------------*/

static int set_string(struct options *o, const char *text, const char **out)
{
	*out = arena_memdup(&o->arena, text, strlen(text) + 1);
	return *out ? 0 : -ENOMEM;
}

/* Copies a list into one with room for two more: lists are short. */
static void *options_grow(struct options *o, const void *items, size_t n,
			  size_t size)
{
	char *p = arena_alloc(&o->arena, (n + 2) * size);

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
	list->items[++list->n] = NULL;
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

/* --- times ----------------------------------------------------------------*/

/* A local time; without a date the last one, of today or of yesterday. */
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

/* A duration before now, or a local time. */
static int parse_time(const char *text, uint64_t *out)
{
	static const struct options_entry ago = {
		.type = OPTIONS_TYPE_SECONDS,
		.highest = 366 * 86400ULL,
	};
	time_t now = time(NULL), t;
	uint64_t v;

	if (!options_parse_number(&ago, text, &v)) {
		*out = now > (time_t)v ? now - v : 0;
		return 0;
	}
	if (!parse_moment(text, now, &t))
		return -EINVAL;
	*out = t;
	return 0;
}

static int set_value(struct options *o, const struct options_entry *e,
		     const char *text)
{
	void *member = (char *)o + e->offset;
	uint64_t v;

	switch (e->type) {
	case OPTIONS_TYPE_FLAG:
		/* On the command line it has no value, in the configuration one. */
		*(options_FLAG *)member = !text || !strcmp(text, "yes");
		return !text || !strcmp(text, "yes") || !strcmp(text, "no")
			       ? 0
			       : -EINVAL;
	case OPTIONS_TYPE_NUMBER:
	case OPTIONS_TYPE_SIZE:
	case OPTIONS_TYPE_SECONDS:
	case OPTIONS_TYPE_DURATION:
		return options_parse_number(e, text, member);
	case OPTIONS_TYPE_LIMIT:
	case OPTIONS_TYPE_AGE:
		return options_parse_limit(e, text, member);
	case OPTIONS_TYPE_FREE:
		return options_parse_space(e, text, member);
	case OPTIONS_TYPE_NUMBERS:
		if (options_parse_number(e, text, &v))
			return -EINVAL;
		return add_number(o, v, member);
	case OPTIONS_TYPE_STRING:
		return *text ? set_string(o, text, member) : -EINVAL;
	case OPTIONS_TYPE_SERVER:
		if (!is_address(text) && !is_url(text))
			return -EINVAL;
		return set_string(o, text, member);
	case OPTIONS_TYPE_STRINGS:
		return *text ? add_string(o, text, member) : -EINVAL;
	case OPTIONS_TYPE_ADDRESSES:
		return is_address(text) ? add_string(o, text, member) : -EINVAL;
	case OPTIONS_TYPE_URLS:
		/* In the path of one curl would take spaces as they are. */
		return is_url(text) && !strpbrk(text, " \t?#")
			       ? add_string(o, text, member)
			       : -EINVAL;
	case OPTIONS_TYPE_TIME:
		return parse_time(text, member);
	case OPTIONS_TYPE_LEVEL:
	case OPTIONS_TYPE_SOURCE:
	case OPTIONS_TYPE_SORT:
	case OPTIONS_TYPE_COLUMN:
	case OPTIONS_TYPE_EXPORT:
	case OPTIONS_TYPE_FORMAT:
	case OPTIONS_TYPE_ARGS:
	case OPTIONS_TYPE_SWITCH:
		return options_parse_word(e, text, member);
	}
	return -EINVAL;
}

int options_set(struct options *o, const struct options_entry *e,
		const char *text, char *why, size_t len)
{
	int err = set_value(o, e, text);

	if (err == -EINVAL)
		options_describe(e, why, len);
	return err;
}
