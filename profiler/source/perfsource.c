// SPDX-License-Identifier: Apache-2.0
/*
 * perfsource: see perfsource.h. The kernel's permissions decide what is sampled
 * (Documentation/admin-guide/perf-security.rst): the host with CAP_PERFMON or
 * kernel.perf_event_paranoid 0, both sides of the user's own tasks at 1, their
 * user code at 2. Each is tried, from the most to the least.
 *
 * Tasks that a task starts inherit its event, but an inherited event that
 * counts on all CPUs has no ring: hence one event for each CPU. Events of
 * further tasks write into the ring of the first one
 * (PERF_EVENT_IOC_SET_OUTPUT).
 *
 * A ring counts against kernel.perf_event_mlock_kb (516 KiB for each CPU and
 * user), and every sample takes the whole room of its stack copy there. So a
 * smaller ring has smaller copies.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/base.h"
#include "profiler/source/arch.h"
#include "profiler/source/perfsource.h"
#include "profiler/source/perfsource_proc.h"
#include "profiler/source/procstat.h"
#include "profiler/source/ringset.h"

#define STACK_COPY (16 << 10)
#define RINGS (16 << 20) /* of all CPUs together */
#define RING_MAX (8 << 20)
#define RING_MIN (64 << 10)
#define RING_RECORDS 8 /* fit into a ring at least */
/* More than a record has beside its stack: a path, a kernel stack. */
#define RECORD_BESIDES (8 << 10)

struct perf_cpu {
	struct ringset_cpu r;
	uint64_t counters[ABI_SAMPLER_COUNTER_MAX];
	uint32_t exited_pid, exited_tid; /* of the last EXIT */
	uint64_t busy_from, busy_now; /* ticks of /proc/stat */
	bool seen; /* 'busy_from' is of the begin of sampling */
};

struct perfsource {
	struct perfsource_opts opts;
	struct perfsource_stats stats;
	struct ringset rings;
	struct perf_cpu *cpus; /* of 'rings' */
	struct perf_cpu *draining;
	int tid; /* whose events are opened; -1: of the host */
	int *more; /* events of further tasks, which write into those rings */
	size_t nmore, more_cap;
	uint32_t *tids; /* that have events */
	size_t ntids, tids_cap;
	bool enabled, until_exec;
	uint64_t *busy; /* scratch */
};

static void fill_attr(const struct perfsource *s, struct perf_event_attr *attr)
{
	memset(attr, 0, sizeof(*attr));
	attr->size = sizeof(*attr);
	attr->type = PERF_TYPE_SOFTWARE;
	attr->config = PERF_COUNT_SW_CPU_CLOCK;
	attr->freq = 1;
	attr->read_format = s->stats.host ? PERFRING_READ_FORMAT : 0;
	attr->sample_freq = s->opts.freq_hz;
	attr->sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID |
			    PERF_SAMPLE_TIME | PERF_SAMPLE_CPU |
			    PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
	if (s->stats.kernel)
		attr->sample_type |= PERF_SAMPLE_CALLCHAIN;
	else
		attr->exclude_kernel = attr->exclude_hv = 1;
	attr->exclude_callchain_user = 1;
	attr->sample_regs_user = ARCH_PERF_REGS;
	attr->sample_stack_user = s->stats.stack_copy;
	attr->disabled = 1;
	attr->exclude_idle = 1;
	attr->inherit = !s->stats.host;
	attr->enable_on_exec = s->until_exec;
	attr->mmap = attr->mmap2 = 1;
	attr->comm = attr->comm_exec = 1;
	attr->task = 1;
	attr->sample_id_all = 1;
	attr->use_clockid = 1;
	attr->clockid = CLOCK_BOOTTIME;
	/* A timer drains; half a ring wakes the loop. */
	attr->watermark = 1;
	attr->wakeup_watermark = s->stats.ring_bytes / 2;
}

static int event_open(const struct perfsource *s, unsigned int cpu)
{
	struct perf_event_attr attr;

	fill_attr(s, &attr);
	return perfring_event(&attr, s->tid, cpu);
}

static void perfsource_cpu_close(void *arg, struct ringset_cpu *r)
{
	perfring_unmap(&r->ring);
	if (r->fd >= 0)
		close(r->fd);
	r->fd = -1;
}

/* The first event of a CPU brings the ring. */
static int perfsource_cpu_open(void *arg, unsigned int cpu, const char **what)
{
	struct perfsource *s = arg;
	struct ringset_cpu *r = &s->cpus[cpu].r;
	int err, fd = event_open(s, cpu);

	*what = "perf_event_open";
	if (fd < 0)
		return fd;
	r->fd = fd;
	*what = "ring of a perf event (kernel.perf_event_mlock_kb and "
		"RLIMIT_MEMLOCK are its limit)";
	err = perfring_map(&r->ring, fd, s->stats.ring_bytes, s->rings.record);
	if (err == -EPERM)
		err = -ENOBUFS;
	if (!err)
		err = perfring_watch(s->rings.epoll, fd);
	if (err)
		perfsource_cpu_close(s, r);
	else
		r->sure = r->ring.watermark;
	return err;
}

/* Further ones write into that ring. */
static int perfsource_cpu_add(void *arg, unsigned int cpu, const char **what)
{
	struct perfsource *s = arg;
	int fd, err;

	if (s->cpus[cpu].r.fd < 0)
		return perfsource_cpu_open(s, cpu, what);
	*what = "perf_event_open";
	err = VECTOR_ROOM(s->more, s->nmore, s->more_cap);
	if (err)
		return err;
	fd = event_open(s, cpu);
	if (fd < 0)
		return fd;
	s->more[s->nmore++] = fd;
	if (ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, s->cpus[cpu].r.fd))
		return -errno;
	return 0;
}

static int open_cpus(struct perfsource *s, int tid, const char **what)
{
	s->tid = tid;
	return ringset_online(s->rings.n, perfsource_cpu_add, s, what);
}

struct new_threads {
	struct perfsource *s;
	const char **what;
	size_t found;
};

static int open_thread(void *arg, uint32_t tid)
{
	struct new_threads *n = arg;
	struct perfsource *s = n->s;
	size_t i;
	int err;

	for (i = 0; i < s->ntids; i++)
		if (s->tids[i] == tid)
			return 0;
	err = VECTOR_ROOM(s->tids, s->ntids, s->tids_cap);
	if (!err)
		err = open_cpus(s, tid, n->what);
	if (err == -ESRCH) /* over meanwhile */
		return 0;
	if (err)
		return err;
	s->tids[s->ntids++] = tid;
	n->found++;
	return 0;
}

/*
 * A thread that begins meanwhile inherits the event of its creator, or the list
 * is read once more and has it.
 */
static int open_process(struct perfsource *s, uint32_t pid, const char **what)
{
	struct new_threads n = { s, what, 0 };
	char path[64];
	int err;

	snprintf(path, sizeof(path), "/proc/%u/task", pid);
	do {
		n.found = 0;
		*what = "threads of a process";
		err = procfs_numbers(path, open_thread, &n);
	} while (!err && n.found);
	return err == -ENOENT || err == -ESRCH ? 0 : err;
}

static int perfsource_open_all(struct perfsource *s, const char **what)
{
	size_t i;
	int err = 0;

	if (s->stats.host)
		return open_cpus(s, -1, what);
	for (i = 0; !err && i < s->opts.npids; i++)
		err = open_process(s, s->opts.pids[i], what);
	return err;
}

static void perfsource_close_all(struct perfsource *s)
{
	size_t i;

	while (s->nmore)
		close(s->more[--s->nmore]);
	s->ntids = 0;
	for (i = 0; i < s->rings.n; i++)
		perfsource_cpu_close(s, &s->cpus[i].r);
}

/* The largest rings that the user may have, and copies that fit into them. */
static int open_sized(struct perfsource *s, const char **what)
{
	size_t copy = s->opts.stack_copy ? s->opts.stack_copy : STACK_COPY;
	int err;

	copy = MIN(copy, PERFSOURCE_STACK_MAX) & ~(size_t)7;
	s->stats.ring_bytes = perfring_size(
		RING_MIN, (s->opts.rings_bytes ? s->opts.rings_bytes : RINGS) /
				  s->rings.n);
	s->stats.ring_bytes = MIN(s->stats.ring_bytes, RING_MAX);
	for (;;) {
		s->stats.stack_copy =
			MIN(copy, s->stats.ring_bytes / RING_RECORDS);
		err = perfsource_open_all(s, what);
		if (!err)
			return 0;
		perfsource_close_all(s);
		if (err == -ENOBUFS && s->stats.ring_bytes > RING_MIN)
			s->stats.ring_bytes /= 2;
		else
			return err;
	}
}

/* From the most to the least. */
static int open_scoped(struct perfsource *s, const char **what)
{
	static const struct {
		bool host, kernel;
	} scopes[] = { { true, true }, { false, true }, { false, false } };
	size_t i, n = s->opts.npids ? ARRAY_SIZE(scopes) : 1;
	int err = 0;

	for (i = 0; i < n; i++) {
		s->stats.host = scopes[i].host;
		s->stats.kernel = scopes[i].kernel;
		s->until_exec = s->opts.until_exec && !s->stats.host;
		err = open_sized(s, what);
		if (err != -EACCES && err != -EPERM)
			break;
	}
	return err;
}

/* --- on and off ----------------------------------------------------------- */

static int read_busy(struct perfsource *s)
{
	size_t i;
	int err = procstat_read("/proc/stat", s->busy, s->rings.n);

	for (i = 0; !err && i < s->rings.n; i++)
		s->cpus[i].busy_now = MAX(s->cpus[i].busy_now, s->busy[i]);
	return err;
}

static int switch_all(struct perfsource *s, unsigned long request)
{
	size_t i;
	int err = 0;

	for (i = 0; i < s->rings.n; i++)
		if (s->cpus[i].r.fd >= 0 && ioctl(s->cpus[i].r.fd, request, 0))
			err = -errno;
	for (i = 0; i < s->nmore; i++)
		if (ioctl(s->more[i], request, 0))
			err = -errno;
	return err;
}

int perfsource_enable(struct perfsource *s)
{
	size_t i;
	int err = s->stats.host ? read_busy(s) : 0;

	if (err)
		return err;
	for (i = 0; i < s->rings.n; i++) {
		s->cpus[i].busy_from = s->cpus[i].busy_now;
		s->cpus[i].seen = s->cpus[i].r.fd >= 0;
	}
	s->enabled = true;
	return s->until_exec ? 0 : switch_all(s, PERF_EVENT_IOC_ENABLE);
}

void perfsource_disable(struct perfsource *s)
{
	s->enabled = false;
	if (s->stats.host)
		read_busy(s);
	switch_all(s, PERF_EVENT_IOC_DISABLE);
}

/* --- records -------------------------------------------------------------- */

/* At its very end a thread has no pid: it is that of the last EXIT. */
static bool perfsource_set_owner(const struct perf_cpu *c,
				 struct perfsource_record *r)
{
	if (r->pid && r->pid != UINT32_MAX)
		return true;
	if (!r->pid || !c->exited_pid)
		return false; /* idle, or of another pid namespace */
	r->pid = c->exited_pid;
	r->tid = c->exited_tid;
	return true;
}

static void count_sample(struct perf_cpu *c, const struct perfsource_record *r)
{
	const struct perfsource_sample *s = &r->sample;

	c->counters[ABI_SAMPLER_TAKEN]++;
	if (!s->has_regs)
		return;
	if (s->stack_size == s->stack_room)
		c->counters[ABI_SAMPLER_STACK_CAP]++;
	else if (!s->stack_size)
		c->counters[ABI_SAMPLER_STACK_FAULT]++;
}

static void perf_lost(uint64_t from, struct perfsource_record *r, uint64_t to)
{
	r->kind = PERFSOURCE_LOST;
	r->time = from;
	r->map.kind = PM_MAP_LOST;
	r->map.time = from;
	r->map.end = MAX(to, from);
}

static void perfsource_lost(void *arg, uint64_t from, uint64_t to)
{
	struct perfsource_record r = { 0 };
	struct perfsource *s = arg;

	perf_lost(from, &r, to);
	s->opts.record(s->opts.arg, &r);
}

static void perfsource_on_record(void *arg, const void *rec, size_t len)
{
	struct perfsource *s = arg;
	struct perf_cpu *c = s->draining;
	struct perfsource_record r;

	c->counters[ABI_SAMPLER_BYTES] += len;
	if (perfsource_parse(rec, len, s->stats.kernel, &r)) {
		s->stats.bad++;
		return;
	}
	if (r.kind == PERFSOURCE_LOST)
		perf_lost(c->r.sure, &r, r.time);
	c->r.sure = MAX(c->r.sure, r.time);
	switch (r.kind) {
	case PERFSOURCE_OTHER:
		return;
	case PERFSOURCE_THROTTLE:
		s->stats.throttled++;
		return;
	case PERFSOURCE_LOST:
		s->stats.gaps++;
		c->counters[ABI_SAMPLER_RING_FULL] += r.lost;
		break;
	case PERFSOURCE_SAMPLE:
		if (!perfsource_set_owner(c, &r))
			return;
		count_sample(c, &r);
		break;
	case PERFSOURCE_EXIT:
		c->exited_pid = r.pid;
		c->exited_tid = r.tid;
		/* fall through */
	default:
		s->stats.records++;
	}
	s->opts.record(s->opts.arg, &r);
}

/*
 * The kernel reports a loss only before its next record in the same ring;
 * meanwhile records of other rings would be delivered. So a ring that was
 * nearly full counts as a loss of unknown size; the LOST record adds the number
 * later.
 */
static void perfsource_drain_cpu(void *arg, struct ringset_cpu *r)
{
	struct perfsource *s = arg;
	int n;

	s->draining = container_of(r, struct perf_cpu, r);
	n = perfring_drain(&r->ring, perfsource_on_record, s);
	if (n < 0)
		s->stats.bad++;
	if (n < 0 ||
	    r->ring.used + s->stats.stack_copy + RECORD_BESIDES > r->ring.bytes)
		perfsource_lost(s, r->sure, clock_boottime_ns());
	r->sure = MAX(r->sure, r->ring.watermark);
}

void perfsource_poll(struct perfsource *s)
{
	ringset_poll(&s->rings);
}

uint64_t perfsource_watermark(const struct perfsource *s)
{
	return ringset_watermark(&s->rings);
}

int perfsource_epoll_fd(const struct perfsource *s)
{
	return s->rings.epoll;
}

static int perfsource_cpu_came(void *arg, unsigned int cpu)
{
	struct perfsource *s = arg;
	struct perf_cpu *c = &s->cpus[cpu];

	if (s->enabled && ioctl(c->r.fd, PERF_EVENT_IOC_ENABLE, 0))
		return -errno;
	if (!c->seen)
		c->busy_from = s->busy[cpu];
	c->seen = true;
	s->stats.gaps++;
	return 0;
}

/* Events of tasks stay on the CPUs that were online at the start. */
int perfsource_hotplug(struct perfsource *s)
{
	int err = s->stats.host ? read_busy(s) : 0;

	return err || !s->stats.host ? err
				     : ringset_hotplug(&s->rings, s->enabled);
}

int perfsource_new(struct perfsource **sp, const struct perfsource_opts *opts,
		   const char **what)
{
	struct perfsource *s = calloc(1, sizeof(*s));
	int err;

	*what = "memory";
	if (!s)
		return -ENOMEM;
	s->opts = *opts;
	s->rings = (struct ringset){ .cpu_size = sizeof(*s->cpus),
				     .open = perfsource_cpu_open,
				     .came = perfsource_cpu_came,
				     .drain = perfsource_drain_cpu,
				     .close = perfsource_cpu_close,
				     .lost = perfsource_lost,
				     .arg = s };
	err = ringset_init(&s->rings, what);
	s->cpus = s->rings.cpus;
	if (!err) {
		s->busy = calloc(s->rings.n, sizeof(*s->busy));
		*what = "memory";
		err = s->busy ? open_scoped(s, what) : -ENOMEM;
	}
	if (err) {
		perfsource_free(s);
		return err;
	}
	*sp = s;
	return 0;
}

void perfsource_free(struct perfsource *s)
{
	if (!s)
		return;
	perfsource_close_all(s);
	ringset_fini(&s->rings);
	free(s->busy);
	free(s->tids);
	free(s->more);
	free(s);
}

void perfsource_count_exec(struct perfsource *s, unsigned int cpu)
{
	if (cpu < s->rings.n)
		s->cpus[cpu].counters[ABI_SAMPLER_EXEC]++;
}

void perfsource_get_stats(const struct perfsource *s,
			  struct perfsource_stats *out)
{
	*out = s->stats;
}

int perfsource_cpu_stats(struct perfsource *s, struct sampler_cpu_stats *out,
			 size_t n)
{
	size_t i;
	int err = n && s->stats.host && s->enabled ? read_busy(s) : 0;

	if (err)
		return err;
	for (i = 0; i < MIN(n, s->rings.n); i++) {
		const struct perf_cpu *c = &s->cpus[i];

		memcpy(out[i].counters, c->counters, sizeof(c->counters));
		out[i].cpu = i;
		out[i].online = c->r.fd >= 0;
		sampler_expect(&out[i], c->busy_now - c->busy_from,
			       s->opts.freq_hz);
	}
	return s->rings.n;
}
