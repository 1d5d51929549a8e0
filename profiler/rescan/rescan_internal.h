/* SPDX-License-Identifier: Apache-2.0 */
/* rescan_internal: what rescan.c and rescan_read.c share. */
#ifndef PROFILER_RESCAN_INTERNAL_H
#define PROFILER_RESCAN_INTERNAL_H

#include "profiler/rescan/mapsreader.h"
#include "profiler/rescan/rescan.h"
#include "profiler/rescan/rescan_start.h"

enum walk_kind {
	WALK_PROCESS,
	WALK_MAPS,
	WALK_BEGIN, /* of a later scan of all processes */
	WALK_END,
};

/* In the pump, which frees it. */
struct walk_record {
	enum walk_kind kind;
	struct quark_process *process;
	struct pm_maps maps;
};

struct walk_batch {
	struct walkqueue_item items[MAPSREADER_BATCH];
	size_t pos[MAPSREADER_BATCH]; /* in the first scan's list */
	size_t n;
};

/* The re-read of all stale processes, after a loss. */
struct rescan_stale {
	uint64_t next; /* when it is due; 0: it is not */
	uint64_t began; /* last time */
	unsigned int rounds; /* to go */
};

struct rescan {
	struct rescan_opts opts;
	/* The first scan. */
	struct walk_start *start; /* while it goes on */
	uint64_t begin; /* of sampling */
	uint64_t told; /* lifecycle and mapping streams are in the pump so far */
	bool walking; /* its mappings are being read */
	size_t walk_at; /* the next of its processes */
	uint64_t walk_waited; /* ns that its readings waited for locks */
	uint64_t start_ns, start_samples; /* as in rescan_stats */
	/* Later scans of all processes. */
	uint64_t next; /* when */
	uint64_t repairs; /* of quark's cache, by then */
	/* Re-reads. */
	struct mapsreader *maps; /* NULL: none yet */
	struct walk_batch *batch; /* of it, being read */
	struct walkqueue *rereads; /* those to come; NULL: none yet */
	struct rescan_stale stale;
	uint64_t hung, large; /* abandoned; too large */
};

/* What waits with it in the pump. */
size_t rescan_size(const struct walk_record *w);
/*
 * Asks for the batch, whose items were taken from the queue or are the first
 * scan's; if it cannot be read now, they wait in the queue.
 */
void rescan_read(struct rescan *r, uint64_t slice_ns);
/* The first scan: keeps the record, or leaves the process to the queue. */
void rescan_keep(struct rescan *r, const struct walkqueue_item *item,
		 struct walk_record *w);
/* The reader, the queue and the batch are there; 0 or -ENOMEM. */
int rescan_reader(struct rescan *r);
void rescan_later(struct rescan *r, const struct walkqueue_item *item);
/* A reading under way holds the pump back, so that its record is in time. */
uint64_t rescan_reread_watermark(const struct rescan *r, uint64_t now);

#endif /* PROFILER_RESCAN_INTERNAL_H */
