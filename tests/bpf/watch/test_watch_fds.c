// SPDX-License-Identifier: Apache-2.0
/*
 * Descriptors of system calls: each kind of descriptor is made, each family of calls is
 * called with it, and both events are compared with what /proc and getsockname(2) say.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <signal.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/fanotify.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/timerfd.h>
#include <sys/un.h>

#include "tests/bpf/watch/test_watch_fds.h"

/* --- kinds -------------------------------------------------------------------------- */

/* A descriptor with what its events must say. */
struct one {
	const char *name;
	int fd;
	const char *kind, *category, *protocol, *role;
	const char *word; /* of one without a path; NULL: as /proc says */
	char path[PATH_MAX + 64];
	char src[WATCH_ADDRESS_MAX], dst[WATCH_ADDRESS_MAX];
};

static struct one ones[64];
static size_t n_ones;

static void put_address(char out[WATCH_ADDRESS_MAX],
			const struct sockaddr_storage *ss, socklen_t len)
{
	const struct sockaddr_in6 *v6 = (const void *)ss;
	const struct sockaddr_in *v4 = (const void *)ss;
	const struct sockaddr_un *un = (const void *)ss;
	char text[INET6_ADDRSTRLEN];

	*out = '\0';
	if (ss->ss_family == AF_INET && v4->sin_port) {
		inet_ntop(AF_INET, &v4->sin_addr, text, sizeof(text));
		snprintf(out, WATCH_ADDRESS_MAX, "%s:%u", text,
			 ntohs(v4->sin_port));
	} else if (ss->ss_family == AF_INET6 && v6->sin6_port) {
		inet_ntop(AF_INET6, &v6->sin6_addr, text, sizeof(text));
		if (IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr))
			snprintf(out, WATCH_ADDRESS_MAX, "%s:%u",
				 strrchr(text, ':') + 1, ntohs(v6->sin6_port));
		else
			snprintf(out, WATCH_ADDRESS_MAX, "[%s]:%u", text,
				 ntohs(v6->sin6_port));
	} else if (ss->ss_family == AF_UNIX && len > sizeof(sa_family_t)) {
		len -= (socklen_t)offsetof(struct sockaddr_un, sun_path);
		if (un->sun_path[0])
			len = (socklen_t)strnlen(un->sun_path, len);
		for (socklen_t i = 0; i < len; i++)
			out[i] = un->sun_path[i] ?: '@';
		out[len] = '\0';
	}
}

static struct one *add(const char *name, int fd, const char *kind,
		       const char *category)
{
	struct one *o = &ones[n_ones++];
	struct sockaddr_storage ss;
	socklen_t len = sizeof(ss);

	assert_true(n_ones <= ARRAY_SIZE(ones));
	if (fd < 0)
		fail_msg("%s: %s", name, strerror(errno));
	*o = (struct one){ .name = name,
			   .fd = fd,
			   .kind = kind,
			   .category = category,
			   .protocol = "",
			   .role = "" };
	if (!getsockname(fd, (void *)&ss, &len))
		put_address(o->src, &ss, len);
	len = sizeof(ss);
	if (!getpeername(fd, (void *)&ss, &len))
		put_address(o->dst, &ss, len);
	if (!strcmp(category, "file") || !strcmp(kind, "fifo"))
		read_link(fd, o->path, sizeof(o->path));
	return o;
}

static void add_socket(const char *name, int fd, const char *category,
		       const char *protocol, const char *role)
{
	struct one *o = add(name, fd, "socket", category);

	o->protocol = protocol;
	o->role = role;
}

static void add_files(void)
{
	char any[256];
	int fd;

	add("file", open_in("file", O_RDWR | O_CREAT), "file", "file");
	add("file to append to", open_in("app", O_WRONLY | O_CREAT | O_APPEND),
	    "file", "file");
	fd = open_in("gone", O_RDWR | O_CREAT);
	unlink(in("gone"));
	add("deleted file", fd, "file", "file");
	for (size_t i = 0; i < 255; i++)
		any[i] = (char)(i + 1 == '/' ? '!' : i + 1);
	any[255] = '\0';
	add("any byte", open_in(any, O_RDWR | O_CREAT), "file", "file");
	add("memfd", memfd_create("some name", 0), "file", "file");
	add("tmpfile", open(dir, O_TMPFILE | O_RDWR, 0600), "file", "file");
	add("directory", open("/usr/lib", O_RDONLY), "dir", "file");
	add("root", open("/", O_RDONLY), "dir", "file");
	add("in the root", open("/etc", O_PATH), "dir", "file");
	add("in a mount", open("/proc/self/status", O_RDONLY), "file", "file");
	add("zero", open("/dev/zero", O_RDWR), "char", "file");
	assert_int_equal(mknod(in("block"), S_IFBLK | 0600, makedev(7, 200)),
			 0);
	add("block", open_in("block", O_PATH), "block", "file");
	assert_int_equal(symlink("/x", in("link")), 0);
	add("link", open_in("link", O_PATH | O_NOFOLLOW), "link", "file");
	assert_int_equal(mkfifo(in("fifo"), 0600), 0);
	add("fifo", open_in("fifo", O_RDWR | O_NONBLOCK), "fifo", "ipc");
}

static int fds[2];

static void add_kernel_ones(void)
{
	struct io_uring_params ring = { 0 };
	sigset_t set;

	assert_int_equal(pipe2(fds, O_NONBLOCK), 0);
	add("pipe, to read", fds[0], "pipe", "ipc");
	add("pipe, to write", fds[1], "pipe", "ipc");
	add("eventfd", eventfd(0, EFD_NONBLOCK), "eventfd", "ipc");
	add("epoll", epoll_create1(0), "epoll", "other");
	add("timerfd", timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK), "timerfd",
	    "other");
	sigemptyset(&set);
	add("signalfd", signalfd(-1, &set, SFD_NONBLOCK), "signalfd", "ipc");
	add("inotify", inotify_init1(IN_NONBLOCK), "inotify", "ipc");
	add("pidfd", (int)syscall(SYS_pidfd_open, getpid(), 0), "pidfd",
	    "other");
	add("namespace", open("/proc/self/ns/uts", O_RDONLY), "ns", "other");
	fds[0] = (int)syscall(SYS_io_uring_setup, 1, &ring);
	if (fds[0] >= 0) /* a kernel without it */
		add("io_uring", fds[0], "io_uring", "other");
	fds[0] = fanotify_init(FAN_NONBLOCK, O_RDONLY);
	if (fds[0] >= 0) /* a kernel without it */
		add("fanotify", fds[0], "anon", "other")->word = "[fanotify]";
}

static void add_tcp(int family, const char *name, bool mapped)
{
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6,
				   .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	struct sockaddr_in v4 = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	void *a = family == AF_INET6 ? (void *)&v6 : (void *)&v4;
	socklen_t len = family == AF_INET6 ? sizeof(v6) : sizeof(v4);
	int l, c, s;

	if (mapped)
		inet_pton(AF_INET6, "::ffff:127.0.0.1", &v6.sin6_addr);
	l = socket(family, SOCK_STREAM, 0);
	if (l < 0)
		return; /* a kernel without IPv6 */
	if (bind(l, a, len) || listen(l, 5) || getsockname(l, a, &len))
		fail_msg("%s: %s", name, strerror(errno));
	c = socket(family, SOCK_STREAM, 0);
	assert_int_equal(connect(c, a, len), 0);
	s = accept4(l, NULL, NULL, SOCK_NONBLOCK);
	fcntl(l, F_SETFL, O_NONBLOCK);
	fcntl(c, F_SETFL, O_NONBLOCK);
	add_socket(name, l, "net", "tcp", "server");
	add_socket(name, c, "net", "tcp", "client");
	add_socket(name, s, "net", "tcp", "server");
}

static void add_udp(int family, const char *name)
{
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6,
				   .sin6_port = htons(9),
				   .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	struct sockaddr_in v4 = { .sin_family = AF_INET,
				  .sin_port = htons(9),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	void *a = family == AF_INET6 ? (void *)&v6 : (void *)&v4;
	socklen_t len = family == AF_INET6 ? sizeof(v6) : sizeof(v4);
	int fd = socket(family, SOCK_DGRAM | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return;
	/* Else the first that is sent would bind it. */
	v6.sin6_port = v4.sin_port = 0;
	assert_int_equal(bind(fd, a, len), 0);
	v6.sin6_port = v4.sin_port = htons(9);
	add_socket(name, fd, "net", "udp", "");
	fd = socket(family, SOCK_DGRAM | SOCK_NONBLOCK, 0);
	assert_int_equal(connect(fd, a, len), 0);
	add_socket(name, fd, "net", "udp", "");
}

static void add_unix(const char *name, const char *path, size_t n,
		     bool abstract)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n);
	int l, c, s;

	memcpy(a.sun_path + abstract, path, n - abstract);
	l = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
	if (bind(l, (void *)&a, len) || listen(l, 5))
		fail_msg("%s: %s", name, strerror(errno));
	c = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
	assert_int_equal(connect(c, (void *)&a, len), 0);
	s = accept4(l, NULL, NULL, SOCK_NONBLOCK);
	add_socket(name, l, "ipc", "unix", "server");
	add_socket(name, c, "ipc", "unix", "client");
	add_socket(name, s, "ipc", "unix", "server");
}

static void add_sockets(void)
{
	char path[108];
	int fd;

	add_tcp(AF_INET, "tcp", false);
	add_tcp(AF_INET6, "tcp6", false);
	add_tcp(AF_INET6, "tcp6, mapped", true);
	add_udp(AF_INET, "udp");
	add_udp(AF_INET6, "udp6");
	add_unix("unix", in("sock"), strlen(in("sock")) + 1, false);
	add("unix socket as a path", open_in("sock", O_PATH), "file", "file");
	add_unix("abstract", "a\0b", 4, true);
	memset(path, 0xfe, sizeof(path));
	add_unix("abstract, long", path, sizeof(path), true);
	assert_int_equal(
		socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, fds), 0);
	add_socket("socketpair", fds[0], "ipc", "unix", "");
	fd = socket(AF_NETLINK, SOCK_RAW | SOCK_NONBLOCK, NETLINK_ROUTE);
	add_socket("netlink", fd, "net", "netlink", "");
	fd = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK, 0);
	if (fd >= 0) /* a kernel without it */
		add_socket("packet", fd, "net", "packet", "");
}

/* Its directories are together longer than what an event has. */
static void add_deep(void)
{
	char name[241];
	int at, next;

	memset(name, 'd', sizeof(name));
	name[0] = '\xc3'; /* and no whole character */
	name[240] = '\0';
	at = open(dir, O_RDONLY);
	for (int i = 0; i < 15; i++) {
		assert_int_equal(mkdirat(at, name, 0700), 0);
		next = openat(at, name, O_RDONLY);
		close(at);
		at = next;
	}
	add("4 KiB", openat(at, "file", O_RDWR | O_CREAT, 0600), "file",
	    "file");
	close(at);
}

/* --- calls with a descriptor ---------------------------------------------------------- */

/* Arguments behind the descriptor are such that nothing waits. */
static const struct {
	int nr;
	const char *name;
	bool by_fd;
	long v[5];
} calls[] = {
#define ROW(name, by_fd, ...)             \
	{                                 \
		SYS_##name, #name, by_fd, \
		{                         \
			__VA_ARGS__       \
		}                         \
	}
	ROW(read, true, BAD, 1),
	ROW(pread64, true, BAD, 1, 0),
	ROW(readv, true, BAD, 1),
	ROW(preadv, true, BAD, 1, 0, 0),
	ROW(preadv2, true, BAD, 1, 0, 0, 0),
	ROW(write, true, BAD, 1),
	ROW(pwrite64, true, BAD, 1, 0),
	ROW(writev, true, BAD, 1),
	ROW(pwritev, true, BAD, 1, 0, 0),
	ROW(pwritev2, true, BAD, 1, 0, 0, 0),
	ROW(recvfrom, true, BAD, 1, MSG_DONTWAIT, 0, 0),
	ROW(recvmsg, true, BAD, MSG_DONTWAIT),
	ROW(recvmmsg, true, BAD, 1, MSG_DONTWAIT, 0),
	ROW(sendto, true, BAD, 1, MSG_DONTWAIT, 0, 0),
	ROW(sendmsg, true, BAD, MSG_DONTWAIT),
	ROW(sendmmsg, true, BAD, 1, MSG_DONTWAIT),
	ROW(sendfile, true, -1, 0, 1),
	ROW(splice, true, BAD, -1, BAD, 1, 0),
	ROW(fcntl, true, F_GETFD, 0),
	ROW(ioctl, true, 0x12345678, 0),
	ROW(dup, true, 0),
	ROW(dup3, true, -1, 0),
	ROW(fstat, false, BAD),
	ROW(lseek, false, 0, SEEK_CUR),
	ROW(fsync, false, 0),
	ROW(flock, false, LOCK_UN),
	ROW(fadvise64, false, 0, 0, 0),
	ROW(getdents64, false, BAD, 0),
	ROW(getsockname, false, BAD, BAD),
	ROW(setsockopt, false, 0, 0, BAD, 0),
	ROW(epoll_ctl, false, 99, -1, 0),
	ROW(close, true, 0),
};
#define N_CALLS ARRAY_SIZE(calls)

static void check_path(const char *what, const struct watch_fd *fd,
		       const struct one *o)
{
	const char *slash = strrchr(o->path, '/'), *path = o->path;
	size_t len = strlen(path);

	if (o->word) {
		if (strcmp(fd->path, o->word) != 0 || fd->file)
			fail_msg("%s: word %s", what, fd->path);
		return;
	}
	if (len > 1023) {
		/* Its end, and a whole name at the beginning. */
		if (!fd->cut || strlen(fd->path) < 1024 - 256 ||
		    *fd->path != '/')
			fail_msg("%s: cut %s", what, fd->path);
		path += len - strlen(fd->path);
	} else if (fd->cut) {
		fail_msg("%s: cut", what);
	}
	if (strcmp(fd->path, path) != 0)
		fail_msg("%s: %s for %s", what, fd->path, path);
	if (slash && strcmp(fd->path + fd->file, slash + 1) != 0)
		fail_msg("%s: file %s", what, fd->path + fd->file);
}

static void check_fd(const char *end, const char *call,
		     const struct watch_fd *fd, int num, const struct one *o)
{
	char what[256];

	snprintf(what, sizeof(what), "%s-%s of %s", end, call, o->name);
	if (!fd->kind || strcmp(fd->kind, o->kind) != 0)
		fail_msg("%s: kind %s", what, fd->kind ?: "none");
	if (fd->num != num || fd->pair != -1)
		fail_msg("%s: number %d, %d for %d", what, fd->num, fd->pair,
			 num);
	if (strcmp(fd->protocol, o->protocol) != 0)
		fail_msg("%s: protocol %s", what, fd->protocol);
	if (strcmp(fd->role, o->role) != 0)
		fail_msg("%s: role '%s'", what, fd->role);
	if (strcmp(fd->src, o->src) != 0 || strcmp(fd->dst, o->dst) != 0)
		fail_msg("%s: %s, %s for %s, %s", what, fd->src, fd->dst,
			 o->src, o->dst);
	check_path(what, fd, o);
}

static void check_call(size_t which, size_t i, const struct one *o, int dupped)
{
	static const char *const ends[] = { "enter", "exit" };
	const struct watch_event *e;
	const char *name = calls[which].name;
	int num;

	for (size_t k = 0; k < 2; k++) {
		e = event(ends[k], name, i);
		num = k && calls[which].nr == SYS_dup ? dupped : o->fd;
		check_fd(ends[k], name, &e->fd, num, o);
		if (calls[which].by_fd && strcmp(e->category, o->category) != 0)
			fail_msg("%s-%s of %s: category %s", ends[k], name,
				 o->name, e->category);
		if (!calls[which].by_fd)
			assert_string_equal(e->category,
					    watch_name(e->name)->category);
	}
}

static void every_kind_and_call(void **state)
{
	const char *names[N_CALLS];
	int dupped[ARRAY_SIZE(ones)];

	for (size_t i = 0; i < N_CALLS; i++)
		names[i] = calls[i].name;
	add_files();
	add_kernel_ones();
	add_sockets();
	add_deep();
	begin(names, N_CALLS);
	for (size_t k = 0; k < n_ones; k++) {
		for (size_t i = 0; i < N_CALLS; i++) {
			const long *v = calls[i].v;
			long res = syscall(calls[i].nr, ones[k].fd, v[0], v[1],
					   v[2], v[3], v[4]);

			if (calls[i].nr == SYS_dup)
				dupped[k] = (int)res;
		}
		collect();
	}
	print_message("%zu kinds, %zu calls\n", n_ones, N_CALLS);
	for (size_t k = 0; k < n_ones; k++)
		for (size_t i = 0; i < N_CALLS; i++)
			check_call(i, k, &ones[k], dupped[k]);
	end();
	for (size_t k = 0; k < n_ones; k++)
		close(dupped[k]);
	n_ones = 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_kind_and_call),
	};

	signal(SIGPIPE, SIG_IGN);
	if (!mkdtemp(dir))
		return 1;
	return cmocka_run_group_tests(tests, NULL, clean);
}
