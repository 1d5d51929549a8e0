/* SPDX-License-Identifier: Apache-2.0 */
/*
 * health: what of the engine is told by /healthz. Losses degrade it for the time
 * in which they were, a window's length, and for the one after; so that it is
 * well again after a clean window.
 */
#ifndef PROFILER_HEALTH_H
#define PROFILER_HEALTH_H

#include <stdint.h>

#include "profiler/metrics.h"

/* Samples are to come in so long, where CPUs are busy; and be handed on. */
#define HEALTH_SAMPLING_NS (10 * CLOCK_NSEC_PER_SEC)

struct health {
	/* Of the losses: the period that began at 'begin', and the one before. */
	uint64_t begin;
	uint64_t from[LOSS_MAX], before[LOSS_MAX], now[LOSS_MAX];
	uint64_t samples_from, samples_before, samples;
	/* Of the sampling. */
	uint64_t checked; /* clock_awake_ns() */
	uint64_t checked_samples, checked_missed, checked_passed;
	uint64_t due; /* samples that did not come, not one of them */
	bool stands; /* what came is not handed on */
};

/* Once a second, 'now' by clock_awake_ns(): what was lost and taken by now, up to when it was handed on. */
void health_tick(struct health *h, uint64_t now,
		 const uint64_t losses[LOSS_MAX], uint64_t samples,
		 uint64_t passed, uint64_t period_ns);
/* What is not as it should be. */
void health_report(const struct health *h, struct reporter_health *out);
/* reporter_opts.health and .limited; 'arg' is the engine. */
void engine_health(void *arg, struct reporter_health *out);
void engine_limited(void *arg, uint32_t uid);
/* pm_opts.limited */
void engine_pm_limited(void *arg, uint32_t uid, enum pm_limit what, uint64_t n);
/* symbolizer_opts.undemangled */
void engine_undemangled(void *arg, uint32_t uid, uint64_t n);

#endif /* PROFILER_HEALTH_H */
