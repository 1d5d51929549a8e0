// SPDX-License-Identifier: Apache-2.0
/* options_help: the texts of --help, and the nearest name of a misspelt one. */
#include <string.h>

#include "profiler/options_table.h"

/* Column in which the help of an option begins. */
#define HELP_COLUMN 26
/* Longer names are nobody's typing error. */
#define NAME_MAX_LEN 32

void options_usage(struct strbuf *out)
{
	size_t i;

	strbuf_puts(out, "Usage: profd COMMAND [OPTION...]\n"
			 "A process-aware continuous profiler of this host.\n"
			 "\nCommands:\n");
	for (i = 0; i < OPTIONS_COMMAND_MAX; i++) {
		const struct options_command_entry *c = &options_commands[i];
		const char *p = c->help, *eol;

		strbuf_printf(out, "  %-10s", c->word);
		while ((eol = strchr(p, '\n'))) {
			strbuf_printf(out, "%.*s\n%12s", (int)(eol - p), p, "");
			p = eol + 1;
		}
		strbuf_printf(out, "%s\n", p);
	}
	strbuf_puts(out,
		    "\nprofd COMMAND --help lists a command's options; "
		    "profd --version prints\nthe version. See profd(8).\n");
}

static void help_line(const struct options_entry *e, struct strbuf *out)
{
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
	strbuf_printf(out, "%*s%s", (int)(HELP_COLUMN - used), "", e->help);
	if (e->def)
		strbuf_printf(out, "\n%*s(default %s)", HELP_COLUMN, "",
			      e->def);
	strbuf_puts(out, "\n");
}

void options_help(enum options_command cmd, struct strbuf *out)
{
	const struct options_command_entry *c = &options_commands[cmd];
	size_t i;

	strbuf_printf(out, "Usage: profd %s [OPTION...]%s\n%s\n\nOptions:\n",
		      c->word, c->args, c->help);
	for (i = 0; i < OPTIONS_ID_MAX; i++)
		if (options_table[i].commands & 1U << cmd)
			help_line(&options_table[i], out);
	strbuf_printf(out, "  -h, --help%*sprint this\n", HELP_COLUMN - 12, "");
}

/* How many letters must be added, dropped or changed to make a of b. */
static unsigned int distance(const char *a, size_t na, const char *b, size_t nb)
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

const char *options_nearest(enum options_command cmd, const char *name,
			    size_t len)
{
	/* One wrong letter in three is as far as a guess should go. */
	unsigned int best = len / 3 + 1, d;
	const char *found = NULL;
	size_t i, n;

	if (len > NAME_MAX_LEN)
		return NULL;
	for (i = 0; i < OPTIONS_ID_MAX; i++) {
		const struct options_entry *e = &options_table[i];

		n = strlen(e->name);
		if (!(e->commands & 1U << cmd) || n > NAME_MAX_LEN)
			continue;
		d = distance(name, len, e->name, n);
		if (d >= best)
			continue;
		best = d;
		found = e->name;
	}
	return found;
}
