// SPDX-License-Identifier: Apache-2.0
/*
 * engine_open: opens an engine: the parts from left to right, then a source,
 * then sampling and the scan of what runs. Each failure becomes one line that
 * the user can act on. engine.c has what runs from then on.
 */
#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "profiler/engine.h"
#include "profiler/engine_internal.h"
#include "profiler/openfiles.h"
#include "profiler/unwind_rows.h"

/* Less is set with a low ceiling only: it is the limit of symbolize/symbolizer.c. */
#define ENGINE_WORKER_MEMORY (256ULL << 20)
#define ENGINE_WORKER_LEAST (128ULL << 20)
#define ENGINE_MALLOC_LARGE (128 << 10)

/* Of a sample, for its tables and names. */
#define ENGINE_WAIT_MS 3000
/*
 * What an APM agent is told: from a sample to its message pass the time until a drain, the
 * wait, and some for busy CPUs and a full socket.
 */
#define ENGINE_APM_DELAY_MS (DRAIN_OFTEN_MS + ENGINE_WAIT_MS + 1400)

static void engine_warmed(void *arg, int err,
			  const struct symbolizer_symbol *syms, size_t n)
{
}

/*
 * The first stacks of every host need the kernel's names. A worker reads them
 * beside the first samples; earlier, on busy CPUs, that would delay the loading
 * of the BPF programs and with it all first stacks.
 */
static int engine_warm(struct symbolizer *sym)
{
	static const uint64_t any = 0;

	return symbolizer_resolve(sym, symbolizer_kernel(sym), &any, 1,
				  engine_warmed, NULL);
}

static void engine_ended(void *arg, const struct pm_image *last)
{
	struct engine *e = arg;

	if (reporter_ended(e->reporter, last))
		e->in.nomem++;
	if (e->th)
		trace_handler_late_names(e->th, last);
}

static void engine_named(void *arg, const struct reporter_frame *frame)
{
	reporter_rename(((struct engine *)arg)->reporter, frame);
}

static void engine_want_code(void *arg, uint32_t tgid)
{
	const struct source_run *source = &((struct engine *)arg)->source;

	if (source->state && source->row->want_code)
		source->row->want_code(source->state, tgid);
}

static void engine_want_go(void *arg, uint32_t tgid,
			   const struct symbolizer_go *go)
{
	const struct source_run *source = &((struct engine *)arg)->source;

	if (source->state && source->row->want_go)
		source->row->want_go(source->state, tgid, go);
}

static void engine_known_file(void *arg, const struct quark_file_ident *ident,
			      bool known)
{
	const struct source_run *source = &((struct engine *)arg)->source;

	if (source->state && source->row->known_file)
		source->row->known_file(source->state, ident, known);
}

static void engine_apm_gone(void *arg, const struct abi_key *key)
{
	struct engine *e = arg;

	services_agent_gone(&e->services, key, clock_boottime_ns());
}

static void engine_go_file(void *arg, const struct quark_file_ident *ident,
			   const struct symbolizer_go *go)
{
	const struct source_run *source = &((struct engine *)arg)->source;

	if (source->state && source->row->go_file)
		source->row->go_file(source->state, ident, go);
}

/* From inside the pump; NULL while the first parts are opened. */
static void engine_want_maps(void *arg, const struct pm_want *want)
{
	struct engine *e = arg;

	if (e->rescan)
		rescan_want(e->rescan, want);
}

static int engine_rows(void *arg, const uint8_t *id, size_t len,
		       struct symbolizer_rows *rows)
{
	return pm_rows_by_hand(arg, id, len, rows);
}

static void engine_cache_failed(void *arg, int err)
{
	const struct engine *e = arg;

	log_warn("cache %s: %s; profd works without it", e->opts.cache,
		 err == -EPERM	 ? "it must belong to the user that profd runs "
				   "as, and nobody else may write to it"
		 : err == -ELOOP ? "it is a symbolic link"
				 : strerror(-err));
}

static void engine_debuginfod_arrived(void *arg, const uint8_t *build_id,
				      size_t len)
{
	struct engine *e = arg;

	if (e->th)
		trace_handler_renew(e->th, build_id, len);
}

static void engine_debuginfod_failed(void *arg, int err)
{
	const struct engine *e = arg;

	log_warn("debuginfod, with files in %s: %s", e->opts.debuginfod_dir,
		 symbolizer_fetch_problem(err));
}

/*
 * One worker alone cannot reach the ceiling; but with less than the second limit, large
 * files could not be read. 0: the usual limit.
 */
static size_t engine_worker_memory(const struct engine_opts *opts)
{
	uint64_t share = MAX(opts->memory_max / 2, ENGINE_WORKER_LEAST);

	return opts->memory_max && share < ENGINE_WORKER_MEMORY ? share : 0;
}

static uint64_t engine_root_dev(void)
{
	struct stat st;

	return stat("/", &st) ? 0 : st.st_dev;
}

static int engine_open_parts(struct engine *e, const struct engine_opts *opts,
			     const char **what)
{
	bool cache = opts->cache && strcmp(opts->cache, "none") != 0;
	struct symbolizer_opts sym = {
		.loop = opts->loop,
		.index_bytes = opts->symbol_memory,
		.worker_memory = engine_worker_memory(opts),
		.undemangled = engine_undemangled,
		.quarantined = engine_quarantined,
		.names_wait = engine_names_wait,
		.cache = cache ? opts->cache : NULL,
		.cache_bytes = opts->cache_size,
		.cache_failed = engine_cache_failed,
		.debuginfod = opts->debuginfod,
		.debuginfod_dir = opts->debuginfod_dir,
		.debuginfod_bytes = opts->debuginfod_size,
		.debuginfod_arrived = engine_debuginfod_arrived,
		.debuginfod_failed = engine_debuginfod_failed,
		.arg = e
	};
	struct pm_opts pm = { .open_files = opts->open_files,
			      .apm_gone = engine_apm_gone,
			      .apm_delay_ms = ENGINE_APM_DELAY_MS,
			      .root_dev = engine_root_dev(),
			      .late_maps = opts->all_names,
			      .want_maps = engine_want_maps,
			      .ended = engine_ended,
			      .limited = engine_pm_limited,
			      .never_select = getpid(),
			      .known_file = engine_known_file,
			      .go_file = engine_go_file,
			      .arg = e };
	struct trace_opts trace = { .loop = opts->loop,
				    .wait_ms = ENGINE_WAIT_MS,
				    .resolved = engine_resolved,
				    .want_code = engine_want_code,
				    .want_go = engine_want_go,
				    .selected_only = opts->selected_only,
				    .all_names = opts->all_names,
				    .named = opts->all_names ? engine_named
							     : NULL,
				    .arg = e };
	struct rescan_opts rescan = { .loop = opts->loop,
				      .limits = &e->limits,
				      .drain = engine_drain,
				      .arg = e };
	int err;

	*what = "pump";
	err = engine_intake_open(e);
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
	err = trace_handler_new(&e->th, &trace);
	if (err)
		return err;
	*what = "memory";
	rescan.pump = e->in.pump;
	rescan.pm = e->pm;
	err = rescan_new(&e->rescan, &rescan);
	e->in.rescan = e->rescan;
	return err;
}

static void engine_written(void *arg, const char *path, int err,
			   uint64_t nsamples)
{
	const struct engine_opts *opts = &((struct engine *)arg)->opts;

	if (opts->written)
		opts->written(opts->arg, path, err, nsamples);
}

static const struct reporter_event_type engine_events[] = {
#define X(NAME, name, periodic, apart, count, count_unit, value, value_unit,    \
	  label)                                                                \
	{ #name, label, periodic, { count, count_unit }, { value, value_unit }, \
	  apart },
	ABI_EVENTS(X)
#undef X
};

static void engine_archive_busy(const char *archive, char *text, size_t len)
{
	int pid = (int)reporter_archive_holder(archive);
	char who[32] = "another profd";

	if (pid > 0)
		snprintf(who, sizeof(who), "profd, process %d", pid);
	snprintf(text, len, "in use by %s (--archive DIR takes another one)",
		 who);
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
		.event_types = engine_events,
		.nevent_types = ARRAY_SIZE(engine_events),
		.archive = opts->archive,
		.window_s = opts->window_s,
		.collect = metrics_collect,
		.health = engine_health,
		.limited = engine_limited,
		.refresh = engine_refresh,
		.timeline = engine_timeline,
		.path = engine_path,
		.edges = engine_edges,
		.loss_names = losses_names(),
		.nlosses = LOSS_MAX,
		.note = e->note,
		.waits = opts->wait,
		.wait_min = opts->wait_min,
		.archive_format = opts->archive_format,
		.archive_args = opts->archive_args,
		.keep = opts->keep,
		.written = engine_written,
		.arg = e,
	};
	const char *where = "reporter";
	char busy[80] = "";
	char host[256] = "localhost";
	const char *why;
	size_t i;
	int err;

	gethostname(host, sizeof(host) - 1);
	ro.hostname = host;
	if (opts->watch &&
	    watching_init(&e->watching, opts->loop, engine_follow, e)) {
		snprintf(msg, msglen, "%s", strerror(ENOMEM));
		return -ENOMEM;
	}
	ro.watch = e->watching.watch;
	err = reporter_new(&e->reporter, &ro, &where);
	if (err == -EBUSY)
		engine_archive_busy(opts->archive, busy, sizeof(busy));
	if (err)
		snprintf(msg, msglen, "%s%s: %s",
			 opts->archive ? "archive " : "", where,
			 where != opts->archive ? strerror(-err)
			 : err == -EBUSY	? busy
			 : err == -EPERM ? "must belong to the user that profd "
					   "runs as, and nobody else may write "
					   "to it"
					 : strerror(-err));
	if (!err) {
		err = reporter_access(e->reporter, &opts->access, &where, &why);
		if (err)
			snprintf(msg, msglen, "%s: %s", where,
				 why ? why : strerror(-err));
	}
	for (i = 0; !err && i < opts->nlisten; i++) {
		err = reporter_listen(e->reporter, opts->listen[i]);
		if (!err)
			continue;
		snprintf(msg, msglen, "cannot listen on %s: %s",
			 opts->listen[i],
			 err == -EPERM ? "beyond loopback needs --tls-cert, "
					 "--tls-key and --token-file"
			 : err == -EBADMSG ? "the certificate or its key "
					     "cannot be used (--tls-cert, "
					     "--tls-key)"
			 : err == -EINVAL  ? "not unix:PATH or HOST:PORT, HOST "
					     "an address or localhost"
			 : err == -EADDRINUSE
				 ? "Address already in use, by another profd? "
				   "(--listen ADDRESS takes another one)"
				 : strerror(-err));
	}
	return err;
}

static uint64_t engine_started(void *arg)
{
	uint64_t now = clock_boottime_ns();
	struct engine *e = arg;

	e->begin = e->second = now;
	reporter_start(e->reporter, now);
	waiting_set_edges(e->waiting);
	return now;
}

void engine_close_source(struct source_run *source)
{
	if (source->state)
		source->row->close(source->state);
	source->state = NULL;
}

static int engine_open_source(struct engine *e, const struct source_row *row,
			      const struct source_opts *so, const char **what)
{
	struct source_run *source = &e->source;
	int err;

	source->row = row;
	err = row->open(&source->state, so, what);
	if (err)
		engine_close_source(source);
	else if (row->note)
		row->note(source->state, e->note, sizeof(e->note));
	return err;
}

/*
 * Opens the first of the rows that can be opened. engine_note() has the reason
 * why the preferred one could not. If none can, the error is that one's.
 */
static int engine_open_sources(struct engine *e,
			       const struct source_row *const *rows,
			       const char **what)
{
	const struct engine_opts *opts = &e->opts;
	struct source_opts so = { .freq_hz = opts->freq_hz,
				  .stack_copy = opts->stack_copy,
				  .ring_size = opts->ring_size,
				  .pids = opts->pids,
				  .npids = opts->npids,
				  .until_exec = opts->until_exec,
				  .in = &e->in,
				  .rescan = e->rescan,
				  .pm = e->pm,
				  .event = engine_event,
				  .drain = engine_drain,
				  .started = engine_started,
				  .arg = e };
	const char *other;
	int err = engine_open_source(e, rows[0], &so, what);
	size_t i;

	if (err)
		snprintf(e->why, sizeof(e->why), "%s: %s", *what,
			 strerror(-err));
	else if (opts->why_perf)
		snprintf(e->why, sizeof(e->why), "%s", opts->why_perf);
	/* Without memory or descriptors no other can be opened either. */
	if (!err || err == -ENOMEM || err == -EMFILE || err == -ENFILE)
		return err;
	for (i = 1; rows[i]; i++)
		if (!engine_open_source(e, rows[i], &so, &other))
			return 0;
	return err;
}

static int engine_check_files(const struct source_row *row, char *msg,
			      size_t msglen)
{
	unsigned int least = row->files ? row->files() : 0;

	if (!least)
		return 0;
	snprintf(msg, msglen,
		 "Too many open files: the limit must be %u, at least, on this "
		 "host (RLIMIT_NOFILE, LimitNOFILE= of the unit)",
		 least);
	return -EMFILE;
}

/* After everything else was opened. */
static void engine_limit_files(struct engine *e)
{
	unsigned int wanted = e->opts.open_files;
	unsigned int budget = openfiles_budget(wanted);

	e->open_files = budget;
	pm_set_open_files(e->pm, budget);
	if (budget < wanted)
		log_warn("--open-files %u: the limit of open files leaves "
			 "room for %u (RLIMIT_NOFILE, LimitNOFILE= of the "
			 "unit)",
			 wanted, budget);
}

/* Of perf events no such thing can be had. */
static int engine_open_waiting(struct engine *e, const char **what)
{
	const struct waiting_opts opts = {
		.pm = e->pm,
		.reporter = e->reporter,
		.th = e->th,
		.watch = e->watching.watch,
		.selected_only = e->opts.selected_only,
		.copy_all = e->opts.wait_copy_all,
		.min = e->opts.archive ? e->opts.wait_min : 0,
		.stack = intake_site,
		.arg = &e->in,
	};

	if (!e->opts.wait)
		return 0;
	*what = "--wait needs BPF, which cannot be used here";
	if (e->source.row != &source_bpf)
		return -ENOTSUP;
	return waiting_new(&e->waiting, &opts, what);
}

static int engine_trace_slot(void *arg, uint32_t tgid,
			     const struct abi_trace_slot *slot)
{
	const struct engine *e = arg;

	return e->source.row->trace_slot(e->source.state, tgid, slot);
}

static int engine_open_tracing(struct engine *e, const char **what)
{
	const struct tracing_opts opts = {
		.pm = e->pm,
		.set = engine_trace_slot,
		.arg = e,
	};

	if (!e->opts.traces)
		return 0;
	*what = "--traces needs BPF, which cannot be used here";
	if (!e->source.row->trace_slot)
		return e->opts.traces_needed ? -ENOTSUP : 0;
	*what = "memory";
	return tracing_init(&e->tracing, &opts);
}

static void engine_has_service(void *arg, struct pm_image *img)
{
	const struct engine *e = arg;

	reporter_describe(e->reporter, img);
}

static void engine_has_agent(void *arg, struct pm_image *img, uint32_t uid,
			     const char *socket)
{
	struct engine *e = arg;

	notify_agent(&e->notify, img, uid, socket);
}

static int engine_open_services(struct engine *e, const char **what)
{
	const struct services_opts opts = {
		.pm = e->pm,
		.symbolizer = e->symbolizer,
		.named = engine_has_service,
		.agent = engine_has_agent,
		.arg = e,
	};
	int err = 0;

	*what = "memory";
	if (e->opts.apm_notify && e->tracing.opts.pm)
		err = notify_init(&e->notify, e->opts.loop, e->pm);
	return err ? err : services_init(&e->services, &opts);
}

static int engine_begin(struct engine *e, const char **what)
{
	const struct source_run *source = &e->source;
	int err = source->row->begin(source->state, what);

	if (!err)
		err = engine_warm(e->symbolizer);
	if (err)
		return err;
	/* The scan's memory, which is a peak. */
	malloc_trim(0);
	*what = "event loop";
	return engine_loop(e);
}

/*
 * glibc has an arena for each worker thread and keeps freed memory in it: 12 of
 * 17 MB after kallsyms was read and a window compressed. Workers allocate
 * rarely, so one arena is enough, and large blocks are given back to the
 * kernel.
 */
static void engine_memory(void)
{
	mallopt(M_ARENA_MAX, 1);
	mallopt(M_MMAP_THRESHOLD, ENGINE_MALLOC_LARGE);
	mallopt(M_TRIM_THRESHOLD, 4 * ENGINE_MALLOC_LARGE);
}

int engine_new_from(struct engine **ep, const struct engine_opts *opts,
		    const struct source_row *const *rows, char *msg,
		    size_t msglen)
{
	struct engine *e = calloc(1, sizeof(*e));
	const char *what = "memory";
	int err = -ENOMEM;

	if (!e)
		goto explain;
	engine_memory();
	openfiles_raise(opts->open_files);
	e->opts = *opts;
	e->memory = (struct memory){ .option = opts->memory_max,
				     .rings = opts->ring_size };
	e->losses.selected_only = opts->selected_only;
	err = engine_check_files(rows[0], msg, msglen);
	if (err)
		goto fail;
	err = engine_open_parts(e, opts, &what);
	if (err)
		goto explain;
	/* Writes its own message. */
	err = engine_open_reporter(e, opts, msg, msglen);
	if (err)
		goto fail;
	err = engine_open_sources(e, rows, &what);
	if (err)
		goto explain;
	engine_limit_files(e);
	err = engine_open_waiting(e, &what);
	if (!err)
		err = engine_open_tracing(e, &what);
	if (!err)
		err = engine_open_services(e, &what);
	if (err)
		goto explain;
	err = engine_begin(e, &what);
	if (err)
		goto explain;
	e->opts.pids = NULL; /* borrowed until now */
	e->opts.npids = 0;
	*ep = e;
	return 0;
explain:
	if ((err == -EPERM || err == -EACCES) && rows[0]->explain)
		rows[0]->explain(what, msg, msglen);
	else
		snprintf(msg, msglen, "%s: %s", what, strerror(-err));
fail:
	engine_free(e);
	return err;
}

int engine_new(struct engine **ep, const struct engine_opts *opts, char *msg,
	       size_t msglen)
{
	/* In order of preference. */
	static const struct source_row *const rows[][3] = {
		[SOURCE_AUTO] = { &source_bpf, &source_perf },
		[SOURCE_BPF] = { &source_bpf },
		[SOURCE_PERF] = { &source_perf },
	};
	enum source source = opts->why_perf ? SOURCE_PERF : opts->source;

	return engine_new_from(ep, opts, rows[source], msg, msglen);
}
