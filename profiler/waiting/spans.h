/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spans: where the code of each image lies, for the kernel's side of waiting
 * (struct abi_wait_span). The executable mappings are in two spans, with the largest gap
 * between them: the program's, and its libraries'. Set within a tick of the mapping record.
 */
#ifndef PROFILER_WAITING_SPANS_H
#define PROFILER_WAITING_SPANS_H

#include <stdint.h>

#include "bpf/abi_wait.h"
#include "processmanager/processmanager.h"
#include "profiler/waiting/sums.h"

#define WAITING_SPANS_BITS 65536

struct waiting_spans {
	struct pm *pm;
	uint64_t looked; /* at all images, last */
	uint64_t all_until; /* mapping records were lost */
	bool any; /* of 'mapped' */
	/* By pid modulo its size: its mappings have changed. */
	uint64_t mapped[WAITING_SPANS_BITS / 64];
};

/* A range of executable addresses. */
struct waiting_range {
	uint64_t start, end;
};

/* The spans of 'n' ranges, which are ordered by address. n 0: all zeros. */
void waiting_spans_of(const struct waiting_range *ranges, size_t n,
		      struct abi_wait_span *out);

/* 'pm' is borrowed. */
void waiting_spans_init(struct waiting_spans *sp, struct pm *pm);
/* As waiting_mapped(). */
void waiting_spans_mapped(struct waiting_spans *sp, uint32_t tgid);
/* Sets those of images whose mappings have changed, and looks at the others at times. */
void waiting_spans_tick(struct waiting_spans *sp, struct waiting_sums *sums,
			uint64_t now);

#endif /* PROFILER_WAITING_SPANS_H */
