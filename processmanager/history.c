// SPDX-License-Identifier: Apache-2.0
/*
 * history: the images that a process had before. Once the samples of a replaced
 * image are done, only its attributes are kept, for the ledger. A process that
 * execs again and again keeps the last PM_PAST_MAX of them, and as much of
 * their arguments as PM_PAST_ARGS and PM_PAST_TEXT allow.
 */
#include <stdlib.h>
#include <string.h>

#include "processmanager/internal.h"

struct pm_past {
	struct pm_past *older;
	uint64_t exec_id;
	struct pm_attrs a;
};

static void pm_past_free(struct pm *pm, struct pm_past *past)
{
	pm_attrs_fini(pm, &past->a);
	free(past);
}

void pm_past_drop(struct pm *pm, struct pm_proc *proc)
{
	struct pm_past *past;

	while ((past = proc->past)) {
		proc->past = past->older;
		pm_past_free(pm, past);
	}
}

/*
 * Drops the oldest image when there are too many, and the arguments of the
 * oldest when all together are too long.
 */
static void pm_past_limit(struct pm *pm, struct pm_proc *proc)
{
	struct pm_past **p = &proc->past;
	struct pm_attrs *a;
	size_t text = 0;
	int n;

	for (n = 0; *p && n < PM_PAST_MAX; n++, p = &(*p)->older) {
		a = &(*p)->a;
		if (!a->cmdline)
			continue;
		text += a->cmdline->len;
		if (text <= PM_PAST_TEXT)
			continue;
		text -= a->cmdline->len;
		pm_str_put(pm, a->cmdline);
		a->cmdline = NULL;
		a->args_cut = true;
	}
	if (!*p)
		return;
	pm_past_free(pm, *p);
	*p = NULL;
}

/*
 * Cuts long arguments; drops those, short ones too, that exceeded the user's
 * share while the process lived.
 */
static void pm_past_args(struct pm *pm, struct pm_attrs *a)
{
	struct pm_str *args = a->cmdline;
	bool beyond = args && pm_str_beyond(pm, args);

	if (!args || (!beyond && args->len <= PM_PAST_ARGS))
		return;
	a->args_cut = true;
	a->cmdline = beyond ? NULL
			    : pm_str_new_of(pm, a->uid, args->s, PM_PAST_ARGS,
					    0, &a->args_cut);
	pm_str_put(pm, args);
}

void pm_past_add(struct pm *pm, struct pm_image *img)
{
	struct pm_past *past = malloc(sizeof(*past)), **p = &img->proc->past;

	if (!past) {
		pm_nomem(pm);
		return;
	}
	past->exec_id = img->exec_id;
	past->a = img->a;
	memset(&img->a, 0, sizeof(img->a));
	pm_past_args(pm, &past->a);
	/* A late event may have changed their order. */
	while (*p && (*p)->exec_id > past->exec_id)
		p = &(*p)->older;
	past->older = *p;
	*p = past;
	pm_past_limit(pm, img->proc);
}

static struct pm_past **pm_past_at(struct pm_proc *proc, uint64_t exec_id)
{
	struct pm_past **p = &proc->past;

	while (*p && (*p)->exec_id > exec_id)
		p = &(*p)->older;
	return *p && (*p)->exec_id == exec_id ? p : NULL;
}

bool pm_past_has(struct pm_proc *proc, uint64_t exec_id)
{
	return pm_past_at(proc, exec_id);
}

void pm_past_take(struct pm *pm, struct pm_image *img)
{
	struct pm_past **p = pm_past_at(img->proc, img->exec_id), *past;

	if (!p)
		return;
	past = *p;
	*p = past->older;
	pm_attrs_fini(pm, &img->a);
	img->a = past->a;
	free(past);
}

size_t pm_image_history(const struct pm_image *img, struct pm_image_info *out,
			size_t max)
{
	const struct pm_proc *proc = img->proc;
	const struct pm_past *past = proc->past;
	size_t n;

	for (n = 0, img = proc->images; n < max && (img || past); n++) {
		if (!past || (img && img->exec_id > past->exec_id)) {
			pm_image_info(img, &out[n]);
			img = img->older;
		} else {
			pm_attrs_info(proc, past->exec_id, &past->a, &out[n]);
			past = past->older;
		}
	}
	return n;
}
