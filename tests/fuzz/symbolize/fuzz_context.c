// SPDX-License-Identifier: Apache-2.0
/*
 * Fuzz target: what a process publishes about itself. Byte 0 odd: the header; else the
 * payload. In memory of its exact size.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "symbolize/context/context.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fuzz_header(const uint8_t *buf, size_t len)
{
	struct symbolizer_context_header h;
	int err = symbolizer_context_header(buf, len, &h);

	if (err && err != -EINVAL && err != -EAGAIN && err != -EFBIG)
		abort();
	if (!err && (!h.published_ns || h.size > SYMBOLIZER_CONTEXT_MAX ||
		     len < SYMBOLIZER_CONTEXT_HEADER))
		abort();
}

static void fuzz_payload(const uint8_t *buf, size_t len)
{
	struct symbolizer_context c;
	int err = symbolizer_context_parse(buf, len, &c);

	if (err && err != -EINVAL && err != -E2BIG)
		abort();
	if (!symbolizer_context_valid(&c))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *copy;

	if (!size)
		return 0;
	copy = malloc(size - 1);
	if (!copy && size > 1)
		abort();
	if (size > 1)
		memcpy(copy, data + 1, size - 1);
	if (data[0] & 1)
		fuzz_header(copy, size - 1);
	else
		fuzz_payload(copy, size - 1);
	free(copy);
	return 0;
}
