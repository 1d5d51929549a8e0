/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lanes: the long waits of a time of the archive, by thread, as segments for a path
 * (reporter/ledger/why.h). Between two of them the thread ran, was runnable, or waited for
 * less than the shortest wait that the archive has: that is a segment, too. Times are
 * CLOCK_BOOTTIME in ns, but for those of the archive's names.
 */
#ifndef REPORTER_REQUEST_LANES_H
#define REPORTER_REQUEST_LANES_H

#include "base/base.h"
#include "reporter/ledger/why.h"
#include "reporter/query/query.h"
#include "reporter/store/store.h"
#include "reporter/store/times_file.h"

#define LANES_BYTES \
	((size_t)64 << 20) /* of waits, at most; as much for sorting */

struct lanes_wait {
	uint64_t begin, end;
	uint64_t exec, waker_exec; /* of their images */
	uint32_t lane, waker; /* indices; no waker: NONE */
	uint32_t what, sample; /* as in struct store_times_wait */
	uint32_t window; /* index */
	uint8_t kind;
	bool open;
	struct reporter_segment *segment; /* once it was asked for */
};

/* A thread. */
struct lane {
	struct hash_node node;
	struct abi_key key; /* without exec_id */
	uint32_t tid, index;
	size_t first, n; /* its waits */
	uint64_t exec; /* of its last image */
	char name[ABI_COMM_LEN];
};

/* Time of which all is there. */
struct lanes_run {
	uint64_t begin, end;
};

struct lanes {
	int dirfd; /* of the archive */
	uint64_t from, to; /* of the span */
	int64_t wall; /* from CLOCK_BOOTTIME to wall time */
	uint8_t boot_id[STORE_BOOT_ID];
	struct store_window *windows; /* that were read, by time */
	size_t nwindows, cap_windows;
	struct lanes_run *runs; /* in order */
	size_t nruns, cap_runs;
	struct lanes_wait *waits; /* at the end by lane and time */
	size_t n, cap;
	struct lane **lanes; /* by index; in the arena */
	size_t nlanes, cap_lanes;
	struct hash by_thread;
	struct arena arena;
	uint64_t min; /* the shortest wait, of any user and window */
	uint64_t unrecorded; /* waits that are missing */
	size_t without; /* windows without waits */
	size_t damaged; /* windows whose waits cannot be read */
};

/*
 * Reads what the windows of a span have, and the next one: what waits at its end is in that.
 * The span is of wall time. 0; -ENODATA: no window of that time has waits; -EFBIG: they are
 * too many; -ECANCELED by go_on(); or another -errno. lanes_fini() is due either way.
 */
int lanes_read(struct lanes *l, const char *archive,
	       const struct reporter_query_span *span, bool (*go_on)(void *arg),
	       void *arg);
void lanes_fini(struct lanes *l);
/*
 * The key of the process with that pid, and time if it has one, that is known, and of several
 * the last one. False: there is none.
 */
bool lanes_process(const struct lanes *l, struct abi_key *key);
/* Whether anything is known of a thread. */
bool lanes_knows(const struct lanes *l, const struct abi_key *key,
		 uint32_t tid);
/* Of struct why_opts; 'arg' is the lanes. */
const struct reporter_segment *lanes_find(void *arg, const struct abi_key *key,
					  uint32_t tid, uint64_t time,
					  uint64_t *until);

/* The stack of a wait is that of a sample of a window: both are in its site's number. */
static inline uint32_t lanes_site_window(uint64_t site)
{
	return (uint32_t)((site - ABI_WAIT_SITE_LEAST) >> 32);
}

static inline uint32_t lanes_site_sample(uint64_t site)
{
	return (uint32_t)(site - ABI_WAIT_SITE_LEAST);
}

#endif /* REPORTER_REQUEST_LANES_H */
