/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lineage: the names from the first ancestor of a process to itself, by the catalog of
 * an archive: systemd, sshd, bash, make, sh, gcc, cc1.
 */
#ifndef REPORTER_REQUEST_LINEAGE_H
#define REPORTER_REQUEST_LINEAGE_H

#include <stddef.h>

struct request_lineage;

/* Errors as of request_db_open(). */
int request_lineage_new(struct request_lineage **lp, const char *archive);
void request_lineage_free(struct request_lineage *l);
/* As reporter_query_opts.ancestors, of 'l'. */
int request_lineage_get(struct request_lineage *l, const char *image,
			const char *const **names, size_t *n);

#endif /* REPORTER_REQUEST_LINEAGE_H */
