/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the tests of the symbolizer: a symbolizer with a loop and its last
 * answers, libraries made by cc, and a fake file system. Included once by each.
 */
#ifndef TESTS_UNIT_TEST_SYMBOLIZE_H
#define TESTS_UNIT_TEST_SYMBOLIZE_H

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"
#include "symbolize/symbolize.h"

static char dir[] = "/tmp/test_symbolize.XXXXXX";

/*
 * Replaces libc's fstatfs(), which openers call: a file system that answers
 * late, or has another type. The openers are child processes that execute this
 * program, so its state is in a file that all of them map.
 */
static struct fake_fs {
	atomic_int sleep_ms, maps_sleep_ms;
	atomic_long type;
} * fake_fs;

#define statfs_sleep_ms (fake_fs->sleep_ms)
#define statfs_type (fake_fs->type)
#define map_files_sleep_ms (fake_fs->maps_sleep_ms)

static char fake_fs_path[64];
static pid_t fake_fs_owner;

static inline void fake_fs_remove(void)
{
	if (getpid() == fake_fs_owner)
		unlink(fake_fs_path);
}

/* Of the test with that process id; a child of it has none. */
static inline void fake_fs_map(pid_t test, int flags)
{
	int fd;

	snprintf(fake_fs_path, sizeof(fake_fs_path),
		 "/tmp/test_symbolize.fs.%d", (int)test);
	fd = open(fake_fs_path, O_RDWR | O_CLOEXEC | flags, 0600);
	if (fd < 0)
		return;
	if (ftruncate(fd, sizeof(*fake_fs)))
		exit(4);
	fake_fs = mmap(NULL, sizeof(*fake_fs), PROT_READ | PROT_WRITE,
		       MAP_SHARED, fd, 0);
	close(fd);
	if (fake_fs == MAP_FAILED)
		exit(4);
}

int fstatfs(int fd, struct statfs *fs)
{
	int err = (int)syscall(SYS_fstatfs, fd, fs);

	if (!fake_fs)
		return err;
	if (statfs_sleep_ms)
		usleep((useconds_t)statfs_sleep_ms * 1000);
	if (err == 0 && statfs_type)
		fs->f_type = statfs_type;
	return err;
}

/* Likewise; a process whose mappings are locked. */
int open(const char *path, int flags, ...)
{
	unsigned int mode = 0;
	va_list ap;

	va_start(ap, flags);
	if (flags & O_CREAT)
		mode = va_arg(ap, unsigned int);
	va_end(ap);
	if (fake_fs && map_files_sleep_ms && strstr(path, "/map_files/"))
		usleep((useconds_t)map_files_sleep_ms * 1000);
	return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

/* --- one symbolizer, and what it answered ---------------------------------- */

struct fixture {
	uv_loop_t loop;
	struct symbolizer *s;
	int opened, open_err; /* completions, and the last's */
	struct symbolizer_file *file;
	int resolved, resolve_err;
	size_t n;
	struct symbolizer_symbol syms[64]; /* names are kept in: */
	char text[64][2][256];
	char module[64][64];
	bool close_inside;
};

/*
 * The test program is also the worker, as profd is: main() calls this first. By
 * its real path, since under valgrind /proc/self/exe is another program.
 */
static char self[PATH_MAX];

static inline void worker_or_test(int argc, char **argv)
{
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (argc > 1 && !strcmp(argv[1], SYMBOLIZER_OPENER))
		fake_fs_map(getppid(), 0);
	if (symbolizer_worker_wanted(argc, argv))
		exit(symbolizer_worker_main(argc, argv));
	self[n > 0 ? n : 0] = '\0';
	fake_fs_owner = getpid();
	fake_fs_map(fake_fs_owner, O_CREAT | O_EXCL);
	atexit(fake_fs_remove);
}

static inline void fixture_init(struct fixture *fx,
				struct symbolizer_opts *opts)
{
	struct symbolizer_opts none = { 0 };

	memset(fx, 0, sizeof(*fx));
	opts = opts ? opts : &none;
	if (!opts->worker)
		opts->worker = self;
	opts->opener = self;
	assert_int_equal(uv_loop_init(&fx->loop), 0);
	opts->loop = &fx->loop;
	assert_int_equal(symbolizer_new(&fx->s, opts), 0);
}

static inline void fixture_fini(struct fixture *fx)
{
	if (fx->file)
		symbolizer_close(fx->s, fx->file);
	symbolizer_free(fx->s);
	uv_run(&fx->loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(&fx->loop), 0);
}

static inline void on_open(void *arg, int err, struct symbolizer_file *file)
{
	struct fixture *fx = arg;

	fx->opened++;
	fx->open_err = err;
	assert_true((err == 0) == (file != NULL));
	fx->file = file;
}

static inline void on_resolve(void *arg, int err,
			      const struct symbolizer_symbol *syms, size_t n)
{
	static const struct symbolizer_function none = { "", "", "", 0, 0 };
	const struct symbolizer_function *fn;
	struct fixture *fx = arg;

	fx->resolved++;
	fx->resolve_err = err;
	fx->n = n;
	assert_true(err ? n == 0 && !syms : n <= 64);
	for (size_t i = 0; i < n; i++) {
		fx->syms[i] = syms[i];
		fn = syms[i].nfunctions ? syms[i].functions : &none;
		assert_true(syms[i].nfunctions <= 1);
		snprintf(fx->text[i][0], 256, "%s", fn->name);
		snprintf(fx->text[i][1], 256, "%s", fn->system_name);
		snprintf(fx->module[i], 64, "%s",
			 syms[i].module ? syms[i].module : "");
	}
	if (fx->close_inside) {
		symbolizer_close(fx->s, fx->file);
		fx->file = NULL;
	}
}

static inline void wait_for(struct fixture *fx, const int *counter, int want)
{
	while (*counter < want)
		assert_true(uv_run(&fx->loop, UV_RUN_ONCE) || *counter >= want);
}

static inline int open_wait(struct fixture *fx,
			    const struct symbolizer_open_req *req)
{
	int before = fx->opened;

	if (fx->file)
		symbolizer_close(fx->s, fx->file);
	fx->file = NULL;
	assert_int_equal(symbolizer_open(fx->s, req, on_open, fx), 0);
	assert_int_equal(fx->opened, before); /* never from inside */
	wait_for(fx, &fx->opened, before + 1);
	return fx->open_err;
}

static inline int open_path(struct fixture *fx, const char *path)
{
	struct symbolizer_open_req req = { .path = path };

	return open_wait(fx, &req);
}

static inline int resolve_wait(struct fixture *fx, struct symbolizer_file *file,
			       const uint64_t *offsets, size_t n)
{
	int before = fx->resolved;

	assert_int_equal(
		symbolizer_resolve(fx->s, file, offsets, n, on_resolve, fx), 0);
	assert_int_equal(fx->resolved, before);
	wait_for(fx, &fx->resolved, before + 1);
	return fx->resolve_err;
}

static inline struct symbolizer_stats stats(const struct fixture *fx)
{
	struct symbolizer_stats st;

	symbolizer_get_stats(fx->s, &st);
	return st;
}

/* The line of /proc/PID/status; "" when the process is gone. */
static inline const char *proc_line(pid_t pid, const char *key)
{
	static char line[256];
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, key, strlen(key))) {
			fclose(f);
			line[strcspn(line, "\n")] = '\0';
			return line + strlen(key) + 1 +
			       strspn(line + strlen(key) + 1, "\t ");
		}
	if (f)
		fclose(f);
	return "";
}

/* --- files to look at ------------------------------------------------------ */

static inline const char *in_dir(const char *name)
{
	static char path[4][256];
	static int i;

	i = (i + 1) % 4;
	snprintf(path[i], sizeof(path[i]), "%s/%s", dir, name);
	return path[i];
}

#include "tests/unit/files.h"

/* A library whose function NAME has the file offset that is returned. */
static inline uint64_t make_library(const char *file, const char *name)
{
	char line[512];
	unsigned long long vaddr;
	FILE *f;

	/* One segment at offset 0: offsets are addresses. */
	sh("echo 'int %s(int x){return x+1;}' | cc -x c - -shared -fPIC "
	   "-nostdlib -Wl,--build-id -Wl,-z,noseparate-code -o %s",
	   name, file);
	snprintf(line, sizeof(line), "nm %s | sed -n 's/ T %s$//p'",
		 in_dir(file), name);
	f = popen(line, "r");
	assert_non_null(f);
	assert_int_equal(fscanf(f, "%llx", &vaddr), 1);
	pclose(f);
	return vaddr;
}

static inline void expect_name(struct fixture *fx, uint64_t offset,
			       const char *want)
{
	assert_int_equal(resolve_wait(fx, fx->file, &offset, 1), 0);
	assert_string_equal(fx->text[0][0], want);
}

/* A request as for a mapping of 'name'. */
static inline struct symbolizer_open_req req_for(const char *name)
{
	struct symbolizer_open_req req = { .pid = getpid(),
					   .path = in_dir(name) };
	struct stat st;

	assert_int_equal(stat(in_dir(name), &st), 0);
	req.dev = st.st_dev;
	req.ino = st.st_ino;
	return req;
}

/* 0: it has none. */
static inline uint32_t generation_of(const char *name)
{
	int fd = open(in_dir(name), O_RDONLY | O_CLOEXEC), generation = 0;

	assert_true(fd >= 0);
	if (ioctl(fd, FS_IOC_GETVERSION, &generation))
		generation = 0;
	close(fd);
	return (uint32_t)generation;
}

static inline int setup(void **state)
{
	return mkdtemp(dir) ? 0 : -1;
}

static inline int teardown(void **state)
{
	char line[64];

	snprintf(line, sizeof(line), "rm -rf %s", dir);
	return system(line);
}

#endif /* TESTS_UNIT_TEST_SYMBOLIZE_H */
