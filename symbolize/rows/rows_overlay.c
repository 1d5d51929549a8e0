// SPDX-License-Identifier: Apache-2.0
/*
 * rows_overlay: merges two tables, and keeps the list of tables that users gave
 * for executables; see symbolize/symbolize.h. Like AddSynthIntervalData in the
 * OpenTelemetry profiler: these take precedence over the file's own.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "symbolize/rows/rows_hand.h"
#include "symbolize/rows/rows_table.h"

/* --- one table over another -------------------------------------------------- */

/* A table being read from its start. */
struct side {
	const struct symbolizer_rows *rows;
	size_t i, n; /* the next row */
	uint64_t at; /* of the next row; UINT64_MAX: none */
	uint16_t rule, next; /* the current one, that of the next row */
};

static void side_load(struct side *s)
{
	s->at = UINT64_MAX;
	if (s->i < s->n)
		s->next = symbolizer_rows_at(s->rows, s->i, &s->at);
}

static void side_step(struct side *s, uint64_t at)
{
	if (s->at != at)
		return;
	s->rule = s->next;
	s->i++;
	side_load(s);
}

/* Reads the current rule, and adds its expressions to the new table. */
static int move_rule(struct symbolizer_rows_build *b, const struct side *s,
		     struct symbolizer_rule *rule)
{
	struct symbolizer_value *v;
	const uint8_t *code;
	size_t len;
	int n;

	symbolizer_rows_rule(s->rows, s->rule, rule);
	for (int i = -1; i < SYMBOLIZER_REGS; i++) {
		v = i < 0 ? &rule->cfa : &rule->regs[i];
		if (v->from != SYMBOLIZER_EXPR && v->from != SYMBOLIZER_AT_EXPR)
			continue;
		code = symbolizer_rows_expr(s->rows, v->n, &len);
		n = symbolizer_pool_put(&b->exprs, code, len);
		if (n < 0)
			return n;
		v->n = n;
	}
	return 0;
}

static int rows_overlay_lay(struct symbolizer_rows_build *b, struct side *own,
			    struct side *over)
{
	struct symbolizer_rule rule;
	const struct side *from;
	uint64_t at;
	int err = 0;

	while (!err && (at = MIN(own->at, over->at)) != UINT64_MAX) {
		side_step(own, at);
		side_step(over, at);
		from = over->rule ? over : own;
		if (from->rule)
			err = move_rule(b, from, &rule);
		if (!err)
			err = symbolizer_rows_add(b, at,
						  from->rule ? &rule : NULL);
	}
	return err;
}

/* Extends [*lo, *hi] to the addresses of a table; false: it has no rows. */
static bool rows_overlay_span(const struct symbolizer_rows *t, uint64_t *lo,
			      uint64_t *hi)
{
	uint64_t at;

	if (!t->head->n_rows)
		return false;
	symbolizer_rows_at(t, 0, &at);
	*lo = MIN(*lo, at);
	symbolizer_rows_at(t, t->head->n_rows - 1, &at);
	*hi = MAX(*hi, at);
	return true;
}

int symbolizer_rows_overlay(const struct symbolizer_rows *own,
			    const struct symbolizer_rows *over,
			    struct symbolizer_rows **out)
{
	struct symbolizer_rows_build b = { .exec[0] = { 0, UINT64_MAX },
					   .n_exec = 1 };
	struct symbolizer_rows_info info;
	struct side below = { .rows = own, .n = own->head->n_rows };
	struct side above = { .rows = over, .n = over->head->n_rows };
	uint64_t lo = UINT64_MAX, hi = 0;
	int err = 0;

	symbolizer_rows_info(own, &info);
	if (rows_overlay_span(own, &lo, &hi) |
	    rows_overlay_span(over, &lo, &hi))
		b.base = lo & ~0xffffULL;
	b.text = info.text;
	side_load(&below);
	side_load(&above);
	if (hi > lo && hi - b.base > UINT32_MAX)
		return -E2BIG;
	if (hi > lo && symbolizer_rows_func(&b, lo, hi, &err))
		err = rows_overlay_lay(&b, &below, &above);
	if (!err)
		err = symbolizer_rows_end(&b, &info, out);
	symbolizer_rows_build_fini(&b);
	return err;
}

/* --- tables by hand ------------------------------------------------------------ */

struct symbolizer_hand {
	struct symbolizer_hand *next;
	uint8_t id[SYMBOLIZER_BUILD_ID_MAX]; /* build id, or file id */
	size_t len;
	struct symbolizer_rows *rows;
};

int symbolizer_hand_add(struct symbolizer_hand **list, const uint8_t *id,
			size_t len, struct symbolizer_rows *rows)
{
	struct symbolizer_hand *h;

	len = MIN(len, (size_t)SYMBOLIZER_BUILD_ID_MAX);
	if (len == 0)
		return -EINVAL;
	h = malloc(sizeof(*h));
	if (!h)
		return -ENOMEM;
	*h = (struct symbolizer_hand){ *list, .len = len, .rows = rows };
	memcpy(h->id, id, len);
	*list = h;
	return 0;
}

void symbolizer_hand_free(struct symbolizer_hand *list)
{
	struct symbolizer_hand *next;

	for (; list; list = next) {
		next = list->next;
		symbolizer_rows_free(list->rows);
		free(list);
	}
}

static bool hand_has_id(const struct symbolizer_hand *h, const uint8_t *id,
			size_t len)
{
	return h->len == len && !memcmp(h->id, id, len);
}

int symbolizer_hand_apply(const struct symbolizer_hand *list,
			  const struct symbolizer_ident *id, int err,
			  struct symbolizer_rows **rows)
{
	struct symbolizer_rows *own;

	if (err == -ECANCELED || err == -ENOMEM)
		return err;
	while (list && !hand_has_id(list, id->build_id, id->build_id_len) &&
	       !hand_has_id(list, id->file_id, sizeof(id->file_id)))
		list = list->next;
	if (!list)
		return err;
	own = err ? NULL : *rows;
	*rows = NULL;
	/* A copy, if the file has none. */
	err = symbolizer_rows_overlay(own ? own : list->rows, list->rows, rows);
	symbolizer_rows_free(own);
	return err;
}
