// SPDX-License-Identifier: Apache-2.0
/*
 * source_bpf: the BPF source: samples by the sampler, mapping records by the
 * side-band, lifecycle events by libquark. All three are attached before the
 * scan begins, so that they report what changes during it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/libbpf.h>
#include <uv.h>

#include "base/base.h"
#include "base/perfring.h"
#include "profiler/openfiles.h"
#include "profiler/privilege.h"
#include "profiler/rescan/rescan.h"
#include "profiler/source/intake.h"
#include "profiler/source/source.h"

/* Interval of drains while something happens. */
#define SOURCE_BPF_GONE_MS 100
/* Renames and moves a second and task: more than any program needs. */
#define SOURCE_BPF_REPEATS 10
/* After so many bytes of events the pump delivers what it can. */
#define SOURCE_BPF_SLICE (2 << 20)
/* After this time the other streams are drained before more events. */
#define SOURCE_BPF_TURN_NS (50 * CLOCK_NSEC_PER_MSEC)
#define SOURCE_BPF_TURN_EVENTS 256 /* between two readings of the clock */
/*
 * After so long processes have to show again that they have code without rows, or are of
 * Go: those that did may have ended, and others have their pids.
 */
#define SOURCE_BPF_CODE_SECONDS 600
/* After so many lifecycle records all rings are drained. */
#define SOURCE_BPF_AHEAD 4096

struct source_bpf {
	struct source_opts opts;
	struct sampler *sampler;
	struct sideband *sideband;
	struct quark_queue quark;
	bool quark_open;
	uint64_t snapshot; /* quark's snapshot is not older */
	unsigned int seconds;
	int ahead; /* lifecycle records read since the last drain */
};

/* --- open and close ------------------------------------------------------- */

static void source_bpf_new_file(void *arg, const struct quark_new_file *file)
{
	struct source_bpf *s = arg;

	pm_new_file(s->opts.pm, file);
}

static void source_bpf_attr(struct source_bpf *s, struct quark_queue_attr *attr,
			    size_t ring_size)
{
	quark_queue_default_attr(attr);
	attr->flags = QQ_EBPF | QQ_NO_AGG | QQ_ENTRY_LEADER;
	attr->hold_time = 0;
	/* Ended processes are not looked up; warm memory is reused. */
	attr->reap_grace_time = attr->cache_grace_time;
	attr->cache_grace_time = SOURCE_BPF_GONE_MS;
	attr->max_env = 0;
	attr->max_length = 1 << 20;
	attr->ring_bytes = ring_size / 4;
	attr->no_wakeup = 1;
	attr->repeat_limit = SOURCE_BPF_REPEATS;
	attr->new_file = source_bpf_new_file;
	attr->new_file_arg = s;
}

/* The work of a separate thread at the start. */
struct source_bpf_loading {
	struct source_bpf *s;
	uv_thread_t thread;
	const char *what;
	int err;
};

static void source_bpf_load_sampler(void *arg)
{
	struct source_bpf_loading *l = arg;
	const struct source_opts *opts = &l->s->opts;
	struct sampler_opts samp = {
		.freq_hz = opts->freq_hz,
		.stack_copy = opts->stack_copy,
		.ring_bytes = perfring_size(1, opts->ring_size / 2),
		.sample = intake_sample,
		.module = intake_module,
		.arg = opts->in,
	};

	l->err = sampler_new(&l->s->sampler, &samp, &l->what);
}

/* Without room for a mapping, others of its process are dropped, too. */
static void source_bpf_map(void *arg, const struct pm_map_event *ev)
{
	struct source_bpf *s = arg;

	if (intake_map_try(s->opts.in, ev))
		sideband_no_room(s->sideband, ev);
}

static int source_bpf_mark(void *arg, unsigned int cpu, int fd)
{
	struct source_bpf *s = arg;

	return quark_queue_mark_execs(&s->quark, cpu, fd) ? -errno : 0;
}

static int source_bpf_open_quark(struct source_bpf *s, const char **what)
{
	struct sideband_opts side = { .rings_bytes = s->opts.ring_size / 4,
				      .rings_max = s->opts.ring_size,
				      .map = source_bpf_map,
				      .mark = source_bpf_mark,
				      .arg = s };
	struct quark_queue_attr attr;
	int err;

	err = sideband_new(&s->sideband, &side, what);
	if (err)
		return err;
	source_bpf_attr(s, &attr, s->opts.ring_size);
	s->snapshot = clock_boottime_ns();
	if (quark_queue_open(&s->quark, &attr)) {
		err = -errno;
		*what = quark_queue_open_error();
		return err;
	}
	s->quark_open = true;
	/* Images of earlier execs are read by the scan, later. */
	*what = "marks of execs in the mapping stream";
	err = sideband_mark(s->sideband);
	if (err)
		return err;
	/* Processes that ended before are not in the snapshot. */
	pm_begin(s->opts.pm, clock_boottime_ns());
	return 0;
}

/*
 * The two BPF objects are independent, and loading one takes some fifty
 * milliseconds (the kernel's BTF, relocations, the verifier): so a thread loads
 * the sampler. libbpf's print function is common to all threads.
 */
static int source_bpf_load(struct source_bpf *s, const char **what)
{
	struct source_bpf_loading l = { .s = s };
	libbpf_print_fn_t print = libbpf_set_print(NULL);
	int err, ret;

	err = uv_thread_create(&l.thread, source_bpf_load_sampler, &l);
	*what = "thread";
	if (err)
		goto out;
	ret = source_bpf_open_quark(s, what);
	uv_thread_join(&l.thread);
	err = l.err ? l.err : ret;
	if (l.err)
		*what = l.what;
out:
	libbpf_set_print(print);
	return err;
}

static int source_bpf_open(void **statep, const struct source_opts *opts,
			   const char **what)
{
	struct source_bpf *s = calloc(1, sizeof(*s));

	*what = "memory";
	if (!s)
		return -ENOMEM;
	s->opts = *opts;
	*statep = s;
	return source_bpf_load(s, what);
}

static int source_bpf_begin(void *state, const char **what)
{
	struct source_bpf *s = state;
	uint64_t begin;
	int err;

	*what = "sampling";
	begin = s->opts.started(s->opts.arg);
	err = sampler_enable(s->sampler);
	if (err)
		return err;
	*what = "memory for the scan of processes";
	return rescan_first(s->opts.rescan, &s->quark, s->snapshot, begin);
}

static void source_bpf_end(void *state)
{
	struct source_bpf *s = state;

	sampler_disable(s->sampler);
}

static void source_bpf_close(void *state)
{
	struct source_bpf *s = state;

	sampler_free(s->sampler);
	sideband_free(s->sideband);
	if (s->quark_open)
		quark_queue_close(&s->quark);
	free(s);
}

/* --- into the pump -------------------------------------------------------- */

/* The ring is half full, or a new file was executed, which is opened here. */
static enum source_urgency source_bpf_quark_readable(void *state)
{
	struct source_bpf *s = state;
	int n = quark_queue_populate(&s->quark);

	s->ahead += MAX(n, 0);
	return n < 0 || s->ahead >= SOURCE_BPF_AHEAD ? SOURCE_NOW
						     : SOURCE_LATER;
}

/* The ring needs room at once; the pump, soon. */
static enum source_urgency source_bpf_sideband_readable(void *state)
{
	struct source_bpf *s = state;

	sideband_poll(s->sideband);
	return SOURCE_DUE;
}

/* In order of time it is delivered later, with the other streams. */
static enum source_urgency source_bpf_modules_readable(void *state)
{
	struct source_bpf *s = state;

	sampler_modules(s->sampler);
	return SOURCE_LATER;
}

static size_t source_bpf_polls(void *state, struct source_poll *out)
{
	struct source_bpf *s = state;

	out[0] = (struct source_poll){ .what = "samples",
				       .fd = sampler_epoll_fd(s->sampler) };
	out[1] = (struct source_poll){
		.what = "lifecycle events",
		.fd = quark_queue_get_epollfd(&s->quark),
		.readable = source_bpf_quark_readable,
		.often = true,
	};
	out[2] = (struct source_poll){
		.what = "mapping records",
		.fd = sideband_epoll_fd(s->sideband),
		.readable = source_bpf_sideband_readable,
	};
	out[3] = (struct source_poll){
		.what = "kernel modules",
		.fd = sampler_modules_fd(s->sampler),
		.readable = source_bpf_modules_readable,
	};
	return out[3].fd < 0 ? 3 : 4;
}

/*
 * libquark's cache has events that could not be pushed, so the process manager
 * is compared with it. The gap is applied immediately, as a loss of mappings
 * is.
 */
static void source_bpf_events_lost(struct source_bpf *s,
				   struct quark_event *gap)
{
	if (!gap->gap_lost)
		return;
	gap->events = QUARK_EV_GAP;
	gap->boottime = gap->gap_to;
	s->opts.event(s->opts.arg, gap);
	rescan_events_lost(s->opts.rescan);
}

static void source_bpf_life_watermark(struct source_bpf *s)
{
	intake_watermark(s->opts.in, PUMP_LIFECYCLE,
			 quark_queue_watermark(&s->quark));
}

/*
 * The events of a full ring take several times its size, since each has all
 * data of its process: so the pump delivers in between. True: more is left.
 */
static bool source_bpf_drain_life(struct source_bpf *s)
{
	struct quark_event gap = { .gap_from = UINT64_MAX };
	uint64_t end = clock_awake_ns() + SOURCE_BPF_TURN_NS;
	const struct quark_event *ev;
	size_t pushed = 0, n = 0;
	bool more = false;
	ssize_t size;

	while (!more && (ev = quark_queue_get_event(&s->quark))) {
		more = ++n % SOURCE_BPF_TURN_EVENTS == 0 &&
		       clock_awake_ns() >= end;
		size = intake_event(s->opts.in, ev);
		if (size < 0) {
			gap.gap_from = MIN(gap.gap_from, ev->boottime);
			gap.gap_to = MAX(gap.gap_to, ev->boottime);
			gap.gap_kinds |= ev->events;
			gap.gap_lost++;
			continue;
		}
		pushed += size;
		if (pushed < SOURCE_BPF_SLICE)
			continue;
		pushed = 0;
		source_bpf_life_watermark(s);
		pump_run(s->opts.in->pump);
	}
	source_bpf_events_lost(s, &gap);
	source_bpf_life_watermark(s);
	return more;
}

/*
 * The sampler first: the other two streams are then drained after its last
 * sample, so fewer samples wait in the pump.
 */
static bool source_bpf_drain(void *state, uint64_t now)
{
	struct source_bpf *s = state;
	bool more;

	s->ahead = 0;
	sampler_poll(s->sampler);
	sampler_modules(s->sampler);
	sideband_poll(s->sideband);
	intake_watermark(s->opts.in, PUMP_SAMPLE,
			 sampler_watermark(s->sampler));
	intake_watermark(s->opts.in, PUMP_MAPPING,
			 sideband_watermark(s->sideband));
	more = source_bpf_drain_life(s);
	rescan_check(s->opts.rescan, &s->quark, now);
	return more;
}

static int source_bpf_second(void *state)
{
	struct source_bpf *s = state;
	int err = sampler_hotplug(s->sampler);

	if (++s->seconds % SOURCE_BPF_CODE_SECONDS == 0)
		sampler_want_none(s->sampler);
	return err ? err : sideband_hotplug(s->sideband);
}

/* --- and besides ---------------------------------------------------------- */

static void source_bpf_want_code(void *state, uint32_t tgid)
{
	struct source_bpf *s = state;

	sampler_want_code(s->sampler, tgid);
}

static void source_bpf_want_go(void *state, uint32_t tgid,
			       const struct symbolizer_go *go)
{
	struct source_bpf *s = state;

	sampler_want_go(s->sampler, tgid, go->tls, go->curg);
}

/* Without room in the map a file is reported again at its next exec. */
static void source_bpf_known_file(void *state,
				  const struct quark_file_ident *ident,
				  bool known)
{
	struct source_bpf *s = state;

	if (!s->quark_open)
		return;
	if (known)
		quark_queue_know_file(&s->quark, ident);
	else
		quark_queue_forget_file(&s->quark, ident);
}

static void source_bpf_go_file(void *state,
			       const struct quark_file_ident *ident,
			       const struct symbolizer_go *go)
{
	static const struct symbolizer_go none;
	struct source_bpf *s = state;

	if (!go)
		go = &none;
	if (s->sampler)
		sampler_go_file(s->sampler, ident, go->tls, go->curg);
}

static int source_bpf_trace_slot(void *state, uint32_t tgid,
				 const struct abi_trace_slot *slot)
{
	struct source_bpf *s = state;

	return sampler_trace_slot(s->sampler, tgid, slot);
}

static int source_bpf_cpu_stats(void *state, struct sampler_cpu_stats *out,
				size_t n)
{
	struct source_bpf *s = state;

	return sampler_get_stats(s->sampler, out, n);
}

static void source_bpf_stats(void *state, struct source_stats *out)
{
	struct source_bpf *s = state;

	memset(out, 0, sizeof(*out));
	quark_queue_get_stats(&s->quark, &out->life);
	sideband_get_stats(s->sideband, &out->side);
}

const struct source_row source_bpf = {
	.name = "bpf",
	.title = "BPF",
	.files = openfiles_least,
	.explain = privilege_explain,
	.open = source_bpf_open,
	.begin = source_bpf_begin,
	.end = source_bpf_end,
	.close = source_bpf_close,
	.polls = source_bpf_polls,
	.drain = source_bpf_drain,
	.second = source_bpf_second,
	.drop = vault_give,
	.want_code = source_bpf_want_code,
	.want_go = source_bpf_want_go,
	.known_file = source_bpf_known_file,
	.go_file = source_bpf_go_file,
	.trace_slot = source_bpf_trace_slot,
	.cpu_stats = source_bpf_cpu_stats,
	.stats = source_bpf_stats,
};
