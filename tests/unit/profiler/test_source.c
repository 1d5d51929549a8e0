// SPDX-License-Identifier: Apache-2.0
/*
 * The table of sources: an engine without BPF and without perf events runs a third
 * row, which replays records of its own, from its opening to the profile on disk.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "profiler/engine_internal.h"
#include "tests/unit/pprof_check.h"

#define REPLAY_PID 0x7ffffff0 /* no process has it: /proc is of no help */
#define REPLAY_SAMPLES 7
#define REPLAY_START 1000 /* ns since the boot */

/* A lifecycle record as this source has it. */
struct replay_life {
	char comm[ABI_COMM_LEN];
};

struct replay {
	struct source_opts opts;
	uint64_t begin;
	size_t drains; /* so far */
};

/* The state is freed by close(). */
static char calls[256];
static size_t drops, pushes;
static int refuse; /* open() fails with it */

static void note(char what)
{
	size_t n = strlen(calls);

	if (n + 1 < sizeof(calls) && (!n || calls[n - 1] != what))
		calls[n] = what;
}

static int replay_open(void **statep, const struct source_opts *opts,
		       const char **what)
{
	struct replay *r = calloc(1, sizeof(*r));

	note('o');
	*what = "replay";
	if (!r)
		return -ENOMEM;
	*statep = r;
	r->opts = *opts;
	return refuse;
}

static int replay_begin(void *state, const char **what)
{
	struct replay *r = state;

	note('b');
	r->begin = r->opts.started(r->opts.arg);
	return 0;
}

static void replay_end(void *state)
{
	note('e');
}

static void replay_close(void *state)
{
	note('c');
	free(state);
}

static size_t replay_polls(void *state, struct source_poll *out)
{
	return 0;
}

static void replay_push_sample(struct replay *r, uint64_t time)
{
	struct {
		struct abi_sample head;
		struct abi_part part;
		uint64_t address;
	} s = {
		.head.size = sizeof(s),
		.head.time = time,
		.head.key = { .start_boottime = REPLAY_START,
			      .tgid = REPLAY_PID },
		.head.tid = REPLAY_PID,
		.part = { ABI_PART_KSTACK, sizeof(uint64_t) },
		.address = 0xffffffff81000000,
	};

	intake_sample(r->opts.in, &s.head, sizeof(s));
}

static void replay_push_life(struct replay *r, uint64_t time)
{
	static const struct replay_life life = { "replayed" };
	struct replay_life *copy = malloc(sizeof(*copy));

	assert_non_null(copy);
	*copy = life;
	pushes++;
	pump_push(r->opts.in->pump, PUMP_LIFECYCLE, time, copy, sizeof(*copy));
}

/*
 * Samples first, as BPF has them: the pump puts the birth, which is older, before
 * them. In two drains; the first reports that more is left.
 */
static bool replay_drain(void *state, uint64_t now)
{
	struct pm_map_event map = { .kind = PM_MAP_MMAP,
				    .tgid = REPLAY_PID,
				    .start = 0x1000,
				    .end = 0x2000,
				    .path = "/nonexistent/replayed" };
	struct replay *r = state;
	size_t i;

	note('d');
	if (r->drains++ == 0) {
		for (i = 0; i < REPLAY_SAMPLES; i++)
			replay_push_sample(r, r->begin + 3 + i);
		return true;
	}
	if (r->drains == 2) {
		map.time = r->begin + 2;
		intake_map(r->opts.in, &map);
		replay_push_life(r, r->begin + 1);
	}
	intake_watermark(r->opts.in, PUMP_SAMPLE, now);
	intake_watermark(r->opts.in, PUMP_MAPPING, now);
	intake_watermark(r->opts.in, PUMP_LIFECYCLE, now);
	return false;
}

static int replay_second(void *state)
{
	return 0;
}

static void replay_life(void *state, const void *rec)
{
	const struct replay_life *life = rec;
	struct quark_process qp = { .pid = REPLAY_PID,
				    .key = { .start_boottime = REPLAY_START,
					     .pid = REPLAY_PID } };
	struct replay *r = state;
	struct quark_event ev = { .events = QUARK_EV_FORK,
				  .process = &qp,
				  .tid = REPLAY_PID,
				  .boottime = r->begin + 1 };

	note('l');
	memcpy(qp.comm, life->comm, sizeof(qp.comm));
	r->opts.event(r->opts.arg, &ev);
}

static void replay_mapped(void *state, const struct pm_map_event *ev)
{
	note('m');
}

/* The last one is left out; the others get the thread's name, as perf's do. */
static bool replay_sample(void *state, struct abi_sample *rec)
{
	struct replay *r = state;

	note('s');
	strcpy(rec->comm, "by the source");
	return rec->time < r->begin + 3 + REPLAY_SAMPLES - 1;
}

static void replay_drop(void *rec)
{
	drops++;
	free(rec);
}

static int replay_cpu_stats(void *state, struct sampler_cpu_stats *out,
			    size_t n)
{
	if (n)
		memset(out, 0, sizeof(*out));
	if (n)
		out->counters[ABI_SAMPLER_TAKEN] = REPLAY_SAMPLES;
	return 1;
}

static void replay_stats(void *state, struct source_stats *out)
{
	memset(out, 0, sizeof(*out));
	out->side.lost = 11;
	out->perf.gaps = 12;
}

static void replay_note(void *state, char *buf, size_t size)
{
	snprintf(buf, size, "records of a test");
}

static const struct source_row replay = {
	.name = "replay",
	.open = replay_open,
	.begin = replay_begin,
	.end = replay_end,
	.close = replay_close,
	.polls = replay_polls,
	.drain = replay_drain,
	.second = replay_second,
	.life = replay_life,
	.mapped = replay_mapped,
	.sample = replay_sample,
	.drop = replay_drop,
	.cpu_stats = replay_cpu_stats,
	.stats = replay_stats,
	.note = replay_note,
};

/* A row that does not open, and leaves nothing to be closed. */
static int broken_open(void **statep, const struct source_opts *opts,
		       const char **what)
{
	note('x');
	*what = "a step";
	return -EPERM;
}

static void broken_explain(const char *what, char *msg, size_t msglen)
{
	snprintf(msg, msglen, "%s may not be", what);
}

static const struct source_row broken = { .name = "broken",
					  .explain = broken_explain,
					  .open = broken_open,
					  .drop = free };

/* --- an engine -------------------------------------------------------------- */

static char dir[64];
static bool finished;
static uint64_t written;

static void on_written(void *arg, const char *path, int err, uint64_t n)
{
	assert_int_equal(err, 0);
	written += n;
}

static int start(struct engine **ep, const struct source_row *const *rows,
		 char *msg, size_t len)
{
	struct engine_opts opts = { .loop = uv_default_loop(),
				    .freq_hz = 99,
				    .open_files = 16,
				    .window_s = 60,
				    .archive = dir,
				    .written = on_written };

	/*
	 * The last engine's handles are closed and its work on other threads
	 * has ended, after which it lets the archive go.
	 */
	uv_run(uv_default_loop(), UV_RUN_DEFAULT);
	memset(calls, 0, sizeof(calls));
	drops = pushes = written = 0;
	return engine_new_from(ep, &opts, rows, msg, len);
}

static void on_finished(void *arg)
{
	finished = true;
}

static void finish(struct engine *e)
{
	finished = false;
	engine_finish(e, on_finished, NULL);
	while (!finished)
		uv_run(uv_default_loop(), UV_RUN_ONCE);
}

/* The one profile of the archive, which is removed. */
static void check_profile(void)
{
	const Perftools__Profiles__Profile *p;
	char pattern[128];
	glob_t g;

	snprintf(pattern, sizeof(pattern), "%s/*/*.pb*", dir);
	assert_int_equal(glob(pattern, 0, NULL, &g), 0);
	assert_int_equal(g.gl_pathc, 1);
	assert_null(pprof_check_file(g.gl_pathv[0]));
	p = pprof_checked();
	assert_int_equal(pprof_samples(p), REPLAY_SAMPLES - 1);
	assert_int_equal(p->n_sample, 1);
	assert_string_equal(pprof_label(p, p->sample[0], "thread"),
			    "by the source");
	assert_true(pprof_has_comment(p, "records of a test"));
	pprof_check_end();
	unlink(g.gl_pathv[0]);
	globfree(&g);
}

static void a_third_row_is_run_from_open_to_profile(void **state)
{
	const struct source_row *const rows[] = { &replay, NULL };
	uint64_t losses[LOSS_MAX];
	struct engine_totals totals;
	struct engine *e;
	const char *why;
	char msg[256];

	refuse = 0;
	assert_int_equal(start(&e, rows, msg, sizeof(msg)), 0);
	assert_string_equal(engine_note(e, &why), "records of a test");
	assert_string_equal(why, "");
	engine_totals(e, &totals);
	assert_int_equal(totals.samples, REPLAY_SAMPLES);
	losses_count(e, losses);
	assert_int_equal(losses[LOSS_MAPPING], 11);
	assert_int_equal(losses[LOSS_PERF_GAPS], 12);
	finish(e);
	assert_int_equal(written, REPLAY_SAMPLES - 1);
	engine_free(e);
	/* Delivered in order of time; what is drained later finds nothing. */
	assert_memory_equal(calls, "obe", 2);
	assert_non_null(strstr(calls, "dlmsd"));
	assert_string_equal(calls + strlen(calls) - 1, "c");
	assert_int_equal(pushes, 1);
	assert_int_equal(drops, 1);
	check_profile();
}

static void the_next_row_is_tried(void **state)
{
	const struct source_row *const rows[] = { &broken, &replay, NULL };
	struct engine *e;
	const char *why;
	char msg[256];

	refuse = 0;
	assert_int_equal(start(&e, rows, msg, sizeof(msg)), 0);
	assert_string_equal(engine_note(e, &why), "records of a test");
	assert_string_equal(why, "a step: Operation not permitted");
	engine_free(e);
	assert_memory_equal(calls, "xob", 3);
}

/* The error is the first row's; a row that failed half way is closed. */
static void no_row_opens(void **state)
{
	const struct source_row *const rows[] = { &broken, &replay, NULL };
	struct engine *e;
	char msg[256];

	refuse = -ENODEV;
	assert_int_equal(start(&e, rows, msg, sizeof(msg)), -EPERM);
	assert_string_equal(msg, "a step may not be");
	assert_string_equal(calls, "xoc");
}

/* Without memory another source would not do either. */
static void no_row_is_tried_for_want_of_memory(void **state)
{
	const struct source_row *const rows[] = { &replay, &broken, NULL };
	struct engine *e;
	char msg[256];

	refuse = -ENOMEM;
	assert_int_equal(start(&e, rows, msg, sizeof(msg)), -ENOMEM);
	assert_string_equal(msg, "replay: Cannot allocate memory");
	assert_string_equal(calls, "oc");
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_third_row_is_run_from_open_to_profile),
		cmocka_unit_test(the_next_row_is_tried),
		cmocka_unit_test(no_row_opens),
		cmocka_unit_test(no_row_is_tried_for_want_of_memory),
	};
	int rc;

	if (symbolizer_worker_wanted(argc, argv))
		return symbolizer_worker_main(argc, argv);
	strcpy(dir, "/tmp/test_source.XXXXXX");
	if (!mkdtemp(dir))
		return 1;
	rc = cmocka_run_group_tests(tests, NULL, NULL);
	/* A worker may have been writing to the cache when it was ended. */
	snprintf(calls, sizeof(calls), "until rm -rf %s; do sleep 0.1; done",
		 dir);
	if (system(calls))
		rc = 1;
	return rc;
}
