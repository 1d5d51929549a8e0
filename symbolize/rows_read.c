// SPDX-License-Identifier: Apache-2.0
/*
 * rows_read: where a file keeps its CFI, see symbolize/rows.h. Section headers
 * say it; they are not needed to run, though, and without them .eh_frame is
 * found as the run-time unwinder finds it, by .eh_frame_hdr (LSB Core 10.6.2)
 * and its program header. That one is sorted, but may be anything: its table is
 * not used, only where it leads and how many functions it has.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#include "base/base.h"
#include "symbolize/cfi.h"
#include "symbolize/file.h"

#ifndef ELFCOMPRESS_ZSTD
#define ELFCOMPRESS_ZSTD 2
#endif

/* What a compressed section may come to. */
#define READ_UNPACKED_MAX (256ULL << 20)
#define READ_PIECE (64 << 10)

#define PE_OMIT 0xff

/* One file while it is read. */
struct rows_file {
	struct symbolizer_elf elf;
	struct symbolizer_rows_build b;
	struct symbolizer_rows_info info;
	bool any; /* there is CFI */
};

static void note(struct rows_file *f, const char *section, uint64_t at,
		 const char *what)
{
	if (f->info.damage)
		return;
	f->info.damage = what;
	f->info.section = section;
	f->info.section_offset = 0;
	f->info.file_offset = at;
}

/* --- compressed sections --------------------------------------------------- */

/* Unpacks all of 'in' into 'out', which it has to fill. 0 or -errno. */
static int unpack_zlib(struct symbolizer_src *src, uint64_t off, uint64_t size,
		       uint8_t *out, size_t out_len)
{
	uint8_t piece[READ_PIECE];
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
	uint8_t piece[READ_PIECE];
	ZSTD_inBuffer from;
	size_t len, rc = 1;
	int err = z ? 0 : -ENOMEM;

	for (; size && rc && !err; off += len, size -= len) {
		len = (size_t)MIN(size, (uint64_t)sizeof(piece));
		from = (ZSTD_inBuffer){ piece, len, 0 };
		err = symbolizer_src_read(src, off, piece, len);
		while (!err && rc && from.pos < from.size) {
			rc = ZSTD_decompressStream(z, &to, &from);
			/* Full, and more to come: it would not go on. */
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
 * The contents of a compressed section (gABI, "Section Compression"), malloc'd.
 * 0, -ENOMEM, or another when they cannot be had.
 */
static int unpack(struct rows_file *f, const Elf64_Shdr *sh, uint8_t **out,
		  size_t *out_len)
{
	struct symbolizer_src *src = f->elf.src;
	Elf64_Chdr ch;
	uint64_t off, size;
	int err;

	*out = NULL;
	if (sh->sh_size < sizeof(ch) ||
	    symbolizer_src_read(src, sh->sh_offset, &ch, sizeof(ch)) ||
	    ch.ch_size == 0 || ch.ch_size > READ_UNPACKED_MAX)
		return -EINVAL;
	off = sh->sh_offset + sizeof(ch);
	size = sh->sh_size - sizeof(ch);
	if (size > src->size - off)
		return -EINVAL;
	*out_len = (size_t)ch.ch_size;
	*out = malloc(*out_len);
	if (!*out)
		return -ENOMEM;
	if (ch.ch_type == ELFCOMPRESS_ZLIB)
		err = unpack_zlib(src, off, size, *out, *out_len);
	else if (ch.ch_type == ELFCOMPRESS_ZSTD)
		err = unpack_zstd(src, off, size, *out, *out_len);
	else
		err = -EINVAL;
	if (err) {
		free(*out);
		*out = NULL;
	}
	return err;
}

/* --- sections -------------------------------------------------------------- */

static int read_packed(struct rows_file *f, struct cfi_section *s,
		       const Elf64_Shdr *sh)
{
	struct symbolizer_src mem;
	uint8_t *buf;
	size_t len;
	int err;

	err = unpack(f, sh, &buf, &len);
	if (err == -ENOMEM)
		return err;
	if (err) {
		note(f, s->name, sh->sh_offset,
		     "compressed contents that cannot be unpacked");
		return 0;
	}
	symbolizer_src_mem(&mem, buf, len);
	s->src = &mem;
	s->offset = 0;
	s->size = len;
	s->packed = true;
	err = symbolizer_cfi_read(s, &f->b, &f->info);
	free(buf);
	return err;
}

static int read_section(struct rows_file *f, const Elf64_Shdr *sh,
			const char *name, bool eh)
{
	struct cfi_section s = {
		.src = f->elf.src,
		.name = name,
		.offset = sh->sh_offset,
		.size = sh->sh_size,
		.vaddr = sh->sh_addr,
		.eh = eh,
	};

	f->any = true;
	if (sh->sh_flags & SHF_COMPRESSED)
		return read_packed(f, &s, sh);
	return symbolizer_cfi_read(&s, &f->b, &f->info);
}

/* The section with the names of sections, gABI "ELF Header", e_shstrndx. */
static bool find_names(struct symbolizer_elf *e, Elf64_Shdr *names)
{
	uint32_t index = 0;
	Elf64_Shdr first;

	if (symbolizer_src_read(e->src, offsetof(Elf64_Ehdr, e_shstrndx),
				&index, sizeof(uint16_t)))
		return false;
	if (index == SHN_XINDEX) {
		if (symbolizer_elf_shdr(e, 0, &first))
			return false;
		index = first.sh_link;
	}
	return index && index < e->shnum &&
	       symbolizer_elf_shdr(e, index, names) == 0 &&
	       names->sh_offset <= UINT64_MAX - names->sh_size;
}

/* The section of that name that is in the file. */
static bool find_section(struct symbolizer_elf *e, const char *want,
			 Elf64_Shdr *sh)
{
	Elf64_Shdr names;
	char name[16];

	if (!find_names(e, &names))
		return false;
	for (uint32_t i = 1; i < e->shnum; i++) {
		if (symbolizer_elf_shdr(e, i, sh))
			return false;
		if (sh->sh_type == SHT_NOBITS || sh->sh_size == 0 ||
		    sh->sh_name >= names.sh_size)
			continue;
		if (symbolizer_src_string(e->src, names.sh_offset + sh->sh_name,
					  names.sh_offset + names.sh_size, name,
					  sizeof(name)) > 0 &&
		    strcmp(name, want) == 0)
			return true;
	}
	return false;
}

/* --- without section headers ------------------------------------------------ */

static const struct symbolizer_elf_load *load_of(const struct symbolizer_elf *e,
						 uint64_t vaddr)
{
	const struct symbolizer_elf_load *l;

	for (size_t i = 0; i < e->n_loads; i++) {
		l = &e->loads[i];
		if (vaddr >= l->vaddr && vaddr - l->vaddr < l->size)
			return l;
	}
	return NULL;
}

/* Reads .eh_frame_hdr: where .eh_frame is, and how many functions it has. */
static bool read_hdr(struct symbolizer_elf *e, const Elf64_Phdr *ph,
		     uint64_t *vaddr, uint64_t *functions)
{
	uint8_t h[4 + 8 + 8];
	struct cfi_cursor c = { h, h, false };
	size_t len = (size_t)MIN(ph->p_filesz, (uint64_t)sizeof(h));

	if (len < 4 || symbolizer_src_read(e->src, ph->p_offset, h, len) ||
	    h[0] != 1 || h[1] == PE_OMIT || h[2] == PE_OMIT)
		return false;
	c.p = h + 4;
	c.end = h + len;
	if (!symbolizer_cfi_pointer(&c, h[1], ph->p_vaddr + 4, vaddr) ||
	    !symbolizer_cfi_pointer(&c, h[2], ph->p_vaddr + (uint64_t)(c.p - h),
				    functions))
		return false;
	return !c.bad && *functions;
}

static int read_by_hdr(struct rows_file *f)
{
	const struct symbolizer_elf_load *l;
	struct cfi_section s = { .src = f->elf.src,
				 .name = ".eh_frame",
				 .eh = true };
	Elf64_Phdr ph = { 0 };

	for (uint16_t i = 0; i < f->elf.phnum; i++)
		if (symbolizer_elf_phdr(&f->elf, i, &ph) ||
		    ph.p_type == PT_GNU_EH_FRAME)
			break;
	if (ph.p_type != PT_GNU_EH_FRAME || ph.p_filesz == 0)
		return 0;
	f->any = true;
	l = read_hdr(&f->elf, &ph, &s.vaddr, &s.functions)
		    ? load_of(&f->elf, s.vaddr)
		    : NULL;
	if (!l) {
		note(f, ".eh_frame_hdr", ph.p_offset,
		     "a header that leads nowhere");
		return 0;
	}
	s.offset = l->offset + (s.vaddr - l->vaddr);
	s.size = l->size - (s.vaddr - l->vaddr);
	return symbolizer_cfi_read(&s, &f->b, &f->info);
}

static int read_all(struct rows_file *f)
{
	Elf64_Shdr sh;
	int err;

	if (find_section(&f->elf, ".eh_frame", &sh))
		err = read_section(f, &sh, ".eh_frame", true);
	else
		err = read_by_hdr(f);
	symbolizer_rows_fill(&f->b);
	if (find_section(&f->elf, ".text", &sh))
		f->b.text = sh.sh_size;
	if (!err && find_section(&f->elf, ".debug_frame", &sh))
		err = read_section(f, &sh, ".debug_frame", false);
	if (!err && !f->any)
		err = -ENODATA;
	return err;
}

int symbolizer_rows_read(struct symbolizer_rows **out,
			 struct symbolizer_src *src)
{
	struct rows_file f = { 0 };
	int err = symbolizer_elf_init(&f.elf, src);

	if (err)
		return err;
	if (f.elf.machine != EM_X86_64 || !f.elf.is64)
		err = -ENOTSUP;
	if (!err)
		err = symbolizer_rows_begin(&f.b, &f.elf);
	if (!err)
		err = read_all(&f);
	if (!err)
		err = symbolizer_rows_end(&f.b, &f.info, out);
	symbolizer_rows_build_fini(&f.b);
	symbolizer_elf_fini(&f.elf);
	return err;
}

int symbolizer_file_rows(const struct symbolizer_file *f,
			 struct symbolizer_rows **out)
{
	struct symbolizer_src src;

	if (f->kallsyms)
		return -ENODATA;
	if (f->image)
		symbolizer_src_mem(&src, f->image, f->ident.size);
	else if (f->fd >= 0)
		symbolizer_src_fd(&src, f->fd, f->ident.size);
	else
		return -ENODATA;
	return symbolizer_rows_read(out, &src);
}
