// SPDX-License-Identifier: Apache-2.0
/*
 * process: the ledger's line of a process, and the table read line by line.
 * What the kernel says at exit and reap is kept as it came; of one that lives
 * the kernel is asked, by its CPU clock, which counts all threads in ns.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "processmanager/internal.h"

/* 'base' is a constant wherever this is: no division is left of it. */
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

/* Asked for at each sample: a tenth of what snprintf() takes. */
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
	if (!proc->exit_told)
		return PM_VANISHED;
	return proc->reaped ? PM_REAPED : PM_EXITED;
}

/* Of /proc/PID/stat, see proc_pid_stat(5); times in clock ticks. */
struct pm_stat {
	uint32_t pgid, sid;
	uint64_t user, system, start;
};

/* The name in parentheses may hold anything; it ends with the last of them. */
static bool pm_stat_parse(const char *text, struct pm_stat *out)
{
	const char *p = strrchr(text, ')');

	return p && sscanf(p,
			   ") %*c %*d %" SCNu32 " %" SCNu32
			   " %*d %*d %*u %*u %*u %*u %*u %" SCNu64 " %" SCNu64
			   " %*d %*d %*d %*d %*d %*d %" SCNu64,
			   &out->pgid, &out->sid, &out->user, &out->system,
			   &out->start) == 5;
}

/* False also when it is another process by now that has the pid. */
static bool pm_stat_read(const struct pm_proc *proc, struct pm_stat *out)
{
	uint64_t tick = CLOCK_NSEC_PER_SEC / sysconf(_SC_CLK_TCK);
	char text[1024];

	return procfs_text(proc->tgid, "stat", text, sizeof(text)) &&
	       pm_stat_parse(text, out) &&
	       out->start == proc->start_boottime / tick;
}

bool pm_process_there(const struct pm_proc *proc)
{
	struct pm_stat t;

	return pm_stat_read(proc, &t);
}

/*
 * The clock of a pid is that of whoever has it now. That it was still the same
 * process is told by its start, read after it.
 */
static void pm_process_cpu_now(const struct pm_proc *proc,
			       struct pm_process_info *out)
{
	struct pm_stat t;
	struct timespec ts;
	clockid_t clock;

	if (clock_getcpuclockid(proc->tgid, &clock) ||
	    clock_gettime(clock, &ts) || !pm_stat_read(proc, &t))
		return;
	out->cpu = PM_CPU_NOW;
	out->cpu_ns = ts.tv_sec * CLOCK_NSEC_PER_SEC + ts.tv_nsec;
	/* As the kernel has it: without a tick all is user time. */
	if (t.system)
		out->system_ns =
			(double)out->cpu_ns * t.system / (t.user + t.system);
	out->user_ns = out->cpu_ns - out->system_ns;
}

/* Below a root of its own it would be another path than the kernel's. */
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

void pm_process_ask(struct pm *pm, struct pm_image *img)
{
	char status[2048], cwd[ABI_QUARK_PATH_MAX];
	struct pm_proc *proc = img->proc;
	bool has_cwd, cut = false;
	struct pm_stat t;
	char *ids;

	if (proc->exited || img->kthread || img != proc->images ||
	    !procfs_text(proc->tgid, "status", status, sizeof(status)))
		return;
	has_cwd = pm_cwd_read(proc->tgid, cwd, sizeof(cwd));
	if (!pm_stat_read(proc, &t))
		return;
	proc->pgid = t.pgid;
	proc->sid = t.sid;
	/* Control characters of the name above it are escaped. */
	ids = strstr(status, "\nUid:\t");
	if (ids)
		sscanf(ids, "\nUid:\t%u %*u %*u %*u\nGid:\t%u", &img->uid,
		       &img->gid);
	if (has_cwd)
		pm_str_set_of(pm, &img->cwd, img->uid, cwd, strlen(cwd), 0,
			      &cut);
}

void pm_process_info(const struct pm_image *img, struct pm_process_info *out)
{
	const struct pm_proc *proc = img->proc;

	memset(out, 0, sizeof(*out));
	out->pid = proc->tgid;
	out->ppid = img->ppid;
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
	if (out->end == PM_ALIVE)
		pm_process_cpu_now(proc, out);
}

void pm_iter_init(struct pm_iter *it, struct pm *pm, bool all)
{
	it->pm = pm;
	it->bucket = 0;
	it->next = pm->procs.buckets[0];
	it->all = all;
}

struct pm_image *pm_iter_next(struct pm_iter *it)
{
	struct hash_node *n;
	struct pm_proc *proc;

	for (;;) {
		n = it->next;
		if (!n) {
			if (it->bucket >= it->pm->procs.mask)
				return NULL;
			it->next = it->pm->procs.buckets[++it->bucket];
			continue;
		}
		it->next = n->next;
		proc = container_of(n, struct pm_proc, node);
		if (it->all || !proc->exited)
			return proc->images;
	}
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
