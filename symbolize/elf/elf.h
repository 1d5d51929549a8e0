/* SPDX-License-Identifier: Apache-2.0 */
/*
 * elf: parts of an ELF file, read from a file or from memory.
 *
 * The file is untrusted: it can hold anything, and change or shrink while it is
 * read. So it is never mapped (SIGBUS), every range is checked where it is used,
 * and the file does not set the limit of any loop.
 *
 * Little endian, 32 and 64 bit. 32-bit structures are widened as they are read,
 * so that other code handles Elf64_* only.
 */
#ifndef SYMBOLIZE_ELF_H
#define SYMBOLIZE_ELF_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SYMBOLIZER_SRC_CACHE 8192

/* Bytes of a file or of memory, with a window for small reads. */
struct symbolizer_src {
	const uint8_t *buf; /* or NULL, then: */
	int fd;
	uint64_t size;
	uint64_t cache_off;
	size_t cache_len;
	uint8_t cache[SYMBOLIZER_SRC_CACHE];
};

void symbolizer_src_mem(struct symbolizer_src *src, const void *buf,
			size_t len);
void symbolizer_src_fd(struct symbolizer_src *src, int fd, uint64_t size);
/* 0; -ENODATA: fewer than 'len' bytes are there; or an error of pread(2). */
int symbolizer_src_read(struct symbolizer_src *src, uint64_t off, void *dst,
			size_t len);
/*
 * The string at 'off', cut where [off, limit) or 'cap' ends it. Its length, or
 * -errno.
 */
int symbolizer_src_string(struct symbolizer_src *src, uint64_t off,
			  uint64_t limit, char *dst, size_t cap);

/* A PT_LOAD. */
struct symbolizer_elf_load {
	uint64_t vaddr, offset, size; /* of the part that is in the file */
	bool exec, write;
};

struct symbolizer_elf_range {
	uint64_t start, end;
};

/* A section with code of a relocatable file; at most so many bytes are placed. */
#define SYMBOLIZER_OBJECT_MAX (1ULL << 30)

struct symbolizer_elf_placed {
	uint64_t start, size;
	uint32_t section;
	bool init; /* the kernel has it apart from the others */
};

/* For qsort(3): by start. */
int symbolizer_elf_cmp_range(const void *a, const void *b);

enum symbolizer_elf_tab {
	SYMBOLIZER_SYMTAB,
	SYMBOLIZER_DYNSYM,
	SYMBOLIZER_N_TABS,
};

/* A symbol table and its strings, as file offsets. */
struct symbolizer_elf_symbols {
	uint64_t off, count;
	uint64_t str, str_size;
};

/* A table of relocations with symbols of .dynsym. */
struct symbolizer_elf_rels {
	uint64_t off, count;
	bool addend;
};

struct symbolizer_elf_rel {
	uint64_t where, addend; /* 0 if 'rels' has none */
	uint32_t sym, type;
};

#define SYMBOLIZER_ELF_RELS 4
#define SYMBOLIZER_ELF_PLTS 4

/* The size of a structure in a file of the class of 'e': ELF_SIZE(e, Sym). */
#define ELF_SIZE(e, name) \
	((e)->is64 ? sizeof(Elf64_##name) : sizeof(Elf32_##name))

struct symbolizer_elf {
	struct symbolizer_src *src;
	bool is64;
	bool damaged; /* a table extends beyond the file, or the like */
	uint16_t type, machine;
	uint16_t phnum, shstrndx;
	uint32_t shnum;
	uint64_t entry; /* address of its first instruction */
	uint64_t phoff, shoff;
	struct symbolizer_elf_load *loads; /* in file order */
	size_t n_loads;
	/*
	 * Of a separate debug file: where its code is in the executable, from the first
	 * executable segment to the last; size 0: it has code itself. Of a relocatable
	 * file: from 0 to the end of the last section with code.
	 */
	struct symbolizer_elf_load absent;
	struct symbolizer_elf_placed *placed; /* by section; else NULL */
	size_t n_placed, cap_placed;
	/* The members below are set by symbolizer_elf_tables(). */
	struct symbolizer_elf_range *text; /* executable sections, ascending */
	size_t n_text, cap_text;
	struct symbolizer_elf_range plt[SYMBOLIZER_ELF_PLTS]; /* of stubs */
	size_t n_plt;
	struct symbolizer_elf_symbols tabs[SYMBOLIZER_N_TABS];
	struct symbolizer_elf_rels rels[SYMBOLIZER_ELF_RELS];
	size_t n_rels;
};

/*
 * Reads headers and segments of 'src', which has to outlive 'e'. -ENOEXEC: no
 * little-endian executable or library; e->damaged: it has their magic bytes.
 */
int symbolizer_elf_init(struct symbolizer_elf *e, struct symbolizer_src *src);
/*
 * The same for a relocatable file (ET_REL: .o, .ko, .dwo, or the debug file of one).
 * Its sections with code have addresses as the kernel places them in a module: from 0
 * on, in the order of the file, aligned; those whose names begin with ".init" behind
 * all others. Also -ENOMEM.
 */
int symbolizer_elf_init_object(struct symbolizer_elf *e,
			       struct symbolizer_src *src);
/* The same for a file of either kind. */
int symbolizer_elf_init_any(struct symbolizer_elf *e,
			    struct symbolizer_src *src);
void symbolizer_elf_fini(struct symbolizer_elf *e);

/* The GNU build id, cut to 'cap'; its length, 0 if there is none. */
size_t symbolizer_elf_build_id(struct symbolizer_elf *e, uint8_t *dst,
			       size_t cap);
/* The same from notes at 'off'; 'align' is that of their segment. */
size_t symbolizer_elf_note_id(struct symbolizer_src *src, uint64_t off,
			      uint64_t size, uint64_t align, uint8_t *dst,
			      size_t cap);

/*
 * Finds symbol tables, text sections and relocations by section headers; in files
 * without them, .dynsym by the dynamic segment. 0 or -ENOMEM.
 */
int symbolizer_elf_tables(struct symbolizer_elf *e);

/* Of a relocatable file: sets the places, for symbolizer_elf_init_object(). */
int symbolizer_elf_place(struct symbolizer_elf *e);
/* The place of a section; NULL: it has no code, or the file is not relocatable. */
const struct symbolizer_elf_placed *
symbolizer_elf_placed(const struct symbolizer_elf *e, uint32_t section);
/*
 * Makes a symbol's value an address: in a relocatable file it is an offset in a
 * section. False: it is not in one with code.
 */
bool symbolizer_elf_sym_place(const struct symbolizer_elf *e, Elf64_Sym *sym);
/* Whether all sections with code are at equal addresses, as in a debug file. */
bool symbolizer_elf_same_places(const struct symbolizer_elf *a,
				const struct symbolizer_elf *b);

/* One entry each; 0 or -errno. Sections that were placed have sh_addr. */
int symbolizer_elf_shdr(struct symbolizer_elf *e, uint64_t i, Elf64_Shdr *sh);
int symbolizer_elf_phdr(struct symbolizer_elf *e, uint64_t i, Elf64_Phdr *ph);
int symbolizer_elf_sym(struct symbolizer_elf *e,
		       const struct symbolizer_elf_symbols *tab, uint64_t i,
		       Elf64_Sym *sym);
int symbolizer_elf_rel(struct symbolizer_elf *e,
		       const struct symbolizer_elf_rels *rels, uint64_t i,
		       struct symbolizer_elf_rel *rel);

/* The first program header of this type. */
bool symbolizer_elf_find_phdr(struct symbolizer_elf *e, uint32_t type,
			      Elf64_Phdr *ph);
/* The value of the first 'tag' in the dynamic segment. */
bool symbolizer_elf_dynamic(struct symbolizer_elf *e, int64_t tag,
			    uint64_t *val);
/* The section with the names of sections. */
bool symbolizer_elf_names(struct symbolizer_elf *e, Elf64_Shdr *names);
/* The name of a section, cut to 'cap'. Its length, or -errno. */
int symbolizer_elf_name(struct symbolizer_elf *e, const Elf64_Shdr *names,
			const Elf64_Shdr *sh, char *dst, size_t cap);
/* The section of that name, if it has contents; in 64-bit files only. */
bool symbolizer_elf_section(struct symbolizer_elf *e, const char *name,
			    Elf64_Shdr *sh);
/*
 * The contents of a compressed section (SHF_COMPRESSED, or .zdebug_*), malloc'd.
 * 0, -ENOMEM, or another error: they cannot be read.
 */
int symbolizer_elf_unpack(struct symbolizer_elf *e, const Elf64_Shdr *sh,
			  uint8_t **out, size_t *out_len);

/* The file offset of an address; false: not in the file. */
bool symbolizer_elf_offset(const struct symbolizer_elf *e, uint64_t vaddr,
			   uint64_t *off);
/* The segment with this address in the file, or the executable one; or NULL. */
const struct symbolizer_elf_load *
symbolizer_elf_load(const struct symbolizer_elf *e, uint64_t vaddr);
const struct symbolizer_elf_load *
symbolizer_elf_exec(const struct symbolizer_elf *e, uint64_t vaddr);
/* Reads 'len' bytes of code at 'at', or as many as the segment has; how many. */
size_t symbolizer_elf_code(struct symbolizer_elf *e, uint64_t at, uint8_t *buf,
			   size_t len);
/* The executable section with this address, or NULL. */
const struct symbolizer_elf_range *
symbolizer_elf_text(const struct symbolizer_elf *e, uint64_t vaddr);

#endif /* SYMBOLIZE_ELF_H */
