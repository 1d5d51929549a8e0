// SPDX-License-Identifier: Apache-2.0
/*
 * mapset: the mappings of an address space. A set is a sorted array, so a
 * lookup is a binary search. Its unused part is a gap that stays where the last
 * mapping was inserted: the next one mostly belongs directly after it (loader,
 * scan) or before it (mmap, which goes downwards) and costs nothing; any other
 * one moves what lies between.
 *
 * The kernel reports mappings that appear, never those that go. So a new
 * mapping replaces whatever it overlaps, and a set may hold mappings that are
 * gone; no code runs there. The set of a process that maps at ever new
 * addresses grows: at twice its true size and PM_SET_SPARE it is re-read. If it
 * reaches PM_SET_MAX nevertheless, it is dropped.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "processmanager/internal.h"

static void pm_map_hold(const struct pm_map *m)
{
	pm_exe_get(m->exe);
	pm_exe_mapped(m->exe, 1);
}

static void pm_map_release(const struct pm_map *m)
{
	pm_exe_mapped(m->exe, -1);
	pm_exe_put(m->exe);
}

static void pm_set_free(struct pm *pm, struct pm_set *set)
{
	if (set->v != set->few)
		free(set->v);
	pool_give(&pm->set_pool, set);
}

/* Empty, in the user's share, with room for 'cap' mappings. */
static struct pm_set *pm_set_new(struct pm *pm, uint32_t uid, uint32_t cap)
{
	struct pm_set *set = pool_take(&pm->set_pool);
	struct pm_user *u = NULL;

	if (!set)
		return NULL;
	set->refs = 1;
	set->v = set->few;
	set->cap = PM_SET_FEW;
	if (cap > PM_SET_FEW) {
		set->cap = cap;
		set->v = malloc(cap * sizeof(*set->v));
	}
	if (set->v)
		u = pm_user_of(pm, uid);
	if (!u) {
		pm_set_free(pm, set);
		return NULL;
	}
	/* The set itself counts as one, so the user exists as long as it. */
	pm_user_take(pm, u, PM_SHARE_MAPS, 1);
	set->user = u;
	return set;
}

/* The set had 'before' mappings and has 'now'. */
static void pm_set_count(struct pm *pm, struct pm_set *set, uint32_t before,
			 uint32_t now)
{
	pm->stats.mappings += now;
	pm->stats.mappings -= before;
	pm_user_take(pm, set->user, PM_SHARE_MAPS, now);
	pm_user_give(pm, set->user, PM_SHARE_MAPS, before);
}

static void pm_set_put(struct pm *pm, struct pm_set *set)
{
	uint32_t i;

	if (!set || --set->refs)
		return;
	for (i = 0; i < set->n; i++)
		pm_map_release(pm_set_at(set, i));
	pm_set_count(pm, set, set->n, 0);
	pm_user_give(pm, set->user, PM_SHARE_MAPS, 1);
	pm_set_free(pm, set);
}

/* Gives mm a set of its own, with room for more and the gap at the end. */
static int pm_mm_own(struct pm *pm, struct pm_mm *mm, uint32_t uid)
{
	struct pm_set *old = mm->set, *set;
	uint32_t i, n = old ? old->n : 0;

	set = pm_set_new(pm, uid, n + n / 2 + PM_SET_FEW);
	if (!set)
		return -ENOMEM;
	set->n = n;
	set->gap = n;
	for (i = 0; i < n; i++) {
		set->v[i] = *pm_set_at(old, i);
		pm_map_hold(&set->v[i]);
	}
	pm_set_count(pm, set, 0, n);
	pm_set_put(pm, old);
	mm->set = set;
	return 0;
}

static void pm_set_move_gap(struct pm_set *set, uint32_t to)
{
	uint32_t room = set->cap - set->n, from = set->gap;
	struct pm_map *v = set->v;

	if (to < from)
		memmove(&v[to + room], &v[to], (from - to) * sizeof(*v));
	else
		memmove(&v[from], &v[from + room], (to - from) * sizeof(*v));
	set->gap = to;
}

/* Room for 'extra' more, in a set that is mm's own. 0 or -ENOMEM. */
static int pm_mm_reserve(struct pm *pm, struct pm_mm *mm, uint32_t uid,
			 uint32_t extra)
{
	struct pm_set *set = mm->set;
	struct pm_map *v;
	uint32_t cap;

	if (!set || set->refs > 1)
		return pm_mm_own(pm, mm, uid);
	if (set->cap - set->n >= extra)
		return 0;
	cap = set->cap + set->cap / 2 + extra;
	v = set->v == set->few ? NULL : set->v;
	v = realloc(v, cap * sizeof(*v));
	if (!v)
		return -ENOMEM;
	if (set->v == set->few)
		memcpy(v, set->few, sizeof(set->few));
	set->v = v;
	/* What follows the gap belongs at the end. */
	memmove(&v[set->gap + cap - set->n], &v[set->gap + set->cap - set->n],
		(set->n - set->gap) * sizeof(*v));
	set->cap = cap;
	return 0;
}

/* The first mapping that ends after 'addr'. */
static uint32_t pm_set_after(const struct pm_set *set, uint64_t addr)
{
	uint32_t i;

	VECTOR_SEARCH(i, set->n, pm_set_at(set, i)->end <= addr);
	return i;
}

/* There must be room for three more. */
static void pm_set_insert(struct pm_set *set, const struct pm_map *map)
{
	uint32_t lo = pm_set_after(set, map->start), hi = lo, i, n = 0;
	struct pm_map in[3], *m;

	while (hi < set->n && pm_set_at(set, hi)->start < map->end)
		hi++;
	m = lo < hi ? pm_set_at(set, lo) : NULL;
	if (m && m->start < map->start) {
		in[n] = *m;
		in[n++].end = map->start;
	}
	in[n++] = *map;
	m = lo < hi ? pm_set_at(set, hi - 1) : NULL;
	if (m && m->end > map->end) {
		in[n] = *m;
		in[n].pgoff += map->end - in[n].start;
		in[n++].start = map->end;
	}
	for (i = 0; i < n; i++)
		pm_map_hold(&in[i]);
	for (i = lo; i < hi; i++)
		pm_map_release(pm_set_at(set, i));
	/* Replaced mappings become part of the gap, and the gap is filled. */
	pm_set_move_gap(set, hi);
	set->gap = lo;
	set->n -= hi - lo;
	memcpy(&set->v[lo], in, n * sizeof(*in));
	set->gap += n;
	set->n += n;
}

/* A process's first PM_SET_SPARE mappings are always recorded. */
static bool pm_mm_may(struct pm *pm, const struct pm_mm *mm, uint32_t uid)
{
	const struct pm_set *set = mm->set;
	struct pm_user *u;
	bool may;

	if (!set || set->n < PM_SET_SPARE)
		return true;
	if (set->refs == 1)
		return pm_user_may(pm, set->user, PM_SHARE_MAPS, 3);
	u = pm_user_of(pm, uid);
	if (!u)
		return true; /* the insertion reports -ENOMEM */
	may = pm_user_may(pm, u, PM_SHARE_MAPS, set->n + 4);
	pm_user_give(pm, u, PM_SHARE_MAPS, 0);
	return may;
}

/* Of more than there is room for, the one that was mapped first is dropped. */
static void pm_mm_add_dump(struct pm_mm *mm, struct pm_exe *dump)
{
	for (size_t i = 0; i < PM_CODE_DUMPS; i++)
		if (mm->dumps[i] == dump)
			return;
	pm_exe_put(mm->dumps[PM_CODE_DUMPS - 1]);
	memmove(&mm->dumps[1], &mm->dumps[0],
		sizeof(mm->dumps) - sizeof(*mm->dumps));
	mm->dumps[0] = pm_exe_get(dump);
}

static int pm_mm_add_one(struct pm *pm, struct pm_mm *mm, uint32_t uid,
			 const struct pm_map *map)
{
	uint32_t before;

	if (!pm_mm_may(pm, mm, uid)) {
		pm->stats.maps_refused++;
		pm_limited(pm, uid, PM_LIMIT_MAPS, 1);
		pm_mm_void(pm, mm);
	}
	if (mm->set && mm->set->n >= PM_SET_MAX) {
		pm->stats.maps_overflow++;
		pm_mm_void(pm, mm);
	}
	if (pm_mm_reserve(pm, mm, uid, 3)) {
		/* The set may hold what this mapping has replaced. */
		pm_mm_void(pm, mm);
		return pm_nomem(pm);
	}
	before = mm->set->n;
	pm_set_insert(mm->set, map);
	pm_set_count(pm, mm->set, before, mm->set->n);
	if (!mm->first && map->exe->kind == PM_EXE_FILE)
		mm->first = pm_exe_get(map->exe);
	if (map->exe->jitdump)
		pm_mm_add_dump(mm, map->exe);
	return 0;
}

/* The first mapping of a file's code in [start, end), or NULL. */
static const struct pm_map *pm_mm_text(const struct pm_mm *mm, uint64_t start,
				       uint64_t end)
{
	const struct pm_set *set = mm->set;
	const struct pm_map *m;
	uint32_t i = set ? pm_set_after(set, start) : 0;

	for (; set && i < set->n; i++) {
		m = pm_set_at(set, i);
		if (m->start >= end)
			return NULL;
		if (m->exe->kind == PM_EXE_FILE && !m->exe->jitdump)
			return m;
	}
	return NULL;
}

/*
 * Memory over a file's code may get a copy of that: programs do so to have their code in
 * large pages. What lies over several mappings is added in parts.
 */
static int pm_mm_add_memory(struct pm *pm, struct pm_mm *mm, uint32_t uid,
			    const struct pm_map *map)
{
	const struct pm_map *under;
	struct pm_map part;
	uint64_t at = map->start;
	int err = 0;

	for (; at < map->end && !err; at = part.end) {
		part = *map;
		part.start = at;
		under = pm_mm_text(mm, at, map->end);
		if (under && under->start > at) {
			part.end = under->start;
		} else if (under) {
			part.end = MIN(under->end, map->end);
			part.pgoff = under->pgoff + (at - under->start);
			part.text = PM_TEXT_MAYBE;
			part.exe = under->exe;
		}
		pm_exe_get(part.exe); /* what it replaces may be its last one */
		err = pm_mm_add_one(pm, mm, uid, &part);
		pm_exe_put(part.exe);
	}
	return err;
}

int pm_mm_add(struct pm *pm, struct pm_mm *mm, uint32_t uid,
	      const struct pm_map *map)
{
	if (map->exe->kind == PM_EXE_ANON)
		return pm_mm_add_memory(pm, mm, uid, map);
	return pm_mm_add_one(pm, mm, uid, map);
}

void pm_mm_void(struct pm *pm, struct pm_mm *mm)
{
	pm_set_put(pm, mm->set);
	mm->set = NULL;
	mm->partial = true;
}

void pm_mm_replace(struct pm *pm, struct pm_mm *mm, struct pm_mm *from)
{
	pm_set_put(pm, mm->set);
	mm->set = from->set;
	from->set = NULL;
	for (size_t i = PM_CODE_DUMPS; i--;)
		if (from->dumps[i])
			pm_mm_add_dump(mm, from->dumps[i]);
}

struct pm_map *pm_mm_find(const struct pm_mm *mm, uint64_t addr)
{
	const struct pm_set *set = mm->set;
	uint32_t i = set ? pm_set_after(set, addr) : 0;

	return set && i < set->n && pm_set_at(set, i)->start <= addr
		       ? pm_set_at(set, i)
		       : NULL;
}

struct pm_mm *pm_mm_new(struct pm *pm, uint64_t since)
{
	struct pm_mm *mm = pool_take(&pm->mm_pool);

	if (!mm)
		return NULL;
	mm->refs = 1;
	mm->reread_at = PM_SET_SPARE;
	mm->since = since;
	mm->whole = since ? since : pm->now;
	return mm;
}

struct pm_mm *pm_mm_unknown(struct pm *pm)
{
	struct pm_mm *mm = pm_mm_new(pm, 0);

	if (mm)
		mm->partial = true;
	else
		pm_nomem(pm);
	return mm;
}

struct pm_mm *pm_mm_fork(struct pm *pm, struct pm_mm *parent)
{
	struct pm_mm *mm = pm_mm_new(pm, 0);

	if (!mm)
		return NULL;
	mm->reread_at = parent->reread_at;
	mm->partial = parent->partial;
	mm->whole = parent->whole;
	mm->lost_until = parent->lost_until;
	mm->flood_until = parent->flood_until;
	mm->last = parent->last;
	mm->copy_at = parent->copy_at;
	mm->copy_tries = parent->copy_tries;
	for (size_t i = 0; i < PM_CODE_DUMPS; i++)
		if (parent->dumps[i])
			mm->dumps[i] = pm_exe_get(parent->dumps[i]);
	mm->set = parent->set;
	if (mm->set)
		mm->set->refs++;
	return mm;
}

struct pm_mm *pm_mm_get(struct pm_mm *mm)
{
	mm->refs++;
	return mm;
}

void pm_mm_put(struct pm *pm, struct pm_mm *mm)
{
	if (!mm || --mm->refs)
		return;
	pm_set_put(pm, mm->set);
	pm_exe_put(mm->first);
	if (mm->anon)
		pm_exe_mapped(mm->anon, -1);
	pm_exe_put(mm->anon);
	for (size_t i = 0; i < PM_CODE_DUMPS; i++)
		pm_exe_put(mm->dumps[i]);
	pool_give(&pm->mm_pool, mm);
}

uint64_t pm_mm_lost_until(const struct pm *pm, const struct pm_mm *mm)
{
	return MAX(pm->lost_until, mm->lost_until);
}

bool pm_mm_stale(const struct pm *pm, const struct pm_mm *mm)
{
	return mm->whole < pm_mm_lost_until(pm, mm);
}

bool pm_mm_uncertain(const struct pm *pm, const struct pm_mm *mm)
{
	return mm->partial || pm_mm_stale(pm, mm);
}
