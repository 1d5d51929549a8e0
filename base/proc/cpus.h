/* SPDX-License-Identifier: Apache-2.0 */
/* cpus: which CPUs there are, and which are online now; they come and go. */
#ifndef BASE_CPUS_H
#define BASE_CPUS_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>

/* What no kernel has: a list with a higher number is not a CPU list. */
#define CPUS_MAX (1 << 20)

/* A set of CPUs, empty when all zero. Any thread, one at a time. */
struct cpus {
	size_t n; /* the highest number in it + 1 */
	cpu_set_t *set; /* of CPU_ALLOC_SIZE(n) bytes */
};

/*
 * Parses a kernel CPU list ("0-3,8\n") into '*c', whose former value is not
 * freed. 0, -EINVAL or -ENOMEM; '*c' is empty after an error.
 */
int cpus_parse(const char *list, size_t len, struct cpus *c);
/* The CPUs of /sys/devices/system/cpu/online. As cpus_parse(), or -errno. */
int cpus_online(struct cpus *c);
/* The CPUs that may ever come: /sys/devices/system/cpu/possible. */
int cpus_possible(struct cpus *c);
/* The highest number of a possible CPU + 1, or -errno. */
int cpus_number(void);
bool cpus_has(const struct cpus *c, size_t cpu);
void cpus_fini(struct cpus *c);

#endif /* BASE_CPUS_H */
