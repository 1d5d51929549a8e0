// SPDX-License-Identifier: Apache-2.0
/* known: see symbolize/known.h. */
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <time.h>

#include "symbolize/known.h"

/*
 * Two changes within one step of the file system's clock leave the same ctime:
 * a few ms before Linux 6.13, 2 s on some file systems. So a file that was
 * changed recently is not kept.
 */
#define KNOWN_SETTLED_NS (3 * 1000000000LL)

struct symbolizer_known_file {
	struct symbolizer_ident ident;
	uint64_t mount;
	size_t n;
	struct symbolizer_segment segments[];
};

void symbolizer_known_fini(struct symbolizer_known *k)
{
	for (size_t i = 0; i < SYMBOLIZER_KNOWN; i++)
		free(k->files[i]);
}

static size_t known_slot(const struct symbolizer_ident *id)
{
	return hash_mix(hash_u64(id->ino), id->dev) % SYMBOLIZER_KNOWN;
}

static bool known_settled(const struct symbolizer_ident *id)
{
	struct timespec ts;
	int64_t age;

	if (clock_gettime(CLOCK_REALTIME, &ts))
		return false;
	age = ts.tv_sec * 1000000000LL + ts.tv_nsec - id->ctime_ns;
	return age > KNOWN_SETTLED_NS;
}

/*
 * An anonymous device number (overlayfs, tmpfs) is reused as soon as its file
 * system is unmounted, and on a file system that a user mounts, files have any
 * times that the user likes. Only a mount id that is never reused distinguishes
 * them.
 */
static bool known_lasting(const struct symbolizer_file *f)
{
	return major(f->ident.dev) || f->mount;
}

void symbolizer_known_add(struct symbolizer_known *k,
			  const struct symbolizer_file *f)
{
	struct symbolizer_known_file **slot = &k->files[known_slot(&f->ident)];
	size_t bytes = f->n_segments * sizeof(*f->segments);
	struct symbolizer_known_file *e;

	if (f->damaged || !known_settled(&f->ident) || !known_lasting(f))
		return;
	e = malloc(sizeof(*e) + bytes);
	if (!e)
		return;
	e->ident = f->ident;
	e->mount = f->mount;
	e->n = f->n_segments;
	if (bytes)
		memcpy(e->segments, f->segments, bytes);
	free(*slot);
	*slot = e;
}

bool symbolizer_known_get(const struct symbolizer_known *k,
			  struct symbolizer_file *f)
{
	const struct symbolizer_known_file *e = k->files[known_slot(&f->ident)];
	const struct symbolizer_ident *id = &f->ident;

	if (!e || e->ident.dev != id->dev || e->ident.ino != id->ino ||
	    e->ident.size != id->size || e->ident.mtime_ns != id->mtime_ns ||
	    e->ident.ctime_ns != id->ctime_ns ||
	    (!major(id->dev) && e->mount != f->mount))
		return false;
	f->segments = calloc(e->n + 1, sizeof(*f->segments));
	if (!f->segments)
		return false;
	f->n_segments = e->n;
	memcpy(f->segments, e->segments, e->n * sizeof(*f->segments));
	f->ident = e->ident;
	return true;
}
