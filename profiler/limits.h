/* SPDX-License-Identifier: Apache-2.0 */
/*
 * limits: how often each user reached which bound. All that local users can
 * repeat is bounded; each time a bound takes effect it is counted here, for
 * /status. The table is bounded, too: when it is full, the user with the lowest
 * count is merged into one entry for all others.
 */
#ifndef PROFILER_LIMITS_H
#define PROFILER_LIMITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "reporter/reporter.h"

/* X(NAME, name, "what was limited") */
#define LIMITS(X)                                                   \
	X(CONNECTIONS, connections, "connections over HTTP")        \
	X(PROCESSES, processes, "processes in the catalog")         \
	X(ARGUMENTS, arguments, "arguments remembered")             \
	X(MAPPINGS, mappings, "mapping records")                    \
	X(MAPPINGS_ALL, mappings_all,                               \
	  "mapping records, because all users made too many")       \
	X(REREADS, rereads, "time to re-read mappings")             \
	X(RENAMES, renames, "changes of a process's name")          \
	X(FILES, files, "new executables opened")                   \
	X(FILES_ALL, files_all,                                     \
	  "new executables opened, because all users had too many") \
	X(OPENS, opens, "openings that hang")                       \
	X(STACKS, stacks, "copies of deep stacks")                  \
	X(SYMBOLS, symbols, "time to demangle names")               \
	X(NAMES, names, "CPU time to read names")

enum limit {
#define X(NAME, name, words) LIMIT_##NAME,
	LIMITS(X)
#undef X
	LIMIT_MAX,
};

#define LIMITS_USERS 64

struct limits {
	size_t n;
	struct limits_user {
		bool others; /* the last entry, in use */
		uint32_t uid;
		uint64_t counts[LIMIT_MAX];
	} users[LIMITS_USERS + 1];
};

void limits_note(struct limits *l, uint32_t uid, enum limit what, uint64_t n);
/* For /metrics, by bound; for /status, by user too. */
void limits_collect(const struct limits *l, struct reporter_metrics *m);
/*
 * For /status: a bound for which the kernel side does not report users. 'what'
 * is its name in JSON, 'words' as above; nothing if 'n' is 0.
 */
void limits_collect_unnamed(struct reporter_metrics *m, const char *what,
			    const char *words, uint64_t n);

#endif /* PROFILER_LIMITS_H */
