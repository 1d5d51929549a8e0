// SPDX-License-Identifier: Apache-2.0
/* dwarf_text: see symbolize/dwarf/dwarf_text.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "symbolize/dwarf/dwarf_text.h"

#define TEXT_BYTES_MAX (1U << 30)
#define TEXT_SLOTS_MIN 1024
/* In front of the name of a function: its kind, and five digits of its line. */
#define TEXT_FUNCTION_HEAD 6
/* Digits of seven bits that are never NUL. */
#define TEXT_DIGIT 0x80

void dwarf_text_fini(struct dwarf_text *t)
{
	free(t->bytes);
	free(t->slots);
	memset(t, 0, sizeof(*t));
}

size_t dwarf_text_bytes(const struct dwarf_text *t)
{
	return t->cap + (t->slots ? (t->mask + 1ULL) * sizeof(*t->slots) : 0);
}

static uint32_t *text_slot(const struct dwarf_text *t, const char *s,
			   size_t len)
{
	uint32_t i = (uint32_t)hash_bytes(s, len) & t->mask;

	while (t->slots[i] && (strncmp(t->bytes + t->slots[i], s, len) != 0 ||
			       t->bytes[t->slots[i] + len]))
		i = (i + 1) & t->mask;
	return &t->slots[i];
}

/* At most half of the slots are in use. */
static int text_grow_slots(struct dwarf_text *t)
{
	struct dwarf_text next = *t;
	const char *s;

	if (t->slots && 2 * t->n <= t->mask)
		return 0;
	next.mask = t->slots ? 2 * t->mask + 1 : TEXT_SLOTS_MIN - 1;
	next.slots = calloc(next.mask + 1ULL, sizeof(*next.slots));
	if (!next.slots)
		return -ENOMEM;
	for (uint32_t i = 0; t->slots && i <= t->mask; i++) {
		if (!t->slots[i])
			continue;
		s = t->bytes + t->slots[i];
		*text_slot(&next, s, strlen(s)) = t->slots[i];
	}
	free(t->slots);
	*t = next;
	return 0;
}

static int text_room(struct dwarf_text *t, size_t len)
{
	size_t cap = MAX((size_t)t->cap, (size_t)4096);
	char *bytes;

	if (len > TEXT_BYTES_MAX - t->len)
		return -EFBIG;
	while (cap < t->len + len)
		cap += cap / 2;
	if (cap == t->cap)
		return 0;
	bytes = realloc(t->bytes, cap);
	if (!bytes)
		return -ENOMEM;
	t->bytes = bytes;
	t->cap = (uint32_t)cap;
	if (!t->len)
		t->bytes[t->len++] = '\0';
	return 0;
}

static int text_intern(struct dwarf_text *t, const char *s, size_t len,
		       uint32_t *offset)
{
	uint32_t *slot;
	int err = text_room(t, len + 2);

	if (!err)
		err = text_grow_slots(t);
	if (err)
		return err;
	slot = text_slot(t, s, len);
	if (!*slot) {
		*slot = t->len;
		memcpy(t->bytes + t->len, s, len);
		t->bytes[t->len + len] = '\0';
		t->len += (uint32_t)len + 1;
		t->n++;
	}
	*offset = *slot;
	return 0;
}

int dwarf_text_add(struct dwarf_text *t, const char *s, uint32_t *offset)
{
	size_t len = strnlen(s, SOURCE_TEXT_MAX);

	*offset = 0;
	return len ? text_intern(t, s, len, offset) : 0;
}

int dwarf_text_add_function(struct dwarf_text *t,
			    const struct dwarf_function *fn, uint32_t *offset)
{
	char s[TEXT_FUNCTION_HEAD + SOURCE_TEXT_MAX];
	size_t len = strnlen(fn->text, SOURCE_TEXT_MAX);

	s[0] = (char)(1 + fn->linkage);
	for (int i = 1; i < TEXT_FUNCTION_HEAD; i++)
		s[i] = (char)((fn->line >> 7 * (i - 1) & 0x7f) | TEXT_DIGIT);
	memcpy(s + TEXT_FUNCTION_HEAD, fn->text, len);
	return text_intern(t, s, TEXT_FUNCTION_HEAD + len, offset);
}

struct dwarf_texts dwarf_text_block(const struct dwarf_text *t)
{
	return (struct dwarf_texts){ t->bytes, t->len };
}

bool dwarf_texts_ok(const struct dwarf_texts *t)
{
	return !t->len || (!t->bytes[0] && !t->bytes[t->len - 1]);
}

const char *dwarf_texts_at(const struct dwarf_texts *t, uint32_t offset)
{
	return offset < t->len ? t->bytes + offset : "";
}

/* The last byte of all is a NUL, so that what is behind the head has an end. */
struct dwarf_function dwarf_texts_function(const struct dwarf_texts *t,
					   uint32_t offset)
{
	struct dwarf_function fn = { .text = "" };
	const char *s;

	if (!offset || offset >= t->len || t->len - offset < TEXT_FUNCTION_HEAD)
		return fn;
	s = t->bytes + offset;
	fn.text = dwarf_texts_at(t, offset + TEXT_FUNCTION_HEAD);
	fn.linkage = s[0] == 2;
	for (int i = 1; i < TEXT_FUNCTION_HEAD; i++)
		fn.line |= (uint32_t)(s[i] & 0x7f) << 7 * (i - 1);
	return fn;
}
