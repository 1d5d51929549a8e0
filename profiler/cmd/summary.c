// SPDX-License-Identifier: Apache-2.0
/* summary: see profiler/cmd/summary.h. */
#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "base/base.h"
#include "profiler/engine_internal.h"
#include "profiler/cmd/summary.h"

#define STACK_PREFIX "stack_"

/* What a stack lacks, in short; one that is not here goes by its counter. */
static const struct {
	const char *name, *words;
} stack_words[] = {
	{ "stack_no_cfi", "no unwind info" },
	{ "stack_gone", "file gone" },
	{ "stack_unread", "file not read" },
	{ "stack_no_fp", "no frame pointer" },
	{ "stack_broken", "broken frame" },
	{ "stack_other", "another stack" },
	{ "stack_cap", "cut at the copy limit" },
	{ "stack_fault", "page not present" },
	{ "stack_exec", "inside execve" },
	{ "stack_none", "not copied" },
	{ "stack_late", "tables late" },
	{ "stack_depth", "cut at the frame limit" },
};

/* Losses by kind; one that is not here is printed in its own words. */
enum loss_class {
	CLASS_OTHER,
	CLASS_SAMPLES, /* adds to what is "lost" */
	CLASS_SAID, /* said by other counts */
};

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
	[LOSS_LIFECYCLE_MS] = { CLASS_SAID, NULL },
	[LOSS_MAPPING] = { CLASS_OTHER, "mapping records lost" },
	[LOSS_MAPPING_MS] = { CLASS_SAID, NULL },
	[LOSS_TABLES_LATE] = { CLASS_SAID, NULL },
	[LOSS_NAMES_LATE] = { CLASS_OTHER, "without all names" },
	[LOSS_PERF_GAPS] = { CLASS_OTHER, "gaps in perf records" },
	[LOSS_THROTTLED] = { CLASS_OTHER, "times throttled" },
};

void summary_count(struct summary *s, struct engine *e)
{
	losses_update(e);
	losses_count(e, s->losses);
	trace_handler_get_stats(e->th, &s->stacks);
}

/* One without words of its own by its name: "stack_xy": "xy". */
static void put_counter(struct strbuf *sb, const char *name)
{
	const char *p = name + strlen(STACK_PREFIX);
	size_t i;

	for (i = 0; i < ARRAY_SIZE(stack_words); i++) {
		if (!strcmp(stack_words[i].name, name)) {
			strbuf_puts(sb, stack_words[i].words);
			return;
		}
	}
	for (; *p; p++)
		strbuf_add(sb, *p == '_' ? " " : p, 1);
}

static void put_stacks(const struct trace_stats *from,
		       const struct trace_stats *to, struct strbuf *out)
{
	static const struct {
		const char *name;
		size_t offset;
	} kinds[] = {
#define X(name, gauge, help) { #name, offsetof(struct trace_stats, name) },
		TRACE_STACK_STATS(X)
#undef X
	};
	struct strbuf list = STRBUF_INIT;
	uint64_t sum = 0, n;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		n = *(const uint64_t *)((const char *)to + kinds[i].offset) -
		    *(const uint64_t *)((const char *)from + kinds[i].offset);
		if (!n || !strcmp(kinds[i].name, "stack_root"))
			continue;
		strbuf_printf(&list, "%s%" PRIu64 " ", sum ? ", " : "", n);
		put_counter(&list, kinds[i].name);
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
