// SPDX-License-Identifier: Apache-2.0
/* request: see reporter/request/request.h. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reporter/query/model.h"
#include "reporter/request/internal.h"
#include "reporter/request/lineage.h"
#include "reporter/request/moment.h"

#define REQUEST_HOUR_NS ((int64_t)(3600 * CLOCK_NSEC_PER_SEC))
#define REQUEST_TEXT_MAX 256 /* of what is no term */

int reporter_request_new(struct reporter_request **rp, int64_t now, bool local)
{
	struct reporter_request *r = calloc(1, sizeof(*r));

	*rp = r;
	if (!r)
		return -ENOMEM;
	r->now = now;
	r->local = local;
	r->format = REPORTER_QUERY_PPROF;
	return 0;
}

void reporter_request_free(struct reporter_request *r)
{
	if (!r)
		return;
	reporter_query_terms_fini(&r->terms);
	free(r->life);
	free(r->sample_type);
	for (size_t i = 0; i < r->nby; i++)
		free(r->by[i]);
	free(r);
}

/* --- values: 0, -EINVAL and what is allowed, or another -errno ---------------- */

static int request_text(char **out, const char *value, const char **want)
{
	*want = "not empty, and shorter";
	if (!*value || strlen(value) > REQUEST_TEXT_MAX)
		return -EINVAL;
	*out = strdup(value);
	return *out ? 0 : -ENOMEM;
}

static int request_moment(struct reporter_request *r, const char *value,
			  int64_t *out, const char **want)
{
	*want = r->local
			? "a time (14:30, 2026-11-23 14:30:05, @1795430000) or "
			  "how long ago (90s, 10m, 2h)"
			: "a time with a zone (2026-11-23T14:30:05Z), seconds "
			  "since 1970 (@1795430000), or how long ago (90s, 10m, 2h)";
	return reporter_moment_parse(value, r->now, r->local, out);
}

static int request_from(struct reporter_request *r, const char *value,
			const char **want)
{
	return request_moment(r, value, &r->span.from, want);
}

static int request_to(struct reporter_request *r, const char *value,
		      const char **want)
{
	return request_moment(r, value, &r->span.to, want);
}

static int request_last(struct reporter_request *r, const char *value,
			const char **want)
{
	*want = "a duration (90s, 10m, 2h, 7d)";
	return reporter_duration_parse(value, &r->last);
}

static int request_life(struct reporter_request *r, const char *value,
			const char **want)
{
	return request_text(&r->life, value, want);
}

static int request_drop_marks(struct reporter_request *r, const char *value,
			      const char **want)
{
	*want = "0 or 1";
	r->drop_marks = !strcmp(value, "1");
	return r->drop_marks || !strcmp(value, "0") ? 0 : -EINVAL;
}

static int request_traces(struct reporter_request *r, const char *value,
			  const char **want)
{
	*want = "0 or 1";
	r->traces |= !strcmp(value, "1");
	return !strcmp(value, "1") || !strcmp(value, "0") ? 0 : -EINVAL;
}

static int request_inline(struct reporter_request *r, const char *value,
			  const char **want)
{
	*want = "expand";
	r->expand = !strcmp(value, "expand");
	return r->expand ? 0 : -EINVAL;
}

static int request_format(struct reporter_request *r, const char *value,
			  const char **want)
{
#define X(name, word) " " #word
	static const char words[] = "one of" REPORTER_QUERY_FORMATS(X);
#undef X
	static const char *const names[] = {
#define X(name, word) [REPORTER_QUERY_##name] = #word,
		REPORTER_QUERY_FORMATS(X)
#undef X
	};

	*want = words;
	for (size_t i = 1; i < ARRAY_SIZE(names); i++)
		if (!strcmp(names[i], value)) {
			r->format = (enum reporter_query_format)i;
			return 0;
		}
	return -EINVAL;
}

static int request_sample_type(struct reporter_request *r, const char *value,
			       const char **want)
{
	return request_text(&r->sample_type, value, want);
}

static int request_by(struct reporter_request *r, const char *value,
		      const char **want)
{
	int err;

	if (r->nby == ARRAY_SIZE(r->by))
		return -E2BIG;
	err = request_text(&r->by[r->nby], value, want);
	if (err)
		return err;
	r->nby++;
	r->tree |= !strcmp(value, REPORTER_QUERY_TREE);
	r->traces |= !strcmp(value, REPORTER_LABEL_TRACE) ||
		     !strcmp(value, REPORTER_LABEL_SPAN);
	return 0;
}

/* FROM..TO */
static int request_diff(struct reporter_request *r, const char *value,
			const char **want)
{
	const char *dots = strstr(value, "..");
	char from[REQUEST_TEXT_MAX];
	int err;

	*want = "FROM..TO, two times, the first before the second";
	if (!dots || (size_t)(dots - value) >= sizeof(from))
		return -EINVAL;
	memcpy(from, value, (size_t)(dots - value));
	from[dots - value] = '\0';
	err = reporter_moment_parse(from, r->now, r->local, &r->diff.from);
	if (!err)
		err = reporter_moment_parse(dots + 2, r->now, r->local,
					    &r->diff.to);
	return err ? err : r->diff.from < r->diff.to ? 0 : -EINVAL;
}

static int request_type(struct reporter_request *r, const char *value,
			const char **want)
{
#define X(name, word) " " #word
	*want = "one of" REPORTER_QUERY_KINDS(X);
#undef X
	return reporter_query_kind_parse(value, &r->kind);
}

static const struct {
	const char *key;
	int (*set)(struct reporter_request *r, const char *value,
		   const char **want);
} request_keys[] = {
	[REQUEST_FROM] = { "from", request_from },
	[REQUEST_TO] = { "to", request_to },
	[REQUEST_LAST] = { "last", request_last },
	[REQUEST_LIFE] = { "life", request_life },
	[REQUEST_DROP_MARKS] = { "drop_marks", request_drop_marks },
	[REQUEST_INLINE] = { "inline", request_inline },
	[REQUEST_FORMAT] = { "format", request_format },
	[REQUEST_SAMPLE_TYPE] = { "sample_type", request_sample_type },
	[REQUEST_BY] = { "by", request_by },
	[REQUEST_DIFF] = { "diff", request_diff },
	[REQUEST_TYPE] = { "type", request_type },
	[REQUEST_TRACES] = { "traces", request_traces },
};

int reporter_request_set(struct reporter_request *r, const char *key,
			 const char *value, const char **want)
{
	size_t i = 0;
	int err;

	*want = NULL;
	while (i < ARRAY_SIZE(request_keys) &&
	       strcmp(request_keys[i].key, key) != 0)
		i++;
	if (i == ARRAY_SIZE(request_keys))
		return reporter_query_terms_parse(&r->terms, key, value, want);
	if (i != REQUEST_BY && r->seen >> i & 1)
		return -EEXIST;
	err = request_keys[i].set(r, value, want);
	if (!err)
		r->seen |= 1U << i;
	return err;
}

const char *reporter_request_key(size_t i)
{
	return i < ARRAY_SIZE(request_keys) ? request_keys[i].key : NULL;
}

static bool request_seen(const struct reporter_request *r, enum request_key key)
{
	return r->seen >> key & 1;
}

static bool request_timed(const struct reporter_request *r)
{
	return request_seen(r, REQUEST_FROM) || request_seen(r, REQUEST_TO) ||
	       r->last || r->life;
}

const char *reporter_request_past(const struct reporter_request *r)
{
	static const enum request_key times[] = { REQUEST_FROM, REQUEST_TO,
						  REQUEST_LAST, REQUEST_LIFE,
						  REQUEST_DIFF };

	for (size_t i = 0; i < ARRAY_SIZE(times); i++)
		if (request_seen(r, times[i]))
			return request_keys[times[i]].key;
	return reporter_request_catalog(r);
}

const char *reporter_request_catalog(const struct reporter_request *r)
{
	return r->tree ? "by tree" : reporter_query_terms_history(&r->terms);
}

enum reporter_query_kind reporter_request_kind(const struct reporter_request *r)
{
	return r->kind;
}

const char *reporter_request_wrong(const struct reporter_request *r)
{
	if (r->kind == REPORTER_QUERY_CPU)
		return NULL;
	return r->drop_marks ? "drop_marks"
	       : r->traces   ? "traces"
			     : reporter_query_terms_thread(&r->terms);
}

bool reporter_request_traces(const struct reporter_request *r)
{
	return r->traces;
}

bool reporter_request_tree(const struct reporter_request *r)
{
	return r->tree;
}

int64_t reporter_request_end(const struct reporter_request *r)
{
	int64_t end = request_seen(r, REQUEST_TO) ? r->span.to : r->now;

	return MAX(end, r->diff.to);
}

enum reporter_query_format
reporter_request_format(const struct reporter_request *r)
{
	return r->format;
}

/* --- running -------------------------------------------------------------------- */

int request_fail(struct request_run *x, int err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(x->out->why, sizeof(x->out->why), fmt, ap);
	va_end(ap);
	return err;
}

int request_catalog_error(struct request_run *x, int err)
{
	static const struct {
		int err;
		const char *why;
	} errors[] = {
		{ -ENOENT, "the archive has no catalog" },
		{ -EPROTONOSUPPORT, "the catalog is of a later profd" },
		{ -EBADMSG, "the catalog is damaged" },
		{ -EBUSY, "the catalog is busy" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(errors); i++)
		if (errors[i].err == err)
			return request_fail(x, err, "%s: %s", x->out->archive,
					    errors[i].why);
	return request_fail(x, err, "%s: the catalog: %s", x->out->archive,
			    strerror(-err));
}

/* A process or an image by its id is somewhere in the archive. */
static bool request_has_id(const struct reporter_request *r)
{
	static const char *const keys[] = { "process", "image", "subtree" };

	for (size_t i = 0; i < r->terms.n; i++)
		for (size_t k = 0; k < ARRAY_SIZE(keys); k++)
			if (!r->terms.items[i].negated &&
			    !strcmp(query_term_key(&r->terms.items[i]),
				    keys[k]))
				return true;
	return false;
}

int request_span(struct request_run *x, struct reporter_query_span *span)
{
	const struct reporter_request *r = x->r;
	bool ends =
		request_seen(r, REQUEST_FROM) || request_seen(r, REQUEST_TO);
	int err;

	*span = (struct reporter_query_span){ INT64_MIN, r->now };
	if ((ends && (r->last || r->life)) || (r->last && r->life))
		return request_fail(x, -EINVAL,
				    "from and to, last, and life exclude each "
				    "other");
	if (r->life) {
		err = request_select_life(x->out->archive, r->life, r->now,
					  span);
		if (err == -ESRCH)
			return request_fail(x, err, "life: no process %s",
					    r->life);
		return err ? request_catalog_error(x, err) : 0;
	}
	if (request_seen(r, REQUEST_FROM))
		span->from = r->span.from;
	if (request_seen(r, REQUEST_TO))
		span->to = r->span.to;
	if (r->last)
		span->from = r->now - r->last;
	if (!request_timed(r) && !request_has_id(r))
		span->from = r->now - REQUEST_HOUR_NS;
	if (span->from >= span->to)
		return request_fail(x, -EINVAL, "from is not before to");
	return 0;
}

bool request_go_on(void *arg)
{
	struct request_run *x = arg;

	return !x->out->progress || x->out->progress(x->out->arg, 0, 0);
}

static bool request_progress(void *arg, size_t done, size_t all)
{
	struct request_run *x = arg;

	return !x->out->progress || x->out->progress(x->out->arg, done, all);
}

static bool request_wanted(void *arg, const char *file)
{
	const struct request_run *x = arg;

	return !x->select || x->r->kind != REPORTER_QUERY_CPU ||
	       request_select_window(x->select, file);
}

static int request_select(struct request_run *x,
			  const struct reporter_query_span *span)
{
	const struct request_select_opts opts = {
		.path = x->out->archive,
		.terms = &x->r->terms,
		.span = *span,
		.go_on = request_go_on,
		.arg = x,
	};
	bool needed = reporter_query_terms_history(&x->r->terms);
	int err;

	/* The catalog does not know which windows have waits of an image. */
	if (!needed && (x->r->kind != REPORTER_QUERY_CPU ||
			!request_select_helps(&x->r->terms)))
		return 0;
	err = request_select_new(&x->select, &opts);
	/* Else it would only have shown which windows to skip. */
	if (err && needed)
		return request_catalog_error(x, err);
	return err == -ECANCELED ? err : 0;
}

static int request_read(struct request_run *x, struct reporter_query *q)
{
	struct reporter_query_archive *a = &x->out->found;
	const char *what;
	int err = reporter_query_add_archive(q, a, &what);

	if (err && err != -ECANCELED)
		return request_fail(x, err, "%s%s%s: %s", a->path,
				    *a->file ? "/" : "", a->file,
				    what ? what : strerror(-err));
	if (!err && !a->read && a->without)
		return request_fail(x, -ENODATA,
				    "%s: the windows of that time%s have no "
				    "waits: profd was started without --wait",
				    a->path, a->base ? " (diff)" : "");
	if (!err && !a->read)
		return request_fail(x, -ENODATA, "%s: no window of that time%s",
				    a->path, a->base ? " (diff)" : "");
	return err;
}

static struct reporter_query_opts request_opts(const struct reporter_request *r)
{
	struct reporter_query_opts opts = {
		.terms = &r->terms,
		.nroots = r->nby,
		.drop_marks = r->drop_marks,
		.expand = r->expand,
		.traces = r->traces,
		.kind = r->kind,
	};

	for (size_t i = 0; i < r->nby; i++)
		opts.roots[i] = r->by[i];
	return opts;
}

int reporter_request_empty(const struct reporter_request *r,
			   struct reporter_query **qp)
{
	const struct reporter_query_opts opts = request_opts(r);

	return reporter_query_new(qp, &opts);
}

int reporter_request_answer(const struct reporter_request *r,
			    struct reporter_query **qp)
{
	static const struct reporter_query_opts all;

	return r->tree ? reporter_query_new(qp, &all)
		       : reporter_request_empty(r, qp);
}

static bool request_image(void *arg, const char *image)
{
	struct request_run *x = arg;

	return request_select_image(x->select, image);
}

static int request_ancestors(void *arg, const char *image,
			     const char *const **names, size_t *n)
{
	struct request_run *x = arg;

	return request_go_on(x)
		       ? request_lineage_get(x->lineage, image, names, n)
		       : -ECANCELED;
}

/* Adds the samples of a span, or subtracts them. */
static int request_add(struct request_run *x, struct reporter_query *q,
		       const struct reporter_query_span *span, bool base)
{
	struct reporter_query_archive before = x->out->found;
	int err;

	request_select_free(x->select);
	x->select = NULL;
	err = request_select(x, span);
	if (err)
		return err;
	x->out->found = (struct reporter_query_archive){
		.path = x->out->archive,
		.span = *span,
		.base = base,
		.wanted = request_wanted,
		.progress = request_progress,
		.arg = x,
	};
	err = request_read(x, q);
	x->out->found.windows += before.windows;
	x->out->found.damaged += before.damaged;
	x->out->found.whole += before.whole;
	x->out->found.again += before.again;
	x->out->found.without += before.without;
	x->out->found.untraced += before.untraced;
	return err;
}

static int request_query(struct request_run *x,
			 const struct reporter_query_span *span,
			 struct reporter_query **qp)
{
	const struct reporter_request *r = x->r;
	struct reporter_query_opts opts = request_opts(r);
	int err = 0;

	opts.arg = x;
	if (reporter_query_terms_history(&r->terms))
		opts.image = request_image;
	if (r->tree) {
		opts.ancestors = request_ancestors;
		err = request_lineage_new(&x->lineage, x->out->archive);
	}
	if (err)
		return request_catalog_error(x, err);
	x->out->found = (struct reporter_query_archive){ .path = NULL };
	err = reporter_query_new(qp, &opts);
	if (!err)
		err = request_add(x, *qp, span, false);
	if (!err && request_seen(r, REQUEST_DIFF))
		err = request_add(x, *qp, &r->diff, true);
	if (!err)
		err = reporter_query_end(*qp);
	if (!err && (*qp)->inputs && reporter_query_select(*qp, r->sample_type))
		err = request_fail(x, -EINVAL, "no sample type '%s'",
				   r->sample_type ? r->sample_type : "");
	if (err) {
		reporter_query_free(*qp);
		*qp = NULL;
		return err;
	}
	/* What is added later is not chosen by the catalog, which is closed. */
	(*qp)->opts.image = NULL;
	(*qp)->opts.ancestors = NULL;
	return 0;
}

static int request_check(struct request_run *x)
{
	const char *wrong = reporter_request_wrong(x->r);

	return wrong ? request_fail(x, -EINVAL, "%s: only of type cpu", wrong)
		     : 0;
}

int reporter_request_run(const struct reporter_request *r,
			 struct reporter_request_run *run,
			 struct reporter_query **qp)
{
	struct request_run x = { .r = r, .out = run };
	struct reporter_query_span span;
	int err;

	*qp = NULL;
	*run->why = '\0';
	err = request_check(&x);
	if (!err)
		err = request_span(&x, &span);
	if (!err)
		err = request_query(&x, &span, qp);
	request_select_free(x.select);
	request_lineage_free(x.lineage);
	if (err && !*run->why)
		request_fail(&x, err, "%s", strerror(-err));
	return err;
}
