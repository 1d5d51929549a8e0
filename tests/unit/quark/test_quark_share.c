// SPDX-License-Identifier: Apache-2.0
/*
 * libquark: limits of the cache for arguments, paths and environments, per user and
 * in all, for running processes and zombies.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/unit/quark/test_quark_apply.h"

#define GRACE 1000
#define ARGS 20000
#define PATH 4000
#define MIB (1024 * 1024)

static int setup(void **state)
{
	return qq_setup(NULL, GRACE);
}

static void apply(const void *rec, size_t len)
{
	const struct abi_quark_head *h = rec;
	struct quark_raw *raw =
		quark_raw_new(qq.vault, h->kind, h->time, rec, len);

	quark_record_put(qq.event_rec);
	qq.event_rec = NULL;
	assert_int_equal(quark_apply(&qq, raw), 1);
	vault_give(raw);
}

static struct abi_quark_head head(uint32_t kind, uint32_t pid, uint64_t time)
{
	struct abi_quark_head h = { .kind = kind, .time = time, .tid = pid };

	h.key = (struct abi_key){ pid, 1, pid, 0 };
	h.flags = ABI_QUARK_GROUP_DEAD;
	return h;
}

/* With strings of the largest recorded length. */
static void do_exec(uint32_t pid, uint32_t uid, uint64_t time)
{
	static struct {
		struct abi_quark_image im;
		char text[ARGS + 2 * PATH];
	} r;

	memset(&r, 0, sizeof(r));
	memset(r.text, 'x', sizeof(r.text));
	r.im.head = head(ABI_QUARK_EXEC, pid, time);
	r.im.ids.uid = uid;
	r.im.exe_len = r.im.cwd_len = PATH;
	r.im.args_len = ARGS;
	apply(&r, sizeof(r));
}

static void do_exit(uint32_t pid, uint64_t time)
{
	struct abi_quark_exit e = { .head = head(ABI_QUARK_EXIT, pid, time) };

	apply(&e, sizeof(e));
}

static void do_reap(uint32_t pid, uint64_t time)
{
	struct abi_quark_reap r = { .head = head(ABI_QUARK_REAP, pid, time) };

	apply(&r, sizeof(r));
}

static const struct quark_process *cached(uint32_t pid)
{
	return &quark_cache_newest(&qq.cache, pid)->rec->p;
}

static void assert_cut(const struct quark_process *p)
{
	assert_int_equal(p->cmdline_len, 512);
	assert_true(p->x_flags & QUARK_X_ARGS_CUT);
	assert_null(p->exe);
	assert_null(p->cwd);
}

static void assert_whole(const struct quark_process *p)
{
	assert_int_equal(p->cmdline_len, ARGS);
	assert_int_equal(strlen(p->exe), PATH);
	assert_int_equal(strlen(p->cwd), PATH);
	assert_false(p->x_flags & QUARK_X_ARGS_CUT);
}

/* The sum of all strings; no records share any here. */
static size_t all_bytes(void)
{
	const struct quark_proc *p;
	size_t sum = 0;

	TAILQ_FOREACH(p, &qq.cache.all, link)
		sum += p->rec->strings ? p->rec->strings->size : 0;
	return sum;
}

/* A user that fills its share has half of all; its exec events are complete. */
static void a_user_has_a_share(void **state)
{
	uint32_t pid;

	for (pid = 1000; pid < 4000; pid++) {
		do_exec(pid, 65534, pid);
		assert_whole(qq.event.process);
		/* Zombies count as running processes do. */
		if (pid & 1)
			do_exit(pid, pid);
	}
	assert_true(all_bytes() <= 32 * MIB + 3000 * QUARK_TEXT_LEAST);
	assert_whole(cached(1000));
	assert_cut(cached(3998));
	assert_cut(cached(3999));
	assert_int_equal(cached(3999)->flags & QUARK_F_EXIT, QUARK_F_EXIT);
	assert_true(qq.cache.text_cut > 1000);
	/* There is room for others. */
	for (pid = 5000; pid < 5100; pid++)
		do_exec(pid, 7, pid);
	assert_whole(cached(5000));
	assert_whole(cached(5099));
	assert_int_equal(all_bytes(), qq.cache.text_bytes);
	for (pid = 1000; pid < 4000; pid++)
		do_reap(pid, 6000);
	quark_cache_collect(&qq.cache, 6000 + GRACE);
	quark_record_put(qq.event_rec);
	qq.event_rec = NULL;
	assert_int_equal(all_bytes(), qq.cache.text_bytes);
	assert_true(qq.cache.text_bytes < 3 * MIB);
	assert_int_equal(qq.cache.users.count, 1);
	/* Cut strings stay so until an exec, which finds room now. */
	do_exec(1000, 65534, 9000);
	assert_whole(cached(1000));
}

/* Many users together do not exceed the limit. */
static void all_users_have_a_bound(void **state)
{
	uint32_t pid;

	for (pid = 1000; pid < 6000; pid++)
		do_exec(pid, pid % 50, pid);
	assert_true(all_bytes() <= 64 * MIB + 5000 * QUARK_TEXT_LEAST);
	assert_true(all_bytes() >= 60 * MIB);
}

/* Lookups find it until its grace time has passed; then it is small. */
static void zombies_have_no_strings(void **state)
{
	struct quark_proc *p;

	do_exec(9, 65534, 10);
	do_exit(9, 20);
	p = quark_cache_newest(&qq.cache, 9);
	quark_cache_look(&qq.cache, p, 19 + GRACE);
	assert_whole(cached(9));
	quark_cache_look(&qq.cache, p, 20 + GRACE);
	assert_null(cached(9)->exe);
	assert_null(cached(9)->cmdline);
	assert_null(p->rec->strings);
	/* The exit's event still has its strings. */
	assert_whole(qq.event.process);
	do_reap(9, 5000);
	assert_int_equal(qq.cache.text_bytes, 0);
	assert_int_equal(qq.cache.users.count, 0);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(a_user_has_a_share),
		T(all_users_have_a_bound),
		T(zombies_have_no_strings),
	};
#undef T

	return cmocka_run_group_tests(tests, NULL, NULL);
}
