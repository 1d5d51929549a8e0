// SPDX-License-Identifier: Apache-2.0
/* Offsets from any bytes that libbpf accepts as types: found or refused. */
#include <stdlib.h>

#include "processmanager/quark/btf.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const names[] = { "outer.w", "outer.(anon).(anon).w",
					     "outer.in.b", "deep.x",
					     "looped.x" };
	struct quark_btf qb;
	size_t i;

	libbpf_set_print(NULL);
	qb.btf = btf__new(data, size);
	if (!qb.btf)
		return 0;
	for (i = 0; i < ARRAY_SIZE(names); i++)
		if (quark_btf_offset(&qb, names[i]) < -1)
			abort();
	btf__free(qb.btf);
	return 0;
}
