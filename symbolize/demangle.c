// SPDX-License-Identifier: Apache-2.0
/* demangle: see symbolize/demangle.h. */
#include <libiberty/demangle.h>
#include <setjmp.h>
#include <string.h>

#include "symbolize/demangle.h"

/*
 * libiberty itself refuses C++ names of more than 1024 bytes unless told to
 * recurse without limit, which nobody here does.
 */
#define MANGLED_MAX 1024

#define OPTIONS (DMGL_PARAMS | DMGL_ANSI)

struct output {
	struct strbuf *to;
	size_t begin;
	bool cut;
	jmp_buf stop;
};

static bool has_high_byte(const char *s, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)s[i] >= 0x80)
			return true;
	return false;
}

/*
 * The demanglers cannot be told to stop, so they are left by a jump. Both keep
 * what they have on the stack, but for the buffer of a punycode identifier,
 * which the Rust one frees after it has printed it, in one piece. Such a piece
 * is not ASCII: it is thrown away and the jump waits for the next.
 */
static void collect(const char *s, size_t len, void *arg)
{
	struct output *out = arg;

	if (out->to->len - out->begin + len > SYMBOLIZER_DEMANGLED_MAX) {
		out->cut = true;
		if (has_high_byte(s, len))
			return;
		longjmp(out->stop, 1);
	}
	strbuf_add(out->to, s, len);
}

static bool is_mangled(const char *name)
{
	name += strspn(name, "_");
	return name[0] == 'Z' || name[0] == 'R' ||
	       strncmp(name, "GLOBAL_", 7) == 0;
}

typedef int (*demangler)(const char *name, int options, demangle_callbackref fn,
			 void *arg);

static bool try(demangler fn, const char *name, struct strbuf *to)
{
	struct output out = { .to = to, .begin = to->len };

	if (setjmp(out.stop) == 0 && fn(name, OPTIONS, collect, &out) &&
	    !out.cut && !to->failed && to->len > out.begin)
		return true;
	if (to->data) {
		to->len = out.begin;
		to->data[to->len] = '\0';
	}
	return false;
}

bool symbolizer_demangle(const char *name, struct strbuf *to)
{
	if (name[0] != '_' || !is_mangled(name) || strlen(name) > MANGLED_MAX)
		return false;
	/* Rust's older names are C++ names too: it goes first. */
	return try(rust_demangle_callback, name, to) ||
	       try(cplus_demangle_v3_callback, name, to);
}
