/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rescan_start: the mappings of all processes that ran when profd began.
 * Samples are taken while they are read, so the pump waits. What was read of a
 * process counts from before the first sample if the streams reported nothing
 * of it between then and the end of the reading: its mappings were the same.
 * Otherwise it counts from the reading, as later readings do.
 */
#ifndef PROFILER_RESCAN_START_H
#define PROFILER_RESCAN_START_H

#include <stdbool.h>
#include <stdint.h>

#include "processmanager/processmanager.h"

struct rescan_start;

/*
 * 'since': when sampling began, all streams being attached; what they report of
 * an earlier time does not matter here. NULL: no memory.
 */
struct rescan_start *rescan_start_new(uint64_t since);
/* A record of either stream, of one process; NULL: it was dropped. */
void rescan_start_saw_map(struct rescan_start *s,
			  const struct pm_map_event *ev);
void rescan_start_saw_event(struct rescan_start *s,
			    const struct quark_event *ev);
/* Records of any process were dropped: all count from their reading. */
void rescan_start_lost(struct rescan_start *s);
/*
 * A record that was read, of so many bytes; *m lies in it. 0; or it stays the
 * caller's: -ENOMEM, or -ENOBUFS: it is large, and there is no room for such.
 */
int rescan_start_add(struct rescan_start *s, void *rec, struct pm_maps *m,
		     size_t size);
/* The end of the last reading: the streams must be complete up to then. */
uint64_t rescan_start_until(const struct rescan_start *s);
/* So much was read, or is waiting in the pump, that the pump should go on. */
bool rescan_start_full(const struct rescan_start *s, uint64_t waiting_bytes);
/*
 * Passes each record to 'fn', with the time from which it counts in m->begin,
 * and frees the rest. All records up to rescan_start_until() were seen, or
 * dropped.
 */
void rescan_start_end(struct rescan_start *s,
		      void (*fn)(void *arg, void *rec, const struct pm_maps *m),
		      void *arg);

#endif /* PROFILER_RESCAN_START_H */
