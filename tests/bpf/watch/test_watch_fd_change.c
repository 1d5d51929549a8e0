// SPDX-License-Identifier: Apache-2.0
/*
 * A descriptor that another thread changes while a program reads it: before each read of
 * kernel memory in turn. What is found must be of one file, and not of the one that the
 * descriptor was before.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <cmocka.h>

#include "base/base.h"
#include "bpf/abi_watch.h"
#include "tests/bpf/watch/fd_change.skel.h"

#define NUM 100
#define ROUNDS 5
/* The last comparison may be over in part when the change comes. */
#define COMPARED_BY 2

static char dir[] = "/tmp/test-watch-fd-change-XXXXXX";
static struct fd_change_bpf *skel;
static int cpus[2];

static void on_cpu(int cpu)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
}

/* --- files ------------------------------------------------------------------------ */

static void in(char path[128], const char *name)
{
	snprintf(path, 128, "%s/%s", dir, name);
}

static int make_file(void)
{
	char path[128];

	in(path, "some file");
	return open(path, O_RDWR | O_CREAT, 0600);
}

/* The same inode. */
static int make_other_name(void)
{
	char path[128], other[128];

	in(path, "some file");
	in(other, "other name");
	close(make_file());
	if (link(path, other))
		assert_int_equal(errno, EEXIST);
	return open(other, O_RDWR);
}

static int make_dir(void)
{
	return open(dir, O_RDONLY);
}

static int make_unix(void)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	snprintf(a.sun_path, sizeof(a.sun_path), "%s/socket", dir);
	unlink(a.sun_path);
	assert_int_equal(bind(fd, (void *)&a, sizeof(a)), 0);
	return fd;
}

static int make_inet(void)
{
	return socket(AF_INET, SOCK_DGRAM, 0);
}

static int make_timerfd(void)
{
	return timerfd_create(CLOCK_MONOTONIC, 0);
}

static int make_none(void)
{
	errno = 0;
	return -1;
}

struct what {
	int (*make)(void);
	uint8_t kind;
	const char *name; /* below 'dir'; NULL: no text at all */
};

static const struct what a_file = { make_file, ABI_FD_FILE, "/some file" };
static const struct what other_name = { make_other_name, ABI_FD_FILE,
					"/other name" };
static const struct what a_dir = { make_dir, ABI_FD_DIR, "" };
static const struct what a_unix = { make_unix, ABI_FD_UNIX, "/socket" };
static const struct what an_inet = { make_inet, ABI_FD_SOCKET, NULL };
static const struct what a_timerfd = { make_timerfd, ABI_FD_TIMERFD, NULL };
static const struct what nothing = { make_none, ABI_FD_NONE, NULL };

/* --- the change --------------------------------------------------------------------- */

struct change {
	const char *name;
	const struct what *from, *to;
	bool close; /* first: the kernel may use the file's memory again */
};

static const struct change changes[] = {
	{ "a directory becomes a file", &a_dir, &a_file, false },
	{ "a directory is closed, and a file opened", &a_dir, &a_file, true },
	{ "a file is closed, and a directory opened", &a_file, &a_dir, true },
	{ "a file is opened by another name", &a_file, &other_name, true },
	{ "a file is closed", &a_file, &nothing, true },
	{ "a file becomes a socket", &a_file, &a_unix, true },
	{ "a socket becomes a file", &a_unix, &a_file, true },
	{ "a socket becomes another", &a_unix, &an_inet, true },
	{ "another one becomes a socket", &an_inet, &a_unix, true },
	{ "a timerfd becomes a file", &a_timerfd, &a_file, true },
	{ "a file becomes a timerfd", &a_file, &a_timerfd, true },
};

static void put(const struct what *w, bool close_first)
{
	int fd;

	if (close_first)
		close(NUM);
	fd = w->make();
	if (fd < 0) {
		assert_int_equal(errno, 0);
		return;
	}
	assert_int_equal(dup2(fd, NUM), NUM);
	close(fd);
}

struct round {
	const struct change *change;
	uint32_t at;
	bool ready, stop;
};

static void *change_it(void *arg)
{
	struct round *r = arg;

	on_cpu(cpus[1]);
	/* Made on this CPU, its memory is used again here. */
	put(r->change->from, true);
	__atomic_store_n(&r->ready, true, __ATOMIC_RELEASE);
	while (__atomic_load_n(&skel->bss->change_reads, __ATOMIC_ACQUIRE) <
	       r->at)
		if (__atomic_load_n(&r->stop, __ATOMIC_ACQUIRE))
			return NULL;
	put(r->change->to, r->change->close);
	__atomic_store_n(&skel->bss->change_done, 1, __ATOMIC_RELEASE);
	return NULL;
}

/* The number of reads. The change is before the one 'at'; 0: there is none. */
static uint32_t read_it(const struct change *c, uint32_t at)
{
	LIBBPF_OPTS(bpf_test_run_opts, opts);
	struct round r = { .change = c, .at = at ?: UINT32_MAX };
	pthread_t thread;

	skel->bss->change_at = at;
	skel->bss->change_reads = 0;
	skel->bss->change_done = skel->bss->change_seen = 0;
	skel->bss->change_num = NUM;
	memset(skel->bss->change_text, 0, sizeof(skel->bss->change_text));
	pthread_create(&thread, NULL, change_it, &r);
	while (!__atomic_load_n(&r.ready, __ATOMIC_ACQUIRE))
		sched_yield();
	assert_int_equal(
		bpf_prog_test_run_opts(bpf_program__fd(skel->progs.change_read),
				       &opts),
		0);
	assert_int_equal(opts.retval, 1);
	__atomic_store_n(&r.stop, true, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	close(NUM);
	return skel->bss->change_reads;
}

/* --- what is found ------------------------------------------------------------------ */

static bool found(const struct what *w)
{
	const struct abi_watch_fd *fd = &skel->bss->change_fd;
	char path[128] = "";

	if (fd->kind != w->kind || fd->num != NUM)
		return false;
	if (!w->name)
		return !fd->text_len;
	in(path, w->name + (*w->name == '/'));
	if (!*w->name)
		path[strlen(dir)] = '\0';
	return fd->text_len >= strlen(path) &&
	       !strcmp(skel->bss->change_text, path);
}

static void check(const struct change *c, uint32_t at, uint32_t reads)
{
	const struct abi_watch_fd *fd = &skel->bss->change_fd;

	if (fd->kind == ABI_FD_UNKNOWN) {
		assert_int_equal(fd->text_len, 0);
		assert_int_equal(fd->ends.family, 0);
		assert_int_equal(fd->flags, 0);
		return;
	}
	if (reads - at < COMPARED_BY && found(c->from))
		return;
	if (!found(c->to))
		fail_msg("%s before read %u of %u: kind %u '%s'", c->name, at,
			 reads, fd->kind, skel->bss->change_text);
}

static void what_is_found_is_of_one_file(void **state)
{
	size_t unknown, all;
	uint32_t reads;

	for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
		unknown = all = 0;
		reads = read_it(&changes[i], 0);
		if (!found(changes[i].from))
			fail_msg("%s: at first kind %u '%s'", changes[i].name,
				 skel->bss->change_fd.kind,
				 skel->bss->change_text);
		for (int round = 0; round < ROUNDS; round++) {
			for (uint32_t at = 1; at <= reads; at++) {
				uint32_t n = read_it(&changes[i], at);

				/* The other thread had no CPU. */
				if (!skel->bss->change_seen)
					continue;
				check(&changes[i], at, n);
				unknown += skel->bss->change_fd.kind ==
					   ABI_FD_UNKNOWN;
				all++;
			}
		}
		print_message("%s: %zu changes, %zu unknown, %u reads\n",
			      changes[i].name, all, unknown, reads);
		assert_true(all > reads);
	}
}

static int begin(void **state)
{
	cpu_set_t set;
	int n = 0;

	if (!mkdtemp(dir) || sched_getaffinity(0, sizeof(set), &set))
		return -1;
	for (int i = 0; i < CPU_SETSIZE && n < 2; i++)
		if (CPU_ISSET(i, &set))
			cpus[n++] = i;
	if (n < 2) {
		print_message("# skip: two threads need two CPUs\n");
		return -1;
	}
	on_cpu(cpus[0]);
	skel = fd_change_bpf__open();
	if (!skel || bpf_map__set_max_entries(skel->maps.watch_ring, 4096))
		return -1;
	return fd_change_bpf__load(skel);
}

static int end(void **state)
{
	char command[128];

	fd_change_bpf__destroy(skel);
	snprintf(command, sizeof(command), "rm -rf '%s'", dir);
	return system(command);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_found_is_of_one_file),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
