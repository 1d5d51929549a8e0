// SPDX-License-Identifier: Apache-2.0
/*
 * record: what is known of a process at one time, and its strings. Both are
 * counted; a fork costs one small block and no string.
 */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "processmanager/quark/priv.h"

static size_t span_size(struct quark_span s)
{
	return s.p ? s.len + 1 : 0;
}

static char *span_put(char **at, struct quark_span s)
{
	char *p = *at;

	if (!s.p)
		return NULL;
	memcpy(p, s.p, s.len);
	p[s.len] = '\0';
	*at += s.len + 1;
	return p;
}

struct quark_strings *quark_strings_new(const struct quark_strings_init *in)
{
	struct quark_strings *s;
	size_t size = sizeof(*s);
	char *at;

	size += span_size(in->exe) + span_size(in->cmdline) +
		span_size(in->cwd) + span_size(in->cgroup) + span_size(in->env);
	s = malloc(size);
	if (!s)
		return NULL;
	at = s->data;
	s->refs = 1;
	s->size = size;
	s->user = NULL;
	s->exe = span_put(&at, in->exe);
	s->cmdline = span_put(&at, in->cmdline);
	s->cmdline_len = in->cmdline.p ? in->cmdline.len : 0;
	s->cwd = span_put(&at, in->cwd);
	s->cgroup = span_put(&at, in->cgroup);
	s->env = span_put(&at, in->env);
	s->env_len = in->env.p ? in->env.len : 0;
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
	quark_strings_put(r->strings);
	r->strings = s;
	r->p.exe = s ? s->exe : NULL;
	r->p.cmdline = s ? s->cmdline : NULL;
	r->p.cmdline_len = s ? s->cmdline_len : 0;
	r->p.cwd = s ? s->cwd : NULL;
	r->p.cgroup = s ? s->cgroup : NULL;
	r->p.env = s ? s->env : NULL;
	r->p.env_len = s ? s->env_len : 0;
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
