// SPDX-License-Identifier: Apache-2.0
/* spans: see profiler/waiting/spans.h. */
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "profiler/waiting/spans.h"

/* Images whose spans are not known: of a scan no record comes. */
#define SPANS_LOOK_NS (900 * CLOCK_NSEC_PER_MSEC)
/* After a loss mappings are read again, within this time. */
#define SPANS_LOST_NS (10 * CLOCK_NSEC_PER_SEC)

/* 'len' of a span that has no address: of what never has executable mappings. */
static const struct abi_wait_span spans_none = { .start = 0, .len = 1 };

void waiting_spans_init(struct waiting_spans *sp, struct pm *pm)
{
	*sp = (struct waiting_spans){ .pm = pm };
}

void waiting_spans_mapped(struct waiting_spans *sp, uint32_t tgid)
{
	uint32_t bit = tgid % WAITING_SPANS_BITS;

	if (!tgid)
		sp->all_until = clock_boottime_ns() + SPANS_LOST_NS;
	sp->mapped[bit / 64] |= 1ULL << bit % 64;
	sp->any = true;
}

void waiting_spans_of(const struct waiting_range *ranges, size_t n,
		      struct abi_wait_span *out)
{
	uint64_t gap = 0;
	size_t i, at = n;

	memset(out, 0, ABI_WAIT_SPANS * sizeof(*out));
	if (!n)
		return;
	for (i = 1; i < n; i++)
		if (ranges[i].start - ranges[i - 1].end > gap) {
			gap = ranges[i].start - ranges[i - 1].end;
			at = i;
		}
	out[0].start = ranges[0].start;
	out[0].len = ranges[at - 1].end - ranges[0].start;
	if (at == n)
		return;
	out[1].start = ranges[at].start;
	out[1].len = ranges[n - 1].end - ranges[at].start;
}

struct spans_view {
	struct waiting_range *ranges;
	size_t n, cap;
	bool jit;
	bool nomem;
};

/* The vdso is beside the stack, whose words would all be in the span. */
static void spans_on_mapping(void *arg, const struct pm_mapping *map)
{
	struct spans_view *v = arg;
	struct pm_exe_info info;

	pm_exe_info(map->exe, &info);
	if ((info.kind != PM_EXE_FILE && info.kind != PM_EXE_ANON) ||
	    map->end <= map->start || map->end >> 63)
		return;
	if (VECTOR_ROOM(v->ranges, v->n, v->cap)) {
		v->nomem = true;
		return;
	}
	v->jit |= info.kind == PM_EXE_ANON;
	v->ranges[v->n++] = (struct waiting_range){ map->start, map->end };
}

static void spans_set(struct waiting_spans *sp, struct pm_image *img,
		      struct abi_wait_span *spans)
{
	struct abi_wait_span found[ABI_WAIT_SPANS];
	struct pm_view *view = pm_view_new(sp->pm, img, clock_boottime_ns());
	struct spans_view v = { 0 };

	if (!view)
		return;
	pm_view_each(view, spans_on_mapping, &v);
	pm_view_free(view);
	/* A switch in between sees parts of both: that is one site more. */
	if (!v.nomem && v.n) {
		waiting_spans_of(v.ranges, v.n, found);
		if (v.jit)
			found[0].start |= ABI_WAIT_SPAN_JIT;
		memcpy(spans, found, sizeof(found));
	}
	free(v.ranges);
}

static void spans_on_image(void *arg, const struct abi_key *key,
			   struct abi_wait_span *spans)
{
	struct waiting_spans *sp = arg;
	uint32_t bit = key->tgid % WAITING_SPANS_BITS;
	bool changed = sp->mapped[bit / 64] >> bit % 64 & 1;
	struct pm_image_info info;
	struct pm_image *img;

	if (spans[0].len && !changed && sp->looked > sp->all_until)
		return;
	img = pm_newest(sp->pm, key);
	if (!img)
		return;
	pm_image_info(img, &info);
	if (info.kthread)
		spans[0] = spans_none;
	else if (info.key.exec_id == key->exec_id)
		spans_set(sp, img, spans);
}

void waiting_spans_tick(struct waiting_spans *sp, struct waiting_sums *sums,
			uint64_t now)
{
	if (!sp->any && now - sp->looked < SPANS_LOOK_NS)
		return;
	sp->looked = now;
	waiting_sums_spans(sums, spans_on_image, sp);
	memset(sp->mapped, 0, sizeof(sp->mapped));
	sp->any = false;
}
