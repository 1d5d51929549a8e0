// SPDX-License-Identifier: Apache-2.0
/* ringset: see profiler/source/ringset.h. */
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/base.h"
#include "profiler/source/ringset.h"

static struct ringset_cpu *ringset_at(const struct ringset *rs, size_t i)
{
	return (struct ringset_cpu *)((char *)rs->cpus + i * rs->cpu_size);
}

int ringset_init(struct ringset *rs, const char **what)
{
	int n = cpus_number();

	rs->epoll = -1;
	rs->looked = perfring_look();
	*what = "/sys/devices/system/cpu/possible";
	if (n < 0)
		return n;
	*what = "memory";
	rs->record = malloc(PERFRING_RECORD_MAX);
	rs->cpus = calloc(n, rs->cpu_size);
	if (!rs->record || !rs->cpus)
		return -ENOMEM;
	for (rs->n = 0; rs->n < (size_t)n; rs->n++)
		ringset_at(rs, rs->n)->fd = -1;
	*what = "epoll_create1";
	rs->epoll = epoll_create1(EPOLL_CLOEXEC);
	return rs->epoll < 0 ? -errno : 0;
}

void ringset_fini(struct ringset *rs)
{
	size_t i;

	for (i = 0; i < rs->n; i++)
		rs->close(rs->arg, ringset_at(rs, i));
	if (rs->epoll >= 0)
		close(rs->epoll);
	free(rs->cpus);
	free(rs->record);
}

int ringset_online(size_t n,
		   int (*fn)(void *arg, unsigned int cpu, const char **what),
		   void *arg, const char **what)
{
	size_t i, open = 0;
	struct cpus online;
	int err;

	*what = "/sys/devices/system/cpu/online";
	err = cpus_online(&online);
	for (i = 0; !err && i < n; i++) {
		if (!cpus_has(&online, i))
			continue;
		err = fn(arg, i, what);
		if (err == -ENODEV)
			err = 0;
		else
			open++;
	}
	cpus_fini(&online);
	return err ? err : open ? 0 : -ENODEV;
}

void ringset_poll(struct ringset *rs)
{
	size_t i;

	perfring_forget_gone(rs->epoll);
	for (i = 0; i < rs->n; i++)
		if (ringset_at(rs, i)->ring.page)
			rs->drain(rs->arg, ringset_at(rs, i));
}

uint64_t ringset_watermark(const struct ringset *rs)
{
	uint64_t least = UINT64_MAX;
	size_t i;

	for (i = 0; i < rs->n; i++)
		if (ringset_at(rs, i)->ring.page)
			least = MIN(least, ringset_at(rs, i)->ring.watermark);
	return least;
}

/* Records from before the opening of its ring are missing. */
static int ringset_came(struct ringset *rs, unsigned int cpu,
			const struct perfring_look *now)
{
	struct ringset_cpu *c = ringset_at(rs, cpu);
	struct perfring_span span = { .from = c->sure }, parts[2];
	const char *what;
	int err = rs->open(rs->arg, cpu, &what), i, n;

	if (!err)
		err = rs->came(rs->arg, cpu);
	if (err) {
		rs->close(rs->arg, c);
		c->sure = span.from;
		return err == -ENODEV ? 0 : err; /* gone again */
	}
	span.to = MAX(span.from, c->sure);
	n = perfring_awake(&rs->looked, now, &span, parts);
	for (i = 0; i < n; i++)
		rs->lost(rs->arg, parts[i].from, parts[i].to);
	return 0;
}

int ringset_hotplug(struct ringset *rs, bool enabled)
{
	struct perfring_look now = perfring_look();
	int err, first = 0;
	struct cpus online;
	size_t i;

	err = cpus_online(&online);
	if (err)
		return err;
	for (i = 0; i < rs->n; i++) {
		struct ringset_cpu *c = ringset_at(rs, i);
		bool on = cpus_has(&online, i);

		if (c->ring.page &&
		    (!on || (enabled && perfring_silent(c->fd)))) {
			rs->drain(rs->arg, c);
			rs->close(rs->arg, c);
			c->sure = MIN(c->sure, rs->looked.at);
		}
		err = on && !c->ring.page ? ringset_came(rs, i, &now) : 0;
		first = first ? first : err;
		if (!on) /* nothing runs there */
			c->sure = now.at;
	}
	cpus_fini(&online);
	rs->looked = now;
	return first;
}
