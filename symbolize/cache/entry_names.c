// SPDX-License-Identifier: Apache-2.0
/* entry_names: the names in an entry; see symbolize/cache/entry.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "symbolize/cache/entry.h"
#include "symbolize/reader/worker_msg.h"

static const struct entry_range *entry_ranges(const struct entry *e)
{
	return (const void *)e->payload;
}

/* Where the functions begin. */
static const uint8_t *entry_functions(const struct entry *e)
{
	return e->payload + e->head->n * sizeof(struct entry_range);
}

/* Whether the functions of a range are valid, and belong to it. */
static bool entry_range_ok(const struct entry_range *r, const uint8_t *bytes)
{
	struct worker_cursor c = { .p = bytes + r->at,
				   .end = bytes + r->at + r->len };
	struct symbolizer_symbol sym = { 0 };

	if (!r->size || r->start + r->size < r->start ||
	    !worker_name_next(&c, r->start, &sym) || c.p != c.end)
		return false;
	/* An address of which nothing is known is a range of its own. */
	return sym.size ? sym.start == r->start && sym.size == r->size
			: r->size == 1;
}

int entry_names_check(const struct entry *e)
{
	const struct entry_range *r = entry_ranges(e);
	size_t n = e->head->n, rest;
	uint64_t at = 0;

	if (e->len / sizeof(*r) < n)
		return -EBADMSG;
	rest = e->len - n * sizeof(*r);
	for (size_t i = 0; i < n; i++) {
		if (r[i].at != at || r[i].len > rest - at ||
		    (i && r[i].start - r[i - 1].start < r[i - 1].size) ||
		    (i && r[i].start <= r[i - 1].start) ||
		    !entry_range_ok(&r[i], entry_functions(e)))
			return -EBADMSG;
		at += r[i].len;
	}
	return at == rest && e->head->err == 0 ? 0 : -EBADMSG;
}

bool entry_names_find(const struct entry *e, struct symbolizer_answer *a,
		      struct symbolizer_symbol *sym)
{
	const struct entry_range *r = entry_ranges(e);
	const uint8_t *bytes = entry_functions(e);
	struct worker_cursor c;
	size_t i;

	VECTOR_SEARCH(i, e->head->n, r[i].start <= sym->vaddr);
	if (!i || sym->vaddr - r[i - 1].start >= r[i - 1].size)
		return false;
	r += i - 1;
	c.p = bytes + r->at;
	c.end = c.p + r->len;
	return worker_name_next(&c, sym->vaddr, sym) &&
	       symbolizer_answer_keep(a, sym);
}

void entry_news_add(struct entry_news *news,
		    const struct symbolizer_symbol *sym)
{
	uint8_t buf[WORKER_NAME_MAX];
	struct entry_range r = { .start = sym->start, .size = sym->size };

	if (!r.size) {
		r.start = sym->vaddr;
		r.size = 1;
	}
	if (r.start + r.size < r.start)
		return;
	r.len = (uint32_t)worker_name_add(buf, 0, sizeof(buf), sym);
	strbuf_add(&news->bytes, &r, sizeof(r));
	strbuf_add(&news->bytes, buf, r.len);
	news->n++;
}

/* --- merging -------------------------------------------------------------- */

struct merge_range {
	struct entry_range r;
	const uint8_t *bytes; /* its functions */
	uint32_t age; /* a lower one wins */
};

static int cmp_merge(const void *a, const void *b)
{
	const struct merge_range *x = a, *y = b;

	if (x->r.start != y->r.start)
		return x->r.start < y->r.start ? -1 : 1;
	return x->age < y->age ? -1 : x->age > y->age;
}

static size_t merge_fill(struct merge_range *v, const struct entry *old,
			 const struct entry_news *news)
{
	const char *p = news->bytes.data;
	uint32_t i, n = 0;

	/* The last answer for a range is the newest. */
	for (i = 0; i < news->n; i++, n++) {
		memcpy(&v[n].r, p, sizeof(v[n].r));
		v[n].bytes = (const uint8_t *)p + sizeof(v[n].r);
		v[n].age = news->n - i;
		p += sizeof(v[n].r) + v[n].r.len;
	}
	for (i = 0; old && i < old->head->n; i++, n++) {
		v[n].r = entry_ranges(old)[i];
		v[n].bytes = entry_functions(old) + v[n].r.at;
		v[n].age = UINT32_MAX;
	}
	return n;
}

/* Drops what overlaps a newer range. How many are left. */
static size_t merge_cut(struct merge_range *v, size_t n)
{
	size_t i, last = 0;

	for (i = 1; i < n; i++) {
		if (v[i].r.start - v[last].r.start >= v[last].r.size)
			v[++last] = v[i];
		else if (v[i].age < v[last].age)
			v[last] = v[i];
	}
	return n ? last + 1 : 0;
}

bool entry_names_merge(struct strbuf *out, uint32_t *n, const struct entry *old,
		       const struct entry_news *news)
{
	size_t i, all = news->n + (old ? old->head->n : 0);
	size_t bytes = 0;
	struct merge_range *v = malloc((all + 1) * sizeof(*v));
	uint32_t at = 0;

	if (!v || news->bytes.failed) {
		free(v);
		return false;
	}
	all = merge_fill(v, old, news);
	qsort(v, all, sizeof(*v), cmp_merge);
	all = merge_cut(v, all);
	for (i = 0; i < all; i++) {
		bytes += sizeof(v[i].r) + v[i].r.len;
		if (bytes > ENTRY_NAMES_MAX)
			break;
	}
	*n = (uint32_t)(all = i);
	for (i = 0; i < all; i++) {
		v[i].r.at = at;
		at += v[i].r.len;
		strbuf_add(out, &v[i].r, sizeof(v[i].r));
	}
	for (i = 0; i < all; i++)
		strbuf_add(out, v[i].bytes, v[i].r.len);
	free(v);
	return !out->failed;
}
