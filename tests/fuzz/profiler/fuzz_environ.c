// SPDX-License-Identifier: Apache-2.0
/* Fuzz target: the environment of a process, in memory of its exact size. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/tracing/environ.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const char *s)
{
	size_t len = strlen(s);

	if (len && !symbolizer_context_text(s, len))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct symbolizer_context c;
	char *copy = malloc(size);

	if (!copy && size)
		abort();
	if (size)
		memcpy(copy, data, size);
	tracing_environ_parse(copy, size, &c);
#define X(name, key) check(c.name);
	SYMBOLIZER_CONTEXT_NAMES(X)
#undef X
	free(copy);
	return 0;
}
