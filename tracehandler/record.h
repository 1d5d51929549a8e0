/* SPDX-License-Identifier: Apache-2.0 */
/* record: one sample of the ring, taken apart (bpf/abi.h says how it is laid out). */
#ifndef TRACEHANDLER_RECORD_H
#define TRACEHANDLER_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/abi.h"

/* Pointers point into the record and need not be aligned. */
struct trace_record {
	struct abi_sample head;
	const uint8_t *kstack; /* nkstack addresses, leaf first */
	size_t nkstack;
	bool has_regs;
	bool has_stack;
	bool has_left;
	struct abi_regs regs;
	struct abi_stack stack;
	const uint8_t *stack_bytes; /* stack.size of them */
	struct abi_stack left; /* what a signal left for its own */
	const uint8_t *left_bytes;
};

/*
 * 0, or -EINVAL when a length does not fit or the event is unknown. Parts of unknown types are passed
 * over; of two of one type, but for stacks, the last counts.
 */
int trace_record_parse(const void *buf, size_t len, struct trace_record *out);
/* Address i of the kernel stack. */
uint64_t trace_record_kpc(const struct trace_record *r, size_t i);

#endif /* TRACEHANDLER_RECORD_H */
