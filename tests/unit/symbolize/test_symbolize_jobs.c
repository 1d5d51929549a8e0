// SPDX-License-Identifier: Apache-2.0
/*
 * The symbolizer's jobs: deadlines, cancellation, the limit of indexes; and the
 * two files that always exist, the kernel and the vDSO.
 */
#include <fcntl.h>
#include <time.h>

#include "tests/unit/symbolize/test_symbolize.h"

/* Replaces libc's: boot time can be advanced. */
static atomic_int boottime_ahead_s;

int clock_gettime(clockid_t id, struct timespec *ts)
{
	int err = (int)syscall(SYS_clock_gettime, id, ts);

	if (id == CLOCK_BOOTTIME)
		ts->tv_sec += boottime_ahead_s;
	return err;
}

/* --- time and order -------------------------------------------------------- */

struct opened {
	struct fixture *fx;
	int errs[8];
};

static void on_opened(void *arg, int err, struct symbolizer_file *file)
{
	struct opened *o = arg;

	assert_null(file);
	o->errs[o->fx->opened++] = err;
}

static void a_slow_opening_ends_at_its_deadline(void **state)
{
	struct symbolizer_opts opts = { .open_deadline_ms = 50 };
	struct symbolizer_open_req req = { .path = in_dir("slow.so") };
	uint64_t at = make_library("slow.so", "slow");
	struct fixture fx;
	struct opened o = { .fx = &fx };

	fixture_init(&fx, &opts);
	statfs_sleep_ms = 300;
	/* Four hang; the one queued after these is refused. */
	for (int i = 0; i < 5; i++)
		assert_int_equal(symbolizer_open(fx.s, &req, on_opened, &o), 0);
	wait_for(&fx, &fx.opened, 5);
	for (int i = 0; i < 4; i++)
		assert_int_equal(o.errs[i], -ETIMEDOUT);
	assert_int_equal(o.errs[4], -EBUSY);
	/* Names are resolved meanwhile. */
	assert_int_equal(resolve_wait(&fx, symbolizer_vdso(fx.s), &at, 1), 0);
	assert_int_equal(stats(&fx).open_timeouts, 4);
	assert_int_equal(stats(&fx).opened, 0);
	/* A late answer is dropped. */
	uv_run(&fx.loop, UV_RUN_DEFAULT);
	assert_int_equal(fx.opened, 5);
	statfs_sleep_ms = 0;
	/* ... until those that hung come back. */
	for (int i = 0; i < 40 && open_wait(&fx, &req); i++)
		usleep(50000);
	expect_name(&fx, at, "slow");
	fixture_fini(&fx);
}

/*
 * Time in which the loop was blocked is a tick of four, not all of the
 * deadline.
 */
static void a_blocked_loop_is_no_deadline(void **state)
{
	struct symbolizer_opts opts = { .open_deadline_ms = 1000 };
	struct symbolizer_open_req req = { .path = in_dir("slow.so") };
	struct fixture fx;

	make_library("slow.so", "slow");
	fixture_init(&fx, &opts);
	statfs_sleep_ms = 1200;
	assert_int_equal(symbolizer_open(fx.s, &req, on_open, &fx), 0);
	usleep(900000);
	wait_for(&fx, &fx.opened, 1);
	assert_int_equal(fx.open_err, 0);
	statfs_sleep_ms = 0;
	fixture_fini(&fx);
}

static int count_fds(void)
{
	int n = 0;

	for (int fd = 0; fd < 1024; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static void the_end_answers_what_is_owed(void **state)
{
	struct symbolizer_open_req req = { .path = in_dir("owed.so") };
	uint64_t at = make_library("owed.so", "fn");
	struct fixture fx;
	int fds = count_fds();

	fixture_init(&fx, NULL);
	statfs_sleep_ms = 100;
	for (int i = 0; i < 5; i++) {
		symbolizer_open(fx.s, &req, on_open, &fx);
		symbolizer_resolve(fx.s, symbolizer_kernel(fx.s), &at, 1,
				   on_resolve, &fx);
	}
	uv_run(&fx.loop, UV_RUN_NOWAIT);
	symbolizer_free(fx.s);
	assert_int_equal(fx.opened, 5);
	assert_int_equal(fx.open_err, -ECANCELED);
	assert_int_equal(fx.resolved, 5);
	assert_int_equal(fx.resolve_err, -ECANCELED);
	uv_run(&fx.loop, UV_RUN_DEFAULT);
	assert_int_equal(fx.opened + fx.resolved, 10);
	statfs_sleep_ms = 0;
	assert_int_equal(uv_loop_close(&fx.loop), 0);
	assert_int_equal(count_fds(), fds);
}

static void closing_ends_a_file_s_requests(void **state)
{
	uint64_t at = make_library("close.so", "fn");
	struct fixture fx;

	fixture_init(&fx, NULL);
	assert_int_equal(open_path(&fx, in_dir("close.so")), 0);
	for (int i = 0; i < 3; i++)
		symbolizer_resolve(fx.s, fx.file, &at, 1, on_resolve, &fx);
	symbolizer_resolve(fx.s, symbolizer_vdso(fx.s), &at, 1, on_resolve,
			   &fx);
	symbolizer_close(fx.s, fx.file);
	fx.file = NULL;
	assert_int_equal(fx.resolved, 3);
	assert_int_equal(fx.resolve_err, -ECANCELED);
	wait_for(&fx, &fx.resolved, 4);
	assert_int_equal(fx.resolve_err, 0); /* another request continues */
	assert_int_equal(open_path(&fx, in_dir("close.so")), 0);
	fx.close_inside = true;
	assert_int_equal(resolve_wait(&fx, fx.file, &at, 1), 0);
	assert_string_equal(fx.text[0][0], "fn");
	fixture_fini(&fx);
}

/* Bytes of the index of one such library. */
static size_t index_bytes(void)
{
	uint64_t at = make_library("one.so", "fn");
	struct fixture fx;
	size_t bytes;

	fixture_init(&fx, NULL);
	assert_int_equal(open_path(&fx, in_dir("one.so")), 0);
	expect_name(&fx, at, "fn");
	bytes = stats(&fx).index_bytes;
	fixture_fini(&fx);
	return bytes;
}

static void indexes_stay_under_their_ceiling(void **state)
{
	const size_t max = index_bytes() * 7 / 2;
	struct symbolizer_opts opts = { .index_bytes = max };
	struct symbolizer_file *files[6];
	struct fixture fx;
	char name[32], fn[32];
	uint64_t at = 0;

	fixture_init(&fx, &opts);
	for (int i = 0; i < 6; i++) {
		snprintf(name, sizeof(name), "lru%d.so", i);
		snprintf(fn, sizeof(fn), "fn%d", i);
		at = make_library(name, fn);
		assert_int_equal(open_path(&fx, in_dir(name)), 0);
		files[i] = fx.file;
		expect_name(&fx, at, fn);
		fx.file = NULL;
		assert_true(stats(&fx).index_bytes <= max);
	}
	assert_int_equal(stats(&fx).index_built, 6);
	assert_true(stats(&fx).index_evicted >= 1);
	assert_true(stats(&fx).index_evicted < 6);
	/* Three have room: 3, 4, 5. One that is used again stays longer. */
	resolve_wait(&fx, files[3], &at, 1);
	assert_int_equal(stats(&fx).index_built, 6);
	resolve_wait(&fx, files[0], &at, 1);
	assert_string_equal(fx.text[0][0], "fn0");
	assert_int_equal(stats(&fx).index_built, 7);
	resolve_wait(&fx, files[3], &at, 1);
	resolve_wait(&fx, files[5], &at, 1);
	assert_int_equal(stats(&fx).index_built, 7);
	resolve_wait(&fx, files[4], &at, 1);
	assert_int_equal(stats(&fx).index_built, 8);
	assert_true(stats(&fx).index_bytes <= max);
	for (int i = 0; i < 6; i++)
		symbolizer_close(fx.s, files[i]);
	fixture_fini(&fx);
}

/* --- the kernel and the vDSO ----------------------------------------------- */

#define MANY 5000 /* more than two questions */

struct many {
	uint64_t at[MANY];
	char name[MANY][8];
	int answers, wrong;
};

static void on_many(void *arg, int err, const struct symbolizer_symbol *syms,
		    size_t n)
{
	struct many *m = arg;

	assert_int_equal(err, 0);
	assert_int_equal(n, MANY);
	for (size_t i = 0; i < n; i++)
		m->wrong += syms[i].offset != m->at[i] ||
			    syms[i].nfunctions != 1 ||
			    strcmp(syms[i].functions[0].name, m->name[i]) != 0;
	m->answers++;
}

/* A worker is asked by address, in several questions. */
static void answers_are_in_the_order_of_the_request(void **state)
{
	static struct many m;
	struct fixture fx;
	char line[256];
	int i = 0;
	FILE *f;

	sh("seq %d | sed 's/.*/int f&(void) { return &; }/' | "
	   "gcc -x c -shared -fPIC -o %s -",
	   MANY, in_dir("many.so"));
	snprintf(line, sizeof(line),
		 "nm %s | awk '$3 ~ /^f[0-9]+$/ { print $1, $3 }' | sort -k 2",
		 in_dir("many.so"));
	f = popen(line, "r");
	while (i < MANY && fgets(line, sizeof(line), f) &&
	       sscanf(line, "%lx %7s", &m.at[i], m.name[i]) == 2)
		i++;
	pclose(f);
	assert_int_equal(i, MANY);
	fixture_init(&fx, NULL);
	assert_int_equal(open_path(&fx, in_dir("many.so")), 0);
	assert_int_equal(
		symbolizer_resolve(fx.s, fx.file, m.at, MANY, on_many, &m), 0);
	wait_for(&fx, &m.answers, 1);
	assert_int_equal(m.wrong, 0);
	fixture_fini(&fx);
}

static void write_kallsyms(const char *text)
{
	FILE *f = fopen(in_dir("kallsyms"), "w");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static void kernel_addresses_have_names_and_modules(void **state)
{
	struct symbolizer_opts opts = { .kallsyms = in_dir("kallsyms") };
	uint64_t at[] = { 0xffffffffc0000010, 0xffffffff81000010,
			  0xffffffff81000200, 0xffffffffc0200000 };
	struct fixture fx;

	write_kallsyms(
		"ffffffff81000000 T do_thing\nffffffff81000100 T _etext\n"
		"ffffffff81000300 T last\n"
		"ffffffffc0000000 t helper\t[mod]\n");
	fixture_init(&fx, &opts);
	assert_int_equal(resolve_wait(&fx, symbolizer_kernel(fx.s), at, 4), 0);
	assert_string_equal(fx.text[0][0], "helper");
	assert_string_equal(fx.module[0], "mod");
	assert_string_equal(fx.text[1][0], "do_thing");
	assert_string_equal(fx.module[1], "vmlinux");
	assert_int_equal(fx.syms[1].vaddr, at[1]);
	assert_int_equal(fx.syms[1].start, 0xffffffff81000000);
	assert_int_equal(fx.syms[1].size, 0x100);
	assert_string_equal(fx.text[2][0], "");
	assert_string_equal(fx.text[3][0], "");
	/* It is not re-read so soon. */
	write_kallsyms("ffffffff81000000 T other\n");
	assert_int_equal(resolve_wait(&fx, symbolizer_kernel(fx.s), at, 4), 0);
	assert_string_equal(fx.text[1][0], "do_thing");
	assert_int_equal(stats(&fx).index_built, 1);
	fixture_fini(&fx);
}

static void modules_that_come_later_are_found(void **state)
{
	struct symbolizer_opts opts = { .kallsyms = in_dir("kallsyms") };
	const uint64_t gap = 0xffffffff81000200, mod = 0xffffffffc0200000;
	struct fixture fx;

	write_kallsyms(
		"ffffffff81000000 T do_thing\nffffffff81000100 T _etext\n"
		"ffffffff81000300 T last\n");
	fixture_init(&fx, &opts);
	fx.file = symbolizer_kernel(fx.s);
	expect_name(&fx, mod, "");
	write_kallsyms(
		"ffffffff81000000 T do_thing\nffffffff81000100 T _etext\n"
		"ffffffff81000300 T last\n"
		"ffffffffc0200000 t bpf_prog_1\t[bpf]\n");
	boottime_ahead_s = 9;
	expect_name(&fx, mod, "");
	boottime_ahead_s = 11;
	expect_name(&fx, gap, ""); /* no module is there */
	assert_int_equal(stats(&fx).index_built, 1);
	expect_name(&fx, mod, "bpf_prog_1");
	assert_string_equal(fx.module[0], "bpf");
	/* The old symbols stay if nothing can be read. */
	assert_int_equal(unlink(in_dir("kallsyms")), 0);
	boottime_ahead_s = 30;
	expect_name(&fx, mod + (1 << 20), "");
	expect_name(&fx, mod, "bpf_prog_1");
	boottime_ahead_s = 0;
	fx.file = NULL;
	fixture_fini(&fx);
}

static void a_kernel_that_hides_is_counted(void **state)
{
	struct symbolizer_opts opts = { .kallsyms = in_dir("kallsyms") };
	uint64_t at = 0xffffffff81000010;
	struct fixture fx;

	write_kallsyms("0000000000000000 T do_thing\n");
	fixture_init(&fx, &opts);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(
			resolve_wait(&fx, symbolizer_kernel(fx.s), &at, 1), 0);
		assert_string_equal(fx.text[0][0], "");
	}
	assert_int_equal(stats(&fx).kallsyms_hidden, 1);
	assert_int_equal(stats(&fx).unnamed, 2);
	fixture_fini(&fx);
	opts.kallsyms = in_dir("no such file");
	fixture_init(&fx, &opts);
	assert_int_equal(resolve_wait(&fx, symbolizer_kernel(fx.s), &at, 1),
			 -ENOENT);
	fixture_fini(&fx);
}

static uint64_t kallsyms_address(const char *name)
{
	FILE *f = fopen("/proc/kallsyms", "r");
	unsigned long long addr, found = 0;
	char line[1024], got[512];

	assert_non_null(f);
	while (!found && fgets(line, sizeof(line), f))
		if (sscanf(line, "%llx %*c %511s", &addr, got) == 2 &&
		    strcmp(got, name) == 0)
			found = addr;
	fclose(f);
	return found;
}

static void this_kernel_is_known(void **state)
{
	const char *const names[] = { "schedule", "ksys_write", "vfs_read" };
	uint64_t at[ARRAY_SIZE(names)];
	struct fixture fx;
	uint8_t notes[4096];
	ssize_t n;
	int fd;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		at[i] = kallsyms_address(names[i]) + 1;
	if (at[0] == 1) {
		puts("# this place forbids the kernel's addresses");
		skip();
	}
	fixture_init(&fx, NULL);
	assert_int_equal(resolve_wait(&fx, symbolizer_kernel(fx.s), at,
				      ARRAY_SIZE(names)),
			 0);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		assert_string_equal(fx.text[i][0], names[i]);
	fd = open("/sys/kernel/notes", O_RDONLY);
	n = read(fd, notes, sizeof(notes));
	close(fd);
	assert_int_equal(
		symbolizer_ident(symbolizer_kernel(fx.s))->build_id_len, 20);
	assert_non_null(memmem(
		notes, (size_t)n,
		symbolizer_ident(symbolizer_kernel(fx.s))->build_id, 20));
	fixture_fini(&fx);
}

static void the_vdso_is_named_from_memory(void **state)
{
	unsigned long long start = 0, end, value;
	char line[512], type[16], name[128];
	struct fixture fx;
	int functions = 0, fd;
	uint64_t offset;
	FILE *f = fopen("/proc/self/maps", "r");

	while (fgets(line, sizeof(line), f))
		if (strstr(line, "[vdso]"))
			sscanf(line, "%llx-%llx", &start, &end);
	fclose(f);
	if (!start)
		skip(); /* hidden by valgrind, or none */
	fd = open(in_dir("vdso"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(write(fd, (void *)(uintptr_t)start, end - start),
			 end - start);
	close(fd);
	fixture_init(&fx, NULL);
	assert_true(symbolizer_ident(symbolizer_vdso(fx.s))->build_id_len > 0);
	snprintf(line, sizeof(line), "readelf --dyn-syms -W %s",
		 in_dir("vdso"));
	f = popen(line, "r");
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, " %*u: %llx %*s %15s %*s %*s %*s %127s",
			   &value, type, name) != 3 ||
		    strcmp(type, "FUNC") != 0 || strncmp(name, "__vdso", 6))
			continue;
		offset = value;
		assert_int_equal(resolve_wait(&fx, symbolizer_vdso(fx.s),
					      &offset, 1),
				 0);
		assert_int_equal(fx.syms[0].start, value);
		name[strcspn(name, "@")] = '\0';
		assert_non_null(strstr(name, fx.text[0][0]));
		assert_true(fx.text[0][0][0]);
		functions++;
	}
	pclose(f);
	assert_true(functions >= 3);
	fixture_fini(&fx);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_slow_opening_ends_at_its_deadline),
		cmocka_unit_test(a_blocked_loop_is_no_deadline),
		cmocka_unit_test(the_end_answers_what_is_owed),
		cmocka_unit_test(closing_ends_a_file_s_requests),
		cmocka_unit_test(indexes_stay_under_their_ceiling),
		cmocka_unit_test(answers_are_in_the_order_of_the_request),
		cmocka_unit_test(kernel_addresses_have_names_and_modules),
		cmocka_unit_test(modules_that_come_later_are_found),
		cmocka_unit_test(a_kernel_that_hides_is_counted),
		cmocka_unit_test(this_kernel_is_known),
		cmocka_unit_test(the_vdso_is_named_from_memory),
	};

	worker_or_test(argc, argv);
	return cmocka_run_group_tests(tests, setup, teardown);
}
