// SPDX-License-Identifier: Apache-2.0
/*
 * kprobe: the same records as ebpf's, where BPF programs must not be loaded: perf
 * events of the probes that kprobe_events.c makes, one ring per CPU.
 *
 * A ring is in the order of one CPU; all are drained together, the oldest record
 * first. A record gets its time before its place in the ring, and the CPU may be
 * interrupted in between, or stopped in a virtual machine, for any time. So the
 * watermark is a few milliseconds behind the clock instead of one. Records that
 * appear after a drain but are older than it show the delay; the watermark keeps a
 * multiple of the longest recent one. Records with a longer delay count as late.
 *
 * The kernel counts lost records for each event (PERF_FORMAT_LOST, 6.0). They are
 * read when a ring was nearly full or has a record of a loss.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "processmanager/quark/kprobe/kprobe.h"

#define SLACK_NS (4 * CLOCK_NSEC_PER_MSEC)
#define SLACK_MAX_NS (400 * CLOCK_NSEC_PER_MSEC)
#define SLACK_KEPT_NS (10 * CLOCK_NSEC_PER_SEC)
#define SCAN_RING (64 * 1024)
#define NEARLY_FULL (4 * 8192) /* PERF_MAX_TRACE_SIZE */
/* How often CPUs are polled, for kernels without the tracepoint. */
#define FOLLOW_NS CLOCK_NSEC_PER_SEC

struct kprobe {
	struct kprobe_events events;
	struct quark_backend_conf conf;
	struct kprobe_cpus cpus;
	bool follow; /* a CPU went online or offline */
	uint64_t followed;
	int64_t offset; /* of CLOCK_BOOTTIME to CLOCK_MONOTONIC */
	uint64_t watermark;
	uint64_t slack; /* how far the watermark is behind the clock */
	uint64_t slack_since;
	struct kprobe_record record;
	struct kprobe_values values, asked;
	int scan_fd;
	pid_t scan_tid; /* the thread whose reads of /proc/PID/stat it sees */
	struct perfring scan_ring;
	char scan_scratch[PERFRING_RECORD_MAX];
	ring_fn fn;
	void *arg;
};

/*
 * perf has no CLOCK_BOOTTIME for tracepoints, so records have CLOCK_MONOTONIC. The
 * difference, the time spent suspended, rarely changes. It is measured between two
 * readings and kept while it is within them, so that it does not jitter.
 */
static void follow_offset(struct kprobe *k)
{
	uint64_t before = clock_awake_ns();
	uint64_t boot = clock_boottime_ns();
	int64_t most = boot - before;
	int64_t least = boot - clock_awake_ns();

	if (k->offset < least || k->offset > most)
		k->offset = least + (most - least) / 2;
}

/* --- the scan --------------------------------------------------------------- */

static void close_scan(struct kprobe *k)
{
	perfring_unmap(&k->scan_ring);
	if (k->scan_fd >= 0)
		close(k->scan_fd);
	k->scan_fd = -1;
	k->scan_tid = 0;
}

/* For the reader's thread; after a timeout that is another one. */
static int open_scan(struct kprobe *k)
{
	pid_t tid = patience_tid(&k->conf.reader->patience);
	int err;

	if (tid < 0)
		return tid;
	if (k->scan_tid == tid)
		return 0;
	close_scan(k);
	err = kprobe_event_open(&k->events, KPROBE_SCAN, &k->conf, tid, -1,
				SCAN_RING);
	if (err < 0)
		return err;
	k->scan_fd = err;
	err = perfring_map(&k->scan_ring, k->scan_fd, SCAN_RING,
			   k->scan_scratch);
	if (err) {
		close_scan(k);
		return err;
	}
	k->scan_tid = tid;
	return 0;
}

static bool kprobe_ask(void *arg, uint32_t pid, struct kprobe_values *v)
{
	struct kprobe *k = arg;
	struct perfring *r = &k->scan_ring;
	struct kprobe_perf p;
	bool found = false;

	if (open_scan(k))
		return false;
	/* The probe reads the task before the read of its stat may block. */
	quark_reader_start(k->conf.reader, pid);
	for (perfring_begin(r); kprobe_ring_peek(r, &p); perfring_skip(r))
		if (p.sample && kprobe_decode(k->events.ev, p.raw, p.raw_len,
					      v) == KPROBE_SCAN)
			found = v->tgid == pid;
	/* Strings point into the ring, until the next call overwrites them. */
	perfring_end(r);
	return found;
}

struct kprobe_scan {
	struct kprobe *k;
	ring_fn fn;
	void *arg;
};

static int kprobe_scan_one(void *arg, uint32_t pid)
{
	const struct kprobe_scan *scan = arg;
	struct kprobe *k = scan->k;
	/* Read first: what is read next includes all earlier changes. */
	const struct kprobe_sample s = { .time = clock_boottime_ns() };

	if (!kprobe_ask(k, pid, &k->asked))
		return 0;
	return kprobe_record(&k->record, KPROBE_SCAN, &s, &k->asked, scan->fn,
			     scan->arg);
}

static int kprobe_scan(void *b, ring_fn fn, void *arg)
{
	struct kprobe_scan scan = { b, fn, arg };
	int err = open_scan(scan.k);

	return err ? err : procfs_numbers("/proc", kprobe_scan_one, &scan);
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

static int take_sample(struct kprobe *k, int cpu, const struct kprobe_perf *p)
{
	struct kprobe_cpu *c = k->cpus.cpu[cpu];
	struct kprobe_values *v = &k->values;
	struct kprobe_sample s = {
		.time = p->time + k->offset,
		.cpu = cpu,
		.tgid = p->tgid,
		.tid = p->tid,
	};
	int id = kprobe_decode(k->events.ev, p->raw, p->raw_len, v);

	switch (id) {
	case -1:
		c->ring.bad = true;
		return 0;
	case KPROBE_TP_EXEC:
		note_exec(c, v);
		return 0;
	case KPROBE_HOTPLUG:
		k->follow = true;
		if (v->tp_cpu < (uint32_t)k->cpus.n)
			k->cpus.told[v->tp_cpu] = true;
		return 0;
	case KPROBE_CWD:
	case KPROBE_CGROUP:
		/* No task argument; the change has already taken effect. */
		if (!kprobe_ask(k,
				id == KPROBE_CWD ? s.tgid : (uint32_t)v->tp_pid,
				&k->asked))
			return 0;
		v = &k->asked;
		break;
	case KPROBE_EXEC:
		recall_exec(&k->record, c, v, &s);
		break;
	}
	return kprobe_record(&k->record, id, &s, v, k->fn, k->arg);
}

static void kprobe_peek(struct kprobe_cpu *c)
{
	struct kprobe_perf p;

	c->next = kprobe_ring_peek(&c->ring, &p) ? p.time : UINT64_MAX;
}

static int kprobe_oldest(const struct kprobe_cpus *cpus)
{
	uint64_t time = UINT64_MAX;
	int cpu, best = -1;

	for (cpu = 0; cpu < cpus->n; cpu++) {
		if (cpus->cpu[cpu] && cpus->cpu[cpu]->next < time) {
			time = cpus->cpu[cpu]->next;
			best = cpu;
		}
	}
	return best;
}

/* A record is older than the last drain of its ring, which did not find it. */
static void note_delay(struct kprobe *k, const struct kprobe_cpu *c,
		       uint64_t time)
{
	uint64_t want;

	if (time >= c->looked)
		return;
	want = MIN(4 * (c->looked - time), SLACK_MAX_NS);
	if (want < k->slack)
		return;
	k->slack = want;
	k->slack_since = clock_boottime_ns();
}

/* Halves the slack when no recent record needed it. */
static void ease_slack(struct kprobe *k, uint64_t now)
{
	if (now < k->slack_since + SLACK_KEPT_NS)
		return;
	k->slack = MAX(k->slack / 2, SLACK_NS);
	k->slack_since = now;
}

static int take_one(struct kprobe *k, int cpu)
{
	struct kprobe_cpu *c = k->cpus.cpu[cpu];
	struct kprobe_perf p;
	int ret = 0;

	if (kprobe_ring_peek(&c->ring, &p)) {
		if (p.sample)
			ret = take_sample(k, cpu, &p);
		c->check |= p.lost;
		c->last = p.time + k->offset;
		note_delay(k, c, c->last);
		perfring_skip(&c->ring);
	}
	kprobe_peek(c);
	return ret;
}

/* Drains what is in all rings now, by time. 0 or what fn returned. */
static int kprobe_drain_rings(struct kprobe *k, int *n)
{
	uint64_t now = clock_boottime_ns();
	struct kprobe_cpu *c;
	int cpu, ret = 0;

	for (cpu = 0; cpu < k->cpus.n; cpu++) {
		c = k->cpus.cpu[cpu];
		if (!c)
			continue;
		perfring_begin(&c->ring);
		if (c->ring.head - c->ring.tail + NEARLY_FULL > c->ring.bytes)
			c->check = true;
		kprobe_peek(c);
	}
	while (!ret && (cpu = kprobe_oldest(&k->cpus)) >= 0) {
		ret = take_one(k, cpu);
		++*n;
	}
	for (cpu = 0; cpu < k->cpus.n; cpu++) {
		c = k->cpus.cpu[cpu];
		if (!c)
			continue;
		perfring_end(&c->ring);
		if (!ret)
			c->looked = now;
	}
	return ret;
}

static int kprobe_consume(void *b)
{
	struct kprobe *k = b;
	uint64_t now = clock_boottime_ns();
	int n = 0, ret;

	follow_offset(k);
	k->follow |= now >= k->followed + FOLLOW_NS;
	do {
		if (k->follow) {
			k->followed = clock_boottime_ns();
			kprobe_cpus_follow(&k->cpus, k->followed);
		}
		k->follow = false;
		ret = kprobe_drain_rings(k, &n);
		/* After the drain, when the rings have room again. */
		k->follow |= kprobe_cpus_settle(&k->cpus);
	} while (!ret && k->follow);
	if (ret)
		return ret;
	ease_slack(k, now);
	k->watermark = MAX(k->watermark, now - k->slack);
	return n;
}

static uint64_t kprobe_watermark(const void *b)
{
	return ((const struct kprobe *)b)->watermark;
}

static uint64_t kprobe_slack(const void *b)
{
	return ((const struct kprobe *)b)->slack;
}

static int kprobe_epoll_fd(const void *b)
{
	return ((const struct kprobe *)b)->cpus.epfd;
}

static size_t kprobe_backlog(const void *b)
{
	const struct kprobe_cpus *cpus = &((const struct kprobe *)b)->cpus;
	size_t bytes = 0;
	int cpu;

	for (cpu = 0; cpu < cpus->n; cpu++) {
		const struct perf_event_mmap_page *page;

		if (!cpus->cpu[cpu])
			continue;
		page = cpus->cpu[cpu]->ring.page;
		bytes += __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE) -
			 page->data_tail;
	}
	return bytes;
}

static void kprobe_losses(void *b, struct quark_loss_report *out)
{
	struct kprobe *k = b;

	*out = k->cpus.lost;
	memset(&k->cpus.lost, 0, sizeof(k->cpus.lost));
}

/* --- the backend ------------------------------------------------------------ */

static void kprobe_close(void *b)
{
	struct kprobe *k = b;

	kprobe_cpus_close(&k->cpus);
	close_scan(k);
	kprobe_events_free(&k->events);
	kprobe_paths_free(k->record.paths);
	strbuf_fini(&k->record.out);
	strbuf_fini(&k->record.proc);
	strbuf_fini(&k->record.root);
	free(k);
}

static int kprobe_start(struct kprobe *k)
{
	int err;

	k->record.paths = kprobe_paths_new();
	if (!k->record.paths)
		return -errno;
	err = kprobe_events_new(&k->events, k->conf.max_env, k->conf.reader);
	if (err)
		return err;
	err = kprobe_cpus_open(&k->cpus, &k->events, &k->conf);
	if (err)
		return err;
	k->followed = clock_boottime_ns();
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
	k->scan_fd = -1;
	k->slack = SLACK_NS;
	k->record.ask = kprobe_ask;
	k->record.arg = k;
	k->record.max_env = conf->max_env;
	k->record.reader = conf->reader;
	err = kprobe_start(k);
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
	.open = kprobe_open,
	.close = kprobe_close,
	.consume = kprobe_consume,
	.watermark = kprobe_watermark,
	.slack = kprobe_slack,
	.epoll_fd = kprobe_epoll_fd,
	.backlog = kprobe_backlog,
	.losses = kprobe_losses,
	.scan = kprobe_scan,
};
