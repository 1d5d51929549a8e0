/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rescan: processes and mappings read from /proc: the pump's fourth stream. At
 * the start the processes of the source's snapshot and the mappings of each;
 * later the mappings of processes whose own became stale (rescan_read.c), and
 * all processes again once a minute and after a gap in the lifecycle stream. A
 * separate process reads the mappings (mapsreader.h); users take turns
 * (rescan_queue.h). Loop's thread only; times are CLOCK_BOOTTIME in ns.
 */
#ifndef PROFILER_RESCAN_H
#define PROFILER_RESCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "processmanager/processmanager.h"
#include "profiler/limits.h"
#include "profiler/pump.h"
#include "profiler/rescan/rescan_queue.h"

struct rescan;

/* All borrowed; must outlive the rescan. */
struct rescan_opts {
	uv_loop_t *loop;
	struct pump *pump;
	struct pm *pm;
	struct limits *limits;
	/*
	 * Drains and delivers during the first scan. Returns the time up to
	 * which lifecycle and mapping records are in the pump.
	 */
	uint64_t (*drain)(void *arg);
	void *arg;
};

int rescan_new(struct rescan **rp, const struct rescan_opts *opts);
/* Kills the reader instead of waiting for its readings. NULL is fine. */
void rescan_free(struct rescan *r);

/*
 * The first scan, over quark's snapshot, which is not older than 'snapshot';
 * sampling began at 'begin'. Without the loop; drains meanwhile. 0 or -errno.
 */
int rescan_first(struct rescan *r, struct quark_queue *quark, uint64_t snapshot,
		 uint64_t begin);

/* All zeros at the start; the caller frees 'items', also after an error. */
struct rescan_list {
	struct rescan_item *items;
	size_t n, cap;
};
int rescan_add(struct rescan_list *list, uint32_t tgid, uint32_t uid);
/*
 * The mappings of those; a process that would hold up the others is left to the
 * queue of re-reads. Without the loop; drains meanwhile.
 */
void rescan_maps(struct rescan *r, const struct rescan_list *list);

/* Records of the streams; ignored after the first scan. NULL: dropped. */
void rescan_saw_map(struct rescan *r, const struct pm_map_event *ev);
void rescan_saw_event(struct rescan *r, const struct quark_event *ev);
/* Lifecycle events were dropped: the next check scans all processes again. */
void rescan_events_lost(struct rescan *r);
/* Scans all processes again if it is time; right after quark was drained. */
void rescan_check(struct rescan *r, struct quark_queue *quark, uint64_t now);
/* No record of the rescan will be older. */
uint64_t rescan_watermark(struct rescan *r, uint64_t now);
/* Applies a record from the pump and frees it. */
void rescan_deliver(struct pm *pm, void *rec, uint64_t time);
/* Frees a record that is not applied. */
void rescan_drop(void *rec);

/* pm_opts.want_maps: mappings that must be re-read. */
void rescan_want(struct rescan *r, const struct pm_want *want);
/* Mapping records were dropped: every stale process is to be re-read. */
void rescan_after_loss(struct rescan *r);
/* Begins the re-reads that are due; after the pump ran. */
void rescan_work(struct rescan *r, uint64_t now);
/* Whether re-reads are queued or under way. */
bool rescan_pending(const struct rescan *r);

struct rescan_stats {
	struct rescan_queue_stats queue;
	uint64_t hung, large; /* readings abandoned; with too many mappings */
	uint64_t start_ns; /* duration of the first scan; 0: not over */
	uint64_t start_samples; /* taken meanwhile */
};
void rescan_get_stats(const struct rescan *r, struct rescan_stats *out);

#endif /* PROFILER_RESCAN_H */
