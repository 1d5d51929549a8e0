/* SPDX-License-Identifier: Apache-2.0 */
/* perfsource_engine: the engine's streams, all out of one perf source. */
#ifndef PROFILER_PERFSOURCE_ENGINE_H
#define PROFILER_PERFSOURCE_ENGINE_H

#include "profiler/engine_internal.h"
#include "profiler/source/perfsource.h"

struct perfsource_engine;

/* Opened, and recording, as far as the side-band is concerned. 0 or -errno. */
int perfsource_engine_open(struct engine *e, const char **what);
void perfsource_engine_close(struct engine *e);
/* What is there already, from /proc. 0 or -errno. */
int perfsource_engine_walk(struct engine *e);
/* Into the pump, with all watermarks. */
void perfsource_engine_drain(struct engine *e);
void perfsource_engine_stop(struct engine *e);
/* Once a second. 0 or -errno. */
int perfsource_engine_second(struct engine *e);
int perfsource_engine_epoll_fd(const struct engine *e);

/* As sampler_get_stats(). */
int perfsource_engine_cpu_stats(struct engine *e, struct sampler_cpu_stats *out,
				size_t n);
/* All zero without a perf source. */
void perfsource_engine_stats(const struct engine *e,
			     struct perfsource_stats *out);

/* Out of the pump, in the order of time. */
void perfsource_engine_life(struct engine *e, const void *rec);
void perfsource_engine_mapped(struct engine *e, const struct pm_map_event *ev);
/* False: it cannot be handed on. */
bool perfsource_engine_sample(struct engine *e, struct abi_sample *s);

#endif /* PROFILER_PERFSOURCE_ENGINE_H */
