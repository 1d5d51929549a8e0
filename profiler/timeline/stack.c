// SPDX-License-Identifier: Apache-2.0
/* stack: see profiler/timeline/stack.h. */
#include <inttypes.h>
#include <string.h>

#include "bpf/abi_wait.h"
#include "profiler/cmd/lines.h"
#include "profiler/timeline/stack.h"

/* How the names of files and functions begin that only carry out a wait. */
static const char *const stack_plain_files[] = {
	"libc.so", "libc-", "libpthread", "ld-linux", "ld-musl", "[vdso]",
};
static const char *const stack_plain_functions[] = {
	"runtime.", "syscall.", "internal/", /* of Go */
};

/* Why a step has no stack, by the word of its no_stack. */
static const char *const stack_causes[][2] = {
#define X(NAME, name, help) { #name, help },
	ABI_WAIT_UNCOPIED(X)
#undef X
		{ "lost", "its stack is not resolved yet, or was dropped" },
	{ "many", "the path has too many stacks" },
};

void stack_list_add(struct stack_list *l, json_t *step)
{
	size_t n = json_array_size(l->steps);

	if (!lines_has(step, "frames") || lines_int(step, "stack") != n)
		return;
	if (!l->steps)
		l->steps = json_array();
	json_array_append(l->steps, step);
}

void stack_list_fini(struct stack_list *l)
{
	json_decref(l->steps);
	l->steps = NULL;
}

static const char *stack_base(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static bool stack_begins(const char *s, const char *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!strncmp(s, list[i], strlen(list[i])))
			return true;
	return false;
}

static bool stack_is_plain(const json_t *frame)
{
	return stack_begins(stack_base(lines_str(frame, "mapping")),
			    stack_plain_files, ARRAY_SIZE(stack_plain_files)) ||
	       stack_begins(lines_str(frame, "function"), stack_plain_functions,
			    ARRAY_SIZE(stack_plain_functions));
}

/* The first that is not plain, from 'i' on; NULL: none. */
static const json_t *stack_next(const json_t *frames, size_t *i)
{
	const json_t *f;

	while ((f = json_array_get(frames, *i))) {
		++*i;
		if (!stack_is_plain(f))
			return f;
	}
	return NULL;
}

/* " at main.c:12", or " in libfoo.so" where there are no lines; 'whole': with its path. */
static void stack_put_where(struct strbuf *sb, const json_t *f, bool whole)
{
	const char *file = lines_str(f, "file");
	bool source = *file;

	if (!source)
		file = lines_str(f, "mapping");
	if (!*file)
		return;
	strbuf_puts(sb, source ? " at " : " in ");
	lines_text(sb, whole ? file : stack_base(file));
	if (source && lines_has(f, "line"))
		strbuf_printf(sb, ":%" PRIu64, lines_int(f, "line"));
}

/* "take < run_b at prog.c:47" */
static void stack_put_short(struct strbuf *sb, const json_t *frames)
{
	size_t i = 0;
	const json_t *f = stack_next(frames, &i), *caller;

	if (!f) {
		f = json_array_get(frames, 0);
		i = 1;
	}
	lines_text(sb, lines_str(f, "function"));
	caller = stack_next(frames, &i);
	if (caller) {
		strbuf_puts(sb, " < ");
		lines_text(sb, lines_str(caller, "function"));
	}
	stack_put_where(sb, f, false);
	strbuf_puts(sb, "\n");
}

static void stack_put_whole(struct strbuf *sb, const json_t *frames, bool cut,
			    size_t indent)
{
	const json_t *f;
	size_t i;

	json_array_foreach(frames, i, f)
	{
		strbuf_printf(sb, "%*s", (int)indent, "");
		lines_text(sb, lines_str(f, "function"));
		stack_put_where(sb, f, true);
		if (json_is_true(json_object_get(f, "inlined")))
			strbuf_puts(sb, " (inlined)");
		strbuf_puts(sb, "\n");
	}
	if (cut)
		strbuf_printf(sb, "%*s... and more callers\n", (int)indent, "");
}

static void stack_put_cause(struct strbuf *sb, const char *word, size_t indent)
{
	for (size_t i = 0; i < ARRAY_SIZE(stack_causes); i++)
		if (!strcmp(word, stack_causes[i][0]))
			strbuf_printf(sb, "%*s[wait site not copied]: %s\n",
				      (int)indent, "", stack_causes[i][1]);
}

void stack_put(const struct stack_list *l, struct strbuf *sb,
	       const json_t *step, size_t indent, bool whole)
{
	const json_t *first, *frames;

	if (!lines_has(step, "stack")) {
		stack_put_cause(sb, lines_str(step, "no_stack"), indent);
		return;
	}
	first = json_array_get(l->steps, lines_int(step, "stack"));
	frames = json_object_get(first, "frames");
	if (whole && lines_has(step, "frames")) {
		stack_put_whole(sb, frames,
				json_is_true(json_object_get(first, "cut")),
				indent);
	} else if (json_array_size(frames)) {
		strbuf_printf(sb, "%*sin ", (int)indent, "");
		stack_put_short(sb, frames);
	}
}
