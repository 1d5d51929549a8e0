// SPDX-License-Identifier: Apache-2.0
/*
 * ledger_ring: the latest events and ended processes. They become text only when
 * a client reads them. They are freed in the order they were added, so they are
 * allocated from a vault. A process has about five of them.
 */
#include <inttypes.h>
#include <errno.h>
#include <stdlib.h>

#include "reporter/ledger/ledger.h"

#define LEDGER_EVENTS_MAX 65536
/* Bytes without readers that need them, and in all: 2 s at 8,000 events/s. */
#define LEDGER_BYTES_KEPT (1 << 20)
#define LEDGER_BYTES_MAX (16 << 20)

struct ledger_events {
	uint64_t next; /* number of the next event to come */
	uint64_t first; /* number of the oldest in the ring */
	uint64_t base; /* number of the first of all */
	uint64_t since; /* CLOCK_BOOTTIME, see ledger_events_since() */
	const char *host;
	uint64_t needed; /* readers need those from here on */
	size_t bytes;
	unsigned int freq_hz;
	struct vault *vault; /* of the blocks */
	/* Cache of the last read, 'from' to 'to': followers read the same. */
	struct strbuf text;
	uint64_t from, to;
	/* By number modulo size: a struct ledger_ended, or a quark_event. */
	bool is_ended[LEDGER_EVENTS_MAX];
	uint32_t size[LEDGER_EVENTS_MAX];
	void *v[LEDGER_EVENTS_MAX];
};

struct ledger_events *ledger_events_new(unsigned int freq_hz, const char *host,
					uint64_t first)
{
	struct ledger_events *l = calloc(1, sizeof(*l));

	if (!l || vault_new(&l->vault)) {
		free(l);
		return NULL;
	}
	l->next = l->first = l->needed = l->base = first;
	l->since = clock_boottime_ns();
	l->freq_hz = freq_hz;
	l->host = host;
	return l;
}

static void ledger_events_what(const struct ledger_events *l, size_t i,
			       struct ledger_what *out)
{
	if (l->is_ended[i])
		ledger_what_ended(l->v[i], out);
	else
		ledger_what_event(l->v[i], out);
}

static void ledger_events_drop(struct ledger_events *l)
{
	size_t i = l->first++ % LEDGER_EVENTS_MAX;
	const struct quark_event *ev = l->v[i];

	if (!l->is_ended[i])
		l->since = MAX(l->since, ev->boottime + 1);
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

/* Takes over 'block', which is of the vault. */
static void ledger_events_put(struct ledger_events *l, void *block, size_t size,
			      bool ended)
{
	size_t i = l->next % LEDGER_EVENTS_MAX;

	if (l->next - l->first == LEDGER_EVENTS_MAX)
		ledger_events_drop(l);
	l->v[i] = block;
	l->is_ended[i] = ended;
	l->size[i] = size;
	l->bytes += size;
	l->next++;
	while (l->bytes > LEDGER_BYTES_MAX ||
	       (l->bytes > LEDGER_BYTES_KEPT && l->first < l->needed))
		ledger_events_drop(l);
}

/* The lines of other events need no string but the name. */
#define LEDGER_TEXTS (QUARK_EV_EXEC | QUARK_EV_ID_CHANGE)

/* An event without strings: most events. */
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

int ledger_events_add_ended(struct ledger_events *l,
			    const struct pm_image *last)
{
	struct ledger_ended *ended;
	size_t size;

	ended = ledger_ended_new(last, l->vault, &size);
	if (!ended)
		return -ENOMEM;
	ledger_events_put(l, ended, size, true);
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

uint64_t ledger_events_since(const struct ledger_events *l)
{
	return l->since;
}

/* Events of no process, which are losses, concern all. */
static bool ledger_events_wanted(const struct ledger_events *l, size_t i,
				 const struct ledger_filter *f)
{
	struct ledger_what what;

	if (!f)
		return true;
	ledger_events_what(l, i, &what);
	return (!f->types || what.types & f->types) && what.time >= f->from &&
	       (!f->to || what.time < f->to) &&
	       (!f->wanted || !what.pid || f->wanted(f->arg, &what));
}

static void ledger_events_missed(const struct ledger_events *l, uint64_t *at,
				 struct strbuf *sb)
{
	strbuf_puts(sb, "{\"events\":[\"missed\"]");
	if (*at >= l->base)
		strbuf_printf(sb, ",\"count\":%" PRIu64, l->first - *at);
	strbuf_puts(sb, "}\n");
	*at = l->first;
}

static void ledger_events_write(const struct ledger_events *l, uint64_t *at,
				size_t max, const struct ledger_filter *f,
				struct strbuf *sb)
{
	struct ledger_head head = { .host = l->host };
	size_t i;

	if (*at < l->first)
		ledger_events_missed(l, at, sb);
	for (; *at < l->next && sb->len < max && !sb->failed; ++*at) {
		i = *at % LEDGER_EVENTS_MAX;
		head.id = *at;
		if (!ledger_events_wanted(l, i, f))
			continue;
		if (l->is_ended[i])
			ledger_ended(l->v[i], &head, l->freq_hz, sb);
		else
			ledger_event(l->v[i], &head, sb);
	}
}

void ledger_events_read(struct ledger_events *l, uint64_t *at, size_t max,
			const struct ledger_filter *f, struct strbuf *sb)
{
	uint64_t from = *at;

	if (f) {
		ledger_events_write(l, at, max, f, sb);
		return;
	}
	if (!l->text.len || from != l->from) {
		strbuf_reset(&l->text);
		ledger_events_write(l, at, max, NULL, &l->text);
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
