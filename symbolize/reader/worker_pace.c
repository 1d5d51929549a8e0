// SPDX-License-Identifier: Apache-2.0
/* worker_pace: see symbolize/reader/worker_pace.h. */
#include "symbolize/reader/worker_pace.h"

#include "base/base.h"

static uint64_t spent(const struct worker_spent *s, unsigned int part,
		      uint64_t now)
{
	return s->ns - MIN(s->ns, (now - MIN(s->at, now)) / part);
}

static void spend(struct worker_spent *s, uint64_t ns, unsigned int part,
		  uint64_t now)
{
	s->ns = spent(s, part, now) + ns;
	s->at = now;
}

static bool trusted(const struct worker_pace_party *p)
{
	return !p->owner && !p->uid;
}

uint64_t worker_pace_hurry(const struct worker_pace *all,
			   const struct worker_pace_party *p, uint64_t now)
{
	uint64_t may =
		p->owner ? WORKER_PACE_ALL_BURST / 2 : WORKER_PACE_ALL_BURST;
	uint64_t left, party;

	left = may - MIN(may, spent(&all->hurried, WORKER_PACE_ALL_PART, now));
	if (!trusted(p)) {
		party = spent(&p->hurried, WORKER_PACE_PARTY_PART, now);
		left = MIN(left, WORKER_PACE_PARTY_BURST -
					 MIN(WORKER_PACE_PARTY_BURST, party));
	}
	return left < WORKER_PACE_LEAST ? 0 : left;
}

void worker_pace_charge(struct worker_pace *all, struct worker_pace_party *p,
			uint64_t cpu_ns, bool hurried, uint64_t now)
{
	spend(&p->cpu, cpu_ns, WORKER_PACE_CPU_PART, now);
	if (!hurried)
		return;
	spend(&p->hurried, cpu_ns, WORKER_PACE_PARTY_PART, now);
	spend(&all->hurried, cpu_ns, WORKER_PACE_ALL_PART, now);
}

bool worker_pace_over(const struct worker_pace_party *p, uint64_t now)
{
	return !trusted(p) && spent(&p->cpu, WORKER_PACE_CPU_PART, now) >
				      WORKER_PACE_CPU_BURST;
}

bool worker_pace_fresh(const struct worker_pace_party *p, uint64_t now)
{
	return !spent(&p->cpu, WORKER_PACE_CPU_PART, now) &&
	       !spent(&p->hurried, WORKER_PACE_PARTY_PART, now);
}
