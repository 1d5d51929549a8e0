// SPDX-License-Identifier: Apache-2.0
/*
 * tree: the calls of all samples as an indented tree, callers first; see
 * reporter/query/query.h. A chain of frames without branches stays at one depth, so
 * that deep stacks can be read.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "reporter/query/nodes.h"

#define TREE_DEPTH_MAX 4096 /* deeper frames are one row "..." */

struct branch {
	struct hash_node hash;
	struct branch *parent, *child, *next; /* children: the newest first */
	struct node *node;
	int64_t self, total;
	size_t children, depth;
};

struct tree {
	struct nodes *ns;
	struct hash by_call; /* parent and node */
	struct branch root;
	const struct reporter_query_table *t;
	const char *as;
	int64_t least;
	struct branch **order;
	size_t n;
};

static struct branch *tree_child(struct tree *tr, struct branch *parent,
				 struct node *node)
{
	uint64_t h = hash_mix((uintptr_t)parent, (uintptr_t)node);
	struct branch *b;

	HASH_FIND(b, &tr->by_call, h, hash,
		  b->parent == parent && b->node == node);
	if (b)
		return b;
	b = arena_alloc(&tr->ns->arena, sizeof(*b));
	if (!b)
		return NULL;
	*b = (struct branch){ .parent = parent,
			      .next = parent->child,
			      .node = node,
			      .depth = parent->depth + 1 };
	parent->child = b;
	parent->children++;
	hash_insert(&tr->by_call, &b->hash, h);
	tr->n++;
	return b;
}

static int tree_stack(struct tree *tr, const struct query_stack *s, int64_t v)
{
	struct nodes *ns = tr->ns;
	struct branch *b = &tr->root;

	b->total = query_saturate(b->total, v);
	for (uint32_t i = s->n; i-- && b->depth < TREE_DEPTH_MAX;) {
		uint32_t l = s->locations[i], n = ns->q->locations[l]->nlines;

		for (uint32_t k = MAX(n, 1U); k--;) {
			b = tree_child(tr, b, ns->lines[ns->first[l] + k]);
			if (!b)
				return -ENOMEM;
			b->total = query_saturate(b->total, v);
		}
	}
	b->self = query_saturate(b->self, v);
	return 0;
}

static int64_t tree_size(const struct branch *b)
{
	return b->total < 0 ? query_negate(b->total) : b->total;
}

static bool tree_keeps(const struct tree *tr, const struct branch *b)
{
	return b->total && tree_size(b) >= tr->least;
}

/* The largest first; of equal ones by name. */
static int tree_compare(const void *a, const void *b, void *arg)
{
	const struct branch *x = *(struct branch *const *)a;
	const struct branch *y = *(struct branch *const *)b;
	const struct tree *tr = arg;

	if (tree_size(x) != tree_size(y))
		return tree_size(x) > tree_size(y) ? -1 : 1;
	return strcmp(strtab_str(&tr->ns->names, x->node->name),
		      strtab_str(&tr->ns->names, y->node->name));
}

static void tree_row(const struct tree *tr, const struct branch *b,
		     struct strbuf *out)
{
	const struct reporter_query *q = tr->ns->q;
	const char *unit = query_text(q, q->types[q->selected].unit);
	const char *name = strtab_str(&tr->ns->names, b->node->name);
	struct strbuf cell = STRBUF_INIT;
	size_t start = out->len;

	query_value(&cell, b->total, unit, tr->as);
	strbuf_printf(out, "%10s ", cell.failed ? "" : strbuf_str(&cell));
	query_percent(out, b->total, tr->ns->total);
	strbuf_reset(&cell);
	query_value(&cell, b->self, unit, tr->as);
	strbuf_printf(out, " %10s  %*s", cell.failed ? "" : strbuf_str(&cell),
		      (int)(2 * (b->depth - 1)), "");
	text_add(out, name, strlen(name));
	out->failed |= cell.failed;
	strbuf_fini(&cell);
	query_row_end(out, start, tr->t->width);
}

/* Sets the depths of the children that are kept, and appends these to tr->order. */
static size_t tree_open(struct tree *tr, const struct branch *parent, size_t at)
{
	struct branch *b;
	size_t first = at;

	for (b = parent->child; b; b = b->next)
		if (tree_keeps(tr, b))
			tr->order[at++] = b;
	qsort_r(tr->order + first, at - first, sizeof(*tr->order), tree_compare,
		tr);
	for (size_t i = first; i < at; i++)
		tr->order[i]->depth =
			parent->depth + (at - first > 1 || parent == &tr->root);
	/* A stack of what is to be printed: the largest is taken first. */
	for (size_t i = first, k = at; i + 1 < k--; i++) {
		b = tr->order[i];
		tr->order[i] = tr->order[k];
		tr->order[k] = b;
	}
	return at;
}

static void tree_print(struct tree *tr, struct strbuf *out)
{
	size_t n, rows = 0;
	struct branch *b;

	tr->root.depth = 0;
	n = tree_open(tr, &tr->root, 0);
	while (n && (!tr->t->top || rows++ < tr->t->top)) {
		b = tr->order[--n];
		tree_row(tr, b, out);
		n = tree_open(tr, b, n);
	}
	if (n)
		strbuf_printf(out, "%*s... (-n prints more)\n", 31, "");
}

static int tree_make(struct tree *tr)
{
	struct reporter_query *q = tr->ns->q;
	int err = hash_init(&tr->by_call, q->nsamples);

	for (size_t i = 0; i < q->nsamples && !err; i++) {
		int64_t v = q->samples[i]->values[q->selected];

		if (v)
			err = tree_stack(tr, q->samples[i]->stack, v);
	}
	if (!err)
		tr->order = calloc(tr->n + 1, sizeof(*tr->order));
	return err ? err : tr->order ? 0 : -ENOMEM;
}

int reporter_query_tree(struct reporter_query *q,
			const struct reporter_query_table *t,
			struct strbuf *out)
{
	struct nodes ns;
	struct tree tr = { .ns = &ns, .t = t };
	int err = nodes_make(&ns, q, "function", 0);

	if (!err)
		err = tree_make(&tr);
	if (!err) {
		tr.as = query_unit(0, ns.total,
				   query_text(q, q->types[q->selected].unit));
		tr.least = (int64_t)((double)tree_size(&tr.root) * t->least);
		strbuf_puts(out, "       cum   cum%       self\n");
		tree_print(&tr, out);
		err = out->failed ? -ENOMEM : 0;
	}
	free(tr.order);
	hash_fini(&tr.by_call);
	nodes_fini(&ns);
	return err;
}
