/* SPDX-License-Identifier: Apache-2.0 */
/* client: HTTP requests to a running profd. The only user of libcurl. */
#ifndef PROFILER_CLIENT_H
#define PROFILER_CLIENT_H

#include <stdbool.h>
#include <stddef.h>

struct client_request {
	const char *server; /* unix:PATH, HOST:PORT or http://... */
	const char *path; /* "/status" */
	const char *accept_encoding; /* the header's value; NULL: no header */
	unsigned int wait_s; /* seconds that the server needs for the answer */
	bool endless; /* the answer has no end */
	/* A piece of the body, if the status is 200; false ends the request. */
	bool (*body)(void *arg, const void *data, size_t len);
	/* Called about once a second; true ends the request. May be NULL. */
	bool (*cancelled)(void *arg);
	/*
	 * Likewise; true shuts down the sending side of the connection, and
	 * receiving goes on. May be NULL.
	 */
	bool (*enough)(void *arg);
	void *arg;
};

/*
 * 0; -ECANCELED if a callback ended the request; or another -errno, and 'msg' is
 * one line with the server and the reason, or with the server's own message.
 */
int client_get(const struct client_request *req, char *msg, size_t len);

#endif /* PROFILER_CLIENT_H */
