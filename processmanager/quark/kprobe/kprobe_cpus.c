// SPDX-License-Identifier: Apache-2.0
/*
 * kprobe_cpus: the perf events of the probes and their rings, one per CPU.
 *
 * perf removes its events from a CPU that goes offline: they stay open but silent,
 * also when it is online again (perf_event_exit_cpu()). So the ring of a CPU that
 * went offline is drained and closed, and one that went online gets a new ring. The
 * tracepoint cpuhp_exit reports the CPU: its last record comes after the change. If
 * a CPU went offline and online between two calls, its event's clock has stopped.
 * Events on a CPU before its ring was opened are reported as a loss of unknown size.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include <bpf/libbpf.h>

#include "processmanager/quark/kprobe/kprobe.h"

#define RING_MIN (32 * 1024)

/* --- rings ------------------------------------------------------------------ */

bool kprobe_ring_peek(struct perfring *r, struct kprobe_perf *out)
{
	const void *rec;
	size_t len;

	while ((rec = perfring_peek(r, &len))) {
		if (!kprobe_perf(rec, len, out))
			return true;
		r->bad = true;
		perfring_skip(r);
	}
	return false;
}

/* --- events ----------------------------------------------------------------- */

int kprobe_event_open(const struct kprobe_events *e, enum kprobe_id id,
		      const struct quark_backend_conf *conf, pid_t pid, int cpu,
		      size_t ring)
{
	const char *filter = kprobe_filter(id, conf->threads);
	struct perf_event_attr attr = {
		.type = PERF_TYPE_TRACEPOINT,
		.size = sizeof(attr),
		.config = e->ev[id].type,
		.sample_period = 1,
		.sample_type =
			PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_RAW,
		.read_format = PERFRING_READ_FORMAT | PERF_FORMAT_LOST,
		.sample_id_all = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
		.watermark = 1,
		.wakeup_watermark = conf->no_wakeup ? ring / 2 : 1,
	};
	int fd = perfring_event(&attr, pid, cpu), err;

	if (fd < 0)
		return fd;
	if (filter && ioctl(fd, PERF_EVENT_IOC_SET_FILTER, filter)) {
		err = -errno;
		close(fd);
		return err;
	}
	return fd;
}

static int kprobe_cpus_owner(const struct kprobe_cpu *k)
{
	int id;

	for (id = 0; id < KPROBE_SCAN && k->fd[id] < 0; id++)
		;
	return id < KPROBE_SCAN ? k->fd[id] : -1;
}

static void close_cpu(struct kprobe_cpu *k)
{
	int id;

	if (!k)
		return;
	perfring_unmap(&k->ring);
	for (id = KPROBE_MAX; id-- > 0;)
		if (k->fd[id] >= 0)
			close(k->fd[id]);
	free(k);
}

/* Opens one more event; the first owns the ring, which the others share. */
static int add_event(struct kprobe_cpus *c, struct kprobe_cpu *k,
		     enum kprobe_id id, int cpu)
{
	int first = kprobe_cpus_owner(k);

	k->fd[id] = kprobe_event_open(c->events, id, c->conf, -1, cpu,
				      c->ring_size);
	if (k->fd[id] < 0)
		return k->fd[id];
	if (first < 0)
		return perfring_map(&k->ring, k->fd[id], c->ring_size,
				    c->scratch);
	return ioctl(k->fd[id], PERF_EVENT_IOC_SET_OUTPUT, first) ? -errno : 0;
}

static bool kprobe_cpus_wanted(const struct kprobe_cpus *c, enum kprobe_id id)
{
	if (!c->events->ev[id].type)
		return false;
	return kprobe_kind(id) != ABI_QUARK_ID_CHANGE || id == KPROBE_CGROUP ||
	       c->conf->syscalls;
}

static int open_cpu(struct kprobe_cpus *c, int cpu)
{
	struct kprobe_cpu *k = calloc(1, sizeof(*k));
	struct epoll_event ev = { .events = EPOLLIN };
	int id, err = 0;

	if (!k)
		return -ENOMEM;
	memset(k->fd, -1, sizeof(k->fd));
	k->next = UINT64_MAX;
	for (id = 0; !err && id < KPROBE_SCAN; id++)
		if (kprobe_cpus_wanted(c, id))
			err = add_event(c, k, id, cpu);
	if (!err &&
	    epoll_ctl(c->epfd, EPOLL_CTL_ADD, kprobe_cpus_owner(k), &ev))
		err = -errno;
	if (err) {
		close_cpu(k);
		return err;
	}
	c->cpu[cpu] = k;
	return 0;
}

/* --- all CPUs ----------------------------------------------------------------- */

static int kprobe_cpus_open_all(struct kprobe_cpus *c)
{
	uint64_t now = clock_boottime_ns();
	struct cpus online;
	int cpu, open = 0, err = cpus_online(&online);

	for (cpu = 0; !err && cpu < c->n; cpu++) {
		c->blind[cpu] = now;
		if (!cpus_has(&online, cpu))
			continue;
		err = open_cpu(c, cpu);
		if (err == -ENODEV) /* went offline meanwhile */
			err = 0;
		else
			open++;
	}
	cpus_fini(&online);
	return err ? err : open ? 0 : -ENODEV;
}

int kprobe_cpus_open(struct kprobe_cpus *c, const struct kprobe_events *events,
		     const struct quark_backend_conf *conf)
{
	int err, n = cpus_number();

	memset(c, 0, sizeof(*c));
	c->events = events;
	c->conf = conf;
	c->epfd = epoll_create1(EPOLL_CLOEXEC);
	err = c->epfd < 0 ? -errno : MIN(n, 0);
	if (!err) {
		c->n = n;
		/* All possible CPUs together are within the budget. */
		c->ring_size = perfring_size(RING_MIN, conf->ring_bytes / n);
		c->cpu = calloc(c->n, sizeof(*c->cpu));
		c->blind = calloc(c->n, sizeof(*c->blind));
		c->told = calloc(c->n, sizeof(*c->told));
		c->scratch = malloc(PERFRING_RECORD_MAX);
		err = c->cpu && c->blind && c->told && c->scratch
			      ? kprobe_cpus_open_all(c)
			      : -ENOMEM;
	}
	if (err) {
		kprobe_error(err, "opening the probes' rings");
		kprobe_cpus_close(c);
	}
	return err == -EACCES ? -EPERM : err;
}

void kprobe_cpus_close(struct kprobe_cpus *c)
{
	int cpu;

	for (cpu = 0; c->cpu && cpu < c->n; cpu++)
		close_cpu(c->cpu[cpu]);
	if (c->events && c->epfd >= 0)
		close(c->epfd);
	free(c->cpu);
	free(c->blind);
	free(c->told);
	free(c->scratch);
	memset(c, 0, sizeof(*c));
}

/* --- hotplug ------------------------------------------------------------------ */

static void kprobe_cpus_count_lost(struct kprobe_cpus *c, uint64_t first,
				   uint64_t last)
{
	struct quark_loss_report *r = &c->lost;

	if (!r->first || first < r->first)
		r->first = first;
	r->last = MAX(r->last, last);
}

static void kprobe_cpus_came_online(struct kprobe_cpus *c, int cpu,
				    uint64_t now)
{
	uint64_t since = c->blind[cpu];
	int err = open_cpu(c, cpu);

	c->blind[cpu] = err == -ENODEV ? now : clock_boottime_ns();
	if (err == -ENODEV) /* not online yet, or going offline */
		return;
	/* Also if the ring could not be opened. */
	c->lost.uncounted = true;
	kprobe_cpus_count_lost(c, since, c->blind[cpu]);
}

void kprobe_cpus_follow(struct kprobe_cpus *c, uint64_t now)
{
	struct kprobe_cpu *k;
	struct cpus online;
	int cpu;

	if (cpus_online(&online))
		return;
	for (cpu = 0; cpu < c->n; cpu++) {
		k = c->cpu[cpu];
		if (k &&
		    (!cpus_has(&online, cpu) ||
		     (c->told[cpu] && perfring_silent(kprobe_cpus_owner(k)))))
			k->gone = true;
		else if (!k && cpus_has(&online, cpu))
			kprobe_cpus_came_online(c, cpu, now);
		else if (!k)
			c->blind[cpu] = now;
		c->told[cpu] = false;
	}
	cpus_fini(&online);
}

/* Adds what each event of the CPU has lost since the last call. */
static void count_losses(struct kprobe_cpus *c, struct kprobe_cpu *k,
			 uint64_t now)
{
	struct perfring_counts v;
	uint64_t n;
	int id, kind;

	for (id = 0; id < KPROBE_SCAN; id++) {
		kind = kprobe_kind(id);
		if (kind < 0 || k->fd[id] < 0 ||
		    !perfring_counts(k->fd[id], &v))
			continue;
		n = v.lost - k->lost[id];
		k->lost[id] = v.lost;
		if (!n)
			continue;
		c->lost.lost[kind] += n;
		c->lost.total += n;
		kprobe_cpus_count_lost(c, k->last ? k->last : now, now);
	}
}

bool kprobe_cpus_settle(struct kprobe_cpus *c)
{
	uint64_t now = clock_boottime_ns();
	struct kprobe_cpu *k;
	bool again = false;
	int cpu;

	for (cpu = 0; cpu < c->n; cpu++) {
		k = c->cpu[cpu];
		if (!k)
			continue;
		if (k->ring.bad) {
			c->lost.uncounted = true;
			kprobe_cpus_count_lost(c, k->last ? k->last : now, now);
		}
		if (k->check || k->gone)
			count_losses(c, k, now);
		k->check = k->ring.bad = false;
		if (k->gone && k->ring.tail == k->ring.head) {
			c->blind[cpu] = MAX(c->blind[cpu], k->last);
			close_cpu(k);
			c->cpu[cpu] = NULL;
			again = true;
		}
	}
	return again;
}
