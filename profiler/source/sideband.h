/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sideband: the mapping stream. A software event on every CPU whose records say
 * what the kernel maps executable (MMAP2), and among them marks of where the
 * mappings of an exec begin, which a BPF program writes. Of one process so many are
 * handed on as profiler/source/maplimit.h allows; a PM_MAP_LOST of that process stands for
 * the rest.
 */
#ifndef PROFILER_SIDEBAND_H
#define PROFILER_SIDEBAND_H

#include <linux/perf_event.h>
#include <stddef.h>
#include <stdint.h>

#include "processmanager/processmanager.h"

struct sideband;

struct sideband_opts {
	size_t rings_bytes; /* of all CPUs together, about; 0: 4 MiB */
	size_t ring_bytes; /* or of each: a power of two of pages */
	/* What they may grow to together while much comes; 0: they stay. */
	size_t rings_max;
	/* One record, borrowed for the call. Ordered within a CPU only. */
	void (*map)(void *arg, const struct pm_map_event *ev);
	/*
	 * Has the marks of execs on a CPU written to an event of this stream,
	 * as quark_queue_mark_execs() does; NULL: there are none. 0 or -errno.
	 */
	int (*mark)(void *arg, unsigned int cpu, int fd);
	void *arg;
};

struct sideband_stats {
	uint64_t records; /* of any kind, handed on */
	uint64_t lost; /* found no room in their ring */
	uint64_t bad; /* records with wrong lengths */
	uint64_t repeats; /* skipped: mappings that were there already */
	uint64_t limited; /* dropped: too many of one process */
	uint64_t rings_bytes; /* of all rings, now */
};

int sideband_new(struct sideband **sp, const struct sideband_opts *opts,
		 const char **what);
void sideband_free(struct sideband *s);
/*
 * Calls opts.mark for each CPU that is open: once, when it can be called. CPUs that
 * come later are marked by sideband_hotplug(). 0 or -errno.
 */
int sideband_mark(struct sideband *s);
int sideband_poll(struct sideband *s);
/*
 * From inside of opts.map: there was no room for this mapping. A PM_MAP_LOST of its
 * process follows, one for all that it lost until sideband_poll() returns.
 */
void sideband_no_room(struct sideband *s, const struct pm_map_event *ev);
/* Readable when a ring is half full; then call sideband_poll(). */
int sideband_epoll_fd(const struct sideband *s);
uint64_t sideband_watermark(const struct sideband *s);
int sideband_hotplug(struct sideband *s);
void sideband_get_stats(const struct sideband *s, struct sideband_stats *out);

/*
 * The parser alone: one perf record, header included, as laid out by the
 * attributes this file sets. 1: *out is filled, its path points into 'buf';
 * 0: a record of no interest; -EINVAL: lengths are wrong.
 */
int sideband_parse(const void *buf, size_t len, struct pm_map_event *out,
		   uint64_t *lost);
/*
 * The same for a record that ends in another trailer: 'body' is what lies
 * between header and trailer. *out is zeroed by the caller; its time is his.
 */
int sideband_parse_body(const struct perf_event_header *h, const void *body,
			size_t len, struct pm_map_event *out, uint64_t *lost);

#endif /* PROFILER_SIDEBAND_H */
