// SPDX-License-Identifier: Apache-2.0
/*
 * cmd_debug_files: profd debug files. The executables that a running profd
 * knows: their ids, and what was read from them.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "profiler/cmd/client.h"
#include "profiler/cmd/cmd.h"
#include "profiler/cmd/lines.h"

/* No column is empty. */
static const char *debug_files_column(const json_t *o, const char *key)
{
	const char *s = lines_str(o, key);

	return *s ? s : "-";
}

/* An error is "no" here, in a width of 5, and follows the path. */
static void debug_files_answer(struct strbuf *sb, const char *answer)
{
	if (!*answer)
		answer = "-";
	else if (strcmp(answer, "yes") != 0 && strcmp(answer, "none") != 0)
		answer = "no";
	strbuf_printf(sb, "%-5s ", answer);
}

/* Why it could not be opened or read; "" if it could. */
static const char *debug_files_problem(const json_t *o)
{
	static const char *const keys[] = { "error", "names", "rows" };
	const char *s;

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		s = lines_str(o, keys[i]);
		if (*s && strcmp(s, "yes") != 0 && strcmp(s, "none") != 0)
			return s;
	}
	return "";
}

/* In KiB, rounded up: a width of 8. */
static void debug_files_size(struct strbuf *sb, uint64_t bytes)
{
	if (bytes)
		strbuf_printf(sb, "%7" PRIu64 "K ", (bytes + 1023) >> 10);
	else
		strbuf_printf(sb, "%8s ", "-");
}

/* Above the first line: without an answer there is no table. */
static void debug_files_heading(bool *printed)
{
	if (!*printed)
		printf("%-16s %-40s OPEN MAPPINGS ROWS     TABLE NAMES  SYMBOLS "
		       "%-24s PATH\n",
		       "SHORT-ID", "BUILD-ID", "SOURCES");
	*printed = true;
}

static bool print_line(void *arg, json_t *o)
{
	json_t *sources = json_object_get(o, "sources"), *count;
	struct strbuf sb = STRBUF_INIT, list = STRBUF_INIT;
	const char *problem = debug_files_problem(o), *word;

	debug_files_heading(arg);
	strbuf_printf(&sb, "%-16s %-40s ", debug_files_column(o, "short_id"),
		      debug_files_column(o, "build_id"));
	strbuf_printf(&sb, "%-4s %8" PRIu64 " ",
		      json_is_true(json_object_get(o, "open")) ? "yes" : "no",
		      lines_int(o, "mappings"));
	debug_files_answer(&sb, lines_str(o, "rows"));
	debug_files_size(&sb, lines_int(o, "rows_bytes"));
	debug_files_answer(&sb, lines_str(o, "names"));
	debug_files_size(&sb, lines_int(o, "symbol_bytes"));
	json_object_foreach(sources, word, count)
	{
		strbuf_puts(&list, list.len ? ", " : "");
		lines_text(&list, word);
		strbuf_printf(&list, " %" JSON_INTEGER_FORMAT,
			      json_integer_value(count));
	}
	strbuf_printf(&sb, "%-24s ",
		      list.len && !list.failed ? list.data : "-");
	strbuf_fini(&list);
	lines_text(&sb, lines_str(o, "path"));
	if (*problem) {
		strbuf_puts(&sb, " (");
		lines_text(&sb, problem);
		strbuf_puts(&sb, ")");
	}
	strbuf_puts(&sb, "\n");
	return lines_print(&sb);
}

static bool print_json(void *arg, json_t *o)
{
	return lines_print_json(arg);
}

/* Requests the executables with an id, or all; an exit status. */
static int debug_files_request(const struct options *o, const char *id,
			       bool *heading)
{
	struct lines lines = { .line = o->json ? print_json : print_line,
			       .arg = o->json ? (void *)&lines : heading };
	char path[128] = "/executables";
	struct client_request req = { .path = path };

	if (id)
		snprintf(path, sizeof(path), "/executables?id=%s", id);
	return cmd_request_lines(o, &req, &lines);
}

int cmd_debug_files(const struct options *o)
{
	bool heading = false;
	int status = 0, one;
	size_t i, n;

	for (i = 1; i < o->nargs; i++) {
		n = strspn(o->args[i], "0123456789abcdefABCDEF");
		if (o->args[i][n] || n > 64)
			return cmd_usage("debug",
					 "files: '%s': must be a file id, "
					 "short id or build id, in hexadecimal",
					 o->args[i]);
	}
	if (o->nargs < 2)
		status = debug_files_request(o, NULL, &heading);
	for (i = 1; i < o->nargs; i++) {
		one = debug_files_request(o, o->args[i], &heading);
		status = MAX(status, one);
	}
	if (!status && !o->json)
		debug_files_heading(&heading);
	return status;
}
