// SPDX-License-Identifier: Apache-2.0
/* A control group's path: whatever it is, what is found lies within it. */
#include <stdint.h>
#include <stdlib.h>

#include "processmanager/processmanager.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *path = (const char *)data;
	struct pm_cgroup c;
	size_t i;

	pm_cgroup_parse(path, size, &c);
	const struct pm_part parts[] = { c.container, c.pod, c.unit };

	for (i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		if (parts[i].len && (parts[i].s < path ||
				     parts[i].s + parts[i].len > path + size))
			abort();
	if (c.engine && !c.container.len)
		abort();
	return 0;
}
