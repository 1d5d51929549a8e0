/* SPDX-License-Identifier: Apache-2.0 */
/* procstat: how long each CPU was busy, from /proc/stat. */
#ifndef PROFILER_PROCSTAT_H
#define PROFILER_PROCSTAT_H

#include <stddef.h>
#include <stdint.h>

/*
 * Busy time of every CPU, in clock ticks: all but idle, iowait and steal; user
 * time includes guest time. busy[i] is CPU i's, 0 for one that is not listed;
 * CPUs from 'n' on are ignored. 'text' need not be NUL-terminated. 0, or
 * -EINVAL: it lists no CPU.
 */
int procstat_parse(const char *text, size_t len, uint64_t *busy, size_t n);
/* The same from a file. 0 or -errno. */
int procstat_read(const char *path, uint64_t *busy, size_t n);

#endif /* PROFILER_PROCSTAT_H */
