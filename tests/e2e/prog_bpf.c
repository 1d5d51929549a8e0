// SPDX-License-Identifier: Apache-2.0
/*
 * prog_bpf N MS: loads a BPF program, uses MS milliseconds of CPU time in it and unloads
 * it, N times. The programs turn_0, turn_1 and so on differ in one constant; each may
 * get the address of one before.
 */
#include <linux/bpf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define TURNS 2000 /* of the program's loop */

static int64_t cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

static int load(const char *name, int32_t constant)
{
	const struct bpf_insn insns[] = {
		{ BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, constant },
		{ BPF_ALU64 | BPF_MOV | BPF_K, 1, 0, 0, TURNS },
		{ BPF_ALU64 | BPF_MUL | BPF_K, 0, 0, 0, 5 },
		{ BPF_ALU64 | BPF_ADD | BPF_K, 0, 0, 0, constant },
		{ BPF_ALU64 | BPF_SUB | BPF_K, 1, 0, 0, 1 },
		{ BPF_JMP | BPF_JNE | BPF_K, 1, 0, -4, 0 },
		{ BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, 0 },
		{ BPF_JMP | BPF_EXIT, 0, 0, 0, 0 },
	};
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.prog_type = BPF_PROG_TYPE_SOCKET_FILTER;
	attr.insns = (uint64_t)(uintptr_t)insns;
	attr.insn_cnt = sizeof(insns) / sizeof(*insns);
	attr.license = (uint64_t)(uintptr_t) "GPL";
	strncpy(attr.prog_name, name, sizeof(attr.prog_name) - 1);
	return (int)syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof(attr));
}

static int run(int fd, int64_t until)
{
	uint8_t packet[64] = { 0 };
	union bpf_attr attr;

	do {
		memset(&attr, 0, sizeof(attr));
		attr.test.prog_fd = (uint32_t)fd;
		attr.test.data_in = (uint64_t)(uintptr_t)packet;
		attr.test.data_size_in = sizeof(packet);
		attr.test.repeat = 1000;
		if (syscall(SYS_bpf, BPF_PROG_TEST_RUN, &attr, sizeof(attr)))
			return -1;
	} while (cpu_ns() < until);
	return 0;
}

int main(int argc, char **argv)
{
	char name[16];
	int fd;

	if (argc != 3)
		return 2;
	for (int i = 0; i < atoi(argv[1]); i++) {
		snprintf(name, sizeof(name), "turn_%d", i);
		fd = load(name, 3 + i);
		if (fd < 0) {
			perror("BPF_PROG_LOAD");
			return 1;
		}
		if (run(fd, cpu_ns() + atoi(argv[2]) * 1000000LL)) {
			perror("BPF_PROG_TEST_RUN");
			return 1;
		}
		close(fd);
		/* It is freed after a grace period. */
		usleep(50000);
	}
	return 0;
}
