// SPDX-License-Identifier: Apache-2.0
/*
 * perfmap: reads perf-PID.map, as in tools/perf/Documentation/jit-interface.txt of
 * Linux: lines "START SIZE name", both numbers hexadecimal, the rest of the line the
 * name. Runtimes append to it, or write it again as a whole. A line counts once it is
 * complete; one that is no entry, or longer than a chunk, is skipped.
 */
#include <string.h>

#include "symbolize/jit/jit.h"

#define PERFMAP_CHUNK 65536
#define PERFMAP_MARK 4096 /* bytes at either end */

/* A hexadecimal number, "0x" allowed, and the blanks behind it. */
static bool perfmap_hex(const char **p, const char *end, uint64_t *out)
{
	const char *s = *p;
	unsigned int digits = 0;
	int c;

	if (end - s > 2 && s[0] == '0' && (s[1] | 32) == 'x')
		s += 2;
	*out = 0;
	for (; s < end; s++, digits++) {
		c = *s | 32;
		if (*s >= '0' && *s <= '9')
			c = *s - '0';
		else if (c >= 'a' && c <= 'f')
			c -= 'a' - 10;
		else
			break;
		if (*out >> 60)
			return false;
		*out = *out << 4 | (unsigned int)c;
	}
	*p = s;
	while (*p < end && (**p == ' ' || **p == '\t'))
		++*p;
	return digits && *p > s;
}

/* The length of a name without what ends its line. */
static size_t perfmap_name_len(const char *s, size_t len)
{
	const char *end = memchr(s, '\n', len);

	len = strnlen(s, end ? (size_t)(end - s) : len);
	while (len && (s[len - 1] == '\r' || s[len - 1] == ' '))
		len--;
	return len;
}

/* A line of 'len' bytes at offset 'at', without its newline. */
static int perfmap_line(struct jit_table *t, const char *line, size_t len,
			uint64_t at)
{
	const char *p = line, *end = line + len;
	struct jit_entry e;
	uint64_t size;

	if (!perfmap_hex(&p, end, &e.start) || !perfmap_hex(&p, end, &size) ||
	    !size || size - 1 > UINT64_MAX - e.start ||
	    !perfmap_name_len(p, (size_t)(end - p)))
		return 0;
	e.size = (uint32_t)MIN(size, (uint64_t)UINT32_MAX);
	e.name = (uint32_t)(at + (uint64_t)(p - line));
	e.from = at + len + 1;
	return jit_table_add(t, &e);
}

/* The complete lines of a chunk. *used: bytes of it that need not be read again. */
static int perfmap_chunk(struct jit_table *t, const char *buf, size_t len,
			 size_t *used)
{
	const char *line = buf, *nl;
	int err = 0;

	while (!err && (nl = memchr(line, '\n', len - (size_t)(line - buf)))) {
		if (!t->skip)
			err = perfmap_line(t, line, (size_t)(nl - line),
					   t->end + (uint64_t)(line - buf));
		t->skip = false;
		line = nl + 1;
	}
	*used = (size_t)(line - buf);
	if (!*used && len == PERFMAP_CHUNK) {
		t->skip = true;
		*used = len;
	}
	return err;
}

/* Of what has been read; 0: it cannot be read any more. */
static uint64_t perfmap_mark(const struct jit_table *t,
			     struct symbolizer_src *src)
{
	uint64_t len = MIN(t->end, (uint64_t)PERFMAP_MARK);
	uint8_t buf[2 * PERFMAP_MARK];

	if (symbolizer_src_read(src, 0, buf, len) ||
	    symbolizer_src_read(src, t->end - len, buf + len, len))
		return 0;
	return hash_bytes(buf, 2 * len) | 1;
}

/* A table of what the file had before it was written anew is dropped. */
static void perfmap_begin(struct jit_table *t, struct symbolizer_src *src,
			  uint64_t size)
{
	uint32_t written = t->written;

	if (size >= t->end &&
	    (!t->end || size == t->end || perfmap_mark(t, src) == t->mark))
		return;
	jit_table_fini(t);
	t->written = written;
}

int perfmap_read(struct jit_table *t, struct symbolizer_src *src)
{
	uint64_t size = MIN(src->size, (uint64_t)JIT_FILE_MAX);
	size_t len, used = 1;
	char *buf;
	int err = 0;

	perfmap_begin(t, src, size);
	t->cut |= src->size > JIT_FILE_MAX;
	if (size == t->end || t->n >= JIT_ENTRIES_MAX)
		return 0;
	buf = malloc(PERFMAP_CHUNK);
	if (!buf)
		return -ENOMEM;
	while (!err && used && t->end < size) {
		len = (size_t)MIN(size - t->end, (uint64_t)PERFMAP_CHUNK);
		err = symbolizer_src_read(src, t->end, buf, len);
		if (!err)
			err = perfmap_chunk(t, buf, len, &used);
		t->end += err ? 0 : used;
	}
	free(buf);
	t->mark = perfmap_mark(t, src);
	/* It shrank meanwhile: the next read begins anew. */
	return err == -ENODATA ? 0 : err;
}

int perfmap_name(struct symbolizer_src *src, const struct jit_entry *e,
		 char out[JIT_NAME_MAX])
{
	int len = symbolizer_src_string(src, e->name, src->size, out,
					JIT_NAME_MAX);

	if (len < 0)
		return len;
	len = (int)perfmap_name_len(out, (size_t)len);
	out[len] = '\0';
	return len ? len : -ENODATA;
}
