/* SPDX-License-Identifier: Apache-2.0 */
/* walk_internal: what walk.c and walk_reread.c share. */
#ifndef PROFILER_WALK_INTERNAL_H
#define PROFILER_WALK_INTERNAL_H

#include "profiler/engine_internal.h"

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

/* What waits with it in the pump, but for the paths. */
size_t walk_size(const struct walk_record *w);
/* A reading under way holds the pump back, so that its record is in time. */
uint64_t walk_reread_watermark(const struct engine *e, uint64_t now);

#endif /* PROFILER_WALK_INTERNAL_H */
