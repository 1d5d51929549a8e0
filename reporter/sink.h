/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sink: where the bytes of a profile go: raw, gzip or zstd, into a file or
 * into memory. Whatever the profile's size, it holds two pieces and the
 * compressor's window. Errors stick: the first one is what sink_finish()
 * returns, and calls after it do nothing.
 */
#ifndef REPORTER_SINK_H
#define REPORTER_SINK_H

#include <stddef.h>
#include <stdint.h>

#include "reporter/reporter.h"

struct sink;

/* 'fd' stays the caller's; -1: into memory. 0 or -errno. */
int sink_new(struct sink **sp, enum reporter_format format, int fd);
void sink_free(struct sink *s);
void sink_write(struct sink *s, const void *data, size_t len);
/* Ends the stream. 0 or the first error, as -errno. */
int sink_finish(struct sink *s);
/* Bytes that came out so far. */
uint64_t sink_bytes(const struct sink *s);
/* What is in memory: malloc'd, the caller's, gone from the sink. */
void *sink_steal(struct sink *s, size_t *lenp);

#endif /* REPORTER_SINK_H */
