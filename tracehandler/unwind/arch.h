/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arch: what the unwinder needs to know about the machine. A new machine is a new
 * file like arch_x86_64.h.
 */
#ifndef TRACEHANDLER_ARCH_H
#define TRACEHANDLER_ARCH_H

#if defined(__x86_64__)
#include "tracehandler/unwind/arch_x86_64.h"
#else
#error "no unwinder for this machine"
#endif

#endif /* TRACEHANDLER_ARCH_H */
