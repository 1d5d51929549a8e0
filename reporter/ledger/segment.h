/* SPDX-License-Identifier: Apache-2.0 */
/*
 * segment: what the threads of a process did one after the other (bpf/abi_wait.h), as
 * JSON lines for /api/process/ID/timeline. The times of a thread adjoin, unless something
 * in between was lost.
 */
#ifndef REPORTER_LEDGER_SEGMENT_H
#define REPORTER_LEDGER_SEGMENT_H

#include "bpf/abi_wait.h"
#include "base/strbuf.h"
#include "processmanager/processmanager.h"

struct reporter_segment {
	/* Whole: cuts are joined. OPEN: it has not ended. */
	struct abi_segment of;
	uint64_t latency; /* of a wait: how long it then was in the run queue, ns */
	/*
	 * Of an archive of long waits: it lies between two, and what it was is not known; and
	 * the name of the thread that woke it, not terminated.
	 */
	bool between;
	char waker[ABI_COMM_LEN];
};

/* The recorded segments of a process, of some time. Times are CLOCK_BOOTTIME, ns. */
struct reporter_timeline {
	struct abi_key key; /* exec_id is 0 */
	uint64_t since; /* it is recorded since then */
	bool begun; /* by this request */
	uint64_t from, to; /* of the time that was asked for */
	/* Records that are missing, since it is recorded: */
	uint64_t lost_rate; /* it made too many in a short time */
	uint64_t lost_ring; /* those of all processes were too many */
	uint64_t lost_memory; /* the oldest, for want of room */
	struct reporter_segment *segments; /* by begin; malloc'd */
	size_t n;
};

struct line;
/* The members of the first line, but their number. */
void ledger_put_timeline(struct line *l, const struct reporter_timeline *t);
/*
 * The members of a segment; not 'what': of its time and thread only. 'pm' NULL: it is of the
 * archive.
 */
void ledger_put_segment(struct line *l, const struct reporter_segment *s,
			struct pm *pm, bool what);
/* Appends the first line: which process, since when, and what is missing. */
void ledger_timeline(const struct reporter_timeline *t, struct strbuf *sb);
/* Appends the line of a segment. 'wall' is line_wall()'s. */
void ledger_segment(const struct reporter_segment *s, struct pm *pm,
		    int64_t wall, struct strbuf *sb);

#endif /* REPORTER_LEDGER_SEGMENT_H */
