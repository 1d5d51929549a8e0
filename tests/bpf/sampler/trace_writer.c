// SPDX-License-Identifier: Apache-2.0
/*
 * trace_writer: a program with a tracer, for test_sampler_trace.c, which compiles it in
 * each access model, and again with LIB as the tracer's library. Not a test.
 *
 *	writer CONTEXT HOW [LIBRARY]
 *
 * CONTEXT 1: a process context is published. HOW "swap": the pointer moves between two
 * records; "flag": one record, invalid while it is written. Ids change without a pause; they
 * are made of the thread's id and the time, so that each is unlike any other, and a mixture
 * of two is seen. A letter from the input: f(ork), x(ec), u(nload), r(eload).
 *
 * HOW "tasks", with TASKS: each thread is a scheduler of tasks with stacks of their own. A
 * task has ids while it runs, which name its stack: a sample shows whether they are its own.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stddef.h>

#ifdef ELASTIC
#define VARIABLE elastic_apm_profiling_correlation_tls_v1
struct record {
	uint16_t minor;
	uint8_t valid, present, flags;
	uint64_t begin;
	uint32_t tid, check;
	uint64_t span, transaction;
} __attribute__((packed));
#else
#define VARIABLE otel_thread_ctx_v1
struct record {
	uint64_t begin;
	uint32_t tid, check;
	uint64_t span;
	uint8_t valid, flags;
	uint16_t attrs_size;
} __attribute__((packed, aligned(2)));
#endif

#if defined(LIB) || defined(OWN)
__thread struct record *VARIABLE;

struct record **variable(void)
{
	return &VARIABLE;
}
#elif defined(NEEDED)
struct record **variable(void);
#endif

#ifndef LIB
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

static struct record **(*find_variable)(void);
static volatile int stop, stopped;
static int in_place;

static void fill(struct record *r, uint32_t tid)
{
	struct timespec ts;

	clock_gettime(CLOCK_BOOTTIME, &ts);
	r->begin = (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
	r->tid = tid;
	r->check = (uint32_t)(r->begin * 2654435761u) ^ tid;
	r->span = r->begin * 0x9fb21c651e98df25u ^ tid;
	r->flags = 1;
#ifdef ELASTIC
	r->minor = 1;
	r->present = 1;
	r->transaction = ~r->span;
#else
	r->attrs_size = 0;
#endif
}

#define barrier() __asm__ volatile("" : : : "memory")

static void *run(void *arg)
{
	struct record **slot = find_variable();
	uint32_t tid = (uint32_t)syscall(SYS_gettid);
	struct record two[2], next;

	memset(two, 0, sizeof(two));
	next.valid = 0;
	for (unsigned int i = 0; !stop; i++) {
		struct record *r = &two[in_place ? 0 : i % 2];

		fill(&next, tid);
		r->valid = 0;
		barrier();
		*r = next;
		barrier();
		r->valid = 1;
		barrier();
		*(struct record *volatile *)slot = r;
		barrier();
	}
	__atomic_add_fetch(&stopped, 1, __ATOMIC_SEQ_CST);
	for (;;) /* with the last ids */
		barrier();
	return NULL;
}

#ifdef TASKS
#include <ucontext.h>

#define N_TASKS 8
#define TASK_STACK (64 << 10) /* as in test_sampler_trace.c */

struct task {
	ucontext_t context, *scheduler;
	struct record record;
	struct record **slot;
};

/* It is switched away from without ids, and has its own when it is back. */
static void task_run(unsigned int high, unsigned int low)
{
	struct task *t = (struct task *)((uintptr_t)high << 32 | low);

	for (;;) {
		*(struct record *volatile *)t->slot = &t->record;
		for (volatile int i = 0; i < 2000; i++)
			;
		*(struct record *volatile *)t->slot = NULL;
		barrier();
		swapcontext(&t->context, t->scheduler);
	}
}

static void task_make(struct task *t, struct record **slot, uint32_t tid,
		      ucontext_t *scheduler)
{
	char *stack = mmap(NULL, TASK_STACK, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (stack == MAP_FAILED || getcontext(&t->context))
		exit(2);
	fill(&t->record, tid);
	t->record.valid = 1;
	t->record.begin = (uintptr_t)stack;
	t->scheduler = scheduler;
	t->slot = slot;
	t->context.uc_stack.ss_sp = stack;
	t->context.uc_stack.ss_size = TASK_STACK;
	makecontext(&t->context, (void (*)(void))task_run, 2,
		    (unsigned int)((uintptr_t)t >> 32),
		    (unsigned int)(uintptr_t)t);
}

static void *run_tasks(void *arg)
{
	uint32_t tid = (uint32_t)syscall(SYS_gettid);
	ucontext_t scheduler;
	struct task *tasks = calloc(N_TASKS, sizeof(*tasks));

	for (int i = 0; i < N_TASKS; i++)
		task_make(&tasks[i], find_variable(), tid, &scheduler);
	for (unsigned int i = 0;; i++)
		swapcontext(&scheduler, &tasks[i % N_TASKS].context);
	return arg;
}
#endif

static void start(const char *how)
{
	void *(*fn)(void *) = run;
	pthread_t t;

#ifdef TASKS
	if (!strcmp(how, "tasks"))
		fn = run_tasks;
#endif
	in_place = !strcmp(how, "flag");
	for (int i = 0; i < 2; i++)
		pthread_create(&t, NULL, fn, NULL);
}

static void publish(void)
{
	int fd = memfd_create("OTEL_CTX", 0);
	char *p;

	if (fd < 0 || ftruncate(fd, 4096))
		exit(2);
	p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	if (p == MAP_FAILED || madvise(p, 4096, MADV_DONTFORK))
		exit(2);
	close(fd);
}

static void *lib;
static const char *lib_path;

static void load(void)
{
	lib = dlopen(lib_path, RTLD_NOW);
	if (!lib)
		exit(3);
	*(void **)&find_variable = dlsym(lib, "variable");
}

static void child(void)
{
	pid_t pid = fork();

	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			barrier();
	}
	printf("%d\n", pid);
}

/* The threads stay, and their ids with them. */
static void unload(void)
{
	stop = 1;
	while (stopped < 2)
		usleep(1000);
	dlclose(lib);
}

/* For threads of its own; those of before have what they had. */
static void reload(const char *how)
{
	unload();
	load();
	stop = 0;
	start(how);
}

int main(int argc, char **argv)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setvbuf(stdout, NULL, _IONBF, 0);
	if (*argv[1] == '1')
		publish();
	lib_path = argv[3];
#if defined(OWN) || defined(NEEDED)
	find_variable = variable;
#else
	load();
#endif
	start(argv[2]);
	printf("ready\n");
	for (int c; (c = getchar()) != EOF;) {
		if (c == 'f') {
			child();
		} else if (c == 'x') {
			execv("/proc/self/exe", argv);
		} else if (c == 'u') {
			unload();
			printf("done\n");
		} else if (c == 'r') {
			reload(argv[2]);
			printf("done\n");
		}
	}
	return 0;
}
#endif
