/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine: the parts, wired. Opens the three streams, walks what exists, begins
 * sampling, and drives the pump from the loop. `run` and `record` differ only
 * in what they ask of the reporter.
 */
#ifndef PROFILER_ENGINE_H
#define PROFILER_ENGINE_H

#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "processmanager/processmanager.h"
#include "profiler/source/source.h"
#include "reporter/reporter.h"

struct engine;

struct engine_opts {
	uv_loop_t *loop;
	unsigned int freq_hz;
	size_t stack_copy; /* 0: the source's default */
	size_t ring_size; /* of all rings together */
	enum source source; /* AUTO: BPF if it loads */
	const char *why_perf; /* BPF is out of the question; NULL: it is not */
	/* Who, if not the whole host, is to be sampled where that is refused. */
	const uint32_t *pids;
	size_t npids;
	bool until_exec; /* they wait for their exec, at which it begins */
	bool selected_only; /* samples of other processes are of no use */
	const char *unwind_rows; /* directory of rows by hand, or NULL */
	unsigned int open_files; /* executables held open, at most */
	unsigned int window_s;
	const char *archive; /* NULL: none */
	enum reporter_format archive_format;
	const char *const *listen;
	size_t nlisten;
	/* The archive's window was written, or not. May be NULL. */
	void (*written)(void *arg, const char *path, int err,
			uint64_t nsamples);
	void *arg;
};

/*
 * Whole or nothing. On error one line is in 'msg' that names the thing, the
 * reason and, where it is one, the missing capability; -errno is returned.
 * When it returns 0, everything is attached and walked, and sampling runs.
 */
int engine_new(struct engine **ep, const struct engine_opts *opts, char *msg,
	       size_t msglen);

/*
 * Runs the loop until the unwind tables of what runs now are there, 300 ms at most;
 * samples taken meanwhile are dropped. Does nothing where few samples come: those
 * can wait for their tables. Before a window is opened.
 */
void engine_warm_up(struct engine *e);

/*
 * How what is recorded differs for want of BPF, in one line, or "" with BPF;
 * and why, or "" when it was asked for.
 */
const char *engine_note(const struct engine *e, const char **why);
struct reporter *engine_reporter(struct engine *e);
struct pm *engine_pm(struct engine *e);

struct engine_totals {
	uint64_t samples; /* taken by the kernel side */
	double missed; /* should have come and did not */
};
void engine_totals(struct engine *e, struct engine_totals *out);

/*
 * Ends: sampling stops, what is in the rings goes through, all windows are
 * closed and written, then 'done' on the loop. engine_free() after it.
 */
void engine_finish(struct engine *e, void (*done)(void *arg), void *arg);
void engine_free(struct engine *e);

#endif /* PROFILER_ENGINE_H */
