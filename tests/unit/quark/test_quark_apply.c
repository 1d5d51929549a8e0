// SPDX-License-Identifier: Apache-2.0
/*
 * libquark: how records change the cache and become events. The records are made
 * here, also some that a kernel sends only rarely.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "tests/unit/quark/test_quark_apply.h"

#define GRACE 1000

static struct quark_event *ev = &qq.event;
static const struct quark_backend fake; /* finds nothing */
static const struct quark_spans none;

static int setup(void **state)
{
	int err = qq_setup(&fake, GRACE);

	qq.wall_offset = 1000000;
	return err;
}

static struct abi_key key(uint32_t pid, uint64_t start, uint64_t exec_id)
{
	return (struct abi_key){ start, exec_id, pid, 0 };
}

static struct abi_quark_head head(uint32_t kind, uint64_t time,
				  struct abi_key k)
{
	return (struct abi_quark_head){ kind, 0, time, k, k.tgid, 0 };
}

static int apply(const void *rec, size_t len)
{
	const struct abi_quark_head *h = rec;
	struct quark_raw *raw =
		quark_raw_new(qq.vault, h->kind, h->time, rec, len);
	int ret;

	quark_record_put(qq.event_rec);
	qq.event_rec = NULL;
	ret = quark_apply(&qq, raw);
	vault_give(raw);
	return ret;
}

static int do_fork(uint64_t time, struct abi_key child, struct abi_key parent)
{
	struct abi_quark_fork f = { .parent = parent,
				    .origin = parent,
				    .comm = "forked" };

	f.head = head(ABI_QUARK_FORK, time, child);
	return apply(&f, sizeof(f));
}

static int do_exec(uint64_t time, struct abi_key k, const char *exe)
{
	struct {
		struct abi_quark_image im;
		char text[64];
	} r = { .im.comm = "executed" };

	r.im.head = head(ABI_QUARK_EXEC, time, k);
	r.im.exe_len = strlen(exe);
	r.im.args_len = 4;
	memcpy(r.text, exe, strlen(exe));
	memcpy(r.text + strlen(exe), "x\0y", 4);
	return apply(&r, sizeof(r.im) + strlen(exe) + 4);
}

static int do_exit(uint64_t time, struct abi_key k, int status)
{
	struct abi_quark_exit e = { .wait_status = status, .comm = "gone" };

	e.head = head(ABI_QUARK_EXIT, time, k);
	e.head.flags = ABI_QUARK_GROUP_DEAD;
	return apply(&e, sizeof(e));
}

static int do_reap(uint64_t time, struct abi_key k)
{
	struct abi_quark_reap r = { .cpu_time = 77, .comm = "reaped" };

	r.head = head(ABI_QUARK_REAP, time, k);
	return apply(&r, sizeof(r));
}

static int do_scan(uint64_t time, struct abi_key k)
{
	struct abi_quark_image im = { .comm = "scanned" };
	int ret;

	im.head = head(ABI_QUARK_TASK, time, k);
	im.head.flags = ABI_QUARK_KTHREAD; /* not in /proc */
	ret = quark_apply_scanned(&qq, &im, sizeof(im), &none);
	quark_cache_find(&qq.cache, &k)->snap_time = time;
	return ret;
}

static void test_life(void **state)
{
	struct abi_key parent = key(1, 5, 9);
	struct quark_process *before;

	assert_int_equal(do_exec(10, parent, "/parent"), 1);
	assert_int_equal(do_fork(20, key(2, 20, 9), parent), 1);
	assert_int_equal(ev->events, QUARK_EV_FORK);
	assert_int_equal(ev->boottime, 20);
	assert_int_equal(ev->time, 1000020);
	assert_string_equal(ev->process->exe, "/parent");
	assert_string_equal(ev->process->comm, "forked");
	assert_int_equal(ev->process->proc_ppid, 1);
	assert_int_equal(ev->process->parent_key.exec_id, 9);
	assert_int_equal(ev->process->proc_time_boot, 1000020);
	before = quark_process_dup(ev->process);
	assert_int_equal(do_exec(30, key(2, 20, 10), "/child"), 1);
	assert_string_equal(ev->process->exe, "/child");
	assert_int_equal(ev->process->cmdline_len, 4);
	assert_int_equal(ev->process->key.exec_id, 10);
	assert_string_equal(before->exe, "/parent");
	free(before);
	assert_int_equal(do_exit(40, key(2, 20, 10), 0x8b), 1);
	assert_int_equal(ev->process->exit_code, 128 + 11);
	assert_int_equal(ev->process->wait_status, 0x8b);
	assert_int_equal(ev->process->exit_boottime, 40);
	assert_string_equal(ev->process->exe, "/child");
	assert_int_equal(do_reap(50, key(2, 20, 10)), 1);
	assert_int_equal(ev->cpu_time, 77);
	assert_int_equal(ev->cpu_exact, 1);
}

/* What an event holds stays as it was at the event. */
static void test_immutable(void **state)
{
	struct quark_record *held;

	do_exec(10, key(2, 5, 1), "/first");
	held = quark_record_get(qq.event_rec);
	do_exec(20, key(2, 5, 2), "/second");
	do_exit(30, key(2, 5, 2), 0);
	assert_string_equal(held->p.exe, "/first");
	assert_int_equal(held->p.key.exec_id, 1);
	assert_int_equal(held->p.flags & QUARK_F_EXIT, 0);
	quark_record_put(held);
}

static void test_pid_reuse(void **state)
{
	struct abi_key old = key(2, 20, 1), new = key(2, 60, 4);

	do_fork(20, old, key(1, 5, 1));
	do_exit(30, old, 0);
	do_fork(60, new, key(1, 5, 4));
	/* The reap of the old process may come after its pid is reused. */
	assert_int_equal(do_reap(70, old), 1);
	assert_int_equal(ev->process->key.start_boottime, 20);
	assert_int_equal(quark_cache_newest(&qq.cache, 2)->rec->p.key.exec_id,
			 4);
	quark_cache_collect(&qq.cache, 70 + GRACE);
	assert_null(quark_cache_find(&qq.cache, &old));
	assert_non_null(quark_cache_find(&qq.cache, &new));
	assert_int_equal(qq.cache.collections, 1);
}

static void test_two_last_threads(void **state)
{
	struct abi_key k = key(2, 20, 1);

	assert_int_equal(do_exit(30, k, 256), 1);
	assert_int_equal(do_exit(31, k, 256), 0);
	assert_int_equal(do_reap(40, k), 1);
	assert_int_equal(do_reap(41, k), 0);
}

/* With the events of threads the second one is that of a thread. */
static void test_two_last_threads_told(void **state)
{
	struct abi_key k = key(2, 20, 1);

	qq.attr.flags |= QQ_THREAD_EVENTS;
	assert_int_equal(do_exit(30, k, 256), 1);
	assert_int_equal(ev->group_dead, 1);
	assert_int_equal(do_exit(31, k, 256), 1);
	assert_int_equal(ev->group_dead, 0);
	assert_int_equal(ev->process->exit_boottime, 30);
	/* A fork older than the scan that read the process is no event. */
	assert_int_equal(do_scan(50, key(3, 20, 1)), 0);
	quark_cache_find(&qq.cache, &(struct abi_key){ 20, 1, 3, 0 })->exited =
		true;
	assert_int_equal(do_exit(40, key(3, 20, 1), 0), 0);
}

/* Only the origin's pid may be known: it is the youngest process with it. */
static void test_origin_by_pid(void **state)
{
	struct abi_quark_fork f = { .parent = key(1, 5, 1),
				    .origin = key(2, 0, 7) };

	do_exec(10, key(2, 6, 1), "/older");
	do_exit(11, key(2, 6, 1), 0);
	do_exec(20, key(2, 15, 7), "/caller");
	f.head = head(ABI_QUARK_FORK, 30, key(3, 30, 7));
	assert_int_equal(apply(&f, sizeof(f)), 1);
	assert_string_equal(ev->process->exe, "/caller");
	assert_int_equal(ev->fork_key.pid, 2);
	assert_int_equal(ev->fork_key.start_boottime, 15);
	/* An unknown origin leaves all unknown. */
	f.head = head(ABI_QUARK_FORK, 30, key(4, 31, 7));
	f.origin = key(9, 0, 7);
	assert_int_equal(apply(&f, sizeof(f)), 1);
	assert_null(ev->process->exe);
	assert_int_equal(ev->fork_key.start_boottime, 0);
}

/* Each kind of record alone makes an entry. */
static void test_lost_before(void **state)
{
	assert_int_equal(do_exit(30, key(2, 20, 1), 256), 1);
	assert_int_equal(ev->process->exit_code, 1);
	assert_string_equal(ev->process->comm, "gone");
	assert_null(ev->process->exe);
	assert_int_equal(do_reap(30, key(3, 20, 1)), 1);
	assert_string_equal(ev->process->comm, "reaped");
	assert_int_equal(ev->process->flags, QUARK_F_EXIT);
	assert_int_equal(do_fork(40, key(4, 40, 1), key(99, 1, 1)), 1);
	assert_null(ev->process->exe);
	assert_int_equal(ev->process->proc_ppid, 99);
}

static void test_late_exec(void **state)
{
	do_exec(10, key(2, 5, 2), "/second");
	assert_int_equal(do_exec(9, key(2, 5, 1), "/first"), 1);
	assert_string_equal(ev->process->exe, "/first");
	assert_int_equal(ev->process->key.exec_id, 1);
	assert_string_equal(quark_cache_newest(&qq.cache, 2)->rec->p.exe,
			    "/second");
}

/* Records older than the scan's read of a process are in what it read. */
static void test_scan(void **state)
{
	struct abi_key k = key(2, 20, 3);

	assert_int_equal(do_scan(100, k), 0);
	assert_int_equal(do_fork(20, k, key(1, 5, 1)), 0);
	assert_int_equal(do_exec(99, k, "/early"), 0);
	assert_string_equal(quark_cache_newest(&qq.cache, 2)->rec->p.comm,
			    "scanned");
	assert_int_equal(do_exec(101, key(2, 20, 4), "/later"), 1);
	assert_int_equal(ev->process->flags, QUARK_F_PROC);
}

static void test_lying_lengths(void **state)
{
	struct abi_quark_image im = { .exe_len = 1, .env_len = UINT32_MAX };

	im.head = head(ABI_QUARK_EXEC, 10, key(2, 5, 1));
	assert_int_equal(apply(&im, sizeof(im)), 0);
	assert_null(quark_cache_newest(&qq.cache, 2));
}

static void test_overdue(void **state)
{
	struct abi_key k = key(2, 20, 1), other = key(3, 21, 1);
	struct quark_proc *p;

	do_exit(30, k, 0);
	do_exit(31, other, 0);
	do_reap(32, other);
	assert_null(quark_cache_overdue(&qq.cache, 29 + GRACE));
	p = quark_cache_overdue(&qq.cache, 30 + GRACE);
	assert_int_equal(p->rec->p.pid, 2);
	/* A zombie is looked up a grace time later and not collected. */
	quark_cache_exit(&qq.cache, p, 30 + GRACE);
	assert_null(quark_cache_overdue(&qq.cache, 40 + GRACE));
	quark_cache_collect(&qq.cache, 5000 * GRACE);
	assert_ptr_equal(quark_cache_find(&qq.cache, &k), p);
	assert_null(quark_cache_find(&qq.cache, &other));
	assert_ptr_equal(quark_cache_overdue(&qq.cache, 30 + 2 * GRACE), p);
	/* Lookups do not find it after the grace time. */
	assert_true(quark_proc_visible(&qq.cache, p, 29 + GRACE));
	assert_false(quark_proc_visible(&qq.cache, p, 30 + GRACE));
}

static int do_inferred(uint64_t time, struct abi_key k)
{
	struct abi_quark_reap r = { 0 };

	r.head = head(ABI_QUARK_REAP, time, k);
	r.head.flags = QUARK_RAW_INFERRED;
	return apply(&r, sizeof(r));
}

/* Its exit was lost and a scan missed it, before the kernel freed it. */
static void test_reap_of_one_that_vanished(void **state)
{
	struct abi_key k = key(3, 20, 1);

	do_fork(20, k, key(2, 20, 10));
	assert_int_equal(
		quark_apply_vanished(&qq, quark_cache_find(&qq.cache, &k)), 0);
	assert_int_equal(do_reap(50, k), 1);
	assert_int_equal(ev->events, QUARK_EV_REAP);
	assert_int_equal(ev->process->exit_boottime, 50);
	assert_int_equal(do_reap(51, k), 0);
}

/* The record of a reap that was inferred long ago makes no second event. */
static void test_late_reap(void **state)
{
	struct abi_key k = key(2, 20, 1), other = key(3, 21, 1);

	do_exit(30, k, 0);
	assert_int_equal(do_inferred(40, k), 1);
	assert_int_equal(ev->cpu_exact, 0);
	do_exit(30, other, 0);
	assert_int_equal(do_inferred(40, other), 1);
	quark_cache_collect(&qq.cache, 40 + 1000 * GRACE);
	assert_int_equal(do_reap(41 + 1000 * GRACE, k), 0);
	/* Now it is removed as any other; one without a record is removed later. */
	quark_cache_collect(&qq.cache, 41 + 1001 * GRACE);
	assert_null(quark_cache_find(&qq.cache, &k));
	assert_non_null(quark_cache_find(&qq.cache, &other));
	quark_cache_collect(&qq.cache, 40 + 60 * CLOCK_NSEC_PER_SEC);
	assert_null(quark_cache_find(&qq.cache, &other));
	assert_true(TAILQ_EMPTY(&qq.cache.all));
}

#define NESTED 20000

/* Pids from 3 on, for 2 is kthreadd's. */
static uint32_t parent_pid(uint32_t pid)
{
	return pid > 3 ? pid - 1 : pid == 3;
}

/* Each is the child of the next record's process, at any depth. */
static void test_deep_scan(void **state)
{
	const struct quark_process *p;
	struct quark_record *told;
	struct abi_key k;
	uint32_t pid;

	qq.attr.flags |= QQ_ENTRY_LEADER;
	for (pid = NESTED; pid > 0; pid = parent_pid(pid)) {
		uint32_t up = parent_pid(pid);
		struct abi_quark_image im = { 0 };

		im.head = head(ABI_QUARK_TASK, 100, key(pid, pid, 1));
		im.head.flags = ABI_QUARK_KTHREAD;
		im.parent = key(up, up, 1);
		assert_int_equal(
			quark_apply_scanned(&qq, &im, sizeof(im), &none), 0);
	}
	k = key(1, 1, 1);
	quark_cache_find(&qq.cache, &k)->rec->p.poison_tag = 6;
	/* A record of it that is held does not change. */
	told = quark_record_get(quark_cache_newest(&qq.cache, 9)->rec);
	quark_apply_scan_end(&qq);
	p = &quark_cache_newest(&qq.cache, NESTED)->rec->p;
	assert_int_equal(p->poison_tag, 6);
	assert_int_equal(p->proc_entry_leader_type, QUARK_ELT_INIT);
	assert_int_equal(p->proc_entry_leader, 1);
	assert_int_equal(told->p.poison_tag, 0);
	quark_record_put(told);
}

/* A host may hide its first process. */
static void test_unknown_init(void **state)
{
	struct abi_quark_image im = { 0 };
	const struct quark_process *p;

	qq.attr.flags |= QQ_ENTRY_LEADER;
	im.head = head(ABI_QUARK_TASK, 100, key(7, 7, 1));
	im.head.flags = ABI_QUARK_KTHREAD; /* nothing of /proc */
	im.parent = key(1, 1, 1);
	assert_int_equal(quark_apply_scanned(&qq, &im, sizeof(im), &none), 0);
	im.head.key = key(8, 8, 1);
	im.parent = key(6, 6, 1);
	assert_int_equal(quark_apply_scanned(&qq, &im, sizeof(im), &none), 0);
	quark_apply_scan_end(&qq);
	p = &quark_cache_newest(&qq.cache, 7)->rec->p;
	assert_int_equal(p->proc_entry_leader_type, QUARK_ELT_INIT);
	assert_int_equal(p->proc_entry_leader, 1);
	p = &quark_cache_newest(&qq.cache, 8)->rec->p;
	assert_int_equal(p->proc_entry_leader_type, QUARK_ELT_UNKNOWN);
}

/* A cycle: each is the other's parent. */
static void test_ring_scan(void **state)
{
	struct abi_key a = key(2, 20, 1), b = key(3, 30, 1);

	do_fork(20, a, b);
	do_fork(30, b, a);
	quark_cache_find(&qq.cache, &a)->rec->p.poison_tag = 1;
	quark_apply_scan_end(&qq);
	assert_int_equal(quark_cache_find(&qq.cache, &b)->rec->p.poison_tag, 1);
}

static int do_move(uint64_t time, struct abi_key k, const char *cgroup)
{
	struct {
		struct abi_quark_id_change c;
		char text[64];
	} r = { .c.cgroup_len = strlen(cgroup) };

	r.c.head = head(ABI_QUARK_ID_CHANGE, time, k);
	memcpy(r.text, cgroup, strlen(cgroup));
	return apply(&r, sizeof(r.c) + strlen(cgroup));
}

/* A move has a record for each hierarchy; only one path counts. */
static void test_moved(void **state)
{
	struct abi_key k = key(2, 20, 1);

	assert_int_equal(do_exec(10, k, "/bin/x"), 1);
	assert_int_equal(do_move(20, k, "/lxc/web"), 1);
	assert_int_equal(ev->events, QUARK_EV_ID_CHANGE);
	assert_int_equal(ev->id_change, QUARK_ID_CHANGE_CGROUP);
	assert_string_equal(ev->process->cgroup, "/lxc/web");
	assert_string_equal(ev->process->exe, "/bin/x");
	assert_int_equal(do_move(21, k, "/lxc/web"), 0);
	assert_int_equal(do_move(22, k, "/lxc/we"), 1);
	assert_string_equal(ev->process->cgroup, "/lxc/we");
	/* the published interface has no such event */
	qq.attr.flags &= ~(QQ_NO_AGG | QQ_OWN_EVENTS);
	assert_int_equal(do_move(23, k, "/lxc/web"), 0);
	assert_string_equal(quark_cache_newest(&qq.cache, 2)->rec->p.cgroup,
			    "/lxc/web");
}

/* As in wait4(2): their sum is the scheduler's. */
static void test_cpu_parts(void **state)
{
	static const struct {
		uint64_t cpu, utime, stime, user, system;
	} v[] = {
		{ 900, 0, 0, 900, 0 },
		{ 900, 0, 4, 0, 900 },
		{ 900, 4, 0, 900, 0 },
		{ 900, 4, 8, 300, 600 },
		{ 1ULL << 62, 1ULL << 60, 1ULL << 60, 1ULL << 61, 1ULL << 61 },
		{ 0, 0, 0, 0, 0 },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(v); i++) {
		struct abi_key k = key(10 + i, 20, 1);
		struct abi_quark_reap r = { .cpu_time = v[i].cpu,
					    .utime = v[i].utime,
					    .stime = v[i].stime };

		do_exec(10, k, "/bin/x");
		do_exit(20, k, 0);
		r.head = head(ABI_QUARK_REAP, 30, k);
		assert_int_equal(apply(&r, sizeof(r)), 1);
		assert_int_equal(ev->cpu_time, v[i].cpu);
		assert_int_equal(ev->utime, v[i].user);
		assert_int_equal(ev->stime, v[i].system);
	}
}

/* The exit has ids and session that changed without an event. */
static void test_last_ids(void **state)
{
	struct abi_key k = key(2, 20, 1);
	struct abi_quark_exit e = { .uid = 7, .gid = 8, .pgid = 2, .sid = 2 };

	do_exec(10, k, "/bin/x");
	e.head = head(ABI_QUARK_EXIT, 20, k);
	e.head.flags = ABI_QUARK_GROUP_DEAD | ABI_QUARK_LAST_IDS;
	assert_int_equal(apply(&e, sizeof(e)), 1);
	assert_int_equal(ev->process->proc_uid, 7);
	assert_int_equal(ev->process->proc_gid, 8);
	assert_int_equal(ev->process->proc_pgid, 2);
	assert_int_equal(ev->process->proc_sid, 2);
	/* A record without them leaves them as they were. */
	k = key(3, 30, 1);
	do_exec(10, k, "/bin/x");
	e.head = head(ABI_QUARK_EXIT, 20, k);
	e.head.flags = ABI_QUARK_GROUP_DEAD;
	assert_int_equal(apply(&e, sizeof(e)), 1);
	assert_int_equal(ev->process->proc_uid, 0);
}

static void test_gap(void **state)
{
	struct quark_raw_gap g = { .to = 9, .lost = 4, .kinds = 2 };
	struct quark_raw *raw =
		quark_raw_new(qq.vault, QUARK_RAW_GAP, 5, &g, sizeof(g));

	assert_int_equal(quark_apply(&qq, raw), 1);
	assert_int_equal(ev->events, QUARK_EV_GAP);
	assert_null(ev->process);
	assert_int_equal(ev->gap_from, 5);
	assert_int_equal(ev->gap_to, 9);
	assert_int_equal(ev->gap_lost, 4);
	vault_give(raw);
}

static void test_many(void **state)
{
	unsigned int seed = 7;
	struct abi_key k;
	int i;

	/* Anything in any order: nothing leaks, nothing is touched twice. */
	for (i = 0; i < 20000; i++) {
		k = key(rand_r(&seed) % 50, rand_r(&seed) % 3,
			rand_r(&seed) % 3);
		switch (rand_r(&seed) % 6) {
		case 0:
			do_fork(i, k, key(rand_r(&seed) % 50, 1, 1));
			break;
		case 1:
			do_exec(i, k, "/x");
			break;
		case 2:
			do_exit(i, k, 0);
			break;
		case 3:
			do_reap(i, k);
			break;
		case 4:
			do_scan(i, k);
			break;
		default:
			quark_cache_collect(&qq.cache, i);
		}
	}
	assert_true(qq.cache.collections > 0);
}

/* Which records make the proc_ members valid: an exit alone does not. */
static void test_valid(void **state)
{
	do_exit(30, key(2, 20, 1), 0);
	assert_int_equal(ev->process->flags, QUARK_F_EXIT);
	do_fork(40, key(3, 40, 1), key(1, 5, 1));
	assert_int_equal(ev->process->flags, QUARK_F_PROC);
	do_exec(41, key(4, 30, 2), "/exe");
	assert_int_equal(ev->process->flags, QUARK_F_PROC);
	do_exit(42, key(4, 30, 2), 0);
	assert_int_equal(ev->process->flags, QUARK_F_PROC | QUARK_F_EXIT);
	do_scan(50, key(5, 20, 3));
	assert_int_equal(quark_cache_newest(&qq.cache, 5)->rec->p.flags,
			 QUARK_F_PROC);
}

/* --- parents ----------------------------------------------------------------- */

/* A real process that sleeps, with its start. */
static pid_t sleeper(uint64_t *start)
{
	struct procfs_stat st;
	pid_t pid = fork();

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	assert_true(procfs_stat(pid, &st));
	assert_int_equal(st.ppid, getpid());
	*start = st.start + 5;
	return pid;
}

static uint32_t ppid_of(pid_t pid)
{
	return quark_cache_newest(&qq.cache, pid)->rec->p.proc_ppid;
}

/*
 * By its records the child's parent is 2, which ends; by /proc it is this process,
 * as if it had become a subreaper's.
 */
static void test_reparented(void **state)
{
	struct abi_key old = key(2, 10, 1), heir = key(getpid(), 7, 1);
	struct quark_proc *gone;
	uint64_t start;
	pid_t kid = sleeper(&start);

	do_exec(20, old, "/old");
	do_exec(21, heir, "/heir");
	do_fork(22, key(0x7fffffff, 22, 1), old); /* ended, without a record */
	do_fork(23, key(kid, start, 1), old);
	assert_int_equal(ppid_of(kid), 2);
	do_exit(30, old, 0);
	assert_int_equal(ppid_of(kid), getpid());
	assert_int_equal(ppid_of(0x7fffffff), getpid());
	/* parent_key stays what it was at the fork */
	assert_int_equal(
		quark_cache_newest(&qq.cache, kid)->rec->p.parent_key.pid, 2);
	/* An ended process has no children and may be removed before them. */
	gone = quark_cache_newest(&qq.cache, 2);
	assert_true(LIST_EMPTY(&gone->kids));
	do_reap(31, old);
	quark_cache_collect(&qq.cache, 31 + 2 * GRACE);
	assert_null(quark_cache_newest(&qq.cache, 2));
	quark_cache_remove(&qq.cache, quark_cache_newest(&qq.cache, getpid()));
	assert_null(quark_cache_newest(&qq.cache, kid)->parent);
	kill(kid, SIGKILL);
	waitpid(kid, NULL, 0);
}

/* A process's exit does not visit its zombie children. */
static void test_reparented_zombies(void **state)
{
	struct abi_key old = key(2, 10, 1);
	struct quark_proc *p, *kid;
	uint32_t i;

	do_exec(20, old, "/old");
	p = quark_cache_newest(&qq.cache, 2);
	for (i = 0; i < 100; i++) {
		do_fork(21, key(100 + i, 21, 1), old);
		if (i)
			do_exit(22, key(100 + i, 21, 1), 0);
	}
	kid = LIST_FIRST(&p->kids);
	assert_ptr_equal(kid, quark_cache_newest(&qq.cache, 100));
	assert_null(LIST_NEXT(kid, kid_link));
	assert_int_equal(ppid_of(100), 2);
	do_exit(30, old, 0);
}

/* The kernel reparents them after the exit's record: the reap finds it. */
static void test_reparented_late(void **state)
{
	struct abi_key old = key(getpid(), 10, 1);
	struct quark_proc *p;
	uint64_t start;
	pid_t kid = sleeper(&start);

	do_exec(20, old, "/old");
	do_fork(23, key(kid, start, 1), old);
	do_exit(30, old, 0);
	p = quark_cache_newest(&qq.cache, kid);
	assert_int_equal(p->rec->p.proc_ppid, getpid());
	assert_ptr_equal(p->parent, quark_cache_newest(&qq.cache, getpid()));
	kill(kid, SIGKILL);
	waitpid(kid, NULL, 0);
	do_reap(31, old);
	assert_int_equal(p->rec->p.proc_ppid, getpid());
}

/* --- memory of ended processes ------------------------------------------------- */

static void die_with(uint32_t pid, uint64_t time)
{
	do_exec(time, key(pid, time, 1), "/a/path/of/some/length");
	do_exit(time + 1, key(pid, time, 1), 0);
	do_reap(time + 2, key(pid, time, 1));
}

static void test_dead_bytes(void **state)
{
	size_t one, n = 0, i;
	struct quark_proc *p;

	die_with(100, 10);
	one = qq.cache.dead_bytes;
	assert_true(one >
		    sizeof(struct quark_proc) + sizeof(struct quark_record));
	qq.cache.dead_max = 10 * one;
	for (i = 0; i < 100; i++)
		die_with(200 + i, 20 + i);
	assert_true(qq.cache.dead_bytes <= 10 * one);
	TAILQ_FOREACH(p, &qq.cache.all, link)
		n++;
	assert_int_equal(n, 10);
	assert_int_equal(qq.cache.evictions, 91);
	/* The oldest were removed. */
	assert_null(quark_cache_newest(&qq.cache, 100));
	assert_non_null(quark_cache_newest(&qq.cache, 299));
	/* Running processes do not count; one that is too large alone stays. */
	do_exec(500, key(7, 1, 1), "/lives");
	qq.cache.dead_max = 1;
	die_with(400, 501);
	assert_non_null(quark_cache_newest(&qq.cache, 400));
	assert_non_null(quark_cache_newest(&qq.cache, 7));
	assert_null(quark_cache_newest(&qq.cache, 299));
	quark_cache_collect(&qq.cache, 10000);
	assert_int_equal(qq.cache.dead_bytes, 0);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_life),
		T(test_immutable),
		T(test_pid_reuse),
		T(test_two_last_threads),
		T(test_two_last_threads_told),
		T(test_origin_by_pid),
		T(test_lost_before),
		T(test_late_exec),
		T(test_scan),
		T(test_lying_lengths),
		T(test_overdue),
		T(test_gap),
		T(test_many),
		T(test_reap_of_one_that_vanished),
		T(test_late_reap),
		T(test_deep_scan),
		T(test_ring_scan),
		T(test_unknown_init),
		T(test_moved),
		T(test_cpu_parts),
		T(test_last_ids),
		T(test_valid),
		T(test_reparented),
		T(test_reparented_zombies),
		T(test_reparented_late),
		T(test_dead_bytes),
	};
#undef T

	return cmocka_run_group_tests(tests, NULL, NULL);
}
