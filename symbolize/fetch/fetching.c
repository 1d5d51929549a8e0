// SPDX-License-Identifier: Apache-2.0
/*
 * fetching: what the symbolizer has to do with downloads. A file whose debug file
 * was missing is remembered by the build id that was asked for. When that arrives,
 * the file gets a new number, so that workers read it anew.
 */
#include <errno.h>
#include <string.h>

#include "symbolize/internal.h"

#define DEBUG_DIR "/usr/lib/debug"
#define FETCHING_BYTES (1ULL << 30)

int symbolizer_fetching_dirs(struct symbolizer *s,
			     const struct symbolizer_opts *opts)
{
	static const char *const usual[] = { DEBUG_DIR, NULL };
	const char *const *dirs = opts->debug_dirs ?: usual;
	size_t n = 0;

	for (; dirs[n]; n++) {
		if (n == SYMBOLIZER_DEBUG_DIRS_MAX)
			return -E2BIG;
		s->debug_dirs[n] = dirs[n];
	}
	if (opts->debuginfod)
		s->debug_dirs[n] = opts->debuginfod_dir;
	return 0;
}

void symbolizer_fetching_start(struct symbolizer *s,
			       const struct symbolizer_opts *opts,
			       const char *program)
{
	const struct fetch_opts o = {
		.loop = s->loop,
		.program = opts->worker ?: program,
		.urls = opts->debuginfod,
		.dir = opts->debuginfod_dir,
		.bytes = opts->debuginfod_bytes ?: FETCHING_BYTES,
		.once = opts->debuginfod_once,
		.stats = &s->stats,
		.arrived = opts->debuginfod_arrived,
		.failed = opts->debuginfod_failed,
		.arg = opts->arg,
		.closed = symbolizer_unref,
		.closed_arg = s,
	};
	int err = opts->debuginfod ? fetch_new(&s->fetch, &o) : 0;

	s->refs += s->fetch != NULL;
	if (err && opts->debuginfod_failed)
		opts->debuginfod_failed(opts->arg, err);
}

void symbolizer_fetching_missed(void *arg, struct symbolizer_file *file,
				const uint8_t *build_id, size_t len)
{
	struct symbolizer *s = arg;

	if (!s->fetch || len > sizeof(file->missed))
		return;
	memcpy(file->missed, build_id, len);
	file->missed_len = (uint8_t)len;
	fetch_want(s->fetch, build_id, len, file);
}

void symbolizer_fetching_renew(struct symbolizer *s,
			       struct symbolizer_file *file)
{
	if (!file->missed_len ||
	    fetch_state(s->fetch, file->missed, file->missed_len) != FETCH_HAVE)
		return;
	file->missed_len = 0;
	file->id = ++s->last_id;
}

bool symbolizer_fetching_file(const struct symbolizer *s,
			      const struct symbolizer_file *file)
{
	return file->missed_len && fetch_state(s->fetch, file->missed,
					       file->missed_len) != FETCH_NONE;
}

void symbolizer_fetch(struct symbolizer *s, const uint8_t *build_id, size_t len)
{
	if (s->fetch)
		fetch_want(s->fetch, build_id, len, NULL);
}

size_t symbolizer_fetching(const struct symbolizer *s)
{
	return s->fetch ? fetch_pending(s->fetch) : 0;
}

const char *symbolizer_fetch_problem(int err)
{
	static const struct {
		int err;
		const char *text;
	} problems[] = {
		{ -ECONNREFUSED, "it cannot be reached" },
		{ -ETIMEDOUT, "it is too slow" },
		{ -EKEYREJECTED, "its certificate is not trusted" },
		{ -EPERM, "the directory must belong to the user of profd, and "
			  "nobody else may write to it" },
		{ -ELOOP, "it redirects too often, or away from https" },
		{ -EIO, "it answers with an error" },
		{ -ENOSPC, "the file system of the cache is nearly full" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(problems); i++)
		if (problems[i].err == err)
			return problems[i].text;
	return strerror(-err);
}
