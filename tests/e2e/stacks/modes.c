// SPDX-License-Identifier: Apache-2.0
/*
 * modes MS MODE...: a program in one kind of stack after the other, for MS ms
 * of CPU time each. Built in many ways, all without frame pointers. Its
 * functions are called st_something, so that the rest of a stack is known to be
 * of libraries; ../test_stacks.sh knows which chain belongs to which mode.
 */
#include <alloca.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#ifdef WITH_CONTEXT
#include <ucontext.h>
#endif
#ifdef WITH_LIBRARIES
#include <dlfcn.h>
#include <libgen.h>
#endif

#define N __attribute__((noinline))
/* Behind a call: keeps it from becoming a jump. */
#define KEEP __asm__ volatile("")

static volatile int sink;
static int64_t span_ns;

N static void st_spin(uint64_t n)
{
	while (n--)
		KEEP;
}

/* The vDSO has but one mode of its own. */
N static int64_t cpu_ns(void)
{
	struct timespec ts;

	syscall(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, &ts);
	return ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

N static void st_work(int64_t ns)
{
	int64_t end = cpu_ns() + ns;

	while (cpu_ns() < end)
		st_spin(300000);
}

/* --- plain calls --------------------------------------------------------------- */

N static void st_c(void)
{
	st_work(span_ns);
	KEEP;
}

N static void st_b(void)
{
	st_c();
	KEEP;
}

N static void st_a(void)
{
	st_b();
	KEEP;
}

N static void st_mode_chain(void)
{
	st_a();
	KEEP;
}

N static void st_recurse(int n)
{
	if (n)
		st_recurse(n - 1);
	else
		st_work(span_ns);
	KEEP;
}

N static void st_mode_recursion(void)
{
	st_recurse(999); /* 1,000 frames */
	KEEP;
}

N static void st_room(size_t n)
{
	volatile char *p = alloca(n);

	p[0] = p[n - 1] = (char)n;
	if (n > 900)
		st_work(span_ns);
	else
		st_room(n * 2 + 1);
	sink += p[n - 1];
}

N static void st_mode_alloca(void)
{
	st_room((size_t)(60 + !sink));
	KEEP;
}

N static void st_tail_target(int64_t ns)
{
	st_work(ns);
	KEEP;
}

N static void st_tail(int64_t ns)
{
	st_tail_target(ns); /* jumps there */
}

N static void st_mode_tail(void)
{
	st_tail(span_ns);
	KEEP;
}

/*
 * The return address of a call that does not return is that of the next
 * function: it must not be taken for it.
 */
#define ORDERED N __attribute__((section(".text.ordered")))

static jmp_buf back;

N __attribute__((noreturn)) static void st_never(void)
{
	st_work(span_ns);
	longjmp(back, 1);
}

ORDERED __attribute__((noreturn)) void st_before(void);
ORDERED void st_behind(void);

ORDERED void st_before(void)
{
	st_never();
}

ORDERED void st_behind(void)
{
	sink++;
}

N static void st_mode_noreturn(void)
{
	if (!setjmp(back))
		st_before();
	st_behind();
}

/* --- signals ------------------------------------------------------------------- */

N static void st_on_inner(int sig)
{
	st_work(span_ns / 2);
	KEEP;
}

N static void st_on_outer(int sig)
{
	st_work(span_ns / 2);
	raise(SIGUSR2);
	KEEP;
}

static void catch (int sig, void (*fn)(int), int flags)
{
	struct sigaction sa;

	memset(&sa, 0, sizeof(sa));
	sa.sa_handler = fn;
	sa.sa_flags = flags;
	sigaction(sig, &sa, NULL);
}

N static void st_mode_signal(void)
{
	catch (SIGUSR1, st_on_outer, 0);
	catch (SIGUSR2, st_on_inner, 0);
	raise(SIGUSR1);
	KEEP;
}

static void alternate_stack(void)
{
	stack_t ss;

	memset(&ss, 0, sizeof(ss));
	ss.ss_size = 64 << 10;
	ss.ss_sp = mmap(NULL, ss.ss_size, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (ss.ss_sp == MAP_FAILED || sigaltstack(&ss, NULL))
		abort();
}

/* Both on it. */
N static void st_mode_altstack(void)
{
	alternate_stack();
	catch (SIGUSR1, st_on_outer, SA_ONSTACK);
	catch (SIGUSR2, st_on_inner, SA_ONSTACK);
	raise(SIGUSR1);
	KEEP;
}

/* At any instruction of what is interrupted. */
N static void st_on_timer(int sig)
{
	st_spin(200000);
	KEEP;
}

N static void st_mode_async(void)
{
	struct itimerval each = { { 0, 2000 }, { 0, 2000 } };
	struct itimerval none = { { 0, 0 }, { 0, 0 } };

	catch (SIGPROF, st_on_timer, SA_RESTART);
	setitimer(ITIMER_PROF, &each, NULL);
	st_a();
	setitimer(ITIMER_PROF, &none, NULL);
	KEEP;
}

/* --- processes, threads, contexts ---------------------------------------------- */

N static void st_in_vfork(void)
{
	st_work(span_ns + 1); /* else it is one function with st_c() */
	KEEP;
}

N static void st_mode_vfork(void)
{
	pid_t pid = vfork();

	if (!pid) {
		st_in_vfork();
		_exit(0);
	}
	waitpid(pid, NULL, 0);
}

static void *st_thread(void *arg)
{
	st_a();
	KEEP;
	return arg;
}

N static void st_mode_threads(void)
{
	pthread_attr_t attr;
	pthread_t t[2];

	span_ns /= 2;
	pthread_attr_init(&attr);
	/* The least there is: sysconf() knows better than the constant. */
	if (pthread_attr_setstacksize(&attr, 16 << 10))
		abort();
	for (int i = 0; i < 2; i++)
		if (pthread_create(&t[i], &attr, st_thread, NULL))
			abort();
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	span_ns *= 2;
}

#ifdef WITH_CONTEXT
static ucontext_t outside, inside;

static void st_coroutine(void)
{
	for (;;) {
		st_work(1000000);
		swapcontext(&inside, &outside);
	}
}

N static void st_mode_context(void)
{
	int64_t end = cpu_ns() + span_ns;

	getcontext(&inside);
	inside.uc_stack.ss_size = 64 << 10;
	inside.uc_stack.ss_sp = malloc(inside.uc_stack.ss_size);
	makecontext(&inside, st_coroutine, 0);
	while (cpu_ns() < end) {
		st_work(1000000);
		swapcontext(&outside, &inside);
	}
	free(inside.uc_stack.ss_sp);
}
#endif

/* --- other people's code ------------------------------------------------------- */

N static void st_mode_vdso(void)
{
	int64_t end = cpu_ns() + span_ns;
	struct timespec ts;

	while (cpu_ns() < end)
		for (int i = 0; i < 3000; i++) {
			clock_gettime(CLOCK_MONOTONIC, &ts);
			sink += (int)ts.tv_nsec;
		}
}

/* Of the page that the kernel emulates, as old libraries call it. */
N static void st_mode_vsyscall(void)
{
	long (*vtime)(long *) = (long (*)(long *))0xffffffffff600400UL;
	int64_t end = cpu_ns() + span_ns;

	while (cpu_ns() < end)
		for (int i = 0; i < 300; i++)
			sink += (int)vtime(NULL);
}

N static int st_compare(const void *a, const void *b)
{
	st_spin(1000);
	return *(const int *)a - *(const int *)b;
}

N static void st_mode_callback(void)
{
	int64_t end = cpu_ns() + span_ns;
	int v[100];

	while (cpu_ns() < end) {
		for (int i = 0; i < 100; i++)
			v[i] = i * 7919 % 101;
		qsort(v, 100, sizeof(*v), st_compare);
	}
}

#ifdef WITH_LIBRARIES
int st_called(int n); /* of libcalled.so */

N static void st_mode_plt(void)
{
	int64_t end = cpu_ns() + span_ns;

	while (cpu_ns() < end)
		for (int i = 0; i < 30000; i++)
			sink += st_called(i);
}

static char lib_dir[4096];

static void *load(const char *name)
{
	char path[4200];
	void *lib;

	snprintf(path, sizeof(path), "%s/lib%s.so", lib_dir, name);
	lib = dlopen(path, RTLD_NOW);
	if (!lib) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	return lib;
}

/* Each knows whom it calls: a mix-up of the two shows in the stack. */
#define RUN(name)                                                   \
	N static void *st_run_##name(void)                          \
	{                                                           \
		void *lib = load(#name);                            \
		void (*fn)(int64_t) =                               \
			(void (*)(int64_t))dlsym(lib, "st_" #name); \
                                                                    \
		fn(span_ns / 8);                                    \
		KEEP;                                               \
		dlclose(lib);                                       \
		return (void *)fn;                                  \
	}

RUN(one)
RUN(two)

N static void st_mode_dlopen(void)
{
	for (int i = 0; i < 4; i++)
		if (st_run_one() != st_run_two()) {
			fprintf(stderr, "not at one address\n");
			exit(1);
		}
}
#endif

/* -------------------------------------------------------------------------------- */

static const struct {
	const char *name;
	void (*fn)(void);
} modes[] = {
	{ "chain", st_mode_chain },	  { "recursion", st_mode_recursion },
	{ "alloca", st_mode_alloca },	  { "tail", st_mode_tail },
	{ "noreturn", st_mode_noreturn }, { "signal", st_mode_signal },
	{ "altstack", st_mode_altstack }, { "async", st_mode_async },
	{ "vfork", st_mode_vfork },	  { "threads", st_mode_threads },
	{ "vdso", st_mode_vdso },	  { "vsyscall", st_mode_vsyscall },
	{ "callback", st_mode_callback },
#ifdef WITH_CONTEXT
	{ "context", st_mode_context },
#endif
#ifdef WITH_LIBRARIES
	{ "plt", st_mode_plt },		  { "dlopen", st_mode_dlopen },
#endif
};

static void (*find(const char *name))(void)
{
	for (size_t i = 0; i < sizeof(modes) / sizeof(*modes); i++)
		if (!strcmp(modes[i].name, name))
			return modes[i].fn;
	fprintf(stderr, "no mode %s\n", name);
	exit(2);
}

int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	span_ns = atoi(argv[1]) * 1000000LL;
#ifdef WITH_LIBRARIES
	snprintf(lib_dir, sizeof(lib_dir), "%s", argv[0]);
	dirname(lib_dir);
#endif
	for (int i = 2; i < argc; i++)
		find(argv[i])();
	return 0;
}
