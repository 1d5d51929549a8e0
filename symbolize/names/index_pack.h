/* SPDX-License-Identifier: Apache-2.0 */
/*
 * index_pack: the bytes of a symbol index, see index.h. They are one image
 * without pointers:
 *
 *   struct index_head
 *   uint64_t start[nblocks]    the address at which each block begins
 *   uint32_t at[nblocks]       its place in the data
 *   the data
 *
 * A block is INDEX_BLOCK ranges of addresses (the last one: fewer), ascending. It
 * begins with the names of those that come from a file other than the executable:
 * their length, 0 if there are none, else their compressed length and a raw
 * DEFLATE stream of strings in the order of the ranges. A range is
 *
 *   size << 2 | INDEX_GAP | INDEX_CHANGED
 *   INDEX_GAP: its distance from the end of the one before. Otherwise it begins
 *     where that is rounded up to 16, as functions are.
 *   INDEX_CHANGED: one byte, its enum index_tab; otherwise that of the one before
 *   if the name is in the executable: the distance of its offset in the strings
 *     from that of the last name of that table in the block, at first 0
 *
 * Numbers are ULEB128; the last one is signed, as in protobuf's sint64.
 *
 * Measured with 34,000 functions of libLLVM-14: 4.5 bytes a function, of 70 bytes
 * of name, in the executable; 21 with the name. Prefix sharing instead of DEFLATE
 * would take 53.
 */
#ifndef SYMBOLIZE_INDEX_PACK_H
#define SYMBOLIZE_INDEX_PACK_H

#include <zlib.h>

#include "base/base.h"
#include "symbolize/names/index.h"

#define INDEX_BLOCK 64
#define INDEX_GAP 1
#define INDEX_CHANGED 2
#define INDEX_ALIGN 16

/* Longer names are cut. */
#define INDEX_NAME_MAX 4096

/* What a name is from, the best first. */
enum index_tab {
	INDEX_SYMTAB,
	INDEX_DEBUG, /* .symtab of the separate debug file */
	INDEX_MINI, /* .symtab of MiniDebugInfo */
	INDEX_DYNSYM,
	INDEX_PLT, /* a stub: the name of its function, in .dynsym */
	INDEX_N_TABS,
};

/* Whether names of this table are in the executable, or else in the index. */
static inline bool index_in_file(unsigned int tab)
{
	return tab != INDEX_DEBUG && tab != INDEX_MINI;
}

/* Strings of a table, as file offsets. */
struct index_strings {
	uint64_t off, size;
};

struct index_head {
	struct index_strings strings[2]; /* of .symtab, of .dynsym */
	uint64_t bytes; /* of the data */
	uint32_t nblocks;
	uint32_t n; /* ranges */
};

struct symbolizer_index {
	struct index_head *head; /* the image */
	/* The names of the block that was used last. */
	char *text;
	size_t text_len;
	uint32_t text_block;
};

struct index_range {
	uint64_t start, size;
	uint32_t name; /* offset in the table's strings */
	uint8_t tab;
};

/* An index while it is written. All zero, but for the strings, at first. */
struct index_packer {
	struct index_strings strings[2];
	uint64_t *starts;
	uint32_t *at;
	size_t nblocks, cap_starts, cap_at, n;
	struct strbuf data;
	uint64_t text_bytes; /* of all blocks, before compression */
	/* The current block. */
	struct strbuf text, entries;
	uint64_t end; /* of its last range */
	uint32_t names[INDEX_N_TABS]; /* the last ones */
	uint8_t tab;
	z_stream z;
	bool deflating; /* 'z' is initialized */
};

/*
 * Appends a range that does not begin before the end of the last one. 'text' is
 * its name, if that is not in the executable. -ENOMEM; -EFBIG: too much text.
 */
int index_pack_add(struct index_packer *p, const struct index_range *range,
		   const char *text);
/* 0 or -ENOMEM. */
int index_pack_finish(struct index_packer *p, struct symbolizer_index **xp);
void index_pack_fini(struct index_packer *p);

#endif /* SYMBOLIZE_INDEX_PACK_H */
