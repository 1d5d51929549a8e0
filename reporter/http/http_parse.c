// SPDX-License-Identifier: Apache-2.0
/* http_parse: see reporter/http/http_parse.h. */
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/base.h"
#include "reporter/http/http_parse.h"

#define HTTP_HOST_MAX 128

/* A number of digits only, 'max' or less; else -1. */
static int http_number(const char *s, int max)
{
	int v = 0;

	if (!*s)
		return -1;
	for (; *s; s++) {
		if (!isdigit((unsigned char)*s))
			return -1;
		v = v * 10 + (*s - '0');
		if (v > max)
			return -1;
	}
	return v;
}

int http_parse_seconds(const char *s)
{
	int v = http_number(s, HTTP_SECONDS_MAX);

	return v < 1 ? -EINVAL : v;
}

static int http_parse_unix(const char *path, struct http_address *out)
{
	size_t len = strlen(path);

	if (!len)
		return -EINVAL;
	if (len >= sizeof(out->un.sun_path))
		return -ENAMETOOLONG;
	out->un.sun_family = AF_UNIX;
	memcpy(out->un.sun_path, path, len + 1);
	out->len = sizeof(out->un);
	return 0;
}

/* "HOST", "HOST:PORT", "[V6]", "[V6]:PORT": the host; 'port' NULL if none. */
static int http_split(const char *s, char host[HTTP_HOST_MAX], bool *is_v6,
		      const char **port)
{
	const char *end;
	size_t len;

	*is_v6 = *s == '[';
	if (*is_v6)
		s++;
	end = s + strcspn(s, *is_v6 ? "]" : ":");
	len = end - s;
	if (!len || len >= HTTP_HOST_MAX)
		return -EINVAL;
	memcpy(host, s, len);
	host[len] = '\0';
	if (*is_v6 && *end++ != ']')
		return -EINVAL;
	if (*end && *end != ':')
		return -EINVAL;
	*port = *end ? end + 1 : NULL;
	return 0;
}

static int http_set_v6(struct http_address *out, const char *host, int port)
{
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&out->any;

	if (inet_pton(AF_INET6, host, &in6->sin6_addr) != 1)
		return -EINVAL;
	in6->sin6_family = AF_INET6;
	in6->sin6_port = htons(port);
	out->len = sizeof(*in6);
	out->remote = !IN6_IS_ADDR_LOOPBACK(&in6->sin6_addr);
	return 0;
}

static int http_set_v4(struct http_address *out, const char *host, int port)
{
	struct sockaddr_in *in = (struct sockaddr_in *)&out->any;

	if (!strcmp(host, "localhost"))
		host = "127.0.0.1";
	/* No other names: they may resolve to any address. */
	if (inet_pton(AF_INET, host, &in->sin_addr) != 1)
		return -EINVAL;
	in->sin_family = AF_INET;
	in->sin_port = htons(port);
	out->len = sizeof(*in);
	out->remote = ntohl(in->sin_addr.s_addr) >> 24 != 127;
	return 0;
}

int http_parse_address(const char *s, struct http_address *out)
{
	char host[HTTP_HOST_MAX];
	const char *port_text;
	bool is_v6;
	int port;

	memset(out, 0, sizeof(*out));
	if (!strncmp(s, "unix:", 5))
		return http_parse_unix(s + 5, out);
	if (http_split(s, host, &is_v6, &port_text) || !port_text)
		return -EINVAL;
	port = http_number(port_text, 65535);
	if (port < 1)
		return -EINVAL;
	return is_v6 ? http_set_v6(out, host, port)
		     : http_set_v4(out, host, port);
}

bool http_host_is_local(const char *host)
{
	char name[HTTP_HOST_MAX];
	struct in6_addr in6;
	struct in_addr in;
	const char *port;
	bool is_v6;

	if (!host)
		return true;
	if (http_split(host, name, &is_v6, &port) ||
	    (port && http_number(port, 65535) < 0))
		return false;
	if (is_v6)
		return inet_pton(AF_INET6, name, &in6) == 1;
	return inet_pton(AF_INET, name, &in) == 1 ||
	       !strcasecmp(name, "localhost");
}

/*
 * The weight of "name;q=0.5", RFC 9110, 12.4.2, in thousandths; 1000, the
 * default, if it is not valid.
 */
static int http_weight(const char *params, const char *end)
{
	const char *q = params;
	int v = 0, unit = 100;

	while (q < end && (*q == ';' || *q == ' ' || *q == '\t'))
		q++;
	if (end - q < 3 || (*q != 'q' && *q != 'Q') || q[1] != '=' ||
	    !isdigit((unsigned char)q[2]))
		return 1000;
	if (q[2] != '0')
		return 1000;
	if (end - q < 5 || q[3] != '.')
		return 0;
	for (q += 4; q < end && isdigit((unsigned char)*q); q++) {
		v += (*q - '0') * unit;
		unit /= 10;
	}
	return v;
}

bool http_accepts_zstd(const char *accept)
{
	static const char *const names[] = { "zstd", "gzip", "identity" };
	int weights[ARRAY_SIZE(names)] = { 0 };
	const char *p = accept, *end, *stop;
	size_t i, len;

	for (; p && *p; p = *end ? end + 1 : end) {
		p += strspn(p, " \t");
		end = p + strcspn(p, ",");
		len = strcspn(p, ",; \t");
		stop = p + len;
		for (i = 0; i < ARRAY_SIZE(names); i++)
			if (len == strlen(names[i]) &&
			    !strncasecmp(p, names[i], len))
				weights[i] = http_weight(stop, end);
	}
	return weights[0] && weights[0] >= weights[1] &&
	       weights[0] >= weights[2];
}

int http_parse_id(const char *s, uint8_t id[HTTP_ID_MAX])
{
	size_t i, len = strlen(s);
	char two[3] = "";

	if (len % 2 || len < 16 || len / 2 > HTTP_ID_MAX)
		return -EINVAL;
	for (i = 0; i < len; i++)
		if (!isxdigit((unsigned char)s[i]))
			return -EINVAL;
	for (i = 0; i < len / 2; i++) {
		memcpy(two, s + 2 * i, 2);
		id[i] = (uint8_t)strtoul(two, NULL, 16);
	}
	return (int)(len / 2);
}
