// SPDX-License-Identifier: Apache-2.0
/*
 * rows_known: code without CFI in which samples are taken, recognized by its bytes
 * (symbolize/arch.h): pieces of C libraries, in gaps only, and roots of stacks in files
 * whose CFI does not mark them. glibc's CFI marks the entry stub and the start of
 * threads; musl has no CFI at all. There the calls of main() and of a thread's function
 * are recognized: their result is passed to exit() or pthread_exit() at once.
 */
#include <errno.h>
#include <string.h>

#include "base/base.h"
#include "symbolize/rows/rows.h"

#define KNOWN_INIT_MAX 128 /* bytes of .init; there are some 30 */
#define KNOWN_GAP_MAX 512 /* bytes of crtstuff; there are some 200 */
/* Of the entry stub, whose length is not recorded; known ones have some 40. */
#define START_BYTES 64
#define START_SYMBOLS_MAX (1U << 20)
#define START_CODE_MAX (64ULL << 20)
#define START_NEAR 256 /* bytes about a function */

/* --- where stacks begin ------------------------------------------------------- */

struct starter {
	struct symbolizer_elf *e;
	struct symbolizer_rows_build *b;
	struct arch_exits exits;
	int err;
};

int symbolizer_rows_put_root(struct symbolizer_rows_build *b, uint64_t from,
			     uint64_t to)
{
	struct symbolizer_rule root = { 0 };

	arch_rule_frame(&root, 0, false);
	root.regs[SYMBOLIZER_REG_RA] =
		(struct symbolizer_value){ .from = SYMBOLIZER_UNDEFINED };
	return symbolizer_rows_put_rule(b, from, to, &root);
}

/*
 * Whether the kernel begins a process at the entry: in programs, and in the
 * dynamic linker. Some linkers wrote the first function of a library there.
 */
static bool is_start(struct symbolizer_elf *e)
{
	uint8_t code[8];
	Elf64_Phdr ph;

	return e->type == ET_EXEC ||
	       symbolizer_elf_find_phdr(e, PT_INTERP, &ph) ||
	       (symbolizer_elf_code(e, e->entry, code, sizeof(code)) ==
			sizeof(code) &&
		arch_is_start(code));
}

static void find_calls(struct starter *s, uint64_t from, uint64_t to)
{
	uint8_t buf[8192];
	size_t len;

	for (uint64_t at = from; at < to && !s->err;
	     at += len - ARCH_STARTS_OVERLAP) {
		len = (size_t)MIN(to - at, (uint64_t)sizeof(buf));
		len = symbolizer_elf_code(s->e, at, buf, len);
		if (len <= ARCH_STARTS_OVERLAP)
			return;
		s->err = arch_add_starts(s->b, at, buf, len, &s->exits);
	}
}

/* The address of a function; 0: there is none of this name. */
static uint64_t find_symbol(struct symbolizer_elf *e, const char *want)
{
	const struct symbolizer_elf_symbols *tab;
	char name[16];
	Elf64_Sym sym;

	for (int t = 0; t < SYMBOLIZER_N_TABS; t++) {
		tab = &e->tabs[t];
		for (uint64_t i = 1; i < MIN(tab->count, START_SYMBOLS_MAX);
		     i++) {
			if (symbolizer_elf_sym(e, tab, i, &sym) ||
			    sym.st_name >= tab->str_size)
				break;
			if (sym.st_value && sym.st_shndx != SHN_UNDEF &&
			    ELF64_ST_TYPE(sym.st_info) == STT_FUNC &&
			    symbolizer_src_string(e->src,
						  tab->str + sym.st_name,
						  tab->str + tab->str_size,
						  name, sizeof(name)) > 0 &&
			    !strcmp(name, want))
				return sym.st_value;
		}
	}
	return 0;
}

/* Where the first call or jump of a function leads in this file; 0: nowhere. */
static uint64_t rows_start_follow(struct symbolizer_elf *e, uint64_t at)
{
	uint8_t b[START_BYTES];
	size_t len = symbolizer_elf_code(e, at, b, sizeof(b));
	uint64_t to;

	for (size_t i = 0; i + 5 <= len; i++)
		if (arch_branch(b + i, at + i, &to) &&
		    symbolizer_elf_exec(e, to))
			return to;
	return 0;
}

/* A stripped static program: _start calls _start_c calls __libc_start_main. */
static void find_by_stub(struct starter *s)
{
	uint64_t at = rows_start_follow(s->e, s->e->entry);

	at = at ? rows_start_follow(s->e, at) : 0;
	if (at < START_NEAR)
		return;
	s->exits.any = true;
	find_calls(s, at - START_NEAR, at + START_NEAR);
}

int symbolizer_rows_start(struct symbolizer_elf *e,
			  struct symbolizer_rows_build *b)
{
	struct starter s = { .e = e, .b = b };
	const struct symbolizer_elf_load *l;
	uint64_t next;

	if (!e->entry || symbolizer_rows_covered(b, e->entry, &next) ||
	    !is_start(e))
		return 0;
	next = e->entry + MIN(START_BYTES, UINT64_MAX - e->entry);
	s.err = symbolizer_rows_put_root(b, e->entry, next);
	if (!s.err)
		s.err = symbolizer_elf_tables(e);
	if (s.err)
		return s.err == -ENOMEM ? s.err : 0;
	s.exits.exit = find_symbol(e, "exit");
	s.exits.thread_exit = find_symbol(e, "pthread_exit");
	for (l = e->loads; l < e->loads + e->n_loads; l++)
		if (l->exec)
			find_calls(&s, l->vaddr,
				   l->vaddr + MIN(l->size, START_CODE_MAX));
	if (!s.exits.exit && !s.err)
		find_by_stub(&s);
	return s.err == -ENOMEM ? s.err : 0;
}

/* --- pieces of C libraries ---------------------------------------------------- */

/*
 * _init() and _fini(), put together of crti.o and crtn.o. Each process begins
 * with a page fault there for each of its libraries.
 */
static int add_inits(struct symbolizer_elf *e, struct symbolizer_rows_build *b)
{
	static const struct {
		const char *section;
		int64_t tag;
	} inits[] = { { ".init", DT_INIT }, { ".fini", DT_FINI } };
	uint8_t code[KNOWN_INIT_MAX];
	Elf64_Shdr sh;
	int err = 0;

	for (size_t i = 0; i < ARRAY_SIZE(inits) && !err; i++)
		if (symbolizer_elf_section(e, inits[i].section, &sh) ||
		    symbolizer_elf_dynamic(e, inits[i].tag, &sh.sh_addr))
			err = arch_add_init(b, sh.sh_addr, code,
					    symbolizer_elf_code(e, sh.sh_addr,
								code,
								sizeof(code)));
	return err;
}

static int add_gap(struct symbolizer_elf *e, struct symbolizer_rows_build *b,
		   const struct symbolizer_rows_gap *gap)
{
	struct symbolizer_rule rule;
	uint8_t code[KNOWN_GAP_MAX];
	size_t len;

	if (gap->signal) {
		/* This system call never returns: samples have the address behind. */
		arch_rule_sigreturn(&rule);
		return symbolizer_rows_put_rule(b, gap->start, gap->start + 1,
						&rule);
	}
	len = (size_t)MIN(gap->end - gap->start, sizeof(code));
	len = symbolizer_elf_code(e, gap->start, code, len);
	return arch_add_gap(b, gap, code, len);
}

int symbolizer_rows_known(struct symbolizer_elf *e,
			  struct symbolizer_rows_build *b)
{
	struct symbolizer_rows_gap gap;
	int err = add_inits(e, b);

	for (size_t i = 0; i < b->n_first && !err; i++)
		if (symbolizer_rows_gap(b, i, &gap))
			err = add_gap(e, b, &gap);
	return err == -ENOMEM ? err : 0;
}
