// SPDX-License-Identifier: Apache-2.0
/*
 * cmd_debug: profd debug. Prints the unwind table of an executable, which is read
 * and built in the same way as for samples. See also cmd_debug_files.c.
 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/cmd/cmd.h"
#include "profiler/cmd/lines.h"
#include "profiler/inspect/naming.h"
#include "profiler/unwind_rows.h"
#include "symbolize/symbolize.h"

/* --- a file's table --------------------------------------------------------- */

static int give_rows(void *arg, const uint8_t *id, size_t len,
		     struct symbolizer_rows *rows)
{
	return symbolizer_rows_by_hand(arg, id, len, rows);
}

/* The table of 'path', or NULL after a message. 'took' may be NULL. */
static struct symbolizer_rows *get_rows(const struct options *o,
					const char *path, uint64_t *took)
{
	struct symbolizer_rows *rows = NULL;
	struct symbolizer_file *file = NULL;
	const char *problem = NULL;
	struct naming *n = NULL;
	uint64_t began = 0;
	bool opened;
	int err = naming_new(&n, o);

	if (!err && o->unwind_rows &&
	    unwind_rows_load(o->unwind_rows, give_rows, naming_symbolizer(n)))
		problem = "a file of --unwind-rows could not be read";
	if (!err && !problem)
		err = naming_open(n, path, NULL, 0, &file);
	if (!err && !problem) {
		began = clock_boottime_ns();
		err = naming_rows(n, file, &rows);
	}
	if (took)
		*took = clock_boottime_ns() - began;
	opened = file;
	naming_close(n, file);
	naming_free(n);
	if (err)
		problem = opened && err == -ENOEXEC
				  ? "the unwind information of relocatable "
				    "and compressed files is not read"
				  : symbolizer_problem(err);
	if (problem)
		cmd_fail("%s: %s", path, problem);
	return rows;
}

/* Reports damage of the unwind information; an exit status. */
static int check_damage(const char *path, const struct symbolizer_rows *rows)
{
	struct symbolizer_rows_info info;

	symbolizer_rows_info(rows, &info);
	if (!info.damage && !info.rows)
		return cmd_fail("%s: the unwind information does not belong "
				"to an executable segment",
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

/* Around the register and the number of a value. */
static const struct {
	const char *before, *after;
	bool reg, n;
} debug_forms[] = {
	[SYMBOLIZER_SAME] = { "unchanged", "", false, false },
	[SYMBOLIZER_UNDEFINED] = { "undefined", "", false, false },
	[SYMBOLIZER_ELSEWHERE] = { "on another stack", "", false, false },
	[SYMBOLIZER_REG] = { "", "", true, true },
	[SYMBOLIZER_AT_REG] = { "*(", ")", true, true },
	[SYMBOLIZER_CFA] = { "cfa", "", false, true },
	[SYMBOLIZER_AT_CFA] = { "*(cfa", ")", false, true },
	[SYMBOLIZER_EXPR] = { "(expr", ")", false, false },
	[SYMBOLIZER_AT_EXPR] = { "*(expr", ")", false, false },
};

static void debug_put_full(struct strbuf *out,
			   const struct symbolizer_rows *rows,
			   const struct symbolizer_value *v)
{
	const char *sp = symbolizer_reg_names[SYMBOLIZER_REG_SP];
	const uint8_t *code;
	size_t i, len = 0;

	if (v->from == SYMBOLIZER_PLT) {
		strbuf_printf(out, "%s+8, %s+16 where pc %% 16 >= %d", sp, sp,
			      v->n);
		return;
	}
	strbuf_puts(out, debug_forms[v->from].before);
	if (debug_forms[v->from].reg)
		strbuf_puts(out, symbolizer_reg_names[v->reg]);
	if (debug_forms[v->from].n)
		strbuf_printf(out, "%+d", v->n);
	if (v->from == SYMBOLIZER_EXPR || v->from == SYMBOLIZER_AT_EXPR) {
		code = symbolizer_rows_expr(rows, v->n, &len);
		for (i = 0; i < len; i++)
			strbuf_printf(out, " %02x", code[i]);
	}
	strbuf_puts(out, debug_forms[v->from].after);
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
	if (info.by_code)
		strbuf_puts(&out, "made-from instructions\n");
	strbuf_printf(&out, "bytes-per-MiB %.0f\ntime-ms %.3f\n",
		      info.text ? info.bytes / (info.text / 1048576.0) : 0,
		      took / 1e6);
	return cmd_print(&out);
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
			ok = lines_print(&out);
	}
	out.failed |= !ok;
	return cmd_print(&out);
}

static int debug_unwind_table(const struct options *o)
{
	struct symbolizer_rows *rows;
	uint64_t took;
	int status;

	if (o->nargs != 2)
		return cmd_usage("debug", "unwind-table: needs one FILE");
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
	return cmd_print(&out);
}

/* FILE:PC; FILE may have colons. An exit status. */
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
	    *end || errno)
		return cmd_usage("debug",
				 "unwind: '%s': must be FILE:PC, with PC in "
				 "hexadecimal",
				 arg);
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

	if (o->nargs < 2 || o->stats || o->full)
		return cmd_usage("debug", "unwind: %s",
				 o->stats  ? "--stats is for unwind-table"
				 : o->full ? "--full is for unwind-table"
					   : "needs FILE:PC");
	for (size_t i = 1; i < o->nargs; i++) {
		one = unwind_one(o, o->args[i]);
		status = MAX(status, one);
	}
	return status;
}

#define DEBUG_WORDS "unwind-table, unwind, symbolize or files"

static int (*const debug_commands[])(const struct options *o) = {
#define X(name, function, ...) [OPTIONS_DEBUG_BIT_##name] = function,
	OPTIONS_DEBUG_COMMANDS(X)
#undef X
};

int cmd_debug(const struct options *o)
{
	const char *word = o->nargs ? o->args[0] : "";

	int cmd = options_debug_command(word);

	if (cmd >= 0)
		return debug_commands[cmd](o);
	return cmd_usage("debug",
			 *word ? "unknown '%s': must be " DEBUG_WORDS
			       : "%sneeds " DEBUG_WORDS,
			 word);
}
