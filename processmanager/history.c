// SPDX-License-Identifier: Apache-2.0
/*
 * history: a process's images, from the first to the last. One that was replaced,
 * and whose samples are all done, needs no mappings any more; what is left of it
 * is what the ledger says of it, a few words and strings that others have too.
 * Of a process that execs without end the last ones are remembered, and of
 * arguments so much as PM_PAST_ARGS and PM_PAST_TEXT allow.
 */
#include <stdlib.h>
#include <string.h>

#include "processmanager/internal.h"

struct pm_past {
	struct pm_past *older;
	struct pm_str *exe, *cmdline, *cwd, *cgroup;
	uint64_t exec_id;
	uint64_t begin;
	uint64_t samples;
	uint32_t ppid, uid, gid;
	bool args_cut;
	char comm[16];
};

static void pm_past_free(struct pm *pm, struct pm_past *past)
{
	pm_str_put(pm, past->exe);
	pm_str_put(pm, past->cmdline);
	pm_str_put(pm, past->cwd);
	pm_str_put(pm, past->cgroup);
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
 * The oldest goes when there are too many; the arguments of the oldest when they
 * are too long together.
 */
static void pm_past_limit(struct pm *pm, struct pm_proc *proc)
{
	struct pm_past **p = &proc->past;
	size_t text = 0;
	int n;

	for (n = 0; *p && n < PM_PAST_MAX; n++) {
		if ((*p)->cmdline)
			text += (*p)->cmdline->len;
		if (text > PM_PAST_TEXT && (*p)->cmdline) {
			text -= (*p)->cmdline->len;
			pm_str_put(pm, (*p)->cmdline);
			(*p)->cmdline = NULL;
			(*p)->args_cut = true;
		}
		p = &(*p)->older;
	}
	if (!*p)
		return;
	pm_past_free(pm, *p);
	*p = NULL;
}

/*
 * Of long arguments the beginning; or nothing, also of short ones that were kept
 * beyond their user's share, as the process lived.
 */
static struct pm_str *pm_past_args(struct pm *pm, const struct pm_image *img,
				   bool *cut)
{
	struct pm_str *args = img->cmdline;

	if (!args)
		return NULL;
	if (pm_str_beyond(pm, args)) {
		*cut = true;
		return NULL;
	}
	if (args->len <= PM_PAST_ARGS)
		return pm_str_get(args);
	*cut = true;
	return pm_str_new_of(pm, img->uid, args->s, PM_PAST_ARGS, 0, cut);
}

void pm_past_add(struct pm *pm, const struct pm_image *img)
{
	struct pm_past *past = malloc(sizeof(*past)), **p = &img->proc->past;

	if (!past) {
		pm_nomem(pm);
		return;
	}
	*past = (struct pm_past){
		.exe = pm_str_get(img->exe),
		.cwd = pm_str_get(img->cwd),
		.cgroup = pm_str_get(img->cgroup),
		.exec_id = img->exec_id,
		.begin = img->begin,
		.samples = img->samples,
		.ppid = img->ppid,
		.uid = img->uid,
		.gid = img->gid,
		.args_cut = img->args_cut,
	};
	past->cmdline = pm_past_args(pm, img, &past->args_cut);
	memcpy(past->comm, img->comm, sizeof(past->comm));
	/* They may come in another order, where an event came late. */
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
	pm_str_put(pm, img->cwd);
	pm_str_put(pm, img->cgroup);
	img->exe = past->exe;
	img->cmdline = past->cmdline;
	img->cwd = past->cwd;
	img->cgroup = past->cgroup;
	img->begin = past->begin;
	img->samples = past->samples;
	img->ppid = past->ppid;
	img->uid = past->uid;
	img->gid = past->gid;
	img->args_cut = past->args_cut;
	memcpy(img->comm, past->comm, sizeof(img->comm));
	free(past);
}

static void pm_past_info(const struct pm_proc *proc, const struct pm_past *past,
			 struct pm_image_info *out)
{
	pm_image_info_of(proc, past->exec_id, past->begin, out);
	out->ppid = past->ppid;
	out->uid = past->uid;
	out->gid = past->gid;
	out->samples = past->samples;
	out->comm = past->comm;
	out->exe = past->exe ? past->exe->s : NULL;
	out->cmdline = past->cmdline ? past->cmdline->s : NULL;
	out->cmdline_len = past->cmdline ? past->cmdline->len : 0;
	out->args_cut = past->args_cut;
	out->cwd = past->cwd ? past->cwd->s : NULL;
	out->cgroup = past->cgroup ? past->cgroup->s : NULL;
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
			pm_past_info(proc, past, &out[n]);
			past = past->older;
		}
	}
	return n;
}
