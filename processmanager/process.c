// SPDX-License-Identifier: Apache-2.0
/*
 * process: the ledger's line of a process, and the iteration over all
 * processes. The figures of exit and reap are the events'; those of a living
 * process are read, the CPU time from its CPU clock, which counts all threads
 * in ns.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "processmanager/internal.h"

/* 'base' is a constant in each caller, so the compiler leaves no division. */
static inline char *pm_put_number(char *at, uint64_t v, unsigned int base)
{
	static const char digits[] = "0123456789abcdef";
	char text[20];
	int n = 0;

	do
		text[n++] = digits[v % base];
	while ((v /= base));
	while (n)
		*at++ = text[--n];
	*at = '\0';
	return at;
}

char *pm_put_decimal(char *at, uint64_t v)
{
	return pm_put_number(at, v, 10);
}

/* Called for each sample: takes a tenth of snprintf()'s time. */
char *pm_process_id(char *buf, uint32_t tgid, uint64_t start_boottime)
{
	buf = pm_put_decimal(buf, tgid);
	*buf++ = '-';
	return pm_put_number(buf, start_boottime, 16);
}

static enum pm_end pm_process_end(const struct pm_proc *proc)
{
	if (!proc->exited)
		return PM_ALIVE;
	if (!proc->exit_known)
		return PM_VANISHED;
	return proc->reaped ? PM_REAPED : PM_EXITED;
}

/* --- reading /proc -------------------------------------------------------- */

/* A process that did not answer is not read again for so long. */
#define PM_UNREAD_NS (60 * CLOCK_NSEC_PER_SEC)

/*
 * One reading, in memory of its own: /proc/PID takes locks that the process may
 * hold for as long as it wants, and then the reading is abandoned.
 */
struct pm_reading {
	struct patience_job job;
	uint32_t tgid;
	bool all; /* not only whether it exists */
	bool has_stat, has_cpu, has_ids, has_cwd; /* results: */
	struct procfs_stat stat;
	struct procfs_ids ids;
	uint64_t cpu_ns;
	char cwd[ABI_QUARK_PATH_MAX];
};

/* Below another root it would not be the path that kernel events have. */
static bool pm_cwd_read(uint32_t tgid, char *cwd, size_t size)
{
	char path[32], root[2];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%u/root", tgid);
	if (readlink(path, root, sizeof(root)) != 1)
		return false;
	snprintf(path, sizeof(path), "/proc/%u/cwd", tgid);
	n = readlink(path, cwd, size);
	if (n <= 0 || (size_t)n == size)
		return false;
	cwd[n] = '\0';
	return true;
}

static bool pm_cpu_read(struct pm_reading *r)
{
	struct timespec ts;
	clockid_t clock;

	if (clock_getcpuclockid(r->tgid, &clock) || clock_gettime(clock, &ts))
		return false;
	r->cpu_ns = ts.tv_sec * CLOCK_NSEC_PER_SEC + ts.tv_nsec;
	return true;
}

/* In the thread. Read last, the start proves that the pid was not reused. */
static void pm_reading_run(struct patience_job *job)
{
	struct pm_reading *r = container_of(job, struct pm_reading, job);
	char status[2048];

	if (r->all) {
		r->has_cpu = pm_cpu_read(r);
		r->has_ids = procfs_text(r->tgid, "status", status,
					 sizeof(status)) &&
			     procfs_ids_parse(status, &r->ids);
		r->has_cwd = pm_cwd_read(r->tgid, r->cwd, sizeof(r->cwd));
	}
	r->has_stat = procfs_stat(r->tgid, &r->stat);
}

static void pm_reading_release(struct patience_job *job)
{
	free(container_of(job, struct pm_reading, job));
}

/* To be freed with free(3); NULL: not known. */
static struct pm_reading *pm_read_proc(struct pm *pm, struct pm_proc *proc,
				       bool all)
{
	uint64_t now = clock_boottime_ns();
	struct pm_reading *r;
	size_t at;
	int err;

	r = now < proc->unread_until ? NULL : calloc(1, sizeof(*r));
	if (!r)
		return NULL;
	r->job.run = pm_reading_run;
	r->job.release = pm_reading_release;
	r->tgid = proc->tgid;
	r->all = all;
	err = patience_run(&pm->patience, &r->job, &at);
	if (!err)
		return r;
	pm->stats.unread++;
	if (err == -ETIMEDOUT)
		proc->unread_until = now + PM_UNREAD_NS;
	else
		free(r);
	return NULL;
}

/* False also if another process has the pid now. */
static bool pm_reading_of(const struct pm_reading *r,
			  const struct pm_proc *proc)
{
	return r->has_stat &&
	       r->stat.start == procfs_tick_of(proc->start_boottime);
}

bool pm_process_there(struct pm *pm, struct pm_proc *proc)
{
	struct pm_reading *r = pm_read_proc(pm, proc, false);
	bool there = !r || pm_reading_of(r, proc);

	free(r);
	return there;
}

static void pm_process_take(struct pm *pm, struct pm_image *img,
			    const struct pm_reading *r)
{
	bool cut = false;

	img->proc->pgid = r->stat.pgid;
	img->proc->sid = r->stat.sid;
	/* An orphan's; its parent at the fork is pm_proc.parent_tgid. */
	img->a.ppid = r->stat.ppid;
	if (r->has_ids) {
		img->a.uid = r->ids.uid;
		img->a.gid = r->ids.gid;
	}
	if (r->has_cwd)
		pm_str_set_of(pm, &img->a.cwd, img->a.uid, r->cwd,
			      strlen(r->cwd), 0, &cut);
}

static void pm_process_cpu_now(struct pm_proc *proc, const struct pm_reading *r)
{
	const struct procfs_stat *st = &r->stat;

	if (!r->has_cpu)
		return;
	proc->cpu = PM_CPU_NOW;
	proc->cpu_ns = r->cpu_ns;
	/* Like the kernel: without a tick of either, all is user time. */
	proc->system_ns = st->stime ? (double)r->cpu_ns * st->stime /
					      (st->utime + st->stime)
				    : 0;
	proc->user_ns = proc->cpu_ns - proc->system_ns;
}

void pm_process_ask(struct pm *pm, struct pm_image *img)
{
	struct pm_proc *proc = img->proc;
	struct pm_reading *r;

	if (proc->exited || img != proc->images)
		return;
	r = pm_read_proc(pm, proc, true);
	if (r && pm_reading_of(r, proc)) {
		if (!img->kthread)
			pm_process_take(pm, img, r);
		pm_process_cpu_now(proc, r);
	}
	free(r);
}

void pm_process_info(const struct pm_image *img, struct pm_process_info *out)
{
	const struct pm_proc *proc = img->proc;

	memset(out, 0, sizeof(*out));
	out->pid = proc->tgid;
	out->ppid = img->a.ppid;
	out->start = proc->start_boottime;
	out->exit = proc->exit_time;
	out->reap = proc->reap_time;
	out->end = pm_process_end(proc);
	pm_process_id(out->process_id, proc->tgid, proc->start_boottime);
	if (proc->parent_start)
		pm_process_id(out->parent_id, proc->parent_tgid,
			      proc->parent_start);
	out->before = proc->before;
	out->kthread = img->kthread;
	out->sid = proc->sid;
	out->pgid = proc->pgid;
	out->leader_type = proc->leader_type;
	out->leader = proc->leader;
	out->wait_status = proc->wait_status;
	out->cpu = proc->cpu;
	out->cpu_ns = proc->cpu_ns;
	out->user_ns = proc->user_ns;
	out->system_ns = proc->system_ns;
	out->maxrss = proc->maxrss;
	out->minflt = proc->minflt;
	out->majflt = proc->majflt;
	out->execs = proc->execs;
	out->samples = proc->samples;
}

void pm_iter_init(struct pm_iter *it, struct pm *pm, bool all)
{
	it->next = TAILQ_FIRST(&pm->all);
	it->all = all;
}

struct pm_image *pm_iter_next(struct pm_iter *it)
{
	struct pm_proc *proc;

	while ((proc = it->next)) {
		it->next = TAILQ_NEXT(proc, all);
		if (it->all || !proc->exited)
			return proc->images;
	}
	return NULL;
}

struct abi_key *pm_keys(struct pm *pm, bool all, size_t *np)
{
	struct abi_key *keys = calloc(pm->procs.count + 1, sizeof(*keys));
	struct pm_image *img;
	struct pm_iter it;

	*np = 0;
	if (!keys)
		return NULL;
	pm_iter_init(&it, pm, all);
	while ((img = pm_iter_next(&it)))
		keys[(*np)++] = (struct abi_key){
			.start_boottime = img->proc->start_boottime,
			.exec_id = img->exec_id,
			.tgid = img->proc->tgid,
		};
	return keys;
}

struct pm_image *pm_newest(struct pm *pm, const struct abi_key *key)
{
	struct pm_proc *proc = pm_proc_find(pm, key->tgid, key->start_boottime);

	return proc ? proc->images : NULL;
}

bool pm_image_is_under(const struct pm_image *img, uint32_t pid, uint64_t start)
{
	const struct pm_proc *proc = img->proc;

	while (proc &&
	       (proc->tgid != pid || (start && proc->start_boottime != start)))
		proc = proc->parent;
	return proc;
}
