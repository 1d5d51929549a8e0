/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source: where samples, lifecycle events and mapping records come from. A
 * source is a row of functions; the engine uses one: BPF or perf events. The
 * source puts records into the pump (intake.h), and gets them again in order of
 * time. Loop's thread only.
 */
#ifndef PROFILER_SOURCE_H
#define PROFILER_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "processmanager/processmanager.h"
#include "profiler/source/perfsource.h"
#include "profiler/source/sampler.h"
#include "profiler/source/sideband.h"

/* X(NAME, word) */
#define SOURCES(X)    \
	X(AUTO, auto) \
	X(BPF, bpf)   \
	X(PERF, perf)

enum source {
#define X(name, word) SOURCE_##name,
	SOURCES(X)
#undef X
};

struct intake;
struct rescan;

struct source_opts {
	unsigned int freq_hz;
	size_t stack_copy; /* bytes of user stack; 0: the source's default */
	size_t ring_size; /* bytes of all rings together */
	/* Processes to sample if the host is refused; until begin(). */
	const uint32_t *pids;
	size_t npids;
	bool until_exec; /* sampling begins at their exec */
	struct intake *in;
	struct rescan *rescan;
	struct pm *pm;
	/* A lifecycle event in order of time; borrowed for the call. */
	void (*event)(void *arg, const struct quark_event *ev);
	/*
	 * Drains and delivers, during begin(). Returns the time up to which
	 * lifecycle and mapping records are in the pump.
	 */
	uint64_t (*drain)(void *arg);
	/* Sampling begins. Returns the time; older samples do not count. */
	uint64_t (*started)(void *arg);
	void *arg;
};

/* Counters; zero where a source has no such thing. */
struct source_stats {
	struct quark_queue_stats life;
	struct sideband_stats side;
	struct perfsource_stats perf;
};

/* After readable(). */
enum source_urgency {
	SOURCE_LATER, /* the timer is soon enough */
	SOURCE_DUE, /* drain all rings, ten times a second at most */
	SOURCE_NOW, /* drain all rings */
};

/* A descriptor, readable when a ring must be drained before the timer. */
struct source_poll {
	const char *what; /* static; for the log */
	int fd; /* the source's, valid until close() */
	/* NULL: SOURCE_NOW */
	enum source_urgency (*readable)(void *state);
	/* New files make it readable: more records about them follow. */
	bool often;
};

#define SOURCE_POLLS_MAX 4

/* 'state' is the source's own. No function may be NULL unless it says so. */
struct source_row {
	const char *name; /* in JSON */
	const char *title; /* in text, without note() */
	/* It needs /proc to identify processes: drained ten times a second. */
	bool often;
	/* The least RLIMIT_NOFILE it needs; 0, or NULL: it is met. */
	unsigned int (*files)(void);
	/* Puts into 'msg' why 'what' was refused with -EPERM or -EACCES. */
	void (*explain)(const char *what, char *msg, size_t msglen);

	/*
	 * Attaches, not sampling yet. *statep is set as soon as there is
	 * something to close(), also on error. 0 or -errno, and then '*what'
	 * names the step that failed (a static string).
	 */
	int (*open)(void **statep, const struct source_opts *opts,
		    const char **what);
	/*
	 * Scans what runs and begins to sample, in either order; calls
	 * opts.started() once. 0 or -errno, as open().
	 */
	int (*begin)(void *state, const char **what);
	/* Stops sampling; the rings can still be drained. */
	void (*end)(void *state);
	void (*close)(void *state);

	/* Fills 'out', SOURCE_POLLS_MAX entries at most. Their number. */
	size_t (*polls)(void *state, struct source_poll *out);
	/*
	 * Moves the records of the rings into the pump and sets the watermarks
	 * of all streams but the rescan's. True: some are left; drain again
	 * soon.
	 */
	bool (*drain)(void *state, uint64_t now);
	/* Once a second: follows CPUs that came or went. 0 or -errno. */
	int (*second)(void *state);

	/* A lifecycle record from the pump. NULL: it is a quark_event. */
	void (*life)(void *state, const void *rec);
	/* After the process manager had the record. May be NULL. */
	void (*mapped)(void *state, const struct pm_map_event *ev);
	/* Completes a sample; false: it is dropped. May be NULL. */
	bool (*sample)(void *state, struct abi_sample *rec);
	/* Frees a lifecycle record; may be called after close(). */
	void (*drop)(void *rec);
	/* trace_opts.want_code. May be NULL. */
	void (*want_code)(void *state, uint32_t tgid);
	/* trace_opts.want_go. May be NULL. */
	void (*want_go)(void *state, uint32_t tgid,
			const struct symbolizer_go *go);
	/* pm_opts.known_file. May be NULL. */
	void (*known_file)(void *state, const struct quark_file_ident *ident,
			   bool known);
	/* pm_opts.go_file. May be NULL. */
	void (*go_file)(void *state, const struct quark_file_ident *ident,
			const struct symbolizer_go *go);

	/* As sampler_trace_slot(). NULL: samples have no ids of traces. */
	int (*trace_slot)(void *state, uint32_t tgid,
			  const struct abi_trace_slot *slot);

	/* As sampler_get_stats(). */
	int (*cpu_stats)(void *state, struct sampler_cpu_stats *out, size_t n);
	void (*stats)(void *state, struct source_stats *out);
	/* How its profiles differ from those of BPF, in a line. May be NULL. */
	void (*note)(void *state, char *buf, size_t size);
};

/* state NULL: it is not open. */
struct source_run {
	const struct source_row *row;
	void *state;
};

extern const struct source_row source_bpf;
extern const struct source_row source_perf;

#endif /* PROFILER_SOURCE_H */
