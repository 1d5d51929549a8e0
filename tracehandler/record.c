// SPDX-License-Identifier: Apache-2.0
/* record: see tracehandler/record.h. */
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "tracehandler/record.h"
#include "tracehandler/unwind/arch.h"

static int trace_record_stack(const struct abi_part *part, const uint8_t *data,
			      struct trace_piece *out)
{
	struct abi_stack stack;

	if (part->size < sizeof(stack))
		return -EINVAL;
	memcpy(&stack, data, sizeof(stack));
	if (stack.size > part->size - sizeof(stack) ||
	    stack.start + stack.size < stack.start)
		return -EINVAL;
	*out = (struct trace_piece){ data + sizeof(stack), stack.start,
				     stack.size, stack.end, stack.holes };
	return 0;
}

static int trace_record_code(const struct abi_part *part, const uint8_t *data,
			     struct trace_record *out)
{
	struct abi_code code;

	if (part->size != sizeof(code))
		return -EINVAL;
	memcpy(&code, data, sizeof(code));
	if (code.size > sizeof(code.bytes))
		return -EINVAL;
	out->code = data + offsetof(struct abi_code, bytes);
	out->code_len = code.size;
	return 0;
}

static int trace_record_go(const struct abi_part *part, const uint8_t *data,
			   struct trace_record *out)
{
	if (part->size != sizeof(out->go))
		return -EINVAL;
	memcpy(&out->go, data, sizeof(out->go));
	if (out->go.state >= ABI_GO_MAX)
		return -EINVAL;
	out->has_go = true;
	return 0;
}

static int trace_record_part(const struct abi_part *part, const uint8_t *data,
			     struct trace_record *out)
{
	switch (part->type) {
	case ABI_PART_KSTACK:
		if (part->size % sizeof(uint64_t))
			return -EINVAL;
		out->kstack = data;
		out->nkstack = part->size / sizeof(uint64_t);
		return 0;
	case ABI_PART_REGS:
		if (part->size != sizeof(out->regs))
			return -EINVAL;
		memcpy(&out->regs, data, sizeof(out->regs));
		out->has_regs = true;
		return 0;
	case ABI_PART_STACK:
		out->has_left = out->has_stack;
		out->has_stack = true;
		return trace_record_stack(
			part, data, out->has_left ? &out->left : &out->stack);
	case ABI_PART_CODE:
		return trace_record_code(part, data, out);
	case ABI_PART_TRACE:
		if (part->size != sizeof(out->trace))
			return -EINVAL;
		memcpy(&out->trace, data, sizeof(out->trace));
		out->has_trace = true;
		return 0;
	case ABI_PART_GO:
		return trace_record_go(part, data, out);
	default:
		return 0;
	}
}

/*
 * For the kernel's unwinder the vsyscall page is text of the kernel (in_gate_area_no_mm()).
 * So where code of that page entered the kernel, the kernel's stack ends with the address
 * that begins the user's.
 */
static void trace_record_end_kernel(struct trace_record *r)
{
	if (r->nkstack && arch_is_vsyscall(trace_record_kpc(r, r->nkstack - 1)))
		r->nkstack--;
}

int trace_record_parse(const void *buf, size_t len, struct trace_record *out)
{
	const uint8_t *p = buf;
	struct abi_part part;
	size_t at, left;
	int err;

	memset(out, 0, sizeof(*out));
	if (len < sizeof(out->head))
		return -EINVAL;
	memcpy(&out->head, p, sizeof(out->head));
	if (out->head.size < sizeof(out->head) || out->head.size > len)
		return -EINVAL;
	if (out->head.event >= ABI_EVENT_MAX)
		return -EINVAL;
	out->head.comm[sizeof(out->head.comm) - 1] = '\0';
	len = out->head.size;
	for (at = sizeof(out->head); at < len;) {
		left = len - at;
		if (left < sizeof(part))
			return -EINVAL;
		memcpy(&part, p + at, sizeof(part));
		at += sizeof(part);
		left -= sizeof(part);
		if (part.size > left)
			return -EINVAL;
		err = trace_record_part(&part, p + at, out);
		if (err)
			return err;
		left -= part.size;
		at += part.size;
		at += left < -part.size % 8 ? left : -part.size % 8;
	}
	trace_record_end_kernel(out);
	return 0;
}

uint64_t trace_record_kpc(const struct trace_record *r, size_t i)
{
	uint64_t pc;

	memcpy(&pc, r->kstack + i * sizeof(pc), sizeof(pc));
	return pc;
}
