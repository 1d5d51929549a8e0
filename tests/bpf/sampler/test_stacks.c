// SPDX-License-Identifier: Apache-2.0
/*
 * Live stacks: a mixed load is sampled, and each raw record is unwound twice, by our
 * unwinder and by elfutils' libdwfl, from the same registers and the same copy of the
 * stack. The frames must be equal. Here, too, records stay in memory.
 */
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"
#include "profiler/source/sampler.h"
#include "symbolize/rows/rows.h"
#include "tests/bpf/sampler/test_stacks.h"
#include "tracehandler/record.h"
#include "tracehandler/unwind/walk.h"

#define FREQ_HZ 997
#define FRAMES 4096
#define RED_ZONE 128
#define SAMPLES_MIN 60 /* of each program */
#define SAMPLES_ENOUGH \
	120 /* ... after which it leaves the CPUs to the others */
#define DEADLINE_S 120

static char dir[] = "/tmp/test_stacks.XXXXXX";
static char progs[512]; /* build/tests/e2e/stacks */

/* --- mappings and files ------------------------------------------------------ */

struct image {
	char path[256];
	struct symbolizer_rows *rows; /* NULL: it has none */
	struct symbolizer_elf_load loads[64];
	size_t n_loads;
	struct image *next;
};

static struct image *images;

struct map {
	uint64_t start, end, offset;
	struct image *image; /* NULL: no file */
};

struct child {
	const struct load *load;
	pid_t pid;
	struct map *maps;
	size_t n_maps;
	uint64_t maps_hash,
		since; /* the mappings have not changed since then */
	Dwfl *dwfl;
	size_t taken, same, farther, shorter, differ, jit, none;
	size_t ends[TRACE_END_MAX];
};

static struct child children[LOADS];

static void image_read(struct image *im, struct symbolizer_src *src)
{
	struct symbolizer_elf e;

	if (symbolizer_elf_init(&e, src))
		return;
	im->n_loads = MIN(e.n_loads, ARRAY_SIZE(im->loads));
	memcpy(im->loads, e.loads, im->n_loads * sizeof(*e.loads));
	if (symbolizer_rows_read(&im->rows, src, NULL))
		im->rows = NULL;
	symbolizer_elf_fini(&e);
}

static struct image *image_of(pid_t pid, const char *path)
{
	struct symbolizer_src *src;
	struct image *im;
	struct stat st;
	int fd;

	for (im = images; im; im = im->next)
		if (!strcmp(im->path, path))
			return im;
	im = calloc(1, sizeof(*im));
	src = calloc(1, sizeof(*src));
	assert_true(im && src);
	snprintf(im->path, sizeof(im->path), "%s", path);
	if (path[0] == '/') {
		fd = open(path, O_RDONLY | O_CLOEXEC);
		assert_true(fd >= 0);
		assert_int_equal(fstat(fd, &st), 0);
		symbolizer_src_fd(src, fd, (uint64_t)st.st_size);
		image_read(im, src);
		close(fd);
	} else { /* the vDSO is the same in every process */
		symbolizer_src_mem(src, (void *)getauxval(AT_SYSINFO_EHDR),
				   8192);
		image_read(im, src);
	}
	free(src);
	im->next = images;
	images = im;
	return im;
}

static bool has_image(const char *path)
{
	return path[0] == '/' || !strcmp(path, "[vdso]");
}

/*
 * The lines of /proc/PID/maps with code; false: the process is gone. Tables of files take
 * seconds to read: not 'with_images' while the loads run.
 */
static bool read_maps(struct child *c, bool with_images)
{
	unsigned long long start, end, offset;
	char name[64], line[512], path[256], prot[8];
	uint64_t hash = 14695981039346656037ULL, now = clock_boottime_ns();
	FILE *f;

	snprintf(name, sizeof(name), "/proc/%d/maps", c->pid);
	f = fopen(name, "r");
	if (!f)
		return false;
	c->n_maps = 0;
	while (fgets(line, sizeof(line), f)) {
		path[0] = '\0';
		sscanf(line, "%llx-%llx %7s %llx %*s %*s %255s", &start, &end,
		       prot, &offset, path);
		if (prot[2] != 'x' || !strcmp(path, "[vsyscall]"))
			continue;
		for (const char *p = line; *p; p++)
			hash = (hash ^ (uint8_t)*p) * 1099511628211ULL;
		c->maps = realloc(c->maps, (c->n_maps + 1) * sizeof(*c->maps));
		assert_non_null(c->maps);
		c->maps[c->n_maps++] =
			(struct map){ start, end, offset,
				      with_images && has_image(path)
					      ? image_of(c->pid, path)
					      : NULL };
	}
	fclose(f);
	if (hash != c->maps_hash)
		c->since = now > c->since ? clock_boottime_ns() : c->since;
	c->maps_hash = hash;
	return c->n_maps > 0;
}

static const struct map *map_of(const struct child *c, uint64_t pc)
{
	for (size_t i = 0; i < c->n_maps; i++)
		if (pc >= c->maps[i].start && pc < c->maps[i].end)
			return &c->maps[i];
	return NULL;
}

static void find_code(void *arg, uint64_t pc, struct trace_code *out)
{
	const struct map *m = map_of(arg, pc);
	uint64_t off;

	memset(out, 0, sizeof(*out));
	out->state = m ? TRACE_CODE_HERE : TRACE_CODE_NONE;
	if (!m)
		return;
	out->start = m->start;
	out->end = m->end;
	off = pc - m->start + m->offset;
	for (size_t i = 0; m->image && i < m->image->n_loads; i++) {
		const struct symbolizer_elf_load *l = &m->image->loads[i];

		if (!l->exec || off < l->offset || off - l->offset >= l->size)
			continue;
		out->bias = l->vaddr - l->offset + m->offset - m->start;
		out->rows = m->image->rows;
	}
}

/* --- libdwfl, with the same record --------------------------------------------- */

struct both {
	struct child *child;
	const struct trace_record *rec;
	uint64_t want[FRAMES], got[FRAMES];
	size_t n_want, n_got;
	enum trace_end why;
};

static pid_t next_thread(Dwfl *dwfl, void *arg, void **threadp)
{
	*threadp = arg;
	return 0;
}

static bool get_thread(Dwfl *dwfl, pid_t tid, void *arg, void **threadp)
{
	*threadp = arg;
	return true;
}

static bool read_memory(Dwfl *dwfl, Dwarf_Addr addr, Dwarf_Word *out, void *arg)
{
	const struct trace_record *r = (*(struct both **)arg)->rec;

	return trace_piece_read(&r->stack, addr, out, 8) ||
	       trace_piece_read(&r->left, addr, out, 8);
}

static bool set_registers(Dwfl_Thread *thread, void *arg)
{
	const struct abi_regs *r = &(*(struct both **)arg)->rec->regs;
	Dwarf_Word words[17];

	for (int i = 0; i < 16; i++)
		words[i] = r->gpr[i];
	words[16] = r->ip;
	return dwfl_thread_state_registers(thread, 0, 17, words);
}

static const Dwfl_Thread_Callbacks from_record = {
	.next_thread = next_thread,
	.get_thread = get_thread,
	.memory_read = read_memory,
	.set_initial_registers = set_registers,
};

static const Dwfl_Callbacks callbacks = {
	.find_elf = dwfl_linux_proc_find_elf,
	.find_debuginfo = dwfl_standard_find_debuginfo,
};

static struct both *current; /* what the callbacks read */
static struct trace_rules rules;

static void attach(struct child *c)
{
	c->dwfl = dwfl_begin(&callbacks);
	assert_non_null(c->dwfl);
	assert_int_equal(dwfl_linux_proc_report(c->dwfl, c->pid), 0);
	assert_int_equal(dwfl_report_end(c->dwfl, NULL, NULL), 0);
	if (!dwfl_attach_state(c->dwfl, NULL, c->pid, &from_record, &current))
		fail_msg("%s: %s", c->load->name, dwfl_errmsg(-1));
}

static int on_frame(Dwfl_Frame *state, void *arg)
{
	struct both *b = arg;
	Dwarf_Addr pc;
	bool exact;

	if (!dwfl_frame_pc(state, &pc, &exact) || b->n_want == FRAMES)
		return DWARF_CB_ABORT;
	b->want[b->n_want] = pc + (exact && b->n_want);
	b->n_want++;
	return DWARF_CB_OK;
}

/* --- one record ------------------------------------------------------------------ */

static const char *const end_names[] = {
#define X(name, ...) #name,
	TRACE_ENDS(X)
#undef X
};

static void show(const struct both *b)
{
	const struct trace_record *r = b->rec;

	print_message("# %s: ours ends with %s; sp %llx, %x bytes from %llx, "
		      "end %u\n",
		      b->child->load->name, end_names[b->why],
		      (unsigned long long)r->regs.gpr[ABI_REG_SP],
		      r->stack.size, (unsigned long long)r->stack.start,
		      r->stack.end);
	for (size_t i = 0; i < MIN(MAX(b->n_got, b->n_want), 24UL); i++) {
		uint64_t pc = i < b->n_got ? b->got[i] : b->want[i];
		const struct map *m = map_of(b->child, pc);

		print_message(
			"#   %2zu ours %12llx libdwfl %12llx %s+%llx\n", i,
			i < b->n_got ? (unsigned long long)pc : 0,
			i < b->n_want ? (unsigned long long)b->want[i] : 0,
			m && m->image ? m->image->path : "?",
			m ? (unsigned long long)(pc - m->start + m->offset)
			  : 0);
	}
}

static bool in_jit(const struct both *b)
{
	for (size_t i = 0; i < b->n_got; i++) {
		const struct map *m = map_of(b->child, b->got[i] - !!i);

		if (m && !m->image)
			return true;
	}
	return false;
}

/* Frames before the first that is not in code: later ones are invalid. */
static size_t sensible(const struct child *c, const uint64_t *pcs, size_t n)
{
	size_t i = 0;

	while (i < n && map_of(c, pcs[i]))
		i++;
	return i;
}

/* Whether libdwfl has a rule there; else it guesses the caller. */
static bool knows(struct child *c, Dwarf_Addr pc)
{
	Dwfl_Module *mod = dwfl_addrmodule(c->dwfl, pc);
	Dwarf_Frame *frame = NULL;
	Dwarf_Addr bias;
	Dwarf_CFI *cfi;
	bool found;

	cfi = mod ? dwfl_module_eh_cfi(mod, &bias) : NULL;
	found = cfi && !dwarf_cfi_addrframe(cfi, pc - bias, &frame);
	if (!found) {
		cfi = mod ? dwfl_module_dwarf_cfi(mod, &bias) : NULL;
		found = cfi && !dwarf_cfi_addrframe(cfi, pc - bias, &frame);
	}
	free(frame);
	return found;
}

/*
 * A return address that is the beginning of a function behind a gap, and was not
 * pushed by a call, is one more in ours, like those that a signal interrupted.
 */
static bool same_place(struct child *c, uint64_t got, uint64_t want)
{
	struct trace_code code;

	if (got != want + 1)
		return got == want;
	find_code(c, want, &code);
	return code.rows &&
	       !symbolizer_rows_find(code.rows, want - 1 + code.bias) &&
	       symbolizer_rows_find(code.rows, want + code.bias);
}

/*
 * Compares our frames with libdwfl's and counts the result. Go's runtime switches
 * stacks in functions whose rules do not say so: we end there, libdwfl guesses.
 */
static void compare(struct both *b)
{
	struct child *c = b->child;
	size_t n = 0;

	b->n_got = sensible(c, b->got, b->n_got);
	b->n_want = sensible(c, b->want, b->n_want);
	for (size_t i = 0; i < b->n_want; i++)
		if (!knows(c, b->want[i] - !!i))
			b->n_want = i + 1;
	/* Where stacks change, Go's CFI leads to a frame that does not exist. */
	if (!strcmp(c->load->name, "go") &&
	    (b->why == TRACE_END_ROOT || b->why == TRACE_END_OTHER))
		b->n_want = MIN(b->n_want, b->n_got);
	c->ends[b->why]++;
	while (n < MIN(b->n_got, b->n_want) &&
	       same_place(c, b->got[n], b->want[n]))
		n++;
	if (n < MIN(b->n_got, b->n_want)) {
		if (c->differ++ < 3)
			show(b);
	} else if (b->n_got > b->n_want) {
		if (c->farther++ < 1)
			show(b);
	} else if (b->n_got < b->n_want) {
		if (c->shorter++ < 3)
			show(b);
	} else {
		c->same++;
		if (b->why != TRACE_END_ROOT && c->ends[b->why] < 3)
			show(b);
	}
}

static bool is_code(void *arg, uint64_t addr)
{
	struct trace_code code = { .state = TRACE_CODE_NONE };

	find_code(arg, addr, &code);
	return code.state == TRACE_CODE_HERE;
}

static void unwind(struct child *c, const struct trace_record *r)
{
	static struct both b;
	struct trace_stack s = {
		.regs = &r->regs,
		.here = r->stack,
		.left = r->left,
		.code = r->code,
		.code_len = r->code_len,
		.is_code = is_code,
		.arg = c,
	};

	c->taken++;
	if (!r->has_regs || !r->has_stack || r->stack.end == ABI_STACK_RING) {
		c->none++;
		return;
	}
	b.child = c;
	b.rec = r;
	b.n_want = 0;
	current = &b;
	dwfl_getthread_frames(c->dwfl, c->pid, on_frame, &b);
	b.n_got = trace_walk(&s, &rules, find_code, c, b.got, FRAMES, &b.why);
	if (in_jit(&b))
		c->jit++;
	compare(&b);
}

/* --- all records -------------------------------------------------------------------- */

struct samples {
	struct abi_sample **recs;
	size_t n, cap;
	size_t of[LOADS];
};

static void collect(void *arg, const struct abi_sample *rec, size_t len)
{
	struct samples *all = arg;
	size_t i;

	for (i = 0; i < LOADS; i++)
		if (children[i].pid == (pid_t)rec->key.tgid)
			break;
	if (i == LOADS)
		return;
	if (all->n == all->cap) {
		all->cap = all->cap ? all->cap * 2 : 4096;
		all->recs = realloc(all->recs, all->cap * sizeof(*all->recs));
		assert_non_null(all->recs);
	}
	all->recs[all->n] = malloc(len);
	assert_non_null(all->recs[all->n]);
	memcpy(all->recs[all->n++], rec, len);
	all->of[i] += children[i].since && rec->time > children[i].since;
}

static void run(const struct load *l)
{
	char cmd[2048], *to = cmd;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (l->fn)
		l->fn();
	for (const char *p = l->command; *p; p++) {
		const char *word = *p == '@' ? dir : *p == '%' ? progs : NULL;

		if (word && p[1] == '/')
			to += sprintf(to, "%s", word);
		else
			*to++ = *p;
	}
	*to = '\0';
	execl("/bin/sh", "sh", "-c", cmd, NULL);
	_exit(127);
}

/* A machine of make check-vm has only the programs in this file. */
static bool has_programs(void)
{
	return !access("/usr/bin/gcc", X_OK);
}

static void start_loads(void)
{
	for (size_t i = 0; i < LOADS; i++) {
		if (!loads[i].fn && !has_programs())
			continue;
		children[i].load = &loads[i];
		children[i].pid = fork();
		assert_true(children[i].pid >= 0);
		if (!children[i].pid)
			run(&loads[i]);
	}
}

/* Counts its samples from the last change of its mappings on; with enough, it is stopped. */
static void look_at(struct samples *all, size_t k)
{
	uint64_t since = children[k].since;

	if (!read_maps(&children[k], false))
		fail_msg("%s ended", loads[k].name);
	if (children[k].since != since)
		all->of[k] = 0;
	else if (all->of[k] >= SAMPLES_ENOUGH)
		kill(children[k].pid, SIGSTOP);
}

/* Until each has its samples with mappings that did not change. */
static void sample_loads(struct samples *all)
{
	struct sampler_opts opts = { .freq_hz = FREQ_HZ,
				     .ring_bytes = 64 << 20,
				     .sample = collect,
				     .arg = all };
	const char *what = "nothing";
	struct sampler *s = NULL;
	size_t least = 0;
	int err = sampler_new(&s, &opts, &what);

	if (err)
		fail_msg("sampler_new: %s: %s", what, strerror(-err));
	assert_int_equal(sampler_enable(s), 0);
	start_loads();
	for (int i = 0; i < DEADLINE_S * 20 && least < SAMPLES_MIN; i++) {
		usleep(50000);
		assert_true(sampler_poll(s) >= 0);
		least = SIZE_MAX;
		for (size_t k = 0; k < LOADS; k++) {
			if (!children[k].pid)
				continue;
			if (i % 5 == 4)
				look_at(all, k);
			least = MIN(least, all->of[k]);
		}
	}
	sampler_disable(s);
	assert_true(sampler_poll(s) >= 0);
	sampler_free(s);
}

/* Unwinds the records since the last change of mappings. */
static void unwind_all(struct samples *all)
{
	struct trace_record rec;
	size_t i, k;

	for (i = 0; i < LOADS; i++)
		if (children[i].pid)
			kill(children[i].pid, SIGSTOP);
	for (i = 0; i < LOADS; i++) {
		if (!children[i].pid)
			continue;
		assert_true(read_maps(&children[i], true));
		attach(&children[i]);
	}
	for (i = 0; i < all->n; i++) {
		struct abi_sample *s = all->recs[i];

		assert_int_equal(trace_record_parse(s, s->size, &rec), 0);
		for (k = 0; k < LOADS; k++)
			if (children[k].pid == (pid_t)s->key.tgid)
				break;
		if (s->time > children[k].since)
			unwind(&children[k], &rec);
		free(s);
	}
	free(all->recs);
}

static void stop_loads(void **state)
{
	struct image *im;

	for (size_t i = 0; i < LOADS; i++) {
		if (!children[i].pid)
			continue;
		kill(children[i].pid, SIGKILL);
		waitpid(children[i].pid, NULL, 0);
		if (children[i].dwfl)
			dwfl_end(children[i].dwfl);
		free(children[i].maps);
	}
	while ((im = images)) {
		images = im->next;
		symbolizer_rows_free(im->rows);
		free(im);
	}
}

static void add_up(struct child *sum, const struct child *c)
{
	sum->taken += c->taken;
	sum->same += c->same;
	sum->farther += c->farther;
	sum->shorter += c->shorter;
	sum->differ += c->differ;
	sum->jit += c->jit;
	sum->none += c->none;
	for (int i = 0; i < TRACE_END_MAX; i++)
		sum->ends[i] += c->ends[i];
}

static void print(const char *name, const struct child *c)
{
	print_message(
		"# %-10s %6zu records: %6zu same, %3zu farther, "
		"%3zu shorter, %3zu differ; %6zu whole; %zu without stack\n",
		name, c->taken, c->same, c->farther, c->shorter, c->differ,
		c->ends[TRACE_END_ROOT], c->none);
}

static void the_same_frames_as_libdwfl(void **state)
{
	struct samples all = { 0 };
	struct child sum = { 0 };

	assert_int_equal(trace_rules_init(&rules), 0);
	sample_loads(&all);
	unwind_all(&all);
	trace_rules_fini(&rules);
	for (size_t i = 0; i < LOADS; i++) {
		if (!children[i].pid)
			continue;
		print(loads[i].name, &children[i]);
		add_up(&sum, &children[i]);
	}
	print("all", &sum);
	for (size_t i = 0; i < LOADS; i++)
		if (children[i].pid)
			assert_true(children[i].taken >= SAMPLES_MIN);
	assert_int_equal(sum.differ, 0);
	assert_int_equal(sum.shorter, 0);
}

static void write_source(const char *name, const char *head, const char *format)
{
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(head, f);
	for (int i = 0; i < 60000; i++)
		fprintf(f, format, i, i, i);
	fclose(f);
}

/* Sources that a compiler needs minutes for. */
static int setup(void **state)
{
	char self[sizeof(progs) - sizeof("/../../e2e/stacks")];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (n <= 0 || n == sizeof(self) - 1)
		return -1;
	self[n] = '\0';
	*strrchr(self, '/') = '\0';
	sprintf(progs, "%s/../../e2e/stacks", self);
	if (!mkdtemp(dir))
		return -1;
	write_source("big.c", "",
		     "int f%d(int *p, int n) { int s = %d; for (int i = 0; "
		     "i < n; i++) { p[i] ^= s; if (p[i] %% 3) s += p[i + %d]; "
		     "else s *= 5; } return s; }\n");
	write_source("big.cc",
		     "template <int N> struct S { static int f(int n) { "
		     "int a[N % 9 + 2] = {}; for (int i = 0; i < n; i++) "
		     "a[i % (N % 9 + 2)] += N; return a[0]; } };\n",
		     "int g%d(int n) { return S<%d>::f(n) + %d; }\n");
	return 0;
}

static int teardown(void **state)
{
	char cmd[64];

	stop_loads(state);
	snprintf(cmd, sizeof(cmd), "rm -rf %s", dir);
	return system(cmd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_same_frames_as_libdwfl),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
