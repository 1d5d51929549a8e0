// SPDX-License-Identifier: Apache-2.0
/*
 * rows_known: pieces of C libraries that no CFI speaks of and in which samples
 * are taken all the same, see symbolize/rows.h. Each is known by its bytes, and
 * only looked for where nothing is known.
 */
#include <errno.h>
#include <string.h>

#include "base/base.h"
#include "symbolize/rows.h"

#define KNOWN_INIT_MAX 128 /* bytes of .init; there are some 30 */

void symbolizer_rows_plain(struct symbolizer_rule *rule, int32_t cfa)
{
	rule->cfa = (struct symbolizer_value){ SYMBOLIZER_REG, 7, 0, cfa };
	rule->regs[7].from = SYMBOLIZER_CFA;
	rule->regs[SYMBOLIZER_REG_RA] =
		(struct symbolizer_value){ SYMBOLIZER_AT_CFA, 0, 0, -8 };
}

/*
 * rsp is where the handler left it: at the ucontext, whose registers come in
 * this order behind 40 bytes (arch/x86/include/uapi/asm/sigcontext.h).
 */
void symbolizer_rows_sigreturn(struct symbolizer_rule *rule)
{
	static const uint8_t order[] = { 8, 9, 10, 11, 12, 13, 14, 15, 5,
					 4, 6, 3,  1,  0,  2,  7,  16 };

	memset(rule, 0, sizeof(*rule));
	for (size_t i = 0; i < ARRAY_SIZE(order); i++)
		rule->regs[order[i]] =
			(struct symbolizer_value){ SYMBOLIZER_AT_REG, 7, 0,
						   40 + 8 * (int32_t)i };
	rule->cfa = rule->regs[7];
	rule->regs[7] = (struct symbolizer_value){ SYMBOLIZER_CFA, 0, 0, 0 };
	rule->signal = true;
}

static size_t read_code(struct symbolizer_elf *e, uint64_t at, uint8_t *buf,
			size_t len)
{
	const struct symbolizer_elf_load *l = symbolizer_elf_exec(e, at);

	if (!l)
		return 0;
	len = (size_t)MIN((uint64_t)len, l->size - (at - l->vaddr));
	return symbolizer_src_read(e->src, l->offset + (at - l->vaddr), buf,
				   len)
		       ? 0
		       : len;
}

/* --- _init and _fini ---------------------------------------------------------- */

/*
 * crti.o and crtn.o put them together: "sub $8, %rsp" or "push %rax" in front,
 * what undoes it and "ret" at the end. Each process begins with a page fault
 * there for each of its libraries.
 */
static int add_init(struct symbolizer_elf *e, struct symbolizer_rows_build *b,
		    uint64_t at)
{
	static const uint8_t endbr[] = { 0xf3, 0x0f, 0x1e, 0xfa };
	static const uint8_t sub[] = { 0x48, 0x83, 0xec, 0x08 };
	static const uint8_t end_sub[] = { 0x48, 0x83, 0xc4, 0x08, 0xc3 };
	static const uint8_t end_push[] = { 0x58, 0xc3 };
	uint8_t code[KNOWN_INIT_MAX];
	size_t len = read_code(e, at, code, sizeof(code)), i, n;
	struct symbolizer_rule rule = { 0 };
	const uint8_t *end;
	int err;

	i = len > 8 && !memcmp(code, endbr, sizeof(endbr)) ? 4 : 0;
	if (len < i + sizeof(sub) + sizeof(end_sub))
		return 0;
	if (!memcmp(code + i, sub, sizeof(sub))) {
		i += sizeof(sub);
		end = memmem(code + i, len - i, end_sub, n = sizeof(end_sub));
	} else if (code[i] == 0x50) {
		i++;
		end = memmem(code + i, len - i, end_push, n = sizeof(end_push));
	} else {
		return 0;
	}
	if (!end)
		return 0;
	len = (size_t)(end - code) + n;
	symbolizer_rows_plain(&rule, 8);
	err = symbolizer_rows_put_rule(b, at, at + i, &rule);
	if (!err)
		err = symbolizer_rows_put_rule(b, at + len - 1, at + len,
					       &rule);
	symbolizer_rows_plain(&rule, 16);
	if (!err)
		err = symbolizer_rows_put_rule(b, at + i, at + len - 1, &rule);
	return err;
}

static int add_inits(struct symbolizer_elf *e, struct symbolizer_rows_build *b)
{
	static const struct {
		const char *section;
		int64_t tag;
	} inits[] = { { ".init", DT_INIT }, { ".fini", DT_FINI } };
	Elf64_Shdr sh;
	int err = 0;

	for (size_t i = 0; i < ARRAY_SIZE(inits) && !err; i++) {
		if (symbolizer_elf_section(e, inits[i].section, &sh) ||
		    symbolizer_elf_dynamic(e, inits[i].tag, &sh.sh_addr))
			err = add_init(e, b, sh.sh_addr);
	}
	return err;
}

/* --- behind functions --------------------------------------------------------- */

/* *rsp, or 0, no caller, where rax is 0: *rsp * (rax != 0). */
static const uint8_t ra_of_parent[] = { 0x77, 0x00, 0x06, 0x70,
					0x00, 0x30, 0x2e, 0x1e };

/*
 * glibc ends the CFI of clone() and clone3() before their system call, for it
 * would be wrong in the child: "syscall; test %rax, %rax; jl; je; ret". What
 * follows is the child's, with CFI again.
 */
static int add_clone(struct symbolizer_elf *e, struct symbolizer_rows_build *b,
		     const struct symbolizer_rows_gap *gap)
{
	static const uint8_t begin[] = { 0x0f, 0x05, 0x48, 0x85, 0xc0 };
	size_t len = (size_t)(gap->end - gap->start);
	struct symbolizer_rule rule = { 0 };
	uint8_t code[16];
	int n;

	/* Padding is behind other functions, and ends with its line. */
	if ((len != 10 && len != 14) || gap->end % 16 == 0 ||
	    read_code(e, gap->start, code, len) != len ||
	    memcmp(code, begin, sizeof(begin)) != 0 || code[len - 1] != 0xc3)
		return 0;
	n = symbolizer_pool_put(&b->exprs, ra_of_parent, sizeof(ra_of_parent));
	if (n < 0)
		return n;
	symbolizer_rows_plain(&rule, 8);
	rule.regs[SYMBOLIZER_REG_RA] =
		(struct symbolizer_value){ SYMBOLIZER_EXPR, 0, 0, n };
	return symbolizer_rows_put_rule(b, gap->start, gap->end, &rule);
}

/* Of a system call that never comes back the address behind it is all there is. */
static int add_behind_sigreturn(struct symbolizer_rows_build *b,
				const struct symbolizer_rows_gap *gap)
{
	struct symbolizer_rule rule;

	symbolizer_rows_sigreturn(&rule);
	return symbolizer_rows_put_rule(b, gap->start, gap->start + 1, &rule);
}

int symbolizer_rows_known(struct symbolizer_elf *e,
			  struct symbolizer_rows_build *b)
{
	struct symbolizer_rows_gap gap;
	int err = add_inits(e, b);

	for (size_t i = 0; i < b->n_first && !err; i++) {
		if (!symbolizer_rows_gap(b, i, &gap))
			continue;
		err = gap.signal ? add_behind_sigreturn(b, &gap)
				 : add_clone(e, b, &gap);
	}
	return err == -ENOMEM ? err : 0;
}
