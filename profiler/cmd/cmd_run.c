// SPDX-License-Identifier: Apache-2.0
/*
 * cmd_run: profd run. Profiles the host until SIGTERM or SIGINT, which write
 * the open window first; see struct cmd_end for a second signal, which ends profd
 * without writing. SIGHUP closes the window and begins the next.
 */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <uv.h>

#include "profiler/cmd/cmd.h"
#include "profiler/engine.h"

/* From the last window's end to the exit, at most. */
#define RUN_LAST_S 1

static int exit_status; /* for run_on_alarm() */

struct run {
	uv_loop_t loop;
	struct engine *engine;
	uv_signal_t term, intr, hup;
	struct cmd_end end;
	int status;
	char debuginfod_dir[PATH_MAX];
};

/* sd_notify(3)'s protocol: one datagram, if systemd started profd. */
static void run_notify(const char *state)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	size_t len = path ? strlen(path) : 0;
	int fd;

	if (!len || len >= sizeof(sun.sun_path))
		return;
	memcpy(sun.sun_path, path, len);
	if (*path == '@')
		sun.sun_path[0] = '\0'; /* the abstract namespace */
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	if (sendto(fd, state, strlen(state), MSG_NOSIGNAL,
		   (struct sockaddr *)&sun,
		   offsetof(struct sockaddr_un, sun_path) + len) < 0)
		log_warn("NOTIFY_SOCKET %s: %s", path, strerror(errno));
	close(fd);
}

static void run_on_written(void *arg, const char *path, int err,
			   uint64_t nsamples)
{
	struct run *r = arg;

	if (!err) {
		log_info("%s: %llu samples", path,
			 (unsigned long long)nsamples);
		return;
	}
	log_error("%s: %s", path, strerror(-err));
	/* The last window decides the exit status. */
	if (r->end.since)
		r->status = OPTIONS_FAILED;
}

static void run_close_handles(struct run *r)
{
	cmd_close_handle(&r->term);
	cmd_close_handle(&r->intr);
	cmd_close_handle(&r->hup);
}

static void run_on_alarm(int signum)
{
	_exit(exit_status);
}

static void run_on_finished(void *arg)
{
	struct run *r = arg;

	run_close_handles(r);
	uv_stop(&r->loop);
	/* A thread may hang in a system call: exit without it. */
	exit_status = r->status;
	signal(SIGALRM, run_on_alarm);
	alarm(RUN_LAST_S);
}

static void run_on_end_signal(uv_signal_t *h, int signum)
{
	struct run *r = h->data;
	enum cmd_ending end = cmd_end_request(&r->end, CMD_END_PATIENT_NS);

	if (end == CMD_END_SAME)
		return;
	if (end == CMD_END_AT_ONCE) {
		cmd_fail("ended at once by %s, the open window is lost",
			 strsignal(signum));
		_exit(CMD_SIGNALLED + signum);
	}
	log_info("%s: writing the open window", strsignal(signum));
	run_notify("STOPPING=1");
	engine_finish(r->engine, run_on_finished, r);
}

static void on_hup(uv_signal_t *h, int signum)
{
	struct run *r = h->data;

	if (r->engine && !r->end.since)
		reporter_rotate(engine_reporter(r->engine),
				clock_boottime_ns());
}

static void run_on_early_signal(int signum)
{
	_exit(CMD_SIGNALLED + signum);
}

/*
 * Until the loop runs, SIGTERM and SIGINT have their default actions: a handler
 * would not interrupt a read of /proc that waits for a lock of the process. The
 * first process of a pid namespace ignores signals without a handler.
 */
static void run_catch_early(void)
{
	if (getpid() != 1)
		return;
	signal(SIGTERM, run_on_early_signal);
	signal(SIGINT, run_on_early_signal);
}

static int run_catch_signals(struct run *r)
{
	int status = cmd_watch_signal(&r->loop, &r->term, SIGTERM,
				      run_on_end_signal, r);

	return status ? status
		      : cmd_watch_signal(&r->loop, &r->intr, SIGINT,
					 run_on_end_signal, r);
}

static void run_report_source(const struct engine *e)
{
	const char *why, *note = engine_note(e, &why);

	if (*why)
		log_warn("no BPF: %s", why);
	if (*note)
		log_info("%s", note);
}

static int run_start_engine(struct run *r, const struct options *o,
			    const char *why_perf)
{
	struct engine_opts eo = {
		.loop = &r->loop,
		.freq_hz = o->freq,
		.stack_copy = o->stack_copy,
		.ring_size = o->ring_size,
		.source = o->source,
		.why_perf = why_perf,
		.unwind_rows = o->unwind_rows,
		.open_files = o->open_files,
		.memory_max = o->memory_max,
		.symbol_memory = o->symbol_memory,
		.cache = o->cache,
		.cache_size = o->cache_size,
		.debuginfod = o->debuginfod.items,
		.debuginfod_dir = r->debuginfod_dir,
		.debuginfod_size = o->debuginfod_size,
		.window_s = o->window,
		.archive = o->archive,
		.archive_format = o->archive_format,
		.archive_args = o->archive_args,
		.watch = o->watch == OPTIONS_YES,
		.wait = o->wait,
		.wait_min = o->wait_min,
		.traces = true,
		.apm_notify = !o->no_apm_notify,
		.keep = { .bytes = o->keep_bytes,
			  .age_s = o->keep_age,
			  .free_bytes = o->keep_free.bytes,
			  .free_percent = o->keep_free.percent },
		.listen = o->listen.items,
		.nlisten = o->listen.n,
		.access = {
			.token_file = o->token_file,
			.cert_file = o->tls_cert,
			.key_file = o->tls_key,
			.host_names = o->host_name.items,
			.nhost_names = o->host_name.n,
		},
		.written = run_on_written,
		.arg = r,
	};
	char msg[512];
	size_t i;

	if (engine_new(&r->engine, &eo, msg, sizeof(msg)))
		return cmd_fail("%s", msg);
	run_report_source(r->engine);
	log_info("sampling at %u Hz, archive %s", eo.freq_hz, o->archive);
	for (i = 0; i < o->listen.n; i++)
		log_info("listening on %s", o->listen.items[i]);
	run_notify("READY=1");
	return 0;
}

/* What servers send is beside what is read from files. */
static int run_set_debuginfod(struct run *r, const struct options *o)
{
	if (!o->debuginfod.n)
		return 0;
	if (!strcmp(o->cache, "none"))
		return cmd_usage("run", "--debuginfod needs a directory for "
					"files, that of --cache");
	if (snprintf(r->debuginfod_dir, sizeof(r->debuginfod_dir),
		     "%s/debuginfod",
		     o->cache) >= (int)sizeof(r->debuginfod_dir))
		return cmd_fail("--cache: %s", strerror(ENAMETOOLONG));
	return 0;
}

int cmd_run(const struct options *o)
{
	struct run r = { 0 };
	char *why_perf;
	int err;

	log_set_level(o->log_level);
	r.status = run_set_debuginfod(&r, o);
	if (r.status)
		return r.status;
	r.status = cmd_check_host(o, true, false, &why_perf);
	if (r.status)
		return r.status;
	err = uv_loop_init(&r.loop);
	if (err) {
		free(why_perf);
		return cmd_fail("event loop: %s", uv_strerror(err));
	}
	run_catch_early();
	/* A client that disconnects is an error of write(2). */
	signal(SIGPIPE, SIG_IGN);
	r.status = cmd_watch_signal(&r.loop, &r.hup, SIGHUP, on_hup, &r);
	if (!r.status)
		r.status = run_start_engine(&r, o, why_perf);
	if (!r.status)
		r.status = run_catch_signals(&r);
	if (r.status)
		run_close_handles(&r);
	else
		uv_run(&r.loop, UV_RUN_DEFAULT);
	engine_free(r.engine);
	/* Frees closed handles. */
	uv_run(&r.loop, UV_RUN_DEFAULT);
	uv_loop_close(&r.loop);
	free(why_perf);
	return r.status;
}
