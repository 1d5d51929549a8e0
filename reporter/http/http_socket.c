// SPDX-License-Identifier: Apache-2.0
/* http_socket: see reporter/http/http_socket.h. */
#include <errno.h>
#include <grp.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "reporter/http/http_socket.h"

/*
 * connect() of a unix socket fails at once, with EAGAIN, where this many wait to be
 * accepted: clients that come together find room. net.core.somaxconn is the ceiling.
 */
#define HTTP_BACKLOG 1024
#define HTTP_SOCKET_MODE 0660
#define HTTP_SOCKET_GROUP "profd"
#define HTTP_DIR_MODE 0755

static int http_socket_new(const struct http_address *a)
{
	int fd = socket(a->sa.sa_family,
			SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	return fd < 0 ? -errno : fd;
}

/* Removes the socket file of a killed profd: nothing listens on it. */
static int http_clear_stale(const struct http_address *a)
{
	const char *path = a->un.sun_path;
	struct stat st;
	int fd, err = 0;

	if (lstat(path, &st))
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISSOCK(st.st_mode))
		return -EEXIST;
	fd = http_socket_new(a);
	if (fd < 0)
		return fd;
	/* Other errors (full backlog, no permission) mean a live listener. */
	if (!connect(fd, &a->sa, a->len) || errno != ECONNREFUSED)
		err = -EADDRINUSE;
	close(fd);
	if (!err && unlink(path) && errno != ENOENT)
		err = -errno;
	return err;
}

/*
 * Members of the group may connect, if there is one. A user who is not in it cannot
 * give the file away: then it has that user's own group.
 */
static void http_set_group(const char *path)
{
	const struct group *g = getgrnam(HTTP_SOCKET_GROUP);

	if (g && chown(path, (uid_t)-1, g->gr_gid))
		return;
}

static int http_bind(struct http_socket *s)
{
	const struct http_address *a = &s->address;
	struct stat st;
	int on = 1;

	if (a->sa.sa_family != AF_UNIX)
		setsockopt(s->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (a->sa.sa_family == AF_INET6)
		setsockopt(s->fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
	if (bind(s->fd, &a->sa, a->len))
		return -errno;
	/* Before listen(), so that no client connects by the initial mode. */
	if (a->sa.sa_family == AF_UNIX) {
		http_set_group(a->un.sun_path);
		if (chmod(a->un.sun_path, HTTP_SOCKET_MODE) ||
		    lstat(a->un.sun_path, &st))
			return -errno;
		s->dev = st.st_dev;
		s->ino = st.st_ino;
	}
	return listen(s->fd, HTTP_BACKLOG) ? -errno : 0;
}

int http_socket_open(struct http_socket *s, const char *address)
{
	struct http_address *a = &s->address;
	int err;

	memset(s, 0, sizeof(*s));
	err = http_parse_address(address, a);
	if (!err && a->sa.sa_family == AF_UNIX)
		err = dirs_make_parents(a->un.sun_path, HTTP_DIR_MODE);
	if (!err && a->sa.sa_family == AF_UNIX)
		err = http_clear_stale(a);
	if (err)
		return err;
	s->fd = http_socket_new(&s->address);
	if (s->fd < 0)
		return s->fd;
	err = http_bind(s);
	if (err) {
		http_socket_unlink(s);
		close(s->fd);
	}
	return err;
}

bool http_socket_there(const struct http_socket *s)
{
	struct stat st;

	return !s->ino || (!lstat(s->address.un.sun_path, &st) &&
			   st.st_dev == s->dev && st.st_ino == s->ino);
}

void http_socket_unlink(const struct http_socket *s)
{
	if (s->ino && http_socket_there(s))
		unlink(s->address.un.sun_path);
}
