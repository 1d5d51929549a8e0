// SPDX-License-Identifier: Apache-2.0
/*
 * Fuzz target: any bytes as the name of a symbol. What comes out has its length,
 * and was made in its time.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/base.h"
#include "symbolize/demangle.h"

/* Two demanglers try a name; ticks come late on a loaded host. */
#define CPU_MS_MAX 2000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t cpu_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct symbolizer_demangle_cost cost = { 0 };
	struct strbuf text = STRBUF_INIT;
	char *name = malloc(size + 1);
	static bool started;
	uint64_t before;

	if (!name || (!started && symbolizer_demangle_start()))
		abort();
	started = true;
	memcpy(name, data, size);
	name[size] = '\0';
	before = cpu_ms();
	if (symbolizer_demangle(name, &text, &cost) ? !text.len : text.len)
		abort();
	if (text.len > SYMBOLIZER_DEMANGLED_MAX ||
	    cpu_ms() - before > CPU_MS_MAX)
		abort();
	strbuf_fini(&text);
	free(name);
	return 0;
}
