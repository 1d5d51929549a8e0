// SPDX-License-Identifier: Apache-2.0
/* records: see profiler/waiting/records.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/base.h"
#include "bpf/abi_wait.h"
#include "bpf/wait/wait.skel.h"
#include "profiler/waiting/records.h"
#include "profiler/waiting/segments.h"
#include "profiler/waiting/sums.h"

/* Until the pump has passed their time, some seconds when names are late. */
#define RECORDS_KEPT_MAX 131072
#define RECORDS_POOL 1024 /* blocks that are not in use */
/* Of the ring, in one reading: the next one should come soon. */
#define RECORDS_MANY (ABI_RECORD_RING / sizeof(struct abi_segment) / 16)

struct records_kept {
	STAILQ_ENTRY(records_kept) entry;
	struct abi_segment of;
};

STAILQ_HEAD(records_list, records_kept);

struct waiting_records {
	struct wait_bpf *skel; /* of the sums */
	struct ring *ring;
	struct pool pool; /* of the lists */
	/* What lasts at an edge comes after what has ended after it: a list of its own. */
	struct records_list ended, open;
	size_t nkept; /* of both */
	bool many; /* the last reading had so many */
	struct waiting_records_stats stats;
};

static int records_on_record(void *arg, void *data, size_t len)
{
	struct waiting_records *r = arg;
	const struct abi_segment *s = data;
	struct records_kept *k;

	if (len < sizeof(*s) || s->waker.kind >= ABI_WAKER_MAX ||
	    ABI_WAIT_WHAT_REASON(s->what) < ABI_WAIT_SLEEP ||
	    ABI_WAIT_WHAT_REASON(s->what) >= ABI_WAIT_REASON_MAX ||
	    ABI_WAIT_WHAT_FD(s->what) >= ABI_FD_KINDS)
		return 0; /* the kernel's side writes none */
	r->stats.records++;
	k = r->nkept < RECORDS_KEPT_MAX ? pool_take(&r->pool) : NULL;
	if (!k) {
		r->stats.unkept++;
		return 0;
	}
	k->of = *s;
	if (s->flags & ABI_SEGMENT_OPEN)
		STAILQ_INSERT_TAIL(&r->open, k, entry);
	else
		STAILQ_INSERT_TAIL(&r->ended, k, entry);
	r->nkept++;
	return 0;
}

void waiting_records_edge(struct waiting_records *r, bool edge)
{
	if (r)
		__atomic_store_n(&r->skel->bss->wait_cut_records, edge,
				 __ATOMIC_SEQ_CST);
}

void waiting_records_poll(struct waiting_records *r)
{
	uint64_t before = r ? r->stats.records : 0;

	if (!r)
		return;
	ring_consume(r->ring);
	r->many = r->stats.records - before > RECORDS_MANY;
}

static void records_give(struct waiting_records *r, struct records_list *list,
			 uint64_t time,
			 void (*fn)(void *arg, const struct abi_segment *s),
			 void *arg)
{
	struct records_kept *k;

	while ((k = STAILQ_FIRST(list)) && k->of.end <= time) {
		STAILQ_REMOVE_HEAD(list, entry);
		r->nkept--;
		fn(arg, &k->of);
		pool_give(&r->pool, k);
	}
}

/* A wait that has ended replaces the same one of an edge, so those are first. */
void waiting_records_give(struct waiting_records *r, uint64_t time,
			  void (*fn)(void *arg, const struct abi_segment *s),
			  void *arg)
{
	if (!r)
		return;
	records_give(r, &r->open, time, fn, arg);
	records_give(r, &r->ended, time, fn, arg);
}

bool waiting_records_busy(const struct waiting_records *r)
{
	return r && r->many;
}

void waiting_records_get_stats(const struct waiting_records *r,
			       struct waiting_records_stats *out)
{
	const struct abi_wait_counters *c;

	*out = (struct waiting_records_stats){ 0 };
	if (!r)
		return;
	c = &r->skel->bss->wait_counters;
	*out = r->stats;
	out->lost = r->stats.unkept +
		    __atomic_load_n(&c->records_limited, __ATOMIC_RELAXED) +
		    __atomic_load_n(&c->records_full, __ATOMIC_RELAXED);
}

int waiting_records_new(struct waiting_records **rp, struct waiting_sums *sums,
			uint64_t min)
{
	struct waiting_records *r = calloc(1, sizeof(*r));
	int err;

	if (!r)
		return -ENOMEM;
	r->skel = waiting_sums_skel(sums);
	STAILQ_INIT(&r->ended);
	STAILQ_INIT(&r->open);
	pool_init(&r->pool, sizeof(struct records_kept), RECORDS_POOL);
	err = ring_new(&r->ring, bpf_map__fd(r->skel->maps.wait_records),
		       records_on_record, r);
	if (err) {
		waiting_records_free(r);
		return err;
	}
	waiting_segments_prepare(r->skel);
	__atomic_store_n(&r->skel->data->wait_min, min, __ATOMIC_SEQ_CST);
	*rp = r;
	return 0;
}

static void records_forget(void *arg, const struct abi_segment *s)
{
}

void waiting_records_free(struct waiting_records *r)
{
	if (!r)
		return;
	waiting_records_give(r, UINT64_MAX, records_forget, NULL);
	ring_free(r->ring);
	pool_fini(&r->pool);
	free(r);
}
