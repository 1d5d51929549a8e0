/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch_queue: which debug files are wanted, and whose turn it is. Time is in
 * milliseconds of any clock.
 */
#ifndef SYMBOLIZE_FETCH_QUEUE_H
#define SYMBOLIZE_FETCH_QUEUE_H

#include <sys/queue.h>

#include "base/base.h"

#define FETCH_ID_MIN 8 /* bytes of a build id; shorter ones are not unique */
#define FETCH_ID_MAX 20
#define FETCH_WANTERS_MAX 8 /* executables that one file is remembered for */
#define FETCH_ITEMS_MAX 8192
#define FETCH_USERS_MAX 256
#define FETCH_USER_BURST \
	512 /* requests of a user at once, and one more each: */
#define FETCH_USER_MS 10000
#define FETCH_NONE_MS 3600000 /* how long a missing file is remembered */
#define FETCH_HAVE_MS 600000 /* how soon one is downloaded again at most */
#define FETCH_ATTEMPTS 5

enum fetch_state {
	FETCH_UNKNOWN,
	FETCH_QUEUED,
	FETCH_BUSY,
	FETCH_HAVE,
	FETCH_NONE, /* no server has it */
	FETCH_FAILED, /* it was given up */
};

struct fetch_id {
	uint8_t len;
	uint8_t bytes[FETCH_ID_MAX];
};

struct fetch_user;

struct fetch_item {
	struct hash_node node;
	TAILQ_ENTRY(fetch_item) link; /* user->items, or queue->done */
	enum fetch_state state;
	unsigned int attempts, n_wanters;
	struct fetch_user *user; /* while it is QUEUED */
	uint32_t uid;
	uint64_t until; /* NONE, FAILED */
	struct fetch_id id;
	struct fetch_id wanters[FETCH_WANTERS_MAX];
};

struct fetch_queue {
	struct hash items;
	TAILQ_HEAD(fetch_users, fetch_user) users; /* the next one first */
	size_t n_users, pending;
	TAILQ_HEAD(fetch_items, fetch_item) done; /* the oldest first */
};

/* False: 'len' is not that of a build id to ask for. */
bool fetch_id_set(struct fetch_id *id, const uint8_t *bytes, size_t len);

/* 0 or -ENOMEM. */
int fetch_queue_init(struct fetch_queue *q);
void fetch_queue_fini(struct fetch_queue *q);

/*
 * Adds a file. 0; -EEXIST: it is known already, 'wanter' was noted; -EDQUOT: a limit
 * of the user or of all; -ENOMEM.
 */
int fetch_queue_want(struct fetch_queue *q, const struct fetch_id *id,
		     const struct fetch_id *wanter, uint32_t uid, uint64_t now);
/* The next file is BUSY from now on; NULL: none is queued. */
struct fetch_item *fetch_queue_next(struct fetch_queue *q);
/* A BUSY file is HAVE, NONE or FAILED now. */
void fetch_queue_done(struct fetch_queue *q, struct fetch_item *it,
		      enum fetch_state state, uint64_t now);
/* A BUSY file is queued again, behind those of its user; FAILED the last time. */
void fetch_queue_again(struct fetch_queue *q, struct fetch_item *it,
		       uint64_t now);
/* All that are queued are FAILED. */
void fetch_queue_give_up(struct fetch_queue *q, uint64_t now);

/* Or NULL. */
const struct fetch_item *fetch_queue_find(const struct fetch_queue *q,
					  const struct fetch_id *id);

#endif /* SYMBOLIZE_FETCH_QUEUE_H */
