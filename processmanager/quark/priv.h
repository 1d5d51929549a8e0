/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libquark's inside. The way of a record: kernel ring -> quark_order (sorted by
 * time, until the watermark has passed it) -> quark_apply() (changes the cache,
 * fills the event) -> the caller.
 *
 * None of these names is exported: libquark.map lists those that are.
 */
#ifndef QUARK_PRIV_H
#define QUARK_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/base.h"
#include "bpf/abi.h"
#include "processmanager/quark/quark.h"

/* --- records of processes (record.c) -------------------------------------- */

/*
 * The strings of an image, shared by every record of it and of the processes
 * forked from it. One block; the pointers point into it.
 */
struct quark_strings {
	unsigned int refs;
	size_t size; /* of the block */
	/* In whose share it counts while it exists; NULL: in nobody's. */
	struct quark_user *user;
	char *exe;
	char *cmdline;
	size_t cmdline_len;
	char *cwd;
	char *cgroup;
	char *env;
	size_t env_len;
	char data[];
};

struct quark_span {
	const char *p; /* NULL: unknown */
	size_t len;
};

struct quark_strings_init {
	struct quark_span exe, cmdline, cwd, cgroup, env;
};

/*
 * What a user's processes have of cache->text_max, living ones and zombies. It
 * exists as long as any of these blocks does.
 */
struct quark_user {
	struct hash_node node; /* quark_cache.users */
	struct quark_cache *cache;
	size_t bytes;
	uint32_t uid;
};

struct quark_strings *quark_strings_new(const struct quark_strings_init *init);
void quark_strings_put(struct quark_strings *s);
/* A block that was counted is freed; and the user, if it has no other. */
void quark_user_give(struct quark_user *u, size_t bytes);

/*
 * What the public sees of a process at one time. Immutable as soon as anybody
 * but the cache holds it.
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
	/* Of those that exited, or were reaped: with the same delay each. */
	struct quark_proc_list *list;
	TAILQ_ENTRY(quark_proc) list_link;
	uint64_t due;
	size_t bytes; /* of one that ended: its share of quark_cache.dead_bytes */
	/* As of now, not that of the fork, where both are known and it lives. */
	struct quark_proc *parent;
	LIST_HEAD(, quark_proc) kids;
	LIST_ENTRY(quark_proc) kid_link;
	struct quark_record *rec;
	uint64_t snap_time; /* not 0: from a walk, whose clock it was */
	uint64_t cpu_time; /* at its exit, provisional */
	/* Times of the last records that told its name, its ids and places. */
	uint64_t named, moved;
	uint64_t forked; /* its strings are its origin's, as of then; 0: its own */
	struct quark_proc *below; /* of quark_apply_walked(), while it runs */
	uint8_t looks; /* at it in /proc, as a zombie */
	bool exited;
	bool ended; /* reaped */
	bool settled; /* by quark_apply_walked() */
	bool missing; /* not in the last walk */
	bool vanished; /* ended for want of being there: no event told of it */
};

/*
 * A zombie is looked at in /proc with twice the pause each time: 4 s to 128 s with
 * the default grace time. A list has one pause.
 */
#define QUARK_ZOMBIE_PAUSES 6
/* At most so many bytes of a process are kept beyond its user's share. */
#define QUARK_TEXT_LEAST 1024

struct quark_cache {
	struct hash hash;
	struct hash users; /* struct quark_user, by uid */
	struct pool procs, records; /* entries, and what is known of them */
	struct quark_proc_list all;
	/* Exited, not reaped. */
	struct quark_proc_list zombies[QUARK_ZOMBIE_PAUSES];
	struct quark_proc_list gone;
	struct quark_proc_list inferred; /* their reap may still be told of */
	uint64_t grace_ns;
	uint64_t inferred_ns;
	uint64_t zombie_ns; /* how often a zombie is looked at; not 0 */
	uint64_t collections;
	/* Of those that ended; above the limit the oldest go before their time. */
	size_t dead_bytes, dead_max;
	uint64_t evictions;
	size_t text_bytes, text_max; /* of strings, all users together */
	uint64_t text_cut; /* times that strings were cut for that */
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
/* Its record, for writing: a copy if anybody else holds it. NULL: no memory. */
struct quark_record *quark_proc_edit(struct quark_proc *p);
/*
 * Its strings are in the cache to stay: counts them in the share of their user, or,
 * where that is used up, replaces them by what is kept in any case, which is marked
 * by QUARK_X_ARGS_CUT. Without memory nothing is kept of them.
 */
void quark_cache_keep(struct quark_cache *c, struct quark_proc *p);
/* Its last thread is gone, its leader may be waited for. */
void quark_cache_exit(struct quark_cache *c, struct quark_proc *p,
		      uint64_t now);
/*
 * One that exited zombie_ns ago, or was looked at a pause ago, and has not been
 * reaped, or NULL. Call quark_cache_look() or _end() on it, or it is there again.
 */
struct quark_proc *quark_cache_overdue(struct quark_cache *c, uint64_t now);
/*
 * It is a zombie still. The public does not see it after the grace time, so that
 * its strings are dropped then.
 */
void quark_cache_look(struct quark_cache *c, struct quark_proc *p,
		      uint64_t now);
/* Reaped: to be forgotten after the grace time. */
void quark_cache_end(struct quark_cache *c, struct quark_proc *p, uint64_t now);
/*
 * Taken for reaped. It is remembered for longer, or a reap that is told of after
 * all would look like that of a process nobody has heard of.
 */
void quark_cache_end_inferred(struct quark_cache *c, struct quark_proc *p,
			      uint64_t now);
void quark_cache_collect(struct quark_cache *c, uint64_t now);
/* Whether the public may see it: alive, or within the grace time. */
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
/* ... the backend's walk has not shown it, though it was there. */
#define QUARK_RAW_HIDDEN (1U << 30)

struct quark_raw_gap {
	uint64_t to;
	uint64_t lost;
	uint32_t kinds; /* QUARK_EV_ */
	uint32_t pad;
};

/* Sorted by time; of equal times, the one that came first. */
struct quark_order {
	TAILQ_HEAD(quark_raw_list, quark_raw) list;
	size_t count;
};

/* Given back to its vault: they come and go in about one order. */
struct quark_raw *quark_raw_new(struct vault *vault, uint32_t kind,
				uint64_t time, const void *data, size_t len);
void quark_order_init(struct quark_order *o);
void quark_order_add(struct quark_order *o, struct quark_raw *raw);
struct quark_raw *quark_order_pop(struct quark_order *o);
void quark_order_fini(struct quark_order *o);

/* --- aggregation (agg.c) ---------------------------------------------------- */

/* A raw event that has changed the cache and waits for others to join it. */
struct raw_event {
	TAILQ_ENTRY(raw_event) link; /* by time */
	/* Others of its process, by time. */
	struct raw_event *same_next;
	struct raw_event *same_last; /* the oldest one's */
	struct hash_node node; /* the oldest one's, by process */
	struct quark_event ev;
	struct quark_record *rec; /* held; NULL for a gap */
	uint32_t tid; /* not 0: of this thread alone */
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
 * To the end; times only rise. Takes over the reference to the record, also on
 * error: -ENOMEM. 'thread': of that thread alone, not of its process.
 */
int quark_held_add(struct quark_held *h, const struct quark_event *ev,
		   struct quark_record *rec, bool thread);
/*
 * The first one, with all that could join it, 'joined' of them; for
 * quark_held_free(). NULL if there is none.
 */
struct raw_event *quark_held_pop(struct quark_held *h, struct quark_queue *q,
				 size_t *joined);
void quark_held_free(struct raw_event *e);
/* How long to hold with that many of at most so many waiting. */
uint64_t quark_hold_ns(uint64_t hold_ns, size_t count, size_t max);

/* --- entry leader (leader.c), rules (rules.c) -------------------------------- */

/*
 * How the process came into the system, by its own and its parent's record
 * (NULL: unknown). Leaves what is known already, unless a rule applies.
 */
void quark_entry_leader(struct quark_process *p,
			const struct quark_process *parent);

/* The poison of every rule that applies before one passes or drops. */
uint64_t quark_ruleset_poison(struct quark_ruleset *rs,
			      const struct quark_event *ev);
/* Rules out of text; the parser behind quark_ruleset_parse(). */
int quark_ruleset_parse_text(struct quark_ruleset *rs, const char *buf,
			     size_t len, char *err, size_t errlen);

/* --- users and groups (names.c) ---------------------------------------------- */

struct quark_names {
	struct quark_passwd *passwd;
	struct quark_group *group;
	size_t n_passwd, n_group;
	bool loaded;
};

void quark_names_fini(struct quark_names *n);

/*
 * --- what is outside of the kernel's records (procfs.c, procfs_task.c) -------
 * Of another process these may wait for ever: its locks are taken. They are for the
 * thread of a reader, below.
 */

#define QUARK_PROCFS_NO_START UINT64_MAX
/* When it started, in clock ticks after boot; QUARK_PROCFS_NO_START: unknown. */
uint64_t quark_procfs_start(uint32_t pid);
/* Whether the process is there, be it as a zombie. */
bool quark_procfs_exists(uint32_t pid, uint64_t start_boottime);
/* The pid of its parent; 0: none in our pid namespace, or it is gone. */
uint32_t quark_procfs_parent(uint32_t pid, uint64_t start_boottime);
/*
 * Arguments and environment (when max_env > 0) of a process, appended to 'sb'. False
 * if it is gone, or the pid another's by now, unless the start is given as 0.
 */
bool quark_procfs_strings(uint32_t pid, uint64_t start_boottime, size_t max_env,
			  struct strbuf *sb, size_t *args_len, size_t *env_len);

/* A link of /proc/PID, appended. Its length; 0: none. */
size_t quark_procfs_link(uint32_t pid, const char *name, struct strbuf *sb);
/* What such a link leads to. */
bool quark_procfs_stat(uint32_t pid, const char *name, struct stat *st);
/* By procfs_cgroup() of base/, unless the pid is another's; the same. */
size_t quark_procfs_cgroup(uint32_t pid, uint64_t start_boottime,
			   struct strbuf *sb);
/*
 * The abi_quark_image of a walk, in the place of what is in 'sb', but that its
 * start is no better than a clock tick. False if it is gone, or a zombie.
 */
bool quark_procfs_task(uint32_t pid, struct strbuf *sb);

/* --- readings that are given up (reader.c) ------------------------------------ */

#define QUARK_NO_UID UINT32_MAX /* nobody knows whose process it is */
#define QUARK_HUNG_MAX 10

/* Of one queue; used by its thread. All zeros at first. */
struct quark_reader {
	struct patience patience;
	/* Processes of which a reading did not come back, or came late. */
	struct quark_hung {
		uint32_t pid, uid;
		uint64_t until; /* it is not read */
	} hung[QUARK_HUNG_MAX];
	size_t nhung;
	uint64_t unread; /* readings given up, or not made for that */
};

/* Arguments and environment of a process, to be read. */
struct quark_text {
	uint32_t pid, uid;
	uint64_t start; /* start_boottime; 0: it is not compared */
	bool hidden; /* the backend does not show it */
	/* What was read: where it is, the environment behind the arguments. */
	bool known;
	size_t at, args, env;
};

#define QUARK_TEXTS_MAX 64

/* Of at most QUARK_TEXTS_MAX, none of them known so far; 'sb' is overwritten. */
void quark_reader_strings(struct quark_reader *rd, struct quark_text *texts,
			  size_t n, size_t max_env, struct strbuf *sb);
/* As those of procfs.c; what is unknown is still there, and has no parent. */
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
/* Ends its thread. Not in a child of fork(2). */
void quark_reader_fini(struct quark_reader *rd);

/* --- records as the ring has them (unpack.c) --------------------------------- */

#define QUARK_STRINGS_MAX \
	(3 * ABI_QUARK_PATH_MAX + ABI_QUARK_ARGS_MAX + ABI_QUARK_ENV_MAX)

/* A record of any kind, and room for its strings behind it. */
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
 * Its length, strings and all; -EINVAL: it is none. 'home' as it was told to
 * the kernel side.
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
	struct quark_reader *reader; /* the queue's, which outlives it */
	bool new_files; /* attr.new_file */
};

struct quark_loss_report {
	uint64_t lost[ABI_QUARK_KIND_MAX]; /* since the last report */
	uint64_t total;
	uint64_t first, last; /* boot times around them */
	bool uncounted; /* and others of any kind, nobody knows how many */
	uint64_t limited; /* no loss: beyond attr.repeat_limit, in all */
	uint64_t unwoken; /* no loss: new files that woke nobody, in all */
};

/*
 * Where records come from. A backend hands them on as bpf/abi.h has them, and
 * everything above is the same for all.
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
	/* By which the watermark is behind the clock, ns. */
	uint64_t (*slack)(const void *b);
	int (*epoll_fd)(const void *b);
	size_t (*backlog)(const void *b);
	/* What has been lost since the last call. */
	void (*losses)(void *b, struct quark_loss_report *out);
	/* Calls fn with an abi_quark_image for each process there is. */
	int (*walk)(void *b, ring_fn fn, void *arg);
	/*
	 * As walk, of one process and without its strings. False: it is not
	 * shown. It waits for nobody; NULL: there is no such.
	 */
	bool (*look)(void *b, uint32_t pid, struct abi_quark_image *im);
	/* A file is known or not, for conf.new_files; NULL: there is no such. */
	int (*know)(void *b, const struct abi_quark_file *file, bool known);
	/* As quark_queue_mark_execs(); NULL: it cannot. 0 or -errno. */
	int (*mark)(void *b, unsigned int cpu, int perf_fd);
};

extern const struct quark_backend quark_ebpf, quark_kprobe;

/* --- the queue (queue.c, apply.c) ------------------------------------------- */

struct quark_queue_priv {
	struct quark_queue_attr attr;
	char *own; /* 1; 0 in a child of fork(2), whose queue it is not */
	const struct quark_backend *backend;
	void *b; /* the backend's own */
	struct vault *vault; /* of what is in 'order' */
	struct quark_order order;
	struct quark_held held;
	struct quark_names names;
	struct quark_reader reader;
	struct quark_cache cache;
	struct quark_event event; /* what get_event() gave out last */
	struct quark_record *event_rec; /* held for it */
	bool event_thread; /* it is of a thread, not of the process */
	struct quark_record **copied; /* for the events of get_events() */
	size_t n_copied;
	uint64_t watermark; /* nothing older will come from the kernel */
	uint64_t delivered; /* time of the newest record applied */
	uint64_t newest; /* time of the newest record queued */
	uint64_t gap_from; /* begin, and ... */
	uint64_t gap_to; /* ... end of a loss that no walk has made good yet */
	uint64_t last_walk;
	uint64_t walked; /* when a walk ended whose missing are not buried */
	struct strbuf shown; /* what it read */
	uint64_t shown_gap; /* begin of the loss it was for */
	int64_t wall_offset;
	int epfd;
	int timerfd;
	bool timer_armed;
	bool polling; /* by the timer: records wake nobody up */
	struct quark_queue_stats stats;
};

/* Of an executed file (file.c): tells attr.new_file, if it is to know. */
void quark_new_file(const struct quark_queue_priv *qq,
		    const struct abi_quark_image *im, size_t len);

/*
 * Applies a record to the cache and fills qq->event. 1: the event is for the
 * caller; 0: it is not; -ENOMEM: lost, counted by the caller.
 */
int quark_apply(struct quark_queue_priv *qq, const struct quark_raw *raw);
/* A record of the walk, and its arguments and environment. */
int quark_apply_walk(struct quark_queue_priv *qq,
		     const struct abi_quark_image *im, size_t len,
		     const struct quark_strings_init *live);
/*
 * What a walk after a loss read of one that is known, when all has been applied that
 * happened before: names, ids and places that no later record told. 'gap': the
 * loss's begin; who was forked since may have had a stale origin. -ENOMEM or 0.
 */
int quark_apply_refresh(struct quark_queue_priv *qq,
			const struct abi_quark_image *im, size_t len,
			uint64_t gap, struct strbuf *sb);
/* One of whom nothing but that it is gone is known. */
int quark_apply_vanished(struct quark_queue_priv *qq, struct quark_proc *proc);
/* After the last of them: what needs to know them all. */
void quark_apply_walked(struct quark_queue_priv *qq);

/* The parent of now, by a record of now (parent.c). */
void quark_set_parent(struct quark_queue_priv *qq, struct quark_proc *proc,
		      const struct abi_key *parent);
/*
 * The children of 'old', who exited, get the parent that the kernel gave them. The
 * exit is recorded before the kernel passes them on, which a large process comes to
 * late: to be called again at its reap.
 */
void quark_reparent(struct quark_queue_priv *qq, struct quark_proc *old);

/* By the backend's look; by the reader of whom that does not show (reader.c). */
bool quark_exists(struct quark_queue_priv *qq, const struct quark_process *p);
uint32_t quark_parent_of(struct quark_queue_priv *qq,
			 const struct quark_process *p);
/* As quark_reader_strings(); each has a start, which is compared. */
void quark_read_strings(struct quark_queue_priv *qq, struct quark_text *texts,
			size_t n, struct strbuf *sb);
/* What is known, in its place in *out. */
void quark_text_spans(const struct quark_text *t, const struct strbuf *sb,
		      struct quark_strings_init *out);

/* The processes there are, into the cache (walk.c). */
int quark_walk_first(struct quark_queue_priv *qq);
/* After a loss; to be called while nothing ripe waits. */
void quark_walk_again(struct quark_queue_priv *qq);

/* Why open failed (error.c). */
void quark_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void quark_error_reset(void);
/* Why BTF could not be read: -ENOTSUP, there is none, or what the system lacks. */
int quark_btf_error(void);
/* The capabilities that are wanted and missing, "" if none. */
const char *quark_missing_caps(void);

#endif /* QUARK_PRIV_H */
