// SPDX-License-Identifier: Apache-2.0
/*
 * What ids of traces cost. In the sampling program, ns a sample: without any entry, with one
 * of another process, and with entries of the sampled processes in the static and the
 * dynamic model, and with a library that can be unloaded. "warm" is at a high rate over a
 * small program, "cold" at the usual rate over the same; "empty" over one that displaces all
 * caches between two samples. What the
 * programs themselves lose is their loops a CPU second. The states take turns over the same
 * processes, so each is compared with none in the same round. Then, in user space, CPU time
 * to find the slot of a process, and of a file. JSON lines.
 *
 * For bench_trace.sh:
 *	bench_trace writer MS	publishes a context, and works until it is killed; its ids
 *				change each MS ms, with 0 there are none
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "profiler/source/sampler.h"
#include "profiler/tracing/find.h"
#include "symbolize/elf/slot.h"
#include "tests/bench/tick.h"
#include "tracehandler/record.h"

#define CHILDREN_MAX 64
#define ROUNDS_MAX 64
#define FINDS 1001
#define COLD_BYTES (64U << 20) /* more than a cache of the third level has */

struct record {
	uint8_t trace_id[16], span_id[8];
	uint8_t valid, flags;
	uint16_t attrs_size;
} __attribute__((packed, aligned(2)));

/* In .dynsym, by -rdynamic. */
__thread struct record *otel_thread_ctx_v1
	__attribute__((visibility("default")));

static struct record records[2];
static volatile uint64_t sink;

/* How often each child has looped; shared with them. */
static volatile uint64_t *loops;

/* Of the loader, for a library that it may unload. */
static volatile uint64_t guard_words[2];

enum state {
	STATE_NONE,
	STATE_OTHER,
	STATE_STATIC,
	STATE_DYNAMIC,
	STATE_UNLOADABLE,
	N_STATES
};

static const char *const state_names[N_STATES] = {
	"none", "other process", "static", "dynamic", "dynamic, unloadable",
};

static void writes_ids(volatile uint64_t *n);
static void displaces_caches(volatile uint64_t *n);

/* 'budget': ns above none. */
static const struct setting {
	const char *name;
	unsigned int hz, slice_ms, rounds;
	void (*run)(volatile uint64_t *n);
	int budget;
} settings[] = {
	{ "warm", 4999, 200, 25, writes_ids, 350 },
	{ "cold", 99, 500, 40, writes_ids, 1000 },
	{ "empty", 99, 500, 40, displaces_caches, 1000 },
};

struct child {
	pid_t pid;
	struct abi_key key; /* of its last sample */
};

static struct {
	struct child children[CHILDREN_MAX];
	size_t n;
	uint64_t samples, with;
} seen;

static void die(const char *what, int err)
{
	fprintf(stderr, "bench_trace: %s: %s\n", what, strerror(err));
	exit(1);
}

static int compare(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static double median(const double *of, size_t n)
{
	double v[FINDS];

	memcpy(v, of, n * sizeof(*v));
	qsort(v, n, sizeof(*v), compare);
	return v[n / 2];
}

/* --- what is sampled ----------------------------------------------------------- */

static void set_ids(uint64_t i)
{
	struct record *r = &records[i % 2];
	/* As random ids, they cannot be compressed; W3C: not all zero. */
	uint64_t words[3] = { i * 0x9fb21c651e98df25u | 1 };

	words[1] = (words[0] ^ words[0] >> 31) * 0xd6e8feb86659fd93u;
	words[2] = (words[1] ^ words[1] >> 29) * 0xa0761d6478bd642fu;
	memcpy(r->trace_id, words, sizeof(r->trace_id));
	memcpy(r->span_id, &words[2], sizeof(r->span_id));
	r->valid = 1;
	*(struct record *volatile *)&otel_thread_ctx_v1 = r;
}

static void writes_ids(volatile uint64_t *n)
{
	for (uint64_t i = 0;; i++) {
		set_ids(i);
		(*n)++;
	}
}

static void displaces_caches(volatile uint64_t *n)
{
	volatile char *p = malloc(COLD_BYTES);

	if (!p)
		_exit(1);
	set_ids(1);
	for (;; (*n)++)
		for (size_t i = 0; i < COLD_BYTES; i += 64)
			p[i]++;
}

static void seen_sample(void *arg, const struct abi_sample *head, size_t len)
{
	struct trace_record r;

	for (size_t i = 0; i < seen.n; i++) {
		if (head->key.tgid != (uint32_t)seen.children[i].pid)
			continue;
		seen.children[i].key = head->key;
		seen.samples++;
		seen.with += !trace_record_parse(head, len, &r) && r.has_trace;
	}
}

static void children_start(const struct setting *set)
{
	long n = MIN(sysconf(_SC_NPROCESSORS_ONLN), CHILDREN_MAX);

	memset(&seen, 0, sizeof(seen));
	for (; seen.n < (size_t)n; seen.n++) {
		pid_t pid = fork();

		if (!pid) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			guard_words[0] = 1;
			set->run(&loops[seen.n * 8]);
		}
		seen.children[seen.n].pid = pid;
	}
}

/* Returns when each has a key. */
static void children_known(struct sampler *s)
{
	size_t known = 0;

	for (int i = 0; known < seen.n; i++) {
		if (i == 1000)
			die("samples of the children", ENODATA);
		usleep(10000);
		sampler_poll(s);
		known = 0;
		for (size_t k = 0; k < seen.n; k++)
			known += seen.children[k].key.tgid != 0;
	}
}

static void children_stop(void)
{
	for (size_t i = 0; i < seen.n; i++) {
		kill(seen.children[i].pid, SIGKILL);
		waitpid(seen.children[i].pid, NULL, 0);
	}
}

/* Loops a CPU second need both. */
static void children_spent(double *n, double *cpu_ns)
{
	struct timespec ts;
	clockid_t clock;

	*n = *cpu_ns = 0;
	for (size_t i = 0; i < seen.n; i++) {
		if (clock_getcpuclockid(seen.children[i].pid, &clock) ||
		    clock_gettime(clock, &ts))
			die("CPU time of a child", errno);
		*n += (double)loops[i * 8];
		*cpu_ns += (double)ts.tv_sec * CLOCK_NSEC_PER_SEC +
			   (double)ts.tv_nsec;
	}
}

/* --- entries of the sampling program ------------------------------------------- */

/* Of glibc: { -, - }, { block, - } ...; the program itself is module 1. */
static uint64_t module_block(void)
{
	uint64_t *dtv = ((uint64_t **)__builtin_thread_pointer())[1];

	return dtv[2];
}

static void entry_set(struct sampler *s, const struct abi_key *key,
		      enum state state)
{
	uint64_t at = (uintptr_t)&otel_thread_ctx_v1;
	struct abi_trace_slot e = {
		.start_boottime = key->start_boottime,
		.exec_id = key->exec_id,
		.offset = at - (uintptr_t)__builtin_thread_pointer(),
		.entry = 16,
	};
	int err;

	if (state >= STATE_DYNAMIC) {
		e.module = 1;
		e.offset = at - module_block();
	}
	if (state == STATE_UNLOADABLE) {
		e.guard = (uintptr_t)guard_words;
		e.guard_words = 2;
		e.words[0] = 1;
	}
	err = sampler_trace_slot(s, key->tgid, &e);
	if (err)
		die("an entry", -err);
}

static void entries_set(struct sampler *s, enum state state)
{
	const struct abi_key other = { .tgid = (uint32_t)getpid() };

	if (state == STATE_OTHER)
		entry_set(s, &other, STATE_STATIC);
	for (size_t i = 0; i < seen.n && state >= STATE_STATIC; i++)
		entry_set(s, &seen.children[i].key, state);
}

static void entries_remove(struct sampler *s)
{
	sampler_trace_slot(s, (uint32_t)getpid(), NULL);
	for (size_t i = 0; i < seen.n; i++)
		sampler_trace_slot(s, seen.children[i].key.tgid, NULL);
}

/* --- a sample ------------------------------------------------------------------ */

struct slice {
	double ns[N_STATES][ROUNDS_MAX]; /* a sample */
	double speed[N_STATES][ROUNDS_MAX]; /* loops a CPU second */
	uint64_t samples[N_STATES], with[N_STATES];
};

static void slice_run(struct sampler *s, int prog, const struct setting *set,
		      enum state state, double *ns, double *speed)
{
	double n[2], cpu[2];
	struct bpf_prog_info a, b;

	entries_set(s, state);
	usleep(20000);
	sampler_poll(s);
	seen.samples = seen.with = 0;
	children_spent(&n[0], &cpu[0]);
	if (tick_read(prog, &a))
		die("bpf statistics", errno);
	usleep(set->slice_ms * 1000);
	tick_read(prog, &b);
	children_spent(&n[1], &cpu[1]);
	sampler_poll(s);
	entries_remove(s);
	if (b.run_cnt == a.run_cnt || !seen.samples)
		die("samples of the children", ENODATA);
	*ns = (double)(b.run_time_ns - a.run_time_ns) /
	      (double)(b.run_cnt - a.run_cnt);
	*speed = (n[1] - n[0]) / (cpu[1] - cpu[0]) * CLOCK_NSEC_PER_SEC;
}

static void slices_print(const struct setting *set, const struct slice *sl)
{
	double above[ROUNDS_MAX], speed[ROUNDS_MAX];

	for (int k = 0; k < N_STATES; k++) {
		for (unsigned int r = 0; r < set->rounds; r++) {
			above[r] = sl->ns[k][r] - sl->ns[STATE_NONE][r];
			speed[r] = sl->speed[k][r] / sl->speed[STATE_NONE][r];
		}
		printf("{\"bench\":\"trace_bpf\",\"caches\":\"%s\","
		       "\"hz\":%u,\"entry\":\"%s\",\"value\":%.0f,"
		       "\"unit\":\"ns a sample\",\"above_none\":%.0f,"
		       "\"budget_above_none\":%d,"
		       "\"speed_of_program\":%.4f,\"samples\":%llu,"
		       "\"with_ids\":%.4f}\n",
		       set->name, set->hz, state_names[k],
		       median(sl->ns[k], set->rounds),
		       median(above, set->rounds),
		       k < STATE_STATIC ? 0 : set->budget,
		       median(speed, set->rounds),
		       (unsigned long long)sl->samples[k],
		       (double)sl->with[k] / (double)sl->samples[k]);
	}
}

static void bench_setting(const struct setting *set)
{
	static struct slice sl;
	const struct sampler_opts opts = {
		.freq_hz = set->hz,
		.sample = seen_sample,
	};
	uint32_t last = tick_last_program();
	struct bpf_prog_info info;
	struct sampler *s = NULL;
	const char *what = "";
	int err, prog;

	memset(&sl, 0, sizeof(sl));
	err = sampler_new(&s, &opts, &what);
	if (err)
		die(what, -err);
	prog = tick_find_program(last, &info);
	err = prog < 0 ? prog : sampler_enable(s);
	if (err)
		die("sampling", -err);
	children_start(set);
	children_known(s);
	for (unsigned int r = 0; r < set->rounds; r++) {
		for (unsigned int i = 0; i < N_STATES; i++) {
			enum state k = (r + i) % N_STATES;

			slice_run(s, prog, set, k, &sl.ns[k][r],
				  &sl.speed[k][r]);
			sl.samples[k] += seen.samples;
			sl.with[k] += seen.with;
		}
	}
	children_stop();
	slices_print(set, &sl);
	if (sl.with[STATE_UNLOADABLE] * 10 < sl.samples[STATE_UNLOADABLE] * 9)
		die("samples without ids", ENODATA);
	close(prog);
	sampler_free(s);
}

/* --- a slot -------------------------------------------------------------------- */

static void publish(void)
{
	int fd = memfd_create("OTEL_CTX", 0);
	void *p;

	if (fd < 0 || ftruncate(fd, 4096))
		die("memfd", errno);
	p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	if (p == MAP_FAILED || madvise(p, 4096, MADV_DONTFORK))
		die("a context", errno);
	close(fd);
}

static double cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (double)ts.tv_sec * CLOCK_NSEC_PER_SEC + (double)ts.tv_nsec;
}

/* A process whose context is behind so many mappings. */
static pid_t process_start(unsigned int mappings)
{
	int ready[2];
	char byte;
	pid_t pid;

	if (pipe(ready) || (pid = fork()) < 0)
		die("a process", errno);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		publish();
		for (unsigned int i = 0; i < mappings; i++)
			if (mmap(NULL, 4096, i % 2 ? PROT_READ : PROT_NONE,
				 MAP_PRIVATE | MAP_ANONYMOUS, -1,
				 0) == MAP_FAILED)
				_exit(1);
		if (write(ready[1], "", 1) == 1)
			pause();
		_exit(1);
	}
	close(ready[1]);
	if (read(ready[0], &byte, 1) != 1)
		die("a process", EIO);
	close(ready[0]);
	return pid;
}

static void bench_find(unsigned int mappings, bool dynamic)
{
	static uint64_t words[2];
	struct tracing_find f = { .slot.model = SYMBOLIZER_SLOT_EXEC };
	static double ns[FINDS];
	struct procfs_stat st;
	pid_t pid;
	int dir;

	words[0] = 1;
	words[1] = (uintptr_t)&otel_thread_ctx_v1 - module_block();
	if (dynamic)
		f.slot = (struct symbolizer_slot){
			.model = SYMBOLIZER_SLOT_MODULE,
			.pair = true,
			.where = (uintptr_t)words,
		};
	pid = process_start(mappings);
	dir = procfs_open((uint32_t)pid);
	if (dir < 0 || !procfs_stat_at(dir, &st))
		die("a process", EIO);
	close(dir);
	f.key.tgid = (uint32_t)pid;
	f.key.start_boottime = st.start;
	for (int i = 0; i < FINDS; i++) {
		double begin = cpu_ns();

		tracing_find(&f);
		ns[i] = cpu_ns() - begin;
		if (f.found != TRACING_FOUND)
			die("the slot of a process", ENOENT);
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	printf("{\"bench\":\"trace_find\",\"model\":\"%s\",\"mappings\":%u,"
	       "\"value\":%.1f,\"unit\":\"us of CPU\",\"budget\":50}\n",
	       dynamic ? "dynamic" : "program", mappings,
	       median(ns, FINDS) / 1000);
}

/* What a new file costs more, by whether it has the variable. */
static void bench_file(const char *name, const char *path)
{
	static struct symbolizer_src src;
	struct symbolizer_slot slot;
	struct symbolizer_elf e;
	static double ns[FINDS];
	struct stat st;

	for (int i = 0; i < FINDS; i++) {
		int fd = open(path, O_RDONLY | O_CLOEXEC);
		double begin;

		if (fd < 0 || fstat(fd, &st))
			die(path, errno);
		symbolizer_src_fd(&src, fd, (uint64_t)st.st_size);
		if (symbolizer_elf_init(&e, &src))
			die(path, EINVAL);
		begin = cpu_ns();
		if (symbolizer_slot_find(&e, &slot))
			die(path, EINVAL);
		ns[i] = cpu_ns() - begin;
		symbolizer_elf_fini(&e);
		close(fd);
	}
	printf("{\"bench\":\"trace_file\",\"file\":\"%s\",\"slot\":%s,"
	       "\"value\":%.1f,\"unit\":\"us of CPU\"}\n",
	       name, slot.model == SYMBOLIZER_SLOT_NONE ? "false" : "true",
	       median(ns, FINDS) / 1000);
}

/* --- for bench_trace.sh -------------------------------------------------------- */

static void writer(unsigned int ms)
{
	uint64_t i = (uint64_t)getpid() << 32;

	publish();
	if (!ms)
		for (;;)
			sink++;
	for (;; i++) {
		uint64_t end = clock_awake_ns() + ms * CLOCK_NSEC_PER_MSEC;

		set_ids(i);
		while (clock_awake_ns() < end)
			sink++;
	}
}

int main(int argc, char **argv)
{
	static const unsigned int mappings[] = { 20, 200, 2000 };
	bool find_only = argc == 2 && !strcmp(argv[1], "find");
	int stats;

	if (argc == 3 && !strcmp(argv[1], "writer"))
		writer((unsigned int)strtoul(argv[2], NULL, 10));
	setvbuf(stdout, NULL, _IOLBF, 0);
	loops = mmap(NULL, CHILDREN_MAX * 64, PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	stats = bpf_enable_stats(BPF_STATS_RUN_TIME);
	if (loops == MAP_FAILED || stats < 0)
		die("bpf statistics", errno);
	for (size_t i = 0; i < ARRAY_SIZE(settings) && !find_only; i++)
		bench_setting(&settings[i]);
	for (size_t i = 0; i < ARRAY_SIZE(mappings); i++) {
		bench_find(mappings[i], false);
		bench_find(mappings[i], true);
	}
	bench_file("a program with a tracer", "/proc/self/exe");
	bench_file("libc.so.6", "/lib/x86_64-linux-gnu/libc.so.6");
	close(stats);
	return 0;
}
