// SPDX-License-Identifier: Apache-2.0
/* pages: see profiler/view/pages.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/view/load.h"
#include "profiler/view/pages.h"

#define PAGES_LIMIT "10000" /* objects of an answer */

static const struct {
	const char *path, *member;
} pages_kinds[] = {
	[REPORTER_LIST_WINDOWS] = { "/api/windows", "windows" },
	[REPORTER_LIST_PROCESSES] = { "/api/processes", "processes" },
};

struct pages {
	struct ask *ask;
	struct reporter_list list; /* of the archive's own directory */
	int (*item)(void *arg, json_t *o);
	void *arg;
	char after[24]; /* "next" of the last answer; "": the first */
};

static int pages_server(struct pages *p, struct strbuf *out)
{
	struct load_get get = { .o = p->ask->o };
	struct strbuf path = STRBUF_INIT;
	int err = -ENOMEM;

	strbuf_printf(&path, "%s?limit=" PAGES_LIMIT,
		      pages_kinds[p->list.kind].path);
	strbuf_puts(&path, strbuf_str(&p->ask->url));
	if (*p->after)
		strbuf_printf(&path, "&after=%s", p->after);
	get.path = strbuf_str(&path);
	if (get.path)
		err = load_get(&get);
	strbuf_fini(&path);
	*out = get.body;
	return err ? cmd_fail("%s", *get.msg ? get.msg : strerror(-err)) : 0;
}

static int pages_archive(struct pages *p, struct strbuf *out)
{
	struct reporter_request_run run = {
		.archive = p->ask->o->query_archive,
		.progress = ask_progress,
		.arg = p->ask,
	};
	const char *want;
	int err = 0;

	p->list = (struct reporter_list){ .kind = p->list.kind };
	err = reporter_list_set(p->ask->request, &p->list, "limit", PAGES_LIMIT,
				&want);
	if (!err && *p->after)
		err = reporter_list_set(p->ask->request, &p->list, "after",
					p->after, &want);
	if (!err)
		err = reporter_list_run(p->ask->request, &p->list, &run, out);
	return ask_result(p->ask, &run, err);
}

/* Passes on the objects of the next answer. */
static int pages_next(struct pages *p)
{
	const struct options *o = p->ask->o;
	const char *member = pages_kinds[p->list.kind].member, *next;
	struct strbuf text = STRBUF_INIT;
	json_t *answer = NULL, *page;
	int status = o->query_archive ? pages_archive(p, &text)
				      : pages_server(p, &text);
	size_t i;

	if (!status)
		answer = json_loadb(text.data, text.len, 0, NULL);
	strbuf_fini(&text);
	if (status)
		return status;
	page = json_object_get(answer, member);
	if (!json_is_array(page))
		status = cmd_fail("%s: its answer is no list of %s",
				  o->query_archive ? o->query_archive
						   : o->server,
				  member);
	for (i = 0; i < json_array_size(page) && !status; i++)
		status = p->item(p->arg, json_array_get(page, i));
	next = json_string_value(json_object_get(answer, "next"));
	snprintf(p->after, sizeof(p->after), "%s", next ? next : "");
	if (!json_array_size(page))
		*p->after = '\0';
	json_decref(answer);
	return status;
}

int pages_read(struct ask *a, enum reporter_list_kind kind,
	       int (*item)(void *arg, json_t *o), void *arg)
{
	struct pages p = {
		.ask = a,
		.list = { .kind = kind },
		.item = item,
		.arg = arg,
	};
	int status;

	do
		status = pages_next(&p);
	while (!status && *p.after);
	return status;
}

void pages_json(struct strbuf *out, const json_t *o)
{
	char *text = json_dumps(o, JSON_COMPACT | JSON_ENSURE_ASCII);

	if (text)
		strbuf_printf(out, "%s\n", text);
	else
		out->failed = true;
	free(text);
}
