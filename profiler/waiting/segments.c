// SPDX-License-Identifier: Apache-2.0
/* segments: see profiler/waiting/segments.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>
#include <bpf/btf.h>

#include "base/base.h"
#include "bpf/abi_wait.h"
#include "bpf/wait/wait.skel.h"
#include "profiler/waiting/segments.h"
#include "profiler/waiting/sums.h"

struct waiting_segments {
	struct wait_bpf *skel; /* of the sums */
	struct ring *ring; /* NULL: nothing was chosen yet */
	void (*fn)(void *arg, const struct abi_segment *s);
	void *arg;
	struct segments_choice {
		uint32_t tgid;
		unsigned int times; /* it was chosen */
	} chosen[ABI_CHOSEN_MAX];
	size_t n;
};

struct waiting_segments *
waiting_segments_new(struct waiting_sums *sums,
		     void (*fn)(void *arg, const struct abi_segment *s),
		     void *arg)
{
	struct waiting_segments *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->skel = waiting_sums_skel(sums);
	s->fn = fn;
	s->arg = arg;
	return s;
}

void waiting_segments_free(struct waiting_segments *s)
{
	if (!s)
		return;
	ring_free(s->ring);
	free(s);
}

/* --- where the kernel's preempt_count is --------------------------------------- */

/* The offset of a member, also of one in an unnamed structure, in bits; -1: none. */
static int64_t segments_member(const struct btf *btf, uint32_t id,
			       const char *name)
{
	const struct btf_type *t = btf__type_by_id(btf, id);
	const struct btf_member *m;
	int64_t at;

	if (!t || !btf_is_composite(t))
		return -1;
	m = btf_members(t);
	for (uint32_t i = 0; i < btf_vlen(t); i++) {
		if (m[i].name_off) {
			if (!strcmp(btf__name_by_offset(btf, m[i].name_off),
				    name))
				return btf_member_bit_offset(t, i);
			continue;
		}
		at = segments_member(btf, m[i].type, name);
		if (at >= 0)
			return btf_member_bit_offset(t, i) + at;
	}
	return -1;
}

/* A variable of each CPU: its offset there, and type; -1: none. */
static int64_t segments_per_cpu(const struct btf *btf,
				const struct btf_type *section,
				const char *name, uint32_t *type)
{
	const struct btf_var_secinfo *v = btf_var_secinfos(section);
	const struct btf_type *var;

	for (uint32_t i = 0; i < btf_vlen(section); i++, v++) {
		var = btf__type_by_id(btf, v->type);
		if (!var ||
		    strcmp(btf__name_by_offset(btf, var->name_off), name) != 0)
			continue;
		*type = var->type;
		return v->offset;
	}
	return -1;
}

/*
 * From a CPU's run queue to its preempt_count, which is a variable, or from 6.2 to 6.14 a
 * member of another one. 0: the kernel's BTF does not say.
 */
static int64_t segments_offset(void)
{
	struct btf *btf = btf__load_vmlinux_btf();
	const struct btf_type *section;
	int64_t rq, count, member = 0;
	uint32_t type = 0;
	int id;

	if (!btf)
		return 0;
	id = btf__find_by_name_kind(btf, ".data..percpu", BTF_KIND_DATASEC);
	section = id > 0 ? btf__type_by_id(btf, (uint32_t)id) : NULL;
	rq = count = -1;
	if (section) {
		rq = segments_per_cpu(btf, section, "runqueues", &type);
		count = segments_per_cpu(btf, section, "__preempt_count",
					 &type);
	}
	if (section && count < 0) {
		count = segments_per_cpu(btf, section, "pcpu_hot", &type);
		member = segments_member(btf, type, "preempt_count");
	}
	btf__free(btf);
	return rq < 0 || count < 0 || member < 0 ? 0 : count + member / 8 - rq;
}

void waiting_segments_prepare(struct wait_bpf *skel)
{
	if (!skel->bss->wait_preempt_offset)
		skel->bss->wait_preempt_offset = segments_offset();
}

/* --- which processes -------------------------------------------------------------- */

static int segments_on_record(void *arg, void *data, size_t len)
{
	const struct waiting_segments *s = arg;

	if (len >= sizeof(struct abi_segment))
		s->fn(s->arg, data);
	return 0;
}

static int segments_start(struct waiting_segments *s)
{
	if (s->ring)
		return 0;
	waiting_segments_prepare(s->skel);
	return ring_new(&s->ring, bpf_map__fd(s->skel->maps.segments),
			segments_on_record, s);
}

/* s->n: it is not chosen. */
static size_t segments_find(const struct waiting_segments *s, uint32_t tgid)
{
	size_t i = 0;

	while (i < s->n && s->chosen[i].tgid != tgid)
		i++;
	return i;
}

/* Sets the bit of all that are chosen; several may have the same. */
static void segments_bits(struct waiting_segments *s, uint32_t tgid, bool on)
{
	__u64 *bits = s->skel->bss->wait_chosen_bits;
	uint32_t bit = tgid % ABI_CHOSEN_BITS;
	__u64 mask = 1ULL << bit % 64;

	for (size_t i = 0; i < s->n; i++)
		on |= s->chosen[i].tgid % ABI_CHOSEN_BITS == bit;
	if (on)
		__atomic_or_fetch(&bits[bit / 64], mask, __ATOMIC_SEQ_CST);
	else
		__atomic_and_fetch(&bits[bit / 64], ~mask, __ATOMIC_SEQ_CST);
}

int waiting_segments_choose(struct waiting_segments *s, uint32_t tgid)
{
	const struct abi_chosen none = { 0 };
	size_t i = segments_find(s, tgid);
	int err;

	if (i < s->n) {
		s->chosen[i].times++;
		return 0;
	}
	if (s->n == ABI_CHOSEN_MAX)
		return -E2BIG;
	err = segments_start(s);
	if (!err)
		err = bpf_map_update_elem(
			bpf_map__fd(s->skel->maps.wait_chosen), &tgid, &none,
			BPF_NOEXIST);
	if (err)
		return err;
	s->chosen[s->n++] = (struct segments_choice){ tgid, 1 };
	segments_bits(s, tgid, true);
	return 0;
}

void waiting_segments_unchoose(struct waiting_segments *s, uint32_t tgid)
{
	size_t i = segments_find(s, tgid);

	if (i == s->n || --s->chosen[i].times)
		return;
	s->chosen[i] = s->chosen[--s->n];
	segments_bits(s, tgid, false);
	bpf_map_delete_elem(bpf_map__fd(s->skel->maps.wait_chosen), &tgid);
}

size_t waiting_segments_chosen(const struct waiting_segments *s)
{
	return s->n;
}

void waiting_segments_counts(const struct waiting_segments *s, uint32_t tgid,
			     struct abi_chosen *out)
{
	if (bpf_map_lookup_elem(bpf_map__fd(s->skel->maps.wait_chosen), &tgid,
				out))
		*out = (struct abi_chosen){ 0 };
}

int waiting_segments_poll(struct waiting_segments *s)
{
	return s->ring ? ring_consume(s->ring) : 0;
}
