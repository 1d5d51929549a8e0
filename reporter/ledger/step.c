// SPDX-License-Identifier: Apache-2.0
/* step: see reporter/ledger/step.h. */
#include "reporter/ledger/line.h"
#include "reporter/ledger/step.h"

static const char *const step_ends[] = {
#define X(NAME, name) #name,
	REPORTER_STEP_ENDS(X)
#undef X
};

void ledger_path(const struct reporter_path *p, struct strbuf *sb)
{
	struct line l = line_new(line_wall());

	ledger_put_timeline(&l, &p->of);
	line_int(&l, "tid", p->tid);
	line_int(&l, "steps", p->n);
	line_end(&l, sb);
}

void ledger_step(const struct reporter_step *s, struct pm *pm, int64_t wall,
		 struct strbuf *sb)
{
	struct line l = line_new(wall);

	line_int(&l, "depth", s->depth);
	line_str(&l, "end", step_ends[s->end]);
	line_int(&l, "pid", s->segment.of.key.tgid);
	ledger_put_segment(&l, &s->segment, pm,
			   s->end != REPORTER_STEP_GAP &&
				   s->end != REPORTER_STEP_MANY);
	line_end(&l, sb);
}
