// SPDX-License-Identifier: Apache-2.0
/* packed: see symbolize/elf/packed.h. */
#include <errno.h>
#include <lzma.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#include "base/base.h"
#include "symbolize/elf/packed.h"

/* Limits for untrusted files: memory of xz -9 is 65 MiB; the window of zstd. */
#define PACKED_XZ_MEMORY (80U << 20)
#define PACKED_ZSTD_WINDOW 26 /* log 2 */
#define PACKED_FIRST (256U << 10) /* bytes of the first buffer */
#define PACKED_PIECE (64U << 10)

/* What a decoder reads and writes next; it advances both. */
struct packed_io {
	const uint8_t *in;
	size_t in_len;
	uint8_t *out;
	size_t out_len;
	bool last; /* no input follows */
};

struct packed_kind {
	const char *magic;
	size_t magic_len;
	/* *state: a decoder; NULL: no memory. */
	void *(*begin)(void);
	/* 1: the end; 0: it needs more input or more room; -ENOMEM, -EILSEQ. */
	int (*step)(void *state, struct packed_io *io);
	void (*end)(void *state);
};

/* --- xz ------------------------------------------------------------------------ */

static void *xz_begin(void)
{
	static const lzma_stream none = LZMA_STREAM_INIT;
	lzma_stream *z = malloc(sizeof(*z));

	if (!z)
		return NULL;
	*z = none;
	if (lzma_stream_decoder(z, PACKED_XZ_MEMORY, 0) == LZMA_OK)
		return z;
	free(z);
	return NULL;
}

static int xz_step(void *state, struct packed_io *io)
{
	lzma_stream *z = state;
	lzma_ret rc;

	z->next_in = io->in;
	z->avail_in = io->in_len;
	z->next_out = io->out;
	z->avail_out = io->out_len;
	rc = lzma_code(z, io->last ? LZMA_FINISH : LZMA_RUN);
	io->in = z->next_in;
	io->in_len = z->avail_in;
	io->out = z->next_out;
	io->out_len = z->avail_out;
	if (rc == LZMA_MEM_ERROR)
		return -ENOMEM;
	/* BUF_ERROR: no progress, which the caller sees. */
	if (rc != LZMA_OK && rc != LZMA_STREAM_END && rc != LZMA_BUF_ERROR)
		return -EILSEQ;
	return rc == LZMA_STREAM_END;
}

static void xz_end(void *state)
{
	lzma_end(state);
	free(state);
}

/* --- gzip ---------------------------------------------------------------------- */

static void *gzip_begin(void)
{
	z_stream *z = calloc(1, sizeof(*z));

	if (z && inflateInit2(z, 16 + MAX_WBITS) == Z_OK)
		return z;
	free(z);
	return NULL;
}

static int gzip_step(void *state, struct packed_io *io)
{
	z_stream *z = state;
	int rc;

	z->next_in = (uint8_t *)io->in;
	z->avail_in = (uInt)io->in_len;
	z->next_out = io->out;
	z->avail_out = (uInt)io->out_len;
	rc = inflate(z, Z_NO_FLUSH);
	io->in = z->next_in;
	io->in_len = z->avail_in;
	io->out = z->next_out;
	io->out_len = z->avail_out;
	if (rc == Z_MEM_ERROR)
		return -ENOMEM;
	if (rc != Z_OK && rc != Z_STREAM_END && rc != Z_BUF_ERROR)
		return -EILSEQ;
	return rc == Z_STREAM_END;
}

static void gzip_end(void *state)
{
	inflateEnd(state);
	free(state);
}

/* --- zstd ---------------------------------------------------------------------- */

static void *zstd_begin(void)
{
	ZSTD_DStream *z = ZSTD_createDStream();

	if (z)
		ZSTD_DCtx_setParameter(z, ZSTD_d_windowLogMax,
				       PACKED_ZSTD_WINDOW);
	return z;
}

static int zstd_step(void *state, struct packed_io *io)
{
	ZSTD_inBuffer in = { io->in, io->in_len, 0 };
	ZSTD_outBuffer out = { io->out, io->out_len, 0 };
	size_t rc = ZSTD_decompressStream(state, &out, &in);

	io->in += in.pos;
	io->in_len -= in.pos;
	io->out += out.pos;
	io->out_len -= out.pos;
	return ZSTD_isError(rc) ? -EILSEQ : rc == 0;
}

static void zstd_end(void *state)
{
	ZSTD_freeDStream(state);
}

/* --- all ----------------------------------------------------------------------- */

static const struct packed_kind kinds[] = {
	{ "\xfd\x37zXZ", 6, xz_begin, xz_step, xz_end },
	{ "\x1f\x8b\x08", 3, gzip_begin, gzip_step, gzip_end },
	{ "\x28\xb5\x2f\xfd", 4, zstd_begin, zstd_step, zstd_end },
};

static const struct packed_kind *packed_kind(struct symbolizer_src *src,
					     uint64_t off, uint64_t size)
{
	uint8_t magic[6];

	if (size < sizeof(magic) ||
	    symbolizer_src_read(src, off, magic, sizeof(magic)))
		return NULL;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (!memcmp(magic, kinds[i].magic, kinds[i].magic_len))
			return &kinds[i];
	return NULL;
}

static int packed_grow(struct packed_io *io, uint8_t **out, size_t *cap,
		       size_t max)
{
	size_t used = *cap,
	       want = MIN(MAX(2 * used, (size_t)PACKED_FIRST), max);
	uint8_t *p;

	if (used >= max)
		return -EFBIG;
	p = realloc(*out, want);
	if (!p)
		return -ENOMEM;
	*out = p;
	*cap = want;
	io->out = p + used;
	io->out_len = want - used;
	return 0;
}

struct packed_range {
	struct symbolizer_src *src;
	uint64_t off, left;
};

/* Makes sure that there is input, unless all was read. */
static int packed_feed(struct packed_io *io, struct packed_range *r,
		       uint8_t *piece)
{
	size_t len = (size_t)MIN(r->left, (uint64_t)PACKED_PIECE);
	int err;

	if (io->in_len || !len)
		return 0;
	err = symbolizer_src_read(r->src, r->off, piece, len);
	r->off += len;
	r->left -= len;
	io->in = piece;
	io->in_len = len;
	io->last = !r->left;
	return err;
}

int symbolizer_packed_read(struct symbolizer_src *src, uint64_t off,
			   uint64_t size, size_t max, uint8_t **out,
			   size_t *out_len)
{
	const struct packed_kind *k = packed_kind(src, off, size);
	struct packed_range r = { src, off, size };
	uint8_t piece[PACKED_PIECE], *buf = NULL;
	struct packed_io io = { 0 };
	size_t cap = 0, before;
	void *state;
	int err = 0;

	if (!k)
		return -ENODATA;
	state = k->begin();
	if (!state)
		return -ENOMEM;
	while (!err) {
		err = packed_feed(&io, &r, piece);
		if (!err && !io.out_len)
			err = packed_grow(&io, &buf, &cap, max);
		if (err)
			break;
		before = io.in_len + io.out_len;
		err = k->step(state, &io);
		/* Neither read nor written, and there is nothing more to read. */
		if (!err && before == io.in_len + io.out_len && !io.in_len)
			err = -EILSEQ;
	}
	k->end(state);
	*out_len = cap - io.out_len;
	if (err < 0)
		free(buf);
	else
		*out = buf;
	return MIN(err, 0);
}
