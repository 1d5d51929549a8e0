// SPDX-License-Identifier: Apache-2.0
/*
 * input_labels: the labels of the samples of one profile; see reporter/query/input.h.
 * Many samples have the same ones, byte for byte, so each set is read once. What is not
 * taken leaves nothing in the merged profile: a day has many more processes than a
 * query selects.
 */
#include <errno.h>
#include <string.h>

#include "reporter/pprof.h"
#include "reporter/times.h"
#include "reporter/query/input.h"
#include "reporter/store/times_file.h"

/* A set of labels; 'bytes' are those of the first sample that has it. */
struct input_set {
	struct hash_node node;
	struct edit_bytes bytes;
	uint32_t ids; /* of its trace, by the side file; 0: none */
	const struct query_labels *labels; /* NULL: not taken */
};

/* --- a label as it is in the profile ------------------------------------------------ */

/* The length of a string, which ends at its first NUL here. */
static size_t input_length(const struct input *in, uint64_t string)
{
	const struct edit_bytes *s = &in->strings[string];

	return s->len ? strnlen((const char *)s->p, s->len) : 0;
}

static int input_label(struct input *in, struct edit_bytes msg)
{
	struct input_label *l = &in->raw[in->nraw];
	uint64_t key = 0, str = 0, num = 0, unit = 0;
	struct edit_field f;
	int err;

	while ((err = edit_next(&msg, &f)) > 0) {
		if (f.wire != EDIT_VARINT)
			continue;
		key = f.number == EDIT_LABEL_KEY ? f.value : key;
		str = f.number == EDIT_LABEL_STR ? f.value : str;
		num = f.number == EDIT_LABEL_NUM ? f.value : num;
		unit = f.number == EDIT_LABEL_UNIT ? f.value : unit;
	}
	if (err)
		return input_bad(in, "a label is damaged");
	if (!key)
		return 0;
	if (in->nraw == QUERY_LABELS_MAX)
		return input_bad(in, "a sample with more than 256 labels");
	unit = str ? 0 : unit;
	if (key >= in->nstrings || str >= in->nstrings || unit >= in->nstrings)
		return input_bad(in, "a string does not exist");
	*l = (struct input_label){ key, str, unit, str ? 0 : (int64_t)num };
	in->nraw += input_length(in, key) && (!str || input_length(in, str));
	return 0;
}

static int input_raw(struct input *in, struct edit_bytes msg)
{
	struct edit_field f;
	int err;

	in->nraw = 0;
	while ((err = edit_next(&msg, &f)) > 0) {
		if (f.number != EDIT_SAMPLE_LABEL)
			continue;
		err = f.wire == EDIT_LEN ? input_label(in, f.bytes) : -EBADMSG;
		if (err)
			break;
	}
	return err;
}

/* --- whether they are taken ------------------------------------------------------- */

/* A string as text, valid as long as the input. NULL: out of memory. */
static const char *input_text(struct input *in, uint64_t string)
{
	struct strbuf sb = STRBUF_INIT;
	size_t len = input_length(in, string);
	const char *text = (const char *)in->strings[string].p;
	char *copy;

	text = pprof_utf8(text, &len, &sb);
	copy = text ? arena_alloc(&in->arena, len + 1) : NULL;
	if (copy) {
		memcpy(copy, text, len);
		copy[len] = '\0';
	}
	strbuf_fini(&sb);
	return copy;
}

/* The trace and span of the current sample: X(at, length, key) of its pair. */
#define INPUT_IDS(X)                          \
	X(0, IDS_TRACE, REPORTER_LABEL_TRACE) \
	X(IDS_TRACE, IDS_SPAN, REPORTER_LABEL_SPAN)

static const struct {
	size_t at, len;
	const char *key;
} input_ids[] = {
#define X(at, len, key) { at, len, key },
	INPUT_IDS(X)
#undef X
};

/* In hex; NULL: it has none. */
static const char *input_id_text(const struct input *in, size_t which,
				 char out[IDS_HEX])
{
	const uint8_t *pair;

	if (!in->split || !in->split->ids)
		return NULL;
	pair = store_times_pair(in->splits->times, in->split->ids);
	times_ids_hex(pair + input_ids[which].at, input_ids[which].len, out);
	return out;
}

static bool input_get_id(struct input *in, const char *key,
			 struct reporter_query_value *out)
{
	size_t n = ARRAY_SIZE(input_ids);

	for (size_t i = 0; i < n; i++) {
		if (strcmp(input_ids[i].key, key) != 0)
			continue;
		out->text = input_id_text(in, i, in->ids_text[i]);
		return out->text;
	}
	return false;
}

static bool input_get_label(const void *arg, const char *key, size_t i,
			    struct reporter_query_value *out)
{
	struct input *in = *(struct input *const *)arg;
	size_t len = strlen(key);

	if (!i && input_get_id(in, key, out))
		return true;
	for (size_t k = 0; k < in->nraw; k++) {
		const struct input_label *l = &in->raw[k];

		if (input_length(in, l->key) != len ||
		    memcmp(in->strings[l->key].p, key, len) != 0 || i--)
			continue;
		*out = (struct reporter_query_value){ .num = l->num };
		if (l->str)
			out->text = input_text(in, l->str);
		in->nomem |= l->str && !out->text;
		return true;
	}
	return false;
}

static bool input_takes(struct input *in)
{
	const struct reporter_query_opts *o = &in->q->opts;
	struct reporter_query_value v;

	if (!reporter_query_terms_take(o->terms, input_get_label, &in))
		return false;
	return !o->image || (input_get_label(&in, "image", 0, &v) && v.text &&
			     o->image(o->arg, v.text));
}

/* --- sets ------------------------------------------------------------------------- */

/* Appends the labels of its trace. */
static int input_ids_add(struct input *in, size_t *n)
{
	const char *text;
	int64_t key, str;

	for (size_t i = 0; i < ARRAY_SIZE(input_ids); i++) {
		text = input_id_text(in, i, in->ids_text[i]);
		if (!text)
			return 0;
		key = strtab_id(&in->q->strings, input_ids[i].key);
		str = strtab_id(&in->q->strings, text);
		if (key < 0 || str < 0)
			return -ENOMEM;
		in->labels[(*n)++] = (struct query_label){
			.key = (uint32_t)key,
			.str = (uint32_t)str,
		};
	}
	return query_room(in->q);
}

static int input_labels_add(struct input *in, const struct query_labels **out)
{
	struct query_label *l;
	const struct input_label *raw;
	size_t n = 0;
	uint32_t id;
	int err = 0;

	while (n < in->nraw && !err) {
		raw = &in->raw[n];
		l = &in->labels[n++];
		*l = (struct query_label){ .num = raw->num };
		err = input_string(in, raw->key, &l->key);
		if (!err)
			err = input_string(in, raw->str, &l->str);
		if (!err)
			err = input_string(in, raw->unit, &id);
		if (!err)
			l->unit = id;
	}
	if (!err)
		err = input_ids_add(in, &n);
	if (in->base)
		in->labels[n++] = (struct query_label){
			.key = in->q->base_key,
			.str = in->q->base_value,
		};
	return err ? err : query_labels_of(in->q, in->labels, n, out);
}

static int input_set_make(struct input *in, struct edit_bytes msg,
			  const struct query_labels **out)
{
	bool takes;
	int err = input_raw(in, msg);

	*out = NULL;
	if (err)
		return err;
	takes = input_takes(in);
	if (in->nomem)
		return -ENOMEM;
	return takes ? input_labels_add(in, out) : 0;
}

/* The length of the labels at the begin, each shorter than 128 bytes. */
static size_t input_short_labels(struct edit_bytes b)
{
	const uint8_t tag = EDIT_SAMPLE_LABEL << 3 | EDIT_LEN;
	size_t at = 0;

	while (at + 2 <= b.len && b.p[at] == tag && b.p[at + 1] < 0x80 &&
	       b.p[at + 1] <= b.len - at - 2)
		at += 2 + (size_t)b.p[at + 1];
	return at;
}

/* The bytes of all labels, if they follow each other; else of the whole message. */
static int input_run(struct edit_bytes msg, struct edit_bytes *run)
{
	struct edit_bytes rest = msg;
	struct edit_field f;
	int err;

	*run = (struct edit_bytes){ msg.p, 0 };
	while ((err = edit_next(&rest, &f)) > 0) {
		size_t more;

		if (f.number != EDIT_SAMPLE_LABEL)
			continue;
		if (!run->len)
			run->p = f.whole.p;
		else if (run->p + run->len != f.whole.p)
			break;
		more = input_short_labels(rest);
		run->len += f.whole.len + more;
		rest.p += more;
		rest.len -= more;
	}
	if (err > 0)
		*run = msg;
	return err < 0 ? err : 0;
}

int input_labels(struct input *in, struct edit_bytes msg,
		 const struct query_labels **out)
{
	uint32_t ids = in->split ? in->split->ids : 0;
	struct edit_bytes run;
	struct input_set *set;
	int err = input_run(msg, &run);
	uint64_t h;

	*out = NULL;
	if (err)
		return err;
	h = hash_mix(hash_bytes(run.p, run.len), ids);
	HASH_FIND(set, &in->sets, h, node,
		  set->bytes.len == run.len && set->ids == ids &&
			  (!run.len || !memcmp(set->bytes.p, run.p, run.len)));
	if (!set) {
		set = arena_alloc(&in->arena, sizeof(*set));
		if (!set)
			return -ENOMEM;
		set->bytes = run;
		set->ids = ids;
		err = input_set_make(in, run, &set->labels);
		if (err)
			return err;
		hash_insert(&in->sets, &set->node, h);
	}
	*out = set->labels;
	return 0;
}
