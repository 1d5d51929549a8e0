// SPDX-License-Identifier: Apache-2.0
/* segment: see reporter/ledger/segment.h. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "processmanager/watch/watch.h"
#include "reporter/ledger/ledger.h"
#include "reporter/ledger/line.h"
#include "reporter/ledger/segment.h"

#define SEGMENT_ID_MAX 64

static const char *const segment_reasons[] = {
#define X(NAME, name) #name,
	ABI_WAIT_REASONS(X)
#undef X
};

static const char *const segment_fds[ABI_FD_KINDS] = {
#define X(NAME, word, category) word,
	ABI_FDS(X)
#undef X
};

static const char *const segment_wakers[] = {
#define X(NAME, name) #name,
	ABI_WAKERS(X)
#undef X
};

static const char *segment_state(uint32_t what)
{
	uint32_t reason = ABI_WAIT_WHAT_REASON(what);

	return reason == ABI_WAIT_ON	 ? "on"
	       : reason < ABI_WAIT_SLEEP ? "runnable"
					 : "off";
}

/* Larger than 2^53 it may be: a string. */
static void segment_ns(struct line *l, const char *key, uint64_t ns)
{
	line_put(l, key, json_sprintf("%" PRIu64, ns));
}

static void segment_ids(struct line *l, const struct abi_key *key, bool image)
{
	char id[SEGMENT_ID_MAX];
	int n;

	n = snprintf(id, sizeof(id), "%u-%" PRIx64, key->tgid,
		     (uint64_t)key->start_boottime);
	line_str(l, "process", id);
	if (!image)
		return;
	snprintf(id + n, sizeof(id) - (size_t)n, "-%" PRIu64,
		 (uint64_t)key->exec_id);
	line_str(l, "image", id);
}

void ledger_put_timeline(struct line *l, const struct reporter_timeline *t)
{
	line_int(l, "pid", t->key.tgid);
	segment_ids(l, &t->key, false);
	line_time(l, "since", t->since);
	segment_ns(l, "since_boot_ns", t->since);
	line_put(l, "begun", json_boolean(t->begun));
	segment_ns(l, "from_boot_ns", t->from);
	segment_ns(l, "to_boot_ns", t->to);
	line_put(l, "lost",
		 json_pack("{s:I, s:I, s:I}", "rate", (json_int_t)t->lost_rate,
			   "ring", (json_int_t)t->lost_ring, "memory",
			   (json_int_t)t->lost_memory));
}

void ledger_timeline(const struct reporter_timeline *t, struct strbuf *sb)
{
	struct line l = line_new(line_wall());

	ledger_put_timeline(&l, t);
	line_int(&l, "segments", t->n);
	line_end(&l, sb);
}

/* The name of its process, as far as that is known now. */
static void segment_comm(struct line *l, struct pm *pm,
			 const struct abi_key *key)
{
	const struct pm_image *image = pm_newest(pm, key);
	struct pm_image_info info;

	if (!image)
		return;
	pm_image_info(image, &info);
	line_str(l, "comm", info.comm);
}

static void segment_put_waker(struct line *l, struct pm *pm,
			      const struct reporter_segment *s)
{
	const struct abi_waker *w = &s->of.waker;
	struct line by = line_new(l->wall);

	line_str(&by, "kind",
		 segment_wakers[w->kind < ABI_WAKER_MAX ? w->kind : 0]);
	if (w->key.tgid) {
		line_int(&by, "pid", w->key.tgid);
		line_int(&by, "tid", w->tid);
		segment_ids(&by, &w->key, true);
		if (pm)
			segment_comm(&by, pm, &w->key);
		else if (*s->waker)
			line_text(&by, "comm", s->waker,
				  strnlen(s->waker, sizeof(s->waker)));
	}
	l->failed |= by.failed;
	line_put(l, "waker", by.o);
}

static void segment_what(struct line *l, uint32_t what)
{
	uint32_t reason = ABI_WAIT_WHAT_REASON(what);
	uint32_t fd = ABI_WAIT_WHAT_FD(what);

	line_str(l, "state", segment_state(what));
	if (reason == ABI_WAIT_ON || reason >= ABI_WAIT_REASON_MAX)
		return;
	line_str(l, "reason", segment_reasons[reason]);
	line_str(l, "syscall", watch_syscall(ABI_WAIT_WHAT_NR(what)));
	if (fd && fd < ABI_FD_KINDS)
		line_str(l, "fd", segment_fds[fd]);
}

void ledger_put_segment(struct line *l, const struct reporter_segment *s,
			struct pm *pm, bool what)
{
	const struct abi_segment *of = &s->of;
	bool open = of->flags & ABI_SEGMENT_OPEN;

	line_time(l, "time", of->begin);
	segment_ns(l, "time_boot_ns", of->begin);
	segment_ns(l, "duration_ns", of->end - of->begin);
	line_int(l, "tid", of->tid);
	if (what)
		line_text(l, "thread", of->comm,
			  strnlen(of->comm, ABI_COMM_LEN));
	segment_ids(l, &of->key, what);
	if (!what || s->between)
		return;
	segment_what(l, of->what);
	if (open)
		line_put(l, "open", json_true());
	if (ABI_WAIT_WHAT_REASON(of->what) >= ABI_WAIT_SLEEP && !open) {
		if (pm)
			segment_ns(l, "latency_ns", s->latency);
		segment_put_waker(l, pm, s);
	}
}

void ledger_segment(const struct reporter_segment *s, struct pm *pm,
		    int64_t wall, struct strbuf *sb)
{
	struct line l = line_new(wall);

	ledger_put_segment(&l, s, pm, true);
	line_end(&l, sb);
}
