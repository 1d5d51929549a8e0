// SPDX-License-Identifier: Apache-2.0
/*
 * cmd_debug_symbolize: profd debug symbolize. Functions, files and lines of
 * addresses in a file, read in the same way as for samples. Addresses are
 * arguments or lines of standard input: numbers, or places in a function or section.
 * Those that can be read without waiting are
 * answered together, so that a program that writes one and waits for its answer gets
 * it.
 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "profiler/cmd/cmd.h"
#include "profiler/cmd/lines.h"
#include "profiler/inspect/naming.h"

#define SYMBOLIZE_INPUT 65536 /* bytes of standard input read at once */
/* Addresses answered together: a large file is read once for all of them. */
#define SYMBOLIZE_TOGETHER (1U << 17)
#define SYMBOLIZE_OUTPUT 65536 /* output collected before it is written */

struct symbolize {
	const struct options *o;
	const char *path, *base; /* the last component */
	struct naming *n;
	struct symbolizer_file *file;
	uint64_t *vaddrs; /* to be looked up together */
	size_t nvaddrs, cap;
	uint64_t *offsets; /* of those that are in code */
	uint64_t total, outside; /* addresses, and those that are not in code */
	struct strbuf out;
	bool unwritten; /* standard output failed */
};

static const char *const symbolize_words[] = {
#define X(name, word) [SYMBOLIZER_SOURCE_##name] = word,
	SYMBOLIZER_SOURCES(X)
#undef X
};

/* --- output ---------------------------------------------------------------- */

static void symbolize_text_function(struct strbuf *out,
				    const struct symbolizer_function *f)
{
	lines_text(out, f->name);
	if (*f->file) {
		strbuf_puts(out, " at ");
		lines_text(out, f->file);
	}
	if (*f->file && f->line)
		strbuf_printf(out, ":%" PRIu32, f->line);
	strbuf_puts(out, "\n");
}

/*
 * Columns of a fixed width: the address, the source of the name, the function;
 * callers of inlined functions in lines of their own.
 */
static void symbolize_text(struct symbolize *z, uint64_t vaddr,
			   const struct symbolizer_symbol *sym)
{
	struct strbuf *out = &z->out;
	char address[24];

	snprintf(address, sizeof(address), "0x%" PRIx64, vaddr);
	strbuf_printf(out, "%-18s  %-12s  ", address,
		      sym ? symbolize_words[sym->source] : "-");
	if (!sym) {
		strbuf_puts(out, "not in the code of the file\n");
	} else if (!sym->nfunctions) {
		/* As profiles have it. */
		lines_text(out, z->base);
		strbuf_printf(out, "+0x%" PRIx64 "\n",
			      sym->size ? sym->start : vaddr);
	}
	for (size_t i = 0; sym && i < sym->nfunctions; i++) {
		if (i)
			strbuf_printf(out, "%-18s  %-12s  ", "",
				      "inlined into");
		symbolize_text_function(out, &sym->functions[i]);
	}
}

static void symbolize_json_function(struct strbuf *out,
				    const struct symbolizer_function *f)
{
	strbuf_puts(out, "{\"function\":");
	text_add_json_string(out, f->name);
	strbuf_puts(out, ",\"system_name\":");
	text_add_json_string(out, f->system_name);
	if (*f->file) {
		strbuf_puts(out, ",\"file\":");
		text_add_json_string(out, f->file);
	}
	if (f->line)
		strbuf_printf(out, ",\"line\":%" PRIu32, f->line);
	if (f->start_line)
		strbuf_printf(out, ",\"start_line\":%" PRIu32, f->start_line);
	strbuf_puts(out, "}");
}

/* One object a line. Numbers of 64 bits are text: JSON readers lose digits. */
static void symbolize_json(struct symbolize *z, uint64_t vaddr,
			   const struct symbolizer_symbol *sym)
{
	struct strbuf *out = &z->out;

	strbuf_printf(out, "{\"address\":\"0x%" PRIx64 "\"", vaddr);
	if (!sym)
		strbuf_puts(out, ",\"error\":\"not in code\"");
	else
		strbuf_printf(out, ",\"source\":\"%s\"",
			      symbolize_words[sym->source]);
	if (sym && sym->size)
		strbuf_printf(out,
			      ",\"start\":\"0x%" PRIx64 "\",\"size\":%" PRIu64,
			      sym->start, sym->size);
	if (sym && sym->module) {
		strbuf_puts(out, ",\"module\":");
		text_add_json_string(out, sym->module);
	}
	strbuf_puts(out, ",\"frames\":[");
	for (size_t i = 0; sym && i < sym->nfunctions; i++) {
		if (i)
			strbuf_puts(out, ",");
		symbolize_json_function(out, &sym->functions[i]);
	}
	strbuf_puts(out, "]}\n");
}

/* --- addresses --------------------------------------------------------------- */

/* The answer for the addresses that are in code, in their order. */
static void symbolize_on_names(void *arg, int err,
			       const struct symbolizer_symbol *syms, size_t n)
{
	const struct symbolizer_symbol *sym = syms;
	struct symbolize *z = arg;
	uint64_t offset;

	for (size_t i = 0; i < z->nvaddrs && !z->unwritten; i++) {
		bool code = naming_offset(z->n, z->file, z->vaddrs[i], &offset);

		(z->o->json ? symbolize_json : symbolize_text)(
			z, z->vaddrs[i], code ? sym : NULL);
		sym += code;
		z->outside += !code;
		if (z->out.len > SYMBOLIZE_OUTPUT)
			z->unwritten = !lines_print(&z->out);
	}
}

/* Answers the collected addresses; an exit status, after a message. */
static int symbolize_batch(struct symbolize *z)
{
	size_t n = 0;
	int err = 0;

	for (size_t i = 0; i < z->nvaddrs; i++)
		n += naming_offset(z->n, z->file, z->vaddrs[i], &z->offsets[n]);
	if (n)
		err = naming_resolve(z->n, z->file, z->offsets, n,
				     symbolize_on_names, z);
	else
		symbolize_on_names(z, 0, NULL, 0);
	z->total += z->nvaddrs;
	z->nvaddrs = 0;
	if (err)
		return cmd_fail("%s: %s", z->path, symbolizer_problem(err));
	if (z->unwritten)
		return cmd_fail("cannot write to standard output");
	return cmd_print(&z->out);
}

/* Hexadecimal, with or without 0x. */
static bool symbolize_parse(const char *text, size_t len, uint64_t *out)
{
	size_t i = len > 2 && text[0] == '0' && (text[1] | 0x20) == 'x' ? 2 : 0;

	if (i == len || len - i > 16)
		return false;
	for (*out = 0; i < len; i++) {
		unsigned char c = (unsigned char)text[i];

		if (!isxdigit(c))
			return false;
		*out = *out << 4 |
		       (isdigit(c) ? c - '0' : (c | 0x20) - 'a' + 10);
	}
	return true;
}

/*
 * "NAME" or "NAME+OFFSET": the length of the name, which is no number; 0: it is neither.
 * Backtraces of the kernel have the latter.
 */
static size_t symbolize_parse_place(const char *text, size_t len,
				    uint64_t *offset)
{
	const char *plus = memrchr(text, '+', len);
	size_t name = plus ? (size_t)(plus - text) : len;

	*offset = 0;
	if (!name || isdigit((unsigned char)*text) ||
	    (plus && !symbolize_parse(plus + 1, len - name - 1, offset)))
		return 0;
	for (size_t i = 0; i < name; i++)
		if (!isgraph((unsigned char)text[i]))
			return 0;
	return name;
}

static bool symbolize_is_address(const char *text, size_t len)
{
	uint64_t v;

	return symbolize_parse(text, len, &v) ||
	       symbolize_parse_place(text, len, &v);
}

/* The address of a place; 0, -EINVAL, or an error of naming_find(). */
static int symbolize_find(struct symbolize *z, const char *text, size_t len,
			  uint64_t *vaddr)
{
	uint64_t offset, size;
	size_t n = symbolize_parse_place(text, len, &offset);
	char *name;
	int err;

	if (!n)
		return -EINVAL;
	name = strndup(text, n);
	if (!name)
		return -ENOMEM;
	err = naming_find(z->n, z->file, name, vaddr, &size);
	free(name);
	if (err)
		return err;
	if (size && offset >= size)
		return -ERANGE;
	*vaddr += offset;
	return 0;
}

/* 0; -EINVAL: not an address; -ENOMEM; or an error of naming_find(). */
static int symbolize_add(struct symbolize *z, const char *text, size_t len)
{
	uint64_t *offsets, vaddr;
	int err;

	if (!symbolize_parse(text, len, &vaddr)) {
		err = symbolize_find(z, text, len, &vaddr);
		if (err)
			return err;
	}
	if (z->nvaddrs == z->cap) {
		if (VECTOR_ROOM(z->vaddrs, z->nvaddrs, z->cap))
			return -ENOMEM;
		offsets = realloc(z->offsets, z->cap * sizeof(*offsets));
		if (!offsets) {
			z->cap = z->nvaddrs;
			return -ENOMEM;
		}
		z->offsets = offsets;
	}
	z->vaddrs[z->nvaddrs++] = vaddr;
	return 0;
}

/* After an error of symbolize_add(); an exit status. */
static int symbolize_fail(const struct symbolize *z, const char *text,
			  size_t len, int err)
{
	return cmd_fail("%s: %.*s: %s", z->path, (int)MIN(len, 64), text,
			err == -ENOENT	     ? "no such function or section"
			: err == -EOPNOTSUPP ? "only addresses"
					     : symbolizer_problem(err));
}

/* --- standard input ---------------------------------------------------------- */

/* A line without its end; empty ones are skipped. An exit status. */
static int symbolize_line(struct symbolize *z, const char *text, size_t len,
			  uint64_t number)
{
	int err;

	while (len && isspace((unsigned char)*text)) {
		text++;
		len--;
	}
	while (len && isspace((unsigned char)text[len - 1]))
		len--;
	err = len ? symbolize_add(z, text, len) : 0;
	if (err == -EINVAL)
		return cmd_fail("standard input, line %" PRIu64
				": '%.*s': must be an address in hexadecimal, "
				"a function or a section",
				number, (int)MIN(len, 64), text);
	return err ? symbolize_fail(z, text, len, err) : 0;
}

/* Whether read() returns at once; also true at the end. */
static bool symbolize_has_input(void)
{
	struct pollfd p = { .fd = STDIN_FILENO, .events = POLLIN };

	return poll(&p, 1, 0) > 0;
}

/* The complete lines of 'buf', whose lengths are removed from *len. */
static int symbolize_lines(struct symbolize *z, char *buf, size_t *len,
			   bool end, uint64_t *number)
{
	char *p = buf, *stop = buf + *len, *eol;
	int status = 0, answer = 0;

	while (!status && p < stop) {
		eol = memchr(p, '\n', (size_t)(stop - p));
		/* A line that does not fit in the buffer is no address. */
		if (!eol && !end && !(p == buf && *len == SYMBOLIZE_INPUT))
			break;
		eol = eol ? eol : stop;
		status = symbolize_line(z, p, (size_t)(eol - p), ++*number);
		p = eol < stop ? eol + 1 : stop;
	}
	if (status || end || z->nvaddrs >= SYMBOLIZE_TOGETHER ||
	    !symbolize_has_input())
		answer = symbolize_batch(z);
	*len = (size_t)(stop - p);
	memmove(buf, p, *len);
	return MAX(status, answer);
}

static int symbolize_input(struct symbolize *z)
{
	char *buf = malloc(SYMBOLIZE_INPUT);
	uint64_t number = 0;
	size_t len = 0;
	int status = buf ? 0 : cmd_fail("%s", strerror(ENOMEM));
	ssize_t n = 1;

	while (n && !status) {
		n = TEMP_FAILURE_RETRY(
			read(STDIN_FILENO, buf + len, SYMBOLIZE_INPUT - len));
		if (n < 0) {
			status =
				cmd_fail("standard input: %s", strerror(errno));
			break;
		}
		len += (size_t)n;
		status = symbolize_lines(z, buf, &len, !n, &number);
	}
	free(buf);
	return status;
}

/* --- the command -------------------------------------------------------------- */

static int symbolize_arguments(struct symbolize *z)
{
	const struct options *o = z->o;

	for (size_t i = 2; i < o->nargs; i++) {
		size_t len = strlen(o->args[i]);
		int err = symbolize_add(z, o->args[i], len);

		if (err)
			return symbolize_fail(z, o->args[i], len, err);
	}
	return symbolize_batch(z);
}

static int symbolize_check(const struct options *o)
{
	if (o->nargs < 2 || o->stats || o->full)
		return cmd_usage("debug", "symbolize: %s",
				 o->stats  ? "--stats is for unwind-table"
				 : o->full ? "--full is for unwind-table"
					   : "needs FILE");
	for (size_t i = 2; i < o->nargs; i++)
		if (!symbolize_is_address(o->args[i], strlen(o->args[i])))
			return cmd_usage("debug",
					 "symbolize: '%s': must be an address "
					 "in hexadecimal, a function or a "
					 "section",
					 o->args[i]);
	return 0;
}

/* Lines and inlined functions are missing. An exit status. */
static int symbolize_check_relocation(const struct symbolize *z)
{
	uint32_t type = symbolizer_relocation(z->file);

	return type ? cmd_fail("%s: its debug information is not used: "
			       "relocations of type %" PRIu32 " are not known",
			       z->path, type)
		    : 0;
}

static int symbolize_file(struct symbolize *z)
{
	int status, err = naming_open(z->n, z->path, NULL, 0, &z->file);

	if (err)
		return cmd_fail("%s: %s", z->path, symbolizer_problem(err));
	status = z->o->nargs > 2 ? symbolize_arguments(z) : symbolize_input(z);
	if (!status)
		status = symbolize_check_relocation(z);
	naming_close(z->n, z->file);
	if (!status && z->outside)
		status = cmd_fail("%s: %" PRIu64 " of %" PRIu64
				  " addresses are not in its code",
				  z->path, z->outside, z->total);
	return status;
}

int cmd_debug_symbolize(const struct options *o)
{
	struct symbolize z = { .o = o };
	int err, status = symbolize_check(o);

	if (status)
		return status;
	z.path = o->args[1];
	z.base = strrchr(z.path, '/') ? strrchr(z.path, '/') + 1 : z.path;
	err = naming_new(&z.n, o);
	status = err ? cmd_fail("%s", strerror(-err)) : symbolize_file(&z);
	naming_free(z.n);
	strbuf_fini(&z.out);
	free(z.vaddrs);
	free(z.offsets);
	return status;
}
