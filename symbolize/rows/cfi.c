// SPDX-License-Identifier: Apache-2.0
/* cfi: the entries of a section; see symbolize/rows/cfi.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "symbolize/rows/cfi.h"
#include "symbolize/rows/rows_table.h"

#define CFI_WINDOW ((size_t)64 << 10)
#define CFI_ENTRY_MAX (1 << 20)
/* A cache: a common entry is read again after another replaced it. */
#define CFI_CIES 64
#define CFI_CIE_MAX 512

#define CFI_LENGTH64 0xffffffffU

/* A section being read. */
struct reader {
	const struct cfi_section *s;
	struct symbolizer_rows_build *b;
	struct symbolizer_rows_info *info;
	uint64_t size; /* of the section's part that is in the file */
	uint8_t *window; /* of a file; holds [pos, pos + len) */
	uint64_t pos;
	size_t len;
	int err;
	uint64_t functions; /* so far */
	struct cfi_cie *cies; /* CFI_CIES of them; data_align 0: free */
};

/* Positions of an entry and of its bytes behind the length. */
struct entry {
	uint64_t pos, body, len;
	bool wide; /* 64-bit DWARF */
	size_t id_len; /* of its first field */
};

static void cfi_note(struct reader *r, uint64_t pos, const char *what)
{
	symbolizer_rows_note(r->info, r->s->name, pos,
			     r->s->packed ? 0 : r->s->offset + pos, what);
}

/*
 * 'len' bytes of the section, CFI_ENTRY_MAX at most, which are in the file; valid
 * until the next call. NULL: r->err is set.
 */
static const uint8_t *cfi_window(struct reader *r, uint64_t pos, size_t len)
{
	if (r->s->src->buf)
		return r->s->src->buf + r->s->offset + pos;
	if (pos < r->pos || pos - r->pos > r->len ||
	    len > r->len - (pos - r->pos)) {
		r->pos = pos;
		r->len = (size_t)MIN(MAX(len, CFI_WINDOW), r->size - pos);
		r->err = symbolizer_src_read(r->s->src, r->s->offset + pos,
					     r->window, r->len);
		if (r->err)
			r->len = 0;
	}
	return r->err ? NULL : r->window + (pos - r->pos);
}

/* --- common entries -------------------------------------------------------- */

/*
 * Reads the augmentation string, LSB Core 10.6.1.1.1, and its data. NULL, or what
 * is wrong.
 */
static const char *cie_augmentation(struct cfi_cie *cie, struct cursor *c,
				    const char *s)
{
	struct cursor data;
	uint64_t len, skipped;

	if (*s == '\0' || strcmp(s, "eh") == 0) /* of gcc 2 */
		return NULL;
	if (*s++ != 'z')
		return "an unknown augmentation";
	cie->sized = true;
	len = cursor_uleb(c);
	data = (struct cursor){ .p = cursor_bytes(c, len) };
	data.end = c->p;
	if (!data.p)
		return "augmentation data beyond their entry";
	for (; *s; s++) {
		switch (*s) {
		case 'S':
			cie->init.rule.signal = true;
			break;
		case 'R':
			cie->encoding = (uint8_t)cursor_fixed(&data, 1);
			break;
		case 'L':
			cursor_fixed(&data, 1);
			break;
		case 'P': /* only its length matters */
			len = cursor_fixed(&data, 1);
			if (!symbolizer_cfi_pointer(&data, len & 0x0f, 0,
						    &skipped))
				return "an unknown pointer encoding";
			break;
		case 'B': /* arm64: signed return addresses */
		case 'G': /* arm64: tagged stack */
			break;
		default:
			return "an unknown augmentation";
		}
	}
	return data.bad ? "augmentation data that are cut off" : NULL;
}

/* Reads the fields before the instructions. NULL, or what is wrong. */
static const char *cie_head(struct cfi_cie *cie, struct cursor *c, bool eh)
{
	uint8_t version = (uint8_t)cursor_fixed(c, 1);
	const char *string = (const char *)c->p;
	const char *end = memchr(c->p, '\0', (size_t)(c->end - c->p));
	uint64_t ra;

	if (version != 1 && version != 3 && (version != 4 || eh))
		return "an unknown version";
	if (!end)
		return "an augmentation that does not end";
	c->p += end - string + 1;
	if (strcmp(string, "eh") == 0)
		cursor_fixed(c, 8); /* a pointer */
	if (version == 4 &&
	    (cursor_fixed(c, 1) != 8 || cursor_fixed(c, 1) != 0))
		return "addresses that are not of 64 bits";
	cie->code_align = cursor_uleb(c);
	cie->data_align = cursor_sleb(c);
	ra = version == 1 ? cursor_fixed(c, 1) : cursor_uleb(c);
	if (c->bad || ra >= SYMBOLIZER_REGS)
		return "no return address";
	cie->ra = (uint8_t)ra;
	return cie_augmentation(cie, c, string);
}

static const char *cie_parse(struct reader *r, struct cfi_cie *cie,
			     const uint8_t *body, size_t len)
{
	struct cfi_run run = { .cie = cie };
	const char *bad;

	run.c = (struct cursor){ body, body + len, false };
	arch_rule_default(&cie->init.rule);
	/* The return address has no rule until the program gives one. */
	cie->init.rule.regs[SYMBOLIZER_REG_RA] =
		(struct symbolizer_value){ .from = SYMBOLIZER_SAME };
	bad = cie_head(cie, &run.c, r->s->eh);
	if (bad)
		return bad;
	run.state = cie->init;
	bad = symbolizer_cfi_run(&run, &r->b->exprs, &r->err);
	cie->init = run.state;
	return bad;
}

/*
 * Reads the length of the entry at 'pos', and its first field into *id. NULL, or
 * what is wrong. The bytes at 'p' end 20 bytes on, or with the section.
 */
static const char *entry_head(const struct reader *r, const uint8_t *p,
			      uint64_t pos, struct entry *e, uint64_t *id)
{
	struct cursor c = { p, p + MIN(20, r->size - pos), false };

	e->pos = pos;
	e->len = cursor_fixed(&c, 4);
	e->wide = e->len == CFI_LENGTH64;
	if (e->wide)
		e->len = cursor_fixed(&c, 8);
	e->body = pos + (uint64_t)(c.p - p);
	*id = 0;
	if (c.bad || e->len > r->size - e->body)
		return "an entry that leads beyond its section";
	if (e->len == 0)
		return NULL;
	/* Of 32 bits also in the wide form of .eh_frame, LSB 10.6.1.1. */
	e->id_len = e->wide && !r->s->eh ? 8 : 4;
	*id = cursor_fixed(&c, e->id_len);
	if (c.bad || (uint64_t)(c.p - p) > e->body - pos + e->len)
		return "an entry too short to be one";
	return NULL;
}

static bool is_cie(const struct reader *r, const struct entry *e, uint64_t id)
{
	if (r->s->eh)
		return id == 0;
	return id == (e->wide ? UINT64_MAX : UINT32_MAX);
}

static void cie_load(struct reader *r, struct cfi_cie *cie, uint64_t pos)
{
	size_t len = (size_t)MIN((uint64_t)CFI_CIE_MAX, r->size - pos), head;
	uint8_t buf[CFI_CIE_MAX];
	struct entry e;
	uint64_t id;

	memset(cie, 0, sizeof(*cie));
	cie->offset = pos;
	r->err = symbolizer_src_read(r->s->src, r->s->offset + pos, buf, len);
	if (r->err)
		return;
	cie->damage = entry_head(r, buf, pos, &e, &id);
	if (cie->damage)
		return;
	head = (size_t)(e.body - pos);
	if (e.len == 0 || !is_cie(r, &e, id))
		cie->damage = "a function whose common entry is none";
	else if (head + e.len > len)
		cie->damage = "a common entry of no sensible length";
	else
		cie->damage = cie_parse(r, cie, buf + head + e.id_len,
					(size_t)e.len - e.id_len);
}

static const struct cfi_cie *cie_get(struct reader *r, uint64_t pos)
{
	struct cfi_cie *cie = &r->cies[hash_u64(pos) % CFI_CIES];

	/* Offset 0 is that of the first entry, and of free places. */
	if (cie->offset != pos || (!cie->data_align && !cie->damage))
		cie_load(r, cie, pos);
	return cie;
}

/* --- functions ------------------------------------------------------------- */

/* Reads the addresses of a function. NULL, or what is wrong. */
static const char *fde_range(struct reader *r, const struct cfi_cie *cie,
			     struct cursor *c, uint64_t at, uint64_t *start,
			     uint64_t *end)
{
	/* A length has the same size, is unsigned and absolute. */
	uint8_t length = cie->encoding & 0x07;

	if (!symbolizer_cfi_pointer(c, cie->encoding, at, start) ||
	    !symbolizer_cfi_pointer(c, length, 0, end))
		return "a pointer encoding that code has not";
	if (c->bad)
		return "an entry too short for its addresses";
	if (__builtin_add_overflow(*start, *end, end))
		return "a function that ends beyond all addresses";
	return NULL;
}

static const char *fde_parse(struct reader *r, const struct cfi_cie *cie,
			     const uint8_t *body, const struct entry *e)
{
	struct cfi_run run = {
		.cie = cie,
		.c = { body + e->id_len, body + e->len, false },
		.state = cie->init,
		.at = r->s->vaddr + e->body,
		.mark = body,
		.b = r->b,
	};
	const char *bad = fde_range(r, cie, &run.c, run.at + e->id_len,
				    &run.loc, &run.end);

	if (bad)
		return bad;
	if (!symbolizer_rows_func(r->b, run.loc, run.end, &r->err)) {
		if (r->err != -E2BIG)
			return NULL;
		r->err = 0;
		return "more functions than a table holds";
	}
	if (r->b->bare)
		return NULL;
	if (cie->sized && !cursor_bytes(&run.c, cursor_uleb(&run.c))) {
		r->err = symbolizer_rows_add(r->b, run.loc, NULL);
		return "augmentation data beyond their entry";
	}
	return symbolizer_cfi_run(&run, &r->b->exprs, &r->err);
}

/* *pos: of what is wrong, if anything. */
static const char *cfi_read_fde(struct reader *r, const struct entry *e,
				uint64_t id, uint64_t *pos)
{
	uint64_t at = r->s->eh ? e->body - id : id;
	const struct cfi_cie *cie;
	const uint8_t *body;

	r->functions++;
	/* The difference may wrap: then it is large. */
	if (at >= r->size)
		return "a function whose common entry is none";
	cie = cie_get(r, at);
	if (r->err)
		return NULL;
	if (cie->damage) {
		*pos = at;
		return cie->damage;
	}
	if (e->len > CFI_ENTRY_MAX)
		return "an entry of no sensible length";
	body = cfi_window(r, e->body, (size_t)e->len);
	return body ? fde_parse(r, cie, body, e) : NULL;
}

/* --- a section ------------------------------------------------------------- */

static void read_entries(struct reader *r)
{
	const uint8_t *p;
	const char *bad;
	struct entry e;
	uint64_t pos, at, id;

	for (pos = 0; r->size - pos >= 4 && !r->err; pos = e.body + e.len) {
		p = cfi_window(r, pos, (size_t)MIN(20, r->size - pos));
		if (!p)
			return;
		at = pos;
		bad = entry_head(r, p, pos, &e, &id);
		/*
		 * An entry without length ends the list, LSB 10.6.1.1; but
		 * linkers leave some in the middle. If the number of functions
		 * is known, the end is after that many.
		 */
		if (r->s->functions && r->functions >= r->s->functions &&
		    (bad || e.len == 0))
			return;
		if (bad) {
			cfi_note(r, at, bad);
			return;
		}
		if (e.len && !is_cie(r, &e, id))
			bad = cfi_read_fde(r, &e, id, &at);
		if (bad)
			cfi_note(r, at, bad);
	}
}

int symbolizer_cfi_read(const struct cfi_section *s,
			struct symbolizer_rows_build *b,
			struct symbolizer_rows_info *info)
{
	struct reader r = { .s = s, .b = b, .info = info };

	if (s->offset < s->src->size)
		r.size = MIN(s->size, s->src->size - s->offset);
	r.cies = calloc(CFI_CIES, sizeof(*r.cies));
	r.window = s->src->buf ? NULL : malloc(CFI_ENTRY_MAX);
	r.err = r.cies && (r.window || s->src->buf) ? 0 : -ENOMEM;
	if (!r.err)
		read_entries(&r);
	if (r.err && r.err != -ENOMEM) {
		cfi_note(&r, r.pos, "bytes that cannot be read");
		r.err = 0;
	}
	if (!s->functions && r.size < s->size)
		cfi_note(&r, r.size, "a section that leads out of the file");
	free(r.window);
	free(r.cies);
	return r.err;
}
