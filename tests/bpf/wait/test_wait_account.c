// SPDX-License-Identifier: Apache-2.0
/*
 * The account is exact: the sums of an image are, to the nanosecond, the time of its
 * threads from their begin to their end, and what is open is in them up to the last cut.
 * Sums are bounded, and a user cannot take those of others.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "tests/bpf/wait/test_wait.h"

/* --- the time of threads ------------------------------------------------------------ */

#define STORM_PROCESSES 40
#define STORM_THREADS 25
/* Longer than a hypervisor stops a CPU. */
#define STORM_CUT_NS (20 * MSEC)

static void *storm_thread(void *arg)
{
	unsigned int seed = (unsigned int)(uintptr_t)arg;
	int fds[2];
	char c;

	if (pipe(fds))
		return NULL;
	for (int i = 0; i < 30; i++) {
		switch (rand_r(&seed) % 4) {
		case 0:
			usleep(rand_r(&seed) % 500);
			break;
		case 1:
			sched_yield();
			break;
		case 2:
			if (write(fds[1], "", 1) != 1 ||
			    read(fds[0], &c, 1) != 1)
				return NULL;
			break;
		default:
			for (volatile int k = 0; k < 20000; k++)
				;
		}
	}
	close(fds[0]);
	close(fds[1]);
	return NULL;
}

/* A third ends by an exec, a third with threads that are still there. */
static void storm_process(unsigned int n)
{
	pthread_t t[STORM_THREADS];
	pid_t pid;

	for (unsigned int i = 0; i < STORM_THREADS; i++)
		if (pthread_create(&t[i], NULL, storm_thread,
				   (void *)(uintptr_t)(n * 100 + i)))
			_exit(1);
	if (n % 3 == 0)
		execl("/bin/true", "true", NULL);
	if (n % 3 == 1)
		_exit(0);
	pid = fork();
	if (!pid) {
		execl("/bin/true", "true", NULL);
		_exit(1);
	}
	for (unsigned int i = 0; i < STORM_THREADS; i++)
		pthread_join(t[i], NULL);
	waitpid(pid, NULL, 0);
	_exit(0);
}

/* The sums of an image less the time of its threads: 0. */
static int64_t image_error(const struct abi_key *key)
{
	const struct waiting_sum *s;
	int64_t error = 0;

	for (s = got; s < got + n_got; s++)
		if (same_image(&s->key, key))
			error += (int64_t)s->ns - (int64_t)s->wall_ns;
	return error;
}

/* Of all images of these processes; fails if their sums are not the time of threads. */
static size_t check_images(const pid_t *pids, size_t n)
{
	size_t images = 0;

	for (const struct waiting_sum *s = got; s < got + n_got; s++)
		for (size_t i = 0; i < n; i++) {
			if (s->key.tgid != (uint32_t)pids[i] ||
			    s->what != ABI_WAIT_WHAT_ON)
				continue;
			images++;
			if (s->threads || image_error(&s->key)) {
				print_sums(pids[i]);
				fail_msg("process %d: %u threads, %" PRId64
					 " ns too many",
					 pids[i], s->threads,
					 image_error(&s->key));
			}
		}
	return images;
}

/*
 * Whether all threads of these processes have left the sums. On some hosts the last switch
 * of a thread may not be seen, as other ones.
 */
static bool all_left(const pid_t *pids, size_t n)
{
	for (const struct waiting_sum *s = got; s < got + n_got; s++)
		for (size_t i = 0; i < n; i++)
			if (s->key.tgid == (uint32_t)pids[i] && s->threads)
				return false;
	return true;
}

/* Runs the processes to their end, and cuts meanwhile. Returns the number of cuts. */
static uint64_t storm(pid_t *pids)
{
	int left = STORM_PROCESSES;
	uint64_t cuts = 0;

	for (unsigned int i = 0; i < STORM_PROCESSES; i++) {
		pids[i] = fork();
		if (!pids[i])
			storm_process(i);
	}
	/*
	 * Cuts, as windows make them, change nothing. Not at this moment: a switch that
	 * read the clock before, and changes its sum after the cut, takes time back.
	 */
	while (left) {
		assert_int_equal(waiting_sums_cut(sums, clock_boottime_ns() -
								STORM_CUT_NS),
				 0);
		read_sums();
		cuts++;
		while (left && waitpid(-1, NULL, WNOHANG) > 0)
			left--;
	}
	/* Reaped before: only their last switch is waited for. */
	for (int k = 0; k < 500; k++) {
		sleep_ms(10);
		read_sums();
		if (all_left(pids, STORM_PROCESSES))
			break;
	}
	/* A thread may have left between the reading of its time and of their number. */
	read_sums();
	return cuts;
}

static void test_adds_up(void **state)
{
	pid_t pids[STORM_PROCESSES];
	struct abi_wait_counters before, after;
	uint64_t cuts = 0;

	waiting_sums_counters(sums, &before);
	for (int tries = 0; tries < 5; tries++) {
		cuts = storm(pids);
		if (all_left(pids, STORM_PROCESSES))
			break;
	}
	assert_true(check_images(pids, STORM_PROCESSES) >=
		    STORM_PROCESSES + STORM_PROCESSES / 3);
	waiting_sums_counters(sums, &after);
	assert_true(cuts > 3);
	/* A cut finds those that could not be followed at once. */
	print_message("%" PRIu64
		      " cuts, missed %llu, unwoken %llu, untracked %llu\n",
		      cuts, after.missed - before.missed,
		      after.unwoken - before.unwoken,
		      after.untracked - before.untracked);
}

/* --- cuts ------------------------------------------------------------------------------ */

#define BLOCKED 50

static void *blocked_thread(void *arg)
{
	char c;

	return read(*(int *)arg, &c, 1) < 0 ? arg : NULL;
}

/* Until a thread runs no more: each in read(2) of a pipe. */
static void wait_until_blocked(pid_t pid)
{
	uint64_t before = 0, now = 0;

	for (int i = 0, same = 0; i < WAIT_SECONDS * 20 && same < 6; i++) {
		sleep_ms(50);
		read_sums();
		now = sum_of(pid, ABI_WAIT_ON).count;
		same = now && now == before ? same + 1 : 0;
		before = now;
	}
}

static pid_t start_blocked(int fds[2], int threads)
{
	pid_t pid;

	assert_int_equal(pipe(fds), 0);
	pid = fork();
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (int i = 1; i < threads; i++) {
		pthread_t t;

		if (pthread_create(&t, NULL, blocked_thread, &fds[0]))
			_exit(1);
	}
	blocked_thread(&fds[0]);
	_exit(0);
}

static void end_blocked(pid_t pid, int fds[2])
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(fds[0]);
	close(fds[1]);
}

/* Open waits of threads that do not run are, between two cuts, all of the time. */
static void check_open(pid_t pid, uint64_t threads)
{
	uint32_t what = ABI_WAIT_WHAT(SYS_read, ABI_WAIT_PIPE, ABI_FD_PIPE);
	uint64_t from = clock_boottime_ns(), to, ns, all;
	const struct waiting_sum *s;

	assert_int_equal(waiting_sums_cut(sums, from), 0);
	read_sums();
	s = sum_exact(pid, what);
	assert_non_null(s);
	ns = s->ns;
	all = sum_of(pid, 0xff).ns;
	sleep_ms(100);
	to = clock_boottime_ns();
	assert_int_equal(waiting_sums_cut(sums, to), 0);
	read_sums();
	s = sum_exact(pid, what);
	assert_int_equal(s->ns - ns, threads * (to - from));
	assert_int_equal(sum_of(pid, 0xff).ns - all, threads * (to - from));
	/* None of them ended. */
	assert_int_equal(s->count, 0);
}

static void test_open_waits(void **state)
{
	int fds[2];
	pid_t pid = start_blocked(fds, BLOCKED);

	wait_until_blocked(pid);
	check_open(pid, BLOCKED);
	end_blocked(pid, fds);
}

/* What slept before the programs were loaded has its reason, too. */
static void test_found(void **state)
{
	int fds[2];
	pid_t pid;

	close_sums(state);
	pid = start_blocked(fds, BLOCKED);
	/* Nothing follows it yet. */
	sleep_ms(500);
	assert_int_equal(open_sums(state), 0);
	check_open(pid, BLOCKED);
	end_blocked(pid, fds);
}

/* --- against the kernel's own figures ------------------------------------------------- */

static uint64_t schedstat_runs(pid_t pid)
{
	uint64_t on, wait, runs;
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/schedstat", pid);
	f = fopen(path, "r");
	assert_non_null(f);
	assert_int_equal(fscanf(f, "%" SCNu64 " %" SCNu64 " %" SCNu64, &on,
				&wait, &runs),
			 3);
	fclose(f);
	return runs;
}

/* A process that blocks now has run as often as schedstat counts. */
static void test_runs(void **state)
{
	int fds[2];
	pid_t pid;
	char c;

	assert_int_equal(pipe(fds), 0);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (int i = 0; i < 100; i++)
			usleep(100);
		_exit(read(fds[0], &c, 1) != 1);
	}
	for (int i = 0; i < WAIT_SECONDS; i++) {
		wait_until_blocked(pid);
		if (sum_of(pid, ABI_WAIT_ON).count >= 100)
			break;
	}
	assert_int_equal(sum_of(pid, ABI_WAIT_ON).count, schedstat_runs(pid));
	assert_int_equal(write(fds[1], "", 1), 1);
	reap(pid);
	close(fds[0]);
	close(fds[1]);
}

/* The kernel's CPU time of a process that is reaped is that of wait4(2). */
static void test_cpu_time(void **state)
{
	struct waiting_sum all;
	int fds[2];
	pid_t pid;
	char c;
	struct timespec ts;
	uint64_t *cpu, now;

	assert_int_equal(pipe(fds), 0);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		do
			clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
		while (ts.tv_nsec < 50000000);
		_exit(read(fds[0], &c, 1) != 1);
	}
	wait_until_blocked(pid);
	/* Its clock stands still, as it does not run. */
	clockid_t id;

	assert_int_equal(clock_getcpuclockid(pid, &id), 0);
	assert_int_equal(clock_gettime(id, &ts), 0);
	now = (uint64_t)ts.tv_sec * CLOCK_NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
	all = sum_of(pid, ABI_WAIT_ON);
	cpu = &all.cpu_ns;
	assert_int_equal(*cpu, now);
	print_message("on a CPU %" PRIu64 " ns, CPU time %" PRIu64 " ns\n",
		      all.ns, all.cpu_ns);
	assert_int_equal(write(fds[1], "", 1), 1);
	reap(pid);
	close(fds[0]);
	close(fds[1]);
}

/* --- images ------------------------------------------------------------------------------ */

/* An exec is a cut: the sleep before it is not the new image's. */
static void test_exec(void **state)
{
	const struct waiting_sum *s;
	uint64_t before = 0, after = 0;
	pid_t pid = fork();

	if (!pid) {
		sleep_ms(40);
		execl("/bin/sleep", "sleep", "0.01", NULL);
		_exit(1);
	}
	reap(pid);
	for (s = got; s < got + n_got; s++) {
		if (s->key.tgid != (uint32_t)pid ||
		    ABI_WAIT_WHAT_REASON(s->what) != ABI_WAIT_SLEEP)
			continue;
		if (s->ns >= 40 * MSEC)
			before = s->key.exec_id;
		else
			after = s->key.exec_id;
		assert_int_equal(s->count, 1);
	}
	assert_true(before);
	assert_int_equal(after, before + 1);
	assert_int_equal(check_images(&pid, 1), 2);
}

/* --- bounds ------------------------------------------------------------------------------- */

#define LIMIT 4096
#define GREEDY 800
#define GREEDY_UID 65534
#define OTHER_UID \
	65533 /* root's sums are those of the host's processes as well */

static pid_t start_greedy(int fds[2])
{
	pid_t pid = fork();
	char c;

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (setresuid(GREEDY_UID, GREEDY_UID, GREEDY_UID))
		_exit(1);
	/* A child of that user, which has the sums: not the one that was root. */
	for (int i = 0; i < GREEDY; i++) {
		pid = fork();
		if (pid > 0)
			continue;
		if (pid < 0)
			break;
		/* Its end of the pipe: when the last is closed, all end. */
		close(fds[1]);
		usleep(1);
		_exit(read(fds[0], &c, 1) < 0);
	}
	if (write(fds[1], "", 0) < 0)
		_exit(1);
	while (read(fds[0], &c, 1) < 0)
		;
	_exit(0);
}

/* A process of another user that sleeps, whose pid is written to *pid. */
static pid_t start_other(pid_t *pid)
{
	pid_t child = fork();
	int status;

	if (child)
		return child;
	if (setresuid(OTHER_UID, OTHER_UID, OTHER_UID))
		_exit(1);
	child = fork();
	if (!child) {
		sleep_ms(10);
		_exit(0);
	}
	*pid = child;
	_exit(waitpid(child, &status, 0) != child || status);
}

static void test_bounds(void **state)
{
	struct abi_wait_counters c, later;
	uint64_t kept = 0;
	const char *what;
	int fds[2], status;
	pid_t greedy, other, *pid;

	pid = mmap(NULL, sizeof(*pid), PROT_READ | PROT_WRITE,
		   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(pid, MAP_FAILED);
	close_sums(state);
	assert_int_equal(waiting_sums_new(&sums, LIMIT, 0, &what), 0);
	assert_int_equal(pipe(fds), 0);
	greedy = start_greedy(fds);
	for (int i = 0; i < WAIT_SECONDS * 10; i++) {
		waiting_sums_counters(sums, &c);
		if (c.refused)
			break;
		sleep_ms(100);
	}
	assert_true(c.refused);
	assert_true(c.used < LIMIT * 7 / 8);
	/* Another user has all of its time in sums of its own. */
	other = start_other(pid);
	assert_int_equal(waitpid(other, &status, 0), other);
	assert_int_equal(status, 0);
	for (int i = 0; i < WAIT_SECONDS * 10; i++) {
		read_sums();
		if (sum_of(*pid, ABI_WAIT_SLEEP).ns >= 10 * MSEC)
			break;
		sleep_ms(100);
	}
	assert_true(sum_of(*pid, ABI_WAIT_SLEEP).ns >= 10 * MSEC);
	munmap(pid, sizeof(*pid));
	/* What was refused is not lost, but nobody's. */
	for (const struct waiting_sum *s = got; s < got + n_got; s++)
		if (!s->key.tgid)
			kept += s->count + s->ns;
	assert_true(kept);
	/* Closing the pipe ends all; their sums are free then. */
	close(fds[1]);
	kill(greedy, SIGKILL);
	waitpid(greedy, NULL, 0);
	close(fds[0]);
	for (int i = 0; i < WAIT_SECONDS * 10; i++) {
		read_sums();
		waiting_sums_counters(sums, &later);
		if (later.used < c.used - LIMIT / 8)
			break;
		sleep_ms(100);
	}
	assert_true(later.used < c.used - LIMIT / 8);
}

/* --- ends that were not seen ----------------------------------------------------- */

/* The newest map of sums, of this process. */
static int sums_map_fd(void)
{
	struct bpf_map_info info;
	uint32_t id = 0, len;
	int fd, found = -1;

	while (!bpf_map_get_next_id(id, &id)) {
		fd = bpf_map_get_fd_by_id(id);
		if (fd < 0)
			continue;
		len = sizeof(info);
		memset(&info, 0, sizeof(info));
		if (bpf_obj_get_info_by_fd(fd, &info, &len) ||
		    strcmp(info.name, "wait_sums") != 0) {
			close(fd);
			continue;
		}
		if (found >= 0)
			close(found);
		found = fd;
	}
	return found;
}

/* The head of a process gets a thread more than there are. False: it has none. */
static bool one_too_many(pid_t pid)
{
	struct abi_wait_sum sum;
	int fd = sums_map_fd();
	bool found = false;

	assert_true(fd >= 0);
	for (uint32_t i = 0; !found && i < ABI_WAIT_SUMS; i++) {
		if (bpf_map_lookup_elem(fd, &i, &sum) ||
		    sum.key.tgid != (uint32_t)pid ||
		    sum.key.what != ABI_WAIT_WHAT_ON)
			continue;
		sum.threads++;
		assert_int_equal(bpf_map_update_elem(fd, &i, &sum, 0), 0);
		found = true;
	}
	close(fd);
	return found;
}

/* The sums of a process stay while a thread's end is missing, and go when it is gone. */
static void test_unseen_end(void **state)
{
	pid_t pid = fork();

	if (!pid) {
		pause();
		_exit(0);
	}
	wait_until_blocked(pid);
	assert_true(one_too_many(pid));
	assert_int_equal(waiting_sums_check(sums), 0);
	assert_int_equal(waiting_sums_check(sums), 0);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	sleep_ms(50);
	read_sums();
	read_sums();
	assert_true(one_too_many(pid));
	assert_int_equal(waiting_sums_check(sums), 0);
	assert_true(waiting_sums_check(sums) >= 1);
	read_sums();
	assert_false(one_too_many(pid));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_adds_up),
		cmocka_unit_test(test_open_waits),
		cmocka_unit_test(test_runs),
		cmocka_unit_test(test_cpu_time),
		cmocka_unit_test(test_exec),
		cmocka_unit_test(test_found),
		cmocka_unit_test(test_unseen_end),
		cmocka_unit_test(test_bounds),
	};

	return cmocka_run_group_tests(tests, open_sums, close_sums);
}
