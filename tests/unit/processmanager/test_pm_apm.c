// SPDX-License-Identifier: Apache-2.0
/*
 * What APM agents receive: bytes of each message, sums while their sockets are full, and
 * what is lost and counted when one is slow or gone. The agents are sockets of this test.
 */
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/unit/processmanager/test_pm_fake.h"

#define DELAY_MS 4500

static struct abi_key gone[4];
static size_t ngone;
static int64_t later_ns; /* added to the clock */

uint64_t __wrap_clock_awake_ns(void);

uint64_t __wrap_clock_awake_ns(void)
{
	return (uint64_t)(1000 * (int64_t)CLOCK_NSEC_PER_SEC + later_ns);
}

static void on_gone(void *arg, const struct abi_key *key)
{
	assert_true(ngone < ARRAY_SIZE(gone));
	gone[ngone++] = *key;
}

static int setup_apm(void **state)
{
	struct pm_opts opts = { .symbolizer = &fake,
				.apm_gone = on_gone,
				.apm_delay_ms = DELAY_MS };

	memset(&fake, 0, sizeof(fake));
	ngone = 0;
	later_ns = 0;
	signal(SIGPIPE, SIG_DFL);
	return pm_new(&pm, &opts);
}

static struct pm_image *process(uint32_t pid, uint32_t uid)
{
	struct quark_process qp = qp_of(pid, 1);
	struct abi_key key = { born(pid), 1, pid, 0 };

	qp.proc_uid = uid;
	qp.comm[0] = 'x';
	pm_scan_process(pm, &qp, 1);
	return pm_image_get(pm, &key, 0);
}

/*
 * Of two sockets of socketpair(2) each is the other's peer, and then the number of
 * datagrams has no limit: so one is bound, to a name that the kernel chooses.
 */
static void connected(int pair[2])
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	socklen_t len = sizeof(sa);

	pair[0] = socket(AF_UNIX, SOCK_DGRAM, 0);
	pair[1] = socket(AF_UNIX, SOCK_DGRAM, 0);
	assert_int_equal(bind(pair[1], (struct sockaddr *)&sa,
			      sizeof(sa.sun_family)),
			 0);
	assert_int_equal(getsockname(pair[1], (struct sockaddr *)&sa, &len), 0);
	assert_int_equal(connect(pair[0], (struct sockaddr *)&sa, len), 0);
}

/* The agent's end; an image is connected to the other one. */
static int agent(struct pm_image *img)
{
	int pair[2];

	connected(pair);
	assert_int_equal(pm_apm_connected(pm, img, pair[0]), 0);
	return pair[1];
}

static uint8_t msg[256];

static ssize_t next(int fd)
{
	memset(msg, 0xee, sizeof(msg));
	return recv(fd, msg, sizeof(msg), MSG_DONTWAIT);
}

static uint32_t number(size_t at, size_t size)
{
	uint32_t v = 0;

	memcpy(&v, msg + at, size);
	return v;
}

static void registers(int fd)
{
	assert_int_equal(next(fd), 12);
	assert_int_equal(number(0, 2), 2);
}

static const char *notify(struct pm_image *img, uint8_t n, uint16_t count)
{
	struct pm_trace_ids ids = { { 0xa0, [15] = n }, { 0xb0, [7] = n } };
	uint8_t stack[16] = { 0xc0, [15] = n };

	return pm_notify_apm(pm, img, &ids, stack, count);
}

static void messages_are_as_the_protocol_has_them(void **state)
{
	static const uint8_t registration[] = { 2, 0, 1, 0, 0x94, 0x11,
						0, 0, 0, 0, 0,	  0 };
	static const uint8_t stack[] = {
		1,    0,    1, 0, /* type, minor */
		0xa0, 0,    0, 0, 0, 0, 0, 0,
		0,    0,    0, 0, 0, 0, 0, 7, /* trace */
		0xb0, 0,    0, 0, 0, 0, 0, 7, /* transaction */
		0xc0, 0,    0, 0, 0, 0, 0, 0,
		0,    0,    0, 0, 0, 0, 0, 7, /* stack */
		0x02, 0x01, /* count */
	};
	struct pm_image *img = process(1, 1);
	struct symbolizer_context names = { .service = "shop" };
	int fd;

	assert_null(notify(img, 7, 1));
	assert_false(pm_apm_any(pm));
	fd = agent(img);
	assert_true(pm_apm_listens(img));
	assert_true(pm_apm_any(pm));
	assert_int_equal(next(fd), sizeof(registration));
	assert_memory_equal(msg, registration, sizeof(registration));
	assert_false(pm_apm_waiting(pm));
	assert_string_equal(notify(img, 7, 0x101), "");
	pm_image_set_context(pm, img, &names);
	assert_string_equal(notify(img, 7, 1), "shop");
	assert_true(pm_apm_waiting(pm));
	pm_apm_send(pm);
	assert_false(pm_apm_waiting(pm));
	assert_int_equal(next(fd), sizeof(stack));
	assert_memory_equal(msg, stack, sizeof(stack));
	assert_int_equal(next(fd), -1);
	assert_int_equal(stats().apm_sent, 1);
	assert_int_equal(stats().apm_samples, 0x102);
	close(fd);
}

/* Reads all; the sum of the counts. */
static uint64_t drain(int fd)
{
	uint64_t sum = 0;

	while (next(fd) == 46)
		sum += number(44, 2);
	return sum;
}

static void counts_are_summed_while_the_socket_is_full(void **state)
{
	struct pm_image *img = process(1, 1);
	int fd = agent(img);
	uint64_t sum = 0;

	registers(fd);
	for (int round = 0; round < 50; round++) {
		for (uint8_t n = 0; n < 30; n++)
			assert_non_null(notify(img, n, 1));
		pm_apm_send(pm);
	}
	/* No more messages than stacks wait, however often they came. */
	assert_int_equal(stats().apm_waiting, 30);
	assert_true(stats().apm_sent <= 50 * PM_APM_BURST);
	for (int i = 0; i < 100 && pm_apm_waiting(pm); i++) {
		sum += drain(fd);
		pm_apm_send(pm);
	}
	sum += drain(fd);
	assert_int_equal(sum, 50 * 30);
	assert_int_equal(stats().apm_samples, 50 * 30);
	assert_int_equal(stats().apm_waiting, 0);
	assert_int_equal(stats().apm_lost_late + stats().apm_lost_full, 0);
	close(fd);
}

static void a_registration_waits_for_room_too(void **state)
{
	struct pm_image *img = process(1, 1);
	int pair[2];
	size_t n = 0;

	connected(pair);
	while (send(pair[0], "x", 1, MSG_DONTWAIT) == 1)
		n++;
	assert_int_equal(pm_apm_connected(pm, img, pair[0]), 0);
	assert_true(pm_apm_waiting(pm));
	notify(img, 1, 1);
	pm_apm_send(pm);
	while (n--)
		assert_int_equal(next(pair[1]), 1);
	assert_int_equal(next(pair[1]), -1);
	pm_apm_send(pm);
	registers(pair[1]);
	assert_int_equal(next(pair[1]), 46);
	close(pair[1]);
}

static void a_large_count_is_several_messages(void **state)
{
	struct pm_image *img = process(1, 1);
	int fd = agent(img);
	uint64_t sum = 0;

	registers(fd);
	for (int i = 0; i < 3; i++)
		notify(img, 1, UINT16_MAX);
	pm_apm_send(pm);
	while (next(fd) == 46) {
		assert_in_range(number(44, 2), 1, 32767);
		sum += number(44, 2);
	}
	assert_int_equal(sum, 3 * UINT16_MAX);
	close(fd);
}

static void what_an_agent_does_not_take_is_dropped_after_the_delay(void **state)
{
	struct pm_image *img = process(1, 1);
	int fd = agent(img);

	registers(fd);
	for (uint8_t n = 0; n < 200; n++)
		notify(img, n, 2);
	later_ns = (DELAY_MS - 1) * (int64_t)CLOCK_NSEC_PER_MSEC;
	for (int i = 0; i < 100; i++)
		pm_apm_send(pm);
	assert_int_equal(stats().apm_lost_late, 0);
	assert_true(stats().apm_waiting > 0);
	later_ns = (DELAY_MS + 1) * (int64_t)CLOCK_NSEC_PER_MSEC;
	pm_apm_send(pm);
	assert_int_equal(stats().apm_waiting, 0);
	assert_int_equal(stats().apm_samples + stats().apm_lost_late, 400);
	assert_int_equal(drain(fd), stats().apm_samples);
	close(fd);
}

static void an_agent_that_is_gone_is_noticed_once(void **state)
{
	struct pm_image *img = process(1, 1);
	int fd = agent(img);

	close(fd);
	notify(img, 1, 3);
	pm_apm_send(pm);
	assert_int_equal(ngone, 1);
	assert_int_equal(gone[0].tgid, 1);
	assert_int_equal(gone[0].start_boottime, born(1));
	assert_false(pm_apm_listens(img));
	assert_false(pm_apm_any(pm));
	assert_null(notify(img, 1, 1));
	pm_apm_send(pm);
	assert_int_equal(ngone, 1);
	assert_int_equal(stats().apm_lost_gone, 3);
	/* And is back. */
	fd = agent(img);
	registers(fd);
	notify(img, 1, 1);
	pm_apm_send(pm);
	assert_int_equal(next(fd), 46);
	close(fd);
}

static void another_socket_takes_the_place_of_one(void **state)
{
	struct pm_image *img = process(1, 1);
	int first = agent(img), second = agent(img);

	registers(first);
	registers(second);
	assert_int_equal(stats().apm_agents, 1);
	notify(img, 1, 1);
	pm_apm_send(pm);
	assert_int_equal(next(second), 46);
	close(first);
	close(second);
}

static void an_image_that_ends_has_none(void **state)
{
	struct pm_image *img = process(1, 1);
	int fd = agent(img);

	notify(img, 1, 1);
	do_exec(1, 2, 10 * CLOCK_NSEC_PER_SEC, "/bin/other");
	pm_forget(pm, 100 * CLOCK_NSEC_PER_SEC);
	assert_int_equal(stats().apm_agents, 0);
	assert_int_equal(stats().apm_waiting, 0);
	assert_int_equal(ngone, 0);
	close(fd);
}

/* Notifies of so many stacks. */
static void flood(struct pm_image *img, uint32_t n)
{
	struct pm_trace_ids ids = { { 1 }, { 1 } };
	uint8_t stack[16] = { 0 };

	for (uint32_t i = 0; i < n; i++) {
		memcpy(stack, &i, sizeof(i));
		assert_non_null(pm_notify_apm(pm, img, &ids, stack, 1));
	}
}

/* The agents of one user leave as many to those of others. */
static void stacks_that_wait_are_bounded_by_user(void **state)
{
	unsigned int n = 2 * PM_APM_WAITING / PM_APM_AGENT_WAITING;
	struct pm_image *other;

	for (uint32_t pid = 1; pid <= n; pid++) {
		struct pm_image *img = process(pid, 1);

		close(agent(img));
		flood(img, PM_APM_AGENT_WAITING);
	}
	assert_int_equal(stats().apm_waiting, PM_APM_WAITING / 2);
	other = process(n + 1, 2);
	close(agent(other));
	flood(other, PM_APM_AGENT_WAITING);
	assert_int_equal(stats().apm_waiting,
			 PM_APM_WAITING / 2 + PM_APM_AGENT_WAITING);
}

static void stacks_that_wait_are_bounded(void **state)
{
	struct pm_image *img = process(1, 1);
	int fd = agent(img);
	struct pm_trace_ids ids = { { 1 }, { 1 } };
	uint8_t stack[16] = { 0 };
	uint32_t last = PM_APM_AGENT_WAITING + 4;

	registers(fd);
	flood(img, last + 1);
	assert_int_equal(stats().apm_waiting, PM_APM_AGENT_WAITING);
	assert_int_equal(stats().apm_lost_full, 5);
	/* One that waits already has room. */
	memcpy(stack, &last, sizeof(last));
	assert_non_null(pm_notify_apm(pm, img, &ids, stack, 1));
	assert_int_equal(stats().apm_lost_full, 6);
	memset(stack, 0, sizeof(stack));
	assert_non_null(pm_notify_apm(pm, img, &ids, stack, 1));
	assert_int_equal(stats().apm_lost_full, 6);
	close(fd);
}

static void a_user_may_have_as_many_agents_as_are_free(void **state)
{
	unsigned int mine = 0;
	uint32_t pid = 1;
	int pair[2];

	for (; pid < 300; pid++) {
		assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair), 0);
		mine += !pm_apm_connected(pm, process(pid, 1), pair[0]);
		close(pair[1]);
		/* Nothing was sent to it but the registration, before. */
	}
	assert_int_equal(mine, PM_APM_AGENTS / 2);
	assert_int_equal(stats().apm_refused, 299 - mine);
	assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair), 0);
	assert_int_equal(pm_apm_connected(pm, process(pid, 2), pair[0]), 0);
	close(pair[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define X(test) cmocka_unit_test_setup_teardown(test, setup_apm, teardown)
		X(messages_are_as_the_protocol_has_them),
		X(counts_are_summed_while_the_socket_is_full),
		X(a_registration_waits_for_room_too),
		X(a_large_count_is_several_messages),
		X(what_an_agent_does_not_take_is_dropped_after_the_delay),
		X(an_agent_that_is_gone_is_noticed_once),
		X(another_socket_takes_the_place_of_one),
		X(an_image_that_ends_has_none),
		X(stacks_that_wait_are_bounded),
		X(stacks_that_wait_are_bounded_by_user),
		X(a_user_may_have_as_many_agents_as_are_free),
#undef X
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
