// SPDX-License-Identifier: Apache-2.0
/*
 * nodes: see reporter/query/nodes.h. Rows, their order and which are dropped are those
 * of `go tool pprof -top`: rows below the least share of the sum of all flat values are
 * dropped, then those beyond the number of rows; a row is marked as inlined by the calls
 * between those that are left.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "reporter/query/nodes.h"

/* A call between two nodes, of which the table needs only the weight. */
struct edge {
	struct hash_node hash;
	struct node *from, *to;
	int64_t weight;
	bool inlined;
	size_t seen;
};

#define NODES_EDGE_SHARE 0.001 /* weaker calls do not mark a row */

/* --- names ------------------------------------------------------------------------ */

/* A path without "." and "..", as Go's filepath.Clean() has it. */
static void node_clean(const char *path, struct strbuf *out)
{
	size_t start = out->len, base, n;
	bool root = *path == '/';

	if (root)
		strbuf_puts(out, "/");
	base = out->len;
	for (; *path; path += n) {
		n = strcspn(path, "/");
		if (!n || (n == 1 && *path == '.')) {
			n += path[n] == '/';
			continue;
		}
		if (n == 2 && !memcmp(path, "..", 2) && !out->failed &&
		    (root || out->len > base)) {
			while (out->len > base &&
			       out->data[out->len - 1] != '/')
				out->len--;
			out->len -= out->len > base;
			out->data[out->len] = '\0';
		} else {
			if (out->len > base)
				strbuf_puts(out, "/");
			strbuf_add(out, path, n);
			/* What ".." cannot remove is kept for good. */
			if (n == 2 && !memcmp(path, "..", 2))
				base = out->len;
		}
		n += path[n] == '/';
	}
	if (out->len == start)
		strbuf_puts(out, ".");
}

static void node_name(struct nodes *ns, const struct query_location *l,
		      uint32_t i, struct strbuf *out)
{
	const struct reporter_query *q = ns->q;
	const struct query_function *f = NULL;
	int64_t line = 0;

	if (i < l->nlines && l->lines[i].function != QUERY_NONE)
		f = q->functions[l->lines[i].function];
	if (f && ns->kind == NODE_LINE)
		line = l->lines[i].line;
	if (ns->kind == NODE_FILE && f && f->file) {
		node_clean(query_text(q, f->file), out);
	} else if (ns->kind == NODE_LINE && f && (f->file || line)) {
		if (f->name)
			strbuf_printf(out, "%s ", query_text(q, f->name));
		if (f->file)
			node_clean(query_text(q, f->file), out);
		if (line)
			strbuf_printf(out, ":%" PRId64, line);
	} else {
		struct query_location plain = *l;

		if (ns->kind == NODE_FILE)
			plain.nlines = 0;
		query_frame_name(q, ns->kind == NODE_FILE ? &plain : l, i, out);
	}
}

static struct node *node_of(struct nodes *ns, const char *name)
{
	int64_t id = name ? strtab_id(&ns->names, name) : -ENOMEM;
	uint64_t h = hash_u64((uint64_t)id);
	struct node *n;

	if (id < 0)
		return NULL;
	HASH_FIND(n, &ns->by_name, h, hash, n->name == id);
	if (n)
		return n;
	n = arena_alloc(&ns->arena, sizeof(*n));
	if (!n || VECTOR_ROOM(ns->items, ns->n, ns->cap))
		return NULL;
	*n = (struct node){ .name = (uint32_t)id, .kept = true };
	hash_insert(&ns->by_name, &n->hash, h);
	ns->items[ns->n++] = n;
	return n;
}

static size_t node_lines(const struct query_location *l)
{
	return l->nlines ? l->nlines : 1;
}

/* The node of each line of each location. */
static int nodes_locations(struct nodes *ns)
{
	const struct reporter_query *q = ns->q;
	struct strbuf sb = STRBUF_INIT;
	size_t i, k, n = 0;
	int err = 0;

	ns->first = calloc(q->nlocations + 1, sizeof(*ns->first));
	if (!ns->first)
		return -ENOMEM;
	for (i = 0; i < q->nlocations; i++) {
		ns->first[i] = n;
		n += node_lines(q->locations[i]);
	}
	ns->lines = calloc(n + 1, sizeof(struct node *));
	if (!ns->lines)
		return -ENOMEM;
	for (i = 0; i < q->nlocations && !err; i++)
		for (k = 0; k < node_lines(q->locations[i]) && !err; k++) {
			strbuf_reset(&sb);
			node_name(ns, q->locations[i], (uint32_t)k, &sb);
			ns->lines[ns->first[i] + k] =
				node_of(ns, strbuf_str(&sb));
			if (!ns->lines[ns->first[i] + k])
				err = -ENOMEM;
		}
	strbuf_fini(&sb);
	return err;
}

/* --- sums ------------------------------------------------------------------------- */

static void nodes_stack(struct nodes *ns, const struct query_stack *s,
			int64_t v, size_t number)
{
	struct node *n = NULL;

	for (uint32_t i = s->n; i--;) {
		uint32_t l = s->locations[i];

		for (size_t k = node_lines(ns->q->locations[l]); k--;) {
			n = ns->lines[ns->first[l] + k];
			if (n->seen == number)
				continue;
			n->seen = number;
			n->cum = query_saturate(n->cum, v);
		}
	}
	if (n)
		n->flat = query_saturate(n->flat, v);
}

static int nodes_label(struct nodes *ns, const struct query_sample *s,
		       int64_t v)
{
	struct strbuf sb = STRBUF_INIT;
	struct node *n;

	if (!query_label_text(ns->q, s->labels, ns->label, &sb))
		strbuf_printf(&sb, "[no %s]", ns->label);
	n = node_of(ns, strbuf_str(&sb));
	strbuf_fini(&sb);
	if (!n)
		return -ENOMEM;
	n->flat = query_saturate(n->flat, v);
	n->cum = n->flat;
	return 0;
}

static int nodes_sum(struct nodes *ns)
{
	struct reporter_query *q = ns->q;
	int err = 0;

	for (size_t i = 0; i < q->nsamples && !err; i++) {
		int64_t v = q->samples[i]->values[q->selected];

		if (v && ns->kind == NODE_LABEL)
			err = nodes_label(ns, q->samples[i], v);
		else if (v)
			nodes_stack(ns, q->samples[i]->stack, v, i + 1);
	}
	return err;
}

static int64_t node_share(int64_t total, double share)
{
	int64_t v = (int64_t)((double)total * share);

	return v < 0 ? query_negate(v) : v;
}

static void nodes_drop(struct nodes *ns, double least)
{
	int64_t sum = 0, cutoff;
	size_t i, k = 0;

	for (i = 0; i < ns->n; i++)
		sum = query_saturate(sum, ns->items[i]->flat);
	cutoff = node_share(sum, least);
	ns->weakest = node_share(sum, NODES_EDGE_SHARE);
	for (i = 0; i < ns->n; i++) {
		struct node *n = ns->items[i];
		int64_t cum = n->cum < 0 ? query_negate(n->cum) : n->cum;

		n->kept = (n->cum || n->flat) && (!cutoff || cum >= cutoff);
		ns->dropped += !n->kept && (n->cum || n->flat);
		if (n->kept)
			ns->items[k++] = n;
	}
	ns->n = k;
}

/* --- inlined rows ----------------------------------------------------------------- */

/* Counts a call once a sample. */
static int edge_add(struct nodes *ns, struct hash *edges,
		    const struct edge *call, size_t number)
{
	uint64_t h = hash_mix((uintptr_t)call->from, (uintptr_t)call->to);
	struct edge *e;

	HASH_FIND(e, edges, h, hash,
		  e->from == call->from && e->to == call->to);
	if (!e) {
		e = arena_memdup(&ns->arena, call, sizeof(*call));
		if (!e)
			return -ENOMEM;
		e->weight = 0;
		e->seen = 0;
		hash_insert(edges, &e->hash, h);
	}
	if (e->seen == number)
		return 0;
	e->seen = number;
	e->inlined &= call->inlined;
	e->weight = query_saturate(e->weight, call->weight);
	return 0;
}

static int edges_stack(struct nodes *ns, struct hash *edges,
		       const struct query_sample *s, size_t number)
{
	struct edge call = { .weight = s->values[ns->q->selected] };
	int err = 0;

	for (uint32_t i = s->stack->n; i-- && !err;) {
		uint32_t l = s->stack->locations[i];
		size_t n = node_lines(ns->q->locations[l]);

		for (size_t k = n; k-- && !err;) {
			call.to = ns->lines[ns->first[l] + k];
			if (!call.to->kept)
				continue;
			call.inlined = k != n - 1;
			if (call.from && call.from != call.to)
				err = edge_add(ns, edges, &call, number);
			call.from = call.to;
		}
	}
	return err;
}

int nodes_mark(struct nodes *ns)
{
	struct hash_node *node, *tmp;
	struct hash edges;
	size_t i;
	int err;

	if (ns->kind == NODE_LABEL)
		return 0;
	err = hash_init(&edges, 0);

	for (i = 0; i < ns->q->nsamples && !err; i++)
		if (ns->q->samples[i]->values[ns->q->selected])
			err = edges_stack(ns, &edges, ns->q->samples[i], i + 1);
	if (edges.buckets)
		hash_for_each(&edges, i, node, tmp) {
			struct edge *e = container_of(node, struct edge, hash);
			int64_t w = e->weight;

			if ((w < 0 ? query_negate(w) : w) < ns->weakest)
				continue;
			e->to->inlined |= e->inlined;
			e->to->called |= !e->inlined;
		}
	hash_fini(&edges);
	return err;
}

/* --- the whole -------------------------------------------------------------------- */

static const struct {
	const char *word;
	enum node_kind kind;
} nodes_kinds[] = {
	{ "function", NODE_FUNCTION },
	{ "line", NODE_LINE },
	{ "file", NODE_FILE },
};

int nodes_make(struct nodes *ns, struct reporter_query *q, const char *by,
	       double least)
{
	int err;

	memset(ns, 0, sizeof(*ns));
	ns->q = q;
	ns->kind = NODE_LABEL;
	ns->label = by;
	for (size_t i = 0; i < ARRAY_SIZE(nodes_kinds); i++)
		if (!strcmp(by, nodes_kinds[i].word))
			ns->kind = nodes_kinds[i].kind;
	ns->total = query_total(q);
	arena_init(&ns->arena);
	err = strtab_init(&ns->names);
	if (!err)
		err = hash_init(&ns->by_name, 0);
	if (!err && ns->kind != NODE_LABEL)
		err = nodes_locations(ns);
	if (!err)
		err = nodes_sum(ns);
	if (!err)
		nodes_drop(ns, least);
	return err;
}

void nodes_top(struct nodes *ns, size_t top)
{
	for (size_t i = top; i < ns->n; i++)
		ns->items[i]->kept = false;
	ns->n = MIN(ns->n, top);
}

void nodes_fini(struct nodes *ns)
{
	free(ns->first);
	free(ns->lines);
	free(ns->items);
	hash_fini(&ns->by_name);
	strtab_fini(&ns->names);
	arena_fini(&ns->arena);
}

struct nodes_order {
	const struct nodes *ns;
	bool cum;
};

static int nodes_compare(const void *a, const void *b, void *arg)
{
	const struct node *x = *(struct node *const *)a;
	const struct node *y = *(struct node *const *)b;
	const struct nodes_order *o = arg;
	int64_t vx = o->cum ? x->cum : x->flat, vy = o->cum ? y->cum : y->flat;

	/* Negative ones fit, as INT64_MAX does not. */
	vx = vx > 0 ? -vx : vx;
	vy = vy > 0 ? -vy : vy;
	if (vx != vy)
		return vx < vy ? -1 : 1;
	return strcmp(strtab_str(&o->ns->names, x->name),
		      strtab_str(&o->ns->names, y->name));
}

void nodes_sort(struct nodes *ns, bool cum)
{
	struct nodes_order order = { ns, cum };

	if (ns->n)
		qsort_r(ns->items, ns->n, sizeof(struct node *), nodes_compare,
			&order);
}
