// SPDX-License-Identifier: Apache-2.0
/* Fuzz target: a compressed file from memory, of which 1 MiB at most is taken. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include "symbolize/elf/packed.h"

#define BYTES_MAX (1U << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct symbolizer_src src;
	uint8_t *out;
	size_t len;
	int err;

	symbolizer_src_mem(&src, data, size);
	err = symbolizer_packed_read(&src, 0, size, BYTES_MAX, &out, &len);
	if (err && err != -ENODATA && err != -EILSEQ && err != -EFBIG &&
	    err != -ENOMEM)
		abort();
	if (err)
		return 0;
	if (len > BYTES_MAX)
		abort();
	/* For the sanitizer: each byte is there. */
	for (size_t i = 0; i < len; i++)
		(void)*(volatile uint8_t *)&out[i];
	free(out);
	return 0;
}
