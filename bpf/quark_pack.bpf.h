/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * quark_pack: packs a folded record in place, as the ring has it (struct
 * abi_quark_packed). In a loop: a program that runs once per process has cold
 * caches, and less code and memory is faster than less work.
 */
#ifndef BPF_QUARK_PACK_BPF_H
#define BPF_QUARK_PACK_BPF_H

#include "bpf/abi.h"

typedef __u32 __attribute__((may_alias)) word_t;
typedef __u64 __attribute__((may_alias)) long_word_t;
typedef struct abi_quark_packed __attribute__((may_alias)) packed_t;

struct packing {
	word_t *out;
	__u64 n; /* words so far */
	__u64 mask;
};

/* Without a branch: the verifier would follow both sides for each word. */
static __always_inline void pack_word(struct packing *to, __u32 bit, __u64 word)
{
	__u64 some;

	to->out[to->n] = word;
	barrier_var(word); /* or it becomes one again */
	some = -word >> 63;
	to->mask |= some << bit;
	to->n += some;
}

#define HEAD_WORDS (sizeof(struct abi_quark_head) / sizeof(word_t))

static __always_inline void pack_words(struct packing *to, const word_t *words, __u32 from,
				       __u32 end)
{
	__u32 i;

#pragma nounroll
	for (i = from; i < end; i++)
		pack_word(to, i - HEAD_WORDS + 2, words[i]);
}

/* The offset of the sets of capabilities, which are rarely unusual. */
#define CAPS_AT(type) __builtin_offsetof(struct type, ids.cap_inheritable)
#define CAPS 5

/*
 * Packs a folded record of 'size' bytes in place; writes never pass reads. 'caps_at': offset
 * of the capabilities, 0: none. Returns the new size.
 */
static __always_inline __u32 record_pack(struct abi_quark_head *h, __u32 size, __u32 caps_at)
{
	const long_word_t *c = (const void *)h + caps_at;
	const struct abi_quark_head head = *h;
	const word_t *words = (const word_t *)h;
	packed_t *p = (packed_t *)h;
	struct packing to = { .out = (void *)h + ABI_QUARK_PACKED_HEAD };
	__u32 from = HEAD_WORDS;

	p->start_boottime = head.key.start_boottime;
	p->exec_id = head.key.exec_id;
	p->tgid = head.key.tgid;
	p->cpu = head.cpu;
	p->kind = head.kind;
	p->flags = head.flags;
	pack_word(&to, 0, head.tid ^ head.key.tgid);
	pack_word(&to, 1, head.key.exec_id >> 32);
	if (caps_at) {
		pack_words(&to, words, from, caps_at / sizeof(word_t));
		from = caps_at / sizeof(word_t) + 2 * CAPS;
		if (c[0] | c[1] | c[2] | c[3] | c[4])
			pack_words(&to, words, caps_at / sizeof(word_t), from);
	}
	pack_words(&to, words, from, size / sizeof(word_t));
	p->mask = to.mask;
	return ABI_QUARK_PACKED_HEAD + to.n * sizeof(word_t);
}

#endif /* BPF_QUARK_PACK_BPF_H */
