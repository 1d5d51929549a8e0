/* SPDX-License-Identifier: Apache-2.0 */
/* calls: which system calls wait, and for what. */
#ifndef PROFILER_WAITING_CALLS_H
#define PROFILER_WAITING_CALLS_H

#include <stdint.h>

#include "bpf/abi_wait.h"

/* By number of a system call: its reason and flags, see ABI_WAIT_CALLS. */
void waiting_calls(uint8_t calls[ABI_WAIT_CALLS]);

#endif /* PROFILER_WAITING_CALLS_H */
