// SPDX-License-Identifier: Apache-2.0
/*
 * rows_known: pieces of C libraries that no CFI speaks of and in which samples
 * are taken all the same, see symbolize/rows/rows.h. Each is known by its bytes, and
 * only looked for where nothing is known.
 */
#include <errno.h>
#include <string.h>

#include "base/base.h"
#include "symbolize/rows/rows.h"

#define KNOWN_INIT_MAX 128 /* bytes of .init; there are some 30 */
#define KNOWN_CRT_MAX 512 /* bytes of crtstuff; there are some 200 */

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
	size_t len = symbolizer_elf_code(e, at, code, sizeof(code)), i, n;
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
	    symbolizer_elf_code(e, gap->start, code, len) != len ||
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

/* --- crtstuff ------------------------------------------------------------------- */

/* An instruction of these functions: its first bytes, its length, what it pushes. */
struct crt_insn {
	uint8_t n, len;
	int8_t push; /* words */
	uint8_t bytes[5];
};

#define CRT_NOP 16 /* not in front of a function */
#define CRT_END 17 /* what follows is another path, or function */

static const struct crt_insn crt_insns[] = {
	{ 2, 2, CRT_NOP, { 0x00, 0x00 } }, /* between sections */
	{ 1, 1, CRT_NOP, { 0xf4 } }, /* hlt */
	{ 1, 1, CRT_NOP, { 0x90 } },
	{ 2, 1, CRT_NOP, { 0x66, 0x66 } },
	{ 2, 2, CRT_NOP, { 0x66, 0x90 } },
	{ 3, 3, CRT_NOP, { 0x0f, 0x1f, 0x00 } },
	{ 3, 4, CRT_NOP, { 0x0f, 0x1f, 0x40 } },
	{ 3, 5, CRT_NOP, { 0x0f, 0x1f, 0x44 } },
	{ 4, 6, CRT_NOP, { 0x66, 0x0f, 0x1f, 0x44 } },
	{ 3, 7, CRT_NOP, { 0x0f, 0x1f, 0x80 } },
	{ 3, 8, CRT_NOP, { 0x0f, 0x1f, 0x84 } },
	{ 4, 9, CRT_NOP, { 0x66, 0x0f, 0x1f, 0x84 } },
	{ 5, 10, CRT_NOP, { 0x66, 0x2e, 0x0f, 0x1f, 0x84 } },
	{ 4, 4, 0, { 0xf3, 0x0f, 0x1e, 0xfa } }, /* endbr64 */
	{ 3, 7, 0, { 0x48, 0x8d, 0x3d } }, /* lea X(%rip), %rdi */
	{ 3, 7, 0, { 0x48, 0x8d, 0x35 } }, /* ... %rsi */
	{ 3, 7, 0, { 0x48, 0x8d, 0x05 } }, /* ... %rax */
	{ 3, 7, 0, { 0x48, 0x8b, 0x05 } }, /* mov X(%rip), %rax */
	{ 3, 7, 0, { 0x48, 0x8b, 0x3d } }, /* ... %rdi */
	{ 3, 3, 0, { 0x48, 0x39, 0xf8 } }, /* cmp %rdi, %rax */
	{ 3, 3, 0, { 0x48, 0x29, 0xfe } }, /* sub %rdi, %rsi */
	{ 3, 3, 0, { 0x48, 0x89, 0xf0 } }, /* mov %rsi, %rax */
	{ 3, 4, 0, { 0x48, 0xc1, 0xee } }, /* shr $N, %rsi */
	{ 3, 4, 0, { 0x48, 0xc1, 0xf8 } }, /* sar $N, %rax */
	{ 3, 3, 0, { 0x48, 0x01, 0xc6 } }, /* add %rax, %rsi */
	{ 3, 3, 0, { 0x48, 0xd1, 0xfe } }, /* sar %rsi */
	{ 3, 3, 0, { 0x48, 0x85, 0xc0 } }, /* test %rax, %rax */
	{ 3, 7, 0, { 0x48, 0x81, 0xee } }, /* sub $N, %rsi */
	{ 2, 6, 0, { 0x48, 0x3d } }, /* cmp $N, %rax */
	{ 1, 5, 0, { 0xb8 } }, /* mov $N, %eax */
	{ 1, 5, 0, { 0xbe } }, /* ... %esi */
	{ 1, 5, 0, { 0xbf } }, /* ... %edi */
	{ 1, 2, 0, { 0x74 } }, /* je */
	{ 1, 2, 0, { 0x75 } }, /* jne */
	{ 2, 7, 0, { 0x80, 0x3d } }, /* cmpb $N, X(%rip) */
	{ 3, 8, 0, { 0x48, 0x83, 0x3d } }, /* cmpq $N, X(%rip) */
	{ 2, 7, 0, { 0xc6, 0x05 } }, /* movb $N, X(%rip) */
	{ 1, 5, 0, { 0xe8 } }, /* call */
	{ 1, 1, 1, { 0x55 } }, /* push %rbp */
	{ 3, 3, 0, { 0x48, 0x89, 0xe5 } }, /* mov %rsp, %rbp */
	{ 1, 1, -1, { 0x5d } }, /* pop %rbp */
	{ 1, 1, CRT_END, { 0xc3 } }, /* ret */
	{ 2, 2, CRT_END, { 0xff, 0xe0 } }, /* jmp *%rax */
	{ 1, 5, CRT_END, { 0xe9 } }, /* jmp */
};

static const struct crt_insn *crt_insn(const uint8_t *code, size_t len)
{
	const struct crt_insn *i = crt_insns;

	for (; i < crt_insns + ARRAY_SIZE(crt_insns); i++)
		if (i->len <= len && !memcmp(code, i->bytes, i->n))
			return i;
	return NULL;
}

/* As far as it is such code; 'pushed' is there how rbp was kept. */
static int add_crt_code(struct symbolizer_rows_build *b, uint64_t at,
			const uint8_t *code, size_t len)
{
	struct symbolizer_rule rules[2] = { 0 };
	const struct crt_insn *insn;
	int pushed = 0, err = 0;
	size_t from = 0, i;
	bool inside = false;

	symbolizer_rows_plain(&rules[0], 8);
	symbolizer_rows_plain(&rules[1], 16);
	rules[1].regs[6] =
		(struct symbolizer_value){ SYMBOLIZER_AT_CFA, 0, 0, -16 };
	for (i = 0; !err && (insn = crt_insn(code + i, len - i));
	     i += insn->len) {
		if (insn->push == CRT_NOP && !inside)
			continue;
		if (!inside)
			from = i;
		inside = insn->push != CRT_END;
		if (inside && (!insn->push || insn->push == CRT_NOP))
			continue;
		if (inside ? (pushed + insn->push) >> 1 : pushed)
			break; /* more than one, or what nobody pushed */
		err = symbolizer_rows_put_rule(b, at + from, at + i + insn->len,
					       &rules[pushed]);
		from = i + insn->len;
		pushed = inside ? pushed + insn->push : 0;
	}
	return err;
}

/*
 * GCC's crtstuff.c is compiled without CFI: register_tm_clones() and the like, of
 * which each library and program runs three, with a page fault now and then. They
 * are one piece, and known by __do_global_dtors_aux(): "cmpb $0, X; jne; push".
 */
static int add_crt(struct symbolizer_elf *e, struct symbolizer_rows_build *b,
		   uint64_t start, uint64_t end)
{
	uint8_t code[KNOWN_CRT_MAX];
	size_t len = (size_t)MIN(end - start, sizeof(code)), i;

	len = symbolizer_elf_code(e, start, code, len);
	for (i = 0; i + 10 <= len; i++)
		if (code[i] == 0x80 && code[i + 1] == 0x3d && !code[i + 6] &&
		    code[i + 7] == 0x75 && code[i + 9] == 0x55)
			return add_crt_code(b, start, code, len);
	return 0;
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
		if (!err && !gap.signal)
			err = add_crt(e, b, gap.start, gap.end);
	}
	return err == -ENOMEM ? err : 0;
}
