// SPDX-License-Identifier: Apache-2.0
/*
 * jitdump: reads the file format of tools/perf/Documentation/jitdump-specification.txt
 * of Linux: a header, then records, each with its length and a time of CLOCK_MONOTONIC.
 * Runtimes append to it. Code bytes are skipped, they are not read.
 */
#include <limits.h>
#include <string.h>

#include "symbolize/jit/jit.h"

#define JITDUMP_SWAPPED 0x4454694aU
#define JITDUMP_VERSION 1
#define JITDUMP_ARCH_TIMESTAMP 1 /* times of a clock that is not known */
/* In a file; each takes some 10 ns. */
#define JITDUMP_RECORDS_MAX (1U << 22)
/* Entries looked at to find code that moves, for a whole file. */
#define JITDUMP_MOVES_MAX (1ULL << 28)
/* Rows of a function's table of lines. */
#define JITDUMP_LINES_MAX 65536

enum jitdump_id {
	JITDUMP_LOAD,
	JITDUMP_MOVE,
	JITDUMP_DEBUG,
	JITDUMP_UNWIND = 4, /* of the function that is loaded next */
};

struct jitdump_header {
	uint32_t magic, version;
	uint32_t size; /* of the header */
	uint32_t machine, pad, pid;
	uint64_t time, flags;
};

struct jitdump_record {
	uint32_t id, size;
	uint64_t time;
};

/* The name follows. */
struct jitdump_load {
	struct jitdump_record r;
	uint32_t pid, tid;
	uint64_t vma, addr, size, index;
};

struct jitdump_move {
	struct jitdump_record r;
	uint32_t pid, tid;
	uint64_t vma, from, to, size, index;
};

/* Rows follow: this, and the name of a file with its NUL. */
struct jitdump_debug {
	struct jitdump_record r;
	uint64_t addr, rows;
};

/*
 * .eh_frame follows, then .eh_frame_hdr: so do runtimes write it and perf reads it
 * (tools/perf/util/genelf.c), though the specification has the opposite order.
 */
struct jitdump_unwind {
	struct jitdump_record r;
	uint64_t size, header_size; /* of both; of .eh_frame_hdr */
	uint64_t mapped; /* of what is also in memory */
};

/* Its addresses are relative to this multiple behind the code, see genelf.c. */
#define JITDUMP_FRAMES_ALIGN 8

struct jitdump_row {
	uint64_t addr;
	uint32_t line, discriminator;
};

static int jitdump_load(struct jit_table *t, struct symbolizer_src *src,
			const struct jitdump_record *r)
{
	struct jitdump_load load;
	struct jit_entry e;
	int err;

	if (r->size <= sizeof(load))
		return 0;
	err = symbolizer_src_read(src, t->end, &load, sizeof(load));
	if (err || !load.size || load.size - 1 > UINT64_MAX - load.addr)
		return err;
	e = (struct jit_entry){
		.start = load.addr,
		.from = r->time,
		.size = (uint32_t)MIN(load.size, (uint64_t)UINT32_MAX),
		.name = (uint32_t)(t->end + sizeof(load)),
	};
	if (t->debug && t->debug_addr == load.addr)
		e.lines = t->debug;
	e.unwind = t->unwind;
	t->debug = t->unwind = 0;
	return jit_table_add(t, &e);
}

/* The newest entry that begins there; NULL: none, or too much work. */
static const struct jit_entry *jitdump_at(struct jit_table *t, uint64_t addr)
{
	for (size_t i = t->n; i-- > 0;) {
		if (++t->work > JITDUMP_MOVES_MAX) {
			t->cut = true;
			break;
		}
		if (t->v[i].start == addr && t->v[i].name != JIT_GONE)
			return &t->v[i];
	}
	return NULL;
}

static int jitdump_move(struct jit_table *t, struct symbolizer_src *src,
			const struct jitdump_record *r)
{
	const struct jit_entry *was;
	struct jitdump_move move;
	struct jit_entry e, gone;
	int err;

	if (r->size < sizeof(move))
		return 0;
	err = symbolizer_src_read(src, t->end, &move, sizeof(move));
	if (err || move.from == move.to)
		return err;
	was = jitdump_at(t, move.from);
	if (!was || was->size - 1 > UINT64_MAX - move.to)
		return 0;
	e = gone = *was;
	gone.from = e.from = r->time;
	gone.name = JIT_GONE;
	gone.lines = gone.unwind = 0;
	e.start = move.to;
	err = jit_table_add(t, &gone);
	return err ? err : jit_table_add(t, &e);
}

static int jitdump_debug(struct jit_table *t, struct symbolizer_src *src,
			 const struct jitdump_record *r)
{
	struct jitdump_debug debug;
	int err;

	if (r->size < sizeof(debug))
		return 0;
	err = symbolizer_src_read(src, t->end, &debug, sizeof(debug));
	if (err)
		return err;
	/* Of the function that is loaded next. */
	t->debug = (uint32_t)t->end;
	t->debug_addr = debug.addr;
	return 0;
}

static int jitdump_take(struct jit_table *t, struct symbolizer_src *src,
			const struct jitdump_record *r)
{
	switch (r->id) {
	case JITDUMP_LOAD:
		return jitdump_load(t, src, r);
	case JITDUMP_MOVE:
		return jitdump_move(t, src, r);
	case JITDUMP_DEBUG:
		return jitdump_debug(t, src, r);
	case JITDUMP_UNWIND:
		t->unwind = (uint32_t)t->end;
		t->unwinds = true;
		return 0;
	default:
		return 0;
	}
}

static int jitdump_begin(struct jit_table *t, struct symbolizer_src *src)
{
	struct jitdump_header h;
	int err = symbolizer_src_read(src, 0, &h, sizeof(h));

	t->dump = true;
	if (err)
		return err;
	if (h.magic != JITDUMP_MAGIC || h.version != JITDUMP_VERSION ||
	    h.size < sizeof(h) || h.flags & JITDUMP_ARCH_TIMESTAMP) {
		t->cut = true;
		return -ENOTSUP;
	}
	t->end = h.size;
	return 0;
}

bool jitdump_is(struct symbolizer_src *src)
{
	uint32_t magic;

	return !symbolizer_src_read(src, 0, &magic, sizeof(magic)) &&
	       (magic == JITDUMP_MAGIC || magic == JITDUMP_SWAPPED);
}

int jitdump_read(struct jit_table *t, struct symbolizer_src *src)
{
	uint64_t size = MIN(src->size, (uint64_t)JITDUMP_FILE_MAX);
	struct jitdump_record r;
	int err = 0;

	if (size < t->end)
		jit_table_fini(t);
	t->cut |= src->size > JITDUMP_FILE_MAX;
	if (!t->end)
		err = jitdump_begin(t, src);
	while (!err && t->n < JIT_ENTRIES_MAX && t->end < size &&
	       size - t->end >= sizeof(r)) {
		err = symbolizer_src_read(src, t->end, &r, sizeof(r));
		if (err || r.size > size - t->end)
			break;
		/* A record without an end, or a file made of tiny ones. */
		if (r.size < sizeof(r) || ++t->records > JITDUMP_RECORDS_MAX) {
			t->cut = true;
			break;
		}
		err = jitdump_take(t, src, &r);
		t->end += err ? 0 : r.size;
	}
	return err == -ENODATA || err == -ENOTSUP ? 0 : err;
}

/* --- unwind information ---------------------------------------------------------- */

int jitdump_frames(struct symbolizer_src *src, const struct jit_entry *e,
		   struct jit_frames *out)
{
	struct jitdump_unwind u;
	int err;

	if (!e->unwind)
		return -ENODATA;
	err = symbolizer_src_read(src, e->unwind, &u, sizeof(u));
	if (err)
		return err;
	/* It may have been changed since the table was made. */
	if (u.r.id != JITDUMP_UNWIND || u.r.size < sizeof(u) ||
	    u.size > u.r.size - sizeof(u) || u.header_size >= u.size ||
	    u.size - u.header_size > JIT_FRAMES_MAX)
		return -ENODATA;
	out->offset = e->unwind + sizeof(u);
	out->size = u.size - u.header_size;
	out->addr = e->start + (e->size + JITDUMP_FRAMES_ALIGN - 1ULL) /
				       JITDUMP_FRAMES_ALIGN *
				       JITDUMP_FRAMES_ALIGN;
	return 0;
}

/* --- lines ---------------------------------------------------------------------- */

/*
 * What is left, with its NUL, of a name that was cut at JIT_FILE_NAME_MAX. No file has a
 * path longer than PATH_MAX.
 */
static int jitdump_name_rest(struct symbolizer_src *src, uint64_t at,
			     uint64_t end)
{
	char rest[PATH_MAX];
	int len = symbolizer_src_string(src, at, end, rest, sizeof(rest));

	return len < (int)sizeof(rest) - 1 ? len : -ENODATA;
}

/* Reads the row at *at and the file's name, which may be empty; moves behind it. */
static int jitdump_row(struct symbolizer_src *src, uint64_t *at, uint64_t end,
		       struct jitdump_row *row, char file[JIT_FILE_NAME_MAX])
{
	int len = symbolizer_src_read(src, *at, row, sizeof(*row));

	if (len)
		return len;
	*at += sizeof(*row);
	len = symbolizer_src_string(src, *at, end, file, JIT_FILE_NAME_MAX);
	if (len < 0)
		return -ENODATA;
	*at += (uint64_t)len;
	if (len == JIT_FILE_NAME_MAX - 1)
		len = jitdump_name_rest(src, *at, end);
	else
		len = 0;
	if (len < 0 || *at + (uint64_t)len >= end)
		return -ENODATA;
	*at += (uint64_t)len + 1;
	return 0;
}

int jitdump_line(struct symbolizer_src *src, const struct jit_entry *e,
		 uint64_t addr, struct jit_line *out)
{
	char file[JIT_FILE_NAME_MAX], last[JIT_FILE_NAME_MAX] = "";
	struct jitdump_debug debug;
	struct jitdump_row row;
	uint64_t at, end, n, offset = addr - e->start, row_offset;
	int err;

	memset(out, 0, sizeof(*out));
	out->start = e->start;
	out->end = e->start + e->size;
	err = symbolizer_src_read(src, e->lines, &debug, sizeof(debug));
	if (err || debug.r.size < sizeof(debug))
		return err ? err : -ENODATA;
	at = e->lines + sizeof(debug);
	end = MIN((uint64_t)e->lines + debug.r.size, src->size);
	n = MIN(debug.rows, (uint64_t)JITDUMP_LINES_MAX);
	for (uint64_t i = 0; i < n && at + sizeof(row) < end; i++) {
		err = jitdump_row(src, &at, end, &row, file);
		if (err)
			return out->line ? 0 : err;
		if (strcmp(file, "\xff") != 0) /* that of the row before */
			strcpy(last, file);
		/* The code may have been moved since; a damaged row is far off. */
		row_offset = row.addr - debug.addr;
		if (row_offset > offset) {
			out->end =
				e->start + MIN(out->end - e->start, row_offset);
			continue;
		}
		if (row_offset < out->start - e->start)
			continue;
		out->start = e->start + row_offset;
		out->line = row.line;
		strcpy(out->file, last);
	}
	return out->line ? 0 : -ENODATA;
}
