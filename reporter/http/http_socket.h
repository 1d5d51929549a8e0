/* SPDX-License-Identifier: Apache-2.0 */
/* http_socket: sockets to listen on, and the files of unix sockets. */
#ifndef REPORTER_HTTP_SOCKET_H
#define REPORTER_HTTP_SOCKET_H

#include <sys/types.h>

#include "reporter/http/http_parse.h"

struct http_socket {
	int fd;
	struct http_address address;
	/* Identity of a unix socket's file; 0 of others. */
	dev_t dev;
	ino_t ino;
};

/*
 * Opens a listening socket, non-blocking and close-on-exec. Creates the directory
 * of a unix socket, and replaces a socket file on which nothing listens. 0 or
 * -errno; -EADDRINUSE: in use, -EEXIST: the file is not a socket.
 */
int http_socket_open(struct http_socket *s, const char *address);
/* Whether a unix socket's file is still the one created; others: true. */
bool http_socket_there(const struct http_socket *s);
/* Removes that file, if it is still there. Does not close the descriptor. */
void http_socket_unlink(const struct http_socket *s);

#endif /* REPORTER_HTTP_SOCKET_H */
