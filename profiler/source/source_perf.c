// SPDX-License-Identifier: Apache-2.0
/*
 * source_perf: the perf source: one perf event on each CPU has all streams.
 * Records are only converted before the pump; the exec generation of each is
 * determined after it, in order of time (perfsource_ids.h).
 *
 * The event begins with samples and side-band at once, before the scan; samples
 * from before the end of the scan are dropped.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "profiler/privilege.h"
#include "profiler/rescan/rescan.h"
#include "profiler/source/intake.h"
#include "profiler/source/perfsource_ids.h"
#include "profiler/source/source.h"

/*
 * Most processes read from /proc in a drain; others lack what only /proc has,
 * so that a storm of processes does not stop the loop.
 */
#define SOURCE_PERF_WANTS PERFSOURCE_READINGS_MAX

struct source_perf {
	struct source_opts opts;
	struct perfsource *source;
	struct perfids *ids;
	uint64_t snapshot; /* time of the scan's records */
	uint64_t begin; /* of sampling; 0: not yet */
	struct perfsource_reader reader;
	struct perfsource_reading wants[SOURCE_PERF_WANTS]; /* to be read */
	size_t nwants;
	uint64_t gaps; /* at the last search for ended processes */
};

/* --- into the pump -------------------------------------------------------- */

static void source_perf_push(struct source_perf *s,
			     const struct perfids_record *r)
{
	struct perfids_record *copy = malloc(sizeof(*copy));

	if (!copy) {
		s->opts.in->nomem++;
		return;
	}
	*copy = *r;
	/* As if perf had dropped it: ended processes are searched. */
	if (pump_push(s->opts.in->pump, PUMP_LIFECYCLE, r->time, copy,
		      sizeof(*copy)))
		s->gaps = UINT64_MAX;
}

static void source_perf_task(struct source_perf *s,
			     const struct perfsource_record *r)
{
	static const enum perfids_kind kinds[] = {
		[PERFSOURCE_EXEC] = PERFIDS_EXEC,
		[PERFSOURCE_COMM] = PERFIDS_COMM,
		[PERFSOURCE_FORK] = PERFIDS_FORK,
		[PERFSOURCE_EXIT] = PERFIDS_EXIT,
	};
	struct perfids_record life = {
		.kind = kinds[r->kind],
		.pid = r->pid,
		.tid = r->tid,
		.ppid = r->ppid,
		.ptid = r->ptid,
		.time = r->time,
	};

	memcpy(life.comm, r->comm, sizeof(life.comm));
	source_perf_push(s, &life);
}

static void source_perf_take(struct source_perf *s,
			     const struct perfsource_record *r)
{
	struct abi_sample *rec;
	size_t size;

	if (!s->begin || r->time < s->begin)
		return;
	size = perfsource_sample_size(r);
	rec = intake_take(s->opts.in, size);
	if (!rec)
		return;
	perfsource_sample_build(r, rec);
	pump_push(s->opts.in->pump, PUMP_SAMPLE, r->time, rec, size);
}

static void source_perf_want(void *arg, uint32_t pid)
{
	struct source_perf *s = arg;

	if (s->nwants < SOURCE_PERF_WANTS)
		s->wants[s->nwants++].pid = pid;
}

static void source_perf_record(void *arg, const struct perfsource_record *r)
{
	struct source_perf *s = arg;

	switch (r->kind) {
	case PERFSOURCE_SAMPLE:
		source_perf_take(s, r);
		break;
	case PERFSOURCE_EXEC:
		source_perf_task(s, r);
		intake_map(s->opts.in, &r->map);
		source_perf_want(s, r->pid);
		break;
	case PERFSOURCE_MAP:
	case PERFSOURCE_LOST:
		intake_map(s->opts.in, &r->map);
		break;
	case PERFSOURCE_COMM:
	case PERFSOURCE_FORK:
	case PERFSOURCE_EXIT:
		source_perf_task(s, r);
		break;
	case PERFSOURCE_THROTTLE:
	case PERFSOURCE_OTHER:
		break;
	}
}

/*
 * Takes over what was read of a process; nothing, if it ended. The scan needs a
 * process that does not answer, too: it then has only its owner.
 */
static int source_perf_push_proc(struct source_perf *s, enum perfids_kind kind,
				 const struct perfsource_reading *from)
{
	struct perfids_record *r;

	if (!from->out)
		return from->err == -ENOMEM ? from->err : 0;
	r = (struct perfids_record *)((char *)from->out - sizeof(*r));
	if (from->err && kind == PERFIDS_READ) {
		free(r);
		return 0;
	}
	memset(r, 0, sizeof(*r));
	r->kind = kind;
	r->pid = r->tid = from->pid;
	/* A reading counts from its end, the scan from before all records. */
	r->time = kind == PERFIDS_SCAN ? s->snapshot : clock_boottime_ns();
	r->proc = from->out;
	if (from->err)
		from->out->stat.start = r->time;
	return pump_push(s->opts.in->pump, PUMP_LIFECYCLE, r->time, r,
			 sizeof(*r));
}

/* At most PERFSOURCE_READINGS_MAX. */
static int source_perf_read(struct source_perf *s, enum perfids_kind kind,
			    struct perfsource_reading *readings, size_t n)
{
	int err, first = 0;
	size_t i;

	if (!n)
		return 0;
	perfsource_reader_run(&s->reader, "/proc", readings, n,
			      sizeof(struct perfids_record));
	for (i = 0; i < n; i++) {
		err = source_perf_push_proc(s, kind, &readings[i]);
		if (err && kind == PERFIDS_READ)
			s->opts.in->nomem++;
		first = first ? first : err;
	}
	return first;
}

static bool source_perf_drain(void *state, uint64_t now)
{
	struct source_perf *s = state;
	uint64_t mark;

	perfsource_poll(s->source);
	source_perf_read(s, PERFIDS_READ, s->wants, s->nwants);
	s->nwants = 0;
	mark = MIN(perfsource_watermark(s->source), clock_boottime_ns());
	intake_watermark(s->opts.in, PUMP_SAMPLE, mark);
	intake_watermark(s->opts.in, PUMP_MAPPING, mark);
	intake_watermark(s->opts.in, PUMP_LIFECYCLE, mark);
	return false;
}

static size_t source_perf_polls(void *state, struct source_poll *out)
{
	struct source_perf *s = state;

	out[0] = (struct source_poll){ .what = "samples",
				       .fd = perfsource_epoll_fd(s->source) };
	return 1;
}

/* --- out of the pump ------------------------------------------------------ */

static void source_perf_process(void *arg, const struct quark_process *qp,
				uint64_t time)
{
	struct source_perf *s = arg;

	pm_scan_process(s->opts.pm, qp, time);
}

static void source_perf_life(void *state, const void *rec)
{
	struct source_perf *s = state;

	if (perfids_feed(s->ids, rec))
		s->opts.in->nomem++;
}

static void source_perf_mapped(void *state, const struct pm_map_event *ev)
{
	struct source_perf *s = state;

	perfids_mapped(s->ids, ev);
}

static bool source_perf_sample(void *state, struct abi_sample *rec)
{
	struct source_perf *s = state;

	if (perfids_sample(s->ids, rec)) {
		s->opts.in->nomem++;
		return false;
	}
	if (rec->flags & ABI_SAMPLE_EXEC)
		perfsource_count_exec(s->source, rec->cpu);
	return true;
}

/* --- the scan ------------------------------------------------------------- */

/* Its user is charged for the time that a reading takes. */
static int source_perf_add_pid(void *arg, uint32_t pid)
{
	struct stat st;
	char path[32];

	snprintf(path, sizeof(path), "/proc/%u", pid);
	return rescan_add(arg, pid, stat(path, &st) ? 0 : st.st_uid);
}

static int source_perf_list(struct source_perf *s, struct rescan_list *list)
{
	struct perfsource_stats st;
	size_t i;
	int err = 0;

	perfsource_get_stats(s->source, &st);
	if (st.host)
		return procfs_numbers("/proc", source_perf_add_pid, list);
	for (i = 0; !err && i < s->opts.npids; i++)
		err = source_perf_add_pid(list, s->opts.pids[i]);
	return err;
}

static int source_perf_processes(struct source_perf *s,
				 const struct rescan_list *list)
{
	struct perfsource_reading readings[PERFSOURCE_READINGS_MAX];
	size_t i, n = 0;
	int err = 0;

	for (i = 0; !err && i < list->n; i++) {
		readings[n++].pid = list->items[i].tgid;
		if (n < ARRAY_SIZE(readings) && i + 1 < list->n)
			continue;
		err = source_perf_read(s, PERFIDS_SCAN, readings, n);
		n = 0;
	}
	return err;
}

static int source_perf_scan(struct source_perf *s)
{
	struct rescan_list list = { 0 };
	int err = source_perf_list(s, &list);

	if (!err)
		err = source_perf_processes(s, &list);
	if (!err)
		rescan_maps(s->opts.rescan, &list);
	free(list.items);
	/* The processes to be recorded must be known when this returns. */
	while (!err && s->opts.in->passed <= s->snapshot) {
		s->opts.drain(s->opts.arg);
		usleep(500);
	}
	return err;
}

static int source_perf_begin(void *state, const char **what)
{
	struct source_perf *s = state;
	int err;

	*what = "memory for the scan of processes";
	err = source_perf_scan(s);
	if (!err)
		s->begin = s->opts.started(s->opts.arg);
	s->opts.pids = NULL; /* were borrowed */
	s->opts.npids = 0;
	return err;
}

/* --- and besides ---------------------------------------------------------- */

static void source_perf_note(void *state, char *buf, size_t size)
{
	struct source_perf *s = state;
	struct perfsource_stats st;

	perfsource_get_stats(s->source, &st);
	snprintf(buf, size,
		 "perf events: %s%s, stacks up to %zu bytes; process ids are "
		 "not those of a BPF run",
		 st.kernel ? "" : "user code of ",
		 st.host ? "the whole host" : "what was asked for only",
		 st.stack_copy);
}

static int source_perf_open(void **statep, const struct source_opts *opts,
			    const char **what)
{
	struct source_perf *s = calloc(1, sizeof(*s));
	struct perfids_opts io = { .event = opts->event,
				   .event_arg = opts->arg,
				   .process = source_perf_process,
				   .want = source_perf_want,
				   .arg = s };
	struct perfsource_opts so = { .freq_hz = opts->freq_hz,
				      .stack_copy = opts->stack_copy,
				      .rings_bytes = opts->ring_size,
				      .pids = opts->pids,
				      .npids = opts->npids,
				      .until_exec = opts->until_exec,
				      .record = source_perf_record,
				      .arg = s };
	int err;

	*what = "memory";
	if (!s)
		return -ENOMEM;
	s->opts = *opts;
	*statep = s;
	err = perfids_new(&s->ids, &io);
	if (err)
		return err;
	err = perfsource_new(&s->source, &so, what);
	if (err)
		return err;
	s->snapshot = clock_boottime_ns();
	*what = "sampling";
	return perfsource_enable(s->source);
}

static void source_perf_close(void *state)
{
	struct source_perf *s = state;

	perfsource_free(s->source);
	perfids_free(s->ids);
	perfsource_reader_fini(&s->reader);
	free(s);
}

static void source_perf_end(void *state)
{
	struct source_perf *s = state;

	perfsource_disable(s->source);
}

/* The EXIT of the process may have been dropped. */
static void source_perf_check(void *arg, uint32_t pid)
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
		source_perf_push(arg, &gone);
}

static int source_perf_second(void *state)
{
	struct source_perf *s = state;
	struct perfsource_stats st;
	uint64_t before = s->gaps;

	perfsource_get_stats(s->source, &st);
	s->gaps = st.gaps;
	if (st.gaps != before)
		perfids_living(s->ids, source_perf_check, s);
	return perfsource_hotplug(s->source);
}

static int source_perf_cpu_stats(void *state, struct sampler_cpu_stats *out,
				 size_t n)
{
	struct source_perf *s = state;

	return perfsource_cpu_stats(s->source, out, n);
}

/* Lost perf records may be of any kind: samples, as far as is known. */
static void source_perf_stats(void *state, struct source_stats *out)
{
	struct source_perf *s = state;

	memset(out, 0, sizeof(*out));
	perfsource_get_stats(s->source, &out->perf);
	out->side.records = out->perf.records;
	out->side.bad = out->perf.bad;
	out->life.unread = s->reader.unread;
}

const struct source_row source_perf = {
	.name = "perf",
	.often = true,
	.explain = privilege_explain_perf,
	.open = source_perf_open,
	.begin = source_perf_begin,
	.end = source_perf_end,
	.close = source_perf_close,
	.polls = source_perf_polls,
	.drain = source_perf_drain,
	.second = source_perf_second,
	.life = source_perf_life,
	.mapped = source_perf_mapped,
	.sample = source_perf_sample,
	.drop = free,
	.cpu_stats = source_perf_cpu_stats,
	.stats = source_perf_stats,
	.note = source_perf_note,
};
