/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mapsreader: a separate process that reads /proc/PID/maps for profd. Such a
 * reading waits for locks of the watched process: mmap_lock, and
 * exec_update_lock, under which execve closes files that may be on a file
 * system that never answers. A process can be killed there; a thread of profd
 * cannot.
 *
 * The first request starts it; it ends after 5 s without one. It has one batch
 * at a time. All times are CLOCK_BOOTTIME in ns. Loop's thread only.
 */
#ifndef PROFILER_MAPSREADER_H
#define PROFILER_MAPSREADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "processmanager/processmanager.h"

#define MAPSREADER_COMMAND "maps-reader"
#define MAPSREADER_BATCH 64
/* Limit of one process: 65,530 mappings, and 8 MiB of paths. */
#define MAPSREADER_BYTES ((size_t)16 << 20)

struct mapsreader;

struct mapsreader_result {
	/*
	 * 0 or -errno: -EAGAIN: not its turn; -ETIMEDOUT: abandoned; -EIO: the
	 * reader ended; -E2BIG: more than MAPSREADER_BYTES.
	 */
	int err;
	bool waited; /* for a lock, not only for a CPU */
	uint64_t cpu_ns, wall_ns;
};

/*
 * Once for each process of a batch, in order. The callee takes over the
 * contents of 'm', which is empty with an error. After the last one the reader
 * is idle.
 */
typedef void (*mapsreader_fn)(void *arg, size_t i,
			      const struct mapsreader_result *r,
			      struct pm_maps *m);

/* NULL: no memory. No process is started yet. */
struct mapsreader *mapsreader_new(uv_loop_t *loop, mapsreader_fn fn, void *arg);
/*
 * Without answers for the batch under way. Waits 100 ms at most for the end of
 * the process. The loop must run once more afterwards.
 */
void mapsreader_free(struct mapsreader *r);

/*
 * Reads 'n' <= MAPSREADER_BATCH processes, but begins no further one after
 * 'slice_ns', and abandons one that waits for longer than 'patience_ns'. 0,
 * -EBUSY, or -errno: the reader could not be started.
 */
int mapsreader_ask(struct mapsreader *r, const uint32_t *tgids, size_t n,
		   uint64_t slice_ns, uint64_t patience_ns);
bool mapsreader_busy(const struct mapsreader *r);
/* Without the loop: waits 'ms' at most for an answer. */
void mapsreader_wait(struct mapsreader *r, int ms);
/* Abandons a reading that takes too long, and reaps; at least every 100 ms. */
void mapsreader_check(struct mapsreader *r, uint64_t now);
/*
 * The next answer is not older than this; UINT64_MAX: there is none, or it has
 * taken 50 ms and waits for a lock, so that others should not wait for it.
 */
uint64_t mapsreader_since(const struct mapsreader *r, uint64_t now);

/* For main(): whether argv[1] is MAPSREADER_COMMAND, and the reader itself. */
bool mapsreader_wanted(int argc, char **argv);
int mapsreader_main(void);

#endif /* PROFILER_MAPSREADER_H */
