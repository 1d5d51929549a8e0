// SPDX-License-Identifier: Apache-2.0
/*
 * metrics: counters and state as Prometheus text (exposition format 0.0.4), as
 * the lines of /status and as one JSON object.
 */
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <jansson.h>

#include "base/text.h"
#include "reporter/health.h"
#include "reporter/ledger/ledger.h"

#define METRICS_MIB (1 << 20)

/* One form at a time: calls for the other forms do nothing. */
struct reporter_metrics {
	enum metrics_form form;
	char last[128]; /* name of the previous metric */
	struct strbuf text; /* 'failed' is also that of 'o' */
	json_t *o; /* of METRICS_JSON */
};

/* Whole numbers are written without an exponent, below 2^53. */
static bool metrics_is_whole(double v)
{
	return v == floor(v) && fabs(v) < 9007199254740992.0;
}

static void metrics_value(struct strbuf *sb, double v)
{
	if (isnan(v))
		strbuf_puts(sb, "NaN\n");
	else if (isinf(v))
		strbuf_puts(sb, v > 0 ? "+Inf\n" : "-Inf\n");
	else
		strbuf_printf(sb, metrics_is_whole(v) ? "%.0f\n" : "%.17g\n",
			      v);
}

static void metrics_help(struct reporter_metrics *m, const char *name,
			 const char *help, bool counter)
{
	strbuf_printf(&m->text, "# HELP %s ", name);
	for (; *help; help++) {
		if (*help == '\\')
			strbuf_puts(&m->text, "\\\\");
		else if (*help == '\n')
			strbuf_puts(&m->text, "\\n");
		else
			strbuf_add(&m->text, help, 1);
	}
	strbuf_printf(&m->text, "\n# TYPE %s %s\n", name,
		      counter ? "counter" : "gauge");
}

/* --- JSON ------------------------------------------------------------------ */

static void metrics_put(struct reporter_metrics *m, json_t *o, const char *key,
			json_t *value)
{
	if (json_object_set_new_nocheck(o, key, value))
		m->text.failed = true;
}

/* The member 'key', created if missing. */
static json_t *metrics_child(struct reporter_metrics *m, json_t *o,
			     const char *key, json_t *(*make)(void))
{
	json_t *v = json_object_get(o, key);

	if (!v) {
		v = make();
		metrics_put(m, o, key, v);
	}
	return v;
}

static json_t *metrics_number(double v)
{
	return metrics_is_whole(v) ? json_integer((json_int_t)v) : json_real(v);
}

static void metrics_json(struct reporter_metrics *m, const char *name,
			 const char *labels, double value)
{
	json_t *all = metrics_child(m, m->o, "metrics", json_object);

	if (!isfinite(value))
		return;
	if (labels)
		metrics_put(m, metrics_child(m, all, name, json_object), labels,
			    metrics_number(value));
	else
		metrics_put(m, all, name, metrics_number(value));
}

void reporter_member_row(struct reporter_metrics *m, const char *group)
{
	json_t *list;

	if (m->form != METRICS_JSON)
		return;
	list = metrics_child(m, m->o, group, json_array);
	if (json_array_append_new(list, json_object()))
		m->text.failed = true;
}

static void metrics_member(struct reporter_metrics *m, const char *group,
			   const char *key, json_t *value)
{
	json_t *o = m->o;

	if (group)
		o = metrics_child(m, o, group, json_object);
	if (json_is_array(o))
		o = json_array_get(o, json_array_size(o) - 1);
	metrics_put(m, o, key, value);
}

void reporter_member_int(struct reporter_metrics *m, const char *group,
			 const char *key, uint64_t value)
{
	if (m->form == METRICS_JSON)
		metrics_member(m, group, key, json_integer((json_int_t)value));
}

void reporter_member_real(struct reporter_metrics *m, const char *group,
			  const char *key, double value)
{
	if (m->form == METRICS_JSON && isfinite(value))
		metrics_member(m, group, key, json_real(value));
}

void reporter_member_text(struct reporter_metrics *m, const char *group,
			  const char *key, const char *value)
{
	if (m->form == METRICS_JSON)
		metrics_member(m, group, key,
			       ledger_text(value, strlen(value)));
}

/* --- what is exported ------------------------------------------------------ */

void reporter_metric(struct reporter_metrics *m, const char *name,
		     const char *help, bool counter, const char *labels,
		     double value)
{
	if (m->form == METRICS_JSON) {
		metrics_json(m, name, labels, value);
		return;
	}
	if (m->form != METRICS_PROMETHEUS)
		return;
	if (strcmp(m->last, name)) {
		metrics_help(m, name, help, counter);
		snprintf(m->last, sizeof(m->last), "%s", name);
	}
	strbuf_puts(&m->text, name);
	if (labels)
		strbuf_printf(&m->text, "{%s}", labels);
	strbuf_puts(&m->text, " ");
	metrics_value(&m->text, value);
}

void reporter_status(struct reporter_metrics *m, const char *key,
		     const char *fmt, ...)
{
	char value[512];
	va_list ap;

	if (m->form != METRICS_TEXT)
		return;
	va_start(ap, fmt);
	vsnprintf(value, sizeof(value), fmt, ap);
	va_end(ap);
	/* Escapes ends of lines, which a path may contain. */
	strbuf_printf(&m->text, "%s: ", key);
	text_add(&m->text, value, strlen(value));
	strbuf_puts(&m->text, "\n");
}

static void metrics_health(struct reporter *r, struct reporter_metrics *m)
{
	struct reporter_health h;
	enum health_state state, i;
	json_t *reasons;
	size_t k;

	state = health_collect(r, &h);
	for (i = HEALTH_OK; i <= HEALTH_FAILING; i++) {
		char label[32];

		snprintf(label, sizeof(label), "state=\"%s\"", health_word(i));
		reporter_metric(m, "profd_health",
				"1 for the state that /healthz reports", false,
				label, i == state);
	}
	if (m->form == METRICS_TEXT) {
		strbuf_printf(&m->text, "health: %s%s", health_word(state),
			      state ? ": " : "");
		health_text(&h, &m->text);
		strbuf_puts(&m->text, "\n");
	}
	reporter_member_text(m, "health", "state", health_word(state));
	if (m->form != METRICS_JSON)
		return;
	reasons = metrics_child(m, json_object_get(m->o, "health"), "reasons",
				json_array);
	for (k = 0; k < h.n; k++)
		if (json_array_append_new(
			    reasons, ledger_text(h.reasons[k].text,
						 strlen(h.reasons[k].text))))
			m->text.failed = true;
}

static void metrics_events(struct reporter *r, struct reporter_metrics *m)
{
	char label[64];
	size_t i;

	for (i = 0; i < r->opts.nevent_types; i++) {
		snprintf(label, sizeof(label), "event=\"%s\"",
			 r->opts.event_types[i].name);
		reporter_metric(m, "profd_reporter_samples_total",
				"samples added, by event", true, label,
				r->type_samples[i]);
	}
}

/* What is there, what retention removed, and whom the catalog only counts. */
static void metrics_archive(const struct reporter_stats *st,
			    struct reporter_metrics *m)
{
	time_t oldest = (time_t)st->archive_oldest_seconds;
	char since[48] = "";
	struct tm tm;

	if (oldest && gmtime_r(&oldest, &tm))
		strftime(since, sizeof(since), " since %FT%TZ", &tm);
	reporter_status(m, "archive",
			"%llu windows%s, %.1f MiB; removed %llu windows, "
			"%.1f MiB",
			(unsigned long long)st->archive_windows, since,
			(double)st->archive_bytes / METRICS_MIB,
			(unsigned long long)st->windows_removed,
			(double)st->removed_bytes / METRICS_MIB);
	reporter_status(m, "catalog",
			"%.1f MiB, %llu processes written, %llu without "
			"samples counted only",
			(double)st->catalog_bytes / METRICS_MIB,
			(unsigned long long)st->catalog_processes,
			(unsigned long long)st->catalog_skipped);
}

static void metrics_all(struct reporter *r, struct reporter_metrics *m)
{
	struct reporter_stats st;

	reporter_status(m, "version", "%s", r->version);
	reporter_status(m, "host", "%s", r->hostname);
	reporter_member_text(m, NULL, "version", r->version);
	reporter_member_text(m, NULL, "host", r->hostname);
	metrics_health(r, m);
	reporter_get_stats(r, &st);
	reporter_status(m, "windows", "%llu written, %llu failed",
			(unsigned long long)st.windows_written,
			(unsigned long long)st.windows_failed);
	if (r->store)
		metrics_archive(&st, m);
	reporter_member_int(m, "windows", "written", st.windows_written);
	reporter_member_int(m, "windows", "failed", st.windows_failed);
	reporter_member_int(m, "windows", "empty", st.windows_empty);
#define X(name, gauge, help)                                        \
	reporter_metric(m,                                          \
			(gauge) ? "profd_reporter_" #name           \
				: "profd_reporter_" #name "_total", \
			help, !(gauge), NULL, st.name);
	REPORTER_STATS(X)
#undef X
	metrics_events(r, m);
	if (r->opts.collect)
		r->opts.collect(r->opts.arg, m);
}

char *metrics_text(struct reporter *r, enum metrics_form form, size_t *lenp)
{
	struct reporter_metrics m = { .form = form };

	if (form == METRICS_JSON)
		m.o = json_object();
	metrics_all(r, &m);
	if (form == METRICS_JSON)
		ledger_dump(m.o, &m.text);
	*lenp = m.text.len;
	return strbuf_steal(&m.text);
}
