/* SPDX-License-Identifier: Apache-2.0 */
/* What the place that a test runs in allows: see tests/run. */
#ifndef TESTS_UNIT_PLACE_H
#define TESTS_UNIT_PLACE_H

#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

/* Root can become another user: in a user namespace there may be none. */
static inline bool place_has_users(void)
{
	unsigned int inside, outside, n;
	bool found = false;
	FILE *f;

	if (geteuid() != 0)
		return false;
	f = fopen("/proc/self/uid_map", "re");
	if (!f)
		return true; /* no user namespaces */
	while (fscanf(f, "%u %u %u", &inside, &outside, &n) == 3)
		found |= 65534 - inside < n;
	fclose(f);
	return found;
}

#endif
