/* SPDX-License-Identifier: Apache-2.0 */
/* walk_internal: what walk.c and walk_reread.c share. */
#ifndef PROFILER_WALK_INTERNAL_H
#define PROFILER_WALK_INTERNAL_H

#include "profiler/engine_internal.h"
#include "profiler/rescan/mapsreader.h"
#include "profiler/rescan/rescan_queue.h"

enum walk_kind {
	WALK_PROCESS,
	WALK_MAPS,
	WALK_BEGIN, /* of a later walk over all processes */
	WALK_END,
};

/* In the pump; freed by whoever hands it on. */
struct walk_record {
	enum walk_kind kind;
	struct quark_process *process;
	struct pm_maps maps;
};

struct walk_batch {
	struct walkqueue_item items[MAPSREADER_BATCH];
	size_t pos[MAPSREADER_BATCH]; /* in the walk's list */
	size_t n;
};

/* What waits with it in the pump. */
size_t walk_size(const struct walk_record *w);
/*
 * Asks for the batch, whose items were taken from the queue or are the first
 * walk's; if it cannot be read now, they wait in the queue.
 */
void walk_read(struct engine *e, uint64_t slice_ns);
/* The first walk: keeps the record, or leaves the process to the queue. */
void walk_keep(struct engine *e, const struct walkqueue_item *item,
	       struct walk_record *w);
/* The reader, the queue and the batch are there; 0 or -ENOMEM. */
int walk_reader(struct engine *e);
void walk_later(struct engine *e, const struct walkqueue_item *item);
/* A reading under way holds the pump back, so that its record is in time. */
uint64_t walk_reread_watermark(const struct engine *e, uint64_t now);

#endif /* PROFILER_WALK_INTERNAL_H */
