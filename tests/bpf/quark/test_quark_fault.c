// SPDX-License-Identifier: Apache-2.0
/*
 * Opening a queue while each of its calls fails once: -1, an errno and a reason that
 * fit, and no leak. If an optional call fails, the queue opens.
 *
 * The calls are libquark's and libbpf's: both use the functions of this program
 * instead of the C library's.
 */
#include <dlfcn.h>
#include <linux/bpf.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>

#include "tests/bpf/quark/test_quark.h"

enum fault {
	NONE,
	BPF, /* and perf_event_open, for the other backend */
	MAP,
	OPEN,
	EPOLL,
	TIMER,
	MEMORY, /* of libquark's own code */
	MEMORY_BELOW, /* of libbpf's and libelf's */
};

extern char __executable_start, etext;

static struct {
	enum fault class;
	int at, calls;
	int err;
	bool from_then_on;
	bool hit;
} fault;

/* Of calls for the same reason, as one for each process there is, so many are counted. */
#define REASONS 4096 /* a power of two */
#define SAME 2

static struct {
	uint64_t reason;
	int n;
} reasons[REASONS];

static bool is_one_more(uint64_t reason)
{
	size_t i = reason * 0x9e3779b97f4a7c15 >> 52;

	while (reasons[i].n && reasons[i].reason != reason)
		i = (i + 1) % REASONS;
	reasons[i].reason = reason;
	return reasons[i].n++ >= SAME;
}

/* The calls that lead here, as far as they are of this program. */
static uint64_t path_of(void **frame)
{
	uint64_t path = 0;

	for (int i = 0; i < 12; i++) {
		if ((const char *)frame[1] < &__executable_start ||
		    (const char *)frame[1] >= &etext ||
		    (void **)frame[0] <= frame)
			break;
		path = (path ^ (uintptr_t)frame[1]) * 0x100000001b3;
		frame = frame[0];
	}
	return path;
}

static bool fails(enum fault class)
{
	if (fault.class != class || ++fault.calls < fault.at ||
	    (fault.calls > fault.at && !fault.from_then_on))
		return false;
	fault.hit = true;
	errno = fault.err;
	return true;
}

static bool fails_for(enum fault class, uint64_t reason)
{
	bool all = fault.hit && fault.from_then_on;

	if (fault.class != class || (reason && is_one_more(reason) && !all))
		return false;
	return fails(class);
}

/* The same iterator is opened for each process; 0 for all other calls. */
static uint64_t bpf_reason(long cmd, const union bpf_attr *attr)
{
	if (cmd == BPF_LINK_CREATE)
		return (uint64_t)attr->link_create.prog_fd << 8 | cmd;
	return cmd == BPF_ITER_CREATE ? cmd : 0;
}

#define REAL(name)                 \
	static typeof(name) *real; \
	if (!real)                 \
	*(void **)&real = dlsym(RTLD_NEXT, #name)

long syscall(long nr, ...)
{
	long a[6];
	va_list ap;
	int i;

	REAL(syscall);
	va_start(ap, nr);
	for (i = 0; i < 6; i++)
		a[i] = va_arg(ap, long);
	va_end(ap);
	if (nr == SYS_perf_event_open && fails(BPF))
		return -1;
	if (nr == SYS_bpf && fails_for(BPF, bpf_reason(a[0], (void *)a[1])))
		return -1;
	return real(nr, a[0], a[1], a[2], a[3], a[4], a[5]);
}

void *mmap(void *addr, size_t len, int prot, int flags, int fd, off_t off)
{
	REAL(mmap);
	return fails(MAP) ? MAP_FAILED : real(addr, len, prot, flags, fd, off);
}

void *mmap64(void *addr, size_t len, int prot, int flags, int fd, off_t off)
{
	REAL(mmap64);
	return fails(MAP) ? MAP_FAILED : real(addr, len, prot, flags, fd, off);
}

int open(const char *path, int flags, ...)
{
	va_list ap;
	int mode;

	REAL(open);
	va_start(ap, flags);
	mode = va_arg(ap, int);
	va_end(ap);
	return fails_for(OPEN, path_of(__builtin_frame_address(0)))
		       ? -1
		       : real(path, flags, mode);
}

int open64(const char *path, int flags, ...)
{
	va_list ap;
	int mode;

	REAL(open64);
	va_start(ap, flags);
	mode = va_arg(ap, int);
	va_end(ap);
	return fails_for(OPEN, path_of(__builtin_frame_address(0)))
		       ? -1
		       : real(path, flags, mode);
}

int openat(int dirfd, const char *path, int flags, ...)
{
	va_list ap;
	int mode;

	REAL(openat);
	va_start(ap, flags);
	mode = va_arg(ap, int);
	va_end(ap);
	return fails_for(OPEN, path_of(__builtin_frame_address(0)))
		       ? -1
		       : real(dirfd, path, flags, mode);
}

FILE *fopen(const char *path, const char *mode)
{
	REAL(fopen);
	return fails_for(OPEN, path_of(__builtin_frame_address(0)))
		       ? NULL
		       : real(path, mode);
}

FILE *fopen64(const char *path, const char *mode)
{
	REAL(fopen64);
	return fails_for(OPEN, path_of(__builtin_frame_address(0)))
		       ? NULL
		       : real(path, mode);
}

int epoll_create1(int flags)
{
	REAL(epoll_create1);
	return fails(EPOLL) ? -1 : real(flags);
}

int epoll_ctl(int epfd, int op, int fd, struct epoll_event *ev)
{
	REAL(epoll_ctl);
	return fails(EPOLL) ? -1 : real(epfd, op, fd, ev);
}

int timerfd_create(int clock, int flags)
{
	REAL(timerfd_create);
	return fails(TIMER) ? -1 : real(clock, flags);
}

/*
 * Blocks in use; quark's reader of /proc has threads. A sanitizer has an allocator of its
 * own, and sees leaks.
 */
static _Atomic long blocks;

#ifndef __SANITIZE_ADDRESS__
void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t n);
void __libc_free(void *p);

static bool no_memory(void **frame)
{
	uint64_t path = path_of(frame);

	return path ? fails_for(MEMORY, path) : fails(MEMORY_BELOW);
}

void *malloc(size_t n)
{
	void *p;

	if (no_memory(__builtin_frame_address(0)))
		return NULL;
	p = __libc_malloc(n);
	blocks += !!p;
	return p;
}

void *calloc(size_t n, size_t size)
{
	void *p;

	if (no_memory(__builtin_frame_address(0)))
		return NULL;
	p = __libc_calloc(n, size);
	blocks += !!p;
	return p;
}

void *realloc(void *old, size_t n)
{
	void *p;

	if (no_memory(__builtin_frame_address(0)))
		return NULL;
	p = __libc_realloc(old, n);
	blocks += !old && p;
	blocks -= old && !n;
	return p;
}

void free(void *p)
{
	blocks -= !!p;
	__libc_free(p);
}
#endif

struct left {
	int fds;
	int maps; /* of the kernel's rings and tables */
	long blocks;
};

static struct left look(void)
{
	struct left l = { .fds = count_fds() };
	FILE *f = fopen("/proc/self/maps", "re");
	char line[4096];

	CHECK(f != NULL);
	while (fgets(line, sizeof(line), f))
		l.maps += strstr(line, "anon_inode") || strstr(line, "bpf");
	fclose(f);
	l.blocks = blocks;
	return l;
}

/* An abandoned read of /proc, on a busy host, ends a little later, and frees its memory. */
static void same(const struct left *a)
{
	struct left b = look();

	for (int i = 0; i < 3000 && (b.fds != a->fds || b.blocks != a->blocks);
	     i++) {
		usleep(10000);
		b = look();
	}
	CHECK_INT(b.fds, a->fds);
	CHECK_INT(b.maps, a->maps);
	CHECK_INT(b.blocks, a->blocks);
}

#define STACKS 20 /* more than a queue has threads, abandoned ones too */
#define STACK_SIZE (256 * 1024) /* of theirs */

static void *stay(void *arg)
{
	pthread_barrier_wait(arg);
	return NULL;
}

/*
 * glibc keeps the stacks of threads that have ended, each with a block, for those that
 * come: with these there is one for each thread, however many there are at a time.
 */
static void keep_stacks(void)
{
	pthread_t threads[STACKS];
	pthread_barrier_t all;
	pthread_attr_t attr;

	pthread_barrier_init(&all, NULL, STACKS);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_SIZE);
	for (int i = 0; i < STACKS; i++)
		CHECK_INT(pthread_create(&threads[i], &attr, stay, &all), 0);
	for (int i = 0; i < STACKS; i++)
		pthread_join(threads[i], NULL);
	pthread_attr_destroy(&attr);
	pthread_barrier_destroy(&all);
}

static struct left look_first(void)
{
	keep_stacks();
	return look();
}

static void raw_attr(struct quark_queue_attr *attr)
{
	quark_queue_default_attr(attr);
	attr->flags = backend() | QQ_NO_AGG;
	attr->hold_time = 0;
	attr->max_env = 0;
	attr->ring_bytes = 1 << 20;
}

/* False: it opened although, or because, nothing failed. */
static bool refused(int err)
{
	struct quark_queue_attr attr;
	struct quark_queue qq;
	enum fault class = fault.class;
	int ret, got;

	raw_attr(&attr);
	errno = 0;
	ret = quark_queue_open(&qq, &attr);
	got = errno;
	fault.class = NONE;
	if (ret == 0) {
		quark_queue_close(&qq);
		return false;
	}
	CHECK_INT(ret, -1);
	CHECK(*quark_queue_open_error());
	CHECK(!strchr(quark_queue_open_error(), '\n'));
	/*
	 * libbpf makes a map that fails once more without BTF, and then task
	 * storage is refused with EINVAL.
	 */
	if (class == BPF && got == EINVAL)
		got = err;
	CHECK_INT(got, err);
	return true;
}

/* Each call of that class fails once, or it and all that follow. */
static void sweep(enum fault class, int err, int every, bool from_then_on)
{
	struct left before;
	int n = 0, at;

	CHECK(!refused(0)); /* what is loaded once and kept */
	before = look_first();
	for (at = 1;; at += every) {
		fault.at = at;
		fault.calls = 0;
		memset(reasons, 0, sizeof(reasons));
		fault.err = err;
		fault.from_then_on = from_then_on;
		fault.hit = false;
		fault.class = class;
		n += refused(err);
		same(&before);
		if (!fault.hit)
			break;
	}
	fprintf(stderr, "# class %d: %d calls, %d refused\n", class, at - 1, n);
	CHECK(n > 0);
}

static void body_bpf(void)
{
	/* libbpf loads a program again, for the verifier's log. */
	sweep(BPF, ENOMEM, 1, false);
	sweep(BPF, ENOMEM, 1, true);
}

static void test_bpf(void **state)
{
	in_child(body_bpf);
}

static void body_map(void)
{
	sweep(MAP, ENOMEM, 1, false);
}

static void test_map(void **state)
{
	in_child(body_map);
}

static void body_open(void)
{
	sweep(OPEN, EMFILE, 1, true);
}

static void test_open(void **state)
{
	in_child(body_open);
}

static void body_wait(void)
{
	sweep(EPOLL, ENFILE, 1, false);
	sweep(TIMER, ENFILE, 1, false);
}

static void test_wait(void **state)
{
	in_child(body_wait);
}

static void body_descriptors(void)
{
	struct left before;
	struct rlimit rl;
	rlim_t most;
	int n;

	CHECK(!refused(0));
	before = look_first();
	CHECK(getrlimit(RLIMIT_NOFILE, &rl) == 0);
	most = rl.rlim_cur;
	for (n = 3;; n++) {
		bool more;

		rl.rlim_cur = n;
		CHECK(setrlimit(RLIMIT_NOFILE, &rl) == 0);
		more = refused(EMFILE);
		rl.rlim_cur = most;
		CHECK(setrlimit(RLIMIT_NOFILE, &rl) == 0);
		same(&before);
		if (!more)
			break;
	}
	fprintf(stderr, "# %d descriptors are enough\n", n);
	CHECK(n > 10);
}

/* However few descriptors may be open. */
static void test_descriptors(void **state)
{
	in_child(body_descriptors);
}

static long rss_kib(void)
{
	unsigned long size, rss;
	FILE *f = fopen("/proc/self/statm", "re");

	CHECK(f && fscanf(f, "%lu %lu", &size, &rss) == 2);
	fclose(f);
	return rss * (sysconf(_SC_PAGESIZE) / 1024);
}

/* Closed in the midst of its work, with events that are held. */
static void open_and_close(int flags)
{
	struct quark_queue_attr attr;
	struct quark_queue qq;

	quark_queue_default_attr(&attr);
	attr.flags = backend() | flags;
	CHECK(quark_queue_open(&qq, &attr) == 0);
	short_life();
	quark_queue_get_event(&qq);
	quark_queue_close(&qq);
}

static void body_again(void)
{
	const char *many = getenv("QUARK_OPENS");
	int i, n = many ? atoi(many) : 20;
	struct left before;
	long rss = 0, now;

	for (i = 0; i < n; i++) {
		open_and_close(i % 2 ? QQ_NO_AGG : QQ_THREAD_EVENTS);
		if (i == 1)
			before = look_first();
		if (i > 1)
			same(&before);
		if (i == n / 10)
			rss = rss_kib();
	}
	now = rss_kib();
	fprintf(stderr, "# %d times, RSS %ld KiB, then %ld\n", n, rss, now);
#ifndef __SANITIZE_ADDRESS__
	CHECK(now - rss < 20 * n);
#endif
}

/* 1,000 take minutes: QUARK_OPENS=1000. */
static void test_again(void **state)
{
	in_child(body_again);
}

#ifndef __SANITIZE_ADDRESS__
static void body_memory(void)
{
	sweep(MEMORY, ENOMEM, 1, false);
	sweep(MEMORY_BELOW, ENOMEM, 29, false);
}

static void test_memory(void **state)
{
	in_child(body_memory);
}

static void body_address_space(void)
{
	const struct rlimit all = { RLIM_INFINITY, RLIM_INFINITY };
	struct left before;
	unsigned long now;
	int mib = 0;
	FILE *f;

	CHECK(!refused(0));
	before = look_first();
	f = fopen("/proc/self/statm", "re");
	CHECK(f && fscanf(f, "%lu", &now) == 1);
	fclose(f);
	for (;; mib++) {
		struct rlimit rl = all;
		bool more;

		rl.rlim_cur = now * sysconf(_SC_PAGESIZE) + ((rlim_t)mib << 20);
		CHECK(setrlimit(RLIMIT_AS, &rl) == 0);
		more = refused(ENOMEM);
		CHECK(setrlimit(RLIMIT_AS, &all) == 0);
		same(&before);
		if (!more)
			break;
	}
	fprintf(stderr, "# %d MiB more are enough\n", mib);
	CHECK(mib > 1);
}

/* However little memory may be mapped. */
static void test_address_space(void **state)
{
	in_child(body_address_space);
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bpf),
		cmocka_unit_test(test_map),
		cmocka_unit_test(test_open),
		cmocka_unit_test(test_wait),
		cmocka_unit_test(test_descriptors),
		cmocka_unit_test(test_again),
#ifndef __SANITIZE_ADDRESS__
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_address_space),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
