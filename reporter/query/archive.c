// SPDX-License-Identifier: Apache-2.0
/*
 * archive: the windows of an archive in a span of time, added to the merged profile;
 * see reporter/query/query.h. profd may write and remove windows meanwhile.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "reporter/times.h"
#include "reporter/query/input.h"
#include "reporter/store/store.h"
#include "reporter/store/times_file.h"

struct archive {
	struct reporter_query *q;
	struct reporter_query_archive *to;
	const struct store_window *window;
	int dirfd;
	int64_t end; /* of the windows so far */
	struct store_times *times; /* of the current window, if read already */
};

/* Windows that follow each other overlap by what the clock was slewed meanwhile. */
#define ARCHIVE_SLEW_NS ((int64_t)(CLOCK_NSEC_PER_SEC / 10))

/* Reads the side file of the current window. */
static int archive_read_times(const struct archive *a, struct store_times **tp)
{
	return store_times_open(a->window, a->dirfd, STORE_TIMES, tp);
}

/* query_part.times */
static int archive_times(void *arg, struct store_times **tp)
{
	struct archive *a = arg;

	*tp = a->times;
	a->times = NULL;
	return *tp ? 0 : archive_read_times(a, tp);
}

/* A pair of a side file, as labels. */
static bool archive_pair_label(const void *arg, const char *key, size_t i,
			       struct reporter_query_value *out)
{
	const char(*texts)[IDS_HEX] = arg;

	if (i)
		return false;
	out->text = texts[!strcmp(key, REPORTER_LABEL_SPAN)];
	return true;
}

static bool archive_pairs_match(const struct store_times *t,
				const struct reporter_query_terms *terms)
{
	char texts[2][IDS_HEX];

	for (uint32_t i = 1; i <= store_times_pairs(t); i++) {
		const uint8_t *pair = store_times_pair(t, i);

		times_ids_hex(pair, IDS_TRACE, texts[0]);
		times_ids_hex(pair + IDS_TRACE, IDS_SPAN, texts[1]);
		if (reporter_query_terms_take_trace(terms, archive_pair_label,
						    texts))
			return true;
	}
	return false;
}

static bool archive_no_label(const void *arg, const char *key, size_t i,
			     struct reporter_query_value *out)
{
	return false;
}

/*
 * Whether the current window may have samples of the traces asked for: by its side file,
 * which takes a tenth of the time that the profile does.
 */
static bool archive_may_match(struct archive *a)
{
	const struct reporter_query_terms *terms = a->q->opts.terms;

	if (!reporter_query_terms_traced(terms) ||
	    reporter_query_terms_take_trace(terms, archive_no_label, NULL))
		return true;
	/* The profile is read then, and the failure counted. */
	return archive_read_times(a, &a->times) ||
	       archive_pairs_match(a->times, terms);
}

/* A file of the current window, to be freed. */
struct archive_file {
	uint8_t *data;
	size_t len;
};

/* -EBADMSG: damaged; -ENOENT: retention has removed it. */
static int archive_read(const struct archive *a, enum store_kind kind,
			struct archive_file *f, const char **what)
{
	int err, fd = store_window_open(a->window, a->dirfd, kind);

	if (fd < 0)
		return fd;
	err = edit_read(fd, &f->data, &f->len, what);
	close(fd);
	return err;
}

/* By the name of the window, which is all that was read of it. */
static bool archive_overlaps(const struct archive *a)
{
	int64_t begin = a->window->begin_ns;
	int64_t end = query_saturate(begin, (int64_t)a->window->duration_ns);

	return begin < a->to->span.to && end > a->to->span.from;
}

/* Both files of wall time are read before one is added: a window is in it whole. */
static int archive_files(struct archive *a, struct archive_file files[2],
			 const char **what)
{
	const struct store_window *w = a->window;
	enum reporter_query_kind kind = a->q->opts.kind;
	int err = 0;

	if (kind != REPORTER_QUERY_CPU && !w->wait_bytes) {
		a->to->without += archive_overlaps(a);
		return 0;
	}
	if (kind == REPORTER_QUERY_CPU || kind == REPORTER_QUERY_WALL)
		err = archive_read(a, (enum store_kind)w->format, &files[0],
				   what);
	if (!err && kind != REPORTER_QUERY_CPU)
		err = archive_read(a, store_wait(w->format), &files[1], what);
	if (err == -EBADMSG)
		a->to->damaged++;
	if (err == -EBADMSG || err == -ENOENT) {
		for (size_t i = 0; i < 2; i++)
			free(files[i].data);
		memset(files, 0, 2 * sizeof(*files));
		err = 0;
	}
	return err;
}

static int archive_window(struct archive *a, const char **what)
{
	struct query_part part = {
		.span = a->to->span,
		.times = archive_times,
		.arg = a,
	};
	const struct store_window *w = a->window;
	struct archive_file files[2] = { 0 };
	bool any = false;
	int err = archive_files(a, files, what);

	for (size_t i = 0; i < 2 && !err && !part.outside; i++) {
		if (!files[i].data)
			continue;
		err = input_add(a->q,
				(struct edit_bytes){ files[i].data,
						     files[i].len },
				a->to->base, &part, what);
		any = true;
	}
	free(files[0].data);
	free(files[1].data);
	if (err || part.outside || !any)
		return err;
	a->to->read++;
	a->to->again += part.begin < a->end - ARCHIVE_SLEW_NS;
	a->end = MAX(a->end, part.end);
	a->to->whole += part.whole;
	a->to->untraced += part.untraced;
	a->to->bytes += store_window_bytes(w);
	return 0;
}

/* The merged profile itself says where it is not exact. */
static int archive_notes(struct archive *a)
{
	const struct {
		const char *text;
		size_t n;
	} notes[] = {
		{ "windows taken whole, because their times are missing",
		  a->to->whole },
		{ "windows that cannot be read", a->to->damaged },
		{ "windows of a time that the clock had twice", a->to->again },
		{ "windows without waits, left out", a->to->without },
		{ "windows without ids of traces, because their times are "
		  "missing",
		  a->to->untraced },
	};
	int err = 0;

	for (size_t i = 0; i < ARRAY_SIZE(notes) && !err; i++)
		if (notes[i].n)
			err = query_comment_add(a->q, notes[i].text, true,
						notes[i].n);
	return err;
}

static int archive_one(struct archive *a, const struct store_window *w,
		       bool wanted, const char **what)
{
	struct reporter_query_archive *to = a->to;
	bool is = true;
	int err = 0;

	a->window = w;
	store_window_path(w, (enum store_kind)w->format, to->file);
	if (to->wanted)
		is = to->wanted(to->arg, to->file);
	is = is && archive_may_match(a);
	if (is == wanted)
		err = archive_window(a, what);
	store_times_free(a->times);
	a->times = NULL;
	return err;
}

/*
 * If no window that is wanted has a part in the span, the last other one that has is
 * read: it has the sample types. Those at the ends are in it by their names perhaps only.
 */
static int archive_add(struct archive *a, const struct store_list *list,
		       const char **what)
{
	struct reporter_query_archive *to = a->to;
	int err = 0;

	for (size_t i = 0; i < list->n && !err; i++) {
		if (to->progress && !to->progress(to->arg, i, list->n))
			err = -ECANCELED;
		else
			err = archive_one(a, &list->windows[i], true, what);
	}
	for (size_t i = list->n; i-- && !to->read && !err;)
		err = archive_one(a, &list->windows[i], false, what);
	if (err)
		return err;
	*to->file = '\0';
	return archive_notes(a);
}

int reporter_query_add_archive(struct reporter_query *q,
			       struct reporter_query_archive *to,
			       const char **what)
{
	struct archive a = {
		.q = q,
		.to = to,
		.end = INT64_MIN + ARCHIVE_SLEW_NS,
	};
	struct store_list list;
	int err;

	*what = NULL;
	*to->file = '\0';
	err = store_list(&list, to->path, to->span.from, to->span.to);
	if (err)
		return err;
	a.dirfd = open(to->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	err = a.dirfd < 0 ? -errno : 0;
	if (!err) {
		to->windows = list.n;
		err = archive_add(&a, &list, what);
		close(a.dirfd);
	}
	store_list_free(&list);
	return err;
}
