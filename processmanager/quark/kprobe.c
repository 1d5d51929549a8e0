// SPDX-License-Identifier: Apache-2.0
/*
 * kprobe: the same records as ebpf's, where BPF programs may not be loaded: perf
 * events of the probes that kprobe_events.c makes, one ring a CPU.
 *
 * A ring is in the order of one CPU; all are drained together, the oldest record
 * first. A record's time is taken a moment before its place in the ring, and a
 * CPU may be interrupted in between, so the watermark stays a few milliseconds
 * behind the clock instead of one (what came later still is counted as late).
 * What did not fit is counted by the kernel for each event (PERF_FORMAT_LOST,
 * 6.0) and asked for when a ring was found nearly full or says so itself.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <bpf/libbpf.h>

#include "processmanager/quark/kprobe.h"

#define SLACK_NS (4 * CLOCK_NSEC_PER_MSEC)
#define RECORD_MAX 65536 /* perf_event_header.size is a u16 */
#define RING_MIN (32 * 1024)
#define WALK_RING (64 * 1024)
#define NEARLY_FULL (4 * 8192) /* PERF_MAX_TRACE_SIZE */
#ifndef PERF_FORMAT_LOST
#define PERF_FORMAT_LOST (1U << 4)
#endif

struct ring_map {
	struct perf_event_mmap_page *page;
	size_t size; /* of the data */
	uint64_t head, tail;
};

struct kprobe_cpu {
	int fd[KPROBE_MAX]; /* the first that is open owns the ring */
	uint64_t lost[KPROBE_MAX]; /* told of already */
	struct ring_map ring;
	uint64_t next; /* time of the record at the tail; UINT64_MAX: none */
	uint64_t last; /* of the newest one taken out */
	bool check; /* something may have been lost */
	/* What the tracepoint said of the exec that the probe tells of next. */
	int32_t tp_pid, tp_old_pid;
	char filename[ABI_QUARK_PATH_MAX];
};

struct kprobe {
	struct kprobe_events events;
	struct quark_backend_conf conf;
	struct kprobe_cpu **cpus; /* by number, NULL: offline */
	int ncpus;
	int epfd;
	int64_t offset; /* of CLOCK_BOOTTIME to CLOCK_MONOTONIC */
	uint64_t watermark;
	struct quark_loss_report lost;
	struct kprobe_record record;
	struct kprobe_values values, asked;
	char *scratch; /* a record that wraps around is put together here */
	int walk_fd;
	pid_t walk_tid; /* whose reading of /proc/PID/stat it sees */
	struct ring_map walk_ring;
	char *walk_scratch;
	ring_fn fn;
	void *arg;
};

static uint64_t clock_ns(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return ts.tv_sec * CLOCK_NSEC_PER_SEC + ts.tv_nsec;
}

/*
 * perf stamps its tracepoints with CLOCK_MONOTONIC at best; what CLOCK_BOOTTIME
 * is ahead of it, the time spent suspended, hardly ever changes. It is measured
 * between two readings and kept while it is possible, so it does not jitter.
 */
static void follow_offset(struct kprobe *k)
{
	uint64_t before = clock_ns(CLOCK_MONOTONIC);
	uint64_t boot = clock_ns(CLOCK_BOOTTIME);
	int64_t most = boot - before;
	int64_t least = boot - clock_ns(CLOCK_MONOTONIC);

	if (k->offset < least || k->offset > most)
		k->offset = least + (most - least) / 2;
}

static int explain(int err, const char *what)
{
	quark_error("%s: %s", what, strerror(-err));
	return err == -EACCES ? -EPERM : err;
}

/* --- rings ------------------------------------------------------------------ */

static int map_ring(struct ring_map *m, int fd, size_t size)
{
	long page = sysconf(_SC_PAGESIZE);
	void *p = mmap(NULL, page + size, PROT_READ | PROT_WRITE, MAP_SHARED,
		       fd, 0);

	if (p == MAP_FAILED)
		return explain(-errno, "mapping a probes' ring");
	m->page = p;
	m->size = size;
	return 0;
}

static void unmap_ring(struct ring_map *m)
{
	if (m->page)
		munmap(m->page, sysconf(_SC_PAGESIZE) + m->size);
	m->page = NULL;
}

static void ring_begin(struct ring_map *m)
{
	m->tail = m->page->data_tail;
	m->head = __atomic_load_n(&m->page->data_head, __ATOMIC_ACQUIRE);
}

static void ring_end(struct ring_map *m)
{
	__atomic_store_n(&m->page->data_tail, m->tail, __ATOMIC_RELEASE);
}

static const void *ring_bytes(const struct ring_map *m, uint64_t pos, size_t n,
			      char *scratch)
{
	const char *data = (char *)m->page + sysconf(_SC_PAGESIZE);
	size_t off = pos & (m->size - 1), first = MIN(n, m->size - off);

	if (first == n)
		return data + off;
	memcpy(scratch, data + off, first);
	memcpy(scratch + first, data, n - first);
	return scratch;
}

/* The record at the tail, whole, or NULL. */
static const struct perf_event_header *ring_record(struct ring_map *m,
						   char *scratch)
{
	struct perf_event_header h;

	if (m->head - m->tail < sizeof(h))
		return NULL;
	memcpy(&h, ring_bytes(m, m->tail, sizeof(h), scratch), sizeof(h));
	if (h.size < sizeof(h) + 16 || h.size > m->head - m->tail) {
		m->tail = m->head; /* nothing to walk on by */
		return NULL;
	}
	return ring_bytes(m, m->tail, h.size, scratch);
}

/* Behind the header: of samples pid, tid, time, size, data; others end in it. */
struct sample_body {
	uint32_t pid, tid;
	uint64_t time;
	uint32_t size;
	char data[];
} __attribute__((packed));

static uint64_t record_time(const struct perf_event_header *h)
{
	const char *at = (const char *)(h + 1) + 8;
	uint64_t time;

	if (h->type != PERF_RECORD_SAMPLE)
		at = (const char *)h + h->size - sizeof(time);
	memcpy(&time, at, sizeof(time));
	return time;
}

/* --- events ----------------------------------------------------------------- */

static int open_event(struct kprobe *k, enum kprobe_id id, pid_t pid, int cpu,
		      size_t ring)
{
	const char *filter = kprobe_filter(id, k->conf.threads);
	struct perf_event_attr attr = {
		.type = PERF_TYPE_TRACEPOINT,
		.size = sizeof(attr),
		.config = k->events.ev[id].type,
		.sample_period = 1,
		.sample_type =
			PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_RAW,
		.read_format = PERF_FORMAT_LOST,
		.sample_id_all = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
		.watermark = 1,
		.wakeup_watermark = k->conf.no_wakeup ? ring / 2 : 1,
	};
	int fd = syscall(SYS_perf_event_open, &attr, pid, cpu, -1,
			 PERF_FLAG_FD_CLOEXEC);
	int err;

	if (fd < 0)
		return explain(-errno, "perf_event_open of a probe");
	if (filter && ioctl(fd, PERF_EVENT_IOC_SET_FILTER, filter)) {
		err = explain(-errno, "a probe's filter");
		close(fd);
		return err;
	}
	return fd;
}

static void close_cpu(struct kprobe_cpu *c)
{
	int id;

	if (!c)
		return;
	unmap_ring(&c->ring);
	for (id = KPROBE_MAX; id-- > 0;)
		if (c->fd[id] >= 0)
			close(c->fd[id]);
	free(c);
}

static int open_cpu(struct kprobe *k, int cpu, size_t size)
{
	struct kprobe_cpu *c = calloc(1, sizeof(*c));
	struct epoll_event ev = { .events = EPOLLIN };
	int id, err = 0, owner = -1;

	if (!c)
		return -ENOMEM;
	memset(c->fd, -1, sizeof(c->fd));
	for (id = 0; !err && id < KPROBE_WALK; id++) {
		if (kprobe_kind(id) == ABI_QUARK_ID_CHANGE &&
		    id != KPROBE_CGROUP && !k->conf.syscalls)
			continue;
		c->fd[id] = open_event(k, id, -1, cpu, size);
		if (c->fd[id] < 0)
			err = c->fd[id];
		else if (owner < 0)
			err = map_ring(&c->ring, owner = c->fd[id], size);
		else if (ioctl(c->fd[id], PERF_EVENT_IOC_SET_OUTPUT, owner))
			err = explain(-errno, "joining probes in one ring");
	}
	if (!err && epoll_ctl(k->epfd, EPOLL_CTL_ADD, owner, &ev))
		err = -errno;
	if (err) {
		close_cpu(c);
		return err;
	}
	k->cpus[cpu] = c;
	return 0;
}

/* A power of two, all of them within the budget, whatever CPUs come up. */
static size_t ring_size(size_t budget, long cpus)
{
	size_t size = RING_MIN;

	while (size * 2 * cpus <= budget)
		size *= 2;
	return size;
}

static int open_cpus(struct kprobe *k)
{
	long online = sysconf(_SC_NPROCESSORS_ONLN);
	size_t size = ring_size(k->conf.ring_bytes, MAX(online, 1));
	int cpu, err, open = 0;

	k->ncpus = libbpf_num_possible_cpus();
	if (k->ncpus <= 0)
		return k->ncpus ? k->ncpus : -EINVAL;
	k->cpus = calloc(k->ncpus, sizeof(*k->cpus));
	if (!k->cpus)
		return -ENOMEM;
	for (cpu = 0; cpu < k->ncpus; cpu++) {
		err = open_cpu(k, cpu, size);
		if (err && err != -ENODEV) /* offline */
			return err;
		open += !err;
	}
	return open ? 0 : -ENODEV;
}

/* --- the walk --------------------------------------------------------------- */

static void close_walk(struct kprobe *k)
{
	unmap_ring(&k->walk_ring);
	if (k->walk_fd >= 0)
		close(k->walk_fd);
	k->walk_fd = -1;
	k->walk_tid = 0;
}

/* Of this thread, whichever it is that asks. */
static int open_walk(struct kprobe *k)
{
	pid_t tid = gettid();
	int err;

	if (k->walk_tid == tid)
		return 0;
	close_walk(k);
	k->walk_fd = open_event(k, KPROBE_WALK, 0, -1, WALK_RING);
	if (k->walk_fd < 0)
		return k->walk_fd;
	err = map_ring(&k->walk_ring, k->walk_fd, WALK_RING);
	if (err) {
		close_walk(k);
		return err;
	}
	k->walk_tid = tid;
	return 0;
}

/* Reads its stat, so that the probe reads the task. */
static bool look_at(uint32_t pid)
{
	char path[32], buf[1024];
	ssize_t n = -1;
	int fd;

	snprintf(path, sizeof(path), "/proc/%u/stat", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		n = read(fd, buf, sizeof(buf));
		close(fd);
	}
	return n > 0;
}

static bool ask(void *arg, uint32_t pid, struct kprobe_values *v)
{
	struct kprobe *k = arg;
	struct ring_map *m = &k->walk_ring;
	const struct perf_event_header *h;
	const struct sample_body *s;
	bool found = false;

	if (open_walk(k) || !look_at(pid))
		return false;
	ring_begin(m);
	while ((h = ring_record(m, k->walk_scratch))) {
		s = (const void *)(h + 1);
		if (h->type == PERF_RECORD_SAMPLE &&
		    h->size >= sizeof(*h) + sizeof(*s) &&
		    s->size <= h->size - sizeof(*h) - sizeof(*s) &&
		    kprobe_decode(&k->events, s->data, s->size, v) ==
			    KPROBE_WALK)
			found = v->tgid == pid;
		m->tail += h->size;
	}
	/* What the strings point into is overwritten by the next one at most. */
	ring_end(m);
	return found;
}

static int kprobe_walk(void *b, ring_fn fn, void *arg)
{
	struct kprobe *k = b;
	struct kprobe_sample s = { 0 };
	struct dirent *d;
	uint32_t pid;
	int err = 0;
	DIR *dir;

	err = open_walk(k);
	dir = err ? NULL : opendir("/proc");
	if (!dir)
		return err ? err : -errno;
	while (!err && (d = readdir(dir))) {
		pid = strtoul(d->d_name, NULL, 10);
		/* First, so that whatever came before it is in what is read. */
		s.time = clock_boottime_ns();
		if (pid && ask(k, pid, &k->asked))
			err = kprobe_record(&k->record, KPROBE_WALK, &s,
					    &k->asked, fn, arg);
	}
	closedir(dir);
	return err;
}

/* --- draining --------------------------------------------------------------- */

static void note_exec(struct kprobe_cpu *c, const struct kprobe_values *v)
{
	size_t len = MIN(v->filename.len, sizeof(c->filename) - 1);

	c->tp_pid = v->tp_pid;
	c->tp_old_pid = v->tp_old_pid;
	if (len)
		memcpy(c->filename, v->filename.p, len);
	c->filename[len] = '\0';
}

static void recall_exec(struct kprobe_record *r, struct kprobe_cpu *c,
			const struct kprobe_values *v, struct kprobe_sample *s)
{
	s->exec_tid = v->pid;
	r->filename[0] = '\0';
	if (c->tp_pid != (int32_t)v->pid)
		return;
	s->exec_tid = c->tp_old_pid;
	strcpy(r->filename, c->filename);
	c->tp_pid = 0;
}

static int take_sample(struct kprobe *k, int cpu,
		       const struct perf_event_header *h)
{
	const struct sample_body *body = (const void *)(h + 1);
	struct kprobe_cpu *c = k->cpus[cpu];
	struct kprobe_values *v = &k->values;
	struct kprobe_sample s = {
		.time = record_time(h) + k->offset,
		.cpu = cpu,
		.tgid = body->pid,
		.tid = body->tid,
	};
	int id;

	if (h->size < sizeof(*h) + sizeof(*body) ||
	    body->size > h->size - sizeof(*h) - sizeof(*body))
		return 0;
	id = kprobe_decode(&k->events, body->data, body->size, v);
	if (id < 0)
		return 0;
	if (id == KPROBE_TP_EXEC) {
		note_exec(c, v);
		return 0;
	}
	if (id == KPROBE_CWD || id == KPROBE_CGROUP) {
		/* The probe sees no task, but he still is what he became. */
		if (!ask(k, id == KPROBE_CWD ? s.tgid : (uint32_t)v->tp_pid,
			 &k->asked))
			return 0;
		v = &k->asked;
	}
	if (id == KPROBE_EXEC)
		recall_exec(&k->record, c, v, &s);
	return kprobe_record(&k->record, id, &s, v, k->fn, k->arg);
}

static void peek(struct kprobe *k, struct kprobe_cpu *c)
{
	const struct perf_event_header *h = ring_record(&c->ring, k->scratch);

	c->next = h ? record_time(h) : UINT64_MAX;
}

static int oldest(const struct kprobe *k)
{
	uint64_t time = UINT64_MAX;
	int cpu, best = -1;

	for (cpu = 0; cpu < k->ncpus; cpu++) {
		if (k->cpus[cpu] && k->cpus[cpu]->next < time) {
			time = k->cpus[cpu]->next;
			best = cpu;
		}
	}
	return best;
}

static int take_one(struct kprobe *k, int cpu)
{
	struct kprobe_cpu *c = k->cpus[cpu];
	const struct perf_event_header *h = ring_record(&c->ring, k->scratch);
	size_t size = h->size;
	int ret = 0;

	if (h->type == PERF_RECORD_SAMPLE)
		ret = take_sample(k, cpu, h);
	else if (h->type == PERF_RECORD_LOST)
		c->check = true;
	c->last = c->next + k->offset;
	c->ring.tail += size;
	peek(k, c);
	return ret;
}

/* What each event of the CPU has lost since it was asked last. */
static void count_losses(struct kprobe *k, struct kprobe_cpu *c, uint64_t now)
{
	struct quark_loss_report *r = &k->lost;
	uint64_t v[2], n;
	int id, kind;

	c->check = false;
	for (id = 0; id < KPROBE_WALK; id++) {
		kind = kprobe_kind(id);
		if (kind < 0 || read(c->fd[id], v, sizeof(v)) != sizeof(v))
			continue;
		n = v[1] - c->lost[id];
		c->lost[id] = v[1];
		if (!n)
			continue;
		r->lost[kind] += n;
		r->total += n;
		if (!r->first || c->last < r->first)
			r->first = c->last ? c->last : now;
		r->last = now;
	}
}

static int kprobe_consume(void *b)
{
	struct kprobe *k = b;
	uint64_t now = clock_boottime_ns();
	int cpu, n = 0, ret = 0;
	struct kprobe_cpu *c;

	follow_offset(k);
	for (cpu = 0; cpu < k->ncpus; cpu++) {
		c = k->cpus[cpu];
		if (!c)
			continue;
		ring_begin(&c->ring);
		if (c->ring.head - c->ring.tail + NEARLY_FULL > c->ring.size)
			c->check = true;
		peek(k, c);
	}
	while (!ret && (cpu = oldest(k)) >= 0) {
		ret = take_one(k, cpu);
		n++;
	}
	for (cpu = 0; cpu < k->ncpus; cpu++) {
		c = k->cpus[cpu];
		if (!c)
			continue;
		ring_end(&c->ring);
		/* With room in the ring again: no more are lost meanwhile. */
		if (c->check)
			count_losses(k, c, clock_boottime_ns());
	}
	if (ret)
		return ret;
	k->watermark = now - SLACK_NS;
	return n;
}

static uint64_t kprobe_watermark(const void *b)
{
	return ((const struct kprobe *)b)->watermark;
}

static int kprobe_epoll_fd(const void *b)
{
	return ((const struct kprobe *)b)->epfd;
}

static size_t kprobe_backlog(const void *b)
{
	const struct kprobe *k = b;
	size_t bytes = 0;
	int cpu;

	for (cpu = 0; cpu < k->ncpus; cpu++) {
		const struct perf_event_mmap_page *page;

		if (!k->cpus[cpu])
			continue;
		page = k->cpus[cpu]->ring.page;
		bytes += __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE) -
			 page->data_tail;
	}
	return bytes;
}

static void kprobe_losses(void *b, struct quark_loss_report *out)
{
	struct kprobe *k = b;

	*out = k->lost;
	memset(&k->lost, 0, sizeof(k->lost));
}

/* --- the whole -------------------------------------------------------------- */

static void kprobe_close(void *b)
{
	struct kprobe *k = b;
	int cpu;

	for (cpu = 0; k->cpus && cpu < k->ncpus; cpu++)
		close_cpu(k->cpus[cpu]);
	free(k->cpus);
	close_walk(k);
	if (k->epfd >= 0)
		close(k->epfd);
	kprobe_events_free(&k->events);
	kprobe_paths_free(k->record.paths);
	strbuf_fini(&k->record.out);
	strbuf_fini(&k->record.proc);
	free(k->scratch);
	free(k->walk_scratch);
	free(k);
}

static int start(struct kprobe *k)
{
	int err;

	k->epfd = epoll_create1(EPOLL_CLOEXEC);
	if (k->epfd < 0)
		return explain(-errno, "epoll");
	k->record.paths = kprobe_paths_new();
	k->scratch = malloc(RECORD_MAX);
	k->walk_scratch = malloc(RECORD_MAX);
	if (!k->record.paths || !k->scratch || !k->walk_scratch)
		return explain(-ENOMEM, "kprobe backend");
	err = kprobe_events_new(&k->events, k->conf.max_env);
	if (err)
		return err;
	err = open_cpus(k);
	if (err)
		return err;
	quark_error_reset(); /* of CPUs that are offline */
	follow_offset(k);
	return 0;
}

static int kprobe_open(void **bp, const struct quark_backend_conf *conf,
		       ring_fn fn, void *arg)
{
	struct kprobe *k = calloc(1, sizeof(*k));
	int err;

	if (!k)
		return -ENOMEM;
	k->conf = *conf;
	k->fn = fn;
	k->arg = arg;
	k->epfd = k->walk_fd = -1;
	k->record.ask = ask;
	k->record.arg = k;
	k->record.max_env = conf->max_env;
	err = start(k);
	if (err) {
		kprobe_close(k);
		return err;
	}
	*bp = k;
	return 0;
}

const struct quark_backend quark_kprobe = {
	.flag = QQ_KPROBE,
	.name = "kprobe",
	.slack_ns = SLACK_NS,
	.open = kprobe_open,
	.close = kprobe_close,
	.consume = kprobe_consume,
	.watermark = kprobe_watermark,
	.epoll_fd = kprobe_epoll_fd,
	.backlog = kprobe_backlog,
	.losses = kprobe_losses,
	.walk = kprobe_walk,
};
