// SPDX-License-Identifier: Apache-2.0
/*
 * Debug files in the root of a process: which of them are used, and that they are
 * used for the executables of that root only.
 */
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>

#include "symbolize/file.h"
#include "tests/unit/symbolize/test_symbolize.h"

#define ID "ab/cdef0123.debug" /* beneath .build-id */

/* A child below 'root', with a file system of its own at 'over', if not NULL. */
struct child {
	pid_t pid;
	int hold; /* it ends when this is closed */
};

static int mount_over(const char *over)
{
	char line[1024];

	if (unshare(CLONE_NEWNS) && unshare(CLONE_NEWUSER | CLONE_NEWNS))
		return -1;
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("none", over, "tmpfs", 0, NULL))
		return -1;
	snprintf(line, sizeof(line),
		 "mkdir -p %s/.build-id/ab && cp %s/lie.debug %s/.build-id/" ID,
		 over, dir, over);
	return system(line);
}

static int enter(const char *root, const char *over)
{
	if (over && mount_over(over))
		return -1;
	if (chroot(root) && (unshare(CLONE_NEWUSER) || chroot(root)))
		return -1;
	return 0;
}

static void child_start(struct child *c, const char *root, const char *over)
{
	int out[2], in[2], err;

	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	assert_int_equal(pipe2(in, O_CLOEXEC), 0);
	c->pid = fork();
	if (c->pid == 0) {
		close(in[1]);
		err = enter(root, over);
		if (write(out[1], &err, sizeof(err)) != sizeof(err))
			_exit(1);
		_exit(read(in[0], &err, 1) != 0);
	}
	close(out[1]);
	close(in[0]);
	c->hold = in[1];
	assert_int_equal(read(out[0], &err, sizeof(err)), sizeof(err));
	close(out[0]);
	assert_int_equal(err, 0);
}

static void child_end(struct child *c)
{
	close(c->hold);
	waitpid(c->pid, NULL, 0);
}

static struct symbolizer_open_req req_of(const struct child *c,
					 const char *path)
{
	struct symbolizer_open_req req = { .pid = c->pid, .path = path };
	char there[PATH_MAX];
	struct stat st;

	snprintf(there, sizeof(there), "/proc/%d/root%s", (int)c->pid, path);
	assert_int_equal(stat(there, &st), 0);
	req.dev = st.st_dev;
	req.ino = st.st_ino;
	return req;
}

/* --- what is used ------------------------------------------------------------ */

/* A library without unwind tables, and debug files that have them. */
static void make_files(void)
{
	static const char *const frames[] = { "true", "lie" };

	for (size_t i = 0; i < ARRAY_SIZE(frames); i++)
		sh("echo 'int g(char *); int f(void) { char a[%d]; "
		   "return g(a) + a[1]; }' | cc -x c - -g -O2 -shared -fPIC "
		   "-nostdlib -fomit-frame-pointer -fno-stack-protector "
		   "-fno-asynchronous-unwind-tables -Wl,--build-id=0xabcdef0123 "
		   "-Wl,-z,lazy -o %s.so && "
		   "objcopy --only-keep-debug %s.so %s.debug",
		   i ? 4000 : 40, frames[i], frames[i], frames[i]);
	sh("strip -o lib.so true.so && "
	   "mkdir -p host/.build-id/ab a/lib a/usr/lib/debug/.build-id/ab "
	   "b/lib b/usr/lib/debug c/lib && cp lib.so a/lib && cp lib.so b/lib && "
	   "cp lib.so c/lib && cp lie.debug a/usr/lib/debug/.build-id/" ID);
}

struct rows_wait {
	int done, err;
	bool lie; /* a frame of 4000 bytes */
};

static void on_rows(void *arg, int err, struct symbolizer_rows *rows)
{
	struct symbolizer_rows_info info = { 0 };
	struct rows_wait *w = arg;
	struct symbolizer_rule rule;
	uint64_t at;

	w->done++;
	w->err = err;
	if (!err)
		symbolizer_rows_info(rows, &info);
	if (info.by_code) /* no debug file was used */
		w->err = -ENODATA;
	for (size_t i = 0; i < info.rows; i++) {
		uint16_t id = symbolizer_rows_at(rows, i, &at);

		if (!id)
			continue;
		symbolizer_rows_rule(rows, id, &rule);
		w->lie |= rule.cfa.n > 4000;
	}
	symbolizer_rows_free(rows);
}

/* Opens a file, and reads its rows. */
static int rows_of(struct fixture *fx, const struct symbolizer_open_req *req,
		   bool *lie)
{
	struct rows_wait w = { 0 };

	assert_int_equal(open_wait(fx, req), 0);
	assert_int_equal(symbolizer_rows(fx->s, fx->file, on_rows, &w), 0);
	wait_for(fx, &w.done, 1);
	*lie = w.lie;
	return w.err;
}

static void content_of(const struct fixture *fx, uint8_t *to)
{
	memcpy(to, symbolizer_ident(fx->file)->content, SYMBOLIZER_FILE_ID_LEN);
}

static bool same(const uint8_t *a, const uint8_t *b)
{
	return !memcmp(a, b, SYMBOLIZER_FILE_ID_LEN);
}

static void a_lie_stays_in_its_root(void **state)
{
	char debug[64];
	const char *dirs[] = { debug, NULL };
	struct symbolizer_opts opts = { .debug_dirs = dirs };
	uint8_t host[16], a[16], again[16], b[16], c[16];
	const char *const roots[] = { "a", "b", "c" };
	struct symbolizer_open_req req;
	struct child child[3];
	struct fixture fx;
	bool lie;

	snprintf(debug, sizeof(debug), "%s/host", dir);
	make_files();
	for (size_t i = 0; i < 3; i++)
		child_start(&child[i], in_dir(roots[i]), NULL);
	fixture_init(&fx, &opts);

	/* It looks in its directories first in the other's root: none there. */
	sh("mkdir -p a%s/host && cp -r a/usr/lib/debug/.build-id a%s/host", dir,
	   dir);
	req = req_of(&child[0], "/lib/lib.so");
	assert_int_equal(rows_of(&fx, &req, &lie), 0);
	assert_true(lie);
	content_of(&fx, a);
	assert_int_equal(rows_of(&fx, &req, &lie), 0);
	content_of(&fx, again);
	assert_true(same(a, again));

	/* An equal file of the same owner: not the rows of that, nor shared. */
	req = (struct symbolizer_open_req){ .path = in_dir("lib.so") };
	assert_int_equal(rows_of(&fx, &req, &lie), -ENODATA);
	content_of(&fx, host);
	assert_false(same(a, host));

	/* In a root with another directory of debug files: neither. */
	req = req_of(&child[1], "/lib/lib.so");
	assert_int_equal(rows_of(&fx, &req, &lie), -ENODATA);
	content_of(&fx, b);
	assert_false(same(b, host));
	assert_false(same(b, a));

	/* Without one it is the host's, whose debug files are used. */
	req = req_of(&child[2], "/lib/lib.so");
	sh("cp true.debug host/.build-id/" ID);
	assert_int_equal(rows_of(&fx, &req, &lie), 0);
	assert_false(lie);
	content_of(&fx, c);
	assert_true(same(c, host));
	fixture_fini(&fx);
	for (size_t i = 3; i-- > 0;) /* a later one holds the earlier ones */
		child_end(&child[i]);
}

static void what_is_mounted_there_is_not_used(void **state)
{
	const char *dirs[] = { "/usr/lib/debug", NULL };
	struct symbolizer_opts opts = { .debug_dirs = dirs };
	struct symbolizer_open_req req;
	uint8_t host[16], own[16];
	struct fixture fx;
	struct child child;
	char over[300];
	bool lie;

	make_files();
	snprintf(over, sizeof(over), "%s/b/usr/lib/debug", dir);
	child_start(&child, in_dir("b"), over);
	fixture_init(&fx, &opts);
	assert_int_equal(open_path(&fx, in_dir("lib.so")), 0);
	content_of(&fx, host);
	req = req_of(&child, "/lib/lib.so");
	assert_int_equal(rows_of(&fx, &req, &lie), -ENODATA);
	content_of(&fx, own);
	assert_true(same(own, host));
	fixture_fini(&fx);
	child_end(&child);
}

/* --- one lookup ---------------------------------------------------------------- */

static const char *const one_dir[] = { "/usr/lib/debug", NULL };

/* The first line of what is found; "" nothing. */
static const char *look(const struct symbolizer_own *own, const char *beside,
			const char *id, const char *name)
{
	static char line[64];
	uint64_t where;
	int fd = -EAGAIN;

	for (unsigned int nth = 0; fd == -EAGAIN; nth++)
		fd = symbolizer_open_debug(one_dir, own, beside,
					   (const uint8_t *)id, strlen(id),
					   name, nth, &where);
	memset(line, 0, sizeof(line));
	if (fd >= 0) {
		assert_true(read(fd, line, sizeof(line) - 1) > 0);
		close(fd);
	}
	line[strcspn(line, "\n")] = '\0';
	return line;
}

/* As the opener has it for a file in the root of the child. */
static struct symbolizer_own own_of(const struct symbolizer_open_req *req)
{
	struct symbolizer_stat st = { 0 };
	uint64_t where;
	int fd = symbolizer_open_way(req, SYMBOLIZER_BY_PATH, &where, &st);

	assert_true(fd >= 0);
	close(fd);
	return st.own;
}

static void each_place_is_tried(void **state)
{
	struct symbolizer_open_req req;
	struct symbolizer_own own;
	struct child child;

	sh("mkdir -p r/usr/lib/debug/.build-id/41 r/usr/lib/debug/bin "
	   "r/bin/.debug && cd r && echo x > bin/x && "
	   "echo id > usr/lib/debug/.build-id/41/4243.debug && "
	   "echo global > usr/lib/debug/bin/x.g && echo beside > bin/x.b && "
	   "echo hidden > bin/.debug/x.h && ln -s /bin/x.b bin/x.l && "
	   "echo out > ../out && ln -s %s/out bin/x.o && "
	   "ln -s ../../out bin/x.p && ln -s /proc/self/root/tmp bin/x.m",
	   dir);
	child_start(&child, in_dir("r"), NULL);
	req = req_of(&child, "/bin/x");
	own = own_of(&req);
	assert_int_equal(own.in, SYMBOLIZER_OWN_BESIDE | SYMBOLIZER_OWN_DIRS);
	assert_string_equal(look(&own, "/bin/x", "ABC", NULL), "id");
	assert_string_equal(look(&own, "/bin/x", "", "x.g"), "global");
	assert_string_equal(look(&own, "/bin/x", "", "x.b"), "beside");
	assert_string_equal(look(&own, "/bin/x", "", "x.h"), "hidden");
	/* As the kernel has it, seen from our root. */
	assert_string_equal(look(&own, in_dir("r/bin/x"), "", "x.h"), "hidden");
	assert_string_equal(look(&own, "/bin/x", "", "x.l"), "beside");
	assert_string_equal(look(&own, "/bin/x", "", "x.o"), "");
	assert_string_equal(look(&own, "/bin/x", "", "x.p"), "");
	assert_string_equal(look(&own, "/bin/x", "", "x.m"), "");
	assert_string_equal(look(&own, "/bin/x", "", "x"), "x");
	assert_string_equal(look(&own, NULL, "", "x.b"), "");
	child_end(&child);
	/* The process is gone, and its root with it. */
	assert_string_equal(look(&own, "/bin/x", "ABC", NULL), "");
}

static void who_could_lie_is_not_believed(void **state)
{
	struct symbolizer_open_req req;
	struct symbolizer_own own, other;
	struct child child;

	sh("mkdir -p s/usr/lib/debug s/bin && cd s && echo x > bin/x && "
	   "echo w > bin/w && chmod g+w bin/w && echo o > bin/o && "
	   "chmod o+w bin/o && echo b > bin/b && mkfifo bin/f && "
	   "echo n > bin/n");
	if (getuid() == 0)
		sh("chown 12345 s/bin/n");
	child_start(&child, in_dir("s"), NULL);
	req = req_of(&child, "/bin/x");
	own = own_of(&req);
	assert_string_equal(look(&own, "/bin/x", "", "b"), "b");
	assert_string_equal(look(&own, "/bin/x", "", "w"), "");
	assert_string_equal(look(&own, "/bin/x", "", "o"), "");
	assert_string_equal(look(&own, "/bin/x", "", "f"), "");
	assert_string_equal(look(&own, "/bin/x", "", "n"),
			    getuid() == 0 ? "" : "n");
	other = own;
	other.ino++; /* another root */
	assert_string_equal(look(&other, "/bin/x", "", "b"), "");
	other = own;
	other.mount++;
	assert_string_equal(look(&other, "/bin/x", "", "b"), "");
	other = own;
	other.owner++;
	assert_string_equal(look(&other, "/bin/x", "", "b"), "");
	child_end(&child);
}

static void in_our_own_root_only_beside(void **state)
{
	struct symbolizer_open_req req = { .path = in_dir("t/x") };
	struct symbolizer_own own;
	struct child child;

	sh("mkdir -p t/.debug && echo x > t/x && echo h > t/.debug/h && "
	   "echo b > t/b");
	own = own_of(&req);
	assert_int_equal(own.in, SYMBOLIZER_OWN_BESIDE);
	assert_string_equal(look(&own, in_dir("t/x"), "", "h"), "h");
	assert_string_equal(look(&own, in_dir("t/x"), "", "b"), "b");
	assert_string_equal(look(&own, "t/x", "", "b"), "");
	child_start(&child, "/", NULL);
	req = req_of(&child, in_dir("t/x"));
	own = own_of(&req);
	assert_int_equal(own.in, SYMBOLIZER_OWN_BESIDE);
	assert_int_equal(own.pid, child.pid);
	child_end(&child);
	/* It remains ours when the process is gone. */
	assert_string_equal(look(&own, in_dir("t/x"), "", "b"), "b");
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_lie_stays_in_its_root),
		cmocka_unit_test(what_is_mounted_there_is_not_used),
		cmocka_unit_test(each_place_is_tried),
		cmocka_unit_test(who_could_lie_is_not_believed),
		cmocka_unit_test(in_our_own_root_only_beside),
	};

	worker_or_test(argc, argv);
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, setup, teardown);
}
