// SPDX-License-Identifier: Apache-2.0
/* worker_pace: see symbolize/reader/worker_pace.h. */
#include "symbolize/reader/worker_pace.h"

#include "base/base.h"

static uint64_t worker_pace_used(const struct worker_spent *s,
				 unsigned int part, uint64_t now)
{
	return s->ns - MIN(s->ns, (now - MIN(s->at, now)) / part);
}

static void worker_pace_spend(struct worker_spent *s, uint64_t ns,
			      unsigned int part, uint64_t now)
{
	s->ns = worker_pace_used(s, part, now) + ns;
	s->at = now;
}

static bool worker_pace_trusted(const struct worker_pace_party *p)
{
	return !p->owner && !p->uid;
}

uint64_t worker_pace_hurry(const struct worker_pace *all,
			   const struct worker_pace_party *p, uint64_t now)
{
	uint64_t may =
		p->owner ? WORKER_PACE_ALL_BURST / 2 : WORKER_PACE_ALL_BURST;
	uint64_t left, party;

	left = may - MIN(may, worker_pace_used(&all->hurried,
					       WORKER_PACE_ALL_PART, now));
	if (!worker_pace_trusted(p)) {
		party = worker_pace_used(&p->hurried, WORKER_PACE_PARTY_PART,
					 now);
		left = MIN(left, WORKER_PACE_PARTY_BURST -
					 MIN(WORKER_PACE_PARTY_BURST, party));
	}
	return left < WORKER_PACE_LEAST ? 0 : left;
}

void worker_pace_charge(struct worker_pace *all, struct worker_pace_party *p,
			uint64_t cpu_ns, bool hurried, uint64_t now)
{
	worker_pace_spend(&p->cpu, cpu_ns, WORKER_PACE_CPU_PART, now);
	if (!hurried)
		return;
	worker_pace_spend(&p->hurried, cpu_ns, WORKER_PACE_PARTY_PART, now);
	worker_pace_spend(&all->hurried, cpu_ns, WORKER_PACE_ALL_PART, now);
}

bool worker_pace_over(const struct worker_pace_party *p, uint64_t now)
{
	return !worker_pace_trusted(p) &&
	       worker_pace_used(&p->cpu, WORKER_PACE_CPU_PART, now) >
		       WORKER_PACE_CPU_BURST;
}

void worker_pace_charge_names(struct worker_pace_party *p, uint64_t cpu_ns,
			      uint64_t now)
{
	worker_pace_spend(&p->names, cpu_ns, WORKER_PACE_NAMES_PART, now);
}

uint64_t worker_pace_names(const struct worker_pace_party *p, uint64_t now)
{
	if (worker_pace_trusted(p))
		return 0;
	return worker_pace_used(&p->names, WORKER_PACE_NAMES_PART, now);
}

bool worker_pace_fresh(const struct worker_pace_party *p, uint64_t now)
{
	return !worker_pace_used(&p->names, WORKER_PACE_NAMES_PART, now) &&
	       !worker_pace_used(&p->cpu, WORKER_PACE_CPU_PART, now) &&
	       !worker_pace_used(&p->hurried, WORKER_PACE_PARTY_PART, now);
}
