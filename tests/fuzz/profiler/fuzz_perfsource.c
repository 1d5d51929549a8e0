// SPDX-License-Identifier: Apache-2.0
/*
 * A perf record of any bytes: refused, or turned into a sample that the trace
 * handler can take apart, or a path that ends inside. The first byte chooses
 * whether samples bring a call chain.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/source/perfsource_parse.h"
#include "tracehandler/record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_sample(const struct perfsource_record *r)
{
	size_t size = perfsource_sample_size(r);
	struct abi_sample *s = malloc(size);
	struct trace_record t;

	if (!s)
		return;
	perfsource_sample_build(r, s);
	if (s->size != size)
		abort();
	/* No end of the address space lies inside of what the kernel copied. */
	if (r->sample.regs.gpr[ABI_REG_SP] < UINT64_MAX - 65536 &&
	    trace_record_parse(s, size, &t))
		abort();
	perfsource_sample_strip(s);
	if (s->size > size || trace_record_parse(s, s->size, &t) ||
	    t.has_regs || t.has_stack)
		abort();
	free(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct perfsource_record r;
	uint8_t *exact;

	if (!size)
		return 0;
	exact = malloc(size > 1 ? size - 1 : 1);
	if (!exact)
		return 0;
	memcpy(exact, data + 1, size - 1);
	if (!perfsource_parse(exact, size - 1, data[0] & 1, &r)) {
		if (r.kind == PERFSOURCE_SAMPLE)
			check_sample(&r);
		if (r.kind == PERFSOURCE_MAP &&
		    r.map.path + strlen(r.map.path) >= (char *)exact + size - 1)
			abort();
		if (!memchr(r.comm, 0, sizeof(r.comm)))
			abort();
	}
	free(exact);
	return 0;
}
