// SPDX-License-Identifier: Apache-2.0
/*
 * libquark: the budgets of the kernel side (bpf/quark_limit.bpf.h), compiled for user
 * space over maps of one entry each: what holds without memory for a task's storage,
 * and when two CPUs note a change of one task at once.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <linux/bpf.h>
#include <pthread.h>
#include <string.h>

#include "bpf/abi.h"

/* What the header needs from the kernel and from libbpf. */
#define BPF_QUARK_RING_BPF_H
#define SEC(name)
#define __uint(name, val) int(*name)[val]
#define __type(name, val) val *name
#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif
#define BPF_CORE_READ(task, cred, id) ((task)->uid)

struct task_struct {
	uint32_t uid;
};

static struct abi_quark_loss losses;
static uint64_t boottime;
static void *storage; /* of the only task; NULL: no memory */
static void *budget; /* of the only user */

static uint64_t bpf_ktime_get_boot_ns(void)
{
	return boottime;
}

static uint32_t bpf_get_smp_processor_id(void)
{
	return 0;
}

static void *bpf_task_storage_get(void *map, struct task_struct *task, void *v,
				  uint64_t flags)
{
	return storage;
}

static void *bpf_map_lookup_elem(void *map, const void *key)
{
	return map == &losses ? (void *)&losses : budget;
}

static long bpf_map_update_elem(void *map, const void *key, const void *value,
				uint64_t flags)
{
	return 0;
}

/* The header declares it once more, as what the loader fills in. */
#define PER_TASK 10
const volatile __u32 quark_repeats = PER_TASK;

#include "bpf/quark_limit.bpf.h"

#define PER_USER (PER_TASK * UID_REPEATS)
#define ROUNDS 5000000

static struct task_struct task = { .uid = 65534 };
static struct repeats task_repeats;
static struct uid_budget user_budget;

static int setup(void **state)
{
	memset(&task_repeats, 0, sizeof(task_repeats));
	memset(&user_budget, 0, sizeof(user_budget));
	memset(&losses, 0, sizeof(losses));
	storage = &task_repeats;
	budget = &user_budget;
	boottime = 100 * NSEC_PER_SEC;
	return 0;
}

/* How many of 'n' changes at once are reported. */
static unsigned int reported(unsigned int n, enum pending what)
{
	unsigned int i, told = 0;

	for (i = 0; i < n; i++)
		told += may_repeat(&task, what);
	return told;
}

static void a_task_has_its_budget(void **state)
{
	assert_int_equal(reported(1000, PENDING_NAME), PER_TASK);
	assert_int_equal(losses.limited, 1000 - PER_TASK);
	assert_int_equal(take_pending(&task), PENDING_NAME);
	assert_int_equal(take_pending(&task), 0);
	/* A kind that is reported is not pending any more. */
	assert_int_equal(reported(1, PENDING_NAME), 0);
	assert_int_equal(reported(PER_TASK + 1, PENDING_CWD), PER_TASK);
	boottime += NSEC_PER_SEC;
	assert_int_equal(reported(1, PENDING_NAME), 1);
	assert_int_equal(take_pending(&task), PENDING_CWD);
}

/* Nothing becomes pending, but the user is still limited. */
static void without_storage_the_user_is_limited(void **state)
{
	storage = NULL;
	assert_int_equal(reported(5 * PER_USER, PENDING_NAME), PER_USER);
	assert_int_equal(losses.limited, 4 * PER_USER);
	assert_int_equal(take_pending(&task), 0);
	/* Without both budgets nothing is limited. */
	budget = NULL;
	assert_int_equal(reported(PER_USER, PENDING_NAME), PER_USER);
}

static bool stop;

static void *other_cpu(void *arg)
{
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED))
		may_repeat(&task, PENDING_NAME);
	return NULL;
}

/* Nothing clears pending bits here, so the bit is still set. */
static void two_cpus_lose_nothing(void **state)
{
	unsigned int lost = 0;
	pthread_t other;
	int i;

	user_budget.repeats = boottime + NSEC_PER_SEC;
	stop = false;
	assert_int_equal(pthread_create(&other, NULL, other_cpu, NULL), 0);
	for (i = 0; i < ROUNDS; i++) {
		may_repeat(&task, PENDING_CWD);
		lost += !(take_pending(&task) & PENDING_CWD);
	}
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	pthread_join(other, NULL);
	assert_int_equal(lost, 0);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup(f, setup)
	const struct CMUnitTest tests[] = {
		T(a_task_has_its_budget),
		T(without_storage_the_user_is_limited),
		T(two_cpus_lose_nothing),
	};
#undef T

	return cmocka_run_group_tests(tests, NULL, NULL);
}
