// SPDX-License-Identifier: Apache-2.0
/*
 * metrics: see profiler/metrics.h. The parts' own lists of counters give name,
 * kind and help; here they only get their prefix.
 */
#include <malloc.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "profiler/engine_internal.h"
#include "profiler/metrics.h"
#include "profiler/privilege.h"

/* The counters of all parts at one time. */
struct metrics_counts {
	struct source_stats source;
	struct rescan_stats rescan;
	struct pump_stats pump;
	struct pm_stats pm;
	struct trace_stats trace;
	struct symbolizer_stats symbolize;
	struct watch_stats watch;
	struct waiting_stats waiting;
	struct tracing_stats tracing;
	struct services_stats services;
	struct notify_stats notify;
	struct engine_totals total;
	struct memory memory;
	uint64_t stale, heap, hertz;
};

/* A counter's name ends in "_total", a gauge's does not. */
struct metrics_row {
	const char *name, *help;
	size_t at; /* of a uint64_t in struct metrics_counts */
	double unit; /* what it counts in a second; 1: a plain number */
};

#define METRIC_IN(unit, member, name, help)                               \
	{                                                                 \
		name, help, offsetof(struct metrics_counts, member), unit \
	}
#define METRIC(member, name, help) METRIC_IN(1, member, name, help)
#define METRIC_OF(part, name, gauge, help)                  \
	METRIC(part.name,                                   \
	       (gauge) ? "profd_" #part "_" #name           \
		       : "profd_" #part "_" #name "_total", \
	       help),

static const struct metrics_row metrics_rows[] = {
	METRIC(source.life.insertions, "profd_lifecycle_events_total",
	       "lifecycle events read"),
	METRIC(source.life.lost, "profd_lifecycle_lost_total",
	       "lifecycle events lost, by any cause"),
	METRIC(source.life.limited, "profd_lifecycle_limited_total",
	       "renames and moves beyond ten a second of one task, "
	       "not reported one by one"),
	METRIC(source.life.unwoken, "profd_lifecycle_unwoken_total",
	       "execs of new files that were too many to wake profd"),
	METRIC(source.life.unread, "profd_lifecycle_unread_total",
	       "readings of /proc given up, for want of an answer"),
	METRIC(source.side.records, "profd_sideband_records_total",
	       "mapping and exec records read"),
	METRIC(source.side.lost, "profd_sideband_lost_total",
	       "mapping records lost because a ring was full"),
	METRIC(source.side.bad, "profd_sideband_bad_total",
	       "mapping records with wrong lengths"),
	METRIC(source.side.repeats, "profd_sideband_repeats_total",
	       "records of mappings that were there, skipped"),
	METRIC(source.side.limited, "profd_sideband_limited_total",
	       "mapping records dropped: too many of one process, or of all"),
	METRIC(source.side.rings_bytes, "profd_sideband_ring_bytes",
	       "bytes of the mapping stream's rings"),
	METRIC(rescan.queue.waiting, "profd_reread_waiting",
	       "processes whose mappings wait to be re-read"),
	METRIC_IN(1e9, rescan.queue.cpu_ns, "profd_reread_cpu_seconds_total",
		  "CPU time used to re-read mappings"),
	METRIC_IN(1e9, rescan.queue.wait_ns, "profd_reread_wait_seconds_total",
		  "time that readings of mappings waited for locks"),
	METRIC(rescan.queue.slow, "profd_reread_slow_total",
	       "readings of mappings that waited for more than 20 ms"),
	METRIC(rescan.hung, "profd_reread_hung_total",
	       "readings of mappings that were abandoned"),
	METRIC(rescan.large, "profd_reread_large_total",
	       "processes whose mappings are more than 16 MiB"),
	METRIC(rescan.queue.limited, "profd_reread_limited_total",
	       "times a re-read waited for its user's share of time"),
	METRIC(rescan.queue.dropped, "profd_reread_dropped_total",
	       "re-reads dropped for want of room"),
	METRIC(source.perf.gaps, "profd_perf_gaps_total",
	       "places at which perf records were lost"),
	METRIC(source.perf.throttled, "profd_perf_throttled_total",
	       "times the kernel throttled a perf event"),
	METRIC(pump.hurried, "profd_pump_hurried_total",
	       "times that samples did not wait for lifecycle events"),
	METRIC(pump.bytes, "profd_pump_waiting_bytes",
	       "bytes waiting in the pump now"),
	METRIC(pump.bytes_max, "profd_pump_waiting_bytes_max",
	       "most bytes that ever waited in the pump"),
	METRIC(stale, "profd_pm_stale", "processes with stale mappings now"),
#define X(name, gauge, help) METRIC_OF(pm, name, gauge, help)
	PM_STATS(X)
#undef X
#define X(name, gauge, help) METRIC_OF(trace, name, gauge, help)
		TRACE_STATS(X)
#undef X
#define X(name, gauge, help) METRIC_OF(symbolize, name, gauge, help)
			SYMBOLIZER_STATS(X)
#undef X
#define X(name, gauge, help) METRIC_OF(watch, name, gauge, help)
				WATCH_STATS(X)
#undef X
#define X(name, gauge, help) METRIC_OF(waiting, name, gauge, help)
					WAITING_STATS(X)
#undef X
#define X(name, gauge, help) METRIC_OF(tracing, name, gauge, help)
						TRACING_STATS(X)
#undef X
#define X(name, gauge, help) METRIC_OF(services, name, gauge, help)
							SERVICES_STATS(X)
#undef X
#define X(name, gauge, help) METRIC_OF(notify, name, gauge, help)
								NOTIFY_STATS(X)
#undef X
									METRIC_IN(
										1e3,
										pm.gaps_ms,
										"profd_pm_gaps_seconds_total",
										"time of gaps in the lifecycle stream"),
	METRIC_IN(1e3, pm.maps_lost_ms, "profd_pm_maps_lost_seconds_total",
		  "time of gaps in the mapping stream"),
	METRIC_IN(1e9, waiting.wait_ns, "profd_waiting_wait_seconds_total",
		  "time in which threads waited"),
	METRIC_IN(1e9, waiting.queue_ns, "profd_waiting_runqueue_seconds_total",
		  "time in which threads were in the run queue"),
	METRIC_IN(1e9, waiting.on_ns, "profd_waiting_running_seconds_total",
		  "time in which threads were on a CPU, by the clock"),
	METRIC_IN(1e9, waiting.cpu_ns, "profd_waiting_cpu_seconds_total",
		  "CPU time of these threads, by the kernel's account"),
	METRIC_IN(1e9, waiting.unkept_ns, "profd_waiting_unkept_seconds_total",
		  "time of threads in sums that were refused"),
	METRIC_IN(1e9, waiting.cut_ns, "profd_waiting_cut_seconds_total",
		  "CPU time used to cut open waits"),
	METRIC(heap, "profd_heap_bytes",
	       "bytes of memory in use, as malloc counts them"),
	METRIC(memory.used, "profd_memory_bytes",
	       "anonymous memory of profd and its workers"),
	METRIC(memory.highest, "profd_memory_highest_bytes",
	       "most of it that was measured"),
	METRIC(memory.max, "profd_memory_max_bytes",
	       "its ceiling; 0: there is none"),
	METRIC(memory.ended, "profd_memory_ended_total",
	       "workers ended because they used too much of it"),
	METRIC(hertz, "profd_frequency_hertz", "samples a second and CPU"),
};

/* One number for each stream of the pump. */
static const struct metrics_row metrics_streams[] = {
	METRIC(pump.pushed, "profd_pump_records_total",
	       "records pushed into the pump"),
	METRIC(pump.late, "profd_pump_late_total",
	       "records that came below the watermark"),
	METRIC(pump.full, "profd_pump_full_total",
	       "records dropped because too many waited"),
};

static const char *const metrics_stream_labels[] = {
#define X(NAME, name, help) "stream=\"" #name "\"",
	PUMP_STREAMS(X)
#undef X
};

static const struct metrics_row metrics_uncopied[] = {
	METRIC(waiting.uncopied, "profd_waiting_uncopied_total",
	       "waits without the stack of their site, by cause"),
	METRIC_IN(1e9, waiting.uncopied_ns,
		  "profd_waiting_uncopied_seconds_total",
		  "time of waits without the stack of their site, by cause"),
};

/* By enum abi_wait_site. */
static const char *const metrics_uncopied_labels[] = { "cause=\"lost\"",
#define X(NAME, name, help) "cause=\"" #name "\"",
						       ABI_WAIT_UNCOPIED(X)
#undef X
};

static const struct metrics_row metrics_looks[] = {
	METRIC(tracing.found, "profd_tracing_looks_total",
	       "looks for the ids of threads in a process, by result"),
};

static const struct metrics_row metrics_published[] = {
	METRIC(services.found, "profd_services_looks_total",
	       "looks for the names of a service in a process, by result"),
};

static const char *const metrics_published_labels[] = {
#define X(NAME, name, text) "result=\"" #name "\"",
	PUBLISHED_FINDS(X)
#undef X
};

static const char *const metrics_looks_labels[] = {
#define X(NAME, name, text) "result=\"" #name "\"",
	TRACING_FINDS(X)
#undef X
};

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

static void metrics_show(struct reporter_metrics *m,
			 const struct metrics_row *row, const char *labels,
			 const struct metrics_counts *all, size_t i)
{
	const char *at = (const char *)all + row->at, *s = row->name;
	uint64_t value = ((const uint64_t *)at)[i];

	reporter_metric(m, s, row->help, !strcmp(s + strlen(s) - 6, "_total"),
			labels, value / row->unit);
}

static const struct {
	const char *name;
	const char *help;
} metrics_of_cpus[] = {
#define X(NAME, name, help) { "profd_sampler_" #name "_total", help },
	ABI_SAMPLER_COUNTERS(X)
#undef X
		{ "profd_sampler_busy_seconds_total",
		  "busy time of the CPU since sampling began" },
	{ "profd_sampler_missed", "busy time x Hz less samples, if positive" },
};

static void metrics_sampler(const struct source_run *source,
			    struct reporter_metrics *m)
{
	const size_t busy = ABI_SAMPLER_COUNTER_MAX;
	struct sampler_cpu_stats *cpus, *c;
	char label[32];
	size_t row;
	int n;

	n = metrics_cpus(source, &cpus);
	for (row = 0; row < ARRAY_SIZE(metrics_of_cpus); row++) {
		for (c = cpus; c < cpus + n; c++) {
			snprintf(label, sizeof(label), "cpu=\"%u\"", c->cpu);
			reporter_metric(m, metrics_of_cpus[row].name,
					metrics_of_cpus[row].help, row <= busy,
					label,
					row < busy    ? c->counters[row]
					: row == busy ? c->busy_s
						      : c->missed);
		}
	}
	free(cpus);
}

/* Processes with stale mappings that were not re-read yet. */
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

static void metrics_gather(struct engine *e, struct metrics_counts *out)
{
	struct mallinfo2 heap = mallinfo2();

	metrics_source(&e->source, &out->source);
	rescan_get_stats(e->rescan, &out->rescan);
	pump_get_stats(e->in.pump, &out->pump);
	pm_get_stats(e->pm, &out->pm);
	trace_handler_get_stats(e->th, &out->trace);
	symbolizer_get_stats(e->symbolizer, &out->symbolize);
	if (e->watching.watch)
		watch_stats(e->watching.watch, &out->watch);
	waiting_get_stats(e->waiting, &out->waiting);
	out->tracing = e->tracing.stats;
	out->services = e->services.stats;
	out->notify = e->notify.stats;
	engine_totals(e, &out->total);
	out->stale = metrics_stale(e->pm);
	out->heap = heap.uordblks + heap.hblkhd;
	out->hertz = e->opts.freq_hz;
	out->memory = e->memory;
}

/* Files that /status names, the newest. */
#define METRICS_QUARANTINED_MAX 8

static const char *const metrics_reasons[] = {
#define X(NAME, name, text) #name,
	SYMBOLIZER_REASONS(X)
#undef X
};

/* The symbolize worker, and the files that it could not read. */
static void metrics_status_reader(struct symbolizer *sym,
				  struct reporter_metrics *m)
{
	struct symbolizer_quarantined q;
	char text[256];
	size_t i;

	symbolizer_worker_status(sym, text, sizeof(text));
	reporter_status(m, "symbolize worker", "%s", text);
	if (symbolizer_quarantined_now(sym))
		reporter_status(m, "quarantined files", "%zu",
				symbolizer_quarantined_now(sym));
	reporter_member_int(m, "quarantine", "files",
			    symbolizer_quarantined_now(sym));
	for (i = 0; i < METRICS_QUARANTINED_MAX; i++) {
		if (!symbolizer_quarantined(sym, i, &q))
			break;
		reporter_status(m, "quarantined", "%s, opened for uid %u: %s",
				q.path, q.uid, q.text);
		reporter_member_row(m, "quarantined");
		reporter_member_text(m, "quarantined", "path", q.path);
		reporter_member_int(m, "quarantined", "uid", q.uid);
		reporter_member_text(m, "quarantined", "reason",
				     metrics_reasons[q.why]);
	}
}

static void metrics_quarantined(struct symbolizer *sym,
				struct reporter_metrics *m)
{
	const uint64_t *counts = symbolizer_quarantined_by(sym);
	char label[64];

	for (size_t i = 0; i < SYMBOLIZER_N_REASONS; i++) {
		snprintf(label, sizeof(label), "reason=\"%s\"",
			 metrics_reasons[i]);
		reporter_metric(m, "profd_quarantined_total",
				"files quarantined, by reason", true, label,
				counts[i]);
	}
}

/* Only counters above zero: most hosts have few of these. */
static void metrics_status_stacks(const struct trace_stats *tr,
				  struct reporter_metrics *m)
{
	reporter_status(m, "unwind tables", "%llu, %llu bytes",
			(unsigned long long)tr->tables,
			(unsigned long long)tr->tables_bytes);
#define X(name, gauge, help) \
	if (tr->name)        \
		reporter_status(m, help, "%llu", (unsigned long long)tr->name);
	TRACE_STACK_STATS(X)
#undef X
}

/* The same as the warnings at the start. */
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

static void metrics_status_start(const struct rescan_stats *st,
				 uint64_t scanned, struct reporter_metrics *m)
{
	if (st->start_ns)
		reporter_status(m, "start",
				"%llu processes scanned in %llu ms, %llu "
				"samples taken meanwhile",
				(unsigned long long)scanned,
				st->start_ns / CLOCK_NSEC_PER_MSEC,
				(unsigned long long)st->start_samples);
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

/* The clock's time on CPUs has interrupts, and what a hypervisor took. */
static void metrics_status_waiting(const struct waiting_stats *st,
				   struct reporter_metrics *m)
{
	reporter_status(m, "waiting",
			"%.1f s, run queue %.1f s, on CPUs %.1f s, of it CPU "
			"time %.1f s",
			st->wait_ns / 1e9, st->queue_ns / 1e9, st->on_ns / 1e9,
			st->cpu_ns / 1e9);
}

static void metrics_status_tracing(const struct engine *e,
				   const struct metrics_counts *all,
				   struct reporter_metrics *m)
{
	if (!e->tracing.opts.pm && e->opts.traces)
		reporter_status(m, "traces", "off: they need BPF");
	else if (e->tracing.opts.pm)
		reporter_status(m, "traces",
				"%llu samples with one, %llu processes with a "
				"tracer, %llu refused",
				(unsigned long long)all->total.traced,
				(unsigned long long)all->tracing.processes,
				(unsigned long long)all->tracing.refused_full +
					all->tracing.refused_user);
}

static void metrics_status_apm(const struct engine *e,
			       const struct pm_stats *pm,
			       struct reporter_metrics *m)
{
	uint64_t lost =
		pm->apm_lost_full + pm->apm_lost_late + pm->apm_lost_gone;

	if (!e->notify.pm)
		return;
	if (!e->notify.permitted && !pm->apm_agents)
		reporter_status(m, "apm", "no permission");
	else
		reporter_status(m, "apm",
				"%llu agents listen, %llu samples sent, %llu "
				"lost%s",
				(unsigned long long)pm->apm_agents,
				(unsigned long long)pm->apm_samples,
				(unsigned long long)lost,
				e->notify.permitted ? "" : "; no permission");
}

static void metrics_memory_levels(const struct memory *mem,
				  struct reporter_metrics *m)
{
	char label[32];

	for (size_t i = 0; i < MEMORY_LEVELS; i++) {
		snprintf(label, sizeof(label), "level=\"%zu\"", i + 1);
		reporter_metric(m, "profd_memory_shed_total",
				"times that caches were cut, by level", true,
				label, mem->shed[i]);
	}
}

static void metrics_status_memory(const struct memory *mem,
				  struct reporter_metrics *m)
{
	const char *from = mem->cgroup ? ", of the control group" : "";

	if (!mem->max)
		reporter_status(m, "memory", "%llu MiB",
				(unsigned long long)mem->used >> 20);
	else if (mem->level)
		reporter_status(m, "memory",
				"%llu of at most %llu MiB%s: caches are cut to "
				"1/%u",
				(unsigned long long)mem->used >> 20,
				(unsigned long long)mem->max >> 20, from,
				1U << mem->level);
	else
		reporter_status(m, "memory", "%llu of at most %llu MiB%s",
				(unsigned long long)mem->used >> 20,
				(unsigned long long)mem->max >> 20, from);
	reporter_member_int(m, "memory", "used", mem->used);
	reporter_member_int(m, "memory", "max", mem->max);
	reporter_member_int(m, "memory", "level", mem->level);
}

static void metrics_status_losses(struct engine *e, struct reporter_metrics *m)
{
	uint64_t losses[LOSS_MAX];
	int i;

	losses_count(e, losses);
	for (i = 0; i < LOSS_MAX; i++) {
		reporter_status(m, losses_names()[i], "%llu",
				(unsigned long long)losses[i]);
		reporter_member_int(m, "losses", losses_names()[i], losses[i]);
	}
}

/* What users look for first; everything else is in /metrics. */
static void metrics_status_collect(struct engine *e,
				   const struct metrics_counts *all,
				   struct reporter_metrics *m)
{
	const struct quark_queue_stats *life = &all->source.life;

	reporter_status(m, "sampling", "%u Hz, for %llu s", e->opts.freq_hz,
			(clock_boottime_ns() - e->begin) / CLOCK_NSEC_PER_SEC);
	metrics_status_start(&all->rescan, all->pm.scanned, m);
	reporter_status(m, "source", "%s",
			e->note[0] ? e->note : e->source.row->title);
	metrics_status_missing(m);
	reporter_status(m, "samples", "%llu",
			(unsigned long long)all->total.samples);
	metrics_status_processes(&all->pm, e->open_files, m);
	if (e->waiting)
		metrics_status_waiting(&all->waiting, m);
	metrics_status_tracing(e, all, m);
	metrics_status_apm(e, &all->pm, m);
	metrics_status_memory(&all->memory, m);
	metrics_status_cpu(m);
	metrics_status_reader(e->symbolizer, m);
	metrics_status_stacks(&all->trace, m);
	metrics_status_losses(e, m);
	limits_collect(&e->limits, m);
	limits_collect_unnamed(m, "moves",
			       "changes of name, directory, ids or cgroup",
			       life->limited);
	limits_collect_unnamed(m, "wakeups", "execs of new files reported late",
			       life->unwoken);
}

/* The JSON form: what no metric has, and what programs need first. */
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
	struct metrics_counts all;
	struct engine *e = arg;
	size_t i, stream, cause;

	metrics_gather(e, &all);
	metrics_sampler(&e->source, m);
	for (i = 0; i < ARRAY_SIZE(metrics_streams); i++)
		for (stream = 0; stream < PUMP_STREAM_MAX; stream++)
			metrics_show(m, &metrics_streams[i],
				     metrics_stream_labels[stream], &all,
				     stream);
	for (i = 0; i < ARRAY_SIZE(metrics_rows); i++)
		metrics_show(m, &metrics_rows[i], NULL, &all, 0);
	for (i = 0; i < ARRAY_SIZE(metrics_uncopied); i++)
		for (cause = 0; cause < ABI_WAIT_SITE_LEAST; cause++)
			metrics_show(m, &metrics_uncopied[i],
				     metrics_uncopied_labels[cause], &all,
				     cause);
	for (cause = 0; cause < TRACING_N_FINDS; cause++)
		metrics_show(m, &metrics_looks[0], metrics_looks_labels[cause],
			     &all, cause);
	for (cause = 0; cause < PUBLISHED_N_FINDS; cause++)
		metrics_show(m, &metrics_published[0],
			     metrics_published_labels[cause], &all, cause);
	metrics_memory_levels(&all.memory, m);
	metrics_quarantined(e->symbolizer, m);
	reporter_metric(m, "profd_build_info", "1, of this version", false,
			"version=\"" PROFD_VERSION "\"", 1);
	metrics_process(m);
	metrics_status_members(e, &all.total, m);
	metrics_status_collect(e, &all, m);
}
