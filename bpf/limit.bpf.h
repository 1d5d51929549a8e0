/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* limit: budgets of so many a second. */
#ifndef BPF_LIMIT_BPF_H
#define BPF_LIMIT_BPF_H

#define NSEC_PER_SEC 1000000000ULL

/*
 * Takes n of 'rate' a second from a budget of one second. *full: when the budget will be
 * full again. Two CPUs at the same time may take only one's.
 */
static __always_inline bool limit_take_many(__u64 *full, __u32 rate, __u32 n, __u64 now)
{
	__u64 at = *full > now ? *full : now;

	at += NSEC_PER_SEC / rate * n;
	if (at > now + NSEC_PER_SEC)
		return false;
	*full = at;
	return true;
}

static __always_inline bool limit_take(__u64 *full, __u32 rate, __u64 now)
{
	return limit_take_many(full, rate, 1, now);
}

#endif /* BPF_LIMIT_BPF_H */
