/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * wait_sum: the sums of bpf/abi_wait.h: found by key, made, added to. Called with a run
 * queue locked: the maps are allocated beforehand, and take only raw spinlocks.
 */
#ifndef BPF_WAIT_SUM_BPF_H
#define BPF_WAIT_SUM_BPF_H

#include "bpf/abi_wait.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, ABI_WAIT_SUMS);
	__type(key, __u32);
	__type(value, struct abi_wait_sum);
} wait_sums SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, ABI_WAIT_SUMS);
	__type(key, struct abi_wait_key);
	__type(value, __u32);
} wait_index SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_STACK);
	__uint(max_entries, ABI_WAIT_SUMS);
	__type(value, __u32);
} wait_free SEC(".maps");

struct abi_wait_counters wait_counters;

/* Those from here on were never in use. */
__u64 wait_fresh = ABI_WAIT_RESERVED;

/* Sums in use, by user: user space subtracts what it frees. */
__u32 wait_users[ABI_WAIT_USERS];

/* So that nobody can choose with whom to share. Set before load. */
const volatile __u32 wait_seed;

/* For tests: fewer than ABI_WAIT_SUMS. Set before load. */
const volatile __u32 wait_limit = ABI_WAIT_SUMS;

static __always_inline struct abi_wait_sum *sum_at(__u32 i)
{
	i &= ABI_WAIT_SUMS - 1;
	return bpf_map_lookup_elem(&wait_sums, &i);
}

/* 'ns' may be negative: of a cut after the time at which the interval ended. */
static __always_inline void sum_add(__u32 i, __u64 ns, bool ended)
{
	struct abi_wait_sum *s = sum_at(i);

	if (!s)
		return;
	__sync_fetch_and_add(&s->ns, ns);
	if (ended)
		__sync_fetch_and_add(&s->count, 1);
}

static __always_inline void sum_add_cpu(__u32 head, __u64 ns)
{
	struct abi_wait_sum *s = sum_at(head);

	if (s)
		__sync_fetch_and_add(&s->cpu_ns, ns);
}

static __always_inline __u32 sum_user(__u32 uid)
{
	return (uid ^ wait_seed) * 2654435761U >> 22; /* ABI_WAIT_USERS */
}

/* Whether a user may have one more of 'limit'. */
static __always_inline bool sum_room(__u32 user, __u32 limit)
{
	__u64 used = wait_counters.used;

	return used < limit && wait_users[user & (ABI_WAIT_USERS - 1)] < limit - used;
}

/* The number of an unused one; 0: there is none for this user. */
static __always_inline __u32 sum_take(__u32 user)
{
	__u64 fresh;
	__u32 i = 0;

	user &= ABI_WAIT_USERS - 1;
	if (!sum_room(user, wait_limit))
		return 0;
	if (bpf_map_pop_elem(&wait_free, &i)) {
		fresh = __sync_fetch_and_add(&wait_fresh, 1);
		if (fresh >= ABI_WAIT_SUMS) {
			__sync_fetch_and_add(&wait_fresh, -1);
			return 0;
		}
		i = fresh;
	}
	__sync_fetch_and_add(&wait_counters.used, 1);
	__sync_fetch_and_add(&wait_users[user], 1);
	return i;
}

static __always_inline void sum_give(__u32 i, __u32 user)
{
	user &= ABI_WAIT_USERS - 1;
	__sync_fetch_and_add(&wait_users[user], -1);
	__sync_fetch_and_add(&wait_counters.used, -1);
	bpf_map_push_elem(&wait_free, &i, 0);
}

/*
 * Makes the sum of a key. 'head' 0: it is a head itself. Two CPUs may make the same: one
 * of them takes the other's. 0: refused.
 */
static __always_inline __u32 sum_make(const struct abi_wait_key *key, __u32 uid, __u32 head)
{
	__u32 user = sum_user(uid), i = sum_take(user), *first;
	struct abi_wait_sum *s = i ? sum_at(i) : NULL;

	if (!s) {
		__sync_fetch_and_add(&wait_counters.refused, 1);
		return 0;
	}
	s->head = head ?: ABI_WAIT_HEAD_NEW;
	s->user = user;
	s->key.start_boottime = key->start_boottime;
	s->key.exec_id = key->exec_id;
	s->key.tgid = key->tgid;
	s->key.site = key->site;
	barrier();
	s->key.what = key->what; /* the last: now user space reads it */
	if (!bpf_map_update_elem(&wait_index, key, &i, BPF_NOEXIST))
		return i;
	s->key.what = 0;
	sum_give(i, user);
	first = bpf_map_lookup_elem(&wait_index, key);
	return first ? *first : 0;
}

/* The number of the sum of a key, made if need be; without room a reserved one. */
static __always_inline __u32 sum_find(const struct abi_wait_key *key, __u32 uid, __u32 head)
{
	__u32 *i = bpf_map_lookup_elem(&wait_index, key);
	__u32 made = i ? *i : sum_make(key, uid, head);

	return made ?: ABI_WAIT_WHAT_REASON(key->what);
}

/* One more thread belongs to the image of this head. */
static __always_inline void sum_enter(__u32 head)
{
	struct abi_wait_sum *s = sum_at(head);

	if (!s)
		return;
	__sync_fetch_and_add(&s->threads, 1);
	/* Only while it is new, and it does not matter how often that is done. */
	if (s->threads & ABI_WAIT_HEAD_NEW)
		__sync_fetch_and_and((__u64 *)&s->threads, ~(__u64)ABI_WAIT_HEAD_NEW);
}

/* The last that a thread adds to an image: user space may free its sums after that. */
static __always_inline void sum_leave(__u32 head, __u64 wall)
{
	struct abi_wait_sum *s = sum_at(head);

	if (!s)
		return;
	__sync_fetch_and_add(&s->wall_ns, wall);
	__sync_fetch_and_add(&s->threads, -1);
}

#endif /* BPF_WAIT_SUM_BPF_H */
