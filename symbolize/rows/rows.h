/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rows: the unwind rows of one executable; see symbolize/symbolize.h. To make a
 * table, functions are added in any order, each as a run of rules. Then they are
 * sorted, neighbours with equal rules are merged, and the result is copied into
 * one block of exactly the needed size.
 *
 * A row has 4 bytes: 16 bits of its address within a page of 64 KiB, and the
 * number of its rule. A program has hundreds to thousands of different rules, so
 * each is stored once.
 */
#ifndef SYMBOLIZE_ROWS_H
#define SYMBOLIZE_ROWS_H

#include "symbolize/elf/ask.h"
#include "symbolize/elf/elf.h"
#include "symbolize/symbolize.h"

/* A set of byte strings, numbered from 0. */
struct symbolizer_pool {
	uint8_t *data;
	size_t used, cap;
	uint32_t *starts; /* n + 1 of them */
	uint32_t *slots; /* of the hash table: number + 1, 0 is free */
	uint32_t n, mask;
};

#define SYMBOLIZER_POOL_MAX 65535

/*
 * Adds a string unless it is there. Its number, -ENOMEM, or -E2BIG: there are
 * SYMBOLIZER_POOL_MAX strings, or too many bytes. 'len' is above 0.
 */
int symbolizer_pool_put(struct symbolizer_pool *p, const void *s, size_t len);
void symbolizer_pool_fini(struct symbolizer_pool *p);

/* A row and a function of a table being made. */
struct rows_raw;
struct rows_func;

struct symbolizer_rows_build {
	uint64_t base; /* of addresses */
	struct rows_raw *raw;
	size_t n_raw, cap_raw;
	struct rows_func *funcs;
	size_t n_funcs, cap_funcs;
	size_t n_first; /* functions before the last symbolizer_rows_fill() */
	struct symbolizer_pool rules, exprs;
	struct symbolizer_elf_range exec[16]; /* ascending */
	size_t n_exec;
	uint64_t text; /* bytes of code */
	bool bare; /* functions without rows */
};

/* Begins a table for the executable segments of 'e'. */
void symbolizer_rows_begin(struct symbolizer_rows_build *b,
			   struct symbolizer_elf *e);
/*
 * Adds a function, whose rows follow. False: it is empty or in no executable
 * segment; or *err is set.
 */
bool symbolizer_rows_func(struct symbolizer_rows_build *b, uint64_t start,
			  uint64_t end, int *err);
/*
 * Adds a row to the last function; 'at' ascends. NULL: a gap. The rule includes
 * return address and stack pointer. 0, -ENOMEM, -E2BIG.
 */
int symbolizer_rows_add(struct symbolizer_rows_build *b, uint64_t at,
			const struct symbolizer_rule *rule);
/*
 * Functions added from now on only fill gaps: one that overlaps an earlier one is
 * dropped. May be called again.
 */
void symbolizer_rows_fill(struct symbolizer_rows_build *b);
/*
 * Whether a function from before symbolizer_rows_fill() has this address; *next:
 * the start of the first one behind it, or UINT64_MAX.
 */
bool symbolizer_rows_covered(const struct symbolizer_rows_build *b, uint64_t at,
			     uint64_t *next);
/* The bytes of functions from before symbolizer_rows_fill(). */
uint64_t symbolizer_rows_covers(const struct symbolizer_rows_build *b);
/*
 * Notes the first damage: 'at' in its section, 'file_at' in the file. Both
 * strings outlive the making of the table.
 */
void symbolizer_rows_note(struct symbolizer_rows_info *info,
			  const char *section, uint64_t at, uint64_t file_at,
			  const char *what);

struct symbolizer_rows_gap {
	uint64_t start, end;
	bool signal; /* the function before ends as a signal handler's frame */
};

/* The gap behind function 'i' of those before; false: there is none. */
bool symbolizer_rows_gap(const struct symbolizer_rows_build *b, size_t i,
			 struct symbolizer_rows_gap *gap);
/* [from, to) has this rule, as far as it is a gap. 0, -ENOMEM, -E2BIG. */
int symbolizer_rows_put_rule(struct symbolizer_rows_build *b, uint64_t from,
			     uint64_t to, const struct symbolizer_rule *rule);
/* The same for the first instruction of a function without a caller. */
int symbolizer_rows_put_root(struct symbolizer_rows_build *b, uint64_t from,
			     uint64_t to);
/*
 * Add rows for code without CFI that is recognized by its instructions: where
 * stacks begin; pieces of C libraries. 0 or -ENOMEM.
 */
int symbolizer_rows_start(struct symbolizer_elf *e,
			  struct symbolizer_rows_build *b);
int symbolizer_rows_known(struct symbolizer_elf *e,
			  struct symbolizer_rows_build *b);
typedef int (*symbolizer_rows_func_fn)(void *arg, uint64_t start, uint64_t end);
/* See symbolizer_rows_functions(). */
int symbolizer_rows_each(struct symbolizer_rows_build *b,
			 symbolizer_rows_func_fn fn, void *arg);
/* Makes the table, with the damage in 'info'. 0 or -ENOMEM. */
int symbolizer_rows_end(struct symbolizer_rows_build *b,
			const struct symbolizer_rows_info *info,
			struct symbolizer_rows **out);
void symbolizer_rows_build_fini(struct symbolizer_rows_build *b);

/*
 * Makes the table of the ELF file 'src', from .eh_frame, Go's table, .debug_frame
 * and known code; .debug_frame also from the separate debug file, unless 'ask' is
 * NULL. Errors as of symbolizer_rows_fn.
 */
int symbolizer_rows_read(struct symbolizer_rows **out,
			 struct symbolizer_src *src,
			 const struct symbolizer_ask *ask);
/* The same without the separate debug file and known code. */
int symbolizer_rows_read_tables(struct symbolizer_rows **out,
				struct symbolizer_src *src);

/*
 * Calls 'fn' for each function that .eh_frame and .debug_frame of 'src' have, by
 * ascending addresses; they do not overlap. Returns when 'fn' does not return 0, with
 * its result. Otherwise 0, or an error as of symbolizer_rows_fn.
 */
int symbolizer_rows_functions(struct symbolizer_src *src,
			      symbolizer_rows_func_fn fn, void *arg);

/* The first characters of a value as text, by enum symbolizer_from. */
extern const char *const symbolizer_rows_words[];
extern const char *const symbolizer_switch_words[];

#endif /* SYMBOLIZE_ROWS_H */
