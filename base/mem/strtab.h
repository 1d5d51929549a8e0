/* SPDX-License-Identifier: Apache-2.0 */
/*
 * strtab: strings by id. Ids are dense from 0, and id 0 is "", as a pprof string
 * table requires. Strings are freed with the table only.
 */
#ifndef BASE_STRTAB_H
#define BASE_STRTAB_H

#include <stddef.h>
#include <stdint.h>

#include "base/mem/arena.h"
#include "base/hash.h"

struct strtab_entry;

struct strtab {
	struct hash hash;
	struct arena arena;
	struct strtab_entry **by_id;
	uint32_t count;
	uint32_t cap;
};

int strtab_init(struct strtab *t); /* 0 or -ENOMEM */
void strtab_fini(struct strtab *t);
/* The id of 's'; -ENOMEM. The string is copied. */
int64_t strtab_id(struct strtab *t, const char *s);
int64_t strtab_id_len(struct strtab *t, const char *s, size_t len);
/* The string of an id of this table; valid until strtab_fini(). */
const char *strtab_str(const struct strtab *t, uint32_t id);
/* Bytes of memory held. */
size_t strtab_bytes(const struct strtab *t);

#endif /* BASE_STRTAB_H */
