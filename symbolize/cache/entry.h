/* SPDX-License-Identifier: Apache-2.0 */
/*
 * entry: the format of a file of the cache on disk. Only profd writes these
 * files, but what comes back is checked as an answer of a worker is: a disk or
 * a person may have changed any byte.
 *
 * A head, witnesses (reader/witness.h), and the payload, each from a multiple of
 * 8 on:
 *	ROWS	a table, as symbolizer_rows_bytes(); nothing if 'err' is set
 *	NAMES	n times struct entry_range, ascending and disjoint, and behind
 *		these the functions of each, as struct worker_name
 *	KNOWN	symbolizer_known_pack()
 *	UNITS	a store of compile units, see dwarf_store.h. It is large, and a reader
 *		needs parts of it: it has checksums of its own, the head's does not
 *		include it
 */
#ifndef SYMBOLIZE_ENTRY_H
#define SYMBOLIZE_ENTRY_H

#include "symbolize/file.h"

enum entry_kind {
	ENTRY_ROWS = 1,
	ENTRY_NAMES,
	ENTRY_KNOWN,
	ENTRY_UNITS,
};

#define ENTRY_ID_LEN 16
#define ENTRY_BYTES_MAX (SYMBOLIZER_ROWS_MAX + (1U << 20))
#define ENTRY_NAMES_MAX (4U << 20) /* bytes of NAMES */
#define ENTRY_UNITS_MAX (64U << 20) /* of the file of UNITS */
#define ENTRY_AGE_S (7 * 86400) /* then it is made again */

struct entry_head {
	char magic[8]; /* changes with the format */
	uint8_t build[ENTRY_ID_LEN]; /* of the program that wrote it */
	uint8_t key[ENTRY_ID_LEN];
	uint64_t size; /* of the whole file */
	int64_t made_s; /* seconds since 1970 */
	uint32_t crc; /* zlib's, of the whole file with 0 here */
	uint32_t kind;
	uint32_t witness_len;
	uint32_t n;
	int32_t err;
	uint32_t pad;
};

/* The result for all addresses of [start, start + size). */
struct entry_range {
	uint64_t start, size;
	uint32_t at, len; /* of its functions, behind the ranges */
};

struct entry {
	const struct entry_head *head;
	const uint8_t *witness;
	const uint8_t *payload;
	size_t len; /* of the payload */
};

/* What identifies an entry, and the program. */
struct entry_id {
	enum entry_kind kind;
	uint8_t key[ENTRY_ID_LEN];
};

/* The build of this program, ENTRY_ID_LEN bytes. Any thread. */
const uint8_t *entry_build(void);

/*
 * The key for what is read from the contents of a file and its debug file, which
 * was looked for in 'dirs' (NULL-terminated).
 */
void entry_key(struct entry_id *id, enum entry_kind kind,
	       const struct symbolizer_ident *ident, const char *const *dirs);

/*
 * Completes 'h', which has 'n', 'err' and 'made_s' (0: now), for this payload.
 */
void entry_seal(struct entry_head *h, const struct entry_id *id,
		const void *witness, size_t witness_len, const void *payload,
		size_t len);

/*
 * Checks what every entry has. 'bytes' are aligned to 8 and outlive 'out'. 0;
 * -ESTALE: of another build, or too old; -EBADMSG: it is damaged.
 */
int entry_check(struct entry *out, const struct entry_id *id,
		const uint8_t *bytes, size_t len);
/* The same of head and witnesses of UNITS; 'size' is that of the file. */
int entry_check_front(struct entry *out, const struct entry_id *id,
		      const uint8_t *bytes, size_t len, uint64_t size);

/* Whether it was made too long ago. */
bool entry_aged(const struct entry *e);
/* Whether an error of rows is the same while the file does not change. */
bool entry_err_lasts(int err);

/* --- names ---------------------------------------------------------------- */

/* Checks every byte of NAMES. 0 or -EBADMSG. */
int entry_names_check(const struct entry *e);
/*
 * Finds sym->vaddr, and sets the rest but 'offset'; the functions are copied
 * into the answer. False: not there, or no memory.
 */
bool entry_names_find(const struct entry *e, struct symbolizer_answer *a,
		      struct symbolizer_symbol *sym);

/* New results, in any order: records of an entry_range and its functions. */
struct entry_news {
	struct strbuf bytes;
	uint32_t n;
};

void entry_news_add(struct entry_news *news,
		    const struct symbolizer_symbol *sym);
/*
 * The payload of NAMES: those of 'old' (may be NULL), and new ones, which win
 * over old ones that they overlap. *n: how many. False: no memory.
 */
bool entry_names_merge(struct strbuf *out, uint32_t *n, const struct entry *old,
		       const struct entry_news *news);

#endif /* SYMBOLIZE_ENTRY_H */
