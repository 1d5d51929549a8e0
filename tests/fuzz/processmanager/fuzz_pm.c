// SPDX-License-Identifier: Apache-2.0
/*
 * Fuzz target: a simulated host sends records to a process manager. Each byte
 * of the input is an event there, or a query. While all records arrive, the
 * manager's answers are exactly those of the host; when records were dropped,
 * came late or twice, or memory ran out, it stays consistent, and is right
 * again after a rescan of the host and the re-reads that it requests. The first
 * byte selects which of this may happen.
 */
#include <sched.h>

#include "tests/fuzz/processmanager/pm_check.h"
#include "tests/fuzz/processmanager/pm_host.h"

/* The first byte. */
#define MODE_LOSSY 1
#define MODE_POOR 2
#define MODE_FILES 0x1c /* how many may be open, less one */
#define MODE_UNRULY 64

#define SAMPLES 4
#define SECOND CLOCK_NSEC_PER_SEC

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A sample that waits: its image must stay, and its view as it is. */
struct sample {
	struct pm_image *img;
	struct pm_view *view;
	uint64_t time, serial;
	bool exact; /* nothing was wrong when it was taken */
	struct page page[PAGES];
};

static struct host host;
static struct sample samples[SAMPLES];
static struct pm_exe *kept; /* an executable with a reference of ours */
static uint64_t asked, answered;
static struct abi_key ended[64];
static size_t n_ended;

/* --- callbacks of the manager --------------------------------------------- */

static struct task *task_of(uint32_t pid, uint64_t start)
{
	size_t i;

	for (i = 0; i < TASKS; i++)
		if (host.tasks[i].state && host.tasks[i].pid == pid &&
		    (!start || host.tasks[i].start == start))
			return &host.tasks[i];
	return NULL;
}

static void on_want(void *arg, const struct pm_want *want)
{
	struct task *t = task_of(want->key.tgid, want->key.start_boottime);

	if (t && t->state == TASK_ALIVE)
		t->want = true;
}

/* Each process is reported once. */
static void on_ended(void *arg, const struct pm_image *last)
{
	struct pm_image_info info;
	struct pm_process_info p;
	size_t i;

	pm_image_info(last, &info);
	pm_process_info(last, &p);
	must(info.exited && p.end != PM_ALIVE);
	for (i = 0; !host.ever_wrong && i < ARRAY_SIZE(ended); i++)
		must(ended[i].tgid != info.key.tgid ||
		     ended[i].start_boottime != info.key.start_boottime);
	ended[n_ended++ % ARRAY_SIZE(ended)] = info.key;
}

/* --- queries -------------------------------------------------------------- */

static enum file_class class_of(const struct pm_exe *exe)
{
	struct pm_exe_info info;

	pm_exe_info(exe, &info);
	switch (info.kind) {
	case PM_EXE_ANON:
		return CLASS_ANON;
	case PM_EXE_VDSO:
		return CLASS_VDSO;
	case PM_EXE_FILE:
		must(file_of(info.path));
		return file_of(info.path)->class;
	default:
		abort();
	}
}

/* The result for a page is the host's. */
static bool is_right(const struct page *p, size_t page, enum pm_find found,
		     const struct pm_mapping *m)
{
	uint64_t addr = (1 + page) * PAGE;
	enum file_class class;

	if (found != PM_FOUND)
		return false;
	must(m->start <= addr && addr < m->end);
	class = class_of(m->exe);
	if (class != files[p->file - 1].class)
		return false;
	if (class == CLASS_ANON)
		return m->pgoff == m->start;
	return m->pgoff + (addr - m->start) == p->at * PAGE;
}

/*
 * A zombie cannot be read; and which process shares memory is reported once,
 * when it is forked. If that record was dropped, what one of the two maps is
 * recorded for that one only, and a child that the other forks lacks it.
 */
static bool is_sure(const struct task *t)
{
	return !host.ever_wrong ||
	       (t->state == TASK_ALIVE && !t->mm->lent && !t->mm->copied);
}

/*
 * Everything mapped is found. What is not mapped any more may be found, but
 * the result is never another file, unless records came in disorder.
 */
static bool image_is_right(struct pm_image *img, const struct task *t)
{
	const struct page *page = t->mm->page;
	bool right = true, here;
	struct pm_mapping m;
	enum pm_find found;
	size_t i;

	for (i = 0; i < PAGES; i++) {
		found = pm_image_find(host.pm, img, host.now,
				      (1 + i) * PAGE + 8, &m);
		if (!page[i].file)
			continue;
		here = is_right(&page[i], i, found, &m);
		must(here || found != PM_FOUND || host.blurred || !is_sure(t));
		right = right && here;
	}
	return right;
}

static bool has_strings(const struct pm_image_info *info, const struct task *t)
{
	return info->exe && !strcmp(info->exe, files[t->exe].path) &&
	       !strcmp(info->comm, host_names[t->name]) && info->cmdline &&
	       info->cmdline_len == host_args[t->args].len &&
	       !memcmp(info->cmdline, host_args[t->args].text,
		       info->cmdline_len);
}

static bool is_described(const struct pm_image *img, const struct task *t)
{
	struct pm_image_info info;
	struct pm_process_info p;

	pm_image_info(img, &info);
	pm_process_info(img, &p);
	must(info.key.tgid == t->pid && info.key.start_boottime == t->start &&
	     info.key.exec_id == t->exec_id && p.pid == t->pid);
	return !info.provisional && has_strings(&info, t) &&
	       info.ppid == t->ppid &&
	       (t->state == TASK_ALIVE) == (p.end == PM_ALIVE) &&
	       (p.end != PM_EXITED || p.wait_status == t->status);
}

static struct pm_image *image_of(const struct task *t)
{
	struct abi_key key = host_key(t);

	host.now += BORN_APART;
	return pm_image_get(host.pm, &key, host.now);
}

/* A zombie that is never reaped is forgotten in the end. */
static bool may_run(const struct task *t)
{
	return t->state == TASK_ALIVE ||
	       (t->state == TASK_ZOMBIE && host.now - t->exit < 5 * SECOND);
}

static struct sample *sample_free(void)
{
	size_t i;

	for (i = 0; i < SAMPLES; i++)
		if (!samples[i].img)
			return &samples[i];
	return NULL;
}

static void sample_keep(struct pm_image *img, const struct task *t)
{
	struct sample *s = sample_free();
	struct pm_image_info info;

	if (!s)
		return;
	pm_image_info(img, &info);
	s->img = img;
	s->time = host.now;
	s->serial = info.serial;
	s->exact = !host.wrong && is_sure(t);
	s->view = pm_view_new(host.pm, img, host.now);
	must(s->view);
	memcpy(s->page, t->mm->page, sizeof(s->page));
}

static void count_map(void *arg, const struct pm_mapping *map)
{
	uint64_t *end = arg;

	must(map->start < map->end && map->start >= *end && map->exe);
	*end = map->end;
}

static void sample_done(struct sample *s)
{
	struct pm_image_info info;
	struct pm_mapping m;
	enum pm_find found;
	uint64_t end = 0;
	size_t i;

	if (!s->img)
		return;
	pm_image_info(s->img, &info);
	must(info.serial == s->serial);
	for (i = 0; i < PAGES; i++) {
		found = pm_view_find(s->view, (1 + i) * PAGE + 8, &m);
		if (s->exact && s->page[i].file)
			must(is_right(&s->page[i], i, found, &m));
	}
	pm_view_each(s->view, count_map, &end);
	pm_view_free(s->view);
	s->img = NULL;
}

static void sample(struct task *t, bool keep)
{
	struct pm_image *img;
	bool right;

	if (!may_run(t))
		return;
	img = image_of(t);
	must(img);
	pm_image_sampled(img);
	t->samples++;
	right = is_described(img, t);
	right = image_is_right(img, t) && right;
	must(right || host.wrong || !is_sure(t));
	if (keep)
		sample_keep(img, t);
}

static void on_names(void *arg, int err, void *const *tags,
		     const struct symbolizer_symbol *syms, size_t n)
{
	must(n && (err || syms));
	answered += n;
}

static void on_rows(void *arg, int err, struct symbolizer_rows *rows)
{
	must(!err == (rows != NULL));
	symbolizer_rows_free(rows);
	answered++;
}

static void ask_exe(const struct task *t, uint8_t how)
{
	struct pm_mapping m;
	struct pm_image *img;

	if (!may_run(t))
		return;
	img = image_of(t);
	must(img);
	if (pm_image_find(host.pm, img, host.now, (1 + how % PAGES) * PAGE, &m))
		return;
	if (how & 0x80) {
		pm_exe_put(kept);
		kept = pm_exe_get(m.exe);
	}
	asked += how & 0x40 ? !pm_exe_rows(m.exe, on_rows, NULL)
			    : !pm_exe_name(m.exe, 0x10, NULL, on_names, NULL);
	if (!(how & 0x20)) /* else it goes with others */
		pm_names_send(host.pm);
}

/* --- events --------------------------------------------------------------- */

static struct task *task_free(uint32_t *pid)
{
	struct task *t = NULL;
	uint32_t p;
	size_t i;

	for (i = 0; i < TASKS && !t; i++)
		if (!host.tasks[i].state)
			t = &host.tasks[i];
	for (p = 1; p <= PIDS && task_of(p, 0); p++)
		;
	*pid = p;
	return p <= PIDS ? t : NULL;
}

static void do_fork(struct task *of, uint8_t how)
{
	uint64_t flags = how & 1 ? CLONE_VM : 0;
	struct task *t;
	uint32_t pid;

	if (how & 2) {
		host_life(&host, of, QUARK_EV_FORK, CLONE_VM | CLONE_THREAD,
			  of);
		return;
	}
	t = task_free(&pid);
	if (!t)
		return;
	*t = *of;
	t->pid = pid;
	t->start = host.now + 1;
	t->samples = 0;
	t->want = false;
	if (how & 4 && of->parent_start) {
		flags |= CLONE_PARENT;
	} else {
		t->ppid = of->pid;
		t->parent_start = of->start;
		t->parent_exec_id = of->exec_id;
	}
	if (flags & CLONE_VM) {
		t->mm->refs++;
		t->mm->lent = true;
	} else {
		t->mm = mm_new();
		t->mm->copied = of->mm->lent || of->mm->copied;
		memcpy(t->mm->page, of->mm->page, sizeof(t->mm->page));
	}
	host.forks++;
	host_life(&host, t, QUARK_EV_FORK, flags, of);
}

/* The COMM record, the mappings, perhaps a sample, the event. */
static void do_exec(struct task *t, uint8_t how)
{
	struct abi_key key;
	struct pm_image *img;
	uint8_t exe = how % FILE_EXES;

	mm_put(t->mm);
	t->mm = mm_new();
	host_comm(&host, t);
	t->exec_id++;
	t->exe = exe;
	t->name = (how >> 2) % ARRAY_SIZE(host_names);
	t->args = (how >> 3) % ARRAY_SIZE(host_args);
	host_mmap(&host, t, exe, 2, (struct page){ exe + 1, 0 });
	host_mmap(&host, t, PAGE_VDSO, 1, (struct page){ FILE_VDSO + 1, 0 });
	if (how & 2)
		host_mmap(&host, t, 6, 2, (struct page){ 3 + how % 4, 1 });
	if (how & 0x40) {
		host.now += BORN_APART;
		key = host_key(t);
		img = pm_image_get(host.pm, &key, host.now);
		must(img);
		pm_image_sampled(img);
		t->samples++;
		if (!host.wrong)
			must(pm_image_provisional(img) &&
			     image_is_right(img, t));
	}
	host.execs++;
	host_life(&host, t, QUARK_EV_EXEC, 0, NULL);
}

static void do_mmap(struct task *t, uint8_t how, uint8_t where)
{
	struct page what = { 1 + how % FILE_VDSO, how >> 4 };
	size_t page = where % PAGE_VDSO, pages = 1 + (where >> 4) % 4;

	if (page + pages > PAGE_VDSO)
		pages = PAGE_VDSO - page;
	if (how == 0xff) /* the kernel does not report unmapping */
		memset(&t->mm->page[page], 0, pages * sizeof(what));
	else
		host_mmap(&host, t, page, pages, what);
}

static void do_rename(struct task *t, uint8_t how)
{
	t->name = how % ARRAY_SIZE(host_names);
	host_life(&host, t, QUARK_EV_SETPROCTITLE, 0, NULL);
}

static void do_exit(struct task *t, uint8_t how)
{
	if (t->pid == 1)
		return;
	t->state = TASK_ZOMBIE;
	t->status = how << 8;
	t->exit = host.now + BORN_APART;
	host.exits++;
	host_life(&host, t, QUARK_EV_EXIT, 0, NULL);
}

static void do_reap(struct task *t)
{
	if (t->state != TASK_ZOMBIE)
		return;
	host.reaps++;
	host_life(&host, t, QUARK_EV_REAP, 0, NULL);
	mm_put(t->mm);
	t->mm = NULL;
	host.dead[host.n_dead++ % DEAD] = *t;
	memset(t, 0, sizeof(*t));
}

static uint64_t oldest_sample(void)
{
	uint64_t least = host.now;
	size_t i;

	for (i = 0; i < SAMPLES; i++)
		if (samples[i].img)
			least = MIN(least, samples[i].time);
	return least;
}

static void do_time(uint8_t how)
{
	size_t i;

	host.now += how & 1 ? SECOND * (how >> 4) : 1000;
	if (how & 2) /* nothing waits longer than that */
		for (i = 0; i < SAMPLES; i++)
			sample_done(&samples[i]);
	pm_forget(host.pm, oldest_sample());
}

/* Records so late that their process is forgotten. */
static void do_ghost(uint8_t how)
{
	const struct task *t = &host.dead[(how >> 1) % DEAD];
	struct abi_key key = host_key(t);

	if (!host.unruly || !t->pid)
		return;
	host_wrong(&host);
	host.blurred = true;
	if (how & 1)
		host_life(&host, t, QUARK_EV_SETPROCTITLE, 0, NULL);
	else
		must(pm_image_get(host.pm, &key, host.now));
}

/* --- scans ---------------------------------------------------------------- */

static void walk_one(const struct task *t, bool gone)
{
	struct quark_process qp = host_process(t);

	/* libquark detected it by its own scan, just before. */
	if (gone)
		qp.exit_boottime = host.now;
	must(pm_scan_process(host.pm, &qp, host.now) == 0);
}

/* All processes, as libquark has them, which may not know of one yet. */
static void walk_all(const struct task *unknown)
{
	size_t i;

	host.now += BORN_APART;
	pm_rescan_begin(host.pm, host.now);
	for (i = 0; i < DEAD; i++)
		if (host.dead[i].pid)
			walk_one(&host.dead[i], true);
	for (i = 0; i < TASKS; i++)
		if (host.tasks[i].state && &host.tasks[i] != unknown)
			walk_one(&host.tasks[i], false);
	pm_rescan_end(host.pm);
}

static void do_walk(struct task *t, uint8_t how)
{
	if (!host.lossy || !(how & 1)) {
		walk_all(NULL);
		return;
	}
	/* Mappings made while it is taken for ended are lost. */
	host_wrong(&host);
	host.blurred = true;
	walk_all(t);
}

/* Re-reads that the manager requested. */
static void read_maps(void)
{
	struct pm_maps m;
	struct task *t;
	size_t i;
	int err;

	for (i = 0; i < TASKS; i++) {
		t = &host.tasks[i];
		if (t->state != TASK_ALIVE || !t->want)
			continue;
		t->want = false;
		host_proc_maps(&host, t, &m);
		err = pm_scan_maps(host.pm, &m);
		must(!err || (host.wrong && err == -ESRCH));
		pm_maps_fini(&m);
	}
}

/* The living processes are exactly those that have a line. */
static void compare_living(void)
{
	struct pm_image_info info;
	struct pm_process_info p;
	struct pm_image *img;
	struct pm_iter it;
	size_t n = 0, i;

	pm_iter_init(&it, host.pm, false);
	while ((img = pm_iter_next(&it))) {
		pm_image_info(img, &info);
		pm_process_info(img, &p);
		must(p.end == PM_ALIVE);
		must(task_of(info.key.tgid, info.key.start_boottime));
		n += task_of(info.key.tgid, info.key.start_boottime)->state ==
		     TASK_ALIVE;
	}
	for (i = 0; i < TASKS; i++)
		n -= host.tasks[i].state == TASK_ALIVE;
	must(!n);
}

/* What the program does after a gap. Then answers are right, or PM_LOST. */
static void repair(void)
{
	struct pm_image *img;
	struct task *t;
	size_t i;
	int round;

	for (i = 0; i < HELD; i++)
		host_late(&host, i);
	host_lost(&host, true);
	host_lost(&host, false);
	walk_all(NULL);
	for (round = 0; round < 2; round++) {
		for (i = 0; i < TASKS; i++) {
			t = &host.tasks[i];
			if (t->state != TASK_ALIVE)
				continue;
			img = image_of(t);
			must(img);
			image_is_right(img, t);
		}
		read_maps();
		host.now += SECOND;
	}
	for (i = 0; i < TASKS; i++) {
		t = &host.tasks[i];
		if (t->state != TASK_ALIVE)
			continue;
		img = image_of(t);
		must(is_described(img, t));
		must(image_is_right(img, t));
		t->mm->copied = false;
	}
	compare_living();
	host.wrong = host.blurred = false;
}

/* --- one input ------------------------------------------------------------ */

static void begin(const uint8_t *data, size_t size)
{
	struct pm_opts opts = { .symbolizer = &symbolizer,
				.want_maps = on_want,
				.ended = on_ended };
	struct quark_process qp;
	struct task *t;
	uint8_t mode;

	memset(&host, 0, sizeof(host));
	memset(&symbolizer, 0, sizeof(symbolizer));
	symbolizer.last = &symbolizer.first;
	memset(ended, 0, sizeof(ended));
	memory.left = 0;
	asked = answered = n_ended = 0;
	kept = NULL;
	host.in = data;
	host.end = data + size;
	mode = host_byte(&host);
	host.lossy = mode & MODE_LOSSY;
	host.poor = mode & MODE_POOR;
	host.unruly = mode & MODE_UNRULY;
	opts.open_files = 1 + (mode & MODE_FILES) / 4;
	must(pm_new(&host.pm, &opts) == 0);
	host.now = SECOND;
	t = &host.tasks[0];
	t->state = TASK_ALIVE;
	t->pid = 1;
	t->start = 1;
	t->mm = mm_new();
	t->mm->page[0].file = 1;
	t->mm->page[5].file = 3;
	qp = host_process(t);
	must(pm_scan_process(host.pm, &qp, host.now) == 0);
	t->want = true;
	read_maps();
	pm_begin(host.pm, host.now);
}

static void check_stats(void)
{
	struct pm_stats s;

	pm_get_stats(host.pm, &s);
	must(s.forks == host.forks && s.execs == host.execs &&
	     s.exits == host.exits && s.reaps == host.reaps);
	must(!s.unknown && !s.found && !s.vanished && !s.nomem);
	must(!s.maps_unbound && !s.maps_lost && s.scanned == 1);
}

static void check_all(void)
{
	size_t i, views = 0;

	for (i = 0; i < SAMPLES; i++)
		views += samples[i].img != NULL;
	check_pm(host.pm, !views && !kept);
	if (!host.ever_wrong)
		check_stats();
	if (!host.wrong)
		compare_living();
}

static void end(void)
{
	size_t i;

	if (host.wrong)
		repair();
	check_all();
	for (i = 0; i < SAMPLES; i++)
		sample_done(&samples[i]);
	pm_exe_put(kept);
	pm_free(host.pm);
	while (symbolizer.n)
		symbolizer_answer(-ECANCELED);
	must(!symbolizer.held);
	must(asked == answered);
	for (i = 0; i < TASKS; i++)
		mm_put(host.tasks[i].mm);
}

static const int open_errors[] = { 0,	    0,	     0,	      0,
				   -ENOENT, -EMFILE, -ENOMEM, -ENOEXEC };

static void host_step(uint8_t what, struct task *t)
{
	uint8_t how = host_byte(&host);

	switch (what % 16) {
	case 0:
		do_fork(t, how);
		break;
	case 1:
		do_exec(t, how);
		break;
	case 2:
	case 3:
		do_mmap(t, how, host_byte(&host));
		break;
	case 4:
		do_rename(t, how);
		break;
	case 5:
		do_exit(t, how);
		break;
	case 6:
	case 7:
		sample(t, how & 1);
		break;
	case 8:
		sample_done(&samples[how % SAMPLES]);
		break;
	case 9:
		do_time(how);
		break;
	case 10:
		read_maps();
		break;
	case 11:
		do_walk(t, how);
		break;
	case 12:
		symbolizer_answer(open_errors[how % ARRAY_SIZE(open_errors)]);
		break;
	case 13:
		ask_exe(t, how);
		break;
	case 14:
		host_late(&host, how % HELD);
		if (host.lossy && how & 8)
			host_lost(&host, how & 16);
		break;
	case 15:
		do_ghost(how);
		if (host.wrong)
			repair();
		break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct task *t;
	uint8_t what;
	size_t n = 0;

	begin(data, size);
	while (host.in < host.end) {
		what = host_byte(&host);
		t = &host.tasks[(what >> 4) % TASKS];
		if (t->state == TASK_ALIVE)
			host_step(what, t);
		else if (t->state == TASK_ZOMBIE && what & 1)
			do_reap(t);
		else if (t->state == TASK_ZOMBIE)
			sample(t, what & 2);
		if (!(++n % 16))
			check_all();
	}
	end();
	return 0;
}
