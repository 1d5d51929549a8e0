/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stack: the stacks of the steps of /api/process/ID/why, as text. The first step that
 * has a stack has its frames, the others its number.
 */
#ifndef PROFILER_TIMELINE_STACK_H
#define PROFILER_TIMELINE_STACK_H

#include <jansson.h>

#include "base/base.h"

/* Steps with frames, by the number of the stack: a JSON array; NULL: none yet. */
struct stack_list {
	json_t *steps;
};

/* To be called with each step, in their order. */
void stack_list_add(struct stack_list *l, json_t *step);
void stack_list_fini(struct stack_list *l);

/*
 * Appends where a step waits, or why that is not known, in lines with that indent: the
 * innermost function outside the C library, and its caller; 'whole': all functions, of
 * each stack once. Nothing for one without a wait of user code.
 */
void stack_put(const struct stack_list *l, struct strbuf *sb,
	       const json_t *step, size_t indent, bool whole);

#endif /* PROFILER_TIMELINE_STACK_H */
