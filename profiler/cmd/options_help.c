// SPDX-License-Identifier: Apache-2.0
/* options_help: the texts of --help, and suggestions for misspelt names. */
#include <string.h>

#include "profiler/cmd/options_table.h"

#define HELP_COLUMN 26 /* of an option's help */
#define HELP_WIDTH 80
#define NAME_MAX_LEN 32 /* longer names get no suggestion */

void options_usage(struct strbuf *out)
{
	size_t i;

	strbuf_puts(out, "Usage: profd COMMAND [OPTION...]\n"
			 "A process-aware continuous profiler of this host.\n"
			 "\nCommands:\n");
	for (i = 0; i < OPTIONS_COMMAND_MAX; i++) {
		const struct options_command_entry *c = &options_commands[i];
		const char *p = c->help, *eol;

		if (strlen(c->word) > 9)
			strbuf_printf(out, "  %s\n%12s", c->word, "");
		else
			strbuf_printf(out, "  %-10s", c->word);
		while ((eol = strchr(p, '\n'))) {
			strbuf_printf(out, "%.*s\n%12s", (int)(eol - p), p, "");
			p = eol + 1;
		}
		strbuf_printf(out, "%s\n", p);
	}
	strbuf_puts(out,
		    "\nprofd help COMMAND prints the options of a command, "
		    "profd version (-V)\nthe version. See profd(8).\n");
}

/* Breaks lines between words. */
static void help_text(const char *text, struct strbuf *out)
{
	size_t n, used = 0;

	for (; *text; text += n + (text[n] != '\0')) {
		n = strcspn(text, " \n");
		if (used && used + 1 + n > HELP_WIDTH - HELP_COLUMN) {
			strbuf_printf(out, "\n%*s", HELP_COLUMN, "");
			used = 0;
		}
		strbuf_printf(out, "%s%.*s", used ? " " : "", (int)n, text);
		used += (used ? 1 : 0) + n;
	}
}

static void help_line(const struct options_entry *e, struct strbuf *out)
{
	struct strbuf text = STRBUF_INIT;
	size_t start = out->len, used;

	if (e->letter)
		strbuf_printf(out, "  -%c, --%s", e->letter, e->name);
	else
		strbuf_printf(out, "      --%s", e->name);
	if (e->metavar)
		strbuf_printf(out, " %s", e->metavar);
	used = out->len - start;
	if (used >= HELP_COLUMN) {
		strbuf_puts(out, "\n");
		used = 0;
	}
	strbuf_printf(out, "%*s", (int)(HELP_COLUMN - used), "");
	strbuf_puts(&text, e->help);
	if (e->def)
		strbuf_printf(&text, " (default %s)", e->def);
	help_text(text.failed ? e->help : text.data, out);
	strbuf_fini(&text);
	strbuf_puts(out, "\n");
}

/* The options of one bit of options_entry.commands. */
static void help_options(unsigned int bit, struct strbuf *out)
{
	size_t i;

	strbuf_puts(out, "Options:\n");
	for (i = 0; i < OPTIONS_ID_MAX; i++)
		if (options_table[i].commands & bit)
			help_line(&options_table[i], out);
	strbuf_printf(out, "  -h, --help%*sprint this help\n", HELP_COLUMN - 12,
		      "");
	strbuf_printf(out, "  -V, --version%*sprint the version\n",
		      HELP_COLUMN - 15, "");
}

void options_help(enum options_command cmd, struct strbuf *out)
{
	const struct options_command_entry *c = &options_commands[cmd];

	strbuf_printf(out, "Usage: profd %s [OPTION...]%s\n%s\n\n", c->word,
		      c->args, c->help);
	help_options(1U << cmd, out);
}

void options_debug_help(enum options_debug cmd, struct strbuf *out)
{
	const struct options_command_entry *c = &options_debug_commands[cmd];

	strbuf_printf(out, "Usage: profd debug %s [OPTION...]%s\n%s\n\n",
		      c->word, c->args, c->help);
	help_options(1U << (OPTIONS_DEBUG_SHIFT + cmd), out);
}

/* The edit distance (Levenshtein) of two names. */
static unsigned int options_distance(const char *a, size_t na, const char *b,
				     size_t nb)
{
	unsigned int row[NAME_MAX_LEN + 1], diagonal, above;
	size_t i, j;

	for (j = 0; j <= nb; j++)
		row[j] = j;
	for (i = 1; i <= na; i++) {
		diagonal = row[0];
		row[0] = i;
		for (j = 1; j <= nb; j++) {
			above = row[j];
			row[j] = MIN(MIN(row[j - 1], above) + 1,
				     diagonal + (a[i - 1] != b[j - 1]));
			diagonal = above;
		}
	}
	return row[nb];
}

/* The candidate with the least distance from 'name' so far. */
struct guess {
	const char *name;
	size_t len;
	unsigned int best; /* its distance */
	const char *found;
};

static struct guess guess_begin(const char *name, size_t len)
{
	/* At most one wrong letter in three. */
	return (struct guess){ name, len, len / 3 + 1, NULL };
}

static void guess_try(struct guess *g, const char *candidate)
{
	size_t n = strlen(candidate);
	unsigned int d;

	if (g->len > NAME_MAX_LEN || n > NAME_MAX_LEN)
		return;
	d = options_distance(g->name, g->len, candidate, n);
	if (d >= g->best)
		return;
	g->best = d;
	g->found = candidate;
}

/* Names of options in other programs or in older versions. */
static const struct {
	const char *word, *name;
} other_words[] = {
	{ "seconds", "duration" }, { "time", "duration" },
	{ "timeout", "duration" }, { "frequency", "freq" },
	{ "rate", "freq" },	   { "file", "output" },
	{ "out", "output" },	   { "overwrite", "force" },
	{ "socket", "server" },	   { "name", "comm" },
	{ "full", "wide" },
};

static const char *other_word(enum options_command cmd, const char *name,
			      size_t len)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(other_words); i++)
		if (strlen(other_words[i].word) == len &&
		    !memcmp(other_words[i].word, name, len) &&
		    options_find(cmd, other_words[i].name))
			return other_words[i].name;
	return NULL;
}

const char *options_nearest(enum options_command cmd, const char *name,
			    size_t len)
{
	struct guess g = guess_begin(name, len);
	const char *other = other_word(cmd, name, len);
	size_t i;

	if (other)
		return other;
	for (i = 0; i < OPTIONS_ID_MAX; i++)
		if (options_table[i].commands & 1U << cmd)
			guess_try(&g, options_table[i].name);
	guess_try(&g, "help");
	guess_try(&g, "version");
	return g.found;
}

const char *options_nearest_command(const char *word)
{
	struct guess g = guess_begin(word, strlen(word));
	size_t i;

	for (i = 0; i < OPTIONS_COMMAND_MAX; i++)
		guess_try(&g, options_commands[i].word);
	guess_try(&g, "help");
	guess_try(&g, "version");
	return g.found;
}

bool options_owners(const char *name, size_t len, char letter,
		    struct strbuf *out)
{
	const struct options_entry *e;
	unsigned int owners = 0;
	size_t i, n = 0;

	for (i = 0; i < OPTIONS_ID_MAX; i++) {
		e = &options_table[i];
		if (name ? strlen(e->name) == len && !memcmp(e->name, name, len)
			 : e->letter == letter)
			owners |=
				e->commands & ((1U << OPTIONS_COMMAND_MAX) - 1);
	}
	for (i = 0; i < OPTIONS_COMMAND_MAX; i++) {
		if (!(owners & 1U << i))
			continue;
		owners &= ~(1U << i);
		strbuf_printf(out, "%s%s",
			      !n       ? ""
			      : owners ? ", "
				       : " and ",
			      options_commands[i].word);
		n++;
	}
	if (n)
		strbuf_puts(out, n > 1 ? " have it" : " has it");
	return n;
}
