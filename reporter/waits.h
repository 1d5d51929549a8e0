/* SPDX-License-Identifier: Apache-2.0 */
/*
 * waits: the profile of waits beside a window of the archive, with --wait: the sums of
 * the events that are 'apart', of the same time.
 *
 * Any user can fork without end, and each image has samples of its own, so their number
 * has a limit, shared by users as bpf/abi_wait.h shares sums: alone a user has half of
 * them, of n greedy ones each 1/(n + 1). What exceeds it is added to samples without
 * labels of an image, which are few. So no time is missing.
 *
 * Long ones are also there one by one (store/singles.h).
 *
 * As of a window: the loop's thread until it is sealed, then any one thread.
 */
#ifndef REPORTER_WAITS_H
#define REPORTER_WAITS_H

#include "reporter/store/singles.h"
#include "reporter/window.h"

#define WAITS_ROWS 65536
#define WAITS_USERS 1024 /* those with the same hash share a count */

struct waits {
	struct window tables;
	uint32_t rows[WAITS_USERS];
	uint64_t folded; /* sums without an image */
	uint64_t nomem; /* sums that are missing */
	bool folding;
	struct singles singles; /* with waits_keep_singles() */
	uint64_t lost; /* long waits that were lost on their way here */
	struct strbuf comments; /* as of a window */
};

/* 'opts' without the member 'room'. NULL: out of memory. */
struct waits *waits_new(const struct window_opts *opts);
void waits_free(struct waits *w); /* NULL is allowed */
/* 0 or -ENOMEM. */
int waits_add(struct waits *w, const struct reporter_trace *t,
	      const struct pm_image_info *info);
/* Waits of 'min' ns and longer are kept one by one, too. 0 or -ENOMEM. */
int waits_keep_singles(struct waits *w, uint64_t min);
/*
 * Adds a wait by itself; 't' is as of its sum, and 'name' as of singles_add(). 0 or
 * -ENOMEM.
 */
int waits_add_single(struct waits *w, const struct reporter_trace *t,
		     const struct pm_image_info *info,
		     const struct abi_segment *of, const char *name);
/* Whether it has anything to be written; 'w' may be NULL. */
bool waits_any(const struct waits *w);
/* Ends the adding; 'head' are its first comments. 0 or -ENOMEM. */
int waits_seal(struct waits *w, const char *head, size_t len);

#endif /* REPORTER_WAITS_H */
