// SPDX-License-Identifier: Apache-2.0
/* queue: records that wait for subscribers, each in memory once. */
#include <stdlib.h>
#include <string.h>

#include "processmanager/watch/internal.h"

#define QUEUE_MAX 8192 /* records of a subscriber */
#define QUEUE_BYTES (2 << 20) /* of them all; less if they have long paths */

struct watch_item *watch_item_new(const void *record, size_t len, int name)
{
	struct watch_item *item =
		malloc(offsetof(struct watch_item, head) + len);

	if (!item)
		return NULL;
	item->refs = 1;
	item->name = (unsigned int)name;
	item->len = len;
	memcpy(&item->head, record, len);
	return item;
}

void watch_item_put(struct watch_item *item)
{
	if (item && !--item->refs)
		free(item);
}

static bool queue_grow(struct watch_queue *q)
{
	size_t cap = q->cap ? 2 * q->cap : 64;
	struct watch_item **v;

	if (q->cap == QUEUE_MAX)
		return false;
	v = malloc(cap * sizeof(struct watch_item *));
	if (!v)
		return false;
	for (size_t i = 0; i < q->n; i++)
		v[i] = q->v[(q->first + i) % q->cap];
	free(q->v);
	q->v = v;
	q->cap = cap;
	q->first = 0;
	return true;
}

bool watch_queue_add(struct watch_queue *q, struct watch_item *item)
{
	if (q->bytes + item->len > QUEUE_BYTES ||
	    (q->n == q->cap && !queue_grow(q)))
		return false;
	q->v[(q->first + q->n++) % q->cap] = item;
	q->bytes += item->len;
	item->refs++;
	return true;
}

struct watch_item *watch_queue_take(struct watch_queue *q)
{
	struct watch_item *item;

	if (!q->n)
		return NULL;
	item = q->v[q->first];
	q->first = (q->first + 1) % q->cap;
	q->n--;
	q->bytes -= item->len;
	return item;
}

void watch_queue_fini(struct watch_queue *q)
{
	struct watch_item *item;

	while ((item = watch_queue_take(q)))
		watch_item_put(item);
	free(q->v);
}
