// SPDX-License-Identifier: Apache-2.0
/* profile_check: see reporter/profile_check.h; also for compressed files. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "base/base.h"
#include "reporter/outfile.h"
#include "reporter/profile_check.h"

/* Bytes read of a file, and decompressed of those. */
#define PROFILE_HEAD (64 << 10)

/* https://protobuf.dev/programming-guides/encoding/ */
enum {
	PROFILE_VARINT = 0,
	PROFILE_LEN = 2,
};

/* The fields of Profile in profile.proto that may have each wire type. */
#define PROFILE_SAMPLE_TYPE 1
static const uint32_t profile_fields[8] = {
	/* 7 to 10, 12 to 15 */
	[PROFILE_VARINT] = 0x780 | 0xf000,
	/* 1 to 6, 11; 13, whose numbers may be packed */
	[PROFILE_LEN] = 0x7e | 0x800 | 0x2000,
};

/* False: cut off, or longer than 64 bits. */
static bool profile_varint(const uint8_t **p, const uint8_t *end, uint64_t *v)
{
	unsigned int shift = 0;

	for (*v = 0; *p < end && shift < 64; shift += 7) {
		uint8_t b = *(*p)++;

		*v |= (uint64_t)(b & 0x7f) << shift;
		if (!(b & 0x80))
			return true;
	}
	return false;
}

/* ValueType: varint fields 1 and 2, both optional. */
static bool profile_value_type(const uint8_t *p, size_t len)
{
	const uint8_t *end = p + len;
	uint64_t tag, v;

	while (p < end)
		if (!profile_varint(&p, end, &tag) ||
		    (tag != (1 << 3 | PROFILE_VARINT) &&
		     tag != (2 << 3 | PROFILE_VARINT)) ||
		    !profile_varint(&p, end, &v))
			return false;
	return true;
}

static bool profile_known(uint64_t tag)
{
	uint64_t field = tag >> 3;

	return field < 32 && profile_fields[tag & 7] >> field & 1;
}

bool profile_check(const uint8_t *buf, size_t len, bool whole)
{
	const uint8_t *p = buf, *end = buf + len;
	bool typed = false;
	uint64_t tag, v;

	while (p < end) {
		/* Cut off within a field: the previous ones decide. */
		if (!profile_varint(&p, end, &tag))
			return typed && !whole && p == end;
		if (!profile_known(tag))
			return false;
		if (!profile_varint(&p, end, &v))
			return typed && !whole && p == end;
		if ((tag & 7) != PROFILE_LEN)
			continue;
		if (v > (uint64_t)(end - p))
			return typed && !whole;
		if (tag >> 3 == PROFILE_SAMPLE_TYPE) {
			if (!profile_value_type(p, v))
				return false;
			typed = true;
		}
		p += v;
	}
	return typed;
}

/* --- files ----------------------------------------------------------------- */

struct profile_head {
	uint8_t in[PROFILE_HEAD], out[PROFILE_HEAD];
	size_t nin;
	bool in_whole; /* 'in' is the whole file */
};

static bool profile_check_gzip(struct profile_head *h)
{
	z_stream z = { .next_in = h->in,
		       .avail_in = h->nin,
		       .next_out = h->out,
		       .avail_out = sizeof(h->out) };
	int rc;

	/* 16: a gzip header is expected, zlib.h. */
	if (inflateInit2(&z, 16 + MAX_WBITS) != Z_OK)
		return false;
	rc = inflate(&z, Z_SYNC_FLUSH);
	inflateEnd(&z);
	if (rc != Z_OK && rc != Z_STREAM_END && rc != Z_BUF_ERROR)
		return false;
	return profile_check(h->out, sizeof(h->out) - z.avail_out,
			     rc == Z_STREAM_END);
}

static bool profile_check_zstd(struct profile_head *h)
{
	ZSTD_inBuffer in = { h->in, h->nin, 0 };
	ZSTD_outBuffer out = { h->out, sizeof(h->out), 0 };
	ZSTD_DCtx *zstd = ZSTD_createDCtx();
	size_t left = 1, before;

	if (!zstd)
		return false;
	do {
		before = in.pos + out.pos;
		left = ZSTD_decompressStream(zstd, &out, &in);
	} while (left && !ZSTD_isError(left) && out.pos < out.size &&
		 in.pos + out.pos > before);
	ZSTD_freeDCtx(zstd);
	return !ZSTD_isError(left) && profile_check(h->out, out.pos, !left);
}

static bool profile_check_head(struct profile_head *h)
{
	static const uint8_t gzip[] = { 0x1f, 0x8b };
	static const uint8_t zstd[] = { 0x28, 0xb5, 0x2f, 0xfd };

	if (!h->nin)
		return true;
	if (h->nin > sizeof(gzip) && !memcmp(h->in, gzip, sizeof(gzip)))
		return profile_check_gzip(h);
	if (h->nin > sizeof(zstd) && !memcmp(h->in, zstd, sizeof(zstd)))
		return profile_check_zstd(h);
	return profile_check(h->in, h->nin, h->in_whole);
}

static bool profile_read(int fd, struct profile_head *h)
{
	struct stat st;
	ssize_t n = 1;

	if (fstat(fd, &st) || !S_ISREG(st.st_mode))
		return false;
	for (h->nin = 0; n > 0 && h->nin < sizeof(h->in); h->nin += n) {
		n = read(fd, h->in + h->nin, sizeof(h->in) - h->nin);
		if (n < 0)
			return false;
	}
	h->in_whole = !n || (off_t)h->nin == st.st_size;
	return true;
}

bool reporter_is_profile(const char *path)
{
	struct profile_head *h = calloc(1, sizeof(*h));
	bool yes = false;
	int fd;

	if (!h)
		return false;
	/* Any type of file: opening it must not block or have an effect. */
	fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd >= 0)
		yes = profile_read(fd, h) && profile_check_head(h);
	if (fd >= 0)
		close(fd);
	free(h);
	return yes;
}
