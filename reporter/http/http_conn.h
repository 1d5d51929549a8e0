/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http_conn: a listener's connections: whose they are, and for how long one may
 * be without a request. Everybody who may connect shares a listener, so that
 * nobody may keep the others out: not by many connections, not by requests that
 * are never sent whole.
 */
#ifndef REPORTER_HTTP_CONN_H
#define REPORTER_HTTP_CONN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

/* A connection's first request has to be there, whole, after so long. */
#define HTTP_REQUEST_NS (5 * CLOCK_NSEC_PER_SEC)
/* ... and the next one after so long. */
#define HTTP_IDLE_S 30

/* Of one listener. From so many on, who waits longest without a request goes. */
#define HTTP_CONNECTIONS_MAX 352
/*
 * Of one user; not of root, or profd's own. Others of his connections, of those
 * who wait for a profile, and of those who follow events.
 */
#define HTTP_CONNECTIONS_USER (HTTP_CONNECTIONS_MAX / 2)
#define HTTP_WAITING_MAX 256
#define HTTP_WAITING_USER (HTTP_WAITING_MAX / 2)
#define HTTP_FOLLOWERS_MAX 32
#define HTTP_FOLLOWERS_USER (HTTP_FOLLOWERS_MAX / 2)

enum http_conn_use {
	HTTP_CONN_IDLE, /* no whole request yet, or none any more */
	HTTP_CONN_BUSY, /* a request is being answered */
	HTTP_CONN_WAITING, /* ... with a profile, which is waited for */
	HTTP_CONN_FOLLOWING, /* ... with events */
	HTTP_CONN_CLOSING, /* shut down: its end is to be seen */
	HTTP_CONN_USES,
};

struct http_conn {
	TAILQ_ENTRY(http_conn) node;
	int fd; /* the daemon's */
	bool known; /* 'uid' is */
	uid_t uid; /* whose it is */
	enum http_conn_use use;
	bool asked; /* had a request */
	uint64_t since; /* of 'use', clock_awake_ns() */
};

struct http_conns {
	TAILQ_HEAD(, http_conn) list; /* by 'since' */
	/* A user's connection was closed, or refused, for the others' sake. */
	void (*limited)(void *arg, uid_t uid);
	void *arg;
};

/*
 * A new one. Where there are too many, of this user or in all, the one that has
 * been idle longest is shut down: of this user, or of whoever has the most
 * connections; there, if none is idle, the one that has taken longest to read its
 * answer. How many were (this one among them, if all others are busy) is
 * added to '*closed'. NULL without memory.
 */
struct http_conn *http_conn_new(struct http_conns *conns, int fd,
				uint64_t *closed);
void http_conn_free(struct http_conns *conns, struct http_conn *c);
void http_conn_set(struct http_conns *conns, struct http_conn *c,
		   enum http_conn_use use);
/* Shuts down those whose time for a request is over. How many. */
unsigned int http_conns_check(struct http_conns *conns);
/* Whether the user of 'c' may have one more of these connections. */
bool http_conn_may(const struct http_conns *conns, const struct http_conn *c,
		   enum http_conn_use use, unsigned int max);

/*
 * The user at the other end of a connected socket of this host: of a unix
 * socket, or of a TCP one (by sock_diag(7): in this network namespace). 0 or
 * -errno: not known.
 */
int http_peer_uid(int fd, uid_t *uid);

#endif /* REPORTER_HTTP_CONN_H */
