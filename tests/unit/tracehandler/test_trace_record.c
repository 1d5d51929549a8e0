// SPDX-License-Identifier: Apache-2.0
/* The record parser: all parts of a sample, and records cut at any length. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "tracehandler/record.h"

struct rec {
	uint8_t buf[1024];
	size_t len;
};

static void *part(struct rec *r, uint32_t type, uint32_t size)
{
	struct abi_part p = { type, size };
	uint8_t *data = r->buf + r->len + sizeof(p);

	memcpy(r->buf + r->len, &p, sizeof(p));
	r->len += sizeof(p) + ((size + 7) & ~7U);
	return data;
}

static void finish(struct rec *r)
{
	struct abi_sample h = { .size = r->len, .time = 5, .tid = 9 };

	memset(h.comm, 'x', sizeof(h.comm)); /* no NUL */
	memcpy(r->buf, &h, sizeof(h));
}

/* All types of parts, an unknown one, and bytes behind a short stack. */
static void make(struct rec *r)
{
	static const uint64_t k[] = { 11, 22, 33 };
	struct abi_regs regs = { .ip = 77 };
	struct abi_stack stack = { 0x1000, 10, ABI_STACK_FAULT, 0 };
	uint8_t *p;

	memset(r, 0, sizeof(*r));
	r->len = sizeof(struct abi_sample);
	memcpy(part(r, ABI_PART_KSTACK, sizeof(k)), k, sizeof(k));
	memcpy(part(r, 99, 13), "of the future", 13);
	memcpy(part(r, ABI_PART_REGS, sizeof(regs)), &regs, sizeof(regs));
	p = part(r, ABI_PART_STACK, sizeof(stack) + 32);
	memcpy(p, &stack, sizeof(stack));
	memcpy(p + sizeof(stack), "0123456789abcdef", 16);
	finish(r);
}

static void test_parts(void **state)
{
	struct trace_record out;
	struct rec r;

	make(&r);
	assert_int_equal(trace_record_parse(r.buf, r.len, &out), 0);
	assert_int_equal(out.head.time, 5);
	assert_int_equal(out.head.tid, 9);
	assert_int_equal(strlen(out.head.comm), 15);
	assert_int_equal(out.nkstack, 3);
	assert_int_equal(trace_record_kpc(&out, 2), 33);
	assert_true(out.has_regs && out.has_stack);
	assert_int_equal(out.regs.ip, 77);
	assert_int_equal(out.stack.start, 0x1000);
	assert_int_equal(out.stack.size, 10);
	assert_int_equal(out.stack.end, ABI_STACK_FAULT);
	assert_memory_equal(out.stack.bytes, "0123456789", 10);
}

static void test_code(void **state)
{
	struct abi_code code = { 5, "\x55\xc3 any" };
	struct trace_record out;
	struct rec r;
	void *p;

	make(&r);
	p = part(&r, ABI_PART_CODE, sizeof(code));
	memcpy(p, &code, sizeof(code));
	finish(&r);
	assert_int_equal(trace_record_parse(r.buf, r.len, &out), 0);
	assert_int_equal(out.code_len, 5);
	assert_memory_equal(out.code, code.bytes, 5);
	code.size = ABI_CODE_MAX + 1;
	memcpy(p, &code, sizeof(code));
	assert_int_equal(trace_record_parse(r.buf, r.len, &out), -EINVAL);
	make(&r);
	part(&r, ABI_PART_CODE, sizeof(code) - 8);
	finish(&r);
	assert_int_equal(trace_record_parse(r.buf, r.len, &out), -EINVAL);
}

static void test_go(void **state)
{
	struct abi_go go = { ABI_GO_VDSO, 1, 2, 3, 4, 5, 6 };
	struct trace_record out;
	struct rec r;
	void *p;

	make(&r);
	assert_int_equal(trace_record_parse(r.buf, r.len, &out), 0);
	assert_false(out.has_go);
	p = part(&r, ABI_PART_GO, sizeof(go));
	memcpy(p, &go, sizeof(go));
	finish(&r);
	assert_int_equal(trace_record_parse(r.buf, r.len, &out), 0);
	assert_true(out.has_go);
	assert_memory_equal(&out.go, &go, sizeof(go));
	go.state = ABI_GO_MAX;
	memcpy(p, &go, sizeof(go));
	assert_int_equal(trace_record_parse(r.buf, r.len, &out), -EINVAL);
	make(&r);
	part(&r, ABI_PART_GO, sizeof(go) - 8);
	finish(&r);
	assert_int_equal(trace_record_parse(r.buf, r.len, &out), -EINVAL);
}

/* A second stack is the one left for a signal's. */
static void test_two_stacks(void **state)
{
	static const struct abi_stack stacks[] = {
		{ 0x1000, 8, ABI_STACK_WHOLE, 0 },
		{ 0x9000, 16, ABI_STACK_CAP, 0 },
		{ 0x5000, 8, ABI_STACK_FAULT, 0 },
	};
	struct trace_record out;
	struct rec r;
	size_t i;

	memset(&r, 0, sizeof(r));
	r.len = sizeof(struct abi_sample);
	for (i = 0; i < 2; i++)
		memcpy(part(&r, ABI_PART_STACK, sizeof(stacks[i]) + 16),
		       &stacks[i], sizeof(stacks[i]));
	finish(&r);
	assert_int_equal(trace_record_parse(r.buf, r.len, &out), 0);
	assert_int_equal(out.stack.start, 0x1000);
	assert_int_equal(out.stack.size, 8);
	assert_true(out.has_left);
	assert_int_equal(out.left.start, 0x9000);
	assert_int_equal(out.left.size, 16);
	assert_int_equal(out.left.end, ABI_STACK_CAP);
	assert_ptr_equal(out.left.bytes, r.buf + r.len - 16);
}

static void test_header_alone(void **state)
{
	struct trace_record out;
	struct rec r = { .len = sizeof(struct abi_sample) };

	finish(&r);
	assert_int_equal(trace_record_parse(r.buf, r.len, &out), 0);
	assert_false(out.has_regs || out.has_stack || out.nkstack);
	/* The buffer may be longer than the record: the size in its header counts. */
	assert_int_equal(trace_record_parse(r.buf, r.len + 100, &out), 0);
}

/* Cut at any length, with the old size in the header and with that length. */
static void test_every_truncation(void **state)
{
	struct trace_record out;
	struct rec r;
	size_t len, ok = 0;

	make(&r);
	for (len = 0; len < r.len; len++) {
		uint8_t *cut = malloc(
			len ? len
			    : 1); /* so that a sanitizer detects reads beyond it */
		uint32_t size = len;
		int err;

		assert_non_null(cut);
		memcpy(cut, r.buf, len);
		assert_int_equal(trace_record_parse(cut, len, &out), -EINVAL);
		if (len >= sizeof(size))
			memcpy(cut, &size, sizeof(size));
		err = trace_record_parse(cut, len, &out);
		assert_true(!err || err == -EINVAL);
		assert_true(err || len >= sizeof(struct abi_sample));
		ok += !err;
		free(cut);
	}
	/* after the header, after each part, and in its padding */
	assert_in_range(ok, 4, 16);
}

static void test_wrong_lengths(void **state)
{
	static const struct {
		uint32_t type, size;
	} bad[] = {
		{ ABI_PART_KSTACK, 12 },
		{ ABI_PART_KSTACK, UINT32_MAX },
		{ ABI_PART_REGS, sizeof(struct abi_regs) - 8 },
		{ ABI_PART_STACK, sizeof(struct abi_stack) - 1 },
		{ 1234, UINT32_MAX - 3 },
	};
	struct trace_record out;
	struct abi_part p;
	struct rec r;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		memset(&r, 0, sizeof(r));
		r.len = sizeof(struct abi_sample);
		part(&r, bad[i].type, 256);
		p = (struct abi_part){ bad[i].type, bad[i].size };
		memcpy(r.buf + sizeof(struct abi_sample), &p, sizeof(p));
		finish(&r);
		assert_int_equal(trace_record_parse(r.buf, r.len, &out),
				 -EINVAL);
	}
}

/* A stack larger than its part; a stack beyond the address space. */
static void test_stack_bounds(void **state)
{
	static const struct abi_stack bad[] = {
		{ 0x1000, 33, 0, 0 },
		{ 0x1000, UINT32_MAX, 0, 0 },
		{ UINT64_MAX - 7, 16, 0, 0 },
	};
	struct trace_record out;
	struct rec r;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		memset(&r, 0, sizeof(r));
		r.len = sizeof(struct abi_sample);
		memcpy(part(&r, ABI_PART_STACK, sizeof(bad[i]) + 32), &bad[i],
		       sizeof(bad[i]));
		finish(&r);
		assert_int_equal(trace_record_parse(r.buf, r.len, &out),
				 -EINVAL);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parts),
		cmocka_unit_test(test_code),
		cmocka_unit_test(test_go),
		cmocka_unit_test(test_two_stacks),
		cmocka_unit_test(test_header_alone),
		cmocka_unit_test(test_every_truncation),
		cmocka_unit_test(test_wrong_lengths),
		cmocka_unit_test(test_stack_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
