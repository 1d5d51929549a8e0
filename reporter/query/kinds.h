/* SPDX-License-Identifier: Apache-2.0 */
/* kinds: inputs of queries of another kind than CPU time; see reporter/query/kinds.c. */
#ifndef REPORTER_QUERY_KINDS_H
#define REPORTER_QUERY_KINDS_H

#include "reporter/labels.h"
#include "reporter/query/input.h"

/* The columns of an input, and the types of the first one. */
int kinds_types(struct input *in);
/* After the stack of a sample, before it is added. */
void kinds_sample(struct input *in);

#endif /* REPORTER_QUERY_KINDS_H */
