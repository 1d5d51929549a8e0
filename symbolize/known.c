// SPDX-License-Identifier: Apache-2.0
/* known: see symbolize/known.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <time.h>

#include "symbolize/elf/slot.h"
#include "symbolize/known.h"

/*
 * Two changes within one step of the file system's clock leave the same ctime:
 * a few ms before Linux 6.13, 2 s on some file systems. So a file that was
 * changed recently is not kept.
 */
#define KNOWN_SETTLED_NS (3 * 1000000000LL)

struct known_file {
	struct hash_node node;
	TAILQ_ENTRY(known_file) link; /* owner->files */
	struct symbolizer_known_owner *owner;
	/* As packed: from here on. */
	struct known_packed {
		struct symbolizer_ident ident;
		uint64_t mount;
		uint32_t owner;
		uint16_t n;
		uint8_t hashed, pad;
		struct symbolizer_slot slot;
	} p;
	struct symbolizer_segment segments[];
};

struct symbolizer_known_owner {
	TAILQ_ENTRY(symbolizer_known_owner) link;
	uint32_t uid;
	size_t n;
	TAILQ_HEAD(known_files, known_file) files; /* last used first */
};

int symbolizer_known_init(struct symbolizer_known *k)
{
	TAILQ_INIT(&k->owners);
	return hash_init(&k->files, 0);
}

static struct symbolizer_known_owner *known_owner(struct symbolizer_known *k,
						  uint32_t uid)
{
	struct symbolizer_known_owner *o;

	TAILQ_FOREACH(o, &k->owners, link)
		if (o->uid == uid)
			return o;
	o = calloc(1, sizeof(*o));
	if (!o)
		return NULL;
	o->uid = uid;
	TAILQ_INIT(&o->files);
	TAILQ_INSERT_TAIL(&k->owners, o, link);
	return o;
}

static void known_remove(struct symbolizer_known *k, struct known_file *e)
{
	struct symbolizer_known_owner *o = e->owner;

	hash_remove(&k->files, &e->node);
	TAILQ_REMOVE(&o->files, e, link);
	free(e);
	k->n--;
	if (--o->n)
		return;
	TAILQ_REMOVE(&k->owners, o, link);
	free(o);
}

void symbolizer_known_fini(struct symbolizer_known *k)
{
	struct symbolizer_known_owner *o;

	while (k->owners.tqh_last && (o = TAILQ_FIRST(&k->owners)))
		known_remove(k, TAILQ_FIRST(&o->files));
	hash_fini(&k->files);
}

/* The owner that loses an entry. */
static struct symbolizer_known_owner *known_loser(struct symbolizer_known *k)
{
	struct symbolizer_known_owner *o, *most = NULL;

	TAILQ_FOREACH(o, &k->owners, link)
		if ((o->uid || o->n > SYMBOLIZER_KNOWN / 2) &&
		    (!most || o->n > most->n))
			most = o;
	return most ? most : TAILQ_FIRST(&k->owners);
}

static uint64_t known_hash(const struct symbolizer_ident *id)
{
	return hash_mix(hash_u64(id->ino), id->dev);
}

static bool known_same(const struct known_packed *p,
		       const struct symbolizer_ident *id, uint64_t mount)
{
	return p->ident.dev == id->dev && p->ident.ino == id->ino &&
	       p->ident.size == id->size && p->ident.mtime_ns == id->mtime_ns &&
	       p->ident.ctime_ns == id->ctime_ns &&
	       (major(id->dev) || p->mount == mount);
}

/* Replaces an older entry of the same inode. */
static void known_insert(struct symbolizer_known *k,
			 const struct known_packed *p, const void *segments)
{
	size_t bytes = p->n * sizeof(struct symbolizer_segment);
	uint64_t hash = known_hash(&p->ident);
	struct known_file *e;

	HASH_FIND(e, &k->files, hash, node,
		  e->p.ident.dev == p->ident.dev &&
			  e->p.ident.ino == p->ident.ino &&
			  e->p.mount == p->mount);
	if (e)
		known_remove(k, e);
	while (k->n >= SYMBOLIZER_KNOWN)
		known_remove(k,
			     TAILQ_LAST(&known_loser(k)->files, known_files));
	e = malloc(sizeof(*e) + bytes);
	if (!e)
		return;
	e->owner = known_owner(k, p->owner);
	if (!e->owner) {
		free(e);
		return;
	}
	e->p = *p;
	if (bytes)
		memcpy(e->segments, segments, bytes);
	hash_insert(&k->files, &e->node, hash);
	TAILQ_INSERT_HEAD(&e->owner->files, e, link);
	e->owner->n++;
	k->n++;
	k->added++;
}

bool symbolizer_known_settled(const struct symbolizer_ident *id)
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
	struct known_packed p;

	if (f->damaged || f->n_segments > SYMBOLIZER_KNOWN_SEGMENTS ||
	    !symbolizer_known_settled(&f->ident) || !known_lasting(f))
		return;
	memset(&p, 0, sizeof(p));
	p.ident = f->ident;
	p.mount = f->mount;
	p.owner = f->owner;
	p.n = (uint16_t)f->n_segments;
	p.hashed = f->hashed;
	p.slot = f->slot;
	known_insert(k, &p, f->segments);
}

bool symbolizer_known_get(struct symbolizer_known *k, struct symbolizer_file *f)
{
	const struct symbolizer_ident *id = &f->ident;
	struct known_file *e;

	HASH_FIND(e, &k->files, known_hash(id), node,
		  known_same(&e->p, id, f->mount) && e->p.owner == f->owner);
	if (!e)
		return false;
	f->segments = calloc(e->p.n + 1, sizeof(*f->segments));
	if (!f->segments)
		return false;
	f->n_segments = e->p.n;
	memcpy(f->segments, e->segments, e->p.n * sizeof(*f->segments));
	f->ident = e->p.ident;
	f->hashed = e->p.hashed;
	f->slot = e->p.slot;
	TAILQ_REMOVE(&e->owner->files, e, link);
	TAILQ_INSERT_HEAD(&e->owner->files, e, link);
	return true;
}

void symbolizer_known_pack(const struct symbolizer_known *k, struct strbuf *out)
{
	const struct symbolizer_known_owner *o;
	struct known_file *e;

	/* Last used last, so that it is used last again when it is read. */
	TAILQ_FOREACH(o, &k->owners, link)
		TAILQ_FOREACH_REVERSE(e, &o->files, known_files, link)
		{
			strbuf_add(out, &e->p, sizeof(e->p));
			strbuf_add(out, e->segments,
				   e->p.n * sizeof(*e->segments));
		}
}

bool symbolizer_known_unpack(struct symbolizer_known *k, const uint8_t *p,
			     size_t len)
{
	struct known_packed head;
	size_t bytes;

	while (len) {
		if (len < sizeof(head))
			return false;
		memcpy(&head, p, sizeof(head));
		bytes = head.n * sizeof(struct symbolizer_segment);
		if (head.n > SYMBOLIZER_KNOWN_SEGMENTS || head.hashed > 1 ||
		    head.ident.build_id_len > SYMBOLIZER_BUILD_ID_MAX ||
		    !symbolizer_slot_valid(&head.slot) ||
		    len - sizeof(head) < bytes)
			return false;
		known_insert(k, &head, p + sizeof(head));
		p += sizeof(head) + bytes;
		len -= sizeof(head) + bytes;
	}
	return true;
}
