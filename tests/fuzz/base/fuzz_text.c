// SPDX-License-Identifier: Apache-2.0
/*
 * Any bytes as text for a terminal: the result is UTF-8 without control characters
 * or marks of direction, and escaping it again changes nothing. As JSON: the result
 * is ASCII.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void refuse(const struct strbuf *sb, const char *bytes)
{
	if (sb->len && memmem(sb->data, sb->len, bytes, strlen(bytes)))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* U+009B, U+202E, U+2066, U+200F, U+061C, U+2028 */
	static const char *const marks[] = { "\xc2\x9b",     "\xe2\x80\xae",
					     "\xe2\x81\xa6", "\xe2\x80\x8f",
					     "\xd8\x9c",     "\xe2\x80\xa8" };
	struct strbuf once = STRBUF_INIT, twice = STRBUF_INIT;
	size_t i;

	text_add(&once, (const char *)data, size);
	for (i = 0; i < once.len; i++)
		if ((unsigned char)once.data[i] < ' ' || once.data[i] == 0x7f)
			abort();
	for (i = 0; i < ARRAY_SIZE(marks); i++)
		refuse(&once, marks[i]);
	text_add(&twice, strbuf_str(&once), once.len);
	if (once.len != twice.len ||
	    (once.len && memcmp(once.data, twice.data, once.len)))
		abort();
	strbuf_reset(&once);
	text_add_json(&once, (const char *)data, size);
	for (i = 0; i < once.len; i++)
		if ((unsigned char)once.data[i] >= 0x7f)
			abort();
	strbuf_fini(&once);
	strbuf_fini(&twice);
	return 0;
}
