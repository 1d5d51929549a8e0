/* SPDX-License-Identifier: Apache-2.0 */
/*
 * budget: how many rows a user gets for what costs nothing to do, so that one who does
 * it as fast as possible costs no more than a busy build: processes without samples
 * and without children that have a row, and changes of processes. Each user has tokens
 * of its own; those who used none for longest share one budget when there are too many
 * users.
 */
#ifndef REPORTER_CATALOG_BUDGET_H
#define REPORTER_CATALOG_BUDGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CATALOG_BUDGET_USERS 64

struct catalog_budget {
	uint32_t rate, burst; /* tokens a second, and at once */
	size_t n;
	struct catalog_budget_user {
		uint32_t uid;
		uint32_t tokens;
		uint64_t filled; /* ns; tokens are those of this time */
	} users[CATALOG_BUDGET_USERS + 1]; /* the last one: all others */
};

/* Takes a token of 'uid' at 'now', ns of any clock that does not go back far. */
bool catalog_budget_take(struct catalog_budget *b, uint32_t uid, uint64_t now);

#endif /* REPORTER_CATALOG_BUDGET_H */
