/* SPDX-License-Identifier: Apache-2.0 */
/*
 * opener: processes that open files for profd and pass the descriptors back. A
 * path can lead to a file system that never answers (a dead NFS server, a FUSE
 * daemon that is stopped): who waits there may be beyond SIGKILL, and a thread
 * in that state keeps its whole process from ending. A process can be
 * abandoned.
 *
 * The first one is started at once and kept. Each works at one request at a
 * time; while all of them take longer than OPENER_SLOW_MS, another is started.
 * One that exceeds the deadline is hung: its request ends with -ETIMEDOUT and
 * nobody waits for it; if it answers after all, it is used again. So many may be
 * hung before requests for the same mount, user or process end with -EBUSY:
 */
#ifndef SYMBOLIZE_OPENER_H
#define SYMBOLIZE_OPENER_H

#include "symbolize/file.h"
#include "symbolize/reader/worker_msg.h"

#define OPENER_SLOW_MS 20
#define OPENER_HUNG_MOUNT 2
#define OPENER_HUNG_UID 4
#define OPENER_HUNG_PID 2 /* at the process itself, before a mount is known */
#define OPENER_HUNG_ALL 16 /* then: of any mount or user that has one */
#define OPENER_PROCS (OPENER_HUNG_ALL + 8) /* no more processes than these */
#define OPENER_TEXT_MAX 16384 /* the strings of a question */

enum opener_type {
	OPENER_HELLO = 64, /* apart from enum worker_type */
	OPENER_FILE,
	OPENER_DEBUG,
};

/*
 * FILE: one way to the file of a struct symbolizer_open_req; its path follows.
 * DEBUG: as symbolizer_open_debug(), from place 'nth' on; path of the file
 * beside it, name (either may be empty), and the directories follow. Strings
 * end with NUL.
 */
struct opener_question {
	struct worker_head head;
	uint32_t way;
	int32_t pid;
	uint64_t dev, ino, generation;
	uint64_t map_start, map_end;
	uint32_t nth;
	uint32_t id_len;
	uint8_t id[SYMBOLIZER_DEBUG_ID_MAX];
};

/* With the descriptor, unless there is an error. */
struct opener_answer {
	struct worker_head head;
	int32_t err;
	uint32_t nth; /* of DEBUG: which place it was */
	struct symbolizer_stat st;
};

/*
 * Where an opener is: the device of the last mount it entered. In a page that it
 * shares with profd, since it cannot say so any more when that mount hangs.
 */
struct opener_place {
	uint64_t dev; /* 0: none yet */
};

/* First message of an opener; with a memfd that holds a struct opener_place. */
struct opener_hello {
	struct worker_head head;
};

/* What main() does when argv[1] is SYMBOLIZER_OPENER. An exit status. */
int opener_main(void);

/* --- profd's side ------------------------------------------------------------ */

struct opener;

struct opener_job {
	TAILQ_ENTRY(opener_job) link;
	struct opener_proc *proc; /* works at it; NULL: waiting */
	/* Whom it concerns: device of the mapping, 0: unknown, and its user. */
	uint64_t dev;
	uint32_t uid;
	int32_t pid; /* whose mounts name the device */
	bool first; /* before others that wait */
	struct opener_question *q; /* complete, with its strings; owned */
	/*
	 * err 0: 'fd' is the callee's. Called on the loop, not from inside
	 * opener_submit(). It may free the job.
	 */
	void (*done)(struct opener_job *j, int err,
		     const struct opener_answer *a, int fd);
};

struct opener_opts {
	uv_loop_t *loop;
	const char *program;
	unsigned int deadline_ms; /* of one request, once it is worked at */
	struct symbolizer_stats *stats;
	void (*closed)(void *arg); /* opener_free() is done, later on the loop */
	void *arg;
};

/* 0 or -errno; that no process can be started is no error here. */
int opener_new(struct opener **op, const struct opener_opts *opts);
/* Jobs still there end with -ECANCELED before it returns. Waits for nobody. */
void opener_free(struct opener *o);

void opener_submit(struct opener *o, struct opener_job *j);
/* Before others that wait, as with 'first'; nothing if it does not wait. */
void opener_hurry(struct opener *o, struct opener_job *j);
/* The job will not be done. */
void opener_cancel(struct opener *o, struct opener_job *j);

/*
 * The question for an opener_job, malloc'd: 'n' strings, of which NULL counts as
 * empty. NULL without memory, or if they are too long.
 */
struct opener_question *opener_question(enum opener_type type,
					const char *const *text, size_t n);

/*
 * The i-th mount that does not answer, and how many openers hang there; NULL:
 * no more. Valid until the loop turns.
 */
const char *opener_hung(const struct opener *o, size_t i, unsigned int *n);

/* --- opener_inode.c ---------------------------------------------------------- */

/*
 * Whether the kernel reports device, inode and generation of 'req' for a mapping
 * of the file 'fd', which it is asked by mapping it here: in a perf record, or
 * where 'req' has no generation, in /proc.
 */
bool opener_inode_is(int fd, const struct symbolizer_open_req *req);

/* --- opener_mount.c ---------------------------------------------------------- */

/*
 * The mount point of a device in the text of a mountinfo file, unescaped, into
 * 'out'; the last mounted one. False: it has none.
 */
bool opener_mount_find(const char *text, size_t len, uint64_t dev, char *out,
		       size_t cap);
/* In the mounts of 'pid' (0: ours), or else in ours. */
bool opener_mount_of(uint64_t dev, int32_t pid, char *out, size_t cap);
/* Whether the mount with the id 'mount' there (statx(2)) is of the device. */
bool opener_mount_is(uint64_t mount, uint64_t dev, int32_t pid);
/* The same, in the text of a mountinfo file. */
bool opener_mount_has(const char *text, size_t len, uint64_t mount,
		      uint64_t dev);

struct opener_overlay {
	uint64_t mount; /* its id, as statx(2) says it; only now: it is reused */
	uint64_t dev; /* of the file system */
};

/* The overlays in the text of a mountinfo file, up to 'cap'; how many. */
size_t opener_mount_overlays(const char *text, size_t len,
			     struct opener_overlay *out, size_t cap);

/* --- opener_overlay.c -------------------------------------------------------- */

/*
 * Whether the overlay with this mount id and device (of a descriptor that the
 * caller holds; device 0: not known) was mounted by somebody with privileges over
 * our own user namespace. 'pid' is of a process that may see the mount, or 0.
 */
bool opener_overlay_trusted(uint64_t mount, uint64_t dev, int32_t pid);
/*
 * Whether the mount namespace of 'pid' belongs to our own user namespace, so that
 * no user without privileges has mounted anything there.
 */
bool opener_mounts_trusted(int32_t pid);

#endif /* SYMBOLIZE_OPENER_H */
