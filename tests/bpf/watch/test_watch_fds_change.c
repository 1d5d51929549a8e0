// SPDX-License-Identifier: Apache-2.0
/*
 * Descriptors of system calls: what makes them, what must not have a name, categories by
 * kind, and descriptors that another thread closes and opens again.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/uio.h>

#include "tests/bpf/watch/test_watch_fds.h"

/* --- calls that make descriptors -------------------------------------------------------- */

static void check_made(const char *call, int fd, const char *kind)
{
	const struct watch_event *e = event("exit", call, 0);
	char path[PATH_MAX];

	assert_int_equal(number(e, "res"), fd);
	assert_int_equal(e->fd.num, fd);
	if (!e->fd.kind || strcmp(e->fd.kind, kind) != 0)
		fail_msg("%s: %s", call, e->fd.kind ?: "none");
	if (strcmp(kind, "file") != 0)
		return;
	read_link(fd, path, sizeof(path));
	assert_string_equal(e->fd.path, path);
}

static void what_makes_them(void **state)
{
	static const char *const names[] = {
		"open",		  "openat",	   "creat",
		"socket",	  "dup",	   "dup2",
		"dup3",		  "eventfd2",	   "epoll_create1",
		"timerfd_create", "inotify_init1", "memfd_create",
		"pidfd_open",	  "accept",	   "signalfd4",
		"openat2",	  "accept4"
	};
	uint64_t how[3] = { O_RDONLY };
	struct sockaddr_in a = { .sin_family = AF_INET,
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(a);
	int made[17], l, c, at = open(dir, O_RDONLY);
	uint64_t set = 0;
	const struct watch_event *e;

	l = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(listen(l, 5), 0);
	assert_int_equal(getsockname(l, (void *)&a, &len), 0);
	c = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(connect(c, (void *)&a, len), 0);
	begin(names, ARRAY_SIZE(names));
	made[0] = (int)syscall(SYS_open, "/etc/passwd", O_RDONLY);
	made[1] =
		(int)syscall(SYS_openat, at, "file", O_RDONLY | O_CREAT, 0600);
	made[2] = (int)syscall(SYS_creat, in("made"), 0600);
	made[3] = (int)syscall(SYS_socket, AF_UNIX, SOCK_DGRAM, 0);
	made[4] = (int)syscall(SYS_dup, made[0]);
	made[5] = (int)syscall(SYS_dup2, made[1], 200);
	made[6] = (int)syscall(SYS_dup3, made[2], 201, O_CLOEXEC);
	made[7] = (int)syscall(SYS_eventfd2, 0, 0);
	made[8] = (int)syscall(SYS_epoll_create1, 0);
	made[9] = (int)syscall(SYS_timerfd_create, CLOCK_MONOTONIC, 0);
	made[10] = (int)syscall(SYS_inotify_init1, 0);
	made[11] = (int)syscall(SYS_memfd_create, "x", 0);
	made[12] = (int)syscall(SYS_pidfd_open, getpid(), 0);
	made[13] = (int)syscall(SYS_accept, l, NULL, NULL);
	made[14] = (int)syscall(SYS_signalfd4, -1, &set, 8, 0);
	made[15] = (int)syscall(SYS_openat2, at, "file", how, sizeof(how));
	syscall(SYS_openat, at, "nonexistent", O_RDONLY);
	syscall(SYS_accept4, at, NULL, NULL, 0);
	check_made("open", made[0], "file");
	check_made("openat", made[1], "file");
	check_made("creat", made[2], "file");
	check_made("socket", made[3], "socket");
	check_made("dup", made[4], "file");
	check_made("dup2", made[5], "file");
	check_made("dup3", made[6], "file");
	check_made("eventfd2", made[7], "eventfd");
	check_made("epoll_create1", made[8], "epoll");
	check_made("timerfd_create", made[9], "timerfd");
	check_made("inotify_init1", made[10], "inotify");
	check_made("memfd_create", made[11], "file");
	check_made("pidfd_open", made[12], "pidfd");
	check_made("accept", made[13], "socket");
	check_made("signalfd4", made[14], "signalfd");
	check_made("openat2", made[15], "file");
	assert_string_equal(event("exit", "accept", 0)->fd.role, "server");
	assert_string_equal(event("enter", "accept", 0)->fd.role, "server");
	assert_int_equal(event("enter", "accept", 0)->fd.num, l);
	/* What the call is given: at its begin, and at its end if it failed. */
	e = event("enter", "openat", 0);
	assert_int_equal(e->fd.num, at);
	assert_string_equal(e->fd.path, dir);
	assert_int_equal(event("enter", "dup2", 0)->fd.num, made[1]);
	assert_null(event("enter", "open", 0)->fd.kind);
	assert_null(event("enter", "socket", 0)->fd.kind);
	e = event("exit", "openat", 1);
	assert_int_equal(number(e, "res"), -ENOENT);
	assert_int_equal(e->fd.num, at);
	assert_string_equal(e->fd.kind, "dir");
	assert_int_equal(event("exit", "accept4", 0)->fd.num, at);
	end();
	for (size_t i = 0; i < 16; i++)
		close(made[i]);
	close(at);
	close(l);
	close(c);
}

static void pairs(void **state)
{
	static const char *const names[] = { "pipe", "pipe2", "socketpair" };
	const struct watch_event *e;
	int p[2], q[2], s[2];

	begin(names, ARRAY_SIZE(names));
	assert_int_equal(syscall(SYS_pipe, p), 0);
	assert_int_equal(syscall(SYS_pipe2, q, O_CLOEXEC), 0);
	assert_int_equal(syscall(SYS_socketpair, AF_UNIX, SOCK_STREAM, 0, s),
			 0);
	assert_int_equal(syscall(SYS_pipe, BAD), -1);
	assert_int_equal(syscall(SYS_pipe, -1L), -1);
	e = event("exit", "pipe", 0);
	assert_string_equal(e->fd.kind, "pipe");
	assert_true(e->fd.num == p[0] && e->fd.pair == p[1]);
	assert_null(event("enter", "pipe", 0)->fd.kind);
	e = event("exit", "pipe2", 0);
	assert_true(e->fd.num == q[0] && e->fd.pair == q[1]);
	e = event("exit", "socketpair", 0);
	assert_string_equal(e->fd.kind, "socket");
	assert_string_equal(e->fd.protocol, "unix");
	assert_true(e->fd.num == s[0] && e->fd.pair == s[1]);
	assert_null(event("exit", "pipe", 1)->fd.kind);
	assert_null(event("exit", "pipe", 2)->fd.kind);
	end();
	for (int i = 0; i < 2; i++) {
		close(p[i]);
		close(q[i]);
		close(s[i]);
	}
}

/* --- numbers that are none ----------------------------------------------------------------- */

static void no_descriptor(void **state)
{
	static const char *const names[] = { "read", "close", "lseek" };
	static const struct {
		long fd;
		int num;
		const char *kind;
	} rows[] = {
		{ 999, 999, "closed" },
		{ INT_MAX, INT_MAX, "closed" },
		{ 0x7fffffffffffffffL, -1, NULL },
		{ -1, -1, NULL },
		{ INT_MIN, -1, NULL },
		{ 0x100000000L | 999, 999, "closed" },
		{ 1 << 20, 1 << 20, "closed" },
	};
	const struct watch_event *e;

	begin(names, ARRAY_SIZE(names));
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		syscall(SYS_read, rows[i].fd, BAD, 1);
		syscall(SYS_lseek, rows[i].fd, 0, 0);
		syscall(SYS_close, rows[i].fd);
	}
	for (size_t i = 0; i < ARRAY_SIZE(rows) * 6; i++) {
		size_t row = i / 6;

		e = event(i % 2 ? "exit" : "enter", names[i % 6 / 2], row);
		assert_int_equal(e->fd.num, rows[row].num);
		if (!rows[row].kind)
			assert_null(e->fd.kind);
		else
			assert_string_equal(e->fd.kind, rows[row].kind);
		if (watch_name(e->name)->by_fd)
			assert_string_equal(e->category, "other");
	}
	end();
}

/* --- categories ------------------------------------------------------------------------------ */

static void categories_by_kind(void **state)
{
	static const char *const kinds[] = { "file", "net", "ipc", "other" };
	static const char *const more[] = { "syscall_exit-read" };
	struct watch_want want = { .names = more, .n_names = 1 };
	const uint32_t self = (uint32_t)getpid();
	int all[4], p[2], expect;
	struct watch_sub *other;
	const char *names[2];
	char name[2][64];
	size_t n = 0;
	struct watch_event e;

	assert_int_equal(pipe2(p, O_NONBLOCK), 0);
	all[0] = open("/dev/zero", O_RDONLY);
	all[1] = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
	all[2] = p[0];
	all[3] = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
	want.pids = &self;
	want.n_pids = 1;
	for (int widened = 0; widened < 2; widened++)
		for (int k = 0; k < 4; k++) {
			snprintf(name[0], 64, "syscall_exit-read/%s", kinds[k]);
			snprintf(name[1], 64, "syscall_enter-close/%s",
				 kinds[k]);
			names[0] = name[0];
			names[1] = name[1];
			begin(names, 2);
			/* Another subscriber's are not this one's. */
			other = widened ? subscribe(&want) : NULL;
			for (int i = 0; i < 4; i++)
				syscall(SYS_read, all[i], BAD, 1);
			expect = dup(all[k]);
			close(dup(all[(k + 1) % 4]));
			close(expect);
			event("enter", "close", 0);
			collect();
			assert_int_equal(n_got, 2);
			assert_string_equal(got[0].category, kinds[k]);
			assert_int_equal(got[0].fd.num, all[k]);
			assert_string_equal(got[1].category, kinds[k]);
			assert_int_equal(got[1].fd.num, expect);
			for (n = 0; other && !watch_next(other, &e); n++)
				;
			assert_int_equal(n, widened ? 4 : 0);
			watch_unsubscribe(other);
			end();
		}
	for (int i = 0; i < 4; i++)
		close(all[i]);
	close(p[1]);
}

/* --- descriptors that change ---------------------------------------------------------------- */

#define SHARED 300
#define ROUNDS 6000

static int stop_reading;

/* Each file's name is its content. */
static void *replace(void *arg)
{
	char name[64];
	int fd;

	for (int i = 0; i < ROUNDS; i++) {
		snprintf(name, sizeof(name), "%08d", i);
		fd = open_in(name, O_RDWR | O_CREAT | O_TRUNC);
		if (write(fd, name, 8) != 8)
			break;
		if (i % 2)
			close(SHARED);
		dup2(fd, SHARED);
		close(fd);
		unlink(in(name));
	}
	close(SHARED);
	__atomic_store_n(&stop_reading, 1, __ATOMIC_RELEASE);
	return NULL;
}

static char (*contents)[9];
static size_t n_contents, n_seen;
static int read_ended;
#define READS_MAX 200000

static void *read_on(void *arg)
{
	while (!__atomic_load_n(&stop_reading, __ATOMIC_ACQUIRE) &&
	       n_contents < READS_MAX) {
		const struct iovec to = { contents[n_contents], 8 };

		syscall(SYS_preadv, SHARED, &to, 1, 0, 0);
		__atomic_add_fetch(&n_contents, 1, __ATOMIC_RELEASE);
		/* As many as the ring has room for. */
		while (n_contents - __atomic_load_n(&n_seen, __ATOMIC_ACQUIRE) >
		       1000)
			usleep(100);
	}
	__atomic_store_n(&read_ended, 1, __ATOMIC_RELEASE);
	return NULL;
}

static void check_name(const struct watch_event *e, const char *content,
		       size_t counts[3])
{
	assert_int_equal(e->fd.num, SHARED);
	if (!strcmp(e->fd.kind, "unknown")) {
		counts[1]++;
	} else if (!strcmp(e->fd.kind, "closed")) {
		counts[2]++;
	} else {
		counts[0]++;
		if (strcmp(e->fd.path + e->fd.file, content) != 0)
			fail_msg("%s: read '%s'", e->fd.path, content);
	}
}

static void never_another_ones_name(void **state)
{
	static const char *const names[] = { "syscall_exit-preadv" };
	size_t counts[3] = { 0 }, seen = 0;
	struct watch_event e;
	pthread_t threads[2];

	contents = calloc(READS_MAX, sizeof(*contents));
	begin(names, 1);
	pthread_create(&threads[0], NULL, replace, NULL);
	pthread_create(&threads[1], NULL, read_on, NULL);
	for (bool over = false; !over;) {
		over = __atomic_load_n(&read_ended, __ATOMIC_ACQUIRE) &&
		       seen == __atomic_load_n(&n_contents, __ATOMIC_ACQUIRE);
		watch_read(watch);
		while (!watch_next(sub, &e)) {
			check_name(&e, contents[seen], counts);
			seen++;
			__atomic_store_n(&n_seen, seen, __ATOMIC_RELEASE);
		}
		for (size_t i = 0; watch_name(i); i++)
			assert_int_equal(watch_lost(sub, i), 0);
		usleep(500);
	}
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
	print_message("%zu reads: %zu named, %zu unknown, %zu closed\n", seen,
		      counts[0], counts[1], counts[2]);
	assert_int_equal(seen, n_contents);
	assert_true(counts[0] > 100);
	free(contents);
	end();
}

static void *close_and_open(void *arg)
{
	int fd = *(int *)arg;

	usleep(50000);
	dup2(open("/dev/null", O_RDONLY), fd);
	return NULL;
}

/* The file that a call waits for is closed, and its number is another one at the end. */
static void one_that_changed_meanwhile(void **state)
{
	static const char *const names[] = { "recvfrom" };
	const struct watch_event *e;
	pthread_t thread;
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	begin(names, 1);
	pthread_create(&thread, NULL, close_and_open, &pair[0]);
	setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO,
		   &(struct timeval){ .tv_usec = 200000 },
		   sizeof(struct timeval));
	syscall(SYS_recvfrom, pair[0], &pair[1], 1, 0, NULL, NULL);
	pthread_join(thread, NULL);
	assert_string_equal(event("enter", "recvfrom", 0)->fd.kind, "socket");
	e = event("exit", "recvfrom", 0);
	assert_string_equal(e->fd.kind, "unknown");
	assert_int_equal(e->fd.num, pair[0]);
	assert_string_equal(e->fd.path, "");
	assert_string_equal(e->category, "other");
	end();
	close(pair[0]);
	close(pair[1]);
}

#define MANY 1000000

/* Or as many as a process may have here. */
static void a_million(void **state)
{
	static const char *const names[] = { "lseek" };
	struct rlimit limit = { MANY + 64, MANY + 64 }, before;
	const struct watch_event *e;
	int fd, last, most = MANY;

	getrlimit(RLIMIT_NOFILE, &before);
	if (setrlimit(RLIMIT_NOFILE, &limit)) {
		limit = (struct rlimit){ before.rlim_max, before.rlim_max };
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
		most = (int)MIN(before.rlim_max - 1, MANY);
	}
	begin(names, 1);
	fd = last = open("/etc/passwd", O_RDONLY);
	while (last >= 0 && last < most)
		last = dup(fd);
	assert_int_equal(last, most);
	syscall(SYS_lseek, last, 1, SEEK_SET);
	e = event("exit", "lseek", 0);
	print_message("%d descriptors\n", last);
	assert_int_equal(e->fd.num, last);
	assert_string_equal(e->fd.path, "/etc/passwd");
	syscall(SYS_close_range, fd, MANY, 0);
	end();
	setrlimit(RLIMIT_NOFILE, &before);
}

/* Of a process whose root is another directory. */
static void as_its_process_sees_it(void **state)
{
	static const char *const names[] = { "syscall_enter-lseek" };
	const struct watch_want want = { .names = names, .n_names = 1 };
	struct watch_event e;
	bool seen = false;
	pid_t pid;
	int fd;

	close(open_in("file", O_RDONLY | O_CREAT));
	sub = subscribe(&want);
	pid = fork();
	if (!pid) {
		fd = open_in("file", O_RDONLY);
		if (fd < 0 || chroot(dir))
			_exit(1);
		syscall(SYS_lseek, fd, 0, 0);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	for (int tries = 0; tries < 1000 && !seen; tries++) {
		watch_read(watch);
		while (!watch_next(sub, &e)) {
			if (e.key.tgid != (uint32_t)pid)
				continue;
			seen = true;
			assert_string_equal(e.fd.path, "/file");
			assert_int_equal(e.fd.file, 1);
		}
		usleep(5000);
	}
	assert_true(seen);
	stop();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_makes_them),
		cmocka_unit_test(pairs),
		cmocka_unit_test(no_descriptor),
		cmocka_unit_test(categories_by_kind),
		cmocka_unit_test(never_another_ones_name),
		cmocka_unit_test(one_that_changed_meanwhile),
		cmocka_unit_test(a_million),
		cmocka_unit_test(as_its_process_sees_it),
	};

	if (!mkdtemp(dir))
		return 1;
	return cmocka_run_group_tests(tests, NULL, clean);
}
