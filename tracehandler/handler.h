/* SPDX-License-Identifier: Apache-2.0 */
/* handler: what the part's own files share; see tracehandler/tracehandler.h. */
#ifndef TRACEHANDLER_HANDLER_H
#define TRACEHANDLER_HANDLER_H

#include "tracehandler/cache.h"
#include "tracehandler/record.h"
#include "tracehandler/unwind/tables.h"
#include "tracehandler/tracehandler.h"
#include "tracehandler/unwind/walk.h"

/*
 * A sample that waits: as trace, for names ('frames'); as raw record, for the
 * exec event of its image or for unwind rows. In the list in the order of
 * sample times.
 */
struct trace_wait {
	struct trace_wait *prev, *next;
	struct abi_sample head;
	uint64_t deadline; /* 0: counts from the next tick */
	struct pm_image *image;
	struct pm_view *view; /* raw: what was mapped; NULL: as of now */
	struct trace_table *table; /* raw: to be settled; NULL: the image */
	uint8_t *raw; /* in the handler's vault; NULL: a trace */
	size_t len; /* of it, or of the frames, in bytes */
	size_t nframes;
	size_t nknown; /* frames up to here need nothing more */
	struct trace_frame *frames[];
};

struct trace_handler {
	struct trace_opts opts;
	struct trace_cache cache;
	struct trace_tables tables;
	struct trace_rules rules;
	struct vault *vault; /* of raw records that wait */
	struct hash asks; /* struct trace_ask, by exe */
	struct trace_wait *head, *tail;
	uint64_t deadline; /* of waits that begin now; 0: the usual */
	struct trace_stats stats;
	/* One trace being made. */
	uint64_t *pcs;
	struct trace_frame **frames;
	struct reporter_frame *out;
	size_t nframes;
};

/* What is taken from a sample, and what was mapped then. */
struct trace_take {
	const struct trace_record *rec;
	struct pm_image *image;
	struct pm_view *view; /* NULL: as of now */
	bool hurry; /* go without tables that are not there */
	struct trace_table *late; /* out: the one it has to wait for */
};

/* --- handler.c ----------------------------------------------------------- */

/*
 * A sample whose image is known: a trace, handed on or made to wait for its
 * names. -EAGAIN: it has to wait for a table.
 */
int trace_take(struct trace_handler *th, struct trace_take *take);
/* Hands a trace on, and gives the frames' references back. */
void trace_deliver(struct trace_handler *th, const struct abi_sample *head,
		   struct pm_image *image, struct trace_frame **frames,
		   size_t n);
/*
 * One more frame of the trace being made, code: a name is asked for, unless
 * there can be none. 0 or -ENOMEM.
 */
int trace_push_code(struct trace_handler *th, struct pm_exe *exe,
		    enum pm_exe_kind kind, uint64_t offset);
/*
 * Something said in place of code. 'key' tells it from all others; the text is
 * made once. 0 or -ENOMEM.
 */
int trace_push_mark(struct trace_handler *th, uint64_t key, uint64_t addr,
		    const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* --- stack.c ------------------------------------------------------------- */

struct trace_place {
	struct pm_mapping map;
	enum pm_exe_kind kind;
};

/* A stack being unwound, and then given its frames. */
struct trace_user {
	struct trace_handler *th;
	struct trace_take *take;
	struct trace_place places[4]; /* looked up last */
	struct trace_place *at; /* the last of them */
	unsigned int next; /* to be replaced */
	bool late; /* went without a table */
	size_t n; /* addresses in th->pcs */
	enum trace_end why;
};

/* The walk: 0, or -EAGAIN with take->late. */
int trace_user_walk(struct trace_user *u, struct trace_handler *th,
		    struct trace_take *take);
/* Its frames, and the one that says why it ended. 0 or -ENOMEM. */
int trace_user_push(struct trace_user *u);

/* --- wait.c -------------------------------------------------------------- */

/* Takes over the references of the n frames in th->frames. 0 or -ENOMEM. */
int trace_wait_names(struct trace_handler *th, const struct abi_sample *head,
		     struct pm_image *image);
/* 'late': for that table, with what is mapped now; NULL: for its image. */
int trace_wait_raw(struct trace_handler *th, const struct trace_record *rec,
		   const void *buf, struct pm_image *image,
		   struct trace_table *late);
/* Hands on what has all it waited for, or whose time is over. */
void trace_wait_check(struct trace_handler *th, uint64_t now);
void trace_wait_drop(struct trace_handler *th);
/* Hands on the oldest until no more than 'bytes' wait. */
void trace_wait_limit(struct trace_handler *th, size_t bytes);

/* --- names.c ------------------------------------------------------------- */

/* Asks for a frame's name with the next request for its exe. 0 or -ENOMEM. */
int trace_names_want(struct trace_handler *th, struct trace_frame *f);
/* Sends off what was held back. */
void trace_names_send(struct trace_handler *th);
/* Lets go of all frames; answers still owed will find nobody. */
void trace_names_drop(struct trace_handler *th);
/* What a frame is called without a name; f->plain is set, or NULL. */
void trace_names_plain(struct trace_frame *f);

#endif /* TRACEHANDLER_HANDLER_H */
