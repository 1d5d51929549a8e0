// SPDX-License-Identifier: Apache-2.0
/* A command to be recorded: held before its exec, executed, its exit status. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "profiler/cmd/command.h"

static char dir[] = "/tmp/test_command.XXXXXX";
static char file[64];

static int wait_status(struct command *c)
{
	siginfo_t si;

	/* Ended, but not reaped: command_status() does that. */
	assert_int_equal(waitid(P_PID, c->pid, &si, WEXITED | WNOWAIT), 0);
	return command_status(c);
}

static int run(char **argv, int *status)
{
	struct command c = { .hold = -1, .result = -1 };
	int err;

	assert_int_equal(command_start(&c, argv), 0);
	err = command_go(&c);
	*status = wait_status(&c);
	assert_int_equal(c.pid, 0);
	command_fini(&c);
	return err;
}

static void it_does_nothing_before_command_go(void **state)
{
	char *argv[] = { "touch", file, NULL };
	struct command c = { .hold = -1, .result = -1 };

	assert_int_equal(command_start(&c, argv), 0);
	assert_int_equal(command_status(&c), -EAGAIN);
	usleep(50000);
	assert_int_equal(access(file, F_OK), -1);
	assert_int_equal(command_go(&c), 0);
	assert_int_equal(wait_status(&c), 0);
	assert_int_equal(access(file, F_OK), 0);
	command_fini(&c);
	unlink(file);
}

static void its_status_is_that_of_a_shell(void **state)
{
	static const struct {
		char *script;
		int status;
	} cases[] = {
		{ "exit 0", 0 },
		{ "exit 7", 7 },
		{ "kill -TERM $$", 128 + SIGTERM },
		{ "kill -KILL $$", 128 + SIGKILL },
	};
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *argv[] = { "sh", "-c", cases[i].script, NULL };
		int status;

		assert_int_equal(run(argv, &status), 0);
		assert_int_equal(status, cases[i].status);
	}
}

static void a_failed_exec_is_an_error(void **state)
{
	char *none[] = { "no-such-command", NULL };
	char *directory[] = { dir, NULL };
	int status;

	/* A directory of PATH without search permission would be EACCES. */
	setenv("PATH", "/usr/bin:/bin", 1);
	assert_int_equal(run(none, &status), -ENOENT);
	assert_int_equal(run(directory, &status), -EACCES);
}

static void without_command_go_it_exits(void **state)
{
	char *argv[] = { "touch", file, NULL };
	struct command c = { .hold = -1, .result = -1 };
	pid_t pid;

	assert_int_equal(command_start(&c, argv), 0);
	pid = c.pid;
	command_fini(&c);
	assert_int_equal(kill(pid, 0), -1);
	assert_int_equal(errno, ESRCH);
	assert_int_equal(access(file, F_OK), -1);
}

static void it_may_be_killed_while_held(void **state)
{
	char *argv[] = { "touch", file, NULL };
	struct command c = { .hold = -1, .result = -1 };

	signal(SIGPIPE, SIG_IGN);
	assert_int_equal(command_start(&c, argv), 0);
	kill(c.pid, SIGKILL);
	assert_int_equal(wait_status(&c), 128 + SIGKILL);
	assert_int_equal(command_go(&c), 0);
	assert_int_equal(access(file, F_OK), -1);
	command_fini(&c);
	signal(SIGPIPE, SIG_DFL);
}

static int make_dir(void **state)
{
	if (!mkdtemp(dir))
		return -1;
	snprintf(file, sizeof(file), "%s/touched", dir);
	return 0;
}

static int remove_dir(void **state)
{
	return rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_does_nothing_before_command_go),
		cmocka_unit_test(its_status_is_that_of_a_shell),
		cmocka_unit_test(a_failed_exec_is_an_error),
		cmocka_unit_test(without_command_go_it_exits),
		cmocka_unit_test(it_may_be_killed_while_held),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
