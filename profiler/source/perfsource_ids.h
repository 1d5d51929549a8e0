/* SPDX-License-Identifier: Apache-2.0 */
/*
 * perfsource_ids: maps pids to processes. Perf records have pids and times;
 * this turns them into keys, and makes lifecycle events as libquark does. Its
 * input comes in the order of kernel time, and its output is a pure function of
 * that.
 *
 * The key: pid; time of the FORK record (of a process that ran before profd,
 * its start time by /proc, in clock ticks); and the number of execs seen, which
 * a child inherits.
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
	void (*event)(void *event_arg, const struct quark_event *ev);
	void *event_arg;
	/* A process that ran before, with what is known of it. */
	void (*process)(void *arg, const struct quark_process *qp,
			uint64_t time);
	/* A process without a FORK: read it from /proc, for PERFIDS_READ. */
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
	PERFIDS_GONE, /* the process is not in /proc any more */
	PERFIDS_SCAN, /* 'proc' ran when profd began */
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
/* After the process manager had the event. */
void perfids_mapped(struct perfids *p, const struct pm_map_event *ev);
/* Completes the sample; one inside execve loses its user side. 0 or -ENOMEM. */
int perfids_sample(struct perfids *p, struct abi_sample *s);

/* Calls 'fn' for every process that did not exit. */
void perfids_living(struct perfids *p, void (*fn)(void *arg, uint32_t pid),
		    void *arg);

#endif /* PROFILER_PERFSOURCE_IDS_H */
