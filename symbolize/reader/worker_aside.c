// SPDX-License-Identifier: Apache-2.0
/* worker_aside: see symbolize/reader/worker_aside.h. */
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "symbolize/reader/worker_aside.h"

/* From ten minutes to five hours. */
#define WORKER_ASIDE_DOUBLINGS 5U

void worker_aside_fini(struct worker_aside *a)
{
	while (a->n)
		free(a->files[--a->n].path);
}

/* Its place, or a->n. */
static size_t worker_aside_find(const struct worker_aside *a,
				const struct symbolizer_ident *id)
{
	size_t i;

	for (i = 0; i < a->n; i++)
		if (a->files[i].ino == id->ino && a->files[i].dev == id->dev &&
		    a->files[i].size == id->size &&
		    a->files[i].mtime_ns == id->mtime_ns)
			break;
	return i;
}

bool worker_aside_has(struct worker_aside *a, const struct symbolizer_file *f,
		      uint64_t now)
{
	size_t i = worker_aside_find(a, &f->ident);

	if (i == a->n || a->files[i].thirds < WORKER_ASIDE_WHOLE)
		return false;
	if (now < a->files[i].until)
		return true;
	a->files[i].thirds = WORKER_ASIDE_WHOLE - 1;
	return false;
}

/* The path as text for a terminal; NULL: there is none, or no memory. */
static char *worker_aside_readable(const char *path)
{
	struct strbuf sb = STRBUF_INIT;

	if (!path)
		return NULL;
	text_add(&sb, path, strlen(path));
	return strbuf_steal(&sb);
}

static void worker_aside_remove(struct worker_aside *a, size_t i)
{
	free(a->files[i].path);
	a->n--;
	memmove(a->files + i, a->files + i + 1, (a->n - i) * sizeof(*a->files));
}

void worker_aside_forgive(struct worker_aside *a,
			  const struct symbolizer_file *f)
{
	size_t i = worker_aside_find(a, &f->ident);

	if (i < a->n && a->files[i].thirds < WORKER_ASIDE_WHOLE)
		worker_aside_remove(a, i);
}

bool worker_aside_add(struct worker_aside *a, const struct symbolizer_file *f,
		      unsigned int thirds, const char *why, uint64_t now)
{
	size_t i = worker_aside_find(a, &f->ident);
	unsigned int times;

	if (i == a->n) {
		if (a->n == WORKER_ASIDE_MAX)
			worker_aside_remove(a, 0);
		i = a->n++;
		memset(&a->files[i], 0, sizeof(a->files[i]));
		a->files[i].dev = f->ident.dev;
		a->files[i].ino = f->ident.ino;
		a->files[i].size = f->ident.size;
		a->files[i].mtime_ns = f->ident.mtime_ns;
		a->files[i].path = worker_aside_readable(f->path);
	}
	a->files[i].thirds += thirds;
	a->files[i].why = why;
	if (a->files[i].thirds < WORKER_ASIDE_WHOLE)
		return false;
	times = MIN(a->files[i].times, WORKER_ASIDE_DOUBLINGS);
	a->files[i].times++;
	a->files[i].until = now + (a->retry_ms << times);
	return true;
}

const char *worker_aside_at(const struct worker_aside *a, size_t i,
			    const char **why)
{
	for (size_t k = 0; k < a->n; k++) {
		if (a->files[k].thirds < WORKER_ASIDE_WHOLE || i--)
			continue;
		*why = a->files[k].why;
		return a->files[k].path ? a->files[k].path : "";
	}
	return NULL;
}
