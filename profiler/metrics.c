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
#include "profiler/privilege.h"

#define METRIC_NAME(part, name, gauge) \
	((gauge) ? "profd_" part "_" #name : "profd_" part "_" #name "_total")

int metrics_cpus(const struct source_run *s, struct sampler_cpu_stats **out)
{
	int n = s->state ? s->row->cpu_stats(s->state, NULL, 0) : 0;

	*out = n > 0 ? calloc(n, sizeof(**out)) : NULL;
	return *out ? s->row->cpu_stats(s->state, *out, n) : 0;
}

void metrics_source(const struct source_run *s, struct source_stats *out)
{
	memset(out, 0, sizeof(*out));
	if (s->state)
		s->row->stats(s->state, out);
}

static const struct {
	const char *name;
	const char *help;
} sampler_metrics[] = {
#define X(NAME, name, help) { "profd_sampler_" #name "_total", help },
	ABI_SAMPLER_COUNTERS(X)
#undef X
};

static void metrics_sampler(const struct source_run *source,
			    struct reporter_metrics *m)
{
	struct sampler_cpu_stats *cpus;
	char label[32];
	int n, i, c;

	n = metrics_cpus(source, &cpus);
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

static void metrics_lifecycle(const struct quark_queue_stats *st,
			      struct reporter_metrics *m)
{
	reporter_metric(m, "profd_lifecycle_events_total",
			"lifecycle events read", true, NULL, st->insertions);
	reporter_metric(m, "profd_lifecycle_lost_total",
			"lifecycle events lost, by any cause", true, NULL,
			st->lost);
	reporter_metric(m, "profd_lifecycle_limited_total",
			"renames and moves beyond ten a second of one task, "
			"not reported one by one",
			true, NULL, st->limited);
	reporter_metric(m, "profd_lifecycle_unwoken_total",
			"execs of new files that were too many to wake profd",
			true, NULL, st->unwoken);
	reporter_metric(m, "profd_lifecycle_unread_total",
			"readings of /proc given up, for want of an answer",
			true, NULL, st->unread);
}

static void metrics_sideband(const struct sideband_stats *st,
			     struct reporter_metrics *m)
{
	reporter_metric(m, "profd_sideband_records_total",
			"mapping and exec records read", true, NULL,
			st->records);
	reporter_metric(m, "profd_sideband_lost_total",
			"mapping records lost because a ring was full", true,
			NULL, st->lost);
	reporter_metric(m, "profd_sideband_bad_total",
			"mapping records with wrong lengths", true, NULL,
			st->bad);
	reporter_metric(m, "profd_sideband_repeats_total",
			"records of mappings that were there, skipped", true,
			NULL, st->repeats);
	reporter_metric(
		m, "profd_sideband_limited_total",
		"mapping records dropped: too many of one process, or of all",
		true, NULL, st->limited);
	reporter_metric(m, "profd_sideband_ring_bytes",
			"bytes of the mapping stream's rings", false, NULL,
			st->rings_bytes);
}

static void metrics_rereads(const struct rescan *r, struct reporter_metrics *m)
{
	struct rescan_stats rescan;
	struct walkqueue_stats st;

	rescan_get_stats(r, &rescan);
	st = rescan.queue;
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
			rescan.hung);
	reporter_metric(m, "profd_reread_large_total",
			"processes whose mappings are more than 16 MiB", true,
			NULL, rescan.large);
	reporter_metric(m, "profd_reread_limited_total",
			"times a re-read waited for its user's share of time",
			true, NULL, st.limited);
	reporter_metric(m, "profd_reread_dropped_total",
			"re-reads dropped for want of room", true, NULL,
			st.dropped);
}

static void metrics_perf(const struct perfsource_stats *st,
			 struct reporter_metrics *m)
{
	reporter_metric(m, "profd_perf_gaps_total",
			"places at which perf records were lost", true, NULL,
			st->gaps);
	reporter_metric(m, "profd_perf_throttled_total",
			"times the kernel throttled a perf event", true, NULL,
			st->throttled);
}

static const char *const pump_labels[] = {
#define X(NAME, name, help) "stream=\"" #name "\"",
	PUMP_STREAMS(X)
#undef X
};

static void metrics_pump(const struct pump *p, struct reporter_metrics *m)
{
	struct pump_stats st;
	int i;

	pump_get_stats(p, &st);
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

/* Processes that are stale since a loss and not re-read yet. */
static uint64_t metrics_stale(struct pm *pm)
{
	struct pm_image *img;
	struct pm_iter it;
	uint64_t n = 0;

	pm_iter_init(&it, pm, false);
	while ((img = pm_iter_next(&it)))
		n += pm_image_stale(pm, img);
	return n;
}

static void metrics_parts(struct pm *manager, struct trace_handler *th,
			  struct symbolizer *symbolizer,
			  struct reporter_metrics *m)
{
	struct symbolizer_stats sym;
	struct trace_stats tr;
	struct pm_stats pm;

	pm_get_stats(manager, &pm);
#define X(name, gauge, help)                                                   \
	reporter_metric(m, METRIC_NAME("pm", name, gauge), help, !gauge, NULL, \
			pm.name);
	PM_STATS(X)
#undef X
	reporter_metric(m, "profd_pm_doubtful",
			"processes whose mappings are in doubt now", false,
			NULL, metrics_stale(manager));
	trace_handler_get_stats(th, &tr);
#define X(name, gauge, help)                                                \
	reporter_metric(m, METRIC_NAME("trace", name, gauge), help, !gauge, \
			NULL, tr.name);
	TRACE_STATS(X)
#undef X
	symbolizer_get_stats(symbolizer, &sym);
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

/* The symbolize worker, and the files that it could not read. */
static void metrics_status_reader(struct symbolizer *sym,
				  struct reporter_metrics *m)
{
	const char *path, *why;
	char text[256];

	symbolizer_worker_status(sym, text, sizeof(text));
	reporter_status(m, "symbolize worker", "%s", text);
	for (size_t i = 0; (path = symbolizer_quarantined(sym, i, &why)); i++)
		reporter_status(m, "quarantined", "%s: %s", path, why);
}

/* Only what there was: most hosts know few of these. */
static void metrics_status_stacks(struct trace_handler *th,
				  struct reporter_metrics *m)
{
	struct trace_stats tr;

	trace_handler_get_stats(th, &tr);
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
static void metrics_status_missing(struct reporter_metrics *m)
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

static void metrics_status_limits(const struct limits *l,
				  const struct quark_queue_stats *st,
				  struct reporter_metrics *m)
{
	limits_collect(l, m);
	limits_collect_unnamed(m, "moves",
			       "changes of name, directory, ids or cgroup",
			       st->limited);
	limits_collect_unnamed(m, "wakeups", "execs of new files reported late",
			       st->unwoken);
}

static void metrics_status_start(const struct rescan *r,
				 const struct pm_stats *pm,
				 struct reporter_metrics *m)
{
	struct rescan_stats st;

	rescan_get_stats(r, &st);
	if (st.start_ns)
		reporter_status(
			m, "start",
			"%llu processes scanned in %llu ms, %llu "
			"samples taken meanwhile",
			(unsigned long long)pm->walked,
			(unsigned long long)(st.start_ns / CLOCK_NSEC_PER_MSEC),
			(unsigned long long)st.start_samples);
}

static void metrics_status_processes(const struct pm_stats *pm,
				     unsigned int open_files,
				     struct reporter_metrics *m)
{
	reporter_status(m, "processes", "%llu now, %llu executables",
			(unsigned long long)pm->processes,
			(unsigned long long)pm->exes);
	reporter_status(m, "executables held open", "%llu of at most %u",
			(unsigned long long)pm->open_files, open_files);
	reporter_status(m, "lifecycle", "%llu forks, %llu execs, %llu exits",
			(unsigned long long)pm->forks,
			(unsigned long long)pm->execs,
			(unsigned long long)pm->exits);
}

static void metrics_status_losses(struct engine *e, struct reporter_metrics *m)
{
	const char *const *words = losses_names();
	uint64_t losses[LOSS_MAX];
	int i;

	losses_count(e, losses);
	for (i = 0; i < LOSS_MAX; i++) {
		reporter_status(m, words[i], "%llu",
				(unsigned long long)losses[i]);
		reporter_member_int(m, "losses", words[i], losses[i]);
	}
}

/* What a person asks first; everything else is in /metrics. */
static void metrics_status_collect(struct engine *e,
				   const struct engine_totals *total,
				   const struct source_stats *source,
				   struct reporter_metrics *m)
{
	struct pm_stats pm;

	pm_get_stats(e->pm, &pm);
	reporter_status(m, "sampling", "%u Hz, for %llu s", e->opts.freq_hz,
			(unsigned long long)((clock_boottime_ns() - e->begin) /
					     CLOCK_NSEC_PER_SEC));
	metrics_status_start(e->rescan, &pm, m);
	reporter_status(m, "source", "%s",
			e->note[0] ? e->note : e->source.row->title);
	metrics_status_missing(m);
	reporter_status(m, "samples", "%llu",
			(unsigned long long)total->samples);
	metrics_status_processes(&pm, e->open_files, m);
	metrics_status_reader(e->symbolizer, m);
	metrics_status_stacks(e->th, m);
	metrics_status_losses(e, m);
	metrics_status_limits(&e->limits, &source->life, m);
}

/* The same, for programs: what of it is in no metric, or is asked for first. */
static void metrics_status_members(const struct engine *e,
				   const struct engine_totals *total,
				   struct reporter_metrics *m)
{
	double all = total->samples + total->missed;

	reporter_member_int(m, NULL, "since",
			    (e->begin + clock_wall_offset_ns()) /
				    CLOCK_NSEC_PER_SEC);
	reporter_member_int(m, "sampling", "hz", e->opts.freq_hz);
	reporter_member_text(m, "sampling", "source", e->source.row->name);
	reporter_member_text(m, "sampling", "note", e->note);
	reporter_member_int(m, "sampling", "seconds",
			    (clock_boottime_ns() - e->begin) /
				    CLOCK_NSEC_PER_SEC);
	reporter_member_int(m, "sampling", "samples", total->samples);
	if (all)
		reporter_member_real(m, NULL, "coverage", total->samples / all);
}

void metrics_collect(void *arg, struct reporter_metrics *m)
{
	struct mallinfo2 heap = mallinfo2();
	struct engine_totals total;
	struct source_stats source;
	struct engine *e = arg;

	metrics_source(&e->source, &source);
	engine_totals(e, &total);
	metrics_sampler(&e->source, m);
	metrics_lifecycle(&source.life, m);
	metrics_sideband(&source.side, m);
	metrics_rereads(e->rescan, m);
	metrics_perf(&source.perf, m);
	metrics_pump(e->in.pump, m);
	metrics_parts(e->pm, e->th, e->symbolizer, m);
	reporter_metric(m, "profd_heap_bytes",
			"bytes of memory in use, as malloc counts them", false,
			NULL, heap.uordblks + heap.hblkhd);
	reporter_metric(m, "profd_frequency_hertz", "samples a second and CPU",
			false, NULL, e->opts.freq_hz);
	reporter_metric(m, "profd_build_info", "1, of this version", false,
			"version=\"" PROFD_VERSION "\"", 1);
	metrics_process(m);
	metrics_status_members(e, &total, m);
	metrics_status_collect(e, &total, &source, m);
}
