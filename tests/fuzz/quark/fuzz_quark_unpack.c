// SPDX-License-Identifier: Apache-2.0
/*
 * Any bytes as a record of libquark's ring: refused, or a complete record of its
 * kind, without anything of the previous record.
 */
#include <stdlib.h>

#include "processmanager/quark/unpack.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct quark_unpacked over[2];

static void must(bool ok)
{
	if (!ok)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint32_t home[ABI_QUARK_NAMESPACES] = { 1, 2, 3, 4 };
	ssize_t n[2];
	int i;

	for (i = 0; i < 2; i++) {
		memset(&over[i], i ? 0xff : 0,
		       MIN(sizeof(over[i]), sizeof(over[i].words) + size));
		n[i] = quark_unpack(&over[i], data, size, home);
	}
	must(n[0] == n[1]);
	if (n[0] == -EINVAL)
		return 0;
	must(over[0].head.kind < ABI_QUARK_KIND_MAX);
	must((size_t)n[0] >= sizes[over[0].head.kind]);
	must((size_t)n[0] <= sizeof(over[0].room));
	must(!memcmp(&over[0], &over[1], n[0]));
	return 0;
}
