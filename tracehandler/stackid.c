// SPDX-License-Identifier: Apache-2.0
/* stackid: see tracehandler/stackid.h; draft-eastlake-fnv has the constants. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tracehandler/stackid.h"

typedef unsigned __int128 stackid_fnv;

#define STACKID_BASIS \
	((stackid_fnv)0x6c62272e07bb0142ULL << 64 | 0x62b821756295c58dULL)
#define STACKID_PRIME ((stackid_fnv)1 << 88 | 0x13b)

static stackid_fnv stackid_add(stackid_fnv h, const void *p, size_t len)
{
	const uint8_t *byte = p;

	for (size_t i = 0; i < len; i++)
		h = (h ^ byte[i]) * STACKID_PRIME;
	return h;
}

static stackid_fnv stackid_frame(stackid_fnv h, const struct reporter_frame *f)
{
	const struct pm_exe *exe = reporter_place_exe(&f->place);
	struct pm_exe_info info = { 0 };
	uint64_t address = f->vaddr;
	char digits[24];
	int len;

	if (exe)
		pm_exe_info(exe, &info);
	else
		address = f->place.id;
	len = snprintf(digits, sizeof(digits), "%" PRIu64, address);
	h = stackid_add(h, info.ident.file_id, sizeof(info.ident.file_id));
	return stackid_add(h, digits, (size_t)len);
}

void trace_stack_id(const struct reporter_frame *frames, size_t n,
		    uint8_t id[TRACE_STACK_ID])
{
	stackid_fnv h = STACKID_BASIS;

	for (size_t i = 0; i < n; i++)
		h = stackid_frame(h, &frames[i]);
	for (size_t i = 0; i < TRACE_STACK_ID; i++)
		id[i] = (uint8_t)(h >> (8 * (TRACE_STACK_ID - 1 - i)));
}
