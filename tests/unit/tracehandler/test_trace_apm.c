// SPDX-License-Identifier: Apache-2.0
/*
 * What an APM agent is told of a resolved trace, and the id of its stack: with the numbers
 * of another implementation of FNV.
 */
#include "bpf/abi_trace.h"
#include "tests/unit/tracehandler/test_trace_fake.h"
#include "tracehandler/stackid.h"

static const struct abi_trace ids = {
	.trace_id = { 0xaa, [15] = 1 },
	.span_id = { 0xbb, [7] = 2 },
	.transaction_id = { 0xcc, [7] = 3 },
};

/* Of two frames of the program, in user mode. */
static void traced(struct rec *r, uint64_t time, const struct abi_trace *t)
{
	const uint64_t pcs[] = { CODE + 0x10, CODE + 0x20 };

	sample(r, time, 0, pcs, 2, ABI_STACK_WHOLE);
	if (t)
		part(r, ABI_PART_TRACE, t, sizeof(*t), NULL, 0);
	finish(r, time, ABI_SAMPLE_USER);
}

static void an_agent_that_listens_is_told_of_a_trace(void **state)
{
	struct fixture *f = begin((struct trace_opts){ 0 });
	uint8_t first[16];
	struct rec r;

	memset(&told, 0, sizeof(told));
	traced(&r, 1000, &ids);
	give(f, &r);
	tick(f, 1000);
	answer(0);
	assert_int_equal(f->out.n, 1);
	assert_int_equal(told.n, 0);
	pm.image.agent = true;
	/* Also where the whole stack is known already. */
	for (uint64_t i = 1; i < 5; i++) {
		traced(&r, 1000 + i, &ids);
		give(f, &r);
		assert_int_equal(f->out.n, 1 + i);
		assert_int_equal(told.n, i);
		assert_int_equal(told.count, 1);
		assert_memory_equal(told.ids.trace_id, ids.trace_id, 16);
		assert_memory_equal(told.ids.transaction_id, ids.transaction_id,
				    8);
		if (i > 1)
			assert_memory_equal(told.stack_id, first, 16);
		memcpy(first, told.stack_id, 16);
	}
	finish_all(f);
}

static void without_a_transaction_it_is_not(void **state)
{
	struct fixture *f = begin((struct trace_opts){ 0 });
	struct abi_trace none = ids;
	struct rec r;

	memset(&told, 0, sizeof(told));
	memset(none.transaction_id, 0, sizeof(none.transaction_id));
	pm.image.agent = true;
	traced(&r, 1000, &none);
	give(f, &r);
	traced(&r, 1001, NULL);
	give(f, &r);
	tick(f, 1001);
	answer(0);
	assert_int_equal(f->out.n, 2);
	assert_int_equal(told.n, 0);
	finish_all(f);
}

static void the_id_of_a_stack_is_its_hash(void **state)
{
	static const uint8_t nothing[16] = { 0x6c, 0x62, 0x27, 0x2e, 0x07, 0xbb,
					     0x01, 0x42, 0x62, 0xb8, 0x21, 0x75,
					     0x62, 0x95, 0xc5, 0x8d };
	static const uint8_t want[16] = { 0xf2, 0x71, 0x43, 0xe7, 0x09, 0xc8,
					  0x10, 0x2e, 0xbc, 0xbb, 0xa1, 0xa0,
					  0x60, 0x27, 0xac, 0x52 };
	struct reporter_frame frames[3] = {
		{ .place = { .kind = REPORTER_PLACE_EXE, .exe = &pm.program },
		  .vaddr = 4198400 },
		{ .place = { .kind = REPORTER_PLACE_EXE, .exe = &pm.kernel },
		  .vaddr = 18446744071578845184ULL },
		{ .place = { .kind = REPORTER_PLACE_MARK, .id = 3 } },
	};
	uint8_t id[16];

	for (uint8_t i = 0; i < 16; i++)
		pm.program.file_id[i] = i + 1;
	memset(pm.kernel.file_id, 0, sizeof(pm.kernel.file_id));
	trace_stack_id(frames, 0, id);
	assert_memory_equal(id, nothing, sizeof(id));
	trace_stack_id(frames, 3, id);
	assert_memory_equal(id, want, sizeof(id));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_agent_that_listens_is_told_of_a_trace),
		cmocka_unit_test(without_a_transaction_it_is_not),
		cmocka_unit_test(the_id_of_a_stack_is_its_hash),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
