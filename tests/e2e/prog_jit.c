// SPDX-License-Identifier: Apache-2.0
/*
 * prog_jit: makes code and says so, like a JIT compiler: in /tmp/perf-PID.map, or, if
 * the first argument is -j, in jit-PID.dump, in the current directory. Each further one
 * is a step "SLOT:NAME:MS": writes the entry of a function NAME in one of 16 slots,
 * makes it there, and runs it for that CPU time. NAME "-": no entry is written; ">N": the
 * slot's function moves to slot N (jitdump only). The slots are of 256 bytes, from
 * PROG_JIT_AT on. Lines of a jitdump: the loop is line 11 of jit.src, the rest line 10.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/types.h>
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

static FILE *map, *dump;

static bool map_write(const uint8_t *at, const char *name)
{
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

/* --- jitdump: the numbers are those of its specification -------------------- */

static void put32(uint32_t v)
{
	fwrite(&v, sizeof(v), 1, dump);
}

static void put64(uint64_t v)
{
	fwrite(&v, sizeof(v), 1, dump);
}

static void put_time(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	put64((uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec);
}

static void put_ids(void)
{
	put32((uint32_t)getpid());
	put32((uint32_t)getpid());
}

static bool dump_open(void)
{
	char path[64];

	snprintf(path, sizeof(path), "jit-%d.dump", (int)getpid());
	dump = fopen(path, "w+");
	if (!dump || mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE,
			  fileno(dump), 0) == MAP_FAILED)
		return false;
	put32(0x4a695444);
	put32(1);
	put32(40);
	put32(62);
	put32(0);
	put32((uint32_t)getpid());
	put_time();
	put64(0);
	return !fflush(dump);
}

static void dump_lines(const uint8_t *at)
{
	static const struct {
		uint32_t offset, line;
		char file[8];
	} rows[] = { { 0, 10, "jit.src" },
		     { 4, 11, "\xff" },
		     { 9, 10, "\xff" } };
	size_t n = sizeof(rows) / sizeof(*rows), size = 32;

	for (size_t i = 0; i < n; i++)
		size += 16 + strlen(rows[i].file) + 1;
	put32(2);
	put32((uint32_t)size);
	put_time();
	put64((uintptr_t)at);
	put64(n);
	for (size_t i = 0; i < n; i++) {
		put64((uintptr_t)at + rows[i].offset);
		put32(rows[i].line);
		put32(0);
		fwrite(rows[i].file, strlen(rows[i].file) + 1, 1, dump);
	}
}

static bool dump_write(const uint8_t *at, const char *name)
{
	static uint64_t number;

	dump_lines(at);
	put32(0);
	put32((uint32_t)(56 + strlen(name) + 1 + sizeof(code)));
	put_time();
	put_ids();
	put64((uintptr_t)at);
	put64((uintptr_t)at);
	put64(sizeof(code));
	put64(number++);
	fwrite(name, strlen(name) + 1, 1, dump);
	fwrite(code, sizeof(code), 1, dump);
	return !fflush(dump);
}

static bool dump_move(const uint8_t *from, const uint8_t *to)
{
	put32(1);
	put32(64);
	put_time();
	put_ids();
	put64((uintptr_t)to);
	put64((uintptr_t)from);
	put64((uintptr_t)to);
	put64(sizeof(code));
	put64(0);
	return !fflush(dump);
}

/* --- steps ------------------------------------------------------------------ */

static bool jit_write(const uint8_t *at, const char *name)
{
	return dump ? dump_write(at, name) : map_write(at, name);
}

static bool jit_step(uint8_t *mem, char *step)
{
	char *slot = strtok(step, ":"), *name = strtok(NULL, ":");
	char *ms = strtok(NULL, ":");
	uint8_t *at, *to;

	if (!ms)
		return false;
	at = mem + strtoul(slot, NULL, 10) % SLOTS * SLOT;
	if (*name == '>') {
		to = mem + strtoul(name + 1, NULL, 10) % SLOTS * SLOT;
		memcpy(to, at, sizeof(code));
		if (!dump_move(at, to))
			return false;
		at = to;
	} else {
		memcpy(at, code, sizeof(code));
		if (strcmp(name, "-") != 0 && !jit_write(at, name))
			return false;
	}
	jit_run(at, strtoul(ms, NULL, 10));
	return true;
}

int main(int argc, char **argv)
{
	uint8_t *mem =
		mmap((void *)PROG_JIT_AT, SLOT * SLOTS,
		     PROT_READ | PROT_WRITE | PROT_EXEC,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	int i = 1;

	if (mem == MAP_FAILED) {
		perror("mmap");
		return 1;
	}
	if (argc > 1 && !strcmp(argv[1], "-j")) {
		i++;
		if (!dump_open()) {
			perror("jitdump");
			return 1;
		}
	}
	for (; i < argc; i++)
		if (!jit_step(mem, argv[i]))
			return 2;
	return 0;
}
