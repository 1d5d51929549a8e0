/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * arch: registers, stacks and system calls by machine. A new machine is a new file like
 * these, its struct pt_regs in bpf/vmlinux.h, and its registers in bpf/abi.h.
 */
#ifndef BPF_ARCH_BPF_H
#define BPF_ARCH_BPF_H

#if defined(__TARGET_ARCH_x86)
#include "bpf/arch_x86.bpf.h"
#elif defined(__TARGET_ARCH_arm64)
#include "bpf/arch_arm64.bpf.h"
#else
#error "no programs for this machine"
#endif

#endif /* BPF_ARCH_BPF_H */
