/* SPDX-License-Identifier: Apache-2.0 */
/*
 * perfsource_ids: who a pid is. Perf records know pids and times; this makes
 * keys of them, and lifecycle events as libquark would give them. What it is
 * fed comes in the order of kernel time, so it is a pure function of that.
 *
 * The key: pid, time of the FORK record (of a process that was there before, its
 * start time as /proc has it, in clock ticks), and the number of execs seen, a
 * child's beginning with its parent's.
 */
#ifndef PROFILER_PERFSOURCE_IDS_H
#define PROFILER_PERFSOURCE_IDS_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/abi.h"
#include "processmanager/processmanager.h"
#include "profiler/source/perfsource_proc.h"

struct perfids;

struct perfids_opts {
	void (*event)(void *arg, const struct quark_event *ev);
	/* It was there before; all that is known of it. */
	void (*process)(void *arg, const struct quark_process *qp,
			uint64_t time);
	/* Nobody told of it; what /proc has is wanted, as PERFIDS_READ. */
	void (*want)(void *arg, uint32_t pid);
	void *arg;
};

int perfids_new(struct perfids **pp, const struct perfids_opts *opts);
void perfids_free(struct perfids *p);

enum perfids_kind {
	PERFIDS_FORK,
	PERFIDS_EXEC,
	PERFIDS_COMM,
	PERFIDS_EXIT,
	PERFIDS_GONE, /* of all its threads: seen in /proc, not told */
	PERFIDS_SCAN, /* 'proc' was there when it all began */
	PERFIDS_READ, /* 'proc', as read by this time */
};

struct perfids_record {
	enum perfids_kind kind;
	uint32_t pid, tid;
	uint32_t ppid, ptid; /* FORK */
	uint64_t time;
	char comm[ABI_COMM_LEN]; /* EXEC, COMM */
	const struct perfsource_process *proc; /* WALK, READ; borrowed */
};

/* 0 or -ENOMEM. */
int perfids_feed(struct perfids *p, const struct perfids_record *r);
/* To be told after the process manager was. */
void perfids_mapped(struct perfids *p, const struct pm_map_event *ev);
/*
 * Puts in what the sample lacks. A sample inside execve loses its user side.
 * 0 or -ENOMEM.
 */
int perfids_sample(struct perfids *p, struct abi_sample *s);

/* Calls 'fn' for every process that lives. */
void perfids_living(struct perfids *p, void (*fn)(void *arg, uint32_t pid),
		    void *arg);

#endif /* PROFILER_PERFSOURCE_IDS_H */
