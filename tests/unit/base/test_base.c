// SPDX-License-Identifier: Apache-2.0
/* base: arena, hash, string table, string buffer, clock, log. */
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"

/* --- arena --------------------------------------------------------------- */

static void arena_memory_is_aligned_and_apart(void **state)
{
	struct {
		unsigned char *p;
		size_t len;
	} got[500];
	struct arena a;
	size_t i, j;

	arena_init(&a);
	srand(2);
	for (i = 0; i < ARRAY_SIZE(got); i++) {
		got[i].len = rand() % 700;
		got[i].p = arena_alloc(&a, got[i].len);
		assert_non_null(got[i].p);
		assert_int_equal((uintptr_t)got[i].p % 8, 0);
		memset(got[i].p, (int)(i & 0xff), got[i].len);
	}
	/* Pieces that overlap would have overwritten each other. */
	for (i = 0; i < ARRAY_SIZE(got); i++)
		for (j = 0; j < got[i].len; j++)
			assert_int_equal(got[i].p[j], i & 0xff);
	arena_fini(&a);
}

static void arena_gives_pieces_larger_than_any_chunk(void **state)
{
	const size_t large = 5 << 20;
	struct arena a;
	char *p;

	arena_init(&a);
	assert_non_null(arena_alloc(&a, 8));
	p = arena_alloc(&a, large);
	assert_non_null(p);
	memset(p, 1, large);
	assert_true(a.bytes >= large);
	assert_non_null(arena_alloc(&a, 8));
	arena_fini(&a);
}

static void arena_refuses_sizes_that_wrap(void **state)
{
	struct arena a;

	arena_init(&a);
	assert_null(arena_alloc(&a, SIZE_MAX));
	assert_null(arena_alloc(&a, SIZE_MAX - 6));
	assert_null(arena_alloc(&a, SIZE_MAX / 2 + 1));
	assert_null(arena_memdup(&a, "", SIZE_MAX));
	assert_int_equal(a.bytes, 0);
	arena_fini(&a);
}

static void arena_copies(void **state)
{
	static const char text[] = "seventeen letters";
	struct arena a;
	char *p;

	arena_init(&a);
	p = arena_memdup(&a, text, sizeof(text));
	assert_ptr_not_equal(p, text);
	assert_string_equal(p, text);
	assert_non_null(arena_memdup(&a, NULL, 0));
	arena_fini(&a);
}

static void arena_can_be_used_again_after_its_end(void **state)
{
	struct arena a;

	arena_init(&a);
	assert_non_null(arena_alloc(&a, 100000));
	arena_fini(&a);
	assert_int_equal(a.bytes, 0);
	assert_non_null(arena_alloc(&a, 100));
	arena_fini(&a);
	arena_fini(&a);
}

/* --- hash ---------------------------------------------------------------- */

struct item {
	struct hash_node node;
	uint32_t key;
	bool in;
};

#define ITEMS 3000

/*
 * The model is the items' own 'in' flags. There are few hash values, so that chains
 * contain equal and unequal ones.
 */
static uint64_t item_hash(const struct item *it)
{
	return hash_u64(it->key % 701);
}

static void check_against_model(struct hash *h, struct item *items)
{
	struct hash_node *n, *tmp;
	size_t i, in = 0, seen = 0;

	for (i = 0; i < ITEMS; i++)
		in += items[i].in;
	assert_int_equal(h->count, in);
	hash_for_each(h, i, n, tmp) {
		assert_true(container_of(n, struct item, node)->in);
		seen++;
	}
	assert_int_equal(seen, in);
}

static void check_matches(struct hash *h, struct item *items, uint64_t value)
{
	struct hash_node *n;
	size_t i, want = 0, got = 0;

	for (i = 0; i < ITEMS; i++)
		want += items[i].in && item_hash(&items[i]) == value;
	hash_for_each_match(h, n, value) {
		assert_int_equal(n->hash, value);
		assert_true(container_of(n, struct item, node)->in);
		got++;
	}
	assert_int_equal(got, want);
}

static void hash_agrees_with_a_naive_model(void **state)
{
	struct item *items = calloc(ITEMS, sizeof(*items)), *it;
	struct hash h;
	size_t i, step;

	assert_non_null(items);
	assert_int_equal(hash_init(&h, 0), 0);
	srand(3);
	for (i = 0; i < ITEMS; i++)
		items[i].key = rand();
	for (step = 0; step < 40000; step++) {
		it = &items[rand() % ITEMS];
		if (it->in)
			hash_remove(&h, &it->node);
		else
			hash_insert(&h, &it->node, item_hash(it));
		it->in = !it->in;
		if (step % 100 == 0)
			check_matches(&h, items, item_hash(it));
		if (step % 2000 == 0)
			check_against_model(&h, items);
	}
	check_against_model(&h, items);
	hash_fini(&h);
	free(items);
}

static void hash_find_is_by_hash_and_condition(void **state)
{
	struct item items[3] = { { .key = 1 }, { .key = 2 }, { .key = 3 } };
	struct item *it;
	struct hash h;
	size_t i;

	assert_int_equal(hash_init(&h, 0), 0);
	for (i = 0; i < ARRAY_SIZE(items); i++)
		hash_insert(&h, &items[i].node, 7);
	for (i = 0; i < ARRAY_SIZE(items); i++) {
		HASH_FIND(it, &h, 7, node, it->key == items[i].key);
		assert_ptr_equal(it, &items[i]);
	}
	HASH_FIND(it, &h, 7, node, it->key == 4);
	assert_null(it);
	HASH_FIND(it, &h, 8, node, it->key == 1);
	assert_null(it);
	hash_fini(&h);
}

static void hash_nodes_may_go_while_all_are_visited(void **state)
{
	struct hash_node *n, *tmp;
	struct item *it;
	struct hash h;
	size_t i;

	assert_int_equal(hash_init(&h, 0), 0);
	for (i = 0; i < 1000; i++) {
		it = calloc(1, sizeof(*it));
		assert_non_null(it);
		hash_insert(&h, &it->node, hash_u64(i % 300));
	}
	hash_for_each(&h, i, n, tmp) {
		hash_remove(&h, n);
		free(container_of(n, struct item, node));
	}
	assert_int_equal(h.count, 0);
	hash_fini(&h);
}

static void hash_keeps_duplicates(void **state)
{
	struct item a = { .key = 1 }, b = { .key = 1 };
	struct hash_node *n;
	struct hash h;

	assert_int_equal(hash_init(&h, 4), 0);
	hash_insert(&h, &a.node, 42);
	hash_insert(&h, &b.node, 42);
	n = hash_first(&h, 42);
	assert_non_null(n);
	assert_non_null(hash_next(n));
	assert_null(hash_next(hash_next(n)));
	hash_remove(&h, &a.node);
	assert_ptr_equal(hash_first(&h, 42), &b.node);
	hash_remove(&h, &a.node); /* twice is harmless */
	assert_int_equal(h.count, 1);
	assert_null(hash_first(&h, 43));
	hash_fini(&h);
}

static void hash_of_a_hint_has_room_for_it(void **state)
{
	struct hash h;

	assert_int_equal(hash_init(&h, 5000), 0);
	assert_true(h.mask + 1 >= 5000);
	assert_int_equal((h.mask + 1) & h.mask, 0);
	hash_fini(&h);
}

/* Chains stay short with keys like profd's: small and regular. */
static void hash_values_spread(void **state)
{
	unsigned int u64s[1024] = { 0 }, strings[1024] = { 0 };
	char text[32];
	size_t i;
	int len;

	for (i = 0; i < 10 * 1024; i++) {
		u64s[hash_u64(i * 4096) & 1023]++;
		len = snprintf(text, sizeof(text), "/usr/bin/tool%zu", i);
		strings[hash_bytes(text, len) & 1023]++;
	}
	/* Mean 10 a bucket; 40 has less than one chance in a billion. */
	for (i = 0; i < 1024; i++) {
		assert_true(u64s[i] < 40);
		assert_true(strings[i] < 40);
	}
}

static void hash_of_bytes_depends_on_each_and_on_length(void **state)
{
	unsigned char buf[40] = { 0 };
	uint64_t base;
	size_t len, i;

	for (len = 1; len <= sizeof(buf); len++) {
		base = hash_bytes(buf, len);
		assert_true(base != hash_bytes(buf, len - 1));
		for (i = 0; i < len; i++) {
			buf[i] = 1;
			assert_true(hash_bytes(buf, len) != base);
			buf[i] = 0;
		}
		assert_true(hash_bytes(buf, len) == base);
	}
	assert_true(hash_mix(1, 2) != hash_mix(2, 1));
}

/* --- strtab -------------------------------------------------------------- */

static void strtab_begins_with_the_empty_string(void **state)
{
	struct strtab t;

	assert_int_equal(strtab_init(&t), 0);
	assert_int_equal(t.count, 1);
	assert_string_equal(strtab_str(&t, 0), "");
	assert_int_equal(strtab_id(&t, ""), 0);
	assert_int_equal(strtab_id_len(&t, "x", 0), 0);
	strtab_fini(&t);
}

static void strtab_ids_are_dense_stable_and_one_a_string(void **state)
{
	struct strtab t;
	char text[64];
	int64_t id;
	int round, i;

	assert_int_equal(strtab_init(&t), 0);
	for (round = 0; round < 2; round++) {
		for (i = 1; i <= 5000; i++) {
			snprintf(text, sizeof(text), "string %d", i);
			id = strtab_id(&t, text);
			assert_int_equal(id, i);
			assert_string_equal(strtab_str(&t, id), text);
		}
	}
	assert_int_equal(t.count, 5001);
	for (i = 1; i <= 5000; i++) {
		snprintf(text, sizeof(text), "string %d", i);
		assert_string_equal(strtab_str(&t, i), text);
	}
	strtab_fini(&t);
}

static void strtab_takes_strings_without_their_nul(void **state)
{
	struct strtab t;
	char *exact = malloc(3);
	int64_t id;

	assert_non_null(exact);
	memcpy(exact, "abc", 3);
	assert_int_equal(strtab_init(&t), 0);
	id = strtab_id_len(&t, exact, 3);
	assert_int_equal(strtab_id(&t, "abc"), id);
	assert_true(strtab_id_len(&t, exact, 2) != id);
	memcpy(exact, "xyz", 3); /* the table has its own copy */
	assert_string_equal(strtab_str(&t, id), "abc");
	free(exact);
	strtab_fini(&t);
}

static void strtab_tells_strings_apart_by_length(void **state)
{
	struct strtab t;
	int64_t one, two;

	assert_int_equal(strtab_init(&t), 0);
	one = strtab_id_len(&t, "a\0b", 3);
	two = strtab_id_len(&t, "a", 1);
	assert_true(one > 0 && two > 0 && one != two);
	assert_int_equal(strtab_id_len(&t, "a\0b", 3), one);
	assert_memory_equal(strtab_str(&t, one), "a\0b", 4);
	strtab_fini(&t);
}

static void strtab_says_what_it_holds(void **state)
{
	struct strtab t;
	char *large = calloc(1, 1 << 20);
	size_t before;

	assert_non_null(large);
	memset(large, 'x', (1 << 20) - 1);
	assert_int_equal(strtab_init(&t), 0);
	before = strtab_bytes(&t);
	assert_true(before > 0 && before < 64 * 1024);
	assert_true(strtab_id(&t, large) > 0);
	assert_true(strtab_bytes(&t) >= before + (1 << 20));
	free(large);
	strtab_fini(&t);
}

/* --- strbuf -------------------------------------------------------------- */

static void strbuf_grows_and_stays_terminated(void **state)
{
	struct strbuf sb = STRBUF_INIT;
	char want[20001] = { 0 };
	int i;

	assert_string_equal(strbuf_str(&sb), "");
	for (i = 0; i < 20000; i++) {
		want[i] = 'a' + i % 26;
		if (i % 2)
			strbuf_add(&sb, want + i, 1);
		else
			strbuf_printf(&sb, "%c", want[i]);
		assert_int_equal(sb.len, i + 1);
		assert_int_equal(sb.data[sb.len], '\0');
	}
	assert_string_equal(strbuf_str(&sb), want);
	strbuf_fini(&sb);
	assert_string_equal(strbuf_str(&sb), "");
}

static void strbuf_prints_longer_than_its_room(void **state)
{
	struct strbuf sb = STRBUF_INIT;
	char text[1000];
	int len;

	/* All lengths around the doublings, to find errors by one. */
	for (len = 0; len < (int)sizeof(text); len++) {
		strbuf_reset(&sb);
		memset(text, 'z', len);
		text[len] = '\0';
		strbuf_printf(&sb, "%s", text);
		assert_int_equal(sb.len, len);
		assert_string_equal(strbuf_str(&sb), text);
		strbuf_fini(&sb);
	}
}

static void strbuf_holds_any_bytes(void **state)
{
	struct strbuf sb = STRBUF_INIT;

	strbuf_add(&sb, "a\0b", 3);
	strbuf_add(&sb, NULL, 0);
	strbuf_puts(&sb, "c");
	assert_int_equal(sb.len, 4);
	assert_memory_equal(strbuf_str(&sb), "a\0bc", 5);
	strbuf_fini(&sb);
}

static void strbuf_errors_stick_until_reset(void **state)
{
	struct strbuf sb = STRBUF_INIT;

	strbuf_puts(&sb, "before");
	sb.failed = true; /* as a failed allocation leaves it */
	strbuf_puts(&sb, "after");
	assert_null(strbuf_str(&sb));
	assert_null(strbuf_steal(&sb));
	assert_non_null(strbuf_str(&sb)); /* stealing clears the error */
	strbuf_puts(&sb, "x");
	sb.failed = true;
	strbuf_reset(&sb);
	assert_string_equal(strbuf_str(&sb), "");
	strbuf_fini(&sb);
}

static void strbuf_gives_its_string_away(void **state)
{
	struct strbuf sb = STRBUF_INIT;
	char *p;

	p = strbuf_steal(&sb);
	assert_string_equal(p, "");
	free(p);
	strbuf_puts(&sb, "mine");
	p = strbuf_steal(&sb);
	assert_string_equal(p, "mine");
	assert_int_equal(sb.len, 0);
	assert_string_equal(strbuf_str(&sb), "");
	free(p);
}

/* --- clock --------------------------------------------------------------- */

static int64_t now_ns(clockid_t id)
{
	struct timespec ts;

	assert_int_equal(clock_gettime(id, &ts), 0);
	return ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

static void clock_is_the_boot_clock(void **state)
{
	int64_t before = now_ns(CLOCK_BOOTTIME), ours, after;

	ours = clock_boottime_ns();
	after = now_ns(CLOCK_BOOTTIME);
	assert_true(before <= ours && ours <= after);
}

/* The host may have been suspended before or during the test. */
static void clock_of_being_awake_and_sleep_make_the_boot_clock(void **state)
{
	uint64_t slept, awake, boot, then;

	slept = clock_slept_ns();
	awake = clock_awake_ns();
	boot = clock_boottime_ns();
	then = clock_awake_ns() + clock_slept_ns();
	assert_true(slept + awake <= boot + CLOCK_NSEC_PER_MSEC);
	assert_true(boot <= then + CLOCK_NSEC_PER_MSEC);
}

static void clock_offset_leads_to_wall_time(void **state)
{
	int64_t before = now_ns(CLOCK_REALTIME), wall, after;

	wall = clock_boottime_ns() + clock_wall_offset_ns();
	after = now_ns(CLOCK_REALTIME);
	/* The clock may be slewed or stepped by up to a second. */
	assert_true(before - 1000000000LL < wall);
	assert_true(wall < after + 1000000000LL);
}

/* --- log ----------------------------------------------------------------- */

/* What log_printf() writes for 'text' at 'level', which is enabled or not. */
static size_t logged(enum log_level level, const char *text, char *out,
		     size_t len)
{
	int keep = dup(STDERR_FILENO), fds[2];
	ssize_t n;

	assert_true(keep >= 0);
	assert_int_equal(pipe2(fds, O_NONBLOCK), 0);
	dup2(fds[1], STDERR_FILENO);
	log_printf(level, "%s", text);
	dup2(keep, STDERR_FILENO);
	n = read(fds[0], out, len - 1);
	close(fds[0]);
	close(fds[1]);
	close(keep);
	out[n > 0 ? n : 0] = '\0';
	return n > 0 ? n : 0;
}

static void log_writes_one_line_with_its_name(void **state)
{
	char out[4096];

	unsetenv("JOURNAL_STREAM");
	logged(LOG_INFO, "hello", out, sizeof(out));
	assert_string_equal(out, "profd: hello\n");
	logged(LOG_ERROR, "gone", out, sizeof(out));
	assert_string_equal(out, "profd: error: gone\n");
	logged(LOG_WARN, "odd", out, sizeof(out));
	assert_string_equal(out, "profd: warn: odd\n");
}

static void log_levels_hold_back(void **state)
{
	char out[4096];

	assert_int_equal(logged(LOG_DEBUG, "quiet", out, sizeof(out)), 0);
	log_set_level(LOG_ERROR);
	assert_int_equal(logged(LOG_WARN, "quiet", out, sizeof(out)), 0);
	assert_true(logged(LOG_ERROR, "loud", out, sizeof(out)) > 0);
	log_set_level(LOG_DEBUG);
	assert_true(logged(LOG_DEBUG, "loud", out, sizeof(out)) > 0);
	log_set_level(LOG_INFO);
}

static void log_cuts_what_is_too_long_and_ends_the_line(void **state)
{
	char text[3000], out[4096];
	size_t n;

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	n = logged(LOG_ERROR, text, out, sizeof(out));
	assert_in_range(n, 500, 1024);
	assert_int_equal(out[n - 1], '\n');
	assert_ptr_equal(strchr(out, '\n'), out + n - 1);
}

static void log_marks_priorities_for_the_journal(void **state)
{
	char out[4096];

	setenv("JOURNAL_STREAM", "8:1", 1);
	logged(LOG_ERROR, "gone", out, sizeof(out));
	unsetenv("JOURNAL_STREAM");
	assert_string_equal(out, "<3>profd: error: gone\n");
}

/* --- procfs -------------------------------------------------------------- */

#define CGROUP_ID                          \
	"3f1b6e0c9d2a47580e1f2a3b4c5d6e7f" \
	"8091a2b3c4d5e6f708192a3b4c5d6e7f"

/* test_quark.c tests the same rule in the BPF programs. */
static void a_cgroup_is_that_which_says_most(void **state)
{
	static const struct {
		const char *text, *path;
	} v[] = {
		{ "0::/system.slice/x.service\n", "/system.slice/x.service" },
		{ "0::/\n", "/" },
		/* only version 1 */
		{ "9:name=systemd:/a\n4:cpu,memory:/b\n3:pids:/c\n", "/b" },
		{ "9:name=systemd:/a\n4:memory:/\n3:pids:/c\n", "/c" },
		{ "9:name=systemd:/a\n4:memory:/\n3:cpu:/d\n", "/" },
		/* both: version 2, except for containers */
		{ "4:memory:/b\n0::/init.scope\n", "/init.scope" },
		{ "4:memory:/b\n0::/\n", "/b" },
		{ "4:memory:/docker/" CGROUP_ID "\n"
		  "0::/system.slice/docker.service\n",
		  "/docker/" CGROUP_ID },
		{ "5:pids:/x/crio-" CGROUP_ID "\n4:memory:/y\n0::/z\n",
		  "/x/crio-" CGROUP_ID },
		/* the last name must be the container's */
		{ "4:memory:/docker/" CGROUP_ID "/x\n0::/z\n", "/z" },
		/* a path may have colons */
		{ "0::/kubepods.slice:cri-containerd:" CGROUP_ID "\n",
		  "/kubepods.slice:cri-containerd:" CGROUP_ID },
		{ "3:memoryx,xmemory:/b\n", NULL },
		{ "garbage\n:\n", NULL },
		{ "", NULL },
	};
	char text[512];
	const char *got;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(v); i++) {
		snprintf(text, sizeof(text), "%s", v[i].text);
		got = procfs_cgroup(text);
		if (v[i].path)
			assert_string_equal(got ? got : "(null)", v[i].path);
		else
			assert_null(got);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(arena_memory_is_aligned_and_apart),
		cmocka_unit_test(arena_gives_pieces_larger_than_any_chunk),
		cmocka_unit_test(arena_refuses_sizes_that_wrap),
		cmocka_unit_test(arena_copies),
		cmocka_unit_test(arena_can_be_used_again_after_its_end),
		cmocka_unit_test(hash_agrees_with_a_naive_model),
		cmocka_unit_test(hash_find_is_by_hash_and_condition),
		cmocka_unit_test(hash_nodes_may_go_while_all_are_visited),
		cmocka_unit_test(hash_keeps_duplicates),
		cmocka_unit_test(hash_of_a_hint_has_room_for_it),
		cmocka_unit_test(hash_values_spread),
		cmocka_unit_test(hash_of_bytes_depends_on_each_and_on_length),
		cmocka_unit_test(strtab_begins_with_the_empty_string),
		cmocka_unit_test(strtab_ids_are_dense_stable_and_one_a_string),
		cmocka_unit_test(strtab_takes_strings_without_their_nul),
		cmocka_unit_test(strtab_tells_strings_apart_by_length),
		cmocka_unit_test(strtab_says_what_it_holds),
		cmocka_unit_test(strbuf_grows_and_stays_terminated),
		cmocka_unit_test(strbuf_prints_longer_than_its_room),
		cmocka_unit_test(strbuf_holds_any_bytes),
		cmocka_unit_test(strbuf_errors_stick_until_reset),
		cmocka_unit_test(strbuf_gives_its_string_away),
		cmocka_unit_test(clock_is_the_boot_clock),
		cmocka_unit_test(
			clock_of_being_awake_and_sleep_make_the_boot_clock),
		cmocka_unit_test(clock_offset_leads_to_wall_time),
		cmocka_unit_test(log_writes_one_line_with_its_name),
		cmocka_unit_test(log_levels_hold_back),
		cmocka_unit_test(log_cuts_what_is_too_long_and_ends_the_line),
		cmocka_unit_test(log_marks_priorities_for_the_journal),
		cmocka_unit_test(a_cgroup_is_that_which_says_most),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
