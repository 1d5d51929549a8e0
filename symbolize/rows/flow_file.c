// SPDX-License-Identifier: Apache-2.0
/*
 * flow_file: what flow takes from a file, and the rows it gives; see
 * symbolize/rows/flow.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "symbolize/elf/plt.h"
#include "symbolize/rows/flow.h"

#define SYMBOLS_MAX (1U << 20)
#define RELS_MAX (1U << 20)
#define INIT_MAX 4096 /* functions in .init_array */
#define COMPARE_BACK 12 /* instructions before a jump */

/* --- starts ----------------------------------------------------------------- */

static void flow_mark(struct flow *f, uint64_t addr, enum flow_mark_kind what)
{
	uint64_t off = addr - f->base - f->start;

	if (addr >= f->base + f->start && off < f->size)
		f->marks[off] |= (uint8_t)what;
}

static void mark_symbols(struct flow *f)
{
	const struct symbolizer_elf_symbols *tab;
	Elf64_Sym sym;

	for (int t = 0; t < SYMBOLIZER_N_TABS; t++) {
		tab = &f->e->tabs[t];
		for (uint64_t i = 1; i < MIN(tab->count, SYMBOLS_MAX); i++) {
			if (symbolizer_elf_sym(f->e, tab, i, &sym))
				break;
			if (sym.st_shndx != SHN_UNDEF &&
			    (ELF64_ST_TYPE(sym.st_info) == STT_FUNC ||
			     ELF64_ST_TYPE(sym.st_info) == STT_GNU_IFUNC))
				flow_mark(f, sym.st_value, FLOW_START);
		}
	}
}

/* Addresses that the dynamic linker stores: of functions, labels and data. */
static void mark_relocated(struct flow *f)
{
	struct symbolizer_elf_rel rel;

	for (size_t t = 0; t < f->e->n_rels; t++)
		for (uint64_t i = 0; i < MIN(f->e->rels[t].count, RELS_MAX);
		     i++) {
			if (symbolizer_elf_rel(f->e, &f->e->rels[t], i, &rel))
				break;
			if (rel.type == ARCH_R_RELATIVE)
				flow_mark(f, rel.addend, FLOW_WEAK);
		}
}

static void mark_init(struct flow *f)
{
	static const char *const arrays[] = { ".preinit_array", ".init_array",
					      ".fini_array" };
	static const int64_t tags[] = { DT_INIT, DT_FINI };
	uint64_t addr;
	Elf64_Shdr sh;

	flow_mark(f, f->e->entry, FLOW_START);
	for (size_t i = 0; i < ARRAY_SIZE(tags); i++)
		if (symbolizer_elf_dynamic(f->e, tags[i], &addr))
			flow_mark(f, addr, FLOW_START);
	for (size_t i = 0; i < ARRAY_SIZE(arrays); i++) {
		if (!symbolizer_elf_section(f->e, arrays[i], &sh))
			continue;
		for (uint64_t k = 0; k < MIN(sh.sh_size / 8, INIT_MAX); k++)
			if (!symbolizer_src_read(f->e->src,
						 sh.sh_offset + k * 8, &addr,
						 sizeof(addr)))
				flow_mark(f, addr, FLOW_START);
	}
}

/* Of C libraries, and of the compilers' runtimes. */
static int add_final(void *arg, uint64_t start, uint64_t end, uint32_t name)
{
	static const char *const names[] = {
		"abort",
		"exit",
		"_exit",
		"_Exit",
		"quick_exit",
		"longjmp",
		"siglongjmp",
		"_longjmp",
		"pthread_exit",
		"thrd_exit",
		"__assert_fail",
		"__stack_chk_fail",
		"_Unwind_Resume",
		"__cxa_throw",
		"__cxa_rethrow",
		"__cxa_bad_cast",
		"__libc_start_main",
		"_ZSt9terminatev",
	};
	struct flow *f = arg;
	const struct symbolizer_elf_symbols *tab =
		&f->e->tabs[SYMBOLIZER_DYNSYM];
	char text[32];
	int len = symbolizer_src_string(f->e->src, tab->str + name,
					tab->str + tab->str_size, text,
					sizeof(text));

	(void)end;
	for (size_t i = 0; len > 0 && i < ARRAY_SIZE(names); i++) {
		if (strcmp(names[i], text) != 0)
			continue;
		if (VECTOR_ROOM(f->final, f->n_final, f->cap_final))
			return -ENOMEM;
		f->final[f->n_final++] = (uint32_t)(start - f->base);
	}
	return 0;
}

bool flow_is_final(const struct flow *f, uint32_t at)
{
	for (size_t i = 0; i < f->n_final; i++)
		if (f->final[i] == at)
			return true;
	return false;
}

/* The starts that the file tells, and functions elsewhere that never return. */
static int flow_starts(struct flow *f)
{
	mark_symbols(f);
	mark_relocated(f);
	mark_init(f);
	return symbolizer_plt_stubs(f->e, add_final, f);
}

/* --- tables of switch statements --------------------------------------------- */

/* The function of an instruction, by the starts before and behind it. */
static void function_bounds(struct flow *f, uint32_t at, uint32_t *from,
			    uint32_t *to)
{
	uint32_t off = at - f->start;
	uint32_t low = off - MIN(off, FLOW_SPAN);
	uint32_t high = off + MIN(f->size - off, FLOW_SPAN);

	for (*from = off; *from > low && !flow_is_start(f, f->start + *from);)
		--*from;
	for (*to = off + 1; *to < high && !flow_is_start(f, f->start + *to);)
		++*to;
	f->steps += (*to - *from) / 256;
	*from += f->start;
	*to += f->start;
}

/* The number of entries, by the comparison before the jump; or the most there may be. */
static uint32_t table_entries(const struct flow *f, uint32_t at)
{
	const struct flow_node *node;

	for (int i = 0; i < COMPARE_BACK; i++) {
		for (uint32_t len = 1;; len++) {
			if (len > 15 || len > at - f->start)
				return FLOW_TABLE_MAX;
			node = flow_at(f, at - len);
			if (node && node->reached && node->in.len == len)
				break;
		}
		at = node->in.at;
		if (node->in.op == FLOW_COMPARE && node->in.n > 0 &&
		    node->in.n < FLOW_TABLE_MAX)
			return (uint32_t)node->in.n + 1;
	}
	return FLOW_TABLE_MAX;
}

/* Where entry 'i' of the table leads; false: nowhere. */
static bool table_entry(const struct flow *f, uint32_t table, uint32_t i,
			bool wide, uint32_t *to)
{
	uint64_t at = f->base + table + (uint64_t)i * (wide ? 8 : 4), off;
	uint64_t word = 0;

	if (!symbolizer_elf_offset(f->e, at, &off) ||
	    symbolizer_src_read(f->e->src, off, &word, wide ? 8 : 4))
		return false;
	word = wide ? word - f->base : table + (uint64_t)(int32_t)word;
	*to = (uint32_t)word;
	return word < FLOW_NOWHERE;
}

/* Notes a table; the entries that it has at most, up to the next one. */
static uint32_t note_table(struct flow *f, uint32_t table, uint32_t size)
{
	uint32_t most = FLOW_TABLE_MAX;
	bool known = false;

	for (size_t i = 0; i < f->n_tables; i++) {
		known |= f->tables[i] == table;
		if (f->tables[i] > table)
			most = MIN(most, (f->tables[i] - table) / size);
	}
	f->steps += f->n_tables / 256;
	if (!known && !VECTOR_ROOM(f->tables, f->n_tables, f->cap_tables))
		f->tables[f->n_tables++] = table;
	return most;
}

/* In one function there is no other state than that of the jump. */
void flow_table(struct flow *f, const struct flow_insn *in,
		const struct flow_state *st)
{
	bool wide = in->op == FLOW_JUMP_TABLE;
	uint32_t reg = !wide && in->a < FLOW_REGS ? st->reg[in->a] : 0;
	uint32_t table = wide ? in->to : reg & ~FLOW_KIND;
	uint32_t n, to, low, high;

	f->n_targets = 0;
	if (wide ? table == FLOW_NOWHERE : (reg & FLOW_KIND) != FLOW_IS_TARGET)
		return;
	function_bounds(f, in->at, &low, &high);
	n = MIN(table_entries(f, in->at), note_table(f, table, wide ? 8 : 4));
	for (uint32_t i = 0; i < n; i++) {
		if (!table_entry(f, table, i, wide, &to) || to < low ||
		    to >= high)
			break;
		f->targets[f->n_targets++] = to;
	}
	f->steps += f->n_targets;
	if (f->n_targets && table - f->start < f->size)
		f->marks[table - f->start] |= FLOW_DATA;
}

/* --- rows ------------------------------------------------------------------- */

static bool rule_of(const struct flow_state *st, struct symbolizer_rule *rule)
{
	bool by_fp = st->sp == FLOW_UNKNOWN;

	if (by_fp && st->fp == FLOW_UNKNOWN)
		return false;
	memset(rule, 0, sizeof(*rule));
	arch_rule_default(rule);
	rule->cfa = (struct symbolizer_value){
		.from = SYMBOLIZER_REG,
		.reg = by_fp ? SYMBOLIZER_REG_FP : SYMBOLIZER_REG_SP,
		.n = by_fp ? st->fp : st->sp,
	};
	for (int i = 0; i < FLOW_REGS; i++) {
		if (i == SYMBOLIZER_REG_SP || arch_flow_scratch & 1U << i)
			continue;
		if (st->saved[i] == FLOW_LOST)
			rule->regs[i].from = SYMBOLIZER_UNDEFINED;
		else if (st->saved[i])
			rule->regs[i] = (struct symbolizer_value){
				.from = SYMBOLIZER_AT_CFA,
				.n = -st->saved[i],
			};
	}
	return true;
}

/* The rows of what is reached without a gap from 'at' on, up to 'limit'; its end. */
static uint32_t add_run(struct flow *f, struct symbolizer_rows_build *b,
			uint32_t at, uint32_t limit)
{
	uint32_t end = at;
	const struct flow_node *node;
	struct symbolizer_rule rule;
	int err;

	while (end < limit && (node = flow_at(f, end)) && node->reached)
		end += node->in.len;
	if (!symbolizer_rows_func(b, f->base + at, f->base + end, &err)) {
		f->err = err;
		return end;
	}
	for (; at < end && !f->err; at += flow_at(f, at)->in.len)
		f->err = symbolizer_rows_add(
			b, f->base + at,
			rule_of(&flow_at(f, at)->state, &rule) ? &rule : NULL);
	return end;
}

static void add_rows(struct flow *f, struct symbolizer_rows_build *b)
{
	uint32_t at = f->start, end = f->start + f->size;
	const struct flow_node *node;
	uint64_t next;

	while (at < end && !f->err) {
		node = flow_at(f, at);
		if (!node || !node->reached ||
		    symbolizer_rows_covered(b, f->base + at, &next))
			at++;
		else
			at = add_run(f, b, at,
				     (uint32_t)MIN(next - f->base,
						   (uint64_t)end));
	}
}

/* The code of the first executable segment; false: it is too large, or none is there. */
static bool load_code(struct flow *f)
{
	const struct symbolizer_elf_load *l, *exec = NULL;

	for (l = f->e->loads; l < f->e->loads + f->e->n_loads; l++)
		if (l->exec && (!exec || l->vaddr < exec->vaddr))
			exec = l;
	if (!exec || !exec->size || exec->size > FLOW_TEXT_MAX)
		return false;
	f->base = exec->vaddr;
	for (l = f->e->loads; l < f->e->loads + f->e->n_loads; l++)
		f->base = MIN(f->base, l->vaddr);
	if (exec->vaddr - f->base >= FLOW_VALUE_MAX)
		return false;
	f->start = (uint32_t)(exec->vaddr - f->base);
	f->size = (uint32_t)exec->size;
	f->code = malloc(f->size);
	f->marks = calloc(f->size, 1);
	f->index = calloc(f->size, sizeof(*f->index));
	if (!f->code || !f->marks || !f->index)
		f->err = -ENOMEM;
	return f->err || symbolizer_elf_code(f->e, exec->vaddr, f->code,
					     f->size) == f->size;
}

int flow_init(struct flow *f, struct symbolizer_elf *e)
{
	memset(f, 0, sizeof(*f));
	f->e = e;
	f->fixed = e->type == ET_EXEC;
	if (!load_code(f))
		return -E2BIG;
	return f->err ? f->err : flow_starts(f);
}

void flow_fini(struct flow *f)
{
	free(f->code);
	free(f->marks);
	free(f->index);
	free(f->nodes);
	free(f->queue);
	free(f->tables);
	free(f->final);
}

int symbolizer_flow(struct symbolizer_elf *e, struct symbolizer_rows_build *b)
{
	struct flow *f = malloc(sizeof(*f));
	int err = -ENOMEM;

	if (!f)
		return err;
	err = flow_init(f, e);
	if (!err)
		err = flow_solve(f);
	if (!err) {
		add_rows(f, b);
		err = f->err;
	}
	flow_fini(f);
	free(f);
	return err == -ENOMEM ? err : 0;
}
