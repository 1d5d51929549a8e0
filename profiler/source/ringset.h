/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ringset: one perf ring on each online CPU, while CPUs come and go. Loop's
 * thread only. Times are CLOCK_BOOTTIME in ns.
 */
#ifndef PROFILER_RINGSET_H
#define PROFILER_RINGSET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/perfring.h"

/* The first member of the user's struct for a CPU. */
struct ringset_cpu {
	int fd; /* of the event; -1: not open */
	struct perfring ring;
	uint64_t sure; /* losses up to this time have been reported */
};

struct ringset {
	/* Set by the user before ringset_init(). */
	size_t cpu_size; /* of the user's struct for a CPU */
	/* Opens the event and the ring and sets 'sure'. 0 or -errno. */
	int (*open)(void *arg, unsigned int cpu, const char **what);
	/* After open() of a CPU that came online. 0 or -errno. */
	int (*came)(void *arg, unsigned int cpu);
	void (*drain)(void *arg, struct ringset_cpu *c);
	void (*close)(void *arg, struct ringset_cpu *c);
	/* A CPU may have dropped any number of records between these times. */
	void (*lost)(void *arg, uint64_t from, uint64_t to);
	void *arg;
	/* Set by ringset_init(). */
	void *cpus; /* by number */
	size_t n; /* of possible CPUs */
	int epoll; /* readable when a ring is half full */
	char *record; /* for records that wrap around the end of a ring */
	struct perfring_look looked; /* at the CPUs, last */
};

/* 0 or -errno, and '*what' names the step; ringset_fini() is always due. */
int ringset_init(struct ringset *rs, const char **what);
void ringset_fini(struct ringset *rs);
/*
 * Calls 'fn' for each online CPU below 'n' until one fails; one that went
 * offline meanwhile (-ENODEV) is skipped. 0; -ENODEV: none was left; or -errno.
 */
int ringset_online(size_t n,
		   int (*fn)(void *arg, unsigned int cpu, const char **what),
		   void *arg, const char **what);
void ringset_poll(struct ringset *rs);
/* No ring will have an older record. UINT64_MAX: there are no rings. */
uint64_t ringset_watermark(const struct ringset *rs);
/*
 * Closes the rings of CPUs that went offline, and opens those of CPUs that
 * came; 'enabled': the events count, so that a silent one shows that its CPU
 * was offline in between (perfring_silent()). 0 or the first -errno.
 */
int ringset_hotplug(struct ringset *rs, bool enabled);

#endif /* PROFILER_RINGSET_H */
