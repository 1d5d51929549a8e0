// SPDX-License-Identifier: Apache-2.0
/* memory_trim: see profiler/memory/memory_trim.h. */
#include <malloc.h>
#include <stdio.h>
#include <unistd.h>

#include "base/base.h"
#include "profiler/memory/memory_trim.h"

#define TRIM_INTERVAL (10 * CLOCK_NSEC_PER_SEC)
/* Includes rings, thread stacks and pages partly in use. */
#define TRIM_SLACK (16ULL << 20)

/* Bytes resident, anonymous, and not in use; 0: unknown. */
static uint64_t memory_trim_waste(void)
{
	struct mallinfo2 m = mallinfo2();
	unsigned long resident, shared;
	char text[256];
	uint64_t own;

	if (!procfs_text(getpid(), "statm", text, sizeof(text)) ||
	    sscanf(text, "%*u %lu %lu", &resident, &shared) != 2 ||
	    resident < shared)
		return 0;
	own = (uint64_t)(resident - shared) * sysconf(_SC_PAGESIZE);
	return own > m.uordblks + m.hblkhd ? own - m.uordblks - m.hblkhd : 0;
}

bool memory_trim_tick(struct memory_trim *t, uint64_t now)
{
	uint64_t waste;

	if (now < t->next)
		return false;
	t->next = now + TRIM_INTERVAL;
	waste = memory_trim_waste();
	t->waste = MIN(t->waste, waste);
	if (waste < t->waste + TRIM_SLACK)
		return false;
	malloc_trim(0);
	t->waste = memory_trim_waste();
	return true;
}
