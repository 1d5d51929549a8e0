/* SPDX-License-Identifier: Apache-2.0 */
/*
 * processmanager: processes, their images, the images' mappings and the
 * executables mapped; the only owner of per-process state.
 *
 * It is fed, in the order of kernel time, with lifecycle events, mapping events
 * and the records of scans of /proc. At any point of that order it finds the
 * image of a key, and the mapping at an address of an image. All calls on the
 * loop's thread.
 *
 * Lifetime: an image ends when an exec replaces it or its process is reaped.
 * Pointers to it are valid until pm_forget() with a later time. An exe is
 * refcounted: a pointer kept beyond the call that returned it needs a
 * reference.
 */
#ifndef PROCESSMANAGER_PROCESSMANAGER_H
#define PROCESSMANAGER_PROCESSMANAGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/abi.h"
#include "processmanager/apm.h"
#include "processmanager/quark/quark.h"
#include "symbolize/symbolize.h"

struct pm;
struct pm_image;
struct pm_exe;

/* A process whose mappings should be re-read. */
struct pm_want {
	struct abi_key key;
	uint32_t uid;
	bool flood; /* it maps more than is recorded: a scan is soon stale */
};

/* What is limited by user. */
enum pm_limit {
	PM_LIMIT_TEXT, /* bytes of paths and arguments */
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
	 * Executables held open at once, at most; 0: 512. At the limit the
	 * least recently used one is closed; a request for names opens it
	 * again.
	 */
	unsigned int open_files;
	/*
	 * st_dev of the root: executables of other file systems are closed soon
	 * after their last mapping is gone. 0: those of none.
	 */
	uint64_t root_dev;
	/* Perf maps are found also after the end of their processes. */
	bool late_maps;
	/* The functions below may be NULL. */
	/*
	 * An address of this process is in no mapping, or its mappings are
	 * stale: they should be re-read and passed to pm_scan_maps(). Called
	 * for a process at most once a second, or five times while they are
	 * stale.
	 */
	void (*want_maps)(void *arg, const struct pm_want *want);
	/*
	 * A process was reaped, or its grace time is over, and all its samples
	 * are done: the manager forgets it after this call. Called from
	 * pm_forget(), once for each process; 'last' is its newest image. A
	 * process that /proc shows as a zombie is kept until its reap, up to a
	 * number.
	 */
	void (*ended)(void *arg, const struct pm_image *last);
	/* 'n' more were left out because this user's share is used up. */
	void (*limited)(void *arg, uint32_t uid, enum pm_limit what,
			uint64_t n);
	/*
	 * The agent of this image does not listen any more: it may have another
	 * socket by now. From inside pm_apm_send() or pm_apm_connected().
	 */
	void (*apm_gone)(void *arg, const struct abi_key *key);
	/* An executed file is known, or is no longer: see pm_new_file(). */
	void (*known_file)(void *arg, const struct quark_file_ident *ident,
			   bool known);
	/* A known file is a program of Go, by its unwind rows; NULL: forget it. */
	void (*go_file)(void *arg, const struct quark_file_ident *ident,
			const struct symbolizer_go *go);
	void *arg;
	/*
	 * This pid is not selected with its parent, so its own children are
	 * not; 0: none.
	 */
	uint32_t never_select;
	/* From a sample to the end of pm_apm_send() with its stack, at most. */
	uint32_t apm_delay_ms;
};

int pm_new(struct pm **pmp, const struct pm_opts *opts); /* 0 or -errno */
/*
 * All name requests end with -ECANCELED before it returns. To be called before
 * symbolizer_free(), and after all other references to an exe were put.
 */
void pm_free(struct pm *pm);

/* Changes opts.open_files; n is not 0. */
void pm_set_open_files(struct pm *pm, unsigned int n);

/* --- input ---------------------------------------------------------------- */

/*
 * A lifecycle event, FORK EXEC EXIT REAP SETPROCTITLE ID_CHANGE or GAP. The
 * event is borrowed. 0, or -ENOMEM (counted; the state stays consistent).
 */
int pm_event(struct pm *pm, const struct quark_event *ev);

/* A process that a scan found at 'time'. No change if its key is known. */
int pm_scan_process(struct pm *pm, const struct quark_process *qp,
		    uint64_t time);

/*
 * The scan at the start ended at 'time'. A process that began before, and was
 * not found, had ended: its last events are not counted as unknown.
 */
void pm_begin(struct pm *pm, uint64_t time);

/*
 * A rescan corrects the manager's state after records were dropped: between
 * these two calls pm_scan_process() is called for each process. A process older
 * than 'begin' that was not among them has exited. Corrections are counted.
 */
void pm_rescan_begin(struct pm *pm, uint64_t begin);
void pm_rescan_end(struct pm *pm);

/* A piece of a longer text; len 0: there is none. */
struct pm_part {
	const char *s;
	size_t len;
};

/* What the path of a control group shows. */
struct pm_cgroup {
	const char *engine; /* "docker" ...; NULL: no container, or not known */
	struct pm_part container; /* id, or name */
	struct pm_part pod; /* uid, as written: '-' or '_' in it */
	struct pm_part unit; /* innermost systemd unit, but slices */
};

/*
 * 'path' need not be NUL-terminated; pieces of it are in *out. Knows the names
 * that docker, containerd, cri-o, podman, kubernetes, lxc, nspawn and systemd
 * give; the innermost container counts.
 */
void pm_cgroup_parse(const char *path, size_t len, struct pm_cgroup *out);

enum pm_map_kind {
	PM_MAP_EXEC, /* mark or COMM record of an exec: the mappings that follow
			belong to the image of the tgid's next exec event */
	PM_MAP_MMAP, /* an executable mapping appeared */
	PM_MAP_LOST, /* records between 'time' and 'end' may be missing. Of
			'tgid'; 0: of any process, and of any kind */
	PM_MAP_KSYMBOL, /* kernel text 'path' was loaded, or unloaded; not for
			   pm_map_event() */
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
	bool flood; /* of LOST with a tgid: because it made too many */
	bool unloaded; /* of KSYMBOL */
	/*
	 * Of a scan: not executable. Listed because it lies directly below executable
	 * memory, which may hold a copy of this file's code.
	 */
	bool below;
	const char *path; /* the kernel's: "/lib/x.so", "[vdso]", "//anon" ... */
};

int pm_map_event(struct pm *pm, const struct pm_map_event *ev);

/*
 * All executable mappings of one process, as read from /proc between 'begin'
 * and 'end'. They replace the known ones. Its place in the order of time is
 * 'begin': records of the mapping stream from before are contained in it and
 * dropped, later ones are applied to it.
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
 * Reads /proc/TGID/maps ('proc': "/proc" or a test's directory). Does not use
 * the manager, so any process may run it. start_boottime stays 0, because /proc
 * has it in clock ticks only: the process is found by pid and time. On error
 * *out is empty. 0 or -errno.
 */
int pm_maps_read(const char *proc, uint32_t tgid, struct pm_maps *out);
/* The parser only: 'text' need not be NUL-terminated and is not changed. */
int pm_maps_parse(const char *text, size_t len, struct pm_maps *out);
void pm_maps_fini(struct pm_maps *m);
/*
 * Of the process's image as of now. A scan during which an exec may have
 * happened is dropped and, if needed, requested again. 0, -ESRCH or -ENOMEM.
 */
int pm_scan_maps(struct pm *pm, const struct pm_maps *m);

/*
 * All records and samples with a time below this are done: what ended before
 * may be forgotten. To be called in every turn of the loop; requests that were
 * refused are answered from here.
 */
void pm_forget(struct pm *pm, uint64_t time);

/*
 * Selects a process, by pid as of now, and all its descendants from now on.
 * For recordings of a command or of some processes. 0, or -ESRCH.
 */
int pm_select(struct pm *pm, uint32_t tgid);

/*
 * A process executes a file that is not known (opts.known_file). To be called
 * as soon as the exec is read, not in the order of time. The file is opened at
 * once, by /proc/PID/exe, and kept for its mapping's record. 0, also when there
 * are too many, which is counted; -ENOMEM.
 */
int pm_new_file(struct pm *pm, const struct quark_new_file *file);

/* --- queries -------------------------------------------------------------- */

/*
 * The image of a key. An unknown one is made, provisional: a sample may come
 * between the kernel's increment of self_exec_id and the exec event. 'time' is
 * the sample's. NULL without memory.
 */
struct pm_image *pm_image_get(struct pm *pm, const struct abi_key *key,
			      uint64_t time);

struct pm_image_info {
	uint64_t serial; /* unique, never reused: the key for tables */
	struct abi_key key;
	uint64_t begin; /* its exec, or its process's start */
	uint64_t samples;
	bool provisional; /* its exec event has not come yet */
	bool selected; /* pm_select() */
	bool exited;
	bool kthread;
	uint32_t ppid;
	uint32_t uid, gid;
	/* The entry leader of its process: QUARK_ELT_, and pid. */
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
	bool args_cut; /* cmdline is not complete */
	const char *cwd;
	const char *cgroup;
	/* As of pm_image_set_context(); NULL: not known. */
	const char *service, *instance, *environment;
	struct pm_exe *main_exe; /* of 'exe', when mapped; borrowed */
};

/*
 * Sets the name that a sample of its first thread has, at most 16 bytes: of a
 * process that renames itself often not each rename is an event.
 */
void pm_image_named(struct pm_image *img, const char *comm);
/*
 * Sets the names of the service that it says it belongs to; "": none. Returns whether
 * any is another one now.
 */
bool pm_image_set_context(struct pm *pm, struct pm_image *img,
			  const struct symbolizer_context *c);
/* Counts one more sample of this image. */
void pm_image_sampled(struct pm_image *img);

/* Members of pm_image_info, without the cost of the others. */
bool pm_image_provisional(const struct pm_image *img);
bool pm_image_selected(const struct pm_image *img);
/*
 * Its process was forked and has executed nothing since: what it has in memory may be its
 * parent's. Not known, so false, of processes that were there before profd.
 */
bool pm_image_forked(const struct pm_image *img);

/* Pointers are valid until the next call that feeds the manager. */
void pm_image_info(const struct pm_image *img, struct pm_image_info *out);

/* Number of images kept of a process. */
#define PM_HISTORY_MAX 16
/*
 * The kept images of the process of 'img', newest first, at most 'max'. Those
 * that only the ledger needs any more have serial 0 and no main_exe. Strings as
 * of pm_image_info(). Returns their number.
 */
size_t pm_image_history(const struct pm_image *img, struct pm_image_info *out,
			size_t max);

struct pm_mapping {
	uint64_t start, end;
	uint64_t pgoff;
	struct pm_exe *exe; /* borrowed; never NULL */
	/*
	 * Of a file that is no ELF file, as JITs map: the executable memory of its
	 * process, which may have names and rows for it, by address. Or NULL.
	 */
	struct pm_exe *code;
	/*
	 * Of executable memory that may hold a copy of this file's code, which is not
	 * known before the file is open: it is being opened. Or NULL.
	 */
	struct pm_exe *maybe;
};

enum pm_find {
	PM_FOUND = 0,
	PM_NOT_MAPPED = 1, /* no mapping known there: a re-read was requested */
	PM_LOST = 2, /* mapping records were dropped: not known */
};

/*
 * The mapping at 'time', the time of a sample at its place in the order of
 * time. After PM_MAP_LOST all sets are stale, since any mapping, or by an exec
 * all of them, may have been replaced: the result is PM_LOST until the end of a
 * scan that began after the gap. Not affected are images whose exec began after the gap,
 * the vdso, which the kernel maps, and views made before.
 */
enum pm_find pm_image_find(struct pm *pm, struct pm_image *img, uint64_t time,
			   uint64_t addr, struct pm_mapping *out);

/*
 * Whether something executable may be mapped at 'addr', for a sample as above: true also
 * if that is not known. Requests nothing.
 */
bool pm_image_may_have_code(const struct pm *pm, const struct pm_image *img,
			    uint64_t time, uint64_t addr);

/*
 * Its mappings are stale, and a re-read helps. After a PM_MAP_LOST all these
 * images should be re-read, so that their next samples find mappings.
 */
bool pm_image_stale(const struct pm *pm, const struct pm_image *img);
/* It recently had more mapping records than are passed on. */
bool pm_image_floods(const struct pm *pm, const struct pm_image *img);

/*
 * A copy of an image's mappings as of now, for a sample of 'time', that later
 * records do not change. The image must exist as long. NULL without memory.
 */
struct pm_view;
struct pm_view *pm_view_new(struct pm *pm, struct pm_image *img, uint64_t time);
void pm_view_free(struct pm_view *view);
enum pm_find pm_view_find(struct pm_view *view, uint64_t addr,
			  struct pm_mapping *out);
bool pm_view_may_have_code(const struct pm_view *view, uint64_t addr);
/* Each mapping, by address; 'exe' borrowed. */
void pm_view_each(struct pm_view *view,
		  void (*fn)(void *arg, const struct pm_mapping *map),
		  void *arg);

enum pm_exe_kind {
	PM_EXE_FILE, /* an ELF file */
	PM_EXE_KERNEL, /* "[kernel.kallsyms]": offset is the address */
	PM_EXE_VDSO, /* "[vdso]" */
	PM_EXE_ANON, /* executable memory without a file: JITs; offset is the
			  address, meaningful within its process only; its
			  names are those of the process's perf map or
			  jitdump */
	PM_EXE_VSYSCALL, /* "[vsyscall]", which has no file: offset is the address */
};

struct pm_exe_info {
	uint64_t serial;
	enum pm_exe_kind kind;
	const char *path; /* as first seen; "[vdso]" and so on for the others */
	const char *base; /* last component of it */
	/* All zero until opened, except for a build id from the kernel. */
	struct symbolizer_ident ident;
	bool opened; /* ident and segments are complete */
	int open_error; /* -errno of the last try, 0: none failed */
	bool held; /* its file is open now */
	uint32_t mapped; /* mappings of it */
	uint64_t short_id; /* see pm_exe_by_short_id(); 0: none */
	/* Of the last answer; PM_EXE_NOT_ASKED, 0 or -errno. */
	int rows, names;
	/* Bytes of its table, and of its symbols when they were used last. */
	uint64_t rows_bytes, symbol_bytes;
	/* Addresses answered so far, by the source of their names. */
	uint64_t sources[SYMBOLIZER_N_SOURCES];
};

#define PM_EXE_NOT_ASKED 1

void pm_exe_info(const struct pm_exe *exe, struct pm_exe_info *out);
/* Why it is not read for some time, a constant; or NULL. */
const char *pm_exe_quarantine(const struct pm_exe *exe);
/*
 * The executable whose names and rows it uses: itself, or the first seen of
 * those with equal content and other paths. Borrowed.
 */
struct pm_exe *pm_exe_root(const struct pm_exe *exe);
const struct symbolizer_segment *pm_exe_segments(const struct pm_exe *exe,
						 size_t *np);
/*
 * Finds an executable by its 64-bit id, the first half of the file id in the
 * order of its bytes, which is the same on every host. Where another executable
 * has that one, as an attacker may arrange, it is the next free one, which is
 * counted. It is assigned when the file is first opened and valid while the
 * executable is known. Borrowed, or NULL.
 */
struct pm_exe *pm_exe_by_short_id(struct pm *pm, uint64_t short_id);
/*
 * Iterates over the executables, each content once: NULL gives the first.
 * Borrowed; the manager must not be fed meanwhile.
 */
struct pm_exe *pm_exe_next(struct pm *pm, const struct pm_exe *exe);
/* Where it has a tracer's variable; NULL: it has none, or was not opened yet. */
const struct symbolizer_slot *pm_exe_slot(const struct pm_exe *exe);
/* How many executables were opened so far that have one. */
uint64_t pm_tracers(const struct pm *pm);
struct pm_exe *pm_exe_get(struct pm_exe *exe);
void pm_exe_put(struct pm_exe *exe);

/* Never NULL; borrowed. */
struct pm_exe *pm_exe_kernel(struct pm *pm);
/* The vsyscall page. It is in every process and no mapping of any. */
struct pm_exe *pm_exe_vsyscall(struct pm *pm);

/* err 0: 'n' symbols, as symbolizer_resolve_fn(); else NULL. 'n' tags. */
typedef void (*pm_names_fn)(void *arg, int err, void *const *tags,
			    const struct symbolizer_symbol *syms, size_t n);

/*
 * The name for a file offset of 'exe': symbolizer_resolve() on its open file.
 * The request waits while the file is being opened, and opens it again if it
 * was closed; its error is that of the opening or of the symbolizer.
 *
 * Offsets are collected until pm_names_send(), by executable and requester (fn,
 * arg), and answered together; while a request for names of an executable is
 * under way, further ones are collected until it ends. Completes on the loop,
 * never from inside; what failed before it began, in the next pm_forget(). A
 * reference to the exe is held meanwhile. 0 or -ENOMEM.
 */
int pm_exe_name(struct pm_exe *exe, uint64_t offset, void *tag, pm_names_fn fn,
		void *arg);
/*
 * The same for an address in executable memory (PM_EXE_ANON), as of 'time', that of a
 * sample: pm_exe_code() was called for it before.
 */
int pm_exe_name_at(struct pm_exe *exe, uint64_t addr, uint64_t time, void *tag,
		   pm_names_fn fn, void *arg);
/*
 * Where executable memory has its names from: the jitdumps of its process, the one that
 * was mapped last first, and its perf map. Each is an executable that pm_exe_name_at() and,
 * if it is a jitdump, pm_exe_code_rows() take. Borrowed; the number of them.
 */
#define PM_CODE_DUMPS 4
#define PM_CODE_SOURCES (PM_CODE_DUMPS + 1)
size_t pm_exe_code_dumps(struct pm_exe *exe, struct pm_exe **out);
size_t pm_exe_code_sources(struct pm_exe *exe, struct pm_exe **out);
/* The state of the names of executable memory. */
struct pm_code_state {
	/*
	 * Equal addresses have equal names in equal versions. With 'timed' also the
	 * time of the sample has to be within that of the answer, see 'before' in
	 * struct symbolizer_symbol.
	 */
	uint32_t version;
	bool timed;
	bool named; /* else its process has no file of names, as far as is known */
};
/* Of the memory, with all sources, or of one of these. That which counts for samples of 'time'. To be called for each frame. */
struct pm_code_state pm_exe_code(struct pm_exe *exe, uint64_t time);
/*
 * Its perf map is looked for again, or read again, for the names that are requested next
 * as of the latest time, UINT64_MAX.
 */
void pm_exe_code_again(struct pm_exe *exe);
/* The executable memory of the process, borrowed; or NULL. */
struct pm_exe *pm_image_memory(const struct pm_image *img);
/* Sends the collected requests. */
void pm_names_send(struct pm *pm);
/*
 * The number of executables with requests for names; in *first one of them,
 * borrowed, or NULL.
 */
size_t pm_names_awaited(const struct pm *pm, const struct pm_exe **first);
/*
 * All requests of this requester end with -ECANCELED before it returns; fn
 * NULL: those of all, rows too.
 */
void pm_names_cancel(struct pm *pm, pm_names_fn fn, void *arg);

/* Its unwind rows, which the callee frees: symbolizer_rows(), likewise. */
int pm_exe_rows(struct pm_exe *exe, symbolizer_rows_fn fn, void *arg);
/*
 * Those of executable memory, as of 'time', that of a sample for which pm_exe_code() was
 * called: the code that its jitdump has unwind information for. They are equal for
 * samples of other times as symbolizer_rows_info() reports.
 */
int pm_exe_code_rows(struct pm_exe *exe, uint64_t time, symbolizer_rows_fn fn,
		     void *arg);
/*
 * Samples wait for the rows: they are read before those that no sample waits
 * for. To be called after pm_exe_rows(); lasts until the answer.
 */
void pm_exe_hurry(struct pm_exe *exe);

/* The process ended, but its status is not known; no value of wait4(2). */
#define PM_STATUS_UNKNOWN (-1)

/*
 * Later calls of pm_exe_rows() give these rows for the file with this build id,
 * or file id, instead of its own; see symbolizer_rows_by_hand().
 */
int pm_rows_by_hand(struct pm *pm, const uint8_t *id, size_t len,
		    struct symbolizer_rows *rows);

/* Origin of a CPU time. */
enum pm_cpu {
	PM_CPU_NONE, /* not known */
	PM_CPU_NOW, /* of a living process, when it was last read */
	PM_CPU_PROVISIONAL, /* at its exit, before its memory was freed */
	PM_CPU_EXACT, /* at its reap, as wait4(2) reports it */
};

enum pm_end {
	PM_ALIVE,
	PM_EXITED, /* a zombie, or the reap's record has not come yet */
	PM_REAPED,
	PM_VANISHED, /* ended, but there is no record of its exit: no status */
};

/*
 * The ledger's line of one process: what is not an attribute of one of its
 * images. Times are CLOCK_BOOTTIME in ns, 0: not known or not yet.
 */
struct pm_process_info {
	/*
	 * Of the root pid namespace. 'ppid' reaps it: the kernel gives an orphan
	 * another parent, without an event. pm_process_ask() reads that, and
	 * the exit has it.
	 */
	uint32_t pid, ppid;
	uint64_t start;
	uint64_t exit; /* of its last thread */
	uint64_t reap;
	enum pm_end end;
	char process_id[40];
	/* The one that forked it; "": not known, or there is none. */
	char parent_id[40];
	bool before; /* existed when profd began */
	bool kthread;
	uint32_t sid, pgid;
	uint32_t leader_type, leader; /* QUARK_ELT_, and its pid */
	/*
	 * As wait4(2) reports it, or PM_STATUS_UNKNOWN; of EXITED and REAPED.
	 */
	int32_t wait_status;
	enum pm_cpu cpu;
	uint64_t cpu_ns, user_ns, system_ns; /* of all its threads */
	uint64_t maxrss; /* bytes, peak */
	uint64_t minflt, majflt;
	uint32_t execs; /* seen by profd */
	uint64_t samples;
};

/*
 * Reads ids, parent, session, directory and CPU time, which change without an event,
 * from /proc, if the process lives and 'img' is its newest image. Takes some 40
 * us; a process whose files do not answer takes 100 ms, and is not read for a
 * minute.
 */
void pm_process_ask(struct pm *pm, struct pm_image *img);
/* The process of an image. */
void pm_process_info(const struct pm_image *img, struct pm_process_info *out);

/*
 * The keys of all images that pm_iter would give now, for use while the manager
 * is fed. malloc'd; NULL without memory.
 */
struct abi_key *pm_keys(struct pm *pm, bool all, size_t *np);
/* The newest image of the process of a key; NULL: it was forgotten. */
struct pm_image *pm_newest(struct pm *pm, const struct abi_key *key);
/*
 * Whether its process descends from this one, or is this one: by its pid and its
 * start_boottime; 0: whenever it started.
 */
bool pm_image_is_under(const struct pm_image *img, uint32_t pid,
		       uint64_t start);

struct pm_iter {
	struct pm_proc *next;
	bool all;
};
/*
 * The newest image of every living process, with 'all' also of those that ended
 * and are not forgotten. The manager must not be fed meanwhile.
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
	X(scanned, 0, "processes that existed at the start")                   \
	X(unknown, 0, "events of unknown processes")                           \
	X(found, 0, "processes a rescan found, whose fork was missed")         \
	X(vanished, 0, "processes a rescan missed, whose exit was missed")     \
	X(maps, 0, "mappings that appeared")                                   \
	X(maps_before_scan, 0, "mapping records a scan already contained")     \
	X(maps_lost, 0, "gaps in the mapping stream")                          \
	X(maps_limited, 0, "times a process had too many mapping records")     \
	X(maps_unbound, 0, "exec mapping sets no exec event followed")         \
	X(maps_overflow, 0, "mapping sets dropped for their size")             \
	X(maps_refused, 0, "mapping sets dropped: a user's share was used up") \
	X(exes_refused, 0, "new executables refused: a share was used up")     \
	X(rereads, 0, "mappings re-read from /proc")                           \
	X(provisional, 0, "images whose samples came before their exec event") \
	X(nomem, 0, "records dropped for lack of memory")                      \
	X(text_cut, 0, "arguments and paths cut: a share was used up")         \
	X(open_closed, 0, "executables closed for the limit of open files")    \
	X(early, 0, "new files opened as soon as they were executed")          \
	X(early_opened, 0, "... that were open in time")                       \
	X(early_failed, 0, "... that could not be opened any more")            \
	X(early_refused, 0, "new files not opened early: too many at once")    \
	X(early_unused, 0, "new files opened early that were not mapped")      \
	X(short_id_clashes, 0, "executables whose short id was another's")     \
	X(tracers, 0, "executables opened that have a tracer's variable")      \
	X(open_released, 0, "executables closed since they are not mapped")    \
	X(text_bytes, 1, "bytes of arguments and paths known")                 \
	X(copies, 0, "copies of a file's code found in memory")                \
	X(apm_agents, 1, "APM agents that listen")                             \
	X(apm_waiting, 1, "stacks that wait for their APM agent")              \
	X(apm_sent, 0, "messages with a stack sent to APM agents")             \
	X(apm_samples, 0, "samples that these messages were of")               \
	X(apm_gone, 0, "times that an APM agent did not listen any more")      \
	X(apm_refused, 0, "APM agents refused: too many, or of a user")        \
	X(apm_lost_full, 0, "samples not sent: too many stacks waited")        \
	X(apm_lost_late, 0, "samples not sent: the APM agent took too long")   \
	X(apm_lost_gone, 0, "samples not sent: their APM agent was gone")      \
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
	/*
	 * Milliseconds of gaps: in the lifecycle stream, in the mapping stream.
	 */
	uint64_t gaps_ms, maps_lost_ms;
};

void pm_get_stats(const struct pm *pm, struct pm_stats *out);

#endif /* PROCESSMANAGER_PROCESSMANAGER_H */
