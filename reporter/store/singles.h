/* SPDX-License-Identifier: Apache-2.0 */
/*
 * singles: the long waits of a window of the archive, one by one, beside the sums of all
 * (reporter/waits.h). They need not be complete: SINGLES_MAX of them are 8 MiB. When a user has his
 * share his shortest wait that is kept becomes twice as long, as often as it takes, and what
 * is shorter is dropped and counted. The share is that of bpf/abi_wait.h: as many as are
 * free. So it is with the threads that they are of, or that ended them.
 *
 * No locks: used by the thread that owns the window.
 */
#ifndef REPORTER_STORE_SINGLES_H
#define REPORTER_STORE_SINGLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "bpf/abi_wait.h"

#define SINGLES_MAX ((8 << 20) / sizeof(struct single))
#define SINGLES_THREADS 65536
#define SINGLES_USERS 1024 /* those with the same hash share */
#define SINGLES_NONE UINT32_MAX

/* How a wait ended: enum abi_waker_kind and 1; or it did not. */
#define SINGLES_OPEN 0

struct single {
	uint64_t begin; /* CLOCK_BOOTTIME, ns */
	uint64_t length; /* ns; so far, of one that is SINGLES_OPEN */
	uint32_t thread; /* index */
	uint32_t waker; /* likewise, or NONE */
	uint32_t sample; /* id of its row of the window, or NONE */
	uint32_t what; /* ABI_WAIT_WHAT() */
	uint16_t user; /* index of its user's counts */
	uint8_t end;
	uint8_t pad[5];
};

struct singles_thread {
	struct hash_node node; /* by 'key' and 'tid' */
	struct abi_key key;
	uint32_t tid, index;
	uint32_t last; /* its last wait, or NONE */
	char name[ABI_COMM_LEN]; /* not terminated; "": not known */
};

struct singles_user {
	uint32_t waits, threads;
	uint32_t doubled; /* his shortest wait, so often */
};

struct singles {
	uint64_t min; /* ns, that all begin with; 0: no waits are kept */
	uint64_t dropped; /* waits of that length that are not here */
	struct single *items; /* in the order of addition */
	size_t n, cap;
	struct singles_thread **threads; /* by index; in the arena */
	size_t nthreads, cap_threads;
	struct hash by_thread;
	struct singles_user users[SINGLES_USERS];
	struct arena arena;
};

/* 0 or -ENOMEM; either way singles_fini() may be called, and also on zeros. */
int singles_init(struct singles *s, uint64_t min);
void singles_fini(struct singles *s);
/*
 * Adds a wait, in place of what is there of it if that was open, with the id of its row,
 * or NONE. 'name' is that of the waker's process, if it is known, else "". 0 or -ENOMEM,
 * also if it is dropped.
 */
int singles_add(struct singles *s, const struct abi_segment *of,
		uint32_t sample, uint32_t uid, const char *name);
/* The highest of the users' shortest waits, ns. */
uint64_t singles_top(const struct singles *s);
size_t singles_bytes(const struct singles *s);

#endif /* REPORTER_STORE_SINGLES_H */
