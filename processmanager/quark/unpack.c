// SPDX-License-Identifier: Apache-2.0
/*
 * unpack: restores a record of the ring (struct abi_quark_packed) to what it was
 * before bpf/quark.bpf.c packed it. A function of (buf, len) that checks the buffer,
 * except for the lengths of strings, which apply.c checks.
 */
#include <errno.h>
#include <string.h>

#include "processmanager/quark/priv.h"

#define HEAD_WORDS (sizeof(struct abi_quark_head) / 4)
/* Bits of the mask; from FIRST_WORD on, the words behind the head. */
#define TID 0
#define EXEC_ID_HIGH 1
#define FIRST_WORD 2

static const size_t sizes[] = {
#define X(name, type, event) [ABI_QUARK_##name] = sizeof(struct type),
	ABI_QUARK_KINDS(X)
#undef X
};

#define X(name, type, event)                                                   \
	_Static_assert(sizeof(struct type) / 4 - HEAD_WORDS + FIRST_WORD < 64, \
		       "the mask has a bit for each word of " #type);
ABI_QUARK_KINDS(X)
#undef X

/* The next word, or 0 if the mask lacks it; the caller checked the length. */
static uint32_t unpack_next_word(uint64_t mask, unsigned int bit,
				 const char **at)
{
	uint32_t word = 0;

	if (!(mask >> bit & 1))
		return 0;
	memcpy(&word, *at, sizeof(word));
	*at += sizeof(word);
	return word;
}

static void unpack_unfold(struct quark_unpacked *u, const uint32_t *home)
{
	switch (u->head.kind) {
	case ABI_QUARK_FORK:
		abi_quark_fold_fork(&u->fork, home);
		break;
	case ABI_QUARK_EXEC:
		abi_quark_fold_image(&u->image, home);
		break;
	case ABI_QUARK_EXIT:
		abi_quark_fold_exit(&u->exit);
		break;
	case ABI_QUARK_ID_CHANGE:
		abi_quark_fold_ids(&u->id_change.ids, home);
		break;
	}
}

static void unpack_head(struct abi_quark_head *h,
			const struct abi_quark_packed *p, const char **at)
{
	h->kind = p->kind;
	h->flags = p->flags;
	h->time = p->time;
	h->key.start_boottime = p->start_boottime;
	h->key.tgid = p->tgid;
	h->key.pad = 0;
	h->cpu = p->cpu;
	h->tid = p->tgid ^ unpack_next_word(p->mask, TID, at);
	h->key.exec_id = p->exec_id;
	h->key.exec_id |= (uint64_t)unpack_next_word(p->mask, EXEC_ID_HIGH, at)
			  << 32;
}

ssize_t quark_unpack(struct quark_unpacked *u, const void *buf, size_t len,
		     const uint32_t home[ABI_QUARK_NAMESPACES])
{
	const char *at = (const char *)buf + ABI_QUARK_PACKED_HEAD;
	struct abi_quark_packed p;
	size_t words, strings, i;

	if (len < ABI_QUARK_PACKED_HEAD)
		return -EINVAL;
	memcpy(&p, buf, ABI_QUARK_PACKED_HEAD);
	if (p.kind >= ARRAY_SIZE(sizes))
		return -EINVAL;
	words = sizes[p.kind] / 4;
	len -= ABI_QUARK_PACKED_HEAD;
	if (p.mask >> (words - HEAD_WORDS + FIRST_WORD) ||
	    (size_t)__builtin_popcountll(p.mask) > len / 4)
		return -EINVAL;
	strings = len - 4 * __builtin_popcountll(p.mask);
	if (strings > sizeof(u->room) - sizes[p.kind])
		return -EINVAL;
	unpack_head(&u->head, &p, &at);
	for (i = HEAD_WORDS; i < words; i++)
		u->words[i] = unpack_next_word(
			p.mask, i - HEAD_WORDS + FIRST_WORD, &at);
	unpack_unfold(u, home);
	memcpy(u->room + sizes[p.kind], at, strings);
	return sizes[p.kind] + strings;
}
