// SPDX-License-Identifier: Apache-2.0
/*
 * engine: see profiler/engine.h. Data flows one way through here:
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
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/libbpf.h>

#include "base/base.h"
#include "profiler/engine.h"
#include "profiler/engine_internal.h"
#include "profiler/metrics.h"
#include "profiler/openfiles.h"
#include "profiler/perfsource_engine.h"
#include "profiler/privilege.h"
#include "profiler/unwind_rows.h"

#define ENGINE_TICK_MS 100
/* The first samples are shown soon; a drain is short. */
#define ENGINE_TICK_FAST_MS 10
#define ENGINE_FAST_NS (500 * CLOCK_NSEC_PER_MSEC)
#define ENGINE_SECOND_NS CLOCK_NSEC_PER_SEC
/* The end waits so long for the rings to pass it, and for names. */
#define ENGINE_FINISH_NS (4 * CLOCK_NSEC_PER_SEC)
#define ENGINE_MALLOC_LARGE (128 << 10)

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

	if (stream == PUMP_WALK || (stream == PUMP_LIFECYCLE && e->perf_lives))
		free(rec);
	else
		vault_give(rec);
}

static void engine_mapping(struct engine *e, const struct pm_map_event *ev)
{
	pm_map_event(e->pm, ev);
	if (ev->kind == PM_MAP_LOST)
		walk_after_loss(e);
}

static void engine_deliver(void *arg, enum pump_stream stream, uint64_t time,
			   void *rec, bool late)
{
	const struct abi_sample *sample;
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
		break;
	case PUMP_SAMPLE:
		sample = rec;
		if (!e->perf || perfsource_engine_sample(e, rec))
			trace_handler_sample(e->th, sample, sample->size);
		break;
	case PUMP_STREAM_MAX:
		break;
	}
	engine_drop(e, stream, rec);
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

static void engine_on_sample(void *arg, const struct abi_sample *rec,
			     size_t len)
{
	struct engine *e = arg;
	struct abi_sample *copy = engine_sample_new(e, len);

	if (!copy)
		return;
	memcpy(copy, rec, len);
	engine_sample_push(e, copy, rec->time, len);
}

/*
 * For want of memory: told at once, since there is none to tell it in its place.
 * So it casts doubt on samples that are older, too.
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
	if (pump_push(e->pump, PUMP_MAPPING, ev->time, copy, sizeof(*copy) + n))
		engine_mapping_lost(e, ev->time);
}

static void engine_drain_lifecycle(struct engine *e)
{
	const struct quark_event *ev;
	size_t size;
	void *copy;

	while ((ev = quark_queue_get_event(&e->quark))) {
		if (e->start)
			walk_saw_event(e->start, ev);
		size = quark_event_copy(ev, NULL, 0);
		copy = vault_take(e->vault, size);
		if (!copy) {
			if (e->start)
				walk_start_lost(e->start);
			e->nomem++;
			/* quark's cache has it nevertheless. */
			walk_anew(e);
			continue;
		}
		quark_event_copy(ev, copy, size);
		if (pump_push(e->pump, PUMP_LIFECYCLE, ev->boottime, copy,
			      size))
			walk_anew(e);
	}
	pump_watermark(e->pump, PUMP_LIFECYCLE,
		       quark_queue_watermark(&e->quark));
}

/*
 * The sampler first: what its samples need of the other two is then drained
 * after them and mostly there already, so less waits in the pump.
 */
static void engine_drain_bpf(struct engine *e, uint64_t now)
{
	sampler_poll(e->sampler);
	sideband_poll(e->sideband);
	engine_drain_lifecycle(e);
	walk_check(e, now);
	e->told = MIN(quark_queue_watermark(&e->quark),
		      sideband_watermark(e->sideband));
	pump_watermark(e->pump, PUMP_SAMPLE, sampler_watermark(e->sampler));
	pump_watermark(e->pump, PUMP_MAPPING, sideband_watermark(e->sideband));
}

void engine_drain(struct engine *e)
{
	uint64_t now = clock_boottime_ns(), oldest;

	if (e->perf)
		perfsource_engine_drain(e);
	else
		engine_drain_bpf(e, now);
	pump_watermark(e->pump, PUMP_WALK, walk_watermark(e, now));
	e->passed = pump_run(e->pump);
	walk_doubts(e, now);
	trace_handler_tick(e->th, clock_awake_ns());
	oldest = trace_handler_oldest(e->th);
	pm_forget(e->pm, MIN(e->passed, oldest));
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
static void engine_readable(uv_poll_t *poll, int status, int events)
{
	engine_drain(poll->data);
}

static void engine_warmed(void *arg, int err,
			  const struct symbolizer_symbol *syms, size_t n)
{
}

/*
 * Every host's first stacks ask for the kernel's names. A worker reads them
 * while BPF programs are verified, instead of after the first sample.
 */
static int engine_warm(struct engine *e)
{
	static const uint64_t any = 0;

	return symbolizer_resolve(e->symbolizer,
				  symbolizer_kernel(e->symbolizer), &any, 1,
				  engine_warmed, NULL);
}

/* The ledger's consumers get each process once, when it is over. */
static void engine_ended(void *arg, const struct pm_image *last)
{
	struct engine *e = arg;

	if (reporter_ended(e->reporter, last))
		e->nomem++;
}

static int engine_rows(void *arg, const uint8_t *id, size_t len,
		       struct symbolizer_rows *rows)
{
	return pm_rows_by_hand(arg, id, len, rows);
}

static int engine_open_parts(struct engine *e, const struct engine_opts *opts,
			     const char **what)
{
	struct symbolizer_opts sym = { .loop = opts->loop };
	struct pm_opts pm = { .open_files = opts->open_files,
			      .want_maps = walk_want_maps,
			      .ended = engine_ended,
			      .arg = e };
	struct trace_opts trace = { .loop = opts->loop,
				    .resolved = engine_resolved,
				    .selected_only = opts->selected_only,
				    .arg = e };
	int err;

	*what = "pump";
	err = vault_new(&e->vault);
	if (!err)
		err = pump_new(&e->pump, engine_deliver, engine_drop, e);
	if (err)
		return err;
	*what = "symbolizer";
	err = symbolizer_new(&e->symbolizer, &sym);
	if (!err)
		err = engine_warm(e);
	if (err)
		return err;
	*what = "process manager";
	pm.symbolizer = e->symbolizer;
	err = pm_new(&e->pm, &pm);
	if (err)
		return err;
	if (opts->unwind_rows)
		unwind_rows_load(opts->unwind_rows, engine_rows, e->pm);
	*what = "trace handler";
	trace.pm = e->pm;
	return trace_handler_new(&e->th, &trace);
}

void engine_resolved(void *arg, const struct reporter_trace *t)
{
	struct engine *e = arg;

	pm_image_sampled(t->image);
	reporter_add(e->reporter, t);
}

static void engine_written(void *arg, const char *path, int err,
			   uint64_t nsamples)
{
	struct engine *e = arg;

	if (e->opts.written)
		e->opts.written(e->opts.arg, path, err, nsamples);
}

static int engine_open_reporter(struct engine *e,
				const struct engine_opts *opts, char *msg,
				size_t msglen)
{
	struct reporter_opts ro = {
		.loop = opts->loop,
		.pm = e->pm,
		.version = PROFD_VERSION,
		.freq_hz = opts->freq_hz,
		.archive = opts->archive,
		.window_s = opts->window_s,
		.collect = metrics_collect,
		.loss_names = losses_names(),
		.nlosses = LOSS_MAX,
		.note = e->note,
		.written = engine_written,
		.arg = e,
	};
	char host[256] = "localhost";
	const char *where = "reporter";
	size_t i;
	int err;

	gethostname(host, sizeof(host) - 1);
	ro.hostname = host;
	err = reporter_new(&e->reporter, &ro, &where);
	if (err == -EBUSY) {
		snprintf(msg, msglen, "archive %s: in use by another profd",
			 where);
		return err;
	}
	if (err) {
		snprintf(msg, msglen, "%s%s: %s",
			 opts->archive ? "archive " : "", where,
			 strerror(-err));
		return err;
	}
	for (i = 0; i < opts->nlisten; i++) {
		err = reporter_listen(e->reporter, opts->listen[i]);
		if (!err)
			continue;
		snprintf(msg, msglen, "cannot listen on %s: %s",
			 opts->listen[i],
			 err == -EPERM	  ? "beyond loopback needs TLS and a "
					    "token, which are not built yet"
			 : err == -EINVAL ? "not unix:PATH or HOST:PORT"
					  : strerror(-err));
		return err;
	}
	return 0;
}

static size_t floor_pow2(size_t n)
{
	while (n & (n - 1))
		n &= n - 1;
	return n;
}

static void engine_attr(struct quark_queue_attr *attr, size_t ring_size)
{
	quark_queue_default_attr(attr);
	attr->flags = QQ_EBPF | QQ_NO_AGG | QQ_ENTRY_LEADER;
	attr->hold_time = 0;
	attr->max_env = 0;
	attr->max_length = 1 << 20;
	attr->ring_bytes = ring_size / 4;
	attr->no_wakeup = 1;
}

/* What a thread of its own does at the start. */
struct engine_loading {
	struct engine *e;
	const struct engine_opts *opts;
	uv_thread_t thread;
	const char *what;
	int err;
};

static void engine_load_sampler(void *arg)
{
	struct engine_loading *l = arg;
	struct sampler_opts samp = {
		.freq_hz = l->opts->freq_hz,
		.stack_copy = l->opts->stack_copy,
		.ring_bytes = floor_pow2(l->opts->ring_size / 2),
		.sample = engine_on_sample,
		.arg = l->e,
	};

	l->err = sampler_new(&l->e->sampler, &samp, &l->what);
}

static int engine_open_quark(struct engine *e, const struct engine_opts *opts,
			     const char **what)
{
	struct sideband_opts side = { .rings_bytes = opts->ring_size / 4,
				      .map = engine_on_map,
				      .arg = e };
	struct quark_queue_attr attr;
	int err;

	err = sideband_new(&e->sideband, &side, what);
	if (err)
		return err;
	engine_attr(&attr, opts->ring_size);
	e->walk_begin = clock_boottime_ns();
	if (quark_queue_open(&e->quark, &attr)) {
		err = -errno;
		*what = quark_queue_open_error();
		return err;
	}
	e->quark_open = true;
	/* The snapshot has been taken: what ended before is not in it. */
	pm_begin(e->pm, clock_boottime_ns());
	return 0;
}

/*
 * Everything is attached before the walk begins, so that what changes during
 * it comes by a stream; sampling begins after it, so that the first sample
 * finds its process.
 *
 * The two BPF objects have nothing to do with each other, and to load one is some
 * fifty milliseconds of work (the kernel's BTF, relocations, the verifier): so
 * they are loaded side by side. libbpf's printing is one for all threads.
 */
static int engine_open_bpf(struct engine *e, const struct engine_opts *opts,
			   const char **what)
{
	struct engine_loading l = { .e = e, .opts = opts };
	libbpf_print_fn_t print = libbpf_set_print(NULL);
	int err, ret;

	err = uv_thread_create(&l.thread, engine_load_sampler, &l);
	*what = "thread";
	if (err)
		goto out;
	ret = engine_open_quark(e, opts, what);
	uv_thread_join(&l.thread);
	err = l.err ? l.err : ret;
	if (l.err)
		*what = l.what;
out:
	libbpf_set_print(print);
	return err;
}

static void engine_close_bpf(struct engine *e)
{
	sampler_free(e->sampler);
	sideband_free(e->sideband);
	if (e->quark_open)
		quark_queue_close(&e->quark);
	e->sampler = NULL;
	e->sideband = NULL;
	e->quark_open = false;
}

static int engine_open_perf(struct engine *e, const char *why,
			    const char **what)
{
	int err;

	/* It stays when the source is closed: the pump is emptied after that. */
	e->perf_lives = true;
	err = perfsource_engine_open(e, what);
	if (err)
		perfsource_engine_close(e);
	else if (why)
		snprintf(e->why, sizeof(e->why), "%s", why);
	return err;
}

/*
 * BPF if it may be had. That both failed is told by the error of the one that
 * was wanted first.
 */
static int engine_open_streams(struct engine *e, const struct engine_opts *opts,
			       const char **what)
{
	const char *perf_what;
	char why[256];
	int err;

	if (opts->source == SOURCE_PERF || opts->why_perf)
		return engine_open_perf(e, opts->why_perf, what);
	err = engine_open_bpf(e, opts, what);
	/* For want of something else than BPF, perf would not do either. */
	if (!err || err == -ENOMEM || err == -EMFILE || err == -ENFILE ||
	    opts->source == SOURCE_BPF)
		return err;
	engine_close_bpf(e);
	snprintf(why, sizeof(why), "%s: %s", *what, strerror(-err));
	return engine_open_perf(e, why, &perf_what) ? err : 0;
}

static int engine_check_files(const struct engine_opts *opts, char *msg,
			      size_t msglen)
{
	unsigned int least = openfiles_least();

	if (!least || opts->source == SOURCE_PERF || opts->why_perf)
		return 0;
	snprintf(msg, msglen,
		 "Too many open files: the limit must be %u, at least, on this "
		 "host (RLIMIT_NOFILE, LimitNOFILE= of the unit)",
		 least);
	return -EMFILE;
}

/* Once everything else is open. */
static void engine_limit_files(struct engine *e)
{
	unsigned int wanted = e->opts.open_files;

	e->open_files = openfiles_budget(wanted);
	pm_set_open_files(e->pm, e->open_files);
	if (e->open_files < wanted)
		log_warn("--open-files %u: the limit of open files leaves "
			 "room for %u (RLIMIT_NOFILE, LimitNOFILE= of the "
			 "unit)",
			 wanted, e->open_files);
}

static int engine_poll_fd(struct engine *e, uv_poll_t *poll, int fd)
{
	int err = uv_poll_init(e->loop, poll, fd);

	if (err)
		return err;
	poll->data = e;
	e->handles++;
	return uv_poll_start(poll, UV_READABLE, engine_readable);
}

static void engine_started(struct engine *e)
{
	e->begin = e->second = clock_boottime_ns();
	reporter_start(e->reporter, e->begin);
}

/* Perf events sample from the moment they are there; BPF begins by itself. */
static int engine_sample(struct engine *e, const char **what)
{
	int err;

	if (e->perf) {
		*what = "memory for the walk over processes";
		err = perfsource_engine_walk(e);
		engine_started(e);
		return err;
	}
	*what = "sampling";
	engine_started(e);
	err = sampler_enable(e->sampler);
	if (err)
		return err;
	*what = "memory for the walk over processes";
	return walk_all(e);
}

static int engine_begin(struct engine *e, const char **what)
{
	int err = engine_sample(e, what);

	if (err)
		return err;
	/* The walk's transient memory, largest of all, goes back. */
	malloc_trim(0);
	*what = "event loop";
	err = uv_timer_init(e->loop, &e->timer);
	if (err)
		return err;
	e->timer.data = e;
	e->handles++;
	e->timer_open = true;
	err = engine_poll_fd(e, &e->sampler_poll,
			     e->perf ? perfsource_engine_epoll_fd(e)
				     : sampler_epoll_fd(e->sampler));
	if (!err && e->quark_open)
		err = engine_poll_fd(e, &e->quark_poll,
				     quark_queue_get_epollfd(&e->quark));
	if (err)
		return err;
	return uv_timer_start(&e->timer, engine_tick, ENGINE_TICK_FAST_MS,
			      ENGINE_TICK_FAST_MS);
}

/*
 * glibc gives each worker thread an arena of its own and keeps what was freed:
 * after kallsyms was read and a window compressed that is 12 of 17 MB. Workers
 * allocate rarely, so one arena will do, and what is large goes back.
 */
static void engine_memory(void)
{
	mallopt(M_ARENA_MAX, 1);
	mallopt(M_MMAP_THRESHOLD, ENGINE_MALLOC_LARGE);
	mallopt(M_TRIM_THRESHOLD, 4 * ENGINE_MALLOC_LARGE);
}

int engine_new(struct engine **ep, const struct engine_opts *opts, char *msg,
	       size_t msglen)
{
	struct engine *e = calloc(1, sizeof(*e));
	const char *what = "memory";
	int err = -ENOMEM;

	if (!e)
		goto explain;
	engine_memory();
	openfiles_raise(opts->open_files);
	e->loop = opts->loop;
	e->opts = *opts;
	err = engine_check_files(opts, msg, msglen);
	if (err)
		goto fail;
	err = engine_open_parts(e, opts, &what);
	if (err)
		goto explain;
	/* Last before the kernel side, since it says by itself what failed. */
	err = engine_open_reporter(e, opts, msg, msglen);
	if (err)
		goto fail;
	err = engine_open_streams(e, opts, &what);
	if (err)
		goto explain;
	engine_limit_files(e);
	err = engine_begin(e, &what);
	if (err)
		goto explain;
	e->opts.pids = NULL; /* borrowed until now */
	e->opts.npids = 0;
	*ep = e;
	return 0;
explain:
	if ((err == -EPERM || err == -EACCES) &&
	    (opts->source == SOURCE_PERF || opts->why_perf))
		privilege_explain_perf(what, msg, msglen);
	else if (err == -EPERM || err == -EACCES)
		privilege_explain(what, msg, msglen);
	else
		snprintf(msg, msglen, "%s: %s", what, strerror(-err));
fail:
	engine_free(e);
	return err;
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

static void engine_closed(uv_handle_t *handle)
{
	struct engine *e = handle->data;

	e->handles--;
}

static void engine_close_handles(struct engine *e)
{
	if (!e->timer_open)
		return;
	uv_close((uv_handle_t *)&e->timer, engine_closed);
	if (e->sampler_poll.data)
		uv_close((uv_handle_t *)&e->sampler_poll, engine_closed);
	if (e->quark_poll.data)
		uv_close((uv_handle_t *)&e->quark_poll, engine_closed);
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
