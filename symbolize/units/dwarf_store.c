// SPDX-License-Identifier: Apache-2.0
/* dwarf_store: see symbolize/units/dwarf_store.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "symbolize/units/dwarf_store.h"

#define STORE_MAGIC "profdU1\n"

_Static_assert(sizeof(struct dwarf_store_head) == 48, "no hole in the head");
_Static_assert(sizeof(struct dwarf_store_place) == 16, "no hole");
_Static_assert(sizeof(struct dwarf_index_unit) == 16, "no hole");
_Static_assert(sizeof(struct dwarf_index_range) == 12, "no hole");

static uint32_t store_crc(uLong crc, const void *p, size_t len)
{
	return (uint32_t)(len ? crc32_z(crc, p, len) : crc);
}

static uint32_t head_crc(const struct dwarf_store_head *head)
{
	struct dwarf_store_head h = *head;

	h.crc = 0;
	return store_crc(0, &h, sizeof(h));
}

static size_t ranges_room(uint32_t n)
{
	return (n * sizeof(struct dwarf_index_range) + 7) & ~(size_t)7;
}

/* --- the front --------------------------------------------------------------- */

size_t dwarf_store_front_len(const struct dwarf_store_head *head)
{
	size_t len = sizeof(*head) +
		     head->n_units * sizeof(struct dwarf_index_unit) +
		     ranges_room(head->n_ranges) +
		     head->n_places * sizeof(struct dwarf_store_place);

	if (memcmp(head->magic, STORE_MAGIC, sizeof(head->magic)) != 0 ||
	    head->crc != head_crc(head) || len > DWARF_STORE_FRONT_MAX ||
	    (head->n_places != 1 && head->n_places != head->n_units))
		return 0;
	return len;
}

static void front_set(struct dwarf_store_front *f, const void *p, size_t len)
{
	const uint8_t *at = p;

	f->head = p;
	at += sizeof(*f->head);
	f->units = (const void *)at;
	at += f->head->n_units * sizeof(*f->units);
	f->ranges = (const void *)at;
	at += ranges_room(f->head->n_ranges);
	f->places = (const void *)at;
	f->len = len;
}

bool dwarf_store_front(struct dwarf_store_front *f, const void *p, size_t len,
		       uint64_t records)
{
	const struct dwarf_store_head *h = p;
	const struct dwarf_store_place *places;

	if (len < sizeof(*h) || dwarf_store_front_len(h) != len)
		return false;
	front_set(f, p, len);
	places = f->places;
	if (h->index_crc != dwarf_index_crc(f->units, h->n_units, f->ranges,
					    h->n_ranges) ||
	    h->places_crc !=
		    store_crc(0, places, h->n_places * sizeof(*places)))
		return false;
	for (uint32_t i = 0; i < h->n_places; i++)
		if (places[i].at > records ||
		    places[i].len > records - places[i].at ||
		    places[i].len > DWARF_STORE_RECORD_MAX)
			return false;
	return true;
}

bool dwarf_store_whole(struct dwarf_store_front *f, const void *p, size_t len)
{
	size_t front = len < sizeof(struct dwarf_store_head)
			       ? 0
			       : dwarf_store_front_len(p);

	return front && front <= len &&
	       dwarf_store_front(f, p, front, len - front);
}

static void front_add(struct strbuf *out, struct dwarf_store_head *h,
		      const struct dwarf_index_unit *units,
		      const struct dwarf_index_range *ranges,
		      const struct dwarf_store_place *places)
{
	size_t len = h->n_ranges * sizeof(*ranges);
	static const char zeros[8];

	h->places_crc = store_crc(0, places, h->n_places * sizeof(*places));
	h->crc = head_crc(h);
	strbuf_add(out, h, sizeof(*h));
	strbuf_add(out, units, h->n_units * sizeof(*units));
	strbuf_add(out, ranges, len);
	strbuf_add(out, zeros, ranges_room(h->n_ranges) - len);
	strbuf_add(out, places, h->n_places * sizeof(*places));
}

/* --- making ------------------------------------------------------------------ */

int dwarf_store_news_init(struct dwarf_store_news *n,
			  const struct dwarf_index *index, bool whole)
{
	*n = (struct dwarf_store_news){ .index = index, .whole = whole };
	n->places = calloc(whole ? 1 : index->n_units, sizeof(*n->places));
	return n->places ? 0 : -ENOMEM;
}

void dwarf_store_news_add(struct dwarf_store_news *n,
			  const struct dwarf_record *r)
{
	struct dwarf_store_place place = {
		.at = n->records.len,
		.len = r->len,
		.crc = store_crc(0, r->bytes, r->len),
	};

	strbuf_add(&n->records, r->bytes, r->len);
	if (n->whole)
		n->places[0] = place;
	for (uint32_t i = 0; !n->whole && i < dwarf_record_count(r); i++)
		n->places[dwarf_record_at(r, i).unit] = place;
}

int dwarf_store_news_end(const struct dwarf_store_news *n, struct strbuf *out)
{
	const struct dwarf_index *x = n->index;
	struct dwarf_store_head h = {
		.start = x->bounds.start,
		.end = x->bounds.end,
		.n_units = x->n_units,
		.n_ranges = x->n_ranges,
		.n_places = n->whole ? 1 : x->n_units,
		.index_crc = x->crc,
	};

	memcpy(h.magic, STORE_MAGIC, sizeof(h.magic));
	front_add(out, &h, x->units, x->ranges, n->places);
	if (out->len > DWARF_STORE_FRONT_MAX ||
	    n->records.len > DWARF_STORE_RECORD_MAX)
		return -EFBIG;
	if (n->records.len)
		strbuf_add(out, n->records.data, n->records.len);
	return out->failed || n->records.failed ? -ENOMEM : 0;
}

void dwarf_store_news_fini(struct dwarf_store_news *n)
{
	strbuf_fini(&n->records);
	free(n->places);
}

static bool store_joins(const struct dwarf_store_head *a,
			const struct dwarf_store_head *b)
{
	return a->start == b->start && a->end == b->end &&
	       a->n_units == b->n_units && a->n_ranges == b->n_ranges &&
	       a->n_places == b->n_places && a->index_crc == b->index_crc &&
	       a->n_places > 1;
}

bool dwarf_store_join(struct strbuf *front, struct strbuf *more,
		      const struct dwarf_store_front *old, uint64_t records,
		      const struct dwarf_store_front *new)
{
	const uint8_t *from = (const uint8_t *)new->head + new->len;
	struct dwarf_store_head h = *new->head;
	struct dwarf_store_place *places;

	if (!store_joins(old->head, &h))
		return false;
	places = calloc(h.n_places, sizeof(*places));
	if (!places) {
		front->failed = true;
		return true;
	}
	for (uint32_t i = 0; i < h.n_places; i++) {
		places[i] = old->places[i];
		if (places[i].len || !new->places[i].len)
			continue;
		places[i] = new->places[i];
		places[i].at = records + more->len;
		strbuf_add(more, from + new->places[i].at, places[i].len);
	}
	front_add(front, &h, new->units, new->ranges, places);
	free(places);
	return true;
}

int dwarf_store_add(struct strbuf *store, const void *p, size_t len)
{
	struct strbuf out = STRBUF_INIT, more = STRBUF_INIT;
	struct dwarf_store_front old, new;

	if (!dwarf_store_whole(&new, p, len))
		return -EBADMSG;
	if (store->len && dwarf_store_whole(&old, store->data, store->len) &&
	    dwarf_store_join(&out, &more, &old, store->len - old.len, &new)) {
		strbuf_add(&out, store->data + old.len, store->len - old.len);
		if (more.len)
			strbuf_add(&out, more.data, more.len);
		out.failed |= more.failed;
	} else {
		strbuf_add(&out, p, len);
	}
	strbuf_fini(&more);
	if (out.failed) {
		strbuf_fini(&out);
		return -ENOMEM;
	}
	strbuf_fini(store);
	*store = out;
	return 0;
}

/* --- reading ----------------------------------------------------------------- */

/* Bytes of the store that it has to have. */
static int store_read(const struct dwarf_store *s, uint64_t off, void *dst,
		      size_t len)
{
	struct symbolizer_src src;

	symbolizer_src_fd(&src, s->fd, s->at + s->size);
	return symbolizer_src_read(&src, s->at + off, dst, len) ? -EBADMSG : 0;
}

int dwarf_store_open(struct dwarf_store *s, int fd, uint64_t at)
{
	off_t size = lseek(fd, 0, SEEK_END); /* fstat() is not allowed */
	size_t front;
	int err;

	*s = (struct dwarf_store){ .fd = fd, .at = at };
	if (size < 0 || (uint64_t)size < at)
		return -EBADMSG;
	s->size = (uint64_t)size - at;
	err = store_read(s, 0, &s->head, sizeof(s->head));
	if (err)
		return err;
	front = dwarf_store_front_len(&s->head);
	if (!front || front > s->size)
		return -EBADMSG;
	s->records = front;
	return 0;
}

/* Copies what was read. */
static int front_copy(const struct dwarf_store_front *f, struct dwarf_index *x,
		      struct dwarf_store_place **places)
{
	const struct dwarf_store_head *h = f->head;

	x->units = calloc(h->n_units + 1ULL, sizeof(*x->units));
	x->ranges = calloc(h->n_ranges + 1ULL, sizeof(*x->ranges));
	*places = calloc(h->n_places + 1ULL, sizeof(**places));
	if (!x->units || !x->ranges || !*places)
		return -ENOMEM;
	x->n_units = x->cap_units = h->n_units;
	x->n_ranges = x->cap_ranges = h->n_ranges;
	x->crc = h->index_crc;
	memcpy(x->units, f->units, h->n_units * sizeof(*x->units));
	memcpy(x->ranges, f->ranges, h->n_ranges * sizeof(*x->ranges));
	memcpy(*places, f->places, h->n_places * sizeof(**places));
	return dwarf_index_ok(x) ? 0 : -EBADMSG;
}

int dwarf_store_read(const struct dwarf_store *s, struct dwarf_index *x,
		     struct dwarf_store_place **places)
{
	size_t len = (size_t)s->records;
	struct dwarf_store_front f;
	uint8_t *bytes;
	int err;

	*places = NULL;
	if (s->head.start != x->bounds.start || s->head.end != x->bounds.end)
		return -ESTALE;
	bytes = malloc(len);
	err = bytes ? store_read(s, 0, bytes, len) : -ENOMEM;
	/* It may have changed since the head was read. */
	if (!err && (memcmp(bytes, &s->head, sizeof(s->head)) != 0 ||
		     !dwarf_store_front(&f, bytes, len, s->size - len)))
		err = -EBADMSG;
	if (!err)
		err = front_copy(&f, x, places);
	free(bytes);
	return err;
}

int dwarf_store_places(const struct dwarf_store *s, const struct dwarf_index *x,
		       struct dwarf_store_place *places)
{
	const struct dwarf_store_head *h = &s->head;
	size_t len = x->n_units * sizeof(*places);
	int err;

	if (h->start != x->bounds.start || h->end != x->bounds.end ||
	    h->n_units != x->n_units || h->n_ranges != x->n_ranges ||
	    h->index_crc != x->crc || h->n_places != x->n_units)
		return -ESTALE;
	err = store_read(s, s->records - len, places, len);
	if (!err && h->places_crc != store_crc(0, places, len))
		err = -EBADMSG;
	return err;
}

int dwarf_store_record(const struct dwarf_store *s,
		       const struct dwarf_store_place *place,
		       struct dwarf_record **rp)
{
	struct dwarf_record *r;
	int err;

	if (!place->len || place->len > DWARF_STORE_RECORD_MAX ||
	    place->at > s->size - s->records)
		return -EBADMSG;
	r = dwarf_record_new(place->len);
	err = r ? store_read(s, s->records + place->at, r->bytes, r->len)
		: -ENOMEM;
	if (!err && (store_crc(0, r->bytes, r->len) != place->crc ||
		     !dwarf_record_ok(r, s->head.n_units)))
		err = -EBADMSG;
	if (err) {
		free(r);
		return err;
	}
	r->kept = true;
	*rp = r;
	return 0;
}
