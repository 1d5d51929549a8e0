// SPDX-License-Identifier: Apache-2.0
/*
 * Fuzz target: kallsyms text, packed and looked up again. The kernel's is
 * trusted; the packing is what has to hold for any of it.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "symbolize/kallsyms.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kallsyms_symbol sym;
	struct kallsyms *k;
	uint64_t addr = 0;

	if (kallsyms_parse(&k, (const char *)data, size))
		return 0;
	/* The addresses of the text itself are among these. */
	for (size_t i = 0; i < size; i++) {
		addr = addr << 4 | ((data[i] & 15) + (data[i] > '9' ? 9 : 0));
		if (kallsyms_find(k, addr, &sym) &&
		    (addr < sym.start || addr - sym.start >= sym.size ||
		     !sym.module))
			abort();
	}
	kallsyms_free(k);
	return 0;
}
