// SPDX-License-Identifier: Apache-2.0
/*
 * kprobe_decode: parses what the kernel wrote: a record of a perf ring
 * (perf_event_open(2)), the members that a probe put into it, and the text in
 * tracefs that has their places (Documentation/trace/events.rst). Functions of
 * (buf, len) only, which check all of the buffer.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>

#include "processmanager/quark/kprobe/kprobe.h"

/* --- perf's records ---------------------------------------------------------- */

/* PERF_SAMPLE_TID, _TIME and the size of _RAW, in the kernel's order. */
struct sample_head {
	uint32_t pid, tid;
	uint64_t time;
	uint32_t size;
} __attribute__((packed));

/* The end of every other record, as sample_id_all is set: TID and TIME. */
struct sample_id {
	uint32_t pid, tid;
	uint64_t time;
};

static int kprobe_parse_sample(const char *body, size_t len,
			       struct kprobe_perf *out)
{
	struct sample_head s;

	if (len < sizeof(s))
		return -EINVAL;
	memcpy(&s, body, sizeof(s));
	if (s.size > len - sizeof(s))
		return -EINVAL;
	out->sample = true;
	out->tgid = s.pid;
	out->tid = s.tid;
	out->time = s.time;
	out->raw = body + sizeof(s);
	out->raw_len = s.size;
	return 0;
}

int kprobe_perf(const void *buf, size_t len, struct kprobe_perf *out)
{
	const char *body = (const char *)buf + sizeof(struct perf_event_header);
	struct perf_event_header h;
	struct sample_id id;

	memset(out, 0, sizeof(*out));
	if (len < sizeof(h))
		return -EINVAL;
	memcpy(&h, buf, sizeof(h));
	if (h.size != len)
		return -EINVAL;
	len -= sizeof(h);
	if (h.type == PERF_RECORD_SAMPLE)
		return kprobe_parse_sample(body, len, out);
	if (len < sizeof(id))
		return -EINVAL;
	memcpy(&id, body + len - sizeof(id), sizeof(id));
	out->lost = h.type == PERF_RECORD_LOST;
	out->tgid = id.pid;
	out->tid = id.tid;
	out->time = id.time;
	return 0;
}

/* --- a probe's members -------------------------------------------------------- */

/* A string's length and its offset from the record's start (__data_loc). */
static void decode_span(const char *raw, size_t len, uint32_t loc,
			struct quark_span *out)
{
	size_t off = loc & 0xffff, n = loc >> 16;

	if (!n || off > len || n > len - off)
		return;
	out->p = raw + off;
	out->len = strnlen(raw + off, n);
}

int kprobe_decode(const struct kprobe_event ev[KPROBE_MAX], const void *raw,
		  size_t len, struct kprobe_values *v)
{
	const struct kprobe_place *pl;
	const char *bytes = raw;
	uint16_t type;
	uint32_t loc;
	size_t i;
	int id;

	if (len < sizeof(type))
		return -1;
	memcpy(&type, raw, sizeof(type));
	for (id = 0; id < KPROBE_MAX && (!type || ev[id].type != type); id++)
		;
	if (id == KPROBE_MAX)
		return -1;
	/* Not 'args' and 'env', which are large: their lengths are cleared. */
	memset(v, 0, offsetof(struct kprobe_values, args));
	memset(&v->clone_flags, 0,
	       sizeof(*v) - offsetof(struct kprobe_values, clone_flags));
	for (i = 0; i < ev[id].n; i++) {
		char *dst;

		pl = &ev[id].places[i];
		dst = (char *)v + pl->dst;
		if (pl->offset > len || pl->size > len - pl->offset)
			return -1;
		if (!pl->span) {
			memcpy(dst, bytes + pl->offset, pl->size);
			continue;
		}
		memcpy(&loc, bytes + pl->offset, sizeof(loc));
		decode_span(bytes, len, loc, (struct quark_span *)dst);
	}
	return id;
}

/* --- formats ------------------------------------------------------------------- */

static const char *kprobe_format_find(const char *at, const char *end,
				      const char *what)
{
	return memmem(at, end - at, what, strlen(what));
}

/* "offset:16", in that line; -1: missing, or too large. */
static int kprobe_format_number(const char *at, const char *end,
				const char *what)
{
	int n = 0;

	at = kprobe_format_find(at, end, what);
	if (!at)
		return -1;
	at += strlen(what);
	if (at == end || *at < '0' || *at > '9')
		return -1;
	for (; at < end && *at >= '0' && *at <= '9'; at++) {
		n = n * 10 + (*at - '0');
		if (n > UINT16_MAX)
			return -1;
	}
	return n;
}

/*
 * "field:u64 name; offset:16; size:8; ...". The name is the declaration's last
 * word, without the "[64]" of an array.
 */
int kprobe_format(const char *format, size_t len, const char *name,
		  uint16_t *offset, uint16_t *size)
{
	const char *end = format + len, *line = format, *semi, *eol, *at;
	size_t n = strlen(name);
	int off, sz;

	while ((line = kprobe_format_find(line, end, "field:"))) {
		eol = memchr(line, '\n', end - line);
		if (!eol)
			eol = end;
		semi = memchr(line, ';', eol - line);
		at = semi ? memchr(line, '[', semi - line) : NULL;
		/* "char[] name" has one in front of the name. */
		if (!at || memchr(at, ' ', semi - at))
			at = semi;
		line = eol;
		if (!at || (size_t)(at - format) <= n ||
		    at[-(ptrdiff_t)n - 1] != ' ' || memcmp(at - n, name, n))
			continue;
		off = kprobe_format_number(semi, eol, "offset:");
		sz = kprobe_format_number(semi, eol, "size:");
		if (off < 0 || sz < 0)
			return -EINVAL;
		*offset = off;
		*size = sz;
		return 0;
	}
	return -ENOENT;
}
