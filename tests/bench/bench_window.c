// SPDX-License-Identifier: Apache-2.0
/*
 * Writing one window of 10,000 different stacks as the archive does: CPU time and the
 * increase of memory for the profile (gzip, zstd) and for its side file, beside zlib
 * compressing the same bytes at its default level. One JSON line each, the median of
 * several rounds.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

#include "base/base.h"
#include "reporter/store/times_file.h"
#include "reporter/window.h"
#include "tests/unit/reporter/test_reporter_pm.h"

#define STACKS 10000
#define SAMPLES 11880 /* a minute of two CPUs at 99 Hz */
#define FRAMES 30
#define FUNCTIONS 3000
#define IMAGES 40
#define ROUNDS 9
#define BENCH_SEC CLOCK_NSEC_PER_SEC
#define BUDGET_CPU_MS 50
#define BUDGET_KB (6 << 10)

static struct reporter_function functions[FUNCTIONS];
static char names[FUNCTIONS][64];

static void make_functions(void)
{
	for (unsigned int i = 0; i < FUNCTIONS; i++) {
		snprintf(names[i], sizeof(names[i]), "%s_%u_%s",
			 i % 3 ? "node" : "parser", i,
			 i % 5 ? "visit" : "read_block");
		functions[i] = (struct reporter_function){
			.name = names[i],
			.system_name = names[i],
			.file = i % 2 ? "/usr/src/app/node.c"
				      : "/usr/src/app/parser.c",
			.start = 0x401000 + 64 * i,
			.start_line = i,
		};
	}
}

/* Stacks have their outer frames in common, as those of a program do. */
static int add_one(struct window *w, unsigned int i, unsigned int *seed)
{
	struct reporter_frame frames[FRAMES];
	struct reporter_line lines[FRAMES];
	unsigned int stack = i % STACKS, k, f;
	struct pm_image img = image(stack % IMAGES + 1, stack % IMAGES + 100,
				    stack % 2 ? EXE_A : EXE_B);
	struct reporter_trace t = {
		.time = w->opts.begin + i * (60 * BENCH_SEC / SAMPLES),
		.image = &img,
		.tid = stack % IMAGES + 100,
		.cpu = i % 2,
		.thread = "worker",
		.frames = frames,
		.nframes = FRAMES,
	};

	for (k = 0; k < FRAMES; k++) {
		f = k < 8 ? (unsigned int)rand_r(seed) % FUNCTIONS
			  : (stack / 50 * FRAMES + k) % FUNCTIONS;
		lines[k] = (struct reporter_line){ &functions[f], f + k };
		frames[k] = (struct reporter_frame){
			.place = { .kind = REPORTER_PLACE_EXE,
				   .exe = &exes[EXE_A],
				   .id = 0x1000 + 64 * f + k },
			.vaddr = 0x401000 + 64 * f + k,
			.lines = &lines[k],
			.nlines = 1,
		};
	}
	return window_add(w, &t, &img.info);
}

static int make_window(struct window *w)
{
	const struct window_opts o = {
		.types = cpu_clock,
		.ntypes = 1,
		.events = 1,
		.period = BENCH_SEC / 99,
		.begin = 1000 * BENCH_SEC,
	};
	unsigned int seed;
	int err = window_init(w, &o);

	for (unsigned int i = 0; i < SAMPLES && !err; i++) {
		seed = i % STACKS;
		err = add_one(w, i, &seed);
	}
	return err ? err : window_seal(w);
}

static double cpu_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

/* VmHWM, in kB; since the last reset, proc(5). */
static long peak_kb(bool reset)
{
	FILE *f = fopen("/proc/self/status", "re");
	char line[256];
	long kb = -1;
	int fd;

	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, reset ? "VmRSS:" : "VmHWM:", 6))
			kb = strtol(line + 6, NULL, 10);
	if (f)
		fclose(f);
	if (!reset)
		return kb;
	fd = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, "5", 1) != 1)
		kb = -1;
	if (fd >= 0)
		close(fd);
	return kb;
}

struct cost {
	double ms[ROUNDS];
	long kb[ROUNDS];
	uint64_t bytes;
};

static int compare_ms(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static int compare_kb(const void *a, const void *b)
{
	long x = *(const long *)a, y = *(const long *)b;

	return x < y ? -1 : x > y;
}

static void show(const char *what, struct cost *c, struct cost *floor)
{
	qsort(c->ms, ROUNDS, sizeof(*c->ms), compare_ms);
	qsort(c->kb, ROUNDS, sizeof(*c->kb), compare_kb);
	printf("{\"bench\":\"window_%s\",\"stacks\":%d,\"cpu_ms\":%.1f,"
	       "\"budget_cpu_ms\":%d,\"peak_kb\":%ld,\"budget_peak_kb\":%d,"
	       "\"bytes\":%llu",
	       what, STACKS, c->ms[ROUNDS / 2], BUDGET_CPU_MS,
	       c->kb[ROUNDS / 2], BUDGET_KB, (unsigned long long)c->bytes);
	if (floor)
		printf(",\"zlib_cpu_ms\":%.1f", floor->ms[ROUNDS / 2]);
	printf("}\n");
}

/* The profile, or with 'times' its side file, to the end of the sink. */
static int write_one(struct window *w, enum reporter_format format, bool times,
		     int fd, struct sink **sink)
{
	const struct window_meta meta = {
		.time_ns = 1800000000 * (int64_t)BENCH_SEC,
		.duration_ns = 60 * BENCH_SEC,
		.from = INT64_MIN,
		.to = INT64_MAX,
	};
	const struct store_times_info info = {
		.wall_ns = meta.time_ns,
		.boot_ns = w->opts.begin,
		.duration_ns = meta.duration_ns,
	};
	int err = sink_new(sink, format, fd);

	if (err)
		return err;
	if (times)
		store_times_write(w, &info, *sink);
	else
		err = reporter_window_encode(w, &meta, *sink);
	return err ? err : sink_finish(*sink);
}

static int measure(enum reporter_format format, bool times, int fd, size_t i,
		   struct cost *c)
{
	struct sink *sink = NULL;
	struct window w;
	double begin;
	long start;
	int err = make_window(&w);

	start = peak_kb(true);
	begin = cpu_ms();
	if (!err)
		err = write_one(&w, format, times, fd, &sink);
	c->ms[i] = cpu_ms() - begin;
	c->kb[i] = peak_kb(false) - start;
	c->bytes = sink ? sink_bytes(sink) : 0;
	sink_free(sink);
	window_fini(&w);
	return err || start < 0 ? -1 : 0;
}

/* The same bytes through zlib. */
static int measure_floor(size_t i, struct cost *c)
{
	z_stream z = { .next_in = NULL };
	uint8_t out[65536], *data;
	struct sink *sink = NULL;
	struct window w;
	size_t len = 0;
	double begin;
	int err = make_window(&w);

	if (!err)
		err = write_one(&w, REPORTER_RAW, false, -1, &sink);
	data = sink ? sink_steal(sink, &len) : NULL;
	begin = cpu_ms();
	if (err || !data ||
	    deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 15 + 16, 8,
			 Z_DEFAULT_STRATEGY) != Z_OK)
		return -1;
	z.next_in = data;
	z.avail_in = len;
	do {
		z.next_out = out;
		z.avail_out = sizeof(out);
	} while (deflate(&z, Z_FINISH) == Z_OK);
	c->ms[i] = cpu_ms() - begin;
	c->bytes = len;
	deflateEnd(&z);
	free(data);
	sink_free(sink);
	window_fini(&w);
	return 0;
}

int main(void)
{
	char path[] = "/tmp/bench_window.XXXXXX";
	struct cost gzip = { 0 }, zstd = { 0 }, times = { 0 }, floor = { 0 };
	int fd = mkstemp(path), err = 0;

	if (fd < 0)
		return 1;
	unlink(path);
	make_functions();
	for (size_t i = 0; i < ROUNDS && !err; i++) {
		err |= measure_floor(i, &floor);
		err |= measure(REPORTER_GZIP, false, fd, i, &gzip);
		err |= measure(REPORTER_ZSTD, false, fd, i, &zstd);
		err |= measure(REPORTER_ZSTD, true, fd, i, &times);
	}
	close(fd);
	if (err)
		return 1;
	show("zlib", &floor, NULL);
	show("gzip", &gzip, &floor);
	show("zstd", &zstd, &floor);
	show("times", &times, &floor);
	return 0;
}
