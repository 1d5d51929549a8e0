/* SPDX-License-Identifier: Apache-2.0 */
/* client: HTTP requests to a running profd. */
#ifndef PROFILER_CLIENT_H
#define PROFILER_CLIENT_H

#include <stdbool.h>
#include <stddef.h>

struct client_request {
	const char *server; /* unix:PATH, HOST:PORT, http[s]://... */
	const char *token_file; /* its token is sent; NULL: none */
	const char *ca_file; /* of https; NULL: those of the host */
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
	/*
	 * Called at least once a second, and at once when 'input_fd' can be read or
	 * a signal came; true ends the request. May be NULL.
	 */
	bool (*input)(void *arg);
	int input_fd;
	void *arg;
};

/*
 * 0; -ECANCELED if a callback ended the request; or another -errno, and 'msg' is
 * one line with the server and the reason, or with the server's own message.
 */
int client_get(const struct client_request *req, char *msg, size_t len);

struct strbuf;
/* Appends a value for the query of a URL. */
void client_escape(struct strbuf *out, const char *value);

#endif /* PROFILER_CLIENT_H */
