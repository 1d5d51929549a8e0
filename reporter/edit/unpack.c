// SPDX-License-Identifier: Apache-2.0
/*
 * unpack: reads a file that may be compressed, into memory, up to a limit; see
 * reporter/edit/edit.h. gzip files may have several members, zstd files several
 * frames.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "reporter/edit/edit.h"

#define UNPACK_FIRST (64U << 10)

static const char unpack_limit[] = "larger than 256 MiB";

/* Memory that grows up to REPORTER_PROFILE_MAX. */
struct unpack {
	uint8_t *p;
	size_t len, cap;
};

/* Makes room for more bytes. 0, -ENOMEM, -EFBIG. */
static int unpack_room(struct unpack *u)
{
	size_t cap = u->cap ? 2 * u->cap : UNPACK_FIRST;
	uint8_t *p;

	if (u->len < u->cap)
		return 0;
	/* One byte more than is allowed shows that there is too much. */
	cap = MIN(cap, (size_t)REPORTER_PROFILE_MAX + 1);
	if (cap == u->cap)
		return -EFBIG;
	p = realloc(u->p, cap);
	if (!p)
		return -ENOMEM;
	u->p = p;
	u->cap = cap;
	return 0;
}

static int unpack_gzip_members(struct unpack *u, uint8_t *data, size_t len)
{
	z_stream z = { .next_in = data, .avail_in = (uInt)len };
	int rc = Z_OK, err = 0;

	/* 16: a gzip header is expected, zlib.h. */
	if (inflateInit2(&z, 16 + MAX_WBITS) != Z_OK)
		return -ENOMEM;
	while (!err && (rc == Z_OK || z.avail_in)) {
		err = unpack_room(u);
		if (err)
			break;
		if (rc == Z_STREAM_END)
			inflateReset(&z);
		z.next_out = u->p + u->len;
		z.avail_out = (uInt)(u->cap - u->len);
		rc = inflate(&z, Z_NO_FLUSH);
		u->len = u->cap - z.avail_out;
		if (rc != Z_OK && rc != Z_STREAM_END)
			err = rc == Z_MEM_ERROR ? -ENOMEM : -EBADMSG;
	}
	inflateEnd(&z);
	return err;
}

static int unpack_zstd_frames(struct unpack *u, const uint8_t *data, size_t len)
{
	ZSTD_inBuffer in = { data, len, 0 };
	ZSTD_DCtx *zstd = ZSTD_createDCtx();
	size_t left = 1;
	int err = zstd ? 0 : -ENOMEM;

	while (!err && (left || in.pos < in.size)) {
		ZSTD_outBuffer out;
		size_t before = u->len + in.pos;

		err = unpack_room(u);
		if (err)
			break;
		out = (ZSTD_outBuffer){ u->p, u->cap, u->len };
		left = ZSTD_decompressStream(zstd, &out, &in);
		u->len = out.pos;
		if (ZSTD_isError(left) || u->len + in.pos == before)
			err = -EBADMSG;
	}
	ZSTD_freeDCtx(zstd);
	return err;
}

int edit_unpack(uint8_t *data, size_t len, uint8_t **out, size_t *outlen,
		const char **what)
{
	static const uint8_t gzip[] = { 0x1f, 0x8b };
	static const uint8_t zstd[] = { 0x28, 0xb5, 0x2f, 0xfd };
	struct unpack u = { .len = 0 };
	int err;

	if (len > sizeof(gzip) && !memcmp(data, gzip, sizeof(gzip))) {
		err = unpack_gzip_members(&u, data, len);
	} else if (len > sizeof(zstd) && !memcmp(data, zstd, sizeof(zstd))) {
		err = unpack_zstd_frames(&u, data, len);
	} else {
		*out = data;
		*outlen = len;
		return 0;
	}
	free(data);
	if (!err && u.len > REPORTER_PROFILE_MAX)
		err = -EFBIG;
	if (err)
		free(u.p);
	if (err == -EFBIG)
		*what = unpack_limit;
	else if (err == -EBADMSG)
		*what = "damaged, or cut off: it cannot be decompressed";
	*out = u.p;
	*outlen = u.len;
	return err;
}

static int unpack_read(int fd, struct unpack *u)
{
	ssize_t n = 1;
	int err = 0;

	while (n && !err) {
		err = unpack_room(u);
		if (err)
			break;
		n = TEMP_FAILURE_RETRY(
			read(fd, u->p + u->len, u->cap - u->len));
		if (n < 0)
			return -errno;
		u->len += (size_t)n;
		if (u->len > REPORTER_PROFILE_MAX)
			err = -EFBIG;
	}
	return err;
}

int reporter_profile_read(int fd, struct reporter_profile **pp,
			  const char **what)
{
	struct unpack u = { .len = 0 };
	uint8_t *data;
	size_t len;
	int err = unpack_read(fd, &u);

	if (err) {
		free(u.p);
		if (err == -EFBIG)
			*what = unpack_limit;
		return err;
	}
	err = edit_unpack(u.p, u.len, &data, &len, what);
	return err ? err : reporter_profile_parse(data, len, pp, what);
}
