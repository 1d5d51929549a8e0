// SPDX-License-Identifier: Apache-2.0
/* cpus: see base/proc/cpus.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "base/base.h"

/* A sysfs file is at most a page long, which is 64 KiB on some arm64 kernels. */
#define CPUS_FILE_MAX (64 * 1024)

static bool cpus_digits(const char **p, const char *end, size_t *out)
{
	const char *s = *p;
	size_t v = 0;

	for (; s < end && *s >= '0' && *s <= '9'; s++) {
		v = v * 10 + (*s - '0');
		if (v >= CPUS_MAX)
			return false;
	}
	if (s == *p)
		return false;
	*p = s;
	*out = v;
	return true;
}

/* The next "3" or "0-7", with the comma behind it. */
static bool cpus_range(const char **p, const char *end, size_t *from,
		       size_t *to)
{
	if (!cpus_digits(p, end, from))
		return false;
	*to = *from;
	if (*p < end && **p == '-') {
		(*p)++;
		if (!cpus_digits(p, end, to) || *to < *from)
			return false;
	}
	if (*p < end && **p == ',')
		(*p)++;
	else if (*p < end && **p != '\n')
		return false;
	return true;
}

int cpus_parse(const char *list, size_t len, struct cpus *c)
{
	const char *p = list, *end = list + len;
	size_t from, to, n = 0;

	*c = (struct cpus){ 0 };
	while (p < end && *p != '\n') {
		if (!cpus_range(&p, end, &from, &to))
			return -EINVAL;
		n = MAX(n, to + 1);
	}
	if (!n)
		return -EINVAL;
	c->set = CPU_ALLOC(n);
	if (!c->set)
		return -ENOMEM;
	c->n = n;
	CPU_ZERO_S(CPU_ALLOC_SIZE(n), c->set);
	for (p = list; p < end && *p != '\n';) {
		cpus_range(&p, end, &from, &to);
		for (; from <= to; from++)
			CPU_SET_S(from, CPU_ALLOC_SIZE(n), c->set);
	}
	return 0;
}

static int cpus_read(const char *path, struct cpus *c)
{
	char *buf = malloc(CPUS_FILE_MAX);
	ssize_t n;
	int err;

	*c = (struct cpus){ 0 };
	if (!buf)
		return -ENOMEM;
	n = procfs_read(AT_FDCWD, path, buf, CPUS_FILE_MAX);
	err = n < 0 ? (int)n : cpus_parse(buf, n, c);
	free(buf);
	return err;
}

int cpus_online(struct cpus *c)
{
	return cpus_read("/sys/devices/system/cpu/online", c);
}

int cpus_possible(struct cpus *c)
{
	return cpus_read("/sys/devices/system/cpu/possible", c);
}

int cpus_number(void)
{
	struct cpus c;
	int err = cpus_possible(&c), n = c.n;

	cpus_fini(&c);
	return err ? err : n;
}

bool cpus_has(const struct cpus *c, size_t cpu)
{
	return cpu < c->n && CPU_ISSET_S(cpu, CPU_ALLOC_SIZE(c->n), c->set);
}

void cpus_fini(struct cpus *c)
{
	CPU_FREE(c->set);
	*c = (struct cpus){ 0 };
}
