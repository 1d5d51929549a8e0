/* SPDX-License-Identifier: Apache-2.0 */
/*
 * known: a cache of identities, by (device, inode, size, mtime, ctime, and the
 * mount if the device is anonymous): a program that is executed again need not
 * be read again to identify it.
 */
#ifndef SYMBOLIZE_KNOWN_H
#define SYMBOLIZE_KNOWN_H

#include "symbolize/file.h"

#define SYMBOLIZER_KNOWN 512 /* slots; a new entry replaces an older one */

struct symbolizer_known {
	struct symbolizer_known_file *files[SYMBOLIZER_KNOWN];
};

void symbolizer_known_fini(struct symbolizer_known *k);
/* Keeps identity and segments of 'f', unless there is no memory. */
void symbolizer_known_add(struct symbolizer_known *k,
			  const struct symbolizer_file *f);
/* Completes 'f', which has what fstat() reports. False: not found. */
bool symbolizer_known_get(const struct symbolizer_known *k,
			  struct symbolizer_file *f);

#endif /* SYMBOLIZE_KNOWN_H */
