// SPDX-License-Identifier: Apache-2.0
/*
 * engine: see profiler/engine.h; engine_open.c opens it. Data flows one way:
 *
 *	source --(intake)--+-> pump -> process manager (lifecycle, mappings, scan)
 *	rescan ------------/        \-> trace handler (samples) -> reporter
 *
 * The source is one row of profiler/source/source.h. drain.c decides when it is
 * drained; each drain sets the watermarks of the streams, and the pump delivers
 * what is below the least of them.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "profiler/engine.h"
#include "profiler/engine_internal.h"

/*
 * With so many samples a second on all CPUs the pending samples exceed their
 * budget before the tables of the first ones are read.
 */
#define ENGINE_WARM_RATE 1000
/* After this time samples have shown what runs. */
#define ENGINE_WARM_LEAST_NS (50 * CLOCK_NSEC_PER_MSEC)
#define ENGINE_WARM_MOST_NS (2 * CLOCK_NSEC_PER_SEC)
/* Less than the longest interval of drains, so that none is skipped. */
#define ENGINE_SECOND_NS (900 * CLOCK_NSEC_PER_MSEC)
/* A window is ended early, for its memory, once in so long. */
#define ENGINE_SHED_WINDOW_NS (10 * CLOCK_NSEC_PER_SEC)
/* What ends within this time, a window or a wait, is looked at often. */
#define ENGINE_AWAITED_NS CLOCK_NSEC_PER_SEC
/* At the end: most time to wait for the rings and for names. */
#define ENGINE_FINISH_NS (4 * CLOCK_NSEC_PER_SEC)
/*
 * For names, in all, and without an answer. A worker is ended on a file after 20 s, and
 * that three times if it is not clear that this was due to the file. A user with
 * thousands of such files gets more than ten minutes; as users take turns, only names
 * of that user's files are missing then.
 */
#define ENGINE_NAMES_NS (600 * CLOCK_NSEC_PER_SEC)
#define ENGINE_STALL_NS (60 * CLOCK_NSEC_PER_SEC)

void engine_event(void *arg, const struct quark_event *ev)
{
	struct engine *e = arg;

	pm_event(e->pm, ev);
	if (reporter_event(e->reporter, ev))
		e->in.nomem++;
}

/* Samples and mappings are in the vault. */
static void engine_drop(void *arg, enum pump_stream stream, void *rec)
{
	struct engine *e = arg;

	if (stream == PUMP_SCAN)
		rescan_drop(rec);
	else if (stream == PUMP_LIFECYCLE)
		e->source.row->drop(rec);
	else
		vault_give(rec);
}

static void engine_mapping(void *arg, const struct pm_map_event *ev)
{
	struct engine *e = arg;
	bool lost = ev->kind == PM_MAP_LOST && !ev->tgid;

	if ((lost || ev->kind == PM_MAP_KSYMBOL) &&
	    trace_handler_ksymbol(e->th, ev))
		symbolizer_kernel_changed(e->symbolizer);
	if (ev->kind != PM_MAP_KSYMBOL) {
		pm_map_event(e->pm, ev);
		waiting_mapped(e->waiting, ev->tgid);
		tracing_mapped(&e->tracing, ev->tgid);
	}
	if (lost)
		rescan_after_loss(e->rescan);
}

/* When it is known, not in order of time: a module may not be there for long. */
static void engine_modules(void *arg)
{
	struct engine *e = arg;

	symbolizer_kernel_modules(e->symbolizer);
}

/*
 * The name of a process is its first thread's. In a sample inside execve that
 * may already be the next image's.
 */
static void engine_sampled(struct engine *e, const struct abi_sample *sample)
{
	bool limited = sample->flags & ABI_SAMPLE_DEEP_LIMITED;
	bool named = sample->tid == sample->key.tgid &&
		     !(sample->flags & ABI_SAMPLE_EXEC);
	struct pm_image *img = NULL;
	struct pm_image_info info;

	if (sample->time < e->wanted_from)
		return;
	if (limited || named)
		img = pm_image_get(e->pm, &sample->key, sample->time);
	if (img && limited) {
		pm_image_info(img, &info);
		limits_note(&e->limits, info.uid, LIMIT_STACKS, 1);
	}
	if (img && named)
		pm_image_named(img, sample->comm);
	tracing_sampled(&e->tracing, &sample->key);
	services_sampled(&e->services, &sample->key, false, sample->time);
	trace_handler_sample(e->th, sample, sample->size);
}

/* The warm-up's too: it is copied once. */
static void engine_site(struct engine *e, const struct abi_sample *sample)
{
	trace_handler_sample(e->th, sample, sample->size);
}

static void engine_deliver(void *arg, enum pump_stream stream, uint64_t time,
			   void *rec, bool late)
{
	struct engine *e = arg;
	const struct source_row *row = e->source.row;
	void *source = e->source.state;

	switch (stream) {
	case PUMP_LIFECYCLE:
		if (row->life)
			row->life(source, rec);
		else
			engine_event(e, rec);
		break;
	case PUMP_MAPPING:
		engine_mapping(e, rec);
		if (row->mapped)
			row->mapped(source, rec);
		break;
	case PUMP_SCAN:
		rescan_deliver(e->pm, rec, time);
		return;
	case PUMP_SAMPLE:
		if (!row->sample || row->sample(source, rec))
			engine_sampled(e, rec);
		break;
	case PUMP_SITE:
		engine_site(e, rec);
		break;
	case PUMP_STREAM_MAX:
		break;
	}
	engine_drop(e, stream, rec);
}

int engine_intake_open(struct engine *e)
{
	struct intake *in = &e->in;

	in->map_lost = engine_mapping;
	in->modules = engine_modules;
	in->arg = e;
	return intake_init(in, 2 * e->opts.ring_size, engine_deliver,
			   engine_drop, e);
}

/* The time up to which every sample was given to the reporter, or dropped. */
static uint64_t engine_done(const struct engine *e)
{
	return MIN(e->in.passed, trace_handler_oldest(e->th));
}

uint64_t engine_drain(void *arg)
{
	uint64_t now = clock_boottime_ns();
	struct engine *e = arg;
	const struct source_run *source = &e->source;
	struct intake *in = &e->in;
	bool more;

	intake_watermark(in, PUMP_SCAN, rescan_watermark(e->rescan, now));
	/* As samples, before the streams that they need. */
	intake_watermark(in, PUMP_SITE, waiting_drain(e->waiting));
	more = source->row->drain(source->state, now);
	intake_deliver(in);
	rescan_work(e->rescan, now);
	trace_handler_tick(e->th, clock_awake_ns(), drain_idle(&e->drain));
	pm_forget(e->pm, engine_done(e) - MAX(watching_keeps(&e->watching),
					      waiting_keeps(e->waiting)));
	/* More files may be mapped now, and deleted soon. */
	if (in->mapped)
		drain_active(&e->drain, now);
	in->mapped = false;
	if (more || in->more)
		drain_soon(&e->drain);
	return MIN(in->life_until, in->maps_until);
}

/* Once a second: CPUs that came or went, and the counts of losses. */
static void engine_second(struct engine *e)
{
	int err, before = e->hotplug_err;

	losses_update(e);
	memory_trim_tick(&e->trim, e->second);
	err = e->source.row->second(e->source.state);
	if (err && err != before)
		log_warn("cannot follow the CPUs that are online: %s",
			 strerror(-err));
	e->hotplug_err = err;
}

/* What each level of profiler/memory/memory.h means. */
static void engine_shed(struct engine *e)
{
	unsigned int level = e->memory.level;

	symbolizer_shed(e->symbolizer, level);
	trace_handler_shed(e->th, level);
	reporter_shed(e->reporter, level > 1);
	if (level)
		log_warn("memory: %llu of %llu MiB are in use, caches are cut "
			 "to 1/%u",
			 (unsigned long long)e->memory.used >> 20,
			 (unsigned long long)e->memory.max >> 20, 1U << level);
	else
		log_info("memory: %llu MiB are in use, caches have their usual "
			 "size",
			 (unsigned long long)e->memory.used >> 20);
}

/* The last level: what can be had again, at some cost. */
static void engine_shed_last(struct engine *e, uint64_t now)
{
	const struct memory_usage *u = &e->memory.usage;
	struct reporter_stats stats;

	reporter_get_stats(e->reporter, &stats);
	if (memory_matters(&e->memory, stats.memory_bytes) &&
	    now - e->memory_window >= ENGINE_SHED_WINDOW_NS) {
		e->memory_window = now;
		reporter_rotate(e->reporter, now);
	}
	/* It is a child that was not reaped: the pid is no other process's. */
	if (memory_matters(&e->memory, u->largest_bytes) &&
	    !kill(u->largest, SIGKILL))
		e->memory.ended++;
}

static void engine_memory_tick(struct engine *e, uint64_t now)
{
	if (memory_tick(&e->memory, now))
		engine_shed(e);
	if (e->memory.level == MEMORY_LEVELS)
		engine_shed_last(e, now);
}

static void engine_reporter_done(void *arg)
{
	const struct engine_end *end = arg;

	end->done(end->arg);
}

/* Whether samples from before the end may still get what they wait for. */
static bool engine_awaits(struct engine *e, uint64_t now)
{
	uint64_t unnamed = trace_handler_unnamed(e->th);
	struct engine_end *end = &e->end;

	if (unnamed != end->unnamed)
		end->changed = now;
	end->unnamed = unnamed;
	if (now < end->time + ENGINE_FINISH_NS &&
	    (end->now ? e->in.passed : engine_done(e)) < end->time)
		return true;
	if (!e->opts.all_names || end->now ||
	    now >= end->time + ENGINE_NAMES_NS ||
	    now >= end->changed + ENGINE_STALL_NS)
		return false;
	if (trace_handler_oldest(e->th) < end->time)
		return true;
	if (!end->late)
		trace_handler_late_names(e->th, NULL);
	end->late = true;
	return trace_handler_late(e->th);
}

/* True when all samples before the end were given to the reporter. */
static bool engine_finishing(struct engine *e, uint64_t now)
{
	struct engine_end *end = &e->end;

	if (!end->done)
		return false;
	if (engine_awaits(e, now))
		return false;
	end->over = true;
	trace_handler_flush(e->th);
	waiting_end(e->waiting);
	losses_update(e);
	drain_stop(&e->drain);
	reporter_finish(e->reporter, end->time, engine_reporter_done, end);
	return true;
}

static void engine_tick(void *arg)
{
	uint64_t now = clock_boottime_ns();
	struct engine *e = arg;

	engine_drain(e);
	watching_read(&e->watching);
	tracing_tick(&e->tracing, now);
	services_tick(&e->services, now, e->in.passed);
	notify_tick(&e->notify);
	waiting_tick(e->waiting, now, engine_done(e));
	if (engine_finishing(e, now))
		return;
	/* The window of a recording that ends stays open for its last names. */
	if (!e->end.done || !e->opts.all_names)
		reporter_advance(e->reporter, engine_done(e));
	if (now - e->second >= ENGINE_SECOND_NS) {
		e->second = now;
		engine_second(e);
		engine_memory_tick(e, now);
	} else if (memory_hurries(&e->memory)) {
		engine_memory_tick(e, now);
	}
}

/*
 * While re-reads are pending, a sample's wait ends soon, a client waits for
 * events or for a window that ends soon, or an APM agent for stacks; without BPF
 * always, since processes are then identified in /proc, which is possible only
 * while they live. Samples
 * that wait for tables or names are no reason: the answers wake the loop, and
 * profd, which samples itself, would keep itself awake.
 */
static bool engine_busy(void *arg, uint64_t now)
{
	const struct engine *e = arg;

	return e->source.row->often || rescan_pending(e->rescan) ||
	       tracing_busy(&e->tracing, now) ||
	       services_busy(&e->services, now) || notify_busy(&e->notify) ||
	       waiting_busy(e->waiting) ||
	       trace_handler_due(e->th) <
		       clock_awake_ns() + ENGINE_AWAITED_NS ||
	       MIN(reporter_due(e->reporter), waiting_due(e->waiting)) <
		       now + ENGINE_AWAITED_NS;
}

void engine_refresh(void *arg)
{
	struct engine *e = arg;

	if (!e->end.done)
		drain_asked(&e->drain);
}

void engine_edges(void *arg)
{
	const struct engine *e = arg;

	waiting_set_edges(e->waiting);
}

int engine_timeline(void *arg, const struct abi_key *key, bool lives,
		    uint32_t tid, struct reporter_timeline *out)
{
	const struct engine *e = arg;

	return waiting_timeline(e->waiting, key, lives, tid, out);
}

int engine_follow(void *arg, uint32_t pid, bool begins)
{
	const struct engine *e = arg;

	return waiting_follow(e->waiting, pid, begins);
}

int engine_path(void *arg, const struct abi_key *key, bool lives,
		struct reporter_path *out)
{
	const struct engine *e = arg;

	return waiting_path(e->waiting, key, lives, out);
}

int engine_loop(struct engine *e)
{
	const struct source_poll waits = {
		.what = "stacks of waits",
		.fd = waiting_epoll_fd(e->waiting),
	};
	struct drain *d = &e->drain;
	int err;

	d->loop = e->opts.loop;
	d->tick = engine_tick;
	d->now = engine_drain;
	d->busy = engine_busy;
	d->arg = e;
	err = drain_start(d, e->begin, &e->source);
	if (!err && waits.fd >= 0)
		err = drain_add(d, &waits);
	return err;
}

void engine_warm_up(struct engine *e)
{
	uint64_t begin = clock_awake_ns(), spent = 0;
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	struct trace_handler *th = e->th;

	if ((uint64_t)e->opts.freq_hz * (uint64_t)MAX(cpus, 1L) <
	    ENGINE_WARM_RATE)
		return;
	while (spent < ENGINE_WARM_LEAST_NS ||
	       (spent < ENGINE_WARM_MOST_NS && trace_handler_awaits(th))) {
		uv_run(e->opts.loop, UV_RUN_ONCE);
		spent = clock_awake_ns() - begin;
	}
	trace_handler_drop(th);
	e->wanted_from = clock_boottime_ns();
}

void engine_resolved(void *arg, const struct reporter_trace *t)
{
	struct engine *e = arg;
	struct pm_image_info info;

	if (t->event == ABI_EVENT_WAIT) {
		waiting_resolved(e->waiting, t);
		return;
	}
	pm_image_sampled(t->image);
	if (t->trace_id) {
		pm_image_info(t->image, &info);
		services_sampled(&e->services, &info.key, true, t->time);
	}
	losses_saw_cpu(&e->losses, t->cpu);
	reporter_add(e->reporter, t);
}

const char *engine_note(const struct engine *e, const char **why)
{
	*why = e->why;
	return e->note;
}

struct reporter *engine_reporter(struct engine *e)
{
	return e->reporter;
}

struct pm *engine_pm(struct engine *e)
{
	return e->pm;
}

void engine_finish(struct engine *e, void (*done)(void *arg), void *arg)
{
	if (e->end.done)
		return;
	e->source.row->end(e->source.state);
	e->end = (struct engine_end){
		.time = reporter_apart_ahead(e->reporter, clock_boottime_ns()),
		.done = done,
		.arg = arg,
	};
	e->end.changed = e->end.time;
	waiting_ends(e->waiting, e->end.time);
	drain_hurry(&e->drain);
}

bool engine_finish_waiting(const struct engine *e, struct engine_waiting *out)
{
	const struct pm_exe *exe;
	struct pm_exe_info info;

	*out = (struct engine_waiting){
		.frames = trace_handler_unnamed(e->th),
		.files = pm_names_awaited(e->pm, &exe),
	};
	if (exe) {
		pm_exe_info(exe, &info);
		out->path = info.path;
	}
	return e->opts.all_names && e->end.done && !e->end.over && out->frames;
}

void engine_finish_now(struct engine *e)
{
	e->end.now = true;
}

uint64_t engine_unnamed(const struct engine *e)
{
	return e->opts.all_names ? e->end.unnamed : 0;
}

void engine_free(struct engine *e)
{
	if (!e)
		return;
	drain_close(&e->drain);
	rescan_free(e->rescan);
	e->rescan = NULL;
	engine_close_source(&e->source);
	/* It holds frames of the trace handler, which may still resolve stacks. */
	waiting_free(e->waiting);
	e->waiting = NULL;
	tracing_fini(&e->tracing);
	services_fini(&e->services);
	notify_fini(&e->notify);
	/* From right to left: a part uses the parts to its left. */
	trace_handler_free(e->th);
	e->th = NULL;
	reporter_free(e->reporter);
	watching_fini(&e->watching);
	pm_free(e->pm);
	symbolizer_free(e->symbolizer);
	intake_fini(&e->in);
	free(e);
}
