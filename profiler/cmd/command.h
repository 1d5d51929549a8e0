/* SPDX-License-Identifier: Apache-2.0 */
/*
 * command: a program to be recorded. It is started at once, but held before
 * its exec until everything is attached, so that nothing of it is missed.
 */
#ifndef PROFILER_COMMAND_H
#define PROFILER_COMMAND_H

#include <sys/types.h>

struct command {
	pid_t pid; /* 0: none */
	int hold; /* held while this is open, and nothing was written to it */
	int result; /* the errno of exec is read from it */
};

/*
 * Before any thread is made. 0 or -errno. One that is never let go, because
 * profd ends, ends too.
 */
int command_start(struct command *c, char **argv);
/* 0: it runs its program now. -errno of execvp(3): it could not, and ended. */
int command_go(struct command *c);
/* Its exit status as a shell has it; -EAGAIN while it runs. */
int command_status(struct command *c);
/* Ends one that was not let go; frees descriptors. */
void command_fini(struct command *c);

#endif /* PROFILER_COMMAND_H */
