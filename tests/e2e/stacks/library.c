// SPDX-License-Identifier: Apache-2.0
/*
 * The libraries of modes.c: libone.so and libtwo.so are alike, so that they
 * come to lie at the same addresses, but for the name of the function there.
 */
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define CAT(a, b) a##b
#define NAMED(name) CAT(st_, name)

#ifdef CALLED
int st_called(int n);

int st_called(int n)
{
	return n ^ 5;
}
#else
void NAMED(NAME)(int64_t ns);

static int64_t cpu_ns(void)
{
	struct timespec ts;

	syscall(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, &ts);
	return ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

void NAMED(NAME)(int64_t ns)
{
	int64_t end = cpu_ns() + ns;

	while (cpu_ns() < end)
		for (int i = 0; i < 300000; i++)
			__asm__ volatile("");
}
#endif
