// SPDX-License-Identifier: Apache-2.0
/* quarantine: see symbolize/reader/quarantine.h. */
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "symbolize/reader/quarantine.h"

/* From ten minutes to five hours. */
#define QUARANTINE_DOUBLINGS 5U

void quarantine_fini(struct quarantine *a)
{
	while (a->n)
		free(a->files[--a->n].path);
}

/* Its index, or a->n. */
static size_t quarantine_find(const struct quarantine *a,
			      const struct symbolizer_ident *id)
{
	const struct symbolizer_ident *x;
	size_t i;

	for (i = 0; i < a->n; i++) {
		x = &a->files[i].ident;
		if (x->ino == id->ino && x->dev == id->dev &&
		    x->size == id->size && x->mtime_ns == id->mtime_ns)
			break;
	}
	return i;
}

bool quarantine_has(struct quarantine *a, const struct symbolizer_file *f,
		    uint64_t now)
{
	size_t i = quarantine_find(a, &f->ident);

	if (i == a->n || a->files[i].thirds < QUARANTINE_WHOLE)
		return false;
	if (now < a->files[i].until)
		return true;
	a->files[i].thirds = QUARANTINE_WHOLE - 1;
	return false;
}

/* The path, escaped for a terminal; NULL: none, or no memory. */
static char *quarantine_printable(const char *path)
{
	struct strbuf sb = STRBUF_INIT;

	if (!path)
		return NULL;
	text_add(&sb, path, strlen(path));
	return strbuf_steal(&sb);
}

static void quarantine_remove(struct quarantine *a, size_t i)
{
	free(a->files[i].path);
	a->n--;
	memmove(a->files + i, a->files + i + 1, (a->n - i) * sizeof(*a->files));
}

void quarantine_clear(struct quarantine *a, const struct symbolizer_file *f)
{
	size_t i = quarantine_find(a, &f->ident);

	if (i < a->n && a->files[i].thirds < QUARANTINE_WHOLE)
		quarantine_remove(a, i);
}

bool quarantine_add(struct quarantine *a, const struct symbolizer_file *f,
		    unsigned int thirds, const char *why, uint64_t now)
{
	size_t i = quarantine_find(a, &f->ident);
	unsigned int times;

	if (i == a->n) {
		if (a->n == QUARANTINE_MAX)
			quarantine_remove(a, 0);
		i = a->n++;
		memset(&a->files[i], 0, sizeof(a->files[i]));
		a->files[i].ident = f->ident;
		a->files[i].path = quarantine_printable(f->path);
	}
	a->files[i].thirds += thirds;
	a->files[i].why = why;
	if (a->files[i].thirds < QUARANTINE_WHOLE)
		return false;
	times = MIN(a->files[i].times, QUARANTINE_DOUBLINGS);
	a->files[i].times++;
	a->files[i].until = now + (a->retry_ms << times);
	return true;
}

const char *quarantine_why(const struct quarantine *a,
			   const struct symbolizer_ident *id)
{
	size_t i = quarantine_find(a, id);

	return i < a->n && a->files[i].thirds >= QUARANTINE_WHOLE
		       ? a->files[i].why
		       : NULL;
}

const char *quarantine_at(const struct quarantine *a, size_t i,
			  const char **why)
{
	for (size_t k = 0; k < a->n; k++) {
		if (a->files[k].thirds < QUARANTINE_WHOLE || i--)
			continue;
		*why = a->files[k].why;
		return a->files[k].path ? a->files[k].path : "";
	}
	return NULL;
}
