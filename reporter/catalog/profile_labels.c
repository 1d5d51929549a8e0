// SPDX-License-Identifier: Apache-2.0
/*
 * profile_labels: see reporter/catalog/profile_labels.h. Two passes over the messages:
 * the strings come behind the samples. Stacks are not looked at.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "reporter/catalog/profile_labels.h"
#include "reporter/edit/edit.h"

#define LABELS_STRINGS_MAX REPORTER_PROFILE_STRINGS
#define LABELS_IMAGES_MAX (1U << 20)
#define LABELS_COMMENTS_MAX 1024
#define LABELS_TYPES_MAX 32
#define LABELS_NONE UINT64_MAX

/* X(name): the labels that are read. */
#define LABEL_KEYS(X) \
	X(process)    \
	X(image)      \
	X(comm)       \
	X(exe)        \
	X(cgroup)     \
	X(service)    \
	X(entry)      \
	X(pid)        \
	X(entry_pid)

enum {
#define X(name) KEY_##name,
	LABEL_KEYS(X)
#undef X
	KEYS_N,
};

static const char *const key_names[] = {
#define X(name) #name,
	LABEL_KEYS(X)
#undef X
};

struct labels_reader {
	struct catalog_profile *p;
	struct edit_bytes *strings;
	size_t nstrings, cap;
	uint64_t types[LABELS_TYPES_MAX]; /* strings */
	size_t ntypes;
	size_t samples, cpu; /* indices of values */
	uint64_t comments[LABELS_COMMENTS_MAX];
	size_t ncomments;
	uint64_t keys[KEYS_N]; /* strings */
};

static bool labels_is(const struct labels_reader *r, uint64_t string,
		      const char *text)
{
	return string < r->nstrings && r->strings[string].len == strlen(text) &&
	       !memcmp(r->strings[string].p, text, strlen(text));
}

static int labels_type(struct labels_reader *r, struct edit_bytes msg)
{
	struct edit_field f;
	uint64_t type = 0;
	int err;

	while ((err = edit_next(&msg, &f)) > 0)
		if (f.number == EDIT_TYPE_TYPE && f.wire == EDIT_VARINT)
			type = f.value;
	if (!err && r->ntypes == LABELS_TYPES_MAX)
		return -EFBIG;
	if (!err)
		r->types[r->ntypes++] = type;
	return err;
}

/* A repeated number, packed or not: all or one of it. */
static int labels_comments(struct labels_reader *r, struct edit_field *f)
{
	uint64_t v;
	int err = 0;

	if (f->wire == EDIT_VARINT && r->ncomments < LABELS_COMMENTS_MAX)
		r->comments[r->ncomments++] = f->value;
	while (f->wire == EDIT_LEN &&
	       (err = edit_next_packed(&f->bytes, &v)) > 0)
		if (r->ncomments < LABELS_COMMENTS_MAX)
			r->comments[r->ncomments++] = v;
	return err;
}

static int labels_field(struct labels_reader *r, struct edit_field *f)
{
	int err;

	if (f->number == EDIT_TIME && f->wire == EDIT_VARINT)
		r->p->time_ns = (int64_t)f->value;
	else if (f->number == EDIT_DURATION && f->wire == EDIT_VARINT)
		r->p->duration_ns = (int64_t)f->value;
	else if (f->number == EDIT_COMMENT)
		return labels_comments(r, f);
	else if (f->number == EDIT_SAMPLE_TYPE && f->wire == EDIT_LEN)
		return labels_type(r, f->bytes);
	if (f->number != EDIT_STRING || f->wire != EDIT_LEN)
		return 0;
	if (r->nstrings == LABELS_STRINGS_MAX)
		return -EFBIG;
	err = VECTOR_ROOM(r->strings, r->nstrings, r->cap);
	if (!err)
		r->strings[r->nstrings++] = f->bytes;
	return err;
}

static void labels_find_keys(struct labels_reader *r)
{
	size_t i, k;

	for (k = 0; k < KEYS_N; k++)
		r->keys[k] = LABELS_NONE;
	for (i = 0; i < r->nstrings; i++)
		for (k = 0; k < KEYS_N; k++)
			if (labels_is(r, i, key_names[k]))
				r->keys[k] = i;
	r->samples = r->cpu = LABELS_TYPES_MAX;
	for (i = 0; i < r->ntypes; i++) {
		if (labels_is(r, r->types[i], "samples"))
			r->samples = i;
		else if (labels_is(r, r->types[i], "cpu"))
			r->cpu = i;
	}
}

/* --- samples ------------------------------------------------------------------- */

struct labels_sample {
	uint64_t values[LABELS_TYPES_MAX + 1]; /* the last: no such type */
	size_t nvalues;
	uint64_t strs[KEYS_N], nums[KEYS_N];
};

static int labels_label(const struct labels_reader *r, struct edit_bytes msg,
			struct labels_sample *s)
{
	uint64_t key = 0, str = 0, num = 0;
	struct edit_field f;
	size_t k;
	int err;

	while ((err = edit_next(&msg, &f)) > 0) {
		if (f.wire != EDIT_VARINT)
			continue;
		if (f.number == EDIT_LABEL_KEY)
			key = f.value;
		else if (f.number == EDIT_LABEL_STR)
			str = f.value;
		else if (f.number == EDIT_LABEL_NUM)
			num = f.value;
	}
	for (k = 0; !err && k < KEYS_N; k++) {
		if (r->keys[k] != key)
			continue;
		s->strs[k] = str;
		s->nums[k] = num;
	}
	return err;
}

static int labels_values(struct edit_field *f, struct labels_sample *s)
{
	uint64_t v;
	int err = 0;

	if (f->wire == EDIT_VARINT && s->nvalues < LABELS_TYPES_MAX)
		s->values[s->nvalues++] = f->value;
	while (f->wire == EDIT_LEN &&
	       (err = edit_next_packed(&f->bytes, &v)) > 0)
		if (s->nvalues < LABELS_TYPES_MAX)
			s->values[s->nvalues++] = v;
	return err;
}

/* The id of a string of the profile in that of the result; 0: "" or none. */
static int labels_string(const struct labels_reader *r, uint64_t string,
			 uint32_t *out)
{
	const struct edit_bytes *b;
	int64_t id;

	*out = 0;
	if (string >= r->nstrings)
		return 0;
	b = &r->strings[string];
	if (!b->len || memchr(b->p, '\0', b->len))
		return 0;
	id = strtab_id_len(&r->p->strings, (const char *)b->p, b->len);
	if (id < 0)
		return -ENOMEM;
	*out = (uint32_t)id;
	return 0;
}

static int labels_new_image(const struct labels_reader *r,
			    const struct labels_sample *s,
			    struct catalog_profile_image **out)
{
	struct catalog_profile *p = r->p;
	struct catalog_profile_image *i;
	int err;

	if (p->nimages == LABELS_IMAGES_MAX)
		return -EFBIG;
	i = arena_alloc(&p->arena, sizeof(*i));
	if (!i || VECTOR_ROOM(p->images, p->nimages, p->cap))
		return -ENOMEM;
	*i = (struct catalog_profile_image){
		.label = s->strs[KEY_image],
		.pid = (uint32_t)s->nums[KEY_pid],
		.entry_pid = (uint32_t)s->nums[KEY_entry_pid],
	};
	err = labels_string(r, s->strs[KEY_process], &i->process);
	if (!err)
		err = labels_string(r, s->strs[KEY_image], &i->image);
	if (!err)
		err = labels_string(r, s->strs[KEY_comm], &i->comm);
	if (!err)
		err = labels_string(r, s->strs[KEY_exe], &i->exe);
	if (!err)
		err = labels_string(r, s->strs[KEY_cgroup], &i->cgroup);
	if (!err)
		err = labels_string(r, s->strs[KEY_service], &i->service);
	if (!err)
		err = labels_string(r, s->strs[KEY_entry], &i->entry);
	if (err)
		return err;
	hash_insert(&p->by_label, &i->node, hash_u64(i->label));
	p->images[p->nimages++] = i;
	*out = i;
	return 0;
}

static int labels_sample(const struct labels_reader *r, struct edit_bytes msg)
{
	struct labels_sample s = { .nvalues = 0 };
	struct catalog_profile_image *i;
	struct edit_field f;
	int err;

	while ((err = edit_next(&msg, &f)) > 0) {
		if (f.number == EDIT_SAMPLE_VALUE)
			err = labels_values(&f, &s);
		else if (f.number == EDIT_SAMPLE_LABEL && f.wire == EDIT_LEN)
			err = labels_label(r, f.bytes, &s);
		if (err < 0)
			return err;
	}
	if (err)
		return err;
	r->p->samples += s.values[r->samples];
	if (!s.strs[KEY_process] || !s.strs[KEY_image])
		return 0;
	HASH_FIND(i, &r->p->by_label, hash_u64(s.strs[KEY_image]), node,
		  i->label == s.strs[KEY_image]);
	if (!i)
		err = labels_new_image(r, &s, &i);
	if (err)
		return err;
	i->samples += s.values[r->samples];
	i->cpu_ns += s.values[r->cpu];
	return 0;
}

/* --- the interface --------------------------------------------------------------- */

static int labels_read(struct labels_reader *r, struct edit_bytes all)
{
	struct edit_bytes msg = all;
	struct edit_field f;
	size_t i;
	int err;

	while ((err = edit_next(&msg, &f)) > 0) {
		err = labels_field(r, &f);
		if (err < 0)
			return err;
	}
	if (err)
		return err;
	labels_find_keys(r);
	while ((err = edit_next(&all, &f)) > 0) {
		if (f.number != EDIT_SAMPLE || f.wire != EDIT_LEN)
			continue;
		err = labels_sample(r, f.bytes);
		if (err < 0)
			return err;
	}
	for (i = 0; !err && i < r->ncomments; i++) {
		if (r->comments[i] >= r->nstrings)
			continue;
		strbuf_add(&r->p->comments, r->strings[r->comments[i]].p,
			   r->strings[r->comments[i]].len);
		strbuf_add(&r->p->comments, "", 1);
	}
	return err ? err : r->p->comments.failed ? -ENOMEM : 0;
}

int catalog_profile_parse(struct catalog_profile *p, const void *data,
			  size_t len)
{
	struct labels_reader *r;
	int err = -ENOMEM;

	memset(p, 0, sizeof(*p));
	arena_init(&p->arena);
	r = calloc(1, sizeof(*r));
	if (!r || strtab_init(&p->strings) || hash_init(&p->by_label, 0))
		goto out;
	r->p = p;
	err = labels_read(r, (struct edit_bytes){ data, len });
	free(r->strings);
out:
	free(r);
	return err;
}

void catalog_profile_fini(struct catalog_profile *p)
{
	strtab_fini(&p->strings);
	hash_fini(&p->by_label);
	arena_fini(&p->arena);
	strbuf_fini(&p->comments);
	free(p->images);
}
