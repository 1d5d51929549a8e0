// SPDX-License-Identifier: Apache-2.0
/* trim: see profiler/trim.h. */
#include <malloc.h>
#include <stdio.h>
#include <unistd.h>

#include "base/base.h"
#include "profiler/trim.h"

#define TRIM_INTERVAL (10 * CLOCK_NSEC_PER_SEC)
/* Rings, thread stacks and what is half used have their place in this. */
#define TRIM_SLACK (16ULL << 20)

/* Resident, and not of a file or shared; 0: /proc does not say. */
static uint64_t trim_resident(void)
{
	FILE *f = fopen("/proc/self/statm", "re");
	unsigned long resident, shared;
	int n = 0;

	if (!f)
		return 0;
	n = fscanf(f, "%*u %lu %lu", &resident, &shared);
	fclose(f);
	if (n != 2 || resident < shared)
		return 0;
	return (uint64_t)(resident - shared) * sysconf(_SC_PAGESIZE);
}

bool trim_tick(struct trim *t, uint64_t now)
{
	struct mallinfo2 m;
	uint64_t resident;

	if (now < t->next)
		return false;
	t->next = now + TRIM_INTERVAL;
	resident = trim_resident();
	t->resident = MIN(t->resident, resident);
	m = mallinfo2();
	if (resident < m.uordblks + m.hblkhd + TRIM_SLACK ||
	    resident < t->resident + TRIM_SLACK)
		return false;
	malloc_trim(0);
	t->resident = trim_resident();
	return true;
}
