// SPDX-License-Identifier: Apache-2.0
/* http_conn: see reporter/http/http_conn.h. */
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/base.h"
#include "reporter/http/http_conn.h"

static bool http_same_user(const struct http_conn *a, const struct http_conn *b)
{
	return a->known == b->known && (!a->known || a->uid == b->uid);
}

/* Unknown users count as one, without a limit of its own. */
static bool http_limited(const struct http_conn *c)
{
	return c->known && c->uid && c->uid != geteuid();
}

/* Open connections of the user of 'of' (NULL: of all), of that use or of any. */
static unsigned int http_count(const struct http_conns *conns,
			       const struct http_conn *of,
			       enum http_conn_use use)
{
	const struct http_conn *c;
	unsigned int n = 0;

	TAILQ_FOREACH(c, &conns->list, node)
		n += (!of || http_same_user(c, of)) &&
		     c->use != HTTP_CONN_CLOSING &&
		     (use == HTTP_CONN_USES || c->use == use);
	return n;
}

bool http_conn_may(const struct http_conns *conns, const struct http_conn *c,
		   enum http_conn_use use, unsigned int max)
{
	if (!http_limited(c) || http_count(conns, c, use) < max)
		return true;
	conns->limited(conns->arg, c->uid);
	return false;
}

/*
 * MHD has no call to close a connection; after the shutdown it sees its end, as
 * if the client had closed it.
 */
static void http_conn_close(struct http_conns *conns, struct http_conn *c)
{
	if (c->known && !c->had_request)
		conns->limited(conns->arg, c->uid);
	http_conn_set(conns, c, HTTP_CONN_CLOSING);
	shutdown(c->fd, SHUT_RDWR);
}

/* The longest idle connection of this user; NULL: none is idle. */
static struct http_conn *http_oldest(struct http_conns *conns,
				     const struct http_conn *of)
{
	struct http_conn *c;

	TAILQ_FOREACH(c, &conns->list, node)
		if (c->use == HTTP_CONN_IDLE && http_same_user(c, of))
			return c;
	return NULL;
}

/* Whether 'c' is idle, or its client reads the answer slowly. */
static bool http_may_close(const struct http_conn *c, uint64_t now)
{
	return c->use == HTTP_CONN_IDLE ||
	       (c->use == HTTP_CONN_BUSY && now - c->since >= HTTP_REQUEST_NS);
}

/*
 * Of the user with the most connections: the longest idle one, else the one whose
 * answer has taken longest. Quadratic, but called only when the list, which is
 * short, is full. NULL: none may be closed.
 */
static struct http_conn *http_worst(struct http_conns *conns)
{
	uint64_t now = clock_awake_ns();
	struct http_conn *c, *worst = NULL;
	unsigned int n, most = 0;

	TAILQ_FOREACH(c, &conns->list, node) {
		if (!http_may_close(c, now))
			continue;
		n = http_count(conns, c, HTTP_CONN_USES);
		if (n < most || (n == most && (worst->use == HTTP_CONN_IDLE ||
					       c->use != HTTP_CONN_IDLE)))
			continue;
		most = n;
		worst = c;
	}
	return worst;
}

struct http_conn *http_conn_new(struct http_conns *conns, int fd,
				uint64_t *closed)
{
	struct http_conn *c = calloc(1, sizeof(*c)), *worst;

	if (!c)
		return NULL;
	c->fd = fd;
	c->known = !http_peer_uid(fd, &c->uid);
	c->since = clock_awake_ns();
	TAILQ_INSERT_TAIL(&conns->list, c, node);
	if (http_limited(c) &&
	    http_count(conns, c, HTTP_CONN_USES) > HTTP_CONNECTIONS_USER) {
		http_conn_close(conns, http_oldest(conns, c));
		++*closed;
	} else if (http_count(conns, NULL, HTTP_CONN_USES) >
		   HTTP_CONNECTIONS_MAX) {
		worst = http_worst(conns);
		http_conn_close(conns, worst ? worst : c);
		++*closed;
	}
	return c;
}

void http_conn_free(struct http_conns *conns, struct http_conn *c)
{
	TAILQ_REMOVE(&conns->list, c, node);
	free(c);
}

void http_conn_set(struct http_conns *conns, struct http_conn *c,
		   enum http_conn_use use)
{
	if (c->use == HTTP_CONN_CLOSING)
		return;
	/* The list is by 'since'; those that close keep both. */
	if (use != HTTP_CONN_CLOSING) {
		c->since = clock_awake_ns();
		TAILQ_REMOVE(&conns->list, c, node);
		TAILQ_INSERT_TAIL(&conns->list, c, node);
	}
	if (use != HTTP_CONN_IDLE)
		c->had_request = true;
	c->use = use;
}

unsigned int http_conns_check(struct http_conns *conns)
{
	uint64_t now = clock_awake_ns();
	struct http_conn *c;
	unsigned int n = 0;

	TAILQ_FOREACH(c, &conns->list, node) {
		if (c->use != HTTP_CONN_IDLE ||
		    now - c->since < (c->had_request
					      ? HTTP_IDLE_S * CLOCK_NSEC_PER_SEC
					      : HTTP_REQUEST_NS))
			continue;
		/* Keeping an idle connection is no fault. */
		n += !c->had_request;
		http_conn_close(conns, c);
	}
	return n;
}
