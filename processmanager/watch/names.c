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
#define OPENS CALL
#define NO_EXIT(nr, name, symbol, published, category, ...) \
	ENTERS(name, published, category)
#include WATCH_CALLS
#undef CALL
#undef OPENS
#undef NO_EXIT
};

/* Of Kindling's probe 0.9, for events that its users know. */
static const char *const prefixes[] = { "kretprobe-", "kprobe-",
					"tracepoint-" };

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

const char *watch_name_needs(size_t i)
{
	return i < ABI_WATCH_NAMES && WATCH_BIT(i) & WATCH_SEGMENTS
		       ? "--pid, and a profd that runs with --wait"
		       : NULL;
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

static void names_put_category(struct strbuf *why, const char *category)
{
	const char *list = strstr(strbuf_str(why) ?: "", "; there are ");
	size_t len = strlen(category);

	for (const char *at = list; at; at = strchr(at + 1, ' '))
		if (!strncmp(at + 1, category, len) &&
		    (!at[1 + len] || at[1 + len] == ','))
			return;
	strbuf_printf(why, "%s%s", list ? ", " : "; there are ", category);
}

/* The categories of some names; each once. */
static void names_categories(const struct watch_set *of, struct strbuf *why)
{
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (!watch_set_has(of, i))
			continue;
		if (!names[i].by_fd)
			names_put_category(why, names[i].category);
		for (size_t k = 0; names[i].by_fd && watch_category(k); k++)
			names_put_category(why, watch_category(k));
	}
}

/* Which categories a pattern means, of calls that may have any descriptor. */
static uint8_t names_by_fd(const char *pattern)
{
	uint8_t bits = 0;

	for (size_t i = 0; watch_category(i); i++)
		if (!fnmatch(pattern, watch_category(i), 0))
			bits |= (uint8_t)(1 << i);
	return bits;
}

struct names_found {
	struct watch_set named; /* of any category */
	struct watch_set found;
};

static void names_search(const char *name, const char *category,
			 struct names_found *f)
{
	uint8_t by_fd = names_by_fd(category), bits;
	/* Else a subscription to all would need what these need. */
	bool wild = strpbrk(name, "*?[");

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (!names_is(&names[i], names_bare(name)) ||
		    (wild && watch_name_needs(i)))
			continue;
		watch_set_add(&f->named, i, ABI_WATCH_ANY_CATEGORY);
		if (names[i].by_fd)
			bits = by_fd;
		else
			bits = fnmatch(category, names[i].category, 0)
				       ? 0
				       : ABI_WATCH_ANY_CATEGORY;
		if (bits)
			watch_set_add(&f->found, i, bits);
	}
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
	watch_set_join(out, &f.found);
	if (!watch_set_is_empty(&f.found))
		return 0;
	strbuf_printf(why, "'%s': ", pattern);
	if (!watch_set_is_empty(&f.named)) {
		strbuf_puts(why, "no such event has this category");
		names_categories(&f.named, why);
	} else {
		strbuf_puts(why, "no such event");
		names_near(fits ? names_bare(name) : "", why);
	}
	return -EINVAL;
}
