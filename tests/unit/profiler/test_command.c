// SPDX-License-Identifier: Apache-2.0
/* A command to be recorded: held before its exec, let go, asked for its end. */
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

	/* Ended, but not reaped: that is command_status()'s. */
	assert_int_equal(waitid(P_PID, c->pid, &si, WEXITED | WNOWAIT), 0);
	return command_status(c);
}

static int run(char **argv, int *status)
{
	struct command c = { 0, -1, -1 };
	int err;

	assert_int_equal(command_start(&c, argv), 0);
	err = command_go(&c);
	*status = wait_status(&c);
	assert_int_equal(c.pid, 0);
	command_fini(&c);
	return err;
}

static void it_does_nothing_until_let_go(void **state)
{
	char *argv[] = { "touch", file, NULL };
	struct command c = { 0, -1, -1 };

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

static void its_end_is_told_as_a_shell_would(void **state)
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

static void what_cannot_be_run_says_why(void **state)
{
	char *none[] = { "no-such-command", NULL };
	char *directory[] = { dir, NULL };
	int status;

	/* One more directory that we may not search would be EACCES. */
	setenv("PATH", "/usr/bin:/bin", 1);
	assert_int_equal(run(none, &status), -ENOENT);
	assert_int_equal(run(directory, &status), -EACCES);
}

static void one_never_let_go_ends_unrun(void **state)
{
	char *argv[] = { "touch", file, NULL };
	struct command c = { 0, -1, -1 };
	pid_t pid;

	assert_int_equal(command_start(&c, argv), 0);
	pid = c.pid;
	command_fini(&c);
	assert_int_equal(kill(pid, 0), -1);
	assert_int_equal(errno, ESRCH);
	assert_int_equal(access(file, F_OK), -1);
}

static void one_killed_while_held_is_no_harm(void **state)
{
	char *argv[] = { "touch", file, NULL };
	struct command c = { 0, -1, -1 };

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
		cmocka_unit_test(it_does_nothing_until_let_go),
		cmocka_unit_test(its_end_is_told_as_a_shell_would),
		cmocka_unit_test(what_cannot_be_run_says_why),
		cmocka_unit_test(one_never_let_go_ends_unrun),
		cmocka_unit_test(one_killed_while_held_is_no_harm),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
