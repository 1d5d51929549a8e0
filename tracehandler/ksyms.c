// SPDX-License-Identifier: Apache-2.0
/* ksyms: see tracehandler/ksyms.h. */
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "tracehandler/ksyms.h"

/* Texts loaded; further ones are left to kallsyms. */
#define KSYMS_LIVE_MAX 8192

static struct trace_ksym *ksyms_new(uint64_t start, uint64_t end,
				    const char *name)
{
	size_t len = strlen(name) + 1;
	struct trace_ksym *k = calloc(1, sizeof(*k) + len);

	if (!k)
		return NULL;
	k->start = start;
	k->end = end;
	k->until = UINT64_MAX;
	memcpy(k->name, name, len);
	return k;
}

/*
 * Adds a change; takes over 'gone'. True: an unloading is not known any more, so
 * kallsyms counts again.
 */
static bool ksyms_change(struct trace_ksyms *ks, uint64_t time, uint64_t start,
			 uint64_t end, struct trace_ksym *gone)
{
	struct trace_ksym_change *c =
		&ks->changes[ks->seq++ % TRACE_KSYMS_CHANGES];
	bool dropped = c->gone;

	free(c->gone);
	*c = (struct trace_ksym_change){ start, end, time, gone };
	ks->changed = MAX(ks->changed, time);
	return dropped;
}

/* The first text that ends behind 'addr'. */
static size_t ksyms_search(const struct trace_ksyms *ks, uint64_t addr)
{
	size_t i;

	VECTOR_SEARCH(i, ks->n, ks->live[i]->end <= addr);
	return i;
}

/* Unloads what overlaps. */
static bool ksyms_clear(struct trace_ksyms *ks, uint64_t time, uint64_t start,
			uint64_t end)
{
	size_t i = ksyms_search(ks, start), n = i;
	bool dropped = false;

	for (; n < ks->n && ks->live[n]->start < end; n++) {
		struct trace_ksym *k = ks->live[n];

		k->until = time;
		dropped |= ksyms_change(ks, time, k->start, k->end, k);
	}
	if (n == i)
		return dropped;
	memmove(&ks->live[i], &ks->live[n], (ks->n - n) * sizeof(*ks->live));
	ks->n -= n - i;
	return dropped;
}

bool trace_ksyms_load(struct trace_ksyms *ks, uint64_t time, uint64_t start,
		      uint64_t end, const char *name)
{
	bool dropped = ksyms_clear(ks, time, start, end);
	struct trace_ksym *k = NULL;
	size_t i;

	dropped |= ksyms_change(ks, time, start, end, NULL);
	if (*name && ks->n < KSYMS_LIVE_MAX &&
	    !VECTOR_ROOM(ks->live, ks->n, ks->cap))
		k = ksyms_new(start, end, name);
	if (!k)
		return true;
	k->from = time;
	i = ksyms_search(ks, start);
	memmove(&ks->live[i + 1], &ks->live[i],
		(ks->n - i) * sizeof(*ks->live));
	ks->live[i] = k;
	ks->n++;
	return dropped;
}

bool trace_ksyms_unload(struct trace_ksyms *ks, uint64_t time, uint64_t start,
			uint64_t end, const char *name)
{
	uint64_t seq = ks->seq;
	bool dropped = ksyms_clear(ks, time, start, end);
	struct trace_ksym *k;

	if (ks->seq > seq)
		return dropped;
	k = ksyms_new(start, end, name);
	if (k)
		k->until = time;
	return ksyms_change(ks, time, start, end, k) || !k;
}

bool trace_ksyms_lost(struct trace_ksyms *ks, uint64_t time)
{
	uint64_t seq = ks->seq;

	trace_ksyms_fini(ks);
	memset(ks, 0, sizeof(*ks));
	/* What is older than all kept changes has changed. */
	ks->seq = seq + TRACE_KSYMS_CHANGES + 1;
	ks->changed = time;
	return true;
}

void trace_ksyms_fini(struct trace_ksyms *ks)
{
	for (size_t i = 0; i < ks->n; i++)
		free(ks->live[i]);
	for (size_t i = 0; i < TRACE_KSYMS_CHANGES; i++)
		free(ks->changes[i].gone);
	free(ks->live);
}

/* The i-th change that is kept, the last one first; NULL: no more. */
static const struct trace_ksym_change *
ksyms_change_at(const struct trace_ksyms *ks, size_t i)
{
	if (i >= MIN(ks->seq, TRACE_KSYMS_CHANGES))
		return NULL;
	return &ks->changes[(ks->seq - 1 - i) % TRACE_KSYMS_CHANGES];
}

static bool ksyms_has(const struct trace_ksym_change *c, uint64_t addr)
{
	return addr >= c->start && addr < c->end;
}

bool trace_ksyms_changed(const struct trace_ksyms *ks, uint64_t seq,
			 uint64_t addr)
{
	if (ks->seq - seq > TRACE_KSYMS_CHANGES)
		return true;
	for (size_t i = 0; i < ks->seq - seq; i++)
		if (ksyms_has(ksyms_change_at(ks, i), addr))
			return true;
	return false;
}

bool trace_ksyms_later(const struct trace_ksyms *ks, uint64_t time,
		       uint64_t addr)
{
	const struct trace_ksym_change *c;

	if (time >= ks->changed)
		return false;
	for (size_t i = 0; (c = ksyms_change_at(ks, i)); i++)
		if (c->time > time && ksyms_has(c, addr))
			return true;
	return false;
}

enum trace_ksyms_state trace_ksyms_find(const struct trace_ksyms *ks,
					uint64_t addr, uint64_t time,
					const struct trace_ksym **out)
{
	const struct trace_ksym_change *c;
	size_t i = ksyms_search(ks, addr);

	if (i < ks->n && ks->live[i]->start <= addr &&
	    ks->live[i]->from <= time) {
		*out = ks->live[i];
		return TRACE_KSYMS_KNOWN;
	}
	for (i = 0; (c = ksyms_change_at(ks, i)); i++) {
		if (!ksyms_has(c, addr))
			continue;
		if (time >= c->time)
			return c->gone ? TRACE_KSYMS_GONE : TRACE_KSYMS_UNKNOWN;
		if (!c->gone || time < c->gone->from)
			continue;
		*out = c->gone;
		return *c->gone->name ? TRACE_KSYMS_KNOWN : TRACE_KSYMS_UNKNOWN;
	}
	return TRACE_KSYMS_UNKNOWN;
}
