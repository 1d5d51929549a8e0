// SPDX-License-Identifier: Apache-2.0
/* arch_x86_64: see symbolize/arch.h. */
#if defined(__x86_64__)
#include <string.h>
#include <ucontext.h>

#include "base/base.h"
#include "symbolize/rows/rows.h"

const char *const symbolizer_reg_names[SYMBOLIZER_REGS] = {
	"rax", "rdx", "rcx", "rbx", "rsi", "rdi", ARCH_FP_NAME, "rsp", "r8",
	"r9",  "r10", "r11", "r12", "r13", "r14", "r15",	"ra",
};

uintptr_t arch_signal_pc(const void *context)
{
	const ucontext_t *uc = context;

	return (uintptr_t)uc->uc_mcontext.gregs[REG_RIP];
}

/* --- relocations ----------------------------------------------------------------- */

/* 4.4.1; only those that assemblers write into debug information. */
bool arch_relocation(uint32_t type, struct arch_relocation *out)
{
	static const struct {
		uint32_t type;
		struct arch_relocation how;
	} known[] = {
		{ R_X86_64_NONE, { 0, false, false } },
		{ R_X86_64_64, { 8, false, false } },
		{ R_X86_64_PC64, { 8, true, false } },
		{ R_X86_64_32, { 4, false, false } },
		{ R_X86_64_32S, { 4, false, true } },
		{ R_X86_64_PC32, { 4, true, true } },
		/* Where a variable of a thread is, which is not read. */
		{ R_X86_64_DTPOFF64, { 0, false, false } },
		{ R_X86_64_DTPOFF32, { 0, false, false } },
	};

	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		if (known[i].type != type)
			continue;
		*out = known[i].how;
		return true;
	}
	return false;
}

/* --- rules of single frames ------------------------------------------------- */

void arch_rule_default(struct symbolizer_rule *rule)
{
	rule->regs[SYMBOLIZER_REG_SP].from = SYMBOLIZER_CFA;
	rule->regs[SYMBOLIZER_REG_RA] =
		(struct symbolizer_value){ SYMBOLIZER_AT_CFA, 0, 0, -8 };
}

/*
 * rsp is where the handler left it: at the ucontext, whose registers follow in
 * this order behind 40 bytes (arch/x86/include/uapi/asm/sigcontext.h).
 */
void arch_rule_sigreturn(struct symbolizer_rule *rule)
{
	static const uint8_t order[] = { 8, 9, 10, 11, 12, 13, 14, 15, 5,
					 4, 6, 3,  1,  0,  2,  7,  16 };

	memset(rule, 0, sizeof(*rule));
	for (size_t i = 0; i < ARRAY_SIZE(order); i++)
		rule->regs[order[i]] =
			(struct symbolizer_value){ SYMBOLIZER_AT_REG,
						   SYMBOLIZER_REG_SP, 0,
						   40 + 8 * (int32_t)i };
	rule->cfa = rule->regs[SYMBOLIZER_REG_SP];
	rule->regs[SYMBOLIZER_REG_SP] =
		(struct symbolizer_value){ .from = SYMBOLIZER_CFA };
	rule->signal = true;
}

void arch_rule_frame(struct symbolizer_rule *rule, int32_t size, bool fp_saved)
{
	arch_rule_default(rule);
	rule->cfa =
		(struct symbolizer_value){ SYMBOLIZER_REG, SYMBOLIZER_REG_SP, 0,
					   size + ARCH_ENTRY_CFA };
	if (fp_saved)
		rule->regs[SYMBOLIZER_REG_FP] =
			(struct symbolizer_value){ SYMBOLIZER_AT_CFA, 0, 0,
						   -16 };
}

/*
 * Saved under the return address: by "push %rbp" just executed (Go 1.21 on), or
 * by the next instruction, "mov %rbp, size-8(%rsp)".
 */
uint64_t arch_go_fp_saved(struct symbolizer_elf *e, struct symbolizer_src *code,
			  uint64_t loc, int32_t size)
{
	uint8_t b[9] = { 0 };
	uint64_t off;
	int32_t disp;

	if (!symbolizer_elf_offset(e, loc - 1, &off) ||
	    symbolizer_src_read(code, off, b, sizeof(b)))
		return UINT64_MAX;
	if (b[0] == 0x55 && size == 8)
		return loc;
	if (b[1] == 0x48 && b[2] == 0x89 && b[3] == 0x6c && b[4] == 0x24)
		return (int8_t)b[5] == size - 8 ? loc + 5 : UINT64_MAX;
	if (b[1] != 0x48 || b[2] != 0x89 || b[3] != 0xac || b[4] != 0x24)
		return UINT64_MAX;
	memcpy(&disp, b + 5, sizeof(disp));
	return disp == size - 8 ? loc + 8 : UINT64_MAX;
}

/*
 * Of a position-independent program the linker has replaced a load from the GOT by
 * mov $DISP, %rcx; mov %fs:(%rcx), %rax. Of others: mov %fs:DISP, %rax.
 */
static bool is_go_load(const uint8_t *p, int32_t *disp)
{
	static const uint8_t direct[] = { 0x64, 0x48, 0x8b, 0x04, 0x25 };
	static const uint8_t constant[] = { 0x48, 0xc7, 0xc1 };
	static const uint8_t indirect[] = { 0x64, 0x48, 0x8b, 0x01 };
	size_t at = sizeof(direct);

	if (memcmp(p, direct, sizeof(direct)) != 0) {
		at = sizeof(constant);
		if (memcmp(p, constant, at) != 0 ||
		    memcmp(p + at + 4, indirect, sizeof(indirect)) != 0)
			return false;
	}
	memcpy(disp, p + at, sizeof(*disp));
	return true;
}

/* It loads g, then compares it with m.curg: cmp DISP(%rbx), %rax, or the other way. */
bool arch_go_layout(struct symbolizer_elf *e, struct symbolizer_src *code,
		    uint64_t start, uint64_t end, struct symbolizer_go *out)
{
	size_t len = (size_t)MIN(end - start, (uint64_t)128);
	uint8_t b[128 + 16] = { 0 };
	uint64_t off;
	struct symbolizer_go go = { 0 };

	if (!symbolizer_elf_offset(e, start, &off) ||
	    symbolizer_src_read(code, off, b, len))
		return false;
	for (size_t i = 0; i < len; i++) {
		if (!go.tls && is_go_load(b + i, &go.tls))
			continue;
		if (!go.tls || b[i] != 0x48 || (b[i + 1] & 0xfd) != 0x39 ||
		    b[i + 2] != 0x83)
			continue;
		memcpy(&go.curg, b + i + 3, sizeof(go.curg));
		if (!symbolizer_go_is_known(&go))
			return false;
		*out = go;
		return true;
	}
	return false;
}

/* --- PLT -------------------------------------------------------------------- */

/*
 * rsp + 8 + (((rip & 15) >= n) << 3), since the stub pushes its number after 'n'
 * bytes (binutils, elf64-x86-64.c; the same in lld). As opcodes: breg7 8,
 * breg16 0, lit15, and, lit n, ge, lit3, shl, plus.
 */
bool arch_plt_expr(const uint8_t *expr, size_t len, int32_t *n)
{
	static const uint8_t want[] = { 0x77, 0x08, 0x80, 0x00, 0x3f, 0x1a,
					0x30, 0x2a, 0x33, 0x24, 0x22 };

	if (len != sizeof(want) || memcmp(expr, want, 6) != 0 ||
	    memcmp(expr + 7, want + 7, len - 7) != 0)
		return false;
	*n = expr[6] - want[6];
	return *n >= 0 && *n <= 15;
}

static size_t endbr_len(const uint8_t *code)
{
	static const uint8_t endbr64[] = { 0xf3, 0x0f, 0x1e, 0xfa };

	return memcmp(code, endbr64, sizeof(endbr64)) ? 0 : sizeof(endbr64);
}

/*
 * jmp *disp(%rip), behind an endbr64 and a bnd prefix where there are any. 8
 * bytes long when it is filled up with a two-byte nop, as in .plt.got.
 */
size_t arch_plt_stub(const uint8_t *code, uint64_t at, uint64_t *slot)
{
	size_t i = endbr_len(code);
	int32_t disp;

	i += code[i] == 0xf2;
	if (code[i] != 0xff || code[i + 1] != 0x25)
		return 0;
	memcpy(&disp, code + i + 2, sizeof(disp));
	*slot = at + i + 6 + (uint64_t)(int64_t)disp;
	return i == 0 && code[6] == 0x66 && code[7] == 0x90 ? 8 : 16;
}

/* --- where stacks begin ------------------------------------------------------ */

/*
 * The entry stub clears the frame pointer (3.4.1) or, in the dynamic linker,
 * passes the stack pointer on: mov %rsp, %rdi.
 */
bool arch_is_start(const uint8_t *code)
{
	static const uint8_t pass[] = { 0x48, 0x89, 0xe7 };
	size_t i = endbr_len(code);

	if (!memcmp(code + i, pass, sizeof(pass)))
		return true;
	i += code[i] == 0x48;
	return code[i] == 0x31 && code[i + 1] == 0xed; /* xor %ebp, %ebp */
}

/* A call, relative or through a slot, and hlt behind it. */
static bool is_start_call(const uint8_t *p, size_t len)
{
	if (len >= 7 && p[0] == 0xff && p[1] == 0x15)
		return p[6] == 0xf4;
	if (len >= 7 && p[0] == 0x67 && p[1] == 0xe8) /* was through a slot */
		return p[6] == 0xf4;
	return len >= 6 && p[0] == 0xe8 && p[5] == 0xf4;
}

/* lea main(%rip), %rdi; not position-independent: mov $main, %rdi. */
bool arch_start_main(const uint8_t *code, size_t len, uint64_t at, uint64_t *to)
{
	static const uint8_t lea[] = { 0x48, 0x8d, 0x3d };
	static const uint8_t mov[] = { 0x48, 0xc7, 0xc7 };
	int32_t n;

	for (size_t i = 0; i + 7 <= len; i++) {
		memcpy(&n, code + i + 3, sizeof(n));
		*to = at + i + 7 + (uint64_t)(int64_t)n;
		if (memcmp(code + i, lea, sizeof(lea)) != 0) {
			*to = (uint64_t)(int64_t)n;
			if (memcmp(code + i, mov, sizeof(mov)) != 0)
				continue;
		}
		if (is_start_call(code + i + 7, len - i - 7))
			return true;
	}
	return false;
}

bool arch_branch(const uint8_t *code, uint64_t at, uint64_t *to)
{
	int32_t rel;

	memcpy(&rel, code + 1, sizeof(rel));
	*to = at + 5 + (uint64_t)(int64_t)rel;
	return code[0] == 0xe8 || code[0] == 0xe9;
}

/* call *%reg or call *(%reg), of two bytes, which may have another in front. */
static bool is_indirect_call(const uint8_t *p)
{
	return p[0] == 0xff && ((p[1] & 0xf8) == 0xd0 || (p[1] & 0xf8) == 0x10);
}

/*
 * For the call at p, before which 8 bytes are: 0, or how many bytes before it
 * the indirect call is whose result it passes.
 */
static size_t is_last_call(const struct arch_exits *exits, const uint8_t *p,
			   uint64_t at)
{
	bool thread, mov = p[-2] == 0x89 && p[-1] == 0xc7;
	uint64_t to;

	arch_branch(p, at, &to);
	thread = !exits->any && to == exits->thread_exit;
	if (!exits->any && to != exits->exit && !thread)
		return 0;
	/* mov %eax, %edi; in a thread mov %rax, %rdi or movslq %eax, %rdi */
	if (!thread && mov && p[-3] != 0x48)
		return is_indirect_call(p - 4) ? 4 : 0;
	if (thread && p[-3] == 0x48 &&
	    (mov || (p[-2] == 0x63 && p[-1] == 0xf8)))
		return is_indirect_call(p - 5) ? 5 : 0;
	return 0;
}

/* musl's code that signal handlers return to; its system call is at 'p'. */
static int add_sigreturn(struct symbolizer_rows_build *b, const uint8_t *p,
			 uint64_t at)
{
	static const uint8_t code[] = { 0x0f, 0, 0, 0, 0x0f, 0x05 };
	struct symbolizer_rule rule;
	size_t len;

	if (memcmp(p - 4, code, sizeof(code)) != 0)
		return 0;
	/* mov $15, %eax, or %rax */
	len = p[-5] == 0xb8 ? 5 : 7;
	if (len == 7 && (p[-7] != 0x48 || p[-6] != 0xc7 || p[-5] != 0xc0))
		return 0;
	arch_rule_sigreturn(&rule);
	/* And the address behind it, where the call appears to be meanwhile. */
	return symbolizer_rows_put_rule(b, at - len, at + 3, &rule);
}

int arch_add_starts(struct symbolizer_rows_build *b, uint64_t at,
		    const uint8_t *code, size_t len,
		    const struct arch_exits *exits)
{
	size_t front;
	int err = 0;

	for (size_t i = 8; i + 5 <= len && !err; i++) {
		if (code[i] == 0x0f)
			err = add_sigreturn(b, code + i, at + i);
		if (code[i] != 0xe8)
			continue;
		front = is_last_call(exits, code + i, at + i);
		if (front)
			err = symbolizer_rows_put_root(b, at + i - front,
						       at + i + 5);
	}
	return err;
}

/* --- _init and _fini ---------------------------------------------------------- */

static int put_frame(struct symbolizer_rows_build *b, uint64_t from,
		     uint64_t to, int32_t size)
{
	struct symbolizer_rule rule = { 0 };

	arch_rule_frame(&rule, size, false);
	return symbolizer_rows_put_rule(b, from, to, &rule);
}

/* "sub $8, %rsp" or "push %rax" in front; what undoes it and "ret" at the end. */
int arch_add_init(struct symbolizer_rows_build *b, uint64_t at,
		  const uint8_t *code, size_t len)
{
	static const uint8_t sub[] = { 0x48, 0x83, 0xec, 0x08 };
	static const uint8_t end_sub[] = { 0x48, 0x83, 0xc4, 0x08, 0xc3 };
	static const uint8_t end_push[] = { 0x58, 0xc3 };
	const uint8_t *end = end_sub;
	size_t n = sizeof(end_sub), i = len < 9 ? 0 : endbr_len(code);
	uint64_t ret;
	int err;

	if (len < i + sizeof(sub) + sizeof(end_sub))
		return 0;
	if (!memcmp(code + i, sub, sizeof(sub))) {
		i += sizeof(sub);
	} else if (code[i++] == 0x50) {
		end = end_push;
		n = sizeof(end_push);
	} else {
		return 0;
	}
	end = memmem(code + i, len - i, end, n);
	if (!end)
		return 0;
	ret = at + (size_t)(end - code) + n - 1;
	err = put_frame(b, at, at + i, 0);
	if (!err)
		err = put_frame(b, ret, ret + 1, 0);
	if (!err)
		err = put_frame(b, at + i, ret, 8);
	return err;
}

/* --- clone --------------------------------------------------------------------- */

/* *rsp, or 0, no caller, where rax is 0: *rsp * (rax != 0). */
static const uint8_t ra_of_parent[] = { 0x77, 0x00, 0x06, 0x70,
					0x00, 0x30, 0x2e, 0x1e };

/*
 * glibc ends the CFI of clone() and clone3() before their system call, for it
 * would be wrong in the child: "syscall; test %rax, %rax; jl; je; ret". What
 * follows is the child's, with CFI again.
 */
static int add_clone(struct symbolizer_rows_build *b,
		     const struct symbolizer_rows_gap *gap, const uint8_t *code,
		     size_t len)
{
	static const uint8_t begin[] = { 0x0f, 0x05, 0x48, 0x85, 0xc0 };
	struct symbolizer_rule rule = { 0 };
	int n;

	/* Padding is behind other functions, and ends with its line. */
	if ((len != 10 && len != 14) || gap->end - gap->start != len ||
	    gap->end % 16 == 0 || memcmp(code, begin, sizeof(begin)) != 0 ||
	    code[len - 1] != 0xc3)
		return 0;
	n = symbolizer_pool_put(&b->exprs, ra_of_parent, sizeof(ra_of_parent));
	if (n < 0)
		return n;
	arch_rule_frame(&rule, 0, false);
	rule.regs[SYMBOLIZER_REG_RA] =
		(struct symbolizer_value){ SYMBOLIZER_EXPR, 0, 0, n };
	return symbolizer_rows_put_rule(b, gap->start, gap->end, &rule);
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
	{ 1, 1, CRT_NOP, { 0x66 } }, /* in front of the others */
	{ 4, 9, CRT_NOP, { 0x2e, 0x0f, 0x1f, 0x84 } },
	{ 3, 3, CRT_NOP, { 0x0f, 0x1f, 0x00 } },
	{ 3, 4, CRT_NOP, { 0x0f, 0x1f, 0x40 } },
	{ 3, 5, CRT_NOP, { 0x0f, 0x1f, 0x44 } },
	{ 3, 7, CRT_NOP, { 0x0f, 0x1f, 0x80 } },
	{ 3, 8, CRT_NOP, { 0x0f, 0x1f, 0x84 } },
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

/*
 * Adds rows as far as the code is made of crt_insns; 'pushed' is 1 where rbp is
 * saved.
 */
static int add_crt_code(struct symbolizer_rows_build *b, uint64_t at,
			const uint8_t *code, size_t len)
{
	struct symbolizer_rule rules[2] = { 0 };
	const struct crt_insn *insn;
	int pushed = 0, err = 0;
	size_t from = 0, i;
	bool inside = false;

	arch_rule_frame(&rules[0], 0, false);
	arch_rule_frame(&rules[1], 8, true);
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
			break; /* a second push, or a pop without one */
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
static int add_crt(struct symbolizer_rows_build *b, uint64_t at,
		   const uint8_t *code, size_t len)
{
	for (size_t i = 0; i + 10 <= len; i++)
		if (code[i] == 0x80 && code[i + 1] == 0x3d && !code[i + 6] &&
		    code[i + 7] == 0x75 && code[i + 9] == 0x55)
			return add_crt_code(b, at, code, len);
	return 0;
}

int arch_add_gap(struct symbolizer_rows_build *b,
		 const struct symbolizer_rows_gap *gap, const uint8_t *code,
		 size_t len)
{
	int err = add_clone(b, gap, code, len);

	return err ? err : add_crt(b, gap->start, code, len);
}
#endif /* __x86_64__ */
