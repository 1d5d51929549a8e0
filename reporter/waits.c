// SPDX-License-Identifier: Apache-2.0
/* waits: see reporter/waits.h. */
#include <errno.h>
#include <stdlib.h>

#include "reporter/waits.h"

static uint32_t *waits_rows(struct waits *w, uint32_t uid)
{
	return &w->rows[hash_u64(uid) % WAITS_USERS];
}

/* As window_opts.room. */
static bool waits_room(void *arg, const struct pm_image_info *info)
{
	struct waits *w = arg;
	uint64_t used = w->tables.samples.count;

	return w->folding || (used < WAITS_ROWS &&
			      *waits_rows(w, info->uid) < WAITS_ROWS - used);
}

struct waits *waits_new(const struct window_opts *opts)
{
	struct waits *w = calloc(1, sizeof(*w));
	struct window_opts wo = *opts;

	if (!w)
		return NULL;
	wo.room = waits_room;
	wo.arg = w;
	if (window_init(&w->tables, &wo)) {
		free(w);
		return NULL;
	}
	return w;
}

void waits_free(struct waits *w)
{
	if (!w)
		return;
	window_fini(&w->tables);
	singles_fini(&w->singles);
	strbuf_fini(&w->comments);
	free(w);
}

/* Without an image, and of its stack only the leaf, which has the reason. */
static int waits_fold(struct waits *w, const struct reporter_trace *t)
{
	static const struct pm_image_info nobody;
	struct reporter_trace rest = *t;
	int err;

	rest.nframes = MIN(t->nframes, (size_t)1);
	rest.memo = NULL;
	rest.tid = 0;
	rest.thread = rest.syscall = rest.fd = NULL;
	w->folding = true;
	err = window_add(&w->tables, &rest, &nobody);
	w->folding = false;
	w->folded += !err;
	return err;
}

int waits_add(struct waits *w, const struct reporter_trace *t,
	      const struct pm_image_info *info)
{
	size_t before = w->tables.samples.count;
	int err = window_add(&w->tables, t, info);

	if (w->tables.samples.count > before)
		++*waits_rows(w, info->uid);
	if (err == -ENOBUFS)
		err = waits_fold(w, t);
	w->nomem += err != 0;
	return err;
}

int waits_keep_singles(struct waits *w, uint64_t min)
{
	return min ? singles_init(&w->singles, min) : 0;
}

int waits_add_single(struct waits *w, const struct reporter_trace *t,
		     const struct pm_image_info *info,
		     const struct abi_segment *of, const char *name)
{
	const struct window_sample *row;

	if (!w->singles.min)
		return 0;
	/* None is made: it would have no value, and the profile has no such one. */
	row = window_find(&w->tables, t, info);
	return singles_add(&w->singles, of, row ? row->id : SINGLES_NONE,
			   info->uid, name);
}

bool waits_any(const struct waits *w)
{
	return w && w->tables.nsamples;
}

static void waits_comment(struct waits *w, const char *what, uint64_t n)
{
	if (!n)
		return;
	strbuf_printf(&w->comments, "%s: %llu", what, (unsigned long long)n);
	strbuf_add(&w->comments, "", 1);
}

static void waits_comment_singles(struct waits *w)
{
	const struct singles *s = &w->singles;
	uint64_t top = singles_top(s);

	if (!s->min)
		return;
	waits_comment(w, "long waits that are not in the side file",
		      s->dropped + w->lost);
	if (top == s->min)
		return;
	strbuf_printf(&w->comments,
		      "of some users only waits of %llu ns and longer are in "
		      "the side file, not of %llu",
		      (unsigned long long)top, (unsigned long long)s->min);
	strbuf_add(&w->comments, "", 1);
}

int waits_seal(struct waits *w, const char *head, size_t len)
{
	int err = window_seal(&w->tables);

	strbuf_add(&w->comments, head, len);
	waits_comment(w, "sums without labels: their images were too many",
		      w->folded);
	waits_comment(w, "sums lost: out of memory", w->nomem);
	waits_comment_singles(w);
	return w->comments.failed ? -ENOMEM : err;
}
