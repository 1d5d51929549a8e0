// SPDX-License-Identifier: Apache-2.0
/*
 * pm: creates and frees the manager. internal.h describes its objects; event.c
 * and mapping.c apply what it is fed, image.c and exe.c answer.
 */
#include <errno.h>
#include <stdlib.h>

#include "processmanager/internal.h"

void pm_limited(struct pm *pm, uint32_t uid, enum pm_limit what, uint64_t n)
{
	if (pm->opts.limited)
		pm->opts.limited(pm->opts.arg, uid, what, n);
}

void pm_known_file(struct pm *pm, const struct quark_file_ident *ident,
		   bool known)
{
	if (pm->opts.known_file)
		pm->opts.known_file(pm->opts.arg, ident, known);
}

void pm_go_file(struct pm *pm, const struct quark_file_ident *ident,
		const struct symbolizer_go *go)
{
	if (pm->opts.go_file)
		pm->opts.go_file(pm->opts.arg, ident, go);
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
	TAILQ_INIT(&pm->all);
	TAILQ_INIT(&pm->exes);
	TAILQ_INIT(&pm->idle);
	TAILQ_INIT(&pm->open);
	TAILQ_INIT(&pm->busy);
	TAILQ_INIT(&pm->opens);
	TAILQ_INIT(&pm->turns);
	TAILQ_INIT(&pm->early);
	TAILQ_INIT(&pm->exited);
	TAILQ_INIT(&pm->leaving);
	TAILQ_INIT(&pm->reaped);
	TAILQ_INIT(&pm->ended);
	TAILQ_INIT(&pm->apm.agents);
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
	err = err ? err : hash_init(&pm->apm.stacks, 0);
	err = err ? err : pm_exe_init(pm);
	if (err) {
		pm_free(pm);
		return err;
	}
	*pmp = pm;
	return 0;
}

void pm_free(struct pm *pm)
{
	struct pm_proc *proc;

	if (!pm)
		return;
	pm->closing = true;
	pm_early_cancel(pm);
	pm_open_cancel(pm);
	pm_names_cancel(pm, NULL, NULL);
	patience_fini(&pm->patience);
	while ((proc = TAILQ_FIRST(&pm->all)))
		pm_proc_free(pm, proc);
	pm_exe_fini(pm);
	hash_fini(&pm->procs);
	hash_fini(&pm->strs);
	hash_fini(&pm->users);
	hash_fini(&pm->exe_keys);
	hash_fini(&pm->apm.stacks);
	pm_fini_pools(pm);
	free(pm);
}

void pm_get_stats(const struct pm *pm, struct pm_stats *out)
{
	*out = pm->stats;
	out->text_bytes = pm->shared[PM_SHARE_TEXT];
}
