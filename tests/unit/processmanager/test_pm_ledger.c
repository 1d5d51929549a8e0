// SPDX-License-Identifier: Apache-2.0
/*
 * The ledger: what is known of each process, from its first event until it is
 * reported and forgotten, and what a rescan corrects.
 */
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/processmanager/test_pm_fake.h"

#define SEC CLOCK_NSEC_PER_SEC

static struct pm_process_info ended[16];
static size_t nended;

static void on_ended(void *arg, const struct pm_image *last)
{
	assert_true(nended < ARRAY_SIZE(ended));
	pm_process_info(last, &ended[nended++]);
}

static int setup_ledger(void **state)
{
	struct pm_opts opts = { .symbolizer = &fake,
				.want_maps = on_want,
				.ended = on_ended };

	memset(&fake, 0, sizeof(fake));
	nwants = nended = 0;
	return pm_new(&pm, &opts);
}

static struct pm_image *image_of(uint32_t pid, uint64_t id)
{
	struct abi_key key = { born(pid), id, pid, 0 };

	return pm_image_get(pm, &key, 0);
}

static struct pm_process_info process(uint32_t pid, uint64_t id)
{
	struct pm_process_info info;

	pm_process_info(image_of(pid, id), &info);
	return info;
}

static void end_event(uint32_t pid, uint64_t id, uint64_t time, uint64_t kind,
		      int status, uint64_t cpu, bool exact)
{
	struct quark_process qp = qp_of(pid, id);
	struct quark_event ev = {
		.events = kind,
		.process = &qp,
		.boottime = time,
		.group_dead = kind == QUARK_EV_EXIT,
		.cpu_time = cpu,
		.utime = cpu / 4,
		.stime = cpu - cpu / 4,
		.cpu_exact = exact,
		.maxrss = kind == QUARK_EV_EXIT ? 4096 * 100 : 0,
		.minflt = 7,
		.majflt = 2,
	};

	qp.wait_status = status;
	assert_int_equal(pm_event(pm, &ev), 0);
}

static void an_orphan_has_both_parents(void **state)
{
	struct quark_process qp = qp_of(9, 0);
	struct pm_process_info p;
	char starter[40];

	snprintf(starter, sizeof(starter), "5-%lx", (unsigned long)born(5));
	do_walk(5, 1, "/bin/sh", 6000);
	do_fork(5, 0, 9, 9000);
	p = process(9, 0);
	assert_int_equal(p.ppid, 5);
	assert_string_equal(p.parent_id, starter);
	end_event(5, 1, 9100, QUARK_EV_EXIT, 0, 10, false);
	qp.proc_ppid = 1;
	assert_int_equal(feed(QUARK_EV_EXIT, &qp, 9200, 0), 0);
	p = process(9, 0);
	assert_int_equal(p.ppid, 1);
	assert_string_equal(p.parent_id, starter);
}

static void a_life_has_one_line(void **state)
{
	struct pm_process_info p;

	do_walk(5, 1, "/bin/sh", 6000);
	do_fork(5, 0, 9, 9000);
	do_exec(9, 1, 9100, "/bin/true");
	p = process(9, 1);
	assert_int_equal(p.pid, 9);
	assert_int_equal(p.ppid, 0); /* as the last event had it */
	assert_string_equal(p.process_id, "9-2328");
	assert_string_equal(p.parent_id, "5-1388");
	assert_int_equal(p.end, PM_ALIVE);
	assert_false(p.before);
	assert_true(process(5, 0).before);
	assert_int_equal(p.execs, 1);
	end_event(9, 1, 9200, QUARK_EV_EXIT, 3 << 8, 1000, false);
	p = process(9, 1);
	assert_int_equal(p.end, PM_EXITED);
	assert_int_equal(p.exit, 9200);
	assert_int_equal(WEXITSTATUS(p.wait_status), 3);
	assert_int_equal(p.cpu, PM_CPU_PROVISIONAL);
	assert_int_equal(p.cpu_ns, 1000);
	assert_int_equal(p.maxrss, 409600);
	end_event(9, 1, 9300, QUARK_EV_REAP, 3 << 8, 1500, true);
	p = process(9, 1);
	assert_int_equal(p.end, PM_REAPED);
	assert_int_equal(p.reap, 9300);
	assert_int_equal(p.cpu, PM_CPU_EXACT);
	assert_int_equal(p.cpu_ns, 1500);
	assert_int_equal(p.user_ns, 375);
	assert_int_equal(p.system_ns, 1125);
	assert_int_equal(p.maxrss, 409600); /* from the exit */
	/* reported once, when all its samples are done */
	pm_forget(pm, 9300);
	assert_int_equal(nended, 0);
	pm_forget(pm, 9301);
	assert_int_equal(nended, 1);
	assert_int_equal(ended[0].pid, 9);
	assert_int_equal(ended[0].cpu_ns, 1500);
	pm_forget(pm, 20 * SEC);
	assert_int_equal(nended, 1);
}

/* A process may have dropped its privileges without an event. */
static void the_exit_tells_who_it_was_last(void **state)
{
	struct quark_process qp = qp_of(9, 0);
	struct quark_event ev = { .events = QUARK_EV_EXIT,
				  .process = &qp,
				  .boottime = 9200,
				  .group_dead = 1 };
	struct pm_image_info info;

	do_fork(1, 0, 9, 9000);
	qp.proc_uid = 1000;
	qp.proc_gid = 100;
	qp.proc_sid = qp.proc_pgid = 9;
	assert_int_equal(pm_event(pm, &ev), 0);
	pm_image_info(image_of(9, 0), &info);
	assert_int_equal(info.uid, 1000);
	assert_int_equal(info.gid, 100);
	assert_int_equal(process(9, 0).sid, 9);
	assert_int_equal(process(9, 0).pgid, 9);
}

/* An inferred reap has no figures. */
static void an_inferred_reap_keeps_what_the_exit_said(void **state)
{
	struct pm_process_info p;

	do_fork(1, 0, 9, 9000);
	end_event(9, 0, 9200, QUARK_EV_EXIT, SIGKILL, 1000, false);
	end_event(9, 0, 9900, QUARK_EV_REAP, 0, 0, false);
	p = process(9, 0);
	assert_int_equal(p.end, PM_REAPED);
	assert_int_equal(p.cpu, PM_CPU_PROVISIONAL);
	assert_int_equal(p.cpu_ns, 1000);
	assert_int_equal(WTERMSIG(p.wait_status), SIGKILL);
}

static void samples_count_for_image_and_process(void **state)
{
	struct pm_image_info info;
	struct pm_image *old;

	do_fork(1, 0, 9, 9000);
	old = image_of(9, 0);
	pm_image_sampled(old);
	do_exec(9, 1, 9100, "/bin/true");
	pm_image_sampled(image_of(9, 1));
	pm_image_sampled(image_of(9, 1));
	pm_image_info(old, &info);
	assert_int_equal(info.samples, 1);
	assert_int_equal(info.begin, 9000);
	pm_image_info(image_of(9, 1), &info);
	assert_int_equal(info.samples, 2);
	assert_int_equal(info.begin, 9100);
	assert_int_equal(process(9, 1).samples, 3);
}

static void exec_as(uint32_t pid, uint64_t id, uint64_t time, const char *exe,
		    const char *cwd, uint32_t uid)
{
	struct quark_process qp = qp_of(pid, id);
	struct quark_event ev = { .events = QUARK_EV_EXEC,
				  .process = &qp,
				  .boottime = time };

	qp.exe = (char *)exe;
	qp.cmdline = (char *)exe;
	qp.cmdline_len = strlen(exe) + 1;
	qp.x_flags = uid == 7 ? QUARK_X_ARGS_CUT : 0;
	qp.cwd = (char *)cwd;
	qp.proc_uid = uid;
	snprintf(qp.comm, sizeof(qp.comm), "%s", strrchr(exe, '/') + 1);
	assert_int_equal(pm_event(pm, &ev), 0);
}

/* Earlier images are kept after their samples are done. */
static void a_process_has_all_its_images(void **state)
{
	struct pm_image_info v[PM_HISTORY_MAX];

	do_walk(5, 1, "/bin/sh", 6000);
	do_fork(5, 0, 9, 9000);
	pm_image_sampled(image_of(9, 0));
	exec_as(9, 1, 9100, "/bin/su", "/home", 7);
	pm_image_sampled(image_of(9, 1));
	pm_image_sampled(image_of(9, 1));
	pm_forget(pm, 9101); /* the first is forgotten, */
	exec_as(9, 2, 9200, "/bin/ls", "/", 0); /* the second is not */
	assert_int_equal(stats().images, 3);
	assert_int_equal(pm_image_history(image_of(9, 2), v, PM_HISTORY_MAX),
			 3);
	assert_string_equal(v[0].image_id, "9-2328-2");
	assert_false(v[0].args_cut);
	assert_true(v[1].args_cut);
	assert_string_equal(v[0].exe, "/bin/ls");
	assert_int_equal(v[0].begin, 9200);
	assert_string_equal(v[1].image_id, "9-2328-1");
	assert_int_equal(v[1].samples, 2);
	assert_string_equal(v[2].image_id, "9-2328-0");
	assert_string_equal(v[2].process_id, "9-2328");
	assert_string_equal(v[2].exe, "/bin/sh");
	assert_int_equal(v[2].begin, 9000);
	assert_int_equal(v[2].samples, 1);
	pm_forget(pm, 9201);
	assert_int_equal(stats().images, 2);
	assert_int_equal(pm_image_history(image_of(9, 2), v, PM_HISTORY_MAX),
			 3);
	assert_string_equal(v[1].image_id, "9-2328-1");
	assert_string_equal(v[1].exe, "/bin/su");
	assert_string_equal(v[1].cmdline, "/bin/su");
	assert_int_equal(v[1].cmdline_len, 8);
	assert_string_equal(v[1].comm, "su");
	assert_string_equal(v[1].cwd, "/home");
	assert_int_equal(v[1].uid, 7);
	assert_true(v[1].args_cut);
	assert_int_equal(v[1].samples, 2);
	assert_int_equal(v[1].serial, 0);
	/* as many as there is room for: the newest */
	assert_int_equal(pm_image_history(image_of(9, 2), v, 2), 2);
	assert_int_equal(v[1].key.exec_id, 1);
}

static void who_execs_without_end_is_remembered_in_part(void **state)
{
	struct pm_image_info v[2 * PM_HISTORY_MAX];
	uint64_t i;

	do_walk(9, 1, "/bin/sh", 9000);
	for (i = 1; i <= 100; i++) {
		exec_as(9, i, 9000 + i, "/bin/again", "/", i);
		pm_forget(pm, 9001 + i);
	}
	assert_int_equal(stats().images, 1);
	assert_int_equal(pm_image_history(image_of(9, 100), v, ARRAY_SIZE(v)),
			 PM_HISTORY_MAX);
	for (i = 0; i < PM_HISTORY_MAX; i++)
		assert_int_equal(v[i].uid, 100 - i);
	assert_int_equal(process(9, 100).execs, 100);
}

/* An event that was late makes an image between two others. */
static void images_stand_in_the_order_of_execs(void **state)
{
	struct pm_image_info v[PM_HISTORY_MAX];
	int i;

	do_walk(9, 1, "/bin/sh", 9000);
	exec_as(9, 2, 9200, "/bin/two", "/", 2);
	pm_forget(pm, 9201);
	exec_as(9, 1, 9100, "/bin/one", "/", 1);
	pm_forget(pm, 9300);
	assert_int_equal(stats().images, 1);
	assert_int_equal(pm_image_history(image_of(9, 2), v, PM_HISTORY_MAX),
			 3);
	for (i = 0; i < 3; i++)
		assert_int_equal(v[i].key.exec_id, 2 - i);
}

/* A late sample or exec event finds the history of its image. */
static void a_generation_that_comes_again_is_listed_once(void **state)
{
	struct pm_image_info v[PM_HISTORY_MAX];
	struct abi_key key = { born(9), 1, 9, 0 };
	int i, n;

	do_walk(9, 1, "/bin/sh", 9000);
	exec_as(9, 1, 9100, "/bin/one", "/one", 7);
	pm_image_sampled(image_of(9, 1));
	exec_as(9, 2, 9200, "/bin/two", "/", 2);
	pm_forget(pm, 9201);
	assert_int_equal(stats().images, 1);
	for (i = 0; i < 3; i++) {
		pm_image_sampled(pm_image_get(pm, &key, 9150));
		assert_false(pm_image_provisional(image_of(9, 1)));
		n = pm_image_history(image_of(9, 2), v, PM_HISTORY_MAX);
		assert_int_equal(n, 3); /* while it is there */
		assert_string_equal(v[1].exe, "/bin/one");
		pm_forget(pm, 9300 + i);
		assert_int_equal(stats().images, 1);
		n = pm_image_history(image_of(9, 2), v, PM_HISTORY_MAX);
		assert_int_equal(n, 3); /* and after */
	}
	assert_int_equal(v[1].key.exec_id, 1);
	assert_string_equal(v[1].exe, "/bin/one");
	assert_string_equal(v[1].cmdline, "/bin/one");
	assert_string_equal(v[1].cwd, "/one");
	assert_string_equal(v[1].comm, "one");
	assert_int_equal(v[1].uid, 7);
	assert_true(v[1].args_cut);
	assert_int_equal(v[1].begin, 9100);
	assert_int_equal(v[1].samples, 4);
	assert_int_equal(stats().provisional, 0);
	exec_as(9, 1, 9100, "/bin/one", "/one", 7);
	pm_forget(pm, 9400);
	n = pm_image_history(image_of(9, 2), v, PM_HISTORY_MAX);
	assert_int_equal(n, 3);
	assert_int_equal(v[1].samples, 4);
}

/* A zombie found at the start has its status without an exit event. */
static void a_zombie_of_the_walk_has_its_status(void **state)
{
	struct quark_process qp = qp_of(9, 0);

	qp.flags = QUARK_F_EXIT;
	qp.wait_status = 2 << 8;
	assert_int_equal(pm_scan_process(pm, &qp, 10000), 0);
	assert_int_equal(process(9, 0).end, PM_EXITED);
	assert_int_equal(WEXITSTATUS(process(9, 0).wait_status), 2);
}

static void a_later_walk_finds_and_misses(void **state)
{
	struct quark_process qp;

	do_walk(5, 1, "/bin/sh", 6000);
	do_walk(6, 1, "/bin/ls", 6500);
	do_walk(4, 1, "/bin/cp", 6500);
	do_walk(3, 1, "/bin/mv", 6500);
	do_walk(2, 1, "/bin/rm", 6500);
	do_fork(5, 0, 7, 7001);
	pm_rescan_begin(pm, 8000);
	do_walk(5, 1, "/bin/sh", 8000);
	do_walk(8, 5, "/bin/new", 8100); /* its fork was dropped */
	qp = qp_of(7, 1); /* its exec was dropped */
	qp.exe = (char *)"/bin/other";
	assert_int_equal(pm_scan_process(pm, &qp, 8100), 0);
	do_fork(5, 0, 9, 9000); /* younger than the scan */
	qp = qp_of(2, 0); /* its new name and session were dropped */
	strcpy(qp.comm, "renamed");
	qp.proc_sid = 2;
	assert_int_equal(pm_scan_process(pm, &qp, 8100), 0);
	/* libquark knows that this one has ended, without an event */
	qp = qp_of(4, 0);
	qp.flags = QUARK_F_EXIT;
	qp.exit_boottime = 7500;
	assert_int_equal(pm_scan_process(pm, &qp, 8100), 0);
	/* this one ends just after the scan: its event will come */
	qp = qp_of(3, 0);
	qp.flags = QUARK_F_EXIT;
	qp.exit_boottime = 8200;
	assert_int_equal(pm_scan_process(pm, &qp, 8100), 0);
	pm_rescan_end(pm);
	assert_int_equal(process(4, 0).end, PM_VANISHED);
	assert_int_equal(process(3, 0).end, PM_ALIVE);
	assert_int_equal(stats().found, 2);
	assert_int_equal(stats().vanished, 2);
	assert_int_equal(stats().scanned, 5);
	assert_string_equal(info_at(2, 0, 9500).comm, "renamed");
	assert_int_equal(process(2, 0).sid, 2);
	assert_int_equal(process(6, 0).end, PM_VANISHED);
	assert_int_equal(process(6, 0).exit, 8000);
	assert_int_equal(process(5, 0).end, PM_ALIVE);
	assert_int_equal(process(8, 0).end, PM_ALIVE);
	assert_false(process(8, 0).before);
	assert_int_equal(process(9, 0).end, PM_ALIVE);
	assert_string_equal(info_at(7, 1, 9500).exe, "/bin/other");
	assert_string_equal(found(7, 1, 9500, 0x1000), "lost");
	/* late records are applied */
	end_event(6, 0, 7900, QUARK_EV_EXIT, 0, 10, false);
	assert_int_equal(process(6, 0).end, PM_EXITED);
}

static void a_later_walk_finds_nothing_in_normal_running(void **state)
{
	struct quark_process qp = qp_of(6, 0);

	do_walk(5, 1, "/bin/sh", 6000);
	do_fork(5, 0, 7, 7001);
	do_fork(5, 0, 8, 8000);
	do_exit(8, 0, 8500);
	pm_rescan_begin(pm, 9000);
	do_walk(5, 1, "/bin/sh", 9000);
	do_walk(7, 5, "/bin/sh", 9000);
	qp.flags = QUARK_F_EXIT; /* forgotten by now */
	qp.exit_boottime = 8500;
	assert_int_equal(pm_scan_process(pm, &qp, 9000), 0);
	pm_rescan_end(pm);
	assert_int_equal(stats().processes, 3);
	assert_int_equal(stats().found, 0);
	assert_int_equal(stats().vanished, 0);
	assert_int_equal(nwants, 0);
}

/* The kernel's figures of a living process: of this one. */
static void a_living_process_tells_its_cpu_time(void **state)
{
	struct quark_process qp = { .pid = getpid(),
				    .key.pid = getpid(),
				    .proc_uid = 4242 };
	uint64_t tick = SEC / sysconf(_SC_CLK_TCK), start;
	struct pm_process_info info;
	struct abi_key key = { 0 };
	struct pm_image_info img;
	char cwd[4096];
	char text[1024] = "";
	FILE *f = fopen("/proc/self/stat", "re");
	int i;
	char *p;

	assert_non_null(f);
	assert_true(fread(text, 1, sizeof(text) - 1, f) > 0);
	fclose(f);
	p = strrchr(text, ')');
	for (i = 0; i < 20; i++) /* from field 2 to field 22 */
		p = strchr(p + 1, ' ');
	start = strtoull(p, NULL, 10);
	qp.key.start_boottime = key.start_boottime = start * tick + 1;
	key.tgid = getpid();
	assert_int_equal(pm_scan_process(pm, &qp, UINT64_MAX / 2), 0);
	pm_process_info(pm_image_get(pm, &key, 0), &info);
	assert_int_equal(info.cpu, PM_CPU_NONE);
	/* attributes that change without an event are read */
	assert_int_equal(info.sid, 0);
	pm_process_ask(pm, pm_image_get(pm, &key, 0));
	pm_process_info(pm_image_get(pm, &key, 0), &info);
	assert_int_equal(info.sid, getsid(0));
	assert_int_equal(info.cpu, PM_CPU_NOW);
	assert_true(info.cpu_ns > 0);
	assert_int_equal(info.user_ns + info.system_ns, info.cpu_ns);
	assert_int_equal(info.pgid, getpgid(0));
	assert_int_equal(info.ppid, getppid());
	pm_image_info(pm_image_get(pm, &key, 0), &img);
	assert_int_equal(img.uid, getuid());
	assert_int_equal(img.gid, getgid());
	assert_string_equal(img.cwd, getcwd(cwd, sizeof(cwd)));
	/* another process has that pid, without an exit event: nothing known */
	pm_free(pm);
	assert_int_equal(setup_ledger(state), 0);
	qp.key.start_boottime = key.start_boottime = (start - 1) * tick;
	assert_int_equal(pm_scan_process(pm, &qp, UINT64_MAX / 2), 0);
	pm_process_info(pm_image_get(pm, &key, 0), &info);
	assert_int_equal(info.end, PM_ALIVE);
	assert_int_equal(info.cpu, PM_CPU_NONE);
	pm_process_ask(pm, pm_image_get(pm, &key, 0));
	pm_image_info(pm_image_get(pm, &key, 0), &img);
	assert_int_equal(img.uid, 4242);
	assert_null(img.cwd);
}

/* Processes that began and ended while the streams were being opened. */
static void who_ended_before_the_walk_is_no_surprise(void **state)
{
	pm_begin(pm, 8500);
	do_reap(8, 0, 9000); /* began at 8000 */
	do_mmap(4, 8400, 0x1000, 0x2000, "/bin/x", 0);
	assert_int_equal(stats().unknown, 0);
	do_reap(9, 0, 9500); /* began at 9000 */
	do_mmap(4, 8600, 0x1000, 0x2000, "/bin/x", 0);
	assert_int_equal(stats().unknown, 2);
}

static size_t living(void)
{
	struct pm_iter it;
	size_t n = 0;

	pm_iter_init(&it, pm, false);
	while (pm_iter_next(&it))
		n++;
	return n;
}

/* It belongs to its process, but does not make it live again. */
static void a_late_sample_of_the_forgotten_goes_again(void **state)
{
	struct abi_key key = { born(9), 1, 9, 0 };
	uint64_t at;

	do_walk(5, 1, "/bin/sh", 6000);
	do_fork(5, 0, 9, 9000);
	do_exec(9, 1, 9100, "/bin/true");
	end_event(9, 1, 9200, QUARK_EV_EXIT, 0, 1000, false);
	end_event(9, 1, 9300, QUARK_EV_REAP, 0, 1500, true);
	pm_forget(pm, 9301);
	assert_int_equal(nended, 1);
	/*
	 * one in its time, of a thread that was on its way out; and a late one
	 */
	for (at = 9302; at >= 9250; at -= 52) {
		assert_non_null(pm_image_get(pm, &key, at));
		assert_int_equal(stats().processes, 2);
		assert_int_equal(living(), 1);
		assert_int_equal(process(9, 1).end, PM_VANISHED);
	}
	pm_forget(pm, 9300 + 10 * SEC);
	assert_int_equal(stats().processes, 2);
	pm_forget(pm, 9400 + 10 * SEC);
	assert_int_equal(stats().processes, 1);
	assert_int_equal(stats().found, 0);
	assert_int_equal(nended, 1); /* once a process */
}

/* One whose fork comes later still, or that is sampled again, lives. */
static void a_late_sample_of_the_unknown_is_a_life(void **state)
{
	do_walk(5, 1, "/bin/sh", 6000);
	pm_forget(pm, 10000);
	image_at(9, 1, 9500);
	image_at(8, 1, 9500);
	assert_int_equal(living(), 1);
	do_fork(5, 0, 9, 9001);
	assert_int_equal(living(), 2);
	image_at(8, 1, 10001);
	assert_int_equal(living(), 3);
	assert_int_equal(stats().found, 0);
	pm_forget(pm, 30 * SEC);
	assert_int_equal(living(), 3);
}

/* A process of the real /proc, known to the manager. */
static struct quark_process real_child(uint64_t *start)
{
	uint64_t tick = SEC / sysconf(_SC_CLK_TCK);
	struct quark_process qp;
	unsigned long long ticks;
	char path[64];
	FILE *f;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid)
		_exit(3);
	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	f = fopen(path, "r");
	assert_non_null(f);
	assert_int_equal(fscanf(f,
				"%*d (%*[^)]) %*c %*d %*d %*d %*d %*d %*u %*u"
				" %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d"
				" %llu",
				&ticks),
			 1);
	fclose(f);
	*start = ticks * tick + 1;
	qp = qp_of(pid, 1);
	qp.key.start_boottime = *start;
	return qp;
}

/* However late its parent waits for it: the line has the exact figure. */
static void a_zombie_is_kept_until_its_reap(void **state)
{
	struct pm_image_info v[4];
	uint64_t start, at;
	struct quark_process qp = real_child(&start);
	struct quark_event ev = { .process = &qp, .group_dead = 1 };
	struct abi_key key = { start, 1, qp.pid, 0 };

	ev.events = QUARK_EV_EXEC;
	ev.boottime = start + 1;
	assert_int_equal(pm_event(pm, &ev), 0);
	do_mmap(qp.pid, start + 2, 0x1000, 0x2000, "/bin/true", 7);
	ev.events = QUARK_EV_EXIT;
	ev.boottime = start + 3;
	ev.cpu_time = 1000;
	assert_int_equal(pm_event(pm, &ev), 0);
	for (at = start; at < start + 100 * SEC; at += SEC)
		pm_forget(pm, at);
	assert_int_equal(nended, 0);
	assert_int_equal(stats().processes, 1);
	assert_int_equal(stats().mappings, 0); /* not needed any more */
	assert_int_equal(pm_image_history(pm_image_get(pm, &key, 0), v, 4), 1);
	assert_int_equal(waitpid(qp.pid, NULL, 0), qp.pid);
	/* The event may come later than /proc shows the end, by that much. */
	pm_forget(pm, at + SEC);
	assert_int_equal(nended, 0);
	ev.events = QUARK_EV_REAP;
	ev.boottime = at;
	ev.cpu_time = 1500;
	ev.cpu_exact = 1;
	assert_int_equal(pm_event(pm, &ev), 0);
	pm_forget(pm, at + 2 * SEC);
	assert_int_equal(nended, 1);
	assert_int_equal(ended[0].cpu, PM_CPU_EXACT);
	assert_int_equal(ended[0].cpu_ns, 1500);
	assert_int_equal(ended[0].reap, at);
}

/* Without a reap event the exit's figures are kept. */
static void a_zombie_whose_reap_is_untold_goes(void **state)
{
	uint64_t start, at;
	struct quark_process qp = real_child(&start);
	struct quark_event ev = { .process = &qp,
				  .group_dead = 1,
				  .events = QUARK_EV_EXIT };

	ev.boottime = start + 3;
	assert_int_equal(pm_event(pm, &ev), 0);
	for (at = start; at < start + 50 * SEC; at += SEC)
		pm_forget(pm, at);
	assert_int_equal(nended, 0);
	assert_int_equal(waitpid(qp.pid, NULL, 0), qp.pid);
	for (; at < start + 70 * SEC; at += SEC)
		pm_forget(pm, at);
	assert_int_equal(nended, 1);
	assert_int_equal(ended[0].end, PM_EXITED);
	assert_int_equal(stats().processes, 0);
}

/* Children of a hidden process begin with an exec. */
static void who_a_hidden_process_forks_is_no_surprise(void **state)
{
	struct quark_process qp = qp_of(5, 0);

	qp.x_flags = QUARK_X_HIDDEN;
	assert_int_equal(pm_scan_process(pm, &qp, 6000), 0);
	pm_begin(pm, 7000);
	pm_select(pm, 5);
	qp = qp_of(9, 1);
	qp.proc_ppid = 5;
	qp.parent_key =
		(struct quark_key){ .start_boottime = born(5), .pid = 5 };
	assert_int_equal(feed(QUARK_EV_EXEC, &qp, 9100, 0), 0);
	assert_int_equal(stats().unknown, 0);
	assert_string_equal(process(9, 1).parent_id, "5-1388");
	assert_true(pm_image_selected(image_of(9, 1)));
	/* another's fork event is missing */
	do_exec(10, 1, 10100, "/bin/true");
	assert_int_equal(stats().unknown, 1);
}

static void iteration_with_the_dead(void **state)
{
	struct pm_image *img;
	struct pm_iter it;
	int n = 0;

	do_walk(5, 1, "/bin/sh", 6000);
	do_walk(6, 1, "/bin/sh", 6500);
	do_exit(6, 0, 7000);
	pm_iter_init(&it, pm, true);
	while ((img = pm_iter_next(&it)))
		n++;
	assert_int_equal(n, 2);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup_ledger, teardown)

/* Not each rename of a process that renames itself often is an event. */
static void a_sample_tells_the_name(void **state)
{
	struct pm_image_info info;

	do_walk(9, 1, "/bin/sh", 9000);
	pm_image_named(image_of(9, 0), "a-later-name");
	pm_image_info(image_of(9, 0), &info);
	assert_string_equal(info.comm, "a-later-name");
	pm_image_named(image_of(9, 0), "");
	pm_image_info(image_of(9, 0), &info);
	assert_string_equal(info.comm, "a-later-name");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_life_has_one_line),
		TEST(an_orphan_has_both_parents),
		TEST(an_inferred_reap_keeps_what_the_exit_said),
		TEST(the_exit_tells_who_it_was_last),
		TEST(samples_count_for_image_and_process),
		TEST(a_process_has_all_its_images),
		TEST(who_execs_without_end_is_remembered_in_part),
		TEST(images_stand_in_the_order_of_execs),
		TEST(a_generation_that_comes_again_is_listed_once),
		TEST(a_zombie_of_the_walk_has_its_status),
		TEST(a_later_walk_finds_and_misses),
		TEST(a_later_walk_finds_nothing_in_normal_running),
		TEST(a_living_process_tells_its_cpu_time),
		TEST(who_ended_before_the_walk_is_no_surprise),
		TEST(a_late_sample_of_the_forgotten_goes_again),
		TEST(a_late_sample_of_the_unknown_is_a_life),
		TEST(a_zombie_is_kept_until_its_reap),
		TEST(a_zombie_whose_reap_is_untold_goes),
		TEST(who_a_hidden_process_forks_is_no_surprise),
		TEST(iteration_with_the_dead),
		TEST(a_sample_tells_the_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
