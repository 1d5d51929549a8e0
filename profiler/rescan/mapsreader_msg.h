/* SPDX-License-Identifier: Apache-2.0 */
/* mapsreader_msg: messages between profd and its maps reader, on a stream. */
#ifndef PROFILER_MAPSREADER_MSG_H
#define PROFILER_MAPSREADER_MSG_H

#include "profiler/rescan/mapsreader.h"

struct mapsreader_question {
	uint64_t slice_ns;
	uint32_t n;
	uint32_t tgids[MAPSREADER_BATCH];
	uint32_t pad;
};

/*
 * Then 'n' mappings, the path of each an offset into the text, and 'text_len'
 * bytes of text, the last of them NUL.
 */
struct mapsreader_answer {
	int32_t err;
	uint32_t waited;
	uint64_t begin, end, cpu_ns;
	uint64_t n, text_len;
};

#endif /* PROFILER_MAPSREADER_MSG_H */
