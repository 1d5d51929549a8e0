// SPDX-License-Identifier: Apache-2.0
/* watching: see profiler/watching.h. */
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "profiler/watching.h"

/* More than reporter/http/http_feed.c lets an event wait. */
#define WATCHING_KEEPS_NS (2 * CLOCK_NSEC_PER_SEC)

static void watching_start(struct watching *w);

static void watching_work(uv_work_t *work)
{
	watch_work(((struct watching *)work->data)->watch);
}

static void watching_worked(uv_work_t *work, int status)
{
	struct watching *w = work->data;

	w->working = false;
	watch_worked(w->watch);
	watching_start(w);
}

static void watching_start(struct watching *w)
{
	if (w->working || !watch_pending(w->watch))
		return;
	w->work.data = w;
	w->working = !uv_queue_work(w->loop, &w->work, watching_work,
				    watching_worked);
}

static void watching_wake(void *arg)
{
	watching_start(arg);
}

static int watching_follow(void *arg, uint32_t pid, bool begins)
{
	const struct watching *w = arg;

	return w->follow(w->arg, pid, begins);
}

int watching_init(struct watching *w, uv_loop_t *loop,
		  int (*follow)(void *arg, uint32_t pid, bool begins),
		  void *arg)
{
	const struct watch_opts opts = {
		.self = getpid(),
		.wake = watching_wake,
		.follow = watching_follow,
		.arg = w,
	};

	w->loop = loop;
	w->follow = follow;
	w->arg = arg;
	return watch_new(&w->watch, &opts);
}

void watching_read(struct watching *w)
{
	int n = w->watch ? watch_read(w->watch) : 0;

	if (n < 0)
		log_warn("reading watched events: %s", strerror(-n));
}

uint64_t watching_keeps(const struct watching *w)
{
	struct watch_stats stats = { 0 };

	if (w->watch)
		watch_stats(w->watch, &stats);
	return stats.subscribers ? WATCHING_KEEPS_NS : 0;
}

void watching_fini(struct watching *w)
{
	while (w->working)
		uv_run(w->loop, UV_RUN_ONCE);
	watch_free(w->watch);
	w->watch = NULL;
}
