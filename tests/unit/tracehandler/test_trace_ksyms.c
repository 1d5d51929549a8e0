// SPDX-License-Identifier: Apache-2.0
/* Kernel text that is loaded and unloaded: what has which name at which time. */
#include "tests/unit/tracehandler/test_trace_fake.h"
#include "tracehandler/ksyms.h"

#define BPF 0xffffffffc0001000ULL

static const char *found(const struct trace_ksyms *ks, uint64_t addr,
			 uint64_t time)
{
	const struct trace_ksym *k;

	switch (trace_ksyms_find(ks, addr, time, &k)) {
	case TRACE_KSYMS_KNOWN:
		return k->name;
	case TRACE_KSYMS_GONE:
		return "gone";
	default:
		return "unknown";
	}
}

static void a_name_has_an_address_and_a_time(void **state)
{
	static struct trace_ksyms ks;

	assert_string_equal(found(&ks, BPF, 5), "unknown");
	/* One from before, whose unloading is recorded. */
	assert_false(trace_ksyms_unload(&ks, 10, BPF, BPF + 0x40, "early"));
	assert_false(trace_ksyms_load(&ks, 20, BPF + 0x20, BPF + 0x80, "one"));
	assert_false(trace_ksyms_load(&ks, 25, BPF - 0x40, BPF, "below"));
	assert_false(
		trace_ksyms_unload(&ks, 30, BPF + 0x20, BPF + 0x80, "one"));
	assert_false(trace_ksyms_load(&ks, 40, BPF, BPF + 0x100, "two"));
	assert_string_equal(found(&ks, BPF + 0x30, 9), "early");
	assert_string_equal(found(&ks, BPF + 0x30, 10), "gone");
	assert_string_equal(found(&ks, BPF + 0x30, 20), "one");
	assert_string_equal(found(&ks, BPF + 0x30, 29), "one");
	assert_string_equal(found(&ks, BPF + 0x30, 30), "gone");
	assert_string_equal(found(&ks, BPF + 0x30, 40), "two");
	assert_string_equal(found(&ks, BPF + 0xff, 40), "two");
	assert_string_equal(found(&ks, BPF + 0xff, 39), "unknown");
	assert_string_equal(found(&ks, BPF + 0x100, 40), "unknown");
	assert_string_equal(found(&ks, BPF - 1, 40), "below");
	assert_string_equal(found(&ks, BPF - 0x41, 40), "unknown");
	/* A loading without the unloading before it. */
	assert_false(trace_ksyms_load(&ks, 50, BPF + 0x80, BPF + 0x90, "in"));
	assert_string_equal(found(&ks, BPF + 0x80, 49), "two");
	assert_string_equal(found(&ks, BPF + 0x80, 50), "in");
	assert_string_equal(found(&ks, BPF, 50), "gone");
	trace_ksyms_fini(&ks);
}

static void changes_are_found_by_number_and_time(void **state)
{
	static struct trace_ksyms ks;

	trace_ksyms_load(&ks, 10, BPF, BPF + 0x40, "one");
	trace_ksyms_unload(&ks, 20, BPF, BPF + 0x40, "one");
	assert_int_equal(ks.seq, 2);
	assert_true(trace_ksyms_changed(&ks, 0, BPF));
	assert_true(trace_ksyms_changed(&ks, 1, BPF));
	assert_false(trace_ksyms_changed(&ks, 2, BPF));
	assert_false(trace_ksyms_changed(&ks, 0, BPF + 0x40));
	assert_true(trace_ksyms_later(&ks, 19, BPF));
	assert_false(trace_ksyms_later(&ks, 20, BPF));
	assert_false(trace_ksyms_later(&ks, 0, BPF - 1));
	/* Without records all may have changed. */
	assert_true(trace_ksyms_lost(&ks, 30));
	assert_true(trace_ksyms_changed(&ks, 2, BPF + 0x40));
	assert_false(trace_ksyms_changed(&ks, ks.seq, BPF));
	assert_string_equal(found(&ks, BPF, 15), "unknown");
	trace_ksyms_fini(&ks);
}

/* What is kept is bounded; kallsyms counts where it is not. */
static void many_changes_are_bounded(void **state)
{
	static struct trace_ksyms ks;
	uint64_t i, at;
	bool again = false;

	for (i = 0; i < 300; i++) {
		at = BPF + i * 0x40;
		again = trace_ksyms_unload(&ks, 10 + i, at, at + 0x40, "x");
		assert_int_equal(again, i >= TRACE_KSYMS_CHANGES);
	}
	assert_string_equal(found(&ks, BPF, 1000), "unknown");
	assert_string_equal(found(&ks, BPF + 299 * 0x40, 1000), "gone");
	assert_true(trace_ksyms_changed(&ks, 0, BPF));
	for (i = 0; i < 20000; i++) {
		at = BPF + i * 0x40;
		again = trace_ksyms_load(&ks, 1000 + i, at, at + 0x40, "y");
	}
	assert_true(again);
	assert_true(ks.n < 10000);
	assert_string_equal(found(&ks, BPF, 30000), "y");
	assert_string_equal(found(&ks, at, 30000), "unknown");
	trace_ksyms_fini(&ks);
}

/* --- in traces --------------------------------------------------------------- */

static void change(struct fixture *f, uint64_t time, bool unloaded,
		   const char *name)
{
	const struct pm_map_event ev = { .kind = PM_MAP_KSYMBOL,
					 .time = time,
					 .start = KERNEL - 0x10,
					 .end = KERNEL + 0x100,
					 .unloaded = unloaded,
					 .path = name };

	assert_false(trace_handler_ksymbol(f->th, &ev));
}

/* The name of the kernel's frame, above one of user code. */
static const char *sampled(struct fixture *f, uint64_t time)
{
	static const uint64_t user = JIT;
	struct rec r;
	size_t n;
	char *end;

	sample(&r, time, 1, &user, 1, ABI_STACK_WHOLE);
	give(f, &r);
	n = f->out.n;
	assert_true(n > 0);
	end = strchr(f->out.text[n - 1], ';');
	assert_non_null(end);
	*end = '\0';
	return f->out.text[n - 1];
}

/* Also from stacks that were kept, and for samples older than the last change. */
static void a_frame_has_the_name_of_its_time(void **state)
{
	struct fixture *f = begin((struct trace_opts){ 0 });

	change(f, 100, false, "bpf_prog_1_old");
	for (int i = 0; i < 4; i++)
		assert_string_equal(sampled(f, 150 + i), "bpf_prog_1_old");
	assert_true(f->st.stacks_known > 0);
	change(f, 200, true, "bpf_prog_1_old");
	assert_string_equal(sampled(f, 210), "[kernel]+0xffffffff81000000");
	change(f, 220, false, "bpf_prog_2_new");
	for (int i = 0; i < 4; i++)
		assert_string_equal(sampled(f, 230 + i), "bpf_prog_2_new");
	assert_string_equal(sampled(f, 199), "bpf_prog_1_old");
	assert_string_equal(sampled(f, 240), "bpf_prog_2_new");
	assert_int_equal(pm.nasks, 0);
	finish_all(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_name_has_an_address_and_a_time),
		cmocka_unit_test(changes_are_found_by_number_and_time),
		cmocka_unit_test(many_changes_are_bounded),
		cmocka_unit_test(a_frame_has_the_name_of_its_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
