// SPDX-License-Identifier: Apache-2.0
/*
 * sink: see reporter/sink.h.
 *
 * zstd's window is 512 KiB instead of the 2 MiB of level 3: for profiles that
 * costs little and halves the memory. Readers refuse windows above 8 MiB.
 *
 * gzip's level is 3 instead of 6: half of the CPU time, and 3 % more bytes.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "base/base.h"
#include "reporter/sink.h"

#define SINK_PIECE (64 * 1024)
#define SINK_ZSTD_LEVEL 3
#define SINK_ZSTD_WINDOW_LOG 19
#define SINK_GZIP_LEVEL 3
#define SINK_GZIP_WINDOW_BITS (15 + 16) /* + 16: a gzip header, zlib.h */
#define SINK_GZIP_MEM_LEVEL 8

struct sink {
	enum reporter_format format;
	int fd;
	int err;
	size_t filled; /* of 'in' */
	uint64_t bytes;
	struct strbuf mem;
	ZSTD_CCtx *zstd;
	z_stream gzip;
	uint8_t in[SINK_PIECE];
	uint8_t out[SINK_PIECE];
};

static void sink_put(struct sink *s, const void *data, size_t len)
{
	const char *p = data;
	ssize_t n;

	s->bytes += len;
	if (s->fd < 0) {
		strbuf_add(&s->mem, data, len);
		if (s->mem.failed)
			s->err = -ENOMEM;
		return;
	}
	while (len && !s->err) {
		n = write(s->fd, p, len);
		if (n < 0 && errno != EINTR)
			s->err = -errno;
		if (n > 0) {
			p += n;
			len -= n;
		}
	}
}

static void sink_put_zstd(struct sink *s, bool end)
{
	ZSTD_EndDirective mode = end ? ZSTD_e_end : ZSTD_e_continue;
	ZSTD_inBuffer in = { s->in, s->filled, 0 };
	size_t left;

	do {
		ZSTD_outBuffer out = { s->out, sizeof(s->out), 0 };

		left = ZSTD_compressStream2(s->zstd, &out, &in, mode);
		if (ZSTD_isError(left)) {
			s->err = -ENOMEM; /* no other error is possible */
			return;
		}
		sink_put(s, s->out, out.pos);
	} while (!s->err && (end ? left : in.size - in.pos));
}

static void sink_put_gzip(struct sink *s, bool end)
{
	s->gzip.next_in = s->in;
	s->gzip.avail_in = s->filled;
	do {
		s->gzip.next_out = s->out;
		s->gzip.avail_out = sizeof(s->out);
		deflate(&s->gzip, end ? Z_FINISH : Z_NO_FLUSH);
		sink_put(s, s->out, sizeof(s->out) - s->gzip.avail_out);
	} while (!s->err && !s->gzip.avail_out);
}

static void sink_flush(struct sink *s, bool end)
{
	if (s->err)
		return;
	switch (s->format) {
	case REPORTER_RAW:
		sink_put(s, s->in, s->filled);
		break;
	case REPORTER_GZIP:
		sink_put_gzip(s, end);
		break;
	case REPORTER_ZSTD:
		sink_put_zstd(s, end);
		break;
	}
	s->filled = 0;
}

static int sink_init_zstd(struct sink *s)
{
	static const struct {
		ZSTD_cParameter name;
		int value;
	} params[] = {
		{ ZSTD_c_compressionLevel, SINK_ZSTD_LEVEL },
		{ ZSTD_c_windowLog, SINK_ZSTD_WINDOW_LOG },
		{ ZSTD_c_checksumFlag, 1 },
	};
	size_t i;

	s->zstd = ZSTD_createCCtx();
	if (!s->zstd)
		return -ENOMEM;
	for (i = 0; i < ARRAY_SIZE(params); i++)
		if (ZSTD_isError(ZSTD_CCtx_setParameter(s->zstd, params[i].name,
							params[i].value)))
			return -EINVAL;
	return 0;
}

int sink_new(struct sink **sp, enum reporter_format format, int fd)
{
	struct sink *s = calloc(1, sizeof(*s));
	int err = 0;

	if (!s)
		return -ENOMEM;
	s->format = format;
	s->fd = fd;
	if (format == REPORTER_ZSTD)
		err = sink_init_zstd(s);
	else if (format == REPORTER_GZIP &&
		 deflateInit2(&s->gzip, SINK_GZIP_LEVEL, Z_DEFLATED,
			      SINK_GZIP_WINDOW_BITS, SINK_GZIP_MEM_LEVEL,
			      Z_DEFAULT_STRATEGY) != Z_OK)
		err = -ENOMEM;
	if (err) {
		sink_free(s);
		return err;
	}
	*sp = s;
	return 0;
}

void sink_free(struct sink *s)
{
	if (!s)
		return;
	ZSTD_freeCCtx(s->zstd);
	if (s->format == REPORTER_GZIP)
		deflateEnd(&s->gzip); /* even if not initialized */
	strbuf_fini(&s->mem);
	free(s);
}

void sink_write(struct sink *s, const void *data, size_t len)
{
	const uint8_t *p = data;
	size_t n;

	while (len && !s->err) {
		n = MIN(len, sizeof(s->in) - s->filled);
		memcpy(s->in + s->filled, p, n);
		s->filled += n;
		p += n;
		len -= n;
		if (s->filled == sizeof(s->in))
			sink_flush(s, false);
	}
}

int sink_finish(struct sink *s)
{
	sink_flush(s, true);
	return s->err;
}

uint64_t sink_bytes(const struct sink *s)
{
	return s->bytes;
}

void *sink_steal(struct sink *s, size_t *lenp)
{
	*lenp = s->mem.len;
	return strbuf_steal(&s->mem);
}
