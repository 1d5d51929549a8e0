/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Invariants of a process manager, for any input: counters are
 * right, reference counts too, and lists and tables agree.
 */
#ifndef TESTS_FUZZ_PROCESSMANAGER_PM_CHECK_H
#define TESTS_FUZZ_PROCESSMANAGER_PM_CHECK_H

#include "processmanager/internal.h"
#include "tests/fuzz/processmanager/pm_files.h"

/* References found, of all kinds: the pointers themselves. */
struct found {
	const void **v;
	size_t n, cap;
};

static void found_add(struct found *f, const void *p)
{
	if (!p)
		return;
	if (f->n == f->cap) {
		f->cap = f->cap ? 2 * f->cap : 256;
		f->v = __real_realloc(f->v, f->cap * sizeof(*f->v));
		must(f->v);
	}
	f->v[f->n++] = p;
}

static int found_compare(const void *a, const void *b)
{
	const char *x = *(const char *const *)a, *y = *(const char *const *)b;

	return x < y ? -1 : x > y;
}

static void found_sort(struct found *f)
{
	if (f->n)
		qsort(f->v, f->n, sizeof(*f->v), found_compare);
}

static size_t found_count(const struct found *f, const void *p)
{
	size_t lo = 0, hi = f->n, mid, n = 0;

	while (lo < hi) {
		mid = lo + (hi - lo) / 2;
		if ((const char *)f->v[mid] < (const char *)p)
			lo = mid + 1;
		else
			hi = mid;
	}
	while (lo + n < f->n && f->v[lo + n] == p)
		n++;
	return n;
}

/* Each once. */
static void found_unique(struct found *f)
{
	size_t i, n = 0;

	found_sort(f);
	for (i = 0; i < f->n; i++)
		if (!i || f->v[i] != f->v[i - 1])
			f->v[n++] = f->v[i];
	f->n = n;
}

struct census {
	struct pm *pm;
	bool quiet; /* no references from outside: no view, request or file */
	struct found mms, sets, exes, strs; /* a pointer a reference */
	struct found mapped; /* a pointer a mapping, of an exe and its roots */
	uint64_t procs, images, maps, dead, parents, children;
};

static void found_string(struct census *c, const char *s)
{
	if (s)
		found_add(&c->strs, s - offsetof(struct pm_str, s));
}

/* Images, and the history of older ones. */
static void check_history(struct census *c, const struct pm_proc *proc)
{
	size_t max = c->pm->stats.images + PM_HISTORY_MAX, i, n;
	struct pm_image_info *info = __real_calloc(max, sizeof(*info));

	must(info);
	n = pm_image_history(proc->images, info, max);
	must(n && n < max);
	for (i = 0; i < n; i++) {
		must(!i || info[i].key.exec_id <= info[i - 1].key.exec_id);
		found_string(c, info[i].exe);
		found_string(c, info[i].cmdline);
		found_string(c, info[i].cwd);
		found_string(c, info[i].cgroup);
	}
	free(info);
}

static void check_images(struct census *c, const struct pm_proc *proc)
{
	const struct pm_image *img;

	must(proc->images);
	for (img = proc->images; img; img = img->older) {
		must(img->proc == proc);
		must(!img->older || img->older->exec_id < img->exec_id);
		must(img->serial && img->serial <= c->pm->serial);
		must(img->a.comm[sizeof(img->a.comm) - 1] == '\0');
		c->images++;
		found_add(&c->mms, img->mm);
		found_add(&c->exes, img->main_exe);
	}
	check_history(c, proc);
}

static void check_proc(struct census *c, const struct pm_proc *proc)
{
	const struct pm_proc *child;

	c->procs++;
	c->dead += proc->exited;
	must(proc->exited == !!proc->over_in);
	must(proc->exited || !proc->reaped);
	must(!proc->parent ||
	     proc->parent->start_boottime < proc->start_boottime);
	c->parents += !!proc->parent;
	LIST_FOREACH(child, &proc->children, sibling) {
		must(child->parent == proc);
		c->children++;
	}
	found_add(&c->mms, proc->pending);
	check_images(c, proc);
}

static void check_set(struct census *c, const struct pm_set *set)
{
	const struct pm_map *m;
	const struct pm_exe *exe;
	uint64_t end = 0;
	uint32_t i;

	must(set->n <= set->cap && set->gap <= set->n);
	for (i = 0; i < set->n; i++) {
		m = pm_set_at(set, i);
		must(m->start < m->end && (!i || m->start >= end));
		end = m->end;
		found_add(&c->exes, m->exe);
		for (exe = m->exe; exe; exe = exe->same)
			found_add(&c->mapped, exe);
	}
	c->maps += set->n;
}

static void check_mms(struct census *c)
{
	const struct pm_mm *mm;
	const struct pm_set *set;
	struct found all = c->mms;
	size_t i;

	found_sort(&c->mms);
	all.v = NULL;
	all.n = all.cap = 0;
	for (i = 0; i < c->mms.n; i++)
		found_add(&all, c->mms.v[i]);
	found_unique(&all);
	for (i = 0; i < all.n; i++) {
		mm = all.v[i];
		must(mm->refs >= found_count(&c->mms, mm));
		must(!c->quiet || mm->refs == found_count(&c->mms, mm));
		found_add(&c->sets, mm->set);
		found_add(&c->exes, mm->first);
		found_add(&c->exes, mm->anon);
		for (size_t k = 0; k < PM_CODE_DUMPS; k++)
			found_add(&c->exes, mm->dumps[k]);
		found_add(&c->mapped, mm->anon);
	}
	all.n = 0;
	for (i = 0; i < c->sets.n; i++)
		found_add(&all, c->sets.v[i]);
	found_sort(&c->sets);
	found_unique(&all);
	for (i = 0; i < all.n; i++) {
		set = all.v[i];
		must(set->refs >= found_count(&c->sets, set));
		must(!c->quiet || set->refs == found_count(&c->sets, set));
		check_set(c, set);
	}
	free(all.v);
}

static void check_exes(struct census *c)
{
	struct pm *pm = c->pm;
	const struct pm_exe *exe;
	uint64_t n = 0, open = 0, idle = 0;

	found_add(&c->exes, pm->kernel);
	found_add(&c->exes, pm->vdso);
	found_add(&c->exes, pm->vsyscall);
	found_add(&c->exes, pm->anon);
	TAILQ_FOREACH(exe, &pm->exes, all)
		found_add(&c->exes, exe->same);
	found_sort(&c->exes);
	found_sort(&c->mapped);
	TAILQ_FOREACH(exe, &pm->exes, all) {
		n++;
		open += exe->kind == PM_EXE_FILE && exe->file;
		idle += !exe->refs;
		must(!exe->same || exe->same != exe);
		must(exe->refs >= found_count(&c->exes, exe));
		if (c->quiet) {
			must(exe->refs == found_count(&c->exes, exe));
			must(exe->mapped == found_count(&c->mapped, exe));
			must(!exe->resolving && !exe->opening);
		}
		found_add(&c->strs, exe->path);
	}
	must(n == pm->stats.exes);
	must(open == pm->stats.open_files);
	TAILQ_FOREACH(exe, &pm->open, lru) {
		must(exe->file && exe->kind == PM_EXE_FILE);
		open--;
	}
	must(!open);
	must(idle == pm->nidle && idle <= PM_IDLE_EXES);
	TAILQ_FOREACH(exe, &pm->idle, idle) {
		must(!exe->refs);
		idle--;
	}
	must(!idle);
}

static void check_strs(struct census *c)
{
	const struct pm_str *str;
	struct hash_node *n, *tmp;
	size_t i;

	found_sort(&c->strs);
	hash_for_each(&c->pm->strs, i, n, tmp) {
		str = container_of(n, struct pm_str, node);
		must(str->refs == found_count(&c->strs, str));
		must(str->s[str->len] == '\0');
	}
}

static size_t procs_over(const struct pm_procs *list)
{
	const struct pm_proc *proc;
	size_t n = 0;

	TAILQ_FOREACH(proc, list, over) {
		must(proc->over_in == list);
		n++;
	}
	return n;
}

static void check_pm(struct pm *pm, bool quiet)
{
	struct census c = { .pm = pm };
	const struct pm_proc *proc;

	c.quiet = quiet && TAILQ_EMPTY(&pm->opens) && TAILQ_EMPTY(&pm->busy);
	TAILQ_FOREACH(proc, &pm->all, all)
		check_proc(&c, proc);
	check_mms(&c);
	check_exes(&c);
	check_strs(&c);
	must(c.procs == pm->stats.processes && c.procs == pm->procs.count);
	must(c.images == pm->stats.images);
	must(c.parents == c.children);
	must(c.quiet ? c.maps == pm->stats.mappings
		     : c.maps <= pm->stats.mappings);
	must(c.dead == procs_over(&pm->exited) + procs_over(&pm->leaving) +
			       procs_over(&pm->reaped));
	must(pm->nzombies <= PM_ZOMBIES);
	free(c.mms.v);
	free(c.sets.v);
	free(c.exes.v);
	free(c.strs.v);
	free(c.mapped.v);
}

#endif /* TESTS_FUZZ_PROCESSMANAGER_PM_CHECK_H */
