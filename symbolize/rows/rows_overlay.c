// SPDX-License-Identifier: Apache-2.0
/*
 * rows_overlay: one table laid over another, and which tables are to be laid
 * over which executables; see symbolize/symbolize.h. As AddSynthIntervalData in
 * the OpenTelemetry profiler: what people know better goes before what a file
 * says of itself.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "symbolize/rows/rows_hand.h"
#include "symbolize/rows/rows_table.h"

/* --- one table over another -------------------------------------------------- */

/* A table that is gone through from its front. */
struct side {
	const struct symbolizer_rows *rows;
	size_t i, n; /* the next row */
	uint64_t at; /* of the next row; UINT64_MAX: none */
	uint16_t rule, next; /* that holds, that of the next row */
};

static void side_load(struct side *s)
{
	s->at = UINT64_MAX;
	if (s->i < s->n)
		s->next = symbolizer_rows_at(s->rows, s->i, &s->at);
}

static void side_init(struct side *s, const struct symbolizer_rows *rows)
{
	*s = (struct side){ .rows = rows, .n = rows->head->n_rows };
	side_load(s);
}

static void side_step(struct side *s, uint64_t at)
{
	if (s->at != at)
		return;
	s->rule = s->next;
	s->i++;
	side_load(s);
}

/* The rule with its expressions where the new table has them. */
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

/* The addresses of a table; false: it has no rows. */
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
	struct symbolizer_elf_range all = { 0, UINT64_MAX };
	struct symbolizer_rows_build b = { .exec = &all, .n_exec = 1 };
	struct symbolizer_rows_info info;
	uint64_t lo = UINT64_MAX, hi = 0;
	struct side below, above;
	int err = 0;

	symbolizer_rows_info(own, &info);
	if (rows_overlay_span(own, &lo, &hi) |
	    rows_overlay_span(over, &lo, &hi))
		b.base = lo & ~0xffffULL;
	b.text = info.text;
	side_init(&below, own);
	side_init(&above, over);
	if (hi > lo && hi - b.base > UINT32_MAX)
		return -E2BIG;
	if (hi > lo && symbolizer_rows_func(&b, lo, hi, &err))
		err = rows_overlay_lay(&b, &below, &above);
	if (!err)
		err = symbolizer_rows_end(&b, &info, out);
	b.exec = NULL;
	symbolizer_rows_build_fini(&b);
	return err;
}

/* --- which over which --------------------------------------------------------- */

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
	h = calloc(1, sizeof(*h));
	if (!h)
		return -ENOMEM;
	memcpy(h->id, id, len);
	h->len = len;
	h->rows = rows;
	h->next = *list;
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

static bool hand_is_for(const struct symbolizer_hand *h,
			const struct symbolizer_ident *id)
{
	if (h->len == id->build_id_len && !memcmp(h->id, id->build_id, h->len))
		return true;
	return h->len == sizeof(id->file_id) &&
	       !memcmp(h->id, id->file_id, h->len);
}

/* The rows alone, as if laid over nothing. */
static int copy_rows(const struct symbolizer_rows *rows,
		     struct symbolizer_rows **out)
{
	return symbolizer_rows_overlay(rows, rows, out);
}

int symbolizer_hand_apply(const struct symbolizer_hand *list,
			  const struct symbolizer_ident *id, int err,
			  struct symbolizer_rows **rows)
{
	struct symbolizer_rows *both;
	int rc;

	if (err == -ECANCELED || err == -ENOMEM)
		return err;
	for (; list; list = list->next)
		if (hand_is_for(list, id))
			break;
	if (!list)
		return err;
	if (err)
		return copy_rows(list->rows, rows);
	rc = symbolizer_rows_overlay(*rows, list->rows, &both);
	symbolizer_rows_free(*rows);
	*rows = rc ? NULL : both;
	return rc;
}
