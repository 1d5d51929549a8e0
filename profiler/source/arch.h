/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arch: the user registers that perf events copy (asm/perf_regs.h). A sample has
 * them in the order of their bits in sample_regs_user. Another machine is
 * another block here.
 */
#ifndef PROFILER_ARCH_H
#define PROFILER_ARCH_H

#include "bpf/abi.h"

#if defined(__x86_64__)
/* ax bx cx dx si di bp sp ip flags, r8 to r15 */
#define ARCH_PERF_REGS 0xff03ffULL
#define ARCH_PERF_NREGS 18
#define ARCH_PERF_IP 8
#define ARCH_PERF_FLAGS 9
/* The place in the sample of each register of abi_regs. */
#define ARCH_PERF_ORDER                                                \
	{                                                              \
		0, 3, 2, 1, 4, 5, 6, 7, 10, 11, 12, 13, 14, 15, 16, 17 \
	}
#else
#error "no registers of perf events for this machine"
#endif

#endif /* PROFILER_ARCH_H */
