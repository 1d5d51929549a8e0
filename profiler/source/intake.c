// SPDX-License-Identifier: Apache-2.0
/* intake: see profiler/source/intake.h. */
#include <errno.h>
#include <string.h>

#include "base/base.h"
#include "profiler/rescan/rescan.h"
#include "profiler/source/intake.h"

/* Bytes in the pump: the contents of all rings, and as much again. */
#define INTAKE_HELD ((size_t)32 << 20)
#define INTAKE_DELIVER_NS (5 * CLOCK_NSEC_PER_MSEC)
#define INTAKE_DELIVER_RECORDS 16 /* between two readings of the clock */

int intake_init(struct intake *in, size_t ceiling, pump_deliver_fn deliver,
		pump_drop_fn drop, void *arg)
{
	int err = vault_new(&in->vault);

	return err ? err
		   : pump_new(&in->pump, MAX(INTAKE_HELD, ceiling), deliver,
			      drop, arg);
}

void intake_fini(struct intake *in)
{
	pump_free(in->pump);
	vault_free(in->vault);
	in->pump = NULL;
	in->vault = NULL;
}

void *intake_take(struct intake *in, size_t size)
{
	void *rec = vault_take(in->vault, size);

	in->nomem += !rec;
	return rec;
}

static void intake_record(struct intake *in, enum pump_stream stream,
			  const struct abi_sample *rec, size_t len)
{
	void *copy = intake_take(in, len);

	if (copy)
		pump_push(in->pump, stream, rec->time, memcpy(copy, rec, len),
			  len);
}

void intake_sample(void *arg, const struct abi_sample *rec, size_t len)
{
	intake_record(arg, PUMP_SAMPLE, rec, len);
}

void intake_site(void *arg, const struct abi_sample *rec, size_t len)
{
	intake_record(arg, PUMP_SITE, rec, len);
}

/*
 * Called when a mapping record could not be queued. The loss is applied
 * immediately, not in order of time, so it affects older queued samples, too;
 * and since the process may be unknown so far, it makes all processes stale.
 */
static void intake_map_gone(struct intake *in, uint64_t time)
{
	struct pm_map_event lost = {
		.kind = PM_MAP_LOST,
		.time = time,
		.end = clock_boottime_ns(),
	};

	in->map_lost(in->arg, &lost);
}

/* Record and path are one block. */
int intake_map_try(struct intake *in, const struct pm_map_event *ev)
{
	size_t n = ev->path ? strlen(ev->path) + 1 : 0;
	struct pm_map_event *copy = intake_take(in, sizeof(*copy) + n);
	int err;

	in->mapped |= ev->kind != PM_MAP_KSYMBOL;
	if (in->rescan && (ev->kind != PM_MAP_KSYMBOL || !copy))
		rescan_saw_map(in->rescan, copy ? ev : NULL);
	if (!copy) {
		intake_map_gone(in, ev->time);
		return 0;
	}
	*copy = *ev;
	if (n)
		copy->path = memcpy(copy + 1, ev->path, n);
	/* Execs and losses are rare, and important. */
	err = (ev->kind == PM_MAP_MMAP ? pump_push : pump_push_rare)(
		in->pump, PUMP_MAPPING, ev->time, copy, sizeof(*copy) + n);
	if (!err || ev->kind == PM_MAP_MMAP)
		return err;
	intake_map_gone(in, ev->time);
	return 0;
}

void intake_map(struct intake *in, const struct pm_map_event *ev)
{
	struct pm_map_event lost = {
		.kind = PM_MAP_LOST,
		.tgid = ev->tgid,
		.time = ev->time,
		.end = ev->time,
	};

	if (intake_map_try(in, ev))
		intake_map_try(in, &lost);
}

/* Without a name: those of its functions are in kallsyms. */
void intake_module(void *arg, const struct abi_module *rec)
{
	struct pm_map_event ev = {
		.kind = PM_MAP_KSYMBOL,
		.time = rec->time,
		.start = rec->start,
		.end = rec->start + rec->size,
		.unloaded = rec->unloaded,
		.path = "",
	};
	struct intake *in = arg;

	intake_map(in, &ev);
	in->modules(in->arg);
}

ssize_t intake_event(struct intake *in, const struct quark_event *ev)
{
	size_t size = quark_event_copy(ev, NULL, 0);
	void *copy = intake_take(in, size);
	int err;

	if (in->rescan)
		rescan_saw_event(in->rescan, ev);
	if (!copy)
		return -ENOMEM;
	quark_event_copy(ev, copy, size);
	err = pump_push(in->pump, PUMP_LIFECYCLE, ev->boottime, copy, size);
	return err ? err : (ssize_t)size;
}

void intake_watermark(struct intake *in, enum pump_stream stream, uint64_t time)
{
	if (stream == PUMP_LIFECYCLE)
		in->life_until = MAX(in->life_until, time);
	else if (stream == PUMP_MAPPING)
		in->maps_until = MAX(in->maps_until, time);
	pump_watermark(in->pump, stream, time);
}

void intake_deliver(struct intake *in)
{
	uint64_t end = clock_awake_ns() + INTAKE_DELIVER_NS;

	do {
		in->more = pump_run_some(in->pump, INTAKE_DELIVER_RECORDS);
	} while (in->more && clock_awake_ns() < end);
	in->passed = pump_passed(in->pump);
}
