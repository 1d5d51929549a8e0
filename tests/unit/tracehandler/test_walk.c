// SPDX-License-Identifier: Apache-2.0
/*
 * Stacks by unwind rows: programs built in many ways are stepped, and after each
 * instruction our stack must be that of elfutils' libdwfl.
 */
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"
#include "symbolize/rows/rows.h"
#include "tracehandler/unwind/expr.h"
#include "tracehandler/unwind/walk.h"

#define STEPS 16000 /* of a program */
/* Loops come by again: so often is a stack compared of one instruction and stack pointer. */
#define SAME 2
/*
 * With sanitizers, which are there for the reading of memory, each stack takes five times
 * as long: every fifth is enough.
 */
#ifdef __SANITIZE_ADDRESS__
#define EVERY 5
#else
#define EVERY 1
#endif
#define FRAMES 64
#define MAPS 64
#define LEFT (64 << 10) /* of the stack left for a signal's */

static char dir[] = "/tmp/test_walk.XXXXXX";

static const char source[] =
	"#include <alloca.h>\n#include <signal.h>\n#include <stdio.h>\n"
	"#include <stdlib.h>\n#include <string.h>\n"
	"#define N __attribute__((noinline))\n"
	"static volatile int sink;\n"
	"static int cmp(const void *a, const void *b)\n"
	"{ return *(const int *)a - *(const int *)b; }\n"
	"N static int deep(int n) { return n ? deep(n - 1) + n : sink; }\n"
	"N static int grow(int n) { char *p = alloca(n * 16 + 16);\n"
	"memset(p, n, 16); return n ? grow(n - 1) + p[3] : p[0]; }\n"
	"N static int align(int n) { char q[200] __attribute__((aligned(64)));\n"
	"snprintf(q, sizeof(q), \"%d %f\", n, n / 3.0); return q[0]; }\n"
	"N static int many(int a, int b, int c, int d, int e, int f, int g)\n"
	"{ int s = 0; for (int i = 0; i < a; i++) { s += deep(b) * c;\n"
	"s ^= grow(d) + e * i; if (s % 7 == f) s -= align(g); } return s; }\n"
	"N static int tail(int n) { return many(2, n, 3, 4, 5, 6, 7); }\n"
	"N static int early(int n) { if (n & 1) return n;\n"
	"return tail(n) + tail(n + 1); }\n"
	"static void on(int s) { sink += early(2); }\n"
	"static void other(int s) { sink += align(3); }\n"
	"int main(void)\n{\nstatic char room[32768];\n"
	"stack_t ss = { .ss_sp = room, .ss_size = sizeof(room) };\n"
	"struct sigaction sa = { .sa_handler = other, .sa_flags = SA_ONSTACK };\n"
	"int v[40]; for (int i = 0; i < 40; i++) v[i] = i * 7919 % 41;\n"
	"signal(SIGUSR1, on);\nsigaltstack(&ss, 0);\n"
	"sigaction(SIGUSR2, &sa, 0);\nraise(SIGSTOP);\nraise(SIGUSR2);\n"
	"sink = early(1) + early(2);\nraise(SIGUSR1);\n"
	"qsort(v, 40, sizeof(*v), cmp);\n"
	"sink += atoi(\"17\") + (int)strtod(\"1.5e3\", 0);\n"
	"return 0;\n}\n";

/* --- a stepped program ------------------------------------------------------- */

struct map {
	uint64_t start, end, offset;
	int image;
};

struct image {
	char path[256];
	struct symbolizer_rows *rows;
	struct symbolizer_elf_load loads[64];
	size_t n_loads;
};

struct stepped {
	pid_t pid;
	Dwfl *dwfl;
	struct map maps[MAPS];
	struct image images[16];
	size_t n_maps, n_images;
	uint64_t stack_end;
	uint8_t stack[256 << 10], left[LEFT];
	struct abi_regs regs;
	struct trace_rules rules;
	uint64_t want[FRAMES], got[FRAMES];
	size_t n_want;
	uint64_t last[FRAMES]; /* the last one both agreed on */
	size_t n_last;
	unsigned long compared, signals, others, farther, gaps;
	struct {
		uint64_t ip, sp;
		int n;
	} seen[2 * STEPS];
};

static void load_image(struct image *im, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct symbolizer_src src;
	struct symbolizer_elf e;
	struct stat st;

	snprintf(im->path, sizeof(im->path), "%s", path);
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	symbolizer_src_fd(&src, fd, (uint64_t)st.st_size);
	assert_int_equal(symbolizer_elf_init(&e, &src), 0);
	im->n_loads = e.n_loads;
	memcpy(im->loads, e.loads, e.n_loads * sizeof(*e.loads));
	assert_int_equal(symbolizer_rows_read(&im->rows, &src, NULL), 0);
	symbolizer_elf_fini(&e);
	close(fd);
}

static int image_of(struct stepped *p, const char *path)
{
	size_t i;

	for (i = 0; i < p->n_images; i++)
		if (!strcmp(p->images[i].path, path))
			return (int)i;
	assert_true(i < ARRAY_SIZE(p->images));
	load_image(&p->images[p->n_images++], path);
	return (int)i;
}

static void read_maps(struct stepped *p)
{
	unsigned long long start, end, offset;
	char name[64], line[512], path[256], prot[8];
	FILE *f;

	snprintf(name, sizeof(name), "/proc/%d/maps", p->pid);
	f = fopen(name, "r");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		path[0] = '\0';
		sscanf(line, "%llx-%llx %7s %llx %*s %*s %255s", &start, &end,
		       prot, &offset, path);
		if (!strcmp(path, "[stack]"))
			p->stack_end = end;
		if (path[0] != '/' || prot[2] != 'x')
			continue;
		assert_true(p->n_maps < MAPS);
		p->maps[p->n_maps++] =
			(struct map){ start, end, offset, image_of(p, path) };
	}
	fclose(f);
}

static void find_code(void *arg, uint64_t pc, struct trace_code *out)
{
	struct stepped *p = arg;

	for (size_t i = 0; i < p->n_maps; i++) {
		const struct map *m = &p->maps[i];
		const struct image *im = &p->images[m->image];
		uint64_t off = pc - m->start + m->offset;

		if (pc < m->start || pc >= m->end)
			continue;
		out->state = TRACE_CODE_HERE;
		out->start = m->start;
		out->end = m->end;
		for (size_t k = 0; k < im->n_loads; k++) {
			const struct symbolizer_elf_load *l = &im->loads[k];

			if (!l->exec || off < l->offset ||
			    off - l->offset >= l->size)
				continue;
			out->bias = l->vaddr - l->offset + m->offset - m->start;
			out->rows = im->rows;
		}
	}
}

/* --- the two stacks ------------------------------------------------------------ */

static int on_frame(Dwfl_Frame *state, void *arg)
{
	struct stepped *p = arg;
	Dwarf_Addr pc;
	bool exact;

	if (!dwfl_frame_pc(state, &pc, &exact) || p->n_want == FRAMES)
		return DWARF_CB_ABORT;
	p->signals += exact && p->n_want;
	p->want[p->n_want] = pc + (exact && p->n_want);
	p->n_want++;
	return DWARF_CB_OK;
}

static void get_regs(struct stepped *p)
{
	struct user_regs_struct r;

	assert_int_equal(ptrace(PTRACE_GETREGS, p->pid, NULL, &r), 0);
	p->regs = (struct abi_regs){
		.gpr = { r.rax, r.rdx, r.rcx, r.rbx, r.rsi, r.rdi, r.rbp, r.rsp,
			 r.r8, r.r9, r.r10, r.r11, r.r12, r.r13, r.r14, r.r15 },
		.ip = r.rip,
	};
}

/* Counts this one. */
static bool is_seen(struct stepped *p)
{
	uint64_t ip = p->regs.ip, sp = p->regs.gpr[ABI_REG_SP];
	size_t i = (ip * 31 + sp / 8) % ARRAY_SIZE(p->seen);

	while (p->seen[i].n && (p->seen[i].ip != ip || p->seen[i].sp != sp))
		i = (i + 1) % ARRAY_SIZE(p->seen);
	p->seen[i].ip = ip;
	p->seen[i].sp = sp;
	return p->seen[i].n++ >= SAME;
}

static void differ(const struct stepped *p, size_t n, enum trace_end why)
{
	for (size_t i = 0; i < MAX(n, p->n_want); i++)
		print_message("%zu: %llx, not %llx\n", i,
			      i < n ? (unsigned long long)p->got[i] : 0,
			      i < p->n_want ? (unsigned long long)p->want[i]
					    : 0);
	fail_msg("step %lu: %zu frames, not %zu; end %d", p->compared, n,
		 p->n_want, why);
}

/*
 * libdwfl stops at the resolver of lazy symbols. Its frames must be ours, and our
 * outer frames those of the last comparison.
 */
static bool goes_farther(const struct stepped *p, size_t n)
{
	size_t outer = p->n_last > 2 ? p->n_last - 2 : 0;

	return n > p->n_want && outer && n >= outer &&
	       !memcmp(p->got, p->want, p->n_want * sizeof(*p->got)) &&
	       !memcmp(p->got + n - outer, p->last + p->n_last - outer,
		       outer * sizeof(*p->got));
}

static bool is_code(struct stepped *p, uint64_t pc)
{
	struct trace_code code = { .state = TRACE_CODE_NONE };

	find_code(p, pc - 1, &code);
	return code.state == TRACE_CODE_HERE;
}

static bool walk_is_code(void *arg, uint64_t addr)
{
	return is_code(arg, addr + 1);
}

/*
 * In _init and _fini, which have no CFI, libdwfl follows rbp and misses their
 * caller.
 */
static bool leaves_one_out(struct stepped *p, size_t n)
{
	return n > 2 && n == p->n_want + 1 && p->got[0] == p->want[0] &&
	       is_code(p, p->got[1]) &&
	       !memcmp(p->got + 2, p->want + 1, (n - 2) * sizeof(*p->got));
}

/* A cut stack has the same first frames, and its end says so. */
static void cut(struct stepped *p, struct trace_stack s, uint32_t keep,
		size_t whole)
{
	uint64_t pcs[FRAMES];
	enum trace_end why;
	size_t n;

	n = trace_walk(&s, NULL, find_code, p, pcs, 1, &why);
	assert_int_equal(n, 1);
	assert_int_equal(why, whole == 1 ? TRACE_END_ROOT : TRACE_END_DEPTH);
	if (s.here.size <= keep || s.left.size)
		return;
	s.here.size = keep;
	s.here.end = ABI_STACK_CAP;
	n = trace_walk(&s, NULL, find_code, p, pcs, FRAMES, &why);
	assert_true(n <= whole && n > 0);
	assert_memory_equal(pcs, p->got, n * sizeof(*pcs));
	assert_int_equal(why, n == whole ? TRACE_END_ROOT : TRACE_END_CAP);
}

/* Perf events copy from the stack pointer on: no red zone. */
static void without_red_zone(struct stepped *p, struct trace_stack s,
			     size_t whole)
{
	uint64_t pcs[FRAMES], start = p->regs.gpr[ABI_REG_SP];
	enum trace_end why;
	size_t n;

	s.here.bytes += start - s.here.start;
	s.here.size -= start - s.here.start;
	s.here.start = start;
	n = trace_walk(&s, NULL, find_code, p, pcs, FRAMES, &why);
	assert_int_equal(n, whole);
	assert_memory_equal(pcs, p->got, n * sizeof(*pcs));
	assert_int_equal(why, TRACE_END_ROOT);
}

/* Cached rules give the same stack. */
static void compare_cached(struct stepped *p, const struct trace_stack *s,
			   size_t n, enum trace_end why)
{
	uint64_t pcs[FRAMES];
	enum trace_end end;

	for (int i = 0; i < 2; i++) {
		assert_int_equal(trace_walk(s, &p->rules, find_code, p, pcs,
					    FRAMES, &end),
				 n);
		assert_memory_equal(pcs, p->got, n * sizeof(*pcs));
		assert_int_equal(end, why);
	}
}

static struct trace_piece copy(struct stepped *p, uint64_t start, uint64_t size,
			       uint8_t *to)
{
	struct iovec here = { to, size }, there = { (void *)start, size };
	ssize_t n = process_vm_readv(p->pid, &here, 1, &there, 1, 0);

	assert_true(n > 0);
	return (struct trace_piece){ to, start, (uint32_t)n, ABI_STACK_WHOLE,
				     0 };
}

/* The stack with the red zone; in a signal's, the interrupted one as well. */
static struct trace_stack copy_stack(struct stepped *p)
{
	struct trace_stack s = { .regs = &p->regs,
				 .is_code = walk_is_code,
				 .arg = p };
	uint64_t start = p->regs.gpr[ABI_REG_SP] - 128;

	if (p->stack_end - start < sizeof(p->stack)) {
		s.here = copy(p, start, p->stack_end - start, p->stack);
		return s;
	}
	s.here = copy(p, start, 32768, p->stack);
	s.left = copy(p, p->stack_end - LEFT, LEFT, p->left);
	p->others++;
	return s;
}

static void compare(struct stepped *p)
{
	struct trace_stack s;
	enum trace_end why;
	bool failed, same;
	size_t n;

	get_regs(p);
	if (is_seen(p))
		return;
	s = copy_stack(p);
	n = trace_walk(&s, NULL, find_code, p, p->got, FRAMES, &why);
	compare_cached(p, &s, n, why);
	p->n_want = 0;
	failed = dwfl_getthread_frames(p->dwfl, p->pid, on_frame, p);
	/* libdwfl takes any word there for a return address. */
	if (why == TRACE_END_NO_CFI && failed && p->n_want == n + 1 &&
	    !is_code(p, p->want[n]))
		p->n_want--;
	same = n == p->n_want && !memcmp(p->got, p->want, n * sizeof(*p->got));
	p->compared++;
	if (same && why == TRACE_END_NO_CFI && failed) {
		p->gaps++; /* crtbegin.o has no CFI */
	} else if (same && why == TRACE_END_TOP) {
		p->gaps++; /* nor has _init: nothing shows its frame */
	} else if (same && why == TRACE_END_ROOT) {
		memcpy(p->last, p->got, n * sizeof(*p->got));
		p->n_last = n;
		cut(p, s, 128 + p->compared % 512, n);
		without_red_zone(p, s, n);
	} else if (why == TRACE_END_ROOT &&
		   (goes_farther(p, n) || leaves_one_out(p, n))) {
		p->farther++;
	} else {
		differ(p, n, why);
	}
}

/* --- a program ------------------------------------------------------------------ */

static const Dwfl_Callbacks callbacks = {
	.find_elf = dwfl_linux_proc_find_elf,
	.find_debuginfo = dwfl_standard_find_debuginfo,
};

static void start(struct stepped *p, const char *path)
{
	int st;

	p->pid = fork();
	if (p->pid == 0) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		execl(path, path, NULL);
		_exit(127);
	}
	do { /* exec's stop, then its own */
		assert_int_equal(waitpid(p->pid, &st, 0), p->pid);
		assert_true(WIFSTOPPED(st));
		if (WSTOPSIG(st) == SIGTRAP)
			ptrace(PTRACE_CONT, p->pid, NULL, NULL);
	} while (WSTOPSIG(st) != SIGSTOP);
	read_maps(p);
	p->dwfl = dwfl_begin(&callbacks);
	assert_non_null(p->dwfl);
	assert_int_equal(dwfl_linux_proc_report(p->dwfl, p->pid), 0);
	assert_int_equal(dwfl_report_end(p->dwfl, NULL, NULL), 0);
	assert_int_equal(dwfl_linux_proc_attach(p->dwfl, p->pid, true), 0);
}

static void step_through(const char *compiler, const char *flags)
{
	struct stepped *p = calloc(1, sizeof(*p));
	char cmd[512], path[64];
	int st, sig = 0;

	assert_non_null(p);
	snprintf(path, sizeof(path), "%s/prog", dir);
	snprintf(cmd, sizeof(cmd), "%s -w %s -o %s %s.c", compiler, flags, path,
		 path);
	assert_int_equal(system(cmd), 0);
	assert_int_equal(trace_rules_init(&p->rules), 0);
	start(p, path);
	for (int i = 0; i < STEPS; i++) {
		if (i % EVERY == 0)
			compare(p);
		assert_int_equal(
			ptrace(PTRACE_SINGLESTEP, p->pid, NULL, (long)sig), 0);
		assert_int_equal(waitpid(p->pid, &st, 0), p->pid);
		if (!WIFSTOPPED(st))
			break;
		sig = WSTOPSIG(st) == SIGTRAP ? 0 : WSTOPSIG(st);
	}
	print_message("# %s %s: %lu stacks, %lu over a signal, %lu on another "
		      "stack, %lu farther, %lu in gaps\n",
		      compiler, flags, p->compared, p->signals, p->others,
		      p->farther, p->gaps);
	assert_true(p->others > 100 / EVERY);
	assert_true(p->compared > 1000);
	assert_true(50 * (p->farther + p->gaps) < p->compared);
	if (WIFSTOPPED(st)) {
		kill(p->pid, SIGKILL);
		waitpid(p->pid, &st, 0);
	}
	dwfl_end(p->dwfl);
	trace_rules_fini(&p->rules);
	for (size_t i = 0; i < p->n_images; i++)
		symbolizer_rows_free(p->images[i].rows);
	free(p);
}

static void gcc_without_frame_pointers(void **state)
{
	step_through("gcc", "-O0");
	step_through("gcc", "-O1 -fomit-frame-pointer");
	step_through("gcc", "-O2 -fomit-frame-pointer -Wl,-z,lazy");
	step_through("gcc", "-O3 -fno-pie -no-pie");
}

static void clang_without_frame_pointers(void **state)
{
	step_through("clang", "-O0 -fno-pie -no-pie");
	step_through("clang", "-O1");
	step_through("clang", "-O2 -fomit-frame-pointer -Wl,-z,lazy");
	step_through("clang", "-O3");
}

static void static_programs(void **state)
{
	step_through("gcc", "-O2 -static");
	step_through("gcc", "-O2 -static-pie -s");
}

static int setup(void **state)
{
	char path[64];
	FILE *f;

	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/prog.c", dir);
	f = fopen(path, "w");
	if (!f || fputs(source, f) < 0 || fclose(f))
		return -1;
	return 0;
}

static int teardown(void **state)
{
	char cmd[64];

	snprintf(cmd, sizeof(cmd), "rm -rf %s", dir);
	return system(cmd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gcc_without_frame_pointers),
		cmocka_unit_test(clang_without_frame_pointers),
		cmocka_unit_test(static_programs),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
