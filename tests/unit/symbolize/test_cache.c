// SPDX-License-Identifier: Apache-2.0
/*
 * The cache on disk: what a second symbolizer finds there, what it does not use,
 * and damage to its files.
 */
#include <dirent.h>
#include <time.h>

#include "symbolize/cache/dir.h"
#include "symbolize/known.h"
#include "tests/unit/symbolize/test_symbolize.h"

/* Ten seconds ahead: files that were just made count as settled. */
static int clock_ahead_s = 10;
static int clock_asked; /* of the wall clock */

int clock_gettime(clockid_t id, struct timespec *ts)
{
	int err = (int)syscall(SYS_clock_gettime, id, ts);

	if (!err && id == CLOCK_REALTIME) {
		ts->tv_sec += clock_ahead_s;
		clock_asked++;
	}
	return err;
}

struct rows_got {
	struct symbolizer_rows *rows;
	int n, err;
	size_t len;
};

static void on_rows(void *arg, int err, struct symbolizer_rows *rows)
{
	struct rows_got *g = arg;

	g->n++;
	g->err = err;
	if (rows)
		symbolizer_rows_bytes(rows, &g->len);
	symbolizer_rows_free(rows);
}

static char cache_path[128];
static int cache_err;

static void on_failed(void *arg, int err)
{
	cache_err = err;
}

/* What one symbolizer answers for a file, and its statistics at the end. */
struct answer {
	size_t rows_len;
	int rows_err;
	char name[256];
	struct symbolizer_stats st;
};

static struct answer ask_with(struct symbolizer_opts *opts, const char *file,
			      uint64_t offset)
{
	struct answer a = { 0 };
	struct rows_got g = { 0 };
	struct fixture fx;

	opts->cache = cache_path;
	opts->cache_failed = on_failed;
	cache_err = 0;
	fixture_init(&fx, opts);
	assert_int_equal(open_path(&fx, in_dir(file)), 0);
	assert_int_equal(symbolizer_rows(fx.s, fx.file, on_rows, &g), 0);
	assert_int_equal(g.n, 0);
	wait_for(&fx, &g.n, 1);
	a.rows_err = g.err;
	a.rows_len = g.len;
	assert_int_equal(resolve_wait(&fx, fx.file, &offset, 1), 0);
	snprintf(a.name, sizeof(a.name), "%s", fx.text[0][0]);
	a.st = stats(&fx);
	fixture_fini(&fx);
	return a;
}

static struct answer ask(const char *file, uint64_t offset)
{
	struct symbolizer_opts none = { 0 };

	return ask_with(&none, file, offset);
}

static void new_cache(void)
{
	static int i;

	snprintf(cache_path, sizeof(cache_path), "%s/cache%d", dir, i++);
}

static void expect_hit(const struct answer *a)
{
	assert_int_equal(a->st.identified_known, 1);
	assert_int_equal(a->st.cache_rows_hits, 1);
	assert_int_equal(a->st.cache_rows_misses, 0);
	assert_int_equal(a->st.cache_names_hits, 1);
	assert_int_equal(a->st.cache_names_misses, 0);
	assert_int_equal(a->st.index_built, 0);
}

static void expect_miss(const struct answer *a)
{
	assert_int_equal(a->st.cache_rows_hits, 0);
	assert_int_equal(a->st.cache_names_hits, 0);
	assert_int_equal(a->st.index_built, 1);
}

/* How many files it has; the path of the last with this end. */
static int cache_files(const char *end, char path[400])
{
	DIR *d = opendir(cache_path);
	struct dirent *e;
	size_t len;
	int n = 0;

	assert_non_null(d);
	while ((e = readdir(d))) {
		len = strlen(e->d_name);
		if (e->d_name[0] == '.' || len < strlen(end) ||
		    strcmp(e->d_name + len - strlen(end), end) != 0)
			continue;
		if (path)
			snprintf(path, 400, "%s/%s", cache_path, e->d_name);
		n++;
	}
	closedir(d);
	return n;
}

static void the_second_one_reads_nothing(void **state)
{
	uint64_t at = make_library("one.so", "first_function");
	struct answer a, b;
	struct stat st;

	new_cache();
	a = ask("one.so", at);
	expect_miss(&a);
	assert_string_equal(a.name, "first_function");
	assert_int_equal(cache_files("", NULL), 3);
	assert_int_equal(stat(cache_path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	b = ask("one.so", at);
	expect_hit(&b);
	assert_string_equal(b.name, a.name);
	assert_int_equal(b.rows_err, a.rows_err);
	assert_int_equal(b.rows_len, a.rows_len);
	/* An address that was not asked for before. */
	b = ask("one.so", at + 0x100000);
	assert_int_equal(b.st.cache_names_misses, 1);
	assert_string_equal(b.name, "");
	b = ask("one.so", at + 0x100000);
	expect_hit(&b);
	b = ask("one.so", at + 1); /* the first is still there */
	expect_hit(&b);
	assert_string_equal(b.name, "first_function");
}

/* Another inode of equal contents: rows and names by their hash. */
static void a_copy_is_recognized_by_its_contents(void **state)
{
	uint64_t at = make_library("two.so", "copied");
	struct answer a;

	new_cache();
	ask("two.so", at);
	sh("cp two.so copy.so");
	a = ask("copy.so", at);
	assert_int_equal(a.st.identified_known, 0);
	assert_int_equal(a.st.cache_rows_hits, 1);
	assert_int_equal(a.st.cache_names_hits, 1);
	assert_string_equal(a.name, "copied");
	if (geteuid())
		return;
	/* ... but its owner could still change it. */
	sh("cp two.so other.so && chown 12345 other.so");
	a = ask("other.so", at);
	expect_miss(&a);
}

/* The same inode, length and modification time, with another function. */
static void a_changed_file_is_read_again(void **state)
{
	uint64_t at = make_library("three.so", "name_of_old");
	struct answer a;

	new_cache();
	ask("three.so", at);
	sh("cp -p three.so was.so && "
	   "sed s/name_of_old/name_of_new/g was.so | dd of=three.so "
	   "conv=notrunc 2>/dev/null && touch -r was.so three.so");
	a = ask("three.so", at);
	expect_miss(&a);
	assert_int_equal(a.st.identified_known, 0);
	assert_string_equal(a.name, "name_of_new");
}

/* Its ctime may hide another change: it is read again. */
static void a_file_that_was_just_changed_is_not_kept(void **state)
{
	uint64_t at = make_library("four.so", "young");
	struct answer a;

	new_cache();
	clock_ahead_s = 0;
	ask("four.so", at);
	clock_ahead_s = 10;
	assert_int_equal(cache_files("", NULL), 0);
	a = ask("four.so", at);
	expect_miss(&a);
}

static void make_debug(const char *name)
{
	sh("mkdir -p dbg/.build-id && echo 'static int %s(int x){return x+1;} "
	   "int g(int x){return %s(x);}' | cc -x c - -g -O0 -shared -fPIC "
	   "-nostdlib -Wl,--build-id=0xaabbccdd -Wl,-z,noseparate-code "
	   "-o five.so && objcopy --only-keep-debug five.so five.debug && "
	   "strip five.so",
	   name, name);
}

/* Names came from a debug file, or from there being none. */
static void debug_files_are_a_part_of_it(void **state)
{
	char debug[300];
	const char *dirs[] = { debug, NULL };
	struct symbolizer_opts opts = { .debug_dirs = dirs };
	struct answer a;

	snprintf(debug, sizeof(debug), "%s/dbg", dir);
	make_debug("hidden");
	new_cache();
	a = ask_with(&opts, "five.so", 0x100);
	expect_miss(&a);
	a = ask_with(&opts, "five.so", 0x100);
	expect_hit(&a);
	sh("mkdir -p dbg/.build-id/aa && "
	   "cp five.debug dbg/.build-id/aa/bbccdd.debug");
	a = ask_with(&opts, "five.so", 0x100);
	expect_miss(&a);
	assert_int_equal(a.st.cache_stale, 2);
	a = ask_with(&opts, "five.so", 0x100);
	expect_hit(&a);
	sh("printf x >> dbg/.build-id/aa/bbccdd.debug");
	a = ask_with(&opts, "five.so", 0x100);
	expect_miss(&a);
}

/* What was read of the cache stays in memory; its debug file changes. */
static void names_in_memory_are_validated(void **state)
{
	char debug[300];
	const char *dirs[] = { debug, NULL };
	struct symbolizer_opts opts = { .debug_dirs = dirs };
	uint64_t offset = 0x100;
	struct fixture fx;

	snprintf(debug, sizeof(debug), "%s/dbg", dir);
	sh("rm -rf dbg");
	make_debug("held");
	sh("mkdir -p dbg/.build-id/aa && "
	   "cp five.debug dbg/.build-id/aa/bbccdd.debug");
	new_cache();
	ask_with(&opts, "five.so", offset);
	fixture_init(&fx, &opts);
	for (uint64_t i = 0; i < 3; i++) {
		if (i == 2)
			sh("printf x >> dbg/.build-id/aa/bbccdd.debug");
		assert_int_equal(open_path(&fx, in_dir("five.so")), 0);
		assert_int_equal(resolve_wait(&fx, fx.file, &offset, 1), 0);
		assert_int_equal(stats(&fx).cache_names_hits, MIN(i + 1, 2));
		assert_int_equal(stats(&fx).cache_stale, i == 2);
	}
	fixture_fini(&fx);
}

/* Whether the file is unchanged, its key and its item: once an answer. */
static void many_names_are_kept_at_once(void **state)
{
	struct symbolizer_opts opts = { .cache = cache_path };
	uint64_t at = make_library("many.so", "many"), offsets[64];
	struct fixture fx;

	new_cache();
	for (size_t i = 0; i < ARRAY_SIZE(offsets); i++)
		offsets[i] = at + 100 * i;
	fixture_init(&fx, &opts);
	assert_int_equal(open_path(&fx, in_dir("many.so")), 0);
	clock_asked = 0;
	assert_int_equal(resolve_wait(&fx, fx.file, offsets, 64), 0);
	assert_true(clock_asked <= 2);
	fixture_fini(&fx);
	fixture_init(&fx, &opts);
	assert_int_equal(open_path(&fx, in_dir("many.so")), 0);
	assert_int_equal(resolve_wait(&fx, fx.file, offsets, 64), 0);
	assert_int_equal(stats(&fx).cache_names_hits, 64);
	fixture_fini(&fx);
}

/* --- damage --------------------------------------------------------------- */

static uint8_t *slurp(const char *path, size_t *len)
{
	FILE *f = fopen(path, "r");
	uint8_t *p = malloc(1 << 20);

	assert_non_null(f);
	assert_non_null(p);
	*len = fread(p, 1, 1 << 20, f);
	fclose(f);
	return p;
}

static void spill(const char *path, const uint8_t *p, size_t len)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_int_equal(fwrite(p, 1, len, f), len);
	fclose(f);
}

/* All files are damaged: the same answers, and good files again. */
static void damage_costs_time_only(void **state)
{
	uint64_t at = make_library("six.so", "whole");
	static const char *const damage[] = {
		"truncate -s 7",
		"truncate -s -1",
		"truncate -s 0",
		"truncate -s +1000",
		/* The last byte of the head, which is 0. */
		"sh -c 'printf Z | dd of=$0 bs=1 seek=79 conv=notrunc "
		"status=none'",
		"rm -f",
		"chmod 000",
		"sh -c 'rm -f $0; mkdir $0'",
		"sh -c 'rm -f $0; ln -s /etc/passwd $0'",
		"sh -c 'rm -f $0; mkfifo $0'",
	};
	struct answer a;

	for (size_t i = 0; i < ARRAY_SIZE(damage); i++) {
		new_cache();
		ask("six.so", at);
		sh("for f in %s/*; do %s $f; done", cache_path, damage[i]);
		a = ask("six.so", at);
		assert_string_equal(a.name, "whole");
		assert_int_equal(a.rows_err, 0);
		if (i < 5) {
			expect_miss(&a);
			assert_int_equal(a.st.cache_corrupt, 3);
			a = ask("six.so", at);
			expect_hit(&a);
		}
	}
}

static int check_all(const struct entry_id *id, const uint8_t *p, size_t len)
{
	struct entry e;
	int err = entry_check(&e, id, p, len);

	return err || id->kind != ENTRY_NAMES ? err : entry_names_check(&e);
}

static void each_byte_counts(void **state)
{
	uint64_t at = make_library("seven.so", "each_byte");
	static const char *const ends[] = { ".rows", ".names", "known" };
	struct entry_id id;
	char path[400];
	uint8_t *p;
	size_t len;

	new_cache();
	ask("seven.so", at);
	for (size_t k = 0; k < ARRAY_SIZE(ends); k++) {
		assert_int_equal(cache_files(ends[k], path), 1);
		p = slurp(path, &len);
		id.kind = ENTRY_ROWS + (int)k;
		memcpy(id.key, ((struct entry_head *)p)->key, sizeof(id.key));
		assert_int_equal(check_all(&id, p, len), 0);
		for (size_t i = 0; i < len; i++) {
			p[i] ^= 1 << i % 8;
			assert_int_equal(check_all(&id, p, len), -EBADMSG);
			p[i] ^= 1 << i % 8;
		}
		for (size_t i = 0; i < len; i++)
			assert_int_equal(check_all(&id, p, i), -EBADMSG);
		id.key[0]++;
		assert_int_equal(check_all(&id, p, len), -EBADMSG);
		free(p);
	}
}

/* With a good checksum, too: only what a worker could have answered. */
static void another_build_and_old_files_are_not_used(void **state)
{
	uint64_t at = make_library("eight.so", "build");
	struct answer a;
	char path[400];

	new_cache();
	for (int i = 0; i < 3; i++) {
		struct entry_id id = { .kind = ENTRY_ROWS };
		struct entry_head h;
		struct entry e;
		uint8_t *p;
		size_t len;

		ask("eight.so", at);
		assert_int_equal(cache_files(".rows", path), 1);
		p = slurp(path, &len);
		memcpy(&h, p, sizeof(h));
		memcpy(id.key, h.key, sizeof(id.key));
		assert_int_equal(entry_check(&e, &id, p, len), 0);
		if (i < 2)
			h.made_s += i ? 100000 : -ENTRY_AGE_S - 1;
		else
			/* Rows that rise no more. */
			memset((uint8_t *)e.payload + e.len - 8, 0xff, 8);
		entry_seal(&h, &id, e.witness, h.witness_len, e.payload, e.len);
		memcpy(p, &h, sizeof(h));
		spill(path, p, len);
		free(p);
		a = ask("eight.so", at);
		/* An entry of the future is used: clocks are set. */
		assert_int_equal(a.st.cache_rows_misses, i != 1);
		assert_int_equal(a.st.cache_rows_hits, i == 1);
		assert_int_equal(a.st.cache_stale, i == 0);
		assert_int_equal(a.st.cache_corrupt, i == 2);
		assert_int_equal(a.rows_err, 0);
	}
}

/* --- the directory --------------------------------------------------------- */

static void only_a_directory_of_its_own_is_used(void **state)
{
	uint64_t at = make_library("nine.so", "refused");
	struct answer a;

	new_cache();
	sh("mkdir %s && chmod 777 %s", cache_path, cache_path);
	a = ask("nine.so", at);
	assert_int_equal(cache_err, -EPERM);
	assert_int_equal(a.st.cache_failed, 1);
	assert_string_equal(a.name, "refused");
	assert_int_equal(cache_files("", NULL), 0);
	new_cache();
	sh("mkdir -m 700 target && ln -s target %s", cache_path);
	ask("nine.so", at);
	assert_true(cache_err == -ELOOP || cache_err == -ENOTDIR);
	new_cache();
	sh("touch %s", cache_path);
	ask("nine.so", at);
	assert_int_equal(cache_err, -ENOTDIR);
	if (geteuid())
		return;
	new_cache();
	sh("mkdir -m 700 %s && chown 12345 %s", cache_path, cache_path);
	ask("nine.so", at);
	assert_int_equal(cache_err, -EPERM);
}

/* Another profd writes there. What a killed one left is removed. */
static void temporary_files_stay_while_they_may_be_written(void **state)
{
	uint64_t at = make_library("tmp.so", "temporary");
	struct stat st;
	char path[160];

	new_cache();
	sh("mkdir -m 700 %s && touch %s/.tmp1 && touch -d '2 hours ago' %s/.tmp2",
	   cache_path, cache_path, cache_path);
	ask("tmp.so", at);
	snprintf(path, sizeof(path), "%s/.tmp1", cache_path);
	assert_int_equal(stat(path, &st), 0);
	snprintf(path, sizeof(path), "%s/.tmp2", cache_path);
	assert_int_equal(stat(path, &st), -1);
	assert_int_equal(cache_err, 0);
}

static void deleted_while_it_is_used(void **state)
{
	uint64_t at = make_library("ten.so", "deleted");
	struct symbolizer_opts opts = { .cache = cache_path,
					.cache_failed = on_failed };
	struct fixture fx;

	new_cache();
	ask("ten.so", at);
	fixture_init(&fx, &opts);
	sh("rm -rf %s", cache_path);
	assert_int_equal(open_path(&fx, in_dir("ten.so")), 0);
	expect_name(&fx, at, "deleted");
	fixture_fini(&fx);
	assert_int_equal(cache_err, -ENOENT); /* once, at the end */
}

/* A file of 'size' bytes of a user, as if it was used at 'used_s'. */
static void put_file(struct dir *d, uint32_t owner, uint32_t number,
		     size_t size, int64_t used_s)
{
	struct entry_id id = { .kind = ENTRY_ROWS };
	struct timespec times[2] = { { used_s, 0 }, { used_s, 0 } };
	struct entry_head h = { 0 };
	char name[DIR_NAME_MAX];
	uint8_t *p = calloc(1, size);
	struct dir_part part = { p, size - sizeof(h), -1, 0 };

	memcpy(id.key, &number, sizeof(number));
	dir_name(name, &id, owner);
	entry_seal(&h, &id, NULL, 0, p, size - sizeof(h));
	assert_int_equal(dir_write(d, name, owner, &h, NULL, &part, 1), 0);
	utimensat(d->fd, name, times, 0);
	free(p);
}

static bool has_file(struct dir *d, uint32_t owner, uint32_t number)
{
	struct entry_id id = { .kind = ENTRY_ROWS };
	char name[DIR_NAME_MAX];

	memcpy(id.key, &number, sizeof(number));
	dir_name(name, &id, owner);
	return !faccessat(d->fd, name, F_OK, 0);
}

/* One user fills it; root and another keep what they have. */
static void who_has_most_loses_first(void **state)
{
	const size_t kb = 1024;
	struct dir d;

	new_cache();
	assert_int_equal(dir_open(&d, cache_path, 1024 * kb), 0);
	for (uint32_t i = 0; i < 20; i++)
		put_file(&d, 0, i, 20 * kb, 1000 + i); /* 400 of 512 KiB */
	put_file(&d, 1000, 1, 30 * kb, 900);
	for (uint32_t i = 0; i < 500; i++)
		put_file(&d, 1001, i, 2 * kb, 2000 + i); /* 16 KiB count */
	assert_true(d.bytes <= 1024 * kb);
	for (uint32_t i = 0; i < 20; i++)
		assert_true(has_file(&d, 0, i));
	assert_true(has_file(&d, 1000, 1));
	assert_false(has_file(&d, 1001, 0));
	assert_true(has_file(&d, 1001, 499));
	/* Many users with one file each: root keeps half. */
	for (uint32_t i = 0; i < 500; i++)
		put_file(&d, 5000 + i, 1, 2 * kb, 3000 + i);
	for (uint32_t i = 0; i < 20; i++)
		assert_true(has_file(&d, 0, i));
	dir_close(&d);
	/* After a restart it knows them, and what was used since. */
	assert_int_equal(dir_open(&d, cache_path, 512 * kb), 0);
	put_file(&d, 0, 100, 20 * kb, 9000);
	assert_true(d.bytes <= 512 * kb);
	assert_true(has_file(&d, 0, 19));
	assert_true(has_file(&d, 0, 100));
	dir_close(&d);
}

static void add_known(struct symbolizer_known *k, uint32_t owner, uint64_t ino)
{
	struct symbolizer_file f = { .owner = owner, .hashed = true };

	f.ident.dev = 0x801;
	f.ident.ino = ino;
	symbolizer_known_add(k, &f);
}

static bool has_known(struct symbolizer_known *k, uint32_t owner, uint64_t ino)
{
	struct symbolizer_file f = { .owner = owner };
	bool found;

	f.ident.dev = 0x801;
	f.ident.ino = ino;
	found = symbolizer_known_get(k, &f);
	free(f.segments);
	return found;
}

static void identities_are_shared_fairly(void **state)
{
	struct symbolizer_known k = { 0 }, again = { 0 };
	struct strbuf packed = STRBUF_INIT;

	assert_int_equal(symbolizer_known_init(&k), 0);
	assert_int_equal(symbolizer_known_init(&again), 0);
	for (uint64_t i = 0; i < 1000; i++)
		add_known(&k, 0, i);
	add_known(&k, 1000, 1000000);
	for (uint64_t i = 0; i < 20000; i++)
		add_known(&k, 1001, 2000000 + i);
	assert_int_equal(k.n, SYMBOLIZER_KNOWN);
	assert_true(has_known(&k, 0, 0));
	assert_true(has_known(&k, 1000, 1000000));
	assert_false(has_known(&k, 1000, 0)); /* another owner now */
	assert_false(has_known(&k, 1001, 2000000));
	assert_true(has_known(&k, 1001, 2019999));
	symbolizer_known_pack(&k, &packed);
	for (size_t i = 1; i < 300; i++)
		assert_false(symbolizer_known_unpack(
			&again, (const uint8_t *)packed.data, i % 100 + 1));
	assert_true(symbolizer_known_unpack(
		&again, (const uint8_t *)packed.data, packed.len));
	assert_int_equal(again.n, k.n);
	assert_true(has_known(&again, 1000, 1000000));
	symbolizer_known_fini(&again);
	symbolizer_known_fini(&k);
	strbuf_fini(&packed);
}

/* The slot is a fact of the file, and no byte of it is trusted. */
static void a_slot_is_kept_with_the_identity(void **state)
{
	struct symbolizer_slot slot = {
		.offset = 8,
		.where = 0x1234,
		.model = SYMBOLIZER_SLOT_MODULE,
		.pair = 1,
		.storage = 0x5678,
		.kind = SYMBOLIZER_SLOT_ELASTIC,
	};
	struct symbolizer_file f = { .hashed = true, .slot = slot };
	struct symbolizer_known k = { 0 };
	struct strbuf packed = STRBUF_INIT;
	uint8_t *bytes;

	assert_int_equal(symbolizer_known_init(&k), 0);
	f.ident.dev = 0x801;
	symbolizer_known_add(&k, &f);
	symbolizer_known_pack(&k, &packed);
	symbolizer_known_fini(&k);
	assert_int_equal(symbolizer_known_init(&k), 0);
	bytes = (uint8_t *)packed.data;
	assert_true(symbolizer_known_unpack(&k, bytes, packed.len));
	memset(&f.slot, 0, sizeof(f.slot));
	assert_true(symbolizer_known_get(&k, &f));
	assert_memory_equal(symbolizer_slot(&f), &slot, sizeof(slot));
	bytes = memmem(bytes, packed.len, &slot, sizeof(slot));
	assert_non_null(bytes);
	bytes[offsetof(struct symbolizer_slot, model)] = SYMBOLIZER_N_SLOTS;
	assert_false(symbolizer_known_unpack(&k, (uint8_t *)packed.data,
					     packed.len));
	free(f.segments);
	symbolizer_known_fini(&k);
	strbuf_fini(&packed);
}

/* --- names ----------------------------------------------------------------- */

static void add_name(struct entry_news *news, uint64_t start, uint64_t size,
		     const char *name)
{
	struct symbolizer_function fn = { name, name, "f.c", 7, 3 };
	struct symbolizer_symbol sym = { .start = start,
					 .vaddr = start,
					 .size = size,
					 .functions = &fn,
					 .nfunctions = *name ? 1 : 0 };

	entry_news_add(news, &sym);
}

static uint8_t *names_entry(const struct entry *old, struct entry_news *news,
			    struct entry *e)
{
	struct entry_id id = { .kind = ENTRY_NAMES };
	struct strbuf out = STRBUF_INIT;
	struct entry_head h = { 0 };
	uint8_t *p;

	assert_true(entry_names_merge(&out, &h.n, old, news));
	entry_seal(&h, &id, NULL, 0, out.data, out.len);
	p = malloc(h.size);
	assert_non_null(p);
	memcpy(p, &h, sizeof(h));
	memcpy(p + sizeof(h), out.data, out.len);
	assert_int_equal(entry_check(e, &id, p, h.size), 0);
	assert_int_equal(entry_names_check(e), 0);
	strbuf_fini(&out);
	strbuf_fini(&news->bytes);
	memset(news, 0, sizeof(*news));
	return p;
}

static void expect_found(const struct entry *e, uint64_t vaddr,
			 const char *want)
{
	struct symbolizer_symbol sym = { .vaddr = vaddr };
	struct symbolizer_answer a = { 0 };

	arena_init(&a.names);
	assert_int_equal(entry_names_find(e, &a, &sym), want != NULL);
	if (want && *want) {
		assert_string_equal(sym.functions->name, want);
		assert_string_equal(sym.functions->file, "f.c");
		assert_int_equal(sym.functions->line, 7);
	}
	symbolizer_answer_fini(&a);
}

static void new_names_replace_old_ones(void **state)
{
	struct entry_news news = { 0 };
	struct entry old, e;
	uint8_t *p, *q;

	add_name(&news, 0x100, 0x10, "a");
	add_name(&news, 0x300, 0x10, "c");
	add_name(&news, 0x200, 0x10, "b");
	add_name(&news, 0x200, 0x10, "b");
	add_name(&news, 0x500, 0, ""); /* nothing is known */
	p = names_entry(NULL, &news, &old);
	assert_int_equal(old.head->n, 4);
	expect_found(&old, 0x10f, "a");
	expect_found(&old, 0x110, NULL);
	expect_found(&old, 0x200, "b");
	expect_found(&old, 0x500, "");
	expect_found(&old, 0x501, NULL);
	add_name(&news, 0x1f8, 0x100, "wide");
	add_name(&news, 0x308, 0x4, "inside");
	q = names_entry(&old, &news, &e);
	expect_found(&e, 0x100, "a");
	expect_found(&e, 0x200, "wide");
	expect_found(&e, 0x308, "inside");
	expect_found(&e, 0x500, "");
	free(p);
	free(q);
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_second_one_reads_nothing),
		cmocka_unit_test(a_copy_is_recognized_by_its_contents),
		cmocka_unit_test(a_changed_file_is_read_again),
		cmocka_unit_test(a_file_that_was_just_changed_is_not_kept),
		cmocka_unit_test(debug_files_are_a_part_of_it),
		cmocka_unit_test(names_in_memory_are_validated),
		cmocka_unit_test(many_names_are_kept_at_once),
		cmocka_unit_test(damage_costs_time_only),
		cmocka_unit_test(each_byte_counts),
		cmocka_unit_test(another_build_and_old_files_are_not_used),
		cmocka_unit_test(only_a_directory_of_its_own_is_used),
		cmocka_unit_test(
			temporary_files_stay_while_they_may_be_written),
		cmocka_unit_test(deleted_while_it_is_used),
		cmocka_unit_test(who_has_most_loses_first),
		cmocka_unit_test(identities_are_shared_fairly),
		cmocka_unit_test(a_slot_is_kept_with_the_identity),
		cmocka_unit_test(new_names_replace_old_ones),
	};

	worker_or_test(argc, argv);
	return cmocka_run_group_tests(tests, setup, teardown);
}
