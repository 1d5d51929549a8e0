// SPDX-License-Identifier: Apache-2.0
/* terms: which samples are taken; see reporter/query/query.h. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "reporter/times.h"
#include "reporter/query/model.h"

static const struct {
	const char *key;
	enum query_matcher matcher;
} term_kinds[] = {
#define X(key, matcher) { #key, QUERY_##matcher },
	REPORTER_QUERY_TERMS(X)
#undef X
};

/* Labels that are called otherwise than their terms; by matcher. */
static const char *const term_labels[QUERY_MATCHERS] = {
	[QUERY_TRACE] = REPORTER_LABEL_TRACE,
	[QUERY_SPAN] = REPORTER_LABEL_SPAN,
};

static const char *term_label_key(size_t kind)
{
	const char *label = term_labels[term_kinds[kind].matcher];

	return label ? label : term_kinds[kind].key;
}

const char *query_term_key(const struct reporter_query_term *t)
{
	return term_kinds[t->kind].key;
}

enum query_matcher query_term_matcher(const struct reporter_query_term *t)
{
	return term_kinds[t->kind].matcher;
}

#define TERM_NOT "not-"

static bool term_number(const char *text, int64_t *out)
{
	uint64_t v = 0;
	const char *p;

	for (p = text; *p; p++) {
		if (*p < '0' || *p > '9' || v > INT64_MAX / 10 - 1)
			return false;
		v = 10 * v + (uint64_t)(*p - '0');
	}
	*out = (int64_t)v;
	return p != text;
}

/* --- values, by matcher; NULL or what they have to be --------------------------- */

static const char *term_is_number(struct reporter_query_term *t, const char *v)
{
	return term_number(v, &t->num) ? NULL : "a number";
}

static const char *term_is_name(struct reporter_query_term *t, const char *v)
{
	return NULL;
}

/* As the label has it, in small letters. */
static bool term_hex(const char *v, size_t len)
{
	return strlen(v) == len && strspn(v, "0123456789abcdef") == len;
}

static const char *term_is_trace(struct reporter_query_term *t, const char *v)
{
	return term_hex(v, 2 * IDS_TRACE)
		       ? NULL
		       : "a trace id, 32 hexadecimal digits in small letters";
}

static const char *term_is_span(struct reporter_query_term *t, const char *v)
{
	return term_hex(v, 2 * IDS_SPAN)
		       ? NULL
		       : "a span id, 16 hexadecimal digits in small letters";
}

/* Names are looked up by clients: a lookup may take long. */
static const char *term_is_user(struct reporter_query_term *t, const char *v)
{
	return term_number(v, &t->num) ? NULL : "a uid";
}

/* PID or PID-START, the id of a process. */
static const char *term_is_process(struct reporter_query_term *t, const char *v)
{
	if (!term_number(v, &t->num)) {
		t->num = -1;
		if (strspn(v, "0123456789") == 0 || !strchr(v, '-'))
			return "a pid, or the id of a process";
	}
	return NULL;
}

/* ok, fail, signal, the exit code, or the signal's name. */
static const char *term_is_exit(struct reporter_query_term *t, const char *v)
{
	static const char *const words[] = { [QUERY_EXIT_OK] = "ok",
					     [QUERY_EXIT_FAIL] = "fail",
					     [QUERY_EXIT_SIGNAL] = "signal" };
	const char *name = strncasecmp(v, "SIG", 3) ? v : v + 3, *abbrev;
	int i;

	for (i = 0; i < (int)ARRAY_SIZE(words); i++)
		if (!strcmp(words[i], v)) {
			t->exit = (enum query_exit)i;
			return NULL;
		}
	t->exit = QUERY_EXIT_CODE;
	if (term_number(v, &t->num) && t->num < 256)
		return NULL;
	t->exit = QUERY_EXIT_BY;
	for (i = 1; i < NSIG; i++) {
		abbrev = sigabbrev_np(i);
		if (!abbrev || strcasecmp(abbrev, name) != 0)
			continue;
		t->num = i;
		return NULL;
	}
	return "ok, fail, signal, an exit code, or the name of a signal";
}

/* The way of the start, or the pid of the leader. */
static const char *term_is_entry(struct reporter_query_term *t, const char *v)
{
	if (!term_number(v, &t->num))
		t->num = -1;
	return NULL;
}

static const char *(*const term_values[])(struct reporter_query_term *t,
					  const char *v) = {
	[QUERY_NUMBER] = term_is_number, [QUERY_NAME] = term_is_name,
	[QUERY_TRACE] = term_is_trace,	 [QUERY_SPAN] = term_is_span,
	[QUERY_USER] = term_is_user,	 [QUERY_SUBTREE] = term_is_process,
	[QUERY_UNDER] = term_is_name,	 [QUERY_EXIT] = term_is_exit,
	[QUERY_ENTRY] = term_is_entry,	 [QUERY_ARGV] = term_is_name,
};

static int term_parse(struct reporter_query_term *t, const char *value,
		      const char **want)
{
	if (*value == '!') {
		t->negated = !t->negated;
		value++;
	}
	*want = "not empty, and shorter";
	if (!*value || strlen(value) > REPORTER_QUERY_TEXT_MAX)
		return -EINVAL;
	*want = term_values[term_kinds[t->kind].matcher](t, value);
	if (*want)
		return -EINVAL;
	t->text = strdup(value);
	return t->text ? 0 : -ENOMEM;
}

int reporter_query_terms_parse(struct reporter_query_terms *t, const char *key,
			       const char *value, const char **want)
{
	struct reporter_query_term term = { .kind = 0 };
	int err;

	*want = NULL;
	if (!strncmp(key, TERM_NOT, strlen(TERM_NOT))) {
		term.negated = true;
		key += strlen(TERM_NOT);
	}
	while (term.kind < ARRAY_SIZE(term_kinds) &&
	       strcmp(term_kinds[term.kind].key, key) != 0)
		term.kind++;
	if (term.kind == ARRAY_SIZE(term_kinds))
		return -ENOENT;
	if (t->n == REPORTER_QUERY_TERMS_MAX)
		return -E2BIG;
	err = VECTOR_ROOM(t->items, t->n, t->cap);
	if (!err)
		err = term_parse(&term, value, want);
	if (!err)
		t->items[t->n++] = term;
	return err;
}

bool query_term_is_label(const struct reporter_query_term *t)
{
	return query_term_matcher(t) <= QUERY_SPAN;
}

static bool term_is_traced(const struct reporter_query_term *t)
{
	return term_labels[query_term_matcher(t)];
}

bool reporter_query_terms_traced(const struct reporter_query_terms *t)
{
	for (size_t i = 0; t && i < t->n; i++)
		if (term_is_traced(&t->items[i]))
			return true;
	return false;
}

const char *reporter_query_terms_history(const struct reporter_query_terms *t)
{
	for (size_t i = 0; i < t->n; i++)
		if (!query_term_is_label(&t->items[i]))
			return query_term_key(&t->items[i]);
	return NULL;
}

const char *reporter_query_terms_thread(const struct reporter_query_terms *t)
{
	static const char *const keys[] = { "tid", "thread", "trace", "span" };

	for (size_t i = 0; i < t->n; i++)
		for (size_t k = 0; k < ARRAY_SIZE(keys); k++)
			if (!strcmp(query_term_key(&t->items[i]), keys[k]))
				return keys[k];
	return NULL;
}

const char *reporter_query_terms_key(size_t i)
{
	return i < ARRAY_SIZE(term_kinds) ? term_kinds[i].key : NULL;
}

void reporter_query_terms_fini(struct reporter_query_terms *t)
{
	for (size_t i = 0; i < t->n; i++)
		free(t->items[i].text);
	free(t->items);
	*t = (struct reporter_query_terms){ 0 };
}

/* --- matching --------------------------------------------------------------------- */

/*
 * On a mismatch only the last '*' takes one more byte, so that
 * the time is at most the product of the lengths, whatever the pattern.
 */
bool query_glob(const char *p, const char *s)
{
	const char *star = NULL, *from = NULL;
	const char *plain;

	while (*s) {
		plain = p + (*p == '\\' && p[1]);
		if (*p == '*') {
			star = ++p;
			from = s;
		} else if (*p && (*plain == *s || *p == '?')) {
			p = plain + 1;
			s++;
		} else if (star) {
			p = star;
			s = ++from;
		} else {
			return false;
		}
	}
	while (*p == '*')
		p++;
	return !*p;
}

bool query_exe(const char *p, const char *path)
{
	const char *slash = strrchr(path, '/');

	return query_glob(p, path) ||
	       (slash && !strchr(p, '/') && query_glob(p, slash + 1));
}

static bool term_matches(const struct reporter_query_term *t,
			 const struct reporter_query_value *v)
{
	if (query_term_matcher(t) == QUERY_NUMBER)
		return !v->text && v->num == t->num;
	if (!v->text)
		return false;
	return strcmp(term_kinds[t->kind].key, "exe")
		       ? query_glob(t->text, v->text)
		       : query_exe(t->text, v->text);
}

static bool term_applies(const struct reporter_query_term *t,
			 reporter_query_label_fn label, const void *arg)
{
	struct reporter_query_value v;

	for (size_t i = 0; label(arg, term_label_key(t->kind), i, &v); i++)
		if (term_matches(t, &v))
			return true;
	return false;
}

static bool terms_take(const struct reporter_query_terms *t,
		       bool (*which)(const struct reporter_query_term *t),
		       reporter_query_label_fn label, const void *arg)
{
	bool asked[ARRAY_SIZE(term_kinds)] = { false };
	bool met[ARRAY_SIZE(term_kinds)] = { false };
	size_t i;

	for (i = 0; t && i < t->n; i++) {
		const struct reporter_query_term *term = &t->items[i];
		bool applies;

		if (!which(term))
			continue;
		applies = term_applies(term, label, arg);
		if (term->negated && applies)
			return false;
		asked[term->kind] |= !term->negated;
		met[term->kind] |= !term->negated && applies;
	}
	for (i = 0; i < ARRAY_SIZE(term_kinds); i++)
		if (asked[i] && !met[i])
			return false;
	return true;
}

bool reporter_query_terms_take(const struct reporter_query_terms *t,
			       reporter_query_label_fn label, const void *arg)
{
	return terms_take(t, query_term_is_label, label, arg);
}

bool reporter_query_terms_take_trace(const struct reporter_query_terms *t,
				     reporter_query_label_fn label,
				     const void *arg)
{
	return terms_take(t, term_is_traced, label, arg);
}

bool query_traced(const struct reporter_query *q)
{
	return q->opts.traces || reporter_query_terms_traced(q->opts.terms);
}
