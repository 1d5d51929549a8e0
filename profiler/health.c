// SPDX-License-Identifier: Apache-2.0
/* health: see profiler/health.h. */
#include <string.h>

#include "base/base.h"
#include "base/text.h"
#include "profiler/engine_internal.h"

/* /proc/stat and the kernel's clock always differ a little: 1 % is no loss. */
#define HEALTH_MISSED_PERCENT 1
/* Fewer may be a CPU that was busy between two ticks. */
#define HEALTH_DUE 20

static void health_sampling(struct health *h, uint64_t now, uint64_t passed)
{
	uint64_t samples = h->now.samples, missed = h->now.losses[LOSS_MISSED];
	uint64_t due = missed - h->checked_missed;

	if (h->checked && now - h->checked < HEALTH_SAMPLING_NS)
		return;
	if (h->checked) {
		h->due = samples == h->checked_samples && due >= HEALTH_DUE
				 ? due
				 : 0;
		h->stuck = passed == h->checked_passed;
	}
	h->checked = now;
	h->checked_samples = samples;
	h->checked_missed = missed;
	h->checked_passed = passed;
}

void health_tick(struct health *h, uint64_t now,
		 const uint64_t losses[LOSS_MAX], uint64_t samples,
		 uint64_t passed, uint64_t period_ns)
{
	bool first = !h->begin;

	memcpy(h->now.losses, losses, sizeof(h->now.losses));
	h->now.samples = samples;
	if (first || now - h->begin >= period_ns) {
		/* What was lost before the start does not count. */
		h->before = first ? h->now : h->from;
		h->from = h->now;
		h->begin = now;
	}
	health_sampling(h, now, passed);
}

/*
 * Durations of losses that have their own counts; and traces, which some writers leave
 * invalid for most of their time, and of which any user can have too many.
 */
static const bool health_ignores[LOSS_MAX] = {
	[LOSS_LIFECYCLE_MS] = true, [LOSS_MAPPING_MS] = true,
	[LOSS_WAITS_MS] = true,	    [LOSS_TRACE_TORN] = true,
	[LOSS_TRACE_UNREAD] = true, [LOSS_TRACE_FULL] = true,
	[LOSS_TRACE_USER] = true,
};

void health_report(const struct health *h, struct reporter_health *out)
{
	uint64_t n, taken = h->now.samples - h->before.samples;
	size_t i;

	if (h->due)
		reporter_failing(out,
				 "no samples come: %llu were due of busy CPUs "
				 "in %llu s",
				 (unsigned long long)h->due,
				 HEALTH_SAMPLING_NS / CLOCK_NSEC_PER_SEC);
	if (h->stuck)
		reporter_failing(out, "samples are not handed on");
	for (i = 0; i < LOSS_MAX; i++) {
		n = h->now.losses[i] -
		    MIN(h->now.losses[i], h->before.losses[i]);
		if (!n || health_ignores[i])
			continue;
		if (i == LOSS_MISSED &&
		    n * 100 <= (taken + n) * HEALTH_MISSED_PERCENT)
			continue;
		reporter_degraded(out, "%s: %llu", losses_names()[i],
				  (unsigned long long)n);
	}
}

/* A user may have chosen the mount point: its name is escaped. */
static void health_mounts(const struct engine *e, struct reporter_health *out)
{
	struct strbuf path = STRBUF_INIT;
	unsigned int n;
	const char *p;

	for (size_t i = 0; (p = symbolizer_hung(e->symbolizer, i, &n)); i++) {
		strbuf_reset(&path);
		text_add(&path, p, strlen(p));
		if (!path.failed)
			reporter_degraded(out, "mount %s does not answer",
					  strbuf_str(&path));
	}
	strbuf_fini(&path);
}

void engine_health(void *arg, struct reporter_health *out)
{
	const struct engine *e = arg;

	health_report(&e->health, out);
	health_mounts(e, out);
	if (e->memory.level)
		reporter_degraded(
			out, "memory: %llu of %llu MiB, caches cut to 1/%u",
			(unsigned long long)e->memory.used >> 20,
			(unsigned long long)e->memory.max >> 20,
			1U << e->memory.level);
	if (e->hotplug_err)
		reporter_degraded(out,
				  "CPUs that come online are not sampled: %s",
				  strerror(-e->hotplug_err));
}

void engine_limited(void *arg, uint32_t uid, enum reporter_limit what)
{
	static const enum limit limits[] = {
		[REPORTER_LIMIT_CONNECTIONS] = LIMIT_CONNECTIONS,
		[REPORTER_LIMIT_PROCESSES] = LIMIT_PROCESSES,
	};
	struct engine *e = arg;

	limits_note(&e->limits, uid, limits[what], 1);
}

void engine_pm_limited(void *arg, uint32_t uid, enum pm_limit what, uint64_t n)
{
	static const enum limit limits[] = {
		[PM_LIMIT_TEXT] = LIMIT_ARGUMENTS,
		[PM_LIMIT_MAPS] = LIMIT_MAPPINGS,
		[PM_LIMIT_MAPS_ALL] = LIMIT_MAPPINGS_ALL,
		[PM_LIMIT_NAMES] = LIMIT_RENAMES,
		[PM_LIMIT_FILES] = LIMIT_FILES,
		[PM_LIMIT_FILES_ALL] = LIMIT_FILES_ALL,
		[PM_LIMIT_OPENS] = LIMIT_OPENS,
	};
	struct engine *e = arg;

	/* Of texts 'n' is a number of bytes; the limit counts occurrences. */
	limits_note(&e->limits, uid, limits[what],
		    what == PM_LIMIT_TEXT ? 1 : n);
}

void engine_names_wait(void *arg, uint32_t uid)
{
	struct engine *e = arg;

	limits_note(&e->limits, uid, LIMIT_NAMES, 1);
}

/* A user can have any number of files quarantined: a warning each ten seconds. */
void engine_quarantined(void *arg, const struct symbolizer_quarantined *q)
{
	struct engine *e = arg;
	struct engine_warned *w = &e->warned[q->uid % ARRAY_SIZE(e->warned)];
	uint64_t now = clock_boottime_ns();
	char more[64] = "";

	if (w->at && now - w->at < 10 * CLOCK_NSEC_PER_SEC) {
		w->more++;
		return;
	}
	if (w->more)
		snprintf(more, sizeof(more), "; %u more since the last warning",
			 w->more);
	w->at = now;
	w->more = 0;
	log_warn("quarantined: %s, opened for uid %u: %s%s",
		 q->path[0] ? q->path : "a file without a path", q->uid,
		 q->text, more);
}

void engine_undemangled(void *arg, uint32_t uid, uint64_t n)
{
	struct engine *e = arg;

	limits_note(&e->limits, uid, LIMIT_SYMBOLS, n);
}
