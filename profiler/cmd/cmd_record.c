// SPDX-License-Identifier: Apache-2.0
/*
 * cmd_record: profd record. One profile of a command and its descendants, of
 * some processes and their descendants, or of the host.
 *
 * The recording ends, and is written, when the command or the last of the
 * processes has ended, after --duration, or by SIGINT, SIGTERM or SIGHUP. If there
 * is a command, the signals are passed on to it. A command that runs longer than
 * --duration is waited for, because profd exits with its exit status.
 *
 * Then profd waits until all names have been looked up; the next signal ends that.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <uv.h>

#include "profiler/cmd/cmd.h"
#include "profiler/cmd/command.h"
#include "profiler/engine.h"
#include "profiler/cmd/summary.h"

#define RECORD_LISTED 8 /* running processes in a message */
#define RECORD_SIGNALS 4
#define RECORD_WAITING_MS 1000 /* then waiting for names is reported */

/* A process of --pid. */
struct target {
	uv_poll_t poll; /* readable when it has ended */
	int fd; /* pidfd */
	struct record *r;
};

struct record {
	const struct options *o;
	int format;
	uv_loop_t loop;
	struct engine *engine;
	char *why_perf; /* why BPF cannot be used; or NULL */
	struct reporter_window *window; /* NULL: ended */
	struct reporter_window *waits; /* with --wait, likewise */
	char *waits_path;
	int waits_err; /* of writing it */
	bool waits_written;
	struct command command;
	bool commanded; /* a command was given */
	uint32_t commanded_pid; /* its process, also after its end */
	struct target *targets;
	size_t ntargets, running; /* targets, and those that have not ended */
	uv_signal_t signals[RECORD_SIGNALS];
	uv_timer_t duration, progress;
	uint64_t begin; /* CLOCK_BOOTTIME, ns */
	struct summary from; /* the counts at the beginning */
	struct cmd_end end;
	bool drawn; /* a line of progress is on the terminal */
	bool waited; /* for names, for a second at least */
	bool hurried; /* a signal ended that wait */
	int err; /* of writing the profile */
	uint64_t samples;
	bool finished; /* the profile was written, or failed */
	int status; /* of the command */
};

/* --- the end --------------------------------------------------------------- */

static void record_on_written(void *arg, int err, uint64_t nsamples, void *data,
			      size_t len)
{
	struct record *r = arg;

	r->err = err;
	r->samples = nsamples;
}

static void record_on_waits_written(void *arg, int err, uint64_t nsamples,
				    void *data, size_t len)
{
	struct record *r = arg;

	r->waits_err = err;
	r->waits_written = true;
}

static void record_close_handles(struct record *r)
{
	size_t i;

	for (i = 0; i < RECORD_SIGNALS; i++)
		cmd_close_handle(&r->signals[i]);
	cmd_close_handle(&r->duration);
	cmd_close_handle(&r->progress);
	for (i = 0; i < r->ntargets; i++)
		cmd_close_handle(&r->targets[i].poll);
}

static void report_empty(const struct record *r)
{
	fprintf(stderr,
		"profd: no samples: %s used no CPU time, or less than the "
		"%u ms between two samples (-F takes more)\n",
		r->commanded ? "the command"
		: r->o->all  ? "the host"
			     : "the processes",
		(unsigned int)(1000 / r->o->freq));
}

/*
 * The kernel ends the perf events of a process that executes a program with other
 * privileges or one that its user may not read. No record says so: its CPU time has no
 * samples. False: that did not happen, or is too little to tell.
 */
static bool report_hidden(const struct record *r)
{
	uint64_t due = r->command.user_ns * r->o->freq / CLOCK_NSEC_PER_SEC;
	const char *why;

	if (!*engine_note(r->engine, &why) ||
	    due <= r->samples + r->samples / 4 + (r->samples ? 10 : 2))
		return false;
	fprintf(stderr,
		"profd: %s of the %" PRIu64
		" ms of CPU time of the command: perf "
		"events do not see a program that changes its user (setuid) or "
		"that this user may not read\n",
		r->samples ? "samples miss a part" : "no samples",
		(uint64_t)(r->command.user_ns / CLOCK_NSEC_PER_MSEC));
	return true;
}

/* Lists processes that outlive the command, as their end is not recorded. */
static void report_running(struct record *r)
{
	struct strbuf list = STRBUF_INIT;
	struct pm_image_info info;
	struct pm_image *img;
	struct pm_iter it;
	size_t n = 0;

	pm_iter_init(&it, engine_pm(r->engine), false);
	while ((img = pm_iter_next(&it))) {
		pm_image_info(img, &info);
		if (!info.selected || info.key.tgid == r->commanded_pid)
			continue;
		if (n++ < RECORD_LISTED)
			strbuf_printf(&list, "%s %u", n > 1 ? "," : "",
				      info.key.tgid);
	}
	if (n > RECORD_LISTED)
		strbuf_puts(&list, " ...");
	if (n)
		fprintf(stderr,
			"profd: %zu of the processes that the command "
			"started %s still running and no longer "
			"recorded:%s\n",
			n, n > 1 ? "are" : "is", list.failed ? "" : list.data);
	strbuf_fini(&list);
}

static void record_draw_end(struct record *r)
{
	if (r->drawn)
		fputs("\r\033[K", stderr);
	r->drawn = false;
}

static void report_unnamed(const struct record *r)
{
	uint64_t n = engine_unnamed(r->engine);

	if (n)
		fprintf(stderr,
			"profd: %" PRIu64 " frame%s no name: the wait for "
			"names was ended%s\n",
			n, n > 1 ? "s have" : " has",
			r->hurried ? " by a signal" : ", as it took too long");
}

static void record_report(struct record *r)
{
	struct strbuf text = STRBUF_INIT;
	struct summary to;
	const char *why;

	record_draw_end(r);
	if (r->waits_err)
		cmd_fail("%s: %s", r->waits_path, strerror(-r->waits_err));
	if (r->err) {
		cmd_fail("%s: %s", r->o->output, strerror(-r->err));
		return;
	}
	if (r->o->quiet)
		return;
	if (r->commanded && !r->command.pid)
		report_running(r);
	if (!report_hidden(r) && !r->samples)
		report_empty(r);
	report_unnamed(r);
	summary_count(&to, r->engine);
	summary_text(&r->from, &to, r->samples, &text);
	fprintf(stderr, "profd: %s, %s%s\n", strbuf_str(&text), r->o->output,
		*engine_note(r->engine, &why)
			? " (perf events: process ids differ from BPF's)"
			: "");
	if (r->waits_written && !r->waits_err)
		fprintf(stderr, "profd: waits, %s\n", r->waits_path);
	strbuf_fini(&text);
}

static void record_on_finished(void *arg)
{
	struct record *r = arg;

	uv_timer_stop(&r->progress);
	record_report(r);
	r->finished = true;
	if (!r->command.pid)
		uv_stop(&r->loop);
}

static void report_waiting(const struct engine_waiting *w, struct strbuf *out)
{
	strbuf_printf(out, "waiting for the names of %" PRIu64 " frame%s",
		      w->frames, w->frames > 1 ? "s" : "");
	if (w->path) {
		strbuf_puts(out, w->files > 1 ? ", of " : " of ");
		text_add(out, w->path, strlen(w->path));
	}
	if (w->files > 1)
		strbuf_printf(out, " and %zu more file%s", w->files - 1,
			      w->files > 2 ? "s" : "");
}

/*
 * On a terminal the number goes down, once the command does not write there any more;
 * elsewhere one line says why it takes long.
 */
static void record_show_waiting(struct record *r,
				const struct engine_waiting *w)
{
	bool terminal = isatty(STDERR_FILENO);
	struct strbuf text = STRBUF_INIT;

	if (terminal ? r->command.pid != 0 : r->waited)
		return;
	report_waiting(w, &text);
	fprintf(stderr, "%sprofd: %s (%s writes the profile without them)%s",
		terminal ? "\r" : "", strbuf_str(&text),
		terminal ? "Ctrl-C" : "SIGINT", terminal ? "\033[K" : "\n");
	fflush(stderr);
	r->drawn = terminal;
	strbuf_fini(&text);
}

static void record_on_waiting(uv_timer_t *t)
{
	struct record *r = t->data;
	struct engine_waiting w;

	if (!engine_finish_waiting(r->engine, &w))
		return;
	/* The next signal is not a repetition of the one that ended the recording. */
	if (!r->waited)
		r->end = (struct cmd_end){ 0 };
	if (!r->o->quiet)
		record_show_waiting(r, &w);
	r->waited = true;
}

/* False: there is no such wait. */
static bool record_stop_waiting(struct record *r)
{
	struct engine_waiting w;

	if (r->window || r->hurried || !r->engine ||
	    !engine_finish_waiting(r->engine, &w))
		return false;
	r->hurried = true;
	engine_finish_now(r->engine);
	return true;
}

/* Ends the recording; its command may still run. */
static void end_window(struct record *r, uint64_t end)
{
	if (!r->window)
		return;
	reporter_window_end(engine_reporter(r->engine), r->window, end);
	if (r->waits)
		reporter_window_end(engine_reporter(r->engine), r->waits, end);
	r->window = r->waits = NULL;
	uv_timer_stop(&r->duration);
	uv_timer_stop(&r->progress);
	record_draw_end(r);
	uv_timer_start(&r->progress, record_on_waiting, RECORD_WAITING_MS,
		       RECORD_WAITING_MS);
	engine_finish(r->engine, record_on_finished, r);
}

static void end_window_now(struct record *r)
{
	if (r->window)
		end_window(r, reporter_apart_ahead(engine_reporter(r->engine),
						   clock_boottime_ns()));
}

static void on_duration(uv_timer_t *t)
{
	struct record *r = t->data;

	end_window(r, r->begin + r->o->duration * CLOCK_NSEC_PER_SEC);
}

static void on_child(uv_signal_t *h, int signum)
{
	struct record *r = h->data;
	int status;

	if (!r->command.pid)
		return;
	status = command_status(&r->command);
	if (status == -EAGAIN)
		return;
	r->status = status < 0 ? OPTIONS_FAILED : status;
	end_window_now(r);
	if (r->finished)
		uv_stop(&r->loop);
}

static void on_target(uv_poll_t *poll, int status, int events)
{
	struct target *t = poll->data;

	uv_poll_stop(poll);
	if (!--t->r->running)
		end_window_now(t->r);
}

/* Whether the terminal sends its signals to profd, and so to the command too. */
static bool in_foreground(void)
{
	int fd = open("/dev/tty", O_RDONLY | O_CLOEXEC | O_NOCTTY);
	bool yes = fd >= 0 && tcgetpgrp(fd) == getpgrp();

	if (fd >= 0)
		close(fd);
	return yes;
}

static void record_on_end_signal(uv_signal_t *h, int signum)
{
	struct record *r = h->data;
	/* A second signal kills the command; without one it loses the profile. */
	enum cmd_ending end =
		cmd_end_request(&r->end, r->command.pid ? CMD_END_TWICE_NS
							: CMD_END_PATIENT_NS);

	if (end == CMD_END_SAME)
		return;
	if (r->command.pid) {
		if (end == CMD_END_AT_ONCE)
			kill(r->command.pid, SIGKILL);
		else if (signum != SIGINT || !in_foreground())
			kill(r->command.pid, signum);
		return;
	}
	if (record_stop_waiting(r))
		return;
	if (end == CMD_END_AT_ONCE) {
		cmd_fail("ended at once, nothing was written");
		_exit(CMD_SIGNALLED + signum);
	}
	end_window_now(r);
}

/* --- the beginning -------------------------------------------------------- */

static void record_on_progress(uv_timer_t *t)
{
	struct record *r = t->data;
	uint64_t s = (clock_boottime_ns() - r->begin + CLOCK_NSEC_PER_SEC / 2) /
		     CLOCK_NSEC_PER_SEC;
	const char *what = "";

	if (r->o->duration) {
		s = r->o->duration > s ? r->o->duration - s : 0;
		what = " left";
	}
	r->drawn = true;
	fprintf(stderr, "\rprofd: %llu s%s, %llu samples\033[K",
		(unsigned long long)s, what,
		(unsigned long long)reporter_window_samples(r->window));
	fflush(stderr);
}

static int record_catch_signals(struct record *r)
{
	static const struct {
		int number;
		uv_signal_cb fn;
	} signals[RECORD_SIGNALS] = {
		{ SIGINT, record_on_end_signal },
		{ SIGTERM, record_on_end_signal },
		{ SIGHUP, record_on_end_signal },
		{ SIGCHLD, on_child },
	};
	size_t i;
	int status = 0;

	for (i = 0; i < RECORD_SIGNALS && !status; i++)
		if (!cmd_is_ignored(signals[i].number))
			status = cmd_watch_signal(&r->loop, &r->signals[i],
						  signals[i].number,
						  signals[i].fn, r);
	return status;
}

/* Before sampling starts: a process that does not exist is an error at once. */
static int open_targets(struct record *r)
{
	const struct options_numbers *pids = &r->o->pid;
	size_t i;

	r->targets = calloc(pids->n + 1, sizeof(*r->targets));
	if (!r->targets)
		return cmd_fail("%s", strerror(ENOMEM));
	for (i = 0; i < pids->n; i++) {
		struct target *t = &r->targets[i];
		int pid = pids->items[i];

		if (pid == getpid())
			return cmd_fail("process %d is profd itself", pid);
		t->r = r;
		t->fd = syscall(SYS_pidfd_open, pid, 0);
		if (t->fd >= 0) {
			r->ntargets++;
			continue;
		}
		/* A thread's id: EINVAL, from 6.16 ENOENT. */
		if (errno == EINVAL || errno == ENOENT)
			return cmd_fail("%d is a thread, not a process", pid);
		if (errno == ESRCH)
			return cmd_fail("no such process: %d", pid);
		return cmd_fail("process %d: %s", pid, strerror(errno));
	}
	return 0;
}

static void close_targets(struct record *r)
{
	size_t i;

	for (i = 0; i < r->ntargets; i++)
		close(r->targets[i].fd);
	free(r->targets);
}

static int watch_targets(struct record *r)
{
	size_t i;
	int err;

	for (i = 0; i < r->ntargets; i++) {
		struct target *t = &r->targets[i];

		err = uv_poll_init(&r->loop, &t->poll, t->fd);
		if (err)
			return err;
		t->poll.data = t;
		r->running++;
		err = uv_poll_start(&t->poll, UV_READABLE, on_target);
		if (err)
			return err;
	}
	return 0;
}

/* A process that has ended meanwhile is no error. */
static int record_select(struct record *r)
{
	size_t i;
	int err = 0;

	if (r->command.pid)
		err = pm_select(engine_pm(r->engine), r->command.pid);
	for (i = 0; i < r->ntargets && (!err || err == -ESRCH); i++)
		err = pm_select(engine_pm(r->engine), r->o->pid.items[i]);
	return err == -ESRCH ? 0 : err;
}

/* The profile beside that of CPU time: the same times and processes. */
static int record_open_waits(struct record *r,
			     const struct reporter_window_opts *cpu)
{
	struct reporter *rep = engine_reporter(r->engine);
	struct reporter_window_opts wo = *cpu;
	int err;

	if (!r->o->wait)
		return 0;
	r->waits_path = cmd_wait_output(r->o->output);
	wo.events = reporter_apart(rep);
	/* All its frames are marks. */
	wo.form.drop_marks = false;
	wo.path = r->waits_path;
	wo.done = record_on_waits_written;
	err = wo.path ? reporter_window_open(rep, &wo, &r->waits) : -ENOMEM;
	return err ? cmd_fail("%s: %s", wo.path ? wo.path : "memory",
			      strerror(-err))
		   : 0;
}

/* It is ahead for the sake of waits; the command is to start after it. */
static void record_await_begin(const struct record *r)
{
	const struct timespec pause = { .tv_nsec = CLOCK_NSEC_PER_MSEC };

	while (clock_boottime_ns() < r->begin)
		nanosleep(&pause, NULL);
}

static int record_begin(struct record *r)
{
	struct reporter_window_opts wo = {
		.end = UINT64_MAX,
		.selected_only = !r->o->all,
		.form.drop_marks = r->o->drop_marks,
		.form.traces = r->o->traces,
		.format = r->format,
		.path = r->o->output,
		.done = record_on_written,
		.arg = r,
	};
	int err = record_select(r);

	if (err)
		return cmd_fail("selecting the processes: %s", strerror(-err));
	engine_warm_up(r->engine);
	r->begin = reporter_apart_ahead(engine_reporter(r->engine),
					clock_boottime_ns());
	wo.begin = r->begin;
	if (r->o->duration)
		wo.edge = r->begin + r->o->duration * CLOCK_NSEC_PER_SEC;
	summary_count(&r->from, r->engine);
	uv_timer_init(&r->loop, &r->duration);
	uv_timer_init(&r->loop, &r->progress);
	r->duration.data = r->progress.data = r;
	err = reporter_window_open(engine_reporter(r->engine), &wo, &r->window);
	if (err)
		return cmd_fail("%s: %s", r->o->output, strerror(-err));
	err = record_open_waits(r, &wo);
	if (err)
		return err;
	record_await_begin(r);
	err = watch_targets(r);
	/* Opening the engine took time that the loop does not know of. */
	uv_update_time(&r->loop);
	if (!err && r->o->duration)
		err = uv_timer_start(&r->duration, on_duration,
				     r->o->duration * 1000, 0);
	/* A command's output is not mixed with lines of progress. */
	if (!err && !r->o->quiet && !r->commanded && isatty(STDERR_FILENO))
		err = uv_timer_start(&r->progress, record_on_progress, 1000,
				     1000);
	return err ? cmd_fail("event loop: %s", uv_strerror(err)) : 0;
}

static int record_start_command(struct record *r)
{
	int err = command_go(&r->command);

	if (!err)
		return 0;
	cmd_fail("%s: %s", r->o->args[0],
		 err == -ENOENT ? "command not found" : strerror(-err));
	return err == -ENOENT ? CMD_NOT_FOUND : CMD_NOT_EXECUTABLE;
}

/* --- the command ---------------------------------------------------------- */

static int check_usage(const struct options *o)
{
	int kinds = o->all + (o->pid.n > 0) + (o->nargs > 0);

	if (kinds == 1)
		return 0;
	return cmd_usage("record", "give %s a command, --pid or --all",
			 kinds ? "only one of" : "one of");
}

/* The processes to record, if not the whole host; for the caller to free. */
static int record_list_pids(const struct record *r, struct engine_opts *eo)
{
	const struct options_numbers *pids = &r->o->pid;
	uint32_t *list = calloc(pids->n + 1, sizeof(*list));
	size_t i;

	if (!list)
		return -ENOMEM;
	for (i = 0; i < pids->n; i++)
		list[i] = pids->items[i];
	eo->npids = pids->n;
	if (r->commanded)
		list[eo->npids++] = r->command.pid;
	eo->pids = list;
	eo->until_exec = r->commanded;
	return 0;
}

static void record_report_source(const struct record *r)
{
	const char *why, *note = engine_note(r->engine, &why);

	if (!r->o->quiet && *note)
		fprintf(stderr, "profd: %s%s%s\n", note,
			*why ? "; no BPF: " : "", why);
}

static int open_engine(struct record *r)
{
	struct engine_opts eo = {
		.loop = &r->loop,
		.freq_hz = r->o->freq,
		.stack_copy = r->o->stack_copy,
		.ring_size = r->o->ring_size,
		.source = r->o->source,
		.selected_only = !r->o->all,
		.why_perf = r->why_perf,
		.unwind_rows = r->o->unwind_rows,
		.open_files = r->o->open_files,
		.symbol_memory = r->o->symbol_memory,
		.cache = r->o->record_cache,
		.cache_size = r->o->cache_size,
		.all_names = true,
		.wait = r->o->wait,
		.traces = r->o->traces,
		.traces_needed = true,
	};
	char msg[512];
	int err = record_list_pids(r, &eo);

	if (err)
		return cmd_fail("%s", strerror(-err));
	err = engine_new(&r->engine, &eo, msg, sizeof(msg));
	free((uint32_t *)eo.pids);
	if (err)
		return cmd_fail("%s", msg);
	record_report_source(r);
	return 0;
}

static int record_run(struct record *r)
{
	int status = record_catch_signals(r);

	if (!status)
		status = open_engine(r);
	if (!status)
		status = record_begin(r);
	if (!status && r->commanded)
		status = record_start_command(r);
	if (status)
		return status;
	/* The command was killed before its exec, or a signal came before. */
	if (r->commanded ? !r->command.pid : r->end.since)
		end_window_now(r);
	uv_run(&r->loop, UV_RUN_DEFAULT);
	return r->err || r->waits_err ? OPTIONS_FAILED : r->status;
}

static int record_in_loop(struct record *r)
{
	int status, err = uv_loop_init(&r->loop);

	if (err)
		return cmd_fail("event loop: %s", uv_strerror(err));
	/* A closed pipe is an error of write(2). */
	signal(SIGPIPE, SIG_IGN);
	status = record_run(r);
	engine_free(r->engine);
	record_close_handles(r);
	uv_run(&r->loop, UV_RUN_DEFAULT);
	uv_loop_close(&r->loop);
	return status;
}

int cmd_record(const struct options *o)
{
	struct record r = { .o = o, .command = { 0, -1, -1, 0 } };
	int status, err;

	log_set_level(LOG_WARN);
	status = check_usage(o);
	if (!status)
		status = cmd_check_output("record", o, &r.format);
	if (!status)
		status = cmd_check_host(o, o->all, o->quiet, &r.why_perf);
	if (!status)
		status = open_targets(&r);
	if (!status && o->nargs) {
		r.commanded = true;
		err = command_start(&r.command, o->args);
		if (err)
			status = cmd_fail("%s: %s", o->args[0], strerror(-err));
		r.commanded_pid = r.command.pid;
	}
	if (!status)
		status = record_in_loop(&r);
	command_fini(&r.command);
	close_targets(&r);
	free(r.waits_path);
	free(r.why_perf);
	return status;
}
