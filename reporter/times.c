// SPDX-License-Identifier: Apache-2.0
/*
 * times: see reporter/times.h. Samples are nearly in the order of time, so a step
 * is stored as the difference to the previous one, in zigzag coding, which keeps
 * differences of both signs small. Numbers are varints as in protobuf. That of the
 * event is doubled; 1 more: the ids of a trace follow.
 */
#include <string.h>

#include "reporter/times.h"

#define TIMES_BLOCK 2048
#define TIMES_NUMBERS 6
#define TIMES_NUMBER_MAX 10 /* bytes of 64 bits */

struct times_block {
	struct times_block *next;
	uint32_t used;
	uint8_t data[TIMES_BLOCK - sizeof(void *) - sizeof(uint32_t)];
};

int64_t times_step(uint64_t begin, uint64_t time)
{
	if (time >= begin)
		return (time - begin) / TIMES_STEP_NS;
	return -(int64_t)((begin - time - 1) / TIMES_STEP_NS) - 1;
}

static size_t times_put(uint8_t *p, uint64_t v)
{
	size_t n = 0;

	for (; v > 0x7f; v >>= 7)
		p[n++] = v | 0x80;
	p[n++] = v;
	return n;
}

static bool times_grow(struct times *t, struct arena *a)
{
	struct times_block *b;

	if (t->bytes + sizeof(*b) > TIMES_MAX)
		return false;
	b = arena_alloc(a, sizeof(*b));
	if (!b)
		return false;
	b->next = NULL;
	b->used = 0;
	if (t->tail)
		t->tail->next = b;
	else
		t->head = b;
	t->tail = b;
	t->bytes += sizeof(*b);
	return true;
}

void times_add(struct times *t, struct arena *a, const struct times_sample *s)
{
	uint8_t buf[TIMES_NUMBERS * TIMES_NUMBER_MAX];
	int64_t by = s->step - t->step;
	size_t n;

	n = times_put(buf, (uint64_t)by << 1 ^ (uint64_t)(by >> 63));
	n += times_put(buf + n, s->sample);
	n += times_put(buf + n, s->cpu);
	n += times_put(buf + n, (uint64_t)s->event << 1 | (s->ids != 0));
	n += times_put(buf + n, s->value);
	if (s->ids)
		n += times_put(buf + n, s->ids);
	if ((!t->tail || n > sizeof(t->tail->data) - t->tail->used) &&
	    !times_grow(t, a)) {
		t->dropped++;
		return;
	}
	memcpy(t->tail->data + t->tail->used, buf, n);
	t->tail->used += n;
	t->step = s->step;
	t->min = t->count ? MIN(t->min, s->step) : s->step;
	t->max = t->count ? MAX(t->max, s->step) : s->step;
	t->count++;
}

void times_begin(const struct times *t, struct times_cursor *c)
{
	*c = (struct times_cursor){ .next = t->head };
}

bool times_next(struct times_cursor *c, struct times_sample *out)
{
	const struct times_block *b = c->next;
	uint64_t by, event;

	if (c->in.p == c->in.end) {
		if (!b)
			return false;
		c->in = (struct cursor){ b->data, b->data + b->used, false };
		c->next = b->next;
	}
	by = cursor_uleb(&c->in);
	c->step += (int64_t)(by >> 1) ^ -(int64_t)(by & 1);
	out->step = c->step;
	out->sample = cursor_uleb(&c->in);
	out->cpu = cursor_uleb(&c->in);
	event = cursor_uleb(&c->in);
	out->event = (uint32_t)(event >> 1);
	out->value = cursor_uleb(&c->in);
	out->ids = event & 1 ? cursor_uleb(&c->in) : 0;
	return true;
}

/* --- ids of traces ------------------------------------------------------------ */

int times_ids_init(struct times_ids *ids)
{
	STAILQ_INIT(&ids->list);
	return hash_init(&ids->by_bytes, 0);
}

void times_ids_fini(struct times_ids *ids)
{
	hash_fini(&ids->by_bytes);
}

uint32_t times_ids_get(struct times_ids *ids, struct arena *a,
		       const uint8_t trace[IDS_TRACE],
		       const uint8_t span[IDS_SPAN], uint8_t flags)
{
	uint8_t bytes[IDS_PAIR] = { [IDS_FLAGS_AT] = flags };
	struct times_pair *p;
	uint64_t h;

	memcpy(bytes, trace, IDS_TRACE);
	memcpy(bytes + IDS_TRACE, span, IDS_SPAN);
	h = hash_bytes(bytes, sizeof(bytes));
	HASH_FIND(p, &ids->by_bytes, h, node,
		  !memcmp(p->bytes, bytes, sizeof(bytes)));
	if (p)
		return p->id;
	p = ids->by_bytes.count < IDS_MAX ? arena_alloc(a, sizeof(*p)) : NULL;
	if (!p)
		return 0;
	p->id = (uint32_t)ids->by_bytes.count + 1;
	memcpy(p->bytes, bytes, sizeof(bytes));
	hash_insert(&ids->by_bytes, &p->node, h);
	STAILQ_INSERT_TAIL(&ids->list, p, entry);
	return p->id;
}

void times_ids_hex(const uint8_t *id, size_t len, char out[IDS_HEX])
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < len; i++) {
		out[2 * i] = digits[id[i] >> 4];
		out[2 * i + 1] = digits[id[i] & 15];
	}
	out[2 * len] = '\0';
}
