/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker_child: a child process with a socket to it. After worker_child_end()
 * the struct stays until the process is reaped, however long that takes.
 */
#ifndef SYMBOLIZE_WORKER_CHILD_H
#define SYMBOLIZE_WORKER_CHILD_H

#include <sys/queue.h>

#include "symbolize/reader/worker_msg.h"

struct worker_child;

/* All children, including those that are not reaped yet. */
struct worker_children {
	uv_loop_t *loop;
	LIST_HEAD(, worker_child) list;
	void (*readable)(void *arg);
	/* Exited without worker_child_end(): -signal, or its exit status. */
	void (*ended)(void *arg, int status);
	void (*gone)(void *arg); /* one was removed from the list */
	void *arg;
};

/* 'argv' as for execve(). 0 or -errno. */
int worker_child_start(struct worker_child **cp, struct worker_children *all,
		       const char *program, char **argv);
int worker_child_socket(const struct worker_child *c);
pid_t worker_child_pid(const struct worker_child *c);
/*
 * Its priority, relative to other programs: on busy CPUs a table is late if
 * each step waits for a CPU. Without CAP_SYS_NICE it stays the same (WITH).
 */
enum worker_nice {
	WORKER_WITH,
	WORKER_BEFORE,
	WORKER_BEHIND,
};
void worker_child_nice(struct worker_child *c, enum worker_nice nice);
/* Whether it keeps the loop alive. */
void worker_child_ref(struct worker_child *c, bool ref);
/* Kills it; of its callbacks only ended() follows. */
void worker_child_kill(struct worker_child *c);
/* Kills it; of its callbacks only gone() follows. */
void worker_child_end(struct worker_child *c);
/* Ends all; gone() follows soon for each of them, reaped or not. */
void worker_children_forget(struct worker_children *all);

#endif /* SYMBOLIZE_WORKER_CHILD_H */
