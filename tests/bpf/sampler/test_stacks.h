/* SPDX-License-Identifier: Apache-2.0 */
/* The programs whose stacks test_stacks.c compares. Each runs until it is ended. */
#ifndef TESTS_BPF_SAMPLER_TEST_STACKS_H
#define TESTS_BPF_SAMPLER_TEST_STACKS_H

#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/base.h"

static volatile uint64_t sink;

static __attribute__((noinline)) uint64_t fib(unsigned int n)
{
	return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

static int by_fib(const void *a, const void *b)
{
	sink += fib(12);
	return *(const int *)a - *(const int *)b;
}

static void load_callback(void)
{
	int v[200];

	for (;;) {
		for (int i = 0; i < 200; i++)
			v[i] = i * 7919 % 211;
		qsort(v, 200, sizeof(*v), by_fib);
	}
}

static __attribute__((noinline)) uint64_t descend(int depth)
{
	volatile char room[40];

	room[depth % 40] = (char)depth;
	return depth ? descend(depth - 1) + (uint64_t)room[0] : fib(20);
}

static void load_recursion(void)
{
	for (;;)
		sink += descend(300);
}

static void load_clock(void)
{
	struct timespec ts;

	for (;;) {
		clock_gettime(CLOCK_MONOTONIC, &ts);
		sink += (uint64_t)ts.tv_nsec;
	}
}

static void on_signal(int sig)
{
	sink += fib(18);
}

static void load_signals(void)
{
	struct sigaction sa = { .sa_handler = on_signal };
	struct sigaction alt = { .sa_handler = on_signal,
				 .sa_flags = SA_ONSTACK };
	stack_t ss = { .ss_size = 64 << 10 };

	ss.ss_sp = malloc(ss.ss_size);
	sigaltstack(&ss, NULL);
	sigaction(SIGUSR1, &sa, NULL);
	sigaction(SIGUSR2, &alt, NULL);
	for (;;) {
		raise(SIGUSR1);
		raise(SIGUSR2);
		sink += fib(18);
	}
}

static void *in_thread(void *arg)
{
	for (;;)
		sink += descend((int)(intptr_t)arg);
	return NULL;
}

static void load_threads(void)
{
	pthread_attr_t attr;
	pthread_t t;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 64 << 10);
	pthread_create(&t, &attr, in_thread, (void *)10);
	in_thread((void *)20);
}

static void load_syscalls(void)
{
	FILE *f = fopen("/dev/null", "w");

	for (;;)
		fflush((fprintf(f, "%f %s\n", (double)sink, "text"), f));
}

/*
 * Programs of the host: stripped, without frame pointers, of other compilers,
 * interpreters. The first word is the program.
 */
struct load {
	const char *name;
	void (*fn)(void); /* or: */
	/* for sh; @ is the temporary directory, % that of test_stacks.sh's programs */
	const char *command;
};

static const struct load loads[] = {
	{ "callback", load_callback, NULL },
	{ "recursion", load_recursion, NULL },
	{ "vdso", load_clock, NULL },
	{ "signals", load_signals, NULL },
	{ "threads", load_threads, NULL },
	{ "syscalls", load_syscalls, NULL },
	{ "cc1", NULL,
	  "exec $(gcc -print-prog-name=cc1) -quiet -O3 @/big.c -o /dev/null" },
	{ "cc1plus", NULL,
	  "exec $(gcc -print-prog-name=cc1plus) -quiet -O2 @/big.cc -o /dev/null" },
	{ "clang", NULL,
	  "exec $(readlink -f $(command -v clang)) "
	  "-cc1 -O3 -emit-obj -x c @/big.c -o /dev/null" },
	{ "python", NULL,
	  "exec /usr/bin/python3 -c 'import json, re\n"
	  "def f(n): return n if n < 2 else f(n - 1) + f(n - 2)\n"
	  "while True:\n"
	  " x = sorted(json.loads(json.dumps([f(i % 15) for i in range(50)])))\n"
	  " re.sub(\"[0-3]+\", lambda m: str(len(m[0])), str(x))'" },
	{ "perl", NULL,
	  "exec perl -e 'sub f { my $n = shift; $n < 2 ? 1 : f($n - 1) + f($n - 2) }"
	  "while (1) { my @a = sort { $a <=> $b } map { f($_ % 12) } 1..50;"
	  "my $s = \"@a\"; $s =~ s/(\\d)(\\d)/$2$1/g }'" },
	{ "bash", NULL,
	  "exec bash -c 'f() { (($1 < 1)) || f $(($1 - 1)); }; while :; do f 20; done'" },
	{ "awk", NULL,
	  "exec awk 'function f(n) { return n < 2 ? n : f(n - 1) + f(n - 2) }"
	  "BEGIN { for (;;) { x = f(15) sprintf(\"%f\", x); gsub(/1+/, \"2\", x) } }'" },
	{ "gzip", NULL, "exec gzip -9 -c /dev/urandom >/dev/null" },
	{ "gcc", NULL, "exec %/modes_gcc 9999999 callback" },
	{ "clang-async", NULL, "exec %/modes_clang 9999999 async" },
	{ "context", NULL, "exec %/modes_gcc 9999999 context" },
	{ "static-pie", NULL, "exec %/modes_static_pie 9999999 async" },
	{ "throw", NULL, "exec %/throw_gcc 9999999" },
	{ "rust", NULL, "exec %/rust 9999999" },
	{ "go", NULL, "exec %/go_plain 9999999" },
	{ "xz", NULL, "exec xz -T1 -6 -c /dev/urandom >/dev/null" },
};

#define LOADS ARRAY_SIZE(loads)

#endif /* TESTS_BPF_SAMPLER_TEST_STACKS_H */
