// SPDX-License-Identifier: Apache-2.0
/*
 * path: where the time of a span of a thread went, by the long waits of an archive; see
 * reporter/request/request.h.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reporter/ledger/step.h"
#include "reporter/request/internal.h"
#include "reporter/request/lanes.h"
#include "reporter/request/stacks.h"

/* --- which process ------------------------------------------------------------- */

int reporter_why_process(struct reporter_why *why, const char *text)
{
	unsigned long pid;
	char *p;

	errno = 0;
	pid = strtoul(text, &p, 10);
	if (*text < '0' || *text > '9' || errno || !pid || pid > INT32_MAX)
		return -EINVAL;
	why->key = (struct abi_key){ .tgid = (uint32_t)pid };
	if (!*p)
		return 0;
	if (*p != '-' || !p[1])
		return -EINVAL;
	why->key.start_boottime = strtoull(p + 1, &p, 16);
	return *p || errno ? -EINVAL : 0;
}

/* Nothing is known after its end. Without a catalog that is not known. */
static void path_clip(struct request_run *x, const struct lanes *l, int64_t to,
		      struct reporter_path *p)
{
	struct reporter_query_span life;
	char process[64];
	int64_t end;

	snprintf(process, sizeof(process), "%u-%llx", p->of.key.tgid,
		 (unsigned long long)p->of.key.start_boottime);
	if (request_select_life(x->out->archive, process, to, &life))
		return;
	end = life.to - l->wall;
	if (end > (int64_t)p->of.from && end < (int64_t)p->of.to)
		p->of.to = (uint64_t)end;
}

/* --- the path -------------------------------------------------------------------- */

static int path_fail(struct request_run *x, const struct lanes *l, int err)
{
	const char *archive = x->out->archive;

	switch (err) {
	case -ENODATA:
		return request_fail(x, err,
				    l->without
					    ? "%s: the windows of that time "
					      "have no long waits: profd was "
					      "started without --wait"
					    : "%s: no window of that time",
				    archive);
	case -EFBIG:
		return request_fail(x, err,
				    "too many waits in that time: ask for a "
				    "shorter one");
	}
	return request_fail(x, err, "%s: %s", archive, strerror(-err));
}

static int path_steps(struct lanes *l, struct reporter_path *p)
{
	const struct why_opts opts = { .find = lanes_find, .arg = l };

	struct stacks *stacks;
	int err;

	p->steps = why_path(&opts, &p->of.key, p->tid, p->of.from, p->of.to,
			    &p->n);
	stacks = p->steps ? stacks_new(l) : NULL;
	err = stacks ? reporter_path_stacks(p, stacks_frames, stacks) : -ENOMEM;
	stacks_free(stacks);
	return err;
}

static int path_make(struct request_run *x, const struct reporter_why *why,
		     struct lanes *l, struct reporter_path *p)
{
	p->of.key = why->key;
	if (!lanes_process(l, &p->of.key))
		return request_fail(x, -ESRCH,
				    "process %u: nothing of it in the archive "
				    "at that time",
				    why->key.tgid);
	p->tid = why->tid ? why->tid : why->key.tgid;
	if (!lanes_knows(l, &p->of.key, p->tid))
		return request_fail(x, -ESRCH,
				    "thread %u: nothing of it in the archive "
				    "at that time",
				    p->tid);
	p->of.from = l->from;
	p->of.to = l->to;
	p->of.since = l->runs[0].begin;
	p->of.lost_rate = l->unrecorded;
	p->wait_min = l->min;
	path_clip(x, l, why->to, p);
	return path_steps(l, p);
}

static int path_lines(const struct reporter_path *p, int64_t wall,
		      struct strbuf *out)
{
	ledger_path(p, wall, out);
	for (size_t i = 0; i < p->n && !out->failed; i++)
		ledger_step(p, i, NULL, wall, out);
	return out->failed ? -ENOMEM : 0;
}

int reporter_why_run(const struct reporter_why *why,
		     struct reporter_request_run *run, struct strbuf *out)
{
	const struct reporter_query_span span = { why->from, why->to };
	struct request_run x = { .out = run };
	struct reporter_path path = { .tid = 0 };
	struct lanes l;
	int err;

	*run->why = '\0';
	err = lanes_read(&l, run->archive, &span, request_go_on, &x);
	if (err && err != -ECANCELED)
		path_fail(&x, &l, err);
	if (!err)
		err = path_make(&x, why, &l, &path);
	if (!err)
		err = path_lines(&path, l.wall, out);
	reporter_path_fini(&path);
	lanes_fini(&l);
	return err;
}
