// SPDX-License-Identifier: Apache-2.0
/*
 * The stack of a site is the stack of each wait there: a whole engine runs in a mode in which
 * the stack of each wait is copied and resolved, and compares it with the one that it
 * would have had without. Programs are chosen for what makes sites wrong: equal frames of
 * different callers, interpreters, buffered output.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"
#include "profiler/engine_internal.h"
#include "profiler/rescan/mapsreader.h"

#define WAITS 2000 /* to be compared, of each program */
#define SECONDS 60 /* at most */
#define SECONDS_FEW 4 /* of those that end soon */

static char three[512]; /* build/tests/e2e/prog_waits */

/* Each writes to a pipe that is full at times, or sleeps: it waits often. */
static const char python[] =
	"import os, sys, time\n"
	"def a(n): time.sleep(n); os.read(r, 1)\n"
	"def b(n): a(n)\n"
	"def c(n): b(n); d(n)\n"
	"def d(n): time.sleep(n)\n"
	"class K:\n"
	"    def __getattr__(self, k): d(1e-5); return lambda: c(1e-5)\n"
	"r, w = os.pipe()\n"
	"k = K()\n"
	"while True:\n"
	"    os.write(w, b'xx')\n"
	"    c(1e-5)\n"
	"    sorted([2, 1], key=lambda x: d(1e-5) or x)\n"
	"    k.x()\n";
static const char perl[] =
	"sub a { select(undef, undef, undef, 1e-5) } sub b { a() } "
	"while (1) { a(); b(); map { b() } (1, 2); eval { a() }; }";
static const char awk[] =
	"BEGIN { while (1) { print i++ | \"cat >/dev/null\"; "
	"if (i % 50 == 0) { \"echo x\" | getline y; close(\"echo x\") } } }";
/* As its parent's child, so that a signal to the group ends it all. */
static const char compile[] = "while :; do echo '#include <map>' |"
			      " g++ -pipe -x c++ - -O1 -c -o /dev/null; done";
static const char node[] =
	"const fs = require('fs');"
	"const w = new Int32Array(new SharedArrayBuffer(4));"
	"function a(n) { Atomics.wait(w, 0, 0, n); }"
	"function b(n) { a(n); fs.readFileSync('/proc/self/stat'); }"
	"for (;;) { a(0.01); b(0.01); [1, 2].map(() => b(0.01)); }";

static const struct program {
	const char *name;
	const char *argv[5];
	bool may_not; /* be installed */
	bool few; /* its processes end too soon to wait twice at one place */
} programs[] = {
	{ "three callers", { three, "100000" }, false, false },
	{ "python", { "/usr/bin/python3", "-c", python }, true, false },
	{ "perl", { "perl", "-e", perl }, false, false },
	{ "awk", { "awk", awk }, false, false },
	{ "a compiler", { "/bin/sh", "-c", compile }, false, true },
	{ "node", { "node", "-e", node }, true, false },
};

static uv_loop_t loop;
static struct engine *engine;
static bool missing; /* the last program could not be executed */

/* It begins when the engine follows it, and only it. */
static pid_t start(const struct program *p)
{
	int null, fds[2];
	pid_t pid;
	char c;

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	pid = fork();
	if (pid) {
		close(fds[0]);
		while (pm_select(engine_pm(engine), (uint32_t)pid))
			uv_run(&loop, UV_RUN_ONCE);
		close(fds[1]);
		return pid;
	}
	close(fds[1]);
	if (read(fds[0], &c, 1))
		_exit(1);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setpgid(0, 0);
	null = open("/dev/null", O_WRONLY);
	if (null < 0 || dup2(null, STDOUT_FILENO) < 0)
		_exit(1);
	execvp(p->argv[0], (char *const *)p->argv);
	_exit(127);
}

static void stop(pid_t pid)
{
	kill(-pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void on_timer(uv_timer_t *timer)
{
}

/* Until so many stacks more were compared. */
static struct waiting_stats compare(pid_t pid, uint64_t many, uint64_t seconds)
{
	uint64_t end = clock_awake_ns() + seconds * CLOCK_NSEC_PER_SEC;
	struct waiting_stats before, now;
	int status;

	missing = false;
	waiting_get_stats(engine->waiting, &before);
	do {
		uv_run(&loop, UV_RUN_ONCE);
		waiting_get_stats(engine->waiting, &now);
		if (waitpid(pid, &status, WNOHANG) == pid) {
			missing =
				WIFEXITED(status) && WEXITSTATUS(status) == 127;
			break;
		}
	} while (now.again - before.again < many && clock_awake_ns() < end);
	now.again -= before.again;
	now.differ -= before.differ;
	now.copied -= before.copied;
	return now;
}

static void check(const struct program *p)
{
	struct waiting_stats st;
	pid_t pid = start(p);

	st = compare(pid, WAITS, p->few ? SECONDS_FEW : SECONDS);
	stop(pid);
	print_message("%-14s %6" PRIu64 " copied, %6" PRIu64
		      " compared, %" PRIu64 " differ\n",
		      p->name, st.copied, st.again, st.differ);
	if (p->may_not && missing)
		return;
	assert_true(p->few || st.again >= WAITS);
	assert_true(st.differ * 1000 <= st.again);
}

static void test_stack_is_the_stack(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(programs); i++)
		check(&programs[i]);
}

static int set_up(void **state)
{
	struct engine_opts opts = {
		.loop = &loop,
		.freq_hz = 19,
		.ring_size = 16 << 20,
		.open_files = 256,
		.window_s = 3600,
		.wait = true,
		.selected_only = true,
		.wait_copy_all = true,
	};
	static uv_timer_t timer;
	char msg[512], self[400];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *at;

	if (n < 0)
		return -1;
	self[n] = '\0';
	at = strstr(self, "/bpf/");
	if (!at)
		return -1;
	*at = '\0';
	snprintf(three, sizeof(three), "%s/e2e/prog_waits", self);
	uv_loop_init(&loop);
	if (engine_new(&engine, &opts, msg, sizeof(msg))) {
		print_message("%s\n", msg);
		return -1;
	}
	/* The loop turns, so that time passes. */
	uv_timer_init(&loop, &timer);
	uv_timer_start(&timer, on_timer, 100, 100);
	uv_unref((uv_handle_t *)&timer);
	return 0;
}

static int tear_down(void **state)
{
	engine_free(engine);
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stack_is_the_stack),
	};

	/* Its workers are this program, too. */
	if (symbolizer_worker_wanted(argc, argv))
		return symbolizer_worker_main(argc, argv);
	if (mapsreader_wanted(argc, argv))
		return mapsreader_main();
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
