/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stackid: 16 bytes by which a tracing system knows a stack: FNV-1a of 128 bits, most
 * significant byte first, over each frame's 16 bytes of file id and its address in
 * decimal digits, leaf first, as OpenTelemetry's profiler computes it. The file id of what
 * is no file, as the kernel and marks, is zero; the number of a mark is its address.
 */
#ifndef TRACEHANDLER_STACKID_H
#define TRACEHANDLER_STACKID_H

#include "reporter/reporter.h"

#define TRACE_STACK_ID 16 /* bytes */

void trace_stack_id(const struct reporter_frame *frames, size_t n,
		    uint8_t id[TRACE_STACK_ID]);

#endif /* TRACEHANDLER_STACKID_H */
