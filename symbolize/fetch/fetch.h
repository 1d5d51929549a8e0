/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch: debug files from debuginfod servers, see debuginfod(8) of elfutils, "WEBAPI".
 * They are written to a directory in the layout of /usr/lib/debug, which all else
 * treats as one more directory of debug files. Any user chooses which files are
 * wanted, and a server may send anything:
 *  - a process of its own, without privilege, talks to the servers and writes to a
 *    file that it is given. A file with another build id is dropped;
 *  - there is one download at a time, with limits of time, speed and size. Users
 *    take turns, each has a budget of requests, and a file that no server has is
 *    not asked for again for an hour;
 *  - the directory has a budget of bytes; what was downloaded first goes first.
 * While no server can be reached, the downloads pause.
 */
#ifndef SYMBOLIZE_FETCH_H
#define SYMBOLIZE_FETCH_H

#include "symbolize/fetch/fetch_queue.h"
#include "symbolize/file.h"
#include "symbolize/reader/worker_msg.h"

#define FETCH_SOCKET 0
#define FETCH_URLS_MAX 4096 /* bytes of all, each with a NUL */
#define FETCH_FILE_MAX (1ULL << 30) /* bytes of a file */
#define FETCH_TIMEOUT_S 300 /* for one, from one server */

enum fetch_type {
	FETCH_HELLO = 96, /* apart from the types of worker and opener */
	FETCH_GET, /* with a file to write to */
	FETCH_DONE,
};

/* The URLs follow. */
struct fetch_question {
	struct worker_head head;
	uint64_t max; /* bytes of the file */
	uint32_t urls_len;
	uint32_t id_len;
	uint8_t id[FETCH_ID_MAX];
	uint32_t pad;
};

struct fetch_answer {
	struct worker_head head;
	/*
	 * 0; -ENOENT: no server has it; -EBADMSG: it is another file; -EFBIG;
	 * -ETIMEDOUT; -ECONNREFUSED: a server was not reached; -EKEYREJECTED: its
	 * certificate is not trusted; -ELOOP: it redirects too often, or to where
	 * it must not; or another -errno.
	 */
	int32_t err;
	uint32_t pad;
};

/* What main() does when argv[1] is SYMBOLIZER_FETCH. Does not return. */
int fetch_main(void);

/* --- profd's side, on the loop ----------------------------------------------- */

struct fetch;

struct fetch_opts {
	uv_loop_t *loop;
	const char *program;
	const char *const *urls; /* NULL-terminated; only read */
	const char *dir; /* outlives the fetch; created if it is missing */
	uint64_t bytes; /* of the directory */
	/*
	 * Commands wait for the answer: when a server is not reached, all that is
	 * wanted ends at once, instead of later attempts.
	 */
	bool once;
	struct symbolizer_stats *stats;
	/* A file arrived; 'id' is that of an executable which wants it. */
	void (*arrived)(void *arg, const uint8_t *id, size_t len);
	/* The first failure after a success, as in struct fetch_answer. */
	void (*failed)(void *arg, int err);
	void *arg;
	void (*closed)(void *arg); /* fetch_free() is done, on the loop */
	void *closed_arg;
};

/* 0; -E2BIG: the URLs are too long; or an error of the directory. */
int fetch_new(struct fetch **fp, const struct fetch_opts *opts);
void fetch_free(struct fetch *f); /* may be NULL */
/*
 * A debug file of build id 'id' was not found, which 'file' (NULL: the user of
 * profd) wants. If it is not asked for, a counter says so.
 */
void fetch_want(struct fetch *f, const uint8_t *id, size_t len,
		const struct symbolizer_file *file);
/* What is known about it; FETCH_UNKNOWN if nothing is. */
enum fetch_state fetch_state(const struct fetch *f, const uint8_t *id,
			     size_t len);
/* The number of files that are queued or being downloaded. */
size_t fetch_pending(const struct fetch *f);

#endif /* SYMBOLIZE_FETCH_H */
