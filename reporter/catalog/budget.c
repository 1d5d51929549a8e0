// SPDX-License-Identifier: Apache-2.0
/* budget: see reporter/catalog/budget.h. */
#include "reporter/catalog/budget.h"
#include "base/base.h"

static void budget_fill(const struct catalog_budget *b,
			struct catalog_budget_user *u, uint64_t now)
{
	const uint64_t one = CLOCK_NSEC_PER_SEC / b->rate;
	uint64_t n = now > u->filled ? (now - u->filled) / one : 0;

	if (n >= b->burst - u->tokens) {
		u->tokens = b->burst;
		u->filled = MAX(u->filled, now);
		return;
	}
	u->tokens += n;
	u->filled += n * one;
}

static struct catalog_budget_user *budget_user(struct catalog_budget *b,
					       uint32_t uid, uint64_t now)
{
	struct catalog_budget_user *u, *full = NULL;
	size_t i;

	for (i = 0; i < b->n; i++) {
		u = &b->users[i];
		if (u->uid == uid)
			break;
		budget_fill(b, u, now);
		if (u->tokens == b->burst)
			full = u;
	}
	if (i < b->n)
		return u;
	/* Whoever has all tokens is as good as new. */
	if (b->n < CATALOG_BUDGET_USERS)
		u = &b->users[b->n++];
	else if (full)
		u = full;
	else
		return &b->users[CATALOG_BUDGET_USERS];
	*u = (struct catalog_budget_user){
		.uid = uid,
		.tokens = b->burst,
		.filled = now,
	};
	return u;
}

bool catalog_budget_take(struct catalog_budget *b, uint32_t uid, uint64_t now)
{
	struct catalog_budget_user *u = budget_user(b, uid, now);

	budget_fill(b, u, now);
	if (!u->tokens)
		return false;
	u->tokens--;
	return true;
}
