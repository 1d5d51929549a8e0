// SPDX-License-Identifier: Apache-2.0
/* self: see base/proc/self.h. */
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "base/proc/self.h"

/* Without /proc by the name that it was started by. */
static const char *self_name(void)
{
	const char *name = (const char *)getauxval(AT_EXECFN);

	return !access("/proc/self/exe", X_OK) || !name ? "/proc/self/exe"
							: name;
}

int self_spawn(pid_t *pid, const char *command, int sock)
{
	char *argv[] = { "profd", (char *)command, NULL };
	const char *path = getenv("LD_LIBRARY_PATH");
	posix_spawn_file_actions_t fa;
	char *env[] = { NULL, NULL };
	char buf[4096];
	int err;

	if (path && snprintf(buf, sizeof(buf), "LD_LIBRARY_PATH=%s", path) <
			    (int)sizeof(buf))
		env[0] = buf;
	err = posix_spawn_file_actions_init(&fa);
	if (err)
		return -err;
	err = posix_spawn_file_actions_adddup2(&fa, sock, STDIN_FILENO);
	if (!err)
		err = posix_spawn(pid, self_name(), &fa, NULL, argv, env);
	posix_spawn_file_actions_destroy(&fa);
	return -err;
}
