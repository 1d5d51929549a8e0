// SPDX-License-Identifier: Apache-2.0
/*
 * turns: which file is opened next, and which is closed for it. Any user can
 * map thousands of files a second and make reading each of them slow. So each
 * user has a queue of openings, the queues are served round-robin, and a user
 * may have as many openings under way as are still free. At the limit of open
 * files, the least recently used file of the user that has the most is closed.
 */
#include "processmanager/internal.h"

/* --- files held open ------------------------------------------------------ */

static bool pm_open_fits(const struct pm *pm, uint32_t more)
{
	return pm->stats.open_files + pm->shared[PM_SHARE_OPENS] + pm->nearly +
		       more <=
	       pm->opts.open_files;
}

/* Open, or about to be. */
static uint64_t pm_user_files(const struct pm_user *u)
{
	return u->has[PM_SHARE_FILES] + u->has[PM_SHARE_OPENS];
}

static struct pm_user *pm_user_most(struct pm *pm)
{
	struct pm_user *u, *most = NULL;
	struct hash_node *n, *tmp;
	size_t i;

	hash_for_each(&pm->users, i, n, tmp) {
		u = container_of(n, struct pm_user, node);
		if (!most || pm_user_files(u) > pm_user_files(most))
			most = u;
	}
	return most;
}

/* Closes a user's least recently used file that no request is reading. */
static bool pm_open_close(struct pm *pm, const struct pm_user *u, bool mapped)
{
	struct pm_exe *exe;

	if (!u || !u->has[PM_SHARE_FILES])
		return false;
	TAILQ_FOREACH(exe, &pm->open, lru) {
		if (exe->user != u || exe->resolving ||
		    (exe->mapped && !mapped))
			continue;
		pm_exe_close(exe);
		pm->stats.open_closed++;
		return true;
	}
	return false;
}

/*
 * Unmapped files go first: hundreds of short-lived programs must not close the
 * file of a program that runs.
 */
static bool pm_open_close_one(struct pm *pm, const struct pm_user *u)
{
	const struct pm_user *most = pm_user_most(pm);

	return pm_open_close(pm, most, false) || pm_open_close(pm, u, false) ||
	       pm_open_close(pm, most, true) || pm_open_close(pm, u, true);
}

bool pm_open_room(struct pm *pm, const struct pm_user *u, uint32_t more)
{
	while (!pm_open_fits(pm, more))
		if (!pm_open_close_one(pm, u))
			return false;
	return true;
}

/* --- turns ---------------------------------------------------------------- */

bool pm_turn_free(const struct pm_open *o)
{
	return TAILQ_EMPTY(&o->user->queue) &&
	       pm_user_may(o->pm, o->user, PM_SHARE_OPENS, 1) &&
	       pm_open_room(o->pm, o->user, 1);
}

void pm_turn_wait(struct pm_open *o)
{
	struct pm_user *u = o->user;

	if (TAILQ_EMPTY(&u->queue))
		TAILQ_INSERT_TAIL(&o->pm->turns, u, turn);
	pm_user_take(o->pm, u, PM_SHARE_QUEUED, 1);
	o->exe->queued = o;
	TAILQ_INSERT_TAIL(&u->queue, o, node);
}

void pm_turn_leave(struct pm_open *o)
{
	struct pm_user *u = o->user;

	o->exe->queued = NULL;
	TAILQ_REMOVE(&u->queue, o, node);
	if (TAILQ_EMPTY(&u->queue))
		TAILQ_REMOVE(&o->pm->turns, u, turn);
	pm_user_give(o->pm, u, PM_SHARE_QUEUED, 1);
}

struct pm_open *pm_turn_next(struct pm *pm)
{
	struct pm_open *o;
	struct pm_user *u;

	TAILQ_FOREACH(u, &pm->turns, turn) {
		if (!pm_user_may(pm, u, PM_SHARE_OPENS, 1))
			continue;
		if (!pm_open_room(pm, u, 1))
			return NULL;
		TAILQ_REMOVE(&pm->turns, u, turn);
		TAILQ_INSERT_TAIL(&pm->turns, u, turn);
		o = TAILQ_FIRST(&u->queue);
		pm_user_take(pm, u, PM_SHARE_OPENS, 1);
		pm_turn_leave(o);
		return o;
	}
	return NULL;
}

struct pm_open *pm_turn_any(struct pm *pm)
{
	struct pm_user *u = TAILQ_FIRST(&pm->turns);

	return u ? TAILQ_FIRST(&u->queue) : NULL;
}

void pm_turn_move(struct pm_open *o, uint32_t uid)
{
	struct pm_user *u = o->user->uid == uid ? NULL : pm_user_of(o->pm, uid);

	if (!u)
		return;
	if (u->has[PM_SHARE_QUEUED] + 1 >= o->user->has[PM_SHARE_QUEUED]) {
		pm_user_give(o->pm, u, PM_SHARE_QUEUED, 0);
		return;
	}
	pm_turn_leave(o);
	o->user = u;
	pm_turn_wait(o);
}

void pm_turn_hurry(struct pm_open *o)
{
	TAILQ_REMOVE(&o->user->queue, o, node);
	TAILQ_INSERT_HEAD(&o->user->queue, o, node);
}
