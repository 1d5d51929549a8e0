// SPDX-License-Identifier: Apache-2.0
/*
 * prog_spin_NAME: uses a stated amount of CPU time in functions that carry
 * NAME, then does one thing more. Built several times over: as static non-PIE
 * programs whose functions lie at the same addresses under different names,
 * and as ordinary PIE.
 *
 *   prog_spin_NAME MS                      spin in spin_NAME
 *   prog_spin_NAME MS exec PROG ARGS...    then exec
 *   prog_spin_NAME MS thread PROG ARGS...  all that in a second thread
 *   prog_spin_NAME MS fork                 then fork: both spin MS more, the
 *                                          child in child_NAME
 *   prog_spin_NAME MS dlopen LIB           then MS more in LIB's plugin_spin
 *   prog_spin_NAME MS wait                 first waits for a line to be read
 *   prog_spin_NAME MS naps N               sleeps N ms after each 10 ms of CPU time
 *
 * Time is the CPU time of the thread, so that the expected number of samples does not
 * depend on other load. It is read about every millisecond only: a C library without
 * frame pointers must not show in the profile.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/e2e/frame.h"

#define PASTE2(a, b) a##b
#define PASTE(a, b) PASTE2(a, b)
/* At an address of its own, which the static builds fix. */
#define HOT __attribute__((noinline, noclone, section("hot_spin")))

void PASTE(spin_, NAME)(uint64_t n);
void PASTE(child_, NAME)(uint64_t n);
void PASTE(middle_, NAME)(void (*leaf)(uint64_t), long ms);

HOT void PASTE(spin_, NAME)(uint64_t n)
{
	WITH_FRAME;
	while (n--)
		__asm__ volatile("" : "+r"(n));
}

HOT void PASTE(child_, NAME)(uint64_t n)
{
	WITH_FRAME;
	while (n--)
		__asm__ volatile("" : "+r"(n));
}

static long cpu_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static struct timespec nap;

HOT void PASTE(middle_, NAME)(void (*leaf)(uint64_t), long ms)
{
	long begin = cpu_ms(), end = begin + ms;

	while (cpu_ms() < end) {
		leaf(1000000);
		if (nap.tv_nsec && cpu_ms() >= begin + 10) {
			nanosleep(&nap, NULL);
			begin = cpu_ms();
		}
	}
}

static void die(const char *what)
{
	perror(what);
	exit(1);
}

struct plan {
	long ms;
	char **exec;
};

static void *spin_then_exec(void *arg)
{
	struct plan *p = arg;

	PASTE(middle_, NAME)(PASTE(spin_, NAME), p->ms);
	execv(p->exec[0], p->exec);
	die(p->exec[0]);
	return NULL;
}

static void in_thread(struct plan *p)
{
	pthread_t t;

	if (pthread_create(&t, NULL, spin_then_exec, p))
		die("pthread_create");
	pthread_join(t, NULL);
}

static void fork_and_spin(long ms)
{
	pid_t pid = fork();

	if (pid < 0)
		die("fork");
	PASTE(middle_, NAME)
	(pid ? PASTE(spin_, NAME) : PASTE(child_, NAME), ms);
	if (pid == 0)
		_exit(0);
	printf("child %d\n", pid);
	waitpid(pid, NULL, 0);
}

#ifdef WITH_DLOPEN
static void load_and_spin(const char *path, long ms)
{
	void *lib = dlopen(path, RTLD_NOW);
	void *sym = lib ? dlsym(lib, "plugin_spin") : NULL;
	void (*leaf)(uint64_t);

	if (!sym) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	memcpy(&leaf, &sym, sizeof(leaf));
	PASTE(middle_, NAME)(leaf, ms);
}
#endif

int main(int argc, char **argv)
{
	const char *what = argc > 2 ? argv[2] : "";
	struct plan plan = { argc > 1 ? atol(argv[1]) : 1000, argv + 3 };

	printf("pid %d\n", getpid());
	fflush(stdout);
	if (!strcmp(what, "wait") && getchar() == EOF)
		return 1;
	if (!strcmp(what, "naps"))
		nap.tv_nsec = atol(argv[3]) * 1000000;
	if (!strcmp(what, "thread"))
		in_thread(&plan);
	if (!strcmp(what, "exec"))
		spin_then_exec(&plan);
	PASTE(middle_, NAME)(PASTE(spin_, NAME), plan.ms);
	if (!strcmp(what, "fork"))
		fork_and_spin(plan.ms);
#ifdef WITH_DLOPEN
	if (!strcmp(what, "dlopen"))
		load_and_spin(argv[3], plan.ms);
#endif
	return 0;
}
