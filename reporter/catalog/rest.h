/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rest: processes that get no row of their own, because their user has too many, by
 * user and program. Bounded: of a user the first CATALOG_REST_OF_USER programs by
 * themselves, the others together; users beyond CATALOG_REST_MAX together.
 */
#ifndef REPORTER_CATALOG_REST_H
#define REPORTER_CATALOG_REST_H

#include <stddef.h>
#include <stdint.h>

#include "bpf/abi.h"

#define CATALOG_REST_MAX 128
#define CATALOG_REST_OF_USER 16
#define CATALOG_REST_EXE 256 /* bytes of a path; a longer one is cut */
#define CATALOG_REST_USERS UINT32_MAX /* uid of several users together */

struct catalog_rest_program {
	uint64_t count, failed, cpu_ns; /* failed: a status other than 0 */
	uint32_t uid;
	char comm[ABI_COMM_LEN]; /* "": several programs */
	char exe[CATALOG_REST_EXE];
};

struct catalog_rest {
	uint64_t count; /* of all */
	size_t n;
	struct catalog_rest_program programs[CATALOG_REST_MAX];
};

void catalog_rest_clear(struct catalog_rest *r);
/* Adds the counts of 'one', which is copied. */
void catalog_rest_add(struct catalog_rest *r,
		      const struct catalog_rest_program *one);

#endif /* REPORTER_CATALOG_REST_H */
