// SPDX-License-Identifier: Apache-2.0
/*
 * 200,000 samples of 32 frames through the writer into a zstd file: time, size and
 * the increase of memory. Then the cost of the times of as many samples in a window.
 * One JSON line each.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "reporter/pprof.h"
#include "reporter/times.h"

#define SAMPLES 200000
#define FRAMES 32
#define LOCATIONS 50000
#define FUNCTIONS 10000

/* kB of a line of /proc/self/status. */
static long status_kb(const char *key)
{
	FILE *f = fopen("/proc/self/status", "re");
	char line[256];
	long kb = -1;

	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, key, strlen(key)))
			kb = strtol(line + strlen(key), NULL, 10);
	if (f)
		fclose(f);
	return kb;
}

/* Resets VmHWM to the current resident size, proc(5). */
static bool reset_peak(void)
{
	int fd = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
	bool ok = fd >= 0 && write(fd, "5", 1) == 1;

	if (fd >= 0)
		close(fd);
	return ok;
}

static void write_samples(struct pprof *p)
{
	static const int64_t values[][3] = { { 5, 0, 1234 }, { 6, 0, 1235 },
					     { 7, 11, 0 },   { 8, 12, 0 },
					     { 9, 13, 0 },   { 10, 14, 0 } };
	Perftools__Profiles__Sample s = PERFTOOLS__PROFILES__SAMPLE__INIT;
	Perftools__Profiles__Label label[ARRAY_SIZE(values)];
	Perftools__Profiles__Label *labels[ARRAY_SIZE(values)];
	unsigned int seed = 1, i, k;
	uint64_t ids[FRAMES];

	for (i = 0; i < ARRAY_SIZE(values); i++) {
		perftools__profiles__label__init(&label[i]);
		label[i].key = values[i][0];
		label[i].str = values[i][1];
		label[i].num = values[i][2];
		labels[i] = &label[i];
	}
	s.location_id = ids;
	s.n_location_id = FRAMES;
	s.value = (int64_t[]){ 1, 10101010 };
	s.n_value = 2;
	s.label = labels;
	s.n_label = ARRAY_SIZE(values);
	for (i = 0; i < SAMPLES; i++) {
		/* Stacks differ near the leaf and have common roots. */
		for (k = 0; k < FRAMES; k++)
			ids[k] =
				1 +
				(k < 8 ? (unsigned int)rand_r(&seed) % LOCATIONS
				       : (i / 100 * FRAMES + k) % LOCATIONS);
		pprof_put(p, PPROF_SAMPLE, &s.base);
	}
}

static void write_location(struct pprof *p, unsigned int i)
{
	Perftools__Profiles__Location l = PERFTOOLS__PROFILES__LOCATION__INIT;
	Perftools__Profiles__Line line = PERFTOOLS__PROFILES__LINE__INIT;
	Perftools__Profiles__Line *lines = &line;

	line.function_id = 1 + i % FUNCTIONS;
	l.id = i + 1;
	l.mapping_id = 1;
	l.address = 0x1000 + 64 * i;
	l.line = &lines;
	l.n_line = 1;
	pprof_put(p, PPROF_LOCATION, &l.base);
}

static void write_function(struct pprof *p, unsigned int i)
{
	Perftools__Profiles__Function f = PERFTOOLS__PROFILES__FUNCTION__INIT;

	f.id = i + 1;
	f.name = f.system_name = 16 + i;
	pprof_put(p, PPROF_FUNCTION, &f.base);
}

static void write_tables(struct pprof *p)
{
	Perftools__Profiles__Mapping m = PERFTOOLS__PROFILES__MAPPING__INIT;
	char name[64];
	unsigned int i;

	m.id = 1;
	m.memory_start = m.file_offset = 0x1000;
	m.memory_limit = 0x10000000;
	m.filename = 15;
	m.has_functions = true;
	pprof_put(p, PPROF_MAPPING, &m.base);
	for (i = 0; i < LOCATIONS; i++)
		write_location(p, i);
	for (i = 0; i < FUNCTIONS; i++)
		write_function(p, i);
	pprof_string(p, "");
	for (i = 1; i < 16 + FUNCTIONS; i++) {
		snprintf(name, sizeof(name), "some::namespace::function_%u", i);
		pprof_string(p, name);
	}
}

static int bench(int fd)
{
	uint64_t begin;
	struct pprof p = { .sink = NULL };
	long start, peak;

	if (!reset_peak())
		return -1;
	start = status_kb("VmHWM:");
	begin = clock_boottime_ns();
	if (sink_new(&p.sink, REPORTER_ZSTD, fd))
		return -1;
	write_samples(&p);
	write_tables(&p);
	if (p.err || sink_finish(p.sink))
		return -1;
	peak = status_kb("VmHWM:");
	printf("{\"bench\":\"pprof_writer\",\"samples\":%d,\"frames\":%d,"
	       "\"peak_over_start_bytes\":%ld,\"seconds\":%.3f,"
	       "\"bytes\":%llu}\n",
	       SAMPLES, FRAMES, (peak - start) * 1024,
	       (clock_boottime_ns() - begin) / 1e9,
	       (unsigned long long)sink_bytes(p.sink));
	pprof_fini(&p);
	sink_free(p.sink);
	return 0;
}

#define TIMES_CPUS 64
#define TIMES_HZ 97
#define TIMES_STACKS 20000 /* different samples of the window */

/* A minute of 64 CPUs at 97 Hz, mostly in the order of time. */
static int bench_times(void)
{
	struct times_sample s = { 0 };
	struct times times = { 0 };
	unsigned int seed = 1, i;
	struct times_cursor c;
	struct arena arena;
	uint64_t begin, middle, end, sum = 0;

	arena_init(&arena);
	begin = clock_boottime_ns();
	for (i = 0; i < SAMPLES; i++) {
		s.cpu = i % TIMES_CPUS;
		s.step = i / TIMES_CPUS * 100 / TIMES_HZ - rand_r(&seed) % 3;
		s.sample = (unsigned int)rand_r(&seed) % TIMES_STACKS;
		times_add(&times, &arena, &s);
	}
	middle = clock_boottime_ns();
	times_begin(&times, &c);
	while (times_next(&c, &s))
		sum += s.cpu;
	end = clock_boottime_ns();
	printf("{\"bench\":\"window_times\",\"samples\":%d,"
	       "\"bytes_per_sample\":%.2f,\"add_ns\":%.1f,"
	       "\"read_ns\":%.1f}\n",
	       SAMPLES, (double)times.bytes / SAMPLES,
	       (double)(middle - begin) / SAMPLES,
	       (double)(end - middle) / SAMPLES);
	arena_fini(&arena);
	return times.count == SAMPLES && sum ? 0 : -1;
}

int main(void)
{
	char path[] = "/tmp/bench_pprof.XXXXXX";
	int fd = mkstemp(path), err;

	if (fd < 0)
		return 1;
	unlink(path);
	err = bench(fd);
	close(fd);
	err = err ? err : bench_times();
	return err ? 1 : 0;
}
