// SPDX-License-Identifier: Apache-2.0
/*
 * libquark: reads of /proc/PID that block. The processes are children of this one;
 * reads of some of them block until the test ends.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "processmanager/quark/apply.c"
#include "processmanager/quark/cache.c"
#include "processmanager/quark/error.c"
#include "processmanager/quark/event.c"
#include "processmanager/quark/leader.c"
#include "processmanager/quark/order.c"
#include "processmanager/quark/parent.c"

/* Of the same type as those they stand for. */
static __typeof__(quark_procfs_strings) real_strings;
static __typeof__(quark_procfs_exists) real_exists;
static __typeof__(quark_procfs_parent) real_parent;
#define quark_procfs_strings real_strings
#define quark_procfs_exists real_exists
#define quark_procfs_parent real_parent
#include "processmanager/quark/proc/procfs.c"
#undef quark_procfs_strings
#undef quark_procfs_exists
#undef quark_procfs_parent
#include "processmanager/quark/proc/procfs_task.c"
#include "processmanager/quark/proc/reader.c"
#include "processmanager/quark/record.c"
#include "processmanager/quark/rules.c"
#include "processmanager/quark/scan.c"

#define CHILDREN 8

static pid_t child[CHILDREN];
static uint32_t uids[CHILDREN];
static bool hangs[CHILDREN];
static bool over; /* atomic: those that hang return */
static bool shows; /* the backend finds processes */

static void may_hang(uint32_t pid)
{
	size_t i;

	for (i = 0; i < CHILDREN; i++)
		while (child[i] == (pid_t)pid && hangs[i] &&
		       !__atomic_load_n(&over, __ATOMIC_ACQUIRE))
			usleep(1000);
}

bool quark_procfs_strings(uint32_t pid, uint64_t start, size_t max_env,
			  struct strbuf *sb, size_t *args, size_t *env)
{
	may_hang(pid);
	return real_strings(pid, start, max_env, sb, args, env);
}

bool quark_procfs_exists(uint32_t pid, uint64_t start)
{
	may_hang(pid);
	return real_exists(pid, start);
}

uint32_t quark_procfs_parent(uint32_t pid, uint64_t start)
{
	may_hang(pid);
	return real_parent(pid, start);
}

/* --- a kernel made by hand ------------------------------------------------------- */

static struct quark_queue_priv qq;

static uint64_t start_of(pid_t pid)
{
	return quark_procfs_start(pid) * CLOCK_NSEC_PER_SEC /
	       sysconf(_SC_CLK_TCK);
}

static void show(size_t i, struct abi_quark_image *im)
{
	memset(im, 0, sizeof(*im));
	im->head.kind = ABI_QUARK_TASK;
	im->head.time = clock_boottime_ns();
	im->head.key = (struct abi_key){ start_of(child[i]), 1, child[i], 0 };
	im->head.tid = child[i];
	im->ids.uid = uids[i];
	im->parent = (struct abi_key){ start_of(getpid()), 1, getpid(), 0 };
}

static int fake_scan(void *b, ring_fn fn, void *arg)
{
	struct abi_quark_image im;
	int err = 0;
	size_t i;

	for (i = 0; !err && i < CHILDREN; i++) {
		show(i, &im);
		err = fn(arg, &im, sizeof(im));
	}
	return err;
}

static bool fake_look(void *b, uint32_t pid, struct abi_quark_image *im)
{
	size_t i;

	for (i = 0; shows && i < CHILDREN; i++) {
		if (child[i] != (pid_t)pid)
			continue;
		show(i, im);
		return true;
	}
	return false;
}

static const struct quark_backend fake = { .name = "fake",
					   .scan = fake_scan,
					   .look = fake_look };

static int setup(void **state)
{
	size_t i;

	memset(&qq, 0, sizeof(qq));
	memset(hangs, 0, sizeof(hangs));
	over = false;
	shows = true;
	qq.attr.flags = QQ_EBPF | QQ_NO_AGG;
	qq.backend = &fake;
	for (i = 0; i < CHILDREN; i++) {
		uids[i] = i;
		child[i] = fork();
		if (child[i])
			continue;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	return quark_cache_init(&qq.cache, 1000 * CLOCK_NSEC_PER_SEC);
}

static int teardown(void **state)
{
	uint64_t begin = clock_boottime_ns();
	size_t i;

	/* A queue is closed while reads still block. */
	patience_fini(&qq.reader.patience);
	assert_true(clock_boottime_ns() - begin < 100 * CLOCK_NSEC_PER_MSEC);
	__atomic_store_n(&over, true, __ATOMIC_RELEASE);
	while (patience_abandoned())
		usleep(1000);
	quark_cache_fini(&qq.cache);
	for (i = 0; i < CHILDREN; i++) {
		kill(child[i], SIGKILL);
		waitpid(child[i], NULL, 0);
	}
	return 0;
}

/* Whether its arguments are known. */
static bool read_whole(size_t i)
{
	const struct quark_proc *p = quark_cache_newest(&qq.cache, child[i]);

	assert_non_null(p);
	return p->rec->p.cmdline &&
	       !strcmp(p->rec->p.cmdline, program_invocation_name);
}

static size_t read_wholly(void)
{
	size_t i, n = 0;

	for (i = 0; i < CHILDREN; i++)
		n += read_whole(i);
	return n;
}

/* --- tests ----------------------------------------------------------------------- */

static void all_are_read(void **state)
{
	assert_int_equal(quark_scan_first(&qq), 0);
	assert_int_equal(read_wholly(), CHILDREN);
	assert_int_equal(qq.reader.unread, 0);
}

/* A process whose read blocks has only the backend's values. */
static void a_scan_goes_on(void **state)
{
	hangs[3] = true;
	assert_int_equal(quark_scan_first(&qq), 0);
	assert_int_equal(read_wholly(), CHILDREN - 1);
	assert_false(read_whole(3));
	assert_int_equal(patience_abandoned(), 1);
	assert_true(qq.reader.unread > 0);
}

/* A read of each blocks once, not each time. */
static void it_is_not_read_again(void **state)
{
	struct quark_text t = { .pid = child[0], .uid = 0 };
	struct strbuf sb = STRBUF_INIT;
	int i;

	hangs[0] = true;
	t.start = start_of(child[0]);
	for (i = 0; i < 100; i++)
		quark_read_strings(&qq, &t, 1, &sb);
	assert_false(t.known);
	assert_int_equal(patience_abandoned(), 1);
	assert_int_equal(qq.reader.nhung, 1);
	assert_int_equal(qq.reader.unread, 100);
	/* A minute later it is. */
	__atomic_store_n(&over, true, __ATOMIC_RELEASE);
	qq.reader.hung[0].until = 0;
	quark_read_strings(&qq, &t, 1, &sb);
	assert_true(t.known);
	assert_int_equal(qq.reader.nhung, 0);
	strbuf_fini(&sb);
}

/* A user with many of them takes two threads; its others are not read. */
static void a_user_has_two(void **state)
{
	size_t i;

	for (i = 0; i < 6; i++) {
		uids[i] = 1000;
		hangs[i] = i < 5;
	}
	assert_int_equal(quark_scan_first(&qq), 0);
	assert_int_equal(patience_abandoned(), 2);
	assert_int_equal(read_wholly(), 2);
	assert_true(read_whole(6) && read_whole(7));
}

/* Many users: not more than four threads. */
static void four_are_abandoned(void **state)
{
	size_t i;

	for (i = 0; i < 6; i++)
		hangs[i] = true;
	assert_int_equal(quark_scan_first(&qq), 0);
	assert_int_equal(patience_abandoned(), PATIENCE_ABANDONED_MAX);
	assert_int_equal(read_wholly(), 0);
	/* All are known. */
	for (i = 0; i < CHILDREN; i++)
		assert_non_null(quark_cache_newest(&qq.cache, child[i]));
}

/* A process that cannot be read exists. */
static void who_is_unknown_is_there(void **state)
{
	struct quark_process p = { .pid = child[0], .proc_uid = 0 };

	shows = false;
	hangs[0] = true;
	p.key.start_boottime = start_of(child[0]);
	assert_true(quark_exists(&qq, &p));
	assert_int_equal(patience_abandoned(), 1);
	assert_true(quark_exists(&qq, &p));
	assert_int_equal(quark_parent_of(&qq, &p), 0);
	assert_int_equal(patience_abandoned(), 1);
	/* Others are read: with another start it is another process. */
	p.pid = child[1];
	p.proc_uid = 1;
	p.key.start_boottime = start_of(child[1]);
	assert_true(quark_exists(&qq, &p));
	assert_int_equal(quark_parent_of(&qq, &p), getpid());
	p.key.start_boottime += CLOCK_NSEC_PER_SEC;
	assert_false(quark_exists(&qq, &p));
	assert_int_equal(quark_parent_of(&qq, &p), 0);
}

/* A process that the backend finds is not looked up in /proc. */
static void who_is_shown_is_not_asked(void **state)
{
	struct quark_process p = { .pid = child[0] };

	hangs[0] = true;
	p.key.start_boottime = start_of(child[0]);
	assert_true(quark_exists(&qq, &p));
	assert_int_equal(quark_parent_of(&qq, &p), getpid());
	p.key.start_boottime++;
	assert_false(quark_exists(&qq, &p));
	assert_null(qq.reader.patience.thread);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(all_are_read),
		T(a_scan_goes_on),
		T(it_is_not_read_again),
		T(a_user_has_two),
		T(four_are_abandoned),
		T(who_is_unknown_is_there),
		T(who_is_shown_is_not_asked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
