/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tick: run time and run count of the sampling program as the kernel counts them, once
 * bpf_enable_stats() has been called. The kernel has one counter for the samples of all
 * processes.
 */
#ifndef TESTS_BENCH_TICK_H
#define TESTS_BENCH_TICK_H

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>

/* The id of the program that was loaded last. */
static inline uint32_t tick_last_program(void)
{
	uint32_t id = 0;

	while (!bpf_prog_get_next_id(id, &id))
		;
	return id;
}

static inline int tick_read(int prog, struct bpf_prog_info *info)
{
	uint32_t len = sizeof(*info);

	memset(info, 0, sizeof(*info));
	return bpf_obj_get_info_by_fd(prog, info, &len);
}

/* The sampling program that was loaded after 'last': its descriptor, or -errno. */
static inline int tick_find_program(uint32_t last, struct bpf_prog_info *info)
{
	uint32_t id = last;
	int fd;

	while (!bpf_prog_get_next_id(id, &id)) {
		fd = bpf_prog_get_fd_by_id(id);
		if (fd < 0)
			continue;
		if (!tick_read(fd, info) && !strcmp(info->name, "sampler_tick"))
			return fd;
		close(fd);
	}
	return -ENOENT;
}

#endif /* TESTS_BENCH_TICK_H */
