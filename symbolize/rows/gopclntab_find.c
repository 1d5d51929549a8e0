// SPDX-License-Identifier: Apache-2.0
/*
 * gopclntab_find: finds the table, and the base of its addresses; see
 * symbolize/rows/gopclntab.h. From Go 1.18 on the base is the start of Go's text,
 * which is not that of .text if C is linked in. To 1.25 the header has it, in
 * position-independent programs only after relocation. Otherwise it is computed
 * from the runtime's moduledata, which has the address of the table and the
 * first and last address in it.
 */
#include <string.h>

#include "base/base.h"
#include "symbolize/rows/gopclntab.h"

#define FIND_PIECE 4096
#define FIND_FUNCS_MAX (1U << 22)
#define FIND_RELA_MAX (1U << 24)
#define FIND_MODULE_MAX (256ULL << 20) /* bytes of a segment */
#define FIND_STEP_BYTES 10 /* two numbers of 32 bits in LEB128 */

static const struct gopclntab_format formats[] = {
	{ 0xfffffffb, 8, 0, 0, 0, 0, 0, 0 }, /* 1.2 */
	{ 0xfffffffa, 8, 41, 0, 24, 48, 56, 0 }, /* 1.16 */
	{ 0xfffffff0, 4, 37, 24, 32, 56, 64, 304 }, /* 1.18 */
	{ 0xfffffff1, 4, 41, 24, 32, 56, 64, 320 }, /* 1.20 */
};

/* runtime.moduledata: offsets of minpc and maxpc, 1.18 to 1.26. */
#define MODULE_MINPC 160
#define MODULE_MAXPC 168

bool symbolizer_gopclntab_at(const struct gopclntab *g,
			     struct symbolizer_src *src, uint64_t at, void *dst,
			     size_t len)
{
	return at <= g->size && len <= g->size - at &&
	       symbolizer_src_read(src, g->off + at, dst, len) == 0;
}

int symbolizer_gopclntab_step(const struct gopclntab *g,
			      struct symbolizer_src *src, uint64_t *at,
			      uint64_t end, bool first, uint32_t *step,
			      uint32_t *by)
{
	size_t len = (size_t)MIN(end - *at, (uint64_t)FIND_STEP_BYTES);
	uint8_t buf[FIND_STEP_BYTES];
	struct cursor c = { buf, buf + len, false };
	const uint8_t *second;

	if (!symbolizer_gopclntab_at(g, src, *at, buf, len))
		return -1;
	*step = (uint32_t)cursor_uleb(&c);
	second = c.p;
	if (!*step && !c.bad && !first)
		return 0;
	*by = (uint32_t)cursor_uleb(&c);
	*at += (uint64_t)(c.p - buf);
	return c.bad || !*by || second - buf > 5 || c.p - second > 5 ? -1 : 1;
}

/* Reads a word of the header, or 'def' where this format has none. */
static bool gopclntab_find_header(const struct gopclntab *g, uint8_t at,
				  uint64_t def, uint64_t *out)
{
	*out = def;
	return at == 0 ||
	       symbolizer_gopclntab_at(g, g->e->src, at, out, sizeof(*out));
}

/* Magic, two zero bytes, the unit of code, pointers of 8 bytes. */
static const struct gopclntab_format *format_of(const uint8_t *p)
{
	uint32_t magic;

	if (p[4] || p[5] || p[6] != ARCH_GO_UNIT || p[7] != 8)
		return NULL;
	memcpy(&magic, p, sizeof(magic));
	for (size_t i = 0; i < ARRAY_SIZE(formats); i++)
		if (formats[i].magic == magic)
			return &formats[i];
	return NULL;
}

/* The address of function 'i'; the one after the last is their end. */
static bool pc_at(const struct gopclntab *g, uint64_t i, uint64_t *pc)
{
	*pc = 0;
	return symbolizer_gopclntab_at(g, g->e->src,
				       g->funcs + i * 2 * g->format->pc_size,
				       pc, g->format->pc_size);
}

/* Reads the header. False: it is none. */
static bool read_header(struct gopclntab *g)
{
	uint8_t head[8];

	if (!symbolizer_gopclntab_at(g, g->e->src, 0, head, sizeof(head)))
		return false;
	g->format = format_of(head);
	if (!g->format || !gopclntab_find_header(g, 8, 0, &g->n_funcs) ||
	    !g->n_funcs || g->n_funcs > FIND_FUNCS_MAX ||
	    !gopclntab_find_header(g, g->format->text_at, 0, &g->text) ||
	    !gopclntab_find_header(g, g->format->names_at, 0, &g->names) ||
	    !gopclntab_find_header(g, g->format->pcs_at, 0, &g->pcs) ||
	    !gopclntab_find_header(g, g->format->funcs_at, 16, &g->funcs))
		return false;
	g->func_base = g->format->funcs_at ? g->funcs : 0;
	return g->names < g->size && g->pcs < g->size && g->funcs < g->size &&
	       pc_at(g, 0, &g->first) && pc_at(g, g->n_funcs, &g->end);
}

/* --- the start of the text ------------------------------------------------- */

static bool gopclntab_text_fits(const struct gopclntab *g, uint64_t text)
{
	return g->first < g->end && text &&
	       symbolizer_elf_exec(g->e, text + g->first) &&
	       symbolizer_elf_exec(g->e, text + g->end - 1);
}

/* Whether these two members of moduledata belong to this table. */
static bool module_fits(struct gopclntab *g, uint64_t minpc, uint64_t maxpc)
{
	if (maxpc - minpc != g->end - g->first ||
	    !gopclntab_text_fits(g, minpc - g->first))
		return false;
	g->text = minpc - g->first;
	return true;
}

/* Whether moduledata is at this file offset. */
static bool module_at(struct gopclntab *g, uint64_t off)
{
	struct symbolizer_src *src = g->e->src;
	uint64_t pc[2];

	if (symbolizer_src_read(src, off + MODULE_MINPC, pc, sizeof(pc)) ||
	    !module_fits(g, pc[0], pc[1]))
		return false;
	if (symbolizer_src_read(src, off + g->format->gofunc_at, &g->gofunc,
				sizeof(g->gofunc)))
		g->gofunc = 0;
	return true;
}

/* Finds moduledata in the contents of a segment. */
static bool module_in(struct gopclntab *g, const struct symbolizer_elf_load *l)
{
	uint64_t size = MIN(l->size, FIND_MODULE_MAX);
	uint64_t words[FIND_PIECE / 8];
	size_t len;

	for (uint64_t at = -l->vaddr & 7; at + 8 <= size; at += len) {
		len = (size_t)MIN(sizeof(words), (size - at) & ~7ULL);
		if (symbolizer_src_read(g->e->src, l->offset + at, words, len))
			return false;
		for (size_t i = 0; i < len / 8; i++)
			if (words[i] == g->vaddr &&
			    module_at(g, l->offset + at + i * 8))
				return true;
	}
	return false;
}

/* The file offset of the dynamic relocations. */
static bool find_rela(struct symbolizer_elf *e, uint64_t *off, uint64_t *n)
{
	uint64_t vaddr, size;

	if (!symbolizer_elf_dynamic(e, DT_RELA, &vaddr) ||
	    !symbolizer_elf_dynamic(e, DT_RELASZ, &size))
		return false;
	*n = MIN(size / sizeof(Elf64_Rela), FIND_RELA_MAX);
	return symbolizer_elf_offset(e, vaddr, off) && *off <= e->src->size &&
	       *n <= (e->src->size - *off) / sizeof(Elf64_Rela);
}

/*
 * Finds moduledata by relocations. They are nearly always sorted by address; if
 * not, it is not found.
 */
static bool module_by_rela(struct gopclntab *g)
{
	uint64_t off, n, module = 0, minpc = 0;
	bool found = false;
	Elf64_Rela r;

	if (!find_rela(g->e, &off, &n))
		return false;
	for (uint64_t i = 0; i < n; i++) {
		if (symbolizer_src_read(g->e->src, off + i * sizeof(r), &r,
					sizeof(r)))
			break;
		if (ELF64_R_TYPE(r.r_info) != ARCH_R_RELATIVE)
			continue;
		if (found && r.r_offset == module + g->format->gofunc_at)
			g->gofunc = (uint64_t)r.r_addend;
		if (found && r.r_offset >= module + g->format->gofunc_at)
			break;
		if (!found && (uint64_t)r.r_addend == g->vaddr)
			module = r.r_offset;
		else if (module && r.r_offset == module + MODULE_MINPC)
			minpc = (uint64_t)r.r_addend;
		else if (module && r.r_offset == module + MODULE_MAXPC)
			found = module_fits(g, minpc, (uint64_t)r.r_addend);
	}
	return found;
}

bool symbolizer_gopclntab_module(struct gopclntab *g)
{
	if (g->format->pc_size == 8)
		return false;
	for (size_t i = 0; i < g->e->n_loads; i++)
		if (g->e->loads[i].write && module_in(g, &g->e->loads[i]))
			return true;
	return module_by_rela(g);
}

static bool find_text(struct gopclntab *g)
{
	return g->format->pc_size == 8 || gopclntab_text_fits(g, g->text) ||
	       symbolizer_gopclntab_module(g);
}

/* --- the table ------------------------------------------------------------- */

static bool find_section(struct gopclntab *g)
{
	static const char *const names[] = { ".gopclntab",
					     ".data.rel.ro.gopclntab" };
	Elf64_Shdr sh;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (!symbolizer_elf_section(g->e, names[i], &sh) ||
		    sh.sh_offset > g->e->src->size)
			continue;
		g->off = sh.sh_offset;
		g->size = MIN(sh.sh_size, g->e->src->size - sh.sh_offset);
		g->vaddr = sh.sh_addr;
		return true;
	}
	return false;
}

/* Whether to search: every Go linker writes one of these. */
static bool may_be_go(struct symbolizer_elf *e)
{
	Elf64_Shdr sh;

	return e->shnum == 0 ||
	       symbolizer_elf_section(e, ".go.buildinfo", &sh) ||
	       symbolizer_elf_section(e, ".note.go.buildid", &sh);
}

/* Searches a segment for a header at an address that is a multiple of 8. */
static bool find_in(struct gopclntab *g, const struct symbolizer_elf_load *l)
{
	uint8_t bytes[FIND_PIECE];
	size_t len;

	for (uint64_t at = -l->vaddr & 7; at + 8 <= l->size; at += len) {
		len = (size_t)MIN(sizeof(bytes), (l->size - at) & ~7ULL);
		if (symbolizer_src_read(g->e->src, l->offset + at, bytes, len))
			return false;
		for (size_t i = 0; i < len; i += 8) {
			if (!format_of(bytes + i))
				continue;
			g->off = l->offset + at + i;
			g->vaddr = l->vaddr + at + i;
			g->size = l->size - at - i;
			if (read_header(g) && find_text(g))
				return true;
		}
	}
	return false;
}

bool symbolizer_gopclntab_find(struct gopclntab *g, struct symbolizer_elf *e,
			       const char **damage)
{
	*g = (struct gopclntab){ .e = e };
	*damage = NULL;
	if (find_section(g)) {
		if (!read_header(g))
			*damage = "a header of no known version";
		else if (!find_text(g))
			*damage = "a table whose addresses count from nowhere";
		return true;
	}
	if (!may_be_go(e))
		return false;
	for (size_t i = 0; i < e->n_loads; i++)
		if (!e->loads[i].exec && find_in(g, &e->loads[i]))
			return true;
	return false;
}
