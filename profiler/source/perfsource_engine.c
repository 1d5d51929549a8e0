// SPDX-License-Identifier: Apache-2.0
/*
 * perfsource_engine: see perfsource_engine.h. On the way into the pump records
 * only change their form; who they are of is found on the way out, where they
 * come in the order of time.
 *
 * Recording cannot begin for the side-band and for samples apart, so it begins
 * before the walk, and samples from before the engine's begin are left out.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "profiler/source/perfsource_engine.h"
#include "profiler/source/perfsource_ids.h"
#include "profiler/rescan/rescan_queue.h"

/*
 * So many processes are read from /proc a drain; the others go without what
 * only /proc has: a storm of them must not stop the loop.
 */
#define WANTS 64

struct perfsource_engine {
	struct perfsource *source;
	struct perfids *ids;
	uint32_t wants[WANTS]; /* to be read from /proc */
	size_t nwants;
	uint64_t gaps; /* those after which the living were counted */
	uint32_t *pids; /* of the walk */
	size_t npids, pids_cap;
};

/* --- into the pump --------------------------------------------------------- */

static void push_life(struct engine *e, const struct perfids_record *r)
{
	struct perfids_record *copy = malloc(sizeof(*copy));

	if (!copy) {
		e->nomem++;
		return;
	}
	*copy = *r;
	/* Lost, it is as if perf had lost it: the living are counted again. */
	if (pump_push(e->pump, PUMP_LIFECYCLE, r->time, copy, sizeof(*copy)))
		e->perf->gaps = UINT64_MAX;
}

static void push_task(struct engine *e, enum perfids_kind kind,
		      const struct perfsource_record *r)
{
	struct perfids_record life = {
		.kind = kind,
		.pid = r->pid,
		.tid = r->tid,
		.ppid = r->ppid,
		.ptid = r->ptid,
		.time = r->time,
	};

	memcpy(life.comm, r->comm, sizeof(life.comm));
	push_life(e, &life);
}

static void push_sample(struct engine *e, const struct perfsource_record *r)
{
	struct abi_sample *s;
	size_t size;

	if (!e->begin || r->time < e->begin)
		return;
	size = perfsource_sample_size(r);
	s = engine_sample_new(e, size);
	if (!s)
		return;
	perfsource_sample_build(r, s);
	engine_sample_push(e, s, r->time, size);
}

static void on_want(void *arg, uint32_t pid)
{
	struct engine *e = arg;
	struct perfsource_engine *pe = e->perf;

	if (pe->nwants < WANTS)
		pe->wants[pe->nwants++] = pid;
}

static void on_record(void *arg, const struct perfsource_record *r)
{
	struct engine *e = arg;

	switch (r->kind) {
	case PERFSOURCE_SAMPLE:
		push_sample(e, r);
		break;
	case PERFSOURCE_EXEC:
		push_task(e, PERFIDS_EXEC, r);
		engine_on_map(e, &r->map);
		on_want(e, r->pid);
		break;
	case PERFSOURCE_MAP:
	case PERFSOURCE_LOST:
		engine_on_map(e, &r->map);
		break;
	case PERFSOURCE_COMM:
		push_task(e, PERFIDS_COMM, r);
		break;
	case PERFSOURCE_FORK:
		push_task(e, PERFIDS_FORK, r);
		break;
	case PERFSOURCE_EXIT:
		push_task(e, PERFIDS_EXIT, r);
		break;
	case PERFSOURCE_THROTTLE:
	case PERFSOURCE_OTHER:
		break;
	}
}

/* A process as /proc has it; one that is gone has nothing to be read. */
static int push_proc(struct engine *e, enum perfids_kind kind, uint32_t pid)
{
	struct perfids_record *r;
	struct perfsource_process *proc;
	int err = perfsource_process_read("/proc", pid, sizeof(*r), &proc);

	if (err)
		return err == -ENOMEM ? err : 0;
	r = (struct perfids_record *)((char *)proc - sizeof(*r));
	memset(r, 0, sizeof(*r));
	r->kind = kind;
	r->pid = r->tid = pid;
	/* A reading counts from its end on, the walk from before it all. */
	r->time = kind == PERFIDS_WALK ? e->walk_begin : clock_boottime_ns();
	r->proc = proc;
	return pump_push(e->pump, PUMP_LIFECYCLE, r->time, r, sizeof(*r));
}

void perfsource_engine_drain(struct engine *e)
{
	struct perfsource_engine *pe = e->perf;
	uint64_t mark;
	size_t i;

	perfsource_poll(pe->source);
	for (i = 0; i < pe->nwants; i++)
		if (push_proc(e, PERFIDS_READ, pe->wants[i]))
			e->nomem++;
	pe->nwants = 0;
	mark = MIN(perfsource_watermark(pe->source), clock_boottime_ns());
	pump_watermark(e->pump, PUMP_SAMPLE, mark);
	pump_watermark(e->pump, PUMP_MAPPING, mark);
	pump_watermark(e->pump, PUMP_LIFECYCLE, mark);
}

/* --- out of the pump ------------------------------------------------------- */

static void on_event(void *arg, const struct quark_event *ev)
{
	struct engine *e = arg;

	pm_event(e->pm, ev);
	if (reporter_event(e->reporter, ev))
		e->nomem++;
}

static void on_process(void *arg, const struct quark_process *qp, uint64_t time)
{
	struct engine *e = arg;

	pm_walk_process(e->pm, qp, time);
}

void perfsource_engine_life(struct engine *e, const void *rec)
{
	if (perfids_feed(e->perf->ids, rec))
		e->nomem++;
}

void perfsource_engine_mapped(struct engine *e, const struct pm_map_event *ev)
{
	perfids_mapped(e->perf->ids, ev);
}

bool perfsource_engine_sample(struct engine *e, struct abi_sample *s)
{
	if (perfids_sample(e->perf->ids, s)) {
		e->nomem++;
		return false;
	}
	if (s->flags & ABI_SAMPLE_EXEC)
		perfsource_count_exec(e->perf->source, s->cpu);
	return true;
}

/* --- the walk -------------------------------------------------------------- */

static int add_pid(void *arg, uint32_t pid)
{
	struct perfsource_engine *pe = arg;

	if (VECTOR_ROOM(pe->pids, pe->npids, pe->pids_cap))
		return -ENOMEM;
	pe->pids[pe->npids++] = pid;
	return 0;
}

static int list_pids(struct engine *e)
{
	struct perfsource_engine *pe = e->perf;
	struct perfsource_stats st;
	size_t i;
	int err = 0;

	perfsource_get_stats(pe->source, &st);
	if (st.host)
		return procfs_numbers("/proc", add_pid, pe);
	for (i = 0; !err && i < e->opts.npids; i++)
		err = add_pid(pe, e->opts.pids[i]);
	return err;
}

/* Who is asked for the time that a reading takes. */
static uint32_t owner(uint32_t pid)
{
	struct stat st;
	char path[32];

	snprintf(path, sizeof(path), "/proc/%u", pid);
	return stat(path, &st) ? 0 : st.st_uid;
}

int perfsource_engine_walk(struct engine *e)
{
	struct perfsource_engine *pe = e->perf;
	struct walkqueue_item *items = NULL;
	int err = list_pids(e);
	size_t i, n = 0;

	for (i = 0; !err && i < pe->npids; i++)
		err = push_proc(e, PERFIDS_WALK, pe->pids[i]);
	for (i = 0; !err && i < pe->npids; i++)
		err = walk_add(&items, &n, pe->pids[i], owner(pe->pids[i]));
	if (!err)
		err = walk_maps(e, items, n);
	free(items);
	/* Who is to be recorded must be known when this returns. */
	while (!err && e->passed <= e->walk_begin) {
		engine_drain(e);
		usleep(500);
	}
	free(pe->pids);
	pe->pids = NULL;
	return err;
}

/* --- in all ---------------------------------------------------------------- */

static void describe(struct engine *e)
{
	struct perfsource_stats st;

	perfsource_get_stats(e->perf->source, &st);
	snprintf(e->note, sizeof(e->note),
		 "perf events: %s%s, stacks up to %zu bytes; process ids are "
		 "not those of a BPF run",
		 st.kernel ? "" : "user code of ",
		 st.host ? "the whole host" : "what was asked for only",
		 st.stack_copy);
}

int perfsource_engine_open(struct engine *e, const char **what)
{
	struct perfids_opts io = { .event = on_event,
				   .process = on_process,
				   .want = on_want,
				   .arg = e };
	struct perfsource_opts so = { .freq_hz = e->opts.freq_hz,
				      .stack_copy = e->opts.stack_copy,
				      .rings_bytes = e->opts.ring_size,
				      .pids = e->opts.pids,
				      .npids = e->opts.npids,
				      .until_exec = e->opts.until_exec,
				      .record = on_record,
				      .arg = e };
	int err;

	*what = "memory";
	e->perf = calloc(1, sizeof(*e->perf));
	if (!e->perf)
		return -ENOMEM;
	err = perfids_new(&e->perf->ids, &io);
	if (err)
		return err;
	err = perfsource_new(&e->perf->source, &so, what);
	if (err)
		return err;
	describe(e);
	e->walk_begin = clock_boottime_ns();
	*what = "sampling";
	return perfsource_enable(e->perf->source);
}

void perfsource_engine_close(struct engine *e)
{
	if (!e->perf)
		return;
	perfsource_free(e->perf->source);
	perfids_free(e->perf->ids);
	free(e->perf->pids);
	free(e->perf);
	e->perf = NULL;
}

void perfsource_engine_stop(struct engine *e)
{
	perfsource_disable(e->perf->source);
}

/* Its EXIT may be among what was lost. */
static void check_living(void *arg, uint32_t pid)
{
	struct perfids_record gone = {
		.kind = PERFIDS_GONE,
		.pid = pid,
		.tid = pid,
		.time = clock_boottime_ns(),
	};
	char path[32];

	snprintf(path, sizeof(path), "/proc/%u", pid);
	if (access(path, F_OK))
		push_life(arg, &gone);
}

int perfsource_engine_second(struct engine *e)
{
	struct perfsource_engine *pe = e->perf;
	struct perfsource_stats st;
	uint64_t before = pe->gaps;

	perfsource_get_stats(pe->source, &st);
	pe->gaps = st.gaps;
	if (st.gaps != before)
		perfids_living(pe->ids, check_living, e);
	return perfsource_hotplug(pe->source);
}

int perfsource_engine_epoll_fd(const struct engine *e)
{
	return perfsource_epoll_fd(e->perf->source);
}

int perfsource_engine_cpu_stats(struct engine *e, struct sampler_cpu_stats *out,
				size_t n)
{
	return perfsource_cpu_stats(e->perf->source, out, n);
}

void perfsource_engine_stats(const struct engine *e,
			     struct perfsource_stats *out)
{
	memset(out, 0, sizeof(*out));
	if (e->perf)
		perfsource_get_stats(e->perf->source, out);
}
