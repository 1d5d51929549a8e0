/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dwarf_file: the DWARF sections of a file, its units, and their abbreviations
 * (DWARF 5 sections 7.4, 7.5.1 and 7.5.3; DWARF 2 to 4, 32-bit and 64-bit). All
 * offsets are from the start of a section. The sections are a debugimage's, which has
 * to outlive the file; they may hold anything.
 */
#ifndef SYMBOLIZE_DWARF_FILE_H
#define SYMBOLIZE_DWARF_FILE_H

#include "base/base.h"
#include "symbolize/dwarf/debugimage.h"

enum dwarf_section {
	DWARF_INFO,
	DWARF_ABBREV,
	DWARF_STR,
	DWARF_LINE_STR,
	DWARF_STR_OFFSETS,
	DWARF_ADDR,
	DWARF_RANGES,
	DWARF_RNGLISTS,
	DWARF_LINE,
	DWARF_ARANGES,
	DWARF_N_SECTIONS,
};

/* Attributes that are read, see dwarf_entry_at_index(). */
enum dwarf_at {
	DWARF_SIBLING,
	DWARF_NAME,
	DWARF_LINKAGE_NAME,
	DWARF_MIPS_LINKAGE_NAME,
	DWARF_LOW_PC,
	DWARF_HIGH_PC,
	DWARF_RANGE_LIST,
	DWARF_ORIGIN,
	DWARF_SPECIFICATION,
	DWARF_DECL_LINE,
	DWARF_CALL_FILE,
	DWARF_CALL_LINE,
	DWARF_STMT_LIST,
	DWARF_COMP_DIR,
	DWARF_STR_OFFSETS_BASE,
	DWARF_ADDR_BASE,
	DWARF_RNGLISTS_BASE,
	DWARF_RANGES_BASE,
	DWARF_DWO_NAME,
	DWARF_DWO_ID,
	DWARF_N_AT,
};

/* As it is in the file; dwarf_entry.h has what it means. */
struct dwarf_value {
	uint64_t n;
	const uint8_t *text; /* DW_FORM_string */
	uint16_t form;
};

/* An attribute of an abbreviation; one that is not read stands for all in a row. */
struct dwarf_attr {
	int64_t implicit; /* of DW_FORM_implicit_const */
	uint16_t form;
	int16_t size; /* bytes in an entry; negative: they vary */
	uint8_t at; /* enum dwarf_at; DWARF_N_AT: it is not read */
	uint8_t pad[3];
};

#define DWARF_VARIES UINT16_MAX

struct dwarf_abbrev {
	uint32_t attrs, n_attrs; /* the first one in the unit's attrs[] */
	uint16_t tag; /* 0: there is no such code */
	uint16_t fixed; /* bytes of all attributes of an entry, or VARIES */
	bool children, sibling; /* it has DW_AT_sibling */
};

/* An entry of the tree. */
struct dwarf_entry {
	uint64_t off; /* in .debug_info */
	const struct dwarf_abbrev
		*abbrev; /* NULL: the end of a list of children */
	uint32_t has; /* bits of enum dwarf_at; the other values are not set */
	struct dwarf_value at[DWARF_N_AT];
};

/* A unit. */
struct dwarf_cu {
	struct dwarf_file *file;
	uint64_t off, first, end; /* of its header, of its entry; behind it */
	uint64_t id; /* of a skeleton or split unit */
	uint8_t version, type; /* DW_UT_*, also before DWARF 5 */
	uint8_t addr_size, offset_size;
	struct debugimage_part table; /* of abbreviations, and all behind it */
	struct dwarf_abbrev *abbrevs; /* by code less one */
	struct dwarf_attr *attrs; /* of all of them */
	uint32_t n_abbrevs, cap_abbrevs, n_attrs, cap_attrs;
	struct dwarf_entry unit; /* its entry */
	uint64_t low; /* base address of ranges */
	/* From their bases on. */
	struct debugimage_part str_offsets, addr, ranges, lists;
};

#define DWARF_SLOTS 32

struct dwarf_file {
	struct debugimage_part s[DWARF_N_SECTIONS];
	struct dwarf_file *alt; /* which dwz(1) made, or NULL */
	bool split; /* a .dwo file, or part of a .dwp file */
	uint64_t *units; /* offsets of all headers, ascending */
	uint32_t n_units, cap_units;
	struct dwarf_cu *slots[DWARF_SLOTS]; /* by index: referred to by others */
	size_t slot_bytes;
};

/* 'p' from 'off' on. */
struct debugimage_part dwarf_part_from(struct debugimage_part p, uint64_t off);
/* Its bytes from 'off' on. */
struct cursor dwarf_cursor(struct debugimage_part p, uint64_t off);

/* Sets the sections to those of the image; of an empty file. */
void dwarf_file_sections(struct dwarf_file *f, const struct debugimage *im);
/* Finds the units. 0 or -ENOMEM. */
int dwarf_file_units(struct dwarf_file *f);
void dwarf_file_fini(struct dwarf_file *f);
size_t dwarf_file_bytes(const struct dwarf_file *f);

/*
 * Reads the header at 'off', abbreviations and the unit's entry. -EINVAL: damaged, or
 * of an unknown version; -ENOMEM. To be closed if 0. 'head': no other entry is read.
 */
int dwarf_cu_open(struct dwarf_cu *cu, struct dwarf_file *f, uint64_t off,
		  bool head);
void dwarf_cu_close(struct dwarf_cu *cu);
/* Memory held, without the struct. */
size_t dwarf_cu_bytes(const struct dwarf_cu *cu);

/*
 * The unit with the entry at 'off', or NULL. It is the file's; valid until the next
 * call for any file.
 */
struct dwarf_cu *dwarf_file_at(struct dwarf_file *f, uint64_t off);

#endif /* SYMBOLIZE_DWARF_FILE_H */
