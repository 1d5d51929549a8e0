// SPDX-License-Identifier: Apache-2.0
/* cfi_read: pointers of CFI; see symbolize/rows/cfi.h. */
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

bool symbolizer_cfi_pointer(struct cursor *c, uint8_t encoding, uint64_t at,
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
		*out = base + cursor_uleb(c);
		return true;
	case PE_SLEB128:
		*out = base + (uint64_t)cursor_sleb(c);
		return true;
	case PE_UDATA2:
		*out = base + cursor_fixed(c, 2);
		return true;
	case PE_UDATA4:
		*out = base + cursor_fixed(c, 4);
		return true;
	case PE_SDATA2:
		*out = base + (uint64_t)cursor_signed(c, 2);
		return true;
	case PE_SDATA4:
		*out = base + (uint64_t)cursor_signed(c, 4);
		return true;
	case PE_ABSPTR:
	case PE_UDATA8:
	case PE_SDATA8:
		*out = base + cursor_fixed(c, 8);
		return true;
	default:
		return false;
	}
}
