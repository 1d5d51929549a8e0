/* SPDX-License-Identifier: Apache-2.0 */
/*
 * drain: decides when the engine's source is drained. A timer does it ten times
 * a second while something depends on the records of the next second, else once
 * a second; and between two ticks a ring of the source that is filling up
 * (struct source_poll).
 */
#ifndef PROFILER_DRAIN_H
#define PROFILER_DRAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "profiler/source/source.h"

/* Between two drains, while something depends on it. */
#define DRAIN_OFTEN_MS 100

struct drain {
	uv_loop_t *loop;
	uv_timer_t timer;
	struct drain_wake {
		uv_poll_t poll;
		struct source_poll from;
	} wakes[SOURCE_POLLS_MAX + 1];
	size_t nwakes;
	void *state; /* the source's */
	void (*tick)(void *arg); /* drains, and all else that is due */
	uint64_t (*now)(void *arg); /* drains only; as source_opts.drain */
	/* Something depends on the records of the next second. */
	bool (*busy)(void *arg, uint64_t now);
	void *arg;
	/* CLOCK_BOOTTIME, ns: 100 times a second; ten times; last drain */
	uint64_t fast_until, often_until, drained;
	bool soon; /* the timer runs early */
	unsigned int handles; /* of libuv that are open, the timer first */
};

/*
 * Drains from here on, quickly at first. 'begin': when sampling began. The
 * caller has set 'loop', 'tick', 'now', 'busy' and 'arg'. 0 or -errno; then
 * drain_close() is due as well.
 */
int drain_start(struct drain *d, uint64_t begin,
		const struct source_run *source);
/*
 * After drain_start(): one more descriptor, for which all rings are drained. Its
 * readable() is NULL. 0 or -errno.
 */
int drain_add(struct drain *d, const struct source_poll *from);
/* The next tick is a second after the last one. */
bool drain_idle(const struct drain *d);
/* From inside tick() or now(): more is expected; ten times a second. */
void drain_active(struct drain *d, uint64_t now);
/* From inside tick() or now(): something is left, drain again at once. */
void drain_soon(struct drain *d);
/*
 * A client's request needs current data: drains unless that was done in the
 * last 100 ms, and computes the next interval again.
 */
void drain_asked(struct drain *d);
/* The end waits for the rings: drains quickly from here on. */
void drain_hurry(struct drain *d);
void drain_stop(struct drain *d); /* the timer */
/* Closes all handles; runs the loop until they are. */
void drain_close(struct drain *d);

#endif /* PROFILER_DRAIN_H */
