// SPDX-License-Identifier: Apache-2.0
/* options: flags and configuration file; see profiler/cmd/options.h. */
#include <errno.h>
#include <getopt.h>
#include <ini.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "profiler/cmd/options.h"
#include "profiler/cmd/options_table.h"

struct reading {
	struct options *o;
	enum options_command cmd;
	bool flagged[OPTIONS_ID_MAX]; /* set by a flag */
	bool configured[OPTIONS_ID_MAX]; /* set by the configuration file */
	char *msg;
	size_t msglen;
};

struct config {
	struct reading *r;
	const char *path;
	FILE *file;
	unsigned int line; /* the current one */
	unsigned int bad_line; /* the first error; 0: none */
	bool nomem;
};

int options_command(const char *word)
{
	size_t i;

	for (i = 0; i < OPTIONS_COMMAND_MAX; i++)
		if (!strcmp(word, options_commands[i].word))
			return i;
	return -1;
}

void options_fini(struct options *o)
{
	arena_fini(&o->arena);
}

static int set_defaults(struct reading *r)
{
	char why[128];
	size_t i;
	int err;

	for (i = 0; i < OPTIONS_ID_MAX; i++) {
		if (!options_table[i].def || r->flagged[i] || r->configured[i])
			continue;
		err = options_set(r->o, &options_table[i], options_table[i].def,
				  why, sizeof(why));
		if (err)
			return err;
	}
	return 0;
}

/* --- the configuration file ---------------------------------------------- */

static void __attribute__((format(printf, 3, 4)))
config_error(struct config *c, unsigned int line, const char *fmt, ...)
{
	va_list ap;
	int n;

	c->bad_line = line;
	n = snprintf(c->r->msg, c->r->msglen, "profd: %s:%u: ", c->path, line);
	va_start(ap, fmt);
	if (n >= 0 && (size_t)n < c->r->msglen)
		vsnprintf(c->r->msg + n, c->r->msglen - n, fmt, ap);
	va_end(ap);
}

/*
 * inih's handler does not get the number of the line, and a line longer than
 * inih's buffer becomes two: so lines are counted and measured here.
 */
static char *config_line(char *buf, int size, void *arg)
{
	struct config *c = arg;
	size_t len;

	if (!fgets(buf, size, c->file))
		return NULL;
	c->line++;
	len = strlen(buf);
	if (len && buf[len - 1] != '\n' && !feof(c->file) && !c->bad_line)
		config_error(c, c->line, "longer than %d bytes", size - 2);
	return buf;
}

/* 1: continue; 0: inih records an error in this line. */
static int config_key(void *arg, const char *section, const char *key,
		      const char *value)
{
	struct config *c = arg;
	const struct options_entry *e = options_key(key);
	char why[128];
	int err;

	if (c->bad_line)
		return 0;
	if (*section || !e) {
		config_error(c, c->line, "unknown %s '%s'",
			     *section ? "section" : "key",
			     *section ? section : key);
		return 0;
	}
	if (!(e->commands & 1U << c->r->cmd) ||
	    c->r->flagged[e - options_table])
		return 1;
	err = options_set(c->r->o, e, value, why, sizeof(why));
	if (err == -EINVAL)
		config_error(c, c->line, "%s '%s': %s", key, value, why);
	c->nomem |= err == -ENOMEM;
	c->r->configured[e - options_table] = true;
	return !err;
}

static enum options_result read_config(struct reading *r)
{
	struct config c = { .r = r, .path = r->o->config };
	const char *why = NULL;
	int err;

	c.file = fopen(c.path, "re");
	if (!c.file && errno == ENOENT && !r->flagged[OPTIONS_ID_config])
		return OPTIONS_OK;
	if (!c.file) {
		snprintf(r->msg, r->msglen, "profd: %s: %s", c.path,
			 strerror(errno));
		return OPTIONS_FAILED;
	}
	err = ini_parse_stream(config_line, &c, config_key, &c);
	if (ferror(c.file))
		why = "cannot be read";
	else if (c.nomem || err < 0)
		why = strerror(ENOMEM);
	else if (err > 0 && (!c.bad_line || (unsigned int)err < c.bad_line))
		config_error(&c, err, "neither 'key = value' nor a comment");
	fclose(c.file);
	if (why) {
		snprintf(r->msg, r->msglen, "profd: %s: %s", c.path, why);
		return OPTIONS_FAILED;
	}
	return c.bad_line ? OPTIONS_USAGE : OPTIONS_OK;
}

/* --- flags --------------------------------------------------------------- */

/* Values of getopt_long() for long options, above all letters. */
#define LONG_BASE 1000
#define LONG_HELP (LONG_BASE + OPTIONS_ID_MAX)
#define LONG_VERSION (LONG_HELP + 1)

/* The options of a command, for getopt_long(). */
static void getopt_tables(enum options_command cmd, char *letters,
			  struct option *longs)
{
	size_t i;

	/* '+': stop at the first argument, which begins the command to record;
	 * ':': return ':' for a missing value. */
	if (cmd == OPTIONS_BIT_RECORD)
		*letters++ = '+';
	*letters++ = ':';
	for (i = 0; i < OPTIONS_ID_MAX; i++) {
		const struct options_entry *e = &options_table[i];
		bool value = e->type != OPTIONS_TYPE_FLAG;

		if (!(e->commands & 1U << cmd))
			continue;
		*longs++ =
			(struct option){ e->name, value, NULL, LONG_BASE + i };
		if (!e->letter)
			continue;
		*letters++ = e->letter;
		if (value)
			*letters++ = ':';
	}
	*letters++ = 'h';
	*letters++ = 'V';
	*letters = '\0';
	*longs++ = (struct option){ "help", false, NULL, LONG_HELP };
	*longs++ = (struct option){ "version", false, NULL, LONG_VERSION };
	*longs = (struct option){ 0 };
}

/* The entry of 'cmd' for getopt_long()'s value 'c', or NULL. */
static const struct options_entry *entry_of(enum options_command cmd, int c)
{
	size_t i;

	if (c >= LONG_BASE && c < LONG_HELP)
		return &options_table[c - LONG_BASE];
	for (i = 0; i < OPTIONS_ID_MAX; i++)
		if (c && options_table[i].letter == c &&
		    options_table[i].commands & 1U << cmd)
			return &options_table[i];
	return NULL;
}

/* Suggests an option with a similar name, or the commands that have 'what'. */
static void explain_option(struct reading *r, const char *what, size_t len,
			   char letter)
{
	const char *word = options_commands[r->cmd].word, *near = NULL;
	struct strbuf hint = STRBUF_INIT;

	if (!letter)
		near = options_nearest(r->cmd, what + 2, len - 2);
	if (near)
		strbuf_printf(&hint, "is it --%s?", near);
	else if (options_owners(letter ? NULL : what + 2, len - 2, letter,
				&hint))
		strbuf_printf(&hint, "; see profd %s --help", word);
	else
		strbuf_printf(&hint, "see profd %s --help", word);
	snprintf(r->msg, r->msglen, "profd %s: unknown option '%.*s' (%s)",
		 word, (int)len, what, hint.failed ? "" : hint.data);
	strbuf_fini(&hint);
}

/* getopt_long() returned '?'. */
static void explain_unknown(struct reading *r, const char *arg)
{
	const struct options_entry *e = entry_of(r->cmd, optopt);
	const char *word = options_commands[r->cmd].word;
	char letter[] = { '-', optopt, '\0' };

	if (optopt >= LONG_BASE)
		snprintf(r->msg, r->msglen,
			 "profd %s: option --%s takes no value", word,
			 e		       ? e->name
			 : optopt == LONG_HELP ? "help"
					       : "version");
	else if (optopt)
		explain_option(r, letter, 2, optopt);
	else
		explain_option(r, arg, strcspn(arg, "="), '\0');
}

static enum options_result read_flag(struct reading *r, int c, char **argv)
{
	const char *word = options_commands[r->cmd].word;
	const struct options_entry *e;
	char why[128];
	int err;

	if (c == 'h' || c == LONG_HELP)
		return OPTIONS_HELP;
	if (c == 'V' || c == LONG_VERSION)
		return OPTIONS_VERSION;
	if (c == '?') {
		explain_unknown(r, argv[optind - 1]);
		return OPTIONS_USAGE;
	}
	e = entry_of(r->cmd, c == ':' ? optopt : c);
	if (c == ':') {
		snprintf(r->msg, r->msglen,
			 "profd %s: option --%s needs a value: %s", word,
			 e->name, e->metavar);
		return OPTIONS_USAGE;
	}
	err = options_set(r->o, e, optarg, why, sizeof(why));
	if (err) {
		snprintf(r->msg, r->msglen, "profd %s: --%s '%s': %s", word,
			 e->name, optarg,
			 err == -EINVAL ? why : strerror(-err));
		return err == -EINVAL ? OPTIONS_USAGE : OPTIONS_FAILED;
	}
	r->flagged[e - options_table] = true;
	return OPTIONS_OK;
}

static enum options_result read_flags(struct reading *r, int argc, char **argv)
{
	struct option longs[OPTIONS_ID_MAX + 3];
	char letters[2 * OPTIONS_ID_MAX + 5];
	enum options_result res;
	int c;

	getopt_tables(r->cmd, letters, longs);
	optind = 0; /* glibc: start again */
	opterr = 0;
	while ((c = getopt_long(argc, argv, letters, longs, NULL)) != -1) {
		res = read_flag(r, c, argv);
		if (res != OPTIONS_OK)
			return res;
	}
	r->o->args = argv + optind;
	r->o->nargs = argc - optind;
	if (!r->o->nargs || *options_commands[r->cmd].args)
		return OPTIONS_OK;
	snprintf(
		r->msg, r->msglen,
		"profd %s: argument '%s' is not expected (see profd %s --help)",
		options_commands[r->cmd].word, argv[optind],
		options_commands[r->cmd].word);
	return OPTIONS_USAGE;
}

enum options_result options_parse(struct options *o, enum options_command cmd,
				  int argc, char **argv, char *msg,
				  size_t msglen)
{
	struct reading r = { .o = o, .cmd = cmd, .msg = msg, .msglen = msglen };
	enum options_result res;

	memset(o, 0, sizeof(*o));
	arena_init(&o->arena);
	res = read_flags(&r, argc, argv);
	if (res != OPTIONS_OK)
		return res;
	if (!o->config)
		o->config = OPTIONS_CONFIG;
	if (options_table[OPTIONS_ID_config].commands & 1U << cmd) {
		res = read_config(&r);
		if (res != OPTIONS_OK)
			return res;
	}
	if (set_defaults(&r)) {
		snprintf(msg, msglen, "profd: %s", strerror(ENOMEM));
		return OPTIONS_FAILED;
	}
	return OPTIONS_OK;
}
