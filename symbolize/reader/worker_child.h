/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker_child: a process with a socket to it. One that was let go stays until
 * it was reaped, however long the kernel takes; nobody waits for it.
 */
#ifndef SYMBOLIZE_WORKER_CHILD_H
#define SYMBOLIZE_WORKER_CHILD_H

#include "symbolize/reader/worker_msg.h"

struct worker_child;

/* All there are, also those that were let go and are not reaped yet. */
struct worker_children {
	uv_loop_t *loop;
	struct worker_child *head;
	void (*readable)(void *arg);
	/* One that was not let go has ended: -signal, or its exit status. */
	void (*ended)(void *arg, int status);
	void (*gone)(
		void *arg); /* one that was let go; 'head' may be NULL now */
	void *arg;
};

/* 'argv' as for execve(). 0 or -errno. */
int worker_child_start(struct worker_child **cp, struct worker_children *all,
		       const char *program, char **argv);
int worker_child_socket(const struct worker_child *c);
pid_t worker_child_pid(const struct worker_child *c);
/*
 * Which programs it goes before: a table comes late where each step towards it
 * waits for its turn on busy CPUs. Without CAP_SYS_NICE it stays WITH them.
 */
enum worker_nice {
	WORKER_WITH,
	WORKER_BEFORE,
	WORKER_BEHIND,
};
void worker_child_nice(struct worker_child *c, enum worker_nice nice);
/* Whether the loop goes on for its sake. */
void worker_child_ref(struct worker_child *c, bool ref);
/* Kills it, and hears nothing more from it but that it ended. */
void worker_child_deafen(struct worker_child *c);
/* Kills it and lets it go. */
void worker_child_end(struct worker_child *c);
/* gone() comes soon for all of them, reaped or not. */
void worker_children_forget(struct worker_children *all);

#endif /* SYMBOLIZE_WORKER_CHILD_H */
