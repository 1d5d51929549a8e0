/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A host of a few processes, as it really is: which live, what each runs and
 * has mapped. Its actions become records, as the kernel would send them, in the
 * kernel's order. They reach the manager as they are, or, if the input says so,
 * late, twice or never; then the manager may be wrong until it is repaired.
 */
#ifndef TESTS_FUZZ_PROCESSMANAGER_PM_HOST_H
#define TESTS_FUZZ_PROCESSMANAGER_PM_HOST_H

#include "processmanager/processmanager.h"
#include "tests/fuzz/processmanager/pm_files.h"

#define PAGES 12
#define PAGE_VDSO (PAGES - 1) /* where the kernel maps it, always */
#define PAGE 0x1000
#define PIDS 7
#define TASKS 12
#define HELD 8
#define DEAD 4
#define BORN_APART 10 /* ns between any two records */

/* One page: which file is there, 0: none, and which page of it. */
struct page {
	uint8_t file; /* index into files, plus one */
	uint8_t at;
};

struct memory_map {
	unsigned int refs;
	bool lent; /* to a child of vfork(2), once */
	bool copied; /* of a lent one, and not re-read since */
	struct page page[PAGES];
};

enum task_state {
	TASK_FREE,
	TASK_ALIVE,
	TASK_ZOMBIE
};

struct task {
	enum task_state state;
	uint32_t pid, ppid;
	uint64_t start, parent_start;
	uint64_t exec_id, parent_exec_id;
	uint64_t exit;
	uint64_t samples;
	struct memory_map *mm;
	uint8_t exe; /* index into files */
	uint8_t name, args;
	int32_t status;
	bool want; /* its mappings are to be read again */
};

struct record {
	bool map, held;
	struct quark_event ev;
	struct quark_process qp;
	struct pm_map_event me;
};

struct host {
	const uint8_t *in, *end; /* what decides */
	struct pm *pm;
	uint64_t now;
	bool lossy; /* records may be dropped, which is reported */
	bool unruly; /* they may come late or twice, which is not reported */
	bool poor; /* memory may run out */
	bool wrong; /* something went wrong and is not repaired yet */
	bool ever_wrong;
	bool blurred; /* even definite answers may be wrong */
	struct task tasks[TASKS];
	struct record held[HELD];
	struct task dead[DEAD]; /* reaped last */
	size_t n_dead;
	uint64_t forks, execs, exits, reaps; /* told */
};

static const char *const host_names[] = { "one", "two words", "\xff\n\"" };
static const struct {
	const char *text;
	size_t len;
} host_args[] = {
	{ "a\0b", 4 },
	{ "", 1 },
	{ "x\0\0y\0\n", 7 },
};

static uint8_t host_byte(struct host *h)
{
	return h->in < h->end ? *h->in++ : 0;
}

static void host_wrong(struct host *h)
{
	h->wrong = h->ever_wrong = true;
}

/* --- memory --------------------------------------------------------------- */

static struct memory_map *mm_new(void)
{
	struct memory_map *mm = __real_calloc(1, sizeof(*mm));

	must(mm);
	mm->refs = 1;
	return mm;
}

static void mm_put(struct memory_map *mm)
{
	if (mm && !--mm->refs)
		free(mm);
}

/* --- records -------------------------------------------------------------- */

static void host_give(struct host *h, const struct record *rec)
{
	struct record r = *rec;
	int err;

	memory.failed = false;
	if (h->poor && !(host_byte(h) & 7))
		memory.left = 1 + (host_byte(h) & 7);
	r.ev.process = &r.qp;
	err = r.map ? pm_map_event(h->pm, &r.me) : pm_event(h->pm, &r.ev);
	must(!err || (err == -ENOMEM && memory.failed));
	memory.left = 0;
	if (memory.failed) {
		host_wrong(h);
		h->blurred = true;
	}
}

static void host_hold(struct host *h, const struct record *rec)
{
	size_t i;

	for (i = 0; i < HELD && h->held[i].held; i++)
		;
	if (i == HELD) {
		host_give(h, rec);
		return;
	}
	h->held[i] = *rec;
	h->held[i].held = true;
}

static void host_late(struct host *h, size_t i)
{
	if (!h->held[i].held)
		return;
	h->held[i].held = false;
	host_give(h, &h->held[i]);
}

/* The kernel reports the gap, in its place in time. */
static void host_lost(struct host *h, bool map)
{
	struct record r;

	host_wrong(h);
	memset(&r, 0, sizeof(r));
	h->now += BORN_APART;
	if (map) {
		r.me.kind = PM_MAP_LOST;
		r.me.time = r.me.end = h->now;
		must(pm_map_event(h->pm, &r.me) == 0);
	} else {
		r.ev.events = QUARK_EV_GAP;
		r.ev.boottime = h->now;
		must(pm_event(h->pm, &r.ev) == 0);
	}
}

enum {
	FATE_NEVER = 12,
	FATE_LATE,
	FATE_TWICE,
	FATES
};

static void host_tell(struct host *h, const struct record *rec)
{
	uint8_t fate = h->lossy || h->unruly ? host_byte(h) % FATES : 0;

	if (fate == FATE_NEVER && h->lossy) {
		host_lost(h, rec->map);
		return;
	}
	if (fate > FATE_NEVER && h->unruly) {
		host_wrong(h);
		h->blurred = true;
		if (fate == FATE_LATE) {
			host_hold(h, rec);
			return;
		}
		/* An exec has one COMM record, or none. */
		if (rec->ev.events || rec->me.kind != PM_MAP_EXEC)
			host_give(h, rec);
	}
	host_give(h, rec);
}

static struct abi_key host_key(const struct task *t)
{
	return (struct abi_key){ t->start, t->exec_id, t->pid, 0 };
}

static struct quark_process host_process(const struct task *t)
{
	struct quark_process qp;

	memset(&qp, 0, sizeof(qp));
	qp.pid = qp.key.pid = t->pid;
	qp.key.start_boottime = t->start;
	qp.key.exec_id = t->exec_id;
	qp.parent_key.pid = t->parent_start ? t->ppid : 0;
	qp.parent_key.start_boottime = t->parent_start;
	qp.parent_key.exec_id = t->parent_exec_id;
	qp.proc_ppid = t->ppid;
	qp.exe = (char *)files[t->exe].path;
	qp.cmdline = (char *)host_args[t->args].text;
	qp.cmdline_len = host_args[t->args].len;
	qp.cwd = (char *)"/";
	qp.cgroup = (char *)"/a.slice";
	qp.wait_status = t->status;
	if (t->exit) {
		qp.flags = QUARK_F_EXIT;
		qp.exit_boottime = t->exit;
	}
	snprintf(qp.comm, sizeof(qp.comm), "%s", host_names[t->name]);
	return qp;
}

static void host_life(struct host *h, const struct task *t, uint64_t kind,
		      uint64_t clone_flags, const struct task *origin)
{
	struct record r;

	memset(&r, 0, sizeof(r));
	h->now += BORN_APART;
	r.qp = host_process(t);
	r.ev.events = kind;
	r.ev.boottime = h->now;
	r.ev.clone_flags = clone_flags;
	r.ev.group_dead = kind == QUARK_EV_EXIT;
	r.ev.cpu_exact = kind == QUARK_EV_REAP;
	r.ev.cpu_time = 1000 + t->pid;
	if (origin) {
		r.ev.fork_key.pid = origin->pid;
		r.ev.fork_key.start_boottime = origin->start;
		r.ev.fork_key.exec_id = origin->exec_id;
	}
	host_tell(h, &r);
}

static struct pm_map_event host_map(const struct task *t, uint64_t time,
				    size_t page, size_t pages,
				    const struct page *what, bool of_proc)
{
	const struct file *f = &files[what->file - 1];
	struct pm_map_event me;

	memset(&me, 0, sizeof(me));
	me.kind = PM_MAP_MMAP;
	me.time = time;
	me.tgid = me.tid = t->pid;
	me.start = (1 + page) * PAGE;
	me.end = me.start + pages * PAGE;
	me.pgoff = what->at * PAGE;
	me.path = f->path;
	if (f->told && !of_proc) {
		me.build_id[0] = f->build_id;
		me.build_id_len = SYMBOLIZER_BUILD_ID_MAX;
	} else {
		me.dev = 1;
		me.ino = f->ino;
		me.ino_generation = of_proc ? 0 : f->ino;
	}
	return me;
}

/* Maps it, and sends the record. */
static void host_mmap(struct host *h, struct task *t, size_t page, size_t pages,
		      struct page what)
{
	struct record r;
	size_t i;

	memset(&r, 0, sizeof(r));
	r.map = true;
	h->now += BORN_APART;
	r.me = host_map(t, h->now, page, pages, &what, false);
	for (i = 0; i < pages; i++) {
		t->mm->page[page + i] = what;
		t->mm->page[page + i].at += i;
	}
	host_tell(h, &r);
}

static void host_comm(struct host *h, const struct task *t)
{
	struct record r;

	memset(&r, 0, sizeof(r));
	r.map = true;
	h->now += BORN_APART;
	r.me.kind = PM_MAP_EXEC;
	r.me.time = h->now;
	r.me.tgid = r.me.tid = t->pid;
	host_tell(h, &r);
}

/* As /proc has it now. Free with pm_maps_fini(). */
static void host_proc_maps(struct host *h, const struct task *t,
			   struct pm_maps *m)
{
	size_t i, n;

	memset(m, 0, sizeof(*m));
	m->tgid = t->pid;
	h->now += BORN_APART;
	m->begin = h->now;
	h->now += BORN_APART;
	m->end = h->now;
	m->maps = __real_calloc(PAGES, sizeof(*m->maps));
	must(m->maps);
	for (i = 0; i < PAGES; i += n) {
		const struct page *p = &t->mm->page[i];

		for (n = 1; i + n < PAGES && p->file; n++)
			if (p[n].file != p->file || p[n].at != p->at + n)
				break;
		if (p->file)
			m->maps[m->n++] = host_map(t, m->begin, i, n, p, true);
	}
}

#endif /* TESTS_FUZZ_PROCESSMANAGER_PM_HOST_H */
