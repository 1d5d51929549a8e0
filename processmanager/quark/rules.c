// SPDX-License-Identifier: Apache-2.0
/*
 * rules: which events pass, which are dropped, which processes are poisoned. The
 * first rule that passes or drops decides; poison tags and continues.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "processmanager/quark/priv.h"

#define HAS_PATH (QUARK_RF_PROCESS_EXE | QUARK_RF_FILE_PATH)
#define ALL_FIELDS (QUARK_RF_POISON * 2 - 1)

void quark_ruleset_init(struct quark_ruleset *rs)
{
	memset(rs, 0, sizeof(*rs));
}

static void rule_fini(struct quark_rule *r)
{
	size_t i;

	for (i = 0; i < r->n_fields; i++)
		if (r->fields[i].code & HAS_PATH)
			free((char *)r->fields[i].path);
	free(r->fields);
}

void quark_ruleset_clear(struct quark_ruleset *rs)
{
	size_t i;

	for (i = 0; i < rs->n_rules; i++)
		rule_fini(&rs->rules[i]);
	free(rs->rules);
	quark_ruleset_init(rs);
}

struct quark_rule *quark_ruleset_append_rule(struct quark_ruleset *rs,
					     int action, uint64_t poison_tag)
{
	struct quark_rule *r;

	if (action <= QUARK_RA_INVALID || action > QUARK_RA_POISON ||
	    (action == QUARK_RA_POISON) != (poison_tag != 0))
		return quark_null(EINVAL);
	r = realloc(rs->rules, (rs->n_rules + 1) * sizeof(*r));
	if (!r)
		return NULL;
	rs->rules = r;
	r += rs->n_rules;
	memset(r, 0, sizeof(*r));
	r->action = action;
	r->poison_tag = poison_tag;
	r->number = rs->n_rules++;
	return r;
}

int quark_rule_match_field(struct quark_rule *r, struct quark_rule_field field)
{
	struct quark_rule_field *f;

	/* Exactly one known bit, and a valid pattern. */
	if (!field.code || field.code & (field.code - 1) ||
	    field.code & ~ALL_FIELDS ||
	    (field.code & HAS_PATH &&
	     (!field.path || strstr(field.path, "**"))))
		return quark_result(-EINVAL);
	f = realloc(r->fields, (r->n_fields + 1) * sizeof(*f));
	if (!f)
		return -1;
	r->fields = f;
	if (field.code & HAS_PATH) {
		field.path = strdup(field.path);
		if (!field.path)
			return -1;
	}
	f[r->n_fields++] = field;
	return 0;
}

/* Matches each piece between two stars at its first occurrence, the last at the end. */
static bool path_matches(const char *pattern, const char *path)
{
	const char *star = strchr(pattern, '*'), *end = path + strlen(path);
	size_t n;

	if (!star)
		return !strcmp(pattern, path);
	if (strncmp(pattern, path, star - pattern))
		return false;
	path += star - pattern;
	for (pattern = star + 1; (star = strchr(pattern, '*'));
	     pattern = star + 1) {
		n = star - pattern;
		path = memmem(path, end - path, pattern, n);
		if (!path)
			return false;
		path += n;
	}
	n = strlen(pattern);
	return (size_t)(end - path) >= n && !strcmp(end - n, pattern);
}

static bool field_matches(const struct quark_rule_field *f,
			  const struct quark_process *p)
{
	switch (f->code) {
	case QUARK_RF_PROCESS_PID:
		return p->pid == f->pid;
	case QUARK_RF_PROCESS_PPID:
		return p->proc_ppid == f->pid;
	case QUARK_RF_PROCESS_UID:
		return p->proc_uid == f->id;
	case QUARK_RF_PROCESS_GID:
		return p->proc_gid == f->id;
	case QUARK_RF_PROCESS_SID:
		return p->proc_sid == f->id;
	case QUARK_RF_PROCESS_COMM:
		return !strncmp(p->comm, f->comm, sizeof(f->comm));
	case QUARK_RF_PROCESS_EXE:
		return p->exe && path_matches(f->path, p->exe);
	case QUARK_RF_POISON:
		return p->poison_tag & f->poison_tag;
	default: /* no event has a file */
		return false;
	}
}

static bool rule_matches(const struct quark_rule *r,
			 const struct quark_process *p)
{
	size_t i;

	for (i = 0; i < r->n_fields; i++)
		if (!field_matches(&r->fields[i], p))
			return false;
	return true;
}

struct quark_rule *quark_ruleset_match(struct quark_ruleset *rs,
				       const struct quark_event *ev)
{
	struct quark_rule *r;
	size_t i;

	for (i = 0; ev->process && i < rs->n_rules; i++) {
		r = &rs->rules[i];
		r->evals++;
		if (!rule_matches(r, ev->process))
			continue;
		r->hits++;
		if (r->action != QUARK_RA_POISON)
			return r;
	}
	return NULL;
}

uint64_t quark_ruleset_poison(struct quark_ruleset *rs,
			      const struct quark_event *ev)
{
	struct quark_process p = *ev->process;
	uint64_t tag = 0;
	size_t i;

	for (i = 0; i < rs->n_rules; i++) {
		const struct quark_rule *r = &rs->rules[i];

		if (!rule_matches(r, &p))
			continue;
		if (r->action != QUARK_RA_POISON)
			break;
		/* Later rules match the new poison too. */
		tag |= r->poison_tag;
		p.poison_tag |= r->poison_tag;
	}
	return tag;
}
