/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tables: the unwind rows of executables, one table each for all processes.
 * Requested when first needed, read-only, and under a byte budget: the least
 * recently used table is evicted, and requested again when needed.
 *
 * The code in executable memory changes. Its table is that of a time, and replaced when
 * a sample needs one of another time, or after the file that it comes from grew.
 */
#ifndef TRACEHANDLER_TABLES_H
#define TRACEHANDLER_TABLES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/base.h"
#include "tracehandler/unwind/rules.h"
#include "tracehandler/wait.h"

enum trace_table_state {
	TRACE_TABLE_ASKED,
	TRACE_TABLE_HERE,
	TRACE_TABLE_NONE, /* the file has none, or it could not be read */
	TRACE_TABLE_GONE, /* evicted; a sample that waits requests it again */
};

struct trace_tables;

/* Refcounted: a sample that waits for a table sees that it is GONE. */
struct trace_table {
	struct hash_node node;
	TAILQ_ENTRY(trace_table) link; /* by use, while it is not ASKED */
	struct trace_tables *owner; /* NULL: the answer is not needed */
	struct pm_exe *exe; /* a reference */
	struct symbolizer_rows *rows; /* HERE */
	bool by_code; /* as in struct symbolizer_rows_info */
	size_t bytes;
	enum trace_table_state state;
	int err; /* NONE: why; 0: the table is too large */
	unsigned int refs;
	bool wanted; /* ASKED: samples wait for it */
	uint64_t retry; /* NONE: not before that time; UINT64_MAX: never */
	/* Of executable memory: */
	bool code;
	uint32_t version; /* of its file, see pm_exe_code() */
	uint64_t time; /* of the sample that it was requested for */
	uint64_t from, until; /* times of samples that it is right for */
};

struct trace_tables {
	struct hash tables;
	TAILQ_HEAD(, trace_table) list; /* least recently used first */
	size_t max_bytes; /* a table that needs more is refused */
	size_t room; /* of all now, at most max_bytes */
	size_t wanted; /* tables that samples wait for */
	uint64_t now;
	struct trace_waits *waits; /* checked after each answer */
	struct trace_stats *stats; /* tables_* */
	struct trace_rules *rules; /* cached from the tables */
};

/* 0 or -ENOMEM. */
int trace_tables_init(struct trace_tables *t, size_t max_bytes,
		      struct trace_waits *waits, struct trace_rules *rules);
/* Outstanding requests are completed later, without effect. */
void trace_tables_fini(struct trace_tables *t);

/* Sets the bytes of all tables, and evicts what is above that. */
void trace_tables_room(struct trace_tables *t, size_t room);

/* The table of a file or the vDSO, borrowed; requested if needed. NULL: no memory. */
struct trace_table *trace_tables_get(struct trace_tables *t,
				     struct pm_exe *exe);
/*
 * The same for executable memory (PM_EXE_ANON) whose code has this version at 'time',
 * that of a sample. A table that is still being read may be one of another time.
 */
struct trace_table *trace_tables_code(struct trace_tables *t,
				      struct pm_exe *exe, uint32_t version,
				      uint64_t time);
/* Returns 'table' with a reference, for a sample that waits for it. */
struct trace_table *trace_tables_want(struct trace_tables *t,
				      struct trace_table *table);
void trace_table_put(struct trace_table *table); /* NULL is allowed */

#endif /* TRACEHANDLER_TABLES_H */
