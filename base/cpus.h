/* SPDX-License-Identifier: Apache-2.0 */
/* cpus: which CPUs are online now; they come and go. */
#ifndef BASE_CPUS_H
#define BASE_CPUS_H

#include <sched.h>
#include <stddef.h>

/* Parses a kernel CPU list ("0-3,8\n"). 0 or -EINVAL. */
int cpus_parse(const char *list, size_t len, cpu_set_t *set);
/* Reads /sys/devices/system/cpu/online. 0 or -errno. */
int cpus_online(cpu_set_t *set);

#endif /* BASE_CPUS_H */
