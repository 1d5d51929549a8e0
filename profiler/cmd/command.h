/* SPDX-License-Identifier: Apache-2.0 */
/*
 * command: a program to be recorded. Its process is forked at once, but does not
 * exec before sampling is set up, so that its first instruction is recorded.
 */
#ifndef PROFILER_COMMAND_H
#define PROFILER_COMMAND_H

#include <stdint.h>
#include <sys/types.h>

struct command {
	pid_t pid; /* 0: none */
	int hold; /* the process waits for a byte, and exits at end of file */
	int result; /* errno of exec is read from it */
	/* Of it and the children it waited for, set by its end; user code only. */
	uint64_t user_ns;
};

/*
 * Forks: to be called before threads are created. 0 or -errno. Without
 * command_go() the process exits when profd does.
 */
int command_start(struct command *c, char **argv);
/* Executes the program. 0, or -errno of execvp(3): then the process exits. */
int command_go(struct command *c);
/* The exit status as in sh(1); -EAGAIN while the process runs. */
int command_status(struct command *c);
/* Ends a process without command_go(); closes the descriptors. */
void command_fini(struct command *c);

#endif /* PROFILER_COMMAND_H */
