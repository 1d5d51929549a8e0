// SPDX-License-Identifier: Apache-2.0
/* followed: see profiler/waiting/followed.h. */
#include <errno.h>

#include "profiler/waiting/followed.h"

static int followed_choose(void *arg, uint32_t tgid, bool begins)
{
	const struct waiting_followed *f = arg;

	return timeline_follow(f->timelines, tgid, begins);
}

static void followed_lost(void *arg, uint32_t tgid, struct abi_chosen *out)
{
	const struct waiting_followed *f = arg;

	timeline_followed(f->timelines, tgid, out);
}

static void followed_owner(void *arg, struct watch_thread *t)
{
	const struct waiting_followed *f = arg;
	const struct pm_image *image = pm_newest(f->pm, &t->key);
	struct pm_image_info info;

	if (!image)
		return;
	pm_image_info(image, &info);
	t->uid = info.uid;
	t->gid = info.gid;
}

int waiting_followed_init(struct waiting_followed *f,
			  struct timelines *timelines, struct pm *pm,
			  struct watch *watch)
{
	const struct analysis_opts opts = {
		.watch = watch,
		.follow = followed_choose,
		.lost = followed_lost,
		.owner = followed_owner,
		.arg = f,
	};

	*f = (struct waiting_followed){ .timelines = timelines, .pm = pm };
	if (!watch)
		return 0;
	f->analysis = analysis_new(&opts);
	return f->analysis ? 0 : -ENOMEM;
}

void waiting_followed_fini(struct waiting_followed *f)
{
	analysis_free(f->analysis);
	f->analysis = NULL;
}

int waiting_followed_pid(struct waiting_followed *f, uint32_t pid, bool begins)
{
	return f->analysis ? analysis_follow(f->analysis, pid, begins)
			   : -ENOTSUP;
}

void waiting_followed_segment(const struct waiting_followed *f,
			      const struct abi_segment *s)
{
	if (f->analysis)
		analysis_segment(f->analysis, s);
}

bool waiting_followed_busy(const struct waiting_followed *f)
{
	return f->analysis && analysis_busy(f->analysis);
}

bool waiting_followed_tick(struct waiting_followed *f, uint64_t now)
{
	return f->analysis && analysis_tick(f->analysis, now);
}

void waiting_followed_cut(struct waiting_followed *f, uint64_t now)
{
	timeline_tick(f->timelines, now);
	analysis_cut(f->analysis, now);
}
