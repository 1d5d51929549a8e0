// SPDX-License-Identifier: Apache-2.0
/*
 * prog_jit: makes code and says so in /tmp/perf-PID.map, like a JIT compiler. Each
 * argument is a step "SLOT:NAME:MS": writes the entry of a function NAME in one of 16
 * slots, makes it there, and runs it for that CPU time. NAME "-": no entry is written.
 * The slots are of 256 bytes, from PROG_JIT_AT on.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define PROG_JIT_AT 0x10000000000ULL
#define SLOT 256
#define SLOTS 16

/* push rbp; mov rbp, rsp; 1: dec rdi; jnz 1b; pop rbp; ret */
static const uint8_t code[] = {
	0x55, 0x48, 0x89, 0xe5, 0x48, 0xff, 0xcf, 0x75, 0xfb, 0x5d, 0xc3,
};

static uint64_t cpu_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

static void jit_run(const uint8_t *at, unsigned long ms)
{
	uint64_t end = cpu_ms() + ms;
	void (*fn)(uint64_t n);

	memcpy(&fn, &at, sizeof(fn));
	while (cpu_ms() < end)
		fn(100000);
}

static bool jit_write(const uint8_t *at, const char *name)
{
	static FILE *map;
	char path[64];

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
	if (!map)
		map = fopen(path, "a");
	if (!map) {
		perror(path);
		return false;
	}
	fprintf(map, "%lx %zx %s\n", (unsigned long)at, sizeof(code), name);
	return !fflush(map);
}

static bool jit_step(uint8_t *mem, char *step)
{
	char *slot = strtok(step, ":"), *name = strtok(NULL, ":");
	char *ms = strtok(NULL, ":");
	uint8_t *at;

	if (!ms)
		return false;
	at = mem + strtoul(slot, NULL, 10) % SLOTS * SLOT;
	memcpy(at, code, sizeof(code));
	if (strcmp(name, "-") != 0 && !jit_write(at, name))
		return false;
	jit_run(at, strtoul(ms, NULL, 10));
	return true;
}

int main(int argc, char **argv)
{
	uint8_t *mem =
		mmap((void *)PROG_JIT_AT, SLOT * SLOTS,
		     PROT_READ | PROT_WRITE | PROT_EXEC,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	if (mem == MAP_FAILED) {
		perror("mmap");
		return 1;
	}
	for (int i = 1; i < argc; i++)
		if (!jit_step(mem, argv[i]))
			return 2;
	return 0;
}
