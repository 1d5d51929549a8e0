// SPDX-License-Identifier: Apache-2.0
/* names: the events that can be subscribed to, and patterns of them. */
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "processmanager/watch/internal.h"

static const struct watch_name names[] = {
#define X(NAME, name, published, category, text) \
	[ABI_WATCH_##NAME] = { name, published, category, text },
	ABI_WATCH_EVENTS(X)
#undef X
};

/* Of Kindling's probe 0.9, for events that its users know. */
static const char *const prefixes[] = { "kretprobe-", "kprobe-",
					"tracepoint-" };

/* Names that will be events, and when. */
static const char *const later[] = { "sched_switch", "cpu_analysis",
				     "syscall_enter-*", "syscall_exit-*" };

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

/* Whether a pattern means this name, or one of its other words. */
static bool names_is(const struct watch_name *n, const char *pattern)
{
	const char *word = n->published;
	char one[64];
	size_t len;

	if (!fnmatch(pattern, n->name, 0))
		return true;
	for (; *word; word += len + (word[len] == ' ')) {
		len = strcspn(word, " ");
		snprintf(one, sizeof(one), "%.*s", (int)len, word);
		if (!fnmatch(pattern, one, 0))
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

static bool names_is_near(const char *name, const char *word)
{
	size_t len = MIN(strlen(word), 3);

	return len && (!strncmp(name, word, len) || strstr(name, word));
}

/* The names that have the word or begin like it; all, if none does. */
static void names_near(const char *word, struct strbuf *why)
{
	size_t shown = 0;

	for (int all = 0; all < 2 && !shown; all++)
		for (size_t i = 0; i < ARRAY_SIZE(names); i++)
			if (all || names_is_near(names[i].name, word))
				strbuf_printf(why, "%s%s",
					      shown++ ? ", " : "; there are ",
					      names[i].name);
}

/* The categories of some names; each once. */
static void names_categories(const struct watch_set *of, struct strbuf *why)
{
	const char *last = "";

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (!watch_set_has(of, i) || !strcmp(names[i].category, last))
			continue;
		strbuf_printf(why, "%s%s", *last ? ", " : "; there are ",
			      names[i].category);
		last = names[i].category;
	}
}

int watch_names_match(const char *pattern, struct watch_set *out,
		      struct strbuf *why)
{
	const char *slash = strchr(pattern, '/');
	const char *category = slash ? slash + 1 : "*";
	struct watch_set found = { 0 }, named = { 0 };
	char name[64];
	int len = slash ? (int)(slash - pattern) : (int)strlen(pattern);

	if (len < (int)sizeof(name)) {
		snprintf(name, sizeof(name), "%.*s", len, pattern);
		for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
			if (!names_is(&names[i], names_bare(name)))
				continue;
			watch_set_add(&named, i);
			if (!fnmatch(category, names[i].category, 0))
				watch_set_add(&found, i);
		}
	}
	watch_set_join(out, &found);
	if (!watch_set_is_empty(&found))
		return 0;
	strbuf_printf(why, "'%s': ", pattern);
	if (!watch_set_is_empty(&named)) {
		strbuf_puts(why, "no such event has this category");
		names_categories(&named, why);
	} else if (len < (int)sizeof(name) && names_is_later(name)) {
		strbuf_puts(why, "not an event yet");
	} else {
		strbuf_puts(why, "no such event");
		names_near(len < (int)sizeof(name) ? names_bare(name) : "",
			   why);
	}
	return -EINVAL;
}
