/* SPDX-License-Identifier: Apache-2.0 */
/*
 * health: what /healthz reports. Dropped records degrade it for the rest of the
 * period they are in, which is as long as a window, and for the next one: a
 * clean window ends the degradation.
 */
#ifndef PROFILER_HEALTH_H
#define PROFILER_HEALTH_H

#include <stdint.h>

#include "profiler/metrics.h"

/* Within this time busy CPUs must yield samples, and the pump must deliver. */
#define HEALTH_SAMPLING_NS (10 * CLOCK_NSEC_PER_SEC)

struct health {
	uint64_t begin; /* of this period, by clock_awake_ns() */
	/* At the begin of the period before, of this period, and now. */
	struct health_counts {
		uint64_t losses[LOSS_MAX], samples;
	} before, from, now;
	uint64_t checked; /* the sampling, by clock_awake_ns() */
	uint64_t checked_samples, checked_missed, checked_passed;
	uint64_t due; /* samples expected, none of which came; 0: some came */
	bool stuck; /* the pump delivered nothing */
};

/*
 * Once a second, 'now' by clock_awake_ns(): the counts since the start, and the
 * time up to which the pump has delivered.
 */
void health_tick(struct health *h, uint64_t now,
		 const uint64_t losses[LOSS_MAX], uint64_t samples,
		 uint64_t passed, uint64_t period_ns);
void health_report(const struct health *h, struct reporter_health *out);
/* reporter_opts.health and .limited; 'arg' is the engine. */
void engine_health(void *arg, struct reporter_health *out);
void engine_limited(void *arg, uint32_t uid, enum reporter_limit what);
/* pm_opts.limited */
void engine_pm_limited(void *arg, uint32_t uid, enum pm_limit what, uint64_t n);
/* symbolizer_opts.undemangled */
void engine_undemangled(void *arg, uint32_t uid, uint64_t n);
/* symbolizer_opts.names_wait, symbolizer_opts.quarantined */
void engine_names_wait(void *arg, uint32_t uid);
void engine_quarantined(void *arg, const struct symbolizer_quarantined *q);

#endif /* PROFILER_HEALTH_H */
