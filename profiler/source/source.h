/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source: where samples, lifecycle events and mapping records come from. A source
 * is a row of functions, of which the engine runs one: BPF or perf events. It puts
 * records into the pump (profiler/source/intake.h) and is called again when the pump
 * delivers them in order of time. All functions are called by the loop's thread.
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
	/* What to sample where sampling the whole host is refused; borrowed. */
	const uint32_t *pids;
	size_t npids;
	bool until_exec; /* they wait for their exec, at which it begins */
	struct intake *in;
	struct rescan *rescan;
	struct pm *pm;
	/* A lifecycle event in order of time; borrowed for the call. */
	void (*event)(void *arg, const struct quark_event *ev);
	/*
	 * Drains and delivers; to be called while begin() takes its time. Returns
	 * the time up to which lifecycle and mapping records are in the pump.
	 */
	uint64_t (*drain)(void *arg);
	/* Sampling begins. Returns the time, before which no sample counts. */
	uint64_t (*started)(void *arg);
	void *arg;
};

/* What a source counts; zero where it has no such thing. */
struct source_stats {
	struct quark_queue_stats life;
	struct sideband_stats side;
	struct perfsource_stats perf;
};

/* A descriptor that is readable when a ring must not wait for the timer. */
/* What is left to do when a ring had something to read. */
enum source_urgency {
	SOURCE_LATER, /* the rest may wait for the timer */
	SOURCE_DUE, /* everything is to be drained, ten times a second at most */
	SOURCE_NOW, /* everything is to be drained */
};

struct source_poll {
	const char *what; /* static; for the log */
	int fd; /* the source's, valid until close() */
	/* NULL: SOURCE_NOW */
	enum source_urgency (*readable)(void *state);
	/* It is read because of new files: more records about them follow. */
	bool often;
};

#define SOURCE_POLLS_MAX 3

/*
 * 'state' is the source's own. A function that may be NULL says what that means;
 * the others must be there.
 */
struct source_row {
	const char *name; /* in JSON */
	const char *title; /* in text, where note() has nothing to say */
	/* Processes are identified in /proc: it is always drained ten times a second. */
	bool often;
	/* Least RLIMIT_NOFILE that it needs, or 0: it is met. NULL: any will do. */
	unsigned int (*files)(void);
	/* Puts into 'msg' why 'what' was refused with -EPERM or -EACCES. */
	void (*explain)(const char *what, char *msg, size_t msglen);

	/*
	 * Attaches; nothing is sampled for the window yet. *statep is set as soon
	 * as there is something to close(), also on error. 0 or -errno, and then
	 * '*what' names the step that failed (a static string).
	 */
	int (*open)(void **statep, const struct source_opts *opts,
		    const char **what);
	/*
	 * Scans what runs already and begins to sample, in the order that suits
	 * it; calls opts.started() once. 0 or -errno, as open().
	 */
	int (*begin)(void *state, const char **what);
	/* Stops sampling; what is in the rings can still be drained. */
	void (*end)(void *state);
	void (*close)(void *state);

	/* Fills 'out', SOURCE_POLLS_MAX entries; how many. */
	size_t (*polls)(void *state, struct source_poll *out);
	/*
	 * Moves what the rings hold into the pump and sets the watermarks of all
	 * streams but the re-scan's. True: more is left, and is to be drained soon.
	 */
	bool (*drain)(void *state, uint64_t now);
	/* Once a second: follows CPUs that came or went. 0 or -errno. */
	int (*second)(void *state);

	/* Out of the pump: a lifecycle record, which stays the caller's. */
	void (*life)(void *state, const void *rec);
	/* After the process manager had it. NULL: no need. */
	void (*mapped)(void *state, const struct pm_map_event *ev);
	/* May complete the sample; false: it is dropped. NULL: no need. */
	bool (*sample)(void *state, struct abi_sample *rec);
	/* Frees a lifecycle record; may be called after close(). */
	void (*drop)(void *rec);
	/* pm_opts.known_file. NULL: no need. */
	void (*known_file)(void *state, const struct quark_file_ident *ident,
			   bool known);

	/* As sampler_get_stats(). */
	int (*cpu_stats)(void *state, struct sampler_cpu_stats *out, size_t n);
	void (*stats)(void *state, struct source_stats *out);
	/* How its profiles differ from a BPF run's, in a line. NULL: they do not. */
	void (*note)(void *state, char *buf, size_t size);
};

/* A source that is open, or was: then its state is NULL. */
struct source_run {
	const struct source_row *row;
	void *state;
};

extern const struct source_row source_bpf;
extern const struct source_row source_perf;

#endif /* PROFILER_SOURCE_H */
