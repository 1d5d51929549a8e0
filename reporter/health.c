// SPDX-License-Identifier: Apache-2.0
/* health: see reporter/health.h. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "reporter/health.h"
#include "reporter/http/http.h"

/* Writing a window takes a second or two, unless the disk does not respond. */
#define HEALTH_WRITE_NS (30 * CLOCK_NSEC_PER_SEC)

void reporter_reason(struct reporter_health *h, bool failing, const char *fmt,
		     ...)
{
	struct strbuf text = STRBUF_INIT;
	struct health_reason *reason;
	char raw[sizeof(reason->text)];
	const char *s;
	va_list ap;

	if (h->n == HEALTH_REASONS_MAX)
		return;
	reason = &h->reasons[h->n++];
	reason->failing = failing;
	va_start(ap, fmt);
	vsnprintf(raw, sizeof(raw), fmt, ap);
	va_end(ap);
	/* Escapes what a path may contain, ends of lines for example. */
	text_add(&text, raw, strlen(raw));
	s = strbuf_str(&text);
	snprintf(reason->text, sizeof(reason->text), "%s", s ? s : "");
	strbuf_fini(&text);
}

static void health_archive(struct reporter *r, struct reporter_health *h)
{
	uint64_t waited = clock_awake_ns() - r->jobs_since;
	const char *problem;

	if (!r->store)
		return;
	if (r->stats.archive_stopped)
		reporter_degraded(h,
				  "the archive %s is not written: too little "
				  "free space (keep-free)",
				  store_dir(r->store));
	else if (r->write_err)
		reporter_failing(h, "the archive %s cannot be written: %s",
				 store_dir(r->store), strerror(-r->write_err));
	else if (r->archive_jobs && waited >= HEALTH_WRITE_NS)
		reporter_failing(
			h,
			"the archive %s does not answer: a window has "
			"been written for %llu s",
			store_dir(r->store),
			(unsigned long long)(waited / CLOCK_NSEC_PER_SEC));
	problem = catalog_problem(r->catalog);
	if (problem)
		reporter_degraded(h, "the catalog of %s is not written: %s",
				  store_dir(r->store), problem);
}

static void health_listeners(struct reporter *r, struct reporter_health *h)
{
	const struct http *l;

	for (l = r->http; l; l = l->next)
		if (!http_socket_there(&l->socket))
			reporter_failing(
				h,
				"clients cannot connect: %s is not our socket",
				l->socket.address.un.sun_path);
}

enum health_state health_collect(struct reporter *r,
				 struct reporter_health *out)
{
	enum health_state state = HEALTH_OK;
	size_t i;

	out->n = 0;
	health_archive(r, out);
	health_listeners(r, out);
	if (r->opts.health)
		r->opts.health(r->opts.arg, out);
	for (i = 0; i < out->n; i++)
		state = MAX(state, out->reasons[i].failing ? HEALTH_FAILING
							   : HEALTH_DEGRADED);
	return state;
}

const char *health_word(enum health_state state)
{
	static const char *const words[] = {
		[HEALTH_OK] = "ok",
		[HEALTH_DEGRADED] = "degraded",
		[HEALTH_FAILING] = "failing",
	};

	return words[state];
}

void health_text(const struct reporter_health *h, struct strbuf *sb)
{
	const char *between = "";
	size_t i, pass;

	for (pass = 0; pass < 2; pass++)
		for (i = 0; i < h->n; i++) {
			if (h->reasons[i].failing == (pass > 0))
				continue;
			strbuf_printf(sb, "%s%s", between, h->reasons[i].text);
			between = "; ";
		}
}
