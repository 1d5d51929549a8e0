/* SPDX-License-Identifier: Apache-2.0 */
/* http_socket: sockets to listen on, and the files that unix ones leave. */
#ifndef REPORTER_HTTP_SOCKET_H
#define REPORTER_HTTP_SOCKET_H

#include <sys/types.h>

#include "reporter/http/http_parse.h"

struct http_socket {
	int fd;
	struct http_address address;
	/* Of a unix socket's file, by which it is known as ours. */
	dev_t dev;
	ino_t ino;
};

/*
 * Bound and listening, close-on-exec, not blocking. A unix socket's directory
 * is made if missing, a stale file is replaced. 0 or -errno: -EADDRINUSE if
 * somebody listens there, -EEXIST if a file is in the way that is no socket.
 */
int http_socket_open(struct http_socket *s, const char *address);
/* Whether a unix socket's file still is ours; of others, true. */
bool http_socket_there(const struct http_socket *s);
/* Removes the file, if it still is ours. The descriptor is not closed. */
void http_socket_unlink(const struct http_socket *s);

#endif /* REPORTER_HTTP_SOCKET_H */
