// SPDX-License-Identifier: Apache-2.0
/*
 * scan: reads all processes, when the queue is opened, and again after a loss, when
 * the cache may lack forks, execs and exits.
 *
 * The first scan includes the changes of all older records. During a rescan, events
 * for what it reads may still be in the ring: new processes and images are applied
 * at once, and once more by their own records. Only when all records up to the
 * rescan's time are applied, processes missing from it are presumed dead, and the
 * others get the names and ids that it read.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "processmanager/quark/priv.h"

/* Limits the cost of permanent losses, and the delay of a second rescan. */
#define AGAIN_NS (300 * CLOCK_NSEC_PER_MSEC)
/* Bytes of records at which their strings are read. */
#define RECORDS_MAX (64 * 1024)

struct scan {
	struct quark_queue_priv *qq;
	struct strbuf sb;
	uint64_t begin;
	bool first;
	ring_fn fn;
	struct strbuf task; /* the record of a hidden process */
	struct strbuf records; /* not applied yet: their strings are not read */
	struct quark_text texts[QUARK_TEXTS_MAX];
	size_t n;
};

/* Appends a record: its length, then the record, 8-aligned. */
static int add_record(struct strbuf *sb, const void *data, size_t len)
{
	static const char zeros[8];
	uint64_t size = len;

	strbuf_add(sb, (const char *)&size, sizeof(size));
	strbuf_add(sb, data, len);
	strbuf_add(sb, zeros, -len & 7);
	return sb->failed ? -ENOMEM : 0;
}

/* The record at *at; moves *at to the next. NULL: there are no more. */
static const struct abi_quark_image *next_record(const struct strbuf *sb,
						 size_t *at, uint64_t *len)
{
	const char *p = sb->data + *at;

	if (*at >= sb->len)
		return NULL;
	memcpy(len, p, sizeof(*len));
	*at += sizeof(*len) + ((*len + 7) & ~7ULL);
	return (const void *)(p + sizeof(*len));
}

static int apply_records(struct scan *s)
{
	const struct quark_text *text = s->texts;
	const struct abi_quark_image *im;
	struct quark_proc *proc;
	uint64_t len;
	size_t at = 0;
	int err = 0;

	quark_read_strings(s->qq, s->texts, s->n, &s->sb);
	while (!err && (im = next_record(&s->records, &at, &len))) {
		struct quark_spans live = { .cmdline.p = NULL };

		if (!(im->head.flags & ABI_QUARK_KTHREAD))
			quark_text_spans(text++, &s->sb, &live);
		err = quark_apply_scanned(s->qq, im, len, &live);
		if (!err && s->first) {
			proc = quark_cache_find(&s->qq->cache, &im->head.key);
			proc->snap_time = im->head.time;
		}
	}
	strbuf_reset(&s->records);
	s->n = 0;
	return err;
}

/* Collects records: a job of the reader for each would take twice the time. */
static int scan_first(void *arg, void *data, size_t len)
{
	const struct abi_quark_image *im = data;
	struct scan *s = arg;
	int err;

	err = add_record(&s->records, data, len);
	if (err)
		return err;
	if (!(im->head.flags & ABI_QUARK_KTHREAD))
		s->texts[s->n++] = (struct quark_text){
			.pid = im->head.key.tgid,
			.uid = im->ids.uid,
			.start = im->head.key.start_boottime,
			.hidden = im->head.flags & QUARK_RAW_HIDDEN,
		};
	if (s->n < QUARK_TEXTS_MAX && s->records.len < RECORDS_MAX)
		return 0;
	return apply_records(s);
}

static int scan_again(void *arg, void *data, size_t len)
{
	const struct abi_quark_image *im = data;
	struct quark_proc *proc;
	struct scan *s = arg;
	int err;

	/* Applied when all older records are. */
	err = add_record(&s->qq->shown, data, len);
	if (err)
		return err;
	proc = quark_cache_find(&s->qq->cache, &im->head.key);
	if (proc) {
		proc->missing = false;
		if (proc->rec->p.key.exec_id >= im->head.key.exec_id)
			return 0;
	}
	return scan_first(arg, data, len);
}

/* --- processes that the backend's scan lacks ---------------------------------- */

/*
 * The exact key of a process of which only the clock tick of the start is known:
 * its children that the kernel showed have it as their parent's key. Without such a
 * child it is left out: with an inexact key, no record would find its entry.
 */
static bool exact_key(const struct quark_cache *c, struct abi_key *key)
{
	uint64_t tick = procfs_tick();
	uint64_t start = key->start_boottime;
	const struct quark_proc *p;
	bool found = false;

	TAILQ_FOREACH(p, &c->all, link) {
		const struct quark_key *k = &p->rec->p.parent_key;

		if (k->pid != key->tgid ||
		    k->start_boottime / tick != start / tick)
			continue;
		key->start_boottime = k->start_boottime;
		key->exec_id = MAX(key->exec_id, k->exec_id);
		found = true;
	}
	return found;
}

/* Not of a process that began after the scan did: the ring has its fork. */
static int scan_hidden(void *arg, uint32_t pid)
{
	uint64_t tick = procfs_tick();
	struct scan *s = arg;
	struct quark_cache *c = &s->qq->cache;
	struct quark_proc *p = quark_cache_newest(c, pid);
	struct abi_quark_image *im;
	int err;

	if ((p && !p->exited) ||
	    !quark_reader_task(&s->qq->reader, pid, &s->task))
		return 0;
	im = (struct abi_quark_image *)s->task.data;
	if (im->head.key.start_boottime + tick > s->begin ||
	    !exact_key(c, &im->head.key))
		return 0;
	p = quark_cache_newest(c, im->parent.tgid);
	if (p) {
		im->parent.start_boottime = p->rec->p.key.start_boottime;
		im->parent.exec_id = p->rec->p.key.exec_id;
	}
	err = s->fn(s, s->task.data, s->task.len);
	/* It may be the parent of the next one. */
	return err ? err : apply_records(s);
}

static int scan_processes(struct quark_queue_priv *qq, bool first)
{
	struct scan s = {
		.qq = qq,
		.first = first,
		.fn = first ? scan_first : scan_again,
		.begin = clock_boottime_ns(),
	};
	int err;

	err = qq->backend->scan(qq->b, s.fn, &s);
	if (!err)
		err = apply_records(&s);
	/* Without a /proc there are no others. */
	if (!err && procfs_numbers("/proc", scan_hidden, &s) == -ENOMEM)
		err = -ENOMEM;
	strbuf_fini(&s.records);
	strbuf_fini(&s.task);
	strbuf_fini(&s.sb);
	if (!err)
		quark_apply_scan_end(qq);
	return err;
}

int quark_scan_first(struct quark_queue_priv *qq)
{
	int err = scan_processes(qq, true);

	if (err)
		quark_error("reading the processes there are: %s",
			    strerror(-err));
	return err;
}

static void bury_missing(struct quark_queue_priv *qq)
{
	struct quark_proc *p;

	TAILQ_FOREACH(p, &qq->cache.all, link) {
		if (!p->missing || p->exited || quark_exists(qq, &p->rec->p))
			continue;
		if (quark_apply_vanished(qq, p))
			return;
	}
}

/* Applies what changed in the gap. Without memory the rest stays as it was. */
static void refresh_shown(struct quark_queue_priv *qq)
{
	struct strbuf sb = STRBUF_INIT;
	const struct abi_quark_image *im;
	uint64_t len;
	size_t at = 0;

	while ((im = next_record(&qq->shown, &at, &len)))
		if (quark_apply_refresh(qq, im, len, qq->shown_gap, &sb))
			break;
	strbuf_fini(&sb);
	strbuf_fini(&qq->shown);
}

void quark_scan_again(struct quark_queue_priv *qq)
{
	struct quark_proc *p;

	if (qq->scanned && qq->watermark > qq->scanned) {
		refresh_shown(qq);
		bury_missing(qq);
		qq->scanned = 0;
		qq->stats.repairs++;
	}
	if (!qq->gap_to || qq->gap_to >= qq->watermark ||
	    qq->watermark < qq->last_scan + AGAIN_NS)
		return;
	TAILQ_FOREACH(p, &qq->cache.all, link)
		p->missing = !p->exited;
	/* Without memory it is tried again, AGAIN_NS later. */
	qq->last_scan = clock_boottime_ns();
	/* Replaces a rescan whose result was not applied yet. */
	qq->shown_gap =
		qq->scanned ? MIN(qq->shown_gap, qq->gap_from) : qq->gap_from;
	strbuf_fini(&qq->shown);
	if (scan_processes(qq, false))
		return;
	qq->gap_to = 0;
	qq->scanned = clock_boottime_ns();
}
