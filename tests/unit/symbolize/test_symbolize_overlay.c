// SPDX-License-Identifier: Apache-2.0
/*
 * Files on overlayfs and btrfs, which number inodes by themselves and which
 * users can mount or create: only the kernel's report of a mapping identifies a
 * file.
 */
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

#include "tests/unit/symbolize/test_symbolize.h"

/* --- file systems that number inodes by themselves -------------------------------- */

/* Device and inode of the mapping at 'p', as /proc/self/maps has them. */
static void mapped_inode(const void *p, struct symbolizer_open_req *req)
{
	unsigned long long start, ino;
	unsigned int maj, min;
	char line[512];
	FILE *f = fopen("/proc/self/maps", "r");

	req->ino = 0;
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "%llx-%*x %*s %*x %x:%x %llu", &start, &maj,
			   &min, &ino) == 4 &&
		    start == (uintptr_t)p) {
			req->dev = makedev(maj, min);
			req->ino = ino;
		}
	fclose(f);
	assert_true(req->ino != 0);
}

static bool own_mounts(void)
{
	static bool made;

	if (made)
		return true;
	made = !unshare(CLONE_NEWNS) &&
	       !mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);
	if (!made)
		puts("# this place forbids mounts of our own");
	return made;
}

static void *map_file(const char *path, struct symbolizer_open_req *req)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t len;
	struct stat st;
	void *p;

	assert_int_equal(fstat(fd, &st), 0);
	len = ((size_t)st.st_size + 4095) & ~4095UL;
	p = mmap(NULL, len, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	assert_true(p != MAP_FAILED);
	close(fd);
	req->pid = getpid();
	req->path = path;
	req->map_start = (uintptr_t)p;
	req->map_end = req->map_start + len;
	mapped_inode(p, req);
	return p;
}

static void unmap(const struct symbolizer_open_req *req)
{
	/* NOLINTNEXTLINE(performance-no-int-to-ptr) */
	munmap((void *)(uintptr_t)req->map_start,
	       req->map_end - req->map_start);
}

static int by_path(struct fixture *fx, struct symbolizer_open_req req)
{
	req.map_end = req.map_start;
	return open_wait(fx, &req);
}

/*
 * For a file on an overlay only the kernel's report of its mapping counts: any
 * user can mount overlays, above files with chosen inode numbers.
 */
static void a_file_of_an_overlay_is_opened(void **state)
{
	struct symbolizer_open_req req = { 0 }, other = { 0 };
	uint64_t at;
	struct fixture fx;
	struct stat st;

	if (!own_mounts()) {
		skip();
		return;
	}
	at = make_library("ov.so", "fn");
	make_library("victim.so", "fm");
	sh("mkdir -p low up work over && mv ov.so low/x.so");
	sh("mount -t overlay overlay "
	   "-o lowerdir=%s/low,upperdir=%s/up,workdir=%s/work over",
	   dir, dir, dir);
	map_file(in_dir("over/x.so"), &req);
	fixture_init(&fx, NULL);
	assert_int_equal(by_path(&fx, req), 0);
	expect_name(&fx, at, "fn");
	assert_int_equal(open_wait(&fx, &req), 0);
	/* Another number, though the file is the one that is mapped there. */
	map_file(in_dir("victim.so"), &other);
	other.map_start = req.map_start;
	other.map_end = req.map_end;
	other.path = req.path;
	assert_int_equal(open_wait(&fx, &other), -ESTALE);
	/* The number of another file system's file. */
	assert_int_equal(stat(in_dir("low/x.so"), &st), 0);
	other.dev = makedev(254, 77);
	other.ino = st.st_ino;
	assert_int_equal(open_wait(&fx, &other), -ESTALE);
	assert_int_equal(by_path(&fx, other), -ESTALE);
	other.dev = st.st_dev;
	assert_int_equal(by_path(&fx, other), -ESTALE);
	unmap(&req);
	fixture_fini(&fx);
	sh("umount -l over"); /* a worker may be ending still */
}

/* Then stat(2) reports a device that no mapping has. */
static void layers_may_be_on_several_file_systems(void **state)
{
	struct symbolizer_open_req req = { 0 };
	struct fixture fx;
	struct stat st;
	uint64_t at;

	if (!own_mounts()) {
		skip();
		return;
	}
	at = make_library("two.so", "fn");
	sh("mkdir -p low2 tmp over2 && mv two.so low2/x.so && "
	   "mount -t tmpfs tmpfs tmp && mkdir tmp/up tmp/work");
	sh("mount -t overlay overlay -o xino=off,lowerdir=%s/low2,"
	   "upperdir=%s/tmp/up,workdir=%s/tmp/work over2",
	   dir, dir, dir);
	map_file(in_dir("over2/x.so"), &req);
	assert_int_equal(stat(req.path, &st), 0);
	assert_true(st.st_dev != req.dev);
	fixture_init(&fx, NULL);
	assert_int_equal(open_wait(&fx, &req), 0);
	expect_name(&fx, at, "fn");
	req.ino++;
	assert_int_equal(open_wait(&fx, &req), -ESTALE);
	req.ino--;
	req.generation = 77;
	assert_int_equal(open_wait(&fx, &req), -ESTALE);
	unmap(&req);
	fixture_fini(&fx);
	sh("umount -l over2; umount -l tmp");
}

/* --- who mounted it ------------------------------------------------------------------ */

/* A process in new namespaces that has run 'line' there, or 0. */
static pid_t apart(int flags, const char *line)
{
	int fd[2];
	pid_t pid;
	char c;

	assert_int_equal(pipe(fd), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		const char *map = "0 0 1\n";
		int to;

		if (unshare(flags) || prctl(PR_SET_PDEATHSIG, SIGKILL))
			_exit(1);
		to = flags & CLONE_NEWUSER
			     ? open("/proc/self/uid_map", O_WRONLY)
			     : -1;
		if (to >= 0 && write(to, map, strlen(map)) < 0)
			_exit(1);
		if (chdir(dir) || system(line) || write(fd[1], "x", 1) != 1)
			_exit(1);
		pause();
		_exit(1);
	}
	close(fd[1]);
	if (read(fd[0], &c, 1) != 1) {
		waitpid(pid, NULL, 0);
		pid = 0;
	}
	close(fd[0]);
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

#define LOWER(line) "mkdir -p lo hi wo ov && " line
#define OVERLAY "mount -t overlay overlay -o lowerdir=lo:hi ov"

/* The file as that process sees it, by its path. */
static int open_there(struct fixture *fx, pid_t pid, const char *path)
{
	struct symbolizer_open_req req = { .pid = pid, .path = path };
	char line[128];
	struct stat st;

	snprintf(line, sizeof(line), "/proc/%d/root%s", (int)pid, path);
	assert_int_equal(stat(line, &st), 0);
	req.dev = st.st_dev;
	req.ino = st.st_ino;
	return open_wait(fx, &req);
}

/*
 * An overlay that a user mounted in a user namespace may have FUSE beneath;
 * that of a container was mounted by the container engine.
 */
static void overlays_of_users_are_refused(void **state)
{
	struct fixture fx;
	const char *path;
	pid_t pid;

	if (!own_mounts()) {
		skip();
		return;
	}
	make_library("who.so", "fn");
	sh(LOWER("mv who.so lo/x.so"));
	path = in_dir("ov/x.so");
	fixture_init(&fx, NULL);
	pid = apart(CLONE_NEWNS, OVERLAY); /* privileged, and not ours */
	assert_true(pid > 0);
	assert_int_equal(open_there(&fx, pid, path), 0);
	end(pid);
	pid = apart(CLONE_NEWUSER | CLONE_NEWNS, OVERLAY);
	if (!pid) {
		puts("# this place forbids user namespaces");
	} else {
		assert_int_equal(open_there(&fx, pid, path),
				 -SYMBOLIZER_EPLACE);
		assert_true(stats(&fx).open_refused > 0);
		end(pid);
	}
	/* Mounted since the openers looked; and copied with a namespace. */
	sh(OVERLAY);
	assert_int_equal(open_there(&fx, getpid(), path), 0);
	if (pid) {
		pid = apart(CLONE_NEWUSER | CLONE_NEWNS, "true");
		assert_int_equal(open_there(&fx, pid, path), 0);
		end(pid);
	}
	fixture_fini(&fx);
	sh("umount -l ov");
}

/* A file of 'user' in tmp2/up that has the number of tmp1/x.so. */
static void make_twin(void)
{
	make_library("twin.so", "fm");
	sh("want=$(stat -c %%i tmp1/x.so); i=0; mkdir -p tmp2/up; "
	   "while [ $((i += 1)) -lt 99 ]; do cp twin.so tmp2/up/y$i; "
	   "[ $(stat -c %%i tmp2/up/y$i) != $want ] || "
	   "{ mv tmp2/up/y$i tmp2/up/y; break; }; done; "
	   "chown 65534 tmp2/up/y; rm -f tmp2/up/y[0-9]*");
}

/* Layers on several file systems: on Linux 6.18 a number is not one file's. */
static void equal_numbers_of_layers_are_no_proof(void **state)
{
	struct symbolizer_open_req req = { 0 }, twin = { 0 };
	struct fixture fx;

	if (!own_mounts()) {
		skip();
		return;
	}
	make_library("one.so", "fn");
	sh("mkdir -p tmp1 tmp2 over3 && mount -t tmpfs tmpfs tmp1 && "
	   "mount -t tmpfs tmpfs tmp2 && mkdir -p tmp2/up tmp2/work tmp1/pad && "
	   "touch tmp1/pad/1 tmp1/pad/2 tmp1/pad/3 && cp one.so tmp1/x.so");
	make_twin();
	sh("mount -t overlay overlay -o xino=off,lowerdir=tmp1,"
	   "upperdir=tmp2/up,workdir=tmp2/work over3");
	map_file(in_dir("over3/x.so"), &req);
	map_file(in_dir("over3/y"), &twin);
	assert_int_equal(req.ino, twin.ino);
	fixture_init(&fx, NULL);
	assert_int_equal(open_wait(&fx, &req), 0);
	assert_int_equal(open_wait(&fx, &twin), 0);
	if (req.dev == twin.dev) {
		/* Where the first was mapped, there is now the second. */
		req.map_start = twin.map_start;
		req.map_end = twin.map_end;
		statfs_type = 0;
		req.path = in_dir("over3/gone");
		assert_int_equal(open_wait(&fx, &req), -EACCES);
	} else {
		puts("# numbers are those of the layers here");
	}
	fixture_fini(&fx);
	sh("umount -l over3 tmp1 tmp2");
}

/* A mapping has the mount's device, stat(2) the subvolume's. */
static void a_file_of_btrfs_is_opened(void **state)
{
	struct symbolizer_open_req req;
	uint64_t at = make_library("b.so", "fn");
	struct fixture fx;

	fixture_init(&fx, NULL);
	statfs_type = 0x9123683e;
	req = req_for("b.so");
	assert_int_equal(open_wait(&fx, &req), 0);
	expect_name(&fx, at, "fn");
	req.ino++;
	assert_int_equal(open_wait(&fx, &req), -ESTALE);
	req.ino--;
	req.dev = makedev(0, 77); /* of no mount of the process */
	assert_int_equal(open_wait(&fx, &req), -ESTALE);
	statfs_type = 0;
	fixture_fini(&fx);
}

/* Any user can create a subvolume, which has inode numbers of its own. */
static void subvolumes_are_told_apart(void **state)
{
	struct symbolizer_open_req req = { 0 }, mine = { 0 };
	struct fixture fx;
	uint64_t at;

	if (!own_mounts() || system("which mkfs.btrfs btrfs >/dev/null 2>&1")) {
		puts("# no btrfs here");
		skip();
		return;
	}
	sh("truncate -s 128M disk && mkfs.btrfs -q disk >/dev/null && mkdir -p btr && "
	   "mount -o loop disk btr && btrfs -q subvolume create btr/one && "
	   "btrfs -q subvolume create btr/two");
	at = make_library("btr/one/x.so", "fn");
	sh("sync -f btr");
	make_library("btr/two/x.so", "fm");
	map_file(in_dir("btr/one/x.so"), &req);
	map_file(in_dir("btr/two/x.so"), &mine);
	fixture_init(&fx, NULL);
	assert_int_equal(open_wait(&fx, &req), 0);
	expect_name(&fx, at, "fn");
	assert_int_equal(by_path(&fx, req), 0);
	assert_int_equal(req.ino, mine.ino);
	assert_int_equal(req.dev, mine.dev);
	req.generation = generation_of("btr/one/x.so");
	assert_int_equal(open_wait(&fx, &req), 0);
	assert_int_equal(by_path(&fx, req), 0);
	mine.generation = req.generation;
	assert_int_equal(open_wait(&fx, &mine), -ESTALE);
	assert_int_equal(by_path(&fx, mine), -ESTALE);
	fixture_fini(&fx);
	unmap(&req);
	unmap(&mine);
	sh("umount -l btr");
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_of_btrfs_is_opened),
		cmocka_unit_test(a_file_of_an_overlay_is_opened),
		cmocka_unit_test(layers_may_be_on_several_file_systems),
		cmocka_unit_test(overlays_of_users_are_refused),
		cmocka_unit_test(equal_numbers_of_layers_are_no_proof),
		cmocka_unit_test(subvolumes_are_told_apart),
	};

	worker_or_test(argc, argv);
	return cmocka_run_group_tests(tests, setup, teardown);
}
