/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ask: requests for files that a file names: its separate debug information and
 * what that shares with others. The sandboxed worker cannot open files; it asks
 * for a descriptor.
 */
#ifndef SYMBOLIZE_ASK_H
#define SYMBOLIZE_ASK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A name to ask for: that of the executable, followed by ".dwp". */
#define SYMBOLIZER_ASK_DWP "*.dwp"

struct symbolizer_ask {
	/*
	 * A descriptor for reading a regular file, which the caller closes, or
	 * -errno: -ENOENT, there is none; -EINVAL, an invalid request. The file
	 * is searched beneath the configured directories and where the file's
	 * struct symbolizer_own allows it: by 'build_id' (len 0: none) in
	 * .build-id, else by 'name' (NULL: none), without a '/' or an absolute path. With 'has_crc' only a file with this CRC (as in
	 * .gnu_debuglink) is returned. The caller checks that it is ELF, and its
	 * build id. May block. Use lseek() for its size: the worker may not call
	 * fstat().
	 */
	int (*file)(void *arg, const char *name, const uint8_t *build_id,
		    size_t len, uint32_t crc, bool has_crc);
	/*
	 * What was kept of this file's compile units, see dwarf_store.h: a descriptor
	 * likewise, and where in it the store begins. -ENOENT: nothing. May block. NULL:
	 * nothing is kept.
	 */
	int (*units)(void *arg, uint64_t *at);
	/* Keeps such a store, or adds to the one that is kept. With 'units'. */
	void (*keep)(void *arg, const void *store, size_t len);
	void *arg;
};

#endif /* SYMBOLIZE_ASK_H */
