/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * wait_site: the site of a wait (see bpf/abi_wait.h): its hash, and the copy of its stack.
 * For the thread that leaves its CPU, which is current in sched_switch: its registers are
 * complete, and its memory is there to be read.
 */
#ifndef BPF_WAIT_SITE_BPF_H
#define BPF_WAIT_SITE_BPF_H

#include "bpf/abi_wait.h"
#include "bpf/limit.bpf.h"
#include "bpf/quark_task.bpf.h"
#include "bpf/sampler_record.bpf.h"
#include "bpf/wait/wait_sum.bpf.h"

/* Without known spans: half of all numbers, with all user addresses. */
#define SITE_ALL (1ULL << 63)
#define SITE_LANES 2 /* hashed beside each other: a multiplication takes a while */
/* Fewer addresses of code among the words, and as many are read again, so often. */
#define SITE_CODE 16
#define SITE_READS 4
#define SITE_MIX 0x9fb21c651e98df25ULL

/* A process beyond its budget: sites that were seen once, for each of so many users. */
#define SITE_SEEN_USERS 64
#define SITE_SEEN 4096

struct site_words {
	__u64 at[ABI_WAIT_WORDS];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct site_words);
} site_words SEC(".maps");

struct site_seen {
	__u32 tags[SITE_SEEN];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SITE_SEEN_USERS);
	__type(key, __u32);
	__type(value, struct site_seen);
} site_seen SEC(".maps");

/* By user, as wait_users: ABI_WAIT_USER_COPIES. */
__u64 wait_user_copies[ABI_WAIT_USERS];

/*
 * For tests: the stack of each wait is copied, whether its site is known or not, without
 * budgets. Set before load.
 */
const volatile bool wait_copy_all;

/* --- the hash ------------------------------------------------------------------- */

static __always_inline __u64 site_mix(__u64 hash, __u64 v)
{
	hash = (hash ^ v) * SITE_MIX;
	return hash ^ hash >> 32;
}

/* All ones if the address lies in the span, else 0. Without a branch. */
static __always_inline __u64 site_inside(__u64 word, __u64 start, __u64 len)
{
	__u64 at = word - start;

	return (__s64)((at - len) & ~at) >> 63;
}

static __always_inline bool site_read(struct site_words *words, __u64 sp)
{
	__u32 room;

	if (!bpf_probe_read_user(words->at, sizeof(words->at), (void *)sp))
		return true;
	/* Behind the end of a thread's stack there may be nothing. */
	room = PAGE_SIZE - (sp & (PAGE_SIZE - 1));
	if (room >= sizeof(words->at))
		return false;
	__builtin_memset(words->at, 0, sizeof(words->at));
	return !bpf_probe_read_user(words->at, room & (sizeof(words->at) - 1), (void *)sp);
}

/* Adds words to the hash. Returns how many of them are addresses of code. */
static __always_inline __u32 site_hash_words(const struct site_words *words,
					     const struct abi_wait_sum *head, __u64 *lanes)
{
	__u64 start = head->spans[0].start, len = head->spans[0].len;
	__u64 start2 = head->spans[1].start, len2 = head->spans[1].len;
	__u64 w, inside;
	__u32 n = 0;

	if (!len) {
		start = 0;
		len = SITE_ALL;
	}
	/* Not unrolled further: the compiler would load all words first. */
#pragma clang loop unroll(disable)
	for (int i = 0; i < ABI_WAIT_WORDS; i += SITE_LANES) {
#pragma unroll
		for (int lane = 0; lane < SITE_LANES; lane++) {
			w = words->at[i + lane];
			inside = site_inside(w, start, len) | site_inside(w, start2, len2);
			n += inside & 1;
			lanes[lane] = (lanes[lane] ^ (w & inside)) * SITE_MIX;
		}
	}
	return n;
}

/*
 * Words from sp on: 64 of them, and more while there are hardly any addresses of code, as
 * in functions with large arrays, or if a JIT compiler's code may lie behind the large
 * frames of its native functions. 0: none can be read.
 */
static __always_inline __u64 site_hash(const struct abi_wait_sum *head, __u64 sp, __u64 seed)
{
	bool jit = head->spans[0].start & ABI_WAIT_SPAN_JIT;
	__u64 lanes[SITE_LANES] = { seed, seed };
	__u32 zero = 0, n = 0;
	struct site_words *words = bpf_map_lookup_elem(&site_words, &zero);

	if (!words)
		return 0;
#pragma clang loop unroll(disable)
	for (int i = 0; i < SITE_READS && (jit || n < SITE_CODE); i++) {
		if (!site_read(words, sp + i * sizeof(*words))) {
			if (!i)
				return 0;
			break;
		}
		n += site_hash_words(words, head, lanes);
	}
#pragma unroll
	for (int i = 0; i < SITE_LANES; i++)
		seed = site_mix(seed, lanes[i]);
	return seed < ABI_WAIT_SITE_LEAST ? ABI_WAIT_SITE_LEAST : seed;
}

/* The site of a wait in system call 'nr', or one of enum abi_wait_site. */
static __noinline __u64 site_of(struct task_struct *task, __u32 head, __u64 seed, __u32 nr)
{
	struct task_struct *cast = task_cast(task);
	struct abi_wait_sum *sum = sum_at(head);
	const struct pt_regs *regs;
	__u64 ip, sp;

	if (cast->flags & (PF_KTHREAD | PF_IO_WORKER | PF_USER_WORKER) || !cast->mm)
		return ABI_WAIT_SITE_NONE;
	regs = (void *)bpf_task_pt_regs(task);
	if (!regs || !sum)
		return ABI_WAIT_SITE_NONE;
	arch_user_at(regs, &ip, &sp);
	if (!ip && !sp)
		return ABI_WAIT_SITE_NONE;
	if (head < ABI_WAIT_RESERVED)
		return ABI_WAIT_SITE_ROOM;
	seed = site_mix(site_mix(site_mix(seed, ip), sp), nr);
	return site_hash(sum, sp, seed) ?: ABI_WAIT_SITE_UNREADABLE;
}

/* --- the copy ------------------------------------------------------------------- */

/* Whether this user's site was seen before, not long ago. */
static __always_inline bool site_again(__u32 user, __u64 site)
{
	__u32 key = user % SITE_SEEN_USERS, tag = site >> 32, *at;
	struct site_seen *seen = bpf_map_lookup_elem(&site_seen, &key);

	if (!seen)
		return false;
	at = &seen->tags[site & (SITE_SEEN - 1)];
	if (*at == tag)
		return true;
	*at = tag;
	return false;
}

/* Within the budgets of its image and user. 0, or why not: enum abi_wait_site. */
static __always_inline __u32 site_allowed(struct abi_wait_sum *head, __u32 user, __u64 site,
					  __u64 now)
{
	/* Half of what sums of all kinds may be: see bpf/abi_wait.h. */
	if (!sum_room(user, wait_limit / 2))
		return ABI_WAIT_SITE_ROOM;
	if (!limit_take(&head->copies_full, ABI_WAIT_COPIES, now) && !site_again(user, site))
		return ABI_WAIT_SITE_PROCESS;
	return 0;
}

/* Copies the stack of the current thread. 0, or why not: enum abi_wait_site. */
static __always_inline __u32 site_copy(struct abi_wait_sum *head, __u32 user, __u64 site, __u64 now)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u32 zero = 0, pages, why;
	struct scratch *s = bpf_map_lookup_elem(&scratch, &zero);

	if (!s)
		return ABI_WAIT_SITE_UNREADABLE;
	user &= ABI_WAIT_USERS - 1;
	why = wait_copy_all ? 0 : site_allowed(head, user, site, now);
	if (why)
		return why;
	sampler_begin(s, task);
	user_part(s, task);
	if (!s->user)
		return ABI_WAIT_SITE_UNREADABLE;
	pages = 1 + (s->plan.len + s->left.len) / PAGE_SIZE;
	if (!wait_copy_all &&
	    !limit_take_many(&wait_user_copies[user], ABI_WAIT_USER_COPIES, pages, now))
		return ABI_WAIT_SITE_USER;
	s->head.event = ABI_EVENT_WAIT;
	s->head.value = site;
	if (sampler_emit(s, true))
		return ABI_WAIT_SITE_RING;
	__sync_fetch_and_add(&wait_counters.copied, 1);
	__sync_fetch_and_add(&wait_counters.copied_bytes, s->head.size);
	return 0;
}

#endif /* BPF_WAIT_SITE_BPF_H */
