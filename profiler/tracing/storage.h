/* SPDX-License-Identifier: Apache-2.0 */
/*
 * storage: what a process with one of Elastic's agents says of itself (Elastic's universal
 * profiling integration, "process storage"), in the order of the host's bytes:
 *
 *	u16 minor version, from 1; text service, environment, path of the agent's socket
 *
 * A text is a u32 length and so many bytes. The path is as the process sees it.
 */
#ifndef PROFILER_TRACING_STORAGE_H
#define PROFILER_TRACING_STORAGE_H

#include <stddef.h>
#include <stdint.h>

#include "symbolize/symbolize.h"

/* Bytes that are read of a process; a longer storage is none. */
#define TRACING_STORAGE_MAX 8192
#define TRACING_SOCKET_MAX 4096 /* PATH_MAX: with the end of the string */

struct tracing_storage {
	struct symbolizer_context names; /* service and environment */
	char socket[TRACING_SOCKET_MAX]; /* absolute; "": none */
};

/*
 * 'buf' is at most TRACING_STORAGE_MAX bytes of memory, of which the storage is the begin.
 * 0 or -EINVAL, then 'out' is all zero. A process can write anything there. Names that are
 * no text are left out, as in symbolizer_context_set(), and so is what cannot be an
 * absolute path. Any thread.
 */
int tracing_storage_parse(const uint8_t *buf, size_t len,
			  struct tracing_storage *out);

#endif /* PROFILER_TRACING_STORAGE_H */
