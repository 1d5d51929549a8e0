// SPDX-License-Identifier: Apache-2.0
/*
 * engine_open: how an engine comes to be. From left to right the parts, then the
 * streams, BPF or else perf, then sampling and the walk; what each lacks is said in
 * a line that a person can act on. engine.c has what runs from then on.
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
#include "profiler/source/perfsource_engine.h"
#include "profiler/privilege.h"
#include "profiler/unwind_rows.h"

#define ENGINE_MALLOC_LARGE (128 << 10)
/* As long as the loop sleeps between two looks. */
#define ENGINE_GONE_MS 100
/* Renames and moves a second and task: enough for all that mean them. */
#define ENGINE_REPEATS 10

static void engine_warmed(void *arg, int err,
			  const struct symbolizer_symbol *syms, size_t n)
{
}

/*
 * Every host's first stacks ask for the kernel's names. A worker reads them beside
 * the first samples; not earlier: where all CPUs are busy the BPF programs would be
 * loaded later by as much, and with them every first stack.
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

/* What the map has no room for is opened once more. */
static void engine_known_file(void *arg, const struct quark_file_ident *ident,
			      bool known)
{
	struct engine *e = arg;

	if (!e->quark_open)
		return;
	if (known)
		quark_queue_know_file(&e->quark, ident);
	else
		quark_queue_forget_file(&e->quark, ident);
}

static void engine_new_file(void *arg, const struct quark_new_file *file)
{
	struct engine *e = arg;

	pm_new_file(e->pm, file);
}

static int engine_rows(void *arg, const uint8_t *id, size_t len,
		       struct symbolizer_rows *rows)
{
	return pm_rows_by_hand(arg, id, len, rows);
}

static int engine_open_parts(struct engine *e, const struct engine_opts *opts,
			     const char **what)
{
	struct symbolizer_opts sym = { .loop = opts->loop,
				       .undemangled = engine_undemangled,
				       .arg = e };
	struct pm_opts pm = { .open_files = opts->open_files,
			      .want_maps = walk_want_maps,
			      .ended = engine_ended,
			      .limited = engine_pm_limited,
			      .never_select = getpid(),
			      .known_file = engine_known_file,
			      .arg = e };
	struct trace_opts trace = { .loop = opts->loop,
				    .resolved = engine_resolved,
				    .selected_only = opts->selected_only,
				    .arg = e };
	int err;

	*what = "pump";
	err = engine_pump_new(e);
	if (err)
		return err;
	*what = "symbolizer";
	err = symbolizer_new(&e->symbolizer, &sym);
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

static void engine_written(void *arg, const char *path, int err,
			   uint64_t nsamples)
{
	struct engine *e = arg;

	if (e->opts.written)
		e->opts.written(e->opts.arg, path, err, nsamples);
}

static const struct reporter_event_type engine_events[] = {
#define X(NAME, name, periodic, count, count_unit, value, value_unit, label) \
	{ #name,                                                             \
	  label,                                                             \
	  periodic,                                                          \
	  { count, count_unit },                                             \
	  { value, value_unit } },
	ABI_EVENTS(X)
#undef X
};

static int engine_open_reporter(struct engine *e,
				const struct engine_opts *opts, char *msg,
				size_t msglen)
{
	struct reporter_opts ro = {
		.loop = opts->loop,
		.pm = e->pm,
		.version = PROFD_VERSION,
		.freq_hz = opts->freq_hz,
		.event_types = engine_events,
		.nevent_types = ARRAY_SIZE(engine_events),
		.archive = opts->archive,
		.window_s = opts->window_s,
		.collect = metrics_collect,
		.health = engine_health,
		.limited = engine_limited,
		.loss_names = losses_names(),
		.nlosses = LOSS_MAX,
		.note = e->note,
		.archive_format = opts->archive_format,
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
		snprintf(msg, msglen,
			 "archive %s: in use by another profd "
			 "(--archive DIR takes another one)",
			 where);
		return err;
	}
	if (err == -EPERM && where == opts->archive) {
		snprintf(msg, msglen,
			 "archive %s: must belong to the user that profd runs "
			 "as, and nobody else may write to it",
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
			 : err == -EADDRINUSE
				 ? "Address already in use, by another profd? "
				   "(--listen ADDRESS takes another one)"
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

static void engine_attr(struct engine *e, struct quark_queue_attr *attr,
			size_t ring_size)
{
	quark_queue_default_attr(attr);
	attr->flags = QQ_EBPF | QQ_NO_AGG | QQ_ENTRY_LEADER;
	attr->hold_time = 0;
	/* Nobody asks for who is gone, and memory that is used again is warm. */
	attr->reap_grace_time = attr->cache_grace_time;
	attr->cache_grace_time = ENGINE_GONE_MS;
	attr->max_env = 0;
	attr->max_length = 1 << 20;
	attr->ring_bytes = ring_size / 4;
	attr->no_wakeup = 1;
	attr->repeat_limit = ENGINE_REPEATS;
	attr->new_file = engine_new_file;
	attr->new_file_arg = e;
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

static int engine_mark(void *arg, unsigned int cpu, int fd)
{
	struct engine *e = arg;

	return quark_queue_mark_execs(&e->quark, cpu, fd) ? -errno : 0;
}

static int engine_open_quark(struct engine *e, const struct engine_opts *opts,
			     const char **what)
{
	struct sideband_opts side = { .rings_bytes = opts->ring_size / 4,
				      .rings_max = opts->ring_size,
				      .map = engine_on_map,
				      .mark = engine_mark,
				      .arg = e };
	struct quark_queue_attr attr;
	int err;

	err = sideband_new(&e->sideband, &side, what);
	if (err)
		return err;
	engine_attr(e, &attr, opts->ring_size);
	e->walk_begin = clock_boottime_ns();
	if (quark_queue_open(&e->quark, &attr)) {
		err = -errno;
		*what = quark_queue_open_error();
		return err;
	}
	e->quark_open = true;
	/* What exec'ed before it is read by the walk, behind this. */
	*what = "marks of execs in the mapping stream";
	err = sideband_mark(e->sideband);
	if (err)
		return err;
	/* The snapshot has been taken: what ended before is not in it. */
	pm_begin(e->pm, clock_boottime_ns());
	return 0;
}

/*
 * Everything is attached before the walk begins, so that what changes during
 * it comes by a stream.
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

void engine_close_bpf(struct engine *e)
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

	if (!err)
		err = engine_warm(e);
	if (err)
		return err;
	/* The walk's transient memory, largest of all, goes back. */
	malloc_trim(0);
	*what = "event loop";
	return engine_loop(e);
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
