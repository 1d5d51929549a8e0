// SPDX-License-Identifier: Apache-2.0
/* dwarf_table: see symbolize/dwarf/dwarf_table.h. */
#include <dwarf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symbolize/dwarf/dwarf_pack.h"
#include "symbolize/dwarf/dwarf_table.h"

#define TABLE_INLINED_MAX 64 /* functions at an address */
#define TABLE_FILES 256 /* paths remembered while a table is made */

struct dwarf_table {
	struct dwarf_bounds bounds;
	/*
	 * a: a call, as its offset in 'calls' plus one; 0: none. b: 0.
	 * A call is four LEB128 numbers: its function, a text; how far before it the
	 * call around it is, 0: none; file, a text, and line of the call.
	 */
	struct dwarf_pack pieces;
	/* a: the file, a text, doubled; odd: a sequence ends. b: the line. */
	struct dwarf_pack lines;
	struct strbuf calls;
};

struct table_call {
	uint32_t function, up, file, line;
};

/* Paths by the address of libdw's text. */
struct table_file {
	const char *file;
	uint32_t text;
};

struct table_build {
	struct dwarf_table *t;
	struct dwarf_text *texts;
	const char *dir; /* of the unit, or NULL */
	Dwarf_Files *files;
	int err;
	struct table_file known[TABLE_FILES];
};

/* --- texts ------------------------------------------------------------------- */

/*
 * The path of a source file; a relative one begins in the unit's directory. Names of
 * DWARF 5 that glibc is built with have a relative directory in front already.
 */
static uint32_t build_path(struct table_build *b, const char *file)
{
	size_t len = b->dir ? strlen(b->dir) : 0;
	char path[SOURCE_TEXT_MAX];
	uint32_t text = 0;

	if (!b->dir || *file == '/' ||
	    (*b->dir != '/' && !strncmp(file, b->dir, len) &&
	     file[len] == '/')) {
		b->err = b->err ?: dwarf_text_add(b->texts, file, &text);
		return text;
	}
	if (snprintf(path, sizeof(path), "%s/%s", b->dir, file) >= 0)
		b->err = b->err ?: dwarf_text_add(b->texts, path, &text);
	return text;
}

static uint32_t build_file(struct table_build *b, const char *file)
{
	struct table_file *known;

	if (!file)
		return 0;
	known = &b->known[(uintptr_t)file / 16 % TABLE_FILES];
	if (known->file != file)
		*known = (struct table_file){ file, build_path(b, file) };
	return known->text;
}

static uint32_t attr_number(Dwarf_Die *die, unsigned int name)
{
	Dwarf_Attribute a;
	Dwarf_Word v;

	if (!dwarf_attr_integrate(die, name, &a) || dwarf_formudata(&a, &v) ||
	    v > UINT32_MAX)
		return 0;
	return (uint32_t)v;
}

static uint32_t build_function(struct table_build *b, Dwarf_Die *die)
{
	struct dwarf_function fn = { .text = "" };
	const char *linkage = NULL;
	uint32_t text = 0;
	Dwarf_Attribute a;

	if (dwarf_attr_integrate(die, DW_AT_linkage_name, &a) ||
	    dwarf_attr_integrate(die, DW_AT_MIPS_linkage_name, &a))
		linkage = dwarf_formstring(&a);
	fn.line = attr_number(die, DW_AT_decl_line);
	fn.linkage = linkage && *linkage;
	fn.text = fn.linkage ? linkage : dwarf_diename(die) ?: "";
	b->err = b->err ?: dwarf_text_add_function(b->texts, &fn, &text);
	return text;
}

/* --- calls ------------------------------------------------------------------- */

/* Adds the call of a block, inlined into 'up'; both as in a row. */
static uint32_t build_call(struct table_build *b, Dwarf_Die *die, uint32_t up)
{
	struct strbuf *sb = &b->t->calls;
	uint32_t at = (uint32_t)sb->len + 1;
	Dwarf_Attribute a;
	Dwarf_Word n;

	dwarf_pack_put(sb, die ? build_function(b, die) : 0);
	dwarf_pack_put(sb, up ? at - up : 0);
	if (die && up && b->files && dwarf_attr(die, DW_AT_call_file, &a) &&
	    dwarf_formudata(&a, &n) == 0)
		dwarf_pack_put(sb, build_file(b, dwarf_filesrc(b->files, n,
							       NULL, NULL)));
	else
		dwarf_pack_put(sb, 0);
	if (die && up && dwarf_attr(die, DW_AT_call_line, &a) &&
	    dwarf_formudata(&a, &n) == 0 && n <= UINT32_MAX)
		dwarf_pack_put(sb, (uint32_t)n);
	else
		dwarf_pack_put(sb, 0);
	return at;
}

/* The call of each block, in calls[]. Those around it come before it. */
static void build_calls(struct table_build *b, const struct dwarf_unit *u,
			Dwarf_Die *tree, uint32_t *calls)
{
	Dwarf *dw = dwarf_cu_getdwarf(tree->cu);
	Dwarf_Off base = dwarf_dieoffset(tree);
	Dwarf_Die die;

	for (uint32_t i = 0; i < u->n_blocks && !b->err; i++) {
		const struct dwarf_block *k = &u->blocks[i];

		if (i && k->die == k[-1].die && k->up == k[-1].up)
			calls[i] = calls[i - 1];
		else
			calls[i] = build_call(
				b, dwarf_offdie(dw, base + k->die, &die),
				k->up == DWARF_NONE ? 0 : calls[k->up]);
	}
}

static int build_pieces(struct table_build *b, const struct dwarf_unit *u,
			Dwarf_Die *tree)
{
	uint32_t *calls = calloc(u->n_blocks + 1ULL, sizeof(*calls));

	if (!calls)
		return -ENOMEM;
	build_calls(b, u, tree, calls);
	for (uint32_t i = 0; i < u->n_pieces; i++) {
		const struct dwarf_piece *p = &u->pieces[i];
		uint32_t call = p->block == DWARF_NONE ? 0 : calls[p->block];

		dwarf_pack_add(&b->t->pieces,
			       &(struct dwarf_pack_row){ p->start, call, 0 });
	}
	free(calls);
	return dwarf_pack_end(&b->t->pieces);
}

/* --- lines ------------------------------------------------------------------- */

static void build_line(struct table_build *b, Dwarf_Line *line)
{
	const struct dwarf_bounds *bounds = &b->t->bounds;
	struct dwarf_pack_row row = { 0 };
	Dwarf_Addr addr;
	bool end = false;
	int no;

	if (!line || dwarf_lineaddr(line, &addr) || addr < bounds->start ||
	    addr > bounds->end)
		return;
	row.start = (uint32_t)(addr - bounds->start);
	if (dwarf_lineendsequence(line, &end) || end) {
		row.a = 1;
	} else {
		row.a = build_file(b, dwarf_linesrc(line, NULL, NULL)) << 1;
		if (dwarf_lineno(line, &no) == 0 && no > 0)
			row.b = (uint32_t)no;
	}
	dwarf_pack_add(&b->t->lines, &row);
}

static int build_lines(struct table_build *b, Dwarf_Die *lined)
{
	Dwarf_Lines *lines;
	size_t n;

	if (lined && dwarf_getsrclines(lined, &lines, &n) == 0)
		for (size_t i = 0; i < n && !b->err; i++)
			build_line(b, dwarf_onesrcline(lines, i));
	return dwarf_pack_end(&b->t->lines);
}

int dwarf_table_new(struct dwarf_table **tp, struct dwarf_text *texts,
		    const struct dwarf_unit *u, Dwarf_Die *tree,
		    Dwarf_Die *lined)
{
	struct table_build *b = calloc(1, sizeof(*b));
	struct dwarf_table *t = calloc(1, sizeof(*t));
	int err = b && t ? 0 : -ENOMEM;
	Dwarf_Attribute a;
	size_t n;

	if (err)
		goto out;
	t->bounds = u->bounds;
	b->t = t;
	b->texts = texts;
	if (lined) {
		if (dwarf_attr(lined, DW_AT_comp_dir, &a))
			b->dir = dwarf_formstring(&a);
		if (dwarf_getsrcfiles(lined, &b->files, &n))
			b->files = NULL;
	}
	err = build_pieces(b, u, tree);
	if (!err)
		err = build_lines(b, lined);
	if (!err)
		err = b->err;
	dwarf_pack_trim(&t->calls);
	if (!err && !strbuf_str(&t->calls))
		err = -ENOMEM;
	if (!err) {
		*tp = t;
		t = NULL;
	}
out:
	dwarf_table_free(t);
	free(b);
	return err;
}

void dwarf_table_free(struct dwarf_table *t)
{
	if (!t)
		return;
	dwarf_pack_fini(&t->pieces);
	dwarf_pack_fini(&t->lines);
	strbuf_fini(&t->calls);
	free(t);
}

size_t dwarf_table_bytes(const struct dwarf_table *t)
{
	return sizeof(*t) + dwarf_pack_bytes(&t->pieces) +
	       dwarf_pack_bytes(&t->lines) + t->calls.cap;
}

/* --- an answer --------------------------------------------------------------- */

static struct table_call table_call(const struct dwarf_table *t, uint32_t call)
{
	size_t at = call - 1;
	struct table_call c;
	uint32_t up;

	c.function = dwarf_pack_get(&t->calls, &at);
	up = dwarf_pack_get(&t->calls, &at);
	c.up = up ? call - up : 0;
	c.file = dwarf_pack_get(&t->calls, &at);
	c.line = dwarf_pack_get(&t->calls, &at);
	return c;
}

static const char *table_copy(struct arena *arena, const char *s)
{
	return *s ? arena_memdup(arena, s, strlen(s) + 1) : "";
}

/* The functions from the innermost one outwards. */
static int table_chain(const struct dwarf_table *t,
		       const struct dwarf_text *texts, uint32_t call,
		       struct arena *arena, struct names_found *out)
{
	struct symbolizer_function *fn = out->functions;
	struct dwarf_function known;
	struct table_call c;
	const char *name;

	for (; call && out->n < TABLE_INLINED_MAX; call = c.up, fn++) {
		c = table_call(t, call);
		known = dwarf_text_function(texts, c.function);
		name = table_copy(arena, known.text);
		if (!name)
			return -ENOMEM;
		if (*name && known.linkage)
			fn->system_name = name;
		else if (*name)
			fn->name = name;
		else if (c.up) /* the last one may have a name elsewhere */
			fn->name = SOURCE_NO_NAME;
		fn->start_line = known.line;
		out->n++;
		if (!c.up || out->n == TABLE_INLINED_MAX)
			continue;
		fn[1].file = table_copy(arena, dwarf_text_at(texts, c.file));
		fn[1].line = c.line;
		if (!fn[1].file)
			return -ENOMEM;
	}
	return 0;
}

/* Narrows *out to the row of the line table with this address, and sets its place. */
static int table_line(const struct dwarf_table *t,
		      const struct dwarf_text *texts, uint32_t at,
		      struct arena *arena, struct names_found *out)
{
	uint64_t end = out->start + out->size;
	struct symbolizer_function *fn = out->functions;
	struct dwarf_pack_row row;
	uint32_t next;
	bool found = dwarf_pack_find(&t->lines, at, &row, &next);

	if (found)
		out->start = MAX(out->start, t->bounds.start + row.start);
	if (next != UINT32_MAX)
		end = MIN(end, t->bounds.start + next);
	out->size = end - out->start;
	if (!found || row.a & 1)
		return -ENOENT;
	fn->line = row.b;
	fn->file = table_copy(arena, dwarf_text_at(texts, row.a >> 1));
	return fn->file ? 0 : -ENOMEM;
}

int dwarf_table_find(const struct dwarf_table *t,
		     const struct dwarf_text *texts, struct arena *arena,
		     uint64_t vaddr, struct names_found *out)
{
	uint32_t at = (uint32_t)(vaddr - t->bounds.start), next, up;
	struct dwarf_pack_row row = { 0 };
	size_t room = 1;
	int err;

	if (!dwarf_pack_find(&t->pieces, at, &row, &next))
		row = (struct dwarf_pack_row){ 0 };
	out->start = t->bounds.start + row.start;
	out->size =
		(next == UINT32_MAX ? t->bounds.end : t->bounds.start + next) -
		out->start;
	for (up = row.a; up && room < TABLE_INLINED_MAX; room++)
		up = table_call(t, up).up;
	out->functions = arena_alloc(arena, room * sizeof(*out->functions));
	if (!out->functions)
		return -ENOMEM;
	for (size_t i = 0; i < room; i++)
		out->functions[i] = (struct symbolizer_function){ .file = "" };
	out->source = SYMBOLIZER_SOURCE_DWARF;
	err = table_chain(t, texts, row.a, arena, out);
	if (err)
		return err;
	err = t->lines.n ? table_line(t, texts, at, arena, out) : -ENOENT;
	/* Functions without lines, or a line without a function, or nothing. */
	if (out->n == 0 && !err)
		out->n = 1;
	return err == -ENOENT && out->n ? 0 : err;
}
