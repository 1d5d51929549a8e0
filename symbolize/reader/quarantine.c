// SPDX-License-Identifier: Apache-2.0
/* quarantine: see symbolize/reader/quarantine.h. */
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "symbolize/reader/quarantine.h"

/* From ten minutes to five hours. */
#define QUARANTINE_DOUBLINGS 5U

static const char *const quarantine_texts[] = {
#define X(NAME, name, text) text,
	SYMBOLIZER_REASONS(X)
#undef X
};

const char *quarantine_text(enum symbolizer_reason why)
{
	return quarantine_texts[why];
}

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

static size_t quarantine_of_user(const struct quarantine *a, uint32_t uid)
{
	size_t n = 0;

	for (size_t i = 0; i < a->n; i++)
		n += a->files[i].uid == uid;
	return n;
}

/* The oldest of the user who has the most: else one could drop another's. */
static size_t quarantine_victim(const struct quarantine *a)
{
	size_t n, most = 0, victim = 0;

	for (size_t i = 0; i < a->n; i++) {
		n = quarantine_of_user(a, a->files[i].uid);
		if (n > most) {
			most = n;
			victim = i;
		}
	}
	return victim;
}

/* A new entry, without failures. */
static size_t quarantine_enter(struct quarantine *a,
			       const struct symbolizer_file *f)
{
	size_t i;

	if (a->n == QUARANTINE_MAX)
		quarantine_remove(a, quarantine_victim(a));
	i = a->n++;
	memset(&a->files[i], 0, sizeof(a->files[i]));
	a->files[i].ident = f->ident;
	a->files[i].uid = f->uid;
	a->files[i].path = quarantine_printable(f->path);
	return i;
}

bool quarantine_add(struct quarantine *a, const struct symbolizer_file *f,
		    unsigned int thirds, enum symbolizer_reason why,
		    uint64_t now)
{
	size_t i = quarantine_find(a, &f->ident);
	unsigned int times;

	if (i == a->n)
		i = quarantine_enter(a, f);
	a->files[i].thirds += thirds;
	a->files[i].why = why;
	if (a->files[i].thirds < QUARANTINE_WHOLE)
		return false;
	times = MIN(a->files[i].times, QUARANTINE_DOUBLINGS);
	a->files[i].times++;
	a->files[i].until = now + (a->retry_ms << times);
	a->counts[why]++;
	return true;
}

/* False: it is not, or not yet. */
static bool quarantine_show(const struct quarantine *a, size_t i,
			    struct symbolizer_quarantined *out)
{
	if (a->files[i].thirds < QUARANTINE_WHOLE)
		return false;
	out->path = a->files[i].path ? a->files[i].path : "";
	out->uid = a->files[i].uid;
	out->why = a->files[i].why;
	out->text = quarantine_text(a->files[i].why);
	return true;
}

bool quarantine_get(const struct quarantine *a,
		    const struct symbolizer_ident *id,
		    struct symbolizer_quarantined *out)
{
	size_t i = quarantine_find(a, id);

	return i < a->n && quarantine_show(a, i, out);
}

size_t quarantine_count(const struct quarantine *a)
{
	size_t n = 0;

	for (size_t i = 0; i < a->n; i++)
		n += a->files[i].thirds >= QUARANTINE_WHOLE;
	return n;
}

bool quarantine_at(const struct quarantine *a, size_t i,
		   struct symbolizer_quarantined *out)
{
	for (size_t k = a->n; k--;)
		if (quarantine_show(a, k, out) && !i--)
			return true;
	return false;
}
