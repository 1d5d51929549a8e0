// SPDX-License-Identifier: Apache-2.0
/* Fuzz target: the storage of one of Elastic's agents, in memory of its exact size. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/tracing/storage.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_name(const char *s)
{
	size_t len = strlen(s);

	if (len && !symbolizer_context_text(s, len))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct tracing_storage out;
	uint8_t *copy;
	int err;

	size = size < TRACING_STORAGE_MAX ? size : TRACING_STORAGE_MAX;
	copy = malloc(size ? size : 1);
	if (!copy)
		abort();
	if (size)
		memcpy(copy, data, size);
	err = tracing_storage_parse(copy, size, &out);
#define X(name, key) check_name(out.names.name);
	SYMBOLIZER_CONTEXT_NAMES(X)
#undef X
	if (!memchr(out.socket, '\0', sizeof(out.socket)) ||
	    (*out.socket && *out.socket != '/') ||
	    (err && (*out.socket || *out.names.service)))
		abort();
	free(copy);
	return 0;
}
