/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libquark: every fork, exec, exit, rename and id change of a host, in order.
 *
 * Source compatible with the interface published in quark(7) and
 * quark_queue_open(3). Names with QUARK_X_ or marked "own extension" are additions,
 * without effect for an application that does not use them.
 *
 * Errors: -1 or NULL with errno set. The library does not print, does not exit, and
 * writes into no structure of the caller except the queue. Its one thread reads
 * /proc, which may block for ever, and has all signals blocked. A queue is used from
 * one thread at a time, by the process that opened it: in a child of fork(2) calls
 * that take or wait for events fail with ECHILD, and close releases only the child's
 * resources. On a closed queue they fail with EBADF.
 */
#ifndef QUARK_H
#define QUARK_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* quark_queue_attr.flags */
#define QQ_THREAD_EVENTS (1 << 0)
#define QQ_KPROBE (1 << 1)
#define QQ_EBPF (1 << 2)
#define QQ_MIN_AGG (1 << 3)
#define QQ_ENTRY_LEADER (1 << 4)
#define QQ_SOCK_CONN (1 << 5)
#define QQ_DNS (1 << 6)
#define QQ_BYPASS (1 << 7)
#define QQ_FILE (1 << 8)
#define QQ_SHM (1 << 9)
#define QQ_TTY (1 << 10)
#define QQ_PTRACE (1 << 11)
#define QQ_MODULE_LOAD (1 << 12)
#define QQ_ALL_BACKENDS (QQ_KPROBE | QQ_EBPF)
/* Own extension: no aggregation; events are ordered by the watermark alone. */
#define QQ_NO_AGG (1 << 30)
/* Own extension: REAP and GAP also without QQ_NO_AGG. */
#define QQ_OWN_EVENTS (1 << 29)
/*
 * Own extension: changes of ids, session and directory also with QQ_NO_AGG. They
 * need a hook that slows down every system call of the host.
 */
#define QQ_ID_EVENTS (1 << 28)

/* quark_event.events */
#define QUARK_EV_FORK (1 << 0)
#define QUARK_EV_EXEC (1 << 1)
#define QUARK_EV_EXIT (1 << 2)
#define QUARK_EV_ID_CHANGE (1 << 3)
#define QUARK_EV_SETPROCTITLE (1 << 4)
#define QUARK_EV_SOCK_CONN_ESTABLISHED (1 << 5)
#define QUARK_EV_SOCK_CONN_CLOSED (1 << 6)
#define QUARK_EV_PACKET (1 << 7)
#define QUARK_EV_BYPASS (1 << 8)
#define QUARK_EV_FILE (1 << 9)
#define QUARK_EV_PTRACE (1 << 10)
#define QUARK_EV_MODULE_LOAD (1 << 11)
#define QUARK_EV_SHM (1 << 12)
#define QUARK_EV_TTY (1 << 13)
/*
 * Own extensions. REAP: the leader is freed, no thread of the process runs any
 * more. GAP: events of gap_kinds were lost between gap_from and gap_to.
 */
#define QUARK_EV_REAP (1 << 24)
#define QUARK_EV_GAP (1 << 25)

/* quark_event.id_change */
#define QUARK_ID_CHANGE_SETSID (1 << 0)
#define QUARK_ID_CHANGE_SETUID (1 << 1)
#define QUARK_ID_CHANGE_SETGID (1 << 2)
/*
 * Own extension: moved to another control group. With QQ_NO_AGG or QQ_OWN_EVENTS,
 * also without QQ_ID_EVENTS.
 */
#define QUARK_ID_CHANGE_CGROUP (1 << 8)

/* quark_process.flags */
/* The proc_ members are valid: from a fork, an exec or a snapshot. */
#define QUARK_F_PROC (1 << 0)
#define QUARK_F_EXIT (1 << 1)

/* quark_process.proc_entry_leader_type */
#define QUARK_ELT_UNKNOWN 0
#define QUARK_ELT_INIT 1
#define QUARK_ELT_KTHREAD 2
#define QUARK_ELT_SSHD 3
#define QUARK_ELT_SSM 4
#define QUARK_ELT_CONTAINER 5
#define QUARK_ELT_TERM 6
#define QUARK_ELT_CONSOLE 7

/*
 * Own extension. Identifies a process image: pid in the root pid namespace, the
 * leader's start_boottime (ns), the kernel's exec generation. Perf samples and
 * mappings have the same three values, so joins are exact.
 */
struct quark_key {
	uint64_t start_boottime;
	uint64_t exec_id;
	uint32_t pid;
	uint32_t pad;
};

/* Own extension: the executed file, from the kernel. */
struct quark_file_ident {
	uint64_t dev; /* as stat(2)'s st_dev */
	uint64_t ino;
	uint64_t ctime_ns;
	uint64_t size;
};

/*
 * Of published kinds of events that are not built yet: declared, so that programs
 * that use them compile. No event has any of these.
 */
struct quark_socket; /* below */

#define QUARK_MAX_PACKET 2048

enum quark_packet_direction {
	QUARK_PACKET_DIR_INVALID,
	QUARK_PACKET_DIR_EGRESS,
	QUARK_PACKET_DIR_INGRESS,
};

enum quark_packet_origin {
	QUARK_PACKET_ORIGIN_INVALID,
	QUARK_PACKET_ORIGIN_DNS,
};

/* QQ_DNS */
struct quark_packet {
	enum quark_packet_direction direction;
	enum quark_packet_origin origin;
	size_t orig_len;
	size_t cap_len;
	char data[];
};

/* quark_file.op_mask */
#define QUARK_FILE_OP_CREATE (1 << 0)
#define QUARK_FILE_OP_MODIFY (1 << 1)
#define QUARK_FILE_OP_REMOVE (1 << 2)
#define QUARK_FILE_OP_MOVE (1 << 3)

/* QQ_FILE */
struct quark_file {
	const char *path;
	const char *old_path;
	const char *sym_target;
	uint64_t inode;
	uint64_t atime;
	uint64_t mtime;
	uint64_t ctime;
	uint64_t size;
	uint32_t mode;
	uint32_t uid;
	uint32_t gid;
	uint32_t op_mask; /* QUARK_FILE_OP_ */
	char storage[];
};

/* QQ_PTRACE */
struct quark_ptrace {
	uint32_t child_pid;
	int64_t request;
	uint64_t addr;
	uint64_t data;
};

/* QQ_MODULE_LOAD */
struct quark_module_load {
	char *name;
	char *version;
	char *src_version;
};

enum shm_kind {
	QUARK_SHM_INVALID,
	QUARK_SHM_SHMGET,
	QUARK_SHM_SHM_OPEN,
	QUARK_SHM_MEMFD_CREATE,
	QUARK_SHM_MEMFD_OPEN,
};

/* QQ_SHM */
struct quark_shm {
	enum shm_kind kind;
	int64_t shmget_key;
	uint64_t shmget_size;
	int64_t shmget_shmflg;
	uint32_t memfd_create_flags;
	char *path;
};

/* QQ_TTY */
struct quark_tty {
	struct quark_tty *next;
	size_t total_len;
	uint16_t major;
	uint16_t minor;
	uint16_t cols;
	uint16_t rows;
	uint32_t cflag;
	uint32_t iflag;
	uint32_t lflag;
	uint32_t oflag;
	size_t truncated;
	size_t data_len;
	char data[];
};

/* kubefd */
struct quark_pod {
	char *name;
	char *ns;
	char *uid;
	char *phase;
};
struct quark_container {
	char *container_id;
	struct quark_pod *pod;
	char *name;
	char *image;
	char *image_id;
	char *image_name;
	char *image_tag;
	char *image_hash;
};

/*
 * A process as it was at the event. Immutable: a later change makes a new
 * record. A NULL pointer means unknown.
 */
struct quark_process {
	uint32_t pid;
	uint32_t pad0;
	uint64_t flags; /* QUARK_F_ */
	uint64_t poison_tag;
	uint64_t proc_cap_inheritable;
	uint64_t proc_cap_permitted;
	uint64_t proc_cap_effective;
	uint64_t proc_cap_bset;
	uint64_t proc_cap_ambient;
	uint64_t proc_time_boot; /* start, ns since the epoch */
	uint32_t proc_ppid;
	uint32_t proc_uid;
	uint32_t proc_gid;
	uint32_t proc_suid;
	uint32_t proc_sgid;
	uint32_t proc_euid;
	uint32_t proc_egid;
	uint32_t proc_pgid;
	uint32_t proc_sid;
	uint32_t proc_tty_major;
	uint32_t proc_tty_minor;
	uint32_t proc_entry_leader_type; /* QUARK_ELT_ */
	uint32_t proc_entry_leader; /* pid */
	uint32_t proc_uts_inonum;
	uint32_t proc_ipc_inonum;
	uint32_t proc_mnt_inonum;
	uint32_t proc_net_inonum;
	/* base64 of le32 pid and le64 start_boottime: one within a boot */
	char proc_entity_id[17];
	int32_t exit_code;
	uint64_t exit_time_event; /* ns since the epoch */
	char comm[16];
	char *exe; /* absolute path, in the process's root */
	char *cmdline; /* arguments, each ended by a NUL */
	size_t cmdline_len;
	char *cwd;
	char *cgroup;
	char *env; /* as cmdline; only when max_env > 0 */
	size_t env_len;
	struct quark_container *container;

	/* Own extensions. */
	struct quark_key key; /* of this image */
	struct quark_key parent_key; /* at the fork; pid 0: unknown */
	struct quark_file_ident exe_ident; /* ino 0: unknown */
	uint64_t exit_boottime; /* of the last thread; 0: it has not exited */
	int32_t wait_status; /* raw, as wait4(2) gives it; valid if exited */
	uint32_t x_flags; /* QUARK_X_ */
};

/* quark_process.x_flags */
#define QUARK_X_KTHREAD (1 << 0)
#define QUARK_X_ARGS_CUT (1 << 1) /* cmdline is not all of it */
#define QUARK_X_CLONE_VM (1 << 2) /* shares its parent's memory, until exec */
#define QUARK_X_HIDDEN (1 << 3) /* the kernel reports no events of it */

struct quark_event {
	uint64_t events; /* QUARK_EV_ */
	uint64_t time; /* ns since the epoch */
	const struct quark_process *process; /* NULL for a gap */
	const struct quark_socket *socket;
	struct quark_packet *packet;
	const void *bypass;
	struct quark_file *file;
	struct quark_ptrace ptrace;
	struct quark_module_load *module_load;
	struct quark_shm *shm;
	struct quark_tty *tty;
	uint32_t id_change; /* QUARK_ID_CHANGE_ */
	uint32_t tid; /* own extension: thread that caused the event */

	/* Own extensions. */
	uint64_t boottime; /* of the event, CLOCK_BOOTTIME, ns */
	uint64_t clone_flags; /* FORK */
	/* FORK: the image that called it. With CLONE_PARENT not the parent. */
	struct quark_key fork_key;
	/*
	 * Nanoseconds, of all threads. EXIT: so far, provisional, since memory
	 * is freed later. REAP: if cpu_exact, the kernel's account, equal to
	 * wait4(2)'s. If the kernel did not report the reap, the event comes
	 * reap_grace_time after the exit, with what is known.
	 */
	uint64_t cpu_time;
	uint64_t utime, stime; /* REAP: user and system part, from ticks */
	uint64_t maxrss; /* EXIT: bytes, peak; 0 unknown */
	uint64_t minflt, majflt; /* EXIT and REAP */
	uint32_t group_dead; /* EXIT: always 1 but with QQ_THREAD_EVENTS */
	uint32_t cpu_exact; /* REAP */
	uint32_t gap_kinds; /* GAP: QUARK_EV_ bits that may be missing */
	/* SETPROCTITLE: renames omitted before it, by attr.repeat_limit */
	uint32_t limited;
	uint64_t gap_from; /* GAP: boot times around the loss */
	uint64_t gap_to;
	uint64_t gap_lost; /* GAP: lost records, counted by the kernel side */
};

/* --- rules ----------------------------------------------------------------- */

/* quark_rule_field.code */
#define QUARK_RF_PROCESS_PID (1ULL << 0)
#define QUARK_RF_PROCESS_PPID (1ULL << 1)
#define QUARK_RF_PROCESS_UID (1ULL << 2)
#define QUARK_RF_PROCESS_GID (1ULL << 3)
#define QUARK_RF_PROCESS_SID (1ULL << 4)
#define QUARK_RF_PROCESS_COMM (1ULL << 5)
#define QUARK_RF_PROCESS_FILENAME (1ULL << 6)
#define QUARK_RF_PROCESS_EXE QUARK_RF_PROCESS_FILENAME
#define QUARK_RF_FILE_PATH (1ULL << 7)
#define QUARK_RF_POISON (1ULL << 8)
/* Their names in later versions. */
#define QUARK_RF_PID QUARK_RF_PROCESS_PID
#define QUARK_RF_PPID QUARK_RF_PROCESS_PPID
#define QUARK_RF_UID QUARK_RF_PROCESS_UID
#define QUARK_RF_GID QUARK_RF_PROCESS_GID
#define QUARK_RF_SID QUARK_RF_PROCESS_SID
#define QUARK_RF_COMM QUARK_RF_PROCESS_COMM
#define QUARK_RF_EXE QUARK_RF_PROCESS_EXE
#define QUARK_RF_FILEPATH QUARK_RF_FILE_PATH

/* quark_rule.action */
enum quark_rule_action {
	QUARK_RA_INVALID,
	QUARK_RA_DROP,
	QUARK_RA_PASS,
	QUARK_RA_POISON,
};

struct quark_rule_field {
	uint64_t code; /* QUARK_RF_ */
	union {
		uint32_t pid;
		uint32_t id;
		uint64_t poison_tag;
		/*
		 * A pattern, copied: '*' matches any characters, also slashes;
		 * "**" is refused.
		 */
		const char *path;
		char comm[16];
	};
};

/* Changed by the calls below only. */
struct quark_rule {
	struct quark_rule_field *fields;
	size_t n_fields;
	int action; /* QUARK_RA_ */
	uint32_t number; /* from 0 */
	uint64_t poison_tag; /* what QUARK_RA_POISON sets */
	uint64_t evals;
	uint64_t hits;
};

/* The caller's; valid until the queue that uses it is closed. */
struct quark_ruleset {
	struct quark_rule *rules;
	size_t n_rules;
};

/* A process that executes a file. */
struct quark_new_file {
	uint32_t pid; /* of the root pid namespace */
	uint32_t uid; /* real */
	uint64_t start_boottime; /* of the process */
	uint64_t boottime; /* of the exec */
	struct quark_file_ident ident;
	/* Below the process's root, valid during the call; "": unknown. */
	const char *path;
};

struct quark_queue_attr {
	int flags; /* QQ_ */
	int max_length; /* events held at most */
	int cache_grace_time; /* ms that an exited process stays in the cache */
	int hold_time; /* ms an event waits to be aggregated */
	int max_env; /* bytes of environment; 0: none at all */
	int kubefd; /* -1 */
	struct quark_ruleset *ruleset; /* NULL: none */

	/* Own extensions. */
	size_t ring_bytes; /* all rings together; 0: 16 MiB */
	/*
	 * 1: the caller polls, so the kernel side and get_epollfd() do not wake
	 * it up unless the ring is half full.
	 */
	int no_wakeup;
	/*
	 * ms after its exit that a process is presumed reaped if it is not in
	 * /proc and the kernel did not report its reap; 0: cache_grace_time
	 */
	int reap_grace_time;
	/*
	 * Records a second of changes that a task can repeat at will: its name,
	 * and its ids, directory and cgroup; a hundred times as many for all
	 * processes of a user. Further records are omitted and counted in
	 * stats.limited; the resulting state is reported before the next fork,
	 * exec or exit of the process. 0: no limit. Only with QQ_EBPF.
	 */
	int repeat_limit;
	/*
	 * Called for the exec of a file that is not known by
	 * quark_queue_know_file(), when its record is read and so before its
	 * event: inside any call that reads records, by the same thread. It may
	 * call quark_queue_know_file() and _forget_file() only. The record wakes
	 * up the waiting caller, also with no_wakeup, at most 200 times a second
	 * and user; stats.unwoken counts the others. NULL: off, without cost.
	 * Only with QQ_EBPF.
	 */
	void (*new_file)(void *arg, const struct quark_new_file *file);
	void *new_file_arg;
};

/* Owned by the caller, for instance on its stack; 'priv' is private. */
struct quark_queue {
	struct quark_queue_priv *priv;
};

/*
 * Own extension: lost records by cause and kind. 'kernel': the ring was full;
 * 'memory': an allocation failed; 'length': max_length. Kinds by bit number of
 * QUARK_EV_FORK, EXEC, EXIT, ID_CHANGE, SETPROCTITLE, then REAP.
 */
#define QUARK_X_KINDS 6
struct quark_losses {
	uint64_t kernel[QUARK_X_KINDS];
	uint64_t memory[QUARK_X_KINDS];
	uint64_t length[QUARK_X_KINDS];
};

struct quark_queue_stats {
	uint64_t insertions;
	uint64_t removals;
	uint64_t aggregations;
	uint64_t non_aggregations;
	uint64_t lost; /* sum of losses */
	uint64_t garbage_collections;
	int backend; /* QQ_EBPF or QQ_KPROBE */
	int pad;
	struct quark_losses losses; /* own extension */
	/* Own extensions. */
	uint64_t late; /* records that arrived below the watermark */
	uint64_t repairs; /* scans that repaired the cache after a loss */
	uint64_t limited; /* records beyond repeat_limit, not lost */
	uint64_t evictions; /* ended processes removed before their grace time */
	uint64_t unwoken; /* new files that did not wake up the caller */
	uint64_t text_cut; /* processes of which the cache has strings in part */
	/* Reads of /proc/PID that blocked and timed out, or were not tried since. */
	uint64_t unread;
};

void quark_queue_default_attr(struct quark_queue_attr *attr);
/*
 * Attaches, opens the rings, then reads the existing processes, so that none is
 * missed between. NULL attr: the defaults. On error nothing stays open and
 * quark_queue_close() must not be called.
 */
int quark_queue_open(struct quark_queue *qq, struct quark_queue_attr *attr);
void quark_queue_close(struct quark_queue *qq);
/*
 * The event is valid until the next call on the queue. NULL: no event is due
 * (EAGAIN), or ECHILD or EBADF.
 */
const struct quark_event *quark_queue_get_event(struct quark_queue *qq);
int quark_queue_populate(struct quark_queue *qq);
int quark_queue_block(struct quark_queue *qq);
int quark_queue_get_epollfd(struct quark_queue *qq);
void quark_queue_get_stats(struct quark_queue *qq,
			   struct quark_queue_stats *stats);
/*
 * Own extension, for attr.new_file: makes a file known, or unknown again. Of
 * 16,384 known files the least recently used is removed. -1 and errno: ENOTSUP,
 * attr.new_file is NULL.
 */
int quark_queue_know_file(struct quark_queue *qq,
			  const struct quark_file_ident *ident);
int quark_queue_forget_file(struct quark_queue *qq,
			    const struct quark_file_ident *ident);
/*
 * Own extension: each further exec on this CPU writes a mark, two u32 (pid and
 * thread, of the root pid namespace), into the ring of a perf event that the caller
 * reads: before the MMAP2 records of the new image, where a COMM record with the
 * exec flag would be, but without the COMM records of all renames. The event is one
 * of this CPU, PERF_COUNT_SW_BPF_OUTPUT with PERF_SAMPLE_RAW; the queue keeps it
 * open until it is closed or gets another one. -1 and errno: ENOTSUP, not with this
 * backend.
 */
int quark_queue_mark_execs(struct quark_queue *qq, unsigned int cpu,
			   int perf_fd);

/*
 * Own extensions.
 * Watermark: get_event() will return no older event, CLOCK_BOOTTIME ns. At most
 * the time of the oldest event in the queue.
 */
uint64_t quark_queue_watermark(struct quark_queue *qq);
/*
 * A deep copy into 'buf', 8-aligned, if 'size' bytes are sufficient. Returns the
 * size that it needs.
 */
size_t quark_event_copy(const struct quark_event *ev, void *buf, size_t size);
/* A deep copy in one block of memory, for free(3); NULL with ENOMEM. */
struct quark_event *quark_event_dup(const struct quark_event *ev);
struct quark_process *quark_process_dup(const struct quark_process *qp);
/* Why this thread's last open failed, one line; "" if it did not. */
const char *quark_queue_open_error(void);

const struct quark_process *quark_process_lookup(struct quark_queue *qq,
						 int pid);
struct quark_process_iter {
	struct quark_queue *qq;
	void *next;
};
void quark_process_iter_init(struct quark_process_iter *it,
			     struct quark_queue *qq);
const struct quark_process *
quark_process_iter_next(struct quark_process_iter *it);

struct quark_cmdline_iter {
	const char *buf;
	size_t len;
	size_t off;
};
void quark_cmdline_iter_init(struct quark_cmdline_iter *it, const char *cmdline,
			     size_t cmdline_len);
const char *quark_cmdline_iter_next(struct quark_cmdline_iter *it);

int quark_event_dump(const struct quark_event *ev, FILE *f);
/* One line of ECS JSON, malloc'd, without a newline. */
int quark_event_to_ecs(struct quark_queue *qq, const struct quark_event *ev,
		       char **buf, size_t *len);

void quark_ruleset_init(struct quark_ruleset *rs);
void quark_ruleset_clear(struct quark_ruleset *rs);
/*
 * Initialises the set without reading it, and fills it. EINVAL: 'err' has line,
 * column and reason, and the set is empty.
 */
int quark_ruleset_parse(struct quark_ruleset *rs, FILE *f, char *err,
			size_t errlen);
/* Own extension: appends to the rules of an initialised set. */
int quark_ruleset_parse_append(struct quark_ruleset *rs, FILE *f, char *err,
			       size_t errlen);
/* Valid until the next call on the set. */
struct quark_rule *quark_ruleset_append_rule(struct quark_ruleset *rs,
					     int action, uint64_t poison_tag);
int quark_rule_match_field(struct quark_rule *rule,
			   struct quark_rule_field field);
/* The first rule that passes or drops the event; NULL: none does. */
struct quark_rule *quark_ruleset_match(struct quark_ruleset *rs,
				       const struct quark_event *ev);

/*
 * Aggregation. The next raw event of a process joins a held one ('parent') while
 * the function in the cell (kind of the held event, kind of the next) returns
 * true; NULL: never.
 */
enum raw_types {
	RAW_INVALID, /* a valid cell without effect */
	RAW_EXEC,
	RAW_WAKE_UP_NEW_TASK, /* fork */
	RAW_EXIT_THREAD,
	RAW_ID_CHANGE,
	RAW_COMM,
	/* Of published kinds not built yet. */
	RAW_EXEC_CONNECTOR,
	RAW_SOCK_CONN,
	RAW_PACKET,
	RAW_FILE,
	RAW_PTRACE,
	RAW_MODULE_LOAD,
	RAW_SHM,
	RAW_TTY,
	RAW_NUM_TYPES
};
struct raw_event;
typedef int (*quark_can_aggregate_fn)(struct quark_queue *,
				      struct raw_event *parent,
				      struct raw_event *child);
int quark_queue_set_agg_matrix(struct quark_queue *qq, int parent, int child,
			       quark_can_aggregate_fn fn);
/* At most one of its kind. */
int quark_can_aggregate_single(struct quark_queue *qq, struct raw_event *parent,
			       struct raw_event *child);
/* Any number; the last one's values are kept. */
int quark_can_aggregate_mult(struct quark_queue *qq, struct raw_event *parent,
			     struct raw_event *child);
/* As single, but not after a change of ids. */
int quark_can_aggregate_fork_exec(struct quark_queue *qq,
				  struct raw_event *parent,
				  struct raw_event *child);

/*
 * Connections, for QQ_SOCK_CONN, which quark_queue_open() refuses so far. lookup
 * returns NULL with ENOTSUP; the iterator ends at once.
 */
struct quark_sockaddr {
	int af; /* AF_INET, AF_INET6 */
	/* Published with either name. */
	union {
		uint32_t addr4;
		uint8_t addr6[16];
		union {
			uint32_t addr4;
			uint8_t addr6[16];
		} u;
	};
	uint16_t port;
};
enum sock_conn {
	SOCK_CONN_INVALID,
	SOCK_CONN_CLOSE,
	SOCK_CONN_ACCEPT,
	SOCK_CONN_CONNECT,
	SOCK_CONN_SCRAPE,
};
struct quark_socket {
	struct quark_sockaddr local;
	struct quark_sockaddr remote;
	uint32_t pid_origin;
	uint32_t pid_last_use;
	uint64_t established_time;
	uint64_t close_time;
	enum sock_conn conn_origin;
	uint64_t bytes_received;
	uint64_t bytes_sent;
};
struct quark_socket_iter {
	struct quark_queue *qq;
	struct quark_socket *qsk;
};
const struct quark_socket *quark_socket_lookup(struct quark_queue *qq,
					       struct quark_sockaddr *local,
					       struct quark_sockaddr *remote);
void quark_socket_iter_init(struct quark_socket_iter *it,
			    struct quark_queue *qq);
const struct quark_socket *quark_socket_iter_next(struct quark_socket_iter *it);

/* Users and groups of /etc; NULL with ENOENT. Valid until close. */
struct quark_passwd {
	uint32_t uid;
	uint32_t gid;
	char *name;
};
struct quark_group {
	uint32_t gid;
	uint32_t pad;
	char *name;
};
struct quark_passwd *quark_passwd_lookup(struct quark_queue *qq, uint32_t uid);
struct quark_group *quark_group_lookup(struct quark_queue *qq, uint32_t gid);

/* Offsets of structure members, from BTF: "task_struct.comm". */
struct quark_btf;
struct quark_btf *quark_btf_open(void); /* of the running kernel */
struct quark_btf *quark_btf_open2(const char *path, const char *kname);
void quark_btf_close(struct quark_btf *qb);
/* In bytes; -1 with ENOENT, or EINVAL for a bit field. */
long quark_btf_offset(struct quark_btf *qb, const char *dotname);

/*
 * The interface published in April 2024. The process of a copied event is valid
 * until the next get_events() on that queue.
 */
int quark_init(void);
void quark_close(void);
int quark_queue_get_events(struct quark_queue *qq, struct quark_event *evs,
			   int n);
int quark_event_lookup(struct quark_queue *qq, struct quark_event *ev, int pid);
int quark_queue_get_fds(struct quark_queue *qq, int *fds, int n);

#ifdef __cplusplus
}
#endif

#endif /* QUARK_H */
