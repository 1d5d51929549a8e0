// SPDX-License-Identifier: Apache-2.0
/*
 * libquark: scans of all processes, with a fake backend that shows only some of
 * them. The others are real: this process and its children, in /proc.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "processmanager/quark/error.c"
#include "processmanager/quark/scan.c"
#include "tests/unit/quark/test_quark_apply.h"

/* What the kernel shows in a scan. */
struct shown {
	struct abi_quark_image im;
	char text[128];
};

static struct shown shown[8];
static size_t nshown;
static void (*during)(void); /* it */

static int fake_scan(void *b, ring_fn fn, void *arg)
{
	struct shown s;
	size_t i;
	int err = 0;

	if (during)
		during();
	for (i = 0; !err && i < nshown; i++) {
		s = shown[i];
		s.im.head.time = clock_boottime_ns();
		err = fn(arg, &s,
			 sizeof(s.im) + s.im.exe_len + s.im.cwd_len +
				 s.im.cgroup_len);
	}
	return err;
}

static const struct quark_backend fake = { .name = "fake", .scan = fake_scan };

static int setup(void **state)
{
	memset(shown, 0, sizeof(shown));
	nshown = 0;
	during = NULL;
	return qq_setup(&fake, 1000 * CLOCK_NSEC_PER_SEC);
}

static uint64_t tick(void)
{
	return CLOCK_NSEC_PER_SEC / sysconf(_SC_CLK_TCK);
}

/* As in /proc, with the nanoseconds that it lacks. */
static uint64_t start_of(pid_t pid)
{
	struct strbuf sb = STRBUF_INIT;
	uint64_t start;

	assert_true(quark_procfs_task(pid, &sb));
	start = ((struct abi_quark_image *)sb.data)->head.key.start_boottime;
	strbuf_fini(&sb);
	return start + 123;
}

static struct shown *show(pid_t pid, uint64_t start, uint64_t exec_id)
{
	struct shown *s = &shown[nshown++];

	s->im.head.kind = ABI_QUARK_TASK;
	s->im.head.key = (struct abi_key){ start, exec_id, pid, 0 };
	s->im.head.tid = pid;
	return s;
}

/* Sleeps until it is killed. */
static pid_t sleeper(void)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;)
		pause();
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static struct quark_proc *cached(pid_t pid)
{
	return quark_cache_newest(&qq.cache, pid);
}

/* Its key is the parent key of its child, the rest is from /proc. */
static void who_is_not_shown_is_read_from_proc(void **state)
{
	struct strbuf sb = STRBUF_INIT;
	const struct quark_process *p;
	char comm[17] = "";
	struct shown *s;
	pid_t child;

	usleep(3 * tick() / 1000); /* older than the scan, by ticks */
	child = sleeper();
	s = show(child, start_of(child), 5);
	s->im.parent = (struct abi_key){ start_of(getpid()), 5, getpid(), 0 };
	assert_int_equal(quark_scan_first(&qq), 0);
	assert_non_null(cached(getpid()));
	p = &cached(getpid())->rec->p;
	assert_int_equal(p->key.start_boottime, start_of(getpid()));
	assert_int_equal(p->key.exec_id, 5);
	prctl(PR_GET_NAME, comm);
	assert_string_equal(p->comm, comm);
	assert_non_null(p->cmdline);
	assert_string_equal(p->cmdline, program_invocation_name);
	assert_int_equal(p->proc_ppid, getppid());
	assert_int_equal(p->proc_uid, getuid());
	assert_int_equal(p->proc_egid, getegid());
	assert_int_equal(p->proc_pgid, getpgrp());
	assert_int_equal(p->proc_sid, getsid(0));
	assert_true(p->proc_mnt_inonum);
	quark_procfs_link(getpid(), "exe", &sb);
	assert_string_equal(p->exe, sb.data);
	strbuf_reset(&sb);
	quark_procfs_link(getpid(), "cwd", &sb);
	assert_string_equal(p->cwd, sb.data);
	strbuf_fini(&sb);
	assert_true(p->exe_ident.ino);
	assert_true(p->flags & QUARK_F_PROC);
	assert_true(p->x_flags & QUARK_X_HIDDEN);
	assert_false(cached(child)->rec->p.x_flags & QUARK_X_HIDDEN);
	/* A process whose exact start is unknown has no entry. */
	assert_null(cached(getppid()));
	end(child);
}

/* Its fork is in the ring: it must not get a second entry. */
static pid_t newborn;

static void give_birth(void)
{
	newborn = sleeper();
	show(newborn + 1, 1, 1)->im.parent =
		(struct abi_key){ start_of(newborn), 1, newborn, 0 };
}

static void who_is_born_during_the_scan_is_not_hidden(void **state)
{
	during = give_birth;
	assert_int_equal(quark_scan_first(&qq), 0);
	assert_null(cached(newborn));
	end(newborn);
}

/* A rescan does not presume it dead. */
static void the_hidden_stay(void **state)
{
	pid_t child = sleeper();
	struct shown *s;

	usleep(3 * tick() / 1000);
	s = show(child, start_of(child), 5);
	s->im.parent = (struct abi_key){ start_of(getpid()), 5, getpid(), 0 };
	assert_int_equal(quark_scan_first(&qq), 0);
	nshown = 0; /* and its child is hidden now */
	end(child);
	qq.gap_to = clock_boottime_ns();
	qq.watermark = clock_boottime_ns();
	quark_scan_again(&qq);
	assert_true(qq.scanned);
	qq.watermark = clock_boottime_ns();
	quark_scan_again(&qq);
	assert_int_equal(qq.stats.repairs, 1);
	assert_false(cached(getpid())->exited);
	assert_true(cached(child)->exited);
}

/* --- after a loss ----------------------------------------------------------- */

static void put_text(struct shown *s, const char *exe, const char *cwd,
		     const char *cgroup)
{
	s->im.exe_len = strlen(exe);
	s->im.cwd_len = strlen(cwd);
	s->im.cgroup_len = strlen(cgroup);
	strcpy(stpcpy(stpcpy(s->text, exe), cwd), cgroup);
}

/* It is not in /proc, only in the fake backend. */
static struct shown *show_known(uint64_t exec_id)
{
	struct shown *s = show(0x7fffffff, 7, exec_id);

	strcpy(s->im.comm, "first");
	s->im.ids.uid = 1;
	s->im.ids.sid = 2;
	put_text(s, "/exe", "/cwd", "/cgroup");
	return s;
}

static const struct quark_process *known(void)
{
	return &cached(0x7fffffff)->rec->p;
}

static void lose_from(uint64_t gap)
{
	qq.gap_from = gap;
	qq.gap_to = clock_boottime_ns();
	qq.watermark = clock_boottime_ns();
	qq.last_scan = 0;
	quark_scan_again(&qq);
	assert_true(qq.scanned);
}

static void lose(void)
{
	lose_from(clock_boottime_ns());
}

/* All records of the ring are applied now. */
static void settle(void)
{
	qq.watermark = clock_boottime_ns();
	quark_scan_again(&qq);
	assert_false(qq.scanned);
	assert_null(qq.shown.data);
}

static void rename_known(uint64_t time, const char *name)
{
	struct abi_quark_rename r = { 0 };
	struct quark_raw *raw;

	r.head.kind = ABI_QUARK_RENAME;
	r.head.time = time;
	r.head.key = shown[0].im.head.key;
	r.head.tid = r.head.key.tgid;
	strcpy(r.comm, name);
	raw = quark_raw_new(qq.vault, ABI_QUARK_RENAME, time, &r, sizeof(r));
	quark_apply(&qq, raw);
	quark_record_put(qq.event_rec);
	qq.event_rec = NULL;
	vault_give(raw);
}

static void what_changed_in_a_gap_is_known_after_it(void **state)
{
	const struct quark_process *p;
	struct quark_record *before;
	struct shown *s = show_known(3);

	assert_int_equal(quark_scan_first(&qq), 0);
	assert_string_equal(known()->comm, "first");
	strcpy(s->im.comm, "second");
	s->im.ids.uid = 11;
	s->im.ids.sid = 12;
	s->im.parent.tgid = 13;
	s->im.ino = 14;
	put_text(s, "/exe2", "/cwd2", "/cgroup2");
	lose();
	/* not before all older records are applied */
	assert_string_equal(known()->comm, "first");
	before = quark_record_get(cached(0x7fffffff)->rec);
	settle();
	p = known();
	assert_string_equal(p->comm, "second");
	assert_int_equal(p->proc_uid, 11);
	assert_int_equal(p->proc_sid, 12);
	assert_int_equal(p->proc_ppid, 13);
	assert_int_equal(p->exe_ident.ino, 14);
	assert_string_equal(p->exe, "/exe2");
	assert_string_equal(p->cwd, "/cwd2");
	assert_string_equal(p->cgroup, "/cgroup2");
	/* an older record that is held does not change */
	assert_string_equal(before->p.comm, "first");
	assert_string_equal(before->p.exe, "/exe");
	quark_record_put(before);
}

/* Nothing has changed: no record is copied. */
static void what_is_as_it_was_costs_nothing(void **state)
{
	struct quark_record *rec;

	show_known(3);
	assert_int_equal(quark_scan_first(&qq), 0);
	rec = quark_record_get(cached(0x7fffffff)->rec);
	lose();
	settle();
	assert_ptr_equal(cached(0x7fffffff)->rec, rec);
	quark_record_put(rec);
}

/* A record after the scan is newer than what the scan read. */
static void a_record_behind_the_scan_stands(void **state)
{
	struct shown *s = show_known(3);

	assert_int_equal(quark_scan_first(&qq), 0);
	strcpy(s->im.comm, "second");
	s->im.ids.uid = 11;
	lose();
	rename_known(clock_boottime_ns(), "third");
	settle();
	assert_string_equal(known()->comm, "third");
	assert_int_equal(known()->proc_uid, 11);
	/* an older one is not */
	strcpy(s->im.comm, "fifth");
	lose();
	rename_known(qq.last_scan - 1, "fourth");
	assert_string_equal(known()->comm, "fourth");
	settle();
	assert_string_equal(known()->comm, "fifth");
}

/* The next image has a record of its own. */
static void an_exec_behind_the_scan_stands(void **state)
{
	struct shown *s = show_known(3);
	struct quark_record *rec;

	assert_int_equal(quark_scan_first(&qq), 0);
	strcpy(s->im.comm, "second");
	lose();
	rec = quark_proc_edit(cached(0x7fffffff));
	rec->p.key.exec_id = 4;
	settle();
	assert_string_equal(known()->comm, "first");
}

/*
 * A process forked after its exec was lost: the child's record has what its parent
 * was before, with the same generation.
 */
static void who_was_forked_in_a_gap_has_its_own_arguments(void **state)
{
	struct abi_quark_fork f = { 0 };
	struct quark_raw *raw;
	struct shown *s;
	pid_t child = sleeper();
	uint64_t start = start_of(child);

	show_known(3);
	assert_int_equal(quark_scan_first(&qq), 0);
	s = show(child, start, 4);
	put_text(s, "/exe", "/cwd", "/cgroup");
	f.head = (struct abi_quark_head){ .kind = ABI_QUARK_FORK,
					  .time = clock_boottime_ns(),
					  .key = s->im.head.key,
					  .tid = child };
	f.origin = f.parent = shown[0].im.head.key;
	raw = quark_raw_new(qq.vault, ABI_QUARK_FORK, f.head.time, &f,
			    sizeof(f));
	assert_int_equal(quark_apply(&qq, raw), 1);
	vault_give(raw);
	assert_null(cached(child)->rec->p.cmdline);
	lose_from(f.head.time - 1);
	settle();
	assert_string_equal(cached(child)->rec->p.cmdline,
			    program_invocation_name);
	end(child);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(who_is_not_shown_is_read_from_proc),
		T(who_is_born_during_the_scan_is_not_hidden),
		T(the_hidden_stay),
		T(what_changed_in_a_gap_is_known_after_it),
		T(what_is_as_it_was_costs_nothing),
		T(a_record_behind_the_scan_stands),
		T(an_exec_behind_the_scan_stands),
		T(who_was_forked_in_a_gap_has_its_own_arguments),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
