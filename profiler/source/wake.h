/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wake: calls back when a ring has something to be read before its time. Where
 * that fails it falls silent, for the timer reads all rings anyway.
 */
#ifndef PROFILER_WAKE_H
#define PROFILER_WAKE_H

#include <stdbool.h>
#include <uv.h>

struct wake {
	uv_poll_t poll;
	const char *what; /* static; of which it is, for the log */
	void (*readable)(void *arg);
	void *arg;
	bool open; /* and not closing */
};

/*
 * 0 or -errno. The descriptor is the caller's, and must outlive it. 'poll.data' is
 * the wake.
 */
int wake_start(struct wake *w, uv_loop_t *loop, int fd);
/* If it is open; its memory is needed until 'closed'. */
void wake_close(struct wake *w, uv_close_cb closed);

#endif /* PROFILER_WAKE_H */
