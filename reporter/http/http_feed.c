// SPDX-License-Identifier: Apache-2.0
/*
 * http_feed: /api/watch, events of the kernel to a subscriber, as JSON lines. The first
 * line says what is watched, once the hooks are attached. An event waits until the
 * process manager has come as far as its time, at most a second, so that its process is
 * known; then it becomes a line at once, before its process is forgotten.
 *
 * Each client has a queue of its own in processmanager/watch: a slow one loses only its
 * own events, and gets a line with their numbers.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "processmanager/watch/watch.h"
#include "reporter/http/http.h"
#include "reporter/ledger/ledger.h"
#include "reporter/request/moment.h"

#define FEED_NAMES_MAX 64
#define FEED_LISTED_MAX 64 /* values of a key */
#define FEED_ROOTS_MAX 16
#define FEED_LINES_MAX (256 << 10) /* bytes that wait for the client */
#define FEED_HOLD_NS CLOCK_NSEC_PER_SEC

/* Numbers, of which an event has to have one, if there are any. */
struct feed_list {
	uint32_t v[FEED_LISTED_MAX];
	size_t n;
};

/* Of a subtree. */
struct feed_root {
	uint32_t pid;
	uint64_t start; /* 0: of whatever process */
};

struct http_feed {
	struct watch_sub *sub;
	char *names[FEED_NAMES_MAX];
	size_t n_names;
	struct feed_list pids, users;
	struct feed_root roots[FEED_ROOTS_MAX];
	size_t n_roots;
	struct reporter_query_terms terms;
	int64_t slower;
	bool failed;
	unsigned int seen; /* bits by parameter that is given once */
	bool over; /* the last line was written */
	bool begun; /* the first line was written */
	bool held; /* 'next' is the next event */
	struct watch_event next;
	uint64_t *lost; /* by name, as the client knows it */
	uint64_t *missed; /* by name: lost here */
	struct strbuf lines; /* that the client did not read yet */
};

static void feed_free(struct http_feed *f)
{
	if (!f)
		return;
	watch_unsubscribe(f->sub);
	reporter_query_terms_fini(&f->terms);
	while (f->n_names)
		free(f->names[--f->n_names]);
	free(f->lost);
	free(f->missed);
	strbuf_fini(&f->lines);
	free(f);
}

/* --- parameters --------------------------------------------------------------- */

static int feed_name(struct http_feed *f, const char *value, const char **want)
{
	size_t len;

	for (;; value += len + 1) {
		len = strcspn(value, ",");
		*want = "names of events, with commas";
		if (!len || f->n_names == FEED_NAMES_MAX)
			return -EINVAL;
		f->names[f->n_names] = strndup(value, len);
		if (!f->names[f->n_names])
			return -ENOMEM;
		f->n_names++;
		if (!value[len])
			return 0;
	}
}

static int feed_number(struct feed_list *list, const char *value,
		       const char **want)
{
	unsigned long v;
	char *end;

	*want = "a number, at most 64 of them";
	errno = 0;
	v = strtoul(value, &end, 10);
	if (*value < '0' || *value > '9' || *end || errno || v > UINT32_MAX ||
	    list->n == FEED_LISTED_MAX)
		return -EINVAL;
	list->v[list->n++] = (uint32_t)v;
	return 0;
}

static int feed_pid(struct http_feed *f, const char *value, const char **want)
{
	return feed_number(&f->pids, value, want);
}

static int feed_user(struct http_feed *f, const char *value, const char **want)
{
	return feed_number(&f->users, value, want);
}

static int feed_subtree(struct http_feed *f, const char *value,
			const char **want)
{
	struct feed_root *root = &f->roots[f->n_roots];
	unsigned long pid;
	char *end;

	*want = "a pid, or the id of a process; at most 16 of them";
	errno = 0;
	pid = strtoul(value, &end, 10);
	if (f->n_roots == FEED_ROOTS_MAX || *value < '0' || *value > '9' ||
	    errno || pid > UINT32_MAX)
		return -EINVAL;
	root->pid = (uint32_t)pid;
	root->start = *end == '-' && end[1] ? strtoull(end + 1, &end, 16) : 0;
	if (*end || errno)
		return -EINVAL;
	f->n_roots++;
	return 0;
}

static int feed_slower(struct http_feed *f, const char *value,
		       const char **want)
{
	*want = "a duration (10ms, 2s)";
	return reporter_duration_parse(value, &f->slower);
}

static int feed_failed(struct http_feed *f, const char *value,
		       const char **want)
{
	*want = "0 or 1";
	f->failed = !strcmp(value, "1");
	return f->failed || !strcmp(value, "0") ? 0 : -EINVAL;
}

static const struct {
	const char *key;
	bool once;
	int (*set)(struct http_feed *f, const char *value, const char **want);
} feed_keys[] = {
	{ "name", false, feed_name },	 { "pid", false, feed_pid },
	{ "user", false, feed_user },	 { "subtree", false, feed_subtree },
	{ "slower", true, feed_slower }, { "failed", true, feed_failed },
};

const char *http_feed_key(size_t i)
{
	return i < ARRAY_SIZE(feed_keys) ? feed_keys[i].key : NULL;
}

static int feed_set(struct http_feed *f, const char *key, const char *value,
		    const char **want)
{
	for (size_t i = 0; i < ARRAY_SIZE(feed_keys); i++) {
		if (strcmp(key, feed_keys[i].key) != 0)
			continue;
		if (feed_keys[i].once && f->seen >> i & 1)
			return -EEXIST;
		f->seen |= 1U << i;
		return feed_keys[i].set(f, value, want);
	}
	return reporter_query_terms_parse(&f->terms, key, value, want);
}

struct feed_arg {
	struct http_feed *f;
	int err;
	const char *key, *value, *want;
};

static enum MHD_Result feed_on_arg(void *arg, enum MHD_ValueKind kind,
				   const char *key, const char *value)
{
	struct feed_arg *a = arg;

	a->key = key;
	a->value = value ? value : "";
	a->err = feed_set(a->f, key, a->value, &a->want);
	return a->err ? MHD_NO : MHD_YES;
}

/* --- which events -------------------------------------------------------------- */

static bool feed_has(const struct feed_list *list, uint32_t v)
{
	for (size_t i = 0; i < list->n; i++)
		if (list->v[i] == v)
			return true;
	return !list->n;
}

/* As it comes from the kernel: its process may not be known yet. */
static bool feed_takes(void *arg, const struct watch_event *e)
{
	const struct http_feed *f = arg;

	return !f->users.n || (e->key.tgid && feed_has(&f->users, e->uid));
}

struct feed_labels {
	const struct watch_event *e;
	struct pm_image_info info; /* of its process */
	struct pm_cgroup cgroup;
	char text[256];
};

static bool feed_part(struct feed_labels *l, struct pm_part p,
		      struct reporter_query_value *out)
{
	snprintf(l->text, sizeof(l->text), "%.*s", (int)MIN(p.len, 255), p.s);
	out->text = l->text;
	return p.len;
}

static bool feed_label(const void *arg, const char *key, size_t i,
		       struct reporter_query_value *out)
{
	struct feed_labels *l = (struct feed_labels *)arg;
	const struct {
		const char *key, *text;
	} texts[] = {
		{ "comm", l->info.comm },
		{ "thread", l->e->comm },
		{ "exe", l->info.exe },
		{ "cgroup", l->info.cgroup },
		{ "process", l->info.process_id },
		{ "service", l->info.service },
	};

	*out = (struct reporter_query_value){ 0 };
	if (i)
		return false;
	for (size_t k = 0; k < ARRAY_SIZE(texts); k++)
		if (!strcmp(key, texts[k].key)) {
			out->text = texts[k].text;
			return out->text;
		}
	if (!strcmp(key, "container"))
		return feed_part(l, l->cgroup.container, out);
	if (!strcmp(key, "pod"))
		return feed_part(l, l->cgroup.pod, out);
	if (!strcmp(key, "unit"))
		return feed_part(l, l->cgroup.unit, out);
	out->num = !strcmp(key, "pid")	 ? l->e->key.tgid
		   : !strcmp(key, "tid") ? l->e->tid
					 : 0;
	return out->num;
}

/* Of an event whose process is known; an event without one has no labels. */
static bool feed_wanted(const struct http_feed *f, const struct pm_image *of)
{
	struct feed_labels l = { .e = &f->next };
	bool under = !f->n_roots;

	for (size_t i = 0; of && i < f->n_roots; i++)
		under |= pm_image_is_under(of, f->roots[i].pid,
					   f->roots[i].start);
	if (!under || !f->terms.n)
		return under;
	if (of) {
		pm_image_info(of, &l.info);
		if (l.info.cgroup)
			pm_cgroup_parse(l.info.cgroup, strlen(l.info.cgroup),
					&l.cgroup);
	} else {
		return false;
	}
	return reporter_query_terms_take(&f->terms, feed_label, &l);
}

/* --- lines ---------------------------------------------------------------------- */

/* What is watched, by which hooks, and what this kernel lacks. */
static void feed_begin(struct http_feed *f, struct strbuf *sb)
{
	json_t *names = json_array(), *hooks = json_array();
	json_t *lacks = json_object();
	struct strbuf list = STRBUF_INIT;
	char *hook, *rest;

	for (size_t i = 0; watch_name(i); i++) {
		if (!watch_wants(f->sub, i))
			continue;
		json_array_append_new(names, json_string(watch_name(i)->name));
		if (watch_name_lack(i))
			json_object_set_new(lacks, watch_name(i)->name,
					    json_string(watch_name_lack(i)));
	}
	watch_hooks(f->sub, &list);
	for (hook = strtok_r(list.data ?: (char[1]){ 0 }, ", ", &rest); hook;
	     hook = strtok_r(NULL, ", ", &rest))
		json_array_append_new(hooks, json_string(hook));
	strbuf_fini(&list);
	ledger_dump(json_pack("{s:o, s:o, s:o}", "watching", names, "hooks",
			      hooks, "lacks", lacks),
		    sb);
	f->begun = true;
}

static void feed_losses(struct http_feed *f, struct strbuf *sb)
{
	json_t *lost = NULL;
	uint64_t n;

	for (size_t i = 0; watch_name(i); i++) {
		n = watch_lost(f->sub, i) + f->missed[i];
		if (n == f->lost[i])
			continue;
		if (!lost)
			lost = json_object();
		json_object_set_new(lost, watch_name(i)->name,
				    json_integer((json_int_t)(n - f->lost[i])));
		f->lost[i] = n;
	}
	if (lost)
		ledger_dump(json_pack("{s:o}", "lost", lost), sb);
}

/* An event whose process is not known cannot be chosen by it: it is lost. */
static void feed_unknown(struct http_feed *f)
{
	if (f->next.key.tgid && (f->n_roots || f->terms.n))
		f->missed[f->next.name]++;
}

/* Whether the process of an event is known, or will not be. */
static bool feed_is_due(const struct reporter *r, uint64_t time)
{
	return time <= r->advanced || clock_boottime_ns() > time + FEED_HOLD_NS;
}

void http_feed_collect(struct http_request *req)
{
	const struct reporter *r = req->http->r;
	struct http_feed *f = req->feed;
	struct strbuf *sb = &f->lines;
	struct pm_image *of;
	const char *why;
	int ready = watch_ready(f->sub, &why);

	if (ready < 0 && !f->over) { /* the last line */
		f->over = true;
		ledger_dump(json_pack("{s:o}", "error",
				      json_sprintf("%s: %s", why,
						   strerror(-ready))),
			    sb);
	}
	if (ready <= 0)
		return;
	if (!f->begun)
		feed_begin(f, sb);
	while (sb->len < FEED_LINES_MAX && !sb->failed) {
		f->held = f->held || !watch_next(f->sub, &f->next);
		if (!f->held || !feed_is_due(r, f->next.time))
			break;
		f->held = false;
		of = f->next.key.tgid ? pm_newest(r->opts.pm, &f->next.key)
				      : NULL;
		if (!of)
			feed_unknown(f);
		if (feed_wanted(f, of))
			ledger_watched(&f->next, of, sb);
	}
	if (sb->len < FEED_LINES_MAX)
		feed_losses(f, sb);
}

static void feed_more(struct http_request *req, unsigned int slice)
{
	struct http_feed *f = req->feed;

	if (!f->lines.len)
		http_feed_collect(req);
	strbuf_add(&req->lines, f->lines.data, f->lines.len);
	req->lines.failed |= f->lines.failed || (f->over && !f->lines.len);
	strbuf_reset(&f->lines);
}

/* --- requests -------------------------------------------------------------------- */

/* Whose system calls are left out; 0: not known. */
static uint32_t feed_client(const struct http_request *req)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	if (!req->peer ||
	    getsockopt(req->peer->fd, SOL_SOCKET, SO_PEERCRED, &cred, &len))
		return 0;
	return cred.pid > 0 ? (uint32_t)cred.pid : 0;
}

static enum MHD_Result feed_refused(struct http_request *req, int err,
				    const char *why)
{
	switch (err) {
	case -EINVAL:
		return http_error(req, MHD_HTTP_BAD_REQUEST, "name: %s\n", why);
	case -ENOTSUP:
		return http_error(req, MHD_HTTP_NOT_FOUND, "%s\n", why);
	case -E2BIG:
		return http_busy(req, why);
	case -EUSERS:
		return http_busy(req, "too many clients watch");
	}
	return http_busy(req, strerror(-err));
}

static enum MHD_Result feed_subscribe(struct http_request *req)
{
	struct http_feed *f = req->feed;
	struct reporter *r = req->http->r;
	const struct watch_want want = {
		.names = (const char *const *)f->names,
		.n_names = f->n_names,
		.pids = f->pids.v,
		.n_pids = f->pids.n,
		.client = feed_client(req),
		.slower_ns = (uint64_t)f->slower,
		.failed = f->failed,
		.take = feed_takes,
		.arg = f,
	};
	struct strbuf why = STRBUF_INIT;
	enum MHD_Result res;
	size_t n = 0;
	int err;

	while (watch_name(n))
		n++;
	f->lost = calloc(n, sizeof(*f->lost));
	f->missed = calloc(n, sizeof(*f->missed));
	err = f->lost && f->missed
		      ? watch_subscribe(r->opts.watch, &want, &f->sub, &why)
		      : -ENOMEM;
	if (err)
		res = feed_refused(req, err, strbuf_str(&why) ?: "");
	strbuf_fini(&why);
	if (err)
		return res;
	req->more = feed_more;
	req->endless = req->following = true;
	req->until = UINT64_MAX;
	LIST_INSERT_HEAD(&req->http->followers, req, follower);
	r->stats.http_followers++;
	return http_send_stream(req);
}

enum MHD_Result http_feed(struct http_request *req)
{
	struct http_feed *f;
	struct feed_arg a = { .err = 0 };
	struct http *h = req->http;
	const char *history;

	if (!h->socket.ino)
		return http_error(req, MHD_HTTP_FORBIDDEN,
				  "only over the unix socket\n");
	if (!h->r->opts.watch)
		return http_error(req, MHD_HTTP_FORBIDDEN,
				  "this profd runs with watch = no\n");
	f = req->feed = a.f = calloc(1, sizeof(*f));
	if (!f)
		return http_busy(req, "out of memory");
	MHD_get_connection_values(req->conn, MHD_GET_ARGUMENT_KIND, feed_on_arg,
				  &a);
	if (a.err)
		return http_bad_parameter(req, a.err, a.key, a.value, a.want);
	history = reporter_query_terms_history(&f->terms);
	if (history)
		return http_error(req, MHD_HTTP_BAD_REQUEST,
				  "%s: only of the past\n", history);
	if (!f->n_names)
		return http_error(req, MHD_HTTP_BAD_REQUEST,
				  "name: is missing\n");
	if (h->r->stats.http_followers >= HTTP_FOLLOWERS_MAX ||
	    !http_may(req, HTTP_CONN_FOLLOWING, HTTP_FOLLOWERS_USER))
		return http_busy(req, "too many clients watch");
	return feed_subscribe(req);
}

void http_feed_end(struct http_request *req)
{
	feed_free(req->feed);
}
