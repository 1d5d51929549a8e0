// SPDX-License-Identifier: Apache-2.0
/*
 * sideband: one software event and one ring a CPU.
 *
 * Why perf and not a BPF program of ours: the kernel emits these records from
 * inside mmap and execve, for every way in which code can become executable;
 * there is no tracepoint that comes near. Layout of the records:
 * perf_event_open(2) and include/uapi/linux/perf_event.h. They are asked for
 * without build ids, which would take the place of device, inode and generation:
 * by these it is known which file is mapped.
 *
 * Every record ends in one u64, its CLOCK_BOOTTIME, because sample_id_all is
 * set and PERF_SAMPLE_TIME is all of sample_type that such a trailer has; but for
 * the marks of execs, which bpf/quark.bpf.c writes into the same ring, so that they
 * stand in front of the new image's mappings and are lost only with them.
 *
 * Of a loss the kernel writes a record before the next one that has room again,
 * whenever that comes: a minute later, on a quiet CPU. So an event whose ring was
 * nearly full is asked for its count (PERF_FORMAT_LOST, 6.0): a loss is known
 * before anything younger is handed on.
 *
 * The ring is that of a second event, which has no records of its own, and the
 * first one's output is set to it (PERF_EVENT_IOC_SET_OUTPUT). So a ring can be
 * replaced by a larger one between two records: none is lost and none comes twice.
 * It grows when records are lost, and before: when much more was in it than makes it
 * wake the loop, since one loss casts doubt on the mappings of the whole host. It
 * shrinks after a quiet minute.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "base/perfring.h"
#include "bpf/abi.h"
#include "profiler/source/maplimit.h"
#include "profiler/source/sideband.h"

#define SIDEBAND_RINGS (4 << 20)
#define SIDEBAND_RING_MAX (2 << 20)
#define SIDEBAND_RING_MIN (64 << 10)
/* Larger than any record: a path has 4,096 bytes at most. */
#define SIDEBAND_RECORD_MAX (8 << 10)
/* Looks, one a second, at which a grown ring was a quarter full at most. */
#define SIDEBAND_CALM 60
/*
 * The loop is woken at half a ring. If another eighth comes before it gets to drain,
 * what it needs for that on a busy machine may be four times as long the next time.
 */
#define SIDEBAND_TIGHT(bytes) ((bytes) / 8 * 5)
/* A record that was begun in the old ring is complete so long after the switch. */
#define SIDEBAND_SWITCH_US 1000

struct sideband_cpu {
	int fd; /* -1: not open */
	int ring_fd;
	struct perfring ring;
	bool overflowed; /* at this drain */
	unsigned int calm; /* looks */
	uint64_t used; /* bytes of the ring, at most, since the last look */
	uint64_t sure; /* what was lost up to this time has been told */
	uint64_t told; /* records lost, as far as they were told of */
	uint64_t recorded; /* ... by records of the ring */
};

struct sideband {
	struct sideband_opts opts;
	struct sideband_cpu *cpus;
	size_t ncpus;
	struct sideband_stats stats;
	struct sideband_cpu *draining;
	struct perfring_look looked; /* which CPUs there are, last */
	struct maplimit *limit;
	int epoll;
	char *record; /* one that wraps around the end is put together here */
};

/* Follows the two fixed words of MMAP2; a union in the kernel's layout. */
struct sideband_mmap2 {
	uint32_t pid, tid;
	uint64_t addr, len, pgoff;
	uint32_t maj, min;
	uint64_t ino, ino_generation;
	uint32_t prot, flags;
};

/* The whole record, padded to 8 bytes. */
struct sideband_mark {
	struct perf_event_header h;
	uint64_t time;
	uint32_t size; /* of what follows, padding included */
	struct abi_exec_mark mark;
};

static int sideband_parse_mmap2(const struct perf_event_header *h,
				const char *body, size_t len,
				struct pm_map_event *out)
{
	struct sideband_mmap2 m;

	/* That would be another layout, and is not asked for. */
	if (len < sizeof(m) + 1 || h->misc & PERF_RECORD_MISC_MMAP_BUILD_ID)
		return -EINVAL;
	memcpy(&m, body, sizeof(m));
	out->path = body + sizeof(m);
	if (!memchr(out->path, '\0', len - sizeof(m)))
		return -EINVAL;
	if (m.len > UINT64_MAX - m.addr)
		return -EINVAL;
	out->kind = PM_MAP_MMAP;
	out->tgid = m.pid;
	out->tid = m.tid;
	out->start = m.addr;
	out->end = m.addr + m.len;
	out->pgoff = m.pgoff;
	out->dev = makedev(m.maj, m.min);
	out->ino = m.ino;
	out->ino_generation = m.ino_generation;
	return 1;
}

static int sideband_parse_comm(const struct perf_event_header *h,
			       const char *body, size_t len,
			       struct pm_map_event *out)
{
	uint32_t ids[2];

	if (!(h->misc & PERF_RECORD_MISC_COMM_EXEC))
		return 0;
	if (len < sizeof(ids))
		return -EINVAL;
	memcpy(ids, body, sizeof(ids));
	out->kind = PM_MAP_EXEC;
	out->tgid = ids[0];
	out->tid = ids[1];
	return 1;
}

int sideband_parse_body(const struct perf_event_header *h, const void *body,
			size_t len, struct pm_map_event *out, uint64_t *lost)
{
	switch (h->type) {
	case PERF_RECORD_MMAP2:
		return sideband_parse_mmap2(h, body, len, out);
	case PERF_RECORD_COMM:
		return sideband_parse_comm(h, body, len, out);
	case PERF_RECORD_LOST:
		if (len < 2 * sizeof(uint64_t))
			return -EINVAL;
		memcpy(lost, (const char *)body + sizeof(uint64_t),
		       sizeof(*lost));
		out->kind = PM_MAP_LOST;
		return 1;
	}
	return 0;
}

/* Unlike with other records its time stands in front. */
static int sideband_parse_mark(const char *buf, size_t len,
			       struct pm_map_event *out)
{
	struct sideband_mark mark;

	if (len < sizeof(mark))
		return -EINVAL;
	memcpy(&mark, buf, sizeof(mark));
	if (mark.size < sizeof(mark.mark))
		return -EINVAL;
	out->kind = PM_MAP_EXEC;
	out->time = mark.time;
	out->tgid = mark.mark.tgid;
	out->tid = mark.mark.tid;
	return 1;
}

int sideband_parse(const void *buf, size_t len, struct pm_map_event *out,
		   uint64_t *lost)
{
	const char *body = (const char *)buf + sizeof(struct perf_event_header);
	struct perf_event_header h;
	size_t body_len;

	if (len < sizeof(h) + sizeof(uint64_t))
		return -EINVAL;
	memcpy(&h, buf, sizeof(h));
	if (h.size != len)
		return -EINVAL;
	memset(out, 0, sizeof(*out));
	if (h.type == PERF_RECORD_SAMPLE)
		return sideband_parse_mark(buf, len, out);
	body_len = len - sizeof(h) - sizeof(uint64_t);
	memcpy(&out->time, body + body_len, sizeof(uint64_t));
	return sideband_parse_body(&h, body, body_len, out, lost);
}

/* Of any process, between what was sure so far and 'to'. */
static void sideband_lose_span(struct sideband *s, uint64_t from, uint64_t to)
{
	struct pm_map_event ev = {
		.kind = PM_MAP_LOST,
		.time = from,
		.end = MAX(to, from),
	};

	maplimit_lost(s->limit, from);
	s->opts.map(s->opts.arg, &ev);
}

static void sideband_lose(struct sideband *s, const struct sideband_cpu *c,
			  uint64_t to)
{
	sideband_lose_span(s, c->sure, to);
}

/* So many were lost by 'to', of which some are news. */
static void sideband_lost(struct sideband *s, struct sideband_cpu *c,
			  uint64_t lost, uint64_t to)
{
	if (lost <= c->told)
		return;
	s->stats.lost += lost - c->told;
	c->told = lost;
	c->overflowed = true;
	sideband_lose(s, c, to);
}

/* More was mapped by a process than is handed on. */
static void sideband_limited(void *arg, const struct maplimit_told *told)
{
	struct pm_map_event ev = {
		.kind = PM_MAP_LOST,
		.tgid = told->tgid,
		.time = told->from,
		.end = told->to,
		.flood = told->flood,
	};
	struct sideband *s = arg;

	s->opts.map(s->opts.arg, &ev);
}

void sideband_no_room(struct sideband *s, const struct pm_map_event *ev)
{
	maplimit_drop(s->limit, ev->tgid, ev->time);
}

/* Counted, and not to be handed on. */
static bool sideband_limit(struct sideband *s, const char *rec, size_t len,
			   uint64_t time)
{
	const size_t at = sizeof(struct perf_event_header) + sizeof(uint64_t);
	uint32_t tgid;

	if (len < at + MAPLIMIT_KEY + sizeof(time))
		return false;
	memcpy(&tgid, rec + sizeof(struct perf_event_header), sizeof(tgid));
	switch (maplimit_map(s->limit, tgid, time, len, rec + at)) {
	case MAPLIMIT_REPEAT:
		s->stats.repeats++;
		return true;
	case MAPLIMIT_DROP:
		s->stats.limited++;
		return true;
	case MAPLIMIT_PASS:
		break;
	}
	return false;
}

/* What anybody can make a million of a second, seen by header, key and time alone. */
static bool sideband_skip(struct sideband *s, struct sideband_cpu *c,
			  const char *rec, size_t len)
{
	struct perf_event_header h;
	uint64_t time;

	if (len < sizeof(h) + sizeof(time))
		return false;
	memcpy(&h, rec, sizeof(h));
	memcpy(&time, rec + len - sizeof(time), sizeof(time));
	if (h.type != PERF_RECORD_MMAP2 || !sideband_limit(s, rec, len, time))
		return false;
	c->sure = MAX(c->sure, time);
	return true;
}

static void sideband_record(void *arg, const void *rec, size_t len)
{
	struct sideband *s = arg;
	struct sideband_cpu *c = s->draining;
	struct pm_map_event ev;
	uint64_t lost = 0;
	int ret;

	if (sideband_skip(s, c, rec, len))
		return;
	ret = sideband_parse(rec, len, &ev, &lost);
	if (ret < 0) {
		s->stats.bad++;
		sideband_lose(s, c, clock_boottime_ns());
		return;
	}
	s->stats.records += ret;
	if (ret && ev.kind == PM_MAP_LOST) {
		c->recorded += lost;
		sideband_lost(s, c, c->recorded, ev.time);
	} else if (ret) {
		if (ev.kind == PM_MAP_EXEC)
			maplimit_exec(s->limit, ev.tgid, ev.time);
		s->opts.map(s->opts.arg, &ev);
	}
	c->sure = MAX(c->sure, ev.time);
}

/* Of the ring alone, whose half is the mark at which the loop is woken. */
static void sideband_ring_attr(struct perf_event_attr *attr, size_t bytes)
{
	memset(attr, 0, sizeof(*attr));
	attr->size = sizeof(*attr);
	attr->type = PERF_TYPE_SOFTWARE;
	attr->config = PERF_COUNT_SW_DUMMY;
	attr->sample_type = PERF_SAMPLE_TIME;
	attr->sample_id_all = 1;
	attr->use_clockid = 1;
	attr->clockid = CLOCK_BOOTTIME;
	attr->watermark = 1;
	attr->wakeup_watermark = bytes / 2;
	attr->read_format = PERFRING_READ_FORMAT | PERF_FORMAT_LOST;
}

/*
 * With build_id the records would carry no device and inode. With comm each rename
 * would be one, a million of a second in a loop: marks take their place.
 */
static void sideband_attr(struct perf_event_attr *attr, size_t bytes)
{
	sideband_ring_attr(attr, bytes);
	attr->config = PERF_COUNT_SW_BPF_OUTPUT;
	attr->sample_type |= PERF_SAMPLE_RAW;
	attr->mmap = 1;
	attr->mmap2 = 1;
}

static void sideband_cpu_close(struct sideband *s, struct sideband_cpu *c)
{
	if (c->ring.page)
		s->stats.rings_bytes -= c->ring.bytes;
	perfring_unmap(&c->ring);
	if (c->fd >= 0)
		close(c->fd);
	if (c->ring_fd >= 0)
		close(c->ring_fd);
	c->fd = c->ring_fd = -1;
}

/* A ring of so many bytes takes the place of the one that is there, if any. */
static int sideband_ring_open(struct sideband *s, struct sideband_cpu *c,
			      size_t bytes)
{
	unsigned int cpu = c - s->cpus;
	struct perf_event_attr attr;
	struct perfring ring = { 0 };
	int fd, err;

	sideband_ring_attr(&attr, bytes);
	fd = perfring_event(&attr, -1, cpu);
	if (fd < 0)
		return fd;
	err = perfring_map(&ring, fd, bytes, s->record);
	if (!err && ioctl(c->fd, PERF_EVENT_IOC_SET_OUTPUT, fd))
		err = -errno;
	if (err) {
		perfring_unmap(&ring);
		close(fd);
		return err;
	}
	if (c->ring.page) {
		usleep(SIDEBAND_SWITCH_US);
		perfring_drain(&c->ring, sideband_record, s);
	}
	s->stats.rings_bytes += bytes - c->ring.bytes;
	perfring_unmap(&c->ring);
	if (c->ring_fd >= 0)
		close(c->ring_fd);
	c->ring = ring;
	c->ring_fd = fd;
	return 0;
}

static int sideband_cpu_open(struct sideband *s, unsigned int cpu,
			     const char **what)
{
	struct sideband_cpu *c = &s->cpus[cpu];
	struct perf_event_attr attr;
	int err;

	sideband_attr(&attr, s->opts.ring_bytes);
	*what = "perf_event_open of the mapping stream";
	err = perfring_event(&attr, -1, cpu);
	if (err < 0)
		return err;
	c->fd = err;
	c->ring.bytes = 0;
	*what = "ring of the mapping stream";
	err = sideband_ring_open(s, c, s->opts.ring_bytes);
	if (!err)
		err = perfring_watch(s->epoll, c->fd);
	if (err)
		sideband_cpu_close(s, c);
	else
		c->sure = c->ring.watermark;
	c->told = c->recorded = 0;
	c->calm = 0;
	return err;
}

int sideband_mark(struct sideband *s)
{
	int err = 0;
	size_t i;

	for (i = 0; !err && i < s->ncpus; i++)
		if (s->cpus[i].fd >= 0)
			err = s->opts.mark(s->opts.arg, i, s->cpus[i].fd);
	return err;
}

int sideband_new(struct sideband **sp, const struct sideband_opts *opts,
		 const char **what)
{
	struct sideband *s = calloc(1, sizeof(*s));
	int n = cpus_number(), err = -ENOMEM;
	struct cpus online = { 0 };
	size_t i;

	*what = "memory";
	if (!s)
		goto fail;
	*what = "/sys/devices/system/cpu/possible";
	err = MIN(n, 0);
	if (err)
		goto fail;
	*what = "memory";
	err = -ENOMEM;
	s->opts = *opts;
	s->epoll = -1;
	s->record = malloc(PERFRING_RECORD_MAX);
	s->cpus = calloc(n, sizeof(*s->cpus));
	s->limit = maplimit_new(sideband_limited, s);
	if (!s->record || !s->cpus || !s->limit)
		goto fail;
	for (s->ncpus = 0; s->ncpus < (size_t)n; s->ncpus++)
		s->cpus[s->ncpus].fd = s->cpus[s->ncpus].ring_fd = -1;
	*what = "epoll_create1";
	s->epoll = epoll_create1(EPOLL_CLOEXEC);
	err = s->epoll < 0 ? -errno : 0;
	if (err)
		goto fail;
	if (!s->opts.ring_bytes)
		s->opts.ring_bytes = MIN(
			perfring_size(SIDEBAND_RING_MIN,
				      (s->opts.rings_bytes ? s->opts.rings_bytes
							   : SIDEBAND_RINGS) /
					      n),
			SIDEBAND_RING_MAX);
	*what = "/sys/devices/system/cpu/online";
	s->looked = perfring_look();
	err = cpus_online(&online);
	for (i = 0; !err && i < s->ncpus; i++) {
		if (cpus_has(&online, i))
			err = sideband_cpu_open(s, i, what);
		if (err == -ENODEV) /* went meanwhile */
			err = 0;
	}
	cpus_fini(&online);
	if (err)
		goto fail;
	*sp = s;
	return 0;
fail:
	sideband_free(s);
	return err;
}

void sideband_free(struct sideband *s)
{
	size_t i;

	if (!s)
		return;
	for (i = 0; i < s->ncpus; i++)
		sideband_cpu_close(s, &s->cpus[i]);
	if (s->epoll >= 0)
		close(s->epoll);
	maplimit_free(s->limit);
	free(s->cpus);
	free(s->record);
	free(s);
}

/* What was lost behind the last record of the ring. */
static void sideband_untold(struct sideband *s, struct sideband_cpu *c)
{
	struct perfring_counts v;

	if (perfring_counts(c->fd, &v))
		sideband_lost(s, c, v.lost, clock_boottime_ns());
}

/* Twice as large, if all may have so much. It counts from the next record on. */
static void sideband_grow(struct sideband *s, struct sideband_cpu *c)
{
	uint64_t lost = c->told;

	if (s->stats.rings_bytes + c->ring.bytes > s->opts.rings_max ||
	    sideband_ring_open(s, c, 2 * c->ring.bytes))
		return;
	/* The new ring's records of a loss do not count the old one's. */
	sideband_untold(s, c);
	c->recorded = c->told;
	c->overflowed = c->told > lost;
	c->used = 0;
	c->calm = 0;
}

static void sideband_shrink(struct sideband *s, struct sideband_cpu *c)
{
	bool calm = c->used <= c->ring.bytes / 4;

	c->calm = calm ? c->calm + 1 : 0;
	c->used = 0;
	if (c->ring.bytes <= s->opts.ring_bytes || c->calm < SIDEBAND_CALM)
		return;
	s->draining = c;
	if (!sideband_ring_open(s, c, c->ring.bytes / 2)) {
		sideband_untold(s, c);
		c->recorded = c->told;
	}
	c->calm = 0;
}

static int sideband_drain(struct sideband *s, struct sideband_cpu *c)
{
	int n;

	s->draining = c;
	c->overflowed = false;
	n = perfring_drain(&c->ring, sideband_record, s);
	if (n < 0) {
		s->stats.bad++;
		sideband_lose(s, c, clock_boottime_ns());
		n = 0;
	}
	if (c->ring.used + SIDEBAND_RECORD_MAX > c->ring.bytes)
		sideband_untold(s, c);
	c->used = MAX(c->used, c->ring.used);
	c->sure = MAX(c->sure, c->ring.watermark);
	if (c->overflowed || c->ring.used > SIDEBAND_TIGHT(c->ring.bytes))
		sideband_grow(s, c);
	return n;
}

int sideband_poll(struct sideband *s)
{
	size_t i;
	int n = 0;

	perfring_forget_gone(s->epoll);
	for (i = 0; i < s->ncpus; i++)
		if (s->cpus[i].ring.page)
			n += sideband_drain(s, &s->cpus[i]);
	maplimit_flush(s->limit);
	return n;
}

int sideband_epoll_fd(const struct sideband *s)
{
	return s->epoll;
}

uint64_t sideband_watermark(const struct sideband *s)
{
	uint64_t least = UINT64_MAX;
	size_t i;

	for (i = 0; i < s->ncpus; i++)
		if (s->cpus[i].ring.page)
			least = MIN(least, s->cpus[i].ring.watermark);
	return least;
}

/* What a CPU did before its ring was opened nobody has counted. */
static int sideband_cpu_came(struct sideband *s, unsigned int cpu,
			     const struct perfring_look *now)
{
	struct perfring_span span = { .from = s->cpus[cpu].sure }, parts[2];
	const char *what;
	int err = sideband_cpu_open(s, cpu, &what), i, n;

	if (err)
		return err == -ENODEV ? 0 : err; /* gone again */
	if (s->opts.mark)
		err = s->opts.mark(s->opts.arg, cpu, s->cpus[cpu].fd);
	if (err) {
		sideband_cpu_close(s, &s->cpus[cpu]);
		return err;
	}
	s->stats.lost++;
	/* An exec in between has no mark: it is among what is lost. */
	s->cpus[cpu].sure = clock_boottime_ns();
	span.to = MAX(span.from, s->cpus[cpu].sure);
	n = perfring_awake(&s->looked, now, &span, parts);
	for (i = 0; i < n; i++)
		sideband_lose_span(s, parts[i].from, parts[i].to);
	return 0;
}

int sideband_hotplug(struct sideband *s)
{
	struct perfring_look now = perfring_look();
	int err, first = 0;
	struct cpus online;
	size_t i;

	err = cpus_online(&online);
	if (err)
		return err;
	for (i = 0; i < s->ncpus; i++) {
		struct sideband_cpu *c = &s->cpus[i];
		bool on = cpus_has(&online, i);

		if (c->ring.page && (!on || perfring_silent(c->fd))) {
			sideband_drain(s, c);
			sideband_cpu_close(s, c);
			c->sure = MIN(c->sure, s->looked.at);
		}
		err = on && !c->ring.page ? sideband_cpu_came(s, i, &now) : 0;
		first = first ? first : err;
		if (!on) /* nobody runs there */
			c->sure = now.at;
		if (c->ring.page)
			sideband_shrink(s, c);
	}
	cpus_fini(&online);
	maplimit_flush(s->limit);
	s->looked = now;
	return first;
}

void sideband_get_stats(const struct sideband *s, struct sideband_stats *out)
{
	*out = s->stats;
}
