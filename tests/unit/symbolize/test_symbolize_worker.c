// SPDX-License-Identifier: Apache-2.0
/*
 * The worker process: its privileges and answers, and that no request is lost
 * when it is killed, stopped, or cannot be started.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "symbolize/elf/elf.h"
#include "symbolize/file.h"
#include "symbolize/rows/rows.h"
#include "tests/unit/place.h"
#include "tests/unit/symbolize/test_symbolize.h"

/* --- what it is ------------------------------------------------------------------------ */

static pid_t worker_pid(struct fixture *fx)
{
	char text[256];
	int pid = 0;

	symbolizer_worker_status(fx->s, text, sizeof(text));
	sscanf(text, "process %d", &pid);
	return pid;
}

/* An open library, and the name of its function. */
struct lib {
	struct symbolizer_file *file;
	uint64_t at;
	char name[32], fn[32];
};

static void lib_open(struct fixture *fx, struct lib *l, int i)
{
	snprintf(l->name, sizeof(l->name), "lib%d.so", i);
	snprintf(l->fn, sizeof(l->fn), "fn%d", i);
	l->at = make_library(l->name, l->fn);
	assert_int_equal(open_path(fx, in_dir(l->name)), 0);
	l->file = fx->file;
	fx->file = NULL;
}

static int count_proc_fds(pid_t pid)
{
	char path[64];
	struct stat st;
	int n = 0;

	for (int fd = 0; fd < 256; fd++) {
		snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)pid, fd);
		n += lstat(path, &st) == 0;
	}
	return n;
}

static void it_has_one_socket_and_no_privilege(void **state)
{
	char path[64], text[256];
	struct fixture fx;
	struct stat st;
	struct lib l;
	pid_t pid;
	int left = dup(1); /* what a library forgot to mark for exec */

	fixture_init(&fx, NULL);
	close(left);
	lib_open(&fx, &l, 0);
	pid = worker_pid(&fx);
	assert_true(pid > 0);
	assert_string_equal(proc_line(pid, "CapEff"), "0000000000000000");
	assert_string_equal(proc_line(pid, "CapPrm"), "0000000000000000");
	assert_string_equal(proc_line(pid, "NoNewPrivs"), "1");
	assert_string_equal(proc_line(pid, "Seccomp"), "2");
	assert_string_equal(proc_line(pid, "Name"), "profd-symbolize");
	symbolizer_worker_status(fx.s, text, sizeof(text));
	if (place_has_users()) {
		assert_null(strstr(text, "as profd"));
		assert_int_equal(kill(pid, 0), 0);
		/* Between two questions it holds nothing else. */
		for (int i = 0; i < 6000 && count_proc_fds(pid) != 3; i++)
			usleep(10000);
		assert_int_equal(count_proc_fds(pid), 3);
		snprintf(path, sizeof(path), "/proc/%d/fd/0", (int)pid);
		assert_int_equal(stat(path, &st), 0);
		assert_true(S_ISSOCK(st.st_mode));
	} else {
		assert_non_null(strstr(text, "as profd"));
	}
	symbolizer_close(fx.s, l.file);
	fixture_fini(&fx);
	assert_int_equal(kill(pid, 0), -1);
}

/* Its state is read once: it may be reaped at any time. */
static bool has_ended(pid_t pid)
{
	char state = *proc_line(pid, "State");

	return !state || state == 'Z';
}

/* When profd is killed, the worker exits without a signal of profd's. */
static void it_dies_with_profd(void **state)
{
	int out[2];
	pid_t pid, worker = 0;

	assert_int_equal(pipe(out), 0);
	pid = fork();
	if (pid == 0) {
		struct fixture fx;
		struct lib l;

		fixture_init(&fx, NULL);
		lib_open(&fx, &l, 0);
		worker = worker_pid(&fx);
		if (write(out[1], &worker, sizeof(worker)) < 0)
			_exit(1);
		/* That its socket ends, it shall not see. */
		kill(worker, SIGSTOP);
		raise(SIGKILL);
	}
	assert_int_equal(read(out[0], &worker, sizeof(worker)), sizeof(worker));
	waitpid(pid, NULL, 0);
	close(out[0]);
	close(out[1]);
	for (int i = 0; i < 6000 && !has_ended(worker); i++)
		usleep(10000);
	assert_true(has_ended(worker));
}

/* --- what it gives --------------------------------------------------------------------- */

#define MANY 5000

struct many {
	int answers, right;
};

static void on_many(void *arg, int err, const struct symbolizer_symbol *syms,
		    size_t n)
{
	struct many *m = arg;
	char want[256];

	m->answers++;
	assert_int_equal(err, 0);
	assert_int_equal(n, MANY);
	for (size_t i = 0; i < n; i++) {
		snprintf(want, sizeof(want), "fn_%0200d", (int)(MANY - 1 - i));
		m->right += syms[i].nfunctions == 1 &&
			    !strcmp(syms[i].functions->name, want) &&
			    syms[i].start == syms[i].offset &&
			    syms[i].size == 1;
	}
}

/* More names than fit in a message, more addresses than in a question. */
static void large_answers_come_in_pieces(void **state)
{
	static uint64_t at[MANY];
	struct many m = { 0 };
	unsigned long long first;
	struct fixture fx;
	char line[512];
	FILE *f;

	sh("awk 'BEGIN { print \".text\"; for (i = 0; i < %d; i++) { "
	   "n = sprintf(\"fn_%%0200d\", i); print \".globl \" n \"; .type \" "
	   "n \",@function; \" n \": ret; .size \" n \",1\" } }' > many.s "
	   "&& cc -shared -nostdlib -Wl,-z,noseparate-code -o many.so many.s",
	   MANY);
	snprintf(line, sizeof(line), "nm %s | sed -n 's/ T fn_0*$//p'",
		 in_dir("many.so"));
	f = popen(line, "r");
	assert_int_equal(fscanf(f, "%llx", &first), 1);
	pclose(f);
	for (uint64_t i = 0; i < MANY; i++)
		at[i] = first + (MANY - 1 - i);
	fixture_init(&fx, NULL);
	assert_int_equal(open_path(&fx, in_dir("many.so")), 0);
	symbolizer_resolve(fx.s, fx.file, at, MANY, on_many, &m);
	wait_for(&fx, &m.answers, 1);
	assert_int_equal(m.right, MANY);
	assert_int_equal(stats(&fx).resolved, MANY);
	assert_int_equal(stats(&fx).index_built, 1);
	fixture_fini(&fx);
}

/*
 * A C++ or Rust name that takes too long to demangle stays mangled, and so do
 * all of a file with many of them; requests for other files are not affected.
 */
static void a_slow_name_stays_mangled(void **state)
{
	uint64_t at[64];
	unsigned long long first;
	struct fixture fx;
	struct lib l;
	char line[512];
	FILE *f;

	sh("awk 'BEGIN { D = \"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ\"; "
	   "for (i = 1; i < 40; i++) { open = open \"S0_I\"; shut = shut "
	   "(i < 36 ? \"S\" : \"S1\") substr(D, i %% 36 + 1, 1) \"_E\" } "
	   "print \".text\"; for (i = 0; i < 64; i++) { "
	   "n = sprintf(i %% 2 ? \"_RMIC3f%%02dFGzzzzzzzzz_EuEu\" : "
	   "\"_Z3f%%02dIJiEEvDp1PI%%siE%%s\", i, open, shut); "
	   "print \".globl \" n \"; .type \" n \",@function; \" n "
	   "\": ret; .size \" n \",1\" } }' > slow.s && cc -shared "
	   "-nostdlib -Wl,-z,noseparate-code -o slow.so slow.s");
	snprintf(line, sizeof(line), "nm %s | sed -n 's/ T _Z3f00.*$//p'",
		 in_dir("slow.so"));
	f = popen(line, "r");
	assert_int_equal(fscanf(f, "%llx", &first), 1);
	pclose(f);
	for (uint64_t i = 0; i < 64; i++)
		at[i] = first + i;
	fixture_init(&fx, NULL);
	lib_open(&fx, &l, 0);
	assert_int_equal(open_path(&fx, in_dir("slow.so")), 0);
	assert_int_equal(resolve_wait(&fx, fx.file, at, 64), 0);
	for (int i = 0; i < 64; i++) {
		snprintf(line, sizeof(line),
			 i % 2 ? "_RMIC3f%02dFGzz" : "_Z3f%02dIJiEEvDp1PI", i);
		assert_int_equal(strncmp(fx.text[i][0], line, strlen(line)), 0);
	}
	assert_int_equal(stats(&fx).undemangled, 64);
	assert_int_equal(resolve_wait(&fx, l.file, &l.at, 1), 0);
	assert_string_equal(fx.text[0][0], "fn0");
	assert_int_equal(stats(&fx).worker_failed + stats(&fx).worker_hung, 0);
	assert_int_equal(stats(&fx).worker_starts, 1);
	symbolizer_close(fx.s, l.file);
	fixture_fini(&fx);
}

struct rows_got {
	struct symbolizer_rows *rows;
	int n, err;
};

static void on_rows(void *arg, int err, struct symbolizer_rows *rows)
{
	struct rows_got *g = arg;

	g->n++;
	g->err = err;
	g->rows = rows;
}

/* The same bytes as in this process; in the message, or in a memfd. */
static void a_table_is_the_one_that_was_made(void **state)
{
	char small[300];
	const char *paths[] = { NULL, small };
	struct symbolizer_rows *here;
	struct symbolizer_src src;
	const void *a, *b;
	size_t len, len2;
	struct fixture fx;
	struct stat st;
	struct rows_got g;
	Dl_info libc;
	int fd;

	assert_true(dladdr((void *)printf, &libc));
	paths[0] = libc.dli_fname;
	make_library("lib0.so", "fn0");
	snprintf(small, sizeof(small), "%s/lib0.so", dir);
	fixture_init(&fx, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		assert_int_equal(open_path(&fx, paths[i]), 0);
		g = (struct rows_got){ 0 };
		symbolizer_rows(fx.s, fx.file, on_rows, &g);
		wait_for(&fx, &g.n, 1);
		assert_int_equal(g.err, 0);
		a = symbolizer_rows_bytes(g.rows, &len);
		assert_int_equal(len > 32768, i == 0);

		fd = open(paths[i], O_RDONLY);
		fstat(fd, &st);
		symbolizer_src_fd(&src, fd, (uint64_t)st.st_size);
		assert_int_equal(symbolizer_rows_read(&here, &src, NULL), 0);
		close(fd);
		b = symbolizer_rows_bytes(here, &len2);
		assert_int_equal(len, len2);
		assert_memory_equal(a, b, len);
		symbolizer_rows_free(here);
		symbolizer_rows_free(g.rows);
	}
	fixture_fini(&fx);
}

/* --- debug files ------------------------------------------------------------------------ */

static int debug_file(const char *const *dirs, const char *beside,
		      const char *id, const char *name, unsigned int *nth)
{
	static const struct symbolizer_own nowhere;
	uint64_t where;
	int fd;

	do
		fd = symbolizer_open_debug(dirs, &nowhere, beside,
					   (const uint8_t *)id, strlen(id),
					   name, (*nth)++, &where);
	while (fd == -EAGAIN);
	return fd;
}

static void expect_file(int fd, const char *text)
{
	char got[32] = "";

	assert_true(fd >= 0);
	assert_true(read(fd, got, sizeof(got) - 1) > 0);
	got[strcspn(got, "\n")] = '\0';
	assert_string_equal(got, text);
	close(fd);
}

static void debug_files_are_found_beneath_their_directories(void **state)
{
	char one[300], two[300];
	const char *dirs[] = { one, two, NULL };
	unsigned int nth = 0;

	snprintf(one, sizeof(one), "%s/debug", dir);
	snprintf(two, sizeof(two), "%s/more", dir);
	sh("mkdir -p debug/.build-id/41 debug/usr/bin debug/.dwz more && "
	   "echo id > debug/.build-id/41/4243.debug && "
	   "echo beside > debug/usr/bin/prog && echo plain > debug/prog && "
	   "echo dwz > debug/.dwz/prog && echo more > more/prog && "
	   "echo secret > secret && ln -s ../secret debug/link && "
	   "ln -s %s/secret debug/absolute && mkfifo debug/fifo && "
	   "ln -s prog debug/inside",
	   dir);
	expect_file(debug_file(dirs, NULL, "ABC", NULL, &nth), "id");
	assert_int_equal(debug_file(dirs, NULL, "ABC", NULL, &nth), -ENOENT);
	/* All places, one by one. */
	nth = 0;
	expect_file(debug_file(dirs, "/usr/bin/x", "", "prog", &nth), "beside");
	expect_file(debug_file(dirs, "/usr/bin/x", "", "prog", &nth), "plain");
	expect_file(debug_file(dirs, "/usr/bin/x", "", "prog", &nth), "dwz");
	expect_file(debug_file(dirs, "/usr/bin/x", "", "prog", &nth), "more");
	assert_int_equal(debug_file(dirs, "/usr/bin/x", "", "prog", &nth),
			 -ENOENT);
	nth = 0;
	expect_file(debug_file(dirs, NULL, "", "inside", &nth), "plain");
	/* The path of a watched process cannot lead out of them. */
	for (size_t i = 0; i < 4; i++) {
		static const char *const names[] = { "link", "absolute", "fifo",
						     "secret" };

		nth = 0;
		assert_int_equal(debug_file(dirs, "/../x", "", names[i], &nth),
				 -ENOENT);
	}
}

/* Stripped to its segments: rows come from the debug file. */
static void the_worker_gets_debug_files(void **state)
{
	char debug[300];
	const char *dirs[] = { debug, NULL };
	struct symbolizer_opts opts = { .debug_dirs = dirs };
	struct symbolizer_rows_info info;
	struct rows_got g = { 0 };
	struct fixture fx;

	snprintf(debug, sizeof(debug), "%s/dbg", dir);
	sh("echo 'int f(int x){return x+1;} int g(int x){return x+2;}' | "
	   "cc -x c - -g -shared -fPIC -nostdlib -Wl,--build-id=none "
	   "-fno-asynchronous-unwind-tables -o d.so && mkdir -p dbg && "
	   "objcopy --only-keep-debug d.so dbg/d.debug && "
	   "strip d.so && objcopy --add-gnu-debuglink=dbg/d.debug d.so");
	fixture_init(&fx, &opts);
	assert_int_equal(open_path(&fx, in_dir("d.so")), 0);
	symbolizer_rows(fx.s, fx.file, on_rows, &g);
	wait_for(&fx, &g.n, 1);
	assert_int_equal(g.err, 0);
	symbolizer_rows_info(g.rows, &info);
	assert_true(info.rows >= 2);
	assert_false(info.by_code);
	symbolizer_rows_free(g.rows);
	/* One with another checksum is not used. */
	sh("printf x >> dbg/d.debug");
	symbolizer_rows(fx.s, fx.file, on_rows, &g);
	wait_for(&fx, &g.n, 2);
	assert_int_equal(g.err, 0);
	symbolizer_rows_info(g.rows, &info);
	assert_true(info.by_code);
	symbolizer_rows_free(g.rows);
	/* Of one that is all a hole it is not computed. */
	sh("truncate -s 1T dbg/d.debug");
	symbolizer_rows(fx.s, fx.file, on_rows, &g);
	wait_for(&fx, &g.n, 3);
	assert_int_equal(g.err, 0);
	symbolizer_rows_info(g.rows, &info);
	assert_true(info.by_code);
	symbolizer_rows_free(g.rows);
	assert_int_equal(stats(&fx).worker_hung, 0);
	fixture_fini(&fx);
}

/* --- how it ends, and begins again ------------------------------------------------------- */

#define KILLS 20
#define LIBS 4

struct storm {
	struct fixture fx;
	struct lib libs[LIBS];
	int answers, wrong;
};

static void on_storm(void *arg, int err, const struct symbolizer_symbol *syms,
		     size_t n)
{
	struct storm *st = arg;

	st->answers++;
	if (err || n != 1 || !syms->nfunctions ||
	    strncmp(syms->functions->name, "fn", 2))
		st->wrong++;
}

/* Whenever it is killed, each request is answered. */
static void killed_it_loses_nothing(void **state)
{
	struct storm st = { 0 };
	int asked = 0, kills = 0;

	fixture_init(&st.fx, NULL);
	for (int i = 0; i < LIBS; i++)
		lib_open(&st.fx, &st.libs[i], i);
	while (kills < KILLS) {
		for (int i = 0; i < LIBS * 2; i++, asked++)
			symbolizer_resolve(st.fx.s, st.libs[i % LIBS].file,
					   &st.libs[i % LIBS].at, 1, on_storm,
					   &st);
		/* Before the question, while it starts, and after. */
		for (int i = 0; i < kills % 5; i++)
			uv_run(&st.fx.loop, UV_RUN_NOWAIT);
		if (worker_pid(&st.fx) &&
		    kill(worker_pid(&st.fx), SIGKILL) == 0)
			kills++;
		wait_for(&st.fx, &st.answers, asked);
	}
	assert_int_equal(st.wrong, 0);
	assert_int_equal(stats(&st.fx).quarantined, 0);
	assert_true(stats(&st.fx).worker_starts > 1);
	for (int i = 0; i < LIBS; i++)
		symbolizer_close(st.fx.s, st.libs[i].file);
	fixture_fini(&st.fx);
}

static void idle_it_may_be_killed_as_well(void **state)
{
	struct fixture fx;
	struct lib l;

	fixture_init(&fx, NULL);
	lib_open(&fx, &l, 0);
	fx.file = l.file;
	for (int i = 0; i < 3; i++) {
		expect_name(&fx, l.at, "fn0");
		kill(worker_pid(&fx), SIGKILL);
	}
	expect_name(&fx, l.at, "fn0");
	assert_int_equal(stats(&fx).quarantined, 0);
	fixture_fini(&fx);
}

/* A stopped worker is replaced; that does not count against its file. */
static void stopped_it_is_replaced(void **state)
{
	struct symbolizer_opts opts = { .worker_deadline_ms = 1000,
					.open_deadline_ms = 60000 };
	struct fixture fx;
	struct symbolizer_quarantined q;
	struct lib l;
	pid_t pid;

	fixture_init(&fx, &opts);
	lib_open(&fx, &l, 0);
	fx.file = l.file;
	/* A file that is to blame is quarantined after the third time. */
	for (int i = 1; i <= 4; i++) {
		pid = worker_pid(&fx);
		assert_int_equal(kill(pid, SIGSTOP), 0);
		expect_name(&fx, l.at, "fn0");
		assert_int_equal(stats(&fx).worker_hung, i);
	}
	assert_false(symbolizer_quarantined(fx.s, 0, &q));
	assert_int_equal(stats(&fx).quarantined, 0);
	fixture_fini(&fx);
	assert_int_equal(kill(pid, 0), -1);
}

static int poll_fails;

/* Replaces libuv's: fails this many times. */
int uv_poll_init(uv_loop_t *loop, uv_poll_t *handle, int fd)
{
	int (*real)(uv_loop_t *, uv_poll_t *, int);

	*(void **)&real = dlsym(RTLD_NEXT, "uv_poll_init");
	return poll_fails-- > 0 ? UV_EMFILE : real(loop, handle, fd);
}

static void unwatched_it_is_reaped(void **state)
{
	siginfo_t info = { .si_pid = 0 };
	struct fixture fx;
	struct lib l;

	/* That of the first opener and that of the first worker. */
	poll_fails = 2;
	fixture_init(&fx, NULL);
	lib_open(&fx, &l, 0);
	assert_true(poll_fails < 0);
	assert_int_equal(stats(&fx).opener_failed, 1);
	assert_int_equal(stats(&fx).worker_failed, 1);
	if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT))
		info.si_pid = 0;
	assert_int_equal(info.si_pid, 0);
	poll_fails = 0;
	symbolizer_close(fx.s, l.file);
	fixture_fini(&fx);
}

static void without_a_worker_requests_fail_soon(void **state)
{
	struct symbolizer_opts opts = { 0 };
	const char *const programs[] = { "/no/such/program", "/bin/false" };
	struct fixture fx;
	char text[256];

	make_library("lib0.so", "fn0");
	for (size_t i = 0; i < ARRAY_SIZE(programs); i++) {
		opts.worker = programs[i];
		opts.open_deadline_ms = 60000;
		fixture_init(&fx, &opts);
		for (int k = 0; k < 20; k++)
			assert_int_equal(open_path(&fx, in_dir("lib0.so")),
					 -EIO);
		/* It was not tried for each of them. */
		assert_in_range(stats(&fx).worker_starts, 5, 15);
		assert_int_equal(stats(&fx).quarantined, 0);
		symbolizer_worker_status(fx.s, text, sizeof(text));
		assert_int_equal(strncmp(text, "none: ", 6), 0);
		/* The kernel and the vDSO are still read. */
		assert_int_equal(
			resolve_wait(&fx, symbolizer_vdso(fx.s), NULL, 0), 0);
		fixture_fini(&fx);
	}
}

/* Once the program exists, everything works. */
static void it_is_tried_again(void **state)
{
	struct symbolizer_opts opts = { .worker = in_dir("script"),
					.open_deadline_ms = 60000 };
	struct fixture fx;
	int err;

	make_library("lib0.so", "fn0");
	sh("printf '#!/bin/sh\\n[ -e %s/here ] && exec %s \"$@\"\\n' > script "
	   "&& chmod +x script",
	   dir, self);
	fixture_init(&fx, &opts);
	assert_int_equal(open_path(&fx, in_dir("lib0.so")), -EIO);
	sh("touch here");
	for (int i = 0; i < 600; i++) {
		err = open_path(&fx, in_dir("lib0.so"));
		if (err != -EIO)
			break;
		usleep(100000);
	}
	assert_int_equal(err, 0);
	fixture_fini(&fx);
}

/* That deadline is for paths; the worker has its own. */
static void a_late_worker_makes_no_path_slow(void **state)
{
	struct symbolizer_opts opts = { .worker = in_dir("late"),
					.open_deadline_ms = 1000 };
	struct fixture fx;

	make_library("lib0.so", "fn0");
	sh("printf '#!/bin/sh\nsleep 1.5\nexec %s \"$@\"\n' > late && "
	   "chmod +x late",
	   self);
	fixture_init(&fx, &opts);
	assert_int_equal(open_path(&fx, in_dir("lib0.so")), 0);
	assert_int_equal(stats(&fx).open_timeouts, 0);
	fixture_fini(&fx);
}

static void a_worker_has_no_worker(void **state)
{
	struct symbolizer_opts opts = { .worker = self };
	struct symbolizer *s;
	uv_loop_t loop;

	uv_loop_init(&loop);
	opts.loop = &loop;
	setenv("SYMBOLIZER_WORKER", "1", 1);
	assert_int_equal(symbolizer_new(&s, &opts), -ELOOP);
	unsetenv("SYMBOLIZER_WORKER");
	uv_loop_close(&loop);
}

/* Before the limit ends it, with whatever file it has then. */
static void worn_out_it_is_replaced(void **state)
{
	/* No index is kept: each request makes it again. */
	struct symbolizer_opts opts = { .worker_cpu_s = 2, .index_bytes = 1 };
	struct fixture fx;
	uint64_t at = 0;
	Dl_info libc;

	assert_true(dladdr((void *)printf, &libc));
	fixture_init(&fx, &opts);
	assert_int_equal(open_path(&fx, libc.dli_fname), 0);
	while (stats(&fx).worker_starts < 2)
		assert_int_equal(resolve_wait(&fx, fx.file, &at, 1), 0);
	assert_int_equal(resolve_wait(&fx, fx.file, &at, 1), 0);
	assert_int_equal(stats(&fx).worker_failed, 0);
	assert_int_equal(stats(&fx).quarantined, 0);
	fixture_fini(&fx);
}

/* Not with AddressSanitizer, which allocates memory in other ways. */
__attribute__((unused)) static void
a_file_that_takes_too_much_memory_is_quarantined(void **state)
{
	struct symbolizer_opts opts = { .worker_memory = 1 << 20 };
	struct fixture fx;
	struct symbolizer_quarantined q;
	uint64_t at = 0;
	struct lib l;

	/* 50,000 functions: an index of 0.8 MB, and twice that to make it. */
	sh("awk 'BEGIN { print \".text\"; for (i = 0; i < 50000; i++) "
	   "printf \".globl f%%d\\n.type f%%d,@function\\nf%%d: ret\\n"
	   ".size f%%d,1\\n\", i, i, i, i }' > big.s && "
	   "cc -shared -nostdlib -Wl,--hash-style=sysv -o big.so big.s");
	fixture_init(&fx, &opts);
	lib_open(&fx, &l, 0);
	assert_int_equal(open_path(&fx, in_dir("big.so")), 0);
	assert_int_equal(resolve_wait(&fx, fx.file, &at, 1), -EBADMSG);
	/* The first time it had read another file, too. */
	assert_int_equal(stats(&fx).worker_shared, 1);
	assert_int_equal(stats(&fx).worker_nomem, 4);
	assert_int_equal(stats(&fx).quarantined, 1);
	assert_true(symbolizer_quarantined(fx.s, 0, &q));
	assert_string_equal(q.path, in_dir("big.so"));
	assert_string_equal(q.text, "it took too much memory to read");
	assert_int_equal(resolve_wait(&fx, l.file, &l.at, 1), 0);
	assert_string_equal(fx.text[0][0], "fn0");
	symbolizer_close(fx.s, l.file);
	fixture_fini(&fx);
}

static void on_turn(uv_timer_t *timer)
{
	*(bool *)timer->data = true;
}

/* The loop goes on for so long, as it does in profd for other reasons. */
static void turn(struct fixture *fx, uint64_t ms)
{
	bool over = false;
	uv_timer_t timer = { .data = &over };

	uv_timer_init(&fx->loop, &timer);
	uv_timer_start(&timer, on_turn, ms, 0);
	while (!over)
		uv_run(&fx->loop, UV_RUN_ONCE);
	uv_close((uv_handle_t *)&timer, NULL);
	uv_run(&fx->loop, UV_RUN_NOWAIT);
}

static void idle_it_is_let_go(void **state)
{
	struct symbolizer_opts opts = { .worker_idle_ms = 20 };
	struct fixture fx;
	struct lib l;

	fixture_init(&fx, &opts);
	lib_open(&fx, &l, 0);
	fx.file = l.file;
	expect_name(&fx, l.at, "fn0");
	for (int i = 0; i < 6000 && worker_pid(&fx); i++)
		turn(&fx, 10);
	assert_int_equal(worker_pid(&fx), 0);
	assert_int_equal(stats(&fx).index_bytes, 0);
	assert_int_equal(stats(&fx).worker_failed, 0);
	expect_name(&fx, l.at, "fn0");
	assert_int_equal(stats(&fx).worker_starts, 2);
	fixture_fini(&fx);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_has_one_socket_and_no_privilege),
		cmocka_unit_test(it_dies_with_profd),
		cmocka_unit_test(large_answers_come_in_pieces),
		cmocka_unit_test(a_slow_name_stays_mangled),
		cmocka_unit_test(a_table_is_the_one_that_was_made),
		cmocka_unit_test(
			debug_files_are_found_beneath_their_directories),
		cmocka_unit_test(the_worker_gets_debug_files),
		cmocka_unit_test(killed_it_loses_nothing),
		cmocka_unit_test(idle_it_may_be_killed_as_well),
		cmocka_unit_test(stopped_it_is_replaced),
		cmocka_unit_test(unwatched_it_is_reaped),
		cmocka_unit_test(without_a_worker_requests_fail_soon),
		cmocka_unit_test(it_is_tried_again),
		cmocka_unit_test(a_late_worker_makes_no_path_slow),
		cmocka_unit_test(a_worker_has_no_worker),
		cmocka_unit_test(worn_out_it_is_replaced),
#ifndef __SANITIZE_ADDRESS__
		cmocka_unit_test(
			a_file_that_takes_too_much_memory_is_quarantined),
#endif
		cmocka_unit_test(idle_it_is_let_go),
	};

	worker_or_test(argc, argv);
	return cmocka_run_group_tests(tests, setup, teardown);
}
