/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http_conn: the connections of a listener, their users and deadlines. All local
 * users share a listener, so none may block it for the others, neither by many
 * connections nor by incomplete requests.
 */
#ifndef REPORTER_HTTP_CONN_H
#define REPORTER_HTTP_CONN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

/* The deadline for a connection's first complete request, since its start. */
#define HTTP_REQUEST_NS (5 * CLOCK_NSEC_PER_SEC)
/* The deadline for the next one, since the last answer. */
#define HTTP_IDLE_S 30

/* Per listener; above it, connections without a request are closed. */
#define HTTP_CONNECTIONS_MAX 352
/*
 * Limits per listener, and per user, of all connections, those waiting for a
 * profile, and those following events. Root and profd's own user have no limit.
 */
#define HTTP_CONNECTIONS_USER (HTTP_CONNECTIONS_MAX / 2)
#define HTTP_WAITING_MAX 256
#define HTTP_WAITING_USER (HTTP_WAITING_MAX / 2)
#define HTTP_FOLLOWERS_MAX 32
#define HTTP_FOLLOWERS_USER (HTTP_FOLLOWERS_MAX / 2)

enum http_conn_use {
	HTTP_CONN_IDLE, /* no complete request */
	HTTP_CONN_BUSY, /* a request is being answered */
	HTTP_CONN_WAITING, /* the same, for a profile that is being made */
	HTTP_CONN_FOLLOWING, /* the same, with a stream of events */
	HTTP_CONN_CLOSING, /* shut down, but not closed by the daemon yet */
	HTTP_CONN_USES,
};

struct http_conn {
	TAILQ_ENTRY(http_conn) node;
	int fd; /* owned by the daemon */
	bool known; /* 'uid' is valid */
	uid_t uid; /* of the client */
	enum http_conn_use use;
	bool had_request; /* a complete one */
	uint64_t since; /* of 'use', clock_awake_ns() */
};

struct http_conns {
	TAILQ_HEAD(, http_conn) list; /* by 'since' */
	/* A connection of this user was closed or refused by a limit. */
	void (*limited)(void *arg, uid_t uid);
	void *arg;
};

/*
 * Adds a connection. If that exceeds a limit, the longest idle connection is shut
 * down: of this user, or of the user with the most connections; there, if none
 * is idle, the one whose answer has taken longest. '*closed' is increased if one
 * was shut down; it is the new one if all others are busy. NULL: out of memory.
 */
struct http_conn *http_conn_new(struct http_conns *conns, int fd,
				uint64_t *closed);
void http_conn_free(struct http_conns *conns, struct http_conn *c);
void http_conn_set(struct http_conns *conns, struct http_conn *c,
		   enum http_conn_use use);
/*
 * Shuts down those past their deadline. The number of those that never had a
 * request.
 */
unsigned int http_conns_check(struct http_conns *conns);
/* Whether the user of 'c' may have one more connection of that use. */
bool http_conn_may(const struct http_conns *conns, const struct http_conn *c,
		   enum http_conn_use use, unsigned int max);

/*
 * The user of the other end of a unix socket, or of a TCP connection within this
 * network namespace (by sock_diag(7)). 0 or -errno: unknown.
 */
int http_peer_uid(int fd, uid_t *uid);

#endif /* REPORTER_HTTP_CONN_H */
