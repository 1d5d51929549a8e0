/* SPDX-License-Identifier: Apache-2.0 */
/*
 * segments: which processes the kernel's side records segment by segment
 * (bpf/abi_wait.h), and the ring of the records. Knows nothing of processes.
 */
#ifndef PROFILER_WAITING_SEGMENTS_H
#define PROFILER_WAITING_SEGMENTS_H

#include <stddef.h>
#include <stdint.h>

#include "bpf/abi_wait.h"

struct wait_bpf;
struct waiting_sums;
struct waiting_segments;

/*
 * Nothing is recorded, and the ring is not mapped, before the first choice. 'fn' gets each
 * record, borrowed for the call, from waiting_segments_poll(). 'sums' must outlive it. NULL:
 * out of memory.
 */
struct waiting_segments *
waiting_segments_new(struct waiting_sums *sums,
		     void (*fn)(void *arg, const struct abi_segment *s),
		     void *arg);
void waiting_segments_free(struct waiting_segments *s);

/* To be called before anything is recorded for which a waker is wanted. */
void waiting_segments_prepare(struct wait_bpf *skel);

/*
 * 0 or -errno; -E2BIG: ABI_CHOSEN_MAX are. It is chosen until it was unchosen as often.
 */
int waiting_segments_choose(struct waiting_segments *s, uint32_t tgid);
void waiting_segments_unchoose(struct waiting_segments *s, uint32_t tgid);
size_t waiting_segments_chosen(const struct waiting_segments *s);
/* Since it was first chosen; all zeros of one that is not. */
void waiting_segments_counts(const struct waiting_segments *s, uint32_t tgid,
			     struct abi_chosen *out);
/* Number of records or -errno. */
int waiting_segments_poll(struct waiting_segments *s);

#endif /* PROFILER_WAITING_SEGMENTS_H */
