// SPDX-License-Identifier: Apache-2.0
/* opened: see profiler/waiting/opened.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/uio.h>

#include "base/base.h"
#include "profiler/waiting/opened.h"

#define OPENED_BYTES (32 * 1024) /* of a stack */
#define OPENED_FIRST_NS \
	(30 * CLOCK_NSEC_PER_SEC) /* a list each tick, at first */
#define OPENED_LIST_NS CLOCK_NSEC_PER_SEC
#define OPENED_ALL_NS (10 * CLOCK_NSEC_PER_SEC)
#define OPENED_HUNG_NS (60 * CLOCK_NSEC_PER_SEC)

/* As the kernel's side writes it (bpf/abi.h). */
struct opened_record {
	struct abi_sample head;
	struct abi_part regs_part;
	struct abi_regs regs;
	struct abi_part stack_part;
	struct abi_stack stack;
	unsigned char bytes[OPENED_BYTES];
};

struct opened_job {
	struct patience_job job;
	size_t n;
	struct abi_wait_open open[ABI_WAIT_OPEN_MAX];
	struct opened_record records[ABI_WAIT_OPEN_MAX];
};

/* --- in the thread ---------------------------------------------------------------- */

/* The part of the stack that is in memory, up to the first page that is not. */
static void opened_read_stack(struct opened_record *r, uint32_t tid)
{
	uint64_t sp = r->regs.gpr[ABI_REG_SP];
	struct iovec to = { r->bytes, sizeof(r->bytes) }, from;
	ssize_t n;

	if (r->head.flags & ABI_SAMPLE_COMPAT)
		sp = (uint32_t)sp;
	r->stack.start = (sp - ABI_STACK_RED_ZONE) & -(uint64_t)ABI_STACK_ALIGN;
	/* Only an address of the other process, which is never used in this one. */
	from.iov_base = (void *)(uintptr_t)r->stack.start; /* NOLINT */
	from.iov_len = sizeof(r->bytes);
	n = process_vm_readv((pid_t)tid, &to, 1, &from, 1, 0);
	r->stack.size = n > 0 ? (uint32_t)n & -ABI_STACK_ALIGN : 0;
	r->stack.end = r->stack.size == sizeof(r->bytes) ? ABI_STACK_CAP
							 : ABI_STACK_FAULT;
}

static void opened_run(struct patience_job *job)
{
	struct opened_job *j = container_of(job, struct opened_job, job);

	for (size_t i = 0; i < j->n; i++) {
		opened_read_stack(&j->records[i], j->open[i].tid);
		patience_step(job);
	}
}

static void opened_release(struct patience_job *job)
{
	free(container_of(job, struct opened_job, job));
}

/* --- on the loop's thread --------------------------------------------------------- */

void waiting_opened_init(struct waiting_opened *o, uint64_t now)
{
	*o = (struct waiting_opened){
		.began = now,
		.patience.spare = PATIENCE_ABANDONED_MAX / 2,
	};
	if (getrandom(&o->seed, sizeof(o->seed), GRND_NONBLOCK) < 0)
		o->seed = now;
}

void waiting_opened_fini(struct waiting_opened *o)
{
	if (o->job && patience_abandon(&o->patience))
		free(o->job);
	patience_fini(&o->patience);
}

static uint64_t opened_site(struct waiting_opened *o)
{
	uint64_t site;

	do
		site = hash_u64(o->seed + ++o->number);
	while (site < ABI_WAIT_SITE_LEAST);
	return site;
}

static void opened_begin(struct opened_record *r, const struct abi_wait_open *w)
{
	r->head = (struct abi_sample){
		.flags = w->flags,
		.key = w->key,
		.tid = w->tid,
		.event = ABI_EVENT_WAIT,
	};
	memcpy(r->head.comm, w->comm, sizeof(r->head.comm));
	r->regs = w->regs;
	r->regs_part = (struct abi_part){ ABI_PART_REGS, sizeof(r->regs) };
	r->stack = (struct abi_stack){ 0 };
}

static void opened_end(struct opened_record *r, uint64_t site, uint64_t now)
{
	size_t rest = sizeof(r->bytes) - r->stack.size;

	r->stack_part = (struct abi_part){
		ABI_PART_STACK,
		(uint32_t)sizeof(r->stack) + r->stack.size,
	};
	r->head.size = (uint32_t)(sizeof(*r) - rest);
	r->head.time = now;
	r->head.value = site;
}

/* Gives the sites, and hands on the stacks of those that were taken. */
static void opened_give(struct waiting_opened *o, struct waiting_sums *sums,
			struct opened_job *j,
			void (*fn)(void *arg, const struct abi_sample *rec,
				   size_t len),
			void *arg)
{
	struct abi_wait_given given[ABI_WAIT_OPEN_MAX] = { 0 };
	uint64_t sites[ABI_WAIT_OPEN_MAX];

	for (size_t i = 0; i < j->n; i++) {
		sites[i] = opened_site(o);
		given[i].key = j->open[i].key;
		given[i].switches = j->open[i].switches;
		if (j->records[i].stack.size)
			given[i].site = sites[i];
	}
	waiting_sums_give(sums, j->open, given, j->n);
	for (size_t i = 0; i < j->n; i++) {
		if (!j->records[i].stack.size || given[i].site) {
			o->unread++;
			continue;
		}
		o->copied++;
		opened_end(&j->records[i], sites[i], clock_boottime_ns());
		fn(arg, &j->records[i].head, j->records[i].head.size);
	}
}

static bool opened_is_hung(const struct waiting_opened *o, uint32_t tid,
			   uint64_t now)
{
	for (size_t i = 0; i < WAITING_OPENED_HUNG; i++)
		if (o->hung[i].tid == tid && o->hung[i].until > now)
			return true;
	return false;
}

static void opened_list(struct waiting_opened *o, struct waiting_sums *sums,
			struct opened_job *j, uint64_t now)
{
	size_t n = waiting_sums_list(sums, o->after, j->open);
	bool full = n == ABI_WAIT_OPEN_MAX;

	o->after = full ? j->open[n - 1].tid : 0;
	o->next = now + OPENED_ALL_NS;
	if (full)
		o->next = now - o->began < OPENED_FIRST_NS
				  ? now
				  : now + OPENED_LIST_NS;
	for (size_t i = 0; i < n; i++) {
		if (opened_is_hung(o, j->open[i].tid, now))
			continue;
		j->open[j->n] = j->open[i];
		o->tids[j->n] = j->open[i].tid;
		opened_begin(&j->records[j->n], &j->open[i]);
		j->n++;
	}
}

static void opened_start(struct waiting_opened *o, struct waiting_sums *sums,
			 uint64_t now)
{
	struct opened_job *j = malloc(sizeof(*j));

	if (!j)
		return;
	j->job = (struct patience_job){
		.run = opened_run,
		.release = opened_release,
	};
	j->n = 0;
	opened_list(o, sums, j, now);
	if (j->n && !patience_begin(&o->patience, &j->job))
		o->job = j;
	else
		free(j);
}

/* Those beside it are read another time. */
static void opened_hung(struct waiting_opened *o, size_t at, uint64_t now)
{
	size_t i = o->nhung++ % WAITING_OPENED_HUNG;

	o->job = NULL; /* the thread's */
	o->unread++;
	if (at >= ABI_WAIT_OPEN_MAX)
		return;
	o->hung[i].tid = o->tids[at];
	o->hung[i].until = now + OPENED_HUNG_NS;
}

void waiting_opened_tick(struct waiting_opened *o, struct waiting_sums *sums,
			 uint64_t now,
			 void (*fn)(void *arg, const struct abi_sample *rec,
				    size_t len),
			 void *arg)
{
	size_t at = 0;
	int err;

	if (o->job) {
		err = patience_poll(&o->patience, &at);
		if (err == -EINPROGRESS)
			return;
		if (err) {
			opened_hung(o, at, now);
		} else {
			opened_give(o, sums, o->job, fn, arg);
			free(o->job);
			o->job = NULL;
		}
	}
	if (now >= o->next)
		opened_start(o, sums, now);
}
