/* SPDX-License-Identifier: Apache-2.0 */
/*
 * opener: processes that open files for profd and pass the descriptors back. A
 * path can lead to a file system that never answers (a dead NFS server, a
 * stopped FUSE daemon). A thread that waits for it may ignore even SIGKILL, and
 * then its whole process cannot end; a child process can be abandoned.
 *
 * The first opener is started at once and kept. Each works on one request at a
 * time; while all of them are busy for more than OPENER_SLOW_MS, another is
 * started. An opener that exceeds the deadline is hung: its request ends with
 * -ETIMEDOUT. If it answers after all, it is used again. Requests for a mount,
 * user or process end with -EBUSY while this many openers hang on it:
 */
#ifndef SYMBOLIZE_OPENER_H
#define SYMBOLIZE_OPENER_H

#include "symbolize/file.h"
#include "symbolize/reader/worker_msg.h"

#define OPENER_SLOW_MS 20
#define OPENER_HUNG_MOUNT 2
#define OPENER_HUNG_UID 4
#define OPENER_HUNG_PID 2 /* on the process itself, before a mount is known */
#define OPENER_HUNG_ALL 16 /* then: on any mount or user with a hung opener */
#define OPENER_PROCS (OPENER_HUNG_ALL + 8) /* at most */
#define OPENER_TEXT_MAX 16384 /* the strings of a question */

enum opener_type {
	/*
	 * First message of an opener, a bare head. Its memfd holds a uint64_t:
	 * the device of the last mount that the opener entered, 0: none yet. It
	 * is shared memory because an opener that hangs there can no longer
	 * send a message.
	 */
	OPENER_HELLO = 64, /* apart from enum worker_type */
	OPENER_FILE,
	OPENER_DEBUG,
};

/*
 * FILE: one way to the file of a struct symbolizer_open_req; its path follows. The
 * descriptor of its root comes with it, if there is one.
 * DEBUG: as symbolizer_open_debug(), with 'own', from place 'nth' on; the path of the
 * executable, the name of the debug file (either may be empty), and the
 * directories follow. Strings end with NUL.
 */
struct opener_question {
	struct worker_head head;
	uint32_t way;
	int32_t pid;
	uint64_t dev, ino, generation;
	uint64_t map_start, map_end;
	uint64_t process_start;
	uint32_t root_pid, root_uid; /* as in struct symbolizer_map_root */
	struct symbolizer_own own;
	uint32_t nth;
	uint32_t id_len;
	uint8_t id[SYMBOLIZER_DEBUG_ID_MAX];
};

/* With the descriptor, unless there is an error. */
struct opener_answer {
	struct worker_head head;
	int32_t err;
	uint32_t nth; /* DEBUG: the place where the file was */
	struct symbolizer_stat st;
};

/* What main() does when argv[1] is SYMBOLIZER_OPENER. An exit status. */
int opener_main(void);

/* --- profd's side, on the loop -------------------------------------------- */

struct opener;

struct opener_job {
	TAILQ_ENTRY(opener_job) link;
	struct opener_proc *proc; /* works on it; NULL: queued */
	/* For the limits: device of the mapping (0: unknown), and its user. */
	uint64_t dev;
	uint32_t uid;
	int32_t pid; /* the device is looked up in its mounts */
	bool first; /* goes before other queued jobs */
	struct opener_question *q; /* complete, with its strings; owned */
	int fd; /* that goes with it; owned; -1: none */
	/*
	 * err 0: the callee owns 'fd'. Called on the loop, not from inside
	 * opener_submit(). It may free the job.
	 */
	void (*done)(struct opener_job *j, int err,
		     const struct opener_answer *a, int fd);
};

struct opener_opts {
	uv_loop_t *loop;
	const char *program;
	unsigned int deadline_ms; /* of one request, while an opener has it */
	struct symbolizer_stats *stats;
	void (*closed)(void *arg); /* opener_free() is done, on the loop */
	void *arg;
};

/* 0 or -errno. Success even if no process can be started. */
int opener_new(struct opener **op, const struct opener_opts *opts);
/* Remaining jobs end with -ECANCELED before it returns. Does not block. */
void opener_free(struct opener *o);

void opener_submit(struct opener *o, struct opener_job *j);
/* Moves a queued job forward, as with 'first'; others stay as they are. */
void opener_hurry(struct opener *o, struct opener_job *j);
/* done() will not be called. */
void opener_cancel(struct opener *o, struct opener_job *j);

/*
 * The question of an opener_job, malloc'd, with 'n' strings; NULL counts as an
 * empty one. NULL without memory, or if the strings are too long.
 */
struct opener_question *opener_question(enum opener_type type,
					const char *const *text, size_t n);

/*
 * The i-th mount that does not answer, and how many openers hang there; NULL:
 * no more. Valid until the loop turns.
 */
const char *opener_hung(const struct opener *o, size_t i, unsigned int *n);

/* --- opener_inode.c ------------------------------------------------------- */

/*
 * Whether the kernel reports device, inode and generation of 'req' for a
 * mapping of the file 'fd'. To find out, this maps the file and reads the perf
 * record of that, or, where 'req' has no generation, /proc.
 */
bool opener_inode_is(int fd, const struct symbolizer_open_req *req);

/* --- opener_mount.c ------------------------------------------------------- */

/* A line of a mountinfo file. Numbers that cannot be parsed are 0. */
struct opener_mount {
	uint64_t id; /* as in statx(2); reused after an unmount */
	uint64_t dev; /* of the file system */
	bool overlay;
	const char *point; /* escaped, in the text */
	size_t point_len;
};

/* Parses the next line of [*text, end). False: there is none. */
bool opener_mount_next(const char **text, const char *end,
		       struct opener_mount *m);
/*
 * The mount point of a device in the text of a mountinfo file, unescaped, into
 * 'out'; of several, the last mounted one. False: there is none.
 */
bool opener_mount_find(const char *text, size_t len, uint64_t dev, char *out,
		       size_t cap);
/* In the mounts of 'pid' (0: profd's), or else in profd's. */
bool opener_mount_of(uint64_t dev, int32_t pid, char *out, size_t cap);
/* Whether the mount with the id 'mount' there is of the device. */
bool opener_mount_is(uint64_t mount, uint64_t dev, int32_t pid);
/* At most about 'max' bytes of a file, malloc'd; NULL without memory. */
char *opener_mount_text(int fd, size_t max, size_t *len);

/* --- opener_overlay.c ----------------------------------------------------- */

/*
 * Whether the overlay with this mount id and device (of a descriptor that the
 * caller holds; device 0: unknown) was mounted by a process with privileges
 * over our own user namespace. 'pid' is a process that may see the mount, or 0.
 */
bool opener_overlay_trusted(uint64_t mount, uint64_t dev, int32_t pid);
/*
 * Whether the mount namespace of 'pid' belongs to our own user namespace, so
 * that only a privileged process can have mounted anything there.
 */
bool opener_mounts_trusted(int32_t pid);

#endif /* SYMBOLIZE_OPENER_H */
