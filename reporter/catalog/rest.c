// SPDX-License-Identifier: Apache-2.0
/* rest: see reporter/catalog/rest.h. */
#include <stdbool.h>
#include <string.h>

#include "reporter/catalog/rest.h"

void catalog_rest_clear(struct catalog_rest *r)
{
	r->n = 0;
	r->count = 0;
}

/* The program, and the number of programs of its user; NULL: it is not there. */
static struct catalog_rest_program *
rest_find(struct catalog_rest *r, const struct catalog_rest_program *one,
	  size_t *of_user)
{
	struct catalog_rest_program *p;

	*of_user = 0;
	for (size_t i = 0; i < r->n; i++) {
		p = &r->programs[i];
		if (p->uid != one->uid)
			continue;
		++*of_user;
		if (!strcmp(p->comm, one->comm) && !strcmp(p->exe, one->exe))
			return p;
	}
	return NULL;
}

void catalog_rest_add(struct catalog_rest *r,
		      const struct catalog_rest_program *one)
{
	struct catalog_rest_program key = *one, *p;
	size_t of_user;

	p = rest_find(r, &key, &of_user);
	if (!p && of_user >= CATALOG_REST_OF_USER) {
		*key.comm = *key.exe = '\0';
		p = rest_find(r, &key, &of_user);
	}
	/* The last one is that of all other users. */
	if (!p && r->n >= CATALOG_REST_MAX - 1) {
		*key.comm = *key.exe = '\0';
		key.uid = CATALOG_REST_USERS;
		p = rest_find(r, &key, &of_user);
	}
	if (!p) {
		p = &r->programs[r->n++];
		*p = key;
		p->count = p->failed = p->cpu_ns = 0;
	}
	p->count += one->count;
	p->failed += one->failed;
	p->cpu_ns += one->cpu_ns;
	r->count += one->count;
}
