/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dwarf_store: what was read of a file's compile units, as it is in the cache on disk,
 * so that no section of the file is read for these units again. profd's own format, for
 * the build that wrote it:
 *
 *	struct dwarf_store_head
 *	units, ranges	those of the dwarf_index; zeros to a multiple of 8
 *	places		struct dwarf_store_place: where the record of each unit is; or
 *			one, if one record has all units
 *	records		struct dwarf_record: blocks only
 *
 * All before the records is the front. It grows: the records of units that were read
 * later come behind the others, see dwarf_store_join().
 *
 * A store was made by a worker that a hostile file may have taken over, and comes back
 * from a disk: the front is checked when it is read, a record by its checksum and
 * dwarf_record_ok(). It is never mapped, the disk's file may shrink.
 */
#ifndef SYMBOLIZE_DWARF_STORE_H
#define SYMBOLIZE_DWARF_STORE_H

#include "symbolize/units/dwarf_index.h"
#include "symbolize/units/dwarf_record.h"

#define DWARF_STORE_FRONT_MAX (12U << 20)
#define DWARF_STORE_RECORD_MAX (12U << 20)
/* Of what a worker sends at once. */
#define DWARF_STORE_MAX (DWARF_STORE_FRONT_MAX + DWARF_STORE_RECORD_MAX)

struct dwarf_store_head {
	char magic[8];
	uint64_t start, end; /* bounds */
	uint32_t n_units, n_ranges, n_places;
	uint32_t index_crc; /* of units and ranges */
	uint32_t places_crc;
	uint32_t crc; /* of the head, with 0 here */
};

struct dwarf_store_place {
	uint64_t at; /* from the first record on */
	uint32_t len; /* 0: it was not read yet */
	uint32_t crc;
};

/* A front in memory, which is borrowed. */
struct dwarf_store_front {
	const struct dwarf_store_head *head;
	const struct dwarf_index_unit *units;
	const struct dwarf_index_range *ranges;
	const struct dwarf_store_place *places;
	size_t len;
};

/* 0: it is no such head, or describes a front that is too large. */
size_t dwarf_store_front_len(const struct dwarf_store_head *head);
/*
 * Checks the front of a whole store; 'p' is aligned to 8. False: it is damaged.
 */
bool dwarf_store_whole(struct dwarf_store_front *f, const void *p, size_t len);
/*
 * Checks a front; 'p' is aligned to 8, records of 'records' bytes follow it. False: it
 * is damaged.
 */
bool dwarf_store_front(struct dwarf_store_front *f, const void *p, size_t len,
		       uint64_t records);

/* --- making ------------------------------------------------------------------ */

/* Records of units of one file, which are collected. */
struct dwarf_store_news {
	const struct dwarf_index *index;
	bool whole; /* one record has all units */
	struct dwarf_store_place *places; /* n_units, or 1 */
	struct strbuf records;
};

/* -ENOMEM. Call fini always. */
int dwarf_store_news_init(struct dwarf_store_news *n,
			  const struct dwarf_index *index, bool whole);
void dwarf_store_news_add(struct dwarf_store_news *n,
			  const struct dwarf_record *r);
/* Appends the whole store. -ENOMEM; -EFBIG. */
int dwarf_store_news_end(const struct dwarf_store_news *n, struct strbuf *out);
void dwarf_store_news_fini(struct dwarf_store_news *n);

/*
 * Appends to 'front' that of a store with the records of 'old', which take 'records'
 * bytes, and of the units that only 'new' has; and to 'more' those, which follow 'new'
 * in memory. False, and nothing is appended: they are not of the same units, or one of
 * them has all in one record. Check both for failure.
 */
bool dwarf_store_join(struct strbuf *front, struct strbuf *more,
		      const struct dwarf_store_front *old, uint64_t records,
		      const struct dwarf_store_front *new);
/* Adds the whole of a store to one in memory, or replaces it. -ENOMEM; -EBADMSG. */
int dwarf_store_add(struct strbuf *store, const void *p, size_t len);

/* --- reading ----------------------------------------------------------------- */

/* A store in a file; the descriptor is the caller's. */
struct dwarf_store {
	int fd;
	uint64_t at, size; /* of the store in the file */
	struct dwarf_store_head head;
	uint64_t records; /* where they begin in the file */
};

/* 0; -EBADMSG: damaged; -ENOMEM. */
int dwarf_store_open(struct dwarf_store *s, int fd, uint64_t at);
/*
 * Reads the index, whose 'bounds' are set: -ESTALE if the store has others. Both have
 * to be freed, places with free(3).
 */
int dwarf_store_read(const struct dwarf_store *s, struct dwarf_index *x,
		     struct dwarf_store_place **places);
/* The places of units that are those of 'x'; -ESTALE: they are not. */
int dwarf_store_places(const struct dwarf_store *s, const struct dwarf_index *x,
		       struct dwarf_store_place *places);
/* The record at a place, which may be anything. To be freed with free(3). */
int dwarf_store_record(const struct dwarf_store *s,
		       const struct dwarf_store_place *place,
		       struct dwarf_record **rp);

#endif /* SYMBOLIZE_DWARF_STORE_H */
