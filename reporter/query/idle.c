// SPDX-License-Identifier: Apache-2.0
/*
 * idle: waits that say nothing, because their threads have nothing to do; see
 * reporter/query/query.h. Most threads of a host sleep or poll nearly all the time, and
 * what is slow drowns in that.
 *
 * Waits are of images. An image does nothing else if those waits are all but a hundredth
 * of its time, as far as the profile has it. A kernel thread is an image without an
 * executable.
 */
#include <errno.h>
#include <string.h>

#include "bpf/abi_wait.h"
#include "reporter/query/model.h"

#define IDLE_PART 100 /* of the time of an image may be something else */

struct idle_image {
	struct hash_node node;
	uint64_t key;
	int64_t idle, all; /* ns, absolute */
};

struct idle {
	struct reporter_query *q;
	struct hash images;
	struct arena arena;
	bool exes; /* samples have executables */
};

static const char *idle_label(const struct reporter_query *q,
			      const struct query_labels *labels,
			      const char *key)
{
	for (uint32_t i = 0; i < labels->n; i++)
		if (!strcmp(query_text(q, labels->items[i].key), key))
			return query_text(q, labels->items[i].str);
	return NULL;
}

static bool idle_is_one(const char *s, const char *const *list, size_t n)
{
	for (size_t i = 0; s && i < n; i++)
		if (!strcmp(s, list[i]))
			return true;
	return false;
}

/* Not CPU time, and not in the run queue. */
static bool idle_is_wait(const struct reporter_query *q,
			 const struct query_labels *labels)
{
	static const char *const waits[] = {
#define X(NAME, name) #name,
		ABI_WAIT_WAIT_REASONS(X)
#undef X
	};

	return idle_is_one(idle_label(q, labels, "reason"), waits,
			   ARRAY_SIZE(waits));
}

static bool idle_is_idle(const struct reporter_query *q,
			 const struct query_labels *labels)
{
	static const char *const reasons[] = { "sleep", "poll", "child" };
	static const char *const calls[] = { "accept", "accept4" };

	return idle_is_one(idle_label(q, labels, "reason"), reasons,
			   ARRAY_SIZE(reasons)) ||
	       idle_is_one(idle_label(q, labels, "syscall"), calls,
			   ARRAY_SIZE(calls));
}

static int64_t idle_ns(const struct reporter_query *q,
		       const struct query_sample *s)
{
	int64_t ns = 0, v;

	for (size_t i = 0; i < q->ntypes; i++) {
		if (strcmp(query_text(q, q->types[i].unit), "nanoseconds") != 0)
			continue;
		v = s->values[i];
		ns = query_saturate(ns, v < 0 ? query_negate(v) : v);
	}
	return ns;
}

static struct idle_image *idle_find(struct idle *x, uint64_t key)
{
	struct idle_image *img;

	HASH_FIND(img, &x->images, key, node, img->key == key);
	return img;
}

static int idle_sum(struct idle *x, const struct query_sample *s)
{
	uint64_t key = query_who(x->q, s->labels);
	struct idle_image *img = idle_find(x, key);
	int64_t ns = idle_ns(x->q, s);

	x->exes |= idle_label(x->q, s->labels, "exe") != NULL;
	if (!img) {
		img = arena_alloc(&x->arena, sizeof(*img));
		if (!img)
			return -ENOMEM;
		*img = (struct idle_image){ .key = key };
		hash_insert(&x->images, &img->node, key);
	}
	img->all = query_saturate(img->all, ns);
	if (idle_is_idle(x->q, s->labels))
		img->idle = query_saturate(img->idle, ns);
	return 0;
}

static bool idle_hides(struct idle *x, const struct query_sample *s)
{
	const struct idle_image *img;
	uint64_t key = query_who(x->q, s->labels);

	/* Time without an image is of many. */
	if (!key || !idle_is_wait(x->q, s->labels))
		return false;
	if (x->exes && !idle_label(x->q, s->labels, "exe"))
		return true;
	img = idle_find(x, key);
	return idle_is_idle(x->q, s->labels) &&
	       img->all - img->idle <= img->all / IDLE_PART;
}

int reporter_query_hide_idle(struct reporter_query *q)
{
	struct idle x = { .q = q };
	size_t i;
	int err = hash_init(&x.images, 0);

	arena_init(&x.arena);
	for (i = 0; i < q->nsamples && !err; i++)
		err = idle_sum(&x, q->samples[i]);
	for (i = 0; i < q->nsamples && !err; i++) {
		struct query_sample *s = q->samples[i];

		if (!idle_hides(&x, s))
			continue;
		q->hidden = query_saturate(q->hidden, s->values[q->selected]);
		memset(s->values, 0, q->ntypes * sizeof(*s->values));
	}
	hash_fini(&x.images);
	arena_fini(&x.arena);
	return err;
}

void reporter_query_hidden(const struct reporter_query *q, struct strbuf *out)
{
	if (!q->hidden)
		return;
	query_value(out, q->hidden, query_text(q, q->types[q->selected].unit),
		    NULL);
	strbuf_puts(out, " of idle waits");
}
