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

/* --- time ----------------------------------------------------------------------- */

/* See ABI_WAIT_SLOTS. Set by user space; each is read and written at once. */
__u64 wait_begins[ABI_WAIT_SLOTS] = { 0, -1ULL, -1ULL, -1ULL };

/* One reading of the clock, and the slot that it falls into. */
struct moment {
	__u64 time;
	__u64 begin; /* of the slot */
	__u64 slot;
};

/* Global, as the verifier looks at such a function once, not at each of its calls. */
__noinline __u32 wait_slot_of(__u64 time)
{
	__u64 begin, last = 0;
	__u32 slot = 0;

#pragma unroll
	for (__u32 i = 0; i < ABI_WAIT_SLOTS; i++) {
		begin = *(volatile __u64 *)&wait_begins[i];
		if (begin > time || begin < last)
			continue;
		last = begin;
		slot = i;
	}
	return slot;
}

static __always_inline struct moment moment_of(__u64 time)
{
	struct moment m = {
		.time = time,
		.slot = wait_slot_of(time) & (ABI_WAIT_SLOTS - 1),
	};

	m.begin = *(volatile __u64 *)&wait_begins[m.slot];
	return m;
}

static __always_inline struct moment moment_now(void)
{
	return moment_of(bpf_ktime_get_boot_ns());
}

/*
 * Adds what lies before the slot of 'to' to the slots there, and of cpu_ns, if there are so
 * many, as much. Returns the rest of cpu_ns.
 */
__noinline __u64 wait_add_before(__u32 i, __u64 from, __u64 to, __u64 cpu_ns)
{
	struct abi_wait_sum *s = sum_at(i);
	__u64 part, at;
	__u32 slot;

	if (!s)
		return cpu_ns;
	for (int n = 0; n < ABI_WAIT_SLOTS && from < to; n++) {
		const struct moment last = moment_of(to - 1);

		slot = last.slot & (ABI_WAIT_SLOTS - 1);
		at = last.begin > from ? last.begin : from;
		part = to - at;
		__sync_fetch_and_add(&s->slots[slot].ns, part);
		to = at;
		if ((__s64)cpu_ns <= 0)
			continue;
		part = part < cpu_ns ? part : cpu_ns;
		__sync_fetch_and_add(&s->cpu_ns[slot], part);
		cpu_ns -= part;
	}
	return cpu_ns;
}

/*
 * Adds the time from 'from' to 'to', and CPU time. 'from' may be later: of a cut after the
 * time at which the interval ended. So may CPU time be negative: of one that was charged
 * too much.
 */
static __always_inline void sum_add(__u32 i, __u64 from, const struct moment *to, __u64 cpu_ns,
				    bool ended)
{
	struct abi_wait_sum *s = sum_at(i);
	__u32 slot = to->slot & (ABI_WAIT_SLOTS - 1);

	if (!s)
		return;
	if (from < to->begin) {
		cpu_ns = wait_add_before(i, from, to->begin, cpu_ns);
		from = to->begin;
	}
	__sync_fetch_and_add(&s->slots[slot].ns, to->time - from);
	if (ended)
		__sync_fetch_and_add(&s->slots[slot].count, 1);
	if (cpu_ns)
		__sync_fetch_and_add(&s->cpu_ns[slot], cpu_ns);
}

/* --- the sums of a key ------------------------------------------------------------ */

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
