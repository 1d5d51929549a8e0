// SPDX-License-Identifier: Apache-2.0
/* index_pack: writes an index, see symbolize/names/index_pack.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "symbolize/names/index_pack.h"

/*
 * Names before compression: a browser's take less. It bounds the time: 128 MiB
 * take 3 s.
 */
#define PACK_TEXT_MAX (128ULL << 20)
#define PACK_DATA_MAX (256U << 20)

static void pack_uleb(struct strbuf *to, uint64_t v)
{
	uint8_t b[10];
	size_t n = 0;

	do {
		b[n++] = (uint8_t)(v | 0x80);
		v >>= 7;
	} while (v);
	b[n - 1] &= 0x7f;
	strbuf_add(to, b, n);
}

/* Compresses the names of the block; level 6 of zlib, its usual one. */
static int pack_names(struct index_packer *p)
{
	z_stream *z = &p->z;
	uint8_t *out;
	uLong bound;
	int err = 0;

	pack_uleb(&p->data, p->text.len);
	if (!p->text.len)
		return 0;
	if (!p->deflating && deflateInit2(z, 6, Z_DEFLATED, -MAX_WBITS, 8,
					  Z_DEFAULT_STRATEGY) != Z_OK)
		return -ENOMEM;
	p->deflating = true;
	deflateReset(z);
	bound = deflateBound(z, p->text.len);
	out = malloc(bound);
	if (!out)
		return -ENOMEM;
	z->next_in = (uint8_t *)p->text.data;
	z->avail_in = (uInt)p->text.len;
	z->next_out = out;
	z->avail_out = (uInt)bound;
	if (deflate(z, Z_FINISH) != Z_STREAM_END)
		err = -ENOMEM; /* never: it has room */
	pack_uleb(&p->data, bound - z->avail_out);
	strbuf_add(&p->data, out, bound - z->avail_out);
	free(out);
	return err;
}

/* Ends the current block. */
static int pack_block(struct index_packer *p)
{
	int err = pack_names(p);

	strbuf_add(&p->data, p->entries.data, p->entries.len);
	if (p->data.failed || p->entries.failed || p->text.failed)
		err = -ENOMEM;
	strbuf_reset(&p->text);
	strbuf_reset(&p->entries);
	return err;
}

static int pack_begin(struct index_packer *p, uint64_t start)
{
	if (VECTOR_ROOM(p->starts, p->nblocks, p->cap_starts) ||
	    VECTOR_ROOM(p->at, p->nblocks, p->cap_at))
		return -ENOMEM;
	p->starts[p->nblocks] = start;
	p->at[p->nblocks++] = (uint32_t)p->data.len;
	p->end = start;
	p->tab = 0;
	memset(p->names, 0, sizeof(p->names));
	return 0;
}

static void pack_name(struct index_packer *p, const struct index_range *r)
{
	int64_t step = (int64_t)r->name - p->names[r->tab];

	pack_uleb(&p->entries, (uint64_t)step << 1 ^ (uint64_t)(step >> 63));
	p->names[r->tab] = r->name;
}

int index_pack_add(struct index_packer *p, const struct index_range *r,
		   const char *text)
{
	size_t len = text ? strlen(text) + 1 : 0;
	bool first = p->n % INDEX_BLOCK == 0, gap;
	int err = 0;

	if (p->text_bytes + len > PACK_TEXT_MAX || p->data.len > PACK_DATA_MAX)
		return -EFBIG;
	if (first && p->n)
		err = pack_block(p);
	if (!err && first)
		err = pack_begin(p, r->start);
	if (err)
		return err;
	gap = r->start != roundup(p->end, INDEX_ALIGN);
	/* No segment has 2^62 bytes. */
	pack_uleb(&p->entries, MIN(r->size, UINT64_MAX >> 2) << 2 |
				       (gap ? INDEX_GAP : 0) |
				       (r->tab != p->tab ? INDEX_CHANGED : 0));
	if (gap)
		pack_uleb(&p->entries, r->start - p->end);
	if (r->tab != p->tab)
		strbuf_add(&p->entries, &r->tab, 1);
	if (text)
		strbuf_add(&p->text, text, len);
	else
		pack_name(p, r);
	p->text_bytes += len;
	p->end = r->start + r->size;
	p->tab = r->tab;
	p->n++;
	return 0;
}

int index_pack_finish(struct index_packer *p, struct symbolizer_index **xp)
{
	struct symbolizer_index *x = calloc(1, sizeof(*x));
	int err = p->n ? pack_block(p) : 0;
	struct index_head *head;
	uint8_t *to;

	head = malloc(sizeof(*head) + p->nblocks * 12 + p->data.len);
	if (!x || !head || err) {
		free(x);
		free(head);
		return err ? err : -ENOMEM;
	}
	memcpy(head->strings, p->strings, sizeof(head->strings));
	head->bytes = p->data.len;
	head->nblocks = (uint32_t)p->nblocks;
	head->n = (uint32_t)p->n;
	to = (uint8_t *)(head + 1);
	if (p->n) {
		memcpy(to, p->starts, p->nblocks * 8);
		memcpy(to + p->nblocks * 8, p->at, p->nblocks * 4);
		memcpy(to + p->nblocks * 12, p->data.data, p->data.len);
	}
	x->head = head;
	*xp = x;
	return 0;
}

void index_pack_fini(struct index_packer *p)
{
	if (p->deflating)
		deflateEnd(&p->z);
	free(p->starts);
	free(p->at);
	strbuf_fini(&p->data);
	strbuf_fini(&p->text);
	strbuf_fini(&p->entries);
}
