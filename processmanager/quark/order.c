// SPDX-License-Identifier: Apache-2.0
/*
 * order: records sorted by time. They arrive nearly sorted (a ring is in the order
 * of reservation, microseconds off), so the place is searched from the end.
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

void quark_order_init(struct quark_order *o)
{
	TAILQ_INIT(&o->list);
	o->count = 0;
}

void quark_order_add(struct quark_order *o, struct quark_raw *raw)
{
	struct quark_raw *after = TAILQ_LAST(&o->list, quark_raw_list);

	while (after && after->time > raw->time)
		after = TAILQ_PREV(after, quark_raw_list, link);
	if (after)
		TAILQ_INSERT_AFTER(&o->list, after, raw, link);
	else
		TAILQ_INSERT_HEAD(&o->list, raw, link);
	o->count++;
}

struct quark_raw *quark_order_pop(struct quark_order *o)
{
	struct quark_raw *raw = TAILQ_FIRST(&o->list);

	if (!raw)
		return NULL;
	TAILQ_REMOVE(&o->list, raw, link);
	o->count--;
	return raw;
}

void quark_order_fini(struct quark_order *o)
{
	struct quark_raw *raw;

	while ((raw = quark_order_pop(o)))
		vault_give(raw);
}
