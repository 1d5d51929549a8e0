// SPDX-License-Identifier: Apache-2.0
/*
 * The kernel's input of libquark's kprobe backend, from any bytes: the format of a
 * probe, up to a NUL, then the content of a perf ring, from any offset. Every string
 * is inside its record, and the records made from it have valid lengths.
 */
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>

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

#define RING 16384
#define PLACES (ARRAY_SIZE(fields) * 8)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct kprobe_event layout[KPROBE_MAX];

static void must(bool ok)
{
	if (!ok)
		abort();
}

/* Members in order, each aligned, as the kernel lays them out. */
static void lay_out(struct kprobe_event *ev, enum kprobe_id id)
{
	size_t i, offset = 16;
	unsigned int k;

	ev->type = id + 1;
	ev->n = 0;
	for (i = 0; i < ARRAY_SIZE(fields); i++)
		for (k = 0; fields[i].groups & probes[id].groups &&
			    k < fields[i].count;
		     k++) {
			const struct field *f = &fields[i];
			struct kprobe_place *pl = &ev->places[ev->n++];

			pl->span = f->size == sizeof(struct quark_span);
			pl->size = pl->span ? 4 : f->size;
			offset = (offset + 3) & ~(size_t)3;
			pl->offset = offset;
			pl->dst = f->dst + k * f->size;
			offset += pl->size;
		}
}

static void lay_out_all(void)
{
	int id;

	for (id = 0; id < KPROBE_MAX; id++) {
		layout[id].places = calloc(PLACES, sizeof(struct kprobe_place));
		must(layout[id].places);
		lay_out(&layout[id], id);
	}
}

/* The format's places instead, if it has all members. */
static void learn_text(struct kprobe_event *ev, enum kprobe_id id,
		       const char *text)
{
	unsigned int k;
	size_t i;

	ev->n = 0;
	for (i = 0; i < ARRAY_SIZE(fields); i++)
		for (k = 0; fields[i].groups & probes[id].groups &&
			    k < fields[i].count;
		     k++)
			if (kprobe_events_place(ev, &fields[i], k, text)) {
				lay_out(ev, id);
				return;
			}
}

static bool never(void *arg, uint32_t pid, struct kprobe_values *v)
{
	return false;
}

/* A record with valid places of its strings. */
static int check_record(void *arg, void *data, size_t len)
{
	const struct abi_quark_image *im = data;
	const struct abi_quark_id_change *c = data;
	const struct abi_quark_head *h = data;

	must(len >= sizeof(struct abi_quark_rename));
	switch (h->kind) {
	case ABI_QUARK_EXEC:
	case ABI_QUARK_TASK:
		must(len == sizeof(*im) + (size_t)im->exe_len + im->args_len +
				    im->cwd_len + im->cgroup_len + im->env_len);
		break;
	case ABI_QUARK_ID_CHANGE:
		must(len >= sizeof(*c) + (size_t)c->cwd_len + c->cgroup_len);
		break;
	}
	return 0;
}

static void check_span(const char *raw, size_t len, struct quark_span s)
{
	must(!s.p || (s.p >= raw && s.p + s.len <= raw + len));
}

static void check_values(const char *raw, size_t len,
			 const struct kprobe_values *v)
{
	int i;

	for (i = 0; i < KPROBE_EXE_LEVELS; i++)
		check_span(raw, len, v->exe[i]);
	for (i = 0; i < KPROBE_CWD_LEVELS; i++)
		check_span(raw, len, v->cwd[i]);
	check_span(raw, len, v->name);
	check_span(raw, len, v->filename);
}

static void take(struct kprobe_record *r, const struct kprobe_perf *p)
{
	static struct kprobe_values v;
	struct kprobe_sample s = { p->time, 0, p->tgid, p->tid, 0 };
	char *raw;
	int id;

	/* In memory of its exact size. */
	raw = malloc(p->raw_len ? p->raw_len : 1);
	must(raw);
	memcpy(raw, p->raw, p->raw_len);
	id = kprobe_decode(layout, raw, p->raw_len, &v);
	if (id >= 0)
		check_values(raw, p->raw_len, &v);
	/* Not of existing processes and cgroups. */
	v.tgid = 0;
	v.cgroup = 0;
	if (id >= 0)
		kprobe_record(r, id, &s, &v, check_record, NULL);
	free(raw);
}

static void read_ring(struct perfring *r, struct kprobe_record *rec)
{
	struct kprobe_perf p;
	uint64_t before;

	perfring_begin(r);
	for (before = r->tail; kprobe_ring_peek(r, &p); before = r->tail) {
		must(r->tail >= before && r->tail + r->step <= r->head);
		if (p.sample)
			take(rec, &p);
		perfring_skip(r);
	}
	must(r->tail <= r->head);
	perfring_end(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct mount_entry root = { 1, "/", "/" };
	static struct kprobe_paths paths = {
		.fd = -1, .mounts = &root, .n = 1, .cgroupfd = -1
	};
	static struct quark_reader reader;
	static struct kprobe_record rec = { .paths = &paths,
					    .reader = &reader,
					    .ask = never };
	static struct perfring r;
	size_t page = sysconf(_SC_PAGESIZE), i, text;
	enum kprobe_id id;
	char *bytes;

	if (!r.page) {
		r.page = aligned_alloc(page, page + RING);
		r.scratch = malloc(PERFRING_RECORD_MAX);
		must(r.page && r.scratch);
		r.bytes = RING;
		lay_out_all();
	}
	if (size < 3)
		return 0;
	id = data[0] % KPROBE_MAX;
	memset(r.page, 0, page + RING);
	r.page->data_tail = r.page->data_head = RING - data[1] * 8;
	rec.max_env = data[2] * 64;
	data += 3;
	size -= 3;
	text = strnlen((const char *)data, size);
	if (text && text < size)
		learn_text(&layout[id], id, (const char *)data);
	data += MIN(text + 1, size);
	size -= MIN(text + 1, size);
	bytes = (char *)r.page + page;
	for (i = 0; i < MIN(size, RING); i++)
		bytes[r.page->data_head++ % RING] = data[i];
	read_ring(&r, &rec);
	lay_out(&layout[id], id);
	return 0;
}
