// SPDX-License-Identifier: Apache-2.0
/* limits: see profiler/limits.h. */
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "profiler/limits.h"

static const struct {
	const char *name, *words;
} limits_texts[] = {
#define X(NAME, name, words) { #name, words },
	LIMITS(X)
#undef X
};

static uint64_t limits_sum(const struct limits_user *u)
{
	uint64_t sum = 0;
	size_t i;

	for (i = 0; i < LIMIT_MAX; i++)
		sum += u->counts[i];
	return sum;
}

/* Merges the user with the lowest count into the entry of all others. */
static struct limits_user *limits_make_room(struct limits *l)
{
	struct limits_user *others = &l->users[LIMITS_USERS], *least = l->users;
	size_t i;

	for (i = 1; i < LIMITS_USERS; i++)
		if (limits_sum(&l->users[i]) < limits_sum(least))
			least = &l->users[i];
	others->others = true;
	for (i = 0; i < LIMIT_MAX; i++)
		others->counts[i] += least->counts[i];
	return least;
}

void limits_note(struct limits *l, uint32_t uid, enum limit what, uint64_t n)
{
	struct limits_user *u;
	size_t i;

	for (i = 0; i < l->n && l->users[i].uid != uid; i++)
		;
	u = &l->users[i];
	if (i == LIMITS_USERS)
		u = limits_make_room(l);
	else if (i == l->n)
		l->n++;
	if (i == LIMITS_USERS || u->uid != uid)
		*u = (struct limits_user){ .uid = uid };
	u->counts[what] += n;
}

static void limits_collect_user(const struct limits_user *u,
				struct reporter_metrics *m)
{
	char who[32] = "others";
	size_t i;

	if (!u->others)
		snprintf(who, sizeof(who), "uid %u", u->uid);
	for (i = 0; i < LIMIT_MAX; i++) {
		if (!u->counts[i])
			continue;
		reporter_status(m, "limited", "%s, %s, %llu times", who,
				limits_texts[i].words,
				(unsigned long long)u->counts[i]);
		reporter_member_row(m, "limited");
		if (!u->others)
			reporter_member_int(m, "limited", "uid", u->uid);
		reporter_member_text(m, "limited", "what",
				     limits_texts[i].name);
		reporter_member_int(m, "limited", "n", u->counts[i]);
	}
}

void limits_collect_unnamed(struct reporter_metrics *m, const char *what,
			    const char *words, uint64_t n)
{
	if (!n)
		return;
	reporter_status(m, "limited", "all users, %s, %llu times", words,
			(unsigned long long)n);
	reporter_member_row(m, "limited");
	reporter_member_text(m, "limited", "what", what);
	reporter_member_int(m, "limited", "n", n);
}

void limits_collect(const struct limits *l, struct reporter_metrics *m)
{
	char label[64];
	uint64_t sum;
	size_t i, k;

	for (i = 0; i < LIMIT_MAX; i++) {
		for (sum = 0, k = 0; k <= LIMITS_USERS; k++)
			sum += l->users[k].counts[i];
		snprintf(label, sizeof(label), "what=\"%s\"",
			 limits_texts[i].name);
		reporter_metric(m, "profd_limited_total",
				"times that a user's share was used up", true,
				label, sum);
	}
	for (k = 0; k < l->n; k++)
		limits_collect_user(&l->users[k], m);
	if (l->users[LIMITS_USERS].others)
		limits_collect_user(&l->users[LIMITS_USERS], m);
}
