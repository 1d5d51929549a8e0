/* SPDX-License-Identifier: Apache-2.0 */
/*
 * packed: decompresses files and sections whose length after that is not known: files
 * of xz, gzip and zstd, as kernel modules are, and MiniDebugInfo.
 */
#ifndef SYMBOLIZE_PACKED_H
#define SYMBOLIZE_PACKED_H

#include "symbolize/elf/elf.h"

/*
 * 'size' bytes at 'off' into *out, malloc'd, with a length of at most 'max'.
 * -ENODATA: none of these formats, by the first bytes; -ENOMEM; -EFBIG; -EILSEQ:
 * damaged, or it needs a larger window than 64 MiB.
 */
int symbolizer_packed_read(struct symbolizer_src *src, uint64_t off,
			   uint64_t size, size_t max, uint8_t **out,
			   size_t *out_len);

#endif /* SYMBOLIZE_PACKED_H */
