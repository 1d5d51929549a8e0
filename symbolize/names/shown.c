// SPDX-License-Identifier: Apache-2.0
/* shown: see symbolize/names/shown.h. */
#include <errno.h>
#include <string.h>

#include "base/base.h"
#include "base/text.h"
#include "symbolize/names/shown.h"
#include "symbolize/symbolize.h"

/* The length of name[0..len) without its last suffix; 'len' if it has none. */
static size_t shown_cut(const char *name, size_t len)
{
	static const char *const words[] = {
		".cold",     ".constprop",  ".isra", ".part",
		".lto_priv", ".localalias", ".llvm",
	};
	size_t end = len, n;

	while (end && name[end - 1] >= '0' && name[end - 1] <= '9')
		end--;
	if (end == len || !end || name[end - 1] != '.')
		end = len;
	else
		end--;
	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		n = strlen(words[i]);
		if (end > n && !memcmp(name + end - n, words[i], n))
			return end - n;
	}
	return len;
}

size_t shown_bare(const char *name)
{
	size_t len = strlen(name), bare;

	while ((bare = shown_cut(name, len)) < len)
		len = bare;
	return len;
}

/*
 * Whether all is printable ASCII. Eight bytes at a time: every name passes here, and some of
 * C++ have thousands. The top bit of a byte is set in 'v' if the byte is above 0x7f, after
 * the subtraction if it is below ' ', after the addition if it is 0x7f. A printable byte
 * neither borrows nor carries, so the first other one is always found.
 */
static bool shown_is_plain(const char *s, size_t len)
{
	const uint64_t ones = 0x0101010101010101, tops = ones << 7;
	uint64_t v, bad = 0;
	size_t i;

	for (i = 0; i + sizeof(v) <= len; i += sizeof(v)) {
		memcpy(&v, s + i, sizeof(v));
		bad |= v | (v - ones * ' ') | (v + ones);
		if (bad & tops)
			return false;
	}
	for (; i < len; i++)
		if (s[i] < ' ' || s[i] >= 0x7f)
			return false;
	return true;
}

static int shown_text(const char **text, struct arena *arena)
{
	struct strbuf sb = { 0 };
	size_t len = strlen(*text);
	int err = 0;

	if (shown_is_plain(*text, len))
		return 0;
	text_add(&sb, *text, len);
	*text = strbuf_str(&sb) ? arena_memdup(arena, sb.data, sb.len + 1)
				: NULL;
	if (!*text)
		err = -ENOMEM;
	strbuf_fini(&sb);
	return err;
}

int shown_escape(struct symbolizer_function *fn, struct arena *arena)
{
	bool same = fn->name == fn->system_name;
	int err = shown_text(&fn->name, arena);

	if (same)
		fn->system_name = fn->name;
	else
		err = err ?: shown_text(&fn->system_name, arena);
	return err ?: shown_text(&fn->file, arena);
}
