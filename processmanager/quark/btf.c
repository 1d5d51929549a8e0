// SPDX-License-Identifier: Apache-2.0
/* btf: the offsets of members of kernel structures, from BTF. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/btf.h>
#include <bpf/libbpf.h>

#include "processmanager/quark/priv.h"

/* A file is not trusted: chains and trees of types have bounds. */
#define NESTING_MAX 16
#define VISITS_MAX 100000
/* In published names; anonymous members are searched in any case. */
#define NAMELESS "(anon)"

struct quark_btf {
	struct btf *btf;
};

/* 'kname' names the kernel in the published interface and is unused. */
struct quark_btf *quark_btf_open2(const char *path, const char *kname)
{
	struct quark_btf *qb = calloc(1, sizeof(*qb));
	libbpf_print_fn_t print;

	if (!qb)
		return NULL;
	print = libbpf_set_print(NULL);
	errno = 0;
	qb->btf = path ? btf__parse(path, NULL) : btf__load_vmlinux_btf();
	libbpf_set_print(print);
	if (!qb->btf) {
		free(qb);
		if (!errno)
			errno = ENOTSUP;
		return NULL;
	}
	return qb;
}

struct quark_btf *quark_btf_open(void)
{
	return quark_btf_open2(NULL, NULL);
}

void quark_btf_close(struct quark_btf *qb)
{
	if (!qb)
		return;
	btf__free(qb->btf);
	free(qb);
}

static const struct btf_type *btf_plain_type(const struct btf *btf, uint32_t id)
{
	const struct btf_type *t = btf__type_by_id(btf, id);
	int i;

	for (i = 0; t && (btf_is_mod(t) || btf_is_typedef(t)); i++) {
		if (i == NESTING_MAX)
			return NULL;
		t = btf__type_by_id(btf, t->type);
	}
	return t;
}

struct search {
	const struct btf *btf;
	const char *name;
	size_t len;
	unsigned int visits; /* members looked at so far */
	uint32_t type; /* of the member found */
};

/*
 * The bit offset of a member, also of one inside anonymous members. -ENOENT, or
 * -EINVAL for a bit field.
 */
static long find_member(struct search *s, const struct btf_type *t, int depth)
{
	const struct btf_member *m = btf_members(t);
	const struct btf_type *mt;
	const char *mname;
	long inner;
	int i;

	for (i = 0; i < btf_vlen(t) && s->visits++ < VISITS_MAX; i++, m++) {
		mname = btf__name_by_offset(s->btf, m->name_off);
		if (mname && *mname) {
			if (strlen(mname) != s->len ||
			    memcmp(mname, s->name, s->len))
				continue;
			if (btf_member_bitfield_size(t, i))
				return -EINVAL;
			s->type = m->type;
			return btf_member_bit_offset(t, i);
		}
		mt = btf_plain_type(s->btf, m->type);
		if (!mt || !btf_is_composite(mt) || depth == NESTING_MAX)
			continue;
		inner = find_member(s, mt, depth + 1);
		if (inner != -ENOENT)
			return inner < 0 ? inner
					 : inner + btf_member_bit_offset(t, i);
	}
	return -ENOENT;
}

/* A path may not end there: an anonymous member has no offset of its own. */
static bool is_nameless(const char *name, size_t len)
{
	return len == strlen(NAMELESS) && name[len] == '.' &&
	       !memcmp(name, NAMELESS, len);
}

static long btf_offset(const struct btf *btf, const char *dotname)
{
	struct search s = { .btf = btf, .len = strcspn(dotname, ".") };
	const struct btf_type *t;
	long bits = 0, member;
	char *root;
	int32_t id;

	root = strndup(dotname, s.len);
	if (!root)
		return -ENOMEM;
	id = btf__find_by_name_kind(btf, root, BTF_KIND_STRUCT);
	if (id < 0)
		id = btf__find_by_name_kind(btf, root, BTF_KIND_UNION);
	free(root);
	if (id < 0 || !dotname[s.len])
		return -ENOENT;
	for (s.type = id; dotname[s.len]; bits += member) {
		member = 0;
		dotname += s.len + 1;
		s.name = dotname;
		s.len = strcspn(dotname, ".");
		t = btf_plain_type(btf, s.type);
		if (!t || !btf_is_composite(t))
			return -ENOENT;
		if (is_nameless(dotname, s.len))
			continue;
		member = find_member(&s, t, 0);
		if (member < 0)
			return member;
	}
	return bits / 8;
}

long quark_btf_offset(struct quark_btf *qb, const char *dotname)
{
	return quark_result(btf_offset(qb->btf, dotname));
}
