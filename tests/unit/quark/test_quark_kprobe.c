// SPDX-License-Identifier: Apache-2.0
/*
 * libquark's kprobe backend, without a kernel: parses records of perf and formats
 * of tracefs that are made here.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "processmanager/quark/btf.c"
#include "processmanager/quark/error.c"
#include "processmanager/quark/kprobe/kprobe_decode.c"
#include "processmanager/quark/kprobe/kprobe_events.c"
#include "processmanager/quark/kprobe/kprobe_path.c"
#include "processmanager/quark/kprobe/kprobe_record.c"
#include "processmanager/quark/proc/procfs.c"
#include "processmanager/quark/proc/procfs_task.c"
#include "processmanager/quark/proc/reader.c"
#include "processmanager/quark/kprobe/kprobe_cpus.c"

/* --- perf's records ----------------------------------------------------------- */

/* A sample with 'n' bytes of a probe; returns its size. */
static size_t put_sample(char *at, uint64_t time, const void *raw, uint32_t n)
{
	struct perf_event_header h = { .type = PERF_RECORD_SAMPLE };
	struct sample_head s = { .pid = 7, .tid = 8, .time = time, .size = n };

	h.size = (sizeof(h) + sizeof(s) + n + 7) & ~7U;
	memset(at, 0, h.size);
	memcpy(at, &h, sizeof(h));
	memcpy(at + sizeof(h), &s, sizeof(s));
	memcpy(at + sizeof(h) + sizeof(s), raw, n);
	return h.size;
}

static size_t put_lost(char *at, uint64_t time, uint64_t n)
{
	const struct {
		struct perf_event_header h;
		uint64_t id, lost;
		uint32_t pid, tid;
		uint64_t time;
	} r = { { .type = PERF_RECORD_LOST, .size = sizeof(r) },
		1,
		n,
		7,
		8,
		time };

	memcpy(at, &r, sizeof(r));
	return sizeof(r);
}

static void test_sample(void **state)
{
	char buf[128];
	size_t len = put_sample(buf, 1234, "hello", 5);
	struct kprobe_perf p;

	assert_int_equal(kprobe_perf(buf, len, &p), 0);
	assert_true(p.sample);
	assert_false(p.lost);
	assert_int_equal(p.time, 1234);
	assert_int_equal(p.tgid, 7);
	assert_int_equal(p.tid, 8);
	assert_int_equal(p.raw_len, 5);
	assert_memory_equal(p.raw, "hello", 5);
}

static void test_lost(void **state)
{
	char buf[128];
	size_t len = put_lost(buf, 99, 3);
	struct kprobe_perf p;

	assert_int_equal(kprobe_perf(buf, len, &p), 0);
	assert_true(p.lost);
	assert_false(p.sample);
	assert_int_equal(p.time, 99);
}

/* Each shorter one, in memory of its exact size, is refused. */
static void test_short(void **state)
{
	char whole[2][128], *cut;
	size_t len[2] = { put_sample(whole[0], 1, "abcd", 4),
			  put_lost(whole[1], 1, 1) };
	struct kprobe_perf p;
	uint16_t size;
	int k;

	for (k = 0; k < 2; k++) {
		for (size = 0; size < len[k]; size++) {
			cut = malloc(size ? size : 1);
			memcpy(cut, whole[k], size);
			if (size >= sizeof(struct perf_event_header))
				memcpy(cut + offsetof(struct perf_event_header,
						      size),
				       &size, sizeof(size));
			/* Of other records only the end is read. */
			if (k == 0 || size < 24)
				assert_int_equal(kprobe_perf(cut, size, &p),
						 -EINVAL);
			free(cut);
		}
	}
}

/* A size that goes beyond the record, or that is not the record's. */
static void test_lies(void **state)
{
	uint32_t far = UINT32_MAX;
	struct kprobe_perf p;
	char buf[128];
	size_t len = put_sample(buf, 1, "hello", 5);

	assert_int_equal(kprobe_perf(buf, len + 8, &p), -EINVAL);
	memcpy(buf + 8 + offsetof(struct sample_head, size), &far, 4);
	assert_int_equal(kprobe_perf(buf, len, &p), -EINVAL);
}

/* --- rings ---------------------------------------------------------------------- */

#define RING 4096

struct fake {
	struct perfring r;
	char *memory;
};

static void fake_new(struct fake *f, uint64_t at)
{
	size_t page = sysconf(_SC_PAGESIZE);

	memset(f, 0, sizeof(*f));
	f->memory = aligned_alloc(page, page + RING);
	memset(f->memory, 0, page + RING);
	f->r.page = (void *)f->memory;
	f->r.bytes = RING;
	f->r.scratch = malloc(PERFRING_RECORD_MAX);
	f->r.page->data_head = f->r.page->data_tail = at;
}

static void fake_add(struct fake *f, const void *record, size_t len)
{
	char *data = f->memory + sysconf(_SC_PAGESIZE);
	size_t i;

	for (i = 0; i < len; i++)
		data[(f->r.page->data_head + i) % RING] =
			((const char *)record)[i];
	f->r.page->data_head += len;
}

static void fake_free(struct fake *f)
{
	free(f->r.scratch);
	free(f->memory);
}

/* At any offset: a record that wraps around comes in one piece. */
static void test_wrap(void **state)
{
	char rec[256], raw[100];
	struct kprobe_perf p;
	struct fake f;
	uint64_t at;
	size_t len;
	int i;

	memset(raw, 'r', sizeof(raw));
	for (at = 1ULL << 40; at < (1ULL << 40) + RING; at += 8) {
		fake_new(&f, at);
		for (i = 0; i < 3; i++) {
			len = put_sample(rec, 50 + i, raw, sizeof(raw));
			fake_add(&f, rec, len);
		}
		perfring_begin(&f.r);
		for (i = 0; kprobe_ring_peek(&f.r, &p); i++) {
			assert_int_equal(p.time, 50 + i);
			assert_int_equal(p.raw_len, sizeof(raw));
			assert_memory_equal(p.raw, raw, sizeof(raw));
			perfring_skip(&f.r);
		}
		assert_int_equal(i, 3);
		perfring_end(&f.r);
		assert_int_equal(f.r.page->data_tail, f.r.page->data_head);
		assert_false(f.r.bad);
		fake_free(&f);
	}
}

/* An invalid record is skipped and noted; the next one is read. */
static void test_bad_record(void **state)
{
	struct perf_event_header h = { .type = PERF_RECORD_SAMPLE,
				       .size = sizeof(h) };
	struct kprobe_perf p;
	struct fake f;
	char rec[128];

	fake_new(&f, 0);
	fake_add(&f, &h, sizeof(h));
	fake_add(&f, rec, put_sample(rec, 5, "x", 1));
	perfring_begin(&f.r);
	assert_true(kprobe_ring_peek(&f.r, &p));
	assert_int_equal(p.time, 5);
	assert_true(f.r.bad);
	fake_free(&f);
}

/* An impossible size ends the ring. */
static void test_bad_size(void **state)
{
	static const uint16_t sizes[] = { 0, 7, 65535 };
	struct perf_event_header h = { .type = PERF_RECORD_SAMPLE };
	struct kprobe_perf p;
	struct fake f;
	char rec[128];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		fake_new(&f, 0);
		h.size = sizes[i];
		fake_add(&f, &h, sizeof(h));
		fake_add(&f, rec, put_sample(rec, 5, "x", 1));
		perfring_begin(&f.r);
		assert_false(kprobe_ring_peek(&f.r, &p));
		assert_true(f.r.bad);
		assert_int_equal(f.r.tail, f.r.head);
		fake_free(&f);
	}
}

/* --- formats --------------------------------------------------------------------- */

static const char format[] =
	"name: exec\nID: 1512\nformat:\n"
	"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
	"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n"
	"\n"
	"\tfield:unsigned long __probe_ip;\toffset:8;\tsize:8;\tsigned:0;\n"
	"\tfield:u64 start;\toffset:16;\tsize:8;\tsigned:0;\n"
	"\tfield:u32 pid;\toffset:24;\tsize:4;\tsigned:0;\n"
	"\tfield:__data_loc char[] exe0;\toffset:28;\tsize:4;\tsigned:1;\n"
	"\tfield:u64 args0[64];\toffset:32;\tsize:512;\tsigned:0;\n"
	"\n"
	"print fmt: \"(%lx) start=%Lu\", REC->__probe_ip, REC->start\n";

static void expect_field(const char *name, int offset, int size)
{
	uint16_t off = 0, sz = 0;

	assert_int_equal(kprobe_format(format, strlen(format), name, &off, &sz),
			 0);
	assert_int_equal(off, offset);
	assert_int_equal(sz, size);
}

static void test_format(void **state)
{
	uint16_t off, size;

	expect_field("start", 16, 8);
	/* Not "common_pid", which ends in it. */
	expect_field("pid", 24, 4);
	expect_field("exe0", 28, 4);
	expect_field("args0", 32, 512);
	assert_int_equal(kprobe_format(format, strlen(format), "exe", &off,
				       &size),
			 -ENOENT);
	assert_int_equal(kprobe_format(format, strlen(format), "Lu", &off,
				       &size),
			 -ENOENT);
	assert_int_equal(kprobe_format("", 0, "pid", &off, &size), -ENOENT);
}

static void test_format_bad(void **state)
{
	static const char *const bad[] = {
		"field:u32 pid;\tsize:4;",
		"field:u32 pid;\toffset:;\tsize:4;",
		"field:u32 pid;\toffset:65536;\tsize:4;",
		"field:u32 pid;\toffset:4294967296;\tsize:4;",
		"field:u32 pid;\toffset:-4;\tsize:4;",
		"field:u32 pid;\toffset:8;\n\tfield:u32 x;\tsize:4;",
	};
	uint16_t off, size;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(kprobe_format(bad[i], strlen(bad[i]), "pid",
					       &off, &size),
				 -EINVAL);
	/* Cut at any place: no field, or one without its numbers. */
	for (i = 0; i < strlen(format); i++) {
		char *cut = malloc(i ? i : 1);
		int err;

		memcpy(cut, format, i);
		err = kprobe_format(cut, i, "args0", &off, &size);
		if (!err)
			assert_true(strstr(format, "size:512") + 5 <
				    format + i);
		free(cut);
	}
}

/* A field of an unexpected size is refused. */
static void test_place_size(void **state)
{
	struct kprobe_place places[4];
	struct kprobe_event ev = { .places = places };
	const struct field pid = V(pid, G_KEY, "task_struct.pid");

	assert_int_equal(kprobe_events_place(&ev, &pid, 0, format), 0);
	assert_int_equal(ev.n, 1);
	assert_int_equal(places[0].offset, 24);
	assert_int_equal(places[0].size, 4);
	assert_int_equal(
		kprobe_events_place(&ev, &pid, 0,
				    "\tfield:u64 pid;\toffset:8;\tsize:8;"),
		-EINVAL);
	assert_int_equal(kprobe_events_place(&ev, &pid, 0, "name: x\n"),
			 -ENOENT);
	assert_int_equal(ev.n, 1);
}

/* --- members --------------------------------------------------------------------- */

/* The places in the format above. */
static struct kprobe_place exec_places[] = {
	{ 16, offsetof(struct kprobe_values, start), 8, 0 },
	{ 24, offsetof(struct kprobe_values, pid), 4, 0 },
	{ 28, offsetof(struct kprobe_values, exe), 4, 1 },
	{ 32, offsetof(struct kprobe_values, args), 512, 0 },
};
static const struct kprobe_event layout[KPROBE_MAX] = {
	[KPROBE_EXEC] = { 1512, ARRAY_SIZE(exec_places), exec_places },
};

static size_t put_raw(char *raw, uint32_t loc, const char *name)
{
	const uint16_t type = 1512;
	const uint64_t start = 77;
	const uint32_t pid = 42;

	memset(raw, 'a', 544);
	memcpy(raw, &type, 2);
	memcpy(raw + 16, &start, 8);
	memcpy(raw + 24, &pid, 4);
	memcpy(raw + 28, &loc, 4);
	strcpy(raw + 544, name);
	return 544 + strlen(name) + 1;
}

static void test_members(void **state)
{
	static struct kprobe_values v;
	char raw[600];
	size_t len = put_raw(raw, 544 | 5 << 16, "true");

	memset(&v, 0xff, sizeof(v));
	assert_int_equal(kprobe_decode(layout, raw, len, &v), KPROBE_EXEC);
	assert_int_equal(v.start, 77);
	assert_int_equal(v.pid, 42);
	assert_int_equal(v.exe[0].len, 4);
	assert_memory_equal(v.exe[0].p, "true", 4);
	assert_int_equal(v.args[0][511], 'a');
	/* Values that the probe does not have are cleared. */
	assert_int_equal(v.tgid, 0);
	assert_null(v.exe[1].p);
	assert_int_equal(v.clone_flags, 0);
}

/* A string outside of the record is empty. */
static void test_spans(void **state)
{
	static const uint32_t locs[] = { 544 | 100 << 16, 60000 | 4 << 16,
					 549 | 1 << 16, 0 };
	static struct kprobe_values v;
	char raw[600];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(locs); i++) {
		size_t len = put_raw(raw, locs[i], "true");
		char *exact = malloc(len);

		memcpy(exact, raw, len);
		assert_int_equal(kprobe_decode(layout, exact, len, &v),
				 KPROBE_EXEC);
		assert_null(v.exe[0].p);
		assert_int_equal(v.exe[0].len, 0);
		free(exact);
	}
}

static void test_members_short(void **state)
{
	static struct kprobe_values v;
	char raw[600], *exact;
	size_t len;

	put_raw(raw, 0, "");
	for (len = 0; len < 544; len++) {
		exact = malloc(len ? len : 1);
		memcpy(exact, raw, len);
		assert_int_equal(kprobe_decode(layout, exact, len, &v), -1);
		free(exact);
	}
	assert_int_equal(kprobe_decode(layout, raw, 544, &v), KPROBE_EXEC);
	/* An unknown type; and 0 is not the type of a missing probe. */
	memset(raw, 0, 2);
	assert_int_equal(kprobe_decode(layout, raw, 544, &v), -1);
}

/* --- probes ---------------------------------------------------------------------- */

/* Each probe can be made from this kernel's types; no argument is too long. */
static void test_lines(void **state)
{
	struct kprobe_events e = { .env = true };
	struct quark_btf *btf = quark_btf_open();
	struct strbuf sb = STRBUF_INIT;
	char *save, *w;
	int id;

	assert_non_null(btf);
	strcpy(e.group, "libquark_1_1");
	for (id = 0; id < KPROBE_MAX; id++) {
		if (!probes[id].symbol)
			continue;
		assert_int_equal(probe_line(btf, &e, &probes[id], &sb), 0);
		assert_true(sb.len < 4096); /* WRITE_BUFSIZE of the kernel's */
		w = strtok_r(sb.data, " \n", &save);
		assert_int_equal(strncmp(w, "p:libquark_1_1/", 15), 0);
		assert_string_equal(strtok_r(NULL, " \n", &save),
				    probes[id].symbol);
		while ((w = strtok_r(NULL, " \n", &save))) {
			assert_non_null(strchr(w, '='));
			assert_true(strlen(strchr(w, '=') + 1) <= EXPR_MAX);
		}
	}
	strbuf_fini(&sb);
	quark_btf_close(btf);
}

/* --- what killed processes left in tracefs ---------------------------------------- */

/* A tracefs without a kernel: one probe a group, and what is written to it. */
static char fake_tracefs[] = "/tmp/test_quark_kprobe.XXXXXX";

static void group_path(char *path, size_t size, const struct owner *o)
{
	snprintf(path, size, "%s/events/" GROUP "1", fake_tracefs, o->pid,
		 o->start, o->ns);
}

static void put_group(const struct owner *o)
{
	char path[200];

	group_path(path, sizeof(path), o);
	assert_int_equal(mkdir(path, 0700), 0);
	strcat(path, "/fork");
	assert_int_equal(mkdir(path, 0700), 0);
}

static void drop_group(const struct owner *o)
{
	char path[200], probe[210];

	group_path(path, sizeof(path), o);
	snprintf(probe, sizeof(probe), "%s/fork", path);
	rmdir(probe);
	rmdir(path);
}

/* Whether a sweep by this process removes the group. */
static bool is_swept(const struct owner *o)
{
	struct quark_reader reader = { .nhung = 0 };
	struct owner me = kprobe_events_self();
	char path[200], want[200], got[4096] = "";
	FILE *f;

	put_group(o);
	snprintf(path, sizeof(path), "%s/kprobe_events", fake_tracefs);
	f = fopen(path, "w");
	assert_non_null(f);
	fclose(f);
	kprobe_events_sweep(fake_tracefs, &me, &reader);
	patience_fini(&reader.patience);
	f = fopen(path, "r");
	assert_non_null(f);
	got[fread(got, 1, sizeof(got) - 1, f)] = '\0';
	fclose(f);
	drop_group(o);
	snprintf(want, sizeof(want), "-:" GROUP "1/fork\n", o->pid, o->start,
		 o->ns);
	assert_true(!*got || !strcmp(got, want));
	return *got;
}

/* A pid of an ended process. */
static int dead_pid(void)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid)
		_exit(0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	return pid;
}

static void test_leftovers(void **state)
{
	struct owner me = kprobe_events_self(), o;
	char path[100];

	assert_non_null(mkdtemp(fake_tracefs));
	snprintf(path, sizeof(path), "%s/events", fake_tracefs);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_true(me.start != QUARK_PROCFS_NO_START && me.ns);

	assert_false(is_swept(&me)); /* it exists */
	o = me;
	o.pid = dead_pid();
	assert_true(is_swept(&o));
	o.ns++; /* another pid namespace */
	assert_false(is_swept(&o));
	o = me;
	o.start--; /* the pid was reused */
	assert_true(is_swept(&o));
	o.start = QUARK_PROCFS_NO_START;
	assert_false(is_swept(&o));

	assert_int_equal(rmdir(path), 0);
	snprintf(path, sizeof(path), "%s/kprobe_events", fake_tracefs);
	unlink(path);
	rmdir(fake_tracefs);
}

/* The kernel refuses a group's name of 64 bytes and more. */
static void test_group_name(void **state)
{
	struct kprobe_events e;

	assert_true(snprintf(e.group, sizeof(e.group), GROUP "%u", 4194304,
			     UINT64_MAX, (uint64_t)UINT32_MAX,
			     1000000U) < (int)sizeof(e.group));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sample),
		cmocka_unit_test(test_lost),
		cmocka_unit_test(test_short),
		cmocka_unit_test(test_lies),
		cmocka_unit_test(test_wrap),
		cmocka_unit_test(test_bad_record),
		cmocka_unit_test(test_bad_size),
		cmocka_unit_test(test_format),
		cmocka_unit_test(test_format_bad),
		cmocka_unit_test(test_place_size),
		cmocka_unit_test(test_members),
		cmocka_unit_test(test_spans),
		cmocka_unit_test(test_members_short),
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_leftovers),
		cmocka_unit_test(test_group_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
