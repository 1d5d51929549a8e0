// SPDX-License-Identifier: Apache-2.0
/*
 * units: numbers as `go tool pprof` prints them, to the last digit; see
 * reporter/query/model.h. A table has one unit for all of its rows.
 */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reporter/query/model.h"

struct unit {
	const char *name;
	const char *aliases; /* with a blank before and behind each */
	double factor;
};

#define UNITS_MAX 9

/* Each family ends in a unit without a name. */
static const struct unit unit_families[][UNITS_MAX + 1] = {
	{
		{ "B", " b byte ", 1 },
		{ "kB", " kb kbyte kilobyte ", 1ULL << 10 },
		{ "MB", " mb mbyte megabyte ", 1ULL << 20 },
		{ "GB", " gb gbyte gigabyte ", 1ULL << 30 },
		{ "TB", " tb tbyte terabyte ", 1ULL << 40 },
		{ "PB", " pb pbyte petabyte ", 1ULL << 50 },
	},
	{
		{ "ns", " ns nanosecond ", 1 },
		{ "us", " \u03bcs us microsecond ", 1e3 },
		{ "ms", " ms millisecond ", 1e6 },
		{ "s", " s sec second ", 1e9 },
		{ "hrs", " hour hr ", 3600e9 },
	},
	{
		{ "n*GCU", " nanogcu ", 1e-9 },
		{ "u*GCU", " microgcu ", 1e-6 },
		{ "m*GCU", " milligcu ", 1e-3 },
		{ "GCU", " gcu ", 1 },
		{ "k*GCU", " kilogcu ", 1e3 },
		{ "M*GCU", " megagcu ", 1e6 },
		{ "G*GCU", " gigagcu ", 1e9 },
		{ "T*GCU", " teragcu ", 1e12 },
		{ "P*GCU", " petagcu ", 1e15 },
	},
};

/* The unit of a value below the smallest one; also where the target is unknown. */
static const size_t unit_defaults[] = { 0, 3, 3 };

/* Capitals and a plural 's' do not matter. */
static const struct unit *unit_sniff(const char *name, size_t *family)
{
	char word[32];
	size_t i, k, n;

	n = (size_t)snprintf(word, sizeof(word), " %s", name);
	if (n >= sizeof(word) - 1 || strchr(name, ' '))
		return NULL;
	for (i = 1; i < n; i++)
		word[i] = (char)tolower((unsigned char)word[i]);
	if (n > 3 && word[n - 1] == 's')
		n--;
	word[n] = ' ';
	word[n + 1] = '\0';
	for (i = 0; i < ARRAY_SIZE(unit_families); i++)
		for (k = 0; unit_families[i][k].name; k++)
			if (strstr(unit_families[i][k].aliases, word)) {
				*family = i;
				return &unit_families[i][k];
			}
	return NULL;
}

/* 'as' NULL: the unit in which the value is 1 or more. */
static double unit_scale(int64_t value, const char *from, const char *as,
			 const char **name)
{
	const struct unit *best = NULL, *to, *u;
	size_t family, other = 0;
	double v;

	if (value < 0 && value != INT64_MIN)
		return -unit_scale(-value, from, as, name);
	u = unit_sniff(from, &family);
	*name = as ? as : "";
	if (!u) {
		if (as && (!strcmp(as, "count") || !strcmp(as, "sample") ||
			   !strcmp(as, "unit")))
			*name = "";
		return (double)value;
	}
	v = (double)value * u->factor;
	to = as ? unit_sniff(as, &other) : NULL;
	for (u = unit_families[family]; !as && u->name; u++)
		if (v / u->factor >= 1)
			best = u;
	if (to && other == family)
		best = to;
	if (!best)
		best = &unit_families[family][unit_defaults[family]];
	*name = best->name;
	return v / best->factor;
}

const char *query_unit(int64_t least, int64_t most, const char *unit)
{
	const char *low, *high;
	int64_t more;

	if (!least)
		least = most;
	unit_scale(least, unit, NULL, &low);
	unit_scale(most, unit, NULL, &high);
	/* The smallest value may become 0.01 of the unit. */
	if (strcmp(low, high) != 0 &&
	    !__builtin_mul_overflow(least, 100, &more) && more < most)
		unit_scale(more, unit, NULL, &low);
	return *low ? low : unit;
}

void query_value(struct strbuf *out, int64_t v, const char *unit,
		 const char *as)
{
	char text[512]; /* DBL_MAX has 309 digits */
	const char *name;
	double scaled = unit_scale(v, unit, as, &name);
	int n = snprintf(text, sizeof(text), "%.2f", scaled);

	if (n > 3 && !strcmp(text + n - 3, ".00"))
		text[n - 3] = '\0';
	if (!strcmp(text, "0") || !strcmp(text, "-0")) {
		strbuf_puts(out, "0");
	} else {
		/* That of another program's profile may be any text. */
		strbuf_puts(out, text);
		text_add(out, name, strlen(name));
	}
}

void query_percent(struct strbuf *out, int64_t v, int64_t total)
{
	double ratio = total ? fabs((double)v / (double)total) * 100 : 0;

	if (ratio >= 99.95 && ratio <= 100.05)
		strbuf_puts(out, "  100%");
	else
		strbuf_printf(out, ratio >= 1 ? "%5.2f%%" : "%5.2g%%", ratio);
}
