/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sink: compresses the bytes of a profile (raw, gzip or zstd) into a file or into
 * memory. Its own memory is constant: two buffers and the compressor's window.
 * Errors stick: sink_finish() returns the first, and calls after it do nothing.
 */
#ifndef REPORTER_SINK_H
#define REPORTER_SINK_H

#include <stddef.h>
#include <stdint.h>

#include "reporter/reporter.h"

struct sink;

/* 'fd' is borrowed; -1: into memory. 0 or -errno. */
int sink_new(struct sink **sp, enum reporter_format format, int fd);
void sink_free(struct sink *s);
void sink_write(struct sink *s, const void *data, size_t len);
/* Ends the stream. 0 or the first error, as -errno. */
int sink_finish(struct sink *s);
/* Bytes of output so far. */
uint64_t sink_bytes(const struct sink *s);
/* The output in memory: malloc'd, passes to the caller. NULL: out of memory. */
void *sink_steal(struct sink *s, size_t *lenp);

#endif /* REPORTER_SINK_H */
