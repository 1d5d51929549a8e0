// SPDX-License-Identifier: Apache-2.0
/* Which debug files are downloaded next, and the directory that has them. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "symbolize/fetch/fetch_dir.h"

/* A build id of 20 bytes that begins with 'n'. */
static struct fetch_id id_of(uint32_t n)
{
	uint8_t bytes[20] = { (uint8_t)n, (uint8_t)(n >> 8),
			      (uint8_t)(n >> 16) };
	struct fetch_id id;

	assert_true(fetch_id_set(&id, bytes, sizeof(bytes)));
	return id;
}

static int want(struct fetch_queue *q, uint32_t n, uint32_t uid, uint64_t now)
{
	struct fetch_id id = id_of(n);

	return fetch_queue_want(q, &id, &id, uid, now);
}

static uint32_t number(const struct fetch_item *it)
{
	return it ? it->id.bytes[0] | (uint32_t)it->id.bytes[1] << 8 : 0;
}

static void ids_are_of_8_to_20_bytes(void **state)
{
	uint8_t bytes[64] = { 1 };
	struct fetch_id id;

	assert_false(fetch_id_set(&id, bytes, 0));
	assert_false(fetch_id_set(&id, bytes, 7));
	assert_true(fetch_id_set(&id, bytes, 8));
	assert_true(fetch_id_set(&id, bytes, 20));
	assert_false(fetch_id_set(&id, bytes, 21));
}

static void users_take_turns(void **state)
{
	static const uint32_t order[] = { 1, 10, 2, 11, 3, 4 };
	struct fetch_queue q;

	assert_int_equal(fetch_queue_init(&q), 0);
	for (uint32_t i = 1; i <= 4; i++)
		assert_int_equal(want(&q, i, 1000, 0), 0);
	for (uint32_t i = 10; i <= 11; i++)
		assert_int_equal(want(&q, i, 1001, 0), 0);
	assert_int_equal(q.pending, 6);
	for (size_t i = 0; i < ARRAY_SIZE(order); i++) {
		struct fetch_item *it = fetch_queue_next(&q);

		assert_int_equal(number(it), order[i]);
		fetch_queue_done(&q, it, FETCH_HAVE, 0);
	}
	assert_null(fetch_queue_next(&q));
	assert_int_equal(q.pending, 0);
	fetch_queue_fini(&q);
}

static void a_user_has_a_budget(void **state)
{
	struct fetch_queue q;
	uint32_t i;

	assert_int_equal(fetch_queue_init(&q), 0);
	for (i = 1; i <= FETCH_USER_BURST; i++)
		assert_int_equal(want(&q, i, 1000, 5), 0);
	assert_int_equal(want(&q, i, 1000, 5), -EDQUOT);
	assert_int_equal(want(&q, i, 1001, 5), 0);
	assert_int_equal(want(&q, 1, 1000, 5), -EEXIST);
	/* One more after each FETCH_USER_MS. */
	assert_int_equal(want(&q, i + 1, 1000, 4 + FETCH_USER_MS), -EDQUOT);
	assert_int_equal(want(&q, i + 1, 1000, 5 + FETCH_USER_MS), 0);
	assert_int_equal(want(&q, i + 2, 1000, 6 + FETCH_USER_MS), -EDQUOT);
	fetch_queue_fini(&q);
}

static void users_and_files_have_limits(void **state)
{
	struct fetch_queue q;
	uint32_t n = 0;

	assert_int_equal(fetch_queue_init(&q), 0);
	for (uint32_t uid = 0; uid < FETCH_USERS_MAX; uid++)
		assert_int_equal(want(&q, ++n, uid, 0), 0);
	assert_int_equal(want(&q, n + 1, FETCH_USERS_MAX, 0), -EDQUOT);
	for (uint32_t uid = 0; q.items.count < FETCH_ITEMS_MAX; uid++)
		for (int i = 1; i < FETCH_USER_BURST; i++)
			if (q.items.count < FETCH_ITEMS_MAX)
				assert_int_equal(want(&q, ++n, uid, 0), 0);
	assert_int_equal(want(&q, n + 1, 99, 0), -EDQUOT);
	/* What is done makes room. */
	fetch_queue_done(&q, fetch_queue_next(&q), FETCH_NONE, 0);
	assert_int_equal(want(&q, n + 1, 99, 0), 0);
	/* Users without requests are forgotten, when their budget is whole. */
	fetch_queue_give_up(&q, 0);
	assert_int_equal(want(&q, n + 2, 7777,
			      (uint64_t)FETCH_USER_BURST * FETCH_USER_MS),
			 0);
	fetch_queue_fini(&q);
}

static void a_missing_file_is_remembered_for_an_hour(void **state)
{
	struct fetch_queue q;
	struct fetch_id id = id_of(1), other = id_of(2);

	assert_int_equal(fetch_queue_init(&q), 0);
	assert_int_equal(want(&q, 1, 0, 0), 0);
	assert_int_equal(fetch_queue_want(&q, &id, &other, 5, 0), -EEXIST);
	assert_int_equal(fetch_queue_find(&q, &id)->n_wanters, 2);
	fetch_queue_done(&q, fetch_queue_next(&q), FETCH_NONE, 1000);
	assert_int_equal(fetch_queue_find(&q, &id)->state, FETCH_NONE);
	assert_null(fetch_queue_find(&q, &other));
	assert_int_equal(want(&q, 1, 0, 999 + FETCH_NONE_MS), -EEXIST);
	assert_int_equal(want(&q, 1, 0, 1000 + FETCH_NONE_MS), 0);
	assert_int_equal(fetch_queue_find(&q, &id)->state, FETCH_QUEUED);
	fetch_queue_fini(&q);
}

static void a_failed_download_is_repeated(void **state)
{
	struct fetch_queue q;
	struct fetch_item *it;

	assert_int_equal(fetch_queue_init(&q), 0);
	assert_int_equal(want(&q, 1, 0, 0), 0);
	assert_int_equal(want(&q, 2, 0, 0), 0);
	for (unsigned int i = 0; i < FETCH_ATTEMPTS; i++) {
		it = fetch_queue_next(&q);
		assert_int_equal(number(it), 1);
		fetch_queue_again(&q, it, 0);
		it = fetch_queue_next(&q);
		assert_int_equal(number(it), 2);
		fetch_queue_again(&q, it, 0);
	}
	assert_null(fetch_queue_next(&q));
	assert_int_equal(q.pending, 0);
	fetch_queue_fini(&q);
}

/* --- the directory -------------------------------------------------------- */

static char dir_path[64];

static void put(struct fetch_dir *d, uint32_t n, size_t bytes)
{
	struct fetch_id id = id_of(n);
	int fd = fetch_dir_create(d);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
	close(fd);
	assert_int_equal(fetch_dir_take(d, &id), 0);
	usleep(15000); /* file times have the resolution of a tick */
}

static bool has(uint32_t n)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/.build-id/%02x/%02x%036d.debug",
		 dir_path, n & 0xff, n >> 8, 0);
	return !access(path, F_OK);
}

static int dir_setup(void **state)
{
	snprintf(dir_path, sizeof(dir_path), "/tmp/test_fetch.XXXXXX");
	return mkdtemp(dir_path) ? 0 : -1;
}

static int dir_teardown(void **state)
{
	char cmd[128];

	snprintf(cmd, sizeof(cmd), "rm -rf %s", dir_path);
	return system(cmd);
}

static void the_oldest_file_goes_first(void **state)
{
	struct fetch_dir d;
	char path[128];

	assert_int_equal(fetch_dir_open(&d, dir_path, 100000), 0);
	put(&d, 1, 40000);
	put(&d, 2, 40000);
	assert_true(has(1) && has(2));
	fetch_dir_close(&d);
	snprintf(path, sizeof(path), "%s/.build-id/01/notes", dir_path);
	close(open(path, O_CREAT | O_WRONLY, 0600));

	/* The bytes that are there count after a restart too. */
	assert_int_equal(fetch_dir_open(&d, dir_path, 100000), 0);
	put(&d, 3, 40000);
	assert_true(!has(1) && has(2) && has(3));
	assert_int_equal(d.bytes, 80000);
	put(&d, 4, 90000);
	assert_true(!has(2) && !has(3) && has(4));
	assert_int_equal(d.evicted, 3);
	assert_int_equal(access(path, F_OK), 0);
	fetch_dir_close(&d);
}

static void what_is_too_large_evicts_nothing(void **state)
{
	struct fetch_id id = id_of(2);
	struct fetch_dir d;
	int fd;

	assert_int_equal(fetch_dir_open(&d, dir_path, 100000), 0);
	put(&d, 1, 40000);
	fd = fetch_dir_create(&d);
	assert_int_equal(ftruncate(fd, 100001), 0);
	close(fd);
	assert_int_equal(fetch_dir_take(&d, &id), -EFBIG);
	fetch_dir_drop(&d);
	assert_true(has(1) && !has(2));
	fetch_dir_close(&d);
}

static void a_directory_of_others_is_refused(void **state)
{
	struct fetch_dir d;

	assert_int_equal(chmod(dir_path, 0777), 0);
	assert_int_equal(fetch_dir_open(&d, dir_path, 100000), -EPERM);
	assert_int_equal(chmod(dir_path, 0755), 0);
	assert_int_equal(fetch_dir_open(&d, dir_path, 100000), 0);
	fetch_dir_close(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ids_are_of_8_to_20_bytes),
		cmocka_unit_test(users_take_turns),
		cmocka_unit_test(a_user_has_a_budget),
		cmocka_unit_test(users_and_files_have_limits),
		cmocka_unit_test(a_missing_file_is_remembered_for_an_hour),
		cmocka_unit_test(a_failed_download_is_repeated),
		cmocka_unit_test_setup_teardown(the_oldest_file_goes_first,
						dir_setup, dir_teardown),
		cmocka_unit_test_setup_teardown(what_is_too_large_evicts_nothing,
						dir_setup, dir_teardown),
		cmocka_unit_test_setup_teardown(a_directory_of_others_is_refused,
						dir_setup, dir_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
