// SPDX-License-Identifier: Apache-2.0
/*
 * A side file from anywhere. As zstd has a checksum, which a fuzzer does not find, what
 * is not zstd is compressed first.
 */
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "reporter/times.h"
#include "reporter/store/times_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fuzz_waits(const struct store_times *t)
{
	struct store_times_waits c;
	struct store_times_wait w;
	uint64_t n = 0;

	store_times_waits_begin(t, &c);
	while (store_times_waits_next(&c, &w)) {
		n++;
		if (!store_times_thread(t, w.thread) ||
		    (w.waker != STORE_TIMES_NONE &&
		     !store_times_thread(t, w.waker)) ||
		    w.end < w.begin)
			__builtin_trap();
	}
	if (n != store_times_info(t)->waits)
		__builtin_trap();
}

static void fuzz_walk(const struct store_times *t)
{
	const struct store_times_info *info = store_times_info(t);
	struct store_times_record rec;
	struct store_times_column c;
	struct store_times_cursor all;
	uint64_t n = 0, v;
	volatile unsigned int sum = 0; /* reads each byte */

	fuzz_waits(t);
	store_times_begin(t, &all);
	while (store_times_next(&all, &rec)) {
		n++;
		if (rec.sample >= info->samples ||
		    !store_times_event(t, rec.event) ||
		    rec.ids > store_times_pairs(t))
			__builtin_trap();
		for (int i = 0; rec.ids && i < IDS_PAIR; i++)
			sum += store_times_pair(t, rec.ids)[i];
	}
	if (n != info->records)
		__builtin_trap();
	if (!store_times_column(t, "thread", &c))
		__builtin_trap();
	for (n = 0; store_times_value(&c, &v); n++)
		;
	if (n != info->samples || !store_times_fit(t, info->wall_ns, n))
		__builtin_trap();
	if (store_times_column(t, "other", &c))
		while (store_times_value(&c, &v))
			;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t magic[] = { 0x28, 0xb5, 0x2f, 0xfd };
	size_t room = ZSTD_compressBound(size), len = size;
	struct store_times *t = NULL;
	uint8_t *packed = NULL;

	if (size < sizeof(magic) || memcmp(data, magic, sizeof(magic))) {
		packed = malloc(room);
		if (!packed)
			return 0;
		len = ZSTD_compress(packed, room, data, size, 1);
		data = packed;
	}
	if (!store_times_read(&t, data, len))
		fuzz_walk(t);
	store_times_free(t);
	free(packed);
	return 0;
}
