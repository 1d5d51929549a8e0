// SPDX-License-Identifier: Apache-2.0
/* src: bytes of an untrusted file; see symbolize/elf/elf.h. */
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "symbolize/elf/elf.h"

void symbolizer_src_fd(struct symbolizer_src *src, int fd, uint64_t size)
{
	src->buf = NULL;
	src->fd = fd;
	/* The largest offset of pread(). */
	src->size = MIN(size, (uint64_t)INT64_MAX);
	src->cache_off = 0;
	src->cache_len = 0;
}

void symbolizer_src_mem(struct symbolizer_src *src, const void *buf, size_t len)
{
	symbolizer_src_fd(src, -1, len);
	src->buf = buf;
}

/* Reads 'len' bytes, or up to the end of the file; how many, or -errno. */
static ssize_t src_pread(const struct symbolizer_src *src, uint64_t off,
			 uint8_t *dst, size_t len)
{
	size_t got = 0;
	ssize_t n;

	while (got < len) {
		n = pread(src->fd, dst + got, len - got, (off_t)(off + got));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		got += (size_t)n;
	}
	return (ssize_t)got;
}

static bool src_cached(const struct symbolizer_src *src, uint64_t off,
		       size_t len)
{
	return off >= src->cache_off &&
	       off - src->cache_off <= src->cache_len &&
	       len <= src->cache_len - (off - src->cache_off);
}

int symbolizer_src_read(struct symbolizer_src *src, uint64_t off, void *dst,
			size_t len)
{
	ssize_t n;

	if (off > src->size || len > src->size - off)
		return -ENODATA;
	if (src->buf) {
		memcpy(dst, src->buf + off, len);
		return 0;
	}
	if (len > sizeof(src->cache)) {
		n = src_pread(src, off, dst, len);
		if (n < 0)
			return (int)n;
		return (size_t)n == len ? 0 : -ENODATA;
	}
	if (!src_cached(src, off, len)) {
		n = src_pread(src, off, src->cache,
			      MIN(sizeof(src->cache), src->size - off));
		src->cache_off = off;
		src->cache_len = (size_t)MAX(n, 0);
		if (n < 0)
			return (int)n;
		if (len > src->cache_len)
			return -ENODATA; /* it shrank */
	}
	memcpy(dst, src->cache + (off - src->cache_off), len);
	return 0;
}

int symbolizer_src_string(struct symbolizer_src *src, uint64_t off,
			  uint64_t limit, char *dst, size_t cap)
{
	size_t len = 0, step;
	char *nul;
	int err;

	limit = MIN(limit, src->size);
	if (off >= limit)
		return -ENODATA;
	while (len < cap - 1 && off + len < limit) {
		step = MIN(cap - 1 - len, (size_t)64);
		step = (size_t)MIN(step, limit - off - len);
		err = symbolizer_src_read(src, off + len, dst + len, step);
		if (err)
			return err;
		nul = memchr(dst + len, '\0', step);
		if (nul)
			return (int)(nul - dst);
		len += step;
	}
	dst[len] = '\0';
	return (int)len;
}
