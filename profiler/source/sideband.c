// SPDX-License-Identifier: Apache-2.0
/*
 * sideband: one software event and one ring on each CPU (ringset.h).
 *
 * Why perf and not a BPF program of profd: the kernel emits these records from
 * inside mmap and execve, for every way in which code can become executable; no
 * tracepoint covers them all. Layout of the records: perf_event_open(2) and
 * include/uapi/linux/perf_event.h. They are requested without build ids, which
 * would replace device, inode and generation, by which the mapped file is
 * identified.
 *
 * Every record ends in one u64, its CLOCK_BOOTTIME, because sample_id_all is
 * set and PERF_SAMPLE_TIME is the only bit of sample_type that such a trailer
 * has. Only the marks of execs differ, which bpf/quark.bpf.c writes into the
 * same ring, so that a mark precedes the mappings of its image and is lost only
 * with them.
 *
 * The kernel reports dropped records before the next one that fits again, on a
 * quiet CPU perhaps a minute later. So the count of drops (PERF_FORMAT_LOST,
 * 6.0) is read when a ring was nearly full: a loss is known before any younger
 * record is delivered.
 *
 * The ring belongs to a second event without records of its own, and the first
 * one's output is set to it (PERF_EVENT_IOC_SET_OUTPUT). So a ring can be
 * replaced by a larger one between two records, without loss or duplicates. It
 * grows when records were dropped, and earlier: when it held much more than the
 * amount at which it wakes the loop, since one loss makes the mappings of the
 * whole host stale. It shrinks after a quiet minute.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/base.h"
#include "bpf/abi.h"
#include "profiler/source/maplimit.h"
#include "profiler/source/ringset.h"
#include "profiler/source/sideband.h"

#define SIDEBAND_RINGS (4 << 20)
#define SIDEBAND_RING_MAX (2 << 20)
#define SIDEBAND_RING_MIN (64 << 10)
/* Larger than any record: a path has 4,096 bytes at most. */
#define SIDEBAND_RECORD_MAX (8 << 10)
/* A grown ring shrinks after so many seconds at a quarter full or less. */
#define SIDEBAND_CALM 60
/*
 * The loop is woken at half a ring. If another eighth comes before it drains, a
 * busier machine may delay the next drain by four times as much.
 */
#define SIDEBAND_TIGHT(bytes) ((bytes) / 8 * 5)
/* After a switch, records begun in the old ring complete in this time. */
#define SIDEBAND_SWITCH_US 1000

struct sideband_cpu {
	struct ringset_cpu r;
	int ring_fd; /* of the ring; valid while r.ring is mapped */
	bool overflowed; /* at this drain */
	unsigned int calm; /* seconds */
	uint64_t used; /* bytes of the ring, at most, in this second */
	uint64_t reported; /* records that were dropped */
	uint64_t recorded; /* ... by LOST records */
};

struct sideband {
	struct sideband_opts opts;
	struct ringset rings;
	struct sideband_cpu *cpus; /* of 'rings' */
	struct sideband_stats stats;
	struct sideband_cpu *draining;
	struct maplimit *limit;
};

/* Follows the two fixed words of MMAP2; a union in the kernel's layout. */
struct sideband_mmap2 {
	uint32_t pid, tid;
	uint64_t addr, len, pgoff;
	uint32_t maj, min;
	uint64_t ino, ino_generation;
	uint32_t prot, flags;
};

/* As above, of KSYMBOL; the name follows. */
struct sideband_ksymbol {
	uint64_t addr;
	uint32_t len;
	uint16_t type, flags;
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

	/* Build ids would be another layout; they are not requested. */
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

static int sideband_parse_ksymbol(const char *body, size_t len,
				  struct pm_map_event *out)
{
	struct sideband_ksymbol k;

	if (len < sizeof(k) + 1)
		return -EINVAL;
	memcpy(&k, body, sizeof(k));
	out->path = body + sizeof(k);
	if (!memchr(out->path, '\0', len - sizeof(k)) ||
	    k.len > UINT64_MAX - k.addr)
		return -EINVAL;
	out->kind = PM_MAP_KSYMBOL;
	out->start = k.addr;
	out->end = k.addr + k.len;
	out->unloaded = k.flags & PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER;
	return 1;
}

int sideband_parse_body(const struct perf_event_header *h, const void *body,
			size_t len, struct pm_map_event *out, uint64_t *lost)
{
	switch (h->type) {
	case PERF_RECORD_MMAP2:
		return sideband_parse_mmap2(h, body, len, out);
	case PERF_RECORD_KSYMBOL:
		return sideband_parse_ksymbol(body, len, out);
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

/* Unlike in other records the time comes first. */
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

/* Mappings of any process may be missing between these times. */
static void sideband_lose_span(void *arg, uint64_t from, uint64_t to)
{
	struct pm_map_event ev = {
		.kind = PM_MAP_LOST,
		.time = from,
		.end = MAX(to, from),
	};
	struct sideband *s = arg;

	maplimit_lost(s->limit, from);
	s->opts.map(s->opts.arg, &ev);
}

/* The CPU had dropped 'lost' records by 'to', reported ones included. */
static void sideband_lost(struct sideband *s, struct sideband_cpu *c,
			  uint64_t lost, uint64_t to)
{
	if (lost <= c->reported)
		return;
	s->stats.lost += lost - c->reported;
	c->reported = lost;
	c->overflowed = true;
	sideband_lose_span(s, c->r.sure, to);
}

/* maplimit_fn */
static void sideband_limited(void *arg, const struct maplimit_drops *drops)
{
	struct pm_map_event ev = {
		.kind = PM_MAP_LOST,
		.tgid = drops->tgid,
		.time = drops->from,
		.end = drops->to,
		.flood = drops->flood,
	};
	struct sideband *s = arg;

	s->opts.map(s->opts.arg, &ev);
}

void sideband_no_room(struct sideband *s, const struct pm_map_event *ev)
{
	maplimit_drop(s->limit, ev->tgid, ev->time);
}

/* True: counted, and not to be delivered. */
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

/* A user can make a million a second: only header, key and time are read. */
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
	c->r.sure = MAX(c->r.sure, time);
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
		sideband_lose_span(s, c->r.sure, clock_boottime_ns());
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
	c->r.sure = MAX(c->r.sure, ev.time);
}

/* Of the event with the ring, which wakes the loop when half full. */
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

/* Not comm, by which a user makes a million records a second: hence marks. */
static void sideband_attr(struct perf_event_attr *attr, size_t bytes)
{
	sideband_ring_attr(attr, bytes);
	attr->config = PERF_COUNT_SW_BPF_OUTPUT;
	attr->sample_type |= PERF_SAMPLE_RAW;
	attr->mmap = 1;
	attr->mmap2 = 1;
	attr->ksymbol = 1;
}

static void sideband_cpu_close(void *arg, struct ringset_cpu *r)
{
	struct sideband_cpu *c = container_of(r, struct sideband_cpu, r);
	struct sideband *s = arg;

	if (r->ring.page) {
		s->stats.rings_bytes -= r->ring.bytes;
		close(c->ring_fd);
	}
	perfring_unmap(&r->ring);
	if (r->fd >= 0)
		close(r->fd);
	r->fd = -1;
}

/* Opens a ring of so many bytes; it replaces the present one, if any. */
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
	err = perfring_map(&ring, fd, bytes, s->rings.record);
	if (!err && ioctl(c->r.fd, PERF_EVENT_IOC_SET_OUTPUT, fd))
		err = -errno;
	if (err) {
		perfring_unmap(&ring);
		close(fd);
		return err;
	}
	if (c->r.ring.page) {
		usleep(SIDEBAND_SWITCH_US);
		perfring_drain(&c->r.ring, sideband_record, s);
		s->stats.rings_bytes -= c->r.ring.bytes;
		perfring_unmap(&c->r.ring);
		close(c->ring_fd);
	}
	s->stats.rings_bytes += bytes;
	c->r.ring = ring;
	c->ring_fd = fd;
	return 0;
}

static int sideband_cpu_open(void *arg, unsigned int cpu, const char **what)
{
	struct sideband *s = arg;
	struct sideband_cpu *c = &s->cpus[cpu];
	struct perf_event_attr attr;
	int err;

	sideband_attr(&attr, s->opts.ring_bytes);
	*what = "perf_event_open of the mapping stream";
	err = perfring_event(&attr, -1, cpu);
	if (err < 0)
		return err;
	c->r.fd = err;
	*what = "ring of the mapping stream";
	err = sideband_ring_open(s, c, s->opts.ring_bytes);
	if (!err)
		err = perfring_watch(s->rings.epoll, c->r.fd);
	if (err)
		sideband_cpu_close(s, &c->r);
	else
		c->r.sure = c->r.ring.watermark;
	c->reported = c->recorded = 0;
	c->calm = 0;
	return err;
}

static int sideband_cpu_came(void *arg, unsigned int cpu)
{
	struct sideband *s = arg;
	struct sideband_cpu *c = &s->cpus[cpu];
	int err = 0;

	if (s->opts.mark)
		err = s->opts.mark(s->opts.arg, cpu, c->r.fd);
	if (err)
		return err;
	s->stats.lost++;
	/* An exec before this has no mark: it is among the losses. */
	c->r.sure = clock_boottime_ns();
	return 0;
}

int sideband_mark(struct sideband *s)
{
	int err = 0;
	size_t i;

	for (i = 0; !err && i < s->rings.n; i++)
		if (s->cpus[i].r.fd >= 0)
			err = s->opts.mark(s->opts.arg, i, s->cpus[i].r.fd);
	return err;
}

/* Records dropped after the last one in the ring. */
static void sideband_unreported(struct sideband *s, struct sideband_cpu *c)
{
	struct perfring_counts v;

	if (perfring_counts(c->r.fd, &v))
		sideband_lost(s, c, v.lost, clock_boottime_ns());
}

/* Doubles the ring unless all rings together would exceed their maximum. */
static void sideband_grow(struct sideband *s, struct sideband_cpu *c)
{
	uint64_t lost = c->reported;

	if (s->stats.rings_bytes + c->r.ring.bytes > s->opts.rings_max ||
	    sideband_ring_open(s, c, 2 * c->r.ring.bytes))
		return;
	/* LOST records of the new ring do not include those of the old one. */
	sideband_unreported(s, c);
	c->recorded = c->reported;
	c->overflowed = c->reported > lost;
	c->used = 0;
	c->calm = 0;
}

static void sideband_shrink(struct sideband *s, struct sideband_cpu *c)
{
	bool calm = c->used <= c->r.ring.bytes / 4;

	c->calm = calm ? c->calm + 1 : 0;
	c->used = 0;
	if (c->r.ring.bytes <= s->opts.ring_bytes || c->calm < SIDEBAND_CALM)
		return;
	s->draining = c;
	if (!sideband_ring_open(s, c, c->r.ring.bytes / 2)) {
		sideband_unreported(s, c);
		c->recorded = c->reported;
	}
	c->calm = 0;
}

static void sideband_drain(void *arg, struct ringset_cpu *r)
{
	struct sideband_cpu *c = container_of(r, struct sideband_cpu, r);
	struct sideband *s = arg;

	s->draining = c;
	c->overflowed = false;
	if (perfring_drain(&r->ring, sideband_record, s) < 0) {
		s->stats.bad++;
		sideband_lose_span(s, r->sure, clock_boottime_ns());
	}
	if (r->ring.used + SIDEBAND_RECORD_MAX > r->ring.bytes)
		sideband_unreported(s, c);
	c->used = MAX(c->used, r->ring.used);
	r->sure = MAX(r->sure, r->ring.watermark);
	if (c->overflowed || r->ring.used > SIDEBAND_TIGHT(r->ring.bytes))
		sideband_grow(s, c);
}

void sideband_poll(struct sideband *s)
{
	ringset_poll(&s->rings);
	maplimit_flush(s->limit);
}

int sideband_epoll_fd(const struct sideband *s)
{
	return s->rings.epoll;
}

uint64_t sideband_watermark(const struct sideband *s)
{
	return ringset_watermark(&s->rings);
}

int sideband_hotplug(struct sideband *s)
{
	int err = ringset_hotplug(&s->rings, true);
	size_t i;

	for (i = 0; i < s->rings.n; i++)
		if (s->cpus[i].r.ring.page)
			sideband_shrink(s, &s->cpus[i]);
	maplimit_flush(s->limit);
	return err;
}

int sideband_new(struct sideband **sp, const struct sideband_opts *opts,
		 const char **what)
{
	struct sideband *s = calloc(1, sizeof(*s));
	size_t bytes = opts->rings_bytes ? opts->rings_bytes : SIDEBAND_RINGS;
	int err;

	*what = "memory";
	if (!s)
		return -ENOMEM;
	s->opts = *opts;
	s->rings = (struct ringset){ .cpu_size = sizeof(*s->cpus),
				     .open = sideband_cpu_open,
				     .came = sideband_cpu_came,
				     .drain = sideband_drain,
				     .close = sideband_cpu_close,
				     .lost = sideband_lose_span,
				     .arg = s };
	err = ringset_init(&s->rings, what);
	if (err)
		goto fail;
	s->cpus = s->rings.cpus;
	err = -ENOMEM;
	*what = "memory";
	s->limit = maplimit_new(sideband_limited, s);
	if (!s->limit)
		goto fail;
	if (!s->opts.ring_bytes)
		s->opts.ring_bytes = MIN(perfring_size(SIDEBAND_RING_MIN,
						       bytes / s->rings.n),
					 SIDEBAND_RING_MAX);
	err = ringset_online(s->rings.n, sideband_cpu_open, s, what);
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
	if (!s)
		return;
	ringset_fini(&s->rings);
	maplimit_free(s->limit);
	free(s);
}

void sideband_get_stats(const struct sideband *s, struct sideband_stats *out)
{
	*out = s->stats;
}
