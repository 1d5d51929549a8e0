/* SPDX-License-Identifier: Apache-2.0 */
/*
 * known: a cache of identities, by (device, inode, size, mtime, ctime, and the
 * mount if the device is anonymous): a program that is executed again need not
 * be read again to identify it. It is also kept on disk (symbolize/cache/), for
 * as long as the kernel runs, because device numbers and mount ids begin anew
 * with it.
 *
 * When it is full, the owner of files with the most entries loses the one that
 * was not used for longest. Those of root have half of the entries in any case.
 */
#ifndef SYMBOLIZE_KNOWN_H
#define SYMBOLIZE_KNOWN_H

#include "symbolize/file.h"

#define SYMBOLIZER_KNOWN 4096 /* entries */
#define SYMBOLIZER_KNOWN_SEGMENTS 64 /* of a file; more are not kept */

struct symbolizer_known {
	struct hash files;
	TAILQ_HEAD(, symbolizer_known_owner) owners;
	size_t n;
	uint64_t added; /* entries so far: changes when the cache does */
};

/* 0 or -ENOMEM. */
int symbolizer_known_init(struct symbolizer_known *k);
void symbolizer_known_fini(struct symbolizer_known *k);
/*
 * Keeps identity, segments and slot of 'f', unless it was changed recently or there is
 * no memory.
 */
void symbolizer_known_add(struct symbolizer_known *k,
			  const struct symbolizer_file *f);
/* Completes 'f', which has what fstat() reports. False: not found. */
bool symbolizer_known_get(struct symbolizer_known *k,
			  struct symbolizer_file *f);
/*
 * Whether its last change is so old that a further one has another ctime, so
 * that an unchanged ctime proves that it was not changed.
 */
bool symbolizer_known_settled(const struct symbolizer_ident *id);

/* Appends all entries as bytes. */
void symbolizer_known_pack(const struct symbolizer_known *k,
			   struct strbuf *out);
/* Adds entries from untrusted bytes. False: they are damaged from here on. */
bool symbolizer_known_unpack(struct symbolizer_known *k, const uint8_t *p,
			     size_t len);

#endif /* SYMBOLIZE_KNOWN_H */
