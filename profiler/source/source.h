/* SPDX-License-Identifier: Apache-2.0 */
/* source: where samples and events come from. */
#ifndef PROFILER_SOURCE_H
#define PROFILER_SOURCE_H

/* X(NAME, word) */
#define SOURCES(X)    \
	X(AUTO, auto) \
	X(BPF, bpf)   \
	X(PERF, perf)

enum source {
#define X(name, word) SOURCE_##name,
	SOURCES(X)
#undef X
};

#endif /* PROFILER_SOURCE_H */
