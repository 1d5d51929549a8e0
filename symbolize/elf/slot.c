// SPDX-License-Identifier: Apache-2.0
/*
 * slot: see symbolize/elf/slot.h. The symbol is looked up as the loader does it, by
 * DT_GNU_HASH, so that a file with a hundred thousand symbols costs no more than one
 * with ten. Relocations are those of the dynamic segment, for a file without section
 * headers; GNU ld has TLS descriptors in DT_JMPREL.
 */
#include <errno.h>
#include <string.h>

#include "base/base.h"
#include "symbolize/arch.h"
#include "symbolize/elf/slot.h"

#define SLOT_SYMBOLS_MAX (1U << 20) /* one after the other */
#define SLOT_CHAIN_MAX 4096 /* symbols of a hash bucket */
#define SLOT_RELS_MAX (1U << 20) /* of one table */

/* A symbol that is looked for. */
struct slot_name {
	const char *name;
	size_t size; /* with the end of the string: so no longer name is equal */
	unsigned char type; /* STT_ */
};

static const struct slot_name slot_names[SYMBOLIZER_N_SLOT_KINDS] = {
#define X(NAME, symbol) \
	[SYMBOLIZER_SLOT_##NAME] = { symbol, sizeof(symbol), STT_TLS },
	SYMBOLIZER_SLOT_KINDS(X)
#undef X
};

static const struct slot_name slot_storage = {
	SYMBOLIZER_STORAGE_NAME,
	sizeof(SYMBOLIZER_STORAGE_NAME),
	STT_OBJECT,
};

/* The longest of these. */
#define SLOT_NAME_MAX sizeof(SYMBOLIZER_STORAGE_NAME)

/* Whether 'sym' is this one, defined in this file. */
static bool slot_is(struct symbolizer_elf *e,
		    const struct symbolizer_elf_symbols *tab,
		    const Elf64_Sym *sym, const struct slot_name *n)
{
	char name[SLOT_NAME_MAX];

	return ELF64_ST_TYPE(sym->st_info) == n->type &&
	       sym->st_shndx != SHN_UNDEF && sym->st_name < tab->str_size &&
	       tab->str_size - sym->st_name >= n->size &&
	       tab->str <= UINT64_MAX - sym->st_name &&
	       !symbolizer_src_read(e->src, tab->str + sym->st_name, name,
				    n->size) &&
	       !memcmp(name, n->name, n->size);
}

static int slot_scan(struct symbolizer_elf *e,
		     const struct symbolizer_elf_symbols *tab,
		     const struct slot_name *n, Elf64_Sym *sym, uint32_t *index)
{
	int err;

	for (uint32_t i = 1; i < MIN(tab->count, SLOT_SYMBOLS_MAX); i++) {
		err = symbolizer_elf_sym(e, tab, i, sym);
		if (err)
			return err;
		if (slot_is(e, tab, sym, n)) {
			*index = i;
			return 0;
		}
	}
	return -ENOENT;
}

/* As in "DT_GNU_HASH": h = h * 33 + c. */
static uint32_t slot_hash(const char *s)
{
	uint32_t h = 5381;

	for (; *s; s++)
		h = h * 33 + (uint8_t)*s;
	return h;
}

/*
 * At 'off': nbuckets, symoffset, bloom_size, bloom_shift; bloom words; buckets; chain.
 * The lowest bit of a chain's word ends it, the others are the hash.
 */
static int slot_hashed(struct symbolizer_elf *e, uint64_t off,
		       const struct slot_name *want, Elf64_Sym *sym,
		       uint32_t *index)
{
	const struct symbolizer_elf_symbols *tab = &e->tabs[SYMBOLIZER_DYNSYM];
	uint32_t head[4], h = slot_hash(want->name), i, v;
	uint64_t buckets;
	int err = symbolizer_src_read(e->src, off, head, sizeof(head));

	if (err || !head[0])
		return err ? err : -ENOENT;
	buckets = off + sizeof(head) + (uint64_t)head[2] * 8;
	err = symbolizer_src_read(e->src, buckets + h % head[0] * 4ULL, &i,
				  sizeof(i));
	if (err)
		return err;
	for (int n = 0; n < SLOT_CHAIN_MAX; n++, i++) {
		if (i < head[1] || i >= tab->count)
			return -ENOENT;
		err = symbolizer_src_read(
			e->src, buckets + (head[0] + (uint64_t)i - head[1]) * 4,
			&v, sizeof(v));
		if (!err && (v | 1) == (h | 1))
			err = symbolizer_elf_sym(e, tab, i, sym);
		if (err)
			return err;
		if ((v | 1) == (h | 1) && slot_is(e, tab, sym, want)) {
			*index = i;
			return 0;
		}
		if (v & 1)
			break;
	}
	return -ENOENT;
}

static int slot_dynamic(struct symbolizer_elf *e, const struct slot_name *n,
			Elf64_Sym *sym, uint32_t *index)
{
	uint64_t off;

	if (symbolizer_elf_dynamic(e, DT_GNU_HASH, &off) && off &&
	    symbolizer_elf_offset(e, off, &off) && off < e->src->size)
		return slot_hashed(e, off, n, sym, index);
	return slot_scan(e, &e->tabs[SYMBOLIZER_DYNSYM], n, sym, index);
}

/* Of the first kind that there is. A static program has its own .symtab only. */
static int slot_symbol(struct symbolizer_elf *e, bool is_static, uint32_t *kind,
		       Elf64_Sym *sym, uint32_t *index)
{
	int err = -ENOENT;

	for (uint32_t i = 0; i < SYMBOLIZER_N_SLOT_KINDS && err == -ENOENT;
	     i++) {
		err = slot_dynamic(e, &slot_names[i], sym, index);
		if (err == -ENOENT && is_static)
			err = slot_scan(e, &e->tabs[SYMBOLIZER_SYMTAB],
					&slot_names[i], sym, index);
		*kind = i;
	}
	return err;
}

/* A file that cannot be read there has none. */
static uint64_t slot_find_storage(struct symbolizer_elf *e)
{
	uint32_t index;
	Elf64_Sym sym;

	return slot_dynamic(e, &slot_storage, &sym, &index) ? 0 : sym.st_value;
}

/* A position-independent program is ET_DYN, as a library is; some of those run. */
static bool slot_program(struct symbolizer_elf *e)
{
	Elf64_Phdr ph;
	uint64_t val;

	if (e->type != ET_DYN)
		return e->type == ET_EXEC;
	if (symbolizer_elf_dynamic(e, DT_FLAGS_1, &val) && (val & DF_1_PIE))
		return true;
	return symbolizer_elf_find_phdr(e, PT_INTERP, &ph) &&
	       !symbolizer_elf_dynamic(e, DT_SONAME, &val);
}

/*
 * The relocation is better than what 'slot' has: one of the variable, or of any in
 * the file if it only has the module's number.
 */
static void slot_refine(struct symbolizer_slot *slot,
			const struct symbolizer_elf_rel *rel, uint32_t index)
{
	bool named = rel->sym == index;
	enum symbolizer_slot_model model;

	if (rel->sym && !named)
		return;
	if (rel->type == ARCH_R_DTPMOD) {
		if (slot->model != SYMBOLIZER_SLOT_NONE &&
		    !(named && slot->model == SYMBOLIZER_SLOT_MODULE &&
		      !slot->pair))
			return;
		model = SYMBOLIZER_SLOT_MODULE;
	} else if (!named && rel->addend != (uint64_t)slot->offset) {
		return;
	} else if (rel->type == ARCH_R_TPOFF) {
		model = SYMBOLIZER_SLOT_INITIAL;
	} else if (rel->type == ARCH_R_TLSDESC) {
		if (slot->model == SYMBOLIZER_SLOT_INITIAL)
			return;
		model = SYMBOLIZER_SLOT_DESC;
	} else {
		return;
	}
	slot->model = model;
	slot->where = rel->where;
	slot->pair = model == SYMBOLIZER_SLOT_MODULE && named;
}

static int slot_relocations(struct symbolizer_elf *e, int64_t at_tag,
			    int64_t size_tag, uint32_t index,
			    struct symbolizer_slot *slot)
{
	struct symbolizer_elf_rels rels = { .addend = true };
	struct symbolizer_elf_rel rel;
	uint64_t at, size;
	int err;

	if (!symbolizer_elf_dynamic(e, at_tag, &at) ||
	    !symbolizer_elf_dynamic(e, size_tag, &size) ||
	    !symbolizer_elf_offset(e, at, &rels.off))
		return 0;
	rels.count = size / sizeof(Elf64_Rela);
	for (uint64_t i = 0; i < MIN(rels.count, SLOT_RELS_MAX); i++) {
		err = symbolizer_elf_rel(e, &rels, i, &rel);
		if (err)
			return err;
		slot_refine(slot, &rel, index);
	}
	return 0;
}

/* A program's block ends at tp, aligned as its segment is. */
static int slot_exec(struct symbolizer_elf *e, const Elf64_Sym *sym,
		     struct symbolizer_slot *slot)
{
	Elf64_Phdr ph;
	uint64_t size;

	if (!symbolizer_elf_find_phdr(e, PT_TLS, &ph))
		return 0;
	size = ph.p_memsz;
	if (ph.p_align)
		size += (0 - ph.p_vaddr - size) & (ph.p_align - 1);
	if (sym->st_value >= ph.p_memsz || ph.p_memsz > size ||
	    size > INT64_MAX)
		return 0;
	slot->model = SYMBOLIZER_SLOT_EXEC;
	slot->offset = (int64_t)(sym->st_value - size);
	return 0;
}

int symbolizer_slot_find(struct symbolizer_elf *e, struct symbolizer_slot *slot)
{
	Elf64_Phdr ph;
	Elf64_Sym sym;
	uint32_t index;
	bool program;
	int err;

	*slot = (struct symbolizer_slot){ 0 };
	if (!e->is64 || e->machine != ARCH_MACHINE ||
	    !symbolizer_elf_find_phdr(e, PT_TLS, &ph))
		return 0;
	err = symbolizer_elf_tables(e);
	if (err)
		return err;
	program = slot_program(e);
	err = slot_symbol(
		e, program && !symbolizer_elf_find_phdr(e, PT_INTERP, &ph),
		&slot->kind, &sym, &index);
	if (err) {
		*slot = (struct symbolizer_slot){ 0 };
		return err == -ENOENT ? 0 : err;
	}
	if (slot->kind == SYMBOLIZER_SLOT_ELASTIC)
		slot->storage = slot_find_storage(e);
	if (program)
		return slot_exec(e, &sym, slot);
	slot->offset = (int64_t)sym.st_value;
	err = slot_relocations(e, DT_RELA, DT_RELASZ, index, slot);
	if (!err)
		err = slot_relocations(e, DT_JMPREL, DT_PLTRELSZ, index, slot);
	return err;
}

bool symbolizer_slot_valid(const struct symbolizer_slot *slot)
{
	return slot->model < SYMBOLIZER_N_SLOTS && slot->pair <= 1 &&
	       slot->kind < SYMBOLIZER_N_SLOT_KINDS &&
	       (!slot->storage || slot->kind == SYMBOLIZER_SLOT_ELASTIC) &&
	       (slot->model == SYMBOLIZER_SLOT_EXEC) == (slot->offset < 0);
}
