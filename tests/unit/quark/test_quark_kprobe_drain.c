// SPDX-License-Identifier: Apache-2.0
/*
 * libquark's kprobe backend: the rings of all CPUs as one stream, with rings made
 * here: order, the watermark and its slack, losses, CPU hotplug.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "processmanager/quark/btf.c"
#include "processmanager/quark/error.c"
#include "processmanager/quark/kprobe/kprobe.c"
#include "processmanager/quark/kprobe/kprobe_decode.c"
#include "processmanager/quark/kprobe/kprobe_events.c"
#include "processmanager/quark/kprobe/kprobe_path.c"
#include "processmanager/quark/kprobe/kprobe_record.c"
#include "processmanager/quark/proc/procfs.c"
#include "processmanager/quark/proc/procfs_task.c"
#include "processmanager/quark/proc/reader.c"
#include "processmanager/quark/kprobe/kprobe_cpus.c"

#define RING 4096
#define CPUS 2

static struct kprobe k;
static struct kprobe_cpu *cpus[CPUS];
static uint64_t blind[CPUS];
static bool told[CPUS];
static uint64_t got[64];
static int n_got, stop_at;

/* A reap with a key only; and a record of a CPU. */
static struct kprobe_place reap_places[] = {
	{ 8, offsetof(struct kprobe_values, start), 8, 0 },
	{ 16, offsetof(struct kprobe_values, pid), 4, 0 },
	{ 16, offsetof(struct kprobe_values, tgid), 4, 0 },
};
static struct kprobe_place cpu_places[] = {
	{ 8, offsetof(struct kprobe_values, tp_cpu), 4, 0 },
};

static int take(void *arg, void *data, size_t len)
{
	const struct abi_quark_head *h = data;

	assert_int_equal(h->kind, ABI_QUARK_REAP);
	got[n_got++] = h->time;
	return n_got == stop_at ? -ENOBUFS : 0;
}

static int setup(void **state)
{
	size_t page = sysconf(_SC_PAGESIZE);
	int i;

	memset(&k, 0, sizeof(k));
	k.fn = take;
	k.slack = SLACK_NS;
	k.events.ev[KPROBE_REAP] = (struct kprobe_event){ 5, 3, reap_places };
	k.events.ev[KPROBE_HOTPLUG] = (struct kprobe_event){ 6, 1, cpu_places };
	k.cpus.cpu = cpus;
	k.cpus.blind = blind;
	k.cpus.told = told;
	k.cpus.n = CPUS;
	for (i = 0; i < CPUS; i++) {
		cpus[i] = calloc(1, sizeof(*cpus[i]));
		memset(cpus[i]->fd, -1, sizeof(cpus[i]->fd));
		cpus[i]->ring.page = aligned_alloc(page, page + RING);
		memset(cpus[i]->ring.page, 0, page + RING);
		cpus[i]->ring.bytes = RING;
		cpus[i]->ring.scratch = malloc(PERFRING_RECORD_MAX);
		told[i] = false;
	}
	n_got = stop_at = 0;
	return 0;
}

static int teardown(void **state)
{
	int i;

	for (i = 0; i < CPUS; i++) {
		free(cpus[i]->ring.scratch);
		free(cpus[i]->ring.page);
		free(cpus[i]);
	}
	return 0;
}

static void add(int cpu, const void *record, size_t len)
{
	struct perf_event_mmap_page *page = cpus[cpu]->ring.page;
	char *data = (char *)page + sysconf(_SC_PAGESIZE);
	size_t i;

	for (i = 0; i < len; i++)
		data[(page->data_head + i) % RING] = ((const char *)record)[i];
	page->data_head += len;
}

static void add_sample(int cpu, uint64_t time, uint16_t type, uint32_t value)
{
	struct {
		struct perf_event_header h;
		struct sample_head s;
		char raw[20];
	} __attribute__((packed)) r = {
		.h = { .type = PERF_RECORD_SAMPLE, .size = sizeof(r) },
		.s = { .time = time, .size = sizeof(r.raw) },
	};

	memcpy(r.raw, &type, sizeof(type));
	memcpy(r.raw + 8, &value, sizeof(value));
	memcpy(r.raw + 16, &value, sizeof(value));
	add(cpu, &r, sizeof(r));
}

static void add_reap(int cpu, uint64_t time)
{
	add_sample(cpu, time, 5, 42);
}

static void expect(const uint64_t *times, int n)
{
	assert_int_equal(n_got, n);
	assert_memory_equal(got, times, n * sizeof(*times));
}

/* Two CPUs, each in its order: one stream in order of time. */
static void test_order(void **state)
{
	int n = 0;

	add_reap(0, 10);
	add_reap(0, 40);
	add_reap(0, 50);
	add_reap(1, 20);
	add_reap(1, 30);
	add_reap(1, 60);
	assert_int_equal(kprobe_drain_rings(&k, &n), 0);
	assert_int_equal(n, 6);
	expect((uint64_t[]){ 10, 20, 30, 40, 50, 60 }, 6);
	assert_int_equal(kprobe_backlog(&k), 0);
}

/* After a stop it continues behind the last record. */
static void test_stop(void **state)
{
	int n = 0;

	add_reap(0, 10);
	add_reap(1, 20);
	add_reap(0, 30);
	stop_at = 2;
	assert_int_equal(kprobe_drain_rings(&k, &n), -ENOBUFS);
	expect((uint64_t[]){ 10, 20 }, 2);
	assert_true(kprobe_backlog(&k) > 0);
	assert_int_equal(kprobe_drain_rings(&k, &n), 0);
	expect((uint64_t[]){ 10, 20, 30 }, 3);
}

/*
 * A record that was stamped before its ring was last looked at was on its way for
 * at least so long: the watermark keeps four times that, and eases it later.
 */
static void test_slack(void **state)
{
	const uint64_t ms = CLOCK_NSEC_PER_MSEC;
	uint64_t looked;
	int n = 0;

	assert_int_equal(kprobe_drain_rings(&k, &n), 0);
	looked = cpus[0]->looked;
	assert_true(looked > 0);
	add_reap(0, looked - ms / 2);
	assert_int_equal(kprobe_drain_rings(&k, &n), 0);
	assert_int_equal(kprobe_slack(&k), SLACK_NS);
	looked = cpus[0]->looked;
	add_reap(0, looked - 3 * ms);
	assert_int_equal(kprobe_drain_rings(&k, &n), 0);
	assert_int_equal(kprobe_slack(&k), 12 * ms);
	looked = cpus[0]->looked;
	add_reap(0, looked - 2000 * ms);
	assert_int_equal(kprobe_drain_rings(&k, &n), 0);
	assert_int_equal(kprobe_slack(&k), SLACK_MAX_NS);
	ease_slack(&k, k.slack_since + SLACK_KEPT_NS - 1);
	assert_int_equal(kprobe_slack(&k), SLACK_MAX_NS);
	for (n = 0; n < 20; n++)
		ease_slack(&k, k.slack_since + SLACK_KEPT_NS);
	assert_int_equal(kprobe_slack(&k), SLACK_NS);
}

/* The first drain of a ring shows no delay. */
static void test_first_look(void **state)
{
	int n = 0;

	add_reap(1, 10);
	assert_int_equal(kprobe_drain_rings(&k, &n), 0);
	assert_int_equal(kprobe_slack(&k), SLACK_NS);
}

/* An invalid record is a loss of unknown kind. */
static void test_unreadable(void **state)
{
	struct perf_event_header h = { .type = PERF_RECORD_SAMPLE,
				       .size = sizeof(h) };
	struct quark_loss_report lost;
	int n = 0;

	add_reap(0, 10);
	add(0, &h, sizeof(h));
	add_sample(0, 20, 99, 0);
	add_reap(0, 30);
	assert_int_equal(kprobe_drain_rings(&k, &n), 0);
	expect((uint64_t[]){ 10, 30 }, 2);
	assert_false(kprobe_cpus_settle(&k.cpus));
	kprobe_losses(&k, &lost);
	assert_true(lost.uncounted);
	assert_int_equal(lost.total, 0);
	assert_true(lost.first <= lost.last && lost.first > 0);
	/* Reported once. */
	assert_false(kprobe_cpus_settle(&k.cpus));
	kprobe_losses(&k, &lost);
	assert_false(lost.uncounted);
}

/* The tracepoint's CPU is checked; an impossible one is not. */
static void test_told(void **state)
{
	int n = 0;

	add_sample(0, 10, 6, 1);
	add_sample(0, 20, 6, 77);
	assert_int_equal(kprobe_drain_rings(&k, &n), 0);
	assert_true(k.follow);
	assert_false(told[0]);
	assert_true(told[1]);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_order),	    T(test_stop),	T(test_slack),
		T(test_first_look), T(test_unreadable), T(test_told),
	};
#undef T

	return cmocka_run_group_tests(tests, NULL, NULL);
}
