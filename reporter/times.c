// SPDX-License-Identifier: Apache-2.0
/*
 * times: see reporter/times.h. Samples are nearly in the order of time, so a step
 * is stored as the difference to the previous one, in zigzag coding, which keeps
 * differences of both signs small. Numbers are varints as in protobuf.
 */
#include <string.h>

#include "reporter/times.h"

#define TIMES_BLOCK 2048
#define TIMES_NUMBERS 5
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
	n += times_put(buf + n, s->event);
	n += times_put(buf + n, s->value);
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
	uint64_t by;

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
	out->event = cursor_uleb(&c->in);
	out->value = cursor_uleb(&c->in);
	return true;
}
