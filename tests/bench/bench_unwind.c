// SPDX-License-Identifier: Apache-2.0
/*
 * One sample in user space, by the depth of its stack: unwinding it, all of the trace
 * handler (unwinding, placing and naming its frames), its whole way from the record
 * in the ring through pump and handler into a window, and libdwfl for the same
 * records. A program of several files is stopped at many places of the same depth;
 * the medians of ROUNDS rounds over all of them, warm. One JSON line a depth.
 */
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <uv.h>

#include "base/base.h"
#include "profiler/pump.h"
#include "tracehandler/handler.h"

#define PLACES 64
#define ROUNDS 9
#define REPEAT 50
#define STACK_MAX (64 << 10)
#define BOTTOM 7 /* frames below the recursion, about */
#define TICK 64 /* samples between two runs of the pump: 6 CPUs, 100 ms */

struct place {
	uint8_t record[STACK_MAX + 1024];
	struct trace_record rec;
	size_t frames;
};

struct bench {
	pid_t pid;
	struct place *places;
	uv_loop_t loop;
	struct symbolizer *symbolizer;
	struct pm *pm;
	struct trace_handler *th;
	struct reporter *reporter; /* NULL: traces are counted only */
	struct reporter_window *window;
	struct pump *pump;
	struct vault *vault;
	uint64_t clock; /* of the records, which the pump sorts */
	bool cold;
	double not_ours; /* ns of CPU time for evicting the caches */
	Dwfl *dwfl;
	const struct place *now; /* for libdwfl */
	size_t got;
};

/* --- the program --------------------------------------------------------------- */

static volatile int sink;
static int down(int depth);

static int compare(const void *a, const void *b)
{
	int depth = *(const int *)(a > b ? a : b);

	sink++;
	return depth ? down(depth) : 0;
}

/* About every fifth call through libc, like a callback. */
static __attribute__((noinline)) int down(int depth)
{
	int v[2] = { depth - 1, depth - 1 };

	if (depth <= 1) {
		raise(SIGSTOP);
		for (;;)
			sink += snprintf((char[32]){ 0 }, 32, "%d", sink);
	}
	if (depth % 4 == 0)
		return bsearch(&v[0], &v[1], 1, sizeof(v[0]), compare) != NULL;
	return down(depth - 1) + sink;
}

static int start(struct bench *b, int depth)
{
	int st;

	b->pid = fork();
	if (b->pid == 0) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		_exit(down(depth));
	}
	return b->pid > 0 && waitpid(b->pid, &st, 0) == b->pid && WIFSTOPPED(st)
		       ? 0
		       : -ECHILD;
}

static void put(struct place *p, uint32_t *at, uint32_t type, const void *head,
		uint32_t headlen, uint32_t more)
{
	struct abi_part part = { type, headlen + more };

	memcpy(p->record + *at, &part, sizeof(part));
	memcpy(p->record + *at + sizeof(part), head, headlen);
	*at += sizeof(part) + headlen;
}

/* The record that the sampler would make here. */
static int capture(struct bench *b, struct place *p, uint64_t stack_end)
{
	struct abi_sample head = { .flags = ABI_SAMPLE_USER, .time = 1000 };
	struct user_regs_struct r;
	struct abi_stack stack;
	struct abi_regs regs;
	struct iovec to, from;
	uint32_t at = sizeof(head);

	if (ptrace(PTRACE_GETREGS, b->pid, NULL, &r))
		return -errno;
	regs = (struct abi_regs){
		.gpr = { r.rax, r.rdx, r.rcx, r.rbx, r.rsi, r.rdi, r.rbp, r.rsp,
			 r.r8, r.r9, r.r10, r.r11, r.r12, r.r13, r.r14, r.r15 },
		.ip = r.rip,
	};
	stack.start = (r.rsp - ABI_STACK_RED_ZONE) & -(uint64_t)ABI_STACK_ALIGN;
	stack.size = (uint32_t)MIN((uint64_t)STACK_MAX,
				   (stack_end - stack.start) & ~255ULL);
	stack.end = ABI_STACK_WHOLE;
	stack.holes = 0;
	put(p, &at, ABI_PART_REGS, &regs, sizeof(regs), 0);
	put(p, &at, ABI_PART_STACK, &stack, sizeof(stack), stack.size);
	to = (struct iovec){ p->record + at, stack.size };
	from = (struct iovec){ (void *)stack.start, stack.size };
	if (process_vm_readv(b->pid, &to, 1, &from, 1, 0) != stack.size)
		return -EFAULT;
	head.size = at + stack.size;
	head.key.tgid = (uint32_t)b->pid;
	head.key.start_boottime = 1;
	head.tid = (uint32_t)b->pid;
	memcpy(p->record, &head, sizeof(head));
	return trace_record_parse(p->record, head.size, &p->rec);
}

static uint64_t stack_end(pid_t pid)
{
	unsigned long long lo, hi = 0;
	char name[64], line[512];
	FILE *f;

	snprintf(name, sizeof(name), "/proc/%d/maps", pid);
	f = fopen(name, "re");
	while (f && fgets(line, sizeof(line), f) && !strstr(line, "[stack]"))
		;
	if (!f || sscanf(line, "%llx-%llx", &lo, &hi) != 2)
		hi = 0;
	if (f)
		fclose(f);
	return hi;
}

static int capture_all(struct bench *b)
{
	uint64_t end = stack_end(b->pid);
	int err = 0, st;

	for (int i = 0; i < PLACES && !err; i++) {
		err = capture(b, &b->places[i], end);
		for (int k = 0; k < 13; k++) {
			ptrace(PTRACE_SINGLESTEP, b->pid, NULL, NULL);
			waitpid(b->pid, &st, 0);
		}
	}
	return err;
}

/* --- profd --------------------------------------------------------------------- */

static void resolved(void *arg, const struct reporter_trace *t)
{
	struct bench *b = arg;

	b->got = t->nframes;
	if (!b->reporter)
		return;
	pm_image_sampled(t->image);
	reporter_add(b->reporter, t);
}

static int open_ours(struct bench *b)
{
	struct symbolizer_opts sym = { .loop = &b->loop };
	struct pm_opts pm = { 0 };
	struct trace_opts trace = { .loop = &b->loop,
				    .resolved = resolved,
				    .arg = b };
	struct quark_process qp = { .pid = (uint32_t)b->pid };
	struct pm_maps maps = { 0 };
	int err;

	uv_loop_init(&b->loop);
	err = symbolizer_new(&b->symbolizer, &sym);
	pm.symbolizer = b->symbolizer;
	if (!err)
		err = pm_new(&b->pm, &pm);
	trace.pm = b->pm;
	if (!err)
		err = trace_handler_new(&b->th, &trace);
	if (err)
		return err;
	qp.key.pid = qp.pid;
	qp.key.start_boottime = 1;
	err = pm_scan_process(b->pm, &qp, 1);
	if (!err)
		err = pm_maps_read("/proc", qp.pid, &maps);
	if (err)
		return err;
	maps.start_boottime = 1;
	maps.begin = maps.end = 2;
	err = pm_scan_maps(b->pm, &maps);
	pm_maps_fini(&maps);
	return err;
}

/* Afterwards all tables and names are read. */
static void warm(struct bench *b)
{
	struct trace_stats st;

	for (int i = 0; i < PLACES; i++) {
		struct place *p = &b->places[i];

		trace_handler_sample(b->th, p->record, p->rec.head.size);
		do {
			trace_handler_tick(b->th, clock_boottime_ns(), false);
			pm_forget(b->pm, 0);
			uv_run(&b->loop, UV_RUN_NOWAIT);
			trace_handler_get_stats(b->th, &st);
		} while (st.waiting);
		p->frames = b->got;
	}
}

static void close_ours(struct bench *b)
{
	trace_handler_free(b->th);
	pm_free(b->pm);
	symbolizer_free(b->symbolizer);
	while (uv_run(&b->loop, UV_RUN_DEFAULT))
		;
	uv_loop_close(&b->loop);
}

static void run_walk(struct bench *b, struct place *p)
{
	struct abi_key key = p->rec.head.key;
	struct trace_take take = { .rec = &p->rec };
	struct trace_user u;

	take.image = pm_image_get(b->pm, &key, 1000);
	trace_user_walk(&u, &b->th->stacks, &take);
	b->got = u.n;
}

static void run_handler(struct bench *b, struct place *p)
{
	trace_handler_sample(b->th, p->record, p->rec.head.size);
}

/* --- from the record in the ring into a window, as profiler/engine.c does it ----- */

static void drop(void *arg, enum pump_stream stream, void *rec)
{
	vault_give(rec);
}

static void deliver(void *arg, enum pump_stream stream, uint64_t time,
		    void *rec, bool late)
{
	const struct abi_sample *sample = rec;
	struct bench *b = arg;

	trace_handler_sample(b->th, sample, sample->size);
	vault_give(rec);
}

static void written(void *arg, int err, uint64_t nsamples, void *data,
		    size_t len)
{
	free(data);
}

static int open_window(struct bench *b)
{
	static const struct reporter_event_type cpu = {
		.name = "cpu",
		.label = "the CPU clock",
		.periodic = true,
		.count = { "samples", "count" },
		.value = { "cpu", "nanoseconds" },
	};
	struct reporter_opts opts = { .loop = &b->loop,
				      .pm = b->pm,
				      .hostname = "bench",
				      .version = "0",
				      .freq_hz = 99,
				      .event_types = &cpu,
				      .nevent_types = 1 };
	struct reporter_window_opts w = { .end = UINT64_MAX,
					  .format = REPORTER_RAW,
					  .done = written };
	const char *where;
	int err;

	err = vault_new(&b->vault);
	if (!err)
		err = pump_new(&b->pump, SIZE_MAX, deliver, drop, b);
	if (!err)
		err = reporter_new(&b->reporter, &opts, &where);
	if (err)
		return err;
	reporter_start(b->reporter, 0);
	b->clock = 16 * TICK;
	return reporter_window_open(b->reporter, &w, &b->window);
}

static void close_window(struct bench *b)
{
	reporter_free(b->reporter);
	b->reporter = NULL;
	pump_free(b->pump);
	vault_free(b->vault);
}

static double cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

/* The load between two ticks: it evicts our data from the caches of the CPU. */
static void evict(void)
{
	static unsigned char other[64 << 20];

	for (size_t i = 0; i < sizeof(other); i += 64)
		other[i]++;
}

static void run_window(struct bench *b, struct place *p)
{
	struct abi_sample *rec = vault_take(b->vault, p->rec.head.size);
	double cpu0;
	int s;

	if (!rec)
		abort();
	memcpy(rec, p->record, p->rec.head.size);
	rec->time = ++b->clock;
	pump_push(b->pump, PUMP_SAMPLE, rec->time, rec, p->rec.head.size);
	if (b->clock % TICK)
		return;
	if (b->cold) {
		cpu0 = cpu_ns();
		evict();
		b->not_ours += cpu_ns() - cpu0;
	}
	for (s = 0; s < PUMP_STREAM_MAX; s++)
		pump_watermark(b->pump, s, b->clock + 1);
	pump_run(b->pump);
}

/* --- libdwfl ------------------------------------------------------------------ */

static pid_t next_thread(Dwfl *dwfl, void *arg, void **thread)
{
	struct bench *b = arg;

	if (*thread)
		return 0;
	*thread = arg;
	return b->pid;
}

static bool read_word(Dwfl *dwfl, Dwarf_Addr addr, Dwarf_Word *out, void *arg)
{
	struct bench *b = arg;
	const struct trace_record *r = &b->now->rec;

	if (addr < r->stack.start || addr - r->stack.start > r->stack.size - 8)
		return false;
	memcpy(out, r->stack.bytes + (addr - r->stack.start), 8);
	return true;
}

static bool set_regs(Dwfl_Thread *thread, void *arg)
{
	struct bench *b = arg;
	Dwarf_Word regs[17];

	memcpy(regs, b->now->rec.regs.gpr, sizeof(b->now->rec.regs.gpr));
	regs[16] = b->now->rec.regs.ip;
	return dwfl_thread_state_registers(thread, 0, 17, regs);
}

static int count_frame(Dwfl_Frame *state, void *arg)
{
	struct bench *b = arg;
	Dwarf_Addr pc;

	if (!dwfl_frame_pc(state, &pc, NULL))
		return DWARF_CB_ABORT;
	b->got++;
	return DWARF_CB_OK;
}

static int open_dwfl(struct bench *b)
{
	static const Dwfl_Callbacks find = {
		.find_elf = dwfl_linux_proc_find_elf,
		.find_debuginfo = dwfl_standard_find_debuginfo,
	};
	static const Dwfl_Thread_Callbacks threads = {
		.next_thread = next_thread,
		.memory_read = read_word,
		.set_initial_registers = set_regs,
	};

	b->dwfl = dwfl_begin(&find);
	if (!b->dwfl || dwfl_linux_proc_report(b->dwfl, b->pid) ||
	    dwfl_report_end(b->dwfl, NULL, NULL) ||
	    !dwfl_attach_state(b->dwfl, NULL, b->pid, &threads, b))
		return -EINVAL;
	return 0;
}

static void run_dwfl(struct bench *b, struct place *p)
{
	b->now = p;
	b->got = 0;
	dwfl_getthread_frames(b->dwfl, b->pid, count_frame, b);
}

/* --- the figures --------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Nanoseconds of CPU time a sample: the median of the rounds. '*frames': per stack. */
static double measure(struct bench *b,
		      void (*run)(struct bench *, struct place *), int repeat,
		      double *frames)
{
	double ns[ROUNDS];
	double begin;

	for (int r = 0; r < ROUNDS; r++) {
		*frames = 0;
		b->not_ours = 0;
		begin = cpu_ns();
		for (int k = 0; k < repeat; k++) {
			for (int i = 0; i < PLACES; i++) {
				run(b, &b->places[i]);
				*frames += (double)b->got;
			}
		}
		ns[r] = (cpu_ns() - begin - b->not_ours) / repeat / PLACES;
		*frames = *frames / repeat / PLACES;
	}
	qsort(ns, ROUNDS, sizeof(*ns), by_value);
	return ns[ROUNDS / 2];
}

static int bench(int depth)
{
	struct bench b = { .places = calloc(PLACES, sizeof(struct place)) };
	double walk, all, window, cold, dwfl, frames, frames_dwfl, bytes = 0;
	int err, st;

	err = b.places ? start(&b, depth > BOTTOM ? depth - BOTTOM : 1)
		       : -ENOMEM;
	if (!err)
		err = capture_all(&b);
	if (!err)
		err = open_ours(&b);
	if (!err)
		err = open_dwfl(&b);
	if (err)
		return err;
	warm(&b);
	for (int i = 0; i < PLACES; i++)
		bytes += (double)b.places[i].rec.head.size / PLACES;
	all = measure(&b, run_handler, REPEAT, &frames);
	err = open_window(&b);
	if (err)
		return err;
	window = measure(&b, run_window, REPEAT, &frames);
	b.cold = true;
	cold = measure(&b, run_window, 2, &frames);
	if (reporter_window_samples(b.window) != ROUNDS * (REPEAT + 2) * PLACES)
		return -EIO;
	close_window(&b);
	walk = measure(&b, run_walk, REPEAT, &frames);
	dwfl = measure(&b, run_dwfl, 1, &frames_dwfl);
	printf("{\"bench\":\"unwind\",\"depth\":%d,\"frames\":%.1f,"
	       "\"record_bytes\":%.0f,\"unwind_ns\":%.0f,"
	       "\"unwind_ns_a_frame\":%.1f,\"handler_ns\":%.0f,"
	       "\"ring_to_window_cold_ns\":%.0f,"
	       "\"ring_to_window_ns\":%.0f,\"ring_to_window_budget_ns\":2000,"
	       "\"libdwfl_frames\":%.1f,\"libdwfl_ns\":%.0f,"
	       "\"libdwfl_by_unwind\":%.0f}\n",
	       depth, frames, bytes, walk, walk / frames, all, cold, window,
	       frames_dwfl, dwfl, dwfl / walk);
	dwfl_end(b.dwfl);
	close_ours(&b);
	kill(b.pid, SIGKILL);
	waitpid(b.pid, &st, 0);
	free(b.places);
	return 0;
}

int main(int argc, char **argv)
{
	static const int depths[] = { 10, 30, 35, 60, 200 };
	int err = 0;

	if (symbolizer_worker_wanted(argc, argv))
		return symbolizer_worker_main(argc, argv);
	for (size_t i = 0; i < ARRAY_SIZE(depths) && !err; i++)
		err = bench(depths[i]);
	if (err)
		fprintf(stderr, "bench_unwind: %s\n", strerror(-err));
	return err != 0;
}
