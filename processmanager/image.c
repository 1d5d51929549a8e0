// SPDX-License-Identifier: Apache-2.0
/*
 * image: one exec generation of a process, and the lookups that samples need.
 * An image whose exec event has not come yet is made when a sample names it:
 * provisional until the event, and with the mappings of the exec under way.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "processmanager/internal.h"

void pm_attrs_fini(struct pm *pm, struct pm_attrs *a)
{
	pm_str_put(pm, a->exe);
	pm_str_put(pm, a->cmdline);
	pm_str_put(pm, a->cwd);
	pm_str_put(pm, a->cgroup);
	pm_str_put(pm, a->service);
	pm_str_put(pm, a->instance);
	pm_str_put(pm, a->environment);
}

struct pm_image *pm_image_new(struct pm *pm, struct pm_proc *proc,
			      uint64_t exec_id, const struct pm_image *from,
			      struct pm_mm *mm)
{
	struct pm_image *img = pool_take(&pm->image_pool), **p;

	if (!img) {
		pm_mm_put(pm, mm);
		pm_nomem(pm);
		return NULL;
	}
	img->proc = proc;
	img->mm = mm;
	img->serial = ++pm->serial;
	img->exec_id = exec_id;
	if (from) {
		img->a.cwd = pm_str_get(from->a.cwd);
		img->a.cgroup = pm_str_get(from->a.cgroup);
		img->a.ppid = from->a.ppid;
		img->a.uid = from->a.uid;
		img->a.gid = from->a.gid;
		img->kthread = from->kthread;
		memcpy(img->a.comm, from->a.comm, sizeof(img->a.comm));
	}
	pm_past_take(pm, img);
	for (p = &proc->images; *p && (*p)->exec_id > exec_id;)
		p = &(*p)->older;
	img->older = *p;
	*p = img;
	pm->stats.images++;
	return img;
}

void pm_image_free(struct pm *pm, struct pm_image *img)
{
	if (img->replaced)
		TAILQ_REMOVE(&pm->ended, img, ended_node);
	pm_apm_forget(pm, img);
	pm_mm_put(pm, img->mm);
	pm_exe_put(img->main_exe);
	pm_attrs_fini(pm, &img->a);
	pool_give(&pm->image_pool, img);
	pm->stats.images--;
}

struct pm_image *pm_image_find_id(const struct pm_proc *proc, uint64_t exec_id)
{
	struct pm_image *img = proc->images;

	while (img && img->exec_id > exec_id)
		img = img->older;
	return img && img->exec_id == exec_id ? img : NULL;
}

int pm_image_apply(struct pm *pm, struct pm_image *img,
		   const struct quark_process *qp)
{
	struct pm_attrs *a = &img->a;
	bool cut = false;
	int err = 0;

	a->ppid = qp->proc_ppid;
	a->uid = qp->proc_uid;
	a->gid = qp->proc_gid;
	img->kthread = qp->x_flags & QUARK_X_KTHREAD;
	if (qp->comm[0]) {
		memcpy(a->comm, qp->comm, sizeof(a->comm));
		a->comm[sizeof(a->comm) - 1] = '\0';
	}
	if (qp->exe)
		err |= pm_str_set_of(pm, &a->exe, a->uid, qp->exe,
				     strlen(qp->exe), SIZE_MAX, &cut);
	if (qp->cmdline) {
		err |= pm_str_set_of(pm, &a->cmdline, a->uid, qp->cmdline,
				     qp->cmdline_len, PM_ARGS_LEAST, &cut);
		a->args_cut = cut || qp->x_flags & QUARK_X_ARGS_CUT;
	}
	if (qp->cwd)
		err |= pm_str_set_of(pm, &a->cwd, a->uid, qp->cwd,
				     strlen(qp->cwd), 0, &cut);
	if (qp->cgroup)
		err |= pm_str_set(pm, &a->cgroup, qp->cgroup,
				  strlen(qp->cgroup));
	return err ? -ENOMEM : 0;
}

void pm_image_set_mm(struct pm *pm, struct pm_image *img, struct pm_mm *mm)
{
	struct pm_mm *old = img->mm;

	img->mm = mm;
	pm_mm_put(pm, old);
}

void pm_image_set_main(struct pm_image *img, struct pm_exe *exe)
{
	struct pm_exe *old = img->main_exe;

	img->main_exe = exe ? pm_exe_get(exe) : NULL;
	pm_exe_put(old);
}

void pm_image_end(struct pm *pm, struct pm_image *img, uint64_t time)
{
	if (img->replaced)
		return;
	img->replaced = true;
	img->ended = time;
	TAILQ_INSERT_TAIL(&pm->ended, img, ended_node);
}

/* The address space of an image without an event; NULL without memory. */
static struct pm_mm *pm_provisional_mm(struct pm *pm, struct pm_proc *proc,
				       uint64_t exec_id, uint64_t time)
{
	if (proc->pending && proc->pending_id == exec_id)
		return pm_mm_get(proc->pending);
	/*
	 * An exec mark, or COMM record without BPF, is missing: which image the
	 * pending set belongs to is unknown.
	 */
	if (proc->pending && proc->pending_id < exec_id &&
	    proc->pending->since <= time)
		pm_proc_drop_pending(pm, proc);
	return pm_mm_unknown(pm);
}

/* The process of a sample, made if it is not known. NULL without memory. */
static struct pm_proc *pm_proc_sampled(struct pm *pm, const struct abi_key *key,
				       uint64_t time)
{
	struct pm_proc *proc = pm_proc_find(pm, key->tgid, key->start_boottime);
	bool late = (!proc || proc->late) &&
		    pm_proc_gone(pm, key->tgid, key->start_boottime, time);

	if (proc && !late && proc->exited && time > proc->exit_time)
		pm_proc_alive(pm, proc, time);
	if (!proc)
		proc = pm_proc_new(pm, key->tgid, key->start_boottime);
	if (proc && late)
		pm_proc_late(pm, proc, time);
	return proc;
}

struct pm_image *pm_image_get(struct pm *pm, const struct abi_key *key,
			      uint64_t time)
{
	struct pm_proc *proc;
	struct pm_image *img, *before;
	struct pm_mm *mm;
	bool again;

	pm_tick(pm, time);
	proc = pm_proc_sampled(pm, key, time);
	if (!proc)
		return NULL;
	img = pm_image_find_id(proc, key->exec_id);
	if (img)
		return img;
	before = proc->images;
	again = pm_past_has(proc, key->exec_id);
	mm = pm_provisional_mm(pm, proc, key->exec_id, time);
	img = mm ? pm_image_new(pm, proc, key->exec_id, before, mm) : NULL;
	if (!img) {
		if (!before)
			pm_proc_free(pm, proc);
		return NULL;
	}
	img->made = time;
	img->provisional = !again;
	pm->stats.provisional += !again;
	if (before) /* the older one of the two has ended */
		pm_image_end(pm, img == proc->images ? before : img, time);
	return img;
}

struct pm_proc *pm_lender(struct pm_proc *proc)
{
	const struct pm_mm *mm = proc->images->mm;
	struct pm_proc *p, *lender = proc;

	for (p = proc->parent; p && p->images->mm == mm; p = p->parent)
		lender = p->exited ? lender : p;
	return lender;
}

bool pm_image_floods(const struct pm *pm, const struct pm_image *img)
{
	return img->mm->flood_until &&
	       pm->now < img->mm->flood_until + PM_FLOOD_NS;
}

/*
 * Of a lent address space the lender is read: by then /proc may show the
 * borrower's next image.
 */
void pm_image_want(struct pm *pm, struct pm_image *img)
{
	struct pm_proc *proc = pm_lender(img->proc);
	struct pm_want want = {
		.key = { proc->start_boottime, proc->images->exec_id,
			 proc->tgid, 0 },
		.uid = proc->images->a.uid,
		.flood = pm_image_floods(pm, img),
	};
	uint64_t pause =
		pm_mm_stale(pm, img->mm) ? PM_STALE_INTERVAL : PM_WANT_INTERVAL;

	if (!pm->opts.want_maps || img->kthread || proc->exited ||
	    img != img->proc->images ||
	    (proc->wanted_at && pm->now < proc->wanted_at + pause))
		return;
	proc->wanted_at = pm->now;
	pm->opts.want_maps(pm->opts.arg, &want);
}

bool pm_image_stale(const struct pm *pm, const struct pm_image *img)
{
	return img == img->proc->images && !img->kthread &&
	       !img->proc->exited && pm_mm_stale(pm, img->mm) &&
	       pm_lender(img->proc) == img->proc;
}

/* One for each address space: its addresses mean nothing outside. */
static struct pm_exe *pm_mm_anon(struct pm *pm, struct pm_mm *mm)
{
	if (mm->anon)
		return mm->anon;
	mm->anon = pm_exe_new(pm, PM_EXE_ANON, pm_str_get(pm->anon->path));
	if (mm->anon)
		pm_exe_mapped(mm->anon, 1);
	return mm->anon ? mm->anon : pm->anon;
}

static void pm_mm_mapping(struct pm *pm, struct pm_mm *mm,
			  const struct pm_map *map, struct pm_mapping *out)
{
	const struct pm_exe *root = pm_exe_root(map->exe);

	out->start = map->start;
	out->end = map->end;
	out->pgoff = map->pgoff;
	out->exe = pm_exe_shown(map->exe);
	out->code = NULL;
	out->maybe = NULL;
	if (map->text == PM_TEXT_FILE && pm_exe_is_bare(map->exe))
		out->code = pm_mm_anon(pm, mm);
	if (map->text == PM_TEXT_MAYBE && root->opening)
		out->maybe = map->exe;
	if (map->exe->kind == PM_EXE_ANON || map->text == PM_TEXT_MAYBE) {
		out->pgoff = map->start;
		out->exe = pm_mm_anon(pm, mm);
	}
}

/*
 * What an image has mapped in 'mm'. A stale set answers for the vdso only,
 * which the kernel maps once.
 */
static enum pm_find pm_image_place(struct pm *pm, struct pm_image *img,
				   struct pm_mm *mm, bool stale, uint64_t addr,
				   struct pm_mapping *out)
{
	struct pm_map *map = pm_mm_find(mm, addr);
	struct pm_exe *code;

	if (map && (!stale || map->exe->kind == PM_EXE_VDSO)) {
		if (map->text == PM_TEXT_MAYBE)
			pm_copy_check(pm, img, mm, map);
		pm_mm_mapping(pm, mm, map, out);
		code = out->exe->kind == PM_EXE_ANON ? out->exe : out->code;
		if (code)
			pm_code_via(code, img->proc, mm);
		return PM_FOUND;
	}
	pm_image_want(pm, img);
	return (stale || mm->partial) && !img->kthread ? PM_LOST
						       : PM_NOT_MAPPED;
}

/* A later scan shows nothing of the time before it. */
static bool pm_mm_stale_at(const struct pm *pm, const struct pm_mm *mm,
			   uint64_t time)
{
	return pm_mm_stale(pm, mm) || (mm->scanned && time < mm->known_from);
}

enum pm_find pm_image_find(struct pm *pm, struct pm_image *img, uint64_t time,
			   uint64_t addr, struct pm_mapping *out)
{
	return pm_image_place(pm, img, img->mm,
			      pm_mm_stale_at(pm, img->mm, time), addr, out);
}

bool pm_image_may_have_code(const struct pm *pm, const struct pm_image *img,
			    uint64_t time, uint64_t addr)
{
	return img->mm->partial || pm_mm_stale_at(pm, img->mm, time) ||
	       pm_mm_find(img->mm, addr);
}

struct pm_exe *pm_image_memory(const struct pm_image *img)
{
	return img->mm->anon;
}

/* Shares the set until one of the two changes it, like a child of fork(2). */
struct pm_view {
	struct pm *pm;
	struct pm_image *img;
	struct pm_mm *mm;
	bool stale; /* when it was made; records dropped later do not matter */
};

struct pm_view *pm_view_new(struct pm *pm, struct pm_image *img, uint64_t time)
{
	struct pm_view *view = calloc(1, sizeof(*view));
	struct pm_mm *mm = view ? pm_mm_fork(pm, img->mm) : NULL;

	if (!mm) {
		free(view);
		pm_nomem(pm);
		return NULL;
	}
	mm->anon = pm_exe_get(pm_mm_anon(pm, img->mm));
	pm_exe_mapped(mm->anon, 1);
	view->pm = pm;
	view->img = img;
	view->mm = mm;
	view->stale = pm_mm_stale_at(pm, img->mm, time);
	return view;
}

void pm_view_free(struct pm_view *view)
{
	if (!view)
		return;
	pm_mm_put(view->pm, view->mm);
	free(view);
}

enum pm_find pm_view_find(struct pm_view *view, uint64_t addr,
			  struct pm_mapping *out)
{
	return pm_image_place(view->pm, view->img, view->mm, view->stale, addr,
			      out);
}

bool pm_view_may_have_code(const struct pm_view *view, uint64_t addr)
{
	return view->mm->partial || view->stale || pm_mm_find(view->mm, addr);
}

void pm_view_each(struct pm_view *view,
		  void (*fn)(void *arg, const struct pm_mapping *map),
		  void *arg)
{
	const struct pm_set *set = view->mm->set;
	struct pm_mapping map;

	for (uint32_t i = 0; set && i < set->n; i++) {
		pm_mm_mapping(view->pm, view->mm, pm_set_at(set, i), &map);
		fn(arg, &map);
	}
}

void pm_image_named(struct pm_image *img, const char *comm)
{
	if (!img->kthread && comm[0])
		snprintf(img->a.comm, sizeof(img->a.comm), "%.*s",
			 (int)sizeof(img->a.comm) - 1, comm);
}

/* Returns whether it is another one now. */
static bool pm_image_set_name(struct pm *pm, struct pm_image *img,
			      struct pm_str **slot, const char *name)
{
	struct pm_str *old = *slot;
	bool cut = false;

	if (!strcmp(old ? old->s : "", name))
		return false;
	if (*name)
		return !pm_str_set_of(pm, slot, img->a.uid, name, strlen(name),
				      0, &cut) &&
		       *slot != old;
	*slot = NULL;
	pm_str_put(pm, old);
	return true;
}

bool pm_image_set_context(struct pm *pm, struct pm_image *img,
			  const struct symbolizer_context *c)
{
	bool changed = false;

#define X(name, key) \
	changed |= pm_image_set_name(pm, img, &img->a.name, c->name);
	SYMBOLIZER_CONTEXT_NAMES(X)
#undef X
	return changed;
}

void pm_image_sampled(struct pm_image *img)
{
	img->a.samples++;
	img->proc->samples++;
}

bool pm_image_provisional(const struct pm_image *img)
{
	return img->provisional;
}

bool pm_image_selected(const struct pm_image *img)
{
	return img->proc->selected;
}

bool pm_image_forked(const struct pm_image *img)
{
	const struct pm_proc *proc = img->proc;

	return !img->provisional && !img->a.begin && proc->forked &&
	       !proc->before;
}

void pm_attrs_info(const struct pm_proc *proc, uint64_t exec_id,
		   const struct pm_attrs *a, struct pm_image_info *out)
{
	char *at;

	memset(out, 0, sizeof(*out));
	out->key.start_boottime = proc->start_boottime;
	out->key.exec_id = exec_id;
	out->key.tgid = proc->tgid;
	out->begin = a->begin ? a->begin : proc->start_boottime;
	out->samples = a->samples;
	out->selected = proc->selected;
	out->exited = proc->exited;
	out->ppid = a->ppid;
	out->uid = a->uid;
	out->gid = a->gid;
	out->leader_type = proc->leader_type;
	out->leader = proc->leader;
	pm_process_id(out->process_id, proc->tgid, proc->start_boottime);
	at = stpcpy(out->image_id, out->process_id);
	*at++ = '-';
	pm_put_decimal(at, exec_id);
	out->comm = a->comm;
	out->exe = a->exe ? a->exe->s : NULL;
	out->cmdline = a->cmdline ? a->cmdline->s : NULL;
	out->cmdline_len = a->cmdline ? a->cmdline->len : 0;
	out->args_cut = a->args_cut;
	out->cwd = a->cwd ? a->cwd->s : NULL;
	out->cgroup = a->cgroup ? a->cgroup->s : NULL;
	out->service = a->service ? a->service->s : NULL;
	out->instance = a->instance ? a->instance->s : NULL;
	out->environment = a->environment ? a->environment->s : NULL;
}

void pm_image_info(const struct pm_image *img, struct pm_image_info *out)
{
	pm_attrs_info(img->proc, img->exec_id, &img->a, out);
	out->serial = img->serial;
	out->provisional = img->provisional;
	out->kthread = img->kthread;
	out->main_exe = img->main_exe ? pm_exe_shown(img->main_exe) : NULL;
}
