// SPDX-License-Identifier: Apache-2.0
/*
 * metrics: see profiler/metrics.h. A part's own list of counters gives name,
 * kind and help; here they only get their prefix.
 */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "profiler/engine_internal.h"
#include "profiler/metrics.h"
#include "profiler/source/perfsource_engine.h"
#include "profiler/privilege.h"
#include "profiler/rescan/rescan_queue.h"

#define METRIC_NAME(part, name, gauge) \
	((gauge) ? "profd_" part "_" #name : "profd_" part "_" #name "_total")

static const char *const loss_words[] = {
#define X(name, words) words,
	LOSSES(X)
#undef X
};

const char *const *losses_names(void)
{
	return loss_words;
}

/* --- of whichever source there is ---------------------------------------- */

static int cpu_fill(struct engine *e, struct sampler_cpu_stats *out, size_t n)
{
	return e->perf ? perfsource_engine_cpu_stats(e, out, n)
		       : sampler_get_stats(e->sampler, out, n);
}

/* All CPUs; free(*out). How many, 0 or less: there is nothing to say. */
static int cpu_stats(struct engine *e, struct sampler_cpu_stats **out)
{
	int n = cpu_fill(e, NULL, 0);

	*out = n > 0 ? calloc(n, sizeof(**out)) : NULL;
	return *out ? cpu_fill(e, *out, n) : 0;
}

/* Lost perf records may be of any kind: samples, as far as is known. */
static void sideband_stats(struct engine *e, struct sideband_stats *out)
{
	struct perfsource_stats st;

	if (!e->perf) {
		sideband_get_stats(e->sideband, out);
		return;
	}
	perfsource_engine_stats(e, &st);
	*out = (struct sideband_stats){ .records = st.records, .bad = st.bad };
}

static void lifecycle_stats(struct engine *e, struct quark_queue_stats *out)
{
	memset(out, 0, sizeof(*out));
	if (e->quark_open)
		quark_queue_get_stats(&e->quark, out);
}

static const struct {
	const char *name;
	const char *help;
} sampler_metrics[] = {
#define X(NAME, name, help) { "profd_sampler_" #name "_total", help },
	ABI_SAMPLER_COUNTERS(X)
#undef X
};

static void metrics_sampler(struct engine *e, struct reporter_metrics *m)
{
	struct sampler_cpu_stats *cpus;
	char label[32];
	int n, i, c;

	n = cpu_stats(e, &cpus);
	for (c = 0; c < ABI_SAMPLER_COUNTER_MAX; c++) {
		for (i = 0; i < n; i++) {
			snprintf(label, sizeof(label), "cpu=\"%u\"",
				 cpus[i].cpu);
			reporter_metric(m, sampler_metrics[c].name,
					sampler_metrics[c].help, true, label,
					cpus[i].counters[c]);
		}
	}
	for (i = 0; i < n; i++) {
		snprintf(label, sizeof(label), "cpu=\"%u\"", cpus[i].cpu);
		reporter_metric(m, "profd_sampler_busy_seconds_total",
				"busy time of the CPU since sampling began",
				true, label, cpus[i].busy_s);
	}
	for (i = 0; i < n; i++) {
		snprintf(label, sizeof(label), "cpu=\"%u\"", cpus[i].cpu);
		reporter_metric(m, "profd_sampler_missed",
				"busy time x Hz less samples, if positive",
				false, label, cpus[i].missed);
	}
	free(cpus);
}

static void metrics_lifecycle(struct engine *e, struct reporter_metrics *m)
{
	struct quark_queue_stats st;

	lifecycle_stats(e, &st);
	reporter_metric(m, "profd_lifecycle_events_total",
			"lifecycle events read", true, NULL, st.insertions);
	reporter_metric(m, "profd_lifecycle_lost_total",
			"lifecycle events lost, by any cause", true, NULL,
			st.lost);
	reporter_metric(m, "profd_lifecycle_limited_total",
			"renames and moves beyond ten a second of one task, "
			"not reported one by one",
			true, NULL, st.limited);
	reporter_metric(m, "profd_lifecycle_unwoken_total",
			"execs of new files that were too many to wake profd",
			true, NULL, st.unwoken);
	reporter_metric(m, "profd_lifecycle_unread_total",
			"readings of /proc given up, for want of an answer",
			true, NULL, st.unread);
}

static void metrics_sideband(struct engine *e, struct reporter_metrics *m)
{
	struct sideband_stats st;

	sideband_stats(e, &st);
	reporter_metric(m, "profd_sideband_records_total",
			"mapping and exec records read", true, NULL,
			st.records);
	reporter_metric(m, "profd_sideband_lost_total",
			"mapping records lost because a ring was full", true,
			NULL, st.lost);
	reporter_metric(m, "profd_sideband_bad_total",
			"mapping records with wrong lengths", true, NULL,
			st.bad);
	reporter_metric(m, "profd_sideband_repeats_total",
			"records of mappings that were there, skipped", true,
			NULL, st.repeats);
	reporter_metric(
		m, "profd_sideband_limited_total",
		"mapping records dropped: too many of one process, or of all",
		true, NULL, st.limited);
	reporter_metric(m, "profd_sideband_ring_bytes",
			"bytes of the mapping stream's rings", false, NULL,
			st.rings_bytes);
}

static void metrics_rereads(struct engine *e, struct reporter_metrics *m)
{
	struct walkqueue_stats st;

	walk_reread_stats(e, &st);
	reporter_metric(m, "profd_reread_waiting",
			"processes whose mappings wait to be re-read", false,
			NULL, st.waiting);
	reporter_metric(m, "profd_reread_cpu_seconds_total",
			"CPU time used to re-read mappings", true, NULL,
			(double)st.cpu_ns / 1e9);
	reporter_metric(m, "profd_reread_wait_seconds_total",
			"time that readings of mappings waited for locks", true,
			NULL, (double)st.wait_ns / 1e9);
	reporter_metric(m, "profd_reread_slow_total",
			"readings of mappings that waited for more than 20 ms",
			true, NULL, st.slow);
	reporter_metric(m, "profd_reread_hung_total",
			"readings of mappings that were abandoned", true, NULL,
			e->rereads_hung);
	reporter_metric(m, "profd_reread_large_total",
			"processes whose mappings are more than 16 MiB", true,
			NULL, e->rereads_large);
	reporter_metric(m, "profd_reread_limited_total",
			"times a re-read waited for its user's share of time",
			true, NULL, st.limited);
	reporter_metric(m, "profd_reread_dropped_total",
			"re-reads dropped for want of room", true, NULL,
			st.dropped);
}

static void metrics_perf(struct engine *e, struct reporter_metrics *m)
{
	struct perfsource_stats st;

	perfsource_engine_stats(e, &st);
	reporter_metric(m, "profd_perf_gaps_total",
			"places at which perf records were lost", true, NULL,
			st.gaps);
	reporter_metric(m, "profd_perf_throttled_total",
			"times the kernel throttled a perf event", true, NULL,
			st.throttled);
}

static const char *const pump_labels[] = {
#define X(NAME, name, help) "stream=\"" #name "\"",
	PUMP_STREAMS(X)
#undef X
};

static void metrics_pump(struct engine *e, struct reporter_metrics *m)
{
	struct pump_stats st;
	int i;

	pump_get_stats(e->pump, &st);
	for (i = 0; i < PUMP_STREAM_MAX; i++)
		reporter_metric(m, "profd_pump_records_total",
				"records pushed into the pump", true,
				pump_labels[i], st.pushed[i]);
	for (i = 0; i < PUMP_STREAM_MAX; i++)
		reporter_metric(m, "profd_pump_late_total",
				"records that came below the watermark", true,
				pump_labels[i], st.late[i]);
	for (i = 0; i < PUMP_STREAM_MAX; i++)
		reporter_metric(m, "profd_pump_full_total",
				"records dropped because too many waited", true,
				pump_labels[i], st.full[i]);
	reporter_metric(m, "profd_pump_hurried_total",
			"times that samples did not wait for lifecycle events",
			true, NULL, st.hurried);
	reporter_metric(m, "profd_pump_waiting_bytes",
			"bytes waiting in the pump now", false, NULL, st.bytes);
	reporter_metric(m, "profd_pump_waiting_bytes_max",
			"most bytes that ever waited in the pump", false, NULL,
			st.bytes_max);
}

/* Processes that are not read anew yet, after a loss. */
static uint64_t doubtful(struct engine *e)
{
	struct pm_image *img;
	struct pm_iter it;
	uint64_t n = 0;

	pm_iter_init(&it, e->pm, false);
	while ((img = pm_iter_next(&it)))
		n += pm_image_doubtful(e->pm, img);
	return n;
}

static void metrics_parts(struct engine *e, struct reporter_metrics *m)
{
	struct symbolizer_stats sym;
	struct trace_stats tr;
	struct pm_stats pm;

	pm_get_stats(e->pm, &pm);
#define X(name, gauge, help)                                                   \
	reporter_metric(m, METRIC_NAME("pm", name, gauge), help, !gauge, NULL, \
			pm.name);
	PM_STATS(X)
#undef X
	reporter_metric(m, "profd_pm_doubtful",
			"processes whose mappings are in doubt now", false,
			NULL, doubtful(e));
	trace_handler_get_stats(e->th, &tr);
#define X(name, gauge, help)                                                \
	reporter_metric(m, METRIC_NAME("trace", name, gauge), help, !gauge, \
			NULL, tr.name);
	TRACE_STATS(X)
#undef X
	symbolizer_get_stats(e->symbolizer, &sym);
#define X(name, gauge, help)                                            \
	reporter_metric(m, METRIC_NAME("symbolize", name, gauge), help, \
			!gauge, NULL, sym.name);
	SYMBOLIZER_STATS(X)
#undef X
	reporter_metric(m, "profd_pm_gaps_seconds_total",
			"time of gaps in the lifecycle stream", true, NULL,
			pm.gaps_ms / 1e3);
	reporter_metric(m, "profd_pm_maps_lost_seconds_total",
			"time of gaps in the mapping stream", true, NULL,
			pm.maps_lost_ms / 1e3);
}

void losses_count(struct engine *e, uint64_t *out)
{
	struct sideband_stats side;
	struct quark_queue_stats life;
	struct perfsource_stats perf;
	struct engine_totals total;
	struct trace_stats tr;
	struct pump_stats pump;
	struct pm_stats pm;
	int i;

	engine_totals(e, &total);
	sideband_stats(e, &side);
	lifecycle_stats(e, &life);
	trace_handler_get_stats(e->th, &tr);
	pump_get_stats(e->pump, &pump);
	pm_get_stats(e->pm, &pm);
	out[LOSS_PUMP_FULL] = 0;
	out[LOSS_RING_FULL] = e->ring_full;
	out[LOSS_MISSED] = e->missed;
	out[LOSS_NOMEM] = e->nomem + tr.nomem + pm.nomem;
	for (i = 0; i < PUMP_STREAM_MAX; i++) {
		out[LOSS_NOMEM] += pump.nomem[i];
		out[LOSS_PUMP_FULL] += pump.full[i];
	}
	out[LOSS_BAD] = tr.bad_records + side.bad;
	out[LOSS_LIFECYCLE] = life.lost;
	out[LOSS_LIFECYCLE_MS] = pm.gaps_ms;
	out[LOSS_MAPPING] = side.lost;
	out[LOSS_MAPPING_MS] = pm.maps_lost_ms;
	out[LOSS_TABLES_LATE] = tr.stack_late;
	out[LOSS_FILE_GONE] = tr.stack_gone;
	out[LOSS_NAMES_LATE] = tr.names_late;
	perfsource_engine_stats(e, &perf);
	out[LOSS_PERF_GAPS] = perf.gaps;
	out[LOSS_THROTTLED] = perf.throttled;
}

void losses_update(struct engine *e)
{
	struct engine_totals total;
	uint64_t losses[LOSS_MAX];

	losses_count(e, losses);
	reporter_losses(e->reporter, losses);
	engine_totals(e, &total);
	health_tick(&e->health, clock_awake_ns(), losses, total.samples,
		    e->passed, e->opts.window_s * CLOCK_NSEC_PER_SEC);
}

/*
 * The kernel side's counters, over all CPUs. What is missing may shrink again
 * as /proc/stat catches up; what was said once is not taken back.
 */
void engine_totals(struct engine *e, struct engine_totals *out)
{
	struct sampler_cpu_stats *cpus;
	double missed = 0;
	uint64_t taken = 0, full = 0;
	int n, i;

	n = cpu_stats(e, &cpus);
	for (i = 0; i < n; i++) {
		taken += cpus[i].counters[ABI_SAMPLER_TAKEN];
		full += cpus[i].counters[ABI_SAMPLER_RING_FULL];
		if (engine_counts_cpu(e, cpus[i].cpu))
			missed += cpus[i].missed;
	}
	free(cpus);
	e->ring_full = MAX(e->ring_full, full);
	e->missed = MAX(e->missed, missed);
	out->samples = taken;
	out->missed = e->missed;
}

/* Who reads executable files, and which it could not. */
static void status_reader(struct engine *e, struct reporter_metrics *m)
{
	const char *path, *why;
	char text[256];

	symbolizer_worker_status(e->symbolizer, text, sizeof(text));
	reporter_status(m, "reader of executables", "%s", text);
	for (size_t i = 0; (path = symbolizer_aside(e->symbolizer, i, &why));
	     i++)
		reporter_status(m, "put aside", "%s: %s", path, why);
}

/* Only what there was: most hosts know few of these. */
static void status_stacks(struct engine *e, struct reporter_metrics *m)
{
	struct trace_stats tr;

	trace_handler_get_stats(e->th, &tr);
	reporter_status(m, "unwind tables", "%llu, %llu bytes",
			(unsigned long long)tr.tables,
			(unsigned long long)tr.tables_bytes);
#define X(name, gauge, help) \
	if (tr.name)         \
		reporter_status(m, help, "%llu", (unsigned long long)tr.name);
	TRACE_STACK_STATS(X)
#undef X
}

/* As was said at the start. */
static void status_missing(struct reporter_metrics *m)
{
	cap_t caps = cap_get_proc();
	const char *what;
	size_t i;

	for (i = 0; caps; i++) {
		what = privilege_degraded(&privilege_this_host, caps, i);
		if (!what)
			break;
		reporter_status(m, "missing", "%s", what);
	}
	cap_free(caps);
}

static void status_limits(struct engine *e, struct reporter_metrics *m)
{
	struct quark_queue_stats st;

	limits_collect(&e->limits, m);
	lifecycle_stats(e, &st);
	limits_collect_unnamed(m, "moves",
			       "changes of name, directory, ids or cgroup",
			       st.limited);
	limits_collect_unnamed(m, "wakeups", "execs of new files reported late",
			       st.unwoken);
}

/* What a person asks first; everything else is in /metrics. */
static void status_collect(struct engine *e, struct reporter_metrics *m)
{
	uint64_t losses[LOSS_MAX];
	struct engine_totals total;
	struct pm_stats pm;
	int i;

	pm_get_stats(e->pm, &pm);
	engine_totals(e, &total);
	reporter_status(m, "sampling", "%u Hz, for %llu s", e->opts.freq_hz,
			(unsigned long long)((clock_boottime_ns() - e->begin) /
					     CLOCK_NSEC_PER_SEC));
	if (e->start_ns)
		reporter_status(
			m, "start",
			"%llu processes walked in %llu ms, %llu "
			"samples taken meanwhile",
			(unsigned long long)pm.walked,
			(unsigned long long)(e->start_ns / CLOCK_NSEC_PER_MSEC),
			(unsigned long long)e->start_samples);
	reporter_status(m, "source", "%s", e->perf ? e->note : "BPF");
	status_missing(m);
	reporter_status(m, "samples", "%llu",
			(unsigned long long)total.samples);
	reporter_status(m, "processes", "%llu living, of %llu executables",
			(unsigned long long)pm.processes,
			(unsigned long long)pm.exes);
	reporter_status(m, "executables held open", "%llu of at most %u",
			(unsigned long long)pm.open_files, e->open_files);
	reporter_status(m, "lives", "%llu forks, %llu execs, %llu exits",
			(unsigned long long)pm.forks,
			(unsigned long long)pm.execs,
			(unsigned long long)pm.exits);
	status_reader(e, m);
	status_stacks(e, m);
	losses_count(e, losses);
	for (i = 0; i < LOSS_MAX; i++) {
		reporter_status(m, loss_words[i], "%llu",
				(unsigned long long)losses[i]);
		reporter_member_int(m, "losses", loss_words[i], losses[i]);
	}
	status_limits(e, m);
}

/* The same, for programs: what of it is in no metric, or is asked for first. */
static void status_members(struct engine *e, struct reporter_metrics *m)
{
	struct engine_totals total;
	double all;

	engine_totals(e, &total);
	reporter_member_int(m, NULL, "since",
			    (e->begin + clock_wall_offset_ns()) /
				    CLOCK_NSEC_PER_SEC);
	reporter_member_int(m, "sampling", "hz", e->opts.freq_hz);
	reporter_member_text(m, "sampling", "source", e->perf ? "perf" : "bpf");
	reporter_member_text(m, "sampling", "note", e->note);
	reporter_member_int(m, "sampling", "seconds",
			    (clock_boottime_ns() - e->begin) /
				    CLOCK_NSEC_PER_SEC);
	reporter_member_int(m, "sampling", "samples", total.samples);
	all = total.samples + total.missed;
	if (all)
		reporter_member_real(m, NULL, "coverage", total.samples / all);
}

void metrics_collect(void *arg, struct reporter_metrics *m)
{
	struct mallinfo2 heap = mallinfo2();
	struct engine *e = arg;

	metrics_sampler(e, m);
	metrics_lifecycle(e, m);
	metrics_sideband(e, m);
	metrics_rereads(e, m);
	metrics_perf(e, m);
	metrics_pump(e, m);
	metrics_parts(e, m);
	reporter_metric(m, "profd_heap_bytes",
			"bytes of memory in use, as malloc counts them", false,
			NULL, heap.uordblks + heap.hblkhd);
	reporter_metric(m, "profd_frequency_hertz", "samples a second and CPU",
			false, NULL, e->opts.freq_hz);
	reporter_metric(m, "profd_build_info", "1, of this version", false,
			"version=\"" PROFD_VERSION "\"", 1);
	metrics_process(m);
	status_members(e, m);
	status_collect(e, m);
}
