/* SPDX-License-Identifier: Apache-2.0 */
/*
 * perfsource_parse: one record of a perf ring with samples and side-band, as
 * the attributes in perfsource.c define it.
 */
#ifndef PROFILER_PERFSOURCE_PARSE_H
#define PROFILER_PERFSOURCE_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/abi.h"
#include "processmanager/processmanager.h"

/* The kernel refuses 65,536: perf_event_header.size is a u16. */
#define PERFSOURCE_STACK_MAX 65528

enum perfsource_kind {
	PERFSOURCE_OTHER, /* ignored */
	PERFSOURCE_SAMPLE,
	PERFSOURCE_MAP, /* a mapping appeared: map */
	PERFSOURCE_EXEC, /* an exec begins: map, and comm */
	PERFSOURCE_COMM, /* a thread changed its name */
	PERFSOURCE_FORK, /* a thread, or a process */
	PERFSOURCE_EXIT, /* of a thread */
	PERFSOURCE_LOST, /* map, and how many */
	PERFSOURCE_THROTTLE,
};

/* Pointers point into the record, which need not be aligned for them. */
struct perfsource_sample {
	bool user; /* the tick hit user code */
	bool has_regs;
	bool compat;
	struct abi_regs regs;
	uint64_t ip;
	const uint8_t *kstack; /* leaf first; includes the kernel's markers */
	size_t nkstack;
	const uint8_t *stack;
	uint32_t stack_size; /* bytes that were copied */
	uint32_t stack_room; /* most bytes there is room for */
};

struct perfsource_record {
	enum perfsource_kind kind;
	uint32_t pid, tid, cpu;
	uint64_t time;
	uint32_t ppid, ptid; /* FORK, EXIT: of the parent */
	uint64_t lost;
	char comm[ABI_COMM_LEN];
	struct pm_map_event map;
	struct perfsource_sample sample;
};

/* 'kernel': samples have the kernel's call chain. 0, or -EINVAL: bad length. */
int perfsource_parse(const void *buf, size_t len, bool kernel,
		     struct perfsource_record *out);

/*
 * The sample as bpf/sampler.bpf.c writes it, but of its key only the tgid, and
 * without the name of its thread. The size in bytes, and the record.
 */
size_t perfsource_sample_size(const struct perfsource_record *r);
void perfsource_sample_build(const struct perfsource_record *r,
			     struct abi_sample *out);

/* Removes the user side of a sample inside execve: it is stale. */
void perfsource_sample_strip(struct abi_sample *s);

#endif /* PROFILER_PERFSOURCE_PARSE_H */
