/* SPDX-License-Identifier: Apache-2.0 */
/*
 * services: which service a process belongs to: the names in its context, in the storage
 * of Elastic's agents and in its environment (published.h), for the process manager.
 *
 * An image is looked at 1, 10 and 60 s after its first sample, and then each minute, if
 * it was sampled since; if one of its files has a tracer's variable, at its first sample,
 * and if a thread of it has a trace, at once. The environment is read once; a context
 * when it has changed. What was found is of the image that the process had then: so it
 * counts only once all execs before that are known.
 *
 * Memory of processes is read by a thread, one batch at a time, which is abandoned if it
 * waits; the process that it waited for is not looked at for a minute. Looks take a
 * fiftieth of a CPU at most, those of a user a quarter of that. A user may have as many
 * images here as are free.
 *
 * All calls on the loop's thread.
 */
#ifndef PROFILER_TRACING_SERVICES_H
#define PROFILER_TRACING_SERVICES_H

#include <sys/queue.h>

#include "base/base.h"
#include "processmanager/processmanager.h"
#include "profiler/tracing/published.h"

#define SERVICES_USERS 64 /* accounts, which user ids share */
#define SERVICES_BATCH 32
#define SERVICES_IMAGES 32768
#define SERVICES_DELAYS 4 /* until the next look: 0, 1, 10, 60 s */

struct services_opts {
	struct pm *pm; /* borrowed, as is */
	struct symbolizer *symbolizer;
	/* The image has other names now. */
	void (*named)(void *arg, struct pm_image *img);
	/*
	 * The image, all of whose user ids are 'uid' (UINT32_MAX: not all), has an agent
	 * at this socket, as far as it says. After each look. May be NULL.
	 */
	void (*agent)(void *arg, struct pm_image *img, uint32_t uid,
		      const char *socket);
	void *arg;
	uint32_t images; /* at most; 0: SERVICES_IMAGES */
};

/* X(name, is a gauge, "in words") */
#define SERVICES_STATS(X)                                                      \
	X(images, 1, "images that are looked at for the names of a service")   \
	X(refused, 0, "images not looked at: too many, or too many of a user") \
	X(hung, 0, "looks for the names of a service that were abandoned")     \
	X(unparsed, 0, "contexts that were no valid message, or too long")     \
	X(stored, 0,                                                           \
	  "looks that found the storage of one of Elastic's agents")           \
	X(named, 0, "times that an image got other names of a service")

struct services_stats {
#define X(name, gauge, help) uint64_t name;
	SERVICES_STATS(X)
#undef X
	uint64_t found[PUBLISHED_N_FINDS]; /* looks, by how they ended */
};

struct services_image;
struct services_batch;
struct services_parse;

TAILQ_HEAD(services_images, services_image);

/* Of the users that share it. */
struct services_user {
	struct services_images due; /* to be looked at, in order */
	uint64_t next; /* none of it before; CLOCK_BOOTTIME */
	uint32_t images;
};

struct services {
	struct services_opts opts;
	struct patience patience;
	struct services_batch *batch; /* the thread's now; or NULL */
	struct abi_key asked[SERVICES_BATCH]; /* what it looks at */
	size_t nasked;
	uint64_t batch_cpu; /* of the loop, that made it */
	uint64_t next; /* no batch before; CLOCK_BOOTTIME */
	struct hash images; /* by tgid; one of each process */
	/* Those that wait for their next look, by how long: in order of its time. */
	struct services_images waiting[SERVICES_DELAYS];
	struct services_images settling; /* read, in order of its time */
	struct services_user users[SERVICES_USERS];
	size_t ndue, turn; /* of users' queues; the user whose turn it is */
	LIST_HEAD(, services_parse) parses; /* that the symbolizer has */
	struct services_stats stats;
};

/* 0 or -ENOMEM. */
int services_init(struct services *s, const struct services_opts *opts);
/* Before symbolizer_free(). All zero is allowed. */
void services_fini(struct services *s);
/* A sample of this image; 'traced': its thread has a trace. */
void services_sampled(struct services *s, const struct abi_key *key,
		      bool traced, uint64_t now);
/* The agent of this image is gone: its storage is read again in a second. */
void services_agent_gone(struct services *s, const struct abi_key *key,
			 uint64_t now);
/*
 * To be called in every turn of the loop; all events before 'passed' are known to the
 * process manager.
 */
void services_tick(struct services *s, uint64_t now, uint64_t passed);
/* Whether it has something to do at the next turn, which should be soon. */
bool services_busy(const struct services *s, uint64_t now);

#endif /* PROFILER_TRACING_SERVICES_H */
