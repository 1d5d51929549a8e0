// SPDX-License-Identifier: Apache-2.0
/*
 * prog_chain: requests whose time is known. A asks B over a pipe and waits for the answer; B
 * waits for a lock that C holds; C sleeps for 50 ms, runs for 20 ms, and gives the lock
 * away. Prints the pids of the three, and then the begin and the end of each request, as A
 * has them, in ns since 1970.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#define SLEEP_MS 50
#define RUN_MS 20
#define PAUSE_MS 30

/* Read and write ends. */
static int to_b[2], to_a[2], to_c[2], ready[2], done[2];
static pthread_mutex_t *lock;

static uint64_t now_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static void sleep_ms(long ms)
{
	const struct timespec ts = { .tv_nsec = ms * 1000000 };

	nanosleep(&ts, NULL);
}

static void put(int fd)
{
	if (write(fd, "x", 1) != 1)
		exit(1);
}

static void take(int fd)
{
	char c;

	if (read(fd, &c, 1) != 1)
		exit(1);
}

static void run_b(void)
{
	for (;;) {
		take(to_b[0]);
		pthread_mutex_lock(lock);
		put(to_a[1]);
		pthread_mutex_unlock(lock);
		put(done[1]);
	}
}

static void run_c(void)
{
	uint64_t end;

	for (;;) {
		pthread_mutex_lock(lock);
		put(ready[1]);
		take(to_c[0]);
		sleep_ms(SLEEP_MS);
		end = now_ns(CLOCK_THREAD_CPUTIME_ID) + RUN_MS * 1000000;
		while (now_ns(CLOCK_THREAD_CPUTIME_ID) < end)
			;
		pthread_mutex_unlock(lock);
		/* Else it could have the lock again before B is awake. */
		take(done[0]);
	}
}

static void run_a(void)
{
	uint64_t begin;

	for (;;) {
		take(ready[0]);
		sleep_ms(PAUSE_MS);
		begin = now_ns(CLOCK_REALTIME);
		put(to_c[1]);
		put(to_b[1]);
		take(to_a[0]);
		printf("%" PRIu64 " %" PRIu64 "\n", begin,
		       now_ns(CLOCK_REALTIME));
		fflush(stdout);
	}
}

static pid_t start(void (*run)(void))
{
	pid_t pid = fork();

	if (pid < 0)
		exit(1);
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	run();
	exit(0);
}

int main(void)
{
	pthread_mutexattr_t shared;
	pid_t b, c;

	lock = mmap(NULL, sizeof(*lock), PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (lock == MAP_FAILED || pipe(to_a) || pipe(to_b) || pipe(to_c) ||
	    pipe(ready) || pipe(done))
		return 1;
	pthread_mutexattr_init(&shared);
	pthread_mutexattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
	pthread_mutex_init(lock, &shared);
	b = start(run_b);
	c = start(run_c);
	printf("%d %d %d\n", getpid(), b, c);
	fflush(stdout);
	run_a();
	return 0;
}
