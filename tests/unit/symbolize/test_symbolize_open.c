// SPDX-License-Identifier: Apache-2.0
/*
 * Opening files of other processes: what replaced a file is not opened, and
 * file systems that do not answer do not block anything else.
 */
#include <linux/fs.h>
#include <sched.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

#include "symbolize/known.h"
#include "symbolize/opener.h"
#include "tests/unit/symbolize/test_symbolize.h"

#define FUSE_MAGIC 0x65735546
#define ECRYPTFS_MAGIC 0xf15f
#define SHIFTFS_MAGIC 0x6a656a62

/* --- what is in a path's place -------------------------------------------------- */

static int watch_opens(const char *path)
{
	int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);

	assert_true(fd >= 0);
	assert_true(inotify_add_watch(fd, path, IN_OPEN) >= 0);
	return fd;
}

static bool was_opened(int watch)
{
	char buf[1024];

	return read(watch, buf, sizeof(buf)) > 0;
}

static uint64_t mount_of(const char *path)
{
	struct statx st;

	assert_int_equal(statx(AT_FDCWD, path, 0, STATX_MNT_ID, &st), 0);
	return st.stx_mnt_id;
}

/*
 * On another mount than the root, as a /tmp may be, no link is followed at all.
 */
static void what_took_its_place_is_not_opened(void **state)
{
	static const struct {
		const char *to;
		int err;
	} places[] = {
		{ "canary", -ESTALE },	  { "../canary", -ESTALE },
		{ "/proc/kmsg", -ELOOP }, { "/sys/kernel/notes", -ELOOP },
		{ "/dev/null", -ELOOP },  { "fifo", -ESTALE },
		{ "/no/such", -ENOENT },
	};
	struct symbolizer_open_req req;
	struct fixture fx;
	int canary, fifo, err;

	sh("mkdir -p place && echo secret > canary && cp canary place && "
	   "mkfifo place/fifo");
	canary = watch_opens(in_dir("canary"));
	fifo = watch_opens(in_dir("place/fifo"));
	fixture_init(&fx, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		sh("rm -f place/x");
		make_library("place/x", "x");
		req = req_for("place/x");
		assert_int_equal(open_wait(&fx, &req), 0);
		sh("ln -sfn %s place/link && mv -T place/link place/x",
		   places[i].to);
		err = mount_of(in_dir("")) == mount_of("/") ? places[i].err
							    : -ELOOP;
		for (int own = 0; own < 2; own++) {
			req.pid = own ? 0 : getpid();
			assert_int_equal(open_wait(&fx, &req), err);
		}
	}
	assert_false(was_opened(canary));
	assert_false(was_opened(fifo));
	close(canary);
	close(fifo);
	fixture_fini(&fx);
}

static void what_is_no_file_system_for_files_is_refused(void **state)
{
	struct fixture fx;

	fixture_init(&fx, NULL);
	assert_int_equal(open_path(&fx, "/proc/self/status"),
			 -SYMBOLIZER_EPLACE);
	assert_int_equal(open_path(&fx, "/sys/kernel/notes"),
			 -SYMBOLIZER_EPLACE);
	assert_int_equal(open_path(&fx, "/dev/null"), -EACCES);
	assert_int_equal(stats(&fx).open_refused, 3);
	fixture_fini(&fx);
}

/* Only the very file has this error, since it is remembered for long. */
static void another_file_is_not_refused_in_its_name(void **state)
{
	static const long types[] = { FUSE_MAGIC, ECRYPTFS_MAGIC,
				      SHIFTFS_MAGIC };
	struct symbolizer_open_req req;
	struct fixture fx;

	make_library("fuse.so", "fn");
	fixture_init(&fx, NULL);
	req = req_for("fuse.so");
	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		statfs_type = types[i];
		assert_int_equal(open_wait(&fx, &req), -SYMBOLIZER_EPLACE);
	}
	req.by_exe = true; /* of this test: another */
	assert_int_equal(open_wait(&fx, &req), -ESTALE);
	req.by_exe = false;
	req.ino++;
	assert_int_equal(open_wait(&fx, &req), -ESTALE);
	statfs_type = 0;
	fixture_fini(&fx);
}

/* The inode number of a deleted file is reused. */
static void another_generation_is_refused(void **state)
{
	struct symbolizer_open_req req;
	uint32_t generation;
	struct fixture fx;

	make_library("gen.so", "fn");
	generation = generation_of("gen.so");
	if (!generation) {
		puts("# this file system has no generations");
		skip();
		return;
	}
	fixture_init(&fx, NULL);
	req = req_for("gen.so");
	req.generation = generation;
	assert_int_equal(open_wait(&fx, &req), 0);
	req.generation++;
	assert_int_equal(open_wait(&fx, &req), -ESTALE);
	fixture_fini(&fx);
}

/* FUSE reports any inode number, also 0: then nothing can be compared. */
static void without_a_number_no_path_of_others_is_opened(void **state)
{
	struct symbolizer_open_req req;
	struct fixture fx;

	make_library("none.so", "fn");
	fixture_init(&fx, NULL);
	req = req_for("none.so");
	req.dev = makedev(0, 77);
	req.ino = 0;
	assert_int_equal(open_wait(&fx, &req), -ESTALE);
	req.pid = 0;
	assert_int_equal(open_wait(&fx, &req), 0);
	fixture_fini(&fx);
}

/* For a process in a chroot, /proc has paths that are not below its root. */
static void a_path_of_a_chroot_is_found(void **state)
{
	struct symbolizer_open_req req;
	struct fixture fx;
	uint64_t at;
	pid_t pid;
	int fd[2];
	char c;

	sh("mkdir -p jail/lib");
	at = make_library("jail/lib/x.so", "fn");
	assert_int_equal(pipe(fd), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		if (unshare(CLONE_NEWNS) || chroot(in_dir("jail")) ||
		    chdir("/"))
			_exit(1);
		if (write(fd[1], "x", 1) == 1)
			pause();
		_exit(1);
	}
	close(fd[1]);
	fixture_init(&fx, NULL);
	req = req_for("jail/lib/x.so");
	req.pid = pid;
	if (read(fd[0], &c, 1) == 1) {
		assert_int_equal(open_wait(&fx, &req), 0);
		expect_name(&fx, at, "fn");
		req.path = "/lib/x.so";
		assert_int_equal(open_wait(&fx, &req), 0);
		req.ino++;
		assert_int_equal(open_wait(&fx, &req), -ESTALE);
	} else {
		puts("# this place forbids a chroot");
	}
	fixture_fini(&fx);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(fd[0]);
}

/* An anonymous device number is reused for other file systems. */
static void what_is_known_is_known_of_one_mount(void **state)
{
	struct symbolizer_known k = { 0 };
	struct symbolizer_segment none = { 0 };
	struct symbolizer_file f = { .mount = 1, .segments = &none };

	assert_int_equal(symbolizer_known_init(&k), 0);
	f.ident.dev = makedev(0, 50);
	f.ident.ino = 7;
	symbolizer_known_add(&k, &f);
	assert_true(symbolizer_known_get(&k, &f));
	free(f.segments);
	f.segments = &none;
	f.mount = 2;
	assert_false(symbolizer_known_get(&k, &f));
	f.mount = 0;
	f.ident.ino = 8;
	symbolizer_known_add(&k, &f);
	assert_false(symbolizer_known_get(&k, &f));
	f.ident.dev = makedev(254, 0);
	symbolizer_known_add(&k, &f);
	f.mount = 3;
	assert_true(symbolizer_known_get(&k, &f));
	free(f.segments);
	symbolizer_known_fini(&k);
}

static void mounts_are_found_by_id_and_device(void **state)
{
	static const char text[] =
		"22 27 0:21 / /proc rw - proc proc rw\n"
		"27 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n"
		"31 27 0:99 /@/home /home/a\\040b rw shared:1 - btrfs /dev/b rw\n"
		"33 27 0:50 / /o rw shared:2 master:1 - overlay overlay rw\n"
		"34 27 0:51 / /overlay rw - overlay - rw,lowerdir=a:b\n"
		"35 27 0:52 / /o - rw tmpfs overlay rw\n"
		"36 27 0:x / /o rw - overlay overlay rw\n"
		"37 27 0 / /o rw - overlay overlay rw\n"
		"99999999999999999999 27 0:53 / /o rw - overlay overlay rw\n"
		"broken\n"
		"40 27 0:99";
	const struct {
		uint64_t id, dev;
		bool overlay;
	} want[] = {
		{ 22, makedev(0, 21), false },
		{ 27, makedev(254, 0), false },
		{ 31, makedev(0, 99), false },
		{ 33, makedev(0, 50), true },
		{ 34, makedev(0, 51), true },
		{ 35, makedev(0, 52), false },
		{ 36, 0, true },
		{ 37, 0, true },
		{ 0, makedev(0, 53), true },
		{ 0, 0, false },
		{ 40, makedev(0, 99), false },
	};
	size_t len = sizeof(text) - 1;
	const char *p = text;
	struct opener_mount m;
	char out[64];

	assert_true(opener_mount_find(text, len, makedev(254, 0), out, 64));
	assert_string_equal(out, "/");
	assert_true(opener_mount_find(text, len, makedev(0, 99), out, 64));
	assert_string_equal(out, "/home/a b");
	assert_true(opener_mount_find(text, len, makedev(0, 99), out, 6));
	assert_string_equal(out, "/home");
	assert_false(opener_mount_find(text, len, makedev(0, 9), out, 64));
	assert_false(opener_mount_find(text, 0, makedev(254, 0), out, 64));
	for (size_t i = 0; i < ARRAY_SIZE(want); i++) {
		assert_true(opener_mount_next(&p, text + len, &m));
		assert_int_equal(m.id, want[i].id);
		assert_true(m.dev == want[i].dev);
		assert_int_equal(m.overlay, want[i].overlay);
	}
	assert_false(opener_mount_next(&p, text + len, &m));
	for (size_t i = 0; i < len; i++) {
		char *cut = test_malloc(i + 1);

		memcpy(cut, text, i);
		p = cut;
		while (opener_mount_next(&p, cut + i, &m))
			assert_in_range(p - cut, 1, i);
		test_free(cut);
	}
}

/* --- what never answers ------------------------------------------------------------- */

static void submit(struct fixture *fx, const struct symbolizer_open_req *req,
		   int n)
{
	for (int i = 0; i < n; i++)
		assert_int_equal(symbolizer_open(fx->s, req, on_open, fx), 0);
	wait_for(fx, &fx->opened, fx->opened + n);
}

static void on_turn(uv_timer_t *timer)
{
	uv_close((uv_handle_t *)timer, NULL);
}

/* Runs the loop for this time. */
static void turn(struct fixture *fx, uint64_t ms)
{
	uv_timer_t timer;

	uv_timer_init(&fx->loop, &timer);
	uv_timer_start(&timer, on_turn, ms, 0);
	uv_run(&fx->loop, UV_RUN_DEFAULT);
}

static void hung_openings_are_bounded_and_named(void **state)
{
	struct symbolizer_opts opts = { .open_deadline_ms = 200 };
	struct symbolizer_open_req req, other;
	uint64_t began = clock_boottime_ns();
	unsigned int n;
	struct fixture fx;
	char where[64];

	make_library("hung.so", "fn");
	fixture_init(&fx, &opts);
	req = req_for("hung.so");
	req.uid = 7;
	statfs_sleep_ms = 60000;
	submit(&fx, &req, 6);
	turn(&fx, 500);
	assert_int_equal(stats(&fx).opener_hung_now, OPENER_HUNG_MOUNT);
	assert_true(stats(&fx).open_timeouts >= OPENER_HUNG_MOUNT);
	submit(&fx, &req, 3); /* at once, by now */
	assert_int_equal(fx.open_err, -EBUSY);
	assert_true(stats(&fx).open_skipped >= 3);
	assert_int_equal(stats(&fx).opener_hung, OPENER_HUNG_MOUNT);
	assert_non_null(symbolizer_hung(fx.s, 0, &n));
	assert_int_equal(n, OPENER_HUNG_MOUNT);
	assert_true(opener_mount_of(req.dev, 0, where, sizeof(where)));
	assert_string_equal(symbolizer_hung(fx.s, 0, &n), where);
	assert_null(symbolizer_hung(fx.s, 1, &n));
	/* Others are not affected. */
	statfs_sleep_ms = 0;
	other = req;
	other.uid = 8;
	other.pid = 0;
	other.dev = 0;
	other.ino = 0;
	assert_int_equal(open_wait(&fx, &other), 0);
	/* symbolizer_free() waits for none of them. */
	fixture_fini(&fx);
	assert_true(clock_boottime_ns() - began < 20 * CLOCK_NSEC_PER_SEC);
}

/*
 * A process that locks its own mappings makes openers hang. This must not count
 * against the mount of its file, which may be the root.
 */
static void a_process_closes_no_mount(void **state)
{
	struct symbolizer_opts opts = { .open_deadline_ms = 200 };
	struct symbolizer_open_req req, mine;
	struct fixture fx;
	unsigned int n;

	make_library("lock.so", "fn");
	fixture_init(&fx, &opts);
	req = req_for("lock.so");
	mine = req;
	mine.uid = 7;
	mine.map_start = 4096;
	mine.map_end = 8192;
	map_files_sleep_ms = 60000;
	submit(&fx, &mine, 2);
	turn(&fx, 500);
	assert_int_equal(stats(&fx).opener_hung_now, OPENER_HUNG_PID);
	assert_string_equal(symbolizer_hung(fx.s, 0, &n), "");
	/* Of that process and of others, by whatever way. */
	submit(&fx, &mine, 1);
	assert_int_equal(fx.open_err, -EBUSY);
	req.uid = 8;
	req.pid = getppid();
	assert_int_equal(open_wait(&fx, &req), 0);
	map_files_sleep_ms = 0;
	fixture_fini(&fx);
}

static void a_user_has_four(void **state)
{
	struct symbolizer_opts opts = { .open_deadline_ms = 200 };
	struct symbolizer_open_req req = { .path = in_dir("user.so"),
					   .uid = 7 };
	struct fixture fx;

	make_library("user.so", "fn");
	fixture_init(&fx, &opts);
	statfs_sleep_ms = 60000;
	submit(&fx, &req, 8); /* of no known mount */
	turn(&fx, 500);
	submit(&fx, &req, 1);
	assert_int_equal(fx.open_err, -EBUSY);
	assert_int_equal(stats(&fx).opener_hung_now, OPENER_HUNG_UID);
	statfs_sleep_ms = 0;
	req.uid = 8;
	assert_int_equal(open_wait(&fx, &req), 0);
	fixture_fini(&fx);
}

/* One that answers after all is used again. */
static void a_file_system_that_comes_back_is_well(void **state)
{
	struct symbolizer_opts opts = { .open_deadline_ms = 100 };
	struct symbolizer_open_req req;
	unsigned int n;
	struct fixture fx;

	make_library("back.so", "fn");
	fixture_init(&fx, &opts);
	req = req_for("back.so");
	statfs_sleep_ms = 1000;
	submit(&fx, &req, 2);
	assert_int_equal(fx.open_err, -ETIMEDOUT);
	assert_non_null(symbolizer_hung(fx.s, 0, &n));
	statfs_sleep_ms = 0;
	for (int i = 0; i < 100 && symbolizer_hung(fx.s, 0, &n); i++)
		turn(&fx, 100);
	assert_null(symbolizer_hung(fx.s, 0, &n));
	assert_int_equal(stats(&fx).opener_hung_now, 0);
	assert_int_equal(open_wait(&fx, &req), 0);
	fixture_fini(&fx);
}

static void on_queued(void *arg, int err, struct symbolizer_file *file)
{
	struct fixture *fx = arg;

	if (file)
		symbolizer_close(fx->s, file);
	fx->opened++;
}

/* A deadline begins when an opener has the request, not in the queue. */
static void a_queue_is_no_reason(void **state)
{
	struct symbolizer_opts opts = { .open_deadline_ms = 1000 };
	struct symbolizer_open_req req;
	struct fixture fx;

	make_library("queue.so", "fn");
	fixture_init(&fx, &opts);
	req = req_for("queue.so");
	statfs_sleep_ms = 200;
	/* Two of a mount at a time: the last ones wait for two seconds. */
	for (int i = 0; i < 20; i++)
		assert_int_equal(symbolizer_open(fx.s, &req, on_queued, &fx),
				 0);
	wait_for(&fx, &fx.opened, 20);
	statfs_sleep_ms = 0;
	assert_int_equal(stats(&fx).open_timeouts, 0);
	assert_int_equal(stats(&fx).opened, 20);
	fixture_fini(&fx);
}

/* The children of this process whose command line has 'word'. */
static pid_t child_with(const char *word)
{
	char line[64];
	int pid = 0;
	FILE *f;

	snprintf(line, sizeof(line), "pgrep -P %d -f %s", (int)getpid(), word);
	f = popen(line, "r");
	assert_non_null(f);
	if (fscanf(f, "%d", &pid) != 1)
		pid = 0;
	pclose(f);
	return pid;
}

static void one_that_was_killed_is_replaced(void **state)
{
	uint64_t at = make_library("kill.so", "fn");
	struct fixture fx;
	pid_t pid;

	fixture_init(&fx, NULL);
	assert_int_equal(open_path(&fx, in_dir("kill.so")), 0);
	pid = child_with(SYMBOLIZER_OPENER);
	assert_true(pid > 0);
	assert_int_equal(kill(pid, SIGKILL), 0);
	/* One request may be lost with it. */
	if (open_path(&fx, in_dir("kill.so")))
		assert_int_equal(open_path(&fx, in_dir("kill.so")), 0);
	expect_name(&fx, at, "fn");
	assert_int_equal(stats(&fx).opener_starts, 2);
	fixture_fini(&fx);
}

/* --- what is known ------------------------------------------------------------------ */

static uint64_t old_at; /* when the files below are old enough to be known */

/* ctime cannot be set: they are made before all tests. */
static int setup_old(void **state)
{
	int err = setup(state);

	make_library("known.so", "fn");
	make_library("plain.so", "fn");
	sh("echo '__thread void *otel_thread_ctx_v1;"
	   " void *f(void){return &otel_thread_ctx_v1;}' |"
	   "cc -x c - -shared -fPIC -mtls-dialect=gnu -o slot.so");
	old_at = clock_boottime_ns() + 4 * CLOCK_NSEC_PER_SEC;
	return err;
}

static void wait_until_old(void)
{
	while (clock_boottime_ns() < old_at)
		usleep(10000);
}

/* The worker reports the slot of a tracer's variable, and it is remembered. */
static void a_slot_comes_with_the_file(void **state)
{
	const struct symbolizer_slot *slot;
	struct symbolizer_slot first;
	struct fixture fx;

	wait_until_old();
	fixture_init(&fx, NULL);
	assert_int_equal(open_path(&fx, in_dir("plain.so")), 0);
	assert_int_equal(symbolizer_slot(fx.file)->model, SYMBOLIZER_SLOT_NONE);
	assert_int_equal(open_path(&fx, in_dir("slot.so")), 0);
	slot = symbolizer_slot(fx.file);
	assert_int_equal(slot->model, SYMBOLIZER_SLOT_MODULE);
	assert_int_equal(slot->pair, 1);
	assert_true(slot->where);
	first = *slot;
	assert_int_equal(stats(&fx).identified_known, 0);
	assert_int_equal(open_path(&fx, in_dir("slot.so")), 0);
	assert_int_equal(stats(&fx).identified_known, 1);
	assert_memory_equal(symbolizer_slot(fx.file), &first, sizeof(first));
	fixture_fini(&fx);
}

/* An unchanged file that is opened again is not read again. */
static void what_is_known_is_not_read_again(void **state)
{
	struct symbolizer_ident id;
	struct fixture fx;
	pid_t pid;

	wait_until_old();
	fixture_init(&fx, NULL);
	assert_int_equal(open_path(&fx, in_dir("known.so")), 0);
	id = *symbolizer_ident(fx.file);
	assert_false(symbolizer_changed(fx.file));
	pid = child_with(SYMBOLIZER_WORKER);
	assert_true(pid > 0);
	assert_int_equal(kill(pid, SIGSTOP), 0);
	assert_int_equal(open_path(&fx, in_dir("known.so")), 0);
	assert_memory_equal(&id, symbolizer_ident(fx.file), sizeof(id));
	assert_int_equal(kill(pid, SIGCONT), 0);
	sh("chmod 700 known.so && chmod 755 known.so");
	assert_true(symbolizer_changed(fx.file));
	assert_int_equal(open_path(&fx, in_dir("known.so")), 0);
	assert_true(symbolizer_ident(fx.file)->ctime_ns != id.ctime_ns);
	assert_memory_equal(symbolizer_ident(fx.file)->content, id.content,
			    sizeof(id.content));
	fixture_fini(&fx);
}

/* Head, tail and build id are equal; the middle is not. */
static void the_middle_counts(void **state)
{
	struct symbolizer_ident id;
	struct fixture fx;

	make_library("mid.so", "fn");
	sh("cp mid.so a && objcopy --add-section .fill=/bin/sh mid.so a && "
	   "cp a b && printf x | dd of=b bs=1 seek=20000 conv=notrunc "
	   "2>/dev/null && cp a c");
	fixture_init(&fx, NULL);
	assert_int_equal(open_path(&fx, in_dir("a")), 0);
	id = *symbolizer_ident(fx.file);
	assert_int_equal(open_path(&fx, in_dir("b")), 0);
	assert_memory_equal(symbolizer_ident(fx.file)->file_id, id.file_id,
			    sizeof(id.file_id));
	assert_memory_equal(symbolizer_ident(fx.file)->build_id, id.build_id,
			    sizeof(id.build_id));
	assert_memory_not_equal(symbolizer_ident(fx.file)->content, id.content,
				sizeof(id.content));
	assert_int_equal(open_path(&fx, in_dir("c")), 0);
	assert_memory_equal(symbolizer_ident(fx.file)->content, id.content,
			    sizeof(id.content));
	fixture_fini(&fx);
}

/*
 * The owner of a copy of a program can write to it after it was hashed: what is
 * read from it then must not be used for the original.
 */
static void the_owner_counts(void **state)
{
	struct symbolizer_ident id;
	struct fixture fx;

	if (geteuid())
		skip();
	make_library("own.so", "fn");
	sh("cp own.so own_root && cp own.so own_user && chown 65534 own_user && "
	   "cp -p own_user own_user2");
	fixture_init(&fx, NULL);
	assert_int_equal(open_path(&fx, in_dir("own.so")), 0);
	id = *symbolizer_ident(fx.file);
	assert_int_equal(open_path(&fx, in_dir("own_root")), 0);
	assert_memory_equal(symbolizer_ident(fx.file)->content, id.content,
			    sizeof(id.content));
	assert_int_equal(open_path(&fx, in_dir("own_user")), 0);
	assert_memory_equal(symbolizer_ident(fx.file)->file_id, id.file_id,
			    sizeof(id.file_id));
	assert_memory_not_equal(symbolizer_ident(fx.file)->content, id.content,
				sizeof(id.content));
	id = *symbolizer_ident(fx.file);
	assert_int_equal(open_path(&fx, in_dir("own_user2")), 0);
	assert_memory_equal(symbolizer_ident(fx.file)->content, id.content,
			    sizeof(id.content));
	fixture_fini(&fx);
}

/* Of a large file, what tables are made from; not debug information. */
static void large_files_are_hashed_by_sections(void **state)
{
	struct symbolizer_ident id;
	struct fixture fx;

	make_library("big.so", "fn");
	sh("head -c 6000000 /dev/zero > fill && "
	   "objcopy --add-section .x=fill big.so big1 && "
	   "printf x >> fill && truncate -s 6000000 fill && "
	   "printf x | dd of=fill bs=1 seek=3000000 conv=notrunc 2>/dev/null && "
	   "objcopy --add-section .x=fill big.so big2 && "
	   "objcopy --add-section .x=fill --redefine-sym fn=fm "
	   "big.so big3");
	fixture_init(&fx, NULL);
	assert_int_equal(open_path(&fx, in_dir("big1")), 0);
	id = *symbolizer_ident(fx.file);
	assert_int_equal(open_path(&fx, in_dir("big2")), 0);
	assert_memory_equal(symbolizer_ident(fx.file)->content, id.content,
			    sizeof(id.content));
	assert_int_equal(open_path(&fx, in_dir("big3")), 0);
	assert_memory_not_equal(symbolizer_ident(fx.file)->content, id.content,
				sizeof(id.content));
	/* Without sections it is not hashed, so the hash is unique. */
	sh("head -c 4096 big1 > huge1 && printf '\\0\\0' | "
	   "dd of=huge1 bs=1 seek=60 conv=notrunc 2>/dev/null && "
	   "truncate -s 6000000 huge1 && cp huge1 huge2");
	assert_int_equal(open_path(&fx, in_dir("huge1")), 0);
	id = *symbolizer_ident(fx.file);
	assert_int_equal(open_path(&fx, in_dir("huge2")), 0);
	assert_memory_not_equal(symbolizer_ident(fx.file)->content, id.content,
				sizeof(id.content));
	fixture_fini(&fx);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_took_its_place_is_not_opened),
		cmocka_unit_test(what_is_no_file_system_for_files_is_refused),
		cmocka_unit_test(another_file_is_not_refused_in_its_name),
		cmocka_unit_test(another_generation_is_refused),
		cmocka_unit_test(without_a_number_no_path_of_others_is_opened),
		cmocka_unit_test(a_path_of_a_chroot_is_found),
		cmocka_unit_test(what_is_known_is_known_of_one_mount),
		cmocka_unit_test(mounts_are_found_by_id_and_device),
		cmocka_unit_test(hung_openings_are_bounded_and_named),
		cmocka_unit_test(a_process_closes_no_mount),
		cmocka_unit_test(a_user_has_four),
		cmocka_unit_test(a_file_system_that_comes_back_is_well),
		cmocka_unit_test(a_queue_is_no_reason),
		cmocka_unit_test(one_that_was_killed_is_replaced),
		cmocka_unit_test(what_is_known_is_not_read_again),
		cmocka_unit_test(a_slot_comes_with_the_file),
		cmocka_unit_test(the_middle_counts),
		cmocka_unit_test(the_owner_counts),
		cmocka_unit_test(large_files_are_hashed_by_sections),
	};

	worker_or_test(argc, argv);
	return cmocka_run_group_tests(tests, setup_old, teardown);
}
