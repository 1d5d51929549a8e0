// SPDX-License-Identifier: Apache-2.0
/* procstat: see profiler/source/procstat.h. The format is proc(5)'s. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "profiler/source/procstat.h"

/* Longer than a CPU's line of ten 64-bit numbers; those lines come first. */
#define PROCSTAT_LINE 256

/* user nice system idle iowait irq softirq steal: which of them are work. */
static const bool procstat_is_busy[] = { true,	true, true, false,
					 false, true, true, false };

static bool procstat_number(const char **p, const char *end, uint64_t *out)
{
	char *rest;

	if (*p == end || !isdigit((unsigned char)**p))
		return false;
	*out = strtoull(*p, &rest, 10); /* ends at the end of the line */
	*p = rest;
	return true;
}

static uint64_t procstat_busy(const char *p, const char *end)
{
	uint64_t v, sum = 0;
	size_t i;

	for (i = 0; i < sizeof(procstat_is_busy); i++) {
		while (p < end && *p == ' ')
			p++;
		if (!procstat_number(&p, end, &v))
			break;
		if (procstat_is_busy[i])
			sum += v;
	}
	return sum;
}

int procstat_parse(const char *text, size_t len, uint64_t *busy, size_t n)
{
	const char *p = text, *end = text + len, *eol;
	bool found = false;
	uint64_t cpu;

	memset(busy, 0, n * sizeof(*busy));
	for (; p < end; p = eol + 1) {
		eol = memchr(p, '\n', end - p);
		if (!eol)
			break; /* incomplete */
		if (eol - p < 4 || memcmp(p, "cpu", 3))
			continue;
		p += 3;
		if (!procstat_number(&p, eol, &cpu) || cpu >= n)
			continue;
		busy[cpu] = procstat_busy(p, eol);
		found = true;
	}
	return found ? 0 : -EINVAL;
}

int procstat_read(const char *path, uint64_t *busy, size_t n)
{
	size_t size = (n + 1) * PROCSTAT_LINE;
	char *buf = malloc(size);
	ssize_t got;
	int err;

	if (!buf)
		return -ENOMEM;
	got = procfs_read(AT_FDCWD, path, buf, size);
	err = got < 0 ? (int)got : procstat_parse(buf, got, busy, n);
	free(buf);
	return err;
}
