/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * cast: members of the kernel's structures by address. Where the kernel has
 * bpf_rdonly_cast() (6.2), each is one load, that reads 0 from memory which is not there;
 * else a call of bpf_probe_read_kernel(), which costs ten times as much.
 */
#ifndef BPF_CAST_BPF_H
#define BPF_CAST_BPF_H

#include "bpf/vmlinux.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

enum special_kfunc_type___cast {
	KF_bpf_rdonly_cast = 1,
};
void *bpf_rdonly_cast(const void *obj, __u32 btf_id) __ksym __weak;

#define CAST_EXISTS bpf_core_enum_value_exists(enum special_kfunc_type___cast, KF_bpf_rdonly_cast)

/*
 * p->member; 'p' may be any address. For the compiler the cast is a call that may change
 * all memory, so that a later read is not taken for an earlier one. 'p' has a variable of
 * its own: within BPF_CORE_READ() its own members would be looked for in the kernel's types.
 */
#define CAST_READ(type, p, member)                                                                \
	({                                                                                        \
		typeof(((type *)0)->member) cast_v;                                               \
		const type *cast_p = (const void *)(p);                                           \
		if (CAST_EXISTS)                                                                  \
			cast_v = ((type *)bpf_rdonly_cast(cast_p, bpf_core_type_id_kernel(type))) \
					 ->member;                                                \
		else                                                                              \
			cast_v = BPF_CORE_READ(cast_p, member);                                   \
		cast_v;                                                                           \
	})

/* A structure that each kernel has, and whose first member is such a number. */
struct qstr___word {
	__u64 hash_len;
};

/* The eight bytes at any address. */
#define CAST_WORD(p) CAST_READ(struct qstr___word, p, hash_len)

#endif /* BPF_CAST_BPF_H */
