// SPDX-License-Identifier: Apache-2.0
/*
 * The events sched_switch and cpu_analysis of the watch, made of the segments of a program
 * that makes each on purpose: as many switches as the kernel counts, true reasons, and all
 * of the time.
 */
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "bpf/abi_watch.h"
#include "profiler/waiting/analysis.h"
#include "profiler/waiting/timeline.h"
#include "tests/bpf/wait/test_wait.h"

#define ROUNDS 40
#define THREADS 2

static struct waiting_sites sites;
static struct timelines *timelines;
static struct analysis *analysis;
static struct watch *watch;
static struct watch_sub *sub;
static int gate[2];

/* What a thread knows of itself: from one moment to another it left its CPU so often. */
static struct truth {
	uint32_t tid;
	uint64_t from, to, switches;
	/* What was seen of it: */
	uint64_t seen, reasons[ABI_WAIT_REASON_MAX], told, sum, lost;
	uint64_t types[WATCH_N_TIMES];
	bool ended;
} * truths;

/* --- the program ------------------------------------------------------------------------ */

static uint64_t own_switches(void)
{
	static const char *const keys[] = { "\nvoluntary_ctxt_switches:",
					    "\nnonvoluntary_ctxt_switches:" };
	char text[4096] = "";
	uint64_t n = 0;
	int fd = open("/proc/thread-self/status", O_RDONLY);

	if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0)
		_exit(1);
	close(fd);
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		n += strtoull(strstr(text, keys[i]) + strlen(keys[i]), NULL,
			      10);
	return n;
}

/* A moment at which the count was this. */
static uint64_t moment(uint64_t *count)
{
	uint64_t time;

	do {
		*count = own_switches();
		time = clock_boottime_ns();
	} while (own_switches() != *count);
	return time;
}

static void wait_each(int sock, int epoll)
{
	const struct timespec ts = { 0, 2 * 1000000L };
	struct epoll_event e;
	static uint32_t word;
	char c;

	syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &ts, NULL);
	syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &ts, NULL, 0);
	recv(sock, &c, 1, 0);
	epoll_wait(epoll, &e, 1, 2);
}

static void *work(void *arg)
{
	const struct timeval tv = { 0, 2000 };
	int pair[2], epoll = epoll_create1(0);
	struct truth *t = arg;
	uint64_t before, after;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) || epoll < 0 ||
	    setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)))
		_exit(1);
	t->tid = (uint32_t)syscall(SYS_gettid);
	t->from = moment(&before);
	for (int i = 0; i < ROUNDS; i++) {
		wait_each(pair[0], epoll);
		sched_yield();
	}
	t->to = moment(&after);
	t->switches = after - before;
	/* What was on the CPU then is over. */
	sleep_ms(2);
	sleep_ms(2);
	return NULL;
}

static void program(void)
{
	pthread_t t;
	char c;

	if (read(gate[0], &c, 1) != 1 ||
	    pthread_create(&t, NULL, work, &truths[1]))
		_exit(1);
	work(&truths[0]);
	pthread_join(t, NULL);
	_exit(0);
}

/* --- what is seen ----------------------------------------------------------------------- */

static void on_segment(void *arg, const struct abi_segment *s)
{
	analysis_segment(analysis, s);
}

static int on_follow(void *arg, uint32_t tgid, bool begins)
{
	return timeline_follow(timelines, tgid, begins);
}

static void on_lost(void *arg, uint32_t tgid, struct abi_chosen *out)
{
	timeline_followed(timelines, tgid, out);
}

static void on_owner(void *arg, struct watch_thread *t)
{
	t->uid = 1;
}

static int on_watch(void *arg, uint32_t pid, bool begins)
{
	return analysis_follow(analysis, pid, begins);
}

/* As waiting.c does it. */
static void tick(void)
{
	uint64_t now = clock_boottime_ns();

	timeline_tick(timelines, now);
	if (!analysis_tick(analysis, now))
		return;
	assert_int_equal(waiting_sums_cut(sums, now), 0);
	timeline_tick(timelines, now);
	analysis_cut(analysis, now);
}

static const struct watch_attribute *attribute(const struct watch_event *e,
					       const char *key)
{
	for (size_t i = 0; i < e->n_attributes; i++)
		if (!strcmp(e->attributes[i].key, key))
			return &e->attributes[i];
	return NULL;
}

static const char *text(const struct watch_event *e, const char *key)
{
	const struct watch_attribute *a = attribute(e, key);

	return a ? a->s : "";
}

/* Each reason that the program makes on purpose. */
static const struct {
	enum abi_wait_reason reason;
	const char *name, *call, *fd;
	enum watch_time type;
} rows[] = {
	{ ABI_WAIT_SLEEP, "sleep", "clock_nanosleep", "", WATCH_TIME_IDLE },
	{ ABI_WAIT_FUTEX, "futex", "futex", "", WATCH_TIME_FUTEX },
	{ ABI_WAIT_SOCKET, "socket", "recvfrom", "socket", WATCH_TIME_NET },
	{ ABI_WAIT_POLL, "poll", "epoll_wait", "epoll", WATCH_TIME_EPOLL },
};

static void see_switch(struct truth *t, const struct watch_event *e)
{
	const char *reason = text(e, "reason");

	t->ended = !strcmp(reason, "exit");
	if (e->time < t->from || e->time >= t->to)
		return;
	t->seen++;
	assert_true(e->timed);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		if (strcmp(reason, rows[i].name) != 0)
			continue;
		t->reasons[rows[i].reason]++;
		assert_string_equal(text(e, "syscall"), rows[i].call);
		assert_string_equal(text(e, "fd"), rows[i].fd);
		assert_string_equal(text(e, "state"), "off");
	}
}

static void see_analysis(struct truth *t, const struct watch_event *e)
{
	uint64_t start = attribute(e, "start_time")->u;
	const char *ns = text(e, "type_specs"), *type = text(e, "time_type");
	uint64_t n, sum = 0;
	char *end;

	if (t->told)
		assert_int_equal(start, t->told);
	for (; *ns; ns = *end ? end + 1 : end, type += 2) {
		n = strtoull(ns, &end, 10);
		if (start + sum >= t->from && start + sum + n <= t->to)
			t->types[*type - '0']++;
		sum += n;
	}
	t->told = attribute(e, "end_time")->u;
	t->lost += attribute(e, "lost") ? 1 : 0;
	assert_int_equal(start + sum, t->told);
}

static void see(void)
{
	struct watch_event e;

	while (!watch_next(sub, &e)) {
		assert_int_equal(e.uid, 1);
		for (size_t i = 0; i < THREADS; i++) {
			if (truths[i].tid != e.tid)
				continue;
			if (e.name == ABI_WATCH_SCHED_SWITCH)
				see_switch(&truths[i], &e);
			else
				see_analysis(&truths[i], &e);
		}
	}
}

static void subscribe(pid_t pid)
{
	static const char *const names[] = { "sched_switch", "cpu_analysis" };
	const uint32_t pids[] = { (uint32_t)pid };
	const struct watch_want want = { .names = names,
					 .n_names = ARRAY_SIZE(names),
					 .pids = pids,
					 .n_pids = 1 };
	struct strbuf why = STRBUF_INIT;

	assert_int_equal(watch_subscribe(watch, &want, &sub, &why), 0);
}

static void test_what_a_program_does(void **state)
{
	struct timeline_stats stats;
	bool ended = false;
	pid_t pid = fork();

	if (!pid)
		program();
	subscribe(pid);
	assert_int_equal(write(gate[1], "", 1), 1);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	for (int i = 0; i < WAIT_SECONDS * 50 && !ended; i++) {
		sleep_ms(20);
		tick();
		see();
		ended = truths[0].ended && truths[1].ended;
	}
	assert_true(ended);
	for (struct truth *t = truths; t < truths + THREADS; t++) {
		print_message("%u: %" PRIu64 " switches, %" PRIu64 " events\n",
			      t->tid, t->switches, t->seen);
		assert_int_equal(t->seen, t->switches);
		assert_int_equal(t->lost, 0);
		assert_true(t->told >= t->to);
		for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
			/* On a busy machine a wait may be over before it begins. */
			assert_in_range(t->reasons[rows[i].reason], ROUNDS / 2,
					ROUNDS);
			assert_int_equal(t->types[rows[i].type],
					 t->reasons[rows[i].reason]);
		}
	}
	assert_int_equal(watch_lost(sub, ABI_WATCH_SCHED_SWITCH), 0);
	watch_unsubscribe(sub);
	timeline_get_stats(timelines, &stats);
	assert_int_equal(stats.chosen, 0);
	assert_false(analysis_busy(analysis));
}

static int set_up(void **state)
{
	const struct timeline_opts to = { .sites = &sites,
					  .segment = on_segment };
	struct analysis_opts ao = {
		.follow = on_follow,
		.lost = on_lost,
		.owner = on_owner,
	};

	truths = mmap(NULL, THREADS * sizeof(*truths), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (truths == MAP_FAILED || pipe(gate) || open_sums(state) ||
	    waiting_sites_init(&sites, NULL) ||
	    watch_new(&watch, &(struct watch_opts){ .follow = on_watch }))
		return -1;
	ao.watch = watch;
	timelines = timeline_new(sums, &to);
	analysis = analysis_new(&ao);
	return timelines && analysis ? 0 : -1;
}

static int set_down(void **state)
{
	watch_free(watch);
	analysis_free(analysis);
	timeline_free(timelines);
	waiting_sites_fini(&sites);
	return close_sums(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_a_program_does),
	};

	return cmocka_run_group_tests(tests, set_up, set_down);
}
