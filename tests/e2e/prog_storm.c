// SPDX-License-Identifier: Apache-2.0
/*
 * prog_storm MODE: until it is killed, does what any user may do without limit, and
 * what leaves a record in the mapping stream each time:
 *
 *   maps   maps executable memory and unmaps it: at one address
 *   moves  the same at ever other addresses
 *   paths  maps a file with a path of 4,000 bytes, below the directory it is in
 *   far    the same at ever other addresses, 20,000 times a second
 *   names  changes its name
 *   forks  maps like "moves" 2,000 times, in ever new processes
 *   brief  maps like "moves" 65 times, in ever new processes
 *   holes  twelve processes of 60,000 mappings, which run at new addresses without
 *          records
 *
 * or in another stream:
 *
 *   deep   spins 250 KiB down its stack, which each sample copies
 *   dirs   changes its working directory
 *
 * prog_storm execs RATE: RATE processes a second, each of which executes this program
 * again and runs for 1.5 s, with a hundredth of a CPU.
 */
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096
#define ARENA ((size_t)64 << 20)
#define LIFE_MS 1500

static void map_at(void *at, int fd)
{
	int flags = (at ? MAP_FIXED : 0) |
		    (fd < 0 ? MAP_ANONYMOUS | MAP_PRIVATE : MAP_PRIVATE);
	void *p = mmap(at, PAGE, PROT_READ | PROT_EXEC, flags, fd, 0);

	if (p != MAP_FAILED)
		munmap(p, PAGE);
}

static void maps(void)
{
	for (;;)
		map_at(NULL, -1);
}

static void moves_of(int fd, size_t n)
{
	char *arena = mmap(NULL, ARENA, PROT_NONE,
			   MAP_ANONYMOUS | MAP_PRIVATE | MAP_NORESERVE, -1, 0);
	size_t i;

	for (i = 0; !n || i < n; i++)
		map_at(arena + i * PAGE % ARENA, fd);
	munmap(arena, ARENA);
}

static void moves(size_t n)
{
	moves_of(-1, n);
}

static void forever(void)
{
	moves(0);
}

/*
 * A child that ends with its parent. A fork takes long here: one that is running
 * while the parent's children are killed makes another child, which no signal reaches.
 */
static pid_t storm_fork(void)
{
	pid_t parent = getpid(), pid = fork();

	if (pid == 0 &&
	    (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != parent))
		_exit(1);
	return pid;
}

static void children(size_t n)
{
	for (;;) {
		if (storm_fork() == 0) {
			moves(n);
			_exit(0);
		}
		wait(NULL);
	}
}

static void forks(void)
{
	children(2000);
}

static void brief(void)
{
	children(65);
}

/* Level by level, since a path of a system call is shorter than PATH_MAX. */
static int deep_file(void)
{
	char name[200];
	int fd, i;

	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	for (i = 0; i < 19; i++)
		if ((mkdir(name, 0755) && i < 0) || chdir(name))
			exit(1);
	fd = open("file", O_RDWR | O_CREAT | O_CLOEXEC, 0755);
	if (fd < 0 || ftruncate(fd, PAGE))
		exit(1);
	return fd;
}

static void paths(void)
{
	int fd = deep_file();

	for (;;)
		map_at(NULL, fd);
}

/* No more than the rings can hold: those of all users would lose records. */
static void far(void)
{
	const struct timespec pause = { 0, 10000000 };
	int fd = deep_file();

	for (;;) {
		moves_of(fd, 200);
		nanosleep(&pause, NULL);
	}
}

/* mremap(2) leaves no record; and each re-read is of all mappings. */
static void holes(void)
{
#ifdef __aarch64__
	/* subs x0, x0, #1; b.ne .-4; ret */
	static const uint32_t loop[] = { 0xf1000400, 0x54ffffe1, 0xd65f03c0 };
#else
	/* dec %rdi; jne .-3; ret */
	static const uint8_t loop[] = { 0x48, 0xff, 0xcf, 0x75, 0xfb, 0xc3 };
#endif
	size_t i, n = 60000;
	char *arena = mmap(NULL, n * PAGE, PROT_NONE,
			   MAP_ANONYMOUS | MAP_PRIVATE | MAP_NORESERVE, -1, 0);
	char *code = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
			  MAP_ANONYMOUS | MAP_PRIVATE, -1, 0);

	for (i = 0; i < n; i += 2)
		if (mprotect(arena + i * PAGE, PAGE, PROT_READ))
			exit(1);
	for (i = 0; i < 11 && storm_fork(); i++)
		;
	memcpy(code, &loop, sizeof(loop));
	__builtin___clear_cache(code, code + PAGE);
	mprotect(code, PAGE, PROT_READ | PROT_EXEC);
	for (i = 1;; i = (i + 2) % n) {
		code = mremap(code, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED,
			      arena + i * PAGE);
		((void (*)(unsigned long))code)(50000000);
	}
}

static volatile uint64_t spun, stop; /* 'stop' is never set */

__attribute__((noipa)) static void descend(size_t pages)
{
	volatile char frame[PAGE];

	frame[0] = (char)pages;
	if (pages)
		descend(pages - 1);
	while (!pages && !stop)
		spun++;
	spun += frame[0];
}

static void deep(void)
{
	descend(60);
}

static void dirs(void)
{
	for (;;)
		if (chdir("/") || chdir("/tmp"))
			exit(1);
}

static void names(void)
{
	char name[16];
	unsigned int i;

	for (i = 0;; i++) {
		snprintf(name, sizeof(name), "name%u", i);
		prctl(PR_SET_NAME, name);
	}
}

static uint64_t now_ms(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec * 1000ULL + ts.tv_nsec / 1000000;
}

__attribute__((noinline, noclone)) static void life(void)
{
	uint64_t end = now_ms(CLOCK_MONOTONIC) + LIFE_MS, used = 0;
	const struct timespec pause = { 0, 100000000 };

	while (now_ms(CLOCK_MONOTONIC) < end) {
		used++;
		while (now_ms(CLOCK_PROCESS_CPUTIME_ID) < used)
			for (volatile int i = 0; i < 100000; i++)
				;
		nanosleep(&pause, NULL);
	}
}

static void execs(const char *self, long rate)
{
	const struct timespec pause = { 0, 1000000000 / rate };

	for (;;) {
		if (fork() == 0) {
			execl(self, self, "life", NULL);
			_exit(127);
		}
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
		nanosleep(&pause, NULL);
	}
}

int main(int argc, char **argv)
{
	static const struct {
		const char *word;
		void (*fn)(void);
	} modes[] = {
		{ "maps", maps },   { "moves", forever }, { "paths", paths },
		{ "names", names }, { "holes", holes },	  { "far", far },
		{ "brief", brief }, { "forks", forks },	  { "deep", deep },
		{ "dirs", dirs },   { "life", life },
	};
	size_t i;

	if (argc == 3 && !strcmp(argv[1], "execs"))
		execs("/proc/self/exe", atol(argv[2]));
	for (i = 0; argc == 2 && i < sizeof(modes) / sizeof(*modes); i++)
		if (!strcmp(argv[1], modes[i].word))
			modes[i].fn();
	return argc != 2;
}
