/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client: asks a running profd over HTTP. The only place that knows libcurl.
 */
#ifndef PROFILER_CLIENT_H
#define PROFILER_CLIENT_H

#include <stdbool.h>
#include <stddef.h>

struct client_request {
	const char *server; /* unix:PATH, HOST:PORT or http://... */
	const char *path; /* "/status" */
	const char *accept_encoding; /* NULL: none is asked for */
	unsigned int wait_s; /* how long the answer takes, by what it is */
	bool endless; /* it has no end */
	/* A piece of the body of a good answer; false ends it. */
	bool (*body)(void *arg, const void *data, size_t len);
	/* Asked about once a second; true ends it. May be NULL. */
	bool (*cancelled)(void *arg);
	/*
	 * Likewise; true shuts down the sending side of the connection, once,
	 * and goes on to receive. May be NULL.
	 */
	bool (*enough)(void *arg);
	void *arg;
};

/*
 * 0; -ECANCELED when one of the callbacks ended it; or another -errno, and one
 * line is in 'msg' that names the server and, in its words, what is wrong.
 */
int client_get(const struct client_request *req, char *msg, size_t len);

#endif /* PROFILER_CLIENT_H */
