// SPDX-License-Identifier: Apache-2.0
/*
 * libquark's CPU time of processes compared with wait4(2)'s: a thousand processes of
 * different kinds.
 *
 * wait4 returns what the scheduler has accounted. If a parent on another CPU waits
 * for a zombie that still runs its last steps, wait4's value is wrong by up to a
 * tick. Therefore the parent and each leader share one CPU, and the parent does not
 * preempt the zombie; threads run anywhere.
 */
#include <sys/sysinfo.h>

#include "tests/bpf/quark/test_quark.h"

#define LIVES 1000
#define HUGE 8 /* of them touch that much, or what the host can spare */
#define HUGE_BYTES (256UL << 20)
#define LARGE_BYTES (8UL << 20)
#define THREADS 4
#define TOLERANCE_US 10
/* The kernel does not report a few reaps, see infer_reaps(). */
#define INFERRED_MAX (LIVES / 10)

struct life {
	pid_t pid;
	uint64_t usec; /* as wait4 has it */
};

static int cpu; /* of parent and leaders */
static size_t huge;

static void stay(void)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	CHECK(sched_setaffinity(0, sizeof(set), &set) == 0);
}

static void roam(void)
{
	cpu_set_t set;

	memset(&set, 0xff, sizeof(set));
	CHECK(sched_setaffinity(0, sizeof(set), &set) == 0);
}

/*
 * A runnable process waits for earlier ones of its priority, and no other runs
 * between. Without the privilege for that, it at least does not preempt others.
 */
static void wait_for_last_steps(void)
{
	struct sched_param fifo = { .sched_priority = 1 }, none = { 0 };

	if (sched_setscheduler(0, SCHED_FIFO, &fifo))
		CHECK(sched_setscheduler(0, SCHED_BATCH, &none) == 0);
}

static void spin(long usec)
{
	struct timespec ts;
	long long end;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	end = ts.tv_sec * 1000000000LL + ts.tv_nsec + usec * 1000;
	do
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	while (ts.tv_sec * 1000000000LL + ts.tv_nsec < end);
}

static void touch(size_t bytes)
{
	char *mem = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(mem != MAP_FAILED);
	memset(mem, 1, bytes);
}

static void *work(void *arg)
{
	roam();
	spin(100 + 50 * (long)arg);
	syscall(SYS_exit, 0);
	return NULL;
}

static void *end_all(void *arg)
{
	roam();
	spin(200);
	_exit(0);
}

static void *execute(void *arg)
{
	/* It becomes the leader. */
	stay();
	execl("/bin/true", "true", NULL);
	_exit(99);
}

static void start(void *(*fn)(void *))
{
	pthread_t th;
	long i;

	for (i = 0; i < THREADS; i++)
		CHECK(pthread_create(&th, NULL, fn, (void *)i) == 0);
}

/* The leader ends last, or does not wait and ends first. */
static void live_threads_joined(void)
{
	pthread_t th[THREADS];
	long i;

	for (i = 0; i < THREADS; i++)
		CHECK(pthread_create(&th[i], NULL, work, (void *)i) == 0);
	for (i = 0; i < THREADS; i++)
		CHECK(pthread_join(th[i], NULL) == 0);
	_exit(0);
}

static void live_leader_first(void)
{
	start(work);
	syscall(SYS_exit, 0);
}

static void live_ended_by_thread(void)
{
	start(end_all);
	for (;;)
		pause();
}

static void live_exec_by_thread(void)
{
	pthread_t th;

	CHECK(pthread_create(&th, NULL, work, NULL) == 0);
	CHECK(pthread_create(&th, NULL, execute, NULL) == 0);
	for (;;)
		pause();
}

static void live_large(void)
{
	touch(LARGE_BYTES);
	_exit(0);
}

static void live_huge(void)
{
	touch(huge);
	_exit(0);
}

static void live_killed(void)
{
	spin(300);
	raise(SIGKILL);
}

static void (*const shapes[])(void) = {
	NULL, /* posix_spawn of /bin/true */
	live_threads_joined,
	live_leader_first,
	live_ended_by_thread,
	live_exec_by_thread,
	live_large,
	live_killed,
};

static void live(struct life *l, void (*shape)(void))
{
	struct rusage ru;

	l->pid = shape ? fork() : spawn_true();
	CHECK(l->pid >= 0);
	if (l->pid == 0) {
		shape();
		_exit(99);
	}
	CHECK(wait4(l->pid, NULL, 0, &ru) == l->pid);
	l->usec = (ru.ru_utime.tv_sec + ru.ru_stime.tv_sec) * 1000000ULL +
		  ru.ru_utime.tv_usec + ru.ru_stime.tv_usec;
}

/* Whether it was exact. An inferred reap is marked and has less. */
static bool check(const struct life *l, int i, const struct quark_event *ev)
{
	long long more = (long long)(ev->cpu_time / 1000) - (long long)l->usec;

	if (!ev->cpu_exact) {
		CHECK(more <= TOLERANCE_US);
		return false;
	}
	if (more > TOLERANCE_US || more < -TOLERANCE_US) {
		fprintf(stderr, "life %d: %lld us, %lld more than wait4's\n", i,
			(long long)ev->cpu_time / 1000, more);
		_exit(1);
	}
	return true;
}

static void body_cpu_time(void)
{
	const int n = LIVES + INFERRED_MAX;
	const int shape_count = sizeof(shapes) / sizeof(shapes[0]);
	struct life *lives = calloc(n, sizeof(*lives));
	struct tape t = { 0 };
	struct quark_queue qq;
	int i, exact = 0;

	CHECK(lives != NULL);
	cpu = sched_getcpu();
	CHECK(cpu >= 0);
	stay();
	wait_for_last_steps();
	open_raw(&qq, 0);
	for (i = 0; i < n; i++) {
		live(&lives[i], i % (LIVES / HUGE) == 7
					? live_huge
					: shapes[i % shape_count]);
		tape_read(&t, &qq);
	}
	for (i = 0; i < n; i++)
		exact += check(&lives[i], i,
			       tape_wait(&t, &qq, lives[i].pid, QUARK_EV_REAP));
	fprintf(stderr, "# %d exact, %d inferred, huge: %zu MiB\n", exact,
		n - exact, huge >> 20);
	CHECK(exact >= LIVES);
	tape_fini(&t);
	quark_queue_close(&qq);
	free(lives);
}

/* QUARK_TEST_STORM=PERCENT: smaller ones, for a machine that is emulated. */
static void scale(void)
{
	const char *percent = getenv("QUARK_TEST_STORM");
	size_t all = huge;

	if (!percent)
		return;
	huge = all / 100 * atoi(percent);
	printf("# huge lives of %zu MiB, not %zu: QUARK_TEST_STORM is %s\n",
	       huge >> 20, all >> 20, percent);
}

static void test_cpu_time(void **state)
{
	struct sysinfo si;

	assert_int_equal(sysinfo(&si), 0);
	/* A quarter of what is free, where that is too much for the host. */
	huge = (size_t)si.freeram * si.mem_unit / 4;
	huge = huge < HUGE_BYTES ? huge : HUGE_BYTES;
	scale();
	in_child(body_cpu_time);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cpu_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
