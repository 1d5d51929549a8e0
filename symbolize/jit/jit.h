/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jit: the code of one process that its runtime made, as the runtime reports it in a
 * file: a perf map (perfmap.c) or a jitdump (jitdump.c). Its entries are in the order
 * of the file. Each counts from a point on: in a jitdump, a time; in a perf map, which
 * has no times, the offset at which its line ends.
 *
 * The process chooses contents, size and growth, and may change what was read; it can
 * only spoil its own names. Limits: JIT_FILE_MAX bytes, JIT_ENTRIES_MAX entries, and
 * JIT_STEPS_MAX for one lookup.
 */
#ifndef SYMBOLIZE_JIT_H
#define SYMBOLIZE_JIT_H

#include "base/base.h"
#include "symbolize/elf/elf.h"
#include "symbolize/symbolize.h"

#define JIT_FILE_MAX (64U << 20) /* of a perf map */
#define JITDUMP_FILE_MAX \
	UINT32_MAX /* so an offset has 32 bits; code is skipped */
#define JIT_ENTRIES_MAX (1U << 20)
#define JIT_STEPS_MAX (1U << 26)
#define JIT_NAME_MAX 4096
#define JIT_FILE_NAME_MAX 1024 /* of a source file */
#define JITDUMP_MAGIC 0x4a695444U

struct jit_entry {
	uint64_t start;
	uint64_t from; /* it counts from here on */
	uint32_t size;
	uint32_t name; /* offset of its name; JIT_GONE */
	uint32_t lines; /* of a jitdump: offset of the record; 0: none */
	uint32_t unwind; /* the same, of unwind information */
};

#define JIT_GONE UINT32_MAX /* the code that was there is gone */

struct jit_table {
	struct jit_entry *v;
	size_t n, cap;
	uint64_t end; /* of what has been read */
	uint64_t mark; /* of a perf map: a hash of the first and last bytes of that */
	uint32_t written; /* of the file, when that was read: see file.h */
	bool skip; /* what follows is the rest of a line that is too long */
	bool cut; /* a limit was exceeded, or a record is damaged: some are missing */
	bool dump; /* it is a jitdump: */
	uint32_t debug; /* the last record of lines; 0: none */
	uint64_t debug_addr;
	uint32_t unwind; /* the last record of unwind information; 0: none */
	bool unwinds; /* there is some */
	uint64_t records, work;
};

/* All zero: nothing has been read. */
void jit_table_fini(struct jit_table *t);
/* Adds an entry; of too many, none. 0 or -ENOMEM. */
int jit_table_add(struct jit_table *t, const struct jit_entry *e);

struct jit_query {
	uint64_t addr;
	uint64_t at;
	const struct jit_entry *found; /* out; or NULL */
	uint64_t until; /* out: the first later point at which another counts */
};

/*
 * For each address the last entry that covers it and counts at that point; or the
 * first later one if there is none. 'q' is sorted by address. -E2BIG: too much work,
 * as for a file in which everything covers everything.
 */
int jit_table_find(const struct jit_table *t, struct jit_query *q, size_t n);

/*
 * Reads what was added to a perf map; all of it if it shrank, or if what was read is not
 * there any more. 0 or -errno.
 */
int perfmap_read(struct jit_table *t, struct symbolizer_src *src);
/* The name of an entry, cut to JIT_NAME_MAX. Its length, or -errno. */
int perfmap_name(struct symbolizer_src *src, const struct jit_entry *e,
		 char out[JIT_NAME_MAX]);

/* Whether it is a jitdump; otherwise a perf map. */
bool jitdump_is(struct symbolizer_src *src);
/* Reads what was added to a jitdump. 0 or -errno. */
int jitdump_read(struct jit_table *t, struct symbolizer_src *src);

struct jit_line {
	uint64_t start, end; /* addresses that have it */
	uint32_t line;
	char file[JIT_FILE_NAME_MAX];
};

/* The line of an address of an entry with lines. -ENODATA: none. */
int jitdump_line(struct symbolizer_src *src, const struct jit_entry *e,
		 uint64_t addr, struct jit_line *out);

/* Code that is in memory at a point. */
struct jit_live {
	uint64_t start;
	uint32_t entry; /* its index */
	bool hidden; /* no: another entry covers a part of it */
};

/*
 * All entries, by their start; those that are not hidden do not overlap. 'from' and
 * 'until': the result is the same for all points in [from, until). 'v' has room for
 * t->n. 0 or -ENOMEM.
 */
int jit_table_live(const struct jit_table *t, uint64_t at, struct jit_live *v,
		   uint64_t *from, uint64_t *until);

#define JIT_FRAMES_MAX (1U << 20) /* of one entry; larger ones are left out */
#define JIT_FRAMES_ALL \
	(64U << 20) /* in a table of rows; what exceeds it is, too */

/* The .eh_frame of an entry. */
struct jit_frames {
	uint64_t offset, size; /* in the file */
	uint64_t addr; /* that it is written for */
};

/* -ENODATA: it has none, or one that exceeds its record or JIT_FRAMES_MAX. */
int jitdump_frames(struct symbolizer_src *src, const struct jit_entry *e,
		   struct jit_frames *out);
/*
 * The rows of the code that was in memory at a point. 0 or -errno; -ENODATA: the file
 * has no unwind information.
 */
int jit_table_rows(const struct jit_table *t, struct symbolizer_src *src,
		   uint64_t at, struct symbolizer_rows **out);

#endif /* SYMBOLIZE_JIT_H */
