/* SPDX-License-Identifier: Apache-2.0 */
/* cpus: which CPUs are possible and which are online. */
#ifndef BASE_CPUS_H
#define BASE_CPUS_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>

/* More than any kernel supports: a list with a higher number is invalid. */
#define CPUS_MAX (1 << 20)

/* A set of CPUs; all zero: empty. Not locked. */
struct cpus {
	size_t n; /* the highest number in it + 1 */
	cpu_set_t *set; /* of CPU_ALLOC_SIZE(n) bytes */
};

/*
 * Parses a kernel CPU list ("0-3,8\n") into '*c' without freeing its former value.
 * 0, -EINVAL or -ENOMEM; '*c' is empty after an error.
 */
int cpus_parse(const char *list, size_t len, struct cpus *c);
/* The CPUs of /sys/devices/system/cpu/online. As cpus_parse(), or -errno. */
int cpus_online(struct cpus *c);
/* The CPUs that can come online: /sys/devices/system/cpu/possible. */
int cpus_possible(struct cpus *c);
/* The highest number of a possible CPU + 1, or -errno. */
int cpus_number(void);
bool cpus_has(const struct cpus *c, size_t cpu);
void cpus_fini(struct cpus *c);

#endif /* BASE_CPUS_H */
