// SPDX-License-Identifier: Apache-2.0
/*
 * sampler: see profiler/source/sampler.h. One software clock event on each CPU,
 * all with the one program; and the number of samples to expect, since the
 * programs of another tool can silence this one without a trace.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "base/base.h"
#include "bpf/sampler.skel.h"
#include "profiler/source/procstat.h"
#include "profiler/source/ringset.h"
#include "profiler/source/sampler.h"

#define SAMPLER_STACK_COPY (64 * 1024)
#define SAMPLER_RING_BYTES (8 * 1024 * 1024)

struct sampler_cpu {
	int event; /* the clock, -1: offline */
	int link; /* the program on it */
	bool counting; /* busy time since 'base' counts */
	bool counted; /* ... or did, up to 'now' */
	uint64_t base; /* busy ticks of the CPU when sampling began */
	uint64_t now; /* ... and when they were read last */
	uint64_t before; /* busy ticks of earlier times it was online */
};

struct sampler {
	struct sampler_bpf *skel;
	struct ring *ring;
	struct ring *modules; /* or NULL */
	void (*sample)(void *arg, const struct abi_sample *rec, size_t len);
	void (*module)(void *arg, const struct abi_module *rec);
	void *arg;
	unsigned int freq_hz;
	bool enabled;
	bool blind; /* /proc/stat cannot be read */
	struct cpus possible; /* the kernel's per-CPU values are of these */
	size_t ncpus; /* the highest number of them + 1 */
	struct sampler_cpu *cpus; /* by number, like the scratch */
	uint64_t *busy;
	uint64_t *values;
};

static int sampler_record(void *arg, void *data, size_t len)
{
	struct sampler *s = arg;

	if (len >= sizeof(struct abi_sample))
		s->sample(s->arg, data, len);
	return 0;
}

static int sampler_module(void *arg, void *data, size_t len)
{
	struct sampler *s = arg;

	if (len >= sizeof(struct abi_module))
		s->module(s->arg, data);
	return 0;
}

static void sampler_cpu_stop(struct sampler_cpu *c)
{
	if (c->counting)
		c->before += c->now - c->base;
	c->counting = false;
}

static void sampler_cpu_close(struct sampler_cpu *c)
{
	if (c->link >= 0)
		close(c->link);
	if (c->event >= 0)
		close(c->event);
	c->link = c->event = -1;
	sampler_cpu_stop(c);
}

static int sampler_event_open(const struct sampler *s, unsigned int cpu)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_freq = s->freq_hz,
		.freq = 1,
		.read_format = PERFRING_READ_FORMAT,
		.disabled = 1,
		.exclude_idle = 1,
	};

	return perfring_event(&attr, -1, cpu);
}

/* Not by bpf_program__attach_perf_event(), which enables the event at once. */
static int sampler_cpu_open(void *arg, unsigned int cpu, const char **what)
{
	struct sampler *s = arg;
	int prog = bpf_program__fd(s->skel->progs.sampler_tick);
	struct sampler_cpu *c = &s->cpus[cpu];

	c->event = sampler_event_open(s, cpu);
	if (c->event < 0) {
		*what = "perf_event_open of the CPU clock";
		return c->event;
	}
	c->link = bpf_link_create(prog, c->event, BPF_PERF_EVENT, NULL);
	if (c->link < 0) {
		*what = "attaching the sampling program";
		return c->link;
	}
	return 0;
}

/*
 * Busy time counts from now on; or from where it ended when the CPU went
 * offline: what ran since it came back was not sampled, and is missed. busy 0:
 * it is not listed.
 */
static void sampler_cpu_count(struct sampler_cpu *c, uint64_t busy)
{
	if (!busy)
		return;
	c->base = c->counted ? c->now : busy;
	c->now = MAX(c->base, busy);
	c->counting = c->counted = true;
}

static int sampler_cpu_start(struct sampler *s, unsigned int cpu)
{
	struct sampler_cpu *c = &s->cpus[cpu];

	if (ioctl(c->event, PERF_EVENT_IOC_ENABLE, 0))
		return -errno;
	if (!s->blind)
		sampler_cpu_count(c, s->busy[cpu]);
	return 0;
}

/* Without libbpf's messages. */
static int sampler_load(struct sampler *s, const struct sampler_opts *opts,
			const char **what)
{
	libbpf_print_fn_t print = libbpf_set_print(NULL);
	size_t deep = opts->stack_copy ? opts->stack_copy : ABI_STACK_COPY_MAX;
	size_t ring = opts->ring_bytes ? opts->ring_bytes : SAMPLER_RING_BYTES;
	int err;

	*what = "opening the sampling program";
	s->skel = sampler_bpf__open();
	if (!s->skel) {
		err = -errno;
		goto out;
	}
	deep = MIN(deep, ABI_STACK_COPY_MAX) & ~(size_t)(ABI_STACK_ALIGN - 1);
	s->skel->rodata->deep_cap = deep;
	s->skel->rodata->stack_cap =
		opts->stack_copy ? deep : SAMPLER_STACK_COPY;
	*what = "size of the sample ring";
	err = -EINVAL; /* libbpf would round it up */
	if (ring & (ring - 1) || ring % sysconf(_SC_PAGESIZE) ||
	    ring > INT32_MAX)
		goto out;
	err = bpf_map__set_max_entries(s->skel->maps.samples, ring);
	if (err)
		goto out;
	*what = "loading the sampling program";
	err = sampler_bpf__load(s->skel);
out:
	libbpf_set_print(print);
	return err;
}

static int sampler_alloc(struct sampler *s, const char **what)
{
	size_t i, n;
	int err;

	*what = "/sys/devices/system/cpu/possible";
	err = cpus_possible(&s->possible);
	if (err)
		return err;
	*what = "memory";
	n = s->possible.n;
	s->cpus = calloc(n, sizeof(*s->cpus));
	s->busy = calloc(n, sizeof(*s->busy));
	s->values = calloc(n, sizeof(*s->values));
	if (!s->cpus || !s->busy || !s->values)
		return -ENOMEM;
	s->ncpus = n;
	for (i = 0; i < s->ncpus; i++)
		s->cpus[i].event = s->cpus[i].link = -1;
	return 0;
}

/* Names of modules are found without it, if later: so errors do not matter. */
static void sampler_watch_modules(struct sampler *s)
{
	struct sampler_bpf *skel = s->skel;

	skel->links.sampler_module_load = bpf_program__attach_raw_tracepoint(
		skel->progs.sampler_module_load, "module_load");
	skel->links.sampler_module_free = bpf_program__attach_raw_tracepoint(
		skel->progs.sampler_module_free, "module_free");
	if (skel->links.sampler_module_load && skel->links.sampler_module_free)
		ring_new(&s->modules, bpf_map__fd(skel->maps.modules),
			 sampler_module, s);
}

int sampler_new(struct sampler **sp, const struct sampler_opts *opts,
		const char **what)
{
	struct sampler *s = calloc(1, sizeof(*s));
	int err;

	*what = "memory";
	if (!s)
		return -ENOMEM;
	s->sample = opts->sample;
	s->module = opts->module;
	s->arg = opts->arg;
	s->freq_hz = opts->freq_hz;
	err = sampler_alloc(s, what);
	if (!err)
		err = sampler_load(s, opts, what);
	if (!err)
		err = ringset_online(s->ncpus, sampler_cpu_open, s, what);
	if (!err) {
		*what = "mapping the sample ring";
		err = ring_new(&s->ring, bpf_map__fd(s->skel->maps.samples),
			       sampler_record, s);
	}
	if (!err && s->module)
		sampler_watch_modules(s);
	if (!err) /* without it processes of Go are found by a sample */
		s->skel->links.sampler_exec =
			bpf_program__attach(s->skel->progs.sampler_exec);
	if (err)
		sampler_free(s);
	else
		*sp = s;
	return err;
}

void sampler_free(struct sampler *s)
{
	size_t i;

	if (!s)
		return;
	for (i = 0; i < s->ncpus; i++)
		sampler_cpu_close(&s->cpus[i]);
	ring_free(s->modules);
	ring_free(s->ring);
	sampler_bpf__destroy(s->skel);
	free(s->values);
	free(s->busy);
	free(s->cpus);
	cpus_fini(&s->possible);
	free(s);
}

/* Busy ticks of every CPU that is online, 0 for the others. */
static void sampler_read_busy(struct sampler *s)
{
	struct sampler_cpu *c;
	size_t i;

	s->blind = procstat_read("/proc/stat", s->busy, s->ncpus) != 0;
	for (i = 0; !s->blind && i < s->ncpus; i++) {
		c = &s->cpus[i];
		if (c->counting && s->busy[i] > c->now)
			c->now = s->busy[i];
		else if (s->enabled && c->event >= 0 && !c->counting)
			sampler_cpu_count(c, s->busy[i]);
	}
}

int sampler_enable(struct sampler *s)
{
	int err = 0;
	size_t i;

	sampler_read_busy(s);
	s->enabled = true;
	for (i = 0; i < s->ncpus && !err; i++)
		if (s->cpus[i].event >= 0)
			err = sampler_cpu_start(s, i);
	if (err)
		sampler_disable(s);
	return err;
}

void sampler_disable(struct sampler *s)
{
	size_t i;

	s->enabled = false;
	for (i = 0; i < s->ncpus; i++)
		if (s->cpus[i].event >= 0)
			ioctl(s->cpus[i].event, PERF_EVENT_IOC_DISABLE, 0);
	sampler_read_busy(s);
	for (i = 0; i < s->ncpus; i++) {
		sampler_cpu_stop(&s->cpus[i]);
		s->cpus[i].counted = false;
	}
}

void sampler_want_code(struct sampler *s, uint32_t tgid)
{
	uint32_t bit = tgid % ABI_CODE_WANTED;

	s->skel->bss->code_wanted[bit / 64] |= 1ULL << bit % 64;
}

void sampler_want_none(struct sampler *s)
{
	memset(s->skel->bss->code_wanted, 0, sizeof(s->skel->bss->code_wanted));
	memset(s->skel->bss->go_wanted, 0, sizeof(s->skel->bss->go_wanted));
}

/* As in bpf/sampler/sampler_go.bpf.h. */
static uint32_t sampler_go_word(int32_t tls, int32_t curg)
{
	return (uint32_t)curg << 16 | (uint16_t)(tls / 8);
}

void sampler_want_go(struct sampler *s, uint32_t tgid, int32_t tls,
		     int32_t curg)
{
	s->skel->bss->go_wanted[tgid % ABI_GO_WANTED] =
		sampler_go_word(tls, curg);
}

void sampler_go_file(struct sampler *s, const struct quark_file_ident *file,
		     int32_t tls, int32_t curg)
{
	const struct abi_quark_file key = {
		.dev = (uint64_t)gnu_dev_major(file->dev) << 20 |
		       gnu_dev_minor(file->dev),
		.ino = file->ino,
		.ctime_ns = file->ctime_ns,
		.size = file->size,
	};
	uint32_t word = sampler_go_word(tls, curg);
	int fd = bpf_map__fd(s->skel->maps.go_files);

	if (tls)
		bpf_map_update_elem(fd, &key, &word, BPF_ANY);
	else
		bpf_map_delete_elem(fd, &key);
}

int sampler_poll(struct sampler *s)
{
	return ring_consume(s->ring);
}

uint64_t sampler_watermark(const struct sampler *s)
{
	return ring_watermark(s->ring);
}

int sampler_epoll_fd(const struct sampler *s)
{
	return ring_epoll_fd(s->ring);
}

int sampler_modules_fd(const struct sampler *s)
{
	return s->modules ? ring_epoll_fd(s->modules) : -1;
}

void sampler_modules(struct sampler *s)
{
	if (s->modules)
		ring_consume(s->modules);
}

int sampler_trace_slot(struct sampler *s, uint32_t tgid,
		       const struct abi_trace_slot *slot)
{
	int fd = bpf_map__fd(s->skel->maps.trace_slots);
	uint32_t *used = &s->skel->bss->trace_used;

	if (!slot) {
		if (!bpf_map_delete_elem(fd, &tgid))
			(*used)--;
		return 0;
	}
	if (!bpf_map_update_elem(fd, &tgid, slot, BPF_NOEXIST)) {
		(*used)++;
		return 0;
	}
	if (errno != EEXIST)
		return -errno;
	return bpf_map_update_elem(fd, &tgid, slot, BPF_EXIST) ? -errno : 0;
}

static int sampler_cpu_follow(struct sampler *s, unsigned int cpu, bool online)
{
	struct sampler_cpu *c = &s->cpus[cpu];
	const char *what;
	int err;

	if (c->event >= 0 &&
	    (!online || (s->enabled && perfring_silent(c->event))))
		sampler_cpu_close(c);
	if (c->event >= 0 || !online)
		return 0;
	err = sampler_cpu_open(s, cpu, &what);
	if (!err && s->enabled)
		err = sampler_cpu_start(s, cpu);
	if (err)
		sampler_cpu_close(c);
	return err == -ENODEV ? 0 : err; /* gone again */
}

int sampler_hotplug(struct sampler *s)
{
	int err, first = 0;
	struct cpus online;
	size_t i;

	err = cpus_online(&online);
	if (err)
		return err;
	sampler_read_busy(s);
	for (i = 0; i < s->ncpus; i++) {
		err = sampler_cpu_follow(s, i, cpus_has(&online, i));
		first = first ? first : err;
	}
	cpus_fini(&online);
	return first;
}

void sampler_expect(struct sampler_cpu_stats *st, uint64_t ticks,
		    unsigned int freq_hz)
{
	double came = st->counters[ABI_SAMPLER_TAKEN] +
		      st->counters[ABI_SAMPLER_RING_FULL];

	st->busy_s = (double)ticks / sysconf(_SC_CLK_TCK);
	st->expected = st->busy_s * freq_hz;
	st->missed = MAX(st->expected - came, 0);
}

int sampler_get_stats(struct sampler *s, struct sampler_cpu_stats *out,
		      size_t n)
{
	int fd = bpf_map__fd(s->skel->maps.counters);
	const struct sampler_cpu *c;
	size_t i, v;
	uint32_t key;

	if (!n)
		return s->ncpus;
	sampler_read_busy(s);
	n = MIN(n, s->ncpus);
	memset(out, 0, n * sizeof(*out));
	for (key = 0; key < ABI_SAMPLER_COUNTER_MAX; key++) {
		if (bpf_map_lookup_elem(fd, &key, s->values))
			return -errno;
		/* One for each possible CPU; their numbers may have gaps. */
		for (i = v = 0; i < n; i++)
			if (cpus_has(&s->possible, i))
				out[i].counters[key] = s->values[v++];
	}
	for (i = 0; i < n; i++) {
		c = &s->cpus[i];
		out[i].cpu = i;
		out[i].online = c->event >= 0;
		sampler_expect(&out[i],
			       c->before + (c->counting ? c->now - c->base : 0),
			       s->freq_hz);
	}
	return s->ncpus;
}
