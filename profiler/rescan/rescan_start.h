/* SPDX-License-Identifier: Apache-2.0 */
/*
 * walk_start: the mappings of all that ran when profd began. Reading them takes
 * its time, and samples are taken meanwhile; so the pump stands still, and what
 * was read of a process counts from before the first sample if neither stream
 * reported anything of it between that and the reading: then it was the same. For
 * any other it counts from the reading, as always.
 */
#ifndef PROFILER_WALK_START_H
#define PROFILER_WALK_START_H

#include <stdbool.h>
#include <stdint.h>

#include "processmanager/processmanager.h"

struct walk_start;

/*
 * 'since': when sampling began, all streams being attached; what they report of a
 * time before does not matter here. NULL: no memory.
 */
struct walk_start *rescan_start_new(uint64_t since);
/* Either stream told this, of one process; NULL: a record is missing. */
void rescan_start_saw_map(struct walk_start *s, const struct pm_map_event *ev);
void rescan_start_saw_event(struct walk_start *s, const struct quark_event *ev);
/* Something is missing in a stream: of no process it is known. */
void rescan_start_lost(struct walk_start *s);
/*
 * A record that was read, of so many bytes; *m lies in it. 0; or it stays the
 * caller's: -ENOMEM, or -ENOBUFS: it is large, and there is no room for such.
 */
int rescan_start_add(struct walk_start *s, void *rec, struct pm_maps *m,
		     size_t size);
/* The end of the last reading: the streams must have come so far. */
uint64_t rescan_start_until(const struct walk_start *s);
/* So much was read, or so many samples wait, that the pump had better go on. */
bool rescan_start_full(const struct walk_start *s, uint64_t waiting_bytes);
/*
 * Gives each record to 'fn', its *m beginning when it counts from, and frees
 * all. All that was told up to rescan_start_until() has been seen, or lost.
 */
void rescan_start_end(struct walk_start *s,
		      void (*fn)(void *arg, void *rec, const struct pm_maps *m),
		      void *arg);

#endif /* PROFILER_WALK_START_H */
