// SPDX-License-Identifier: Apache-2.0
/* labels: see reporter/labels.h. */
#include <errno.h>
#include <string.h>

#include "reporter/labels.h"

static const char *const label_names[] = {
#define X(key, str, num) #key,
	LABELS(X)
#undef X
};

/* Words in the place of a list of keys. */
static const struct {
	const char *word;
	uint32_t without;
} label_words[] = {
	{ "all", 0 },
	{ "none", (1U << LABELS_N) - 1 },
};

const char *labels_name(enum labels_key key)
{
	return label_names[key];
}

/* The key of 'len' bytes, or LABELS_N. */
static size_t labels_find(const char *text, size_t len)
{
	size_t i;

	for (i = 0; i < LABELS_N; i++)
		if (strlen(label_names[i]) == len &&
		    !strncmp(label_names[i], text, len))
			break;
	return i;
}

int reporter_labels_parse(const char *text, uint32_t *without)
{
	uint32_t with = 0;
	size_t i, len;

	for (i = 0; i < ARRAY_SIZE(label_words); i++) {
		if (strcmp(text, label_words[i].word))
			continue;
		*without = label_words[i].without;
		return 0;
	}
	for (;; text += len + 1) {
		len = strcspn(text, ",");
		i = labels_find(text, len);
		if (i == LABELS_N)
			return -EINVAL;
		with |= 1U << i;
		if (!text[len])
			break;
	}
	*without = ((1U << LABELS_N) - 1) & ~with;
	return 0;
}

uint32_t reporter_labels_unique(void)
{
	return 1U << LABELS_process | 1U << LABELS_image;
}

void labels_of(const struct window_sample *s, uint32_t without,
	       struct labels_value out[LABELS_N])
{
	const struct window_image *img = s->image;
	const struct labels_value all[] = {
#define X(key, str, num) { str, num },
		LABELS(X)
#undef X
	};

	for (size_t i = 0; i < LABELS_N; i++)
		out[i] = without >> i & 1 ? (struct labels_value){ 0 } : all[i];
}

static bool labels_equal(const struct window_sample *s, uint32_t without,
			 const struct labels_value values[LABELS_N])
{
	struct labels_value other[LABELS_N];

	labels_of(s, without, other);
	return !memcmp(other, values, sizeof(other));
}

/* Of 'from' to 'to'; sums saturate, as in window.c. */
static void labels_move(const struct window *w, struct window_sample *to,
			struct window_sample *from)
{
	for (uint32_t i = 0; i < w->ncolumns; i++) {
		if (__builtin_add_overflow(to->values[i], from->values[i],
					   &to->values[i]))
			to->values[i] = INT64_MAX;
		from->values[i] = 0;
	}
}

int labels_merge(struct window *w, uint32_t without)
{
	struct labels_value values[LABELS_N];
	struct window_sample *s, *first;
	struct hash seen;
	uint64_t h;

	if (hash_init(&seen, w->samples.count))
		return -ENOMEM;
	STAILQ_FOREACH(s, &w->sample_list, entry) {
		labels_of(s, without, values);
		h = hash_mix(hash_bytes(values, sizeof(values)),
			     (uintptr_t)s->stack);
		HASH_FIND(first, &seen, h, node,
			  first->stack == s->stack &&
				  labels_equal(first, without, values));
		if (first)
			labels_move(w, first, s);
		else
			hash_insert(&seen, &s->node, h);
	}
	hash_fini(&seen);
	return 0;
}

struct labels_filter {
	const struct window *w;
	const struct window_sample *s;
};

static bool labels_get(const void *arg, const char *key, size_t i,
		       struct reporter_query_value *out)
{
	const struct labels_filter *f = arg;
	size_t k = labels_find(key, strlen(key));
	struct labels_value all[LABELS_N];

	if (i || k == LABELS_N)
		return false;
	labels_of(f->s, 0, all);
	*out = (struct reporter_query_value){
		all[k].str ? strtab_str(&f->w->strings, all[k].str) : NULL,
		all[k].num,
	};
	return all[k].str || all[k].num;
}

void labels_filter(struct window *w, const struct reporter_query_terms *terms)
{
	struct labels_filter f = { .w = w };
	struct window_sample *s;

	STAILQ_FOREACH(s, &w->sample_list, entry) {
		f.s = s;
		if (!reporter_query_terms_take(terms, labels_get, &f))
			memset(s->values, 0, w->ncolumns * sizeof(*s->values));
	}
}
