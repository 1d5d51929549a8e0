// SPDX-License-Identifier: Apache-2.0
/* libquark: users and groups are those of /etc, each found by its number. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "processmanager/quark/names.c"

static struct quark_queue_priv priv;
static struct quark_queue queue = { .priv = &priv };

static int teardown(void **state)
{
	quark_names_fini(&priv.names);
	return 0;
}

/* Of two lines with the same number the first one counts, as in getpwuid(3). */
static void test_every_user(void **state)
{
	FILE *f = fopen("/etc/passwd", "re");
	size_t n = 0, first = 0;
	struct passwd *pw;
	struct quark_passwd *q;

	assert_non_null(f);
	for (; (pw = fgetpwent(f)); n++) {
		q = quark_passwd_lookup(&queue, pw->pw_uid);
		assert_non_null(q);
		assert_int_equal(q->uid, pw->pw_uid);
		if (strcmp(q->name, pw->pw_name))
			continue;
		assert_int_equal(q->gid, pw->pw_gid);
		first++;
	}
	fclose(f);
	assert_true(n > 0);
	assert_true(first > n / 2);
	assert_int_equal(priv.names.passwd.n, n);
	assert_string_equal(quark_passwd_lookup(&queue, 0)->name, "root");
}

static void test_every_group(void **state)
{
	FILE *f = fopen("/etc/group", "re");
	struct quark_group *q;
	struct group *gr;
	size_t n = 0;

	assert_non_null(f);
	for (; (gr = fgetgrent(f)); n++) {
		q = quark_group_lookup(&queue, gr->gr_gid);
		assert_non_null(q);
		assert_int_equal(q->gid, gr->gr_gid);
	}
	fclose(f);
	assert_true(n > 0);
	assert_int_equal(priv.names.group.n, n);
	assert_string_equal(quark_group_lookup(&queue, 0)->name, "root");
}

static void test_nobody_there(void **state)
{
	assert_null(quark_passwd_lookup(&queue, 4000000000U));
	assert_int_equal(errno, ENOENT);
	assert_null(quark_group_lookup(&queue, 4000000000U));
	assert_int_equal(errno, ENOENT);
}

/* Read once: entries are valid until the queue is closed. */
static void test_read_once(void **state)
{
	struct quark_passwd *root = quark_passwd_lookup(&queue, 0);

	assert_non_null(root);
	assert_null(quark_passwd_lookup(&queue, 4000000000U));
	assert_ptr_equal(quark_passwd_lookup(&queue, 0), root);
	quark_names_fini(&priv.names);
	assert_int_equal(priv.names.passwd.n, 0);
	assert_non_null(quark_passwd_lookup(&queue, 0));
}

int main(void)
{
#define T(f) cmocka_unit_test_teardown(f, teardown)
	const struct CMUnitTest tests[] = {
		T(test_every_user),
		T(test_every_group),
		T(test_nobody_there),
		T(test_read_once),
	};
#undef T

	return cmocka_run_group_tests(tests, NULL, NULL);
}
