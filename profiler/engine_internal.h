/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine_internal: struct engine, for engine*.c, metrics.c, losses.c, health.c
 * and tests. It consists of one struct for each subject, which has its own
 * functions.
 */
#ifndef PROFILER_ENGINE_INTERNAL_H
#define PROFILER_ENGINE_INTERNAL_H

#include <stdbool.h>
#include <uv.h>

#include "profiler/drain.h"
#include "profiler/engine.h"
#include "profiler/health.h"
#include "profiler/limits.h"
#include "profiler/memory/memory.h"
#include "profiler/memory/memory_trim.h"
#include "profiler/metrics.h"
#include "profiler/rescan/rescan.h"
#include "profiler/source/intake.h"
#include "profiler/source/source.h"
#include "profiler/tracing/notify.h"
#include "profiler/tracing/services.h"
#include "profiler/tracing/tracing.h"
#include "profiler/waiting/waiting.h"
#include "profiler/watching.h"
#include "tracehandler/tracehandler.h"

/* The end of the engine: it waits for the rings and for names. */
struct engine_end {
	uint64_t time; /* of sampling */
	/* The number of frames without a name, and when it changed last. */
	uint64_t unnamed, changed;
	bool now; /* engine_finish_now() */
	bool late; /* names of perf maps that were written late are requested */
	bool over; /* all was given to the reporter */
	void (*done)(void *arg); /* NULL: it is not the end */
	void *arg;
};

/* Quarantines of some users: the last warning, and those without one since. */
struct engine_warned {
	uint64_t at; /* CLOCK_BOOTTIME; 0: none */
	unsigned int more;
};

struct engine {
	struct engine_opts opts;
	struct source_run source;
	struct intake in;
	struct rescan *rescan;
	struct drain drain;
	struct symbolizer *symbolizer;
	struct pm *pm;
	struct trace_handler *th;
	struct watching watching;
	struct waiting *waiting; /* NULL without --wait */
	struct tracing tracing; /* all zero without --traces */
	struct services services;
	struct notify notify; /* all zero if it is off */
	struct reporter *reporter;
	struct limits limits;
	struct engine_warned warned[16]; /* by uid */
	struct losses losses;
	struct health health;
	struct memory_trim trim;
	struct memory memory;
	uint64_t memory_window; /* when the open window was last shed */
	struct engine_end end;
	char note[256]; /* engine_note() */
	char why[256];
	unsigned int open_files; /* executables, as RLIMIT_NOFILE permits */
	uint64_t begin; /* of sampling */
	uint64_t wanted_from; /* older samples are the warm-up's */
	uint64_t second; /* last once-a-second work */
	int hotplug_err; /* the last, so that it is logged once */
};

/* The pump's functions; 'arg' is the engine. */
int engine_intake_open(struct engine *e);
/*
 * Drains the source and delivers once; 'arg' is the engine. Returns the time up
 * to which lifecycle and mapping records are in the pump.
 */
uint64_t engine_drain(void *arg);
/* source_opts.event: to the process manager and the reporter. */
void engine_event(void *arg, const struct quark_event *ev);
/* trace_opts.resolved */
void engine_resolved(void *arg, const struct reporter_trace *t);
/* reporter_opts.refresh */
void engine_refresh(void *arg);
/* reporter_opts.edges */
void engine_edges(void *arg);
/* reporter_opts.timeline */
int engine_timeline(void *arg, const struct abi_key *key, bool lives,
		    uint32_t tid, struct reporter_timeline *out);
/* watch_opts.follow */
int engine_follow(void *arg, uint32_t pid, bool begins);
/* reporter_opts.path */
int engine_path(void *arg, const struct abi_key *key, bool lives,
		struct reporter_path *out);
void engine_close_source(struct source_run *source);
/* From here on the loop drives it. */
int engine_loop(struct engine *e);

/*
 * As engine_new(), with the first of 'rows' (which end with NULL) that opens;
 * where several fail the error is the first one's.
 */
int engine_new_from(struct engine **ep, const struct engine_opts *opts,
		    const struct source_row *const *rows, char *msg,
		    size_t msglen);

#endif /* PROFILER_ENGINE_INTERNAL_H */
