/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watching: the program's watch (processmanager/watch) on the loop: hooks are loaded and
 * attached on a pool thread, and the ring is read at each drain.
 */
#ifndef PROFILER_WATCHING_H
#define PROFILER_WATCHING_H

#include <stdbool.h>
#include <uv.h>

#include "processmanager/watch/watch.h"

struct watching {
	struct watch *watch; /* NULL: it is forbidden */
	uv_loop_t *loop;
	uv_work_t work;
	bool working; /* 'work' is queued or runs */
	int (*follow)(void *arg, uint32_t pid, bool begins);
	void *arg; /* of 'follow' */
};

/* 0 or -ENOMEM. Loads nothing. 'follow' is that of watch_opts, with its 'arg'. */
int watching_init(struct watching *w, uv_loop_t *loop,
		  int (*follow)(void *arg, uint32_t pid, bool begins),
		  void *arg);
/* Reads what has come. */
void watching_read(struct watching *w);
/*
 * For how long processes that ended have to be known, for the last events of theirs; ns.
 */
uint64_t watching_keeps(const struct watching *w);
/* Waits for the thread; without subscribers. */
void watching_fini(struct watching *w);

#endif /* PROFILER_WATCHING_H */
