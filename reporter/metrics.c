// SPDX-License-Identifier: Apache-2.0
/*
 * metrics: what is counted, as Prometheus text (exposition format 0.0.4) and
 * as the lines of /status.
 */
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "reporter/internal.h"

/* One text at a time: the calls that belong to the other do nothing. */
struct reporter_metrics {
	bool prometheus;
	char last[128]; /* name of the metric before */
	struct strbuf text;
};

/* Whole numbers as such: 1e+06 is right but nobody's to read. */
static void metrics_value(struct strbuf *sb, double v)
{
	if (isnan(v))
		strbuf_puts(sb, "NaN\n");
	else if (isinf(v))
		strbuf_puts(sb, v > 0 ? "+Inf\n" : "-Inf\n");
	else if (v == floor(v) && fabs(v) < 9007199254740992.0)
		strbuf_printf(sb, "%.0f\n", v);
	else
		strbuf_printf(sb, "%.17g\n", v);
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

void reporter_metric(struct reporter_metrics *m, const char *name,
		     const char *help, bool counter, const char *labels,
		     double value)
{
	if (!m->prometheus)
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

	if (m->prometheus)
		return;
	va_start(ap, fmt);
	vsnprintf(value, sizeof(value), fmt, ap);
	va_end(ap);
	strbuf_printf(&m->text, "%s: %s\n", key, value);
}

static void metrics_collect(struct reporter *r, struct reporter_metrics *m)
{
	struct reporter_stats st;

	reporter_status(m, "version", "%s", r->version);
	reporter_status(m, "host", "%s", r->hostname);
	reporter_get_stats(r, &st);
	reporter_status(m, "windows", "%llu written, %llu failed",
			(unsigned long long)st.windows_written,
			(unsigned long long)st.windows_failed);
#define X(name, gauge, help)                                        \
	reporter_metric(m,                                          \
			(gauge) ? "profd_reporter_" #name           \
				: "profd_reporter_" #name "_total", \
			help, !(gauge), NULL, st.name);
	REPORTER_STATS(X)
#undef X
	if (r->collect)
		r->collect(r->arg, m);
}

static char *metrics_text(struct reporter *r, bool prometheus, size_t *lenp)
{
	struct reporter_metrics m = { .prometheus = prometheus };

	metrics_collect(r, &m);
	*lenp = m.text.len;
	return strbuf_steal(&m.text);
}

char *metrics_prometheus(struct reporter *r, size_t *lenp)
{
	return metrics_text(r, true, lenp);
}

char *metrics_status(struct reporter *r, size_t *lenp)
{
	return metrics_text(r, false, lenp);
}
