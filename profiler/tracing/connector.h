/* SPDX-License-Identifier: Apache-2.0 */
/*
 * connector: connects to datagram sockets that watched processes name. Where such a name
 * leads is the process's choice, and it may lead to a file system that never answers. So
 * a child process of profd forks another one for each request, and that one
 *
 *	- enters nothing: it has a descriptor of the process's root, below which the name
 *	  and all its links are looked up, without those of /proc (openat2(2));
 *	- takes the user, group and other groups of the process before, and no capability,
 *	  so that it reaches what the process may reach;
 *	- refuses what is no socket, or is not the process's user's (a link at the end, too);
 *	- sends the connected descriptor back.
 *
 * It is killed after a second. If the file system does not answer even then, it stays:
 * there are 16 at most, of which a user has as many as are free. Without CAP_SETUID and CAP_SETGID it is profd's user, and
 * so connects only to sockets that this user may write to.
 *
 * On the loop's thread.
 */
#ifndef PROFILER_TRACING_CONNECTOR_H
#define PROFILER_TRACING_CONNECTOR_H

#include <stdbool.h>
#include <uv.h>

#include "bpf/abi.h"

#define CONNECTOR_COMMAND "apm-connect"
#define CONNECTOR_AT_ONCE 8 /* requests; a user has as many as are free */
#define CONNECTOR_DEADLINE_MS 2000
#define CONNECTOR_PATH_MAX 4096 /* with its end */

/* What main() does when argv[1] is CONNECTOR_COMMAND. */
bool connector_wanted(int argc, char **argv);
int connector_main(void);

struct connector;

struct connector_opts {
	uv_loop_t *loop;
	/*
	 * err 0: the callee owns 'fd'. -EBUSY: too many of this user have not ended; -ESRCH: the process
	 * ended, or has not only this user; -EPERM: it is another user's socket;
	 * -ENOTSOCK; -ETIMEDOUT; and those of openat2(2) and connect(2). From the loop.
	 */
	void (*done)(void *arg, const struct abi_key *key, int err, int fd);
	void *arg;
};

/* 0 or -errno. No process is started before it is needed. */
int connector_new(struct connector **cp, const struct connector_opts *opts);
/* done() will not be called any more. NULL is allowed. */
void connector_free(struct connector *c);
/*
 * Connects to the socket that this process, all of whose user ids are 'uid', has at
 * 'path', which is absolute. -EBUSY, -ENAMETOOLONG or another -errno: done() will not be
 * called.
 */
int connector_ask(struct connector *c, const struct abi_key *key, uint32_t uid,
		  const char *path);
/* Whether this process can take another's user and groups. */
bool connector_permitted(void);

/* --- connector_main.c --------------------------------------------------------- */

struct connector_question {
	uint64_t number;
	uint64_t start_boottime;
	uint32_t tgid, uid;
	char path[CONNECTOR_PATH_MAX]; /* as long as it is, with its end */
};

/* With the descriptor, if there is no error. */
struct connector_answer {
	uint64_t number;
	int32_t err;
	uint32_t pad;
};

#endif /* PROFILER_TRACING_CONNECTOR_H */
