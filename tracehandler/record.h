/* SPDX-License-Identifier: Apache-2.0 */
/* record: parses a record of the sample ring; bpf/abi.h has its format. */
#ifndef TRACEHANDLER_RECORD_H
#define TRACEHANDLER_RECORD_H

#include "bpf/abi_trace.h"
#include "tracehandler/unwind/unwind.h"

/* Pointers point into the record and need not be aligned. */
struct trace_record {
	struct abi_sample head;
	const uint8_t *kstack; /* nkstack addresses, leaf first */
	size_t nkstack;
	bool has_regs;
	bool has_stack;
	bool has_left;
	bool has_trace;
	struct abi_trace trace;
	struct abi_regs regs;
	struct trace_piece stack;
	struct trace_piece left; /* of the stack left for another one */
	const uint8_t *code; /* code_len bytes at ip */
	size_t code_len;
	bool has_go;
	struct abi_go go; /* 'left' is the goroutine's stack then */
};

/*
 * 0, or -EINVAL when a length does not fit or the event is unknown. Parts of
 * unknown types are skipped. If a type is repeated the last part counts, but a
 * second stack is the one left for a signal's, or for Go's g0.
 */
int trace_record_parse(const void *buf, size_t len, struct trace_record *out);
/* Address i of the kernel stack. */
uint64_t trace_record_kpc(const struct trace_record *r, size_t i);

#endif /* TRACEHANDLER_RECORD_H */
