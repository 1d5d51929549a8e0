// SPDX-License-Identifier: Apache-2.0
/* dwarf_unit: see symbolize/names/dwarf_unit.h. */
#include <dwarf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symbolize/names/dwarf_unit.h"

/* Limits for untrusted files. */
#define UNIT_DEPTH_MAX 128 /* of the tree */
#define UNIT_ENTRIES_MAX (1U << 23) /* read of a unit */
#define UNIT_BLOCKS_MAX (1U << 20) /* ranges kept */
#define UNIT_RANGES_MAX 1024 /* of one function */
#define UNIT_INLINED_MAX 64 /* functions at an address */

/* A range of a function or of an inlined call. */
struct block {
	uint32_t start, end; /* from bounds->start */
	uint32_t die; /* offset from the unit's */
	uint32_t up; /* number of a range of what it is inlined into, or NONE */
};

#define NONE UINT32_MAX

/* From here to the next piece the innermost range is 'block', or NONE. */
struct piece {
	uint32_t start;
	uint32_t block;
};

struct dwarf_unit {
	struct dwarf_bounds bounds;
	struct block *blocks; /* in the order of the tree */
	struct piece *pieces;
	uint32_t n_blocks, n_pieces, cap_blocks;
};

struct walk {
	struct dwarf_unit *u;
	uint64_t base; /* offset of the unit's entry */
	const struct dwarf_skeleton *skeleton; /* or NULL */
	struct dwarf_span spans[UNIT_RANGES_MAX];
	uint32_t entries;
	uint32_t up[UNIT_DEPTH_MAX]; /* by depth: block around it */
	Dwarf_Die dies[UNIT_DEPTH_MAX];
};

/* --- the tree --------------------------------------------------------------- */

static bool tag_holds_code(int tag)
{
	switch (tag) {
	case DW_TAG_subprogram:
	case DW_TAG_inlined_subroutine:
	case DW_TAG_lexical_block:
	case DW_TAG_try_block:
	case DW_TAG_catch_block:
	case DW_TAG_with_stmt:
	case DW_TAG_namespace:
	case DW_TAG_module:
	case DW_TAG_class_type:
	case DW_TAG_structure_type:
	case DW_TAG_union_type:
	case DW_TAG_interface_type:
		return true;
	default:
		return false;
	}
}

/* The ranges of an entry, in w->spans; their number. */
static size_t walk_spans(struct walk *w, Dwarf_Die *die)
{
	Dwarf_Addr base;
	ptrdiff_t at = 0;
	size_t n = 0;

	if (w->skeleton)
		return dwarf_split_ranges(w->skeleton, die, w->spans,
					  UNIT_RANGES_MAX);
	for (; n < UNIT_RANGES_MAX; n++) {
		at = dwarf_ranges(die, at, &base, &w->spans[n].start,
				  &w->spans[n].end);
		if (at <= 0)
			break;
	}
	return n;
}

/* Adds the ranges of an entry; *block: one of them, if there is any. */
static int walk_ranges(struct walk *w, Dwarf_Die *die, uint32_t up,
		       uint32_t *block)
{
	struct dwarf_unit *u = w->u;
	size_t n = walk_spans(w, die);
	uint64_t off = dwarf_dieoffset(die) - w->base;

	for (size_t i = 0; i < n; i++) {
		uint64_t start = w->spans[i].start, end = w->spans[i].end;

		if (start < u->bounds.start || end > u->bounds.end ||
		    start >= end || off > UINT32_MAX)
			continue;
		if (u->n_blocks == UNIT_BLOCKS_MAX)
			return 0;
		if (VECTOR_ROOM(u->blocks, u->n_blocks, u->cap_blocks))
			return -ENOMEM;
		*block = u->n_blocks;
		u->blocks[u->n_blocks++] = (struct block){
			.start = (uint32_t)(start - u->bounds.start),
			.end = (uint32_t)(end - u->bounds.start),
			.die = (uint32_t)off,
			.up = up,
		};
	}
	return 0;
}

/* Visits w->dies[depth]. Whether its children may have code; or -ENOMEM. */
static int walk_visit(struct walk *w, int depth)
{
	Dwarf_Die *die = &w->dies[depth];
	int tag = dwarf_tag(die), err = 0;
	uint32_t block = NONE;

	if (!tag_holds_code(tag))
		return 0;
	w->up[depth] = depth ? w->up[depth - 1] : NONE;
	if (tag == DW_TAG_subprogram)
		err = walk_ranges(w, die, NONE, &block);
	else if (tag == DW_TAG_inlined_subroutine)
		err = walk_ranges(w, die, w->up[depth], &block);
	if (block != NONE)
		w->up[depth] = block;
	if (err)
		return err;
	return depth + 1 < UNIT_DEPTH_MAX && dwarf_haschildren(die) == 1;
}

/*
 * In the order of the file. The number of entries is limited: a sibling
 * attribute may lead back, and libdw follows it.
 */
static int walk_tree(struct walk *w, Dwarf_Die *unit)
{
	int depth = 0, down = dwarf_child(unit, &w->dies[0]) == 0 ? 0 : -1;

	if (down < 0)
		return 0;
	while (w->entries++ < UNIT_ENTRIES_MAX) {
		int more = walk_visit(w, depth);

		if (more < 0)
			return more;
		if (more &&
		    dwarf_child(&w->dies[depth], &w->dies[depth + 1]) == 0) {
			depth++;
			continue;
		}
		while (dwarf_siblingof(&w->dies[depth], &w->dies[depth]) != 0)
			if (depth-- == 0)
				return 0;
	}
	return 0;
}

/* --- by address ------------------------------------------------------------- */

static const struct block *sort_blocks; /* the worker has one thread */

/* An outer range before those in it; of equal ones the later entry is inner. */
static int cmp_block(const void *a, const void *b)
{
	uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
	const struct block *x = &sort_blocks[i], *y = &sort_blocks[j];

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	if (x->end != y->end)
		return x->end > y->end ? -1 : 1;
	return i < j ? -1 : i > j;
}

static void piece_add(struct dwarf_unit *u, uint32_t start, uint32_t block)
{
	struct piece *last = u->n_pieces ? &u->pieces[u->n_pieces - 1] : NULL;

	if (last && last->start == start)
		last->block = block;
	else if (!last || last->block != block)
		u->pieces[u->n_pieces++] = (struct piece){ start, block };
}

/*
 * Cuts ranges that nest into pieces that do not overlap; the innermost wins.
 * 'open' is a stack of the ranges around the current address. Each range starts one
 * piece and, where it ends, another of the range around it: two at most.
 */
static void unit_pieces(struct dwarf_unit *u, const uint32_t *order,
			uint32_t *open)
{
	uint32_t depth = 0;

	for (uint32_t i = 0; i <= u->n_blocks; i++) {
		const struct block *b =
			i < u->n_blocks ? &u->blocks[order[i]] : NULL;

		while (depth &&
		       (!b || u->blocks[open[depth - 1]].end <= b->start)) {
			uint32_t end = u->blocks[open[--depth]].end;

			while (depth && u->blocks[open[depth - 1]].end <= end)
				depth--;
			piece_add(u, end, depth ? open[depth - 1] : NONE);
		}
		if (b) {
			piece_add(u, b->start, order[i]);
			open[depth++] = order[i];
		}
	}
}

static int unit_index(struct dwarf_unit *u)
{
	uint32_t *order = malloc((u->n_blocks + 1) * sizeof(*order));
	uint32_t *open = malloc((u->n_blocks + 1) * sizeof(*open));
	struct piece *smaller;
	int err = -ENOMEM;

	u->pieces = malloc((2 * (size_t)u->n_blocks + 1) * sizeof(*u->pieces));
	if (order && open && u->pieces) {
		for (uint32_t i = 0; i < u->n_blocks; i++)
			order[i] = i;
		sort_blocks = u->blocks;
		qsort(order, u->n_blocks, sizeof(*order), cmp_block);
		unit_pieces(u, order, open);
		smaller = realloc(u->pieces,
				  (u->n_pieces + 1) * sizeof(*u->pieces));
		u->pieces = smaller ? smaller : u->pieces;
		err = 0;
	}
	free(order);
	free(open);
	return err;
}

int dwarf_unit_new(struct dwarf_unit **up, Dwarf_Die *die,
		   const struct dwarf_skeleton *skeleton,
		   const struct dwarf_bounds *bounds)
{
	struct dwarf_unit *u = calloc(1, sizeof(*u));
	struct walk *w = calloc(1, sizeof(*w));
	struct block *smaller;
	int err = -ENOMEM;

	if (!u || !w)
		goto out;
	u->bounds = *bounds;
	w->u = u;
	w->base = dwarf_dieoffset(die);
	w->skeleton = skeleton;
	err = walk_tree(w, die);
	if (err)
		goto out;
	smaller = realloc(u->blocks, (u->n_blocks + 1) * sizeof(*u->blocks));
	u->blocks = smaller ? smaller : u->blocks;
	err = unit_index(u);
	if (err)
		goto out;
	*up = u;
	u = NULL;
out:
	dwarf_unit_free(u);
	free(w);
	return err;
}

void dwarf_unit_free(struct dwarf_unit *u)
{
	if (!u)
		return;
	free(u->blocks);
	free(u->pieces);
	free(u);
}

size_t dwarf_unit_bytes(const struct dwarf_unit *u)
{
	return sizeof(*u) + u->n_blocks * sizeof(*u->blocks) +
	       u->n_pieces * sizeof(*u->pieces);
}

/* --- an answer -------------------------------------------------------------- */

/* Copies a text; one that is NULL or too long for an answer as it must be. */
static int keep_text(struct arena *arena, const char *s, const char **out)
{
	char *copy;
	size_t len;

	if (!s)
		return 0;
	len = strnlen(s, SOURCE_TEXT_MAX);
	copy = arena_alloc(arena, len + 1);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, s, len);
	copy[len] = '\0';
	*out = copy;
	return 0;
}

/* The path of a source file; a relative one begins in the unit's directory. */
static int keep_file(struct arena *arena, Dwarf_Die *unit, const char *file,
		     const char **out)
{
	const char *dir = NULL;
	char path[SOURCE_TEXT_MAX];
	Dwarf_Attribute a;
	int len;

	if (file && *file != '/' && dwarf_attr(unit, DW_AT_comp_dir, &a))
		dir = dwarf_formstring(&a);
	if (!dir)
		return keep_text(arena, file, out);
	len = snprintf(path, sizeof(path), "%s/%s", dir, file);
	return len < 0 ? 0 : keep_text(arena, path, out);
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

static int function_name(Dwarf_Die *die, struct arena *arena,
			 struct symbolizer_function *fn)
{
	Dwarf_Attribute a;
	const char *linkage = NULL;

	if (dwarf_attr_integrate(die, DW_AT_linkage_name, &a) ||
	    dwarf_attr_integrate(die, DW_AT_MIPS_linkage_name, &a))
		linkage = dwarf_formstring(&a);
	fn->start_line = attr_number(die, DW_AT_decl_line);
	if (linkage && *linkage)
		return keep_text(arena, linkage, &fn->system_name);
	linkage = dwarf_diename(die);
	return linkage && *linkage ? keep_text(arena, linkage, &fn->name) : 0;
}

/* Where an inlined call is, in its caller. */
static int call_place(Dwarf_Die *unit, Dwarf_Die *die, Dwarf_Files *files,
		      struct arena *arena, struct symbolizer_function *caller)
{
	Dwarf_Attribute a;
	Dwarf_Word file;
	int err = 0;

	if (files && dwarf_attr(die, DW_AT_call_file, &a) &&
	    dwarf_formudata(&a, &file) == 0)
		err = keep_file(arena, unit,
				dwarf_filesrc(files, file, NULL, NULL),
				&caller->file);
	if (dwarf_attr(die, DW_AT_call_line, &a) &&
	    dwarf_formudata(&a, &file) == 0 && file <= UINT32_MAX)
		caller->line = (uint32_t)file;
	return err;
}

/* Narrows *out to the row of the line table with this address, and sets its place. */
static int line_place(Dwarf_Die *unit, Dwarf_Lines *lines, size_t n,
		      uint64_t vaddr, struct arena *arena,
		      struct names_found *out)
{
	Dwarf_Addr start, end = UINT64_MAX, addr;
	uint64_t limit = out->start + out->size;
	struct symbolizer_function *fn = out->functions;
	Dwarf_Line *line;
	bool over;
	int no;
	size_t i;

	VECTOR_SEARCH(i, n,
		      dwarf_lineaddr(dwarf_onesrcline(lines, i), &addr) == 0 &&
			      addr <= vaddr);
	if (i < n)
		dwarf_lineaddr(dwarf_onesrcline(lines, i), &end);
	line = i ? dwarf_onesrcline(lines, i - 1) : NULL;
	if (line && dwarf_lineaddr(line, &start) == 0)
		out->start = MAX(out->start, start);
	out->size = MIN(limit, end) - out->start;
	if (!line || dwarf_lineendsequence(line, &over) || over)
		return -ENOENT;
	if (dwarf_lineno(line, &no) == 0 && no > 0)
		fn->line = (uint32_t)no;
	return keep_file(arena, unit, dwarf_linesrc(line, NULL, NULL),
			 &fn->file);
}

/* The innermost range at this address, or NONE; and where that ends. */
static uint32_t unit_piece(const struct dwarf_unit *u, uint64_t vaddr,
			   struct names_found *out)
{
	uint32_t at = (uint32_t)(vaddr - u->bounds.start), i;
	uint64_t end;

	VECTOR_SEARCH(i, u->n_pieces, u->pieces[i].start <= at);
	end = i < u->n_pieces ? u->bounds.start + u->pieces[i].start
			      : u->bounds.end;
	out->start = u->bounds.start + (i ? u->pieces[i - 1].start : 0);
	out->size = end - out->start;
	return i ? u->pieces[i - 1].block : NONE;
}

/* The functions from the innermost range outwards. */
static int unit_chain(const struct dwarf_unit *u, Dwarf_Die *unit,
		      Dwarf_Die *lines, Dwarf_Files *files, uint32_t block,
		      struct arena *arena, struct names_found *out)
{
	Dwarf *dw = dwarf_cu_getdwarf(unit->cu);
	struct symbolizer_function *fn = out->functions;
	Dwarf_Die die;
	int err = 0;

	for (; block != NONE && out->n < UNIT_INLINED_MAX && !err; fn++) {
		const struct block *b = &u->blocks[block];

		if (!dwarf_offdie(dw, dwarf_dieoffset(unit) + b->die, &die))
			return -ENOENT;
		err = function_name(&die, arena, fn);
		out->n++;
		block = b->up;
		/* The last one may have a name in another source. */
		if (block != NONE && !fn->name && !fn->system_name)
			fn->name = SOURCE_NO_NAME;
		if (block != NONE && out->n < UNIT_INLINED_MAX && !err)
			err = call_place(lines, &die, files, arena, fn + 1);
	}
	return err;
}

int dwarf_unit_find(const struct dwarf_unit *u, Dwarf_Die *unit,
		    Dwarf_Die *lined, struct arena *arena, uint64_t vaddr,
		    struct names_found *out)
{
	uint32_t block = unit_piece(u, vaddr, out), up;
	Dwarf_Files *files = NULL;
	Dwarf_Lines *lines;
	size_t room = 1, n;
	int err;

	for (up = block; up != NONE && room < UNIT_INLINED_MAX; room++)
		up = u->blocks[up].up;
	out->functions = arena_alloc(arena, room * sizeof(*out->functions));
	if (!out->functions)
		return -ENOMEM;
	for (size_t i = 0; i < room; i++)
		out->functions[i] = (struct symbolizer_function){ .file = "" };
	out->source = SYMBOLIZER_SOURCE_DWARF;
	if (lined)
		dwarf_getsrcfiles(lined, &files, &n);
	err = unit_chain(u, unit, lined, files, block, arena, out);
	if (err)
		return err;
	err = -ENOENT;
	if (lined && dwarf_getsrclines(lined, &lines, &n) == 0)
		err = line_place(lined, lines, n, vaddr, arena, out);
	/* Functions without lines, or a line without a function, or nothing. */
	if (out->n == 0 && !err)
		out->n = 1;
	return err == -ENOENT && out->n ? 0 : err;
}
