/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source: the interface of a source of names: its symbol tables, DWARF, and what
 * else a file says of its functions. names.c has the table of all sources.
 *
 * Sources run in the worker process. Texts are as they are in the file: names are
 * demangled and cut by resolve.c.
 */
#ifndef SYMBOLIZE_SOURCE_H
#define SYMBOLIZE_SOURCE_H

#include "base/base.h"
#include "symbolize/elf/ask.h"
#include "symbolize/elf/elf.h"
#include "symbolize/symbolize.h"

/* Texts may be cut to this; an answer has room for no more. */
#define SOURCE_TEXT_MAX 4096

/* An inlined function without a name, which names.c leaves out. */
#define SOURCE_NO_NAME "[no name]"

/* Counted during a request. */
struct names_tally {
	uint32_t units_read; /* compile units, of debug information */
	uint32_t units_kept; /* ... from what was kept of them instead */
	bool units_damaged; /* that is damaged */
};

/* What every call has; valid during the call only. */
struct names_context {
	struct symbolizer_src *src; /* the file, by this request's descriptor */
	struct symbolizer_elf *elf; /* in open() only; with its tables */
	const struct symbolizer_ask *ask; /* for debug files; or NULL */
	struct arena *arena; /* of what find() returns */
	struct names_tally tally;
	uint32_t relocation; /* set by an open() with -ENOTSUP, see names.h */
};

/* What a source has for an address. */
struct names_found {
	/* The same for every address in [start, start + size). */
	uint64_t start, size;
	/*
	 * In the arena, as in struct symbolizer_symbol, but 'name' NULL: to be
	 * demangled from system_name; system_name NULL: the same as 'name'.
	 * Without both, the source knows file and line, but no name: then it is
	 * the only one.
	 */
	struct symbolizer_function *functions;
	size_t n; /* 0: a function whose name is not known */
	uint8_t source; /* enum symbolizer_source, of the name of the last */
};

struct names_source {
	/*
	 * 0: *state is the callee's own, and is passed to the functions below.
	 * -ENODATA: the file has nothing of the kind. -ENOMEM: it is tried again
	 * with the next request. -ENOTSUP: it has relocations that are not
	 * known. Another -errno: it is damaged.
	 */
	int (*open)(void **state, struct names_context *c);
	void (*close)(void *state);
	/* Memory held: counted, and given back by close(). */
	size_t (*bytes)(const void *state);
	/* 0; -ENOENT: not this address; -ENOMEM. */
	int (*find)(void *state, struct names_context *c, uint64_t vaddr,
		    struct names_found *out);
	/*
	 * After the last find() of a request: drops what is quickly made again, and
	 * keeps what is not. May be NULL.
	 */
	void (*idle)(void *state, struct names_context *c);
};

/* Go's own table, see go_table.h. */
extern const struct names_source names_go;
/* Debug information, see dwarf.c. */
extern const struct names_source names_dwarf;
/* Symbol tables, see index.h. */
extern const struct names_source names_symbols;
/* Functions without a name, see starts.c. */
extern const struct names_source names_starts;

#endif /* SYMBOLIZE_SOURCE_H */
