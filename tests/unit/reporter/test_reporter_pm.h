/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A simulated process manager: the functions that the reporter calls, on plain
 * structs filled by tests. They take precedence over those of the archive.
 * Included once per test program.
 */
#ifndef TESTS_UNIT_TEST_REPORTER_PM_H
#define TESTS_UNIT_TEST_REPORTER_PM_H

#include <stdlib.h>
#include <string.h>

#include "processmanager/processmanager.h"
#include "reporter/reporter.h"

struct pm_image {
	struct pm_image_info info;
	struct pm_process_info process;
};

struct pm_exe {
	struct pm_exe_info info;
	struct symbolizer_segment segments[2];
	size_t nsegments;
	int refs;
};

void pm_image_info(const struct pm_image *img, struct pm_image_info *out)
{
	*out = img->info;
}

const char *pm_exe_quarantine(const struct pm_exe *exe)
{
	return NULL;
}

void pm_exe_info(const struct pm_exe *exe, struct pm_exe_info *out)
{
	*out = exe->info;
}

const struct symbolizer_segment *pm_exe_segments(const struct pm_exe *exe,
						 size_t *np)
{
	*np = exe->nsegments;
	return exe->segments;
}

struct pm_exe *pm_exe_get(struct pm_exe *exe)
{
	exe->refs++;
	return exe;
}

void pm_exe_put(struct pm_exe *exe)
{
	exe->refs--;
}

void pm_process_info(const struct pm_image *img, struct pm_process_info *out)
{
	*out = img->process;
}

/* The history of each image: itself, then those of 'older'. */
static struct pm_image *older[PM_HISTORY_MAX];

size_t pm_image_history(const struct pm_image *img, struct pm_image_info *out,
			size_t max)
{
	size_t n;

	out[0] = img->info;
	for (n = 1; n < max && older[n - 1]; n++)
		out[n] = older[n - 1]->info;
	return n;
}

void pm_process_ask(struct pm *pm, struct pm_image *img)
{
}

/* All processes, up to an empty element. */
static struct pm_image *processes[8];
static size_t processes_at;

void pm_iter_init(struct pm_iter *it, struct pm *pm, bool all)
{
	processes_at = 0;
	it->all = all;
}

struct pm_image *pm_iter_next(struct pm_iter *it)
{
	struct pm_image *img;

	while ((img = processes[processes_at])) {
		processes_at++;
		if (it->all || img->process.end == PM_ALIVE)
			break;
	}
	return img;
}

/* Their keys, by pid; the last one is of a removed process. */
static bool last_is_gone;

struct abi_key *pm_keys(struct pm *pm, bool all, size_t *np)
{
	struct abi_key *keys = calloc(8, sizeof(*keys));
	struct pm_image *img;
	struct pm_iter it;

	*np = 0;
	pm_iter_init(&it, pm, all);
	while (keys && (img = pm_iter_next(&it)))
		keys[(*np)++].tgid = img->process.pid;
	return keys;
}

struct pm_image *pm_newest(struct pm *pm, const struct abi_key *key)
{
	size_t i;

	for (i = 0; processes[i]; i++)
		if (processes[i]->process.pid == key->tgid)
			return last_is_gone && !processes[i + 1] ? NULL
								 : processes[i];
	return NULL;
}

/* A host: two programs and a library, the kernel, the vDSO, a JIT. */
enum {
	EXE_A,
	EXE_B,
	EXE_LIBC,
	EXE_KERNEL,
	EXE_VDSO,
	EXE_ANON,
	EXE_MARK, /* none: frames that are not code */
};

static struct pm_exe exes[] = {
	[EXE_A] = { .info = { .kind = PM_EXE_FILE,
			      .path = "/usr/bin/alpha",
			      .base = "alpha",
			      .opened = true,
			      .ident = { .build_id = { 0xab, 0xcd, 0x01 },
					 .build_id_len = 3 } },
		    .segments = { { 0x401000, 0x1000, 0x2000 },
				  { 0x601000, 0x5000, 0x1000 } },
		    .nsegments = 2 },
	[EXE_B] = { .info = { .kind = PM_EXE_FILE,
			      .path = "/usr/bin/beta",
			      .base = "beta" } },
	[EXE_LIBC] = { .info = { .kind = PM_EXE_FILE,
				 .path = "/lib/libc.so.6",
				 .base = "libc.so.6",
				 .opened = true },
		       .segments = { { 0x28000, 0x28000, 0x100000 } },
		       .nsegments = 1 },
	[EXE_KERNEL] = { .info = { .kind = PM_EXE_KERNEL,
				   .path = "[kernel.kallsyms]",
				   .base = "[kernel.kallsyms]",
				   .opened = true,
				   .ident = { .build_id = { 0xfe },
					      .build_id_len = 1 } } },
	[EXE_VDSO] = { .info = { .kind = PM_EXE_VDSO,
				 .path = "[vdso]",
				 .base = "[vdso]" },
		       .segments = { { 0, 0, 0x1000 } },
		       .nsegments = 1 },
	[EXE_ANON] = { .info = { .kind = PM_EXE_ANON,
				 .path = "//anon",
				 .base = "//anon" } },
};

/* The events of the sampler. */
static const struct reporter_event_type cpu_clock[] = {
	{ .name = "cpu",
	  .label = "the CPU clock",
	  .periodic = true,
	  .count = { "samples", "count" },
	  .value = { "cpu", "nanoseconds" } },
};

/* Only the first two have ids. */
struct pm_exe *pm_exe_next(struct pm *pm, const struct pm_exe *exe)
{
	size_t i = exe ? exe - exes + 1 : EXE_A;

	return i <= EXE_B ? &exes[i] : NULL;
}

struct pm_exe *pm_exe_by_short_id(struct pm *pm, uint64_t short_id)
{
	struct pm_exe *exe = NULL;

	while ((exe = pm_exe_next(pm, exe)))
		if (short_id && exe->info.short_id == short_id)
			break;
	return exe;
}

/* A frame of 'exe' in the function at 'fn'. The last 256 frames are valid. */
static inline struct reporter_frame frame(int exe, uint64_t at, uint64_t fn,
					  const char *name)
{
	static struct {
		struct reporter_function function;
		struct reporter_line line;
	} made[256];
	static size_t last;
	struct reporter_place place = { .kind = REPORTER_PLACE_MARK, .id = at };
	size_t i = last++ % 256;

	if (exe != EXE_MARK) {
		place.kind = REPORTER_PLACE_EXE;
		place.exe = &exes[exe];
	}

	made[i].function = (struct reporter_function){
		.name = name,
		.system_name = name,
		.file = "",
		.start = fn,
		.unnamed = strstr(name, "+0x") != NULL,
	};
	made[i].line = (struct reporter_line){ &made[i].function, 0 };
	return (struct reporter_frame){
		.place = place,
		.vaddr = at,
		.lines = &made[i].line,
		.nlines = 1,
	};
}

static inline struct pm_image image(uint64_t serial, uint32_t tgid, int exe)
{
	struct pm_image img = { .info = { .serial = serial,
					  .key = { .tgid = tgid },
					  .comm = exes[exe].info.base,
					  .exe = exes[exe].info.path,
					  .cgroup = "/system.slice/x.service",
					  .main_exe = &exes[exe] } };

	snprintf(img.info.process_id, sizeof(img.info.process_id), "%u-1f",
		 tgid);
	snprintf(img.info.image_id, sizeof(img.info.image_id), "%u-1f-%u", tgid,
		 (unsigned int)serial);
	return img;
}

static inline int exe_refs(void)
{
	int n = 0;
	size_t i;

	for (i = 0; i < sizeof(exes) / sizeof(exes[0]); i++)
		n += exes[i].refs;
	return n;
}

bool pm_image_is_under(const struct pm_image *img, uint32_t pid, uint64_t start)
{
	return false;
}

#endif /* TESTS_UNIT_TEST_REPORTER_PM_H */
