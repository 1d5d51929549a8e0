/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tables: the unwind rows of executables, once each, for all processes. Asked
 * for when first needed, read only, and under a byte budget: what was used
 * longest ago goes, and comes again when needed.
 */
#ifndef TRACEHANDLER_TABLES_H
#define TRACEHANDLER_TABLES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/base.h"
#include "tracehandler/unwind/rules.h"
#include "tracehandler/tracehandler.h"

enum trace_table_state {
	TRACE_TABLE_ASKED,
	TRACE_TABLE_HERE,
	TRACE_TABLE_NONE, /* it has none, or they cannot be had */
	TRACE_TABLE_GONE, /* put out; whoever still waits asks anew */
};

struct trace_tables;

/* Refcounted, so that one who waits for it need not be told it went. */
struct trace_table {
	struct hash_node node;
	TAILQ_ENTRY(trace_table) link; /* by use, while it is not ASKED */
	struct trace_tables *owner; /* NULL: nobody wants the answer any more */
	struct pm_exe *exe; /* a reference */
	struct symbolizer_rows *rows; /* HERE */
	size_t bytes;
	enum trace_table_state state;
	int err; /* NONE: why; 0: the table is too large */
	unsigned int refs;
	bool wanted; /* ASKED: samples wait for it */
	uint64_t retry; /* NONE: not before that time; UINT64_MAX: never */
};

struct trace_tables {
	struct hash tables;
	TAILQ_HEAD(, trace_table) list; /* by use, oldest first */
	size_t max_bytes, max_entries;
	size_t wanted; /* how many are */
	uint64_t now;
	/* A table came, or will not come. */
	void (*settled)(void *arg);
	void *arg;
	struct trace_stats *stats; /* tables_* of it */
	struct trace_rules *rules; /* made from them */
};

/* 0 or -ENOMEM. */
int trace_tables_init(struct trace_tables *t, size_t max_bytes,
		      struct trace_stats *stats, struct trace_rules *rules,
		      void (*settled)(void *arg), void *arg);
/* Answers still owed will find nobody. */
void trace_tables_fini(struct trace_tables *t);

/* Files and the vDSO may have rows, nothing else. */
static inline bool trace_tables_may(const struct pm_exe *exe)
{
	struct pm_exe_info info;

	pm_exe_info(exe, &info);
	return info.kind == PM_EXE_FILE || info.kind == PM_EXE_VDSO;
}

/* That of such an exe, borrowed; asked for if need be. NULL: no memory. */
struct trace_table *trace_tables_get(struct trace_tables *t,
				     struct pm_exe *exe);
/* A sample waits for it from now on. */
void trace_tables_want(struct trace_tables *t, struct trace_table *table);
void trace_table_ref(struct trace_table *table);
void trace_table_put(struct trace_table *table); /* NULL is fine */

#endif /* TRACEHANDLER_TABLES_H */
