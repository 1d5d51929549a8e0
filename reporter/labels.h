/* SPDX-License-Identifier: Apache-2.0 */
/*
 * labels: the labels that samples have in a profile, and profiles that have only
 * some of them.
 */
#ifndef REPORTER_LABELS_H
#define REPORTER_LABELS_H

#include "reporter/window.h"

/*
 * X(key, string, number): of sample 's' and its image 'img'; a string's id, or a
 * number; both 0: the sample has no such label.
 */
#define LABELS(X)                                        \
	X(pid, 0, img->tgid)                             \
	X(tid, 0, s->tid)                                \
	X(comm, img->comm, 0)                            \
	X(thread, s->thread, 0)                          \
	X(exe, img->exe, 0)                              \
	X(cgroup, img->cgroup, 0)                        \
	X(container, img->container, 0)                  \
	X(pod, img->pod, 0)                              \
	X(unit, img->unit, 0)                            \
	X(service, img->service, 0)                      \
	X(entry, img->entry, 0)                          \
	X(entry_pid, 0, img->entry ? img->entry_pid : 0) \
	X(process, img->process, 0)                      \
	X(image, img->image, 0)                          \
	X(reason, s->reason, 0)                          \
	X(syscall, s->reason ? s->syscall : 0, 0)        \
	X(fd, s->reason ? s->fd : 0, 0)                  \
	X(trace_id, s->reason ? 0 : s->trace, 0)         \
	X(span_id, s->reason ? 0 : s->span, 0)

enum labels_key {
#define X(key, str, num) LABELS_##key,
	LABELS(X)
#undef X
	LABELS_N,
};

struct labels_value {
	uint32_t str, num;
};

/* The label's key. */
const char *labels_name(enum labels_key key);
/* All labels of a sample; {0, 0} those in 'without' (bits by labels_key). */
void labels_of(const struct window_sample *s, uint32_t without,
	       struct labels_value out[LABELS_N]);
/*
 * Adds the values of samples that differ only in labels in 'without' to the first
 * of them; the others have no value any more. Of a sealed window, to which nothing
 * can be added afterwards. 0 or -ENOMEM.
 */
int labels_merge(struct window *w, uint32_t without);

/*
 * Samples that the terms do not take have no value any more. Of a sealed window, as
 * above.
 */
void labels_filter(struct window *w, const struct reporter_query_terms *terms);

#endif /* REPORTER_LABELS_H */
