/* SPDX-License-Identifier: Apache-2.0 */
/* arch: the system calls of this machine: their table, and their symbols in the kernel. */
#ifndef PROCESSMANAGER_WATCH_ARCH_H
#define PROCESSMANAGER_WATCH_ARCH_H

#if defined(__x86_64__)
#define WATCH_CALLS "processmanager/watch/arch_x86.def"
#define WATCH_CALL_SYMBOL "__x64_sys_"
#else
#error "no system calls of this machine"
#endif

#endif /* PROCESSMANAGER_WATCH_ARCH_H */
