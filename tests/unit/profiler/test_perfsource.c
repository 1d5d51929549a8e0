// SPDX-License-Identifier: Apache-2.0
/*
 * A source of samples without BPF: what is made of the records of a perf ring,
 * and what /proc adds.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>
#include <linux/perf_event.h>

#include "base/base.h"
#include "profiler/source/perfsource_parse.h"
#include "profiler/source/perfsource_proc.h"

/* --- records by hand ------------------------------------------------------- */

struct buf {
	char data[4096];
	size_t len;
};

static void put(struct buf *b, const void *p, size_t n)
{
	assert_true(b->len + n <= sizeof(b->data));
	memcpy(b->data + b->len, p, n);
	b->len += n;
}

static void put32(struct buf *b, uint32_t v)
{
	put(b, &v, sizeof(v));
}

static void put64(struct buf *b, uint64_t v)
{
	put(b, &v, sizeof(v));
}

static void begin(struct buf *b, uint32_t type, uint16_t misc)
{
	struct perf_event_header h = { .type = type, .misc = misc };

	b->len = 0;
	put(b, &h, sizeof(h));
}

static void finish(struct buf *b)
{
	struct perf_event_header h;

	memcpy(&h, b->data, sizeof(h));
	h.size = b->len;
	memcpy(b->data, &h, sizeof(h));
}

/* What ends every record that is no sample. */
static void trailer(struct buf *b, uint64_t time)
{
	put32(b, 70);
	put32(b, 71);
	put64(b, time);
	put32(b, 3);
	put32(b, 0);
	finish(b);
}

#define SP 0x7ffc00001000ULL

struct shape {
	bool user, chain;
	size_t nkernel;
	uint64_t abi;
	uint64_t room, size;
};

/* Register i of those requested is 100 + i, but the stack pointer. */
static void sample(struct buf *b, const struct shape *s)
{
	uint64_t i;

	begin(b, PERF_RECORD_SAMPLE,
	      s->user ? PERF_RECORD_MISC_USER : PERF_RECORD_MISC_KERNEL);
	put64(b, 0xffffffff81000010);
	put32(b, 70);
	put32(b, 71);
	put64(b, 123456789);
	put32(b, 3);
	put32(b, 0);
	if (s->chain) {
		put64(b, s->nkernel + 1);
		put64(b, PERF_CONTEXT_KERNEL);
		for (i = 0; i < s->nkernel; i++)
			put64(b, 0xffffffff81000010 + i);
	}
	put64(b, s->abi);
	for (i = 0; s->abi && i < 18; i++)
		put64(b, i == 7 ? SP : 100 + i);
	put64(b, s->room);
	for (i = 0; i < s->room; i++)
		put(b, "", 1);
	if (s->room)
		put64(b, s->size);
	finish(b);
}

static const struct shape in_kernel = { .chain = true,
					.nkernel = 3,
					.abi = PERF_SAMPLE_REGS_ABI_64,
					.room = 256,
					.size = 56 };

static struct abi_sample *built(const struct shape *shape)
{
	struct perfsource_record r;
	struct abi_sample *s;
	struct buf b;

	sample(&b, shape);
	assert_int_equal(perfsource_parse(b.data, b.len, shape->chain, &r), 0);
	assert_int_equal(r.kind, PERFSOURCE_SAMPLE);
	s = test_malloc(perfsource_sample_size(&r));
	perfsource_sample_build(&r, s);
	assert_int_equal(s->size, perfsource_sample_size(&r));
	return s;
}

/* The payload of the part of that type, or NULL. */
static const void *part(const struct abi_sample *s, uint32_t type, size_t *size)
{
	const uint8_t *p = (const uint8_t *)s;
	size_t at = sizeof(*s);
	struct abi_part h;

	while (at < s->size) {
		memcpy(&h, p + at, sizeof(h));
		assert_true(at + sizeof(h) + h.size <= s->size);
		if (h.type == type) {
			*size = h.size;
			return p + at + sizeof(h);
		}
		at += sizeof(h) + ((h.size + 7) & ~7U);
	}
	assert_int_equal(at, s->size);
	return NULL;
}

static void a_sample_in_the_kernel_has_all_its_parts(void **state)
{
	struct abi_sample *s = built(&in_kernel);
	struct abi_stack stack;
	struct abi_regs regs;
	uint64_t chain[3];
	const void *p;
	size_t n;

	assert_int_equal(s->flags, 0);
	assert_int_equal(s->time, 123456789);
	assert_int_equal(s->key.tgid, 70);
	assert_int_equal(s->tid, 71);
	assert_int_equal(s->cpu, 3);
	p = part(s, ABI_PART_KSTACK, &n);
	assert_int_equal(n, sizeof(chain));
	memcpy(chain, p, sizeof(chain));
	assert_int_equal(chain[0], 0xffffffff81000010); /* not the marker */
	assert_int_equal(chain[2], 0xffffffff81000012);
	p = part(s, ABI_PART_REGS, &n);
	assert_int_equal(n, sizeof(regs));
	memcpy(&regs, p, sizeof(regs));
	/* DWARF: rax rdx rcx rbx rsi rdi rbp rsp; perf: ax bx cx dx si di bp. */
	assert_int_equal(regs.gpr[0], 100);
	assert_int_equal(regs.gpr[1], 103);
	assert_int_equal(regs.gpr[2], 102);
	assert_int_equal(regs.gpr[3], 101);
	assert_int_equal(regs.gpr[ABI_REG_BP], 106);
	assert_int_equal(regs.gpr[ABI_REG_SP], SP);
	assert_int_equal(regs.gpr[8], 110);
	assert_int_equal(regs.gpr[15], 117);
	assert_int_equal(regs.ip, 108);
	assert_int_equal(regs.flags, 109);
	p = part(s, ABI_PART_STACK, &n);
	assert_int_equal(n, sizeof(stack) + 56);
	memcpy(&stack, p, sizeof(stack));
	assert_int_equal(stack.start, SP);
	assert_int_equal(stack.size, 56); /* and not the room there was */
	assert_int_equal(stack.end, ABI_STACK_FAULT);
	test_free(s);
}

static void how_a_copy_ends_is_told(void **state)
{
	static const struct {
		bool user;
		uint64_t size;
		uint32_t end;
	} cases[] = {
		{ false, 256, ABI_STACK_CAP },
		{ true, 256, ABI_STACK_CAP },
		{ true, 248, ABI_STACK_FAULT },
		{ true, 0, ABI_STACK_FAULT },
	};
	struct abi_stack stack;
	struct abi_sample *s;
	const void *p;
	size_t i, n;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		struct shape shape = in_kernel;

		shape.user = cases[i].user;
		shape.size = cases[i].size;
		s = built(&shape);
		p = part(s, ABI_PART_STACK, &n);
		assert_non_null(p);
		memcpy(&stack, p, sizeof(stack));
		assert_int_equal(stack.end, cases[i].end);
		assert_int_equal(stack.size, cases[i].size);
		assert_int_equal(n, sizeof(stack) + cases[i].size);
		test_free(s);
	}
}

static void who_has_no_user_side_is_flagged(void **state)
{
	struct shape shape = in_kernel;
	struct abi_sample *s;
	size_t n;

	shape.abi = PERF_SAMPLE_REGS_ABI_NONE;
	shape.room = 0;
	s = built(&shape);
	assert_int_equal(s->flags, ABI_SAMPLE_KTHREAD);
	assert_non_null(part(s, ABI_PART_KSTACK, &n));
	assert_null(part(s, ABI_PART_REGS, &n));
	assert_null(part(s, ABI_PART_STACK, &n));
	test_free(s);
	/* It has given its memory back: nothing could be read. */
	shape = in_kernel;
	shape.size = 0;
	s = built(&shape);
	assert_int_equal(s->flags, ABI_SAMPLE_NOMM);
	assert_null(part(s, ABI_PART_REGS, &n));
	test_free(s);
	shape = in_kernel;
	shape.abi = PERF_SAMPLE_REGS_ABI_32;
	s = built(&shape);
	assert_int_equal(s->flags, ABI_SAMPLE_COMPAT);
	test_free(s);
}

static void a_sample_of_user_code_only_has_no_chain(void **state)
{
	struct shape shape = in_kernel;
	struct abi_sample *s;
	size_t n;

	shape.user = true;
	shape.chain = false;
	s = built(&shape);
	assert_int_equal(s->flags, ABI_SAMPLE_USER);
	assert_null(part(s, ABI_PART_KSTACK, &n));
	assert_non_null(part(s, ABI_PART_REGS, &n));
	assert_non_null(part(s, ABI_PART_STACK, &n));
	test_free(s);
}

static void a_chain_has_its_limit_and_at_least_the_address(void **state)
{
	struct shape shape = in_kernel;
	struct abi_sample *s;
	uint64_t pc;
	const void *p;
	size_t n;

	shape.nkernel = ABI_KSTACK_MAX + 9;
	s = built(&shape);
	assert_non_null(part(s, ABI_PART_KSTACK, &n));
	assert_int_equal(n, ABI_KSTACK_MAX * sizeof(uint64_t));
	test_free(s);
	shape.nkernel = 0;
	s = built(&shape);
	p = part(s, ABI_PART_KSTACK, &n);
	assert_int_equal(n, sizeof(pc));
	memcpy(&pc, p, sizeof(pc));
	assert_int_equal(pc, 0xffffffff81000010);
	test_free(s);
}

static void what_a_sample_inside_execve_loses(void **state)
{
	struct abi_sample *s = built(&in_kernel);
	size_t n;

	perfsource_sample_strip(s);
	assert_int_equal(s->flags, ABI_SAMPLE_EXEC);
	assert_non_null(part(s, ABI_PART_KSTACK, &n));
	assert_null(part(s, ABI_PART_REGS, &n));
	assert_null(part(s, ABI_PART_STACK, &n));
	test_free(s);
}

static void task(struct buf *b, uint32_t type, uint32_t pid, uint32_t ppid,
		 uint32_t tid, uint32_t ptid)
{
	begin(b, type, 0);
	put32(b, pid);
	put32(b, ppid);
	put32(b, tid);
	put32(b, ptid);
	put64(b, 5);
	trailer(b, 6);
}

static void name(struct buf *b, uint16_t misc)
{
	begin(b, PERF_RECORD_COMM, misc);
	put32(b, 70);
	put32(b, 71);
	put(b, "true\0\0\0", 8);
	trailer(b, 9);
}

static void the_side_band_is_told_apart(void **state)
{
	struct perfsource_record r;
	struct buf b;

	task(&b, PERF_RECORD_FORK, 8, 7, 9, 6);
	assert_int_equal(perfsource_parse(b.data, b.len, true, &r), 0);
	assert_int_equal(r.kind, PERFSOURCE_FORK);
	assert_int_equal(r.pid, 8);
	assert_int_equal(r.ppid, 7);
	assert_int_equal(r.tid, 9);
	assert_int_equal(r.ptid, 6);
	assert_int_equal(r.time, 6);
	task(&b, PERF_RECORD_EXIT, 8, 7, 9, 6);
	assert_int_equal(perfsource_parse(b.data, b.len, true, &r), 0);
	assert_int_equal(r.kind, PERFSOURCE_EXIT);
	name(&b, 0);
	assert_int_equal(perfsource_parse(b.data, b.len, true, &r), 0);
	assert_int_equal(r.kind, PERFSOURCE_COMM);
	assert_int_equal(r.tid, 71);
	assert_string_equal(r.comm, "true");
	name(&b, PERF_RECORD_MISC_COMM_EXEC);
	assert_int_equal(perfsource_parse(b.data, b.len, true, &r), 0);
	assert_int_equal(r.kind, PERFSOURCE_EXEC);
	assert_int_equal(r.map.kind, PM_MAP_EXEC);
	assert_int_equal(r.map.tgid, 70);
	assert_int_equal(r.map.time, 9);
	begin(&b, PERF_RECORD_LOST, 0);
	put64(&b, 1);
	put64(&b, 42);
	trailer(&b, 10);
	assert_int_equal(perfsource_parse(b.data, b.len, true, &r), 0);
	assert_int_equal(r.kind, PERFSOURCE_LOST);
	assert_int_equal(r.lost, 42);
	assert_int_equal(r.map.kind, PM_MAP_LOST);
	begin(&b, PERF_RECORD_THROTTLE, 0);
	trailer(&b, 11);
	assert_int_equal(perfsource_parse(b.data, b.len, true, &r), 0);
	assert_int_equal(r.kind, PERFSOURCE_THROTTLE);
	begin(&b, 77, 0);
	trailer(&b, 11);
	assert_int_equal(perfsource_parse(b.data, b.len, true, &r), 0);
	assert_int_equal(r.kind, PERFSOURCE_OTHER);
}

static void mapping(struct buf *b)
{
	uint64_t i;

	begin(b, PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER);
	put32(b, 70);
	put32(b, 71);
	for (i = 1; i < 7; i++)
		put64(b, i << 12);
	put64(b, 5);
	put(b, "/bin/true\0\0\0\0\0\0", 16);
	trailer(b, 12);
}

static void a_mapping_is_the_mapping_streams(void **state)
{
	struct perfsource_record r;
	struct buf b;

	mapping(&b);
	assert_int_equal(perfsource_parse(b.data, b.len, true, &r), 0);
	assert_int_equal(r.kind, PERFSOURCE_MAP);
	assert_int_equal(r.map.tgid, 70);
	assert_int_equal(r.map.time, 12);
	assert_int_equal(r.map.start, 0x1000);
	assert_int_equal(r.map.end, 0x3000);
	assert_string_equal(r.map.path, "/bin/true");
}

/* Each is put into memory of its exact size: valgrind and ASan look on. */
static void every_truncation(const struct buf *b, size_t least)
{
	struct perf_event_header h;
	struct perfsource_record r;
	char *exact;
	size_t n;
	int err;

	for (n = 0; n < b->len; n++) {
		exact = malloc(n ? n : 1);
		memcpy(exact, b->data, n);
		if (n >= sizeof(h)) {
			memcpy(&h, exact, sizeof(h));
			h.size = n;
			memcpy(exact, &h, sizeof(h));
		}
		err = perfsource_parse(exact, n, true, &r);
		if (n < least)
			assert_int_equal(err, -EINVAL);
		free(exact);
	}
}

static void what_is_cut_off_is_refused(void **state)
{
	struct perfsource_record r;
	struct buf b;

	sample(&b, &in_kernel);
	every_truncation(&b, b.len);
	task(&b, PERF_RECORD_FORK, 8, 7, 9, 6);
	every_truncation(&b, b.len);
	name(&b, 0);
	every_truncation(&b, 8 + 8 + 24);
	mapping(&b);
	every_truncation(&b, 8 + 64 + 1 + 24);
	task(&b, PERF_RECORD_FORK, 8, 7, 9, 6);
	assert_int_equal(perfsource_parse(b.data, b.len - 8, true, &r),
			 -EINVAL);
}

/* Complete by its parts, but its header has another length. */
static void another_length_than_it_says_is_refused(void **state)
{
	struct perf_event_header h;
	struct perfsource_record r;
	struct buf b;

	sample(&b, &in_kernel);
	memcpy(&h, b.data, sizeof(h));
	h.size += 8;
	memcpy(b.data, &h, sizeof(h));
	assert_int_equal(perfsource_parse(b.data, b.len, true, &r), -EINVAL);
}

static void lengths_that_lie_are_refused(void **state)
{
	struct shape shape = in_kernel;
	struct perfsource_record r;
	uint64_t huge = UINT64_MAX / 4;
	struct buf b;

	shape.size = 257; /* more than the room */
	sample(&b, &shape);
	assert_int_equal(perfsource_parse(b.data, b.len, true, &r), -EINVAL);
	sample(&b, &in_kernel);
	memcpy(b.data + 8 + 32, &huge, sizeof(huge)); /* of the chain */
	assert_int_equal(perfsource_parse(b.data, b.len, true, &r), -EINVAL);
	sample(&b, &in_kernel);
	memcpy(b.data + 8 + 32 + 8 + 4 * 8 + 19 * 8, &huge, sizeof(huge));
	assert_int_equal(perfsource_parse(b.data, b.len, true, &r), -EINVAL);
}

/* --- /proc ----------------------------------------------------------------- */

static void this_process_is_read(void **state)
{
	struct perfsource_process *p;
	char exe[4096] = "", *block;
	uint64_t now = clock_boottime_ns();
	int dir;

	assert_int_equal(perfsource_process_read("/proc", getpid(), 64, &p), 0);
	block = (char *)p - 64;
	memset(block, 0xff, 64); /* ours */
	assert_int_equal(p->pid, getpid());
	assert_int_equal(p->stat.ppid, getppid());
	assert_int_equal(p->uid, getuid());
	assert_int_equal(p->gid, getgid());
	assert_false(p->stat.kthread);
	assert_true(p->stat.start < now && p->begin >= now);
	/* Not by the whole path: valgrind has its own answer to that. */
	dir = open("/proc/self", O_PATH);
	assert_true(readlinkat(dir, "exe", exe, sizeof(exe) - 1) > 0);
	close(dir);
	assert_string_equal(p->exe, exe);
	assert_non_null(p->cwd);
	assert_true(p->cmdline_len > 0 && !p->cmdline[p->cmdline_len - 1]);
	assert_true(p->nthreads >= 1);
	assert_int_equal(p->threads[0].tid, getpid());
	assert_string_equal(p->threads[0].comm, p->stat.comm);
	free(block);
}

static void a_process_that_is_not_there_is_an_error(void **state)
{
	struct perfsource_process *p;

	assert_int_equal(perfsource_process_read("/proc", 4194304, 0, &p),
			 -ENOENT);
	assert_int_equal(perfsource_process_read("/nonexistent", 1, 0, &p),
			 -ENOENT);
}

/* --- readings that wait --------------------------------------------------------- */

static char fake_proc[64];

/* A process whose stat is a FIFO, which opens when something writes to it. */
static void fake_process(uint32_t pid, bool hangs)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%u", fake_proc, pid);
	assert_int_equal(mkdir(path, 0755), 0);
	snprintf(path, sizeof(path), "%s/%u/stat", fake_proc, pid);
	if (hangs) {
		assert_int_equal(mkfifo(path, 0600), 0);
		return;
	}
	f = fopen(path, "we");
	assert_non_null(f);
	fprintf(f, "%u (one) S 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 77", pid);
	fclose(f);
}

/* What hangs there ends. */
static void fake_answer(uint32_t pid)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%u/stat", fake_proc, pid);
	close(open(path, O_WRONLY | O_CLOEXEC));
}

static uint64_t read_fake(struct perfsource_reader *rd,
			  struct perfsource_reading *r, size_t n)
{
	uint64_t begin = clock_awake_ns();

	perfsource_reader_run(rd, fake_proc, r, n, 16);
	return (clock_awake_ns() - begin) / CLOCK_NSEC_PER_MSEC;
}

static void readings_free(struct perfsource_reading *r, size_t n)
{
	for (; n--; r++)
		if (r->out)
			free((char *)r->out - 16);
}

static void a_reading_that_waits_is_abandoned(void **state)
{
	struct perfsource_reading r[] = {
		{ .pid = 5 }, { .pid = 6 }, { .pid = 7 }, { .pid = 8 }
	};
	struct perfsource_reader rd = { 0 };

	strcpy(fake_proc, "/tmp/test_perfsource.XXXXXX");
	assert_non_null(mkdtemp(fake_proc));
	fake_process(5, false);
	fake_process(6, true);
	fake_process(7, false);
	/* The others are read; of this one the owner is known. */
	assert_true(read_fake(&rd, r, 4) >= 90);
	assert_int_equal(r[0].err, 0);
	assert_string_equal(r[0].out->stat.comm, "one");
	assert_int_equal(r[1].err, -EAGAIN);
	assert_int_equal(r[1].out->pid, 6);
	assert_int_equal(r[1].out->uid, getuid());
	assert_int_equal(r[2].err, 0);
	assert_int_equal(r[2].out->pid, 7);
	assert_int_equal(r[3].err, -ENOENT);
	assert_null(r[3].out);
	assert_int_equal(rd.unread, 1);
	assert_int_equal(patience_abandoned(), 1);
	readings_free(r, 4);
	/* It is not waited for again. */
	assert_true(read_fake(&rd, r, 3) < 90);
	assert_int_equal(r[0].err, 0);
	assert_int_equal(r[1].err, -EAGAIN);
	assert_int_equal(rd.unread, 2);
	readings_free(r, 3);
	/* A second one of the user: then none of that user is read. */
	fake_process(9, true);
	r[1].pid = 9;
	read_fake(&rd, r, 3);
	assert_int_equal(rd.nhung, 2);
	assert_int_equal(r[1].err, -EAGAIN);
	assert_int_equal(rd.unread, 5);
	readings_free(r, 3);
	/* A minute later they are. */
	rd.hung[0].until = rd.hung[1].until = clock_boottime_ns();
	read_fake(&rd, r, 1);
	assert_int_equal(r[0].err, 0);
	readings_free(r, 1);
	perfsource_reader_fini(&rd);
	fake_answer(6);
	fake_answer(9);
	while (patience_abandoned())
		usleep(1000);
}

static int remove_fake_proc(void **state)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s", fake_proc);
	return system(command);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_sample_in_the_kernel_has_all_its_parts),
		cmocka_unit_test(how_a_copy_ends_is_told),
		cmocka_unit_test(who_has_no_user_side_is_flagged),
		cmocka_unit_test(a_sample_of_user_code_only_has_no_chain),
		cmocka_unit_test(
			a_chain_has_its_limit_and_at_least_the_address),
		cmocka_unit_test(what_a_sample_inside_execve_loses),
		cmocka_unit_test(the_side_band_is_told_apart),
		cmocka_unit_test(a_mapping_is_the_mapping_streams),
		cmocka_unit_test(what_is_cut_off_is_refused),
		cmocka_unit_test(another_length_than_it_says_is_refused),
		cmocka_unit_test(lengths_that_lie_are_refused),
		cmocka_unit_test(this_process_is_read),
		cmocka_unit_test(a_process_that_is_not_there_is_an_error),
		cmocka_unit_test_teardown(a_reading_that_waits_is_abandoned,
					  remove_fake_proc),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
