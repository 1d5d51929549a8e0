/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the tests of unwind rows share: CFI put together byte by byte, and an
 * ELF file around it. The text is at TEXT, .eh_frame at EH.
 */
#ifndef TESTS_UNIT_TEST_ROWS_H
#define TESTS_UNIT_TEST_ROWS_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "symbolize/rows/rows.h"

#define TEXT 0x20000ULL
#define TEXT_SIZE 0x50000ULL
#define EH 0x200000ULL

/* A run of bytes that grows. */
struct bytes {
	uint8_t *b;
	size_t n, cap;
};

static inline void put(struct bytes *o, const void *p, size_t n)
{
	if (o->n + n > o->cap) {
		o->cap = 2 * (o->n + n) + 256;
		o->b = realloc(o->b, o->cap);
		assert_non_null(o->b);
	}
	if (n) /* 'p' may be NULL then */
		memcpy(o->b + o->n, p, n);
	o->n += n;
}

static inline void put1(struct bytes *o, uint8_t v)
{
	put(o, &v, 1);
}

static inline void put4(struct bytes *o, uint32_t v)
{
	put(o, &v, 4);
}

static inline void put8(struct bytes *o, uint64_t v)
{
	put(o, &v, 8);
}

/* Instructions, as a string literal of bytes: C("\x41\x0e\x10"). */
#define C(s) s, sizeof(s) - 1

/* Begins an entry; end_entry() fills its length in. */
static inline size_t begin_entry(struct bytes *o)
{
	put4(o, 0);
	return o->n - 4;
}

static inline void end_entry(struct bytes *o, size_t at)
{
	uint32_t len = (uint32_t)(o->n - at - 4);

	memcpy(o->b + at, &len, 4);
}

/*
 * A common entry of augmentation 'aug', which has 'aug_data', and of the usual
 * alignments; its offset.
 */
static inline size_t put_cie(struct bytes *o, bool eh, const char *aug,
			     const void *aug_data, size_t aug_len,
			     const void *code, size_t len)
{
	size_t at = begin_entry(o);

	put4(o, eh ? 0 : UINT32_MAX);
	put1(o, 1);
	put(o, aug, strlen(aug) + 1);
	put1(o, 1); /* code alignment */
	put1(o, 0x78); /* data alignment -8 */
	put1(o, 16);
	if (aug[0] == 'z') {
		put1(o, (uint8_t)aug_len);
		put(o, aug_data, aug_len);
	}
	put(o, code, len);
	end_entry(o, at);
	return at;
}

/* What compilers begin with: rsp+8, the return address below it. */
#define USUAL "\x0c\x07\x08\x90\x01"

/* As they also do: addresses relative to their place, 4 bytes. */
static inline size_t usual_cie(struct bytes *o)
{
	return put_cie(o, true, "zR", C("\x1b"), C(USUAL));
}

/* A function of such a common entry, at TEXT + 'start'. */
static inline size_t put_fde(struct bytes *o, size_t cie, uint64_t start,
			     uint32_t size, const void *code, size_t len)
{
	size_t at = begin_entry(o);

	put4(o, (uint32_t)(o->n - cie));
	put4(o, (uint32_t)(TEXT + start - (EH + o->n)));
	put4(o, size);
	put1(o, 0); /* no augmentation data */
	put(o, code, len);
	end_entry(o, at);
	return at;
}

/* The same in .debug_frame: absolute addresses. */
static inline void put_debug_fde(struct bytes *o, size_t cie, uint64_t start,
				 uint64_t size, const void *code, size_t len)
{
	size_t at = begin_entry(o);

	put4(o, (uint32_t)cie);
	put8(o, TEXT + start);
	put8(o, size);
	put(o, code, len);
	end_entry(o, at);
}

/* --- a file ----------------------------------------------------------------- */

struct section {
	const char *name;
	uint64_t addr, flags;
	const struct bytes *data;
};

static inline void put_phdr(struct bytes *f, uint32_t type, uint32_t flags,
			    uint64_t off, uint64_t vaddr, uint64_t filesz,
			    uint64_t memsz)
{
	Elf64_Phdr ph = { .p_type = type,
			  .p_flags = flags,
			  .p_offset = off,
			  .p_vaddr = vaddr,
			  .p_filesz = filesz,
			  .p_memsz = memsz };

	put(f, &ph, sizeof(ph));
}

static inline void put_shdr(struct bytes *f, uint32_t name, bool note,
			    uint64_t flags, uint64_t addr, uint64_t off,
			    uint64_t size)
{
	Elf64_Shdr sh = { .sh_name = name,
			  .sh_type = note ? SHT_NOTE : SHT_PROGBITS,
			  .sh_flags = flags,
			  .sh_addr = addr,
			  .sh_offset = off,
			  .sh_size = size };

	put(f, &sh, sizeof(sh));
}

/*
 * The file of the sections, the first of which is loaded. 'hdr': with a program
 * header for .eh_frame_hdr, the second section, and without section headers.
 */
static inline void make_file(struct bytes *f, const struct section *s, size_t n,
			     bool hdr)
{
	Elf64_Ehdr eh = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64,
				       ELFDATA2LSB, EV_CURRENT },
			  .e_type = ET_DYN,
			  .e_machine = EM_X86_64,
			  .e_phoff = sizeof(eh),
			  .e_phentsize = sizeof(Elf64_Phdr),
			  .e_shentsize = sizeof(Elf64_Shdr),
			  .e_phnum = hdr ? 3 : 2 };
	uint64_t at = sizeof(eh) + 3 * sizeof(Elf64_Phdr), off = at;
	uint32_t name = 1;

	f->n = 0;
	for (size_t i = 0; i < n; i++)
		off += s[i].data->n;
	if (!hdr) {
		eh.e_shoff = off;
		eh.e_shnum = (uint16_t)(n + 2);
		eh.e_shstrndx = (uint16_t)(n + 1);
	}
	put(f, &eh, sizeof(eh));
	put_phdr(f, PT_LOAD, PF_R | PF_X, 0, TEXT, 64, TEXT_SIZE);
	put_phdr(f, PT_LOAD, PF_R, at, s[0].addr, off - at, off - at);
	put_phdr(f, PT_GNU_EH_FRAME, PF_R, at + s[0].data->n,
		 s[0].addr + s[0].data->n, hdr ? s[1].data->n : 0, 0);
	for (size_t i = 0; i < n; i++)
		put(f, s[i].data->b, s[i].data->n);
	put_shdr(f, 0, false, 0, 0, 0, 0);
	for (size_t i = 0; i < n; i++) {
		put_shdr(f, name, !strncmp(s[i].name, ".note", 5), s[i].flags,
			 s[i].addr, at, s[i].data->n);
		at += s[i].data->n;
		name += (uint32_t)strlen(s[i].name) + 1;
	}
	put_shdr(f, 0, false, 0, 0, f->n + sizeof(Elf64_Shdr), name);
	put1(f, 0);
	for (size_t i = 0; i < n; i++)
		put(f, s[i].name, strlen(s[i].name) + 1);
}

static inline int read_file(const struct bytes *f, struct symbolizer_rows **out)
{
	struct symbolizer_src src;

	symbolizer_src_mem(&src, f->b, f->n);
	return symbolizer_rows_read(out, &src, NULL);
}

/* The table of one .eh_frame, which is done with then. */
static inline struct symbolizer_rows *rows_of(struct bytes *eh)
{
	struct section s = { ".eh_frame", EH, SHF_ALLOC, eh };
	struct symbolizer_rows *rows;
	struct bytes f = { 0 };

	make_file(&f, &s, 1, false);
	assert_int_equal(read_file(&f, &rows), 0);
	free(f.b);
	free(eh->b);
	*eh = (struct bytes){ 0 };
	return rows;
}

/* --- what is in a table ------------------------------------------------------ */

static inline void put_value(struct strbuf *out,
			     const struct symbolizer_value *v)
{
	static const char *const forms[] = {
		[SYMBOLIZER_SAME] = "same",
		[SYMBOLIZER_UNDEFINED] = "none",
		[SYMBOLIZER_REG] = "r",
		[SYMBOLIZER_AT_REG] = "*r",
		[SYMBOLIZER_CFA] = "cfa",
		[SYMBOLIZER_AT_CFA] = "*cfa",
		[SYMBOLIZER_PLT] = "plt",
		[SYMBOLIZER_EXPR] = "expr",
		[SYMBOLIZER_AT_EXPR] = "*expr",
		[SYMBOLIZER_ELSEWHERE] = "elsewhere",
	};

	strbuf_puts(out, forms[v->from]);
	if (v->from == SYMBOLIZER_REG || v->from == SYMBOLIZER_AT_REG)
		strbuf_printf(out, "%d", v->reg);
	if (v->from > SYMBOLIZER_ELSEWHERE ||
	    (v->from == SYMBOLIZER_ELSEWHERE && v->n))
		strbuf_printf(out, "%+d", v->n);
}

/* The rule at TEXT + 'at' as text: its CFA, then all that is not as usual. */
static inline const char *rule_at(const struct symbolizer_rows *rows,
				  uint64_t at)
{
	static struct strbuf out;
	struct symbolizer_rule r;
	uint16_t id = symbolizer_rows_find(rows, TEXT + at);

	strbuf_reset(&out);
	if (!id)
		return "gap";
	symbolizer_rows_rule(rows, id, &r);
	put_value(&out, &r.cfa);
	for (int i = 0; i < SYMBOLIZER_REGS; i++) {
		const struct symbolizer_value *v = &r.regs[i];

		if (v->from == SYMBOLIZER_SAME ||
		    (i == 7 && v->from == SYMBOLIZER_CFA && v->n == 0) ||
		    (i == 16 && v->from == SYMBOLIZER_AT_CFA && v->n == -8))
			continue;
		strbuf_printf(&out, " %d=", i);
		put_value(&out, v);
	}
	if (r.signal)
		strbuf_puts(&out, " signal");
	return strbuf_str(&out);
}

static inline struct symbolizer_rows_info
info_of(const struct symbolizer_rows *rows)
{
	struct symbolizer_rows_info info;

	symbolizer_rows_info(rows, &info);
	return info;
}

/* The rule at TEXT + 'at' of the only function, whose program is given. */
#define expect_rule(code, at, want)                            \
	do {                                                   \
		struct bytes eh_ = { 0 };                      \
		size_t cie_ = usual_cie(&eh_);                 \
		struct symbolizer_rows *rows_;                 \
		put_fde(&eh_, cie_, 0, 0x1000, C(code));       \
		rows_ = rows_of(&eh_);                         \
		assert_null(info_of(rows_).damage);            \
		assert_string_equal(rule_at(rows_, at), want); \
		symbolizer_rows_free(rows_);                   \
	} while (0)

#endif /* TESTS_UNIT_TEST_ROWS_H */
