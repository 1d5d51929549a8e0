// SPDX-License-Identifier: Apache-2.0
/* worker_ask: see symbolize/reader/worker_ask.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "symbolize/reader/worker_ask.h"

#define ASK_DIRS_MAX 16

struct ask_job {
	struct opener_job job;
	uint64_t question;
	worker_ask_fn fn;
	void *arg;
};

static void on_done(struct opener_job *j, int err,
		    const struct opener_answer *answer, int fd)
{
	struct ask_job *a = container_of(j, struct ask_job, job);

	a->fn(a->arg, a->question, err ? err : fd, answer ? answer->nth : 0);
	if (fd >= 0)
		close(fd);
	free(a);
}

/* SYMBOLIZER_ASK_DWP has the name of the executable. */
static const char *ask_name(const struct symbolizer_file *file,
			    const struct worker_ask *ask, char *dwp, size_t cap)
{
	const char *slash = file->path ? strrchr(file->path, '/') : NULL;
	int len;

	if (strcmp(ask->name, SYMBOLIZER_ASK_DWP) != 0)
		return ask->name;
	len = slash ? snprintf(dwp, cap, "%s.dwp", slash + 1) : -1;
	return len > 0 && (size_t)len < cap ? dwp : NULL;
}

int worker_ask_start(struct opener *opener, const char *const *dirs,
		     const struct symbolizer_file *file,
		     const struct worker_ask *ask, worker_ask_fn fn, void *arg)
{
	char dwp[WORKER_BASENAME_MAX + 1];
	const char *text[2 + ASK_DIRS_MAX] = {
		file->path,
		ask_name(file, ask, dwp, sizeof(dwp)),
	};
	struct ask_job *a = calloc(1, sizeof(*a));
	struct opener_question *q;
	size_t n = 2;

	for (; dirs[n - 2] && n < ARRAY_SIZE(text); n++)
		text[n] = dirs[n - 2];
	q = a ? opener_question(OPENER_DEBUG, text, n) : NULL;
	if (!q) {
		free(a);
		return -ENOMEM;
	}
	q->own = file->own;
	q->nth = ask->nth;
	q->id_len = ask->build_id_len;
	memcpy(q->id, ask->build_id, MIN(q->id_len, sizeof(q->id)));
	a->job.q = q;
	a->job.uid = file->uid;
	a->job.pid = file->own.pid;
	a->job.fd = -1;
	a->job.done = on_done;
	a->question = ask->head.job;
	a->fn = fn;
	a->arg = arg;
	opener_submit(opener, &a->job);
	return 0;
}
