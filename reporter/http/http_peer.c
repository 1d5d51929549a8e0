// SPDX-License-Identifier: Apache-2.0
/*
 * http_peer: the user of the other end of a connection. A unix socket has it; for
 * a TCP connection within this host the kernel is queried for the client's
 * socket by its addresses: one lookup in the kernel's table, some 10 us.
 */
#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/base.h"
#include "reporter/http/http_conn.h"

union http_sockaddr {
	struct sockaddr any;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
	struct sockaddr_storage room;
};

static void http_diag_addr(const union http_sockaddr *a, __be16 *port,
			   __be32 addr[4])
{
	if (a->any.sa_family == AF_INET6) {
		*port = a->in6.sin6_port;
		memcpy(addr, &a->in6.sin6_addr, sizeof(a->in6.sin6_addr));
	} else {
		*port = a->in.sin_port;
		addr[0] = a->in.sin_addr.s_addr;
	}
}

/* Requests the client's socket: its own address is our peer's. */
static int http_diag_ask(int nl, const union http_sockaddr *client,
			 const union http_sockaddr *server)
{
	struct {
		struct nlmsghdr h;
		struct inet_diag_req_v2 r;
	} q = {
		.h = { .nlmsg_len = sizeof(q),
		       .nlmsg_type = SOCK_DIAG_BY_FAMILY,
		       .nlmsg_flags = NLM_F_REQUEST },
		.r = { .sdiag_family = client->any.sa_family,
		       .sdiag_protocol = IPPROTO_TCP,
		       .idiag_states = ~0U },
	};

	http_diag_addr(client, &q.r.id.idiag_sport, q.r.id.idiag_src);
	http_diag_addr(server, &q.r.id.idiag_dport, q.r.id.idiag_dst);
	q.r.id.idiag_cookie[0] = q.r.id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
	return send(nl, &q, sizeof(q), 0) == sizeof(q) ? 0 : -errno;
}

/* Does not wait: the kernel answers within send(2). */
static int http_diag_answer(int nl, uid_t *uid)
{
	struct {
		struct nlmsghdr h;
		struct inet_diag_msg m;
		char rest[512]; /* attributes, unused */
	} a;
	ssize_t n = recv(nl, &a, sizeof(a), MSG_DONTWAIT);

	if (n < 0)
		return -errno;
	/* A closed socket that lingers has no inode, and uid 0. */
	if (n < (ssize_t)(sizeof(a.h) + sizeof(a.m)) ||
	    a.h.nlmsg_type != SOCK_DIAG_BY_FAMILY || !a.m.idiag_inode)
		return -ENOENT;
	*uid = a.m.idiag_uid;
	return 0;
}

static int http_peer_tcp(int fd, uid_t *uid)
{
	union http_sockaddr client, server;
	socklen_t len = sizeof(client);
	int nl, err;

	if (getpeername(fd, &client.any, &len))
		return -errno;
	len = sizeof(server);
	if (getsockname(fd, &server.any, &len))
		return -errno;
	nl = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	if (nl < 0)
		return -errno;
	err = http_diag_ask(nl, &client, &server);
	if (!err)
		err = http_diag_answer(nl, uid);
	close(nl);
	return err;
}

int http_peer_uid(int fd, uid_t *uid)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);
	int domain;

	if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain,
		       &(socklen_t){ sizeof(domain) }))
		return -errno;
	if (domain != AF_UNIX)
		return http_peer_tcp(fd, uid);
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len))
		return -errno;
	*uid = cred.uid;
	return 0;
}
