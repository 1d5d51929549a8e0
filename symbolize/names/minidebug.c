// SPDX-License-Identifier: Apache-2.0
/* minidebug: see symbolize/names/minidebug.h. */
#include <errno.h>
#include <lzma.h>
#include <stdlib.h>

#include "base/base.h"
#include "symbolize/names/minidebug.h"

/*
 * Limits: the section, its contents, and the decoder's memory, which is that of
 * xz -9 (65 MiB) and some. A browser's symbols have 40 MiB.
 */
#define MINI_PACKED_MAX (32ULL << 20)
#define MINI_BYTES_MAX (64U << 20)
#define MINI_MEMORY_MAX (80U << 20)
#define MINI_BYTES_FIRST (256U << 10)
#define MINI_PIECE (64U << 10)

/* The contents while they grow. */
struct mini_bytes {
	uint8_t *p;
	size_t cap;
};

/* 0, or the error of a decoder that cannot go on. */
static int mini_status(lzma_ret rc)
{
	if (rc == LZMA_MEM_ERROR)
		return -ENOMEM;
	return rc == LZMA_OK || rc == LZMA_STREAM_END ? 0 : -EINVAL;
}

static int mini_grow(struct mini_bytes *b, lzma_stream *z)
{
	size_t used = b->cap, cap = MAX(2 * b->cap, (size_t)MINI_BYTES_FIRST);
	uint8_t *p;

	if (used >= MINI_BYTES_MAX)
		return -EFBIG;
	p = realloc(b->p, cap);
	if (!p)
		return -ENOMEM;
	*b = (struct mini_bytes){ p, cap };
	z->next_out = p + used;
	z->avail_out = cap - used;
	return 0;
}

static int mini_decode(struct symbolizer_src *src, uint64_t off, uint64_t left,
		       lzma_stream *z, struct mini_bytes *b)
{
	uint8_t piece[MINI_PIECE];
	lzma_ret rc = LZMA_OK;
	int err = 0;

	while (!err && rc == LZMA_OK) {
		if (!z->avail_in && left) {
			z->next_in = piece;
			z->avail_in = (size_t)MIN(left, sizeof(piece));
			err = symbolizer_src_read(src, off, piece, z->avail_in);
			off += z->avail_in;
			left -= z->avail_in;
		}
		if (!err && !z->avail_out)
			err = mini_grow(b, z);
		if (err)
			break;
		/* Twice without progress is LZMA_BUF_ERROR. */
		rc = lzma_code(z, left ? LZMA_RUN : LZMA_FINISH);
		err = mini_status(rc);
	}
	return err;
}

static int mini_unpack(struct symbolizer_elf *e, const Elf64_Shdr *sh,
		       struct mini_bytes *b, size_t *len)
{
	lzma_stream z = LZMA_STREAM_INIT;
	int err;

	if (sh->sh_size > MINI_PACKED_MAX)
		return -EFBIG;
	err = mini_status(lzma_stream_decoder(&z, MINI_MEMORY_MAX, 0));
	if (!err)
		err = mini_decode(e->src, sh->sh_offset, sh->sh_size, &z, b);
	*len = (size_t)z.total_out;
	lzma_end(&z);
	return err;
}

int symbolizer_minidebug_open(struct symbolizer_minidebug **mp,
			      struct symbolizer_elf *e)
{
	struct mini_bytes bytes = { 0 };
	struct symbolizer_minidebug *m;
	Elf64_Shdr sh;
	size_t len;
	int err;

	if (!symbolizer_elf_section(e, ".gnu_debugdata", &sh))
		return -ENODATA;
	m = calloc(1, sizeof(*m));
	if (!m)
		return -ENOMEM;
	err = mini_unpack(e, &sh, &bytes, &len);
	m->bytes = bytes.p;
	if (!err) {
		symbolizer_src_mem(&m->src, m->bytes, len);
		err = symbolizer_elf_init(&m->elf, &m->src);
	}
	if (!err && (m->elf.machine != e->machine || m->elf.is64 != e->is64))
		err = -EINVAL;
	if (!err)
		err = symbolizer_elf_tables(&m->elf);
	if (err)
		symbolizer_minidebug_close(m);
	else
		*mp = m;
	return err;
}

void symbolizer_minidebug_close(struct symbolizer_minidebug *m)
{
	if (!m)
		return;
	symbolizer_elf_fini(&m->elf);
	free(m->bytes);
	free(m);
}
