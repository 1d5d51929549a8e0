// SPDX-License-Identifier: Apache-2.0
/*
 * perfsource: see perfsource.h. What the kernel allows decides how much is
 * seen (Documentation/admin-guide/perf-security.rst): the host with CAP_PERFMON
 * or kernel.perf_event_paranoid 0, the kernel's side of one's own tasks at 1,
 * their user code at 2. It is found by asking, from the most to the least.
 *
 * An event of a task is inherited by what that starts, but an inherited event
 * that counts on all CPUs has no ring: hence one a CPU. Further tasks write
 * into the ring of the first one (PERF_EVENT_IOC_SET_OUTPUT).
 *
 * A ring counts against kernel.perf_event_mlock_kb (516 KiB a CPU and user),
 * and every sample takes the whole room of its stack copy there. So where a
 * ring must be smaller the copies are, too.
 */
#include <dirent.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "base/perfring.h"
#include "profiler/source/perfsource.h"
#include "profiler/source/perfsource_proc.h"
#include "profiler/source/procstat.h"

#define STACK_COPY (16 << 10)
#define RINGS (16 << 20) /* of all CPUs together */
#define RING_MAX (8 << 20)
#define RING_MIN (64 << 10)
#define RING_RECORDS 8 /* fit into a ring at least */
/* More than a record has besides its stack: a path, a kernel stack. */
#define RECORD_BESIDES (8 << 10)

/* ax bx cx dx si di bp sp ip flags, r8..r15: asm/perf_regs.h of x86. */
#define REGS 0xff03ffULL

struct perf_cpu {
	int fd; /* of the event whose ring it is; -1: none */
	struct perfring ring;
	uint64_t sure; /* what was lost up to this time has been told */
	uint64_t counters[ABI_SAMPLER_COUNTER_MAX];
	uint32_t exited_pid, exited_tid; /* the last that did, here */
	uint64_t busy_from, busy_now; /* ticks of /proc/stat */
	bool seen; /* 'busy_from' is of when it began */
};

struct perfsource {
	struct perfsource_opts opts;
	struct perfsource_stats stats;
	struct perf_cpu *cpus;
	struct perf_cpu *draining;
	struct perfring_look looked; /* which CPUs there are, last */
	size_t ncpus;
	int *more; /* events of further tasks, which write into those rings */
	size_t nmore, more_cap;
	uint32_t *tids; /* that have events */
	size_t ntids, tids_cap;
	int epoll;
	bool enabled, until_exec;
	uint64_t *busy; /* scratch */
	char *record; /* one that wraps is put together here */
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
	attr->sample_regs_user = REGS;
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
	/* The loop reads by its own clock, and is woken when it must hurry. */
	attr->watermark = 1;
	attr->wakeup_watermark = s->stats.ring_bytes / 2;
}

static int event_open(struct perfsource *s, int tid, unsigned int cpu)
{
	struct perf_event_attr attr;

	fill_attr(s, &attr);
	return perfring_event(&attr, tid, cpu);
}

static void cpu_close(struct perf_cpu *c)
{
	perfring_unmap(&c->ring);
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
}

/* The first event of a CPU brings the ring. */
static int cpu_open(struct perfsource *s, int tid, unsigned int cpu,
		    const char **what)
{
	struct perf_cpu *c = &s->cpus[cpu];
	int err;

	*what = "perf_event_open";
	c->fd = event_open(s, tid, cpu);
	if (c->fd < 0) {
		err = c->fd;
		c->fd = -1;
		return err;
	}
	*what = "ring of a perf event (kernel.perf_event_mlock_kb and "
		"RLIMIT_MEMLOCK are its limit)";
	err = perfring_map(&c->ring, c->fd, s->stats.ring_bytes, s->record);
	if (err == -EPERM)
		err = -ENOBUFS;
	if (!err)
		err = perfring_watch(s->epoll, c->fd);
	if (err)
		cpu_close(c);
	else
		c->sure = c->ring.watermark;
	return err;
}

/* A further one writes into the ring that is there. */
static int cpu_add(struct perfsource *s, int tid, unsigned int cpu,
		   const char **what)
{
	int fd, err = VECTOR_ROOM(s->more, s->nmore, s->more_cap);

	*what = "perf_event_open";
	if (err)
		return err;
	fd = event_open(s, tid, cpu);
	if (fd < 0)
		return fd;
	s->more[s->nmore++] = fd;
	if (ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, s->cpus[cpu].fd))
		return -errno;
	return 0;
}

static int open_cpus(struct perfsource *s, int tid, const char **what)
{
	size_t i, open = 0;
	struct cpus online;
	int err;

	*what = "/sys/devices/system/cpu/online";
	err = cpus_online(&online);
	for (i = 0; !err && i < s->ncpus; i++) {
		if (!cpus_has(&online, i))
			continue;
		err = s->cpus[i].fd < 0 ? cpu_open(s, tid, i, what)
					: cpu_add(s, tid, i, what);
		if (err == -ENODEV) /* went meanwhile */
			err = 0;
		else
			open++;
	}
	cpus_fini(&online);
	return err ? err : open ? 0 : -ENODEV;
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
 * Threads that begin while the others are opened are inherited from those, or
 * found when looked for once more.
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
	for (i = 0; i < s->ncpus; i++)
		cpu_close(&s->cpus[i]);
}

/* As large a ring as the user may have, and copies that fit into it. */
static int open_sized(struct perfsource *s, const char **what)
{
	size_t copy = s->opts.stack_copy ? s->opts.stack_copy : STACK_COPY;
	int err;

	copy = MIN(copy, PERFSOURCE_STACK_MAX) & ~(size_t)7;
	s->stats.ring_bytes = perfring_size(
		RING_MIN,
		(s->opts.rings_bytes ? s->opts.rings_bytes : RINGS) / s->ncpus);
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

static int alloc_cpus(struct perfsource *s, const char **what)
{
	int n = cpus_number();

	*what = "/sys/devices/system/cpu/possible";
	if (n < 0)
		return n;
	*what = "memory";
	s->record = malloc(PERFRING_RECORD_MAX);
	s->cpus = calloc(n, sizeof(*s->cpus));
	s->busy = calloc(n, sizeof(*s->busy));
	if (!s->record || !s->cpus || !s->busy)
		return -ENOMEM;
	for (; s->ncpus < (size_t)n; s->ncpus++)
		s->cpus[s->ncpus].fd = -1;
	s->epoll = epoll_create1(EPOLL_CLOEXEC);
	return s->epoll < 0 ? -errno : 0;
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
	s->epoll = -1;
	s->looked = perfring_look();
	err = alloc_cpus(s, what);
	if (!err)
		err = open_scoped(s, what);
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
	if (s->epoll >= 0)
		close(s->epoll);
	free(s->busy);
	free(s->tids);
	free(s->more);
	free(s->cpus);
	free(s->record);
	free(s);
}

/* --- on and off ------------------------------------------------------------ */

static int read_busy(struct perfsource *s)
{
	size_t i;
	int err = procstat_read("/proc/stat", s->busy, s->ncpus);

	for (i = 0; !err && i < s->ncpus; i++)
		s->cpus[i].busy_now = MAX(s->cpus[i].busy_now, s->busy[i]);
	return err;
}

/* Of a task that is over meanwhile there is nothing to switch. */
static int switch_all(struct perfsource *s, unsigned long request)
{
	size_t i;
	int err = 0;

	for (i = 0; i < s->ncpus; i++)
		if (s->cpus[i].fd >= 0 && ioctl(s->cpus[i].fd, request, 0))
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
	for (i = 0; i < s->ncpus; i++) {
		s->cpus[i].busy_from = s->cpus[i].busy_now;
		s->cpus[i].seen = s->cpus[i].fd >= 0;
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

/* --- what comes ------------------------------------------------------------ */

/* The last steps of a thread that is freed by itself have no pid any more. */
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

/* Between what was sure so far and 'to'. */
static void perf_lost(uint64_t sure, struct perfsource_record *r, uint64_t to)
{
	r->kind = PERFSOURCE_LOST;
	r->time = sure;
	r->map.kind = PM_MAP_LOST;
	r->map.time = sure;
	r->map.end = MAX(to, sure);
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
		perf_lost(c->sure, &r, r.time);
	c->sure = MAX(c->sure, r.time);
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
 * The kernel tells of a loss before its next record in the same ring only, and
 * what other rings have of that time would be handed on without knowing. So
 * where one may have been, it is taken for one; what it was comes to be counted
 * when it is told.
 */
static void perfsource_drain_cpu(struct perfsource *s, struct perf_cpu *c)
{
	struct perfsource_record r = { 0 };
	int n;

	s->draining = c;
	n = perfring_drain(&c->ring, perfsource_on_record, s);
	if (n < 0)
		s->stats.bad++;
	if (n < 0 || c->ring.used + s->stats.stack_copy + RECORD_BESIDES >
			     c->ring.bytes) {
		perf_lost(c->sure, &r, clock_boottime_ns());
		s->opts.record(s->opts.arg, &r);
	}
	c->sure = MAX(c->sure, c->ring.watermark);
}

void perfsource_poll(struct perfsource *s)
{
	size_t i;

	perfring_forget_gone(s->epoll);
	for (i = 0; i < s->ncpus; i++)
		if (s->cpus[i].ring.page)
			perfsource_drain_cpu(s, &s->cpus[i]);
}

uint64_t perfsource_watermark(const struct perfsource *s)
{
	uint64_t least = UINT64_MAX;
	size_t i;

	for (i = 0; i < s->ncpus; i++)
		if (s->cpus[i].ring.page)
			least = MIN(least, s->cpus[i].ring.watermark);
	return least;
}

int perfsource_epoll_fd(const struct perfsource *s)
{
	return s->epoll;
}

/* What a CPU did before its ring was opened nobody has counted. */
static int cpu_came(struct perfsource *s, unsigned int cpu,
		    const struct perfring_look *now)
{
	struct perf_cpu *c = &s->cpus[cpu];
	struct perfring_span span = { .from = c->sure }, parts[2];
	struct perfsource_record lost = { 0 };
	const char *what;
	int err = cpu_open(s, -1, cpu, &what), i, n;

	if (!err && s->enabled && ioctl(c->fd, PERF_EVENT_IOC_ENABLE, 0))
		err = -errno;
	if (err) {
		cpu_close(c);
		return err == -ENODEV ? 0 : err; /* gone again */
	}
	if (!c->seen)
		c->busy_from = s->busy[cpu];
	c->seen = true;
	s->stats.gaps++;
	span.to = MAX(span.from, c->sure);
	n = perfring_awake(&s->looked, now, &span, parts);
	for (i = 0; i < n; i++) {
		perf_lost(parts[i].from, &lost, parts[i].to);
		s->opts.record(s->opts.arg, &lost);
	}
	return 0;
}

/* Events of tasks are where those tasks may run: on the CPUs of the start. */
int perfsource_hotplug(struct perfsource *s)
{
	struct perfring_look now = perfring_look();
	int err, first = 0;
	struct cpus online;
	size_t i;

	if (!s->stats.host)
		return 0;
	err = read_busy(s);
	if (!err)
		err = cpus_online(&online);
	if (err)
		return err;
	for (i = 0; i < s->ncpus; i++) {
		struct perf_cpu *c = &s->cpus[i];
		bool on = cpus_has(&online, i);

		if (c->fd >= 0 &&
		    (!on || (s->enabled && perfring_silent(c->fd)))) {
			perfsource_drain_cpu(s, c);
			cpu_close(c);
			c->sure = MIN(c->sure, s->looked.at);
		}
		err = on && c->fd < 0 ? cpu_came(s, i, &now) : 0;
		first = first ? first : err;
		if (!on) /* nobody runs there */
			c->sure = now.at;
	}
	cpus_fini(&online);
	s->looked = now;
	return first;
}

void perfsource_count_exec(struct perfsource *s, unsigned int cpu)
{
	if (cpu < s->ncpus)
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
	for (i = 0; i < MIN(n, s->ncpus); i++) {
		const struct perf_cpu *c = &s->cpus[i];
		double came = c->counters[ABI_SAMPLER_TAKEN] +
			      c->counters[ABI_SAMPLER_RING_FULL];

		memset(&out[i], 0, sizeof(out[i]));
		out[i].cpu = i;
		out[i].online = c->fd >= 0;
		memcpy(out[i].counters, c->counters, sizeof(c->counters));
		out[i].busy_s = (double)(c->busy_now - c->busy_from) /
				sysconf(_SC_CLK_TCK);
		out[i].expected = out[i].busy_s * s->opts.freq_hz;
		out[i].missed = MAX(out[i].expected - came, 0);
	}
	return s->ncpus;
}
