/* SPDX-License-Identifier: Apache-2.0 */
/*
 * intake: puts the records of a source into the pump. A record is copied into
 * the vault, whose memory is left out of core dumps, and pushed; dropped
 * records are counted, and a dropped mapping makes its process, or all of them,
 * stale. Loop's thread only. Times are CLOCK_BOOTTIME in ns.
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
	/* Applies a PM_MAP_LOST for which the pump has no room. */
	void (*map_lost)(void *arg, const struct pm_map_event *ev);
	void (*modules)(void *arg); /* kernel modules have changed */
	void *arg;
	uint64_t nomem; /* records dropped before the pump */
	uint64_t passed; /* the pump has delivered all earlier records */
	/* The lifecycle and the mapping stream are in the pump up to here. */
	uint64_t life_until, maps_until;
	bool more; /* the last intake_deliver() left something */
	bool mapped; /* set by each mapping; cleared by its reader */
};

/*
 * A pump for 'ceiling' bytes, at least what full rings become; 'deliver',
 * 'drop' and 'arg' are the pump's. 0 or -errno; then intake_fini() is due as
 * well.
 */
int intake_init(struct intake *in, size_t ceiling, pump_deliver_fn deliver,
		pump_drop_fn drop, void *arg);
void intake_fini(struct intake *in);

/* Memory for a record that the caller pushes; NULL: none, counted. */
void *intake_take(struct intake *in, size_t size);
/* Copies; sampler_opts.sample, 'arg' is the intake. */
void intake_sample(void *arg, const struct abi_sample *rec, size_t len);
/* The same for the stack of a wait (bpf/abi_wait.h). */
void intake_site(void *arg, const struct abi_sample *rec, size_t len);
/*
 * Copies. 0; or -errno: there was no room for an MMAP, and the caller has to
 * report what its process lost, at its place in time.
 */
int intake_map_try(struct intake *in, const struct pm_map_event *ev);
/* The same, and then pushes a PM_MAP_LOST of the process. */
void intake_map(struct intake *in, const struct pm_map_event *ev);
/* sampler_opts.module, 'arg' is the intake: pushes a record, and reports it at once. */
void intake_module(void *arg, const struct abi_module *rec);
/* Copies. Its size, or -errno: it was dropped, and counted. */
ssize_t intake_event(struct intake *in, const struct quark_event *ev);
/* Not below the last one of its stream. */
void intake_watermark(struct intake *in, enum pump_stream stream,
		      uint64_t time);

/*
 * Delivers records below the watermarks, for a few milliseconds: then the loop
 * has to handle tables and names, which delivered samples wait for.
 */
void intake_deliver(struct intake *in);

#endif /* PROFILER_INTAKE_H */
