// SPDX-License-Identifier: Apache-2.0
/*
 * The symbolizer's files: their identity, and how they are found when processes
 * exit, replace them or forge them.
 */
#include <fcntl.h>
#include <linux/magic.h>
#include <nettle/sha2.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "tests/unit/symbolize/test_symbolize.h"

/* A child that has mapped 'file' executable, below 'root'. */
struct child {
	pid_t pid;
	int hold; /* it ends when this is closed */
	uint64_t start, end;
	uint64_t dev, ino; /* of the file that it maps; 0: none */
};

static void child_run(const char *file, const char *root, int out, int in)
{
	struct stat st = { 0 };
	uint64_t range[2] = { 0 };
	char c;

	if (file) {
		int fd = open(file, O_RDONLY);
		void *p;

		fstat(fd, &st);
		p = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_EXEC,
			 MAP_PRIVATE, fd, 0);
		range[0] = (uint64_t)p;
		range[1] = (range[0] + (uint64_t)st.st_size + 4095) & ~4095ULL;
		close(fd);
	}
	if (root && chroot(root) && (unshare(CLONE_NEWUSER) || chroot(root)))
		_exit(1);
	if (write(out, range, sizeof(range)) != sizeof(range))
		_exit(1);
	_exit(read(in, &c, 1) != 0);
}

static void child_start(struct child *c, const char *file, const char *root)
{
	uint64_t range[2];
	int out[2], in[2];
	struct stat st;

	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	assert_int_equal(pipe2(in, O_CLOEXEC), 0);
	c->pid = fork();
	if (c->pid == 0) {
		close(in[1]);
		child_run(file, root, out[1], in[0]);
	}
	close(out[1]);
	close(in[0]);
	c->hold = in[1];
	assert_int_equal(read(out[0], range, sizeof(range)), sizeof(range));
	close(out[0]);
	c->start = range[0];
	c->end = range[1];
	c->dev = c->ino = 0;
	if (file && !stat(file, &st)) {
		c->dev = st.st_dev;
		c->ino = st.st_ino;
	}
}

static void child_end(struct child *c)
{
	close(c->hold);
	waitpid(c->pid, NULL, 0);
}

/* As the kernel reports the mapping; without one, as the file is. */
static struct symbolizer_open_req req_of(const struct child *c,
					 const char *path)
{
	struct symbolizer_open_req req = {
		.pid = c->pid,
		.path = path,
		.dev = c->dev,
		.ino = c->ino,
		.map_start = c->start,
		.map_end = c->end,
	};
	char there[PATH_MAX];
	struct stat st;

	snprintf(there, sizeof(there), "/proc/%d/root%s", (int)c->pid, path);
	if (!c->ino && !stat(there, &st)) {
		req.dev = st.st_dev;
		req.ino = st.st_ino;
	}
	return req;
}

/* --- what a file is -------------------------------------------------------- */

static void a_file_is_identified(void **state)
{
	const struct symbolizer_ident *id;
	uint8_t data[8192 + 8] = { 0 }, digest[32];
	struct sha256_ctx sha;
	struct fixture fx;
	struct stat st;
	int fd;

	make_library("id.so", "fn");
	fixture_init(&fx, NULL);
	assert_int_equal(open_path(&fx, in_dir("id.so")), 0);
	id = symbolizer_ident(fx.file);
	assert_int_equal(stat(in_dir("id.so"), &st), 0);
	assert_int_equal(id->size, st.st_size);
	assert_int_equal(id->dev, st.st_dev);
	assert_int_equal(id->ino, st.st_ino);
	assert_true(id->mtime_ns ==
		    st.st_mtim.tv_sec * 1000000000LL + st.st_mtim.tv_nsec);
	assert_int_equal(id->build_id_len, 20);

	fd = open(in_dir("id.so"), O_RDONLY);
	assert_int_equal(pread(fd, data, 4096, 0), 4096);
	assert_int_equal(pread(fd, data + 4096, 4096, st.st_size - 4096), 4096);
	close(fd);
	memcpy(data + 8192, &st.st_size, 8);
	sha256_init(&sha);
	sha256_update(&sha, sizeof(data), data);
	sha256_digest(&sha, sizeof(digest), digest);
	assert_memory_equal(id->file_id, digest, SYMBOLIZER_FILE_ID_LEN);
	assert_int_equal(stats(&fx).opened, 1);
	fixture_fini(&fx);
}

static void segments_turn_offsets_into_addresses(void **state)
{
	const struct symbolizer_segment *seg;
	unsigned long long off, vaddr, size;
	char line[256];
	struct fixture fx;
	uint64_t offset;
	size_t n;
	FILE *f;

	sh("echo 'int main(void){return 0;}' | cc -x c - -no-pie -static "
	   "-o static");
	f = popen("true", "r");
	pclose(f);
	snprintf(line, sizeof(line),
		 "readelf -lW %s | awk '/LOAD/&&/ E /{print $2,$3,$5}'",
		 in_dir("static"));
	f = popen(line, "r");
	assert_int_equal(fscanf(f, "%llx %llx %llx", &off, &vaddr, &size), 3);
	pclose(f);
	fixture_init(&fx, NULL);
	assert_int_equal(open_path(&fx, in_dir("static")), 0);
	seg = symbolizer_segments(fx.file, &n);
	assert_int_equal(n, 1);
	assert_int_equal(seg->offset, off);
	assert_int_equal(seg->vaddr, vaddr);
	assert_int_equal(seg->size, size);
	offset = off + 16;
	assert_int_equal(resolve_wait(&fx, fx.file, &offset, 1), 0);
	assert_int_equal(fx.syms[0].vaddr, vaddr + 16);
	offset = off + size;
	assert_int_equal(resolve_wait(&fx, fx.file, &offset, 1), 0);
	assert_int_equal(fx.syms[0].vaddr, offset); /* no segment's */
	assert_string_equal(fx.text[0][0], "");
	fixture_fini(&fx);
}

static void answers_come_in_the_order_of_the_question(void **state)
{
	uint64_t a, offsets[7];
	struct fixture fx;

	a = make_library("two.so", "_ZN1a1bEi");
	fixture_init(&fx, NULL);
	assert_int_equal(open_path(&fx, in_dir("two.so")), 0);
	for (size_t i = 0; i < 7; i++)
		offsets[i] = i % 2 ? 0 : a + (7 - i) % 4;
	assert_int_equal(resolve_wait(&fx, fx.file, offsets, 7), 0);
	assert_int_equal(fx.n, 7);
	for (size_t i = 0; i < 7; i++) {
		assert_int_equal(fx.syms[i].offset, offsets[i]);
		assert_string_equal(fx.text[i][0], i % 2 ? "" : "a::b(int)");
		assert_string_equal(fx.text[i][1], i % 2 ? "" : "_ZN1a1bEi");
		assert_int_equal(fx.syms[i].start, i % 2 ? 0 : a);
	}
	assert_int_equal(stats(&fx).resolved, 7);
	assert_int_equal(stats(&fx).unnamed, 3);
	assert_int_equal(resolve_wait(&fx, fx.file, NULL, 0), 0);
	assert_int_equal(fx.n, 0);
	fixture_fini(&fx);
}

/* --- whose file it is ------------------------------------------------------ */

static void the_path_is_the_process_own(void **state)
{
	struct symbolizer_open_req req;
	struct fixture fx;
	struct child c;
	uint64_t at;

	sh("mkdir -p root/lib && ln -sf %s/outside.so root/lib/absolute && "
	   "ln -sf ../../../../../../%s/outside.so root/lib/relative && "
	   "ln -sf /proc/self/root/%s/outside.so root/lib/magic",
	   dir, dir, dir);
	make_library("outside.so", "outside");
	at = make_library("root/lib/in.so", "inside");
	sh("ln -sf /lib/in.so root/lib/link");
	child_start(&c, NULL, in_dir("root"));
	fixture_init(&fx, NULL);
	req = req_of(&c, "/lib/in.so");
	assert_int_equal(open_wait(&fx, &req), 0);
	expect_name(&fx, at, "inside");
	req.path = "/lib/link"; /* as the process would follow it */
	assert_int_equal(open_wait(&fx, &req), 0);
	expect_name(&fx, at, "inside");
	req.path = "/lib/absolute";
	assert_int_equal(open_wait(&fx, &req), -ENOENT);
	req.path = "/lib/relative";
	assert_int_equal(open_wait(&fx, &req), -ENOENT);
	req.path = "/lib/magic";
	assert_int_equal(open_wait(&fx, &req), -ENOENT);
	req.path = in_dir("outside.so");
	assert_int_equal(open_wait(&fx, &req), -ENOENT);
	assert_int_equal(stats(&fx).open_failed, 4);
	fixture_fini(&fx);
	child_end(&c);
}

static void what_is_no_plain_file_is_not_opened(void **state)
{
	struct fixture fx;

	sh("mkfifo fifo && mkdir -p directory && ln -s loop loop && "
	   "echo text > text");
	fixture_init(&fx, NULL);
	assert_int_equal(open_path(&fx, in_dir("fifo")), -EACCES);
	assert_int_equal(open_path(&fx, in_dir("directory")), -EACCES);
	assert_int_equal(open_path(&fx, "/dev/null"), -EACCES);
	assert_int_equal(open_path(&fx, in_dir("loop")), -ELOOP);
	assert_int_equal(open_path(&fx, in_dir("nothing")), -ENOENT);
	assert_int_equal(open_path(&fx, in_dir("text")), -ENOEXEC);
	assert_int_equal(open_path(&fx, ""), -ENOENT);
	assert_int_equal(stats(&fx).broken, 0);
	make_library("fuse.so", "fn");
	statfs_type = 0x65735546; /* FUSE */
	assert_int_equal(open_path(&fx, in_dir("fuse.so")), -SYMBOLIZER_EPLACE);
	statfs_type = 0;
	assert_int_equal(open_path(&fx, in_dir("fuse.so")), 0);
	/* Not the number of another machine, whose reason it once had. */
	assert_non_null(strstr(symbolizer_problem(-SYMBOLIZER_EPLACE), "FUSE"));
	assert_non_null(
		strstr(symbolizer_problem(-ENOTSUP), SYMBOLIZER_MACHINE));
	fixture_fini(&fx);
}

/* The only test here that needs a privilege. */
static bool map_files_work(const struct child *c)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/map_files/%llx-%llx",
		 (int)c->pid, (unsigned long long)c->start,
		 (unsigned long long)c->end);
	fd = open(path, O_PATH | O_CLOEXEC);
	if (fd >= 0)
		close(fd);
	return fd >= 0 || errno != EPERM;
}

static void a_deleted_file_is_found_by_its_mapping(void **state)
{
	struct symbolizer_open_req req;
	uint64_t at = make_library("gone.so", "departed");
	struct fixture fx;
	struct child c;
	char path[300];

	child_start(&c, in_dir("gone.so"), NULL);
	if (!map_files_work(&c)) {
		child_end(&c);
		puts("# this place forbids /proc/PID/map_files");
		skip();
	}
	sh("rm gone.so");
	fixture_init(&fx, NULL);
	snprintf(path, sizeof(path), "%s (deleted)", in_dir("gone.so"));
	req = req_of(&c, path);
	assert_int_equal(open_wait(&fx, &req), 0);
	expect_name(&fx, at, "departed");
	req.path = in_dir("gone.so"); /* as it was called when mapped */
	assert_int_equal(open_wait(&fx, &req), 0);
	expect_name(&fx, at, "departed");
	req.map_end = req.map_start;
	assert_int_equal(open_wait(&fx, &req), -ENOENT);
	fixture_fini(&fx);
	child_end(&c);
}

static void another_file_in_its_place_is_refused(void **state)
{
	struct symbolizer_open_req req = { 0 };
	struct symbolizer_ident old;
	uint64_t at = make_library("lib.so", "before");
	struct fixture fx;
	struct child c;

	child_start(&c, in_dir("lib.so"), NULL);
	fixture_init(&fx, NULL);
	assert_int_equal(open_path(&fx, in_dir("lib.so")), 0);
	old = *symbolizer_ident(fx.file);
	make_library("new.so", "after");
	sh("mv new.so lib.so");

	req.pid = c.pid;
	req.path = in_dir("lib.so");
	req.build_id = old.build_id;
	req.build_id_len = old.build_id_len;
	assert_int_equal(open_wait(&fx, &req), -ESTALE);
	req.build_id_len = 8; /* shorter than any */
	assert_int_equal(open_wait(&fx, &req), -ESTALE);
	req.build_id_len = 0;
	req.dev = old.dev;
	req.ino = old.ino;
	assert_int_equal(open_wait(&fx, &req), -ESTALE);
	assert_int_equal(stats(&fx).open_stale, 3);
	if (map_files_work(&c)) {
		req.map_start = c.start;
		req.map_end = c.end;
		assert_int_equal(open_wait(&fx, &req), 0);
		expect_name(&fx, at, "before");
		req.build_id_len = old.build_id_len;
		assert_int_equal(open_wait(&fx, &req), 0);
		expect_name(&fx, at, "before");
	}
	fixture_fini(&fx);
	child_end(&c);
}

/* Also by its path without the mark of a deleted file. */
static void a_reinstalled_file_is_known_by_its_build_id(void **state)
{
	struct symbolizer_open_req req = { 0 };
	uint64_t at = make_library("same.so", "same");
	struct symbolizer_ident id;
	struct fixture fx;
	char path[300];

	fixture_init(&fx, NULL);
	assert_int_equal(open_path(&fx, in_dir("same.so")), 0);
	id = *symbolizer_ident(fx.file);
	sh("cp same.so copy && mv copy same.so");
	snprintf(path, sizeof(path), "%s (deleted)", in_dir("same.so"));
	req.path = path;
	req.build_id = id.build_id;
	req.build_id_len = id.build_id_len;
	assert_int_equal(open_wait(&fx, &req), 0);
	expect_name(&fx, at, "same");
	req.build_id_len = 0; /* nothing proves the guess */
	assert_int_equal(open_wait(&fx, &req), -ENOENT);
	fixture_fini(&fx);
}

static void a_process_that_is_gone_has_no_files(void **state)
{
	struct symbolizer_open_req req;
	struct fixture fx;
	struct child c;

	make_library("dead.so", "fn");
	child_start(&c, in_dir("dead.so"), NULL);
	child_end(&c);
	fixture_init(&fx, NULL);
	req = req_of(&c, in_dir("dead.so"));
	assert_int_equal(open_wait(&fx, &req), -ENOENT);
	fixture_fini(&fx);
}

static void damage_is_counted_and_does_no_harm(void **state)
{
	uint64_t at = make_library("broken.so", "fn");
	struct fixture fx;

	fixture_init(&fx, NULL);
	sh("head -c 40 broken.so > head && head -c 4096 broken.so > half && "
	   "head -c 5000 /dev/urandom > noise");
	assert_int_equal(open_path(&fx, in_dir("head")), -ENOEXEC);
	assert_int_equal(stats(&fx).broken, 1);
	assert_int_equal(open_path(&fx, in_dir("noise")), -ENOEXEC);
	assert_int_equal(stats(&fx).broken, 1); /* no ELF at all */
	assert_int_equal(open_path(&fx, in_dir("half")), 0);
	assert_int_equal(resolve_wait(&fx, fx.file, &at, 1), 0);
	assert_int_equal(stats(&fx).broken, 2);
	assert_int_equal(resolve_wait(&fx, fx.file, &at, 1), 0);
	assert_int_equal(stats(&fx).broken, 2); /* once a file */

	/* Damage that was counted at its opening is not counted again. */
	sh("cp broken.so sections && printf '\\001' | "
	   "dd of=sections bs=1 seek=58 conv=notrunc 2>/dev/null");
	assert_int_equal(open_path(&fx, in_dir("sections")), 0);
	assert_int_equal(stats(&fx).broken, 3);
	expect_name(&fx, at, "fn"); /* by the dynamic segment */
	assert_int_equal(stats(&fx).broken, 3);

	/* Cut while it is open, before and after its index was made. */
	for (int indexed = 0; indexed < 2; indexed++) {
		make_library("shrink.so", "fn");
		assert_int_equal(open_path(&fx, in_dir("shrink.so")), 0);
		if (indexed)
			expect_name(&fx, at, "fn");
		assert_int_equal(truncate(in_dir("shrink.so"), 100), 0);
		assert_int_equal(resolve_wait(&fx, fx.file, &at, 1), 0);
		assert_string_equal(fx.text[0][0], "");
	}
	assert_int_equal(stats(&fx).broken, 5);
	fixture_fini(&fx);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_is_identified),
		cmocka_unit_test(segments_turn_offsets_into_addresses),
		cmocka_unit_test(answers_come_in_the_order_of_the_question),
		cmocka_unit_test(the_path_is_the_process_own),
		cmocka_unit_test(what_is_no_plain_file_is_not_opened),
		cmocka_unit_test(a_deleted_file_is_found_by_its_mapping),
		cmocka_unit_test(another_file_in_its_place_is_refused),
		cmocka_unit_test(a_reinstalled_file_is_known_by_its_build_id),
		cmocka_unit_test(a_process_that_is_gone_has_no_files),
		cmocka_unit_test(damage_is_counted_and_does_no_harm),
	};

	worker_or_test(argc, argv);
	return cmocka_run_group_tests(tests, setup, teardown);
}
