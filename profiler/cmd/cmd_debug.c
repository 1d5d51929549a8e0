// SPDX-License-Identifier: Apache-2.0
/*
 * cmd_debug: profd debug. What the unwinder knows of an executable, for people:
 * the same table, got the same way, as for a stack. What a running profd knows of
 * executables is in cmd_debug_files.c.
 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/cmd/cmd.h"
#include "profiler/unwind_rows.h"
#include "symbolize/symbolize.h"

/* --- a file's table --------------------------------------------------------- */

/* One file on its way to its table. */
struct getting {
	const char *path;
	struct symbolizer *s;
	struct symbolizer_file *file;
	struct symbolizer_rows *rows;
	uint64_t began, took; /* by the building of the table */
	const char *problem; /* or NULL */
};

static const char *problem_of(int err)
{
	switch (err) {
	case -ENOEXEC:
		return "not an ELF executable or library, or its headers are "
		       "damaged";
	case -ENODATA:
		return "no unwind information (.eh_frame, .debug_frame)";
	case -ENOTSUP:
		return "not of " SYMBOLIZER_MACHINE;
	case -EBADMSG:
		return "the process that reads it crashed, took too long or "
		       "ran out of memory";
	case -EIO:
		return "no process to read it could be started";
	case -EACCES:
		return "cannot be opened, or is no regular file";
	default:
		return strerror(-err);
	}
}

static void on_rows(void *arg, int err, struct symbolizer_rows *rows)
{
	struct getting *g = arg;

	g->took = clock_boottime_ns() - g->began;
	g->rows = rows;
	if (err)
		g->problem = problem_of(err);
	symbolizer_close(g->s, g->file);
}

static void on_open(void *arg, int err, struct symbolizer_file *file)
{
	struct getting *g = arg;

	g->file = file;
	g->began = clock_boottime_ns();
	if (!err)
		err = symbolizer_rows(g->s, file, on_rows, g);
	if (!err)
		return;
	g->problem = problem_of(err);
	symbolizer_close(g->s, file);
}

static int give_rows(void *arg, const uint8_t *id, size_t len,
		     struct symbolizer_rows *rows)
{
	return symbolizer_rows_by_hand(arg, id, len, rows);
}

/* The table of 'path', or NULL after a message. */
static struct symbolizer_rows *get_rows(const struct options *o,
					const char *path, uint64_t *took)
{
	/* Who opens it is elsewhere. */
	char *whole = realpath(path, NULL);
	struct symbolizer_open_req req = { .path = whole ? whole : path };
	struct symbolizer_opts opts = { 0 };
	struct getting g = { .path = path };
	uv_loop_t loop;
	int err = uv_loop_init(&loop);

	if (err) {
		free(whole);
		cmd_fail("%s: %s", path, strerror(-err));
		return NULL;
	}
	opts.loop = &loop;
	err = symbolizer_new(&g.s, &opts);
	if (!err && o->unwind_rows &&
	    unwind_rows_load(o->unwind_rows, give_rows, g.s))
		g.problem = "not all rows by hand could be read";
	if (!err && !g.problem)
		err = symbolizer_open(g.s, &req, on_open, &g);
	if (!err)
		uv_run(&loop, UV_RUN_DEFAULT);
	symbolizer_free(g.s);
	uv_run(&loop, UV_RUN_DEFAULT);
	uv_loop_close(&loop);
	free(whole);
	if (err)
		g.problem = problem_of(err);
	if (g.problem)
		cmd_fail("%s: %s", path, g.problem);
	if (took)
		*took = g.took;
	return g.rows;
}

/* Says what is damaged, or missing, if anything; an exit status. */
static int check_damage(const char *path, const struct symbolizer_rows *rows)
{
	struct symbolizer_rows_info info;

	symbolizer_rows_info(rows, &info);
	if (!info.damage && !info.rows)
		return cmd_fail("%s: the unwind information is about no "
				"executable segment of the file",
				path);
	if (!info.damage)
		return 0;
	if (!info.file_offset)
		return cmd_fail("%s: %s, offset 0x%" PRIx64
				" (uncompressed): %s; the table is partial",
				path, info.section, info.section_offset,
				info.damage);
	return cmd_fail("%s: %s, offset 0x%" PRIx64 " (of the file 0x%" PRIx64
			"): %s; the table is partial",
			path, info.section, info.section_offset,
			info.file_offset, info.damage);
}

/* --- rules as text ---------------------------------------------------------- */

/* The whole truth about one value, in the bytes of its expression if it must. */
static void debug_put_full(struct strbuf *out,
			   const struct symbolizer_rows *rows,
			   const struct symbolizer_value *v)
{
	const char *sp = symbolizer_reg_names[SYMBOLIZER_REG_SP];
	const uint8_t *code;
	size_t len = 0;

	switch (v->from) {
	case SYMBOLIZER_SAME:
		strbuf_puts(out, "unchanged");
		return;
	case SYMBOLIZER_UNDEFINED:
		strbuf_puts(out, "undefined");
		return;
	case SYMBOLIZER_ELSEWHERE:
		strbuf_puts(out, "on another stack");
		return;
	case SYMBOLIZER_REG:
		strbuf_printf(out, "%s%+d", symbolizer_reg_names[v->reg], v->n);
		return;
	case SYMBOLIZER_AT_REG:
		strbuf_printf(out, "*(%s%+d)", symbolizer_reg_names[v->reg],
			      v->n);
		return;
	case SYMBOLIZER_CFA:
		strbuf_printf(out, "cfa%+d", v->n);
		return;
	case SYMBOLIZER_AT_CFA:
		strbuf_printf(out, "*(cfa%+d)", v->n);
		return;
	case SYMBOLIZER_PLT:
		strbuf_printf(out, "%s+8, %s+16 where pc %% 16 >= %d", sp, sp,
			      v->n);
		return;
	}
	strbuf_puts(out, v->from == SYMBOLIZER_AT_EXPR ? "*(expr" : "(expr");
	code = symbolizer_rows_expr(rows, v->n, &len);
	for (size_t i = 0; i < len; i++)
		strbuf_printf(out, " %02x", code[i]);
	strbuf_puts(out, ")");
}

/* Prints what was made, and begins anew. False: it could not be. */
static bool debug_flush(struct strbuf *out)
{
	bool ok = !out->failed &&
		  (out->len == 0 ||
		   fwrite(out->data, 1, out->len, stdout) == out->len);

	strbuf_reset(out);
	return ok;
}

static int debug_finish(struct strbuf *out)
{
	bool ok = debug_flush(out) && fflush(stdout) == 0;

	strbuf_fini(out);
	return ok ? 0 : cmd_fail("standard output cannot be written");
}

/* --- the commands ------------------------------------------------------------ */

static int debug_print_stats(const struct symbolizer_rows *rows, uint64_t took)
{
	struct strbuf out = STRBUF_INIT;
	struct symbolizer_rows_info info;

	symbolizer_rows_info(rows, &info);
	strbuf_printf(&out,
		      "rows %zu\nrules %zu\nbytes %zu\ntext %" PRIu64 "\n",
		      info.rows, info.rules, info.bytes, info.text);
	strbuf_printf(&out, "bytes-per-MiB %.0f\ntime-ms %.3f\n",
		      info.text ? info.bytes / (info.text / 1048576.0) : 0,
		      took / 1e6);
	return debug_finish(&out);
}

static int print_rows(const struct symbolizer_rows *rows, bool full)
{
	struct strbuf out = STRBUF_INIT;
	struct symbolizer_rows_info info;
	uint64_t vaddr;
	uint16_t id;
	bool ok = true;

	symbolizer_rows_info(rows, &info);
	for (size_t i = 0; i < info.rows && ok; i++) {
		id = symbolizer_rows_at(rows, i, &vaddr);
		strbuf_printf(&out, "%" PRIx64 " ", vaddr);
		symbolizer_rows_put(rows, id, full, &out);
		strbuf_puts(&out, "\n");
		if (out.len > 65536)
			ok = debug_flush(&out);
	}
	return debug_finish(&out);
}

static int unwind_table(const struct options *o)
{
	struct symbolizer_rows *rows;
	uint64_t took;
	int status;

	if (o->nargs != 2) {
		fprintf(stderr, "profd debug unwind-table: one FILE is needed "
				"(see profd debug --help)\n");
		return OPTIONS_USAGE;
	}
	rows = get_rows(o, o->args[1], &took);
	if (!rows)
		return OPTIONS_FAILED;
	status = o->stats ? debug_print_stats(rows, took)
			  : print_rows(rows, o->full);
	if (!status)
		status = check_damage(o->args[1], rows);
	symbolizer_rows_free(rows);
	return status;
}

static int print_rule(const char *what, const struct symbolizer_rows *rows,
		      uint64_t pc)
{
	uint16_t id = symbolizer_rows_find(rows, pc);
	struct strbuf out = STRBUF_INIT;
	struct symbolizer_rule rule;

	symbolizer_rows_rule(rows, id, &rule);
	strbuf_printf(&out, "%s: ", what);
	symbolizer_rows_put(rows, id, false, &out);
	strbuf_puts(&out, "\n");
	if (rule.cfa.from != SYMBOLIZER_SAME) {
		strbuf_puts(&out, "  cfa  ");
		debug_put_full(&out, rows, &rule.cfa);
		strbuf_puts(&out, rule.signal ? ", signal frame\n" : "\n");
	}
	for (int i = 0; i < SYMBOLIZER_REGS; i++) {
		const struct symbolizer_value *v = &rule.regs[i];

		if (v->from == SYMBOLIZER_SAME ||
		    (i == SYMBOLIZER_REG_SP && v->from == SYMBOLIZER_CFA &&
		     !v->n))
			continue;
		strbuf_printf(&out, "  %-3s  ", symbolizer_reg_names[i]);
		debug_put_full(&out, rows, v);
		strbuf_puts(&out, "\n");
	}
	return debug_finish(&out);
}

/* FILE:PC, hexadecimal, at the last colon. An exit status. */
static int unwind_one(const struct options *o, const char *arg)
{
	const char *colon = strrchr(arg, ':');
	struct symbolizer_rows *rows;
	uint64_t pc;
	char *end, *path;
	int status;

	errno = 0;
	pc = colon ? strtoull(colon + 1, &end, 16) : 0;
	if (!colon || colon == arg || !isxdigit((unsigned char)colon[1]) ||
	    *end || errno) {
		fprintf(stderr,
			"profd debug unwind: '%s': must be FILE:PC, PC a "
			"hexadecimal address\n",
			arg);
		return OPTIONS_USAGE;
	}
	path = strndup(arg, (size_t)(colon - arg));
	if (!path)
		return cmd_fail("%s", strerror(ENOMEM));
	rows = get_rows(o, path, NULL);
	status = rows ? print_rule(arg, rows, pc) : OPTIONS_FAILED;
	if (!status)
		status = check_damage(path, rows);
	symbolizer_rows_free(rows);
	free(path);
	return status;
}

static int debug_unwind(const struct options *o)
{
	int status = 0, one;

	if (o->nargs < 2 || o->stats || o->full) {
		fprintf(stderr,
			"profd debug unwind: %s (see profd debug "
			"--help)\n",
			o->stats  ? "--stats is for unwind-table"
			: o->full ? "--full is for unwind-table"
				  : "FILE:PC is needed");
		return OPTIONS_USAGE;
	}
	for (size_t i = 1; i < o->nargs; i++) {
		one = unwind_one(o, o->args[i]);
		status = MAX(status, one);
	}
	return status;
}

static const struct {
	const char *word;
	int (*run)(const struct options *o);
} commands[] = {
	{ "unwind-table", unwind_table },
	{ "unwind", debug_unwind },
	{ "files", cmd_debug_files },
};

int cmd_debug(const struct options *o)
{
	const char *word = o->nargs ? o->args[0] : "";

	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		if (!strcmp(word, commands[i].word))
			return commands[i].run(o);
	if (*word)
		fprintf(stderr, "profd debug: unknown '%s'", word);
	else
		fprintf(stderr, "profd debug: what is needed");
	fprintf(stderr,
		" (unwind-table, unwind or files; see profd debug --help)\n");
	return OPTIONS_USAGE;
}
