// SPDX-License-Identifier: Apache-2.0
/*
 * ledger_ring: the last events and ends of processes, as they came. They become
 * text only for those who read them. They go in the order they came, so they lie in
 * a vault: a life costs five of them.
 */
#include <inttypes.h>
#include <errno.h>
#include <stdlib.h>

#include "reporter/ledger/ledger.h"

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
	struct vault *vault; /* of the blocks */
	/*
	 * The lines read last, from event 'from' to 'to': those who follow go
	 * side by side, and read the same.
	 */
	struct strbuf text;
	uint64_t from, to;
	/* By number, modulo: struct ledger_life if so said, else quark_event. */
	bool is_life[LEDGER_EVENTS_MAX];
	uint32_t size[LEDGER_EVENTS_MAX];
	void *v[LEDGER_EVENTS_MAX];
};

struct ledger_events *ledger_events_new(unsigned int freq_hz)
{
	struct ledger_events *l = calloc(1, sizeof(*l));

	if (!l || vault_new(&l->vault)) {
		free(l);
		return NULL;
	}
	l->next = l->first = l->needed = 1;
	l->freq_hz = freq_hz;
	return l;
}

static void ledger_events_drop(struct ledger_events *l)
{
	size_t i = l->first++ % LEDGER_EVENTS_MAX;

	l->bytes -= l->size[i];
	vault_give(l->v[i]);
}

void ledger_events_free(struct ledger_events *l)
{
	if (!l)
		return;
	vault_free(l->vault);
	strbuf_fini(&l->text);
	free(l);
}

/* Takes over 'block', of the vault. */
static void ledger_events_put(struct ledger_events *l, void *block, size_t size,
			      bool life)
{
	size_t i = l->next % LEDGER_EVENTS_MAX;

	if (l->next - l->first == LEDGER_EVENTS_MAX)
		ledger_events_drop(l);
	l->v[i] = block;
	l->is_life[i] = life;
	l->size[i] = size;
	l->bytes += size;
	l->next++;
	while (l->bytes > LEDGER_BYTES_MAX ||
	       (l->bytes > LEDGER_BYTES_KEPT && l->first < l->needed))
		ledger_events_drop(l);
}

/* What ledger_event() says of the others needs no texts. */
#define LEDGER_TEXTS (QUARK_EV_EXEC | QUARK_EV_ID_CHANGE)

/* An event without texts: the most of them. */
struct ledger_bare {
	struct quark_event ev;
	struct quark_process process;
};

static int ledger_events_add_bare(struct ledger_events *l,
				  const struct quark_event *ev)
{
	struct ledger_bare *b = vault_take(l->vault, sizeof(*b));
	struct quark_process *p;

	if (!b)
		return -ENOMEM;
	p = &b->process;
	b->ev = *ev;
	b->ev.process = p;
	*p = *ev->process;
	p->exe = p->cmdline = p->cwd = p->cgroup = p->env = NULL;
	p->cmdline_len = p->env_len = 0;
	ledger_events_put(l, b, sizeof(*b), false);
	return 0;
}

int ledger_events_add(struct ledger_events *l, const struct quark_event *ev)
{
	size_t size;
	void *copy;

	if (ev->process && !(ev->events & LEDGER_TEXTS))
		return ledger_events_add_bare(l, ev);
	size = quark_event_copy(ev, NULL, 0);
	copy = vault_take(l->vault, size);
	if (!copy)
		return -ENOMEM;
	quark_event_copy(ev, copy, size);
	ledger_events_put(l, copy, size, false);
	return 0;
}

int ledger_events_add_life(struct ledger_events *l, const struct pm_image *last)
{
	struct ledger_life *life;
	size_t size;

	life = ledger_life_new(last, l->vault, &size);
	if (!life)
		return -ENOMEM;
	ledger_events_put(l, life, size, true);
	return 0;
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

static void ledger_events_write(const struct ledger_events *l, uint64_t *at,
				size_t max, struct strbuf *sb)
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

void ledger_events_read(struct ledger_events *l, uint64_t *at, size_t max,
			struct strbuf *sb)
{
	uint64_t from = *at;

	if (!l->text.len || from != l->from) {
		strbuf_reset(&l->text);
		ledger_events_write(l, at, max, &l->text);
		l->from = from;
		l->to = *at;
	}
	*at = l->to;
	if (l->text.failed) {
		strbuf_fini(&l->text);
		sb->failed = true;
	}
	strbuf_add(sb, l->text.data, l->text.len);
}
