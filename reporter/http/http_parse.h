/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http_parse: parses addresses, headers and arguments. Strings come from clients
 * and may be anything.
 */
#ifndef REPORTER_HTTP_PARSE_H
#define REPORTER_HTTP_PARSE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

struct http_address {
	union {
		struct sockaddr sa;
		struct sockaddr_un un;
		struct sockaddr_storage any;
	};
	socklen_t len;
	bool remote; /* beyond loopback */
};

/*
 * "unix:PATH" or "HOST:PORT", HOST an address or localhost. 0; -EINVAL: not an
 * address; -ENAMETOOLONG.
 */
int http_parse_address(const char *s, struct http_address *out);

#define HTTP_SECONDS_MAX 3600
/* A whole number of seconds from 1 to HTTP_SECONDS_MAX, or -EINVAL. */
int http_parse_seconds(const char *s);

/*
 * Whether an Accept-Encoding (NULL: no such header) names zstd with a weight that
 * is not 0 and not below those of gzip and identity.
 */
bool http_accepts_zstd(const char *accept);

/*
 * Whether a Host header is an address, localhost, or missing (NULL). Another name
 * that resolves to this host may be an attempt of a web site to make browsers
 * read our answers for its pages (DNS rebinding).
 */
bool http_host_is_local(const char *host);

#define HTTP_ID_MAX 20
/* An id in hexadecimal: its length, 8 to HTTP_ID_MAX bytes, or -EINVAL. */
int http_parse_id(const char *s, uint8_t id[HTTP_ID_MAX]);

#endif /* REPORTER_HTTP_PARSE_H */
