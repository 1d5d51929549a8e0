// SPDX-License-Identifier: Apache-2.0
/*
 * rows_start: where stacks begin in files that do not say it, see
 * symbolize/rows/rows.h. glibc says of its entry stub, and of where threads begin,
 * that nothing is above; musl has no CFI at all. Its places are known by what
 * they do: what a program's main function, or a thread's, returns goes straight
 * to exit, or pthread_exit.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "symbolize/rows/rows.h"

/* How long the stub is nobody tells: those there are have some 40 bytes. */
#define START_BYTES 64
#define START_SYMBOLS_MAX (1U << 20)
#define START_CODE_MAX (64ULL << 20)
#define START_NEAR 256 /* bytes about a function */

struct starter {
	struct symbolizer_elf *e;
	struct symbolizer_rows_build *b;
	/* Where they are; 0: not known. */
	uint64_t exit, thread_exit;
	bool near; /* any call counts as one of exit */
	int err;
};

static void add_root(struct starter *s, uint64_t from, uint64_t to)
{
	struct symbolizer_rule root = { 0 };

	symbolizer_rows_plain(&root, 8);
	root.regs[SYMBOLIZER_REG_RA] =
		(struct symbolizer_value){ SYMBOLIZER_UNDEFINED, 0, 0, 0 };
	s->err = symbolizer_rows_put_rule(s->b, from, to, &root);
}

/* --- the entry stub ---------------------------------------------------------- */

/*
 * Whether the entry is where the kernel begins a process, and not what linkers
 * once wrote into libraries, the first function of all: the program says that
 * it is one, or the stub clears the frame pointer (System V ABI, 3.4.1) or, as
 * the dynamic linker's, passes the stack pointer on.
 */
static bool is_start(struct starter *s)
{
	static const uint8_t endbr[] = { 0xf3, 0x0f, 0x1e, 0xfa };
	static const uint8_t pass[] = { 0x48, 0x89, 0xe7 }; /* mov %rsp, %rdi */
	uint8_t b[8];
	uint16_t type = 0;
	Elf64_Phdr ph;
	size_t i;

	if (!symbolizer_src_read(s->e->src, offsetof(Elf64_Ehdr, e_type), &type,
				 sizeof(type)) &&
	    type == ET_EXEC)
		return true;
	for (uint16_t k = 0; k < s->e->phnum; k++)
		if (!symbolizer_elf_phdr(s->e, k, &ph) &&
		    ph.p_type == PT_INTERP)
			return true;
	if (symbolizer_elf_code(s->e, s->e->entry, b, sizeof(b)) < sizeof(b))
		return false;
	i = memcmp(b, endbr, sizeof(endbr)) ? 0 : sizeof(endbr);
	if (!memcmp(b + i, pass, sizeof(pass)))
		return true;
	i += b[i] == 0x48;
	return b[i] == 0x31 && b[i + 1] == 0xed; /* xor %ebp, %ebp */
}

/* --- where main and threads are called ---------------------------------------- */

static uint64_t target_of(const uint8_t *call, uint64_t at)
{
	int32_t rel;

	memcpy(&rel, call + 1, sizeof(rel));
	return at + 5 + (uint64_t)(int64_t)rel;
}

/* call *%reg or call *(%reg), of two bytes, which may have another in front. */
static bool is_indirect_call(const uint8_t *p)
{
	return p[0] == 0xff && ((p[1] & 0xf8) == 0xd0 || (p[1] & 0xf8) == 0x10);
}

/* Of the call at p, before which 8 bytes are: the bytes from the one of main. */
static size_t is_last_call(const struct starter *s, const uint8_t *p,
			   uint64_t at)
{
	uint64_t to = target_of(p, at);
	bool thread = !s->near && to == s->thread_exit;

	if (!s->near && to != s->exit && !thread)
		return 0;
	/* mov %eax, %edi; of a thread mov %rax, %rdi or movslq %eax, %rdi */
	if (!thread && p[-2] == 0x89 && p[-1] == 0xc7 && p[-3] != 0x48)
		return is_indirect_call(p - 4) ? 4 : 0;
	if (thread && p[-3] == 0x48 &&
	    ((p[-2] == 0x89 && p[-1] == 0xc7) ||
	     (p[-2] == 0x63 && p[-1] == 0xf8)))
		return is_indirect_call(p - 5) ? 5 : 0;
	return 0;
}

/* What musl has signal handlers return to, before the system call at 'p'. */
static void find_sigreturn(struct starter *s, const uint8_t *p, uint64_t at)
{
	static const uint8_t code[] = { 0x0f, 0, 0, 0, 0x0f, 0x05 };
	struct symbolizer_rule rule;
	size_t len;

	if (memcmp(p - 4, code, sizeof(code)) != 0)
		return;
	if (p[-5] == 0xb8) /* mov $15, %eax */
		len = 5;
	else if (p[-7] == 0x48 && p[-6] == 0xc7 && p[-5] == 0xc0) /* %rax */
		len = 7;
	else
		return;
	symbolizer_rows_sigreturn(&rule);
	/* And the address behind it, which is all there is meanwhile. */
	s->err = symbolizer_rows_put_rule(s->b, at - len, at + 3, &rule);
}

static void find_calls(struct starter *s, uint64_t from, uint64_t to)
{
	uint8_t buf[8192];
	size_t len, front;

	for (uint64_t at = from; at < to && !s->err; at += len - 12) {
		len = symbolizer_elf_code(s->e, at, buf,
					  (size_t)MIN(to - at,
						      (uint64_t)sizeof(buf)));
		if (len < 13)
			return;
		for (size_t i = 8; i + 5 <= len; i++) {
			if (buf[i] == 0x0f)
				find_sigreturn(s, buf + i, at + i);
			if (buf[i] != 0xe8)
				continue;
			front = is_last_call(s, buf + i, at + i);
			if (front)
				add_root(s, at + i - front, at + i + 5);
		}
	}
}

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

/* Where the first call or jump of a function leads, in this file. */
static uint64_t rows_start_follow(struct starter *s, uint64_t at)
{
	uint8_t b[START_BYTES];
	size_t len = symbolizer_elf_code(s->e, at, b, sizeof(b));
	uint64_t to;

	for (size_t i = 0; i + 5 <= len; i++) {
		to = target_of(b + i, at + i);
		if ((b[i] == 0xe8 || b[i] == 0xe9) &&
		    symbolizer_elf_exec(s->e, to))
			return to;
	}
	return 0;
}

/* A stripped static program: _start calls _start_c calls __libc_start_main. */
static void find_by_stub(struct starter *s)
{
	uint64_t at = rows_start_follow(s, s->e->entry);

	at = at ? rows_start_follow(s, at) : 0;
	if (at < START_NEAR)
		return;
	s->near = true;
	find_calls(s, at - START_NEAR, at + START_NEAR);
}

static void find_in_code(struct starter *s)
{
	const struct symbolizer_elf_load *l;

	for (size_t i = 0; i < s->e->n_loads; i++) {
		l = &s->e->loads[i];
		if (l->exec)
			find_calls(s, l->vaddr,
				   l->vaddr + MIN(l->size, START_CODE_MAX));
	}
}

int symbolizer_rows_start(struct symbolizer_elf *e,
			  struct symbolizer_rows_build *b)
{
	struct starter s = { .e = e, .b = b };
	uint64_t next;

	if (!e->entry || symbolizer_rows_covered(b, e->entry, &next) ||
	    !is_start(&s))
		return 0;
	add_root(&s, e->entry,
		 e->entry + MIN(START_BYTES, UINT64_MAX - e->entry));
	if (!s.err)
		s.err = symbolizer_elf_tables(e);
	if (s.err)
		return s.err == -ENOMEM ? s.err : 0;
	s.exit = find_symbol(e, "exit");
	s.thread_exit = find_symbol(e, "pthread_exit");
	find_in_code(&s);
	if (!s.exit && !s.err)
		find_by_stub(&s);
	return s.err == -ENOMEM ? s.err : 0;
}
