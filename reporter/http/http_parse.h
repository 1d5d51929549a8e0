/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http_parse: the words of an address, a header or a parameter. Strings are
 * whatever a client sends.
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
};

/*
 * "unix:PATH" or "HOST:PORT". 0; -EINVAL: not an address; -EPERM: beyond
 * loopback; -ENAMETOOLONG.
 */
int http_parse_address(const char *s, struct http_address *out);

#define HTTP_SECONDS_MAX 3600
/* A whole number of seconds from 1 to HTTP_SECONDS_MAX, or -EINVAL. */
int http_parse_seconds(const char *s);

/*
 * Whether zstd is what an Accept-Encoding prefers: it is named, not refused,
 * and neither gzip nor identity is wanted more. NULL: no such header.
 */
bool http_accepts_zstd(const char *accept);

/*
 * Whether a Host header can be meant for us: an address, localhost, or none
 * (NULL). Another name that leads here is another site's attempt to have its
 * pages read our answers (DNS rebinding).
 */
bool http_host_is_local(const char *host);

#define HTTP_ID_MAX 20
/*
 * An id in hexadecimal, 8 to HTTP_ID_MAX bytes: how many. -EINVAL: it is none.
 */
int http_parse_id(const char *s, uint8_t id[HTTP_ID_MAX]);

#endif /* REPORTER_HTTP_PARSE_H */
