// SPDX-License-Identifier: Apache-2.0
/* published: see profiler/tracing/published.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "profiler/tracing/environ.h"
#include "profiler/tracing/find.h"
#include "profiler/tracing/published.h"

#define PUBLISHED_TRIES 3
#define PUBLISHED_ENVIRON_MAX 65536
#define PUBLISHED_STATUS_MAX 4096

static bool published_pread(int mem, uint64_t at, void *to, size_t len)
{
	/* Above it offsets are negative. */
	return at <= INT64_MAX &&
	       pread(mem, to, len, (off_t)at) == (ssize_t)len;
}

/* 0 or -errno, as symbolizer_context_header(). */
static int published_header(int mem, uint64_t at,
			    struct symbolizer_context_header *h)
{
	uint8_t bytes[SYMBOLIZER_CONTEXT_HEADER];

	if (!published_pread(mem, at, bytes, sizeof(bytes)))
		return -EINVAL;
	return symbolizer_context_header(bytes, sizeof(bytes), h);
}

/* 0; -EAGAIN: the writer changed it meanwhile; or another -errno. */
static int published_payload(int mem, uint64_t at,
			     const struct symbolizer_context_header *h,
			     void *to)
{
	struct symbolizer_context_header again;
	int err;

	if (!published_pread(mem, h->payload, to, h->size))
		return -EFAULT;
	err = published_header(mem, at, &again);
	if (err)
		return err;
	return again.published_ns == h->published_ns ? 0 : -EAGAIN;
}

static enum published_found published_new(struct published *p, int mem,
					  struct symbolizer_context_header *h)
{
	void *payload = malloc(SYMBOLIZER_CONTEXT_MAX);
	int err = payload ? published_payload(mem, p->mapping, h, payload)
			  : -ENOMEM;

	for (int i = 1; i < PUBLISHED_TRIES && err == -EAGAIN; i++) {
		err = published_header(mem, p->mapping, h);
		if (!err)
			err = published_payload(mem, p->mapping, h, payload);
	}
	if (err) {
		free(payload);
		return err == -EAGAIN ? PUBLISHED_WRITING : PUBLISHED_INVALID;
	}
	p->payload = payload;
	p->size = h->size;
	p->published_ns = h->published_ns;
	return PUBLISHED_NEW;
}

/* The mapping that is known may be another one by now. */
static enum published_found published_context(struct published *p, int dir,
					      int mem)
{
	struct symbolizer_context_header h;
	int err = -EINVAL;

	if (p->mapping)
		err = published_header(mem, p->mapping, &h);
	if (err == -EINVAL) {
		p->mapping = tracing_find_context(dir);
		if (!p->mapping)
			return PUBLISHED_NONE;
		err = published_header(mem, p->mapping, &h);
	}
	for (int i = 1; i < PUBLISHED_TRIES && err == -EAGAIN; i++)
		err = published_header(mem, p->mapping, &h);
	if (err)
		return err == -EAGAIN ? PUBLISHED_WRITING : PUBLISHED_INVALID;
	if (h.published_ns == p->published_ns)
		return PUBLISHED_SAME;
	return published_new(p, mem, &h);
}

/* Nothing else of it stays in memory. */
static void published_environ(struct published *p, int dir)
{
	char *text = malloc(PUBLISHED_ENVIRON_MAX);
	ssize_t len = 0;

	if (text)
		len = procfs_read(dir, "environ", text, PUBLISHED_ENVIRON_MAX);
	if (len > 0) {
		tracing_environ_parse(text, (size_t)len, &p->names);
		explicit_bzero(text, (size_t)len);
	}
	free(text);
}

/* The user, if all its ids are the same; else UINT32_MAX. */
static uint32_t published_uid(int dir)
{
	char text[PUBLISHED_STATUS_MAX];
	struct procfs_ids ids;

	if (procfs_read(dir, "status", text, sizeof(text)) <= 0 ||
	    !procfs_ids_parse(text, &ids) || ids.uid != ids.euid ||
	    ids.uid != ids.suid)
		return UINT32_MAX;
	return ids.uid;
}

static void published_storage(struct published *p, int mem)
{
	uint8_t bytes[TRACING_STORAGE_MAX];
	uint64_t at = 0;
	ssize_t len = 0;

	/* The memory behind it may not be there. */
	if (published_pread(mem, p->storage, &at, sizeof(at)) && at &&
	    at <= INT64_MAX)
		len = pread(mem, bytes, sizeof(bytes), (off_t)at);
	if (len <= 0)
		return;
	p->stored = malloc(sizeof(*p->stored));
	if (p->stored && tracing_storage_parse(bytes, (size_t)len, p->stored)) {
		free(p->stored);
		p->stored = NULL;
	}
}

/*
 * The start, read after 'mem' was opened, proves that 'mem' is not of a later process
 * with the same pid.
 */
static void published_process(struct published *p, int dir)
{
	uint32_t uid = p->storage ? published_uid(dir) : UINT32_MAX;
	int mem = openat(dir, "mem", O_RDONLY | O_CLOEXEC);
	struct procfs_stat st;

	if (mem < 0)
		return;
	if (procfs_stat_at(dir, &st) &&
	    st.start == procfs_tick_of(p->key.start_boottime)) {
		if (p->environ)
			published_environ(p, dir);
		p->found = published_context(p, dir, mem);
		if (p->storage)
			published_storage(p, mem);
		if (p->stored && published_uid(dir) == uid)
			p->uid = uid;
	}
	close(mem);
}

void published_read(struct published *p)
{
	int dir = procfs_open(p->key.tgid);

	p->found = PUBLISHED_GONE;
	p->payload = NULL;
	p->size = 0;
	p->stored = NULL;
	p->uid = UINT32_MAX;
	memset(&p->names, 0, sizeof(p->names));
	if (dir >= 0) {
		published_process(p, dir);
		close(dir);
	}
	if (p->found != PUBLISHED_NEW && p->found != PUBLISHED_SAME)
		p->published_ns = 0;
	p->read_at = clock_boottime_ns();
}
