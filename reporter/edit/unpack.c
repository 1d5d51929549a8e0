// SPDX-License-Identifier: Apache-2.0
/*
 * unpack: reads a file that may be compressed, into memory, up to a limit; see
 * reporter/edit/edit.h. gzip files may have several members, zstd files several
 * frames.
 */
#include <endian.h>
#include <errno.h>
#include <libdeflate.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

#include "reporter/edit/edit.h"

#define UNPACK_FIRST ((size_t)64 << 10)
#define UNPACK_RATIO 1032 /* the most that deflate can do, about */

static const char unpack_limit[] = "larger than 256 MiB";

/* Memory that grows up to REPORTER_PROFILE_MAX. */
struct unpack {
	uint8_t *p;
	size_t len, cap;
};

/* To 'cap' bytes, or as many as are allowed. 0, -ENOMEM, -EFBIG. */
static int unpack_grow(struct unpack *u, size_t cap)
{
	uint8_t *p;

	/* One byte more than is allowed shows that there is too much. */
	cap = MIN(cap, (size_t)REPORTER_PROFILE_MAX + 1);
	if (cap <= u->cap)
		return -EFBIG;
	p = realloc(u->p, cap);
	if (!p)
		return -ENOMEM;
	u->p = p;
	u->cap = cap;
	return 0;
}

/* Makes room for more bytes, likewise. */
static int unpack_room(struct unpack *u)
{
	if (u->len < u->cap)
		return 0;
	return unpack_grow(u, u->cap ? 2 * u->cap : UNPACK_FIRST);
}

/* The size that a gzip file gives at its end, if it can be true, RFC 1952. */
static size_t unpack_gzip_size(const uint8_t *data, size_t len)
{
	uint32_t size;

	if (len < sizeof(size))
		return UNPACK_FIRST;
	memcpy(&size, data + len - sizeof(size), sizeof(size));
	return MAX(MIN(le32toh(size), UNPACK_RATIO * len), UNPACK_FIRST);
}

static int unpack_gzip_members(struct unpack *u, const uint8_t *data,
			       size_t len)
{
	struct libdeflate_decompressor *d = libdeflate_alloc_decompressor();
	enum libdeflate_result rc;
	size_t at = 0, in, out;
	int err = d ? unpack_grow(u, unpack_gzip_size(data, len)) : -ENOMEM;

	while (!err && at < len) {
		rc = libdeflate_gzip_decompress_ex(d, data + at, len - at,
						   u->p + u->len,
						   u->cap - u->len, &in, &out);
		if (rc == LIBDEFLATE_INSUFFICIENT_SPACE) {
			err = unpack_grow(u, 2 * u->cap);
		} else if (rc == LIBDEFLATE_SUCCESS) {
			at += in;
			u->len += out;
		} else {
			err = -EBADMSG;
		}
	}
	libdeflate_free_decompressor(d);
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
	if (err) {
		free(u.p);
		u = (struct unpack){ .len = 0 };
	}
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

int edit_read(int fd, uint8_t **out, size_t *outlen, const char **what)
{
	struct unpack u = { .len = 0 };
	int err = unpack_read(fd, &u);

	*what = NULL;
	*out = NULL;
	if (err) {
		free(u.p);
		if (err == -EFBIG)
			*what = unpack_limit;
		return err;
	}
	return edit_unpack(u.p, u.len, out, outlen, what);
}

int reporter_profile_read(int fd, struct reporter_profile **pp,
			  const char **what)
{
	uint8_t *data;
	size_t len;
	int err = edit_read(fd, &data, &len, what);

	return err ? err : reporter_profile_parse(data, len, pp, what);
}
