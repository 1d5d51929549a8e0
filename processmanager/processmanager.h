/* SPDX-License-Identifier: Apache-2.0 */
/*
 * processmanager: processes, their images, the images' mappings and the
 * executables mapped; the only owner of per-process state.
 *
 * It is fed, in the order of kernel time, with lifecycle events, mapping
 * events and the records of the walk over what existed before, and answers,
 * at any point of that order, which image a key means and what is mapped at an
 * address of it. All calls on the loop's thread.
 *
 * Lifetime: an image ends when an exec replaces it or its process is reaped,
 * and lives until pm_forget() was told a time behind that. Between, pointers
 * to it stay good. An exe is refcounted: whoever keeps one beyond the call that
 * gave it takes a reference.
 */
#ifndef PROCESSMANAGER_PROCESSMANAGER_H
#define PROCESSMANAGER_PROCESSMANAGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/abi.h"
#include "processmanager/quark/quark.h"
#include "symbolize/symbolize.h"

struct pm;
struct pm_image;
struct pm_exe;

/* A process whose mappings should be re-read. */
struct pm_want {
	struct abi_key key;
	uint32_t uid;
	/* It makes more mappings than are recorded: what is read is soon stale. */
	bool flood;
};

/* What a user has a share of, or may do so often. */
enum pm_limit {
	PM_LIMIT_TEXT, /* bytes that his processes say of themselves */
	PM_LIMIT_MAPS, /* mapping records of a process */
	PM_LIMIT_MAPS_ALL, /* ... when others made too many */
	PM_LIMIT_NAMES, /* changes of a process's name */
	PM_LIMIT_FILES, /* new files, opened when they are executed */
	PM_LIMIT_FILES_ALL, /* ... when others have too many */
	PM_LIMIT_OPENS, /* openings that hang */
};

struct pm_opts {
	struct symbolizer *symbolizer;
	/*
	 * Executables held open at once, at most; 0: 512. For one beyond it
	 * the one least used is closed, which is opened again when asked for
	 * names, if it still can be.
	 */
	unsigned int open_files;
	/*
	 * An address of this process resolved nowhere, or its mappings are in
	 * doubt: whoever feeds the manager should read them anew and hand them
	 * in by pm_walk_maps(). At most once a second and process, five times
	 * where records were lost. May be NULL.
	 */
	void (*want_maps)(void *arg, const struct pm_want *want);
	/*
	 * A process is over, reaped or its grace run out, and every sample of it
	 * done: after this call nothing is known of it any more. Called from
	 * pm_forget(), once a process; 'last' is its newest image. May be NULL.
	 * One that /proc shows as a zombie is kept until its reap, if not too many.
	 */
	void (*ended)(void *arg, const struct pm_image *last);
	/*
	 * So much was left out, as the share of this user is used up. May be
	 * NULL.
	 */
	void (*limited)(void *arg, uint32_t uid, enum pm_limit what,
			uint64_t n);
	/*
	 * An executed file is known, or is no longer: see pm_new_file(). May be
	 * NULL.
	 */
	void (*known_file)(void *arg, const struct quark_file_ident *ident,
			   bool known);
	void *arg;
	/*
	 * Never selected as the descendant of a process that is, and with it
	 * none of its own; 0: none.
	 */
	uint32_t never_select;
};

int pm_new(struct pm **pmp, const struct pm_opts *opts); /* 0 or -errno */
/*
 * Before symbolizer_free(), and after every reference to an exe was given
 * back, but those that go with name requests: they all end with -ECANCELED
 * from inside.
 */
void pm_free(struct pm *pm);

/* From now on so many executables are held open at most; not 0. */
void pm_set_open_files(struct pm *pm, unsigned int n);

/* --- what comes in ------------------------------------------------------- */

/*
 * A lifecycle event, FORK EXEC EXIT REAP SETPROCTITLE ID_CHANGE or GAP. The
 * event is borrowed. 0, or -ENOMEM (counted; the state stays consistent).
 */
int pm_event(struct pm *pm, const struct quark_event *ev);

/* A process of the snapshot, true at 'time'. Known by key already: no change. */
int pm_walk_process(struct pm *pm, const struct quark_process *qp,
		    uint64_t time);

/*
 * The walk over what existed was over at 'time'. Who began before and is in no
 * record of it had ended by then: its last events are no surprise.
 */
void pm_begin(struct pm *pm, uint64_t time);

/*
 * A later walk over all processes brings the manager in line with the system:
 * pm_walk_process() for each between these two calls. A process that is older
 * than 'begin' and was not among them has gone unseen. What is found that way,
 * or missing, is counted; in normal running that is nothing.
 */
void pm_walk_begin(struct pm *pm, uint64_t begin);
void pm_walk_end(struct pm *pm);

/* A piece of a longer text; len 0: there is none. */
struct pm_part {
	const char *s;
	size_t len;
};

/* What the path of a control group tells of who is in it. */
struct pm_cgroup {
	const char *engine; /* "docker" ...; NULL: no container, or not known */
	struct pm_part container; /* id, or name */
	struct pm_part pod; /* uid, as written: '-' or '_' in it */
	struct pm_part unit; /* innermost systemd unit, but slices */
};

/*
 * Of any path, also one without a terminator; pieces of it are in *out. The
 * names are those that docker, containerd, cri-o, podman, kubernetes, lxc,
 * nspawn and systemd give; the innermost container wins.
 */
void pm_cgroup_parse(const char *path, size_t len, struct pm_cgroup *out);

enum pm_map_kind {
	PM_MAP_EXEC, /* mark or COMM record of an exec: mappings that follow are
			the image's that the next exec event of the tgid opens */
	PM_MAP_MMAP, /* an executable mapping appeared */
	PM_MAP_LOST, /* records are missing: none before 'time', none behind
			'end'. Of 'tgid'; 0: of any process, and of any kind */
};

/* One record of the mapping stream. */
struct pm_map_event {
	uint64_t time;
	enum pm_map_kind kind;
	uint32_t tgid;
	uint32_t tid;
	uint64_t start, end; /* addresses in the process; of LOST: a time */
	uint64_t pgoff; /* bytes into the file */
	uint64_t dev, ino; /* as stat(2); 0 when build_id_len is not */
	uint64_t ino_generation;
	uint8_t build_id[SYMBOLIZER_BUILD_ID_MAX];
	uint8_t build_id_len; /* 0: unknown */
	bool flood; /* of LOST with a tgid: it made too many itself */
	uint8_t pad[2];
	const char *path; /* the kernel's: "/lib/x.so", "[vdso]", "//anon" ... */
};

int pm_map_event(struct pm *pm, const struct pm_map_event *ev);

/*
 * All executable mappings of one process, as read from /proc between 'begin'
 * and 'end'. Replaces what was known; what the mapping stream says with an
 * earlier time than 'begin' is contained in it and dropped. So its place in the
 * order of time is 'begin': records behind that are put on top of it.
 */
struct pm_maps {
	uint32_t tgid;
	uint32_t pad;
	uint64_t start_boottime; /* of the process that was read; 0: unknown */
	uint64_t begin, end;
	size_t n;
	struct pm_map_event *maps; /* kind MMAP; paths point into 'text' */
	char *text;
};

/*
 * Reads /proc/TGID/maps ('proc': "/proc" or a test's directory). Touches
 * nothing of the manager's, so a worker may run it. start_boottime stays 0:
 * /proc has it in clock ticks only, so the manager goes by pid and time. On
 * error *out is empty. 0 or -errno.
 */
int pm_maps_read(const char *proc, uint32_t tgid, struct pm_maps *out);
/* The parser alone: 'text' need not be NUL-terminated and is not changed. */
int pm_maps_parse(const char *text, size_t len, struct pm_maps *out);
void pm_maps_fini(struct pm_maps *m);
/*
 * Of the process's image as of now. A walk that an exec may have run into is
 * no good: it is dropped and, if needed, asked for again. 0, -ESRCH or -ENOMEM.
 */
int pm_walk_maps(struct pm *pm, const struct pm_maps *m);

/*
 * Everything with a time below this was handed in and every sample up to it is
 * done: what ended before may be forgotten. To be called in every turn of the
 * loop; name requests that cannot be met are told so from here.
 */
void pm_forget(struct pm *pm, uint64_t time);

/*
 * Marks a process, by pid as of now, and all its descendants from here on.
 * For recordings of a command or of some processes. 0, or -ESRCH.
 */
int pm_select(struct pm *pm, uint32_t tgid);

/*
 * A process executes a file that opts.known_file was not told of: to be told as
 * soon as the exec is read, not in the order of time. The file is opened by
 * /proc/PID/exe at once, and kept for the mapping that will come. 0, also where
 * too many wait, which is counted; -ENOMEM.
 */
int pm_new_file(struct pm *pm, const struct quark_new_file *file);

/* --- what can be asked --------------------------------------------------- */

/*
 * The image of a key. One that was never heard of is made, provisional: a
 * sample between the kernel's count of an exec and its event comes first.
 * 'time' is the sample's. NULL without memory.
 */
struct pm_image *pm_image_get(struct pm *pm, const struct abi_key *key,
			      uint64_t time);

struct pm_image_info {
	uint64_t serial; /* one a pm, never reused: the key for tables */
	struct abi_key key;
	uint64_t begin; /* its exec, or its process's start */
	uint64_t samples;
	bool provisional; /* its exec event has not come yet */
	bool selected; /* pm_select() */
	bool exited;
	bool kthread;
	uint32_t ppid;
	uint32_t uid, gid;
	/* How its process came into the system: QUARK_ELT_, and who did. */
	uint32_t leader_type, leader;
	/*
	 * Printable ids, the same whoever computes them within a boot:
	 * process "PID-" and start_boottime in hex, image that and "-" exec_id.
	 */
	char process_id[40];
	char image_id[64];
	const char *comm; /* of the leader, now */
	const char *exe; /* path, or NULL */
	const char *cmdline; /* NUL-separated */
	size_t cmdline_len;
	bool args_cut; /* that is not all of it, if there is any of it */
	const char *cwd;
	const char *cgroup;
	struct pm_exe *main_exe; /* of 'exe', when mapped; borrowed */
};

/*
 * Its name as a sample of its first thread has it, 16 bytes at most: not each
 * rename of a process that renames itself often is an event.
 */
void pm_image_named(struct pm_image *img, const char *comm);
/* One sample more was taken of this image. */
void pm_image_sampled(struct pm_image *img);

/* These alone, which costs nothing. */
bool pm_image_provisional(const struct pm_image *img);
bool pm_image_selected(const struct pm_image *img);

/* Pointers are good until the next call that feeds the manager. */
void pm_image_info(const struct pm_image *img, struct pm_image_info *out);

/* So many of a process's images are remembered. */
#define PM_HISTORY_MAX 16
/*
 * All images of the process of 'img' that are remembered, newest first; 'max' at
 * most. Of those that nothing but the ledger asks for any more, serial and
 * main_exe are 0. Strings as of pm_image_info(). How many.
 */
size_t pm_image_history(const struct pm_image *img, struct pm_image_info *out,
			size_t max);

struct pm_mapping {
	uint64_t start, end;
	uint64_t pgoff;
	struct pm_exe *exe; /* borrowed; never NULL */
};

enum pm_find {
	PM_FOUND = 0,
	PM_NOT_MAPPED = 1, /* nothing known there: a re-read was asked for */
	PM_LOST = 2, /* mapping records were lost: not known */
};

/*
 * What was mapped there at 'time', a sample's that was just handed in, in its
 * place in the order of time. From PM_MAP_LOST on nothing of what a set holds is
 * certain, since what is missing may have taken the place of any of it, an exec
 * of all: the answer is PM_LOST, until the mappings were read anew from a time
 * behind the loss. Certain are those of an image whose exec began behind it; the
 * vdso, which the kernel maps; and, as long as it lives, a view from before.
 */
enum pm_find pm_image_find(struct pm *pm, struct pm_image *img, uint64_t time,
			   uint64_t addr, struct pm_mapping *out);

/*
 * Its mappings are in doubt since records were lost, and reading them anew lifts
 * that. After a PM_MAP_LOST these are to be read, sampled or not, so that the next
 * sample of each finds them.
 */
bool pm_image_doubtful(const struct pm *pm, const struct pm_image *img);
/* It had more mapping records of late than are handed on. */
bool pm_image_floods(const struct pm *pm, const struct pm_image *img);

/*
 * What is mapped in an image as of now, for a sample of 'time', to be asked when
 * the manager has gone on: whatever it is fed, a view stays as it is. The image
 * has to stay, too. NULL without memory.
 */
struct pm_view;
struct pm_view *pm_view_new(struct pm *pm, struct pm_image *img, uint64_t time);
void pm_view_free(struct pm_view *view);
enum pm_find pm_view_find(struct pm_view *view, uint64_t addr,
			  struct pm_mapping *out);
/* Each mapping, by address; 'exe' borrowed. */
void pm_view_each(struct pm_view *view,
		  void (*fn)(void *arg, const struct pm_mapping *map),
		  void *arg);

enum pm_exe_kind {
	PM_EXE_FILE, /* an ELF file */
	PM_EXE_KERNEL, /* "[kernel.kallsyms]": offset is the address */
	PM_EXE_VDSO, /* "[vdso]" */
	PM_EXE_ANON, /* executable memory without a file: JITs; offset is the
			  address, so it means nothing beyond its process */
};

struct pm_exe_info {
	uint64_t serial;
	enum pm_exe_kind kind;
	const char *path; /* as first seen; "[vdso]" and so on for the others */
	const char *base; /* last component of it */
	/* All zero until opened, build id excepted when the kernel gave it. */
	struct symbolizer_ident ident;
	bool opened; /* ident and segments are complete */
	int open_error; /* -errno of the last try, 0: none failed */
	bool held; /* its file is open now */
	uint32_t mapped; /* mappings of it */
	/* 0: none. Tells executables apart, for who has no room for 128 bits. */
	uint64_t short_id;
	/* Of the last answer; PM_EXE_NOT_ASKED, 0 or -errno. */
	int rows, names;
};

#define PM_EXE_NOT_ASKED 1

void pm_exe_info(const struct pm_exe *exe, struct pm_exe_info *out);
/*
 * The executable whose names and rows are its own: itself, or the first that was
 * seen of those with equal content, which differ in path. Borrowed.
 */
struct pm_exe *pm_exe_root(const struct pm_exe *exe);
const struct symbolizer_segment *pm_exe_segments(const struct pm_exe *exe,
						 size_t *np);
/*
 * The mapper between file ids of 128 bits and short ones of 64. The short id is
 * the first half of the file id, in the order in which it is written, so it is
 * the same on every host; only where another executable has that one already, as
 * somebody may arrange, it is the next free one, which is counted. It is given
 * when the file is first opened, and good as long as the executable is known.
 * Borrowed; NULL: no such is known.
 */
struct pm_exe *pm_exe_by_short_id(struct pm *pm, uint64_t short_id);
/*
 * Each executable once, under the name it was first seen by: the first with NULL,
 * then the one after 'exe'. Borrowed; nothing may be fed meanwhile.
 */
struct pm_exe *pm_exe_next(struct pm *pm, const struct pm_exe *exe);
struct pm_exe *pm_exe_get(struct pm_exe *exe);
void pm_exe_put(struct pm_exe *exe);

/* Always there; borrowed. */
struct pm_exe *pm_exe_kernel(struct pm *pm);
struct pm_exe *pm_exe_vdso(struct pm *pm);

/* err 0: 'n' symbols, as symbolizer_resolve_fn(); else none, for the 'n' tags. */
typedef void (*pm_names_fn)(void *arg, int err, void *const *tags,
			    const struct symbolizer_symbol *syms, size_t n);

/*
 * The name for a file offset of 'exe': symbolizer_resolve() on its open file. A
 * file still being opened is waited for, one that was closed is opened again;
 * one that cannot be opened, or has no names, answers with that error.
 *
 * Offsets are collected until pm_names_send(), by executable and asker (fn, arg),
 * and answered together; while a request for names of an executable is under way,
 * further ones are collected until it ends. Completes on the loop, never from
 * inside; what failed before it began, by the next pm_forget(). A reference to
 * the exe is held meanwhile. 0 or -ENOMEM.
 */
int pm_exe_name(struct pm_exe *exe, uint64_t offset, void *tag, pm_names_fn fn,
		void *arg);
/* Sends off what was collected. */
void pm_names_send(struct pm *pm);
/*
 * All requests of this asker end with -ECANCELED before it returns; fn NULL: those
 * of all askers, rows too.
 */
void pm_names_cancel(struct pm *pm, pm_names_fn fn, void *arg);

/*
 * Its unwind rows, which the callee frees: symbolizer_rows() in the same way. A
 * file that cannot be opened, or has none, answers with that error.
 */
int pm_exe_rows(struct pm_exe *exe, symbolizer_rows_fn fn, void *arg);
/*
 * Samples wait for them: they are read before those that no sample waits for. To be
 * called once they have been asked for; lasts until they are answered.
 */
void pm_exe_hurry(struct pm_exe *exe);

/* As wait4(2) never gives it: nobody told how it ended, but that it did. */
#define PM_STATUS_UNKNOWN (-1)

/*
 * From the next question on pm_exe_rows() gives these for the file with this build
 * id, or file id, over its own; see symbolizer_rows_by_hand().
 */
int pm_rows_by_hand(struct pm *pm, const uint8_t *id, size_t len,
		    struct symbolizer_rows *rows);

/* How good a CPU time is. */
enum pm_cpu {
	PM_CPU_NONE, /* not known */
	PM_CPU_NOW, /* lives: as it was when it was asked */
	PM_CPU_PROVISIONAL, /* at its exit: freeing its memory still followed */
	PM_CPU_EXACT, /* at its reap: what wait4(2) gave */
};

enum pm_end {
	PM_ALIVE,
	PM_EXITED, /* a zombie, or its reap is still to come */
	PM_REAPED,
	PM_VANISHED, /* over, but its exit was never told of: no status */
};

/*
 * The ledger's line of one process: what does not belong to one of its images.
 * Times are CLOCK_BOOTTIME in ns, 0: not known or not yet.
 */
struct pm_process_info {
	uint32_t pid, ppid; /* of the root pid namespace */
	uint64_t start;
	uint64_t exit; /* its last thread's */
	uint64_t reap;
	enum pm_end end;
	char process_id[40];
	char parent_id[40]; /* "": not known, or there is none */
	bool before; /* existed when profd began */
	bool kthread;
	uint32_t sid, pgid;
	uint32_t leader_type, leader; /* QUARK_ELT_, and its pid */
	/* As wait4(2) gives it, or PM_STATUS_UNKNOWN; of EXITED and REAPED. */
	int32_t wait_status;
	enum pm_cpu cpu;
	uint64_t cpu_ns, user_ns, system_ns; /* of all its threads */
	uint64_t maxrss; /* bytes, peak */
	uint64_t minflt, majflt;
	uint32_t execs; /* since it is known */
	uint64_t samples;
};

/*
 * Ids, session, directory and CPU time change without an event: asks /proc what
 * the process has now, if it lives and this is what it runs. Its infos say so from
 * then on. Some 40 us; a process that does not let it be read costs 100 ms, and is
 * not asked again for a minute.
 */
void pm_process_ask(struct pm *pm, struct pm_image *img);
/* The process of an image. */
void pm_process_info(const struct pm_image *img, struct pm_process_info *out);

/*
 * The newest image of each process there is now, as with pm_iter: keys that stay
 * good whatever happens meanwhile. malloc'd; NULL without memory.
 */
struct abi_key *pm_keys(struct pm *pm, bool all, size_t *np);
/* The newest image of the process of a key; NULL: it was forgotten. */
struct pm_image *pm_newest(struct pm *pm, const struct abi_key *key);

struct pm_iter {
	struct pm_proc *next;
	bool all;
};
/*
 * Every living process's current image; with 'all' that of those who are dead
 * and not forgotten yet too. Nothing may be fed meanwhile.
 */
void pm_iter_init(struct pm_iter *it, struct pm *pm, bool all);
struct pm_image *pm_iter_next(struct pm_iter *it);

/* X(name, gauge, "help") */
#define PM_STATS(X)                                                            \
	X(forks, 0, "fork events")                                             \
	X(execs, 0, "exec events")                                             \
	X(exits, 0, "exit events")                                             \
	X(reaps, 0, "reap events")                                             \
	X(renames, 0, "rename events")                                         \
	X(gaps, 0, "gaps in the lifecycle stream")                             \
	X(walked, 0, "processes that existed at the start")                    \
	X(unknown, 0, "events of processes never heard of")                    \
	X(found, 0, "processes a later walk found, whose fork was missed")     \
	X(vanished, 0, "processes a later walk missed, whose exit was missed") \
	X(maps, 0, "mappings that appeared")                                   \
	X(maps_before_walk, 0, "mapping records a walk already contained")     \
	X(maps_lost, 0, "gaps in the mapping stream")                          \
	X(maps_limited, 0, "times a process had too many mapping records")     \
	X(maps_unbound, 0, "exec mapping sets no exec event followed")         \
	X(maps_overflow, 0, "mapping sets thrown away for their size")         \
	X(maps_refused, 0, "mapping sets dropped: a user's share was used up") \
	X(exes_refused, 0, "new executables refused: a share was used up")     \
	X(rereads, 0, "mappings read anew from /proc")                         \
	X(provisional, 0, "images whose samples came before their exec event") \
	X(nomem, 0, "records dropped for lack of memory")                      \
	X(text_cut, 0, "arguments and paths cut: a share was used up")         \
	X(open_closed, 0, "executables closed for the limit of open files")    \
	X(early, 0, "new files opened as soon as they were executed")          \
	X(early_opened, 0, "... that were open in time")                       \
	X(early_failed, 0, "... that could not be opened any more")            \
	X(early_refused, 0, "new files not opened early: too many at once")    \
	X(early_unused, 0, "new files opened early that nobody mapped")        \
	X(short_id_clashes, 0, "executables whose short id was another's")     \
	X(open_released, 0, "executables closed since nobody maps them")       \
	X(text_bytes, 1, "bytes of arguments and paths known")                 \
	X(unread, 0, "processes whose files in /proc did not answer")          \
	X(processes, 1, "processes known")                                     \
	X(images, 1, "images known")                                           \
	X(exes, 1, "executables known")                                        \
	X(open_files, 1, "executables held open")                              \
	X(mappings, 1, "mappings known, shared ones once")

struct pm_stats {
#define X(name, gauge, help) uint64_t name;
	PM_STATS(X)
#undef X
	/* Milliseconds of gaps: in the lifecycle stream, in the mapping stream. */
	uint64_t gaps_ms, maps_lost_ms;
};

void pm_get_stats(const struct pm *pm, struct pm_stats *out);

#endif /* PROCESSMANAGER_PROCESSMANAGER_H */
