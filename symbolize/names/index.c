// SPDX-License-Identifier: Apache-2.0
/* index: lookups; see symbolize/names/index.h and index_pack.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "symbolize/names/index_pack.h"

/* A block while it is read. */
struct index_block {
	struct cursor c; /* the next range */
	uint32_t left; /* ranges */
	uint32_t text; /* names of ranges so far that are in the index */
	struct index_range range; /* the last one */
	uint32_t names[INDEX_N_TABS];
	const uint8_t *packed; /* its names */
	uint64_t packed_len, text_len;
};

static const uint64_t *index_starts(const struct index_head *h)
{
	return (const uint64_t *)(h + 1);
}

static const uint32_t *index_at(const struct index_head *h)
{
	return (const uint32_t *)(index_starts(h) + h->nblocks);
}

static void block_open(const struct index_head *h, uint32_t i,
		       struct index_block *b)
{
	const uint8_t *data = (const uint8_t *)(index_at(h) + h->nblocks);

	*b = (struct index_block){
		.c = { data + index_at(h)[i], data + h->bytes, false },
		.left = MIN(h->n - i * INDEX_BLOCK, (uint32_t)INDEX_BLOCK),
		.range.start = index_starts(h)[i],
	};
	b->text_len = cursor_uleb(&b->c);
	if (!b->text_len)
		return;
	b->packed_len = cursor_uleb(&b->c);
	b->packed = cursor_bytes(&b->c, b->packed_len);
}

/*
 * Reads the next range. The name of one that is in the index is the number of
 * those before it in the block.
 */
static bool block_next(struct index_block *b)
{
	struct index_range *r = &b->range;
	uint64_t head, end = r->start + r->size, step;

	if (!b->left--)
		return false;
	head = cursor_uleb(&b->c);
	r->start = head & INDEX_GAP ? end + cursor_uleb(&b->c)
				    : roundup(end, (uint64_t)INDEX_ALIGN);
	r->size = head >> 2;
	if (head & INDEX_CHANGED)
		r->tab = (uint8_t)cursor_fixed(&b->c, 1);
	if (r->tab >= INDEX_N_TABS)
		return false;
	if (index_in_file(r->tab)) {
		step = cursor_uleb(&b->c);
		b->names[r->tab] += (uint32_t)(step >> 1 ^ -(step & 1));
		r->name = b->names[r->tab];
	} else {
		r->name = b->text++;
	}
	return !b->c.bad;
}

void symbolizer_index_free(struct symbolizer_index *x)
{
	if (!x)
		return;
	free(x->head);
	free(x->text);
	free(x);
}

size_t symbolizer_index_count(const struct symbolizer_index *x)
{
	return x->head->n;
}

size_t symbolizer_index_bytes(const struct symbolizer_index *x)
{
	return sizeof(*x) + sizeof(*x->head) + x->head->nblocks * 12 +
	       x->head->bytes + x->text_len;
}

bool symbolizer_index_find(const struct symbolizer_index *x, uint64_t vaddr,
			   struct symbolizer_range *out)
{
	const struct index_head *h = x->head;
	const uint64_t *starts = index_starts(h);
	struct index_block b;
	uint32_t i;

	VECTOR_SEARCH(i, h->nblocks, starts[i] <= vaddr);
	if (i == 0)
		return false;
	block_open(h, i - 1, &b);
	while (block_next(&b) && b.range.start <= vaddr) {
		if (vaddr - b.range.start >= b.range.size)
			continue;
		*out = (struct symbolizer_range){
			.start = b.range.start,
			.size = b.range.size,
			.name = b.range.name,
			.block = i - 1,
			.tab = b.range.tab,
		};
		return true;
	}
	return false;
}

/* Decompresses the names of a block. 0, -ENOMEM, -ENODATA. */
static int index_text(struct symbolizer_index *x, uint32_t i)
{
	struct index_block b;
	z_stream z = { 0 };
	char *text;
	int rc;

	if (x->text && x->text_block == i)
		return 0;
	block_open(x->head, i, &b);
	if (!b.packed || b.text_len > INDEX_BLOCK * INDEX_NAME_MAX)
		return -ENODATA;
	text = malloc(b.text_len);
	if (!text || inflateInit2(&z, -MAX_WBITS) != Z_OK) {
		free(text);
		return -ENOMEM;
	}
	z.next_in = (uint8_t *)b.packed;
	z.avail_in = (uInt)b.packed_len;
	z.next_out = (uint8_t *)text;
	z.avail_out = (uInt)b.text_len;
	rc = inflate(&z, Z_FINISH);
	inflateEnd(&z);
	free(x->text);
	x->text = text;
	x->text_len = b.text_len - z.avail_out;
	x->text_block = i;
	return rc == Z_STREAM_END ? 0 : -ENODATA;
}

/* The n-th name of a block. */
static int index_text_name(struct symbolizer_index *x, uint32_t block,
			   uint32_t n, char *dst, size_t cap)
{
	int err = index_text(x, block);
	const char *s = x->text, *nul;
	size_t left = x->text_len, len;

	if (err)
		return err;
	for (;; s = nul + 1) {
		left = x->text_len - (size_t)(s - x->text);
		nul = left ? memchr(s, '\0', left) : NULL;
		if (!nul)
			return -ENODATA;
		if (n-- == 0)
			break;
	}
	len = MIN((size_t)(nul - s), cap - 1);
	memcpy(dst, s, len);
	dst[len] = '\0';
	return (int)len;
}

int symbolizer_index_name(struct symbolizer_index *x,
			  struct symbolizer_src *src,
			  const struct symbolizer_range *range, char *dst,
			  size_t cap)
{
	const struct index_strings *s =
		&x->head->strings[range->tab != INDEX_SYMTAB];
	int len;

	if (!index_in_file(range->tab))
		return index_text_name(x, range->block, range->name, dst, cap);
	if (s->off > UINT64_MAX - s->size || range->name >= s->size)
		return -ENODATA;
	len = symbolizer_src_string(src, s->off + range->name, s->off + s->size,
				    dst, cap);
	if (len < 0 || range->tab != INDEX_PLT)
		return len;
	if ((size_t)len + sizeof("@plt") > cap)
		return -ENAMETOOLONG;
	memcpy(dst + len, "@plt", sizeof("@plt"));
	return len + 4;
}

enum symbolizer_source
symbolizer_index_source(const struct symbolizer_range *range)
{
	static const enum symbolizer_source sources[INDEX_N_TABS] = {
		[INDEX_SYMTAB] = SYMBOLIZER_SOURCE_SYMTAB,
		[INDEX_DEBUG] = SYMBOLIZER_SOURCE_DEBUG_SYMTAB,
		[INDEX_MINI] = SYMBOLIZER_SOURCE_MINIDEBUG,
		[INDEX_DYNSYM] = SYMBOLIZER_SOURCE_DYNSYM,
		[INDEX_PLT] = SYMBOLIZER_SOURCE_DYNSYM,
	};

	return sources[range->tab];
}

int symbolizer_index_prefer(const char *a, const char *b)
{
	size_t under_a = strspn(a, "_"), under_b = strspn(b, "_");
	size_t len_a = strcspn(a, "@"), len_b = strcspn(b, "@");

	if (under_a != under_b)
		return under_a < under_b ? -1 : 1;
	if (len_a != len_b)
		return len_a < len_b ? -1 : 1;
	return strcmp(a, b);
}
