/* SPDX-License-Identifier: Apache-2.0 */
/* nodes: samples added up by function, line, file or label, for a table. */
#ifndef REPORTER_QUERY_NODES_H
#define REPORTER_QUERY_NODES_H

#include "reporter/query/model.h"

enum node_kind {
	NODE_FUNCTION,
	NODE_LINE,
	NODE_FILE,
	NODE_LABEL,
};

struct node {
	struct hash_node hash;
	uint32_t name; /* of nodes.names */
	bool kept; /* in the table */
	bool inlined, called; /* how callers reach it */
	int64_t flat, cum;
	size_t seen; /* number of the last sample that has it */
};

struct nodes {
	struct reporter_query *q;
	enum node_kind kind;
	const char *label;
	struct arena arena;
	struct strtab names; /* as printed, not escaped */
	struct hash by_name;
	struct node **items;
	size_t n, cap;
	size_t dropped; /* below the least share */
	struct node **lines; /* the node of each line of each location */
	size_t *first; /* of a location, in 'lines' */
	int64_t total, weakest; /* of calls that mark a row */
};

/* 0 or -ENOMEM; nodes_fini() in any case. */
int nodes_make(struct nodes *ns, struct reporter_query *q, const char *by,
	       double least);
void nodes_fini(struct nodes *ns);
void nodes_sort(struct nodes *ns, bool cum);
/* Drops the rows beyond the first 'top'. */
void nodes_top(struct nodes *ns, size_t top);
/* Then: which of them are inlined. 0 or -ENOMEM. */
int nodes_mark(struct nodes *ns);

/* table.c: ends the line that began at 'start', cut to 'width' characters. */
void query_row_end(struct strbuf *out, size_t start, size_t width);
/* The unit of all rows, and what stands behind the name of one. */
const char *query_rows_unit(const struct nodes *ns);
const char *query_row_mark(const struct node *n);

#endif /* REPORTER_QUERY_NODES_H */
