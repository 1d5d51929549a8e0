// SPDX-License-Identifier: Apache-2.0
/*
 * input_roots: frames below the root of a stack, by the labels of its sample: their
 * values, or the names of the ancestors of its process, which the caller of the query
 * knows; see reporter/query/input.h.
 */
#include <errno.h>
#include <string.h>

#include "reporter/query/input.h"

/* The location of a frame that is only a name. */
static int roots_location(struct input *in, const char *name, uint32_t *index)
{
	int64_t id = name ? strtab_id(&in->q->strings, name) : -ENOMEM;

	return id < 0 ? -ENOMEM : query_named_index(in->q, (uint32_t)id, index);
}

static int roots_push(struct input *in, const char *name)
{
	uint32_t index;
	int err = roots_location(in, name, &index);

	return err ? err : input_push(in, index);
}

static int roots_label(struct input *in, const struct query_labels *labels,
		       const char *key)
{
	struct strbuf sb = STRBUF_INIT;
	int err;

	if (!query_label_text(in->q, labels, key, &sb))
		strbuf_printf(&sb, "[no %s]", key);
	err = roots_push(in, strbuf_str(&sb));
	strbuf_fini(&sb);
	return err;
}

/* --- the tree of processes ---------------------------------------------------- */

/* The string of the label "image"; 0: there is none. */
static uint32_t roots_image(const struct input *in,
			    const struct query_labels *labels)
{
	for (uint32_t i = 0; i < labels->n; i++)
		if (!strcmp(query_text(in->q, labels->items[i].key), "image"))
			return labels->items[i].str;
	return 0;
}

static int roots_line_make(struct input *in, uint32_t image,
			   struct query_line_of **out)
{
	struct reporter_query *q = in->q;
	const char *const *names = NULL;
	struct query_line_of *l;
	size_t i, n = 0;
	int err = q->opts.ancestors(q->opts.arg, query_text(q, image), &names,
				    &n);

	if (err && !in->what)
		in->what = "the ancestors of a process cannot be read";
	if (err)
		return err;
	l = arena_alloc(&q->arena, sizeof(*l) + n * sizeof(*l->locations));
	if (!l)
		return -ENOMEM;
	l->image = image;
	l->n = (uint32_t)n;
	for (i = 0; i < n && !err; i++)
		err = roots_location(in, names[i], &l->locations[n - 1 - i]);
	if (!err)
		hash_insert(&q->by_image, &l->node, hash_u64(image));
	*out = l;
	return err;
}

/* Each image is asked for once, however many samples and profiles it is in. */
static int roots_line(struct input *in, uint32_t image,
		      struct query_line_of **out)
{
	struct query_line_of *l = NULL;

	*out = NULL;
	if (!image || !in->q->opts.ancestors)
		return 0;
	HASH_FIND(l, &in->q->by_image, hash_u64(image), node,
		  l->image == image);
	*out = l;
	return l ? 0 : roots_line_make(in, image, out);
}

/* Of a process that is not known, at least its name. */
static int roots_tree(struct input *in, const struct query_labels *labels)
{
	struct query_line_of *l;
	int err = roots_line(in, roots_image(in, labels), &l);

	if (err)
		return err;
	if (l && l->n) {
		for (uint32_t i = 0; i < l->n && !err; i++)
			err = input_push(in, l->locations[i]);
		return err;
	}
	err = roots_label(in, labels, "comm");
	return err ? err : roots_push(in, "[no ancestors]");
}

int input_roots(struct input *in, const struct query_labels *labels)
{
	const struct reporter_query_opts *o = &in->q->opts;
	size_t i = o->nroots;
	int err = 0;

	while (i-- && !err)
		err = strcmp(o->roots[i], REPORTER_QUERY_TREE) != 0
			      ? roots_label(in, labels, o->roots[i])
			      : roots_tree(in, labels);
	return err;
}
