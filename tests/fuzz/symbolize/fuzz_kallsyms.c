// SPDX-License-Identifier: Apache-2.0
/*
 * Fuzz target: kallsyms text, packed and looked up again; and as a reading before that
 * of its second half. The kernel's is trusted; the packing is what has to hold for any of
 * it.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "symbolize/kallsyms.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What is gone has the name that it had. */
static void check_past(const struct kallsyms *was, const uint8_t *data,
		       size_t size)
{
	struct kallsyms_past past = { 0 };
	struct kallsyms_symbol sym, old;
	struct kallsyms *now;
	uint64_t addr = 0;

	if (kallsyms_parse(&now, (const char *)data + size / 2,
			   size - size / 2))
		return;
	if (kallsyms_past_add(&past, was, now, 7) || past.n > 1)
		abort();
	for (size_t i = 0; i < size; i++) {
		addr = addr << 4 | ((data[i] & 15) + (data[i] > '9' ? 9 : 0));
		if (kallsyms_past_find(&past, addr, 7, &sym))
			abort();
		if (kallsyms_past_find(&past, addr, 6, &sym) &&
		    (!kallsyms_find(was, sym.start, &old) ||
		     strcmp(old.name, sym.name) != 0))
			abort();
	}
	kallsyms_past_fini(&past);
	kallsyms_free(now);
}

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
	check_past(k, data, size);
	kallsyms_free(k);
	return 0;
}
