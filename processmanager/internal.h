/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of processmanager share. Who points to whom:
 *
 *   pm_proc   (tgid, start_boottime); owns its images, newest first, and the
 *             set of an exec under way ("pending")
 *   pm_image  one exec generation of a process; holds a pm_mm
 *   pm_mm     an address space, shared by those who really share one: vfork's
 *             child with its parent, a provisional image with the exec under
 *             way. What one maps the other sees
 *   pm_set    the mappings of an address space, shared by a fork's child until
 *             one of the two maps something
 *   pm_exe    a file; held by every mapping of it, and by others
 */
#ifndef PROCESSMANAGER_INTERNAL_H
#define PROCESSMANAGER_INTERNAL_H

#include "base/base.h"
#include "processmanager/processmanager.h"

#define PM_WANT_INTERVAL CLOCK_NSEC_PER_SEC
/* ... of one whose mappings are in doubt: an exec may have spoilt a reading. */
#define PM_DOUBT_INTERVAL (200 * CLOCK_NSEC_PER_MSEC)
/* No exec takes longer, from its mark (COMM record without BPF) to its event. */
#define PM_EXEC_MAX CLOCK_NSEC_PER_SEC
/* So long after the last record that was too many a process floods. */
#define PM_FLOOD_NS (2 * CLOCK_NSEC_PER_SEC)
#define PM_EXIT_GRACE (10 * CLOCK_NSEC_PER_SEC)
/* So long before its end /proc is asked: a reap may be on its way meanwhile. */
#define PM_REAP_GRACE (2 * CLOCK_NSEC_PER_SEC)
/* Zombies beyond their grace, kept for the CPU time that their reap tells. */
#define PM_ZOMBIES 1024
/* Processes that were forgotten last: at 2,000 lives a second half of one. */
#define PM_GONE 1024
#define PM_OPEN_FILES 512
#define PM_IDLE_EXES 256
#define PM_PAST_MAX (PM_HISTORY_MAX - 1)
/* Longer than samples wait for their names. */
#define PM_UNMAPPED_GRACE (4 * CLOCK_NSEC_PER_SEC)
/* So many mappings more may have gone unseen: nothing tells of munmap(2). */
#define PM_SET_SPARE 256
/* More than any process may map by itself: vm.max_map_count's usual 65,530. */
#define PM_SET_MAX 262144
/* A small program's mappings, and what a mapping put in may need. */
#define PM_SET_FEW 8
/* As many blocks of a kind are kept for those to come: a tick's worth of lives. */
#define PM_POOL 256

#define PM_CLONE_VM 0x100ULL
#define PM_CLONE_THREAD 0x10000ULL

struct pm_list {
	struct pm_list *prev, *next;
};

static inline void pm_list_init(struct pm_list *l)
{
	l->prev = l->next = l;
}

static inline bool pm_list_empty(const struct pm_list *l)
{
	return l->next == l;
}

/* Also of a node that is in no list; it is in none afterwards. */
static inline void pm_list_del(struct pm_list *n)
{
	n->prev->next = n->next;
	n->next->prev = n->prev;
	pm_list_init(n);
}

static inline void pm_list_add_tail(struct pm_list *l, struct pm_list *n)
{
	n->prev = l->prev;
	n->next = l;
	l->prev->next = n;
	l->prev = n;
}

/* --- str.c: strings, each kept once ---------------------------------------- */

struct pm_str {
	struct hash_node node;
	struct pm_user *user; /* whose share it is of; NULL: of nobody's */
	uint32_t refs;
	uint32_t len; /* without the NUL that follows */
	char s[];
};

/*
 * All that is remembered of what processes say of themselves. A user may have as
 * much as is still free: so one alone gets half of it at most, and two a third
 * each, and there is room for whoever comes then.
 */
#define PM_TEXT_MAX (32 << 20)
/* So much of the arguments of a living process is kept in any case. */
#define PM_ARGS_LEAST 512
/* Of an image that was replaced, and of all such of a process. */
#define PM_PAST_ARGS 4096
#define PM_PAST_TEXT (4 * PM_PAST_ARGS)

struct pm_str *pm_str_new(struct pm *pm, const char *s, size_t len);
struct pm_str *pm_str_get(struct pm_str *str); /* NULL is fine, here too: */
void pm_str_put(struct pm *pm, struct pm_str *str);
/*
 * Makes *slot the string (s, len); 0 or -ENOMEM, counted, and *slot as it was.
 */
int pm_str_set(struct pm *pm, struct pm_str **slot, const char *s, size_t len);

/* Executables that are files, known at once; 1 KiB each without its path. */
#define PM_EXES_MAX 32768
/* Mappings, a shared set's once; 32 bytes each and half of that to spare. */
#define PM_MAPS_MAX (1 << 20)

/*
 * Files that are being opened and identified at once: enough that the opener and
 * the workers never wait for the loop.
 */
#define PM_OPENS_MAX 64

/* What users have shares of, each with a maximum for all of them together. */
enum pm_share {
	PM_SHARE_TEXT, /* bytes; PM_TEXT_MAX */
	PM_SHARE_EXES, /* PM_EXES_MAX */
	PM_SHARE_MAPS, /* PM_MAPS_MAX */
	PM_SHARE_OPENS, /* struct pm_open under way; PM_OPENS_MAX */
	PM_SHARE_QUEUED, /* struct pm_open that wait; counted only */
	PM_SHARE_FILES, /* files held open; counted only */
	PM_SHARES,
};

/* What a user has of each. It exists as long as any of that is not 0. */
struct pm_user {
	struct hash_node node; /* pm->users */
	uint32_t uid;
	uint64_t has[PM_SHARES];
	struct pm_list queue; /* struct pm_open that wait, in order */
	struct pm_list turn; /* pm->turns, while there are any */
};

/*
 * The user, who may have nothing yet: to be followed by pm_user_take(), or, if that
 * is not to be, pm_user_give() of 0. NULL without memory.
 */
struct pm_user *pm_user_of(struct pm *pm, uint32_t uid);
/* He may have 'n' more: as much as is still free, of which one has half then. */
bool pm_user_may(const struct pm *pm, const struct pm_user *u,
		 enum pm_share what, uint64_t n);
void pm_user_take(struct pm *pm, struct pm_user *u, enum pm_share what,
		  uint64_t n);
void pm_user_give(struct pm *pm, struct pm_user *u, enum pm_share what,
		  uint64_t n);

/*
 * The string, of the share of a user. Where that is used up the first 'least'
 * bytes of it, or, if that is 0, none: *cut is true then, and else not changed,
 * and NULL is not for want of memory.
 */
struct pm_str *pm_str_new_of(struct pm *pm, uint32_t uid, const char *s,
			     size_t len, size_t least, bool *cut);
/* Its user has more than his share. */
bool pm_str_beyond(const struct pm *pm, const struct pm_str *str);
/* As pm_str_set(), but *slot becomes what pm_str_new_of() gives. */
int pm_str_set_of(struct pm *pm, struct pm_str **slot, uint32_t uid,
		  const char *s, size_t len, size_t least, bool *cut);

/* --- mapset.c: mappings ---------------------------------------------------- */

struct pm_map {
	uint64_t start, end, pgoff;
	struct pm_exe *exe; /* a reference */
};

struct pm_set {
	uint32_t refs;
	uint32_t n, cap;
	uint32_t gap; /* mappings before the array's unused part */
	struct pm_user *user; /* in whose share its mappings count */
	struct pm_map *v; /* by address, without overlap */
	struct pm_map few[PM_SET_FEW]; /* ... while there is room */
};

/* The i-th of a set, i < n. */
static inline struct pm_map *pm_set_at(const struct pm_set *set, uint32_t i)
{
	return &set->v[i < set->gap ? i : i + (set->cap - set->n)];
}

struct pm_mm {
	uint32_t refs;
	uint32_t reread_at; /* so many mappings are worth a look */
	bool doubtful; /* something is missing; what is there, is right */
	bool walked; /* came from a walk, from walk_begin to walk_end */
	uint64_t whole; /* what was lost before does not concern it */
	uint64_t lost_until; /* records of this one alone; 0: none */
	uint64_t flood_until; /* ... by its own doing */
	uint64_t last; /* time of the latest record that went in */
	/*
	 * Time of the exec mark, or COMM record without BPF, that began it; 0: before
	 * what is known.
	 */
	uint64_t since;
	uint64_t walk_begin, walk_end;
	struct pm_set *set; /* NULL: empty */
	struct pm_exe *first; /* the first file mapped: the executable */
	struct pm_exe *anon; /* made when first asked for */
};

struct pm_mm *pm_mm_new(struct pm *pm, uint64_t since);
struct pm_mm *pm_mm_fork(struct pm *pm, struct pm_mm *parent);
struct pm_mm *pm_mm_get(struct pm_mm *mm);
void pm_mm_put(struct pm *pm, struct pm_mm *mm);
/* Time up to which records that concern it may be missing; 0: none are. */
uint64_t pm_mm_lost_until(const struct pm *pm, const struct pm_mm *mm);
/* Of what it has, any may be gone and replaced: records were lost since. */
bool pm_mm_lost(const struct pm *pm, const struct pm_mm *mm);
/* That, or something is missing in it. */
bool pm_mm_doubtful(const struct pm *pm, const struct pm_mm *mm);
/*
 * Maps [start, end), over whatever is there. Takes its own reference. Where the
 * user's share of mappings is used up, what was there before is dropped and mm is
 * doubtful, which is no error.
 */
int pm_mm_add(struct pm *pm, struct pm_mm *mm, uint32_t uid,
	      const struct pm_map *map);
/* Nothing is known of it any more. */
void pm_mm_void(struct pm *pm, struct pm_mm *mm);
const struct pm_map *pm_mm_find(const struct pm_mm *mm, uint64_t addr);
/* Puts 'from's mappings in the place of mm's; 'from' is empty afterwards. */
void pm_mm_replace(struct pm *pm, struct pm_mm *mm, struct pm_mm *from);

/* --- exe.c, open.c: executables -------------------------------------------- */

struct pm_exe_key;

struct pm_exe {
	struct pm_list all; /* pm->exes */
	struct pm_list idle; /* pm->idle, while refs is 0 */
	struct pm_list lru; /* pm->open, while it holds a file */
	struct pm_list reqs; /* struct pm_req, see queue.c */
	struct pm_list asking; /* pm->asking, while there are any */
	struct pm_open *queued; /* its opening, while that waits for its turn */
	struct pm *pm;
	/* It has the content of this one, whose file is read for both. */
	struct pm_exe *same;
	struct pm_exe_key *keys;
	struct pm_str *path; /* ".../NAME": its directory was too much */
	struct pm_user *user; /* in whose share it counts, or NULL */
	uint64_t serial;
	enum pm_exe_kind kind;
	uint32_t refs;
	uint32_t mapped; /* mappings of it, and of what is the same file */
	uint32_t resolving; /* requests the symbolizer has */
	uint32_t tries; /* failed ones since the last that succeeded */
	int open_error;
	int rows, names; /* as in pm_exe_info */
	bool opening;
	bool opened;
	bool hurry; /* samples wait for its rows */
	uint64_t retry_at;
	uint64_t unmapped_at; /* when the last mapping went */
	struct symbolizer_file *file;
	struct symbolizer_ident ident;
	struct symbolizer_segment *segments;
	size_t nsegments;
	uint64_t short_id;
	uint64_t dev, ino; /* as the kernel reported for its mapping, with */
	uint64_t generation; /* ... 0: not known */
	uint64_t file_dev, file_ino; /* as stat(2) has them, once opened */
	/* Who mapped it last, and where: a way to the file. */
	struct {
		uint64_t start_boottime;
		uint64_t start, end;
		uint32_t tgid;
		uint32_t uid; /* of its newest image then */
	} via;
};

struct pm_proc;

int pm_exe_init(struct pm *pm);
void pm_exe_fini(struct pm *pm);
/*
 * 0, with a reference in *exep; -ENOMEM, counted; -EDQUOT, counted: it is a new
 * file, and the user of the process has his share of them.
 */
int pm_exe_of(struct pm *pm, const struct pm_map_event *ev,
	      const struct pm_proc *proc, struct pm_exe **exep);
/* Takes over the path, also on error; NULL path: no memory. */
struct pm_exe *pm_exe_new(struct pm *pm, enum pm_exe_kind kind,
			  struct pm_str *path);
/* The user whose processes these are, as of now. */
uint32_t pm_proc_uid(const struct pm_proc *proc);
/* That, if it has the same path; otherwise itself. */
struct pm_exe *pm_exe_shown(const struct pm_exe *exe);
/* Length of 'path' without the kernel's " (deleted)". */
size_t pm_exe_path_len(const char *path);
/* The exe, not this one, that has the identity 'id'; else NULL, and it is the
 * identity of 'exe' from here on. */
struct pm_exe *pm_exe_identify(struct pm_exe *exe,
			       const struct symbolizer_ident *id);
/* Opens the file if there is reason and hope. */
void pm_exe_open_soon(struct pm_exe *exe);
void pm_exe_close(struct pm_exe *exe);
/* Its file was used just now. */
void pm_exe_touch(struct pm_exe *exe);
/* So many mappings of it more, or less. */
void pm_exe_mapped(struct pm_exe *exe, int64_t n);
/* Closes files that have not been mapped for a while. */
void pm_open_release(struct pm *pm);
/* It is not mapped: there will be something to close in a while. */
void pm_release_later(struct pm_exe *exe);
/*
 * Sees to it that its file is opened. 0: it will be, or was; pm_reqs_opened() says
 * so. Or the error of the last try, which is not to be repeated yet.
 */
int pm_exe_open(struct pm_exe *exe);
/* Begins the openings for which there is room now; never inside of a question. */
void pm_open_queued(struct pm *pm);
/* Drops all openings; the requests for these files stay. */
void pm_open_cancel(struct pm *pm);

/*
 * It turned out to be this file when it was executed: the kernel side is told that
 * it is known, as long as that very file is open.
 */
void pm_exe_know(struct pm_exe *exe, const struct quark_file_ident *ident);
/* Its file was closed: it may be deleted by its next exec. */
void pm_exe_unpinned(struct pm_exe *exe);
bool pm_exe_knows(struct pm *pm, const struct quark_file_ident *ident);
/* It was another file when it was executed before: it has changed. */
bool pm_exe_knows_other(const struct pm_exe *exe,
			const struct quark_file_ident *ident);
/*
 * The open that pm_early_adopt() promised has ended: takes over 'file'. With an
 * error the lookup strategies are tried.
 */
void pm_exe_given(struct pm_exe *exe, int err, struct symbolizer_file *file);

/* --- queue.c: requests for names and rows ------------------------------------- */

/* The opening that requests waited for has ended. */
void pm_reqs_opened(struct pm_exe *exe, int err);
/* Answers those that were refused, from outside of the question. */
void pm_reqs_fail(struct pm *pm);

/* --- turns.c: openings, by user ----------------------------------------------- */

/* How a file comes to be open. */
struct pm_open {
	struct pm_list node; /* pm->opens, or its user's queue */
	struct pm *pm; /* NULL: it is gone, only the file is to be closed */
	struct symbolizer *symbolizer;
	struct pm_exe *exe; /* a reference */
	struct pm_user *user; /* in whose share it counts */
	unsigned int lookup; /* strategy to try next */
	uint32_t tried; /* pid of the first lookup */
	int err; /* of the first lookup that had one */
};

/*
 * Room for 'more' files to be opened for a user (NULL: for nobody), made if need
 * be: closes files of his or of the user who has the most.
 */
bool pm_open_room(struct pm *pm, const struct pm_user *u, uint32_t more);
/* It can begin at once: its user has none that wait, and there is room. */
bool pm_turn_free(const struct pm_open *o);
/* Waits for the turn of its user. */
void pm_turn_wait(struct pm_open *o);
/* The next one to begin, which waits no more; NULL: none may. */
struct pm_open *pm_turn_next(struct pm *pm);
/* One that waits, or NULL. */
struct pm_open *pm_turn_any(struct pm *pm);
/* Waits no more. */
void pm_turn_leave(struct pm_open *o);
/* Another user maps the file now, and has fewer openings that wait. */
void pm_turn_move(struct pm_open *o, uint32_t uid);
/* Before all others of its user. */
void pm_turn_hurry(struct pm_open *o);

/* --- early.c: files executed for the first time ------------------------------ */

struct pm_early;

/*
 * True if the executable of a mapping needs no opening: its file is here, or
 * on its way, and it is given that, or it is open or on its way otherwise.
 */
bool pm_early_adopt(struct pm_exe *exe, const struct pm_map_event *ev);
/* The file was executed as another one than the executable is known for. */
bool pm_early_changed(struct pm *pm, const struct pm_map_event *ev,
		      const struct pm_exe *exe);
void pm_early_expire(struct pm *pm);
void pm_early_cancel(struct pm *pm);

/* --- image.c ---------------------------------------------------------------- */

struct pm_image {
	struct pm_list ended_node; /* pm->ended, once replaced */
	struct pm_image *older;
	struct pm_proc *proc;
	struct pm_mm *mm;
	struct pm_exe *main_exe; /* a reference, or NULL */
	struct pm_str *exe, *cmdline, *cwd, *cgroup;
	uint64_t serial;
	uint64_t exec_id;
	uint64_t made; /* provisional: time of the sample that named it */
	uint64_t begin; /* of the exec event; 0: none, it began with its process */
	uint64_t samples;
	uint64_t ended; /* when a newer one replaced it */
	uint32_t ppid, uid, gid;
	bool provisional;
	bool kthread;
	bool args_cut;
	char comm[16];
};

/*
 * A new image in its place by exec_id, with what 'from' hands down (NULL:
 * nothing) and the address space 'mm', of which it takes over a reference.
 */
struct pm_image *pm_image_new(struct pm *pm, struct pm_proc *proc,
			      uint64_t exec_id, const struct pm_image *from,
			      struct pm_mm *mm);
/* No list has it any more. */
void pm_image_free(struct pm *pm, struct pm_image *img);
struct pm_image *pm_image_find_id(const struct pm_proc *proc, uint64_t exec_id);
/* What the event's process record says. 0 or -ENOMEM, counted. */
int pm_image_apply(struct pm *pm, struct pm_image *img,
		   const struct quark_process *qp);
void pm_image_set_mm(struct pm *pm, struct pm_image *img, struct pm_mm *mm);
void pm_image_set_main(struct pm_image *img, struct pm_exe *exe);
void pm_image_end(struct pm *pm, struct pm_image *img, uint64_t time);
/* Asks for the mappings of 'img', if there is use and not too soon. */
void pm_image_want(struct pm *pm, struct pm_image *img);
/*
 * Who lent it its address space, as vfork(2) does, and is still there; itself,
 * if nobody did.
 */
struct pm_proc *pm_lender(struct pm_proc *proc);
/* What is the same for all images of a process, and ids. */
void pm_image_info_of(const struct pm_proc *proc, uint64_t exec_id,
		      uint64_t begin, struct pm_image_info *out);

/* --- history.c -------------------------------------------------------------- */

struct pm_past;

/* Keeps what the ledger says of an image that is about to be freed. */
void pm_past_add(struct pm *pm, const struct pm_image *img);
/*
 * A generation that was forgotten comes again, by a sample or an event that is
 * late: what was kept of it goes back into the new image, so that it is there once.
 */
bool pm_past_has(struct pm_proc *proc, uint64_t exec_id);
void pm_past_take(struct pm *pm, struct pm_image *img);
void pm_past_drop(struct pm *pm, struct pm_proc *proc);

/* --- proc.c ----------------------------------------------------------------- */

struct pm_proc {
	struct hash_node node; /* pm->procs, by tgid */
	struct pm_list dead; /* pm->exited, leaving or reaped */
	struct pm_proc *parent; /* who forked it, or whoever did that one */
	struct pm_list children;
	struct pm_list sibling;
	struct pm_image *images; /* newest first; never empty but in the making */
	struct pm_past *past; /* what is left of older ones, newest first */
	struct pm_mm *pending; /* of an exec whose event has not come */
	uint64_t pending_id; /* the generation that exec makes */
	uint64_t start_boottime;
	uint64_t exec_time; /* of the last exec event */
	uint64_t exit_time;
	uint64_t last_seen; /* a sign of life behind its exit; 0: none */
	uint64_t reap_time;
	uint64_t wanted_at; /* its mappings were asked for, last */
	uint64_t unread_until; /* its files of /proc did not answer */
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
	bool exit_told; /* by its event, so the status is known */
	bool reaped;
	bool before; /* came by a walk */
	bool missing; /* not seen by the walk under way */
	bool vanished; /* exited, for all that a walk knows */
	bool selected;
	bool forked; /* its fork event came, or it was there before */
	bool zombie; /* one of pm->nzombies */
	/* It was forgotten before; made again by a sample that came too late. */
	bool late;
	bool hidden; /* no event of it comes, nor of its forks */
	bool walk_due; /* it was there before, and its mappings are not read */
};

struct pm_proc *pm_proc_find(const struct pm *pm, uint32_t tgid,
			     uint64_t start_boottime);
/* The one that had this pid at 'time'. */
struct pm_proc *pm_proc_at(const struct pm *pm, uint32_t tgid, uint64_t time);
/* Without an image: make one at once, or free it. */
struct pm_proc *pm_proc_new(struct pm *pm, uint32_t tgid,
			    uint64_t start_boottime);
void pm_proc_free(struct pm *pm, struct pm_proc *proc);
void pm_proc_set_parent(struct pm_proc *proc, struct pm_proc *parent);
void pm_proc_drop_pending(struct pm *pm, struct pm_proc *proc);
void pm_proc_exited(struct pm *pm, struct pm_proc *proc, uint64_t time);
/* A sample of that time is late, or of one that was forgotten already. */
bool pm_proc_gone(const struct pm *pm, uint32_t tgid, uint64_t start_boottime,
		  uint64_t time);
/* For all that is known it is over: it goes after its grace time. */
void pm_proc_late(struct pm *pm, struct pm_proc *proc, uint64_t time);
/*
 * A sign of life. Who was taken for gone by a walk is not; who did exit is on its
 * way out still, and not to be forgotten meanwhile.
 */
void pm_proc_alive(struct pm *pm, struct pm_proc *proc, uint64_t time);
void pm_proc_reaped(struct pm *pm, struct pm_proc *proc, uint64_t time);

/* --- process.c -------------------------------------------------------------- */

/* /proc has it, be it as a zombie; true also if it does not answer. */
bool pm_process_there(struct pm *pm, struct pm_proc *proc);

/* "PID-" and the start in hex: the same whoever computes it within a boot. */
char *pm_process_id(char *buf, uint32_t tgid, uint64_t start_boottime);
/* Its digits and a NUL; where that is. */
char *pm_put_decimal(char *at, uint64_t v);

/* --- pm.c -------------------------------------------------------------------- */

struct pm {
	struct pm_opts opts;
	struct hash procs;
	struct hash strs;
	struct hash users; /* struct pm_user, by uid */
	uint64_t shared[PM_SHARES]; /* theirs, together */
	struct hash exe_keys;
	struct pool proc_pool, image_pool, mm_pool, set_pool;
	struct pm_list exes; /* all */
	struct pm_list idle; /* nobody's; the longest so first */
	struct pm_list open; /* holding a file; least used first */
	struct pm_list opens; /* struct pm_open under way */
	struct pm_list turns; /* struct pm_user of whom opens wait */
	struct pm_list asking; /* struct pm_exe that have requests */
	struct pm_list failed; /* struct pm_req that were refused */
	struct pm_list early; /* struct pm_early, oldest first */
	struct pm_list exited, reaped; /* processes, by time */
	struct pm_list leaving; /* exited, and not in /proc any more */
	struct pm_list ended; /* images, by time */
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
	uint64_t now; /* the latest time anybody told */
	struct patience patience; /* for what is read of /proc */
	uint64_t serial;
	uint64_t lost_until; /* end of the last gap in the mapping stream */
	uint64_t lost_ns; /* all of them together */
	uint64_t gap_until, gap_ns; /* the same of the lifecycle stream */
	uint64_t begin; /* who is unknown and began before is no surprise */
	uint64_t walk; /* begin of a later walk under way; 0: none */
	struct pm_exe *kernel, *vdso;
	struct pm_exe *anon; /* stands for executable memory inside of sets */
	struct pm_stats stats;
};

/* A process is selected with its parent. */
static inline bool pm_selects(const struct pm *pm, const struct pm_proc *proc,
			      const struct pm_proc *parent)
{
	return parent && parent->selected &&
	       proc->tgid != pm->opts.never_select;
}

/* Counts, and gives -ENOMEM. */
int pm_nomem(struct pm *pm);
/* Tells pm_opts.limited. */
void pm_limited(struct pm *pm, uint32_t uid, enum pm_limit what, uint64_t n);

/*
 * Adds a gap to all so far; of several CPUs' gaps at once each moment counts
 * once. How long they are together, in ms.
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
