// SPDX-License-Identifier: Apache-2.0
// throw MS: exceptions in flight, over 30 frames with something to clean up.
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <sys/syscall.h>
#include <unistd.h>

#define N extern "C" __attribute__((noinline))

static volatile int sink;

static int64_t cpu_ns()
{
	struct timespec ts;

	syscall(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, &ts);
	return ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

N void st_clean(int n)
{
	for (int i = 0; i < 300; i++)
		sink = sink + n;
}

struct cleaner {
	int n;
	~cleaner()
	{
		st_clean(n);
	}
};

N void st_throw(int n)
{
	throw n;
}

N int st_descend(int n)
{
	cleaner c{ n };

	if (!n) {
		st_throw(n);
		return 0;
	}
	return st_descend(n - 1) + 1;
}

N void st_mode_throw(int64_t ns)
{
	int64_t end = cpu_ns() + ns;

	while (cpu_ns() < end) {
		try {
			sink = sink + st_descend(29);
		} catch (int n) {
			sink = sink + n;
		}
	}
}

int main(int argc, char **argv)
{
	st_mode_throw(argc > 1 ? atoi(argv[1]) * 1000000LL : 0);
	return 0;
}
