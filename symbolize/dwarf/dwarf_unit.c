// SPDX-License-Identifier: Apache-2.0
/* dwarf_unit: see symbolize/dwarf/dwarf_unit.h. */
#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "symbolize/dwarf/dwarf_unit.h"

/* Limits for untrusted files. */
#define UNIT_BYTES_MAX (256U << 20) /* of entries */
#define UNIT_DEPTH_MAX 128 /* of the tree */
#define UNIT_BLOCKS_MAX (1U << 20) /* ranges kept */
#define UNIT_RANGES_MAX 1024 /* of one function */

struct walk {
	struct dwarf_unit *u;
	const struct dwarf_cu *cu;
	struct dwarf_entry entry;
	struct dwarf_span spans[UNIT_RANGES_MAX];
	uint32_t up[UNIT_DEPTH_MAX]; /* by depth: block around it */
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

/* Adds the ranges of the entry; *block: one of them, if there is any. */
static int walk_ranges(struct walk *w, uint32_t up, uint32_t *block)
{
	struct dwarf_unit *u = w->u;
	size_t n =
		dwarf_ranges_read(w->cu, &w->entry, w->spans, UNIT_RANGES_MAX);
	uint64_t off = w->entry.off - w->cu->first;

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
		u->blocks[u->n_blocks++] = (struct dwarf_block){
			.start = (uint32_t)(start - u->bounds.start),
			.end = (uint32_t)(end - u->bounds.start),
			.entry = (uint32_t)off,
			.up = up,
		};
	}
	return 0;
}

/* Visits the entry, which may have code in it. */
static int walk_visit(struct walk *w, uint32_t depth)
{
	uint32_t around = depth ? w->up[depth - 1] : DWARF_NONE;
	uint32_t block = DWARF_NONE;
	int err = 0;

	if (w->entry.abbrev->tag == DW_TAG_subprogram)
		err = walk_ranges(w, DWARF_NONE, &block);
	else if (w->entry.abbrev->tag == DW_TAG_inlined_subroutine)
		err = walk_ranges(w, around, &block);
	w->up[depth] = block == DWARF_NONE ? around : block;
	return err;
}

/* In the order of the file. A damaged entry ends the unit. */
static int walk_tree(struct walk *w)
{
	const struct dwarf_cu *cu = w->cu;
	const uint8_t *info = cu->file->s[DWARF_INFO].p;
	struct cursor c = { info + cu->first, info + cu->end, false };
	struct dwarf_entry *e = &w->entry;
	uint32_t depth = 0;
	int err = 0;

	if (cu->end - cu->first > UNIT_BYTES_MAX ||
	    !dwarf_entry_begin(cu, &c, e) || !e->abbrev ||
	    !dwarf_entry_read(cu, &c, e) || !e->abbrev->children)
		return 0;
	while (!err && dwarf_entry_begin(cu, &c, e)) {
		if (!e->abbrev) {
			if (depth-- == 0)
				break;
			continue;
		}
		if (!tag_holds_code(e->abbrev->tag) ||
		    (e->abbrev->children && depth + 1 == UNIT_DEPTH_MAX)) {
			if (!dwarf_entry_skip(cu, &c, e))
				break;
			continue;
		}
		if (!dwarf_entry_read(cu, &c, e))
			break;
		err = walk_visit(w, depth);
		depth += e->abbrev->children;
	}
	return err;
}

/* --- by address ------------------------------------------------------------- */

static const struct dwarf_block *sort_blocks; /* the worker has one thread */

/* An outer range before those in it; of equal ones the later entry is inner. */
static int cmp_block(const void *a, const void *b)
{
	uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
	const struct dwarf_block *x = &sort_blocks[i], *y = &sort_blocks[j];

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	if (x->end != y->end)
		return x->end > y->end ? -1 : 1;
	return i < j ? -1 : i > j;
}

static void piece_add(struct dwarf_unit *u, uint32_t start, uint32_t block)
{
	struct dwarf_piece *last =
		u->n_pieces ? &u->pieces[u->n_pieces - 1] : NULL;

	if (last && last->start == start)
		last->block = block;
	else if (!last || last->block != block)
		u->pieces[u->n_pieces++] = (struct dwarf_piece){ start, block };
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
		const struct dwarf_block *b =
			i < u->n_blocks ? &u->blocks[order[i]] : NULL;

		while (depth &&
		       (!b || u->blocks[open[depth - 1]].end <= b->start)) {
			uint32_t end = u->blocks[open[--depth]].end;

			while (depth && u->blocks[open[depth - 1]].end <= end)
				depth--;
			piece_add(u, end, depth ? open[depth - 1] : DWARF_NONE);
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
	struct dwarf_piece *smaller;
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

int dwarf_unit_new(struct dwarf_unit **up, const struct dwarf_cu *cu,
		   const struct dwarf_bounds *bounds)
{
	struct dwarf_unit *u = calloc(1, sizeof(*u));
	struct walk *w = calloc(1, sizeof(*w));
	struct dwarf_block *smaller;
	int err = -ENOMEM;

	if (!u || !w)
		goto out;
	u->bounds = *bounds;
	w->u = u;
	w->cu = cu;
	err = walk_tree(w);
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
