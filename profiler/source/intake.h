/* SPDX-License-Identifier: Apache-2.0 */
/*
 * intake: the pump and the ways of a source's records into it. A record is copied
 * into the vault, whose memory is left out of core dumps, and pushed; what cannot be
 * pushed is counted, and a mapping that is lost makes its process, or all, stale.
 * Used by the loop's thread only. Times are CLOCK_BOOTTIME in ns.
 */
#ifndef PROFILER_INTAKE_H
#define PROFILER_INTAKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "processmanager/processmanager.h"
#include "profiler/pump.h"

struct rescan;
struct vault;

struct intake {
	struct pump *pump;
	struct vault *vault; /* of the records in the pump */
	struct rescan *rescan; /* sees mappings and events; NULL: none */
	/* Applies a PM_MAP_LOST that has no place in the pump. */
	void (*map_lost)(void *arg, const struct pm_map_event *ev);
	void *arg;
	uint64_t nomem; /* records dropped before the pump */
	uint64_t passed; /* the pump has delivered all before this */
	/* Up to here the lifecycle and the mapping stream are in the pump. */
	uint64_t life_until, maps_until;
	bool ripe; /* the last intake_deliver() left something */
	bool mapped; /* set by each mapping; cleared by its reader */
};

/*
 * A pump for 'ceiling' bytes, at least what full rings become. 'deliver' and 'drop'
 * are the pump's, and so is 'arg'. 0 or -errno; then intake_fini() is due as well.
 */
int intake_init(struct intake *in, size_t ceiling, pump_deliver_fn deliver,
		pump_drop_fn drop, void *arg);
void intake_fini(struct intake *in);

/* Room for a sample; NULL: no memory, counted. To be given to the next function. */
struct abi_sample *intake_sample_new(struct intake *in, size_t len);
void intake_sample_push(struct intake *in, struct abi_sample *rec,
			uint64_t time, size_t len);
/* Copies; sampler_opts.sample, 'arg' is the intake. */
void intake_sample(void *arg, const struct abi_sample *rec, size_t len);

/*
 * Copies. 0; or -errno: an MMAP found no room, and the caller has to say what its
 * process lost, at its place in time.
 */
int intake_map_try(struct intake *in, const struct pm_map_event *ev);
/* The same, and says it: by a PM_MAP_LOST of the one process. */
void intake_map(struct intake *in, const struct pm_map_event *ev);
/* Copies. Its size, or -errno: it is lost, and counted. */
ssize_t intake_event(struct intake *in, const struct quark_event *ev);
/* Not below the last one of its stream. */
void intake_watermark(struct intake *in, enum pump_stream stream,
		      uint64_t time);

/*
 * Delivers what is ripe, for a few milliseconds: then the loop has to handle tables
 * and names that arrived, for which many of the records may wait.
 */
void intake_deliver(struct intake *in);

#endif /* PROFILER_INTAKE_H */
