// SPDX-License-Identifier: Apache-2.0
/*
 * Which connection of a listener is closed, and when. The users of the other ends
 * are simulated.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/base.h"
#include "reporter/http/http_conn.c"

#define SEC CLOCK_NSEC_PER_SEC
#define NOBODY 65534
#define SOMEBODY 1000

static struct {
	struct http_conns conns;
	uid_t uid; /* of the next connection */
	int peer_err; /* or the error of the lookup */
	uint64_t closed;
	uid_t limited_uid;
	unsigned int limited;
} t;

int http_peer_uid(int fd, uid_t *uid)
{
	*uid = t.uid;
	return t.peer_err;
}

static void on_limited(void *arg, uid_t uid)
{
	t.limited_uid = uid;
	t.limited++;
}

static int setup(void **state)
{
	memset(&t, 0, sizeof(t));
	TAILQ_INIT(&t.conns.list);
	t.conns.limited = on_limited;
	return 0;
}

static int teardown(void **state)
{
	struct http_conn *c;

	while ((c = TAILQ_FIRST(&t.conns.list)))
		http_conn_free(&t.conns, c);
	return 0;
}

static struct http_conn *connect_of(uid_t uid, int fd)
{
	struct http_conn *c;

	t.uid = uid;
	c = http_conn_new(&t.conns, fd, &t.closed);
	assert_non_null(c);
	return c;
}

/* Makes 'n' connections without descriptors; the first one. */
static struct http_conn *connect_many(uid_t uid, unsigned int n)
{
	struct http_conn *first = connect_of(uid, -1);

	while (--n)
		connect_of(uid, -1);
	return first;
}

static void a_user_at_the_limit_loses_the_oldest_idle_one(void **state)
{
	struct http_conn *other, *busy, *oldest, *last;
	int fd[2];
	char c;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
	other = connect_of(SOMEBODY, -1);
	busy = connect_of(NOBODY, -1);
	http_conn_set(&t.conns, busy, HTTP_CONN_BUSY);
	oldest = connect_of(NOBODY, fd[0]);
	connect_many(NOBODY, HTTP_CONNECTIONS_USER - 2);
	assert_int_equal(t.closed, 0);
	assert_int_equal(recv(fd[1], &c, 1, MSG_DONTWAIT), -1);
	last = connect_of(NOBODY, -1);
	assert_int_equal(t.closed, 1);
	assert_int_equal(oldest->use, HTTP_CONN_CLOSING);
	assert_int_equal(recv(fd[1], &c, 1, MSG_DONTWAIT), 0); /* the end */
	assert_int_equal(busy->use, HTTP_CONN_BUSY);
	assert_int_equal(last->use, HTTP_CONN_IDLE);
	assert_int_equal(other->use, HTTP_CONN_IDLE);
	assert_int_equal(t.limited, 1);
	assert_int_equal(t.limited_uid, NOBODY);
	close(fd[0]);
	close(fd[1]);
}

/* A connection with an answered request is younger than one without. */
static void an_answer_resets_the_age(void **state)
{
	struct http_conn *first = connect_of(NOBODY, -1);
	struct http_conn *second = connect_of(NOBODY, -1);

	http_conn_set(&t.conns, first, HTTP_CONN_BUSY);
	http_conn_set(&t.conns, first, HTTP_CONN_IDLE);
	connect_many(NOBODY, HTTP_CONNECTIONS_USER - 1);
	assert_int_equal(t.closed, 1);
	assert_int_equal(first->use, HTTP_CONN_IDLE);
	assert_int_equal(second->use, HTTP_CONN_CLOSING);
}

static void a_full_list_closes_one_of_the_largest_user(void **state)
{
	struct http_conn *few, *most;

	few = connect_many(SOMEBODY, HTTP_CONNECTIONS_MAX / 4);
	most = connect_many(NOBODY, HTTP_CONNECTIONS_USER);
	connect_many(SOMEBODY + 1, HTTP_CONNECTIONS_MAX -
					   HTTP_CONNECTIONS_MAX / 4 -
					   HTTP_CONNECTIONS_USER);
	assert_int_equal(t.closed, 0);
	connect_of(SOMEBODY + 2, -1);
	assert_int_equal(t.closed, 1);
	assert_int_equal(most->use, HTTP_CONN_CLOSING);
	assert_int_equal(few->use, HTTP_CONN_IDLE);
	assert_int_equal(t.limited_uid, NOBODY);
}

/*
 * Two users have all the connections they may have and read slowly: a third user
 * is served, and no idle connection of others is closed for it.
 */
static void slow_readers_do_not_keep_the_others_out(void **state)
{
	struct http_conn *slow[HTTP_CONNECTIONS_MAX], *c, *next;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(slow); i++) {
		slow[i] = connect_of(NOBODY - i % 2, -1);
		http_conn_set(&t.conns, slow[i], HTTP_CONN_BUSY);
		slow[i]->since = clock_awake_ns() - HTTP_REQUEST_NS;
	}
	assert_int_equal(t.closed, 0);
	c = connect_of(1000, -1);
	assert_int_equal(t.closed, 1);
	assert_int_equal(c->use, HTTP_CONN_IDLE);
	assert_int_equal(slow[0]->use, HTTP_CONN_CLOSING);
	next = connect_of(1001, -1);
	assert_int_equal(t.closed, 2);
	assert_int_equal(next->use, HTTP_CONN_IDLE);
	assert_int_equal(c->use, HTTP_CONN_IDLE);
	assert_int_equal(slow[1]->use, HTTP_CONN_CLOSING);
	/* Recent answers are not cut. */
	for (i = 2; i < ARRAY_SIZE(slow); i++)
		slow[i]->since = clock_awake_ns();
	c->use = next->use = HTTP_CONN_BUSY;
	c->since = next->since = clock_awake_ns();
	c = connect_of(1002, -1);
	assert_int_equal(t.closed, 3);
	assert_int_equal(c->use, HTTP_CONN_CLOSING);
}

/* Root and profd's own user have no limit; unknown users count as one. */
static void some_users_are_not_limited(void **state)
{
	struct http_conn *c;

	connect_many(0, HTTP_CONNECTIONS_USER + 2);
	assert_int_equal(t.closed, 0);
	teardown(NULL);
	t.peer_err = -ENOENT;
	connect_many(7, HTTP_CONNECTIONS_MAX);
	assert_int_equal(t.closed, 0);
	c = connect_of(7, -1);
	assert_int_equal(t.closed, 1);
	assert_int_equal(t.limited, 0);
	assert_true(http_conn_may(&t.conns, c, HTTP_CONN_WAITING, 1));
}

static void waiting_connections_of_a_user_are_limited(void **state)
{
	struct http_conn *c;
	int i;

	for (i = 0; i < 3; i++) {
		c = connect_of(NOBODY, -1);
		assert_true(http_conn_may(&t.conns, c, HTTP_CONN_WAITING, 3));
		http_conn_set(&t.conns, c, HTTP_CONN_WAITING);
	}
	assert_false(http_conn_may(&t.conns, c, HTTP_CONN_WAITING, 3));
	assert_int_equal(t.limited_uid, NOBODY);
	assert_true(http_conn_may(&t.conns, c, HTTP_CONN_FOLLOWING, 3));
	c = connect_of(SOMEBODY, -1);
	assert_true(http_conn_may(&t.conns, c, HTTP_CONN_WAITING, 3));
	c = connect_of(0, -1);
	assert_true(http_conn_may(&t.conns, c, HTTP_CONN_WAITING, 0));
}

/* Five seconds for the first request, thirty for the next. */
static void a_request_has_a_deadline(void **state)
{
	struct http_conn *silent = connect_of(NOBODY, -1);
	struct http_conn *asked = connect_of(NOBODY, -1);
	struct http_conn *waits = connect_of(NOBODY, -1);
	uint64_t now = clock_awake_ns();

	http_conn_set(&t.conns, asked, HTTP_CONN_BUSY);
	http_conn_set(&t.conns, asked, HTTP_CONN_IDLE);
	http_conn_set(&t.conns, waits, HTTP_CONN_WAITING);
	silent->since = asked->since = waits->since = now - 4 * SEC;
	assert_int_equal(http_conns_check(&t.conns), 0);
	assert_int_equal(silent->use, HTTP_CONN_IDLE);
	silent->since = asked->since = waits->since = now - 5 * SEC;
	assert_int_equal(http_conns_check(&t.conns), 1);
	assert_int_equal(silent->use, HTTP_CONN_CLOSING);
	assert_int_equal(asked->use, HTTP_CONN_IDLE);
	assert_int_equal(t.limited, 1);
	/* Keeping an idle connection is no fault. */
	asked->since = waits->since = now - 30 * SEC;
	assert_int_equal(http_conns_check(&t.conns), 0);
	assert_int_equal(asked->use, HTTP_CONN_CLOSING);
	assert_int_equal(waits->use, HTTP_CONN_WAITING);
	assert_int_equal(t.limited, 1);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(a_user_at_the_limit_loses_the_oldest_idle_one),
		T(an_answer_resets_the_age),
		T(a_full_list_closes_one_of_the_largest_user),
		T(slow_readers_do_not_keep_the_others_out),
		T(some_users_are_not_limited),
		T(waiting_connections_of_a_user_are_limited),
		T(a_request_has_a_deadline),
	};
#undef T

	return cmocka_run_group_tests(tests, NULL, NULL);
}
