/* SPDX-License-Identifier: Apache-2.0 */
/*
 * perfsource: samples and side-band without BPF. One software clock event and
 * one ring on every CPU; or, where the whole host is not permitted, for each of
 * some tasks and the tasks that they start.
 */
#ifndef PROFILER_PERFSOURCE_H
#define PROFILER_PERFSOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profiler/source/perfsource_parse.h"
#include "profiler/source/sampler.h"

struct perfsource;

struct perfsource_opts {
	unsigned int freq_hz;
	size_t stack_copy; /* 0: 16 KiB; PERFSOURCE_STACK_MAX at most */
	size_t rings_bytes; /* of all CPUs together, about; 0: 16 MiB */
	/* Processes to sample where sampling the whole host is refused. */
	const uint32_t *pids;
	size_t npids;
	bool until_exec; /* sampling begins at their exec */
	/* Borrowed for the call. In order of time within a CPU only. */
	void (*record)(void *arg, const struct perfsource_record *r);
	void *arg;
};

/*
 * Opened, not recording yet. 0 or -errno, and then '*what' names the step that
 * failed. -EACCES or -EPERM: kernel.perf_event_paranoid does not permit it.
 */
int perfsource_new(struct perfsource **sp, const struct perfsource_opts *opts,
		   const char **what);
void perfsource_free(struct perfsource *s);
/* Begins to sample, unless until_exec. 0 or -errno. */
int perfsource_enable(struct perfsource *s);
void perfsource_disable(struct perfsource *s);
void perfsource_poll(struct perfsource *s);
uint64_t perfsource_watermark(const struct perfsource *s);
/* Readable when a ring is half full. */
int perfsource_epoll_fd(const struct perfsource *s);
/* Follows CPUs that came and went. 0 or -errno; call about once a second. */
int perfsource_hotplug(struct perfsource *s);

struct perfsource_stats {
	bool host; /* the whole host, not some tasks only */
	bool kernel; /* kernel stacks, too */
	size_t stack_copy;
	size_t ring_bytes; /* of one CPU */
	uint64_t records; /* of the side-band */
	uint64_t gaps; /* places at which records were dropped */
	uint64_t bad; /* records with wrong lengths */
	uint64_t throttled;
};
/* A sample turned out to be inside execve. */
void perfsource_count_exec(struct perfsource *s, unsigned int cpu);
void perfsource_get_stats(const struct perfsource *s,
			  struct perfsource_stats *out);
/*
 * As sampler_get_stats(). Dropped records may be of any kind: all count as
 * samples. Of tasks the expected number is not known: 0.
 */
int perfsource_cpu_stats(struct perfsource *s, struct sampler_cpu_stats *out,
			 size_t n);

#endif /* PROFILER_PERFSOURCE_H */
