/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The internal interfaces of the kprobe backend:
 *
 *   kprobe_events.c  the probes: made from BTF offsets, in tracefs
 *   kprobe_cpus.c    their perf rings, one per CPU; CPU hotplug
 *   kprobe_decode.c  parses what the kernel wrote there
 *   kprobe.c         reads all rings in order of time; the scan
 *   kprobe_record.c  makes a record of bpf/abi.h from a probe's values
 *   kprobe_path.c    paths from names of directory entries, mounts and cgroups
 */
#ifndef QUARK_KPROBE_H
#define QUARK_KPROBE_H

#include "base/perfring.h"
#include "processmanager/quark/priv.h"

/*
 * Directory entries that one probe can read; longer chains of pointers do not fit
 * into an argument of a probe (63 characters before Linux 6.18).
 */
#define KPROBE_EXE_LEVELS 5
#define KPROBE_CWD_LEVELS 6
/*
 * Arguments and environment are read in pieces of 64 words, the largest array that
 * the kernel allows; a record holds 3072 bytes.
 */
#define KPROBE_ARGS_PIECES 4
#define KPROBE_ARGS_PIECE 512
#define KPROBE_ARGS_MAX (KPROBE_ARGS_PIECES * KPROBE_ARGS_PIECE)

/* The values of a task that probes read; each probe sets some. */
struct kprobe_values {
	uint64_t start, exec_id;
	uint32_t flags, pid, tgid;
	uint32_t p_tgid;
	uint64_t p_start, p_exec_id;
	uint64_t comm0, comm1;
	struct abi_quark_ids ids;
	/*
	 * Pointers that may be NULL: values behind them are not fetched then, and
	 * have whatever was in the kernel's buffer.
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
	uint32_t exec; /* of a rename: it is part of an exec */
	struct quark_span name; /* the new one */
	struct quark_span filename; /* execve's argument */
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
	KPROBE_CWD, /* without values: the process is read by KPROBE_SCAN */
	KPROBE_CGROUP, /* the tracepoint: likewise */
	KPROBE_HOTPLUG, /* the tracepoint: a CPU went online or offline */
	KPROBE_SCAN, /* fires in the reader's thread only */
	KPROBE_MAX,
};

/* --- parsing (kprobe_decode.c) ------------------------------------------------ */

/* Where a member of a probe's record is, and where it goes in kprobe_values. */
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
	bool lost; /* reports that records were lost */
	uint32_t tgid, tid; /* of the thread that ran */
	uint64_t time; /* CLOCK_MONOTONIC */
	const void *raw;
	size_t raw_len;
};

/* 0 or -EINVAL. *out points into 'buf'. */
int kprobe_perf(const void *buf, size_t len, struct kprobe_perf *out);
/* The kprobe_id of a raw record, whose members are stored in *v; or -1. */
int kprobe_decode(const struct kprobe_event ev[KPROBE_MAX], const void *raw,
		  size_t len, struct kprobe_values *v);
/* The place of a field, from tracefs' "format". 0, -ENOENT, or -EINVAL. */
int kprobe_format(const char *format, size_t len, const char *name,
		  uint16_t *offset, uint16_t *size);

/* --- the probes (kprobe_events.c) ------------------------------------------ */

struct kprobe_events {
	char *tracefs;
	char group[64]; /* the kernel's MAX_EVENT_NAME_LEN */
	bool env; /* reads the environment too */
	struct kprobe_event ev[KPROBE_MAX];
	bool made; /* some of the group may be in tracefs */
	pid_t owner; /* the process that made it; a child does not remove it */
};

/* 0, or -errno with the reason set. */
int kprobe_events_new(struct kprobe_events *e, bool env,
		      struct quark_reader *reader);
/* After all their perf events are closed. */
void kprobe_events_free(struct kprobe_events *e);
/* Sets the reason, with the kernel's setting that may be its cause. */
void kprobe_error(int err, const char *what);
/* The perf event's filter, which excludes threads; or NULL. */
const char *kprobe_filter(enum kprobe_id id, bool threads);
/* The kind (ABI_QUARK_) of its records, for losses; or -1. */
int kprobe_kind(enum kprobe_id id);

/* --- rings (kprobe_cpus.c) ---------------------------------------------------- */

/* The record at the tail; false: no more. Skips invalid ones, and sets 'bad'. */
bool kprobe_ring_peek(struct perfring *r, struct kprobe_perf *out);

struct kprobe_cpu {
	int fd[KPROBE_MAX]; /* the first that is open owns the ring */
	uint64_t lost[KPROBE_MAX]; /* reported already */
	struct perfring ring;
	uint64_t next; /* time of the record at the tail; UINT64_MAX: none */
	uint64_t last; /* time of the newest record taken out */
	uint64_t looked; /* begin of the last complete drain */
	bool check; /* records may have been lost */
	bool gone; /* offline: close it when it is empty */
	/* Of the tracepoint that precedes an exec's probe. */
	int32_t tp_pid, tp_old_pid;
	char filename[ABI_QUARK_PATH_MAX];
};

struct kprobe_cpus {
	const struct kprobe_events *events;
	const struct quark_backend_conf *conf;
	struct kprobe_cpu **cpu; /* by number, NULL: no ring */
	uint64_t *blind; /* by number: since when it has no ring */
	bool *told; /* by number: it went online, offline, or both */
	int n;
	int epfd;
	size_t ring_size;
	char *scratch; /* for all rings */
	struct quark_loss_report lost;
};

/* A ring for each CPU that is online. 0, or -errno with the reason set. */
int kprobe_cpus_open(struct kprobe_cpus *c, const struct kprobe_events *events,
		     const struct quark_backend_conf *conf);
void kprobe_cpus_close(struct kprobe_cpus *c);
/*
 * Opens rings of CPUs that went online, and marks those that went offline as gone;
 * 'now': read before.
 */
void kprobe_cpus_follow(struct kprobe_cpus *c, uint64_t now);
/*
 * After a drain: counts losses, closes empty rings of gone CPUs. True: call
 * kprobe_cpus_follow() again.
 */
bool kprobe_cpus_settle(struct kprobe_cpus *c);
/* Opens a perf event of one probe. The descriptor, or -errno. */
int kprobe_event_open(const struct kprobe_events *e, enum kprobe_id id,
		      const struct quark_backend_conf *conf, pid_t pid, int cpu,
		      size_t ring);

/* --- paths (kprobe_path.c) -------------------------------------------------- */

struct kprobe_paths;

/* NULL with errno. */
struct kprobe_paths *kprobe_paths_new(void);
void kprobe_paths_free(struct kprobe_paths *p);
/*
 * Appends the path of a file in our mount namespace to 'out', from its mount and
 * the names up to the file system's root. False if they are not sufficient.
 */
bool kprobe_path(struct kprobe_paths *p, uint32_t mnt,
		 const struct quark_span *names, size_t n, struct strbuf *out);
/*
 * The path of a cgroup of the unified hierarchy, valid until the next call; NULL:
 * unknown, or records may need another hierarchy's, see procfs_cgroup().
 */
const char *kprobe_cgroup(struct kprobe_paths *p, uint64_t id);

/* --- records (kprobe_record.c) ---------------------------------------------- */

/* What makes records, beside a probe's values. */
struct kprobe_record {
	struct kprobe_paths *paths;
	struct quark_reader *reader;
	struct strbuf root; /* of the process; read at most once per record */
	bool rooted;
	uint32_t max_env;
	struct strbuf out, proc;
	char filename[ABI_QUARK_PATH_MAX];
	/* Reads the current values of a process; false: it is gone. */
	bool (*ask)(void *arg, uint32_t pid, struct kprobe_values *v);
	void *arg;
};

struct kprobe_sample {
	uint64_t time; /* CLOCK_BOOTTIME */
	uint32_t cpu;
	uint32_t tgid, tid; /* of the thread that ran */
	uint32_t exec_tid; /* EXEC: the thread that called execve */
};

/* Calls fn with the record; returns what fn does, or -errno. */
int kprobe_record(struct kprobe_record *r, enum kprobe_id id,
		  const struct kprobe_sample *s, const struct kprobe_values *v,
		  ring_fn fn, void *arg);

#endif /* QUARK_KPROBE_H */
