// SPDX-License-Identifier: Apache-2.0
/*
 * str: paths, command lines and the like, each kept once, with a reference
 * count. A host runs few different programs many times, so most strings are
 * known when they arrive, and inheriting one is an increment.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "processmanager/internal.h"

static struct pm_str *pm_str_find(struct pm *pm, uint64_t hash, const char *s,
				  size_t len)
{
	struct pm_str *str;

	HASH_FIND(str, &pm->strs, hash, node,
		  str->len == len && !memcmp(str->s, s, len));
	return str ? pm_str_get(str) : NULL;
}

static struct pm_str *pm_str_make(struct pm *pm, uint64_t hash, const char *s,
				  size_t len)
{
	struct pm_str *str;

	if (len > UINT32_MAX)
		return NULL;
	str = malloc(sizeof(*str) + len + 1);
	if (!str)
		return NULL;
	str->user = NULL;
	str->refs = 1;
	str->len = len;
	memcpy(str->s, s, len);
	str->s[len] = '\0';
	hash_insert(&pm->strs, &str->node, hash);
	return str;
}

struct pm_str *pm_str_new(struct pm *pm, const char *s, size_t len)
{
	uint64_t hash = hash_bytes(s, len);
	struct pm_str *str = pm_str_find(pm, hash, s, len);

	return str ? str : pm_str_make(pm, hash, s, len);
}

/* --- a user's share ------------------------------------------------------- */

static const uint64_t pm_share_max[PM_SHARES] = {
	[PM_SHARE_TEXT] = PM_TEXT_MAX,	 [PM_SHARE_EXES] = PM_EXES_MAX,
	[PM_SHARE_MAPS] = PM_MAPS_MAX,	 [PM_SHARE_OPENS] = PM_OPENS_MAX,
	[PM_SHARE_QUEUED] = UINT64_MAX,	 [PM_SHARE_FILES] = UINT64_MAX,
	[PM_SHARE_ROOTS] = PM_ROOTS_MAX,
};

struct pm_user *pm_user_of(struct pm *pm, uint32_t uid)
{
	uint64_t hash = hash_u64(uid);
	struct pm_user *u;

	HASH_FIND(u, &pm->users, hash, node, u->uid == uid);
	if (u)
		return u;
	u = calloc(1, sizeof(*u));
	if (!u)
		return NULL;
	u->uid = uid;
	TAILQ_INIT(&u->queue);
	hash_insert(&pm->users, &u->node, hash);
	return u;
}

void pm_user_take(struct pm *pm, struct pm_user *u, enum pm_share what,
		  uint64_t n)
{
	u->has[what] += n;
	pm->shared[what] += n;
}

void pm_user_give(struct pm *pm, struct pm_user *u, enum pm_share what,
		  uint64_t n)
{
	size_t i;

	u->has[what] -= n;
	pm->shared[what] -= n;
	for (i = 0; i < PM_SHARES; i++)
		if (u->has[i])
			return;
	hash_remove(&pm->users, &u->node);
	free(u);
}

bool pm_user_may(const struct pm *pm, const struct pm_user *u,
		 enum pm_share what, uint64_t n)
{
	return pm->shared[what] + u->has[what] + n <= pm_share_max[what];
}

static size_t pm_str_size(size_t len)
{
	return sizeof(struct pm_str) + len + 1;
}

bool pm_str_beyond(const struct pm *pm, const struct pm_str *str)
{
	return str->user && !pm_user_may(pm, str->user, PM_SHARE_TEXT, 0);
}

struct pm_str *pm_str_new_of(struct pm *pm, uint32_t uid, const char *s,
			     size_t len, size_t least, bool *cut)
{
	uint64_t hash = hash_bytes(s, len);
	struct pm_str *str = pm_str_find(pm, hash, s, len);
	struct pm_user *u;

	if (str)
		return str;
	u = pm_user_of(pm, uid);
	if (!u)
		return NULL;
	/* So that the user is not freed meanwhile. */
	pm_user_take(pm, u, PM_SHARE_TEXT, 1);
	if (!pm_user_may(pm, u, PM_SHARE_TEXT, pm_str_size(len)) &&
	    len > least) {
		pm->stats.text_cut++;
		pm_limited(pm, uid, PM_LIMIT_TEXT, len - least);
		*cut = true;
		len = least;
		hash = hash_bytes(s, len);
		str = len ? pm_str_find(pm, hash, s, len) : NULL;
	}
	if (!str && len) {
		str = pm_str_make(pm, hash, s, len);
		if (str) {
			str->user = u;
			pm_user_take(pm, u, PM_SHARE_TEXT, pm_str_size(len));
		}
	}
	pm_user_give(pm, u, PM_SHARE_TEXT, 1);
	return str;
}

int pm_str_set_of(struct pm *pm, struct pm_str **slot, uint32_t uid,
		  const char *s, size_t len, size_t least, bool *cut)
{
	bool was_cut = false;
	struct pm_str *str = pm_str_new_of(pm, uid, s, len, least, &was_cut);

	if (!str && !was_cut && len)
		return pm_nomem(pm);
	*cut |= was_cut;
	pm_str_put(pm, *slot);
	*slot = str;
	return 0;
}

/* --- references ----------------------------------------------------------- */

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
	if (str->user)
		pm_user_give(pm, str->user, PM_SHARE_TEXT,
			     pm_str_size(str->len));
	free(str);
}

int pm_str_set(struct pm *pm, struct pm_str **slot, const char *s, size_t len)
{
	struct pm_str *str = pm_str_new(pm, s, len);

	if (!str)
		return pm_nomem(pm);
	pm_str_put(pm, *slot);
	*slot = str;
	return 0;
}
