// SPDX-License-Identifier: Apache-2.0
/* summary: see profiler/cmd/summary.h. */
#include <inttypes.h>
#include <stddef.h>

#include "base/base.h"
#include "profiler/engine_internal.h"
#include "profiler/cmd/summary.h"

/* Reasons why stacks are incomplete: all of TRACE_STACK_STATS but stack_root. */
static const struct {
	size_t offset; /* of the count in struct trace_stats */
	const char *words;
} summary_stacks[] = {
#define STACK(name, words)                                \
	{                                                 \
		offsetof(struct trace_stats, name), words \
	}
	STACK(stack_no_cfi, "no unwind info"),
	STACK(stack_gone, "file gone"),
	STACK(stack_unread, "file not read"),
	STACK(stack_no_fp, "no frame pointer"),
	STACK(stack_top, "caller not certain"),
	STACK(stack_broken, "broken frame"),
	STACK(stack_other, "another stack"),
	STACK(stack_cap, "cut at the copy limit"),
	STACK(stack_fault, "page not present"),
	STACK(stack_exec, "inside execve"),
	STACK(stack_none, "not copied"),
	STACK(stack_late, "tables late"),
	STACK(stack_depth, "cut at the frame limit"),
#undef STACK
};

enum loss_class {
	CLASS_OTHER,
	CLASS_SAMPLES, /* added to "lost" */
	CLASS_COUNTED, /* part of another count */
};

/* Losses by cause; one without words is printed by its name. */
static const struct {
	enum loss_class class;
	const char *words;
} loss_classes[LOSS_MAX] = {
	[LOSS_RING_FULL] = { CLASS_SAMPLES, NULL },
	[LOSS_NOMEM] = { CLASS_SAMPLES, NULL },
	[LOSS_PUMP_FULL] = { CLASS_SAMPLES, NULL },
	[LOSS_BAD] = { CLASS_SAMPLES, NULL },
	[LOSS_MISSED] = { CLASS_OTHER, "missing" },
	[LOSS_LIFECYCLE] = { CLASS_OTHER, "lifecycle events lost" },
	[LOSS_LIFECYCLE_MS] = { CLASS_COUNTED, NULL },
	[LOSS_MAPPING] = { CLASS_OTHER, "mapping records lost" },
	[LOSS_MAPPING_MS] = { CLASS_COUNTED, NULL },
	[LOSS_TABLES_LATE] = { CLASS_COUNTED, NULL },
	[LOSS_FILE_GONE] = { CLASS_COUNTED, NULL },
	[LOSS_NAMES_LATE] = { CLASS_OTHER, "without all names" },
	[LOSS_PERF_GAPS] = { CLASS_OTHER, "gaps in perf records" },
	[LOSS_THROTTLED] = { CLASS_OTHER, "times throttled" },
	[LOSS_WAITS] = { CLASS_OTHER, "waits in no profile" },
	[LOSS_WAITS_MS] = { CLASS_COUNTED, NULL },
	[LOSS_TRACE_TORN] = { CLASS_OTHER, "with a trace being written" },
	[LOSS_TRACE_UNREAD] = { CLASS_OTHER, "with an unreadable trace" },
	[LOSS_TRACE_FULL] = { CLASS_OTHER, "with a trace not looked for" },
	[LOSS_TRACE_USER] = { CLASS_OTHER,
			      "with a trace not looked for, for their user" },
};

void summary_count(struct summary *s, struct engine *e)
{
	losses_update(e);
	losses_count(e, s->losses);
	trace_handler_get_stats(e->th, &s->stacks);
}

static void put_stacks(const struct trace_stats *from,
		       const struct trace_stats *to, struct strbuf *out)
{
	struct strbuf list = STRBUF_INIT;
	uint64_t sum = 0, n;
	size_t i, at;

	for (i = 0; i < ARRAY_SIZE(summary_stacks); i++) {
		at = summary_stacks[i].offset;
		n = *(const uint64_t *)((const char *)to + at) -
		    *(const uint64_t *)((const char *)from + at);
		if (n)
			strbuf_printf(&list, "%s%" PRIu64 " %s",
				      sum ? ", " : "", n,
				      summary_stacks[i].words);
		sum += n;
	}
	if (sum)
		strbuf_printf(out, ", %" PRIu64 " incomplete (%s)", sum,
			      list.failed ? "" : list.data);
	strbuf_fini(&list);
}

static void put_losses(const uint64_t *from, const uint64_t *to,
		       struct strbuf *out)
{
	uint64_t lost = 0, n;
	size_t i;

	for (i = 0; i < LOSS_MAX; i++)
		if (loss_classes[i].class == CLASS_SAMPLES && to[i] > from[i])
			lost += to[i] - from[i];
	strbuf_printf(out, ", %" PRIu64 " lost", lost);
	for (i = 0; i < LOSS_MAX; i++) {
		n = to[i] > from[i] ? to[i] - from[i] : 0;
		if (!n || loss_classes[i].class != CLASS_OTHER)
			continue;
		if (loss_classes[i].words)
			strbuf_printf(out, ", %" PRIu64 " %s", n,
				      loss_classes[i].words);
		else
			strbuf_printf(out, ", %s: %" PRIu64, losses_names()[i],
				      n);
	}
}

void summary_text(const struct summary *from, const struct summary *to,
		  uint64_t samples, struct strbuf *out)
{
	strbuf_printf(out, "%" PRIu64 " sample%s", samples,
		      samples == 1 ? "" : "s");
	put_stacks(&from->stacks, &to->stacks, out);
	put_losses(from->losses, to->losses, out);
}
