// SPDX-License-Identifier: Apache-2.0
/* fd: a descriptor of a record: its kind, name, addresses and category. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "processmanager/watch/internal.h"

static const char *const fd_kinds[] = {
#define X(NAME, word, category) [ABI_FD_##NAME] = word,
	ABI_FDS(X)
#undef X
};

static const char *const categories[] = {
	[ABI_WATCH_FILE] = "file",
	[ABI_WATCH_NET] = "net",
	[ABI_WATCH_IPC] = "ipc",
	[ABI_WATCH_OTHER] = "other",
};

const char *watch_category(size_t i)
{
	return i < ARRAY_SIZE(categories) ? categories[i] : NULL;
}

/* --- sockets ------------------------------------------------------------------ */

/* By family; a protocol of 0 means any. */
static const struct {
	uint16_t family, protocol;
	const char *word;
} protocols[] = {
	{ AF_INET, IPPROTO_TCP, "tcp" },
	{ AF_INET, IPPROTO_UDP, "udp" },
	{ AF_INET, IPPROTO_ICMP, "icmp" },
	{ AF_INET, IPPROTO_ICMPV6, "icmpv6" },
	{ AF_INET, IPPROTO_SCTP, "sctp" },
	{ AF_INET, IPPROTO_UDPLITE, "udplite" },
	{ AF_INET, 262, "mptcp" },
	{ AF_INET, 0, "ip" },
	{ AF_UNIX, 0, "unix" },
	{ AF_NETLINK, 0, "netlink" },
	{ AF_PACKET, 0, "packet" },
	{ AF_VSOCK, 0, "vsock" },
	{ AF_ALG, 0, "alg" },
};

/* "" if it has no word. */
static const char *fd_protocol(uint16_t family, uint16_t protocol)
{
	if (family == AF_INET6)
		family = AF_INET;
	for (size_t i = 0; i < ARRAY_SIZE(protocols); i++)
		if (protocols[i].family == family &&
		    (!protocols[i].protocol ||
		     protocols[i].protocol == protocol))
			return protocols[i].word;
	return "";
}

static void fd_end(char out[WATCH_ADDRESS_MAX], uint16_t family,
		   const uint8_t *addr, uint16_t port)
{
	char text[INET6_ADDRSTRLEN];

	if ((family != AF_INET && family != AF_INET6) ||
	    !inet_ntop(family, addr, text, sizeof(text)))
		return;
	snprintf(out, WATCH_ADDRESS_MAX,
		 family == AF_INET6 ? "[%s]:%u" : "%s:%u", text, port);
}

void watch_fd_decode_tcp(const struct abi_watch_record *r, struct watch_fd *out)
{
	const struct abi_watch_ends *e = &r->ends;

	out->kind = fd_kinds[ABI_FD_SOCKET];
	out->protocol = "tcp";
	out->role = r->head.flags & ABI_WATCH_CLIENT   ? "client"
		    : r->head.flags & ABI_WATCH_SERVER ? "server"
						       : "";
	fd_end(out->src, e->family, e->src, e->sport);
	fd_end(out->dst, e->family, e->dst, e->dport);
}

static void fd_inet(const struct abi_watch_fd *fd, struct watch_fd *out)
{
	static const uint8_t none[16];
	const struct abi_watch_ends *e = &fd->ends;

	out->role = fd->flags & ABI_WATCH_FD_CLIENT   ? "client"
		    : fd->flags & ABI_WATCH_FD_SERVER ? "server"
						      : "";
	/* What is neither bound nor connected has no address. */
	if (e->sport || memcmp(e->src, none, sizeof(none)))
		fd_end(out->src, e->family, e->src, e->sport);
	if (e->dport || memcmp(e->dst, none, sizeof(none)))
		fd_end(out->dst, e->family, e->dst, e->dport);
}

/* A path, or an abstract name, in which each NUL is shown as '@', as in /proc/net/unix. */
static void fd_unix_end(char out[WATCH_ADDRESS_MAX], const char *text,
			size_t len)
{
	size_t n = len && *text ? strnlen(text, len) : len;

	n = MIN(n, (size_t)WATCH_ADDRESS_MAX - 1);
	for (size_t i = 0; i < n; i++)
		out[i] = text[i] ? text[i] : '@';
	out[n] = '\0';
}

/* The end with an address was there first, and the other one connected to it. */
static void fd_unix(const struct abi_watch_fd *fd, const char *text,
		    struct watch_fd *out)
{
	size_t own = MIN(fd->src_len, fd->text_len);

	fd_unix_end(out->src, text, own);
	fd_unix_end(out->dst, text + own, fd->text_len - own);
	if (fd->flags & ABI_WATCH_FD_SERVER)
		out->role = "server";
	else if (fd->flags & ABI_WATCH_FD_CONNECTED && !*out->src != !*out->dst)
		out->role = *out->src ? "server" : "client";
}

/* --- all kinds ------------------------------------------------------------------ */

/* Where the last name of a path begins; of "/" it is empty. */
static size_t fd_last(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? (size_t)(slash + 1 - path) : 0;
}

void watch_fd_decode(const struct abi_watch_fd *fd, const char *text,
		     struct watch_fd *out)
{
	if (fd->kind >= ARRAY_SIZE(fd_kinds))
		return;
	out->kind = fd_kinds[fd->kind];
	out->num = fd->num;
	out->pair = fd->pair;
	if (fd->kind == ABI_FD_SOCKET || fd->kind == ABI_FD_UNIX)
		out->protocol = fd_protocol(fd->ends.family, fd->protocol);
	if (fd->kind == ABI_FD_SOCKET) {
		fd_inet(fd, out);
	} else if (fd->kind == ABI_FD_UNIX) {
		fd_unix(fd, text, out);
	} else if (fd->text_len &&
		   strnlen(text, fd->text_len) + 1 == fd->text_len) {
		/* A name with a NUL inside was changing while it was read. */
		out->path = text;
		out->file = fd_last(text);
		out->cut = fd->flags & ABI_WATCH_FD_CUT;
	}
}
