/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine: connects the parts. Opens the three streams, scans what runs, begins
 * sampling, and drives the pump from the loop. `run` and `record` differ only
 * in their requests to the reporter.
 */
#ifndef PROFILER_ENGINE_H
#define PROFILER_ENGINE_H

#include <stdbool.h>
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
	const char *why_perf; /* why BPF cannot be used; NULL: it can */
	/* Processes to sample where sampling the whole host is refused. */
	const uint32_t *pids;
	size_t npids;
	bool until_exec; /* sampling begins at their exec */
	bool selected_only; /* only selected processes are recorded */
	const char *unwind_rows; /* directory of rows by hand, or NULL */
	unsigned int open_files; /* executables held open, at most */
	uint64_t memory_max; /* of profd and its workers; 0: no ceiling */
	size_t symbol_memory; /* bytes of symbol indexes; 0: the default */
	const char *cache; /* directory for what was read; NULL or "none" */
	uint64_t cache_size; /* 0: the default */
	/*
	 * Traces wait for their names however long it takes: for one profile that is
	 * written at the end.
	 */
	bool all_names;
	/* URLs of debuginfod servers, NULL-terminated; or NULL. */
	const char *const *debuginfod;
	const char *debuginfod_dir;
	uint64_t debuginfod_size; /* of it at most; 0: the default */
	unsigned int window_s;
	const char *archive; /* NULL: none */
	enum reporter_format archive_format;
	enum reporter_args archive_args;
	bool watch; /* /api/watch is allowed */
	bool wait_copy_all; /* for tests: waiting_opts.copy_all */
	bool traces; /* samples have the ids of traces; only with BPF */
	bool traces_needed; /* without BPF that is an error */
	bool apm_notify; /* with 'traces': APM agents get their stacks */
	bool wait; /* also why threads do not run; only with BPF */
	/* With 'archive': its shortest wait by itself, ns; 0: it has none. */
	uint64_t wait_min;
	struct reporter_keep keep;
	const char *const *listen;
	size_t nlisten;
	struct reporter_access access;
	/* A window of the archive was written, or failed. May be NULL. */
	void (*written)(void *arg, const char *path, int err,
			uint64_t nsamples);
	void *arg;
};

/*
 * 0: everything is attached and scanned, and sampling runs. Or -errno, and one
 * line in 'msg' with the failed step, the reason and, if that is the reason,
 * the missing capability.
 */
int engine_new(struct engine **ep, const struct engine_opts *opts, char *msg,
	       size_t msglen);

/*
 * Runs the loop until the unwind tables of what runs now are read, two seconds at
 * most, and drops the samples of that time. Does nothing at a low sampling
 * rate: few samples can wait for their tables. Before a window is opened.
 */
void engine_warm_up(struct engine *e);

/*
 * How profiles differ without BPF, in one line, or "" with BPF; and in *why the
 * reason for that, or "" if the user chose it.
 */
const char *engine_note(const struct engine *e, const char **why);
struct reporter *engine_reporter(struct engine *e);
struct pm *engine_pm(struct engine *e);

struct engine_totals {
	uint64_t samples; /* taken by the kernel side */
	uint64_t traced; /* of them with the ids of a trace */
	double missed; /* expected, and did not come */
};
void engine_totals(struct engine *e, struct engine_totals *out);

/*
 * Stops sampling, drains the rings, closes and writes all windows, then calls
 * 'done' from the loop. engine_free() after that.
 */
void engine_finish(struct engine *e, void (*done)(void *arg), void *arg);
/*
 * What engine_finish() still waits for, with opts.all_names. It gives up when the number
 * of frames did not change for a minute, or after ten.
 */
struct engine_waiting {
	uint64_t frames; /* whose names were requested */
	size_t files; /* of which */
	const char *path; /* of one of these files, or NULL; borrowed */
};

/* False: it does not wait for names. */
bool engine_finish_waiting(const struct engine *e, struct engine_waiting *out);
/* Ends that: names that are not there yet will be missing. */
void engine_finish_now(struct engine *e);
/* After the end: the number of frames whose names were not waited for any more. */
uint64_t engine_unnamed(const struct engine *e);
void engine_free(struct engine *e);

#endif /* PROFILER_ENGINE_H */
