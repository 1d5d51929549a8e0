// SPDX-License-Identifier: Apache-2.0
/*
 * libquark under load: many lives at once, a reader that stands still, pids that
 * come again within seconds.
 */
#include "tests/bpf/test_quark.h"

#define STORM 20000
#define WORKERS 2
#define REUSE 200000
#define REUSE_WORKERS 8
#define PID_MAX "/proc/sys/kernel/pid_max"

/* Lives of /bin/true by a worker; their pids into what all share. */
static pid_t worker(pid_t *pids, int n)
{
	pid_t pid = fork();
	int i;

	CHECK(pid >= 0);
	if (pid)
		return pid;
	CHECK(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
	for (i = 0; i < n; i++) {
		pids[i] = spawn_true();
		CHECK(waitpid(pids[i], NULL, 0) == pids[i]);
	}
	_exit(0);
}

static pid_t *shared_pids(size_t n)
{
	pid_t *p = mmap(NULL, n * sizeof(*p), PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	CHECK(p != MAP_FAILED);
	return p;
}

/* Children of the workers, each once, as one whole life. */
static int count_lives(const struct quark_event *ev, const pid_t *workers)
{
	const uint64_t life = QUARK_EV_FORK | QUARK_EV_EXEC | QUARK_EV_EXIT;
	int i;

	for (i = 0; i < WORKERS; i++)
		if (ev->process->proc_ppid == (uint32_t)workers[i])
			break;
	if (i == WORKERS)
		return 0;
	CHECK_INT(ev->events, life);
	CHECK_STR(ev->process->comm, "true");
	CHECK_INT(ev->process->exit_code, 0);
	return 1;
}

static void storm(unsigned int stall)
{
	const struct quark_event *ev;
	struct quark_queue_attr attr;
	struct quark_queue_stats st;
	struct quark_queue qq;
	pid_t *pids = shared_pids(STORM), workers[WORKERS];
	double end = seconds() + 120;
	uint64_t last = 0;
	int i, n = 0;

	quark_queue_default_attr(&attr);
	attr.flags = QQ_EBPF;
	attr.max_env = 0;
	if (quark_queue_open(&qq, &attr) < 0) {
		fprintf(stderr, "%s\n", quark_queue_open_error());
		_exit(1);
	}
	for (i = 0; i < WORKERS; i++)
		workers[i] =
			worker(pids + i * (STORM / WORKERS), STORM / WORKERS);
	sleep(stall);
	while (n < STORM) {
		CHECK(seconds() < end);
		ev = quark_queue_get_event(&qq);
		if (!ev) {
			CHECK(quark_queue_block(&qq) == 0);
			continue;
		}
		CHECK(ev->boottime >= last);
		last = ev->boottime;
		n += count_lives(ev, workers);
	}
	for (i = 0; i < WORKERS; i++)
		CHECK(waitpid(workers[i], NULL, 0) == workers[i]);
	quark_queue_get_stats(&qq, &st);
	CHECK_INT(st.lost, 0);
	CHECK_INT(st.late, 0);
	CHECK(st.aggregations >= 2 * STORM);
	quark_queue_close(&qq);
	munmap(pids, STORM * sizeof(*pids));
}

static void body_storm(void)
{
	storm(0);
}

static void test_storm(void **state)
{
	in_child(body_storm);
}

static void body_stall(void)
{
	storm(5);
}

/* The reader stands still for five seconds of it: nothing is lost. */
static void test_stall(void **state)
{
	in_child(body_stall);
}

static void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);

	CHECK(fd >= 0);
	CHECK(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
}

static void reuse_worker(void)
{
	int i;

	CHECK(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
	for (i = 0; i < REUSE / REUSE_WORKERS; i++) {
		pid_t pid = vfork();

		if (pid == 0)
			_exit(0);
		/* No number is free for the moment. */
		if (pid < 0) {
			i--;
			sched_yield();
			continue;
		}
		CHECK(waitpid(pid, NULL, 0) == pid);
	}
	_exit(0);
}

/* Of one pid the start times rise, and each life is seen once. */
struct reuse {
	uint64_t start[65536];
	char id[65536][17];
};

static int check_reuse(struct reuse *r, const struct quark_event *ev,
		       const pid_t *workers)
{
	const struct quark_process *p = ev->process;
	int i;

	for (i = 0; i < REUSE_WORKERS; i++)
		if (p->proc_ppid == (uint32_t)workers[i])
			break;
	if (i == REUSE_WORKERS)
		return 0;
	CHECK(p->pid < 65536);
	CHECK_INT(ev->events, QUARK_EV_FORK | QUARK_EV_EXIT);
	/* Its own start: before its fork's event, after its pid's last life. */
	CHECK(p->key.start_boottime <= ev->boottime);
	CHECK(ev->boottime - p->key.start_boottime < 1000000000);
	CHECK(p->key.start_boottime > r->start[p->pid]);
	CHECK(strcmp(p->proc_entity_id, r->id[p->pid]));
	CHECK(p->exit_boottime >= ev->boottime);
	r->start[p->pid] = p->key.start_boottime;
	strcpy(r->id[p->pid], p->proc_entity_id);
	return 1;
}

static int reuse_reader(void)
{
	const struct quark_event *ev;
	struct quark_queue_attr attr;
	struct quark_queue_stats st;
	struct quark_queue qq;
	struct reuse *r = calloc(1, sizeof(*r));
	pid_t workers[REUSE_WORKERS];
	double end = seconds() + 300;
	int i, n = 0;

	CHECK(r != NULL);
	quark_queue_default_attr(&attr);
	attr.flags = QQ_EBPF;
	attr.max_env = 0;
	if (quark_queue_open(&qq, &attr) < 0)
		return 1;
	for (i = 0; i < REUSE_WORKERS; i++) {
		workers[i] = fork();
		CHECK(workers[i] >= 0);
		if (workers[i] == 0)
			reuse_worker();
	}
	while (n < REUSE) {
		CHECK(seconds() < end);
		ev = quark_queue_get_event(&qq);
		if (ev)
			n += check_reuse(r, ev, workers);
		else
			CHECK(quark_queue_block(&qq) == 0);
	}
	quark_queue_get_stats(&qq, &st);
	CHECK_INT(st.lost, 0);
	for (i = 0; i < REUSE_WORKERS; i++)
		CHECK(waitpid(workers[i], NULL, 0) == workers[i]);
	quark_queue_close(&qq);
	free(r);
	return 0;
}

static void body_reuse(void)
{
	char old[32] = "";
	int fd = open(PID_MAX, O_RDONLY), status;
	pid_t pid;

	CHECK(fd >= 0 && read(fd, old, sizeof(old) - 1) > 0);
	close(fd);
	/* The system's value is put back however the reader ends. */
	pid = fork();
	if (pid == 0) {
		CHECK(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
		write_file(PID_MAX, "4000");
		_exit(reuse_reader());
	}
	CHECK(waitpid(pid, &status, 0) == pid);
	write_file(PID_MAX, old);
	CHECK_INT(status, 0);
}

static void test_reuse(void **state)
{
	in_child(body_reuse);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_storm),
		cmocka_unit_test(test_stall),
		cmocka_unit_test(test_reuse),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
