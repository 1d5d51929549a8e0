// SPDX-License-Identifier: Apache-2.0
/*
 * str: paths, command lines and the like, each kept once and counted. A host's
 * processes run few different things many times, so most strings are there
 * already when they arrive, and inheriting one is an increment.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "processmanager/internal.h"

struct pm_str *pm_str_new(struct pm *pm, const char *s, size_t len)
{
	uint64_t hash = hash_bytes(s, len);
	struct hash_node *n;
	struct pm_str *str;

	hash_for_each_match(&pm->strs, n, hash) {
		str = container_of(n, struct pm_str, node);
		if (str->len == len && !memcmp(str->s, s, len))
			return pm_str_get(str);
	}
	if (len > UINT32_MAX)
		return NULL;
	str = malloc(sizeof(*str) + len + 1);
	if (!str)
		return NULL;
	str->refs = 1;
	str->len = len;
	memcpy(str->s, s, len);
	str->s[len] = '\0';
	hash_insert(&pm->strs, &str->node, hash);
	return str;
}

struct pm_str *pm_str_get(struct pm_str *str)
{
	if (str)
		str->refs++;
	return str;
}

void pm_str_put(struct pm *pm, struct pm_str *str)
{
	if (!str || --str->refs)
		return;
	hash_remove(&pm->strs, &str->node);
	free(str);
}

int pm_str_set(struct pm *pm, struct pm_str **slot, const char *s, size_t len)
{
	struct pm_str *str = *slot;

	if (str && str->len == len && !memcmp(str->s, s, len))
		return 0;
	str = pm_str_new(pm, s, len);
	if (!str)
		return pm_nomem(pm);
	pm_str_put(pm, *slot);
	*slot = str;
	return 0;
}
