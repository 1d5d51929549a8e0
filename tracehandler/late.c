// SPDX-License-Identifier: Apache-2.0
/* late: see tracehandler/late.h. */
#include <errno.h>
#include <stdlib.h>

#include "tracehandler/late.h"

/* The frames of one address space. */
struct late_memory {
	struct hash_node node; /* by 'exe' */
	struct pm_exe *exe; /* held by its frames */
	struct trace_frame **frames; /* a reference each */
	size_t n, cap;
};

int trace_late_init(struct trace_late *l)
{
	return hash_init(&l->memories, 0);
}

static struct late_memory *late_memory_of(struct trace_late *l,
					  struct pm_exe *exe)
{
	uint64_t hash = hash_u64((uintptr_t)exe);
	struct late_memory *m;

	HASH_FIND(m, &l->memories, hash, node, m->exe == exe);
	if (m)
		return m;
	m = calloc(1, sizeof(*m));
	if (!m)
		return NULL;
	m->exe = exe;
	hash_insert(&l->memories, &m->node, hash);
	return m;
}

void trace_late_add(struct trace_late *l, struct trace_frame *f)
{
	struct pm_exe_info info;
	struct late_memory *m;

	if (!l->pm || l->n >= TRACE_LATE_FRAMES ||
	    !reporter_place_exe(&f->place))
		return;
	pm_exe_info(f->place.exe, &info);
	if (info.kind != PM_EXE_ANON)
		return;
	m = late_memory_of(l, f->place.exe);
	if (!m || VECTOR_ROOM(m->frames, m->n, m->cap))
		return;
	m->frames[m->n++] = f;
	f->refs++;
	l->n++;
}

static void late_answer(void *arg, int err, void *const *tags,
			const struct symbolizer_symbol *syms, size_t n)
{
	struct trace_late *l = arg;
	struct reporter_frame out;
	struct trace_frame *f;

	l->pending -= n;
	for (size_t i = 0; i < n; i++) {
		f = tags[i];
		if (!err && syms[i].nfunctions && !f->nlines) {
			trace_frame_known(l->cache, f, &syms[i]);
			out = (struct reporter_frame){ f->place, f->vaddr,
						       f->lines, f->nlines };
			out.place.version = 0;
			if (f->nlines)
				l->named(l->arg, &out);
		}
		trace_frame_put(l->cache, f);
	}
	/* Stacks that were kept have the names of before. */
	trace_cache_changed(l->cache);
}

/* Frees it; its frames go with their requests. */
static void late_memory_ask(struct trace_late *l, struct late_memory *m)
{
	struct trace_frame *f;

	pm_exe_code_again(m->exe);
	for (size_t i = 0; i < m->n; i++) {
		f = m->frames[i];
		if (pm_exe_name_at(m->exe, f->place.id, UINT64_MAX, f,
				   late_answer, l))
			trace_frame_put(l->cache, f);
		else
			l->pending++;
	}
	l->n -= m->n;
	hash_remove(&l->memories, &m->node);
	free(m->frames);
	free(m);
}

void trace_late_ask(struct trace_late *l, struct pm_exe *memory)
{
	struct hash_node *node, *next;
	struct late_memory *m;
	size_t i;

	if (!l->n)
		return;
	hash_for_each(&l->memories, i, node, next) {
		m = container_of(node, struct late_memory, node);
		if (!memory || m->exe == memory)
			late_memory_ask(l, m);
	}
	pm_names_send(l->pm);
}

static void late_memory_free(struct trace_late *l, struct late_memory *m)
{
	for (size_t i = 0; i < m->n; i++)
		trace_frame_put(l->cache, m->frames[i]);
	hash_remove(&l->memories, &m->node);
	free(m->frames);
	free(m);
}

void trace_late_fini(struct trace_late *l)
{
	struct hash_node *node, *next;
	size_t i;

	if (l->pm)
		pm_names_cancel(l->pm, late_answer, l);
	if (!l->memories.buckets)
		return;
	hash_for_each(&l->memories, i, node, next)
		late_memory_free(l,
				 container_of(node, struct late_memory, node));
	hash_fini(&l->memories);
}
