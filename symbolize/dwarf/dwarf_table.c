// SPDX-License-Identifier: Apache-2.0
/* dwarf_table: see symbolize/dwarf/dwarf_table.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symbolize/dwarf/dwarf_pack.h"
#include "symbolize/dwarf/dwarf_table.h"

#define TABLE_INLINED_MAX 64 /* functions at an address */
#define TABLE_KNOWN 4096 /* functions remembered while a table is made */
#define TABLE_ORIGINS_MAX 16 /* from an entry to the next */
#define TABLE_SPANS_MAX \
	4096 /* ranges of a unit; with more its lines are unchecked */

/* Numbers and bytes of what follows. */
struct table_head {
	uint32_t pieces, lines; /* rows */
	uint32_t pieces_len, lines_len, calls_len;
};

/* A table while it is made. */
struct table_parts {
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

/* The same of a block. */
struct table_view {
	struct dwarf_rows pieces, lines;
	struct dwarf_bytes calls;
};

struct table_call {
	uint32_t function, up, file, line;
};

/* Functions by the entry that has all of them. */
struct table_known {
	const struct dwarf_file *file;
	uint64_t off;
	uint32_t text;
};

struct table_build {
	struct table_parts t;
	struct dwarf_text *texts;
	const struct dwarf_source *from;
	const char *dir; /* of the unit, or NULL */
	struct dwarf_lines lines;
	/* Of the tree, if that has a line program of its own; else unused. */
	struct dwarf_lines called;
	/* By index of a file: its text plus one; 0: it is not known yet. */
	uint32_t *paths, *called_paths;
	int err;
	struct dwarf_entry entry;
	struct table_known known[TABLE_KNOWN];
};

/* --- texts ------------------------------------------------------------------- */

/*
 * Joins texts that may have no end beyond SOURCE_TEXT_MAX, see dwarf_value_text(); cut
 * to as much. 'dir' NULL: none.
 */
static void path_join(char path[SOURCE_TEXT_MAX], const char *dir,
		      const char *file)
{
	if (snprintf(path, SOURCE_TEXT_MAX, "%.*s%s%.*s", SOURCE_TEXT_MAX,
		     dir ? dir : "", dir ? "/" : "", SOURCE_TEXT_MAX, file) < 0)
		*path = '\0';
}

/*
 * The path of a source file; a relative one begins in the unit's directory. Names of
 * DWARF 5 that glibc is built with have a relative directory in front already.
 */
static uint32_t build_path(struct table_build *b, const char *file)
{
	size_t len = b->dir ? strnlen(b->dir, SOURCE_TEXT_MAX) : 0;
	char path[SOURCE_TEXT_MAX];
	uint32_t text = 0;

	if (b->dir && *file != '/' &&
	    (*b->dir == '/' || strncmp(file, b->dir, len) != 0 ||
	     file[len] != '/')) {
		path_join(path, b->dir, file);
		file = path;
	}
	b->err = b->err ?: dwarf_text_add(b->texts, file, &text);
	return text;
}

static uint32_t build_file(struct table_build *b, const struct dwarf_lines *l,
			   uint32_t *paths, uint64_t i)
{
	const struct dwarf_line_file *f = i < l->n_files ? &l->files[i] : NULL;
	char path[SOURCE_TEXT_MAX];
	const char *dir;

	if (!f || !f->name)
		return 0;
	if (!paths[i]) {
		dir = f->dir < l->n_dirs ? l->dirs[f->dir] : NULL;
		path_join(path, *f->name == '/' ? NULL : dir, f->name);
		paths[i] = build_path(b, path) + 1;
	}
	return paths[i] - 1;
}

/* The file of a call. */
static uint32_t build_called(struct table_build *b, uint64_t i)
{
	return b->called_paths ? build_file(b, &b->called, b->called_paths, i)
			       : build_file(b, &b->lines, b->paths, i);
}

/* What an entry says of its function, or the entries it refers to. */
struct table_names {
	const char *linkage, *mips, *name;
	uint32_t line;
	bool has_line;
};

static void names_take(struct table_names *n, const struct dwarf_cu *cu,
		       const struct dwarf_entry *e)
{
	const struct dwarf_value *line = dwarf_entry_value(e, DWARF_DECL_LINE);

	if (!n->linkage)
		n->linkage = dwarf_value_text(
			cu, dwarf_entry_value(e, DWARF_LINKAGE_NAME));
	if (!n->mips)
		n->mips = dwarf_value_text(
			cu, dwarf_entry_value(e, DWARF_MIPS_LINKAGE_NAME));
	if (!n->name)
		n->name =
			dwarf_value_text(cu, dwarf_entry_value(e, DWARF_NAME));
	if (!n->has_line && line) {
		n->has_line = true;
		n->line = dwarf_value_word(line);
	}
}

static uint32_t build_names(struct table_build *b, const struct table_names *n)
{
	const char *linkage = n->linkage ? n->linkage : n->mips;
	struct dwarf_function fn = { .line = n->line };
	uint32_t text = 0;

	fn.linkage = linkage && *linkage;
	fn.text = fn.linkage ? linkage : n->name ?: "";
	b->err = b->err ?: dwarf_text_add_function(b->texts, &fn, &text);
	return text;
}

/* The entry that this one gets the rest from. */
static bool entry_origin(const struct dwarf_cu *cu, const struct dwarf_entry *e,
			 struct dwarf_file **f, uint64_t *off)
{
	const struct dwarf_value *v = dwarf_entry_value(e, DWARF_ORIGIN);

	return dwarf_value_entry(
		cu, v ? v : dwarf_entry_value(e, DWARF_SPECIFICATION), f, off);
}

/* Follows references from the entry at 'off'. */
static void names_follow(struct table_build *b, struct table_names *n,
			 struct dwarf_file *f, uint64_t off)
{
	const struct dwarf_cu *tree = b->from->tree, *cu;
	struct dwarf_entry e;

	for (int i = 0; i < TABLE_ORIGINS_MAX; i++) {
		cu = f == tree->file && off >= tree->off && off < tree->end
			     ? tree
			     : dwarf_file_at(f, off);
		if (!cu || !dwarf_entry_at(cu, off, &e))
			return;
		names_take(n, cu, &e);
		if (!entry_origin(cu, &e, &f, &off))
			return;
	}
}

/* The function of b->entry. */
static uint32_t build_function(struct table_build *b)
{
	const uint32_t own = 1U << DWARF_NAME | 1U << DWARF_LINKAGE_NAME |
			     1U << DWARF_MIPS_LINKAGE_NAME |
			     1U << DWARF_DECL_LINE;
	const struct dwarf_cu *tree = b->from->tree;
	struct table_names n = { 0 };
	struct table_known *known;
	struct dwarf_file *f;
	uint64_t off;

	names_take(&n, tree, &b->entry);
	if (!entry_origin(tree, &b->entry, &f, &off))
		return build_names(b, &n);
	if (b->entry.has & own) {
		names_follow(b, &n, f, off);
		return build_names(b, &n);
	}
	known = &b->known[off % TABLE_KNOWN];
	if (known->file != f || known->off != off) {
		names_follow(b, &n, f, off);
		*known = (struct table_known){ f, off, build_names(b, &n) };
	}
	return known->text;
}

/* --- calls ------------------------------------------------------------------- */

/* Adds the call of a block, inlined into 'up'; both as in a row. */
static uint32_t build_call(struct table_build *b, bool read, uint32_t up)
{
	struct strbuf *sb = &b->t.calls;
	uint32_t at = (uint32_t)sb->len + 1;
	uint64_t file;

	dwarf_pack_put(sb, read ? build_function(b) : 0);
	dwarf_pack_put(sb, up ? at - up : 0);
	if (read && up &&
	    dwarf_value_number(dwarf_entry_value(&b->entry, DWARF_CALL_FILE),
			       &file))
		dwarf_pack_put(sb, build_called(b, file));
	else
		dwarf_pack_put(sb, 0);
	dwarf_pack_put(sb, read && up ? dwarf_value_word(dwarf_entry_value(
						&b->entry, DWARF_CALL_LINE))
				      : 0);
	return at;
}

/* The call of each block, in calls[]. Those around it come before it. */
static void build_calls(struct table_build *b, uint32_t *calls)
{
	const struct dwarf_unit *u = b->from->unit;
	const struct dwarf_cu *tree = b->from->tree;

	for (uint32_t i = 0; i < u->n_blocks && !b->err; i++) {
		const struct dwarf_block *k = &u->blocks[i];

		if (i && k->entry == k[-1].entry && k->up == k[-1].up)
			calls[i] = calls[i - 1];
		else
			calls[i] = build_call(
				b,
				dwarf_entry_at(tree, tree->first + k->entry,
					       &b->entry),
				k->up == DWARF_NONE ? 0 : calls[k->up]);
	}
}

static int build_pieces(struct table_build *b)
{
	const struct dwarf_unit *u = b->from->unit;
	uint32_t *calls = calloc(u->n_blocks + 1ULL, sizeof(*calls));

	if (!calls)
		return -ENOMEM;
	build_calls(b, calls);
	for (uint32_t i = 0; i < u->n_pieces; i++) {
		const struct dwarf_piece *p = &u->pieces[i];
		uint32_t call = p->block == DWARF_NONE ? 0 : calls[p->block];

		dwarf_pack_add(&b->t.pieces,
			       &(struct dwarf_pack_row){ p->start, call, 0 });
	}
	free(calls);
	return dwarf_pack_end(&b->t.pieces);
}

/* --- lines ------------------------------------------------------------------- */

static int build_lines(struct table_build *b)
{
	for (uint32_t i = 0; i < b->lines.n_rows && !b->err; i++) {
		const struct dwarf_line_row *line = &b->lines.rows[i];
		struct dwarf_pack_row row = { .start = line->start, .a = 1 };

		if (!line->end) {
			row.a = build_file(b, &b->lines, b->paths, line->file)
				<< 1;
			row.b = line->line;
		}
		dwarf_pack_add(&b->t.lines, &row);
	}
	return dwarf_pack_end(&b->t.lines);
}

/* A unit whose program is damaged has no lines. */
static int lines_open(struct dwarf_lines *l, uint32_t **paths,
		      const struct dwarf_cu *cu, const struct dwarf_unit *u)
{
	struct dwarf_span *spans = malloc(TABLE_SPANS_MAX * sizeof(*spans));
	uint64_t off;
	size_t n;
	int err = -EINVAL;

	if (!spans)
		return -ENOMEM;
	if (dwarf_value_number(dwarf_entry_value(&cu->unit, DWARF_STMT_LIST),
			       &off)) {
		n = dwarf_ranges_read(cu, &cu->unit, spans, TABLE_SPANS_MAX);
		err = dwarf_lines_read(l, cu, off, u ? &u->bounds : NULL, spans,
				       n < TABLE_SPANS_MAX ? n : 0);
	}
	free(spans);
	if (err && err != -ENOMEM) {
		dwarf_lines_fini(l);
		err = 0;
	}
	*paths = err ? NULL : calloc(l->n_files + 1ULL, sizeof(**paths));
	return *paths ? 0 : -ENOMEM;
}

static int build_open(struct table_build *b)
{
	const struct dwarf_source *from = b->from;
	int err;

	b->dir = dwarf_value_text(from->lined,
				  dwarf_entry_value(&from->lined->unit,
						    DWARF_COMP_DIR));
	err = lines_open(&b->lines, &b->paths, from->lined, from->unit);
	if (!err && from->tree != from->lined &&
	    dwarf_entry_value(&from->tree->unit, DWARF_STMT_LIST))
		err = lines_open(&b->called, &b->called_paths, from->tree,
				 NULL);
	return err;
}

static void build_free(struct table_build *b)
{
	if (!b)
		return;
	dwarf_lines_fini(&b->lines);
	dwarf_lines_fini(&b->called);
	free(b->paths);
	free(b->called_paths);
	dwarf_pack_fini(&b->t.pieces);
	dwarf_pack_fini(&b->t.lines);
	strbuf_fini(&b->t.calls);
	free(b);
}

static int parts_add(struct strbuf *out, const struct table_parts *t)
{
	static const char zeros[DWARF_TABLE_ALIGN];
	const struct table_head head = {
		.pieces = t->pieces.n,
		.lines = t->lines.n,
		.pieces_len = (uint32_t)t->pieces.bytes.len,
		.lines_len = (uint32_t)t->lines.bytes.len,
		.calls_len = (uint32_t)t->calls.len,
	};
	const struct strbuf *const all[] = { &t->pieces.marks, &t->lines.marks,
					     &t->pieces.bytes, &t->lines.bytes,
					     &t->calls };

	if (t->calls.len >= UINT32_MAX)
		return -EFBIG;
	strbuf_add(out, &head, sizeof(head));
	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		if (all[i]->len)
			strbuf_add(out, all[i]->data, all[i]->len);
	strbuf_add(out, zeros, -out->len % DWARF_TABLE_ALIGN);
	return out->failed ? -ENOMEM : 0;
}

int dwarf_table_add(struct strbuf *out, struct dwarf_text *texts,
		    const struct dwarf_source *from)
{
	struct table_build *b = calloc(1, sizeof(*b));
	int err = b ? 0 : -ENOMEM;

	if (err)
		return err;
	b->texts = texts;
	b->from = from;
	err = build_open(b);
	if (!err)
		err = build_pieces(b);
	if (!err)
		err = build_lines(b);
	if (!err)
		err = b->err;
	if (!err && b->t.calls.failed)
		err = -ENOMEM;
	if (!err)
		err = parts_add(out, &b->t);
	build_free(b);
	return err;
}

/* --- an answer --------------------------------------------------------------- */

/* Takes 'len' bytes of the block; NULL: it has fewer. */
static const uint8_t *view_take(struct dwarf_bytes *b, uint64_t len)
{
	const uint8_t *p = b->p;

	if (len > b->len)
		return NULL;
	b->p += len;
	b->len -= len;
	return p;
}

static bool table_open(struct table_view *v, const struct dwarf_table *t)
{
	struct dwarf_bytes left = { t->p, t->len };
	struct table_head head;

	if (left.len < sizeof(head))
		return false;
	memcpy(&head, view_take(&left, sizeof(head)), sizeof(head));
	v->pieces.n = head.pieces;
	v->lines.n = head.lines;
	v->pieces.bytes.len = head.pieces_len;
	v->lines.bytes.len = head.lines_len;
	v->calls.len = head.calls_len;
	return (v->pieces.marks =
			view_take(&left, DWARF_PACK_MARKS(head.pieces) *
						 (uint64_t)DWARF_PACK_MARK)) &&
	       (v->lines.marks =
			view_take(&left, DWARF_PACK_MARKS(head.lines) *
						 (uint64_t)DWARF_PACK_MARK)) &&
	       (v->pieces.bytes.p = view_take(&left, head.pieces_len)) &&
	       (v->lines.bytes.p = view_take(&left, head.lines_len)) &&
	       (v->calls.p = view_take(&left, head.calls_len));
}

static struct table_call table_call(const struct table_view *v, uint32_t call)
{
	size_t at = call - 1;
	struct table_call c;
	uint32_t up;

	c.function = dwarf_bytes_get(&v->calls, &at);
	up = dwarf_bytes_get(&v->calls, &at);
	c.up = up && up < call ? call - up : 0;
	c.file = dwarf_bytes_get(&v->calls, &at);
	c.line = dwarf_bytes_get(&v->calls, &at);
	return c;
}

static const char *table_copy(struct arena *arena, const char *s)
{
	size_t len = strnlen(s, SOURCE_TEXT_MAX);
	char *copy = len ? arena_alloc(arena, len + 1) : NULL;

	if (!copy)
		return len ? NULL : "";
	memcpy(copy, s, len);
	copy[len] = '\0';
	return copy;
}

/* The functions from the innermost one outwards. */
static int table_chain(const struct dwarf_table *t, const struct table_view *v,
		       uint32_t call, struct arena *arena,
		       struct names_found *out)
{
	struct symbolizer_function *fn = out->functions;
	struct dwarf_function known;
	struct table_call c;
	const char *name;

	for (; call && out->n < TABLE_INLINED_MAX; call = c.up, fn++) {
		c = table_call(v, call);
		known = dwarf_texts_function(&t->texts, c.function);
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
		fn[1].file =
			table_copy(arena, dwarf_texts_at(&t->texts, c.file));
		fn[1].line = c.line;
		if (!fn[1].file)
			return -ENOMEM;
	}
	return 0;
}

/* Where a row ends that the next one follows at 'next'. */
static uint64_t table_end(const struct dwarf_table *t, uint32_t next)
{
	return next < t->bounds.end - t->bounds.start ? t->bounds.start + next
						      : t->bounds.end;
}

/* Narrows *out to the row of the line table with this address, and sets its place. */
static int table_line(const struct dwarf_table *t, const struct table_view *v,
		      uint32_t at, struct arena *arena, struct names_found *out)
{
	struct symbolizer_function *fn = out->functions;
	uint64_t end = out->start + out->size;
	struct dwarf_pack_row row;
	uint32_t next;
	bool found = dwarf_rows_find(&v->lines, at, &row, &next);

	if (found)
		out->start = MAX(out->start, t->bounds.start + row.start);
	out->size = MIN(end, table_end(t, next)) - out->start;
	if (!found || row.a & 1)
		return -ENOENT;
	fn->line = row.b;
	fn->file = table_copy(arena, dwarf_texts_at(&t->texts, row.a >> 1));
	return fn->file ? 0 : -ENOMEM;
}

int dwarf_table_find(const struct dwarf_table *t, struct arena *arena,
		     uint64_t vaddr, struct names_found *out)
{
	uint32_t at = (uint32_t)(vaddr - t->bounds.start), next, up;
	struct dwarf_pack_row row;
	struct table_view v;
	size_t room = 1;
	int err;

	if (!table_open(&v, t))
		return -ENOENT;
	if (!dwarf_rows_find(&v.pieces, at, &row, &next))
		row = (struct dwarf_pack_row){ 0 };
	out->start = t->bounds.start + row.start;
	out->size = table_end(t, next) - out->start;
	for (up = row.a; up && room < TABLE_INLINED_MAX; room++)
		up = table_call(&v, up).up;
	out->functions = arena_alloc(arena, room * sizeof(*out->functions));
	if (!out->functions)
		return -ENOMEM;
	for (size_t i = 0; i < room; i++)
		out->functions[i] = (struct symbolizer_function){ .file = "" };
	out->source = SYMBOLIZER_SOURCE_DWARF;
	err = table_chain(t, &v, row.a, arena, out);
	if (err)
		return err;
	err = v.lines.n ? table_line(t, &v, at, arena, out) : -ENOENT;
	/* Functions without lines, or a line without a function, or nothing. */
	if (out->n == 0 && !err)
		out->n = 1;
	return err == -ENOENT && out->n ? 0 : err;
}
