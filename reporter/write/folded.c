// SPDX-License-Identifier: Apache-2.0
/*
 * folded: "ROOT;...;LEAF VALUE" for each stack, as flamegraph.pl, inferno and
 * speedscope read it (https://github.com/brendangregg/FlameGraph). In names ';' and
 * line ends would be separators, so they are replaced.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "reporter/query/model.h"

#define FOLDED_FLUSH 65536

static void folded_name(const struct reporter_query *q,
			const struct query_location *l, uint32_t line,
			struct strbuf *out)
{
	size_t start = out->len;

	query_frame_name(q, l, line, out);
	for (size_t i = start; !out->failed && i < out->len; i++)
		if (out->data[i] == ';')
			out->data[i] = ':';
		else if ((unsigned char)out->data[i] < ' ')
			out->data[i] = ' ';
}

static void folded_stack(const struct reporter_query *q,
			 const struct query_stack *s, struct strbuf *out)
{
	for (uint32_t i = s->n; i--;) {
		const struct query_location *l = q->locations[s->locations[i]];

		for (uint32_t k = MAX(l->nlines, 1U); k--;) {
			folded_name(q, l, k, out);
			strbuf_puts(out, i || k ? ";" : "");
		}
	}
	if (!s->n)
		strbuf_puts(out, "[no stack]");
}

/* By stack: samples of one follow each other, whatever their labels. */
static int folded_compare(const void *a, const void *b)
{
	const struct query_sample *x = *(struct query_sample *const *)a;
	const struct query_sample *y = *(struct query_sample *const *)b;

	if (x->stack != y->stack)
		return x->stack < y->stack ? -1 : 1;
	return 0;
}

int write_folded(struct reporter_query *q, struct sink *sink)
{
	struct query_out o = { .sink = sink, .text = STRBUF_INIT };
	size_t i, n = q->nsamples;
	struct query_sample **all = malloc((n + 1) * sizeof(void *));
	int64_t sum = 0;

	if (!all)
		return -ENOMEM;
	if (n)
		memcpy(all, q->samples, n * sizeof(void *));
	qsort(all, n, sizeof(void *), folded_compare);
	for (i = 0; i < n; i++) {
		sum = query_saturate(sum, all[i]->values[q->selected]);
		if (i + 1 < n && all[i + 1]->stack == all[i]->stack)
			continue;
		if (sum) {
			folded_stack(q, all[i]->stack, &o.text);
			strbuf_printf(&o.text, " %" PRId64 "\n", sum);
		}
		sum = 0;
		query_flush(&o, FOLDED_FLUSH);
	}
	query_flush(&o, 0);
	strbuf_fini(&o.text);
	free(all);
	return o.failed ? -ENOMEM : 0;
}
