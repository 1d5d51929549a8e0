// SPDX-License-Identifier: Apache-2.0
/* losses: numbers of dropped records, by cause: see profiler/metrics.h. */
#include <stdlib.h>

#include "base/base.h"
#include "profiler/engine_internal.h"

static const char *const losses_words[] = {
#define X(name, words) words,
	LOSSES(X)
#undef X
};

const char *const *losses_names(void)
{
	return losses_words;
}

void losses_saw_cpu(struct losses *l, unsigned int cpu)
{
	if (cpu < LOSSES_CPUS_SEEN)
		l->cpus_seen[cpu / 64] |= 1ULL << cpu % 64;
}

/*
 * Whether samples missing on a CPU concern what is recorded: where only some
 * processes are recorded, only CPUs that have sampled them count.
 */
static bool losses_counts_cpu(const struct losses *l, unsigned int cpu)
{
	if (!l->selected_only || cpu >= LOSSES_CPUS_SEEN)
		return true;
	return l->cpus_seen[cpu / 64] >> cpu % 64 & 1;
}

/*
 * The kernel side's counters, over all CPUs. The number of missing samples may
 * shrink when /proc/stat catches up; the highest value stays.
 */
void engine_totals(struct engine *e, struct engine_totals *out)
{
	struct sampler_cpu_stats *cpus;
	struct losses *l = &e->losses;
	uint64_t taken = 0, full = 0, traced = 0, torn = 0, unread = 0;
	double missed = 0;
	int n, i;

	n = metrics_cpus(&e->source, &cpus);
	for (i = 0; i < n; i++) {
		taken += cpus[i].counters[ABI_SAMPLER_TAKEN];
		full += cpus[i].counters[ABI_SAMPLER_RING_FULL];
		traced += cpus[i].counters[ABI_SAMPLER_TRACED];
		torn += cpus[i].counters[ABI_SAMPLER_TRACE_TORN];
		unread += cpus[i].counters[ABI_SAMPLER_TRACE_UNREAD] +
			  cpus[i].counters[ABI_SAMPLER_TRACE_INVALID];
		if (losses_counts_cpu(l, cpus[i].cpu))
			missed += cpus[i].missed;
	}
	free(cpus);
	l->ring_full = MAX(l->ring_full, full);
	l->missed = MAX(l->missed, missed);
	l->traced = MAX(l->traced, traced);
	l->torn = MAX(l->torn, torn);
	l->unread = MAX(l->unread, unread);
	out->traced = l->traced;
	out->samples = taken;
	out->missed = l->missed;
}

uint64_t losses_count(struct engine *e, uint64_t *out)
{
	struct engine_totals total;
	struct source_stats st;
	struct waiting_stats waits;
	struct trace_stats tr;
	struct pump_stats pump;
	struct pm_stats pm;
	int i;

	pump_get_stats(e->in.pump, &pump);
	trace_handler_get_stats(e->th, &tr);
	pm_get_stats(e->pm, &pm);
	engine_totals(e, &total);
	metrics_source(&e->source, &st);
	out[LOSS_PUMP_FULL] = 0;
	out[LOSS_NOMEM] = tr.nomem + pm.nomem + e->in.nomem;
	for (i = 0; i < PUMP_STREAM_MAX; i++) {
		out[LOSS_NOMEM] += pump.nomem[i];
		out[LOSS_PUMP_FULL] += pump.full[i];
	}
	out[LOSS_RING_FULL] = e->losses.ring_full;
	out[LOSS_MISSED] = total.missed;
	out[LOSS_BAD] = tr.bad_records + st.side.bad;
	out[LOSS_LIFECYCLE] = st.life.lost;
	out[LOSS_LIFECYCLE_MS] = pm.gaps_ms;
	out[LOSS_MAPPING] = st.side.lost;
	out[LOSS_MAPPING_MS] = pm.maps_lost_ms;
	out[LOSS_TABLES_LATE] = tr.stack_late;
	out[LOSS_FILE_GONE] = tr.stack_gone;
	out[LOSS_NAMES_LATE] = tr.names_late;
	out[LOSS_PERF_GAPS] = st.perf.gaps;
	out[LOSS_THROTTLED] = st.perf.throttled;
	waiting_get_stats(e->waiting, &waits);
	out[LOSS_WAITS] = waits.unkept + waits.unknown + waits.untracked;
	out[LOSS_WAITS_MS] = waits.unkept_ns / CLOCK_NSEC_PER_MSEC;
	out[LOSS_TRACE_TORN] = e->losses.torn;
	out[LOSS_TRACE_UNREAD] = e->losses.unread;
	out[LOSS_TRACE_FULL] = e->tracing.stats.samples_full;
	out[LOSS_TRACE_USER] = e->tracing.stats.samples_user;
	return total.samples;
}

void losses_update(struct engine *e)
{
	uint64_t losses[LOSS_MAX], samples = losses_count(e, losses);

	reporter_losses(e->reporter, losses);
	health_tick(&e->health, clock_awake_ns(), losses, samples, e->in.passed,
		    e->opts.window_s * CLOCK_NSEC_PER_SEC);
}
