// SPDX-License-Identifier: Apache-2.0
/* strtab: see base/mem/strtab.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

struct strtab_entry {
	struct hash_node node;
	uint32_t id;
	uint32_t len;
	char str[];
};

int strtab_init(struct strtab *t)
{
	int err;

	memset(t, 0, sizeof(*t));
	arena_init(&t->arena);
	err = hash_init(&t->hash, 0);
	if (!err && strtab_id(t, "") < 0)
		err = -ENOMEM;
	if (err)
		strtab_fini(t);
	return err;
}

void strtab_fini(struct strtab *t)
{
	hash_fini(&t->hash);
	arena_fini(&t->arena);
	free(t->by_id);
	memset(t, 0, sizeof(*t));
}

int64_t strtab_id_len(struct strtab *t, const char *s, size_t len)
{
	uint64_t h = hash_bytes(s, len);
	struct strtab_entry *e;

	HASH_FIND(e, &t->hash, h, node,
		  e->len == len && !memcmp(e->str, s, len));
	if (e)
		return e->id;
	if (len > UINT32_MAX / 2 || t->count == UINT32_MAX / 2)
		return -ENOMEM;
	if (VECTOR_ROOM(t->by_id, t->count, t->cap))
		return -ENOMEM;
	e = arena_alloc(&t->arena, sizeof(*e) + len + 1);
	if (!e)
		return -ENOMEM;
	memcpy(e->str, s, len);
	e->str[len] = '\0';
	e->len = len;
	e->id = t->count;
	t->by_id[t->count++] = e;
	hash_insert(&t->hash, &e->node, h);
	return e->id;
}

int64_t strtab_id(struct strtab *t, const char *s)
{
	return strtab_id_len(t, s, strlen(s));
}

const char *strtab_str(const struct strtab *t, uint32_t id)
{
	return t->by_id[id]->str;
}

size_t strtab_bytes(const struct strtab *t)
{
	return t->arena.bytes + t->cap * sizeof(*t->by_id) +
	       (t->hash.mask + 1) * sizeof(*t->hash.buckets);
}
