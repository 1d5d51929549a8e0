/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reporter: the output of profd. Takes resolved traces and produces windows,
 * pprof files and HTTP answers.
 *
 * Traces may be added in any order; reporter_advance() sets the watermark up to
 * which they are complete. A window closes when the watermark passes its end; it
 * is immutable from then on, and a worker thread of the loop's pool encodes,
 * compresses and writes it. All calls and callbacks are on the loop's thread.
 */
#ifndef REPORTER_REPORTER_H
#define REPORTER_REPORTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "base/hash.h"
#include "processmanager/processmanager.h"
#include "processmanager/watch/watch.h"
#include "reporter/edit/profile.h"
#include "reporter/ledger/names.h"
#include "reporter/ledger/segment.h"
#include "reporter/ledger/step.h"
#include "reporter/ledger/why.h"
#include "reporter/outfile.h"
#include "reporter/query/query.h"
#include "reporter/request/moment.h"
#include "reporter/request/request.h"

struct reporter;
struct reporter_window;

/* A function of the source. No string is NULL; "" and 0 mean unknown. */
struct reporter_function {
	const char *name; /* demangled; of an unnamed one: "file+0x12" */
	const char *system_name; /* the linker's; or equal to 'name' */
	const char *file; /* source file */
	/*
	 * Its address, as in reporter_frame.vaddr. 0 for inlined functions and
	 * unnamed ones: their names identify them.
	 */
	uint64_t start;
	uint32_t start_line;
	bool unnamed; /* the name is only a text, made of the address */
};

/* A function of a frame, and the source line. */
struct reporter_line {
	const struct reporter_function *function;
	uint32_t line; /* in function->file; 0: unknown */
};

enum reporter_place_kind {
	REPORTER_PLACE_EXE, /* code of an executable, at a file offset */
	REPORTER_PLACE_MARK, /* no code: a text with the reason, [unknown] */
	REPORTER_PLACE_OBJECT, /* a code object of a runtime, by its number */
};

/*
 * Identifies a frame over all processes: equal places have equal functions
 * (marks: equal texts).
 */
struct reporter_place {
	enum reporter_place_kind kind;
	uint32_t version; /* of EXE: of the names of code in memory; or 0 */
	union {
		struct pm_exe *exe; /* of EXE */
		uint64_t space; /* of OBJECT: name space of ids; of MARK: 0 */
	};
	/*
	 * EXE: the file offset whose name was requested (return addresses less
	 * one); MARK, OBJECT: its number.
	 */
	uint64_t id;
};

static inline bool reporter_place_equal(const struct reporter_place *a,
					const struct reporter_place *b)
{
	return a->id == b->id && a->space == b->space && a->kind == b->kind &&
	       a->version == b->version;
}

static inline uint64_t reporter_place_hash(const struct reporter_place *p)
{
	return hash_mix(p->space + (uint64_t)p->kind + p->version, p->id);
}

/* The executable of an EXE place, or NULL. */
static inline struct pm_exe *reporter_place_exe(const struct reporter_place *p)
{
	return p->kind == REPORTER_PLACE_EXE ? p->exe : NULL;
}

/* One frame. Borrowed for the call. */
struct reporter_frame {
	struct reporter_place place;
	uint64_t vaddr; /* of EXE: virtual address in the file, for pprof */
	/* The innermost inlined function first; at least one. */
	const struct reporter_line *lines;
	size_t nlines;
};

/* Caches where a window stored a stack. All zero at first. */
struct reporter_memo {
	uint64_t window;
	void *stack;
};

struct reporter_trace {
	uint64_t time; /* CLOCK_BOOTTIME, ns */
	uint64_t value; /* in the unit of its event's value */
	/*
	 * Of an event that is 'apart': the trace is a sum of so many, and 'value' of
	 * them together; 0: a part of one that has not ended.
	 */
	uint64_t count;
	uint32_t event; /* index in reporter_opts.event_types */
	struct pm_image *image;
	uint32_t tid;
	uint32_t cpu;
	const char *thread; /* name of the thread at the time of the sample */
	/* Labels of a wait; NULL: it has none. */
	const char *reason, *syscall, *fd;
	/* Of the trace that the thread worked at: 16 and 8 bytes; NULL: none. */
	const uint8_t *trace_id, *span_id;
	uint8_t trace_flags; /* as in W3C's traceparent */
	const struct reporter_frame *frames; /* leaf first */
	size_t nframes;
	/*
	 * Owned by the caller; traces with the same memo must have the same
	 * frames, which are then read only once per window. May be NULL.
	 */
	struct reporter_memo *memo;
};

/* A pprof sample type; both NULL: none. No '-' in 'type': servers refuse it. */
struct reporter_sample_type {
	const char *type, *unit;
};

/* The frame of CPU time by the kernel's account, in the profile of waits. */
#define REPORTER_CPU_EXACT "[cpu]"
/* The frame in place of the stack of a wait that was not copied. */
#define REPORTER_WAIT_UNCOPIED "[wait site not copied]"

/* A kind of sample, and its sample types in profiles. */
struct reporter_event_type {
	const char *name; /* in metrics; [a-z_]+ */
	const char *label; /* in comments of profiles */
	bool periodic; /* the value 0 stands for 1/freq_hz, in nanoseconds */
	struct reporter_sample_type count; /* number of samples */
	struct reporter_sample_type value; /* sum of their values, or none */
	/* Sums, only in windows of such events; in the archive beside the others. */
	bool apart;
};

#define REPORTER_EVENTS_MAX 64

/* X(NAME, ending of file names) */
#define REPORTER_FORMATS(X) \
	X(RAW, ".pb")       \
	X(GZIP, ".pb.gz")   \
	X(ZSTD, ".pb.zst")

enum reporter_format {
#define X(name, ending) REPORTER_##name,
	REPORTER_FORMATS(X)
#undef X
};

/* What is kept of the archive; 0: no such limit. */
struct reporter_keep {
	uint64_t bytes; /* of all files */
	uint64_t age_s;
	/* Space on the disk that has to stay free; percent counts if both are set. */
	uint64_t free_bytes;
	unsigned int free_percent;
};

struct reporter_metrics;
struct reporter_health;

enum reporter_limit {
	REPORTER_LIMIT_CONNECTIONS,
	REPORTER_LIMIT_PROCESSES,
};

/*
 * Which arguments of processes the catalog of the archive has: they can be secrets.
 * X(NAME, word)
 */
#define REPORTER_ARGS(X) \
	X(FULL, full)    \
	X(FIRST, first)  \
	X(NONE, none)

enum reporter_args {
#define X(name, word) REPORTER_ARGS_##name,
	REPORTER_ARGS(X)
#undef X
};

struct reporter_opts {
	uv_loop_t *loop;
	struct pm *pm; /* for /processes and /executables */
	struct watch *watch; /* for /api/watch; NULL: it is forbidden */
	bool waits; /* traces of events that are 'apart' come */
	/* Likewise waits of this length, ns, one by one, for the archive; 0: none. */
	uint64_t wait_min;
	const char *hostname;
	const char *version;
	unsigned int freq_hz;
	/*
	 * 1 to REPORTER_EVENTS_MAX. A profile has the sample types of all events
	 * of its window, in this order; no two may be equal. Must outlive the
	 * reporter.
	 */
	const struct reporter_event_type *event_types;
	size_t nevent_types;
	/*
	 * Archive directory or NULL. Created if missing, locked while in use;
	 * temporary files of a killed profd are removed at the start.
	 */
	const char *archive;
	enum reporter_format archive_format;
	enum reporter_args archive_args;
	struct reporter_keep keep;
	/* Windows end when the wall clock is a multiple of it, in UTC. */
	unsigned int window_s;
	/* The callbacks below may be NULL. This one fills /metrics and /status. */
	void (*collect)(void *arg, struct reporter_metrics *m);
	/*
	 * This local user has reached a limit: a connection was closed or
	 * refused, or a process without samples gets no row in the catalog.
	 */
	void (*limited)(void *arg, uint32_t uid, enum reporter_limit what);
	/*
	 * A client connected or sent something. Called before the answer is
	 * made, to bring its data up to date.
	 */
	void (*refresh)(void *arg);
	/*
	 * The segments of a process from out->from to out->to, of one thread, or 0: of
	 * all; 'lives': it is recorded from now on, if it was not. A key without
	 * start_boottime: of the last one with that pid. 0, and out->segments passes to
	 * the callee; -ENOTSUP: without --wait; -E2BIG: too many processes are recorded;
	 * -ESRCH: it is not; or another -errno.
	 */
	int (*timeline)(void *arg, const struct abi_key *key, bool lives,
			uint32_t tid, struct reporter_timeline *out);
	/*
	 * Likewise the path of the thread out->tid, or 0: of the first one, from
	 * out->of.from to out->of.to. out->steps passes to the callee.
	 */
	int (*path)(void *arg, const struct abi_key *key, bool lives,
		    struct reporter_path *out);
	/* reporter_apart_edge() may have changed. */
	void (*edges)(void *arg);
	/* Adds reasons to /healthz by reporter_failing() and _degraded(). */
	void (*health)(void *arg, struct reporter_health *h);
	/*
	 * Names of causes of dropped samples, for the comments of profiles;
	 * reporter_losses() sets the counts. Must outlive the reporter.
	 */
	const char *const *loss_names;
	size_t nlosses;
	/*
	 * One more comment of each profile, read when the profile is written;
	 * "" is none. Must outlive the reporter; may be NULL.
	 */
	const char *note;
	/*
	 * A window of the archive was written or failed; 'path' is the
	 * directory if the file was not created.
	 */
	void (*written)(void *arg, const char *path, int err,
			uint64_t nsamples);
	void *arg;
};

/*
 * 0 or -errno; -EINVAL: opts->event_types; of an archive -EBUSY: locked by
 * another profd, -EPERM: the directory belongs to, or is writable by, another
 * user. On error '*where' is what failed (a static word or opts->archive).
 */
int reporter_new(struct reporter **rp, const struct reporter_opts *opts,
		 const char **where);
/* The process that writes to the archive 'dir'; 0: not known. After -EBUSY. */
pid_t reporter_archive_holder(const char *dir);
/*
 * Discards open windows (see reporter_finish()). No callbacks afterwards, and
 * the process manager may be freed; handles close when the loop runs next.
 */
void reporter_free(struct reporter *r);

/*
 * What clients over TCP may read. A file NULL: none. With a token they may read all,
 * as over a unix socket; without one live profiles of the host, metrics and health
 * only, and beyond loopback nothing.
 */
struct reporter_access {
	const char *token_file;
	const char *cert_file, *key_file; /* TLS, on all TCP listeners */
	/* Names of this host in Host headers, beside addresses and localhost. */
	const char *const *host_names;
	size_t nhost_names;
};

/*
 * Before reporter_listen(), at most once. 0; -errno, and '*where' is the file, '*why'
 * a text or NULL.
 */
int reporter_access(struct reporter *r, const struct reporter_access *access,
		    const char **where, const char **why);

/*
 * Adds a listener on "unix:PATH" or "HOST:PORT". -EINVAL: not an address;
 * -EPERM: beyond loopback, without TLS and token; -EBADMSG: the certificate or its
 * key cannot be used; -EADDRINUSE. A socket file on which nothing
 * listens is replaced.
 */
int reporter_listen(struct reporter *r, const char *address);

/* The first window begins at 'time'. Call before adding traces. */
void reporter_start(struct reporter *r, uint64_t time);
/* 0, -EINVAL: no such event, or -ENOMEM (counted in the profile's comments). */
int reporter_add(struct reporter *r, const struct reporter_trace *t);
/*
 * Adds a wait by itself to the archive's window of t->time: 't' is as of its sum, which was
 * added before. 0 or -ENOMEM.
 */
int reporter_add_wait(struct reporter *r, const struct reporter_trace *t,
		      const struct abi_segment *of);
/* So many did not come, of about this time. */
void reporter_lost_waits(struct reporter *r, uint64_t time, uint64_t n);
/*
 * Frames of this place that were added without a name get the one of 'f', which has one
 * line, in the windows of reporter_window_open().
 */
void reporter_rename(struct reporter *r, const struct reporter_frame *f);
/* The image has other names of a service now; so have its samples in open windows. */
void reporter_describe(struct reporter *r, const struct pm_image *img);
/* Adds a process event for /api/events; call in the order of time. 0 or -ENOMEM. */
int reporter_event(struct reporter *r, const struct quark_event *ev);
/*
 * Adds the "end" line of a process for /api/events, after all its events and traces.
 * To be called from pm_opts.ended. 0 or -ENOMEM.
 */
int reporter_ended(struct reporter *r, const struct pm_image *last);
/*
 * Sets the counts of opts.loss_names since the start. A profile's comments have
 * the differences between its begin and its end.
 */
void reporter_losses(struct reporter *r, const uint64_t *counts);
/* Sets the watermark: all traces before 'time' have been added. */
void reporter_advance(struct reporter *r, uint64_t time);
/*
 * The watermark that is awaited, CLOCK_BOOTTIME in ns: the earliest end of a
 * requested profile or rotation; 0 while clients follow events; UINT64_MAX: none.
 * The archive's windows may close a second late.
 */
uint64_t reporter_due(const struct reporter *r);
/*
 * Ends the archive's window at 'time' and begins the next. At most once a
 * second: a call within a second of the last rotation is delayed to its end.
 */
void reporter_rotate(struct reporter *r, uint64_t time);
/* While 'shed', new queries of the archive are refused, to be tried again. */
void reporter_shed(struct reporter *r, bool shed);
/*
 * Ends all windows at 'time', answers waiting clients with the profiles so far,
 * and calls 'done' when all is written. Nothing may be added afterwards.
 */
void reporter_finish(struct reporter *r, uint64_t time, void (*done)(void *arg),
		     void *arg);

/* The format by the ending of a file name, or -EINVAL. */
int reporter_format_of(const char *path);
/* ".pb" and so on. */
const char *reporter_ending(enum reporter_format format);

/*
 * Parses a list of labels of samples ("comm,unit"), "all" or "none". '*without' are
 * those that are not in it, for struct reporter_form. 0 or -EINVAL.
 */
int reporter_labels_parse(const char *text, uint32_t *without);
/* The labels with a value for each process: a server would make series of them. */
uint32_t reporter_labels_unique(void);

#define REPORTER_PREFIX_MAX 32

/* How a profile is written. All zero: in full. */
struct reporter_form {
	/* Labels left out, as by reporter_labels_parse(); equal samples are merged. */
	uint32_t without;
	/* Locations without a real name have no line: a server is to name them. */
	bool bare;
	bool drop_marks; /* stacks without frames that are no code */
	bool traces; /* labels trace_id and span_id */
	char prefix[REPORTER_PREFIX_MAX + 1]; /* of the keys of labels */
};

/*
 * A profile beside the archive's windows, from 'begin' to 'end' (UINT64_MAX:
 * until reporter_window_end()).
 */
struct reporter_window_opts {
	uint64_t begin, end;
	uint64_t edge; /* where it is likely to end, if 'end' is UINT64_MAX; or 0 */
	/*
	 * Bit i: includes event i; 0: all that are not 'apart'. Those and others cannot
	 * be in one window.
	 */
	uint64_t events;
	/*
	 * Of wall time, into memory: of all events that are not apart, and of those that
	 * are. 'events' is 0.
	 */
	bool wall;
	bool selected_only; /* only images marked by pm_select() */
	/* Only samples that the terms take, by their labels; taken over. */
	struct reporter_query_terms terms;
	struct reporter_form form;
	enum reporter_format format;
	const char *path; /* see outfile.h; NULL: into memory, for 'done' */
	/*
	 * Called once, when written; the window is freed afterwards. 'data', of
	 * a profile in memory, is malloc'd and passes to the callee.
	 */
	void (*done)(void *arg, int err, uint64_t nsamples, void *data,
		     size_t len);
	void *arg;
};
int reporter_window_open(struct reporter *r,
			 const struct reporter_window_opts *opts,
			 struct reporter_window **wp);
/*
 * Sets the end, which may be in the past: later samples are removed, exact to
 * 10 ms.
 */
void reporter_window_end(struct reporter *r, struct reporter_window *w,
			 uint64_t end);
/* The events that are 'apart', for reporter_window_opts; 0: there are none. */
uint64_t reporter_apart(const struct reporter *r);
/*
 * The earliest begin or end, after 'time', of a window of events that are apart;
 * UINT64_MAX: there is no such window. Sums have to be cut there: traces of before must
 * have been added when the watermark passes it.
 */
uint64_t reporter_apart_edge(const struct reporter *r, uint64_t time);
/*
 * The begin or end of such a window is to be ahead of the clock, so that the sums can be cut
 * there exactly: 'time' and a few ms, if traces of such events come.
 */
uint64_t reporter_apart_ahead(const struct reporter *r, uint64_t time);
/* The number of its samples so far. */
uint64_t reporter_window_samples(const struct reporter_window *w);

/*
 * A Prometheus metric: a counter, called "profd_..._total", or a gauge. 'labels'
 * is NULL or the inside of the braces (cpu="0"). Calls with the same name must
 * follow each other.
 */
void reporter_metric(struct reporter_metrics *m, const char *name,
		     const char *help, bool counter, const char *labels,
		     double value);
/* One line of /status: "key: value". */
void reporter_status(struct reporter_metrics *m, const char *key,
		     const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/*
 * A member of /status?format=json; 'group' is the object that contains it, NULL
 * the outermost. A group is a list of objects if reporter_member_row() begins
 * each of them.
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
 * A reason why profd fails (/healthz: 503) or works in part (200, "degraded:
 * ..."): one line, without end of line. From opts.health only.
 */
#define reporter_failing(h, ...) reporter_reason(h, true, __VA_ARGS__)
#define reporter_degraded(h, ...) reporter_reason(h, false, __VA_ARGS__)
void reporter_reason(struct reporter_health *h, bool failing, const char *fmt,
		     ...) __attribute__((format(printf, 3, 4)));

/* X(name, is a gauge, "help") */
#define REPORTER_STATS(X)                                               \
	X(traces, 0, "traces added")                                    \
	X(traces_nomem, 0, "traces dropped: out of memory")             \
	X(traces_late, 0, "traces added after their window closed")     \
	X(windows_written, 0, "windows written to the archive")         \
	X(windows_empty, 0, "windows without a sample, not written")    \
	X(windows_failed, 0, "windows that failed to be written")       \
	X(window_bytes, 0, "bytes written to the archive")              \
	X(samples_unwritten, 0, "samples of windows that failed")       \
	X(archive_windows, 1, "windows in the archive")                 \
	X(archive_bytes, 1, "bytes of the archive's files")             \
	X(archive_oldest_seconds, 1, "begin of the oldest window")      \
	X(archive_unexpected, 1, "foreign files in the archive")        \
	X(archive_stopped, 1, "1 if free space is too little")          \
	X(windows_removed, 0, "windows removed by retention")           \
	X(removed_bytes, 0, "bytes removed by retention")               \
	X(remove_errors, 0, "files that cannot be removed")             \
	X(times_failed, 0, "windows written without side file")         \
	X(waits_failed, 0, "windows written without their waits")       \
	X(swept, 0, "incomplete files of an earlier run removed")       \
	X(catalog_processes, 0, "rows of processes written")            \
	X(catalog_windows, 0, "windows added to the catalog")           \
	X(catalog_dropped, 0, "rows of processes dropped")              \
	X(catalog_skipped, 0, "processes without samples, no row")      \
	X(catalog_changes_skipped, 0, "changes and gaps without a row") \
	X(catalog_texts_skipped, 0, "names and arguments left out")     \
	X(catalog_failed, 0, "transactions that failed")                \
	X(catalog_set_aside, 0, "damaged catalogs replaced")            \
	X(catalog_rebuilt, 0, "windows added from their files")         \
	X(catalog_missing, 1, "windows to be added from their files")   \
	X(catalog_pending, 1, "bytes of rows to be written")            \
	X(catalog_bytes, 1, "bytes of the catalog")                     \
	X(catalog_wal_bytes, 1, "bytes of the catalog's log")           \
	X(catalog_stopped, 1, "1 if the catalog is not written")        \
	X(http_requests, 0, "HTTP requests")                            \
	X(http_errors, 0, "HTTP requests answered with an error")       \
	X(http_profiles, 0, "profiles answered over HTTP")              \
	X(http_evicted, 0, "connections closed: too many")              \
	X(http_refused, 0, "TLS connections refused: too many")         \
	X(http_slow, 0, "connections closed: no request in time")       \
	X(http_waiting, 1, "clients waiting for a profile")             \
	X(http_followers, 1, "clients following events")                \
	X(memory_bytes, 1, "bytes of memory of open windows")

struct reporter_stats {
#define X(name, gauge, help) uint64_t name;
	REPORTER_STATS(X)
#undef X
};

void reporter_get_stats(const struct reporter *r, struct reporter_stats *out);

#endif /* REPORTER_REPORTER_H */
