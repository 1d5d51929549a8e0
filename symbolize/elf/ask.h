/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ask: further files that a file names: its separate debug information and
 * what that shares with others. Who reads a file in the sandboxed worker cannot
 * open anything; it asks, and gets a descriptor or not.
 */
#ifndef SYMBOLIZE_ASK_H
#define SYMBOLIZE_ASK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct symbolizer_ask {
	/*
	 * A descriptor for reading a regular file, the caller's to close, or
	 * -errno: -ENOENT, there is none; -EINVAL, no such question. It is
	 * looked for beneath the configured directories only: by 'build_id'
	 * (len 0: none) in their .build-id, else by 'basename' (NULL: none),
	 * which has no '/' and is cut from what the file says by the caller.
	 *
	 * With 'has_crc' the file has this CRC (as .gnu_debuglink means it);
	 * one with another is passed over. That it is ELF, and has the build
	 * id, is for the caller to see, who parses it. May block. Its size
	 * tells lseek(): in the worker there is no fstat().
	 */
	int (*file)(void *arg, const char *basename, const uint8_t *build_id,
		    size_t len, uint32_t crc, bool has_crc);
	void *arg;
};

#endif /* SYMBOLIZE_ASK_H */
