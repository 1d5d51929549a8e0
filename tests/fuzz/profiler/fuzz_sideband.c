// SPDX-License-Identifier: Apache-2.0
/* Perf side-band records of any bytes: refused, or a path that ends inside. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/source/sideband.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pm_map_event ev;
	uint64_t lost = 0;
	void *exact = malloc(size ? size : 1);

	if (!exact)
		return 0;
	if (size)
		memcpy(exact, data, size);
	if (sideband_parse(exact, size, &ev, &lost) == 1 && ev.path) {
		if (ev.end < ev.start ||
		    ev.path + strlen(ev.path) >= (char *)exact + size)
			abort();
	}
	free(exact);
	return 0;
}
