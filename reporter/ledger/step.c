// SPDX-License-Identifier: Apache-2.0
/* step: see reporter/ledger/step.h. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "reporter/ledger/ledger.h"
#include "reporter/ledger/line.h"
#include "reporter/ledger/step.h"

#define STEP_SITES 256 /* whose frames are asked for */

static const char *const step_ends[] = {
#define X(NAME, name) #name,
	REPORTER_STEP_ENDS(X)
#undef X
};

static const char *const step_no_stacks[REPORTER_NO_STACK_MAX] = {
	[REPORTER_NO_STACK_LOST] = "lost",
	[REPORTER_NO_STACK_MANY] = "many",
#define X(NAME, name, help) [ABI_WAIT_SITE_##NAME] = #name,
	ABI_WAIT_UNCOPIED(X)
#undef X
};

/* --- the stacks of a path --------------------------------------------------------- */

/* A site of the steps of a path. */
struct step_site {
	uint64_t site, ns;
	uint32_t stack; /* in place of its number, as in struct reporter_step */
	uint32_t no_stack;
};

static uint64_t step_site_of(const struct reporter_step *s)
{
	if (s->end == REPORTER_STEP_GAP || s->end == REPORTER_STEP_MANY ||
	    ABI_WAIT_WHAT_REASON(s->segment.of.what) < ABI_WAIT_SLEEP)
		return ABI_WAIT_SITE_NONE;
	return s->segment.of.site;
}

static int step_by_site(const void *a, const void *b)
{
	const struct step_site *x = a, *y = b;

	return x->site < y->site ? -1 : x->site > y->site;
}

static int step_by_time(const void *a, const void *b)
{
	const struct step_site *x = a, *y = b;

	return x->ns != y->ns ? x->ns < y->ns ? 1 : -1 : step_by_site(a, b);
}

/* The different sites, by number, with the time of their steps. NULL: out of memory. */
static struct step_site *step_sites(const struct reporter_path *p, size_t *np)
{
	struct step_site *sites = calloc(MAX(p->n, 1), sizeof(*sites));
	size_t n = 0, to = 0;

	*np = 0;
	if (!sites)
		return NULL;
	for (size_t i = 0; i < p->n; i++) {
		const struct abi_segment *of = &p->steps[i].segment.of;
		uint64_t site = step_site_of(&p->steps[i]);

		if (site >= ABI_WAIT_SITE_LEAST)
			sites[n++] = (struct step_site){
				.site = site,
				.ns = of->end - of->begin,
			};
	}
	qsort(sites, n, sizeof(*sites), step_by_site);
	for (size_t i = 0; i < n; i++)
		if (to && sites[to - 1].site == sites[i].site)
			sites[to - 1].ns += sites[i].ns;
		else
			sites[to++] = sites[i];
	*np = to;
	return sites;
}

static bool step_same_text(const char *a, const char *b)
{
	return !strcmp(a ?: "", b ?: "");
}

static bool step_same_frame(const struct reporter_step_frame *a,
			    const struct reporter_step_frame *b)
{
	return a->line == b->line && a->inlined == b->inlined &&
	       step_same_text(a->function, b->function) &&
	       step_same_text(a->file, b->file) &&
	       step_same_text(a->mapping, b->mapping);
}

static bool step_same_stack(const struct reporter_stack *a,
			    const struct reporter_stack *b)
{
	if (a->n != b->n || a->cut != b->cut)
		return false;
	for (size_t i = 0; i < a->n; i++)
		if (!step_same_frame(&a->frames[i], &b->frames[i]))
			return false;
	return true;
}

/* The frames whose texts have room in a line. */
static size_t step_fitting(const struct reporter_step_frame *frames, size_t n)
{
	size_t room = LINE_TEXT_MAX, i;

	for (i = 0; i < n; i++) {
		const struct reporter_step_frame *f = &frames[i];
		const char *texts[] = { f->function, f->file, f->mapping };

		for (size_t k = 0; k < ARRAY_SIZE(texts); k++) {
			size_t len = strlen(texts[k] ?: "");

			if (len > room)
				return i;
			room -= len;
		}
	}
	return i;
}

static bool step_copy_text(struct reporter_path *p, const char **text)
{
	if (*text)
		*text = arena_memdup(&p->names, *text, strlen(*text) + 1);
	return *text;
}

/* What the frames borrow becomes the path's. */
static bool step_copy(struct reporter_path *p, struct reporter_stack *s)
{
	struct reporter_step_frame *f;
	bool ok = true;

	s->frames =
		arena_memdup(&p->names, s->frames, s->n * sizeof(*s->frames));
	for (size_t i = 0; s->frames && i < s->n; i++) {
		f = &s->frames[i];
		f->function = f->function ?: "";
		f->file = f->file ?: "";
		f->mapping = f->mapping ?: "";
		ok = ok && step_copy_text(p, &f->function) &&
		     step_copy_text(p, &f->file) &&
		     step_copy_text(p, &f->mapping);
	}
	return s->frames && ok;
}

/* Adds a stack, unless the path has it. 0 or -ENOMEM. */
static int step_add_stack(struct reporter_path *p, struct step_site *site,
			  struct reporter_stack *s)
{
	size_t i;

	for (i = 0; i < p->nstacks; i++)
		if (step_same_stack(&p->stacks[i], s))
			break;
	if (i == REPORTER_STACKS_MAX) {
		site->no_stack = REPORTER_NO_STACK_MANY;
		return 0;
	}
	if (i == p->nstacks) {
		if (!step_copy(p, s))
			return -ENOMEM;
		p->stacks[p->nstacks++] = *s;
	}
	site->stack = (uint32_t)i + 1;
	return 0;
}
/* Numbers the stacks by their first step. */
static void step_number(struct reporter_path *p)
{
	struct reporter_stack by_time[REPORTER_STACKS_MAX];
	uint32_t number[REPORTER_STACKS_MAX + 1] = { 0 }, n = 0;
	struct reporter_step *s;

	memcpy(by_time, p->stacks, sizeof(by_time));
	for (size_t i = 0; i < p->n; i++) {
		s = &p->steps[i];
		if (!s->stack)
			continue;
		if (!number[s->stack]) {
			p->stacks[n] = by_time[s->stack - 1];
			p->stacks[n].first = i;
			number[s->stack] = ++n;
		}
		s->stack = number[s->stack];
	}
}

/* 'sites' are all of the path. */
static void step_give(struct reporter_path *p, struct step_site *sites,
		      size_t n)
{
	const struct step_site *site;
	struct step_site key;
	struct reporter_step *s;

	qsort(sites, n, sizeof(*sites), step_by_site);
	for (size_t i = 0; i < p->n; i++) {
		s = &p->steps[i];
		key.site = step_site_of(s);
		site = bsearch(&key, sites, n, sizeof(*sites), step_by_site);
		s->stack = site ? site->stack : 0;
		s->no_stack = site ? site->no_stack : (uint32_t)key.site;
	}
	step_number(p);
}

int reporter_path_stacks(struct reporter_path *p,
			 size_t (*frames)(void *arg, uint64_t site,
					  struct reporter_step_frame *out,
					  size_t max),
			 void *arg)
{
	struct reporter_step_frame *out =
		calloc(REPORTER_STACK_FRAMES, sizeof(*out));
	struct reporter_stack s;
	size_t n, all, i;
	struct step_site *sites = step_sites(p, &n);
	int err = out && sites ? 0 : -ENOMEM;

	if (!err)
		qsort(sites, n, sizeof(*sites), step_by_time);
	for (i = 0; !err && i < n; i++) {
		if (i >= STEP_SITES) {
			sites[i].no_stack = REPORTER_NO_STACK_MANY;
			continue;
		}
		all = frames(arg, sites[i].site, out, REPORTER_STACK_FRAMES);
		s = (struct reporter_stack){ .frames = out };
		s.n = step_fitting(out, MIN(all, REPORTER_STACK_FRAMES));
		s.cut = s.n < all;
		if (all)
			err = step_add_stack(p, &sites[i], &s);
		else
			sites[i].no_stack = REPORTER_NO_STACK_LOST;
	}
	if (!err)
		step_give(p, sites, n);
	free(sites);
	free(out);
	return err;
}

void reporter_path_fini(struct reporter_path *p)
{
	free(p->steps);
	p->steps = NULL;
	p->n = p->nstacks = 0;
	arena_fini(&p->names);
}

/* --- lines ------------------------------------------------------------------------ */

void ledger_path(const struct reporter_path *p, int64_t wall, struct strbuf *sb)
{
	struct line l = line_new(wall);

	ledger_put_timeline(&l, &p->of);
	line_int(&l, "tid", p->tid);
	if (p->wait_min)
		line_put(&l, "wait_min_ns",
			 json_sprintf("%" PRIu64, p->wait_min));
	line_int(&l, "steps", p->n);
	line_end(&l, sb);
}

static json_t *step_frame(struct line *l, const struct reporter_step_frame *f)
{
	struct line of = line_new(l->wall);

	of.room = l->room;
	line_str(&of, "function", f->function);
	line_str(&of, "file", f->file);
	if (f->line)
		line_int(&of, "line", f->line);
	line_str(&of, "mapping", f->mapping);
	if (f->inlined)
		line_put(&of, "inlined", json_true());
	l->room = of.room;
	l->cut |= of.cut;
	l->failed |= of.failed;
	return of.o;
}

/* Those that fit. */
static void step_put_frames(struct line *l, const struct reporter_stack *s)
{
	json_t *list = json_array();

	for (size_t i = 0; i < s->n && !l->cut; i++)
		if (json_array_append_new(list, step_frame(l, &s->frames[i])))
			l->failed = true;
	l->cut |= s->cut;
	line_put(l, "frames", list);
}

void ledger_step(const struct reporter_path *p, size_t i, struct pm *pm,
		 int64_t wall, struct strbuf *sb)
{
	const struct reporter_step *s = &p->steps[i];
	struct line l = line_new(wall);

	line_int(&l, "depth", s->depth);
	line_str(&l, "end", step_ends[s->end]);
	line_int(&l, "pid", s->segment.of.key.tgid);
	ledger_put_segment(&l, &s->segment, pm,
			   s->end != REPORTER_STEP_GAP &&
				   s->end != REPORTER_STEP_MANY);
	if (s->stack)
		line_int(&l, "stack", s->stack - 1);
	else if (s->no_stack < ARRAY_SIZE(step_no_stacks))
		line_str(&l, "no_stack", step_no_stacks[s->no_stack]);
	if (s->stack && p->stacks[s->stack - 1].first == i)
		step_put_frames(&l, &p->stacks[s->stack - 1]);
	line_end(&l, sb);
}
