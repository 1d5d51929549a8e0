// SPDX-License-Identifier: Apache-2.0
/* Profiles that several clients wait for. */
#include "tests/unit/reporter/test_reporter_client.h"

/* By their bodies, of equal requests and another, sent at once. */
static void equal_requests_share_a_profile(void **state)
{
	static const char *const paths[] = {
		"GET /debug/pprof/profile?seconds=1 HTTP/1.0\r\n\r\n",
		"GET /debug/pprof/profile?seconds=1&symbols=all "
		"HTTP/1.0\r\n\r\n",
		"GET /debug/pprof/profile?seconds=1&labels=none "
		"HTTP/1.0\r\n\r\n",
	};
	struct strbuf sb[ARRAY_SIZE(paths)];
	const char *text[ARRAY_SIZE(paths)];
	int fd[ARRAY_SIZE(paths)];
	const Perftools__Profiles__Profile *p;
	int64_t begin;
	size_t i, len[ARRAY_SIZE(paths)];

	/* All within one tenth of a second. */
	while (clock_boottime_ns() % (SEC / 10) > SEC / 50)
		uv_run(&t.loop, UV_RUN_NOWAIT);
	for (i = 0; i < ARRAY_SIZE(paths); i++) {
		fd[i] = dial_unix();
		ask(fd[i], paths[i]);
	}
	while (stats().http_waiting < ARRAY_SIZE(paths))
		uv_run(&t.loop, UV_RUN_ONCE);
	for (i = 0; i < ARRAY_SIZE(paths); i++) {
		sb[i] = answer(fd[i]);
		text[i] = body(&sb[i], &len[i]);
	}
	assert_int_equal(stats().http_profiles, ARRAY_SIZE(paths));
	assert_int_equal(len[0], len[1]);
	assert_memory_equal(text[0], text[1], len[0]);
	assert_true(len[0] != len[2]);
	p = profile(&sb[1]);
	assert_non_null(pprof_label(p, p->sample[0], "comm"));
	assert_int_equal(profile(&sb[2])->sample[0]->n_label, 0);
	strbuf_fini(&sb[0]);
	/* A tenth of a second later it is another one. */
	fd[0] = dial_unix();
	ask(fd[0], paths[0]);
	assert_int_equal(stats().http_waiting, 0);
	while (stats().http_waiting < 1)
		uv_run(&t.loop, UV_RUN_ONCE);
	begin = clock_boottime_ns();
	while ((int64_t)clock_boottime_ns() - begin < (int64_t)SEC / 9)
		uv_run(&t.loop, UV_RUN_ONCE);
	fd[1] = dial_unix();
	ask(fd[1], paths[0]);
	sb[0] = answer(fd[0]);
	assert_int_equal(stats().http_waiting, 1);
	sb[1] = answer(fd[1]);
	begin = profile(&sb[0])->time_nanos;
	assert_true(profile(&sb[1])->time_nanos - begin >= (int64_t)SEC / 11);
}

/* A profile goes on while one of those who share it is there. */
static void of_two_who_share_one_may_leave(void **state)
{
	static const char path[] =
		"GET /debug/pprof/profile?seconds=1 HTTP/1.0\r\n\r\n";
	int fd[] = { dial_unix(), dial_unix() };
	struct strbuf sb;

	ask(fd[0], path);
	ask(fd[1], path);
	while (stats().http_waiting < 2)
		uv_run(&t.loop, UV_RUN_ONCE);
	close(fd[0]);
	while (stats().http_waiting == 2)
		uv_run(&t.loop, UV_RUN_ONCE);
	sb = answer(fd[1]);
	assert_true(pprof_samples(profile(&sb)) > 10);
}

static void the_index_lists_the_profile(void **state)
{
	struct strbuf a = get("/debug/pprof/");

	assert_has(&a, " 200 ");
	assert_has(&a, "profile?seconds=30");
	strbuf_fini(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		T(equal_requests_share_a_profile),
		T(of_two_who_share_one_may_leave),
		T(the_index_lists_the_profile),
#undef T
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
