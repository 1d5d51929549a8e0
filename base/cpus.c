// SPDX-License-Identifier: Apache-2.0
/* cpus: see base/cpus.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <unistd.h>

#include "base/cpus.h"

static bool cpus_number(const char **p, const char *end, unsigned int *out)
{
	const char *s = *p;
	unsigned int v = 0;

	for (; s < end && *s >= '0' && *s <= '9'; s++) {
		v = v * 10 + (*s - '0');
		if (v >= CPU_SETSIZE)
			return false;
	}
	if (s == *p)
		return false;
	*p = s;
	*out = v;
	return true;
}

int cpus_parse(const char *list, size_t len, cpu_set_t *set)
{
	const char *p = list, *end = list + len;
	unsigned int from, to;

	CPU_ZERO(set);
	while (p < end && *p != '\n') {
		if (!cpus_number(&p, end, &from))
			return -EINVAL;
		to = from;
		if (p < end && *p == '-') {
			p++;
			if (!cpus_number(&p, end, &to) || to < from)
				return -EINVAL;
		}
		for (; from <= to; from++)
			CPU_SET(from, set);
		if (p < end && *p == ',')
			p++;
		else if (p < end && *p != '\n')
			return -EINVAL;
	}
	return CPU_COUNT(set) ? 0 : -EINVAL;
}

int cpus_online(cpu_set_t *set)
{
	char buf[4096];
	ssize_t n;
	int fd;

	fd = open("/sys/devices/system/cpu/online", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = read(fd, buf, sizeof(buf));
	if (n < 0)
		n = -errno;
	close(fd);
	return n < 0 ? (int)n : cpus_parse(buf, n, set);
}
