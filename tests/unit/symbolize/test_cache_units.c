// SPDX-License-Identifier: Apache-2.0
/*
 * Compile units in the cache on disk: a second symbolizer takes from there what a
 * worker of the first one read, for addresses that were never asked for; it adds what
 * is not there; and damage costs time only. Files are read by unit here.
 */
#include <dirent.h>
#include <time.h>

#include "symbolize/units/dwarf.h"
#include "tests/unit/symbolize/test_symbolize.h"

/* Ten seconds ahead: files that were just made count as settled. */
int clock_gettime(clockid_t id, struct timespec *ts)
{
	int err = (int)syscall(SYS_clock_gettime, id, ts);

	if (!err && id == CLOCK_REALTIME)
		ts->tv_sec += 10;
	return err;
}

static char cache_path[128], debug_dir[128];
static const char *const debug_dirs[] = { debug_dir, NULL };
static uint64_t at[4]; /* of f0 and g0 in one unit, f1 and g1 in another */
static const char *const names[4] = { "f0", "g0", "f1", "g1" };

static void new_cache(void)
{
	static int i;

	snprintf(cache_path, sizeof(cache_path), "%s/cache%d", dir, i++);
}

/* A library of two units, and its debug file, both without symbols of functions. */
static int make_units(void **state)
{
	char line[64], name[16];
	unsigned long long addr;
	int err = setup(state);
	FILE *f;

	if (err)
		return err;
	snprintf(debug_dir, sizeof(debug_dir), "%s/dbg", dir);
	sh("for i in 0 1; do echo 'static __attribute__((noinline)) int "
	   "f'$i'(int x) { return x * 3; } int g'$i'(int x) "
	   "{ return f'$i'(x + 1) + 2; }' >u$i.c; "
	   "cc -g -O1 -fPIC -c -o u$i.o u$i.c || exit 1; done; "
	   "echo '{ local: *; };' >map; cc -shared -nostdlib "
	   "-Wl,--build-id=0xaabbccdd -Wl,-z,noseparate-code "
	   "-Wl,--version-script=map -o units.full u0.o u1.o; "
	   "nm units.full | sed -n 's/ t \\([fg][01]\\)$/ \\1/p' >units.nm; "
	   "mkdir -p dbg/.build-id/aa; "
	   "objcopy --only-keep-debug units.full dbg/.build-id/aa/bbccdd.debug; "
	   "strip --strip-symbol=f0 --strip-symbol=f1 --strip-symbol=g0 "
	   "--strip-symbol=g1 dbg/.build-id/aa/bbccdd.debug; "
	   "strip -o units.so units.full");
	f = fopen(in_dir("units.nm"), "r");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		assert_int_equal(sscanf(line, "%llx %15s", &addr, name), 2);
		for (int i = 0; i < 4; i++)
			if (!strcmp(names[i], name))
				at[i] = addr;
	}
	fclose(f);
	assert_true(at[0] && at[1] && at[2] && at[3]);
	return 0;
}

static void start(struct fixture *fx, struct symbolizer_opts *opts)
{
	opts->cache = cache_path;
	opts->debug_dirs = debug_dirs;
	fixture_init(fx, opts);
	assert_int_equal(open_path(fx, in_dir("units.so")), 0);
}

static void expect_function(struct fixture *fx, int i)
{
	assert_int_equal(resolve_wait(fx, fx->file, &at[i], 1), 0);
	assert_string_equal(fx->text[0][0], names[i]);
}

/* What a symbolizer of its own did for one address. */
static struct symbolizer_stats ask(int i)
{
	struct symbolizer_opts opts = { 0 };
	struct symbolizer_stats st;
	struct fixture fx;

	start(&fx, &opts);
	expect_function(&fx, i);
	st = stats(&fx);
	fixture_fini(&fx);
	return st;
}

static void expect_units(int i, unsigned int read, unsigned int cached)
{
	struct symbolizer_stats st = ask(i);

	assert_int_equal(st.cache_names_hits, 0);
	assert_int_equal(st.units_read, read);
	assert_int_equal(st.units_cached, cached);
	assert_int_equal(st.cache_corrupt, 0);
}

/* Another address of a unit that was read, by another worker, of another profd. */
static void a_unit_is_read_once(void **state)
{
	new_cache();
	expect_units(0, 1, 0);
	expect_units(1, 0, 1);
}

static void units_are_added(void **state)
{
	new_cache();
	expect_units(0, 1, 0);
	expect_units(2, 1, 0);
	expect_units(1, 0, 1);
	expect_units(3, 0, 1);
}

static void without_a_cache_each_reads_them(void **state)
{
	struct symbolizer_opts opts = { .debug_dirs = debug_dirs };
	struct fixture fx;

	for (int i = 0; i < 2; i++) {
		fixture_init(&fx, &opts);
		assert_int_equal(open_path(&fx, in_dir("units.so")), 0);
		expect_function(&fx, i);
		assert_int_equal(stats(&fx).units_read, 1);
		assert_int_equal(stats(&fx).units_cached, 0);
		fixture_fini(&fx);
	}
}

/* What was not written yet is there for a worker that is new. */
static void what_waits_to_be_written_is_used(void **state)
{
	struct symbolizer_opts opts = { .worker_idle_ms = 1 };
	struct fixture fx;
	uint64_t starts;

	new_cache();
	start(&fx, &opts);
	expect_function(&fx, 0);
	starts = stats(&fx).worker_starts;
	while (stats(&fx).worker_starts == starts) {
		usleep(5000);
		uv_run(&fx.loop, UV_RUN_NOWAIT);
		expect_function(&fx, 1);
	}
	assert_int_equal(stats(&fx).cache_written, 0);
	assert_int_equal(stats(&fx).units_read, 1);
	assert_true(stats(&fx).units_cached > 0);
	fixture_fini(&fx);
}

/*
 * Names that come from kept units depend on the debug file, though nobody opened it.
 */
static void a_debug_file_that_changed_is_read_again(void **state)
{
	struct symbolizer_stats st;

	new_cache();
	expect_units(0, 1, 0);
	expect_units(1, 0, 1);
	assert_int_equal(ask(1).cache_names_hits, 1);
	sh("printf x >>dbg/.build-id/aa/bbccdd.debug");
	st = ask(1);
	assert_int_equal(st.cache_names_hits, 0);
	assert_int_equal(st.cache_stale, 2);
	assert_int_equal(st.units_read, 1);
	expect_units(0, 0, 1);
}

/* The path of the file of units. */
static void units_path(char path[400])
{
	DIR *d = opendir(cache_path);
	struct dirent *e;

	assert_non_null(d);
	*path = '\0';
	while ((e = readdir(d)))
		if (strstr(e->d_name, ".units"))
			snprintf(path, 400, "%s/%s", cache_path, e->d_name);
	closedir(d);
	assert_true(*path);
}

static void damage_costs_time_only(void **state)
{
	struct symbolizer_stats st;
	char path[400];
	struct stat was;
	uint8_t byte;
	int fd;

	new_cache();
	expect_units(0, 1, 0);
	units_path(path);
	assert_int_equal(stat(path, &was), 0);
	for (off_t i = 0; i < was.st_size; i += 1 + was.st_size / 40) {
		sh("rm -f %s/*.names", cache_path);
		fd = open(path, O_RDWR);
		assert_int_equal(pread(fd, &byte, 1, i), 1);
		byte ^= 0x10;
		assert_int_equal(pwrite(fd, &byte, 1, i), 1);
		close(fd);
		st = ask(0);
		/* But for padding. */
		if (!st.cache_corrupt && !st.cache_stale)
			assert_int_equal(st.units_cached, 1);
		else
			assert_int_equal(st.units_read, 1);
		sh("rm -f %s/*.names", cache_path);
		st = ask(1);
		assert_int_equal(st.units_read, 0);
		assert_int_equal(st.units_cached, 1);
	}
	for (off_t i = 1; i < was.st_size; i += 1 + was.st_size / 10) {
		sh("rm -f %s/*.names", cache_path);
		assert_int_equal(truncate(path, i), 0);
		st = ask(0);
		assert_int_equal(st.cache_corrupt, 1);
		assert_int_equal(st.units_read, 1);
	}
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_unit_is_read_once),
		cmocka_unit_test(units_are_added),
		cmocka_unit_test(without_a_cache_each_reads_them),
		cmocka_unit_test(what_waits_to_be_written_is_used),
		cmocka_unit_test(a_debug_file_that_changed_is_read_again),
		cmocka_unit_test(damage_costs_time_only),
	};

	dwarf_limits.small = 0;
	worker_or_test(argc, argv);
	return cmocka_run_group_tests(tests, make_units, teardown);
}
