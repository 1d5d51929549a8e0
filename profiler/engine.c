// SPDX-License-Identifier: Apache-2.0
/*
 * engine: see profiler/engine.h; how it is opened: engine_open.c. Data flows one
 * way through here:
 *
 *	quark ----\
 *	sideband --+-> pump -> process manager (lifecycle, mappings, walk)
 *	walk -----/        \-> trace handler (samples) -> reporter
 *	sampler -/
 *
 * Without BPF the perf source stands for quark, sideband and sampler. A timer
 * drains the sources, tells the pump how far each has come, and
 * lets it hand on what is ripe. Nothing wakes the loop for a single record:
 * the kernel side is quiet until a ring is half full. So a host pays ten short
 * wake-ups a second, whatever happens on it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "profiler/engine.h"
#include "profiler/engine_internal.h"
#include "profiler/metrics.h"
#include "profiler/source/perfsource_engine.h"

#define ENGINE_TICK_MS 100
/*
 * So many samples a second on all CPUs fill the room of those that wait for tables
 * before the tables of the first ones are there.
 */
#define ENGINE_WARM_RATE 1000
/* What runs is known by samples of so long. */
#define ENGINE_WARM_LEAST_NS (50 * CLOCK_NSEC_PER_MSEC)
#define ENGINE_WARM_MOST_NS (300 * CLOCK_NSEC_PER_MSEC)
/* The first samples are shown soon; a drain is short. */
#define ENGINE_TICK_FAST_MS 10
#define ENGINE_FAST_NS (500 * CLOCK_NSEC_PER_MSEC)
#define ENGINE_SECOND_NS CLOCK_NSEC_PER_SEC
/*
 * Bytes that may wait in the pump: what the rings hold, as it looks there after
 * they were full, and as much again.
 */
#define ENGINE_HELD ((size_t)32 << 20)
/* So many bytes of events are pushed before what is ripe goes on. */
#define ENGINE_SLICE (2 << 20)
/* So long lifecycle events are read on end; then it is the other streams' turn. */
#define ENGINE_TURN_NS (50 * CLOCK_NSEC_PER_MSEC)
#define ENGINE_TURN_EVENTS 256 /* between two looks at the clock */
/*
 * So long records are handed on; then the loop hears of tables and names, which
 * many of the records may wait for.
 */
#define ENGINE_HAND_NS (5 * CLOCK_NSEC_PER_MSEC)
#define ENGINE_HAND_RECORDS 16 /* between two looks at the clock */
/* So many lifecycle records are read ahead of the timer, then all is drained. */
#define ENGINE_AHEAD 4096
/* The end waits so long for the rings to pass it, and for names. */
#define ENGINE_FINISH_NS (4 * CLOCK_NSEC_PER_SEC)

static void engine_tick(uv_timer_t *timer);

/* The event goes on to those who follow events. */
static void engine_lifecycle(struct engine *e, const struct quark_event *ev)
{
	pm_event(e->pm, ev);
	if (reporter_event(e->reporter, ev))
		e->nomem++;
}

/*
 * What comes and goes by the thousand, in about one order, lies in the vault:
 * samples, mappings, libquark's events.
 */
static void engine_drop(void *arg, enum pump_stream stream, void *rec)
{
	struct engine *e = arg;

	if (stream == PUMP_WALK)
		walk_drop(rec);
	else if (stream == PUMP_LIFECYCLE && e->perf_lives)
		free(rec);
	else
		vault_give(rec);
}

static void engine_mapping(struct engine *e, const struct pm_map_event *ev)
{
	pm_map_event(e->pm, ev);
	if (ev->kind == PM_MAP_LOST && !ev->tgid)
		walk_after_loss(e);
}

/*
 * The name of a process is its first thread's. In execve that may be the one of
 * the image to come.
 */
static void engine_sampled(struct engine *e, const struct abi_sample *sample)
{
	struct pm_image_info info;
	struct pm_image *img;

	if (sample->time < e->wanted_from)
		return;
	if (sample->flags & ABI_SAMPLE_DEEP_LIMITED) {
		img = pm_image_get(e->pm, &sample->key, sample->time);
		if (img) {
			pm_image_info(img, &info);
			limits_note(&e->limits, info.uid, LIMIT_STACKS, 1);
		}
	}
	if (sample->tid == sample->key.tgid &&
	    !(sample->flags & ABI_SAMPLE_EXEC)) {
		img = pm_image_get(e->pm, &sample->key, sample->time);
		if (img)
			pm_image_named(img, sample->comm);
	}
	trace_handler_sample(e->th, sample, sample->size);
}

static void engine_deliver(void *arg, enum pump_stream stream, uint64_t time,
			   void *rec, bool late)
{
	struct engine *e = arg;

	switch (stream) {
	case PUMP_LIFECYCLE:
		if (e->perf)
			perfsource_engine_life(e, rec);
		else
			engine_lifecycle(e, rec);
		break;
	case PUMP_MAPPING:
		engine_mapping(e, rec);
		if (e->perf)
			perfsource_engine_mapped(e, rec);
		break;
	case PUMP_WALK:
		walk_deliver(e->pm, rec, time);
		free(rec);
		return;
	case PUMP_SAMPLE:
		if (!e->perf || perfsource_engine_sample(e, rec))
			engine_sampled(e, rec);
		break;
	case PUMP_STREAM_MAX:
		break;
	}
	engine_drop(e, stream, rec);
}

int engine_pump_new(struct engine *e)
{
	int err = vault_new(&e->vault);

	return err ? err
		   : pump_new(&e->pump, MAX(ENGINE_HELD, 2 * e->opts.ring_size),
			      engine_deliver, engine_drop, e);
}

struct abi_sample *engine_sample_new(struct engine *e, size_t len)
{
	struct abi_sample *rec = vault_take(e->vault, len);

	e->nomem += !rec;
	return rec;
}

void engine_sample_push(struct engine *e, struct abi_sample *rec, uint64_t time,
			size_t len)
{
	pump_push(e->pump, PUMP_SAMPLE, time, rec, len);
}

void engine_on_sample(void *arg, const struct abi_sample *rec, size_t len)
{
	struct engine *e = arg;
	struct abi_sample *copy = engine_sample_new(e, len);

	if (!copy)
		return;
	memcpy(copy, rec, len);
	engine_sample_push(e, copy, rec->time, len);
}

/*
 * For want of memory, or of room for what has most of it: told at once, since its
 * place in the pump is not to be had. So it casts doubt on samples that are older,
 * too; and on all processes, since what it was of may be unknown so far.
 */
static void engine_mapping_lost(struct engine *e, uint64_t time)
{
	struct pm_map_event lost = {
		.kind = PM_MAP_LOST,
		.time = time,
		.end = clock_boottime_ns(),
	};

	engine_mapping(e, &lost);
}

/* Of a mapping there was no room for, its process alone: at its place in time. */
static void engine_map_no_room(struct engine *e, const struct pm_map_event *ev)
{
	struct pm_map_event lost = {
		.kind = PM_MAP_LOST,
		.tgid = ev->tgid,
		.time = ev->time,
		.end = ev->time,
	};

	if (ev->kind != PM_MAP_MMAP)
		engine_mapping_lost(e, ev->time);
	else if (e->sideband)
		sideband_no_room(e->sideband, ev);
	else
		engine_on_map(e, &lost);
}

/* Execs and losses are few, and what they say is about all of a process. */
static int engine_push_map(struct engine *e, struct pm_map_event *rec,
			   size_t size)
{
	return rec->kind == PM_MAP_MMAP
		       ? pump_push(e->pump, PUMP_MAPPING, rec->time, rec, size)
		       : pump_push_rare(e->pump, PUMP_MAPPING, rec->time, rec,
					size);
}

/* Record and path in one block. */
void engine_on_map(void *arg, const struct pm_map_event *ev)
{
	size_t n = ev->path ? strlen(ev->path) + 1 : 0;
	struct engine *e = arg;
	struct pm_map_event *copy = vault_take(e->vault, sizeof(*copy) + n);

	if (e->start)
		walk_saw_map(e->start, copy ? ev : NULL);
	if (!copy) {
		e->nomem++;
		engine_mapping_lost(e, ev->time);
		return;
	}
	*copy = *ev;
	if (n)
		copy->path = memcpy(copy + 1, ev->path, n);
	if (engine_push_map(e, copy, sizeof(*copy) + n))
		engine_map_no_room(e, ev);
}

/* A copy into the pump. Its size, or -errno: it is lost, and counted. */
static ssize_t engine_push_event(struct engine *e, const struct quark_event *ev)
{
	size_t size = quark_event_copy(ev, NULL, 0);
	void *copy = vault_take(e->vault, size);
	int err;

	if (!copy) {
		e->nomem++;
		return -ENOMEM;
	}
	quark_event_copy(ev, copy, size);
	err = pump_push(e->pump, PUMP_LIFECYCLE, ev->boottime, copy, size);
	return err ? err : (ssize_t)size;
}

/*
 * Behind libquark, so its cache has what they changed: the manager is compared
 * with that. Told at once, as a mapping is.
 */
static void engine_events_lost(struct engine *e, struct quark_event *gap)
{
	if (!gap->gap_lost)
		return;
	gap->events = QUARK_EV_GAP;
	gap->boottime = gap->gap_to;
	if (e->start)
		walk_start_lost(e->start);
	engine_lifecycle(e, gap);
	walk_anew(e);
}

static void engine_lifecycle_ripe(struct engine *e)
{
	pump_watermark(e->pump, PUMP_LIFECYCLE,
		       quark_queue_watermark(&e->quark));
}

/*
 * A full ring becomes several times its size in events, each with all that is
 * known of its process: so what is ripe goes on in between.
 */
static void engine_drain_lifecycle(struct engine *e)
{
	struct quark_event gap = { .gap_from = UINT64_MAX };
	uint64_t end = clock_awake_ns() + ENGINE_TURN_NS;
	const struct quark_event *ev;
	size_t pushed = 0, n = 0;
	ssize_t size;

	e->more = false;
	while (!e->more && (ev = quark_queue_get_event(&e->quark))) {
		e->more = ++n % ENGINE_TURN_EVENTS == 0 &&
			  clock_awake_ns() >= end;
		if (e->start)
			walk_saw_event(e->start, ev);
		size = engine_push_event(e, ev);
		if (size < 0) {
			gap.gap_from = MIN(gap.gap_from, ev->boottime);
			gap.gap_to = MAX(gap.gap_to, ev->boottime);
			gap.gap_kinds |= ev->events;
			gap.gap_lost++;
			continue;
		}
		pushed += size;
		if (pushed < ENGINE_SLICE)
			continue;
		pushed = 0;
		engine_lifecycle_ripe(e);
		pump_run(e->pump);
	}
	engine_events_lost(e, &gap);
	engine_lifecycle_ripe(e);
}

/*
 * The sampler first: what its samples need of the other two is then drained
 * after them and mostly there already, so less waits in the pump.
 */
static void engine_drain_bpf(struct engine *e, uint64_t now)
{
	sampler_poll(e->sampler);
	sideband_poll(e->sideband);
	pump_watermark(e->pump, PUMP_SAMPLE, sampler_watermark(e->sampler));
	pump_watermark(e->pump, PUMP_MAPPING, sideband_watermark(e->sideband));
	engine_drain_lifecycle(e);
	walk_check(e, now);
	e->told = MIN(quark_queue_watermark(&e->quark),
		      sideband_watermark(e->sideband));
}

static void engine_hand_on(struct engine *e)
{
	uint64_t end = clock_awake_ns() + ENGINE_HAND_NS;

	do {
		e->ripe = pump_run_some(e->pump, ENGINE_HAND_RECORDS);
	} while (e->ripe && clock_awake_ns() < end);
	e->passed = pump_passed(e->pump);
}

/* What is left is read soon, but not before the rest of the loop. */
static void engine_soon(struct engine *e)
{
	uv_timer_t *timer = &e->timer;

	if ((e->more || e->ripe) && e->timer_open &&
	    uv_is_active((uv_handle_t *)timer))
		uv_timer_start(timer, engine_tick, 1,
			       uv_timer_get_repeat(timer));
}

void engine_drain(struct engine *e)
{
	uint64_t now = clock_boottime_ns(), oldest;

	e->ahead = 0;
	pump_watermark(e->pump, PUMP_WALK, walk_watermark(e, now));
	if (e->perf)
		perfsource_engine_drain(e);
	else
		engine_drain_bpf(e, now);
	engine_hand_on(e);
	walk_doubts(e, now);
	trace_handler_tick(e->th, clock_awake_ns());
	oldest = trace_handler_oldest(e->th);
	pm_forget(e->pm, MIN(e->passed, oldest));
	engine_soon(e);
}

static void engine_advance(struct engine *e)
{
	uint64_t oldest = trace_handler_oldest(e->th);

	reporter_advance(e->reporter, MIN(e->passed, oldest));
}

/* Once a second: CPUs that came or went, and what /proc/stat has to say. */
static void engine_second(struct engine *e)
{
	int err;

	losses_update(e);
	trim_tick(&e->trim, e->second);
	err = e->perf ? perfsource_engine_second(e)
		      : sampler_hotplug(e->sampler);
	if (!err && !e->perf)
		err = sideband_hotplug(e->sideband);
	if (err && err != e->hotplug_err)
		log_warn("cannot follow the CPUs that are online: %s",
			 strerror(-err));
	e->hotplug_err = err;
}

static void engine_reporter_done(void *arg)
{
	struct engine *e = arg;

	e->finished(e->finished_arg);
}

/* True when the end was reached and given to the reporter. */
static bool engine_finishing(struct engine *e, uint64_t now)
{
	if (!e->finished)
		return false;
	if (now < e->end + ENGINE_FINISH_NS &&
	    MIN(e->passed, trace_handler_oldest(e->th)) < e->end)
		return false;
	trace_handler_flush(e->th);
	losses_update(e);
	uv_timer_stop(&e->timer);
	reporter_finish(e->reporter, e->end, engine_reporter_done, e);
	return true;
}

static void engine_tick(uv_timer_t *timer)
{
	struct engine *e = timer->data;
	uint64_t now = clock_boottime_ns();

	engine_drain(e);
	if (engine_finishing(e, now))
		return;
	engine_advance(e);
	if (now - e->second >= ENGINE_SECOND_NS) {
		e->second = now;
		engine_second(e);
	}
	if (!e->finished && now - e->begin >= ENGINE_FAST_NS)
		uv_timer_set_repeat(timer, ENGINE_TICK_MS);
}

/* A ring is half full: do not wait for the timer. */
static void engine_sampler_readable(void *arg)
{
	engine_drain(arg);
}

/*
 * That, or a new file was executed, which is opened from inside of the reading
 * (engine_open.c). Nothing else is done for a single record.
 */
static void engine_quark_readable(void *arg)
{
	struct engine *e = arg;
	int n = quark_queue_populate(&e->quark);

	e->ahead += MAX(n, 0);
	if (n < 0 || e->ahead >= ENGINE_AHEAD)
		engine_drain(e);
}

/* Only to have room again: what is in it waits for the timer. */
static void engine_sideband_readable(void *arg)
{
	struct engine *e = arg;

	sideband_poll(e->sideband);
}

static int engine_wake(struct engine *e, struct wake *wake, const char *what,
		       void (*readable)(void *arg), int fd)
{
	int err;

	wake->what = what;
	wake->readable = readable;
	wake->arg = e;
	err = wake_start(wake, e->loop, fd);
	e->handles += wake->open;
	return err;
}

static int engine_wakes(struct engine *e)
{
	int err = engine_wake(e, &e->sampler_wake, "samples",
			      engine_sampler_readable,
			      e->perf ? perfsource_engine_epoll_fd(e)
				      : sampler_epoll_fd(e->sampler));

	if (err || !e->quark_open)
		return err;
	err = engine_wake(e, &e->quark_wake, "lifecycle events",
			  engine_quark_readable,
			  quark_queue_get_epollfd(&e->quark));
	if (err || !e->sideband)
		return err;
	return engine_wake(e, &e->sideband_wake, "mapping records",
			   engine_sideband_readable,
			   sideband_epoll_fd(e->sideband));
}

int engine_loop(struct engine *e)
{
	int err = uv_timer_init(e->loop, &e->timer);

	if (err)
		return err;
	e->timer.data = e;
	e->handles++;
	e->timer_open = true;
	err = engine_wakes(e);
	if (err)
		return err;
	return uv_timer_start(&e->timer, engine_tick, ENGINE_TICK_FAST_MS,
			      ENGINE_TICK_FAST_MS);
}

void engine_warm_up(struct engine *e)
{
	uint64_t begin = clock_awake_ns(), spent = 0;
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	if ((uint64_t)e->opts.freq_hz * (uint64_t)MAX(cpus, 1L) <
	    ENGINE_WARM_RATE)
		return;
	while (spent < ENGINE_WARM_LEAST_NS ||
	       (spent < ENGINE_WARM_MOST_NS && trace_handler_awaits(e->th))) {
		uv_run(e->loop, UV_RUN_ONCE);
		spent = clock_awake_ns() - begin;
	}
	trace_handler_drop(e->th);
	e->wanted_from = clock_boottime_ns();
}

void engine_resolved(void *arg, const struct reporter_trace *t)
{
	struct engine *e = arg;

	pm_image_sampled(t->image);
	if (t->cpu < ENGINE_CPUS_SEEN)
		e->cpus_seen[t->cpu / 64] |= 1ULL << t->cpu % 64;
	reporter_add(e->reporter, t);
}

bool engine_counts_cpu(const struct engine *e, unsigned int cpu)
{
	if (!e->opts.selected_only || cpu >= ENGINE_CPUS_SEEN)
		return true;
	return e->cpus_seen[cpu / 64] >> cpu % 64 & 1;
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
	if (e->finished)
		return;
	if (e->perf)
		perfsource_engine_stop(e);
	else
		sampler_disable(e->sampler);
	e->end = clock_boottime_ns();
	e->finished = done;
	e->finished_arg = arg;
	uv_timer_set_repeat(&e->timer, ENGINE_TICK_FAST_MS);
	uv_timer_again(&e->timer);
}

static void engine_timer_closed(uv_handle_t *handle)
{
	((struct engine *)handle->data)->handles--;
}

static void engine_wake_closed(uv_handle_t *handle)
{
	const struct wake *w = handle->data;

	((struct engine *)w->arg)->handles--;
}

static void engine_close_handles(struct engine *e)
{
	if (!e->timer_open)
		return;
	uv_close((uv_handle_t *)&e->timer, engine_timer_closed);
	wake_close(&e->sampler_wake, engine_wake_closed);
	wake_close(&e->quark_wake, engine_wake_closed);
	wake_close(&e->sideband_wake, engine_wake_closed);
	/* Their memory is the engine's: they must be closed before it goes. */
	while (e->handles)
		uv_run(e->loop, UV_RUN_ONCE);
}

void engine_free(struct engine *e)
{
	if (!e)
		return;
	engine_close_handles(e);
	walk_cancel(e);
	engine_close_bpf(e);
	/* From right to left: each may still use what stands left of it. */
	trace_handler_free(e->th);
	reporter_free(e->reporter);
	pm_free(e->pm);
	symbolizer_free(e->symbolizer);
	/* How it drops a record depends on where that came from. */
	pump_free(e->pump);
	perfsource_engine_close(e);
	vault_free(e->vault);
	free(e);
}
