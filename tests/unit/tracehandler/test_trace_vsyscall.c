// SPDX-License-Identifier: Apache-2.0
/*
 * The vsyscall page: code of three functions that have nothing on the stack but their
 * return address, in every process. Samples there are in the kernel, which emulates them.
 */
#include "tests/unit/tracehandler/test_trace_fake.h"

#define PAGE 0xffffffffff600000ULL
#define CALLER (CODE + 0x120)

/* In the kernel for code at 'pc', which CALLER has called; frame pointers from it on. */
static void make(struct rec *r, uint64_t time, uint64_t pc)
{
	uint64_t k[] = { KERNEL, KERNEL + 0x1000, pc };
	uint64_t words[] = { CALLER, 0, 0, CODE + 0x220 };
	struct abi_regs regs = { .ip = pc };
	struct abi_stack stack = { STACK, sizeof(words), ABI_STACK_WHOLE, 0 };

	memset(r, 0, sizeof(*r));
	r->len = sizeof(struct abi_sample);
	regs.gpr[ABI_REG_SP] = STACK;
	regs.gpr[ABI_REG_BP] = STACK + 16;
	part(r, ABI_PART_KSTACK, k, sizeof(k), NULL, 0);
	part(r, ABI_PART_REGS, &regs, sizeof(regs), NULL, 0);
	part(r, ABI_PART_STACK, &stack, sizeof(stack), words, sizeof(words));
	finish(r, time, 0);
}

static void test_whole_and_named(void **state)
{
	static const struct {
		uint64_t offset;
		const char *name;
	} at[] = { { 0, "vgettimeofday" },
		   { 0x400, "vtime" },
		   { 0x800, "vgetcpu" },
		   { 0xc00, "[vsyscall]+0xffffffffff600c00" } };
	struct fixture *f = begin((struct trace_opts){ 0 });
	char want[128];
	struct rec r;

	for (size_t i = 0; i < ARRAY_SIZE(at); i++) {
		/* The third is a kept stack. */
		for (uint64_t k = 0; k < 3; k++) {
			make(&r, 10 * i + k + 1, PAGE + at[i].offset);
			give(f, &r);
			tick(f, 10 * i + k + 1);
			while (pm.nasks)
				answer(0);
		}
		snprintf(want, sizeof(want),
			 "fn_ffffffff810000;fn_ffffffff81000f;%s;"
			 "program+0x1111f;program+0x1121f;",
			 at[i].name);
		for (size_t k = 3 * i; k < 3 * i + 3; k++)
			assert_string_equal(f->out.text[k], want);
	}
	tick(f, 100);
	assert_int_equal(f->st.stack_root, 12);
	assert_int_equal(f->st.not_mapped, 0);
	assert_int_equal(pm.vsyscall.asked, 0);
	finish_all(f);
}

/* A return address there is none: its functions call nothing. */
static void test_not_called(void **state)
{
	static const uint64_t pcs[] = { CODE + 0x120, PAGE + 0x10 };
	struct fixture *f = begin((struct trace_opts){ 0 });
	struct rec r;

	sample(&r, 1, 0, pcs, 2, ABI_STACK_WHOLE);
	give(f, &r);
	tick(f, 1);
	while (pm.nasks)
		answer(0);
	tick(f, 2);
	assert_int_equal(f->st.stack_root, 0);
	assert_null(strstr(f->out.text[0], "vgettimeofday"));
	finish_all(f);
}

/* Only the kernel's last address is the user's: a page below or above is not the page. */
static void test_others_stay(void **state)
{
	static const uint64_t pcs[] = { CODE + 0x120 };
	struct fixture *f = begin((struct trace_opts){ 0 });
	uint64_t *last;
	struct rec r;

	for (uint64_t i = 0; i < 2; i++) {
		sample(&r, i + 1, 2, pcs, 1, ABI_STACK_WHOLE);
		last = (void *)(r.buf + sizeof(struct abi_sample) +
				sizeof(struct abi_part) + 8);
		*last = i ? PAGE + 0x1000 : PAGE - 1;
		give(f, &r);
		tick(f, i + 1);
		while (pm.nasks)
			answer(0);
	}
	assert_non_null(strstr(f->out.text[0], "fn_ffffffffff5fff;"));
	assert_non_null(strstr(f->out.text[1], "fn_ffffffffff600f;"));
	finish_all(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole_and_named),
		cmocka_unit_test(test_not_called),
		cmocka_unit_test(test_others_stay),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
