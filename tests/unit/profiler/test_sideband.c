// SPDX-License-Identifier: Apache-2.0
/* The parser of perf side-band records, by records made by hand. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <cmocka.h>
#include <linux/perf_event.h>

#include "profiler/source/sideband.h"

struct buf {
	char data[512];
	size_t len;
};

static void put(struct buf *b, const void *p, size_t n)
{
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

static void end(struct buf *b, uint64_t time)
{
	struct perf_event_header h;

	put64(b, time);
	memcpy(&h, b->data, sizeof(h));
	h.size = b->len;
	memcpy(b->data, &h, sizeof(h));
}

static void mmap2(struct buf *b, int with_build_id)
{
	static const uint8_t id[20] = { 0xde, 0xad };
	static const char path[16] = "/lib/x.so";

	begin(b, PERF_RECORD_MMAP2,
	      PERF_RECORD_MISC_USER |
		      (with_build_id ? PERF_RECORD_MISC_MMAP_BUILD_ID : 0));
	put32(b, 100);
	put32(b, 101);
	put64(b, 0x7f0000001000);
	put64(b, 0x3000);
	put64(b, 0x2000);
	if (with_build_id) {
		put32(b, 20);
		put(b, id, sizeof(id));
	} else {
		put32(b, 8);
		put32(b, 1);
		put64(b, 77);
		put64(b, 5);
	}
	put32(b, 5);
	put32(b, 2);
	put(b, path, sizeof(path));
	end(b, 123456789);
}

/* Another layout, which is not requested. */
static void a_mapping_with_a_build_id_is_refused(void **state)
{
	struct pm_map_event ev;
	uint64_t lost = 0;
	struct buf b;

	mmap2(&b, 1);
	assert_int_equal(sideband_parse(b.data, b.len, &ev, &lost), -EINVAL);
}

static void a_mapping_with_its_inode(void **state)
{
	struct pm_map_event ev;
	uint64_t lost = 0;
	struct buf b;

	mmap2(&b, 0);
	assert_int_equal(sideband_parse(b.data, b.len, &ev, &lost), 1);
	assert_int_equal(ev.kind, PM_MAP_MMAP);
	assert_int_equal(ev.time, 123456789);
	assert_int_equal(ev.tgid, 100);
	assert_int_equal(ev.tid, 101);
	assert_int_equal(ev.start, 0x7f0000001000);
	assert_int_equal(ev.end, 0x7f0000004000);
	assert_int_equal(ev.pgoff, 0x2000);
	assert_string_equal(ev.path, "/lib/x.so");
	assert_int_equal(ev.dev, makedev(8, 1));
	assert_int_equal(ev.ino, 77);
	assert_int_equal(ev.ino_generation, 5);
}

static void ksymbol(struct buf *b, uint16_t flags, size_t name_len)
{
	static const char name[24] = "bpf_prog_1234_x";

	begin(b, PERF_RECORD_KSYMBOL, 0);
	put64(b, 0xffffffffc0001000);
	put32(b, 0x80);
	put32(b, PERF_RECORD_KSYMBOL_TYPE_BPF | (uint32_t)flags << 16);
	put(b, name, name_len);
	end(b, 123456789);
}

static void kernel_text_is_loaded_and_unloaded(void **state)
{
	struct pm_map_event ev;
	uint64_t lost = 0;
	struct buf b;

	for (uint16_t i = 0; i < 2; i++) {
		ksymbol(&b, i, 24);
		assert_int_equal(sideband_parse(b.data, b.len, &ev, &lost), 1);
		assert_int_equal(ev.kind, PM_MAP_KSYMBOL);
		assert_int_equal(ev.time, 123456789);
		assert_int_equal(ev.tgid, 0);
		assert_true(ev.start == 0xffffffffc0001000);
		assert_true(ev.end == 0xffffffffc0001080);
		assert_int_equal(ev.unloaded, i);
		assert_string_equal(ev.path, "bpf_prog_1234_x");
	}
	/* A name that does not end, and none. */
	ksymbol(&b, 0, 8);
	assert_int_equal(sideband_parse(b.data, b.len, &ev, &lost), -EINVAL);
	ksymbol(&b, 0, 0);
	assert_int_equal(sideband_parse(b.data, b.len, &ev, &lost), -EINVAL);
}

/* As bpf_perf_event_output() writes it: the time is in front. */
static void a_mark_is_an_exec(void **state)
{
	struct perf_event_header h;
	struct pm_map_event ev;
	uint64_t lost = 0;
	struct buf b;

	begin(&b, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_KERNEL);
	put64(&b, 5);
	put32(&b, 12);
	put32(&b, 7);
	put32(&b, 8);
	end(&b, 0);
	memcpy(&h, b.data, sizeof(h));
	h.size = b.len = 32; /* padded to 8 bytes */
	memcpy(b.data, &h, sizeof(h));
	assert_int_equal(sideband_parse(b.data, b.len, &ev, &lost), 1);
	assert_int_equal(ev.kind, PM_MAP_EXEC);
	assert_int_equal(ev.time, 5);
	assert_int_equal(ev.tgid, 7);
	assert_int_equal(ev.tid, 8);
	h.size = 24;
	memcpy(b.data, &h, sizeof(h));
	assert_int_equal(sideband_parse(b.data, 24, &ev, &lost), -EINVAL);
}

static void a_loss_is_a_record(void **state)
{
	struct pm_map_event ev;
	uint64_t lost = 0;
	struct buf b;

	begin(&b, PERF_RECORD_LOST, 0);
	put64(&b, 1);
	put64(&b, 42);
	end(&b, 9);
	assert_int_equal(sideband_parse(b.data, b.len, &ev, &lost), 1);
	assert_int_equal(ev.kind, PM_MAP_LOST);
	assert_int_equal(lost, 42);
	assert_int_equal(ev.time, 9);
}

/* Cut anywhere, a record is refused or of no interest, never read beyond. */
static void every_truncation_is_refused(void **state)
{
	struct pm_map_event ev;
	struct perf_event_header h;
	uint64_t lost = 0;
	struct buf b;
	char *exact;
	size_t n;

	mmap2(&b, 1);
	for (n = 0; n < b.len; n++) {
		exact = malloc(n ? n : 1);
		memcpy(exact, b.data, n);
		if (n >= sizeof(h)) {
			memcpy(&h, exact, sizeof(h));
			h.size = n;
			memcpy(exact, &h, sizeof(h));
		}
		if (n < 8 + 72 + 8 + 1)
			assert_int_equal(sideband_parse(exact, n, &ev, &lost),
					 -EINVAL);
		else
			sideband_parse(exact, n, &ev, &lost);
		free(exact);
	}
}

static void lengths_that_lie_are_refused(void **state)
{
	struct pm_map_event ev;
	uint64_t lost = 0;
	struct buf b;

	mmap2(&b, 1);
	b.data[8 + 32] = 21; /* build id longer than its field */
	assert_int_equal(sideband_parse(b.data, b.len, &ev, &lost), -EINVAL);
	mmap2(&b, 1);
	memset(b.data + 8 + 16, 0xff, 8); /* length beyond the address space */
	assert_int_equal(sideband_parse(b.data, b.len, &ev, &lost), -EINVAL);
	mmap2(&b, 1);
	memset(b.data + 8 + 64, 'x', 16); /* a path without an end */
	assert_int_equal(sideband_parse(b.data, b.len, &ev, &lost), -EINVAL);
	mmap2(&b, 1);
	assert_int_equal(sideband_parse(b.data, b.len - 8, &ev, &lost),
			 -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_mapping_with_a_build_id_is_refused),
		cmocka_unit_test(a_mapping_with_its_inode),
		cmocka_unit_test(kernel_text_is_loaded_and_unloaded),
		cmocka_unit_test(a_mark_is_an_exec),
		cmocka_unit_test(a_loss_is_a_record),
		cmocka_unit_test(every_truncation_is_refused),
		cmocka_unit_test(lengths_that_lie_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
