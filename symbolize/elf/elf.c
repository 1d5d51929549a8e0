// SPDX-License-Identifier: Apache-2.0
/*
 * elf: headers, segments and notes; see symbolize/elf/elf.h. Structures are
 * copied from the file as they are, so this is for little-endian hosts.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "symbolize/elf/elf.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
	       "ELF files are read in the host's byte order");

/* More than any linker writes. */
#define ELF_LOADS_MAX 64
#define ELF_NOTES_BYTES (1 << 20)
#define ELF_SECTIONS_MAX (1 << 16)
#define ELF_DYNAMIC_MAX 4096

static int elf_ehdr(struct symbolizer_src *src, Elf64_Ehdr *eh)
{
	Elf32_Ehdr h;
	int err = symbolizer_src_read(src, 0, eh, EI_NIDENT);

	if (err)
		return err;
	if (eh->e_ident[EI_CLASS] == ELFCLASS64)
		return symbolizer_src_read(src, 0, eh, sizeof(*eh));
	err = symbolizer_src_read(src, 0, &h, sizeof(h));
	if (err)
		return err;
	eh->e_type = h.e_type;
	eh->e_machine = h.e_machine;
	eh->e_entry = h.e_entry;
	eh->e_phoff = h.e_phoff;
	eh->e_shoff = h.e_shoff;
	eh->e_phentsize = h.e_phentsize;
	eh->e_phnum = h.e_phnum;
	eh->e_shentsize = h.e_shentsize;
	eh->e_shnum = h.e_shnum;
	eh->e_shstrndx = h.e_shstrndx;
	return 0;
}

/* Reads entry 'i' of the table at 'off' into the one for the file's class. */
static int elf_entry(struct symbolizer_elf *e, uint64_t off, uint64_t i,
		     void *as64, size_t size64, void *as32, size_t size32)
{
	size_t size = e->is64 ? size64 : size32;
	uint64_t at;

	if (__builtin_mul_overflow(i, size, &at) ||
	    __builtin_add_overflow(at, off, &at))
		return -ENODATA;
	return symbolizer_src_read(e->src, at, e->is64 ? as64 : as32, size);
}

int symbolizer_elf_phdr(struct symbolizer_elf *e, uint64_t i, Elf64_Phdr *ph)
{
	Elf32_Phdr p;
	int err = elf_entry(e, e->phoff, i, ph, sizeof(*ph), &p, sizeof(p));

	if (err || e->is64)
		return err;
	*ph = (Elf64_Phdr){
		.p_type = p.p_type,
		.p_flags = p.p_flags,
		.p_offset = p.p_offset,
		.p_vaddr = p.p_vaddr,
		.p_filesz = p.p_filesz,
		.p_memsz = p.p_memsz,
		.p_align = p.p_align,
	};
	return 0;
}

static void elf_shdr_widen(const Elf32_Shdr *s, Elf64_Shdr *sh)
{
	*sh = (Elf64_Shdr){
		.sh_name = s->sh_name,
		.sh_type = s->sh_type,
		.sh_flags = s->sh_flags,
		.sh_addr = s->sh_addr,
		.sh_offset = s->sh_offset,
		.sh_size = s->sh_size,
		.sh_link = s->sh_link,
		.sh_info = s->sh_info,
		.sh_addralign = s->sh_addralign,
		.sh_entsize = s->sh_entsize,
	};
}

int symbolizer_elf_shdr(struct symbolizer_elf *e, uint64_t i, Elf64_Shdr *sh)
{
	const struct symbolizer_elf_placed *p;
	Elf32_Shdr s;
	int err = elf_entry(e, e->shoff, i, sh, sizeof(*sh), &s, sizeof(s));

	if (err)
		return err;
	if (!e->is64)
		elf_shdr_widen(&s, sh);
	p = symbolizer_elf_placed(e, (uint32_t)i);
	if (p)
		sh->sh_addr = p->start;
	return 0;
}

int symbolizer_elf_sym(struct symbolizer_elf *e,
		       const struct symbolizer_elf_symbols *tab, uint64_t i,
		       Elf64_Sym *sym)
{
	Elf32_Sym s;
	int err = elf_entry(e, tab->off, i, sym, sizeof(*sym), &s, sizeof(s));

	if (err || e->is64)
		return err;
	*sym = (Elf64_Sym){
		.st_name = s.st_name,
		.st_info = s.st_info,
		.st_shndx = s.st_shndx,
		.st_value = s.st_value,
		.st_size = s.st_size,
	};
	return 0;
}

int symbolizer_elf_rel(struct symbolizer_elf *e,
		       const struct symbolizer_elf_rels *rels, uint64_t i,
		       struct symbolizer_elf_rel *out)
{
	bool addend = rels->addend; /* the last member, if any */
	Elf64_Rela r;
	Elf32_Rela s;
	int err = elf_entry(e, rels->off, i, &r,
			    addend ? sizeof(r) : sizeof(Elf64_Rel), &s,
			    addend ? sizeof(s) : sizeof(Elf32_Rel));

	if (err)
		return err;
	*out = (struct symbolizer_elf_rel){
		.where = e->is64 ? r.r_offset : s.r_offset,
		.sym = e->is64 ? (uint32_t)ELF64_R_SYM(r.r_info)
			       : ELF32_R_SYM(s.r_info),
		.type = e->is64 ? (uint32_t)ELF64_R_TYPE(r.r_info)
				: ELF32_R_TYPE(s.r_info),
	};
	if (addend)
		out->addend =
			e->is64 ? (uint64_t)r.r_addend : (uint32_t)s.r_addend;
	return 0;
}

bool symbolizer_elf_find_phdr(struct symbolizer_elf *e, uint32_t type,
			      Elf64_Phdr *ph)
{
	for (uint16_t i = 0; i < e->phnum; i++) {
		if (symbolizer_elf_phdr(e, i, ph))
			return false;
		if (ph->p_type == type)
			return true;
	}
	return false;
}

bool symbolizer_elf_dynamic(struct symbolizer_elf *e, int64_t tag,
			    uint64_t *val)
{
	Elf64_Phdr ph;
	Elf64_Dyn dyn;
	Elf32_Dyn d;
	uint64_t n;

	if (!symbolizer_elf_find_phdr(e, PT_DYNAMIC, &ph))
		return false;
	n = MIN(ph.p_filesz / ELF_SIZE(e, Dyn), ELF_DYNAMIC_MAX);
	for (uint64_t i = 0; i < n; i++) {
		if (elf_entry(e, ph.p_offset, i, &dyn, sizeof(dyn), &d,
			      sizeof(d)))
			return false;
		if (!e->is64) {
			dyn.d_tag = d.d_tag;
			dyn.d_un.d_val = d.d_un.d_val;
		}
		*val = dyn.d_un.d_val;
		if (dyn.d_tag == tag || dyn.d_tag == DT_NULL)
			return dyn.d_tag == tag;
	}
	return false;
}

static void elf_absent(struct symbolizer_elf *e, const Elf64_Phdr *ph)
{
	struct symbolizer_elf_load *a = &e->absent;
	uint64_t start = ph->p_vaddr, end;

	if (!(ph->p_flags & PF_X) ||
	    __builtin_add_overflow(start, ph->p_memsz, &end))
		return;
	if (a->size) {
		end = MAX(end, a->vaddr + a->size);
		start = MIN(start, a->vaddr);
	}
	*a = (struct symbolizer_elf_load){ .vaddr = start,
					   .size = end - start,
					   .exec = true };
}

static int elf_loads(struct symbolizer_elf *e)
{
	bool code = false;
	Elf64_Phdr ph;

	e->loads = calloc(MIN(e->phnum, ELF_LOADS_MAX), sizeof(*e->loads));
	if (!e->loads)
		return -ENOMEM;
	for (uint16_t i = 0; i < e->phnum; i++) {
		if (symbolizer_elf_phdr(e, i, &ph)) {
			e->damaged = true;
			return -ENOEXEC;
		}
		if (ph.p_type == PT_LOAD && ph.p_filesz == 0)
			elf_absent(e, &ph);
		if (ph.p_type != PT_LOAD || ph.p_filesz == 0)
			continue;
		/* The kernel could not map these either. */
		if (e->n_loads == ELF_LOADS_MAX ||
		    ph.p_vaddr > UINT64_MAX - ph.p_filesz ||
		    ph.p_offset > UINT64_MAX - ph.p_filesz) {
			e->damaged = true;
			continue;
		}
		e->loads[e->n_loads++] = (struct symbolizer_elf_load){
			.vaddr = ph.p_vaddr,
			.offset = ph.p_offset,
			.size = ph.p_filesz,
			.exec = ph.p_flags & PF_X,
			.write = ph.p_flags & PF_W,
		};
		code |= ph.p_flags & PF_X;
	}
	if (code)
		e->absent.size = 0;
	return 0;
}

/* Finds the section headers, if there are any. */
static void elf_sections(struct symbolizer_elf *e, const Elf64_Ehdr *eh)
{
	Elf64_Shdr first;

	if (eh->e_shoff == 0)
		return;
	if (eh->e_shentsize != ELF_SIZE(e, Shdr)) {
		e->damaged = true;
		return;
	}
	e->shoff = eh->e_shoff;
	e->shnum = eh->e_shnum;
	e->shstrndx = eh->e_shstrndx;
	if (e->shnum)
		return;
	/* Too many for the header's field. */
	if (symbolizer_elf_shdr(e, 0, &first) ||
	    first.sh_size > ELF_SECTIONS_MAX)
		e->damaged = true;
	else
		e->shnum = (uint32_t)first.sh_size;
}

/* Checks and reads the ELF header, of a file of either kind. */
static int elf_head(struct symbolizer_elf *e, struct symbolizer_src *src,
		    Elf64_Ehdr *eh)
{
	memset(e, 0, sizeof(*e));
	e->src = src;
	if (symbolizer_src_read(src, 0, eh->e_ident, SELFMAG) ||
	    memcmp(eh->e_ident, ELFMAG, SELFMAG) != 0)
		return -ENOEXEC;
	e->damaged = true; /* until the header is known to be whole */
	if (elf_ehdr(src, eh))
		return -ENOEXEC;
	e->is64 = eh->e_ident[EI_CLASS] == ELFCLASS64;
	e->damaged = !e->is64 && eh->e_ident[EI_CLASS] != ELFCLASS32;
	if (e->damaged || eh->e_ident[EI_DATA] != ELFDATA2LSB)
		return -ENOEXEC;
	e->type = eh->e_type;
	e->machine = eh->e_machine;
	e->entry = eh->e_entry;
	e->phoff = eh->e_phoff;
	e->phnum = eh->e_phnum;
	return 0;
}

int symbolizer_elf_init(struct symbolizer_elf *e, struct symbolizer_src *src)
{
	Elf64_Ehdr eh;
	int err = elf_head(e, src, &eh);

	if (err || (e->type != ET_EXEC && e->type != ET_DYN))
		return -ENOEXEC;
	/* PN_XNUM is for core files. */
	e->damaged = eh.e_phnum == 0 || eh.e_phnum == PN_XNUM ||
		     eh.e_phentsize != ELF_SIZE(e, Phdr);
	if (e->damaged)
		return -ENOEXEC;
	elf_sections(e, &eh);
	err = elf_loads(e);
	if (err)
		symbolizer_elf_fini(e);
	return err;
}

int symbolizer_elf_init_object(struct symbolizer_elf *e,
			       struct symbolizer_src *src)
{
	Elf64_Ehdr eh;
	int err = elf_head(e, src, &eh);

	if (err || e->type != ET_REL)
		return -ENOEXEC;
	e->damaged = false;
	e->phnum = 0;
	elf_sections(e, &eh);
	err = symbolizer_elf_place(e);
	if (err)
		symbolizer_elf_fini(e);
	return err;
}

int symbolizer_elf_init_any(struct symbolizer_elf *e,
			    struct symbolizer_src *src)
{
	int err = symbolizer_elf_init(e, src);

	return err == -ENOEXEC && e->type == ET_REL
		       ? symbolizer_elf_init_object(e, src)
		       : err;
}

void symbolizer_elf_fini(struct symbolizer_elf *e)
{
	free(e->loads);
	free(e->text);
	free(e->placed);
	e->loads = NULL;
	e->text = NULL;
	e->placed = NULL;
}

size_t symbolizer_elf_note_id(struct symbolizer_src *src, uint64_t off,
			      uint64_t size, uint64_t align, uint8_t *dst,
			      size_t cap)
{
	uint64_t pos = 0, name, desc;
	Elf64_Nhdr nh; /* the same in both classes */
	char owner[4];
	size_t len;

	align = align == 8 ? 8 : 4;
	size = MIN(size, (uint64_t)ELF_NOTES_BYTES);
	if (off > UINT64_MAX - 2 * ELF_NOTES_BYTES)
		return 0;
	while (pos + sizeof(nh) <= size) {
		if (symbolizer_src_read(src, off + pos, &nh, sizeof(nh)))
			return 0;
		name = pos + sizeof(nh);
		/* 64-bit sums of 32-bit sizes do not overflow. */
		desc = roundup(name + nh.n_namesz, align);
		pos = roundup(desc + nh.n_descsz, align);
		if (desc + nh.n_descsz > size)
			return 0;
		if (nh.n_type != NT_GNU_BUILD_ID || nh.n_namesz != 4 ||
		    nh.n_descsz == 0 ||
		    symbolizer_src_read(src, off + name, owner, 4) ||
		    memcmp(owner, "GNU", 4) != 0)
			continue;
		len = MIN(cap, nh.n_descsz);
		return symbolizer_src_read(src, off + desc, dst, len) ? 0 : len;
	}
	return 0;
}

size_t symbolizer_elf_build_id(struct symbolizer_elf *e, uint8_t *dst,
			       size_t cap)
{
	Elf64_Phdr ph;
	Elf64_Shdr sh;
	size_t len = 0;

	for (uint32_t i = 0;
	     i < e->phnum && !len && !symbolizer_elf_phdr(e, i, &ph); i++)
		if (ph.p_type == PT_NOTE)
			len = symbolizer_elf_note_id(e->src, ph.p_offset,
						     ph.p_filesz, ph.p_align,
						     dst, cap);
	/*
	 * Some linker scripts make no note segment, and in separate debug files
	 * it has no contents.
	 */
	for (uint32_t i = 1;
	     i < e->shnum && !len && !symbolizer_elf_shdr(e, i, &sh); i++)
		if (sh.sh_type == SHT_NOTE)
			len = symbolizer_elf_note_id(e->src, sh.sh_offset,
						     sh.sh_size,
						     sh.sh_addralign, dst, cap);
	return len;
}

/* The first segment with this address, or the first executable one. */
static const struct symbolizer_elf_load *
elf_find_load(const struct symbolizer_elf *e, uint64_t vaddr, bool exec)
{
	const struct symbolizer_elf_load *l;

	for (l = e->loads; l < e->loads + e->n_loads; l++)
		if ((l->exec || !exec) && vaddr >= l->vaddr &&
		    vaddr - l->vaddr < l->size)
			return l;
	return NULL;
}

const struct symbolizer_elf_load *
symbolizer_elf_load(const struct symbolizer_elf *e, uint64_t vaddr)
{
	return elf_find_load(e, vaddr, false);
}

const struct symbolizer_elf_load *
symbolizer_elf_exec(const struct symbolizer_elf *e, uint64_t vaddr)
{
	if (vaddr - e->absent.vaddr < e->absent.size)
		return &e->absent;
	return elf_find_load(e, vaddr, true);
}

bool symbolizer_elf_offset(const struct symbolizer_elf *e, uint64_t vaddr,
			   uint64_t *off)
{
	const struct symbolizer_elf_load *l = symbolizer_elf_load(e, vaddr);

	if (l)
		*off = l->offset + (vaddr - l->vaddr);
	return l;
}

size_t symbolizer_elf_code(struct symbolizer_elf *e, uint64_t at, uint8_t *buf,
			   size_t len)
{
	const struct symbolizer_elf_load *l = elf_find_load(e, at, true);

	if (!l)
		return 0;
	len = (size_t)MIN((uint64_t)len, l->size - (at - l->vaddr));
	at = l->offset + (at - l->vaddr);
	return symbolizer_src_read(e->src, at, buf, len) ? 0 : len;
}

const struct symbolizer_elf_range *
symbolizer_elf_text(const struct symbolizer_elf *e, uint64_t vaddr)
{
	size_t i;

	VECTOR_SEARCH(i, e->n_text, e->text[i].start <= vaddr);
	if (i == 0 || vaddr >= e->text[i - 1].end)
		return NULL;
	return &e->text[i - 1];
}
