// SPDX-License-Identifier: Apache-2.0
/* worker_ask: see symbolize/worker_ask.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "symbolize/worker_ask.h"

struct asking {
	uv_work_t work;
	const char *const *dirs;
	struct worker_ask ask;
	char *beside; /* or NULL */
	worker_ask_fn fn;
	void *arg;
	int fd;
};

static void on_work(uv_work_t *work)
{
	struct asking *a = container_of(work, struct asking, work);

	/* An end there is: places are few. */
	for (;; a->ask.nth++) {
		a->fd = symbolizer_open_debug(
			a->dirs, a->beside, a->ask.build_id,
			a->ask.build_id_len,
			a->ask.name_len ? a->ask.name : NULL, a->ask.nth);
		if (a->fd != -EAGAIN)
			return;
	}
}

static void on_done(uv_work_t *work, int status)
{
	struct asking *a = container_of(work, struct asking, work);

	a->fn(a->arg, a->ask.head.job, a->fd, a->ask.nth);
	if (a->fd >= 0)
		close(a->fd);
	free(a->beside);
	free(a);
}

int worker_ask_start(uv_loop_t *loop, const char *const *dirs,
		     const struct symbolizer_file *file,
		     const struct worker_ask *ask, worker_ask_fn fn, void *arg)
{
	struct asking *a = calloc(1, sizeof(*a));

	if (!a)
		return -ENOMEM;
	a->dirs = dirs;
	a->ask = *ask;
	a->beside = file->path ? strdup(file->path) : NULL;
	a->fn = fn;
	a->arg = arg;
	/* Fails without a work function only. */
	uv_queue_work(loop, &a->work, on_work, on_done);
	return 0;
}
