// SPDX-License-Identifier: Apache-2.0
/* vault: see base/mem/vault.h. */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/queue.h>
#include <unistd.h>

#include "base/base.h"

/*
 * Regions are aligned to this size, and each block begins in the first so many bytes
 * of its region, so that the region follows from the block's address. A header in
 * the block would be cold when it is freed; reading it would cost more than all else.
 */
#define VAULT_REGION ((size_t)256 << 10)
/*
 * As many regions are kept as were recently in use at once: mapping one costs 64
 * page faults, more than all work on its blocks.
 */
#define VAULT_KEPT_MAX 8
#define VAULT_PERIOD 64 /* regions begun; "recently" is one or two periods */

struct vault_region {
	LIST_ENTRY(vault_region) link;
	struct vault_region *spare;
	struct vault *vault;
	size_t size, used; /* bytes, with this header */
	size_t live; /* blocks not freed */
};

struct vault {
	LIST_HEAD(, vault_region) regions;
	struct vault_region *now; /* blocks are cut from it; or NULL */
	struct vault_region *spare; /* empty ones, the last emptied first */
	size_t n, nspare; /* regions of the usual size, and of them spare */
	size_t high, kept; /* most in use at once in this period, in the last */
	unsigned int turns; /* regions begun in this period */
	size_t bytes;
};

int vault_new(struct vault **vp)
{
	*vp = calloc(1, sizeof(**vp));
	return *vp ? 0 : -ENOMEM;
}

/* Maps 'size' bytes, whole pages, aligned to VAULT_REGION; or NULL. */
static void *vault_map_aligned(size_t size)
{
	size_t all = size + VAULT_REGION, before;
	char *p;

	p = mmap(NULL, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		 -1, 0);
	if (p == MAP_FAILED)
		return NULL;
	before = -(uintptr_t)p & (VAULT_REGION - 1);
	if (before)
		munmap(p, before);
	munmap(p + before + size, all - before - size);
	return p + before;
}

static struct vault_region *vault_map(struct vault *v, size_t size)
{
	size_t page = sysconf(_SC_PAGESIZE);
	struct vault_region *r;

	size = (size + page - 1) & ~(page - 1);
	r = vault_map_aligned(size);
	if (!r)
		return NULL;
	if (madvise(r, size, MADV_DONTDUMP)) {
		munmap(r, size);
		return NULL;
	}
	r->vault = v;
	r->size = size;
	r->used = sizeof(*r);
	LIST_INSERT_HEAD(&v->regions, r, link);
	v->bytes += size;
	v->n += size == VAULT_REGION;
	return r;
}

static void vault_unmap(struct vault_region *r)
{
	struct vault *v = r->vault;

	LIST_REMOVE(r, link);
	v->bytes -= r->size;
	v->n -= r->size == VAULT_REGION;
	munmap(r, r->size);
}

void vault_free(struct vault *v)
{
	if (!v)
		return;
	while (!LIST_EMPTY(&v->regions))
		vault_unmap(LIST_FIRST(&v->regions));
	free(v);
}

static struct vault_region *vault_begin(struct vault *v)
{
	struct vault_region *r = v->spare;

	if (!r)
		return vault_map(v, VAULT_REGION);
	v->spare = r->spare;
	v->nspare--;
	return r;
}

/* A region was begun, or the current one again. */
static void vault_note_turn(struct vault *v)
{
	size_t busy = v->n - v->nspare;

	v->high = MAX(v->high, busy);
	if (++v->turns < VAULT_PERIOD)
		return;
	v->kept = v->high;
	v->high = busy;
	v->turns = 0;
	while (v->spare && v->n > v->kept)
		vault_unmap(vault_begin(v));
}

/* The last block of the region was freed. */
static void vault_empty(struct vault_region *r)
{
	struct vault *v = r->vault;

	r->used = sizeof(*r);
	if (r == v->now) {
		vault_note_turn(v);
		return;
	}
	if (r->size != VAULT_REGION || v->n > MAX(v->kept, v->high) ||
	    v->n > VAULT_KEPT_MAX) {
		vault_unmap(r);
		return;
	}
	r->spare = v->spare;
	v->spare = r;
	v->nspare++;
}

static struct vault_region *vault_turn(struct vault *v)
{
	struct vault_region *old = v->now;

	v->now = vault_begin(v);
	vault_note_turn(v);
	if (old && !old->live)
		vault_empty(old);
	return v->now;
}

void *vault_take(struct vault *v, size_t size)
{
	struct vault_region *r = v->now;
	void *block;

	if (size > SIZE_MAX / 2)
		return NULL;
	size = (MAX(size, 1) + 7) & ~(size_t)7;
	if (size > VAULT_REGION / 2)
		r = vault_map(v, sizeof(*r) + size);
	else if (!r || r->size - r->used < size)
		r = vault_turn(v);
	if (!r)
		return NULL;
	block = (char *)r + r->used;
	r->used += size;
	r->live++;
	return block;
}

static struct vault_region *vault_region(const void *block)
{
	uintptr_t at = (uintptr_t)block;

	return (struct vault_region *)(at & ~(uintptr_t)(VAULT_REGION - 1));
}

void vault_give(void *block)
{
	struct vault_region *r = vault_region(block);

	if (block && !--r->live)
		vault_empty(r);
}

size_t vault_bytes(const struct vault *v)
{
	return v->bytes;
}
