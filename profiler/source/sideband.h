/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sideband: the mapping stream. A software event on every CPU has a record
 * (MMAP2) for each executable mapping, and one (KSYMBOL) for each BPF program or
 * other kernel text that is loaded or unloaded; between them are marks, written
 * by a BPF program, where the mappings of an exec begin. maplimit.h limits the records
 * of one process; a PM_MAP_LOST of the process stands for the rest.
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
	/* Together they may grow to this while many records come; 0: never. */
	size_t rings_max;
	/* One record, borrowed for the call. Ordered within a CPU only. */
	void (*map)(void *arg, const struct pm_map_event *ev);
	/*
	 * Directs the marks of execs on a CPU to an event of this stream, as
	 * quark_queue_mark_execs() does; NULL: no marks. 0 or -errno.
	 */
	int (*mark)(void *arg, unsigned int cpu, int fd);
	void *arg;
};

struct sideband_stats {
	uint64_t records; /* of any kind, delivered */
	uint64_t lost; /* dropped: the ring was full */
	uint64_t bad; /* records with wrong lengths */
	uint64_t repeats; /* skipped: equal to the last mapping */
	uint64_t limited; /* dropped: too many of one process */
	uint64_t rings_bytes; /* of all rings, now */
};

int sideband_new(struct sideband **sp, const struct sideband_opts *opts,
		 const char **what);
void sideband_free(struct sideband *s);
/*
 * Calls opts.mark for each CPU that is open, once; sideband_hotplug() does it
 * for CPUs that come later. 0 or -errno.
 */
int sideband_mark(struct sideband *s);
void sideband_poll(struct sideband *s);
/*
 * From inside of opts.map: this mapping was dropped. One PM_MAP_LOST of its
 * process follows for all its mappings dropped until sideband_poll() returns.
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
 * The same for a record with another trailer: 'body' is between header and
 * trailer. The caller zeroes *out and sets its time.
 */
int sideband_parse_body(const struct perf_event_header *h, const void *body,
			size_t len, struct pm_map_event *out, uint64_t *lost);

#endif /* PROFILER_SIDEBAND_H */
