/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sampler: the sample stream. A small BPF program on the software CPU clock of
 * every online CPU copies registers, kernel stack and the live part of the user
 * stack into one ring.
 */
#ifndef PROFILER_SAMPLER_H
#define PROFILER_SAMPLER_H

#include <stddef.h>
#include <stdint.h>

#include "bpf/abi_trace.h"
#include "processmanager/quark/quark.h"

struct sampler;

struct sampler_opts {
	unsigned int freq_hz;
	/* Bytes of user stack; 0: 64 KiB, or 256 KiB while there is room. */
	size_t stack_copy;
	size_t ring_bytes; /* power of two, page multiple; 0: 8 MiB */
	/* One record, borrowed for the call: copy what must stay. */
	void (*sample)(void *arg, const struct abi_sample *rec, size_t len);
	/* A kernel module was loaded or unloaded. */
	void (*module)(void *arg, const struct abi_module *rec);
	void *arg;
};

/*
 * Loads and attaches, not sampling yet. 0 or -errno, and then '*what' names
 * the step that failed (a static string).
 */
int sampler_new(struct sampler **sp, const struct sampler_opts *opts,
		const char **what);
void sampler_free(struct sampler *s);
/* Begins to sample on every CPU. 0 or -errno. */
int sampler_enable(struct sampler *s);
/* Stops sampling; what is in the ring can still be polled. */
void sampler_disable(struct sampler *s);
/*
 * Samples of this process have the code at ip, ABI_PART_CODE, until sampler_want_none(); so
 * do those of processes with the same bit.
 */
void sampler_want_code(struct sampler *s, uint32_t tgid);
void sampler_want_none(struct sampler *s);
/*
 * Likewise ABI_PART_GO. A thread has its g 'tls' bytes from the thread pointer, a multiple
 * of 8 that fits into 16 bits less its three zeros; curg: ABI_GO_CURG or ABI_GO_CURG_OLD.
 */
void sampler_want_go(struct sampler *s, uint32_t tgid, int32_t tls,
		     int32_t curg);
/*
 * Likewise for each process that will execute this file, from its first sample; tls 0:
 * not any more. Best effort: for want of room or on a kernel that does not allow it the
 * process must be wanted itself.
 */
void sampler_go_file(struct sampler *s, const struct quark_file_ident *file,
		     int32_t tls, int32_t curg);
/* Drains the ring. Number of records or -errno. */
int sampler_poll(struct sampler *s);
uint64_t sampler_watermark(const struct sampler *s);
/* The ring is filling up: readable then, for the loop. */
int sampler_epoll_fd(const struct sampler *s);
/*
 * The same for modules: readable when there is a record, drained by sampler_modules().
 * Without it, where the kernel has no modules or does not report them: -1.
 */
int sampler_modules_fd(const struct sampler *s);
void sampler_modules(struct sampler *s);
/* Follows CPUs that came and went. 0 or -errno; call about once a second. */
int sampler_hotplug(struct sampler *s);

/*
 * Sets where the threads of a process have their trace ids, or with NULL removes that. 0;
 * -E2BIG: there is no room; or another -errno.
 */
int sampler_trace_slot(struct sampler *s, uint32_t tgid,
		       const struct abi_trace_slot *slot);

/*
 * Of a CPU: the program's counters, and the expected number of samples: busy
 * time (from /proc/stat, without idle, iowait and steal) x Hz since sampling
 * began there. 'missed' is never negative; it includes noise by /proc/stat's
 * resolution of 10 ms and the phase of the clock. Without /proc/stat both stay
 * 0.
 */
struct sampler_cpu_stats {
	unsigned int cpu;
	unsigned int online;
	uint64_t counters[ABI_SAMPLER_COUNTER_MAX];
	double busy_s;
	double expected;
	double missed;
};

/* 'ticks': busy time, in clock ticks. Sets busy_s, expected and missed. */
void sampler_expect(struct sampler_cpu_stats *st, uint64_t ticks,
		    unsigned int freq_hz);
/*
 * Fills up to 'n' entries, by number of the CPU. Returns the highest number of
 * a CPU + 1, which may be more than 'n' (0: nothing is filled), or -errno.
 */
int sampler_get_stats(struct sampler *s, struct sampler_cpu_stats *out,
		      size_t n);

#endif /* PROFILER_SAMPLER_H */
