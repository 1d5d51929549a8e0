// SPDX-License-Identifier: Apache-2.0
/* debugimage: see symbolize/dwarf/debugimage.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/base.h"
#include "symbolize/arch.h"
#include "symbolize/dwarf/debugimage.h"
#include "symbolize/elf/relocate.h"

#define CU_INDEX ".debug_cu_index"
#define SPLIT ".dwo"

/* What is read for functions and lines; DWARF 5 section 7.3.5, DWARF 4. */
static const char *const wanted[] = {
	".debug_info",	     ".debug_abbrev", ".debug_line",
	".debug_line_str",   ".debug_str",    ".debug_str_offsets",
	".debug_addr",	     ".debug_ranges", ".debug_rnglists",
	".debug_aranges",    ".debug_types",  CU_INDEX,
	".gnu_debugaltlink",
};

#define N_WANTED ARRAY_SIZE(wanted)
#define NAME_ROOM 32

/* Limits for untrusted files. */
#define IMAGE_SYMBOLS_MAX (1U << 21) /* of a relocatable file */
#define IMAGE_RELS_MAX (1U << 24) /* of a section */
#define IMAGE_RELS_PIECE 512 /* read at once */

/* One of the sections, while the image is made. */
struct part {
	Elf64_Shdr sh; /* in the file */
	uint32_t section; /* its number; 0: it was not found */
	Elf64_Shdr rels; /* its relocations, or sh_size 0 */
	uint8_t *plain; /* decompressed, or NULL */
	size_t len;
	size_t at; /* in the image */
};

struct making {
	struct symbolizer_elf *e;
	struct part parts[N_WANTED];
	size_t page, size;
	uint64_t *symbols; /* addresses for relocations, by index */
	size_t n_symbols;
	uint32_t relocation; /* see debugimage.h */
};

/* ".zdebug_X" is the older form of a compressed ".debug_X". */
static size_t wanted_index(const char *name, bool *packed)
{
	char text[NAME_ROOM] = ".";
	size_t i;

	*packed = strncmp(name, ".zdebug_", 8) == 0;
	if (*packed) {
		strcpy(text + 1, name + 2);
		name = text;
	}
	for (i = 0; i < N_WANTED && strcmp(name, wanted[i]); i++)
		;
	return i;
}

static int part_take(struct making *m, const Elf64_Shdr *sh, uint32_t section,
		     struct part *p, bool packed)
{
	uint64_t end;
	int err;

	if (p->section)
		return 0;
	if (__builtin_add_overflow(sh->sh_offset, sh->sh_size, &end) ||
	    end > m->e->src->size)
		return -EINVAL;
	p->sh = *sh;
	p->len = sh->sh_size;
	if (packed || sh->sh_flags & SHF_COMPRESSED) {
		err = symbolizer_elf_unpack(m->e, sh, &p->plain, &p->len);
		if (err)
			return err;
	}
	p->section = section;
	return 0;
}

static struct part *part_of(struct making *m, uint32_t section)
{
	for (struct part *p = m->parts; p < m->parts + N_WANTED; p++)
		if (p->section && p->section == section)
			return p;
	return NULL;
}

/* In a relocatable file: finds the relocations of the parts. */
static int parts_find_rels(struct making *m)
{
	struct part *p;
	Elf64_Shdr sh;

	for (uint32_t i = 1; i < m->e->shnum && m->e->type == ET_REL; i++) {
		if (symbolizer_elf_shdr(m->e, i, &sh))
			break;
		if ((sh.sh_type != SHT_RELA && sh.sh_type != SHT_REL) ||
		    !sh.sh_size || !(p = part_of(m, sh.sh_info)))
			continue;
		/* No assembler for a 64-bit machine writes SHT_REL. */
		if (sh.sh_type == SHT_REL || p->rels.sh_size ||
		    sh.sh_flags & SHF_COMPRESSED)
			return -EINVAL;
		if (sh.sh_size / sizeof(Elf64_Rela) > IMAGE_RELS_MAX)
			return -EFBIG;
		p->rels = sh;
	}
	return 0;
}

/* Whether an image of this kind has the section; cuts its name to that there. */
static bool wanted_by(enum debugimage_kind kind, char *name)
{
	size_t len = strlen(name), end = strlen(SPLIT);

	if (kind != DEBUGIMAGE_SPLIT)
		return strcmp(name, CU_INDEX) != 0;
	if (strcmp(name, CU_INDEX) == 0)
		return true;
	if (len <= end || strcmp(name + len - end, SPLIT))
		return false;
	name[len - end] = '\0';
	return true;
}

static int parts_find(struct making *m, enum debugimage_kind kind)
{
	char name[NAME_ROOM];
	Elf64_Shdr names, sh;
	bool packed;
	size_t at;
	int err = 0;

	if (!m->e->is64 || !symbolizer_elf_names(m->e, &names))
		return -ENODATA;
	for (uint32_t i = 1; i < m->e->shnum && !err; i++) {
		if (symbolizer_elf_shdr(m->e, i, &sh))
			break;
		/* Type units, which have no code, are in groups. */
		if (sh.sh_type == SHT_NOBITS || !sh.sh_size ||
		    sh.sh_flags & SHF_GROUP ||
		    symbolizer_elf_name(m->e, &names, &sh, name,
					sizeof(name)) <= 0 ||
		    !wanted_by(kind, name))
			continue;
		at = wanted_index(name, &packed);
		if (at < N_WANTED)
			err = part_take(m, &sh, i, &m->parts[at], packed);
	}
	if (!err && !m->parts[0].section)
		err = -ENODATA;
	return err ? err : parts_find_rels(m);
}

/* Bytes before the first section: ELF header, section headers, their names. */
static size_t head_size(void)
{
	return sizeof(Elf64_Ehdr) + (N_WANTED + 2) * sizeof(Elf64_Shdr) +
	       (N_WANTED + 2) * NAME_ROOM;
}

/* A section of the file begins at the same offset in its page as there. */
static void parts_place(struct making *m)
{
	size_t at = head_size();

	for (struct part *p = m->parts; p < m->parts + N_WANTED; p++) {
		if (!p->section)
			continue;
		at = (at + m->page - 1) & ~(m->page - 1);
		p->at = at;
		if (!p->plain)
			p->at += p->sh.sh_offset & (m->page - 1);
		at = p->at + p->len;
	}
	m->size = at;
}

/* Only what is written to counts as memory (RLIMIT_DATA), not the whole image. */
static int image_writable(struct debugimage *im, size_t at, size_t len)
{
	size_t inside = at & ((size_t)sysconf(_SC_PAGESIZE) - 1);

	return mprotect(im->base + at - inside, len + inside,
			PROT_READ | PROT_WRITE)
		       ? -EFBIG
		       : 0;
}

/* --- relocations ------------------------------------------------------------- */

/* Sections without code have address 0 in the image, as offsets in them have. */
static int symbols_read(struct making *m, uint32_t table)
{
	const struct symbolizer_elf_placed *p;
	struct symbolizer_elf_symbols tab = { 0 };
	Elf64_Shdr sh;
	Elf64_Sym sym;

	if (m->symbols)
		return 0;
	if (table >= m->e->shnum || symbolizer_elf_shdr(m->e, table, &sh) ||
	    sh.sh_type != SHT_SYMTAB || sh.sh_entsize != sizeof(sym) ||
	    sh.sh_offset > m->e->src->size ||
	    sh.sh_size > m->e->src->size - sh.sh_offset)
		return -EINVAL;
	tab.off = sh.sh_offset;
	tab.count = sh.sh_size / sizeof(sym);
	if (tab.count > IMAGE_SYMBOLS_MAX)
		return -EFBIG;
	m->symbols = calloc(tab.count + 1, sizeof(*m->symbols));
	if (!m->symbols)
		return -ENOMEM;
	for (; m->n_symbols < tab.count; m->n_symbols++) {
		if (symbolizer_elf_sym(m->e, &tab, m->n_symbols, &sym))
			return -EINVAL;
		p = symbolizer_elf_placed(m->e, sym.st_shndx);
		m->symbols[m->n_symbols] =
			sym.st_value + (p ? p->start + DEBUGIMAGE_OBJECT : 0);
	}
	return 0;
}

/* Another machine's are not known, however they are numbered. */
static int relocate_piece(struct making *m, struct symbolizer_relocate *r,
			  const Elf64_Rela *rels, size_t n)
{
	int err;

	if (m->e->machine == ARCH_MACHINE) {
		err = symbolizer_relocate(r, (const uint8_t *)rels,
					  n * sizeof(*rels));
	} else {
		r->unknown = (uint32_t)ELF64_R_TYPE(rels->r_info);
		err = -ENOTSUP;
	}
	m->relocation = r->unknown;
	return err;
}

static int part_relocate(struct making *m, const struct part *p,
			 struct debugimage *im)
{
	struct symbolizer_relocate r = { .buf = im->base + p->at,
					 .len = p->len };
	uint64_t off = p->rels.sh_offset, n;
	Elf64_Rela rels[IMAGE_RELS_PIECE];
	int err = symbols_read(m, p->rels.sh_link);

	r.symbols = m->symbols;
	r.n_symbols = m->n_symbols;
	for (uint64_t left = p->rels.sh_size / sizeof(*rels); left && !err;
	     left -= n, off += n * sizeof(*rels)) {
		n = MIN(left, (uint64_t)IMAGE_RELS_PIECE);
		if (symbolizer_src_read(m->e->src, off, rels,
					n * sizeof(*rels)))
			return -EINVAL;
		err = relocate_piece(m, &r, rels, n);
	}
	return err;
}

/* --- the image --------------------------------------------------------------- */

/* Copies a section into the image, where it can be changed. */
static int part_copy(struct making *m, const struct part *p,
		     struct debugimage *im)
{
	int err = image_writable(im, p->at, p->len);

	if (err)
		return err;
	im->held += p->len;
	if (p->plain)
		memcpy(im->base + p->at, p->plain, p->len);
	else if (symbolizer_src_read(m->e->src, p->sh.sh_offset,
				     im->base + p->at, p->len))
		return -EINVAL;
	return p->rels.sh_size ? part_relocate(m, p, im) : 0;
}

static int part_map(struct making *m, const struct part *p,
		    struct debugimage *im)
{
	const struct symbolizer_src *src = m->e->src;
	size_t inside = p->sh.sh_offset & (m->page - 1);

	if (p->plain || src->buf || p->rels.sh_size)
		return part_copy(m, p, im);
	if (mmap(im->base + p->at - inside, p->len + inside, PROT_READ,
		 MAP_PRIVATE | MAP_FIXED, src->fd,
		 (off_t)(p->sh.sh_offset - inside)) == MAP_FAILED)
		return errno == ENOMEM ? -EFBIG : -errno;
	return 0;
}

static void head_write(const struct making *m, struct debugimage *im)
{
	Elf64_Ehdr *eh = (void *)im->base;
	Elf64_Shdr *sh = (void *)(eh + 1);
	char *names = (char *)(sh + N_WANTED + 2);
	size_t n = 1, used = 1;

	*eh = (Elf64_Ehdr){
		.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64,
			     ELFDATA2LSB, EV_CURRENT },
		.e_type = ET_EXEC,
		.e_machine = m->e->machine,
		.e_version = EV_CURRENT,
		.e_shoff = sizeof(*eh),
		.e_ehsize = sizeof(*eh),
		.e_shentsize = sizeof(*sh),
	};
	for (size_t i = 0; i <= N_WANTED; i++) {
		const char *name = i < N_WANTED ? wanted[i] : ".shstrtab";

		if (i < N_WANTED && !m->parts[i].section)
			continue;
		strcpy(names + used, name);
		sh[n] = (Elf64_Shdr){
			.sh_name = (uint32_t)used,
			.sh_type = i < N_WANTED ? SHT_PROGBITS : SHT_STRTAB,
			.sh_offset = i < N_WANTED
					     ? m->parts[i].at
					     : (size_t)(names - (char *)eh),
			.sh_size = i < N_WANTED ? m->parts[i].len
						: (N_WANTED + 2) * NAME_ROOM,
			.sh_addralign = 1,
		};
		used += strlen(name) + 1;
		n++;
	}
	eh->e_shnum = (uint16_t)n;
	eh->e_shstrndx = (uint16_t)(n - 1);
}

int debugimage_init(struct debugimage *im, struct symbolizer_elf *e,
		    enum debugimage_kind kind)
{
	struct making m = { .e = e, .page = (size_t)sysconf(_SC_PAGESIZE) };
	void *base;
	int err = parts_find(&m, kind);

	*im = (struct debugimage){ 0 };
	if (err)
		goto out;
	parts_place(&m);
	base = mmap(NULL, m.size, PROT_NONE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	err = base == MAP_FAILED ? -EFBIG : 0;
	if (err)
		goto out;
	im->base = base;
	im->size = m.size;
	im->held = m.page;
	err = image_writable(im, 0, head_size());
	if (!err)
		head_write(&m, im);
	for (size_t i = 0; i < N_WANTED && !err; i++)
		if (m.parts[i].section)
			err = part_map(&m, &m.parts[i], im);
	if (err)
		debugimage_fini(im);
out:
	im->relocation = m.relocation;
	free(m.symbols);
	for (size_t i = 0; i < N_WANTED; i++)
		free(m.parts[i].plain);
	return err;
}

void debugimage_fini(struct debugimage *im)
{
	if (im->base)
		munmap(im->base, im->size);
	im->base = NULL;
}

/* Its header in the image, or NULL. */
static Elf64_Shdr *image_header(const struct debugimage *im, const char *name)
{
	const Elf64_Ehdr *eh = (const void *)im->base;
	Elf64_Shdr *sh = (void *)(im->base + eh->e_shoff);
	const char *names =
		(const char *)im->base + sh[eh->e_shstrndx].sh_offset;

	for (size_t i = 1; i < eh->e_shnum; i++)
		if (strcmp(names + sh[i].sh_name, name) == 0)
			return &sh[i];
	return NULL;
}

struct debugimage_part debugimage_part(const struct debugimage *im,
				       const char *name)
{
	const Elf64_Shdr *sh = im->base ? image_header(im, name) : NULL;

	if (!sh)
		return (struct debugimage_part){ 0 };
	return (struct debugimage_part){ im->base + sh->sh_offset,
					 sh->sh_size };
}
