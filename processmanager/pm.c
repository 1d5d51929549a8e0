// SPDX-License-Identifier: Apache-2.0
/*
 * pm: the manager itself, from its making to its end. What it holds is told in
 * processmanager/internal.h; what comes in is in event.c and mapping.c, what
 * is asked in image.c and exe.c.
 */
#include <errno.h>
#include <stdlib.h>

#include "processmanager/internal.h"

void pm_limited(struct pm *pm, uint32_t uid, enum pm_limit what, uint64_t n)
{
	if (pm->opts.limited)
		pm->opts.limited(pm->opts.arg, uid, what, n);
}

int pm_nomem(struct pm *pm)
{
	pm->stats.nomem++;
	return -ENOMEM;
}

static void pm_init_pools(struct pm *pm)
{
	pool_init(&pm->proc_pool, sizeof(struct pm_proc), PM_POOL);
	pool_init(&pm->image_pool, sizeof(struct pm_image), PM_POOL);
	pool_init(&pm->mm_pool, sizeof(struct pm_mm), PM_POOL);
	pool_init(&pm->set_pool, sizeof(struct pm_set), PM_POOL);
}

static void pm_fini_pools(struct pm *pm)
{
	pool_fini(&pm->proc_pool);
	pool_fini(&pm->image_pool);
	pool_fini(&pm->mm_pool);
	pool_fini(&pm->set_pool);
}

static void pm_init_lists(struct pm *pm)
{
	pm_list_init(&pm->exes);
	pm_list_init(&pm->idle);
	pm_list_init(&pm->open);
	pm_list_init(&pm->opens);
	pm_list_init(&pm->turns);
	pm_list_init(&pm->asking);
	pm_list_init(&pm->failed);
	pm_list_init(&pm->early);
	pm_list_init(&pm->exited);
	pm_list_init(&pm->leaving);
	pm_list_init(&pm->reaped);
	pm_list_init(&pm->ended);
}

int pm_new(struct pm **pmp, const struct pm_opts *opts)
{
	struct pm *pm;
	int err;

	if (!opts->symbolizer)
		return -EINVAL;
	pm = calloc(1, sizeof(*pm));
	if (!pm)
		return -ENOMEM;
	pm->opts = *opts;
	if (!pm->opts.open_files)
		pm->opts.open_files = PM_OPEN_FILES;
	pm_init_lists(pm);
	pm_init_pools(pm);
	err = hash_init(&pm->procs, 1024);
	err = err ? err : hash_init(&pm->strs, 1024);
	err = err ? err : hash_init(&pm->users, 16);
	err = err ? err : hash_init(&pm->exe_keys, 256);
	err = err ? err : pm_exe_init(pm);
	if (err) {
		pm_free(pm);
		return err;
	}
	*pmp = pm;
	return 0;
}

static void pm_free_procs(struct pm *pm)
{
	struct hash_node *n;
	size_t i;

	for (i = 0; pm->procs.buckets && i <= pm->procs.mask; i++) {
		while ((n = pm->procs.buckets[i]))
			pm_proc_free(pm, container_of(n, struct pm_proc, node));
	}
}

void pm_free(struct pm *pm)
{
	if (!pm)
		return;
	pm->closing = true;
	pm_early_cancel(pm);
	pm_open_cancel(pm);
	pm_names_cancel(pm, NULL, NULL);
	patience_fini(&pm->patience);
	pm_free_procs(pm);
	pm_exe_fini(pm);
	hash_fini(&pm->procs);
	hash_fini(&pm->strs);
	hash_fini(&pm->users);
	hash_fini(&pm->exe_keys);
	pm_fini_pools(pm);
	free(pm);
}

void pm_get_stats(const struct pm *pm, struct pm_stats *out)
{
	*out = pm->stats;
	out->text_bytes = pm->shared[PM_SHARE_TEXT];
}
