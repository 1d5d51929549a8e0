/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http_access: what clients over TCP may read. A unix socket has its file's mode and
 * the client's user; TCP has neither, so without a token a client gets only what
 * tells nothing of a process's arguments or past.
 */
#ifndef REPORTER_HTTP_ACCESS_H
#define REPORTER_HTTP_ACCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "reporter/reporter.h"

struct http_access;

/* 0; -errno, and '*where' is the file, '*why' a text (static) or NULL. */
int http_access_new(struct http_access **ap, const struct reporter_access *opts,
		    const char **where, const char **why);
void http_access_free(struct http_access *a);

/* PEM texts, or NULL without TLS. */
const char *http_access_cert(const struct http_access *a);
const char *http_access_key(const struct http_access *a);
/* Whether a listener may be beyond loopback: TLS and a token are there. */
bool http_access_remote(const struct http_access *a);

enum http_token {
	HTTP_TOKEN_NONE, /* the client sent none */
	HTTP_TOKEN_WRONG,
	HTTP_TOKEN_RIGHT,
};

/* Of an Authorization header, or NULL. */
enum http_token http_access_token(const struct http_access *a,
				  const char *authorization);
/* Whether a Host header, with or without a port, is one of opts.host_names. */
bool http_access_host(const struct http_access *a, const char *host);

/*
 * Connections with TLS, by address: each costs a millisecond of the loop. Whether
 * one more may be made at 'now', clock_awake_ns().
 */
struct sockaddr;
bool http_access_connect(struct http_access *a, const struct sockaddr *from,
			 uint64_t now);

#endif /* REPORTER_HTTP_ACCESS_H */
