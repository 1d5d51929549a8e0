// SPDX-License-Identifier: Apache-2.0
/* dwarf_line: see symbolize/dwarf/dwarf_line.h. */
#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "symbolize/dwarf/dwarf_line.h"

/* Limits for untrusted files. */
#define LINE_BYTES_MAX (3U << 20) /* of a program; a byte may be a row */
#define LINE_FILES_MAX (1U << 17)
#define LINE_FORMATS_MAX 16

/* Rows of one sequence, while the program runs. */
struct line_sequence {
	uint32_t start, end; /* addresses, from bounds.start */
	uint32_t first, n; /* rows; the last is its end */
};

struct line_run {
	struct dwarf_lines *l;
	struct dwarf_cu cu; /* with the program's size of offsets */
	const struct dwarf_bounds *bounds; /* or NULL */
	const struct dwarf_span *spans;
	size_t n_spans;
	/* Of the header. */
	uint16_t version;
	uint8_t min_length, max_ops, line_range;
	uint8_t opcode_base;
	int8_t line_base;
	const uint8_t *lengths; /* arguments by opcode, from 1 */
	/* Registers, section 6.2.2. */
	uint64_t address;
	uint32_t op_index, file, line;
	/* Of the sequence that is run. */
	uint32_t first; /* row */
	bool started, dropped;
	struct line_sequence *sequences;
	uint32_t n_sequences, cap_sequences;
	int err;
};

void dwarf_lines_fini(struct dwarf_lines *l)
{
	free(l->dirs);
	free(l->files);
	free(l->rows);
	*l = (struct dwarf_lines){ 0 };
}

/* --- files -------------------------------------------------------------------- */

static int line_dir_add(struct dwarf_lines *l, const char *name)
{
	if (l->n_dirs >= LINE_FILES_MAX)
		return -EINVAL;
	if (VECTOR_ROOM(l->dirs, l->n_dirs, l->cap_dirs))
		return -ENOMEM;
	l->dirs[l->n_dirs++] = name;
	return 0;
}

static int line_file_add(struct dwarf_lines *l, const char *name, uint64_t dir)
{
	if (l->n_files >= LINE_FILES_MAX)
		return -EINVAL;
	if (VECTOR_ROOM(l->files, l->n_files, l->cap_files))
		return -ENOMEM;
	l->files[l->n_files++] = (struct dwarf_line_file){
		name, (uint32_t)MIN(dir, (uint64_t)UINT32_MAX)
	};
	return 0;
}

static const char *line_string(struct cursor *c)
{
	const char *s = (const char *)c->p;
	const uint8_t *end =
		c->p < c->end ? memchr(c->p, 0, (size_t)(c->end - c->p)) : NULL;

	if (!end) {
		c->bad = true;
		return "";
	}
	c->p = end + 1;
	return s;
}

/* A file, less its name. */
static int old_file(struct line_run *r, struct cursor *c, const char *name)
{
	uint64_t dir = cursor_uleb(c);

	cursor_uleb(c); /* time */
	cursor_uleb(c); /* length */
	return c->bad ? -EINVAL : line_file_add(r->l, name, dir);
}

/* Versions 2 to 4: directory 0 is the unit's, there is no file 0. */
static int old_files(struct line_run *r, struct cursor *c)
{
	const char *name = dwarf_value_text(
		&r->cu, dwarf_entry_value(&r->cu.unit, DWARF_COMP_DIR));
	int err = line_dir_add(r->l, name);

	while (!err && *(name = line_string(c)))
		err = line_dir_add(r->l, name);
	if (!err)
		err = line_file_add(r->l, NULL, 0);
	while (!err && *(name = line_string(c)))
		err = old_file(r, c, name);
	return c->bad ? -EINVAL : err;
}

/* A table of directories or files of version 5, section 6.2.4. */
static int new_table(struct line_run *r, struct cursor *c, bool dirs)
{
	uint64_t formats = cursor_fixed(c, 1), n, kind[LINE_FORMATS_MAX];
	uint64_t form[LINE_FORMATS_MAX];
	struct dwarf_value v;
	int err = 0;

	if (formats > LINE_FORMATS_MAX)
		return -EINVAL;
	for (size_t i = 0; i < formats; i++) {
		kind[i] = cursor_uleb(c);
		form[i] = cursor_uleb(c);
	}
	n = cursor_uleb(c);
	for (uint64_t i = 0; i < n && !err; i++) {
		const char *name = NULL;
		uint64_t dir = 0;

		if (c->p >= c->end)
			return -EINVAL;
		for (size_t k = 0; k < formats; k++) {
			if (!dwarf_value_read(&r->cu, c, form[k], 0, &v))
				return -EINVAL;
			if (kind[k] == DW_LNCT_path)
				name = dwarf_value_text(&r->cu, &v);
			else if (kind[k] == DW_LNCT_directory_index)
				dwarf_value_number(&v, &dir);
		}
		err = dirs ? line_dir_add(r->l, name)
			   : line_file_add(r->l, name, dir);
	}
	return err;
}

/* --- header -------------------------------------------------------------------- */

/* *c: the program. */
static int line_header(struct line_run *r, struct cursor *c, uint64_t off)
{
	uint64_t len;
	struct cursor h;
	int err;

	*c = dwarf_cursor(r->cu.file->s[DWARF_LINE], off);
	r->cu.offset_size = 4;
	len = cursor_fixed(c, 4);
	if (len == 0xffffffff) {
		r->cu.offset_size = 8;
		len = cursor_fixed(c, 8);
	}
	if (c->bad || len > (size_t)(c->end - c->p) || len > LINE_BYTES_MAX)
		return -EINVAL;
	c->end = c->p + len;
	r->version = (uint16_t)cursor_fixed(c, 2);
	if (r->version < 2 || r->version > 5)
		return -EINVAL;
	if (r->version == 5) {
		cursor_fixed(c, 1); /* address size */
		cursor_fixed(c, 1); /* segment selectors are not used */
	}
	len = cursor_fixed(c, r->cu.offset_size);
	h = *c;
	if (!cursor_bytes(c, len))
		return -EINVAL;
	h.end = c->p;
	r->min_length = (uint8_t)cursor_fixed(&h, 1);
	r->max_ops = r->version >= 4 ? (uint8_t)cursor_fixed(&h, 1) : 1;
	cursor_fixed(&h, 1); /* default_is_stmt */
	r->line_base = (int8_t)cursor_signed(&h, 1);
	r->line_range = (uint8_t)cursor_fixed(&h, 1);
	r->opcode_base = (uint8_t)cursor_fixed(&h, 1);
	if (h.bad || !r->opcode_base || !r->max_ops)
		return -EINVAL;
	r->lengths = cursor_bytes(&h, r->opcode_base - 1U);
	if (h.bad)
		return -EINVAL;
	if (r->version < 5)
		return old_files(r, &h);
	err = new_table(r, &h, true);
	return err ? err : new_table(r, &h, false);
}

/* --- rows ---------------------------------------------------------------------- */

static void line_begin(struct line_run *r)
{
	r->address = 0;
	r->op_index = 0;
	r->file = 1;
	r->line = 1;
	r->first = r->l->n_rows;
	r->started = r->dropped = false;
}

/* Whether a sequence may begin here: not that of dropped code. */
static bool line_may_begin(const struct line_run *r)
{
	uint64_t at = r->address;
	size_t i;

	if (at < r->bounds->start || at >= r->bounds->end)
		return false;
	if (!r->n_spans)
		return true;
	VECTOR_SEARCH(i, r->n_spans, r->spans[i].start <= at);
	return i && at < r->spans[i - 1].end;
}

static void sequence_end(struct line_run *r)
{
	struct dwarf_lines *l = r->l;

	if (r->started && !r->dropped && l->n_rows > r->first) {
		if (VECTOR_ROOM(r->sequences, r->n_sequences,
				r->cap_sequences)) {
			r->err = -ENOMEM;
			return;
		}
		r->sequences[r->n_sequences++] = (struct line_sequence){
			.start = l->rows[r->first].start,
			.end = l->rows[l->n_rows - 1].start,
			.first = r->first,
			.n = l->n_rows - r->first,
		};
	}
	line_begin(r);
}

static void row_add(struct line_run *r, const struct dwarf_line_row *row)
{
	struct dwarf_lines *l = r->l;
	struct dwarf_line_row *last =
		l->n_rows > r->first ? &l->rows[l->n_rows - 1] : NULL;

	if (last && last->start == row->start) {
		*last = *row;
		return;
	}
	if (last && !row->end && last->file == row->file &&
	    last->line == row->line)
		return;
	if (VECTOR_ROOM(l->rows, l->n_rows, l->cap_rows))
		r->err = -ENOMEM;
	else
		l->rows[l->n_rows++] = *row;
}

/* A row of the matrix. Addresses ascend within a sequence; others are left out. */
static void line_emit(struct line_run *r, bool end)
{
	struct dwarf_lines *l = r->l;
	struct dwarf_line_row row = { .file = r->file, .end = end };

	if (!r->started) {
		r->started = true;
		r->dropped = !line_may_begin(r);
	}
	if (r->dropped)
		return;
	row.line = r->line <= INT32_MAX ? r->line : 0;
	row.start =
		(uint32_t)(MIN(r->address, r->bounds->end) - r->bounds->start);
	if (r->address < r->bounds->start ||
	    (l->n_rows > r->first && row.start < l->rows[l->n_rows - 1].start))
		return;
	if (r->address > r->bounds->end)
		row.end = true;
	row_add(r, &row);
}

static void line_advance(struct line_run *r, uint64_t by)
{
	if (r->max_ops > 1) {
		by += r->op_index;
		r->op_index = (uint32_t)(by % r->max_ops);
		by /= r->max_ops;
	}
	r->address += by * r->min_length;
}

static int line_extended(struct line_run *r, struct cursor *c)
{
	uint64_t len = cursor_uleb(c);
	const uint8_t *p = cursor_bytes(c, len);
	struct cursor a = { p, p ? p + len : p, false };

	if (!p || !len)
		return -EINVAL;
	switch (cursor_fixed(&a, 1)) {
	case DW_LNE_end_sequence:
		line_emit(r, true);
		sequence_end(r);
		break;
	case DW_LNE_set_address:
		if (len - 1 > 8 || len == 1)
			return -EINVAL;
		r->address = cursor_fixed(&a, len - 1);
		r->op_index = 0;
		break;
	case DW_LNE_define_file:
		return old_file(r, &a, line_string(&a));
	default:
		break;
	}
	return 0;
}

static void line_standard(struct line_run *r, struct cursor *c, uint8_t op)
{
	uint64_t file;

	switch (op) {
	case DW_LNS_copy:
		line_emit(r, false);
		break;
	case DW_LNS_advance_pc:
		line_advance(r, cursor_uleb(c));
		break;
	case DW_LNS_advance_line:
		r->line += (uint32_t)cursor_sleb(c);
		break;
	case DW_LNS_set_file:
		file = cursor_uleb(c);
		r->file = (uint32_t)MIN(file, (uint64_t)UINT32_MAX);
		break;
	case DW_LNS_const_add_pc:
		if (r->line_range)
			line_advance(r,
				     (255U - r->opcode_base) / r->line_range);
		break;
	case DW_LNS_fixed_advance_pc:
		r->address += cursor_fixed(c, 2);
		r->op_index = 0;
		break;
	default: /* it matters for debuggers only, or is not known */
		for (uint8_t i = r->lengths[op - 1]; i; i--)
			cursor_uleb(c);
	}
}

static void line_program(struct line_run *r, struct cursor *c)
{
	uint8_t op;

	line_begin(r);
	while (c->p < c->end && !c->bad && !r->err) {
		op = *c->p++;
		if (op >= r->opcode_base) {
			op = (uint8_t)(op - r->opcode_base);
			if (!r->line_range)
				break;
			line_advance(r, op / r->line_range);
			r->line +=
				(uint32_t)(r->line_base + op % r->line_range);
			line_emit(r, false);
		} else if (op) {
			line_standard(r, c, op);
		} else {
			int err = line_extended(r, c);

			if (err) {
				r->err = err == -ENOMEM ? err : r->err;
				break;
			}
		}
	}
}

static int cmp_span(const void *a, const void *b)
{
	const struct dwarf_span *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

/* --- sequences ----------------------------------------------------------------- */

static int cmp_sequence(const void *a, const void *b)
{
	const struct line_sequence *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->first < y->first ? -1 : x->first > y->first;
}

/* Rows of a sequence from 'from' on, at the end of 'out'. */
static uint32_t sequence_copy(const struct line_sequence *s, uint32_t from,
			      const struct dwarf_line_row *rows,
			      struct dwarf_line_row *out)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < s->n; i++) {
		out[n] = rows[s->first + i];
		if (i + 1 < s->n && rows[s->first + i + 1].start <= from)
			continue;
		out[n].start = MAX(out[n].start, from);
		n++;
	}
	return n;
}

static int sequences_order(struct line_run *r)
{
	struct dwarf_lines *l = r->l;
	struct dwarf_line_row *out;
	uint32_t n = 0, end = 0;
	bool sorted = true;

	for (uint32_t i = 1; i < r->n_sequences && sorted; i++)
		sorted = r->sequences[i - 1].end <= r->sequences[i].start;
	if (r->n_sequences == 0)
		l->n_rows = 0;
	if (sorted)
		return 0;
	out = malloc((l->n_rows + 1ULL) * sizeof(*out));
	if (!out)
		return -ENOMEM;
	qsort(r->sequences, r->n_sequences, sizeof(*r->sequences),
	      cmp_sequence);
	for (uint32_t i = 0; i < r->n_sequences; i++) {
		if (i && r->sequences[i].end <= end)
			continue;
		n += sequence_copy(&r->sequences[i], end, l->rows, out + n);
		end = r->sequences[i].end;
	}
	free(l->rows);
	l->rows = out;
	l->n_rows = l->cap_rows = n;
	return 0;
}

int dwarf_lines_read(struct dwarf_lines *l, const struct dwarf_cu *cu,
		     uint64_t off, const struct dwarf_bounds *bounds,
		     struct dwarf_span *spans, size_t n_spans)
{
	struct line_run r = { .l = l,
			      .cu = *cu,
			      .bounds = bounds,
			      .spans = spans,
			      .n_spans = n_spans };
	struct cursor c;
	int err;

	*l = (struct dwarf_lines){ 0 };
	err = line_header(&r, &c, off);
	if (err || !bounds)
		return err;
	if (n_spans)
		qsort(spans, n_spans, sizeof(*spans), cmp_span);
	line_program(&r, &c);
	if (!r.err) {
		sequence_end(&r); /* one without an end */
		r.err = r.err ?: sequences_order(&r);
	}
	free(r.sequences);
	return r.err;
}
