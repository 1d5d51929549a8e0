/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mapped: the file of a process that has a tracer's variable. On the loop's thread.
 */
#ifndef PROFILER_TRACING_MAPPED_H
#define PROFILER_TRACING_MAPPED_H

#include "processmanager/processmanager.h"

struct mapped_tracer {
	const struct symbolizer_slot *slot; /* borrowed from the executable */
	uint64_t bias; /* address in the process = in the file + bias */
};

/*
 * As of now. A program's variable goes before those of libraries, which use it, too; then
 * Elastic's before OpenTelemetry's, since it has more ids. False: no file has one.
 */
bool mapped_tracer(struct pm *pm, struct pm_image *img,
		   struct mapped_tracer *out);

#endif /* PROFILER_TRACING_MAPPED_H */
