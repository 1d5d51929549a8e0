// SPDX-License-Identifier: Apache-2.0
/*
 * rules_parse: the parser of rules.
 *
 *   RULE  := (pass | drop | poison N) on (any | MATCH [,] MATCH ...)
 *   MATCH := FIELD VALUE
 *
 * One rule per line; "#" begins a comment, words with blanks are quoted, a backslash
 * makes the next character literal, or joins the next line.
 */
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "processmanager/quark/priv.h"

#define TEXT_MAX (1024 * 1024)
#define WORD_MAX 4096

enum token {
	WORD,
	COMMA,
	NEWLINE,
	END,
	BROKEN
};

struct parser {
	const char *p, *end;
	unsigned int line, column; /* of the next character, from 1 */
	unsigned int at_line, at_column; /* of the token */
	enum token token;
	char word[WORD_MAX];
	char *err;
	size_t errlen;
	bool failed;
};

/* Keeps the first error. */
static void __attribute__((format(printf, 2, 3)))
refuse_at(struct parser *s, const char *fmt, ...)
{
	va_list ap;
	int n;

	if (s->failed)
		return;
	s->failed = true;
	s->token = BROKEN;
	if (!s->errlen)
		return;
	n = snprintf(s->err, s->errlen, "line %u, column %u: ", s->at_line,
		     s->at_column);
	if (n < 0 || (size_t)n >= s->errlen)
		return;
	va_start(ap, fmt);
	vsnprintf(s->err + n, s->errlen - n, fmt, ap);
	va_end(ap);
}

static int rules_peek(const struct parser *s)
{
	return s->p < s->end ? (unsigned char)*s->p : EOF;
}

static int rules_take(struct parser *s)
{
	int c = rules_peek(s);

	if (c == EOF)
		return c;
	s->p++;
	s->column++;
	if (c == '\n') {
		s->line++;
		s->column = 1;
	}
	return c;
}

static void skip_blanks(struct parser *s)
{
	int c;

	for (;;) {
		c = rules_peek(s);
		if (c == '#')
			while (rules_peek(s) != '\n' && rules_peek(s) != EOF)
				rules_take(s);
		else if (c == ' ' || c == '\t' || c == '\r')
			rules_take(s);
		else if (c == '\\' && s->p + 1 < s->end && s->p[1] == '\n')
			rules_take(s), rules_take(s);
		else
			return;
	}
}

static bool ends_word(int c)
{
	return c == EOF || (c && strchr(" \t\r\n,#", c));
}

static void read_word(struct parser *s)
{
	bool quoted = false;
	size_t n = 0;
	int c;

	while (quoted || !ends_word(rules_peek(s))) {
		c = rules_take(s);
		if (c == EOF || (quoted && c == '\n')) {
			refuse_at(s, "a quote is not closed");
			return;
		}
		if (c == '"') {
			quoted = !quoted;
			continue;
		}
		if (c == '\\')
			c = rules_take(s);
		if (c == EOF || c == '\0') {
			refuse_at(s, "%s",
				  c ? "a backslash at the very end"
				    : "a NUL character");
			return;
		}
		if (n + 1 == sizeof(s->word)) {
			refuse_at(s, "a word is too long");
			return;
		}
		s->word[n++] = c;
	}
	s->word[n] = '\0';
	s->token = WORD;
}

static void rules_next(struct parser *s)
{
	int c;

	if (s->failed)
		return;
	skip_blanks(s);
	s->at_line = s->line;
	s->at_column = s->column;
	c = rules_peek(s);
	if (c == EOF) {
		s->token = END;
	} else if (c == '\n') {
		rules_take(s);
		s->token = NEWLINE;
	} else if (c == ',') {
		rules_take(s);
		s->token = COMMA;
	} else {
		read_word(s);
	}
}

static bool rules_is_word(const struct parser *s, const char *word)
{
	return s->token == WORD && !strcmp(s->word, word);
}

static uint64_t rules_number(struct parser *s, uint64_t max)
{
	unsigned long long v;
	char *end;

	if (s->token != WORD) {
		refuse_at(s, "a number is missing");
		return 0;
	}
	errno = 0;
	v = strtoull(s->word, &end, 10);
	if (s->word[0] < '0' || s->word[0] > '9' || *end || errno || v > max)
		refuse_at(s, "\"%.64s\" is no number up to %llu", s->word,
			  (unsigned long long)max);
	rules_next(s);
	return v;
}

static void rules_value(struct parser *s, struct quark_rule *r, uint64_t code)
{
	struct quark_rule_field f = { .code = code };

	if (code == QUARK_RF_POISON) {
		f.poison_tag = rules_number(s, UINT64_MAX);
	} else if (code == QUARK_RF_PROCESS_COMM) {
		if (s->token != WORD || strlen(s->word) >= sizeof(f.comm))
			refuse_at(s,
				  "a name of at most 15 characters is missing");
		else
			memcpy(f.comm, s->word, strlen(s->word));
	} else if (code == QUARK_RF_PROCESS_EXE || code == QUARK_RF_FILE_PATH) {
		if (s->token != WORD)
			refuse_at(s, "a pattern is missing");
		else if (strstr(s->word, "**"))
			refuse_at(s, "\"**\" is in a pattern");
		f.path = s->word;
	} else {
		f.pid = rules_number(s, UINT32_MAX);
	}
	if (s->failed)
		return;
	if (quark_rule_match_field(r, f))
		refuse_at(s, "%s", strerror(errno));
	/* rules_number() has read the next token already. */
	if (f.path == s->word || code == QUARK_RF_PROCESS_COMM)
		rules_next(s);
}

static void rules_match(struct parser *s, struct quark_rule *r)
{
	static const struct {
		const char *name;
		uint64_t code;
	} fields[] = {
		{ "process.pid", QUARK_RF_PROCESS_PID },
		{ "process.ppid", QUARK_RF_PROCESS_PPID },
		{ "process.uid", QUARK_RF_PROCESS_UID },
		{ "process.gid", QUARK_RF_PROCESS_GID },
		{ "process.sid", QUARK_RF_PROCESS_SID },
		{ "process.comm", QUARK_RF_PROCESS_COMM },
		{ "process.exe", QUARK_RF_PROCESS_EXE },
		{ "process.filename", QUARK_RF_PROCESS_EXE },
		{ "file.path", QUARK_RF_FILE_PATH },
		{ "poison", QUARK_RF_POISON },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(fields); i++) {
		if (!rules_is_word(s, fields[i].name))
			continue;
		rules_next(s);
		rules_value(s, r, fields[i].code);
		return;
	}
	refuse_at(s,
		  s->token == WORD ? "\"%.64s\" is no field"
				   : "a field is missing%.0s",
		  s->word);
}

static void rules_rule(struct parser *s, struct quark_ruleset *rs)
{
	static const char *const actions[] = { [QUARK_RA_DROP] = "drop",
					       [QUARK_RA_PASS] = "pass",
					       [QUARK_RA_POISON] = "poison" };
	int action = QUARK_RA_POISON;
	struct quark_rule *r;
	uint64_t tag = 0;

	while (action && !rules_is_word(s, actions[action]))
		action--;
	if (action == QUARK_RA_INVALID)
		refuse_at(s, "pass, drop or poison is missing");
	rules_next(s);
	if (action == QUARK_RA_POISON) {
		tag = rules_number(s, UINT64_MAX);
		if (!tag)
			refuse_at(s, "a poison is not 0");
	}
	if (!rules_is_word(s, "on"))
		refuse_at(s, "\"on\" is missing");
	rules_next(s);
	r = s->failed ? NULL : quark_ruleset_append_rule(rs, action, tag);
	if (!r) {
		refuse_at(s, "%s", strerror(errno));
		return;
	}
	if (rules_is_word(s, "any")) {
		rules_next(s);
	} else {
		do {
			if (s->token == COMMA && r->n_fields)
				rules_next(s);
			rules_match(s, r);
		} while (s->token == WORD || s->token == COMMA);
	}
	if (!s->failed && s->token != NEWLINE && s->token != END)
		refuse_at(s, "the line does not end here");
}

int quark_ruleset_parse_text(struct quark_ruleset *rs, const char *buf,
			     size_t len, char *err, size_t errlen)
{
	struct parser s = { .p = buf,
			    .end = buf + len,
			    .line = 1,
			    .column = 1,
			    .err = err,
			    .errlen = errlen };
	struct quark_ruleset add;
	struct quark_rule *rules;
	size_t i;

	quark_ruleset_init(&add);
	for (rules_next(&s); !s.failed && s.token != END;) {
		if (s.token == NEWLINE)
			rules_next(&s);
		else
			rules_rule(&s, &add);
	}
	if (!s.failed && !add.n_rules)
		return 0;
	errno = EINVAL;
	rules = s.failed ? NULL
			 : realloc(rs->rules, (rs->n_rules + add.n_rules) *
						      sizeof(*rules));
	if (!rules) {
		quark_ruleset_clear(&add);
		return -1;
	}
	rs->rules = rules;
	for (i = 0; i < add.n_rules; i++) {
		rules[rs->n_rules] = add.rules[i];
		rules[rs->n_rules].number = rs->n_rules;
		rs->n_rules++;
	}
	free(add.rules);
	return 0;
}

int quark_ruleset_parse(struct quark_ruleset *rs, FILE *f, char *err,
			size_t errlen)
{
	quark_ruleset_init(rs);
	return quark_ruleset_parse_append(rs, f, err, errlen);
}

int quark_ruleset_parse_append(struct quark_ruleset *rs, FILE *f, char *err,
			       size_t errlen)
{
	struct strbuf sb = { 0 };
	char buf[4096];
	int ret = -1;
	size_t n;

	if (errlen)
		err[0] = '\0';
	while ((n = fread(buf, 1, sizeof(buf), f)) && sb.len < TEXT_MAX)
		strbuf_add(&sb, buf, n);
	if (ferror(f) || sb.failed) {
		errno = sb.failed ? ENOMEM : EIO;
		snprintf(err, errlen, "%s", strerror(errno));
	} else if (sb.len >= TEXT_MAX) {
		errno = EFBIG;
		snprintf(err, errlen, "more than %d bytes", TEXT_MAX);
	} else {
		ret = quark_ruleset_parse_text(rs, strbuf_str(&sb), sb.len, err,
					       errlen);
	}
	strbuf_fini(&sb);
	return ret;
}
