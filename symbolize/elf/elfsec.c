// SPDX-License-Identifier: Apache-2.0
/* elfsec: sections by name, and compressed ones; see symbolize/elf/elf.h. */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#include "base/base.h"
#include "symbolize/elf/elf.h"

#ifndef ELFCOMPRESS_ZSTD
#define ELFCOMPRESS_ZSTD 2
#endif

/* Bytes of a section after decompression. */
#define SEC_UNPACKED_MAX (256ULL << 20)
#define SEC_PIECE (64 << 10)

/* gABI "ELF Header", e_shstrndx. */
bool symbolizer_elf_names(struct symbolizer_elf *e, Elf64_Shdr *names)
{
	uint32_t index = e->shstrndx;

	if (index == SHN_XINDEX && !symbolizer_elf_shdr(e, 0, names))
		index = names->sh_link;
	return index && index < e->shnum &&
	       symbolizer_elf_shdr(e, index, names) == 0 &&
	       names->sh_offset <= UINT64_MAX - names->sh_size;
}

int symbolizer_elf_name(struct symbolizer_elf *e, const Elf64_Shdr *names,
			const Elf64_Shdr *sh, char *dst, size_t cap)
{
	if (sh->sh_name >= names->sh_size)
		return -ENODATA;
	return symbolizer_src_string(e->src, names->sh_offset + sh->sh_name,
				     names->sh_offset + names->sh_size, dst,
				     cap);
}

bool symbolizer_elf_section(struct symbolizer_elf *e, const char *want,
			    Elf64_Shdr *sh)
{
	Elf64_Shdr names;
	char name[32];

	if (!e->is64 || !symbolizer_elf_names(e, &names))
		return false;
	for (uint32_t i = 1; i < e->shnum; i++) {
		if (symbolizer_elf_shdr(e, i, sh))
			return false;
		if (sh->sh_type != SHT_NOBITS && sh->sh_size &&
		    symbolizer_elf_name(e, &names, sh, name, sizeof(name)) >
			    0 &&
		    strcmp(name, want) == 0)
			return true;
	}
	return false;
}

/* Decompresses 'size' bytes at 'off' into 'out', which they have to fill. */
static int unpack_zlib(struct symbolizer_src *src, uint64_t off, uint64_t size,
		       uint8_t *out, size_t out_len)
{
	uint8_t piece[SEC_PIECE];
	z_stream z = { .next_out = out, .avail_out = (uInt)out_len };
	size_t len;
	int err = 0, rc = Z_OK;

	if (inflateInit(&z) != Z_OK)
		return -ENOMEM;
	for (; size && rc == Z_OK && !err; off += len, size -= len) {
		len = (size_t)MIN(size, (uint64_t)sizeof(piece));
		err = symbolizer_src_read(src, off, piece, len);
		z.next_in = piece;
		z.avail_in = (uInt)len;
		if (!err)
			rc = inflate(&z, Z_NO_FLUSH);
	}
	if (!err && (rc != Z_STREAM_END || z.avail_out))
		err = -EINVAL;
	inflateEnd(&z);
	return err;
}

static int unpack_zstd(struct symbolizer_src *src, uint64_t off, uint64_t size,
		       uint8_t *out, size_t out_len)
{
	ZSTD_outBuffer to = { out, out_len, 0 };
	ZSTD_DStream *z = ZSTD_createDStream();
	uint8_t piece[SEC_PIECE];
	ZSTD_inBuffer from;
	size_t len, rc = 1;
	int err = z ? 0 : -ENOMEM;

	for (; size && rc && !err; off += len, size -= len) {
		len = (size_t)MIN(size, (uint64_t)sizeof(piece));
		from = (ZSTD_inBuffer){ piece, len, 0 };
		err = symbolizer_src_read(src, off, piece, len);
		while (!err && rc && from.pos < from.size) {
			rc = ZSTD_decompressStream(z, &to, &from);
			/* 'out' is full and input is left: no more progress. */
			if (ZSTD_isError(rc) ||
			    (to.pos == to.size && from.pos < from.size))
				err = -EINVAL;
		}
	}
	if (!err && (rc || to.pos != to.size))
		err = -EINVAL;
	ZSTD_freeDStream(z);
	return err;
}

/*
 * The header of a compressed section: gABI, "Section Compression"; or "ZLIB" and
 * the length, as written by older GNU tools and Go's linker to 1.21.
 */
struct packing {
	uint32_t type;
	uint64_t len; /* after decompression */
	uint64_t head; /* bytes of this header */
};

static int packing_read(struct symbolizer_elf *e, const Elf64_Shdr *sh,
			struct packing *p)
{
	Elf64_Chdr ch;
	struct {
		char mark[4];
		uint32_t len[2];
	} old;

	if (sh->sh_flags & SHF_COMPRESSED) {
		if (sh->sh_size < sizeof(ch) ||
		    symbolizer_src_read(e->src, sh->sh_offset, &ch, sizeof(ch)))
			return -EINVAL;
		*p = (struct packing){ ch.ch_type, ch.ch_size, sizeof(ch) };
		return 0;
	}
	if (sh->sh_size < sizeof(old) ||
	    symbolizer_src_read(e->src, sh->sh_offset, &old, sizeof(old)) ||
	    memcmp(old.mark, "ZLIB", 4) != 0)
		return -EINVAL;
	*p = (struct packing){ ELFCOMPRESS_ZLIB,
			       (uint64_t)be32toh(old.len[0]) << 32 |
				       be32toh(old.len[1]),
			       sizeof(old) };
	return 0;
}

int symbolizer_elf_unpack(struct symbolizer_elf *e, const Elf64_Shdr *sh,
			  uint8_t **out, size_t *out_len)
{
	struct symbolizer_src *src = e->src;
	uint64_t off, size;
	struct packing p;
	uint8_t *buf;
	int err = packing_read(e, sh, &p);

	if (err || p.len == 0 || p.len > SEC_UNPACKED_MAX)
		return -EINVAL;
	off = sh->sh_offset + p.head;
	size = sh->sh_size - p.head;
	if (size > src->size - off)
		return -EINVAL;
	*out_len = (size_t)p.len;
	buf = malloc(*out_len);
	if (!buf)
		return -ENOMEM;
	if (p.type == ELFCOMPRESS_ZLIB)
		err = unpack_zlib(src, off, size, buf, *out_len);
	else if (p.type == ELFCOMPRESS_ZSTD)
		err = unpack_zstd(src, off, size, buf, *out_len);
	else
		err = -EINVAL;
	if (err)
		free(buf);
	else
		*out = buf;
	return err;
}
