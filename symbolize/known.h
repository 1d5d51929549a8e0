/* SPDX-License-Identifier: Apache-2.0 */
/*
 * known: what files are that were identified before, by (device, inode, size,
 * mtime, ctime, and the mount if the device is none): a program that is run again
 * need not be read again for that.
 */
#ifndef SYMBOLIZE_KNOWN_H
#define SYMBOLIZE_KNOWN_H

#include "symbolize/file.h"

#define SYMBOLIZER_KNOWN 512 /* a later one takes the place of an earlier */

struct symbolizer_known {
	struct symbolizer_known_file *files[SYMBOLIZER_KNOWN];
};

void symbolizer_known_fini(struct symbolizer_known *k);
/* Keeps ident and segments of 'f'. Without memory it does not. */
void symbolizer_known_add(struct symbolizer_known *k,
			  const struct symbolizer_file *f);
/* Gives 'f', of which fstat() was asked, the rest. */
bool symbolizer_known_get(const struct symbolizer_known *k,
			  struct symbolizer_file *f);

#endif /* SYMBOLIZE_KNOWN_H */
