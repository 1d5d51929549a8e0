// SPDX-License-Identifier: Apache-2.0
/*
 * order: records sorted by time. They come nearly sorted (a ring is in the order
 * of reservation, microseconds off), so a place is looked for from the end.
 */
#include <string.h>

#include "processmanager/quark/priv.h"

struct quark_raw *quark_raw_new(struct vault *vault, uint32_t kind,
				uint64_t time, const void *data, size_t len)
{
	struct quark_raw *raw = vault_take(vault, sizeof(*raw) + len);

	if (!raw)
		return NULL;
	raw->kind = kind;
	raw->time = time;
	raw->len = len;
	memcpy(raw->data, data, len);
	return raw;
}

void quark_order_add(struct quark_order *o, struct quark_raw *raw)
{
	struct quark_raw *after = o->tail;

	while (after && after->time > raw->time)
		after = after->prev;
	raw->prev = after;
	raw->next = after ? after->next : o->head;
	if (raw->next)
		raw->next->prev = raw;
	else
		o->tail = raw;
	if (after)
		after->next = raw;
	else
		o->head = raw;
	o->count++;
}

struct quark_raw *quark_order_pop(struct quark_order *o)
{
	struct quark_raw *raw = o->head;

	if (!raw)
		return NULL;
	o->head = raw->next;
	if (o->head)
		o->head->prev = NULL;
	else
		o->tail = NULL;
	o->count--;
	return raw;
}

void quark_order_fini(struct quark_order *o)
{
	struct quark_raw *raw;

	while ((raw = quark_order_pop(o)))
		vault_give(raw);
}
