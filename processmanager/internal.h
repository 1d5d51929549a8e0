/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of processmanager share. References:
 *
 *   pm_proc   (tgid, start_boottime); owns its images, newest first, and the
 *             set of an exec under way ("pending")
 *   pm_image  one exec generation of a process; holds a pm_mm
 *   pm_mm     an address space; two images that really share one have the same:
 *             vfork's child and its parent, a provisional image and the exec
 *             under way
 *   pm_set    the mappings of an address space, shared by a fork's child until
 *             one of the two maps something
 *   pm_exe    a file; held by each mapping of it, and by others
 */
#ifndef PROCESSMANAGER_INTERNAL_H
#define PROCESSMANAGER_INTERNAL_H

#include <sys/queue.h>

#include "base/base.h"
#include "processmanager/processmanager.h"

/* Between two re-reads of a process's mappings. */
#define PM_WANT_INTERVAL CLOCK_NSEC_PER_SEC
/* ... while they are stale: an exec may have invalidated the scan. */
#define PM_STALE_INTERVAL (200 * CLOCK_NSEC_PER_MSEC)
/* No exec takes longer from its mark (or COMM record) to its event. */
#define PM_EXEC_MAX CLOCK_NSEC_PER_SEC
/* A process floods until so long after its last excess record. */
#define PM_FLOOD_NS (2 * CLOCK_NSEC_PER_SEC)
/* From the exit of a process whose reap does not come until it is forgotten. */
#define PM_EXIT_GRACE (10 * CLOCK_NSEC_PER_SEC)
/* /proc is checked so long before: the reap may still be queued then. */
#define PM_REAP_GRACE (2 * CLOCK_NSEC_PER_SEC)
/* Zombies kept beyond that, for the exact CPU time of their reap. */
#define PM_ZOMBIES 1024
/* Forgotten processes whose keys are kept: half a second of 2,000 exits/s. */
#define PM_GONE 1024
#define PM_OPEN_FILES 512
#define PM_IDLE_EXES 256
#define PM_PAST_MAX (PM_HISTORY_MAX - 1)
/*
 * A file without mappings stays open for so long: a program that is run again and again
 * is opened once. On another file system than the root's it keeps that from being
 * unmounted.
 */
#define PM_UNMAPPED_GRACE (4 * CLOCK_NSEC_PER_SEC)
#define PM_UNMAPPED_SOON (300 * CLOCK_NSEC_PER_MSEC)
/* A set grows by so many before a re-read: munmap(2) is not reported. */
#define PM_SET_SPARE 256
/* More than one process can map: the default of vm.max_map_count is 65,530. */
#define PM_SET_MAX 262144
/* A small program's mappings, and the room that inserting one may need. */
#define PM_SET_FEW 8
/* Free blocks kept of each kind: about what is allocated in a tick. */
#define PM_POOL 256

#define PM_CLONE_VM 0x100ULL
#define PM_CLONE_THREAD 0x10000ULL

TAILQ_HEAD(pm_exes, pm_exe);
TAILQ_HEAD(pm_opens, pm_open);
TAILQ_HEAD(pm_procs, pm_proc);
TAILQ_HEAD(pm_reqs, pm_req);

/* --- str.c: strings, each kept once, and users' shares -------------------- */

struct pm_str {
	struct hash_node node;
	struct pm_user *user; /* the share it counts in, or NULL */
	uint32_t refs;
	uint32_t len; /* without the NUL that follows */
	char s[];
};

/* Bytes of all paths and arguments. */
#define PM_TEXT_MAX (32 << 20)
/* So much of the arguments of a living process is always kept. */
#define PM_ARGS_LEAST 512
/* Of the arguments of a replaced image, and of all such of a process. */
#define PM_PAST_ARGS 4096
#define PM_PAST_TEXT (4 * PM_PAST_ARGS)

struct pm_str *pm_str_new(struct pm *pm, const char *s, size_t len);
/* NULL is allowed in both. */
struct pm_str *pm_str_get(struct pm_str *str);
void pm_str_put(struct pm *pm, struct pm_str *str);
/* Sets *slot to (s, len). 0; -ENOMEM, counted: *slot is unchanged. */
int pm_str_set(struct pm *pm, struct pm_str **slot, const char *s, size_t len);

/* Executables that are files; 1 KiB each, without the path. */
#define PM_EXES_MAX 32768
/* Mappings, those of a shared set once; 32 bytes each, a third unused. */
#define PM_MAPS_MAX (1 << 20)
/* Files being opened and identified: the opener and the workers never idle. */
#define PM_OPENS_MAX 64
/* Roots of processes, held open for the perf maps that these may write at their end. */
#define PM_ROOTS_MAX 64

/*
 * What users have shares of, each with a maximum for all together. A user may
 * have as much as is still free: one user alone gets at most half, two a third
 * each, so there is always room for another.
 */
enum pm_share {
	PM_SHARE_TEXT, /* bytes; PM_TEXT_MAX */
	PM_SHARE_EXES, /* PM_EXES_MAX */
	PM_SHARE_MAPS, /* PM_MAPS_MAX */
	PM_SHARE_OPENS, /* openings under way; PM_OPENS_MAX */
	PM_SHARE_QUEUED, /* openings that wait; counted only */
	PM_SHARE_FILES, /* files held open; counted only */
	PM_SHARE_ROOTS, /* roots held for perf maps; PM_ROOTS_MAX */
	PM_SHARES,
};

/* Exists while any of its shares is not 0. */
struct pm_user {
	struct hash_node node; /* pm->users */
	uint32_t uid;
	uint64_t has[PM_SHARES];
	struct pm_opens queue; /* openings that wait, in order */
	TAILQ_ENTRY(pm_user) turn; /* pm->turns, while the queue is not empty */
};

/*
 * The user, which may have no share yet: the caller then calls pm_user_take(),
 * or pm_user_give() with 0. NULL without memory.
 */
struct pm_user *pm_user_of(struct pm *pm, uint32_t uid);
/* The user may have 'n' more. */
bool pm_user_may(const struct pm *pm, const struct pm_user *u,
		 enum pm_share what, uint64_t n);
void pm_user_take(struct pm *pm, struct pm_user *u, enum pm_share what,
		  uint64_t n);
/* Frees the user when all its shares are 0. */
void pm_user_give(struct pm *pm, struct pm_user *u, enum pm_share what,
		  uint64_t n);

/*
 * The string, in the share of a user. Where that is used up, the string's first
 * 'least' bytes, or NULL if that is 0, and *cut is set to true. Otherwise NULL
 * means no memory.
 */
struct pm_str *pm_str_new_of(struct pm *pm, uint32_t uid, const char *s,
			     size_t len, size_t least, bool *cut);
/* Its user exceeds the share of text. */
bool pm_str_beyond(const struct pm *pm, const struct pm_str *str);
/* Sets *slot as pm_str_set() does, to the result of pm_str_new_of(). */
int pm_str_set_of(struct pm *pm, struct pm_str **slot, uint32_t uid,
		  const char *s, size_t len, size_t least, bool *cut);

/* --- mapset.c: mappings --------------------------------------------------- */

enum pm_text {
	PM_TEXT_FILE, /* it maps the file */
	PM_TEXT_MAYBE, /* memory in place of the file's code: perhaps a copy, see copy.c */
	PM_TEXT_COPY, /* such memory, and it is one */
};

struct pm_map {
	uint64_t start, end;
	uint64_t pgoff : 62;
	uint64_t text : 2; /* enum pm_text */
	struct pm_exe *exe; /* a reference */
};

struct pm_set {
	uint32_t refs;
	uint32_t n, cap;
	uint32_t gap; /* mappings before the array's unused part */
	struct pm_user *user; /* the share its mappings count in */
	struct pm_map *v; /* by address, without overlap */
	struct pm_map few[PM_SET_FEW]; /* v, while there is room */
};

/* The i-th of a set, i < n. */
static inline struct pm_map *pm_set_at(const struct pm_set *set, uint32_t i)
{
	return &set->v[i < set->gap ? i : i + (set->cap - set->n)];
}

struct pm_mm {
	uint32_t refs;
	uint32_t reread_at; /* number of mappings at which it is re-read */
	bool partial; /* mappings are missing; those it has are right */
	bool scanned; /* read from /proc, from scan_begin to scan_end */
	uint64_t whole; /* records dropped before do not concern it */
	uint64_t lost_until; /* dropped records of this one only; 0: none */
	uint64_t flood_until; /* ... because it made too many */
	uint64_t last; /* time of the latest record applied */
	/* Time of the exec mark or COMM record; 0: before all records. */
	uint64_t since;
	uint64_t scan_begin, scan_end;
	uint64_t known_from; /* of 'scanned': no answer is of a time before */
	struct pm_set *set; /* NULL: empty */
	struct pm_exe *first; /* the first file mapped: the executable */
	struct pm_exe *anon; /* made when first needed */
	uint64_t copy_at; /* a copy of code is not looked for before, */
	uint32_t copy_tries; /* since so many comparisons failed */
	struct pm_exe *dumps[PM_CODE_DUMPS]; /* jitdumps, newest first, or NULL */
};

struct pm_mm *pm_mm_new(struct pm *pm, uint64_t since);
/* One whose mappings are not known. Without memory NULL, counted. */
struct pm_mm *pm_mm_unknown(struct pm *pm);
struct pm_mm *pm_mm_fork(struct pm *pm, struct pm_mm *parent);
struct pm_mm *pm_mm_get(struct pm_mm *mm);
void pm_mm_put(struct pm *pm, struct pm_mm *mm);
/* The time up to which records that concern it may be missing; 0: none are. */
uint64_t pm_mm_lost_until(const struct pm *pm, const struct pm_mm *mm);
/* Records were dropped since: any of its mappings may have been replaced. */
bool pm_mm_stale(const struct pm *pm, const struct pm_mm *mm);
/* It is stale or partial. */
bool pm_mm_uncertain(const struct pm *pm, const struct pm_mm *mm);
/*
 * Maps [start, end), replacing what is there. Takes its own reference. Where
 * the user's share of mappings is used up, the earlier ones are dropped and mm
 * becomes partial; that is no error.
 */
int pm_mm_add(struct pm *pm, struct pm_mm *mm, uint32_t uid,
	      const struct pm_map *map);
/* Drops all its mappings. */
void pm_mm_void(struct pm *pm, struct pm_mm *mm);
struct pm_map *pm_mm_find(const struct pm_mm *mm, uint64_t addr);
/* Replaces mm's mappings by those of 'from', which is empty afterwards. */
void pm_mm_replace(struct pm *pm, struct pm_mm *mm, struct pm_mm *from);

/* --- apm.c: agents that wait for stacks ------------------------------------ */

#define PM_APM_USERS 64 /* accounts, which user ids share */

struct pm_agent;

struct pm_apm {
	TAILQ_HEAD(, pm_agent) agents;
	struct hash stacks; /* that wait, of all */
	struct {
		uint32_t agents, waiting; /* stacks of theirs */
	} users[PM_APM_USERS];
};

/* The image ends. */
void pm_apm_forget(struct pm *pm, struct pm_image *img);

/* --- exe.c, open.c: executables ------------------------------------------- */

struct pm_exe_key;

struct pm_exe {
	TAILQ_ENTRY(pm_exe) all; /* pm->exes */
	TAILQ_ENTRY(pm_exe) idle; /* pm->idle, while refs is 0 */
	TAILQ_ENTRY(pm_exe) lru; /* pm->open, while it holds a file */
	TAILQ_ENTRY(pm_exe) busy; /* pm->busy, while there are requests */
	struct pm_reqs reqs; /* see queue.c */
	struct pm_open *queued; /* its opening, while that waits for its turn */
	struct pm *pm;
	/* It has the content of this one, whose file is read for both. */
	struct pm_exe *same;
	LIST_HEAD(, pm_exe_key) keys;
	struct pm_str *path; /* ".../NAME": the user's share was used up */
	struct pm_user *user; /* the share it counts in, or NULL */
	uint64_t serial;
	enum pm_exe_kind kind;
	uint32_t refs;
	uint32_t mapped; /* mappings of it and of those with equal content */
	uint32_t resolving; /* requests the symbolizer has */
	uint32_t tries; /* failed openings since the last success */
	int open_error;
	int rows, names; /* as in pm_exe_info */
	uint64_t rows_bytes; /* likewise */
	uint64_t sources[SYMBOLIZER_N_SOURCES]; /* likewise */
	bool opening;
	bool opened;
	bool hurry; /* samples wait for its rows */
	uint64_t retry_at;
	uint64_t unmapped_at; /* when the last mapping went */
	struct symbolizer_file *file;
	struct pm_code *code; /* of ANON: see code.c */
	bool jitdump; /* it is named like one: not opened as an executable */
	struct symbolizer_ident ident;
	struct symbolizer_segment *segments;
	size_t nsegments;
	struct symbolizer_slot slot;
	struct symbolizer_go go; /* of its rows, once they were read */
	uint64_t short_id;
	uint64_t dev, ino; /* as the kernel reported for its mapping, with */
	uint64_t generation; /* ... 0: not known */
	uint64_t file_dev, file_ino; /* as stat(2) reports, once opened */
	/* Its last mapping: a way to the file. */
	struct {
		uint64_t start_boottime;
		uint64_t start, end;
		uint32_t tgid;
		uint32_t uid; /* of the process's newest image then */
	} via;
};

struct pm_proc;

/* Its file is opened by open.c. */
static inline bool pm_exe_opens(const struct pm_exe *exe)
{
	return exe->kind == PM_EXE_FILE || exe->kind == PM_EXE_ANON;
}

int pm_exe_init(struct pm *pm);
void pm_exe_fini(struct pm *pm);
/*
 * The executable of a mapping. 0, with a reference in *exep; -ENOMEM, counted;
 * -EDQUOT, counted: it is a new file, and the user's share is used up.
 */
int pm_exe_of(struct pm *pm, const struct pm_map_event *ev,
	      const struct pm_proc *proc, struct pm_exe **exep);
/* Takes over the path, also on error; NULL path: no memory. */
struct pm_exe *pm_exe_new(struct pm *pm, enum pm_exe_kind kind,
			  struct pm_str *path);
/* The root if it has the same path; otherwise the executable itself. */
struct pm_exe *pm_exe_shown(const struct pm_exe *exe);
/* A file that could be opened, and is no ELF file. */
bool pm_exe_is_bare(const struct pm_exe *exe);
/* Length of 'path' without the kernel's " (deleted)". */
size_t pm_exe_path_len(const char *path);
/* The other executable with identity 'id'; NULL: it is this one's now. */
struct pm_exe *pm_exe_identify(struct pm_exe *exe,
			       const struct symbolizer_ident *id);
void pm_exe_close(struct pm_exe *exe);
/* Makes its file the most recently used. */
void pm_exe_touch(struct pm_exe *exe);
/* Its open file becomes that of another one of the same user, which has none. */
void pm_exe_give_file(struct pm_exe *exe, struct pm_exe *to);
/* It has 'n' mappings more, or fewer. */
void pm_exe_mapped(struct pm_exe *exe, int64_t n);
/* Closes files that have not been mapped for a while. */
void pm_open_release(struct pm *pm);
/* Notes when an unmapped executable's file is to be closed. */
void pm_release_later(struct pm_exe *exe);
/*
 * Opens its file. 0: it will be opened, or fail, which pm_reqs_opened()
 * reports. Or the error of the last try, if it is too early for another one.
 */
int pm_exe_open(struct pm_exe *exe);
/* Begins openings that have room. May complete requests, also the caller's. */
void pm_open_queued(struct pm *pm);
/* Drops all openings; the requests for these files remain. */
void pm_open_cancel(struct pm *pm);

/*
 * The executable had this identity when it was executed: the kernel side lists
 * it as known while that file is open.
 */
void pm_exe_know(struct pm_exe *exe, const struct quark_file_ident *ident);
/* Its rows were read. */
void pm_exe_set_go(struct pm_exe *exe, const struct symbolizer_go *go);
/* Its file was closed: it may be deleted by its next exec. */
void pm_exe_unpinned(struct pm_exe *exe);
bool pm_exe_knows(struct pm *pm, const struct quark_file_ident *ident);
/* It was another file when it was executed before: it has changed. */
bool pm_exe_knows_other(const struct pm_exe *exe,
			const struct quark_file_ident *ident);
/*
 * Ends the opening that pm_early_adopt() announced; takes over 'file'. After an
 * error the lookup strategies are tried.
 */
void pm_exe_given(struct pm_exe *exe, int err, struct symbolizer_file *file);

/* --- code.c: perf maps and jitdumps, the files of executable memory --------- */

/* A process that has this memory, and the address space with the jitdumps that it maps. */
void pm_code_via(struct pm_exe *exe, const struct pm_proc *proc,
		 const struct pm_mm *mm);
/* It has 'n' mappings more, or fewer: so have its sources. */
void pm_code_mapped(struct pm_exe *exe, int64_t n);
/* The path is one of a jitdump. */
bool pm_code_is_dump(const char *path);
void pm_code_free(struct pm_exe *exe);
/* To be called often: notes when the host was suspended. */
void pm_code_tick(struct pm *pm);
/* How to open the file; or an error. */
int pm_code_request(struct pm_exe *exe, struct symbolizer_open_req *req);
/* If its process has ended, and its map was looked for if need be, its root is closed. */
void pm_code_ended(struct pm_exe *exe);
void pm_code_opened(struct pm_exe *exe, const struct symbolizer_file *file);
/* The pause after a failed attempt. */
uint64_t pm_code_wait(const struct pm_exe *exe);
/* Its file could not be opened: if it had one before, it has that again. */
void pm_code_look_failed(struct pm_exe *exe);
/* The one with the names of samples of 'time': itself, or one with its file of then. */
struct pm_exe *pm_code_exe_at(struct pm_exe *exe, uint64_t time);
/* As symbolizer_resolve(), for addresses at the times of their samples; the kernel, too. */
int pm_code_resolve(struct pm_exe *exe, const uint64_t *offsets,
		    const uint64_t *times, size_t n, symbolizer_resolve_fn fn,
		    void *arg);
/* As pm_exe_code_rows(), with its file open. */
int pm_code_rows(struct pm_exe *exe, uint64_t time, symbolizer_rows_fn fn,
		 void *arg);

/* --- copy.c: memory with a copy of a file's code -------------------------- */

/*
 * The mapping, which is PM_TEXT_MAYBE, becomes PM_TEXT_COPY if the process's memory has the
 * file's bytes there. Returns whether it did. Reads memory of the process at most ten times
 * a second, and less often the more comparisons have failed.
 */
bool pm_copy_check(struct pm *pm, struct pm_image *img, struct pm_mm *mm,
		   struct pm_map *map);

/* --- queue.c: requests for names and rows --------------------------------- */

/* The opening that requests waited for has ended. */
void pm_reqs_opened(struct pm_exe *exe, int err);
/* Answers the refused requests. */
void pm_reqs_refuse(struct pm *pm);

/* --- turns.c: openings, by user ------------------------------------------- */

/* The opening of an executable's file. */
struct pm_open {
	TAILQ_ENTRY(pm_open) node; /* pm->opens, or its user's queue */
	struct pm *pm; /* NULL: freed; the file is closed when it comes */
	struct symbolizer *symbolizer;
	struct pm_exe *exe; /* a reference */
	struct pm_user *user; /* the share it counts in */
	unsigned int lookup; /* strategy to try next */
	uint32_t tried; /* pid of the first lookup */
	int err; /* of the first lookup that failed */
};

/*
 * Makes room for 'more' open files of a user (NULL: of none), if need be by
 * closing files of that user or of the one that has the most.
 */
bool pm_open_room(struct pm *pm, const struct pm_user *u, uint32_t more);
/* It can begin at once: its user has none in the queue, and there is room. */
bool pm_turn_free(const struct pm_open *o);
/* Puts it into its user's queue. */
void pm_turn_wait(struct pm_open *o);
/* Takes out the next one to begin, counted as under way; NULL: none may. */
struct pm_open *pm_turn_next(struct pm *pm);
/* Any one of a queue, or NULL. */
struct pm_open *pm_turn_any(struct pm *pm);
/* Takes it out of the queue. Its user may be freed. */
void pm_turn_leave(struct pm_open *o);
/* Moves it to a user that maps the file too and has a shorter queue. */
void pm_turn_move(struct pm_open *o, uint32_t uid);
/* Moves it to the front of its user's queue. */
void pm_turn_hurry(struct pm_open *o);

/* --- early.c: files executed for the first time --------------------------- */

struct pm_early;

/*
 * True if the executable of a mapping needs no opening, because its file was
 * opened early, or is open or being opened otherwise.
 */
bool pm_early_adopt(struct pm_exe *exe, const struct pm_map_event *ev);
/* The executed file is not the one that the executable is known for. */
bool pm_early_changed(struct pm *pm, const struct pm_map_event *ev,
		      const struct pm_exe *exe);
/* Closes files whose mapping has not come. */
void pm_early_expire(struct pm *pm);
void pm_early_cancel(struct pm *pm);

/* --- image.c -------------------------------------------------------------- */

/* What the ledger reports of an image. */
struct pm_attrs {
	struct pm_str *exe, *cmdline, *cwd, *cgroup; /* or NULL */
	struct pm_str *service, *instance, *environment; /* likewise */
	uint64_t begin; /* of the exec event; 0: began with its process */
	uint64_t samples;
	uint32_t ppid, uid, gid;
	bool args_cut;
	char comm[16];
};

struct pm_image {
	TAILQ_ENTRY(pm_image) ended_node; /* pm->ended, once replaced */
	struct pm_image *older;
	struct pm_proc *proc;
	struct pm_mm *mm;
	struct pm_exe *main_exe; /* a reference, or NULL */
	struct pm_agent *agent; /* that listens, or NULL */
	uint64_t serial;
	uint64_t exec_id;
	uint64_t made; /* provisional: time of the sample that made it */
	uint64_t ended; /* when a newer one replaced it */
	bool replaced;
	bool provisional;
	bool kthread;
	struct pm_attrs a;
};

void pm_attrs_fini(struct pm *pm, struct pm_attrs *a);
/* What is the same for all images of a process, ids, and the attributes. */
void pm_attrs_info(const struct pm_proc *proc, uint64_t exec_id,
		   const struct pm_attrs *a, struct pm_image_info *out);
/*
 * Inserts a new image by exec_id, which inherits from 'from' (NULL: nothing).
 * Takes over a reference to the address space 'mm'.
 */
struct pm_image *pm_image_new(struct pm *pm, struct pm_proc *proc,
			      uint64_t exec_id, const struct pm_image *from,
			      struct pm_mm *mm);
/* It must not be in the list of its process. */
void pm_image_free(struct pm *pm, struct pm_image *img);
struct pm_image *pm_image_find_id(const struct pm_proc *proc, uint64_t exec_id);
/* Applies an event's process record. 0 or -ENOMEM, counted. */
int pm_image_apply(struct pm *pm, struct pm_image *img,
		   const struct quark_process *qp);
void pm_image_set_mm(struct pm *pm, struct pm_image *img, struct pm_mm *mm);
void pm_image_set_main(struct pm_image *img, struct pm_exe *exe);
void pm_image_end(struct pm *pm, struct pm_image *img, uint64_t time);
/* Requests a re-read of the mappings, if that is of use and not too early. */
void pm_image_want(struct pm *pm, struct pm_image *img);
/*
 * The living process whose address space this one borrows, as after vfork(2);
 * the process itself, if it borrows none.
 */
struct pm_proc *pm_lender(struct pm_proc *proc);

/* --- history.c ------------------------------------------------------------ */

struct pm_past;

/* Moves the attributes of an image that will be freed into the history. */
void pm_past_add(struct pm *pm, struct pm_image *img);
bool pm_past_has(struct pm_proc *proc, uint64_t exec_id);
/* Moves them back if a late sample or event makes the image again. */
void pm_past_take(struct pm *pm, struct pm_image *img);
void pm_past_drop(struct pm *pm, struct pm_proc *proc);

/* --- proc.c --------------------------------------------------------------- */

struct pm_proc {
	struct hash_node node; /* pm->procs, by tgid */
	TAILQ_ENTRY(pm_proc) all; /* pm->all */
	TAILQ_ENTRY(pm_proc) over; /* *over_in */
	struct pm_procs *over_in; /* pm->exited, leaving, reaped; NULL: lives */
	struct pm_proc
		*parent; /* that forked it, or its nearest known ancestor */
	LIST_HEAD(, pm_proc) children;
	LIST_ENTRY(pm_proc) sibling; /* while it has a parent */
	struct pm_image *images; /* newest first; empty only during creation */
	struct pm_past *past; /* the history of older ones, newest first */
	struct pm_mm *pending; /* of an exec whose event has not come */
	uint64_t pending_id; /* the generation that exec makes */
	uint64_t start_boottime;
	uint64_t exec_time; /* of the last exec event */
	uint64_t exit_time;
	uint64_t last_seen; /* a sign of life after its exit; 0: none */
	uint64_t reap_time;
	uint64_t wanted_at; /* when a re-read was last requested */
	uint64_t unread_until; /* /proc did not answer: not read before */
	uint64_t parent_start; /* of the parent at the fork; 0: unknown */
	uint64_t cpu_ns, user_ns, system_ns;
	uint64_t maxrss, minflt, majflt;
	uint64_t samples;
	uint32_t tgid;
	uint32_t parent_tgid;
	uint32_t sid, pgid;
	uint32_t leader_type, leader;
	uint32_t execs;
	int32_t wait_status;
	enum pm_cpu cpu;
	bool exited;
	bool exit_known; /* its exit has a record, so the status is known */
	bool reaped;
	bool before; /* found by the scan at the start */
	bool missing; /* not found by the current rescan yet */
	bool vanished; /* exited, according to a rescan only */
	bool selected;
	bool forked; /* its fork event has come, or a scan has found it */
	bool zombie; /* one of pm->nzombies */
	bool late; /* was forgotten, and made again by a late sample */
	bool hidden; /* no event of it comes, nor of its forks */
	bool scan_due; /* existed before, and its mappings are not read yet */
};

struct pm_proc *pm_proc_find(const struct pm *pm, uint32_t tgid,
			     uint64_t start_boottime);
/* The process that had this pid at 'time'. */
struct pm_proc *pm_proc_at(const struct pm *pm, uint32_t tgid, uint64_t time);
/* Has no image: the caller makes one at once, or frees it. */
struct pm_proc *pm_proc_new(struct pm *pm, uint32_t tgid,
			    uint64_t start_boottime);
void pm_proc_free(struct pm *pm, struct pm_proc *proc);
/* Of its newest image. */
uint32_t pm_proc_uid(const struct pm_proc *proc);
void pm_proc_set_parent(struct pm_proc *proc, struct pm_proc *parent);
void pm_proc_drop_pending(struct pm *pm, struct pm_proc *proc);
void pm_proc_exited(struct pm *pm, struct pm_proc *proc, uint64_t time);
/* A sample of that time is late, or its process was forgotten already. */
bool pm_proc_gone(const struct pm *pm, uint32_t tgid, uint64_t start_boottime,
		  uint64_t time);
/* Such a process is forgotten after its grace time. */
void pm_proc_late(struct pm *pm, struct pm_proc *proc, uint64_t time);
/*
 * A sign of life. If a rescan took the process for ended, it lives; if it did
 * exit, it is still ending, and its grace time begins again.
 */
void pm_proc_alive(struct pm *pm, struct pm_proc *proc, uint64_t time);
void pm_proc_reaped(struct pm *pm, struct pm_proc *proc, uint64_t time);

/* --- process.c ------------------------------------------------------------ */

/* /proc has the process, maybe as a zombie; true also if it does not answer. */
bool pm_process_there(struct pm *pm, struct pm_proc *proc);

/* "PID-" and the start in hex: the same in each computation within a boot. */
char *pm_process_id(char *buf, uint32_t tgid, uint64_t start_boottime);
/* Writes the digits and a NUL, and returns the NUL's place. */
char *pm_put_decimal(char *at, uint64_t v);

/* --- pm.c ----------------------------------------------------------------- */

struct pm {
	struct pm_opts opts;
	struct hash procs;
	struct hash strs;
	struct hash users; /* struct pm_user, by uid */
	uint64_t shared[PM_SHARES]; /* the shares of all users */
	struct hash exe_keys;
	struct pool proc_pool, image_pool, mm_pool, set_pool;
	struct pm_procs all; /* in the order in which they became known */
	struct pm_exes exes; /* all */
	struct pm_exes idle; /* without references; longest first */
	struct pm_exes open; /* holding a file; least recently used first */
	struct pm_exes busy; /* with requests */
	struct pm_opens opens; /* under way */
	TAILQ_HEAD(, pm_user) turns; /* users with openings in their queues */
	TAILQ_HEAD(, pm_early) early; /* oldest first */
	struct pm_procs exited, reaped; /* by time */
	struct pm_procs leaving; /* exited, and not in /proc any more */
	TAILQ_HEAD(, pm_image) ended; /* by time */
	bool refused; /* there are refused requests */
	uint64_t release_at; /* no file in 'open' is to be released before */
	struct {
		uint64_t start_boottime;
		uint32_t tgid;
		uint32_t pad;
	} gone[PM_GONE]; /* a ring */
	uint32_t gone_at;
	uint32_t nzombies;
	uint64_t forgotten; /* everything before is done */
	uint32_t nidle;
	uint32_t nearly; /* in early */
	bool closing;
	uint64_t now; /* the latest time of any record */
	struct patience patience; /* for reads of /proc */
	struct {
		uint64_t ns, before; /* in all, and before the last time */
		uint64_t seen, from; /* when that was read last; ... */
	} slept; /* see code.c */
	uint64_t serial;
	uint64_t lost_until; /* end of the last gap in the mapping stream */
	uint64_t lost_ns; /* length of all of them */
	uint64_t gap_until, gap_ns; /* the same of the lifecycle stream */
	uint64_t begin; /* unknown processes that began before are expected */
	uint64_t rescan; /* begin of the current rescan; 0: none */
	struct pm_exe *kernel, *vdso, *vsyscall;
	struct pm_exe *anon; /* executable memory, inside of sets */
	struct pm_apm apm;
	struct pm_stats stats;
};

/* A process is selected with its parent. */
static inline bool pm_selects(const struct pm *pm, const struct pm_proc *proc,
			      const struct pm_proc *parent)
{
	return parent && parent->selected &&
	       proc->tgid != pm->opts.never_select;
}

/* Counts, and returns -ENOMEM. */
int pm_nomem(struct pm *pm);
/* These call the functions in pm->opts. */
void pm_limited(struct pm *pm, uint32_t uid, enum pm_limit what, uint64_t n);
void pm_known_file(struct pm *pm, const struct quark_file_ident *ident,
		   bool known);
void pm_go_file(struct pm *pm, const struct quark_file_ident *ident,
		const struct symbolizer_go *go);

/*
 * Adds a gap to the sum of all gaps; where gaps of several CPUs overlap, time
 * counts once. Returns the sum in ms.
 */
static inline uint64_t pm_span_ms(uint64_t from, uint64_t until,
				  uint64_t *so_far, uint64_t *sum)
{
	from = MAX(from, *so_far);
	if (until > from)
		*sum += until - from;
	*so_far = MAX(*so_far, until);
	return *sum / CLOCK_NSEC_PER_MSEC;
}

static inline void pm_tick(struct pm *pm, uint64_t time)
{
	if (time > pm->now)
		pm->now = time;
}

#endif /* PROCESSMANAGER_INTERNAL_H */
