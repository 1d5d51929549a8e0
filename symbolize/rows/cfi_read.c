// SPDX-License-Identifier: Apache-2.0
/* cfi_read: pointers of CFI; see symbolize/rows/cfi.h. */
#include "symbolize/rows/cfi.h"

/* Pointer encodings, LSB Core 10.5.1. */
#define PE_FORMAT 0x0f
#define PE_ULEB128 0x01
#define PE_SLEB128 0x09
#define PE_SIGNED 0x08
#define PE_APPLICATION 0xf0
#define PE_PCREL 0x10

bool symbolizer_cfi_pointer(struct cursor *c, uint8_t encoding, uint64_t at,
			    uint64_t *out)
{
	/* absptr, udata2, 4, 8, sdata2, 4, 8; 0: another format */
	static const uint8_t sizes[] = { 8, 0, 2, 4, 8, 0, 0, 0,
					 0, 0, 2, 4, 8, 0, 0, 0 };
	uint8_t format = encoding & PE_FORMAT, base = encoding & PE_APPLICATION;

	/* Others are indirect, aligned, or relative to something unknown. */
	if (base && base != PE_PCREL)
		return false;
	if (format == PE_ULEB128)
		*out = cursor_uleb(c);
	else if (format == PE_SLEB128)
		*out = (uint64_t)cursor_sleb(c);
	else if (!sizes[format])
		return false;
	else if (format & PE_SIGNED)
		*out = (uint64_t)cursor_signed(c, sizes[format]);
	else
		*out = cursor_fixed(c, sizes[format]);
	*out += base ? at : 0;
	return true;
}
