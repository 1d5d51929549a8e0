// SPDX-License-Identifier: Apache-2.0
/*
 * turns: which file is opened next, and which is closed for it. Any user can map
 * thousands of files a second, and make the reading of each slow. So openings wait
 * in one queue per user, users take turns, and a user may have as many under way as
 * are still free. At the limit of open files the user with the most of them loses
 * the one that was used least recently.
 */
#include "processmanager/internal.h"

/* --- files held open -------------------------------------------------------- */

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

/* Closes what was used least of a user's; not what is at work. */
static bool pm_open_close(struct pm *pm, const struct pm_user *u, bool mapped)
{
	struct pm_exe *exe;
	struct pm_list *l;

	if (!u || !u->has[PM_SHARE_FILES])
		return false;
	for (l = pm->open.next; l != &pm->open; l = l->next) {
		exe = container_of(l, struct pm_exe, lru);
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
 * First what nobody maps: programs that live shortly come and go by the hundred,
 * and shall not cost one that runs its file.
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

/* --- turns ------------------------------------------------------------------- */

bool pm_turn_free(const struct pm_open *o)
{
	return pm_list_empty(&o->user->queue) &&
	       pm_user_may(o->pm, o->user, PM_SHARE_OPENS, 1) &&
	       pm_open_room(o->pm, o->user, 1);
}

static void pm_turn_enter(struct pm_open *o)
{
	if (pm_list_empty(&o->user->queue))
		pm_list_add_tail(&o->pm->turns, &o->user->turn);
	pm_user_take(o->pm, o->user, PM_SHARE_QUEUED, 1);
	o->exe->queued = o;
}

void pm_turn_wait(struct pm_open *o)
{
	pm_turn_enter(o);
	pm_list_add_tail(&o->user->queue, &o->node);
}

/* Its user may be gone afterwards. */
void pm_turn_leave(struct pm_open *o)
{
	struct pm_user *u = o->user;

	o->exe->queued = NULL;
	pm_list_del(&o->node);
	if (pm_list_empty(&u->queue))
		pm_list_del(&u->turn);
	pm_user_give(o->pm, u, PM_SHARE_QUEUED, 1);
}

/* The next one has its user's share of what is under way. */
struct pm_open *pm_turn_next(struct pm *pm)
{
	struct pm_list *l;
	struct pm_open *o;
	struct pm_user *u;

	for (l = pm->turns.next; l != &pm->turns; l = l->next) {
		u = container_of(l, struct pm_user, turn);
		if (!pm_user_may(pm, u, PM_SHARE_OPENS, 1))
			continue;
		if (!pm_open_room(pm, u, 1))
			return NULL;
		pm_list_del(&u->turn);
		pm_list_add_tail(&pm->turns, &u->turn);
		o = container_of(u->queue.next, struct pm_open, node);
		pm_user_take(pm, u, PM_SHARE_OPENS, 1);
		pm_turn_leave(o);
		return o;
	}
	return NULL;
}

struct pm_open *pm_turn_any(struct pm *pm)
{
	struct pm_user *u;

	if (pm_list_empty(&pm->turns))
		return NULL;
	u = container_of(pm->turns.next, struct pm_user, turn);
	return container_of(u->queue.next, struct pm_open, node);
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
	pm_list_del(&o->node);
	pm_list_add_tail(o->user->queue.next, &o->node);
}
