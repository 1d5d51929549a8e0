/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libquark's internals. The path of a record: kernel ring -> quark_order (sorted
 * by time, until the watermark has passed it) -> quark_apply() (changes the cache,
 * fills the event) -> the caller. None of these names is exported: libquark.map
 * lists those that are.
 */
#ifndef QUARK_PRIV_H
#define QUARK_PRIV_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/types.h>

#include "base/base.h"
#include "bpf/abi.h"
#include "processmanager/quark/quark.h"

/* A number or -errno, as a public function returns it: -1 with errno. */
static inline long quark_result(long n)
{
	if (n >= 0)
		return n;
	errno = -n;
	return -1;
}

/* Likewise, for one that returns a pointer. */
static inline void *quark_null(int err)
{
	errno = err;
	return NULL;
}

static inline struct quark_file_ident
quark_image_ident(const struct abi_quark_image *im)
{
	return (struct quark_file_ident){
		.dev = gnu_dev_makedev(im->dev >> 20, im->dev & 0xfffff),
		.ino = im->ino,
		.ctime_ns = im->ctime_ns,
		.size = im->size,
	};
}

/* --- records of processes (record.c) -------------------------------------- */

struct quark_span {
	const char *p; /* NULL: unknown */
	size_t len;
};

/* The strings of a process, in the order of an image record. */
struct quark_spans {
	union {
		struct {
			struct quark_span exe, cmdline, cwd, cgroup, env;
		};
		struct quark_span all[5];
	};
};

struct quark_spans quark_spans_of(const struct quark_process *p);
void quark_spans_set(struct quark_process *p, const struct quark_spans *s);
/* Bytes that quark_spans_copy() writes. */
size_t quark_spans_size(const struct quark_spans *s);
/* Copies the strings to 'at', a NUL behind each, and lets 's' point there. */
void quark_spans_copy(struct quark_spans *s, char *at);

/*
 * The strings of an image, shared by all its records and by the processes forked
 * from it. One block of memory; the spans point into it.
 */
struct quark_strings {
	unsigned int refs;
	size_t size; /* of the block */
	struct quark_user *user; /* its share includes this block; or NULL */
	struct quark_spans spans;
	char data[];
};

/*
 * A user's share of cache->text_max: the strings of running processes and
 * zombies. It exists as long as any of these blocks does.
 */
struct quark_user {
	struct hash_node node; /* quark_cache.users */
	struct quark_cache *cache;
	size_t bytes;
	uint32_t uid;
};

struct quark_strings *quark_strings_new(const struct quark_spans *spans);
void quark_strings_put(struct quark_strings *s);
/* Subtracts a block from the share; frees the share if it was the last one. */
void quark_user_give(struct quark_user *u, size_t bytes);

/*
 * The public state of a process at one time. Immutable while anything but the
 * cache holds a reference.
 */
struct quark_record {
	struct quark_process p;
	struct quark_strings *strings; /* or NULL: all unknown */
	struct pool *pool; /* where it came from */
	unsigned int refs;
};

struct quark_record *quark_record_new(struct pool *pool);
struct quark_record *quark_record_copy(const struct quark_record *r);
struct quark_record *quark_record_get(struct quark_record *r);
void quark_record_put(struct quark_record *r);
/* Takes over the caller's reference; NULL is fine. */
void quark_record_set_strings(struct quark_record *r, struct quark_strings *s);
void quark_entity_id(char out[17], uint32_t pid, uint64_t start_boottime);

/* --- the cache (cache.c) --------------------------------------------------- */

TAILQ_HEAD(quark_proc_list, quark_proc);

struct quark_proc {
	struct hash_node node; /* by pid */
	TAILQ_ENTRY(quark_proc) link; /* all of them, oldest first */
	/* Exited or reaped: the list of all with the same delay. */
	struct quark_proc_list *list;
	TAILQ_ENTRY(quark_proc) list_link;
	uint64_t due;
	size_t bytes; /* ended: its part of quark_cache.dead_bytes */
	/* The current parent, not that of the fork; NULL: unknown, or exited. */
	struct quark_proc *parent;
	LIST_HEAD(, quark_proc) kids;
	LIST_ENTRY(quark_proc) kid_link;
	struct quark_record *rec;
	uint64_t snap_time; /* when the first scan read it; 0: it did not */
	uint64_t cpu_time; /* at its exit, provisional */
	/* Times of the last records with its name, and its ids and paths. */
	uint64_t named, moved;
	uint64_t forked; /* its strings are its origin's, as of then; 0: its own */
	struct quark_proc *below; /* of quark_apply_scan_end(), while it runs */
	uint8_t looks; /* times that a zombie was looked up in /proc */
	bool exited;
	bool ended; /* reaped */
	bool settled; /* by quark_apply_scan_end() */
	bool missing; /* not in the last scan */
	bool vanished; /* presumed ended: no record of its exit, not in /proc */
};

/*
 * A zombie is looked up in /proc with twice the pause each time: 4 s to 128 s with
 * the default grace time. Each list has one pause.
 */
#define QUARK_ZOMBIE_PAUSES 6
/* At most so many bytes of a process are kept beyond its user's share. */
#define QUARK_TEXT_LEAST 1024

struct quark_cache {
	struct hash hash;
	struct hash users; /* struct quark_user, by uid */
	struct pool procs, records;
	struct quark_proc_list all;
	/* Exited, not reaped. */
	struct quark_proc_list zombies[QUARK_ZOMBIE_PAUSES];
	struct quark_proc_list gone;
	struct quark_proc_list inferred; /* a record of the reap may still come */
	uint64_t grace_ns;
	uint64_t inferred_ns;
	uint64_t zombie_ns; /* the first pause; not 0 */
	uint64_t collections;
	/* Of ended processes; above the limit the oldest are removed early. */
	size_t dead_bytes, dead_max;
	uint64_t evictions;
	size_t text_bytes, text_max; /* of strings, all users together */
	uint64_t text_cut; /* times that strings were cut to that limit */
};

int quark_cache_init(struct quark_cache *c, uint64_t grace_ns);
void quark_cache_fini(struct quark_cache *c);
struct quark_proc *quark_cache_find(const struct quark_cache *c,
				    const struct abi_key *key);
/* The youngest of that pid. */
struct quark_proc *quark_cache_newest(const struct quark_cache *c,
				      uint32_t pid);
/* A new entry with an empty record under the key; NULL without memory. */
struct quark_proc *quark_cache_add(struct quark_cache *c,
				   const struct abi_key *key);
void quark_cache_remove(struct quark_cache *c, struct quark_proc *p);
/* 'parent', or NULL: unknown, is its parent now. */
void quark_cache_adopt(struct quark_proc *p, struct quark_proc *parent);
/* Its record, for writing: a copy if there are other references. NULL: no memory. */
struct quark_record *quark_proc_edit(struct quark_proc *p);
/*
 * Adds its strings to its user's share. If that is used up, replaces them by what
 * is kept in any case, with QUARK_X_ARGS_CUT; without memory, drops them.
 */
void quark_cache_keep(struct quark_cache *c, struct quark_proc *p);
/* Its last thread exited; it is a zombie now. */
void quark_cache_exit(struct quark_cache *c, struct quark_proc *p,
		      uint64_t now);
/*
 * A zombie that exited zombie_ns ago, or was looked up a pause ago; or NULL. Without
 * a quark_cache_look() or _end() the next call returns it again.
 */
struct quark_proc *quark_cache_overdue(struct quark_cache *c, uint64_t now);
/*
 * It is still a zombie. After the grace time, when it is not visible any more, its
 * strings are dropped.
 */
void quark_cache_look(struct quark_cache *c, struct quark_proc *p,
		      uint64_t now);
/*
 * Reaped: removed after the grace time. 'inferred': presumed reaped, and kept for
 * longer, or a record of its reap that does come would make a new entry.
 */
void quark_cache_end(struct quark_cache *c, struct quark_proc *p, uint64_t now,
		     bool inferred);
void quark_cache_collect(struct quark_cache *c, uint64_t now);
/* Whether lookups find it: it has not exited, or within the grace time. */
bool quark_proc_visible(const struct quark_cache *c, const struct quark_proc *p,
			uint64_t now);

/* --- order (order.c) ------------------------------------------------------- */

struct quark_raw {
	TAILQ_ENTRY(quark_raw) link;
	uint64_t time;
	uint32_t kind; /* enum abi_quark_kind, or QUARK_RAW_GAP */
	uint32_t len;
	_Alignas(8) unsigned char data[];
};

#define QUARK_RAW_GAP (ABI_QUARK_TASK + 1)
/* In abi_quark_head.flags: not from the kernel, see infer_reaps(). */
#define QUARK_RAW_INFERRED (1U << 31)
/* ... in /proc, but not in the backend's scan. */
#define QUARK_RAW_HIDDEN (1U << 30)

struct quark_raw_gap {
	uint64_t to;
	uint64_t lost;
	uint32_t kinds; /* QUARK_EV_ */
	uint32_t pad;
};

/* Sorted by time; records of equal times in order of arrival. */
struct quark_order {
	TAILQ_HEAD(quark_raw_list, quark_raw) list;
	size_t count;
};

/* Freed by vault_give(); NULL: no memory. */
struct quark_raw *quark_raw_new(struct vault *vault, uint32_t kind,
				uint64_t time, const void *data, size_t len);
void quark_order_init(struct quark_order *o);
void quark_order_add(struct quark_order *o, struct quark_raw *raw);
struct quark_raw *quark_order_pop(struct quark_order *o);
void quark_order_fini(struct quark_order *o);

/* --- aggregation (agg.c) ---------------------------------------------------- */

/* A raw event, applied to the cache, that later events may join. */
struct raw_event {
	TAILQ_ENTRY(raw_event) link; /* by time */
	/* A queue for each process, by time; its oldest event is hashed. */
	struct raw_event *same_next;
	struct raw_event *same_last; /* of the oldest */
	struct hash_node node; /* of the oldest, by process */
	struct quark_event ev;
	struct quark_record *rec; /* a reference; NULL for a gap */
	uint32_t tid; /* of a thread's event; 0: the process's */
	uint32_t type; /* enum raw_types */
	uint32_t joined; /* types, as bits */
};

struct quark_held {
	TAILQ_HEAD(, raw_event) list;
	size_t count;
	struct hash hash;
	quark_can_aggregate_fn matrix[RAW_NUM_TYPES][RAW_NUM_TYPES];
};

int quark_held_init(struct quark_held *h, bool min_agg);
void quark_held_fini(struct quark_held *h);
/*
 * Appends; times only rise. Takes over the reference to the record, also on error:
 * -ENOMEM. 'thread': the event is the thread's, not the process's.
 */
int quark_held_add(struct quark_held *h, const struct quark_event *ev,
		   struct quark_record *rec, bool thread);
/*
 * Removes the first, with all 'joined' events that could join it; the caller frees
 * it by quark_held_free(). NULL if there is none.
 */
struct raw_event *quark_held_pop(struct quark_held *h, struct quark_queue *q,
				 size_t *joined);
void quark_held_free(struct raw_event *e);
/* How long to hold events, with 'count' of at most 'max' queued. */
uint64_t quark_hold_ns(uint64_t hold_ns, size_t count, size_t max);

/* --- entry leader (leader.c), rules (rules.c) -------------------------------- */

/*
 * Sets the entry leader by the process's own and its parent's record (NULL:
 * unknown). Leaves one that is set, unless a rule applies.
 */
void quark_entry_leader(struct quark_process *p,
			const struct quark_process *parent);

/* The poison of every rule that matches before one passes or drops. */
uint64_t quark_ruleset_poison(struct quark_ruleset *rs,
			      const struct quark_event *ev);
/* Parses rules, for quark_ruleset_parse(). */
int quark_ruleset_parse_text(struct quark_ruleset *rs, const char *buf,
			     size_t len, char *err, size_t errlen);

/* --- users and groups (names.c) ---------------------------------------------- */

union quark_name {
	struct { /* the layout of both */
		uint32_t id, gid;
		char *name;
	};
	struct quark_passwd passwd;
	struct quark_group group;
};

struct quark_names {
	struct quark_name_list {
		union quark_name *v;
		size_t n, cap;
	} passwd, group;
	bool loaded;
};

void quark_names_fini(struct quark_names *n);

/*
 * --- /proc (procfs.c, procfs_task.c) ------------------------------------------
 * For another process these take its locks and may block for ever: only a reader's
 * thread, below, calls them.
 */

#define QUARK_PROCFS_NO_START UINT64_MAX
/* Its start, in clock ticks after boot; QUARK_PROCFS_NO_START: unknown. */
uint64_t quark_procfs_start(uint32_t pid);
/* Whether the process exists, perhaps as a zombie. */
bool quark_procfs_exists(uint32_t pid, uint64_t start_boottime);
/* The pid of its parent; 0: none in our pid namespace, or it is gone. */
uint32_t quark_procfs_parent(uint32_t pid, uint64_t start_boottime);
/*
 * Appends arguments and environment (when max_env > 0) to 'sb'. False if the
 * process is gone or the pid was reused; with a start of 0 that is not checked.
 */
bool quark_procfs_strings(uint32_t pid, uint64_t start_boottime, size_t max_env,
			  struct strbuf *sb, size_t *args_len, size_t *env_len);

/* Appends the target of a link of /proc/PID. Its length; 0: none. */
size_t quark_procfs_link(uint32_t pid, const char *name, struct strbuf *sb);
/* stat(2) of the target. */
bool quark_procfs_stat(uint32_t pid, const char *name, struct stat *st);
/* Appends what procfs_cgroup() finds, unless the pid was reused. Its length. */
size_t quark_procfs_cgroup(uint32_t pid, uint64_t start_boottime,
			   struct strbuf *sb);
/*
 * The abi_quark_image of a scan, into 'sb', from its start. Its start time is that
 * of the clock tick. False if the process is gone or a zombie.
 */
bool quark_procfs_task(uint32_t pid, struct strbuf *sb);

/* --- reads with a timeout (reader.c) ------------------------------------------ */

#define QUARK_NO_UID UINT32_MAX /* unknown */
#define QUARK_HUNG_MAX 10

/* One per queue, used by the queue's thread. All zeros at first. */
struct quark_reader {
	struct patience patience; /* patience_fini() frees all */
	/* Processes of which a read timed out. */
	struct quark_hung {
		uint32_t pid, uid;
		uint64_t until; /* not read before this time */
	} hung[QUARK_HUNG_MAX];
	size_t nhung;
	uint64_t unread; /* reads that timed out or were not tried */
};

/* A process, its arguments and its environment. */
struct quark_text {
	uint32_t pid, uid;
	uint64_t start; /* start_boottime; 0: it is not compared */
	bool hidden; /* from the backend */
	/* If known, where they are; the environment is behind the arguments. */
	bool known;
	size_t at, args, env;
};

#define QUARK_TEXTS_MAX 64

/* Reads at most QUARK_TEXTS_MAX, none of them known yet, into 'sb', from its start. */
void quark_reader_strings(struct quark_reader *rd, struct quark_text *texts,
			  size_t n, size_t max_env, struct strbuf *sb);
/*
 * As the functions of procfs.c. When the read fails, a process exists and has no
 * parent.
 */
bool quark_reader_exists(struct quark_reader *rd, uint32_t uid, uint32_t pid,
			 uint64_t start_boottime);
uint32_t quark_reader_parent(struct quark_reader *rd, uint32_t uid,
			     uint32_t pid, uint64_t start_boottime);
bool quark_reader_task(struct quark_reader *rd, uint32_t pid,
		       struct strbuf *sb);
uint64_t quark_reader_start(struct quark_reader *rd, uint32_t pid);
/* 'name' is static. */
bool quark_reader_stat(struct quark_reader *rd, uint32_t uid, uint32_t pid,
		       const char *name, struct stat *st);
size_t quark_reader_link(struct quark_reader *rd, uint32_t uid, uint32_t pid,
			 const char *name, struct strbuf *sb);
size_t quark_reader_cgroup(struct quark_reader *rd, uint32_t uid, uint32_t pid,
			   uint64_t start_boottime, struct strbuf *sb);

/* --- records as the ring has them (unpack.c) --------------------------------- */

#define QUARK_STRINGS_MAX \
	(3 * ABI_QUARK_PATH_MAX + ABI_QUARK_ARGS_MAX + ABI_QUARK_ENV_MAX)

/* A record of any kind, its strings behind it. */
struct quark_unpacked {
	union {
		struct abi_quark_head head;
		struct abi_quark_fork fork;
		struct abi_quark_image image;
		struct abi_quark_exit exit;
		struct abi_quark_id_change id_change;
		uint32_t words[sizeof(struct abi_quark_image) / 4];
		char room[sizeof(struct abi_quark_image) + QUARK_STRINGS_MAX];
	};
};

/*
 * Its length with its strings; -EINVAL: it is no record. 'home': the same that the
 * kernel side has.
 */
ssize_t quark_unpack(struct quark_unpacked *u, const void *buf, size_t len,
		     const uint32_t home[ABI_QUARK_NAMESPACES]);

/* --- the kernel side (ebpf.c, kprobe.c) -------------------------------------- */

struct quark_backend_conf {
	size_t ring_bytes;
	uint32_t max_env;
	bool no_wakeup;
	bool threads;
	bool syscalls; /* changes of ids and directory */
	uint32_t repeats; /* attr.repeat_limit */
	struct quark_reader *reader; /* the queue's; outlives the backend */
	bool new_files; /* attr.new_file */
};

struct quark_loss_report {
	uint64_t lost[ABI_QUARK_KIND_MAX]; /* since the last report */
	uint64_t total;
	uint64_t first, last; /* boot times of the first and the last */
	bool uncounted; /* and an unknown number of any kind */
	/* Not lost, totals: beyond attr.repeat_limit; new files without wakeup. */
	uint64_t limited, unwoken;
};

/*
 * A source of records. All backends deliver the records of bpf/abi.h; the code
 * above is the same for all.
 */
struct quark_backend {
	int flag; /* QQ_ */
	const char *name;
	/* 0, or -errno with the reason set by quark_error(). */
	int (*open)(void **bp, const struct quark_backend_conf *conf,
		    ring_fn fn, void *arg);
	void (*close)(void *b);
	/* As those of base/ring.h. */
	int (*consume)(void *b);
	uint64_t (*watermark)(const void *b);
	/* How far the watermark is behind the clock, ns. */
	uint64_t (*slack)(const void *b);
	int (*epoll_fd)(const void *b);
	size_t (*backlog)(const void *b);
	/* Records lost since the last call. */
	void (*losses)(void *b, struct quark_loss_report *out);
	/* Calls fn with an abi_quark_image for each process. */
	int (*scan)(void *b, ring_fn fn, void *arg);
	/*
	 * As scan, for one process, without its strings; does not block. False:
	 * it is not found. NULL: not supported, as the next two.
	 */
	bool (*look)(void *b, uint32_t pid, struct abi_quark_image *im);
	/* Sets whether a file is known, for conf.new_files. 0 or -errno. */
	int (*know)(void *b, const struct abi_quark_file *file, bool known);
	/* As quark_queue_mark_execs(). 0 or -errno. */
	int (*mark)(void *b, unsigned int cpu, int perf_fd);
};

extern const struct quark_backend quark_ebpf, quark_kprobe;

/* --- the queue (queue.c, apply.c) ------------------------------------------- */

struct quark_queue_priv {
	struct quark_queue_attr attr;
	char *own; /* 1; 0 in a child of fork(2), which must not use it */
	const struct quark_backend *backend;
	void *b; /* the backend's object */
	struct vault *vault; /* memory of the records in 'order' */
	struct quark_order order;
	struct quark_held held;
	struct quark_names names;
	struct quark_reader reader;
	struct quark_cache cache;
	struct quark_event event; /* of the last get_event() */
	struct quark_record *event_rec; /* its reference */
	bool event_thread; /* it is a thread's, not the process's */
	struct quark_record **copied; /* references of get_events() */
	size_t n_copied;
	uint64_t watermark; /* no older record will come from the kernel */
	uint64_t delivered; /* time of the newest record applied */
	uint64_t newest; /* time of the newest record queued */
	uint64_t gap_from; /* begin, and ... */
	uint64_t gap_to; /* ... end of a loss that no scan followed yet */
	uint64_t last_scan;
	uint64_t scanned; /* end of a scan whose result is not applied yet */
	struct strbuf shown; /* the records of that scan */
	uint64_t shown_gap; /* begin of the loss it followed */
	int64_t wall_offset;
	int epfd;
	int timerfd;
	bool timer_armed;
	bool polling; /* the timer wakes up the caller, records do not */
	struct quark_queue_stats stats;
};

/* Calls attr.new_file, if set, for an executed file (file.c). */
void quark_new_file(const struct quark_queue_priv *qq,
		    const struct abi_quark_image *im, size_t len);

/*
 * Applies a record to the cache and fills qq->event. 1: it is an event; 0: it is
 * none; -ENOMEM: lost, counted by the caller.
 */
int quark_apply(struct quark_queue_priv *qq, const struct quark_raw *raw);
/* Applies a record of a scan, with its arguments and environment. */
int quark_apply_scanned(struct quark_queue_priv *qq,
			const struct abi_quark_image *im, size_t len,
			const struct quark_spans *live);
/*
 * Applies a record of a rescan to a known process, after all older records: name,
 * ids and paths that no later record has. 'gap': the begin of the loss; a process
 * forked after it may have copied a stale origin. -ENOMEM or 0.
 */
int quark_apply_refresh(struct quark_queue_priv *qq,
			const struct abi_quark_image *im, size_t len,
			uint64_t gap, struct strbuf *sb);
/* A process is gone; no record has its end. */
int quark_apply_vanished(struct quark_queue_priv *qq, struct quark_proc *proc);
/* After the last record of a scan: what needs all processes. */
void quark_apply_scan_end(struct quark_queue_priv *qq);

/* Sets the current parent, from a current record (parent.c). */
void quark_set_parent(struct quark_queue_priv *qq, struct quark_proc *proc,
		      const struct abi_key *parent);
/*
 * Gives the children of 'old', which exited, their new parent. The kernel reparents
 * them after it records the exit, long after for a large process: call it again at
 * the reap.
 */
void quark_reparent(struct quark_queue_priv *qq, struct quark_proc *old);

/* By the backend's look(), or by the reader if that finds nothing (reader.c). */
bool quark_exists(struct quark_queue_priv *qq, const struct quark_process *p);
uint32_t quark_parent_of(struct quark_queue_priv *qq,
			 const struct quark_process *p);
/* As quark_reader_strings(); each text has a start, which is compared. */
void quark_read_strings(struct quark_queue_priv *qq, struct quark_text *texts,
			size_t n, struct strbuf *sb);
/* Sets those of *out that are known. */
void quark_text_spans(const struct quark_text *t, const struct strbuf *sb,
		      struct quark_spans *out);

/* Reads all processes into the cache (scan.c). */
int quark_scan_first(struct quark_queue_priv *qq);
/* After a loss; call it only while no ripe record is queued. */
void quark_scan_again(struct quark_queue_priv *qq);

/* Why open failed (error.c). */
void quark_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void quark_error_reset(void);
/* Why BTF cannot be read: -ENOTSUP, there is none, or the system's error. */
int quark_btf_error(void);
/* The required capabilities that are missing, "" if none. */
const char *quark_missing_caps(void);

#endif /* QUARK_PRIV_H */
