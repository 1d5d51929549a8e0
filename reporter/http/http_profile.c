// SPDX-License-Identifier: Apache-2.0
/*
 * http_profile: the profile of the next seconds. Its request is suspended until the
 * window is written to memory, and cancelled if the client closes its connection. A
 * client that asked with early=1, as profd fetch does, ends the profile by shutting
 * down its sending side.
 *
 * Requests that are equal, and come within the same tenth of a second, get the same
 * profile: a window takes some 100 KB and CPU time.
 */
#include <ctype.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reporter/http/http.h"
#include "reporter/http/http_parse.h"

#define PROFILE_SECONDS_DEFAULT 30
/* A profile that may be shared begins at the next multiple of this. */
#define PROFILE_SHARE_NS (100 * CLOCK_NSEC_PER_MSEC)

struct http_profile {
	LIST_ENTRY(http_profile) link; /* in http.profiles, if shared */
	bool shared;
	bool early; /* a client that ends its sending side ends it */
	struct http *http;
	unsigned int seconds;
	uint64_t events; /* as in reporter_window_opts */
	enum reporter_query_kind kind;
	struct reporter_query_terms terms; /* until the window has them */
	struct reporter_form form;
	enum reporter_format format;
	uint64_t begin;
	char stem[STORE_STEM_MAX + 8]; /* "runqueue-" is longer than "cpu-" */
	LIST_HEAD(, http_request) requests; /* that wait, or are to be sent */
	struct reporter_window *window; /* NULL once written */
	struct MHD_Response *response; /* if it could be made */
};

/* --- the profile ----------------------------------------------------------- */

static void profile_unshare(struct http_profile *p)
{
	if (p->shared)
		LIST_REMOVE(p, link);
	p->shared = false;
}

void http_profile_leave(struct http_request *req)
{
	struct http_profile *p = req->profile;

	if (!p)
		return;
	LIST_REMOVE(req, sharer);
	req->profile = NULL;
	if (!LIST_EMPTY(&p->requests))
		return;
	profile_unshare(p);
	if (p->window)
		reporter_window_cancel(p->window);
	if (p->response)
		MHD_destroy_response(p->response);
	free(p);
}

void http_profile_end(struct http_request *req)
{
	http_profile_leave(req);
	if (req->counted)
		req->http->r->http_open--;
	req->counted = false;
}

/* A client that accepts no encoding gets a .gz file, not an encoded body. */
static struct MHD_Response *profile_response(const struct http_profile *p,
					     void *data, size_t len)
{
	bool zstd = p->format == REPORTER_ZSTD;
	char disposition[STORE_STEM_MAX + 64];
	const struct http_header headers[] = {
		{ MHD_HTTP_HEADER_CONTENT_TYPE, "application/octet-stream" },
		{ MHD_HTTP_HEADER_CONTENT_DISPOSITION, disposition },
		{ MHD_HTTP_HEADER_VARY, MHD_HTTP_HEADER_ACCEPT_ENCODING },
		{ "X-Content-Type-Options", "nosniff" },
		{ zstd ? MHD_HTTP_HEADER_CONTENT_ENCODING : NULL, "zstd" },
		{ NULL, NULL },
	};
	const struct http_header *h;
	struct MHD_Response *resp = MHD_create_response_from_buffer(
		len, data, MHD_RESPMEM_MUST_FREE);

	if (!resp) {
		free(data);
		return NULL;
	}
	snprintf(disposition, sizeof(disposition),
		 "attachment; filename=\"%s%s\"", p->stem,
		 zstd ? ".pb" : ".pb.gz");
	for (h = headers; h->name; h++)
		MHD_add_response_header(resp, h->name, h->value);
	return resp;
}

static void profile_on_window(void *arg, int err, uint64_t nsamples, void *data,
			      size_t len)
{
	struct http_profile *p = arg;
	struct http *h = p->http;
	struct http_request *req;

	p->window = NULL;
	profile_unshare(p);
	if (!err)
		p->response = profile_response(p, data, len);
	LIST_FOREACH(req, &p->requests, sharer)
		http_wait_end(req, p->response ? HTTP_READY : HTTP_FAILED);
	http_run(h);
}

enum MHD_Result http_profile_send(struct http_request *req)
{
	struct reporter *r = req->http->r;
	enum MHD_Result res;

	if (req->state == HTTP_GONE)
		return MHD_NO;
	if (req->state == HTTP_FAILED)
		return http_error(req, MHD_HTTP_INTERNAL_SERVER_ERROR,
				  "cannot make the profile\n");
	r->stats.http_profiles++;
	res = MHD_queue_response(req->conn, MHD_HTTP_OK,
				 req->profile->response);
	http_profile_leave(req); /* the daemon keeps the response */
	return res;
}

/*
 * A unix socket has POLLHUP if both sides are closed. TCP does not: there a profile
 * may be made for a client that is gone.
 */
bool http_profile_ends(struct http_request *req, int fd)
{
	struct http_profile *p = req->profile;
	struct pollfd pfd = { .fd = fd };

	if (!p || !p->early || !p->window || poll(&pfd, 1, 0) > 0)
		return false;
	reporter_window_end(req->http->r, p->window,
			    reporter_apart_ahead(req->http->r,
						 clock_boottime_ns()));
	return true;
}

/* --- requests --------------------------------------------------------------- */

static bool profile_equal(const struct http_profile *a,
			  const struct http_profile *b)
{
	return a->seconds == b->seconds && a->format == b->format &&
	       a->events == b->events && a->kind == b->kind &&
	       a->form.without == b->form.without && a->begin == b->begin &&
	       a->form.bare == b->form.bare &&
	       a->form.drop_marks == b->form.drop_marks &&
	       a->form.traces == b->form.traces &&
	       !strcmp(a->form.prefix, b->form.prefix);
}

static struct http_profile *profile_find(const struct http *h,
					 const struct http_profile *wanted)
{
	struct http_profile *p;

	LIST_FOREACH(p, &h->profiles, link)
		if (profile_equal(p, wanted))
			return p;
	return NULL;
}

/* The name that a client may give the file: as in the archive, but for the kind. */
static void profile_stem(struct http_profile *p, uint64_t duration_ns)
{
	const char *cpu = reporter_query_kind_word(REPORTER_QUERY_CPU);
	enum reporter_query_kind kind = p->kind;
	char stem[STORE_STEM_MAX];

	if (kind == REPORTER_QUERY_CPU && p->events)
		kind = REPORTER_QUERY_WAIT;
	store_stem(stem, p->http->r->hostname,
		   p->begin + clock_wall_offset_ns(), duration_ns);
	snprintf(p->stem, sizeof(p->stem), "%s%s",
		 reporter_query_kind_word(kind), stem + strlen(cpu));
}

/* Opens the window of a copy of 'wanted'. NULL: out of memory. */
static struct http_profile *profile_open(struct http *h,
					 struct http_profile *wanted)
{
	struct http_profile *p = malloc(sizeof(*p));
	struct reporter_window_opts o = {
		.begin = wanted->begin,
		.end = wanted->begin + wanted->seconds * CLOCK_NSEC_PER_SEC,
		.events = wanted->events,
		.wall = wanted->kind == REPORTER_QUERY_WALL,
		.terms = wanted->terms,
		.form = wanted->form,
		.format = wanted->format,
		.done = profile_on_window,
		.arg = p,
	};

	if (!p)
		return NULL;
	*p = *wanted;
	LIST_INIT(&p->requests);
	if (reporter_window_open(h->r, &o, &p->window)) {
		free(p);
		return NULL;
	}
	profile_stem(p, o.end - o.begin);
	p->shared = !p->early && !p->terms.n;
	p->terms = wanted->terms = (struct reporter_query_terms){ 0 };
	if (p->shared)
		LIST_INSERT_HEAD(&h->profiles, p, link);
	return p;
}

static enum MHD_Result profile_wait(struct http_request *req,
				    struct http_profile *wanted)
{
	struct http *h = req->http;
	struct http_profile *p;

	if (h->r->finishing)
		return http_busy(req, "profd is terminating");
	if (h->r->stats.http_waiting >= HTTP_WAITING_MAX ||
	    !http_may(req, HTTP_CONN_WAITING, HTTP_WAITING_USER))
		return http_busy(req, "too many clients wait for a profile");
	p = wanted->early || wanted->terms.n ? NULL : profile_find(h, wanted);
	if (!p)
		p = profile_open(h, wanted);
	if (!p)
		return http_busy(req, "out of memory for a profile");
	req->profile = p;
	LIST_INSERT_HEAD(&p->requests, req, sharer);
	req->counted = true;
	h->r->http_open++;
	http_wait_begin(req);
	return MHD_YES;
}

static bool profile_prefix_ok(const char *v)
{
	size_t len = strlen(v);

	for (size_t i = 0; i < len; i++)
		if (!isalnum((unsigned char)v[i]) && v[i] != '_')
			return false;
	return len && len <= REPORTER_PREFIX_MAX && !isdigit((unsigned char)*v);
}

/* --- arguments: NULL or what the value has to be ------------------------------ */

static const char *profile_seconds(struct http_profile *p, const char *v)
{
	int seconds = http_parse_seconds(v);

	p->seconds = (unsigned int)seconds;
	return seconds < 0 ? "a whole number from 1 to 3600" : NULL;
}

static const char *profile_labels(struct http_profile *p, const char *v)
{
	return reporter_labels_parse(v, &p->form.without)
		       ? "a list of labels (comm,unit), all or none"
		       : NULL;
}

static const char *profile_prefix(struct http_profile *p, const char *v)
{
	if (!profile_prefix_ok(v))
		return "up to 32 letters, digits and _";
	strcpy(p->form.prefix, v);
	return NULL;
}

static const char *profile_symbols(struct http_profile *p, const char *v)
{
	p->form.bare = !strcmp(v, "known");
	return p->form.bare || !strcmp(v, "all") ? NULL : "known or all";
}

static const char *profile_marks(struct http_profile *p, const char *v)
{
	p->form.drop_marks = !strcmp(v, "1");
	return p->form.drop_marks || !strcmp(v, "0") ? NULL : "0 or 1";
}

static const char *profile_traces(struct http_profile *p, const char *v)
{
	p->form.traces = !strcmp(v, "1");
	return p->form.traces || !strcmp(v, "0") ? NULL : "0 or 1";
}

static const char *profile_type(struct http_profile *p, const char *v)
{
#define X(name, word) " " #word
	static const char want[] = "one of" REPORTER_QUERY_KINDS(X);
#undef X

	return reporter_query_kind_parse(v, &p->kind) ? want : NULL;
}

static const char *profile_early(struct http_profile *p, const char *v)
{
	p->early = !strcmp(v, "1");
	return p->early || !strcmp(v, "0") ? NULL : "0 or 1";
}

/* The last two: /debug/pprof/wait has one type, and waits have no trace. */
#define PROFILE_TRACES "traces"
#define PROFILE_TYPE "type"
#define PROFILE_CPU_ONLY 2

static const struct {
	const char *key;
	const char *(*set)(struct http_profile *p, const char *v);
} profile_keys[] = {
	{ "seconds", profile_seconds },	    { "labels", profile_labels },
	{ "label_prefix", profile_prefix }, { "symbols", profile_symbols },
	{ "drop_marks", profile_marks },    { "early", profile_early },
	{ PROFILE_TRACES, profile_traces }, { PROFILE_TYPE, profile_type },
};

const char *http_profile_key(size_t i)
{
	return i < ARRAY_SIZE(profile_keys) ? profile_keys[i].key : NULL;
}

const char *http_profile_waits_key(size_t i)
{
	return i + PROFILE_CPU_ONLY < ARRAY_SIZE(profile_keys)
		       ? profile_keys[i].key
		       : NULL;
}

struct profile_args {
	struct http_request *req;
	struct http_profile *p;
	unsigned int seen; /* bits by profile_keys */
	const char *key, *value;
	const char *want; /* what the value has to be; or */
	const char *why; /* why there cannot be such a parameter */
};

/* Parameters of profiles that are made of an archive. */
static bool profile_is_past(const char *key)
{
	const char *other;

	for (size_t i = 0; (other = reporter_request_key(i)); i++)
		if (!strcmp(other, key))
			return true;
	return false;
}

/* Which processes: only for who may read everything, and what labels tell. */
static void profile_term(struct profile_args *a)
{
	int err = reporter_query_terms_parse(&a->p->terms, a->key, a->value,
					     &a->want);

	if (err == -ENOENT)
		a->why = profile_is_past(a->key) ? "only of the past: "
						   "/api/profile"
						 : "no such parameter";
	else if (!a->req->member)
		a->why = "needs a token";
	else if (!err && reporter_query_terms_history(&a->p->terms))
		a->why = "only of the past: /api/profile";
	else if (err && err != -EINVAL)
		a->why = err == -E2BIG ? "too many" : strerror(-err);
}

static enum MHD_Result profile_on_arg(void *arg, enum MHD_ValueKind kind,
				      const char *key, const char *value)
{
	struct profile_args *a = arg;
	size_t i = 0;

	a->key = key;
	a->value = value ? value : "";
	while (i < ARRAY_SIZE(profile_keys) &&
	       strcmp(profile_keys[i].key, key) != 0)
		i++;
	if (i == ARRAY_SIZE(profile_keys))
		profile_term(a);
	else if (a->p->events &&
		 i + PROFILE_CPU_ONLY >= ARRAY_SIZE(profile_keys))
		a->why = "no such parameter";
	else if (!a->req->member && !strcmp(key, PROFILE_TRACES))
		a->why = "needs a token";
	else if (a->seen >> i & 1)
		a->why = "given twice";
	else
		a->want = profile_keys[i].set(a->p, a->value);
	a->seen |= i < ARRAY_SIZE(profile_keys) ? 1U << i : 0;
	return a->want || a->why ? MHD_NO : MHD_YES;
}

/* Waits are sums of images, and their frames are no code. */
static void profile_combination(struct profile_args *a)
{
	const struct http_profile *p = a->p;

	if (p->kind == REPORTER_QUERY_CPU)
		return;
	a->key = p->form.drop_marks ? "drop_marks"
		 : p->form.traces   ? "traces"
				    : reporter_query_terms_thread(&p->terms);
	if (a->key)
		a->why = "only of type cpu";
}

/* The event of its type; 0: it has others, too. */
static uint64_t profile_events(const struct reporter *r,
			       enum reporter_query_kind kind)
{
	const char *word = reporter_query_kind_word(kind);

	for (size_t i = 0; i < r->opts.nevent_types; i++)
		if (r->opts.event_types[i].apart &&
		    !strcmp(r->opts.event_types[i].name, word))
			return 1ULL << i;
	return 0;
}

/* False: one is wrong, and '*res' is the answer. */
static bool profile_args(struct http_request *req, struct http_profile *p,
			 enum MHD_Result *res)
{
	struct profile_args a = { .req = req, .p = p };

	p->seconds = PROFILE_SECONDS_DEFAULT;
	p->form.without = reporter_labels_unique();
	MHD_get_connection_values(req->conn, MHD_GET_ARGUMENT_KIND,
				  profile_on_arg, &a);
	if (!a.why && !a.want)
		profile_combination(&a);
	if (a.why)
		*res = http_error(req, MHD_HTTP_BAD_REQUEST, "%.64s: %s\n",
				  a.key, a.why);
	else if (a.want)
		*res = http_error(req, MHD_HTTP_BAD_REQUEST,
				  "%.64s: %s, not \"%.64s\"\n", a.key, a.want,
				  a.value);
	return !a.why && !a.want;
}

/* 'events' 0: by its type. Wrong parameters are refused also where nothing is recorded. */
static enum MHD_Result profile_answer(struct http_request *req, uint64_t events)
{
	const struct reporter *r = req->http->r;
	struct http_profile wanted = { .http = req->http, .events = events };
	enum MHD_Result res;
	const char *v;

	if (!profile_args(req, &wanted, &res)) {
		reporter_query_terms_fini(&wanted.terms);
		return res;
	}
	if (!events)
		wanted.events = profile_events(r, wanted.kind);
	if (!r->opts.waits && (events || wanted.kind != REPORTER_QUERY_CPU)) {
		res = http_error(req, MHD_HTTP_NOT_FOUND,
				 "profd was started without --wait\n");
	} else if (req->head) {
		/* The other headers are known only when the profile is made. */
		res = http_send_text(req, strdup(""), 0,
				     "application/octet-stream");
	} else {
		v = MHD_lookup_connection_value(
			req->conn, MHD_HEADER_KIND,
			MHD_HTTP_HEADER_ACCEPT_ENCODING);
		wanted.format =
			http_accepts_zstd(v) ? REPORTER_ZSTD : REPORTER_GZIP;
		wanted.begin = clock_boottime_ns();
		if (events || wanted.kind != REPORTER_QUERY_CPU)
			wanted.begin = reporter_apart_ahead(r, wanted.begin);
		if (!wanted.early)
			wanted.begin += PROFILE_SHARE_NS -
					wanted.begin % PROFILE_SHARE_NS;
		res = profile_wait(req, &wanted);
	}
	reporter_query_terms_fini(&wanted.terms);
	return res;
}

enum MHD_Result http_profile(struct http_request *req)
{
	return profile_answer(req, 0);
}

enum MHD_Result http_profile_waits(struct http_request *req)
{
	return profile_answer(req, reporter_apart(req->http->r));
}

enum MHD_Result http_index(struct http_request *req)
{
	static const char text[] =
		"Profiles of this host, by profd:\n"
		"\n"
		"profile?seconds=30   CPU time of the next 30 seconds (pprof)\n"
		"    &labels=LIST     labels of samples: a list (comm,unit), all "
		"or none;\n"
		"                     all but process and image if missing\n"
		"    &label_prefix=P  put P before the keys of labels\n"
		"    &comm=NAME ...   samples of these processes only, for "
		"clients that may\n"
		"                     read everything\n"
		"    &symbols=known   no line where no name is known, for "
		"servers that\n"
		"                     find names themselves\n"
		"    &drop_marks=1    no frames that are no code\n"
		"    &traces=1        with the labels trace_id and span_id\n"
		"    &type=TYPE       of wait, runqueue or wall time, with "
		"--wait\n"
		"wait?seconds=30      the time in which threads did not run, "
		"by reason\n"
		"                     (with --wait; the same parameters)\n";

	return http_send_text(req, strdup(text), strlen(text), HTTP_TEXT);
}
