// SPDX-License-Identifier: Apache-2.0
/*
 * prog_swap LIBA LIBB: until it is killed, loads the two in turn at the same address,
 * and spins in swap_a below run_a(), in swap_b below run_b(): each stack shows whether
 * its names belong together. Prints its pid, and where the two are.
 *
 * prog_swap storm MAPS [FORKS]: on every CPU MAPS executable mappings, and FORKS
 * processes that end at once: records that fill rings.
 */
#include <dlfcn.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include "tests/e2e/frame.h"

#define SPIN_MS 4

void run_a(void (*leaf)(uint64_t));
void run_b(void (*leaf)(uint64_t));

static long cpu_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

__attribute__((noinline, noclone)) void run_a(void (*leaf)(uint64_t))
{
	long end = cpu_ms() + SPIN_MS;

	while (cpu_ms() < end)
		leaf(500000);
}

__attribute__((noinline, noclone)) void run_b(void (*leaf)(uint64_t))
{
	long end = cpu_ms() + SPIN_MS;

	while (cpu_ms() < end)
		leaf(500000);
}

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void turn(const char *path, const char *name,
		 void (*run)(void (*leaf)(uint64_t)), bool say)
{
	void *lib = dlopen(path, RTLD_NOW);
	void *sym = lib ? dlsym(lib, name) : NULL;
	void (*leaf)(uint64_t);

	if (!sym) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	if (say)
		printf("%s %p\n", name, sym);
	memcpy(&leaf, &sym, sizeof(leaf));
	run(leaf);
	dlclose(lib);
}

static void fork_one(void)
{
	pid_t pid = vfork();

	if (!pid)
		_exit(0);
	if (pid < 0 || waitpid(pid, NULL, 0) != pid)
		die("vfork");
}

static void storm_here(long maps, long forks)
{
	int fd = open("/proc/self/exe", O_RDONLY);
	void *p;

	while (maps-- > 0) {
		p = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
		if (p == MAP_FAILED)
			die("mmap");
		munmap(p, 4096);
	}
	while (forks-- > 0)
		fork_one();
	close(fd);
}

static int storm(long maps, long forks)
{
	cpu_set_t all, one;
	int cpu;

	if (sched_getaffinity(0, sizeof(all), &all))
		die("sched_getaffinity");
	for (cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &all))
			continue;
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		if (sched_setaffinity(0, sizeof(one), &one))
			die("sched_setaffinity");
		storm_here(maps, forks);
	}
	return 0;
}

int main(int argc, char **argv)
{
	bool say = true;

	if (argc < 3)
		return 1;
	if (!strcmp(argv[1], "storm"))
		return storm(atol(argv[2]), argc > 3 ? atol(argv[3]) : 0);
	printf("pid %d\n", getpid());
	for (;; say = false) {
		turn(argv[1], "swap_a", run_a, say);
		turn(argv[2], "swap_b", run_b, say);
		fflush(stdout);
	}
}
