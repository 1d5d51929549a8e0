// SPDX-License-Identifier: Apache-2.0
/*
 * record: the state of a process at one time, and its strings. Both are
 * reference-counted; a fork allocates one small block and copies no string.
 */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "processmanager/quark/priv.h"

static struct quark_span span_of(const char *s)
{
	return (struct quark_span){ s, s ? strlen(s) : 0 };
}

struct quark_spans quark_spans_of(const struct quark_process *p)
{
	return (struct quark_spans){
		.exe = span_of(p->exe),
		.cmdline = { p->cmdline, p->cmdline_len },
		.cwd = span_of(p->cwd),
		.cgroup = span_of(p->cgroup),
		.env = { p->env, p->env_len },
	};
}

void quark_spans_set(struct quark_process *p, const struct quark_spans *s)
{
	p->exe = (char *)s->exe.p;
	p->cmdline = (char *)s->cmdline.p;
	p->cmdline_len = s->cmdline.len;
	p->cwd = (char *)s->cwd.p;
	p->cgroup = (char *)s->cgroup.p;
	p->env = (char *)s->env.p;
	p->env_len = s->env.len;
}

size_t quark_spans_size(const struct quark_spans *s)
{
	size_t i, size = 0;

	for (i = 0; i < ARRAY_SIZE(s->all); i++)
		size += s->all[i].p ? s->all[i].len + 1 : 0;
	return size;
}

void quark_spans_copy(struct quark_spans *s, char *at)
{
	struct quark_span *span;

	for (span = s->all; span < s->all + ARRAY_SIZE(s->all); span++) {
		if (!span->p) {
			span->len = 0;
			continue;
		}
		memcpy(at, span->p, span->len);
		at[span->len] = '\0';
		span->p = at;
		at += span->len + 1;
	}
}

struct quark_strings *quark_strings_new(const struct quark_spans *spans)
{
	size_t size = sizeof(struct quark_strings) + quark_spans_size(spans);
	struct quark_strings *s = malloc(size);

	if (!s)
		return NULL;
	s->refs = 1;
	s->size = size;
	s->user = NULL;
	s->spans = *spans;
	quark_spans_copy(&s->spans, s->data);
	return s;
}

void quark_user_give(struct quark_user *u, size_t bytes)
{
	u->bytes -= bytes;
	u->cache->text_bytes -= bytes;
	if (u->bytes)
		return;
	hash_remove(&u->cache->users, &u->node);
	free(u);
}

void quark_strings_put(struct quark_strings *s)
{
	if (!s || --s->refs)
		return;
	if (s->user)
		quark_user_give(s->user, s->size);
	free(s);
}

struct quark_record *quark_record_new(struct pool *pool)
{
	struct quark_record *r = pool_take(pool);

	if (!r)
		return NULL;
	r->pool = pool;
	r->refs = 1;
	return r;
}

struct quark_record *quark_record_copy(const struct quark_record *r)
{
	struct quark_record *c = pool_take(r->pool);

	if (!c)
		return NULL;
	*c = *r;
	c->refs = 1;
	if (c->strings)
		c->strings->refs++;
	return c;
}

struct quark_record *quark_record_get(struct quark_record *r)
{
	r->refs++;
	return r;
}

void quark_record_put(struct quark_record *r)
{
	if (!r || --r->refs)
		return;
	quark_strings_put(r->strings);
	pool_give(r->pool, r);
}

void quark_record_set_strings(struct quark_record *r, struct quark_strings *s)
{
	static const struct quark_spans none;

	quark_strings_put(r->strings);
	r->strings = s;
	quark_spans_set(&r->p, s ? &s->spans : &none);
}

/* Base64 of twelve bytes: four groups of three, no padding. */
void quark_entity_id(char out[17], uint32_t pid, uint64_t start_boottime)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				     "abcdefghijklmnopqrstuvwxyz0123456789+/";
	unsigned char in[12];
	uint32_t v;
	int i, k;

	pid = htole32(pid);
	start_boottime = htole64(start_boottime);
	memcpy(in, &pid, 4);
	memcpy(in + 4, &start_boottime, 8);
	for (i = 0; i < 4; i++) {
		v = in[3 * i] << 16 | in[3 * i + 1] << 8 | in[3 * i + 2];
		for (k = 0; k < 4; k++)
			out[4 * i + k] = digits[v >> (18 - 6 * k) & 63];
	}
	out[16] = '\0';
}
