// SPDX-License-Identifier: Apache-2.0
/* A line of /proc/PID/maps, whose end is that of the input. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/tracing/find.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *line = malloc(size + 1);

	if (!line)
		return 0;
	memcpy(line, data, size);
	line[size] = '\0';
	if (tracing_is_context(line, size) && !strstr(line, "OTEL_CTX") &&
	    strlen(line) == size)
		abort();
	free(line);
	/* Exactly so long, for the sanitizer. */
	line = malloc(size ? size : 1);
	if (line && size) {
		memcpy(line, data, size);
		tracing_is_context(line, size);
	}
	free(line);
	return 0;
}
