// SPDX-License-Identifier: Apache-2.0
/* mapped: see profiler/tracing/mapped.h. */
#include "base/base.h"
#include "profiler/tracing/mapped.h"

static bool mapped_bias(const struct pm_mapping *map, uint64_t *bias)
{
	const struct symbolizer_segment *seg;
	size_t n;

	seg = pm_exe_segments(map->exe, &n);
	for (size_t i = 0; i < n; i++, seg++) {
		if (map->pgoff > seg->offset ||
		    seg->offset - map->pgoff >= map->end - map->start)
			continue;
		*bias = map->start + (seg->offset - map->pgoff) - seg->vaddr;
		return true;
	}
	return false;
}

static int mapped_rank(const struct symbolizer_slot *slot)
{
	return slot->model == SYMBOLIZER_SLOT_EXEC     ? 3
	       : slot->kind == SYMBOLIZER_SLOT_ELASTIC ? 2
						       : 1;
}

static void mapped_on_mapping(void *arg, const struct pm_mapping *map)
{
	const struct symbolizer_slot *slot = pm_exe_slot(map->exe);
	struct mapped_tracer *best = arg;

	if (slot &&
	    (!best->slot || mapped_rank(slot) > mapped_rank(best->slot)) &&
	    mapped_bias(map, &best->bias))
		best->slot = slot;
}

bool mapped_tracer(struct pm *pm, struct pm_image *img,
		   struct mapped_tracer *out)
{
	struct pm_view *view = pm_view_new(pm, img, clock_boottime_ns());

	*out = (struct mapped_tracer){ 0 };
	if (!view)
		return false;
	pm_view_each(view, mapped_on_mapping, out);
	pm_view_free(view);
	return out->slot;
}
