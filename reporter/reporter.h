/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reporter: what comes out. Resolved traces in; windows, pprof files and HTTP
 * answers out.
 *
 * Traces are added in no particular order; reporter_advance() says up to which
 * time they are complete. A window closes when that passed its end; it is then
 * immutable, and a worker of the loop's pool encodes, compresses and writes it.
 * All calls and callbacks on the loop's thread.
 */
#ifndef REPORTER_REPORTER_H
#define REPORTER_REPORTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "base/hash.h"
#include "processmanager/processmanager.h"
#include "reporter/outfile.h"

struct reporter;
struct reporter_window;

/* A function of the source. No string is NULL; "" and 0 are unknown. */
struct reporter_function {
	const char *name; /* for reading: "file+0x12" at worst */
	const char *system_name; /* as the linker has it; or equal to 'name' */
	const char *file; /* of the source */
	/*
	 * Its address, as in reporter_frame.vaddr. 0: it was inlined, or there
	 * is no name; then it is identified by what it is called.
	 */
	uint64_t start;
	uint32_t start_line;
};

/* A function that a frame is in, and the line that runs there. */
struct reporter_line {
	const struct reporter_function *function;
	uint32_t line; /* in function->file; 0: unknown */
};

enum reporter_place_kind {
	REPORTER_PLACE_EXE, /* code of an executable, at a file offset */
	REPORTER_PLACE_MARK, /* no code: a text that says why there is none */
	REPORTER_PLACE_OBJECT, /* a code object of a runtime, by its number */
};

/*
 * What a frame is, for all processes: equal places have one list of functions
 * (marks: one text).
 */
struct reporter_place {
	enum reporter_place_kind kind;
	union {
		struct pm_exe *exe; /* of EXE */
		uint64_t space; /* of OBJECT: that of its numbers; of MARK: 0 */
	};
	/*
	 * EXE: the file offset that the name was requested by (less one for
	 * return addresses); MARK, OBJECT: its number.
	 */
	uint64_t id;
};

static inline bool reporter_place_equal(const struct reporter_place *a,
					const struct reporter_place *b)
{
	return a->id == b->id && a->space == b->space && a->kind == b->kind;
}

static inline uint64_t reporter_place_hash(const struct reporter_place *p)
{
	return hash_mix(p->space + (uint64_t)p->kind, p->id);
}

/* The executable, or NULL: the place is in none. */
static inline struct pm_exe *reporter_place_exe(const struct reporter_place *p)
{
	return p->kind == REPORTER_PLACE_EXE ? p->exe : NULL;
}

/* One frame, leaf first. Everything borrowed for the call. */
struct reporter_frame {
	struct reporter_place place;
	uint64_t vaddr; /* of EXE: in the file's addresses; pprof's address */
	/*
	 * Innermost inlined function first, last the one that was not inlined;
	 * at least one.
	 */
	const struct reporter_line *lines;
	size_t nlines;
};

/* Where the reporter put a stack; all zero: nowhere so far. */
struct reporter_memo {
	uint64_t window;
	void *stack;
};

struct reporter_trace {
	uint64_t time; /* CLOCK_BOOTTIME, ns */
	uint64_t value; /* in the unit of its event's value */
	uint32_t event; /* index into reporter_opts.event_types */
	struct pm_image *image;
	uint32_t tid;
	uint32_t cpu;
	const char *thread; /* thread name at the sample */
	const struct reporter_frame *frames;
	size_t nframes;
	/*
	 * The caller's, of these very frames: with another trace of the same memo the
	 * frames are not looked at. NULL: they come once.
	 */
	struct reporter_memo *memo;
};

/* A pprof sample type; both NULL: none. No '-' in 'type': servers refuse it. */
struct reporter_sample_type {
	const char *type, *unit;
};

/* What a sample can be taken of, and what a profile reports of it. */
struct reporter_event_type {
	const char *name; /* in metrics; [a-z_]+ */
	const char *label; /* in comments of profiles */
	/* A sample whose value is 0 stands for 1/freq_hz, in nanoseconds. */
	bool periodic;
	struct reporter_sample_type count; /* how many samples */
	struct reporter_sample_type value; /* the sum of their values, or none */
};

#define REPORTER_EVENTS_MAX 64

enum reporter_format {
	REPORTER_RAW, /* .pb */
	REPORTER_GZIP, /* .pb.gz */
	REPORTER_ZSTD, /* .pb.zst */
};

struct reporter_metrics;
struct reporter_health;

struct reporter_opts {
	uv_loop_t *loop;
	struct pm *pm; /* whose processes can be asked for */
	const char *hostname;
	const char *version;
	unsigned int freq_hz;
	/*
	 * 1 to REPORTER_EVENTS_MAX. A profile has the sample types of all events
	 * of its window, in this order; no two may be equal. Borrowed for good.
	 */
	const struct reporter_event_type *event_types;
	size_t nevent_types;
	/*
	 * Archive directory, made if missing, locked while in use; NULL keeps
	 * none. Leftovers of a killed run are swept at the start.
	 */
	const char *archive;
	enum reporter_format archive_format;
	unsigned int window_s;
	/* Fills /metrics, or /status. May be NULL. */
	void (*collect)(void *arg, struct reporter_metrics *m);
	/*
	 * A connection of this local user was closed or refused, so that others
	 * are answered. May be NULL.
	 */
	void (*limited)(void *arg, uint32_t uid);
	/*
	 * A client connected or sent something: what it is answered is to be up
	 * to date. Before the answer is made. May be NULL.
	 */
	void (*asked)(void *arg);
	/* Adds reasons to what /healthz says. May be NULL. */
	void (*health)(void *arg, struct reporter_health *h);
	/*
	 * Causes of loss, in words, for the comments of each profile; how much
	 * comes by reporter_losses(). The words are borrowed for good.
	 */
	const char *const *loss_names;
	size_t nlosses;
	/*
	 * One more comment of every profile, as it is when the profile is
	 * written; "" is none. Borrowed for good; may be NULL.
	 */
	const char *note;
	/*
	 * A window of the archive was written, or could not be ('path' is the
	 * directory if there was no file yet). May be NULL.
	 */
	void (*written)(void *arg, const char *path, int err,
			uint64_t nsamples);
	void *arg;
};

/*
 * 0 or -errno; -EINVAL: opts->event_types; with an archive: -EBUSY when another profd has it, -EPERM when
 * its directory belongs to another user or others can write to it. '*where' is
 * set on error to what failed (a static word or opts->archive).
 */
int reporter_new(struct reporter **rp, const struct reporter_opts *opts,
		 const char **where);
/*
 * The open window is not written: see reporter_finish(). Calls back no more
 * and needs nothing of the process manager's any longer; its handles are
 * closed when the loop runs next.
 */
void reporter_free(struct reporter *r);

/*
 * Listens on "unix:PATH" or "HOST:PORT"; may be called several times. Beyond
 * loopback refused with -EPERM. A stale socket file is replaced, a live one is
 * -EADDRINUSE. -EINVAL: not an address.
 */
int reporter_listen(struct reporter *r, const char *address);

/* The first window begins here. Nothing may be added before. */
void reporter_start(struct reporter *r, uint64_t time);
/*
 * 0, -EINVAL (no such event), or -ENOMEM (counted as a loss, shown in the
 * profile).
 */
int reporter_add(struct reporter *r, const struct reporter_trace *t);
/*
 * A lifecycle event, at its place in the order of time, for those who follow
 * them. 0 or -ENOMEM.
 */
int reporter_event(struct reporter *r, const struct quark_event *ev);
/*
 * A process is over and all its traces were added: those who follow events get
 * its line of the ledger, behind all its events. To be called from pm_opts.ended.
 * 0 or -ENOMEM.
 */
int reporter_ended(struct reporter *r, const struct pm_image *last);
/*
 * What was lost by now, one count a name of opts.loss_names, since the start.
 * A profile says the difference between its end and its begin.
 */
void reporter_losses(struct reporter *r, const uint64_t *counts);
/* All traces below 'time' have been added. */
void reporter_advance(struct reporter *r, uint64_t time);
/*
 * The time, CLOCK_BOOTTIME in ns, up to which somebody waits for it to advance: the
 * end of a profile that was asked for; 0 while clients follow events; UINT64_MAX:
 * nobody waits. The archive's windows may close a second late.
 */
uint64_t reporter_due(const struct reporter *r);
/*
 * Ends the archive's window at 'time' and begins the next. Within a second of
 * the last time it is put off to the end of that second: who asks for many gets
 * one a second.
 */
void reporter_rotate(struct reporter *r, uint64_t time);
/*
 * Ends all at 'time', answers waiting clients with what there is, and calls
 * 'done' when the last byte is on disk. Nothing may be added afterwards.
 */
void reporter_finish(struct reporter *r, uint64_t time, void (*done)(void *arg),
		     void *arg);

/* By the name's ending; -EINVAL for any other. */
int reporter_format_of(const char *path);

/*
 * One profile of its own, beside the archive's windows: from 'begin' to 'end'
 * (UINT64_MAX: until reporter_window_end()).
 */
struct reporter_window_opts {
	uint64_t begin, end;
	uint64_t events; /* bit i: takes samples of event i; 0: of all */
	bool selected_only; /* images that pm_select() marked, no others */
	enum reporter_format format;
	/* Written as tmp + fsync + rename; NULL: into memory, for 'done'. */
	const char *path;
	/*
	 * Once, when written. 'data' (of a profile in memory) is malloc'd and
	 * becomes the callee's. The window is gone afterwards.
	 */
	void (*done)(void *arg, int err, uint64_t nsamples, void *data,
		     size_t len);
	void *arg;
};
int reporter_window_open(struct reporter *r,
			 const struct reporter_window_opts *opts,
			 struct reporter_window **wp);
/*
 * Sets the end, which may be in the past: the profile has the samples up to
 * then, exact to 10 ms.
 */
void reporter_window_end(struct reporter *r, struct reporter_window *w,
			 uint64_t end);
/* Samples in it so far. */
uint64_t reporter_window_samples(const struct reporter_window *w);

/*
 * One metric, in the Prometheus sense; 'labels' is NULL or the inside of the
 * braces (cpu="0"). Calls of one name follow each other. 'counter' false: a
 * gauge. The name comes whole, "profd_..._total" for counters.
 */
void reporter_metric(struct reporter_metrics *m, const char *name,
		     const char *help, bool counter, const char *labels,
		     double value);
/* One line of /status: "key: value". */
void reporter_status(struct reporter_metrics *m, const char *key,
		     const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/*
 * A member of /status?format=json; 'group' is the object that it is in, NULL the
 * outermost. After reporter_member_row() those of the group are in the next
 * element of a list.
 */
void reporter_member_row(struct reporter_metrics *m, const char *group);
void reporter_member_int(struct reporter_metrics *m, const char *group,
			 const char *key, uint64_t value);
void reporter_member_real(struct reporter_metrics *m, const char *group,
			  const char *key, double value);
/* Bytes that are not UTF-8 become U+FFFD. */
void reporter_member_text(struct reporter_metrics *m, const char *group,
			  const char *key, const char *value);

/*
 * Why profd fails to do what it is for (/healthz is 503), or does it in part (it
 * is 200, "degraded: ..."): one line, no end of line. From opts.health only.
 */
void reporter_failing(struct reporter_health *h, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void reporter_degraded(struct reporter_health *h, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* X(name, gauge, "help") */
#define REPORTER_STATS(X)                                            \
	X(traces, 0, "traces added")                                 \
	X(traces_nomem, 0, "traces lost for lack of memory")         \
	X(traces_late, 0, "traces that came after their window")     \
	X(windows_written, 0, "windows written to the archive")      \
	X(windows_empty, 0, "windows without a sample, not written") \
	X(windows_failed, 0, "windows that could not be written")    \
	X(window_bytes, 0, "bytes written to the archive")           \
	X(swept, 0, "unfinished files of an earlier run removed")    \
	X(http_requests, 0, "HTTP requests")                         \
	X(http_errors, 0, "HTTP requests answered with an error")    \
	X(http_profiles, 0, "profiles answered over HTTP")           \
	X(http_evicted, 0, "connections closed for want of room")    \
	X(http_slow, 0, "connections closed: no request in time")    \
	X(http_waiting, 1, "clients waiting for their profile now")  \
	X(http_followers, 1, "clients following events now")         \
	X(memory_bytes, 1, "bytes held by open windows")

struct reporter_stats {
#define X(name, gauge, help) uint64_t name;
	REPORTER_STATS(X)
#undef X
};

void reporter_get_stats(const struct reporter *r, struct reporter_stats *out);

#endif /* REPORTER_REPORTER_H */
