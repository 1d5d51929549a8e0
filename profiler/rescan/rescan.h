/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rescan: what runs, read from /proc: the pump's fourth stream. At the start the
 * processes of the source's snapshot and the mappings of each; later the mappings of
 * processes whose own became stale (rescan_read.c), and all processes again once a
 * minute and after a gap in the lifecycle stream. Mappings are read by a process of
 * its own (mapsreader.h), users in turn (rescan_queue.h). Loop's thread only; times are
 * CLOCK_BOOTTIME in ns.
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

/* All borrowed, and to outlive the rescan. */
struct rescan_opts {
	uv_loop_t *loop;
	struct pump *pump;
	struct pm *pm;
	struct limits *limits;
	/*
	 * Drains and delivers, while the first scan takes its time. Returns the
	 * time up to which lifecycle and mapping records are in the pump.
	 */
	uint64_t (*drain)(void *arg);
	void *arg;
};

int rescan_new(struct rescan **rp, const struct rescan_opts *opts);
/* Waits for no reading: the reader is killed. NULL is fine. */
void rescan_free(struct rescan *r);

/*
 * The first scan, over quark's snapshot, which is not older than 'snapshot'; sampling
 * began at 'begin'. Without the loop; drains meanwhile. 0 or -errno.
 */
int rescan_first(struct rescan *r, struct quark_queue *quark, uint64_t snapshot,
		 uint64_t begin);
/*
 * The mappings of those; one that would hold the others up is left to the queue of
 * re-reads. Without the loop; drains meanwhile. 0 or -errno.
 */
int rescan_maps(struct rescan *r, const struct walkqueue_item *items, size_t n);
/* A process for it; the caller frees *itemsp, also after an error. */
int rescan_add(struct walkqueue_item **itemsp, size_t *np, uint32_t tgid,
	       uint32_t uid);

/*
 * What the streams reported while the first scan goes on; a NULL record is missing,
 * and rescan_saw_loss(): an unknown number of them. Nothing later.
 */
void rescan_saw_map(struct rescan *r, const struct pm_map_event *ev);
void rescan_saw_event(struct rescan *r, const struct quark_event *ev);
void rescan_saw_loss(struct rescan *r);

/* All processes are to be scanned again at the next check. */
void rescan_soon(struct rescan *r);
/* Scans all processes again if it is time; right after quark was drained. */
void rescan_check(struct rescan *r, struct quark_queue *quark, uint64_t now);
/* Before this no record of the rescan comes. */
uint64_t rescan_watermark(struct rescan *r, uint64_t now);
/* A record that the pump delivers, which the pump frees afterwards. */
void rescan_deliver(struct pm *pm, void *rec, uint64_t time);
/* In its place, of a record that is not delivered: frees it, with all it has. */
void rescan_drop(void *rec);

/* pm_opts.want_maps: mappings that must be re-read. */
void rescan_want(struct rescan *r, const struct pm_want *want);
/* Mapping records were lost: every stale process is to be re-read. */
void rescan_after_loss(struct rescan *r);
/* Begins what is due of both; after the pump ran. */
void rescan_work(struct rescan *r, uint64_t now);
/* Whether readings are to come, or under way. */
bool rescan_pending(const struct rescan *r);

struct rescan_stats {
	struct walkqueue_stats queue;
	uint64_t hung, large; /* readings abandoned; of too many mappings */
	uint64_t start_ns; /* how long the first scan took; 0: none, or not over */
	uint64_t start_samples; /* taken meanwhile */
};
void rescan_get_stats(const struct rescan *r, struct rescan_stats *out);

#endif /* PROFILER_RESCAN_H */
