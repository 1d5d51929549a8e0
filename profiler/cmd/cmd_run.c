// SPDX-License-Identifier: Apache-2.0
/*
 * cmd_run: profd run. Profiles the host until SIGTERM or SIGINT, which write
 * the open window first. timeout(1) and some supervisors signal the process and
 * its group, so a second signal that comes at once is the same one; a later one,
 * or a third, ends without writing. SIGHUP closes the window now and begins the
 * next.
 */
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <uv.h>

#include "profiler/cmd/cmd.h"
#include "profiler/engine.h"

/* From the last window's end to that of profd, at most. */
#define RUN_LAST_S 1

static int exit_status; /* for a signal handler */

struct run {
	uv_loop_t loop;
	struct engine *engine;
	uv_signal_t term, intr, hup;
	struct cmd_end end;
	int status;
};

/* sd_notify(3)'s protocol: one datagram. Not under systemd: nothing. */
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
	/* The last window: nobody will see a later one succeed. */
	if (r->end.since)
		r->status = OPTIONS_FAILED;
}

static void run_close_handle(uv_signal_t *h)
{
	/* One that was never begun has no loop. */
	if (h->data)
		uv_close((uv_handle_t *)h, NULL);
}

static void run_close_handles(struct run *r)
{
	run_close_handle(&r->term);
	run_close_handle(&r->intr);
	run_close_handle(&r->hup);
}

/* All is written. A thread that hangs in a system call is not waited for. */
static void on_late(int signum)
{
	_exit(exit_status);
}

static void end_late(int status)
{
	exit_status = status;
	signal(SIGALRM, on_late);
	alarm(RUN_LAST_S);
}

static void run_on_finished(void *arg)
{
	struct run *r = arg;

	run_close_handles(r);
	uv_stop(&r->loop);
	end_late(r->status);
}

static void run_on_end_signal(uv_signal_t *h, int signum)
{
	struct run *r = h->data;
	enum cmd_ending end = cmd_end_asked(&r->end);

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

/* Only what a signal handler may call. */
static void on_early(int signum)
{
	_exit(CMD_SIGNALLED + signum);
}

/*
 * Until the loop turns, SIGTERM and SIGINT do what they do by themselves: a handler
 * would not end a read of /proc that waits for a lock of the process that is looked
 * at. The first process of a pid namespace is not ended by them without one.
 */
static void end_early(void)
{
	if (getpid() != 1)
		return;
	signal(SIGTERM, on_early);
	signal(SIGINT, on_early);
}

static int run_watch_signal(struct run *r, uv_signal_t *h, uv_signal_cb fn,
			    int sig)
{
	int err = uv_signal_init(&r->loop, h);

	if (err)
		return err;
	h->data = r;
	return uv_signal_start(h, fn, sig);
}

static int run_catch_signals(struct run *r)
{
	int err = run_watch_signal(r, &r->term, run_on_end_signal, SIGTERM);

	if (!err)
		err = run_watch_signal(r, &r->intr, run_on_end_signal, SIGINT);
	return err ? cmd_fail("signals: %s", uv_strerror(err)) : 0;
}

/* Those that do not end it. */
static int catch_others(struct run *r)
{
	int err = run_watch_signal(r, &r->hup, on_hup, SIGHUP);

	/* A client that goes away is an error of write(2), not our end. */
	signal(SIGPIPE, SIG_IGN);
	return err ? cmd_fail("signals: %s", uv_strerror(err)) : 0;
}

/* What is not as usual, once. */
static void run_report_source(const struct engine *e)
{
	const char *why, *note = engine_note(e, &why);

	if (*why)
		log_warn("not BPF: %s", why);
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
		.window_s = o->window,
		.archive = o->archive,
		.archive_format = o->archive_format,
		.listen = o->listen.items,
		.nlisten = o->listen.n,
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

int cmd_run(const struct options *o)
{
	struct run r = { 0 };
	char *why_perf;
	int err;

	log_set_level(o->log_level);
	r.status = cmd_check_host(o, true, false, &why_perf);
	if (r.status)
		return r.status;
	err = uv_loop_init(&r.loop);
	if (err) {
		free(why_perf);
		return cmd_fail("event loop: %s", uv_strerror(err));
	}
	end_early();
	r.status = catch_others(&r);
	if (!r.status)
		r.status = run_start_engine(&r, o, why_perf);
	if (!r.status)
		r.status = run_catch_signals(&r);
	if (r.status)
		run_close_handles(&r);
	else
		uv_run(&r.loop, UV_RUN_DEFAULT);
	engine_free(r.engine);
	/* What was closed is let go of by one more turn. */
	uv_run(&r.loop, UV_RUN_DEFAULT);
	uv_loop_close(&r.loop);
	free(why_perf);
	return r.status;
}
