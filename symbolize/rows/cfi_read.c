// SPDX-License-Identifier: Apache-2.0
/* cfi_read: bytes, numbers and pointers of CFI; see symbolize/rows/cfi.h. */
#include <string.h>

#include "symbolize/rows/cfi.h"

/* Pointer encodings, LSB Core 10.5.1. */
#define PE_FORMAT 0x0f
#define PE_ABSPTR 0x00
#define PE_ULEB128 0x01
#define PE_UDATA2 0x02
#define PE_UDATA4 0x03
#define PE_UDATA8 0x04
#define PE_SLEB128 0x09
#define PE_SDATA2 0x0a
#define PE_SDATA4 0x0b
#define PE_SDATA8 0x0c
#define PE_APPLICATION 0xf0
#define PE_PCREL 0x10

const uint8_t *symbolizer_cfi_bytes(struct cfi_cursor *c, uint64_t len)
{
	const uint8_t *p = c->p;

	if (len > (size_t)(c->end - c->p)) {
		c->p = c->end;
		c->bad = true;
		return NULL;
	}
	c->p += len;
	return p;
}

uint64_t symbolizer_cfi_fixed(struct cfi_cursor *c, size_t size)
{
	const uint8_t *p = symbolizer_cfi_bytes(c, size);
	uint64_t v = 0;

	if (p)
		memcpy(&v, p, size); /* little endian, as elf.c asserts */
	return v;
}

int64_t symbolizer_cfi_signed(struct cfi_cursor *c, size_t size)
{
	unsigned int shift = 64 - 8 * (unsigned int)size;

	return (int64_t)(symbolizer_cfi_fixed(c, size) << shift) >> shift;
}

/* At most ten bytes; what does not fit into 64 bits is cut. */
static uint64_t leb(struct cfi_cursor *c, bool is_signed)
{
	unsigned int shift = 0;
	uint64_t v = 0;
	uint8_t byte;

	/* One byte nearly always. */
	do {
		if (c->p == c->end || shift > 63) {
			c->p = c->end;
			c->bad = true;
			return 0;
		}
		byte = *c->p++;
		v |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
	} while (byte & 0x80);
	if (is_signed && (byte & 0x40) && shift < 64)
		v |= ~0ULL << shift;
	return v;
}

uint64_t symbolizer_cfi_uleb(struct cfi_cursor *c)
{
	return leb(c, false);
}

int64_t symbolizer_cfi_sleb(struct cfi_cursor *c)
{
	return (int64_t)leb(c, true);
}

bool symbolizer_cfi_pointer(struct cfi_cursor *c, uint8_t encoding, uint64_t at,
			    uint64_t *out)
{
	uint64_t base;

	switch (encoding & PE_APPLICATION) {
	case 0:
		base = 0;
		break;
	case PE_PCREL:
		base = at;
		break;
	default: /* indirect, aligned, relative to what no file says */
		return false;
	}
	switch (encoding & PE_FORMAT) {
	case PE_ULEB128:
		*out = base + symbolizer_cfi_uleb(c);
		return true;
	case PE_SLEB128:
		*out = base + (uint64_t)symbolizer_cfi_sleb(c);
		return true;
	case PE_UDATA2:
		*out = base + symbolizer_cfi_fixed(c, 2);
		return true;
	case PE_UDATA4:
		*out = base + symbolizer_cfi_fixed(c, 4);
		return true;
	case PE_SDATA2:
		*out = base + (uint64_t)symbolizer_cfi_signed(c, 2);
		return true;
	case PE_SDATA4:
		*out = base + (uint64_t)symbolizer_cfi_signed(c, 4);
		return true;
	case PE_ABSPTR:
	case PE_UDATA8:
	case PE_SDATA8:
		*out = base + symbolizer_cfi_fixed(c, 8);
		return true;
	default:
		return false;
	}
}
