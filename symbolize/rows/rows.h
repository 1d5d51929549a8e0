/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rows: the unwind rows of one executable, see symbolize/symbolize.h, and how
 * they come to be: functions are given in any order, each as a run of rules;
 * in the end they are sorted, neighbours with equal rules merged, and the
 * table is made exactly as large as needed, in one piece of memory.
 *
 * A row has 4 bytes: 16 bits of its address within a page of 64 KiB, and the
 * number of its rule. There are some hundred to some thousand different rules
 * in a program, so they are kept once each.
 */
#ifndef SYMBOLIZE_ROWS_H
#define SYMBOLIZE_ROWS_H

#include "symbolize/elf/ask.h"
#include "symbolize/elf/elf.h"
#include "symbolize/symbolize.h"

/* Byte strings, each kept once and numbered from 0. */
struct symbolizer_pool {
	uint8_t *data;
	size_t used, cap;
	uint32_t *starts; /* n + 1 of them */
	uint32_t *slots; /* of the hash table: number + 1, 0 is free */
	uint32_t n, mask;
};

#define SYMBOLIZER_POOL_MAX 65535

/*
 * The number of the string, new or old, or -ENOMEM; -E2BIG when there are
 * SYMBOLIZER_POOL_MAX, or too many bytes. 'len' is above 0.
 */
int symbolizer_pool_put(struct symbolizer_pool *p, const void *s, size_t len);
void symbolizer_pool_fini(struct symbolizer_pool *p);

/* A row and a function while the table is being made. */
struct rows_raw;
struct rows_func;

struct symbolizer_rows_build {
	uint64_t base; /* addresses count from here */
	struct rows_raw *raw;
	size_t n_raw, cap_raw;
	struct rows_func *funcs;
	size_t n_funcs, cap_funcs;
	size_t n_first; /* functions of the section that comes first */
	struct symbolizer_pool rules, exprs;
	struct symbolizer_elf_range *exec; /* ascending */
	size_t n_exec;
	uint64_t text; /* bytes of code */
};

/* The executable segments of 'e' are where rows may be. 0 or -errno. */
int symbolizer_rows_begin(struct symbolizer_rows_build *b,
			  struct symbolizer_elf *e);
/*
 * A function of these addresses, of which rows follow. False: it lies in no
 * executable segment, or is empty.
 */
bool symbolizer_rows_func(struct symbolizer_rows_build *b, uint64_t start,
			  uint64_t end, int *err);
/*
 * From 'at' on, which does not fall, this rule holds in the last function;
 * NULL: none. Return address and CFA have their rules in it like the others.
 * 0, -ENOMEM, -E2BIG.
 */
int symbolizer_rows_add(struct symbolizer_rows_build *b, uint64_t at,
			const struct symbolizer_rule *rule);
/*
 * What follows only fills the gaps of what was there: a function that meets
 * one of before is left out. May be called again.
 */
void symbolizer_rows_fill(struct symbolizer_rows_build *b);
/*
 * Whether a function of before symbolizer_rows_fill() has this address; *next:
 * where the first behind it begins, or UINT64_MAX.
 */
bool symbolizer_rows_covered(const struct symbolizer_rows_build *b, uint64_t at,
			     uint64_t *next);
/*
 * Notes the first damage: 'at' in its section, 'file_at' in the file. Both
 * strings outlive the table's making.
 */
void symbolizer_rows_note(struct symbolizer_rows_info *info,
			  const char *section, uint64_t at, uint64_t file_at,
			  const char *what);
/* The gap behind function 'i' of before; false: there is none. */
struct symbolizer_rows_gap {
	uint64_t start, end;
	bool signal; /* the function ends as the frame of a signal handler */
};

bool symbolizer_rows_gap(const struct symbolizer_rows_build *b, size_t i,
			 struct symbolizer_rows_gap *gap);
/*
 * [from, to) has this rule, as far as nothing was there before. 0, -ENOMEM,
 * -E2BIG.
 */
int symbolizer_rows_put_rule(struct symbolizer_rows_build *b, uint64_t from,
			     uint64_t to, const struct symbolizer_rule *rule);
/* The same for the first instruction of a function that nothing calls. */
int symbolizer_rows_put_root(struct symbolizer_rows_build *b, uint64_t from,
			     uint64_t to);
/*
 * What is known of code that no CFI speaks of, by what it does: where stacks
 * begin; pieces of C libraries. 0 or -ENOMEM.
 */
int symbolizer_rows_start(struct symbolizer_elf *e,
			  struct symbolizer_rows_build *b);
int symbolizer_rows_known(struct symbolizer_elf *e,
			  struct symbolizer_rows_build *b);
/* The table, with 'info' in it but for its counts. 0 or -ENOMEM. */
int symbolizer_rows_end(struct symbolizer_rows_build *b,
			const struct symbolizer_rows_info *info,
			struct symbolizer_rows **out);
void symbolizer_rows_build_fini(struct symbolizer_rows_build *b);

/*
 * All of it: the rows of the ELF file 'src', by .eh_frame and .debug_frame, the
 * latter also of the separate debug file that 'ask' may give; NULL: it is not
 * asked for. Errors as of symbolizer_rows_fn.
 */
int symbolizer_rows_read(struct symbolizer_rows **out,
			 struct symbolizer_src *src,
			 const struct symbolizer_ask *ask);
/* Only what the file's tables say, without what is known of its code. */
int symbolizer_rows_read_said(struct symbolizer_rows **out,
			      struct symbolizer_src *src);

#endif /* SYMBOLIZE_ROWS_H */
