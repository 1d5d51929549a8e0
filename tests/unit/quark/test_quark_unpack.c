// SPDX-License-Identifier: Apache-2.0
/*
 * Unpacking restores any record that the kernel side packed, of each kind, and
 * refuses everything else.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "processmanager/quark/unpack.c"

#define ROUNDS 2000

static const uint32_t home[ABI_QUARK_NAMESPACES] = { 11, 12, 13, 14 };
static struct quark_unpacked before, after;
static char wire[1024];
static size_t wire_len;

static void put_word(struct abi_quark_packed *p, unsigned int bit,
		     uint32_t word)
{
	if (!word)
		return;
	p->mask |= 1ULL << bit;
	memcpy(wire + wire_len, &word, sizeof(word));
	wire_len += sizeof(word);
}

/* What bpf/quark.bpf.c does, by bpf/abi.h. */
static void pack(const struct quark_unpacked *u, const char *strings)
{
	const struct abi_quark_head *h = &u->head;
	struct quark_unpacked folded = *u;
	struct abi_quark_packed p = {
		.time = h->time,
		.start_boottime = h->key.start_boottime,
		.exec_id = h->key.exec_id,
		.tgid = h->key.tgid,
		.cpu = h->cpu,
		.kind = h->kind,
		.flags = h->flags,
	};
	size_t i;

	unpack_unfold(&folded, home); /* once more is back */
	wire_len = ABI_QUARK_PACKED_HEAD;
	put_word(&p, 0, h->tid ^ h->key.tgid);
	put_word(&p, 1, h->key.exec_id >> 32);
	for (i = sizeof(*h) / 4; i < sizes[h->kind] / 4; i++)
		put_word(&p, i - sizeof(*h) / 4 + 2, folded.words[i]);
	memcpy(wire, &p, ABI_QUARK_PACKED_HEAD);
	memcpy(wire + wire_len, strings, strlen(strings));
	wire_len += strlen(strings);
}

static void unpacks(const char *strings)
{
	size_t size = sizes[before.head.kind], n = strlen(strings);

	pack(&before, strings);
	/* Nothing of a record is left in the next. */
	memset(&after, 0xa5, sizeof(after));
	assert_int_equal(quark_unpack(&after, wire, wire_len, home), size + n);
	assert_memory_equal(&after, &before, size);
	assert_memory_equal(after.room + size, strings, n);
}

static struct abi_quark_head head(uint32_t kind)
{
	return (struct abi_quark_head){
		.kind = kind,
		.time = 5000000001,
		.key = { 4000000001, 77, 1234, 0 },
		.tid = 1234,
		.cpu = 3,
	};
}

static void of_root(struct abi_quark_ids *ids)
{
	memset(ids, 0, sizeof(*ids));
	ids->pgid = ids->sid = 99;
	ids->uts_inonum = home[ABI_QUARK_UTS];
	ids->ipc_inonum = home[ABI_QUARK_IPC];
	ids->mnt_inonum = home[ABI_QUARK_MNT];
	ids->net_inonum = home[ABI_QUARK_NET];
	ids->cap_permitted = ids->cap_effective = ids->cap_bset =
		ABI_QUARK_CAPS_ALL;
}

/* A child like its parent: key of the parent, flags, name, group are left. */
static void test_usual_fork(void **state)
{
	struct abi_quark_fork *f = &before.fork;

	memset(&before, 0, sizeof(before));
	f->head = head(ABI_QUARK_FORK);
	f->parent = (struct abi_key){ 3000, 77, 1233, 0 };
	f->origin = f->parent;
	f->clone_flags = 0x1200011;
	memcpy(f->comm, "sh", 3);
	of_root(&f->ids);
	unpacks("");
	/* start (it fits one word), pid, flags, name, group */
	assert_int_equal(wire_len, ABI_QUARK_PACKED_HEAD + 5 * 4);
	/* A plain user's has only uid and gid more. */
	f->ids.uid = f->ids.suid = f->ids.euid = 1000;
	f->ids.gid = f->ids.sgid = f->ids.egid = 1000;
	f->ids.cap_permitted = f->ids.cap_effective = 0;
	unpacks("");
	assert_int_equal(wire_len, ABI_QUARK_PACKED_HEAD + 7 * 4);
}

static void test_other_caller(void **state)
{
	struct abi_quark_fork *f = &before.fork;

	memset(&before, 0, sizeof(before));
	f->head = head(ABI_QUARK_FORK);
	f->parent = (struct abi_key){ 3000, 5, 1, 0 };
	f->origin = (struct abi_key){ 1ULL << 40, 77, 1233, 0 };
	f->clone_flags = 1ULL << 33;
	f->head.tid = 1240;
	f->head.key.exec_id = 1ULL << 32 | 6;
	memcpy(f->comm, "fifteen letters", 16);
	of_root(&f->ids);
	f->ids.suid = 1;
	f->ids.euid = 2;
	f->ids.sgid = 3;
	f->ids.egid = 4;
	f->ids.sid = 5;
	f->ids.net_inonum = 4026531840;
	f->ids.cap_bset = 0xa80425fb;
	f->ids.cap_ambient = 1;
	unpacks("");
}

static void test_image(void **state)
{
	struct abi_quark_image *im = &before.image;

	memset(&before, 0, sizeof(before));
	im->head = head(ABI_QUARK_EXEC);
	im->head.flags = ABI_QUARK_ARGS_CUT;
	im->parent = (struct abi_key){ 3000, 76, 1233, 0 };
	memcpy(im->comm, "true", 5);
	of_root(&im->ids);
	im->dev = 8 << 20 | 1;
	im->ino = 1ULL << 33;
	im->ctime_ns = 1700000000000000001;
	im->size = 1000;
	im->exe_len = 9;
	im->cwd_len = 4;
	unpacks("/bin/true/tmp");
}

static void test_end(void **state)
{
	memset(&before, 0, sizeof(before));
	before.exit = (struct abi_quark_exit){
		.head = head(ABI_QUARK_EXIT),
		.parent = { 3000, 76, 1, 0 },
		.comm = "true",
		.cpu_time = 1ULL << 35,
		.wait_status = -1,
		.uid = 7,
		.pgid = 99,
		.sid = 98,
	};
	before.exit.head.flags = ABI_QUARK_GROUP_DEAD | ABI_QUARK_LAST_IDS;
	unpacks("");
	memset(&before, 0, sizeof(before));
	before.head = head(ABI_QUARK_REAP);
	unpacks("");
	assert_int_equal(wire_len, ABI_QUARK_PACKED_HEAD);
}

/* Words of any value in any place that a record may have. */
static void test_any(void **state)
{
	uint32_t kind, i, k;

	srandom(1);
	for (i = 0; i < ROUNDS; i++) {
		kind = i % ABI_QUARK_KIND_MAX;
		memset(&before, 0, sizeof(before));
		before.head = head(kind);
		before.head.flags = random() & 0xff;
		before.head.cpu = random() & 0xffff;
		before.head.tid = random();
		before.head.key.exec_id = (uint64_t)random() << 2 | i;
		for (k = HEAD_WORDS; k < sizes[kind] / 4; k++)
			if (random() % 3)
				before.words[k] = (uint32_t)random() << 1;
		unpacks(random() % 2 ? "strings" : "");
	}
}

/* Every length short of the words; a mask of words that the kind has not. */
static void test_refused(void **state)
{
	struct abi_quark_packed p;
	size_t len;

	memset(&before, 0x11, sizeof(before));
	before.head = head(ABI_QUARK_RENAME);
	pack(&before, "");
	for (len = 0; len < wire_len; len++)
		assert_int_equal(quark_unpack(&after, wire, len, home),
				 -EINVAL);
	assert_true(quark_unpack(&after, wire, wire_len, home) > 0);
	memcpy(&p, wire, ABI_QUARK_PACKED_HEAD);
	p.mask |= 1ULL << 8; /* a rename has six words, behind bits 0 and 1 */
	memcpy(wire, &p, ABI_QUARK_PACKED_HEAD);
	assert_int_equal(quark_unpack(&after, wire, sizeof(wire), home),
			 -EINVAL);
	p.mask = 0;
	p.kind = ABI_QUARK_KIND_MAX;
	memcpy(wire, &p, ABI_QUARK_PACKED_HEAD);
	assert_int_equal(quark_unpack(&after, wire, sizeof(wire), home),
			 -EINVAL);
}

/* Strings as long as there is room; a byte more is refused. */
static void test_room(void **state)
{
	size_t most = sizeof(after.room) - sizeof(struct abi_quark_rename);
	struct abi_quark_packed p = { .kind = ABI_QUARK_RENAME };
	char *buf = calloc(1, ABI_QUARK_PACKED_HEAD + most + 1);

	assert_non_null(buf);
	memcpy(buf, &p, ABI_QUARK_PACKED_HEAD);
	assert_int_equal(quark_unpack(&after, buf, ABI_QUARK_PACKED_HEAD + most,
				      home),
			 sizeof(after.room));
	assert_int_equal(quark_unpack(&after, buf,
				      ABI_QUARK_PACKED_HEAD + most + 1, home),
			 -EINVAL);
	free(buf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_usual_fork),
		cmocka_unit_test(test_other_caller),
		cmocka_unit_test(test_image),
		cmocka_unit_test(test_end),
		cmocka_unit_test(test_any),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
