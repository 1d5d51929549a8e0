/* SPDX-License-Identifier: Apache-2.0 */
/* rescan_internal: what rescan.c and rescan_read.c share. */
#ifndef PROFILER_RESCAN_INTERNAL_H
#define PROFILER_RESCAN_INTERNAL_H

#include "profiler/rescan/mapsreader.h"
#include "profiler/rescan/rescan.h"
#include "profiler/rescan/rescan_start.h"

enum rescan_kind {
	RESCAN_PROCESS,
	RESCAN_MAPS,
	RESCAN_BEGIN, /* of a later scan of all processes */
	RESCAN_END,
};

struct rescan_record {
	enum rescan_kind kind;
	struct quark_process *process;
	struct pm_maps maps;
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
	struct rescan_start *start; /* while it goes on */
	uint64_t begin; /* of sampling */
	uint64_t drained; /* up to here the streams are in the pump */
	bool scanning; /* its mappings are being read */
	size_t next_item; /* in its list */
	uint64_t waited; /* ns that its readings waited for locks */
	uint64_t start_ns, start_samples; /* as in rescan_stats */
	/* Later scans of all processes. */
	uint64_t next; /* when */
	uint64_t repairs; /* of quark's cache, by then */
	/* Re-reads. */
	struct mapsreader *maps;
	struct rescan_batch { /* being read by it */
		struct rescan_item items[MAPSREADER_BATCH];
		size_t pos[MAPSREADER_BATCH]; /* in the first scan's list */
		size_t n;
	} batch;
	struct rescan_queue *rereads; /* pending */
	struct rescan_stale stale;
	uint64_t hung, large; /* abandoned; too large */
};

/* Bytes that the record and its mappings take. */
size_t rescan_size(const struct rescan_record *w);
/*
 * Requests the batch, whose items were taken from the queue or are the first
 * scan's; if that fails, they go to the queue.
 */
void rescan_read(struct rescan *r, uint64_t slice_ns);
/* mapsreader_fn, 'arg' is the rescan */
void rescan_on_maps(void *arg, size_t i, const struct mapsreader_result *res,
		    struct pm_maps *m);
/* The first scan: keeps the record, or leaves the process to the queue. */
void rescan_keep(struct rescan *r, const struct rescan_item *item,
		 struct rescan_record *w);
/* A reading under way holds the pump back, so that its record is in time. */
uint64_t rescan_reread_watermark(const struct rescan *r, uint64_t now);

#endif /* PROFILER_RESCAN_INTERNAL_H */
