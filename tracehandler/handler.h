/* SPDX-License-Identifier: Apache-2.0 */
/* handler: what the part's own files share; see tracehandler/tracehandler.h. */
#ifndef TRACEHANDLER_HANDLER_H
#define TRACEHANDLER_HANDLER_H

#include "tracehandler/cache.h"
#include "tracehandler/record.h"
#include "tracehandler/tracehandler.h"

/*
 * A trace that waits: for names ('frames'), or, as raw record, for the exec
 * event of its image. In the list in the order of sample times.
 */
struct trace_wait {
	struct trace_wait *prev, *next;
	struct abi_sample head;
	uint64_t deadline; /* 0: counts from the next tick */
	struct pm_image *image;
	size_t nframes; /* 0: a raw record */
	size_t nknown; /* frames up to here need nothing more */
	size_t len; /* of 'data', in bytes */
	union {
		struct trace_frame *frames[0];
		uint8_t raw[0];
	} data;
};

struct trace_handler {
	struct trace_opts opts;
	struct trace_cache cache;
	struct hash asks; /* struct trace_ask, by exe */
	struct trace_wait *head, *tail;
	size_t wait_bytes;
	uint64_t deadline; /* of waits that begin now; 0: the usual */
	struct trace_stats stats;
	/* One trace being made. */
	uint64_t *pcs;
	struct trace_frame **frames;
	struct reporter_frame *out;
	size_t nframes;
};

/* --- handler.c ----------------------------------------------------------- */

/* A sample whose image is known: a trace, handed on or made to wait. */
int trace_take(struct trace_handler *th, const struct trace_record *rec,
	       struct pm_image *image);
/* Hands a trace on, and gives the frames' references back. */
void trace_deliver(struct trace_handler *th, const struct abi_sample *head,
		   struct pm_image *image, struct trace_frame **frames,
		   size_t n);

/* --- wait.c -------------------------------------------------------------- */

/* Takes over the references of the n frames in th->frames. 0 or -ENOMEM. */
int trace_wait_names(struct trace_handler *th, const struct abi_sample *head,
		     struct pm_image *image);
int trace_wait_image(struct trace_handler *th, const struct trace_record *rec,
		     const void *buf, struct pm_image *image);
/* Hands on what has all it waited for, or whose time is over. */
void trace_wait_check(struct trace_handler *th, uint64_t now);
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
