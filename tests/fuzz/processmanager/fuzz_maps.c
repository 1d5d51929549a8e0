// SPDX-License-Identifier: Apache-2.0
/*
 * /proc/PID/maps: the watched process chooses its paths, and so most of its
 * bytes. The result is always consistent.
 */
#include <stdlib.h>
#include <string.h>

#include "processmanager/processmanager.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pm_maps m;
	size_t i;

	if (pm_maps_parse((const char *)data, size, &m))
		return 0;
	for (i = 0; i < m.n; i++) {
		if (m.maps[i].start >= m.maps[i].end ||
		    m.maps[i].kind != PM_MAP_MMAP ||
		    strlen(m.maps[i].path) > size)
			abort();
	}
	pm_maps_fini(&m);
	return 0;
}
