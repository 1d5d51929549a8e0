// SPDX-License-Identifier: Apache-2.0
/* names: the events that can be subscribed to, and patterns of them. */
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "processmanager/watch/internal.h"

/* Arguments of rows are without a macro here. */
#define BY_FD NULL
#define ENTER "syscall_enter-"
#define EXIT "syscall_exit-"

static const struct watch_name names[] = {
#define X(NAME, name, published, category, text) \
	[ABI_WATCH_##NAME] = { name, published, category, false, text },
	ABI_WATCH_EVENTS(X)
#undef X
#define ENTERS(name, published, category)                                     \
	[WATCH_ENTER_##name] = { ENTER #name, published, category ?: "other", \
				 !category, "a system call begins" },
#define CALL(nr, name, symbol, published, category, ...)                    \
	ENTERS(name, published, category)                                   \
	[WATCH_EXIT_##name] = { EXIT #name, published, category ?: "other", \
				!category,                                  \
				"a system call ended; res: its result" },
#define NO_EXIT(nr, name, symbol, published, category, ...) \
	ENTERS(name, published, category)
#include WATCH_CALLS
#undef CALL
#undef NO_EXIT
};

/* Of Kindling's probe 0.9, for events that its users know. */
static const char *const prefixes[] = { "kretprobe-", "kprobe-",
					"tracepoint-" };

/* Names that will be events, and when. */
static const char *const later[] = { "sched_switch", "cpu_analysis" };

/* What the descriptor of a call may be. */
static const char *const kinds[] = { "file", "net", "ipc", "other" };

#define NEAR_MAX 12 /* names that an error lists */

const struct watch_name *watch_name(size_t i)
{
	return i < ARRAY_SIZE(names) ? &names[i] : NULL;
}

static const char *names_bare(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++)
		if (!strncmp(name, prefixes[i], strlen(prefixes[i])))
			return name + strlen(prefixes[i]);
	return name;
}

/* The part of a name before that of its system call. */
static const char *names_prefix(const char *name)
{
	return !strncmp(name, ENTER, strlen(ENTER)) ? ENTER
	       : !strncmp(name, EXIT, strlen(EXIT)) ? EXIT
						    : "";
}

/* Whether a pattern means this name, or one of its other words. */
static bool names_is(const struct watch_name *n, const char *pattern)
{
	const char *prefix = names_prefix(n->name), *word = n->published;
	char one[64];
	size_t len;

	if (!fnmatch(pattern, n->name, 0))
		return true;
	/* The short form of a call, which wild cards do not mean. */
	if (*prefix && !strcmp(pattern, n->name + strlen(prefix)))
		return true;
	for (; *word; word += len + (word[len] == ' ')) {
		len = strcspn(word, " ");
		snprintf(one, sizeof(one), "%s%.*s", prefix, (int)len, word);
		if (!fnmatch(pattern, one, 0) ||
		    (*prefix && !strcmp(pattern, one + strlen(prefix))))
			return true;
	}
	return false;
}

static bool names_is_later(const char *pattern)
{
	for (size_t i = 0; i < ARRAY_SIZE(later); i++)
		if (!fnmatch(later[i], pattern, 0))
			return true;
	return false;
}

/* Begins like it, or has it; of system calls the part that names the call. */
static bool names_is_near(const char *name, const char *word)
{
	const char *prefix = names_prefix(word);
	size_t len;

	if (strcmp(prefix, names_prefix(name)) != 0)
		return false;
	name += strlen(prefix);
	word += strlen(prefix);
	len = MIN(strlen(word), 3);
	return len && (!strncmp(name, word, len) || strstr(name, word));
}

/* The names that have the word or begin like it; if none does, all but system calls. */
static void names_near(const char *word, struct strbuf *why)
{
	size_t shown = 0;

	for (int all = 0; all < 2 && !shown; all++)
		for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
			if (all ? i >= ABI_WATCH_NAMES
				: !names_is_near(names[i].name, word))
				continue;
			if (!all && shown == NEAR_MAX) {
				strbuf_puts(why, ", ...");
				return;
			}
			strbuf_printf(why, "%s%s",
				      shown++ ? ", " : "; there are ",
				      names[i].name);
		}
	if (shown >= ABI_WATCH_NAMES)
		strbuf_puts(why, ", " ENTER "*, " EXIT "*");
}

/* Whether the first name of this category is this one. */
static bool names_is_first(const struct watch_set *of, size_t name)
{
	for (size_t i = 0; i < name; i++)
		if (watch_set_has(of, i) &&
		    !strcmp(names[i].category, names[name].category))
			return false;
	return true;
}

/* The categories of some names; each once. */
static void names_categories(const struct watch_set *of, struct strbuf *why)
{
	size_t shown = 0;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (watch_set_has(of, i) && names_is_first(of, i))
			strbuf_printf(why, "%s%s",
				      shown++ ? ", " : "; there are ",
				      names[i].category);
}

/* How many of the categories that a name may have a pattern means. */
static size_t names_kinds(const char *category)
{
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		n += !fnmatch(category, kinds[i], 0);
	return n;
}

struct names_found {
	struct watch_set named; /* of any category */
	struct watch_set found;
	struct watch_set untold; /* they may have the category */
};

static void names_search(const char *name, const char *category,
			 struct names_found *f)
{
	size_t n = names_kinds(category);

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (!names_is(&names[i], names_bare(name)))
			continue;
		watch_set_add(&f->named, i);
		if (names[i].by_fd ? n == ARRAY_SIZE(kinds)
				   : !fnmatch(category, names[i].category, 0))
			watch_set_add(&f->found, i);
		else if (names[i].by_fd && n)
			watch_set_add(&f->untold, i);
	}
}

static void names_untold(const struct names_found *f, const char *pattern,
			 struct strbuf *why)
{
	size_t shown = 0;

	strbuf_printf(why, "'%s'%s: ", pattern,
		      watch_set_is_empty(&f->found) ? "" : " is without some");
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (watch_set_has(&f->untold, i) && shown++ < NEAR_MAX)
			strbuf_printf(why, "%s%s", shown > 1 ? ", " : "",
				      names[i].name);
	if (shown > NEAR_MAX)
		strbuf_printf(why, " and %zu more", shown - NEAR_MAX);
	strbuf_puts(why, ": not yet told apart by the kind of the descriptor; "
			 "without a category all are events");
}

int watch_names_match(const char *pattern, struct watch_set *out,
		      struct strbuf *why)
{
	const char *slash = strchr(pattern, '/');
	struct names_found f = { 0 };
	char name[64];
	int len = slash ? (int)(slash - pattern) : (int)strlen(pattern);
	bool fits = len < (int)sizeof(name);

	if (fits) {
		snprintf(name, sizeof(name), "%.*s", len, pattern);
		names_search(name, slash ? slash + 1 : "*", &f);
	}
	if (!watch_set_is_empty(&f.untold))
		names_untold(&f, pattern, why);
	watch_set_join(out, &f.found);
	if (!watch_set_is_empty(&f.found))
		return 0;
	if (!watch_set_is_empty(&f.untold))
		return -EINVAL;
	strbuf_printf(why, "'%s': ", pattern);
	if (!watch_set_is_empty(&f.named)) {
		strbuf_puts(why, "no such event has this category");
		names_categories(&f.named, why);
	} else if (fits && names_is_later(name)) {
		strbuf_puts(why, "not an event yet");
	} else {
		strbuf_puts(why, "no such event");
		names_near(fits ? names_bare(name) : "", why);
	}
	return -EINVAL;
}
