/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ksyms: kernel text that comes and goes while profd runs, BPF programs above all, by
 * the records of its loading and unloading. Addresses are used again, so a name
 * belongs to an address and a time. What was there before is in kallsyms, until its
 * unloading is recorded here.
 *
 * Records come in the order of time; samples may be older than the last ones, because
 * they waited.
 */
#ifndef TRACEHANDLER_KSYMS_H
#define TRACEHANDLER_KSYMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TRACE_KSYMS_CHANGES 256 /* the last ones are kept */

struct trace_ksym {
	uint64_t start, end;
	uint64_t from, until; /* loaded in [from, until) */
	char name[]; /* "": not known */
};

struct trace_ksym_change {
	uint64_t start, end, time;
	struct trace_ksym *gone; /* what was unloaded; NULL: a loading */
};

struct trace_ksyms {
	struct trace_ksym **live; /* ascending, without overlap */
	size_t n, cap;
	/* Change number i is at i % TRACE_KSYMS_CHANGES. */
	struct trace_ksym_change changes[TRACE_KSYMS_CHANGES];
	uint64_t seq; /* number of changes */
	uint64_t changed; /* time of the last one */
};

void trace_ksyms_fini(struct trace_ksyms *ks);
/*
 * [start, end) was loaded; or unloaded, also if its loading was not recorded. True:
 * kallsyms as read before may now be wrong where trace_ksyms_find() says UNKNOWN.
 */
bool trace_ksyms_load(struct trace_ksyms *ks, uint64_t time, uint64_t start,
		      uint64_t end, const char *name);
bool trace_ksyms_unload(struct trace_ksyms *ks, uint64_t time, uint64_t start,
			uint64_t end, const char *name);
/* Records are missing: all is forgotten. The same result. */
bool trace_ksyms_lost(struct trace_ksyms *ks, uint64_t time);

/* Whether the text at 'addr' has changed since there were 'seq' changes. */
bool trace_ksyms_changed(const struct trace_ksyms *ks, uint64_t seq,
			 uint64_t addr);
/* The same since a time. */
bool trace_ksyms_later(const struct trace_ksyms *ks, uint64_t time,
		       uint64_t addr);

enum trace_ksyms_state {
	TRACE_KSYMS_UNKNOWN, /* not recorded: kallsyms has it, if anything */
	TRACE_KSYMS_KNOWN,
	TRACE_KSYMS_GONE, /* unloaded, and nothing known in its place */
};

/* What was at 'addr' at 'time'; KNOWN sets *out, valid until the next record. */
enum trace_ksyms_state trace_ksyms_find(const struct trace_ksyms *ks,
					uint64_t addr, uint64_t time,
					const struct trace_ksym **out);

#endif /* TRACEHANDLER_KSYMS_H */
