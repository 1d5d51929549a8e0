// SPDX-License-Identifier: Apache-2.0
/*
 * perfsource_parse: see perfsource_parse.h. Layout: perf_event_open(2) and
 * include/uapi/linux/perf_event.h. A sample has the fields of sample_type in a
 * fixed order; every other record ends in the trailer of sample_id_all.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>

#include "base/base.h"
#include "profiler/source/arch.h"
#include "profiler/source/perfsource_parse.h"
#include "profiler/source/sideband.h"

#define TRAILER_SIZE 24 /* of PERF_SAMPLE_TID | TIME | CPU */

static const uint8_t regs_order[ABI_GPRS] = ARCH_PERF_ORDER;

static size_t perfsource_rest(const struct cursor *c)
{
	return (size_t)(c->end - c->p);
}

static void parse_trailer(struct cursor *c, struct perfsource_record *out)
{
	out->pid = cursor_fixed(c, sizeof(out->pid));
	out->tid = cursor_fixed(c, sizeof(out->tid));
	out->time = cursor_fixed(c, sizeof(out->time));
	out->cpu = cursor_fixed(c, sizeof(out->cpu));
	cursor_fixed(c, sizeof(uint32_t)); /* padding */
}

static int parse_chain(struct cursor *c, struct perfsource_sample *s)
{
	uint64_t n = cursor_fixed(c, sizeof(n));

	if (c->bad || n > perfsource_rest(c) / sizeof(uint64_t))
		return -EINVAL;
	s->kstack = cursor_bytes(c, n * sizeof(uint64_t));
	s->nkstack = n;
	return 0;
}

static int parse_regs(struct cursor *c, struct perfsource_sample *s)
{
	uint64_t abi = cursor_fixed(c, sizeof(abi)), regs[ARCH_PERF_NREGS];
	const uint8_t *p;
	size_t i;

	if (c->bad)
		return -EINVAL;
	if (abi == PERF_SAMPLE_REGS_ABI_NONE)
		return 0;
	p = cursor_bytes(c, sizeof(regs));
	if (!p)
		return -EINVAL;
	memcpy(regs, p, sizeof(regs));
	for (i = 0; i < ARRAY_SIZE(regs_order); i++)
		s->regs.gpr[i] = regs[regs_order[i]];
	s->regs.ip = regs[ARCH_PERF_IP];
	s->regs.flags = regs[ARCH_PERF_FLAGS];
	/* a worker of io_uring or vhost: mm, but no user side */
	s->has_regs = s->regs.ip || s->regs.gpr[ABI_REG_SP];
	s->compat = abi == PERF_SAMPLE_REGS_ABI_32;
	return 0;
}

/* A sample has the whole room, then the number of bytes that were copied. */
static int parse_stack(struct cursor *c, struct perfsource_sample *s)
{
	uint64_t room = cursor_fixed(c, sizeof(room)), size;

	if (!room)
		return c->bad ? -EINVAL : 0;
	s->stack = cursor_bytes(c, room);
	size = cursor_fixed(c, sizeof(size));
	if (c->bad || size > room)
		return -EINVAL;
	s->stack_size = size;
	s->stack_room = room;
	return 0;
}

static int perfsource_parse_sample(struct cursor *c, bool user, bool kernel,
				   struct perfsource_record *out)
{
	struct perfsource_sample *s = &out->sample;
	int err = 0;

	out->kind = PERFSOURCE_SAMPLE;
	s->ip = cursor_fixed(c, sizeof(s->ip));
	parse_trailer(c, out);
	s->user = user;
	if (kernel)
		err = parse_chain(c, s);
	if (!err)
		err = parse_regs(c, s);
	return err ? err : parse_stack(c, s);
}

static int parse_task(struct cursor *c, enum perfsource_kind kind,
		      struct perfsource_record *out)
{
	out->kind = kind;
	out->pid = cursor_fixed(c, sizeof(out->pid));
	out->ppid = cursor_fixed(c, sizeof(out->ppid));
	out->tid = cursor_fixed(c, sizeof(out->tid));
	out->ptid = cursor_fixed(c, sizeof(out->ptid));
	cursor_fixed(c, sizeof(out->time)); /* the trailer's, too */
	return c->bad ? -EINVAL : 0;
}

/* COMM: pid, tid, and the name, NUL-terminated and padded. */
static int parse_comm(struct cursor *c, bool exec,
		      struct perfsource_record *out)
{
	size_t n;

	out->kind = exec ? PERFSOURCE_EXEC : PERFSOURCE_COMM;
	out->pid = cursor_fixed(c, sizeof(out->pid));
	out->tid = cursor_fixed(c, sizeof(out->tid));
	if (c->bad)
		return -EINVAL;
	n = MIN(perfsource_rest(c), sizeof(out->comm) - 1);
	memcpy(out->comm, c->p, n);
	if (exec)
		out->map = (struct pm_map_event){ .kind = PM_MAP_EXEC,
						  .tgid = out->pid,
						  .tid = out->tid,
						  .time = out->time };
	return 0;
}

static int parse_map(const struct perf_event_header *h, const struct cursor *c,
		     struct perfsource_record *out)
{
	int ret = sideband_parse_body(h, c->p, perfsource_rest(c), &out->map,
				      &out->lost);

	out->map.time = out->time;
	out->kind = PERFSOURCE_LOST;
	if (h->type == PERF_RECORD_MMAP2) {
		out->kind = PERFSOURCE_MAP;
		out->pid = out->map.tgid;
		out->tid = out->map.tid;
	}
	return MIN(ret, 0);
}

static int parse_other(const struct perf_event_header *h, struct cursor *c,
		       struct perfsource_record *out)
{
	struct cursor trailer = *c;

	if (perfsource_rest(c) < TRAILER_SIZE)
		return -EINVAL;
	c->end -= TRAILER_SIZE;
	trailer.p = c->end;
	parse_trailer(&trailer, out);
	switch (h->type) {
	case PERF_RECORD_MMAP2:
	case PERF_RECORD_LOST:
		return parse_map(h, c, out);
	case PERF_RECORD_COMM:
		return parse_comm(c, h->misc & PERF_RECORD_MISC_COMM_EXEC, out);
	case PERF_RECORD_FORK:
		return parse_task(c, PERFSOURCE_FORK, out);
	case PERF_RECORD_EXIT:
		return parse_task(c, PERFSOURCE_EXIT, out);
	case PERF_RECORD_THROTTLE:
		out->kind = PERFSOURCE_THROTTLE;
	}
	return 0;
}

int perfsource_parse(const void *buf, size_t len, bool kernel,
		     struct perfsource_record *out)
{
	struct cursor c = { buf, (const uint8_t *)buf + len, false };
	const uint8_t *p = cursor_bytes(&c, sizeof(struct perf_event_header));
	struct perf_event_header h;
	uint16_t mode;

	memset(out, 0, sizeof(*out));
	if (!p)
		return -EINVAL;
	memcpy(&h, p, sizeof(h));
	if (h.size != len)
		return -EINVAL;
	if (h.type != PERF_RECORD_SAMPLE)
		return parse_other(&h, &c, out);
	mode = h.misc & PERF_RECORD_MISC_CPUMODE_MASK;
	return perfsource_parse_sample(&c, mode == PERF_RECORD_MISC_USER,
				       kernel, out);
}

/* The chain without its markers, such as PERF_CONTEXT_KERNEL. */
static size_t kernel_chain(const struct perfsource_sample *s, uint64_t *out)
{
	uint64_t pc;
	size_t i, n = 0;

	for (i = 0; i < s->nkstack && n < ABI_KSTACK_MAX; i++) {
		memcpy(&pc, s->kstack + i * sizeof(pc), sizeof(pc));
		if (pc < PERF_CONTEXT_MAX)
			out[n++] = pc;
	}
	if (!n && !s->user)
		out[n++] = s->ip;
	return n;
}

/* Nothing could be read: the task has released its memory. */
static bool without_memory(const struct perfsource_sample *s)
{
	return !s->user && !s->stack_size;
}

static size_t part_size(size_t payload)
{
	return sizeof(struct abi_part) + ((payload + 7) & ~(size_t)7);
}

size_t perfsource_sample_size(const struct perfsource_record *r)
{
	const struct perfsource_sample *s = &r->sample;
	size_t size = sizeof(struct abi_sample);
	uint64_t chain[ABI_KSTACK_MAX];
	size_t n = kernel_chain(s, chain);

	if (n)
		size += part_size(n * sizeof(*chain));
	if (s->has_regs && !without_memory(s))
		size += part_size(sizeof(s->regs)) +
			part_size(sizeof(struct abi_stack) + s->stack_size);
	return size;
}

static uint8_t *perfsource_put_part(uint8_t *at, uint32_t type,
				    const void *data, size_t size,
				    const void *more, size_t nmore)
{
	struct abi_part part = { type, size + nmore };
	size_t total = part_size(part.size);

	memset(at + total - 8, 0, 8); /* the padding, where there is some */
	memcpy(at, &part, sizeof(part));
	memcpy(at + sizeof(part), data, size);
	if (nmore)
		memcpy(at + sizeof(part) + size, more, nmore);
	return at + total;
}

/* The copy ends at an absent page: behind the stack, or in a hole of it. */
static uint32_t stack_ends(const struct perfsource_sample *s)
{
	return s->stack_size == s->stack_room ? ABI_STACK_CAP : ABI_STACK_FAULT;
}

void perfsource_sample_build(const struct perfsource_record *r,
			     struct abi_sample *out)
{
	const struct perfsource_sample *s = &r->sample;
	struct abi_stack stack = { s->regs.gpr[ABI_REG_SP], s->stack_size,
				   stack_ends(s), 0 };
	uint8_t *at = (uint8_t *)(out + 1);
	uint64_t chain[ABI_KSTACK_MAX];
	size_t n = kernel_chain(s, chain);

	memset(out, 0, sizeof(*out));
	out->time = r->time;
	out->key.tgid = r->pid;
	out->tid = r->tid;
	out->cpu = r->cpu;
	out->event = ABI_EVENT_CPU;
	if (s->user)
		out->flags |= ABI_SAMPLE_USER;
	if (n)
		at = perfsource_put_part(at, ABI_PART_KSTACK, chain,
					 n * sizeof(*chain), NULL, 0);
	if (!s->has_regs) {
		out->flags |= ABI_SAMPLE_KTHREAD;
	} else if (without_memory(s)) {
		out->flags |= ABI_SAMPLE_NOMM;
	} else {
		if (s->compat)
			out->flags |= ABI_SAMPLE_COMPAT;
		at = perfsource_put_part(at, ABI_PART_REGS, &s->regs,
					 sizeof(s->regs), NULL, 0);
		at = perfsource_put_part(at, ABI_PART_STACK, &stack,
					 sizeof(stack), s->stack,
					 s->stack_size);
	}
	out->size = at - (uint8_t *)out;
}

void perfsource_sample_strip(struct abi_sample *s)
{
	const uint8_t *p = (const uint8_t *)s;
	struct abi_part part;
	size_t at = sizeof(*s);

	s->flags |= ABI_SAMPLE_EXEC;
	while (at < s->size) {
		memcpy(&part, p + at, sizeof(part));
		if (part.type != ABI_PART_KSTACK)
			break;
		at += part_size(part.size);
	}
	s->size = at;
}
