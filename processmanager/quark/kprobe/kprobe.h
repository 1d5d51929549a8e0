/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kprobe's inside: what its six files know of each other.
 *
 *   kprobe_events.c  the probes themselves: made of BTF offsets, in tracefs
 *   kprobe_cpus.c    their perf rings, one a CPU; CPUs come and go
 *   kprobe_decode.c  what the kernel wrote there, taken apart
 *   kprobe.c         all rings in the order of time; the walk
 *   kprobe_record.c  what a probe read becomes a record of bpf/abi.h
 *   kprobe_path.c    paths from names of directory entries, mounts and cgroups
 */
#ifndef QUARK_KPROBE_H
#define QUARK_KPROBE_H

#include "base/perfring.h"
#include "processmanager/quark/priv.h"

/*
 * Directory entries that one probe can name; more pointers to follow do not
 * fit into an argument of a probe (63 characters before Linux 6.18).
 */
#define KPROBE_EXE_LEVELS 5
#define KPROBE_CWD_LEVELS 6
/*
 * Arguments are read in pieces of 64 words, the largest array there is, and the
 * environment; a record holds 3072 bytes.
 */
#define KPROBE_ARGS_PIECES 4
#define KPROBE_ARGS_PIECE 512
#define KPROBE_ARGS_MAX (KPROBE_ARGS_PIECES * KPROBE_ARGS_PIECE)

/* What a probe can read of a task, each member by itself. */
struct kprobe_values {
	uint64_t start, exec_id;
	uint32_t flags, pid, tgid;
	uint32_t p_tgid;
	uint64_t p_start, p_exec_id;
	uint64_t comm0, comm1;
	struct abi_quark_ids ids;
	/*
	 * Pointers that may be NULL: what lies behind them was then not fetched,
	 * and the kernel leaves in its place whatever was in the buffer.
	 */
	uint64_t tty, nsproxy, mm, exe_file, fs;
	uint32_t tty_index;
	uint32_t live;
	uint32_t sig_flags, group_exit_code, leader_exit_code, leader_pid;
	uint64_t sum_runtime, own_runtime, leader_runtime;
	uint64_t utime, stime, minflt, majflt, maxrss;
	int32_t exit_signal;
	uint32_t dev;
	uint64_t ino, ctime_sec, size;
	uint32_t ctime_nsec;
	uint32_t exe_mnt, cwd_mnt; /* mount ids */
	uint64_t cgroup; /* id in the unified hierarchy */
	uint64_t arg_start, arg_end;
	struct quark_span exe[KPROBE_EXE_LEVELS]; /* the file first */
	struct quark_span cwd[KPROBE_CWD_LEVELS];
	uint64_t env_start, env_end;
	char args[KPROBE_ARGS_PIECES][KPROBE_ARGS_PIECE];
	char env[1][KPROBE_ARGS_PIECE];
	/* Arguments of the function probed, and of the tracepoint. */
	uint64_t clone_flags;
	int32_t group_dead;
	uint32_t exec; /* of a renaming: comes with an exec */
	struct quark_span name; /* the new one */
	struct quark_span filename; /* as execve got it */
	int32_t tp_pid, tp_old_pid;
	uint32_t tp_cpu;
};

enum kprobe_id {
	KPROBE_FORK,
	KPROBE_TP_EXEC, /* the tracepoint: the caller's tid, the file's name */
	KPROBE_EXEC,
	KPROBE_EXIT,
	KPROBE_REAP,
	KPROBE_RENAME,
	KPROBE_UID,
	KPROBE_SID,
	KPROBE_CWD, /* somebody's directory has changed: he is asked */
	KPROBE_CGROUP, /* the tracepoint: likewise */
	KPROBE_HOTPLUG, /* the tracepoint: a CPU comes or goes */
	KPROBE_WALK, /* of the reader's own thread only */
	KPROBE_MAX,
};

/* --- what the kernel wrote (kprobe_decode.c) --------------------------------- */

/* A member of a probe's record, to its place in kprobe_values. */
struct kprobe_place {
	uint16_t offset; /* in the raw record */
	uint16_t dst;
	uint16_t size;
	uint16_t span; /* a __data_loc of 4 bytes, for a quark_span */
};

struct kprobe_event {
	uint32_t type; /* perf's config; the record's common_type; 0: none */
	size_t n;
	struct kprobe_place *places;
};

/* A record of a perf ring. */
struct kprobe_perf {
	bool sample; /* of a probe: 'raw' */
	bool lost; /* says that others were lost */
	uint32_t tgid, tid; /* of who ran */
	uint64_t time; /* CLOCK_MONOTONIC */
	const void *raw;
	size_t raw_len;
};

/* 0 or -EINVAL. What it points to is in 'buf'. */
int kprobe_perf(const void *buf, size_t len, struct kprobe_perf *out);
/* Which probe a raw record is of, its members to *v; or -1. */
int kprobe_decode(const struct kprobe_event ev[KPROBE_MAX], const void *raw,
		  size_t len, struct kprobe_values *v);
/* Where a field lies by tracefs' "format". 0, -ENOENT, or -EINVAL. */
int kprobe_format(const char *format, size_t len, const char *name,
		  uint16_t *offset, uint16_t *size);

/* --- the probes (kprobe_events.c) ------------------------------------------ */

struct kprobe_events {
	char *tracefs;
	char group[64]; /* the kernel's MAX_EVENT_NAME_LEN */
	bool env; /* the environment is read, too */
	struct kprobe_event ev[KPROBE_MAX];
	bool made; /* something of the group may be in tracefs */
	pid_t owner; /* who made it; a child of his does not remove it */
};

/* 0, or -errno with the reason set. */
int kprobe_events_new(struct kprobe_events *e, bool env,
		      struct quark_reader *reader);
/* With no perf event of theirs open any more. */
void kprobe_events_free(struct kprobe_events *e);
/* Why, for people, and what a setting of the kernel's has to do with it. */
void kprobe_error(int err, const char *what);
/* The filter that keeps threads out, or NULL. */
const char *kprobe_filter(enum kprobe_id id, bool threads);
/* QUARK_EV_ kind that is lost with it, or -1. */
int kprobe_kind(enum kprobe_id id);

/* --- rings (kprobe_cpus.c) ---------------------------------------------------- */

/*
 * The record at the tail; false: no more. Those that cannot be read are passed
 * over, and 'bad' is set.
 */
bool kprobe_ring_peek(struct perfring *r, struct kprobe_perf *out);

struct kprobe_cpu {
	int fd[KPROBE_MAX]; /* the first that is open owns the ring */
	uint64_t lost[KPROBE_MAX]; /* told of already */
	struct perfring ring;
	uint64_t next; /* time of the record at the tail; UINT64_MAX: none */
	uint64_t last; /* of the newest one taken out */
	uint64_t looked; /* at all that was there then */
	bool check; /* something may have been lost */
	bool gone; /* offline: nothing more comes, read it out */
	/* What the tracepoint said of the exec that the probe tells of next. */
	int32_t tp_pid, tp_old_pid;
	char filename[ABI_QUARK_PATH_MAX];
};

struct kprobe_cpus {
	const struct kprobe_events *events;
	const struct quark_backend_conf *conf;
	struct kprobe_cpu **cpu; /* by number, NULL: no ring */
	uint64_t *blind; /* by number: seen from then on by no ring of its own */
	bool *told; /* by number: it came, or went, or both */
	int n;
	int epfd;
	size_t ring_size;
	char *scratch; /* of all rings */
	struct quark_loss_report lost;
};

/* A ring for each CPU that is online. 0, or -errno with the reason set. */
int kprobe_cpus_open(struct kprobe_cpus *c, const struct kprobe_events *events,
		     const struct quark_backend_conf *conf);
void kprobe_cpus_close(struct kprobe_cpus *c);
/*
 * Opens rings of CPUs that came, and marks those that went as gone; 'now' is
 * the time before.
 */
void kprobe_cpus_follow(struct kprobe_cpus *c, uint64_t now);
/*
 * After a drain: counts what was lost, closes the rings of those gone. Whether a
 * CPU is to be looked at again.
 */
bool kprobe_cpus_settle(struct kprobe_cpus *c);
/* A perf event of one probe. The descriptor, or -errno with the reason set. */
int kprobe_event_open(const struct kprobe_events *e, enum kprobe_id id,
		      const struct quark_backend_conf *conf, pid_t pid, int cpu,
		      size_t ring);

/* --- paths (kprobe_path.c) -------------------------------------------------- */

struct kprobe_paths;

/* NULL with errno. */
struct kprobe_paths *kprobe_paths_new(void);
void kprobe_paths_free(struct kprobe_paths *p);
/*
 * The path of a file in our own mount namespace by its mount and the names up
 * to the file system's root; appended to 'out'. False if they are not enough.
 */
bool kprobe_path(struct kprobe_paths *p, uint32_t mnt,
		 const struct quark_span *names, size_t n, struct strbuf *out);
/*
 * The path of a cgroup of the unified hierarchy, borrowed; NULL: unknown, or
 * another hierarchy may be the one that counts, see procfs_cgroup().
 */
const char *kprobe_cgroup(struct kprobe_paths *p, uint64_t id);

/* --- records (kprobe_record.c) ---------------------------------------------- */

/* What a record needs beside what was read by the probe. */
struct kprobe_record {
	struct kprobe_paths *paths;
	struct quark_reader *reader;
	struct strbuf root; /* of the process, if it was read for this record */
	bool rooted;
	uint32_t max_env;
	struct strbuf out, proc;
	char filename[ABI_QUARK_PATH_MAX];
	/* Reads the values of a process that lives; false: gone. */
	bool (*ask)(void *arg, uint32_t pid, struct kprobe_values *v);
	void *arg;
};

struct kprobe_sample {
	uint64_t time; /* CLOCK_BOOTTIME */
	uint32_t cpu;
	uint32_t tgid, tid; /* of who ran */
	uint32_t exec_tid; /* EXEC: who called it */
};

/* Hands the record to fn, whose answer it gives. */
int kprobe_record(struct kprobe_record *r, enum kprobe_id id,
		  const struct kprobe_sample *s, const struct kprobe_values *v,
		  ring_fn fn, void *arg);

#endif /* QUARK_KPROBE_H */
