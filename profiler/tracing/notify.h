/* SPDX-License-Identifier: Apache-2.0 */
/*
 * notify: Elastic's APM agents get the stacks of their traces: the connector reaches the
 * sockets that processes name (connector.h), the process manager sends
 * (processmanager/apm.h), and while stacks wait a timer has it send 50 times a second.
 *
 * On the loop's thread.
 */
#ifndef PROFILER_TRACING_NOTIFY_H
#define PROFILER_TRACING_NOTIFY_H

#include "processmanager/processmanager.h"
#include "profiler/tracing/connector.h"

/* X(name, is a gauge, "in words") */
#define NOTIFY_STATS(X)                                                     \
	X(asked, 0, "connections to APM agents that were tried")            \
	X(connected, 0, "connections to APM agents")                        \
	X(denied, 0, "APM agents whose socket may not be written to")       \
	X(failed, 0, "APM agents that could not be connected to otherwise") \
	X(busy, 0, "connections put off: too many at once, or of a user")

struct notify_stats {
#define X(name, gauge, help) uint64_t name;
	NOTIFY_STATS(X)
#undef X
};

struct notify_clock;

struct notify {
	struct pm *pm; /* borrowed; NULL: it is off */
	struct connector *connector;
	struct notify_clock *clock;
	bool permitted; /* connector_permitted() */
	struct notify_stats stats;
};

/* 0 or -errno; then, as all zero, it is off. */
int notify_init(struct notify *n, uv_loop_t *loop, struct pm *pm);
/* Before pm_free(). */
void notify_fini(struct notify *n);
/* This image, all of whose user ids are 'uid', says that its agent's socket is there. */
void notify_agent(struct notify *n, struct pm_image *img, uint32_t uid,
		  const char *path);
/* To be called in every turn of the loop. */
void notify_tick(struct notify *n);
/* Whether samples are awaited: the rings should be drained ten times a second. */
bool notify_busy(const struct notify *n);

#endif /* PROFILER_TRACING_NOTIFY_H */
