// SPDX-License-Identifier: Apache-2.0
/*
 * ledger_ring: the last events and ends of processes, as they came. They become
 * text only for those who read them.
 */
#include <inttypes.h>
#include <malloc.h>
#include <stdlib.h>

#include "reporter/ledger.h"

#define LEDGER_EVENTS_MAX 65536
/* Of events that nobody waits for, and in all: two seconds of 8,000 a second. */
#define LEDGER_BYTES_KEPT (1 << 20)
#define LEDGER_BYTES_MAX (16 << 20)

struct ledger_events {
	uint64_t next; /* number of the event that comes next */
	uint64_t first; /* of the oldest that is here */
	uint64_t needed; /* somebody waits for those from here on */
	size_t bytes;
	unsigned int freq_hz;
	/* By number, modulo: struct ledger_life if so said, else quark_event. */
	bool is_life[LEDGER_EVENTS_MAX];
	void *v[LEDGER_EVENTS_MAX];
};

struct ledger_events *ledger_events_new(unsigned int freq_hz)
{
	struct ledger_events *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	l->next = l->first = l->needed = 1;
	l->freq_hz = freq_hz;
	return l;
}

static void ledger_events_drop(struct ledger_events *l)
{
	size_t i = l->first++ % LEDGER_EVENTS_MAX;

	l->bytes -= malloc_usable_size(l->v[i]);
	free(l->v[i]);
}

void ledger_events_free(struct ledger_events *l)
{
	while (l && l->first < l->next)
		ledger_events_drop(l);
	free(l);
}

static void ledger_events_put(struct ledger_events *l, void *block, bool life)
{
	size_t i = l->next % LEDGER_EVENTS_MAX;

	if (l->next - l->first == LEDGER_EVENTS_MAX)
		ledger_events_drop(l);
	l->v[i] = block;
	l->is_life[i] = life;
	l->bytes += malloc_usable_size(block);
	l->next++;
	while (l->bytes > LEDGER_BYTES_MAX ||
	       (l->bytes > LEDGER_BYTES_KEPT && l->first < l->needed))
		ledger_events_drop(l);
}

void ledger_events_add(struct ledger_events *l, struct quark_event *ev)
{
	ledger_events_put(l, ev, false);
}

void ledger_events_add_life(struct ledger_events *l, struct ledger_life *life)
{
	ledger_events_put(l, life, true);
}

void ledger_events_need(struct ledger_events *l, uint64_t at)
{
	l->needed = MIN(at, l->next);
}

uint64_t ledger_events_first(const struct ledger_events *l)
{
	return l->first;
}

uint64_t ledger_events_next(const struct ledger_events *l)
{
	return l->next;
}

void ledger_events_read(const struct ledger_events *l, uint64_t *at, size_t max,
			struct strbuf *sb)
{
	size_t i;

	if (*at < l->first) {
		strbuf_printf(sb,
			      "{\"events\":[\"missed\"],\"count\":%" PRIu64
			      "}\n",
			      l->first - *at);
		*at = l->first;
	}
	for (; *at < l->next && sb->len < max && !sb->failed; ++*at) {
		i = *at % LEDGER_EVENTS_MAX;
		if (l->is_life[i])
			ledger_life(l->v[i], l->freq_hz, sb);
		else
			ledger_event(l->v[i], sb);
	}
}
