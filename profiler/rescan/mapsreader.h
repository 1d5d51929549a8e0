/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mapsreader: a process of its own that reads /proc/PID/maps for profd. Such a
 * reading waits for locks that the watched process holds (mmap_lock, and
 * exec_update_lock, under which execve closes files, which may be on a file system
 * that never answers). A process can be killed there; a thread of profd cannot.
 *
 * It is started by the first request and ended when it had none for 5 s. It works at
 * one batch at a time. All times are CLOCK_BOOTTIME in ns. To be used by the
 * loop's thread only.
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
/* What is kept of one process: 65,530 mappings, and 8 MiB of paths. */
#define MAPSREADER_BYTES ((size_t)16 << 20)
/* A reading that waited, and took longer, was slow. */
#define MAPSREADER_SLOW_NS (20 * 1000000ULL)

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
 * Once for each of a batch, in order. The callee takes over what is in 'm', which
 * is empty with an error. After the last one the reader is idle.
 */
typedef void (*mapsreader_fn)(void *arg, size_t i,
			      const struct mapsreader_result *r,
			      struct pm_maps *m);

/* NULL: no memory. No process is started yet. */
struct mapsreader *mapsreader_new(uv_loop_t *loop, mapsreader_fn fn, void *arg);
/*
 * What is under way is not told. Waits 100 ms at most for the process. The loop must
 * turn once more afterwards.
 */
void mapsreader_free(struct mapsreader *r);

/*
 * Reads those, 'n' <= MAPSREADER_BATCH, but begins no other when it has taken
 * 'slice_ns'; abandons one that waits for longer than 'patience_ns'. 0, -EBUSY, or
 * -errno: no process could be started.
 */
int mapsreader_ask(struct mapsreader *r, const uint32_t *tgids, size_t n,
		   uint64_t slice_ns, uint64_t patience_ns);
bool mapsreader_busy(const struct mapsreader *r);
/* Without the loop: until something was read, or for 'ms'. */
void mapsreader_wait(struct mapsreader *r, int ms);
/* Abandons what takes too long, and reaps. To be called at least every 100 ms. */
void mapsreader_check(struct mapsreader *r, uint64_t now);
/*
 * The reading under way, or the next answer, is not older than this; UINT64_MAX:
 * there is none, or it is not worth waiting for: it took 50 ms, and waits for a lock.
 */
uint64_t mapsreader_since(const struct mapsreader *r, uint64_t now);
/* Of the process, or 0: none runs. */
int mapsreader_pid(const struct mapsreader *r);

/* What main() does when argv[1] is MAPSREADER_COMMAND. */
bool mapsreader_wanted(int argc, char **argv);
int mapsreader_main(void);

#endif /* PROFILER_MAPSREADER_H */
