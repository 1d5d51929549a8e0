/* SPDX-License-Identifier: Apache-2.0 */
/* engine_internal: the engine's inside, for engine*.c, walk.c, metrics.c. */
#ifndef PROFILER_ENGINE_INTERNAL_H
#define PROFILER_ENGINE_INTERNAL_H

#include <stdbool.h>
#include <uv.h>

#include "profiler/engine.h"
#include "profiler/health.h"
#include "profiler/limits.h"
#include "profiler/pump.h"
#include "profiler/source/sampler.h"
#include "profiler/source/sideband.h"
#include "profiler/trim.h"
#include "profiler/wake.h"
#include "profiler/rescan/rescan_start.h"
#include "tracehandler/tracehandler.h"

struct mapsreader;
struct walk_batch;
struct walkqueue;
struct walkqueue_item;
struct walkqueue_stats;
struct perfsource_engine;

/* Asking for the mappings of all that are in doubt, after a loss. */
struct walk_doubts {
	uint64_t next; /* when it is to be done; 0: it is not */
	uint64_t began; /* last time */
	unsigned int rounds; /* to go */
	bool over; /* nothing is read any more */
};

/* CPUs above it count as seen. */
#define ENGINE_CPUS_SEEN 8192

struct engine {
	struct engine_opts opts;
	uv_loop_t *loop;
	struct pump *pump;
	struct vault *vault; /* of what is in the pump */
	struct symbolizer *symbolizer;
	struct pm *pm;
	struct trace_handler *th;
	struct reporter *reporter;
	struct sampler *sampler;
	struct sideband *sideband;
	struct quark_queue quark;
	bool quark_open;
	struct perfsource_engine *perf; /* in place of those three, or NULL */
	bool perf_lives; /* lifecycle records in the pump are its, malloc'd */
	char note[256]; /* engine_note() */
	char why[256];

	uint64_t wanted_from; /* older samples were for the warm-up only */
	uv_timer_t timer;
	struct wake sampler_wake, quark_wake, sideband_wake;
	bool timer_open;
	unsigned int handles; /* open libuv handles of ours */

	unsigned int open_files; /* executables, for the limit there is */
	uint64_t begin; /* sampling began */
	uint64_t walk_begin; /* the snapshot is not older than this */
	uint64_t walk_next; /* when to walk all processes again */
	uint64_t repairs; /* of quark's cache, by then */
	uint64_t second; /* last once-a-second work */
	struct trim trim;
	struct health health;
	struct limits limits;
	bool more; /* the last drain left lifecycle events to be read */
	bool ripe; /* ... and the pump records to be handed on */
	int ahead; /* lifecycle records read since the last drain */
	uint64_t passed; /* the pump has handed on all below */
	uint64_t end; /* of sampling, when finishing */
	uint64_t nomem; /* records dropped before the pump */
	uint64_t ring_full; /* samples lost for want of room in the ring */
	double missed; /* samples that should have come, so far */
	/* CPUs on which what is recorded was sampled, a bit each. */
	uint64_t cpus_seen[ENGINE_CPUS_SEEN / 64];
	int hotplug_err; /* so that one trouble is logged once */
	uint64_t start_ns; /* how long it took */
	uint64_t start_samples; /* and how many were taken meanwhile */
	uint64_t told; /* lifecycle and mapping streams came so far */
	struct walk_start *start; /* the first walk, while it goes on */
	bool walking; /* the first walk's maps are being read */
	size_t walk_at; /* the next of its processes */
	uint64_t walk_waited; /* ns that its readings waited for locks */
	struct mapsreader *maps; /* NULL: none yet */
	struct walk_batch *batch; /* of it, being read */
	uint64_t rereads_hung, rereads_large; /* abandoned; too large */
	struct walkqueue *rereads; /* those to come; NULL: none yet */
	struct walk_doubts doubts;
	void (*finished)(void *arg);
	void *finished_arg;
};

/* engine.c: drains all sources and runs the pump once. */
void engine_drain(struct engine *e);
void engine_on_map(void *arg, const struct pm_map_event *ev);
/* Room for a sample; NULL: no memory, counted. To be pushed, and then gone. */
struct abi_sample *engine_sample_new(struct engine *e, size_t len);
void engine_sample_push(struct engine *e, struct abi_sample *rec, uint64_t time,
			size_t len);
void engine_resolved(void *arg, const struct reporter_trace *t);
/*
 * Whether samples missing on a CPU concern what is recorded: of a recording of
 * some processes, on the CPUs only on which it has seen them.
 */
bool engine_counts_cpu(const struct engine *e, unsigned int cpu);

/* A pump that hands on to the parts, and a vault for what is in it. */
int engine_pump_new(struct engine *e);
void engine_on_sample(void *arg, const struct abi_sample *rec, size_t len);
/* From here on the loop drives it. */
int engine_loop(struct engine *e);

/* engine_open.c */
void engine_close_bpf(struct engine *e);

/* walk.c: what existed before. */
int walk_all(struct engine *e);
/*
 * The mappings of those, read by the reader; who would hold the others up is left to
 * the queue of re-reads. Without the loop; drains meanwhile. 0 or -errno.
 */
int walk_maps(struct engine *e, const struct walkqueue_item *items, size_t n);
/* A process for it; the caller frees *itemsp, also after an error. */
int walk_add(struct walkqueue_item **itemsp, size_t *np, uint32_t tgid,
	     uint32_t uid);
/* All processes are to be walked again at the next check. */
void walk_anew(struct engine *e);
/* Walks all processes again if it is time; right after quark was drained. */
void walk_check(struct engine *e, uint64_t now);
uint64_t walk_watermark(struct engine *e, uint64_t now);
void walk_deliver(struct pm *pm, void *rec, uint64_t time);
/* In its place, of a record that is not delivered: frees it, with all it has. */
void walk_drop(void *rec);

/* walk_reread.c: mappings that must be re-read. */
void walk_want_maps(void *arg, const struct pm_want *want);
/* Mapping records were lost: whoever is in doubt is to be re-read. */
void walk_after_loss(struct engine *e);
/* Begins what is due of both; after the pump ran. */
void walk_doubts(struct engine *e, uint64_t now);
void walk_reread_stats(const struct engine *e, struct walkqueue_stats *out);
void walk_cancel(struct engine *e);

#endif /* PROFILER_ENGINE_INTERNAL_H */
