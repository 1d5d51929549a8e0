// SPDX-License-Identifier: Apache-2.0
/*
 * prog_jit: makes code and says so, like a JIT compiler: in /tmp/perf-PID.map, or, if
 * the first argument is -j, in jit-PID.dump, in the current directory. With -n the same,
 * but the code destroys the frame pointer; with -u it does and its unwind information is
 * in the jitdump. With -m the code is in a memfd, which is mapped a second time to write
 * it. Each further argument is a step "SLOT:NAME:MS[:REST]": writes the entry of a function
 * NAME in one of 16 slots, makes it there, runs it for that CPU time, and sleeps for the
 * rest, in milliseconds. NAME "-": no entry is written; "=N", "~N": the perf map is written
 * anew with this entry alone, or another file renamed over it; "%N", "^N": the perf map has
 * the entry as the program ends, or then a file of an hour ago; "+N",
 * "@N" (with a jitdump): the entry is in the perf map, or in a second jitdump; ">N": the
 * slot's function moves to slot N (jitdump only). The slots are of 256 bytes, from
 * PROG_JIT_AT on. Lines of a jitdump: the loop is line 11 of jit.src, the rest line 10.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#define PROG_JIT_AT 0x10000000000ULL
#define SLOT 256
#define SLOTS 16

#define CODE_MAX 24

struct code {
	uint8_t bytes[CODE_MAX];
	size_t size;
	uint32_t loop, end; /* offsets of the loop and behind it */
};

static const struct code codes[] = {
	/* push rbp; mov rbp, rsp; 1: dec rdi; jnz 1b; pop rbp; ret */
	{ { 0x55, 0x48, 0x89, 0xe5, 0x48, 0xff, 0xcf, 0x75, 0xfb, 0x5d, 0xc3 },
	  11,
	  4,
	  9 },
	/*
	 * push rbp; sub rsp, 32; mov ebp, 1; 1: dec rdi; jnz 1b; add rsp, 32;
	 * pop rbp; ret
	 */
	{ { 0x55, 0x48, 0x83, 0xec, 0x20, 0xbd, 0x01, 0x00, 0x00, 0x00, 0x48,
	    0xff, 0xcf, 0x75, 0xfb, 0x48, 0x83, 0xc4, 0x20, 0x5d, 0xc3 },
	  21,
	  10,
	  15 },
};

static const struct code *code = codes;
static uint8_t *writable; /* a second mapping of the memory, or NULL */
static bool unwinds; /* the jitdump has its unwind information */

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
	bool renamed = *name == '~', anew = renamed || *name == '=';
	char path[64], other[64];

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
	snprintf(other, sizeof(other), "/tmp/perf-%d.map.new", (int)getpid());
	if (map && anew) {
		fclose(map);
		map = NULL;
	}
	if (!map)
		map = fopen(renamed ? other : path, anew ? "w" : "a");
	if (!map) {
		perror(path);
		return false;
	}
	fprintf(map, "%lx %zx %s\n", (unsigned long)at, code->size,
		name + anew);
	if (fflush(map))
		return false;
	return !renamed || !rename(other, path);
}

/* Entries that the map has as the program ends. */
static struct {
	const uint8_t *at;
	const char *name;
} last[SLOTS];
static size_t nlast;

static bool map_write_last(void)
{
	struct timespec times[2] = { 0 };
	bool old = false;

	for (size_t i = 0; i < nlast; i++) {
		old |= *last[i].name == '^';
		if (!map_write(last[i].at, last[i].name + 1))
			return false;
	}
	if (!old)
		return true;
	clock_gettime(CLOCK_REALTIME, &times[0]);
	times[0].tv_sec -= 3600;
	times[1] = times[0];
	return !futimens(fileno(map), times);
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

/* A further one has another name. */
static bool dump_open(void)
{
	static int number;
	char path[64];

	snprintf(path, sizeof(path), number++ ? "jit-%d-2.dump" : "jit-%d.dump",
		 (int)getpid());
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
	const struct {
		uint32_t offset, line;
		char file[8];
	} rows[] = { { 0, 10, "jit.src" },
		     { code->loop, 11, "\xff" },
		     { code->end, 10, "\xff" } };
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

/* .eh_frame of the second code, as if it were in memory behind that. */
static void dump_unwind(const uint8_t *at)
{
	static const uint8_t cie[] = {
		20,   0,    0,	0, 0, 0, 0, 0, 1, 'z', 'R', 0, /* head */
		1,    0x78, 16, /* factors; the column of the return address */
		1,    0x1b, /* pointers: relative, of 32 bits */
		0x0c, 7,    8, /* DW_CFA_def_cfa: rsp + 8 */
		0x90, 1, /* DW_CFA_offset: return address at CFA - 8 */
		0,    0,
	};
	static const uint8_t program[] = {
		0, /* no augmentation data */
		0x41, 0x0e, 16, 0x86, 2, /* behind push */
		0x44, 0x0e, 48, /* behind sub */
		0x4e, 0x0e, 16, /* behind add */
		0x41, 0x0e, 8, /* behind pop */
	};
	/* The function, no further one, .eh_frame_hdr. */
	uint32_t fde = 4 + 4 + 4 + sizeof(program);
	uint64_t frames = ((uintptr_t)at + code->size + 7) & ~7ULL;
	uint64_t size = sizeof(cie) + 4 + fde + 4 + 20;

	put32(4);
	put32((uint32_t)(16 + 24 + size));
	put_time();
	put64(size);
	put64(20);
	put64(0);
	fwrite(cie, sizeof(cie), 1, dump);
	put32(fde);
	put32(sizeof(cie) + 4);
	put32((uint32_t)((uintptr_t)at - (frames + sizeof(cie) + 8)));
	put32((uint32_t)code->size);
	fwrite(program, sizeof(program), 1, dump);
	put32(0);
	put32(0x3b031b01);
	for (int i = 0; i < 4; i++)
		put32(0);
}

static bool dump_write(const uint8_t *at, const char *name)
{
	static uint64_t number;

	dump_lines(at);
	if (unwinds)
		dump_unwind(at);
	put32(0);
	put32((uint32_t)(56 + strlen(name) + 1 + code->size));
	put_time();
	put_ids();
	put64((uintptr_t)at);
	put64((uintptr_t)at);
	put64(code->size);
	put64(number++);
	fwrite(name, strlen(name) + 1, 1, dump);
	fwrite(code->bytes, code->size, 1, dump);
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
	put64(code->size);
	put64(0);
	return !fflush(dump);
}

/* --- steps ------------------------------------------------------------------ */

/* In a second jitdump. */
static bool jit_write_second(const uint8_t *at, const char *name)
{
	static FILE *second;
	FILE *first = dump;
	bool done;

	dump = second;
	done = (second || dump_open()) && dump_write(at, name);
	second = dump;
	dump = first;
	return done;
}

static bool jit_write(const uint8_t *at, const char *name)
{
	if ((*name == '%' || *name == '^') && nlast < SLOTS) {
		last[nlast].at = at;
		last[nlast++].name = name;
		return true;
	}
	if (dump && *name == '+')
		return map_write(at, name + 1);
	if (dump && *name == '@')
		return jit_write_second(at, name + 1);
	return dump ? dump_write(at, name) : map_write(at, name);
}

static bool jit_step(uint8_t *mem, char *step)
{
	char *slot = strtok(step, ":"), *name = strtok(NULL, ":");
	char *ms = strtok(NULL, ":"), *rest = strtok(NULL, ":");
	uint8_t *at, *to;
	size_t slot_at;

	if (!ms)
		return false;
	slot_at = strtoul(slot, NULL, 10) % SLOTS * SLOT;
	at = mem + slot_at;
	if (*name == '>') {
		to = mem + strtoul(name + 1, NULL, 10) % SLOTS * SLOT;
		memcpy(to, at, code->size);
		if (!dump_move(at, to))
			return false;
		at = to;
	} else {
		memcpy((writable ? writable : mem) + slot_at, code->bytes,
		       code->size);
		if (strcmp(name, "-") != 0 && !jit_write(at, name))
			return false;
	}
	jit_run(at, strtoul(ms, NULL, 10));
	if (rest)
		usleep((useconds_t)strtoul(rest, NULL, 10) * 1000);
	return true;
}

/* Memory at PROG_JIT_AT. */
static uint8_t *jit_memory(bool memfd)
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS, fd = -1;
	int prot = PROT_READ | PROT_EXEC | (memfd ? 0 : PROT_WRITE);

	if (memfd) {
		flags = MAP_SHARED;
		fd = memfd_create("doublemapper", MFD_CLOEXEC);
		if (fd < 0 || ftruncate(fd, SLOT * SLOTS))
			return MAP_FAILED;
		writable = mmap(NULL, SLOT * SLOTS, PROT_READ | PROT_WRITE,
				flags, fd, 0);
		if (writable == MAP_FAILED)
			return MAP_FAILED;
	}
	return mmap((void *)PROG_JIT_AT, SLOT * SLOTS, prot,
		    flags | MAP_FIXED_NOREPLACE, fd, 0);
}

int main(int argc, char **argv)
{
	bool memfd = argc > 1 && !strcmp(argv[1], "-m");
	uint8_t *mem = jit_memory(memfd);
	int i = 1 + memfd;

	if (mem == MAP_FAILED) {
		perror("mmap");
		return 1;
	}
	if (!memfd && argc > 1 && argv[1][0] == '-') {
		code = &codes[argv[1][1] != 'j'];
		unwinds = argv[1][1] == 'u';
		i++;
		if (!dump_open()) {
			perror("jitdump");
			return 1;
		}
	}
	for (; i < argc; i++)
		if (!jit_step(mem, argv[i]))
			return 2;
	return map_write_last() ? 0 : 3;
}
