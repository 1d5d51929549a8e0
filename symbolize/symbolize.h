/* SPDX-License-Identifier: Apache-2.0 */
/*
 * symbolize: everything that is read from an executable file.
 *
 * The interface is request -> completion: a request is queued, and its
 * completion is called later, on the loop, never from inside the request. All
 * calls are made on the loop's thread. symbolizer_free() completes the
 * remaining requests with -ECANCELED before it returns.
 *
 * The files belong to watched processes: paths, contents and sizes are hostile.
 * They are opened by opener processes, because that may never end, and read by
 * sandboxed worker processes, see symbolizer_worker_main(). A file on which a
 * worker crashes, hangs or runs out of memory is quarantined: requests for it
 * end with -EBADMSG. While no worker can be started, requests end with -EIO.
 */
#ifndef SYMBOLIZE_SYMBOLIZE_H
#define SYMBOLIZE_SYMBOLIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <uv.h>

#include "base/strbuf.h"
#include "symbolize/arch.h"
#include "symbolize/context/attributes.h"
#include "symbolize/elf/slots.h"
#include "symbolize/rows/go.h"

struct symbolizer;
struct symbolizer_file;

#define SYMBOLIZER_BUILD_ID_MAX 20 /* as in the kernel's MMAP2 record */
#define SYMBOLIZER_FILE_ID_LEN 16

/* X(NAME, name, "text"): why a file is quarantined; the names are of metrics. */
#define SYMBOLIZER_REASONS(X)                                          \
	X(KILLED, killed, "the worker was killed")                     \
	X(STOPPED, stopped, "the worker was stopped")                  \
	X(WAITED, waited, "the worker was kept waiting")               \
	X(TIME, time, "it took too long to read")                      \
	X(CPU, cpu, "it took too much CPU time to read")               \
	X(MEMORY, memory, "it took too much memory to read")           \
	X(SYSCALL, syscall, "the worker made a forbidden system call") \
	X(INVALID, invalid, "the worker sent an invalid message")      \
	X(CRASHED, crashed, "the worker crashed")

enum symbolizer_reason {
#define X(NAME, name, text) SYMBOLIZER_REASON_##NAME,
	SYMBOLIZER_REASONS(X)
#undef X
	SYMBOLIZER_N_REASONS,
};

struct symbolizer_quarantined {
	const char *path; /* as the watched process gave it, escaped, or "" */
	uint32_t uid; /* of the process that it was opened for */
	enum symbolizer_reason why;
	const char *text; /* the reason, a constant */
};

struct symbolizer_opts {
	uv_loop_t *loop;
	/* Ceiling for symbols kept between requests; 0: 16 MiB. */
	size_t index_bytes;
	/* Deadline for opening a path; 0: 2000 ms. */
	unsigned int open_deadline_ms;
	/* Read instead of /proc/kallsyms; for tests. NULL: the kernel's. */
	const char *kallsyms;
	/*
	 * The programs that are executed as worker, with SYMBOLIZER_WORKER as
	 * first argument, and as opener, with SYMBOLIZER_OPENER. NULL:
	 * /proc/self/exe.
	 */
	const char *worker, *opener;
	/* Deadline of a worker for one request; 0: 20000 ms. */
	unsigned int worker_deadline_ms;
	/* An idle worker is ended after this time; 0: 30000 ms. */
	unsigned int worker_idle_ms;
	/*
	 * A quarantined file is tried again after this time, which doubles with
	 * each further failure; 0: 600000 ms.
	 */
	unsigned int retry_ms;
	/*
	 * Limit of a worker's private writable memory (RLIMIT_DATA); 0: 256 MiB.
	 * A file's pages do not count, which the kernel can drop.
	 */
	size_t worker_memory;
	/*
	 * CPU time limit of a worker, in seconds; 0: 60. It is replaced between
	 * two requests once it has used half of it.
	 */
	unsigned int worker_cpu_s;
	/*
	 * Directories of debug files, NULL-terminated; borrowed until
	 * symbolizer_free(). NULL: /usr/lib/debug.
	 */
	const char *const *debug_dirs;
	/*
	 * Called when 'n' names of files that this user executed stay mangled,
	 * because demangling took too long. May be NULL.
	 */
	void (*undemangled)(void *arg, uint32_t uid, uint64_t n);
	/*
	 * A file was quarantined; all is valid during the call. May be NULL.
	 */
	void (*quarantined)(void *arg, const struct symbolizer_quarantined *q);
	/*
	 * A request for names of this user's files waits, because they took more
	 * CPU time than the user's share. May be NULL.
	 */
	void (*names_wait)(void *arg, uint32_t uid);
	/*
	 * A directory for what was read, so that it need not be read again
	 * after a restart; see symbolize/cache/. It is created if necessary.
	 * NULL: none.
	 */
	const char *cache;
	uint64_t cache_bytes; /* its size at most; 0: 256 MiB */
	/*
	 * URLs of debuginfod servers, NULL-terminated, which are asked for debug files
	 * that this host lacks; see symbolize/fetch/. What they send is kept in
	 * 'debuginfod_dir', which is borrowed until symbolizer_free() and created
	 * if necessary. NULL: none.
	 */
	const char *const *debuginfod;
	const char *debuginfod_dir;
	uint64_t debuginfod_bytes; /* of the directory at most; 0: 1 GiB */
	/* Wanted files are given up when a server fails, not asked for later. */
	bool debuginfod_once;
	/*
	 * A debug file of the executables with this build id has arrived: names
	 * asked for from now on come from it. May be NULL.
	 */
	void (*debuginfod_arrived)(void *arg, const uint8_t *build_id,
				   size_t len);
	/*
	 * A server failed (see symbolizer_fetch_problem()) for the first time since
	 * an answer; or the directory cannot be used, as for cache_failed(). May be
	 * NULL.
	 */
	void (*debuginfod_failed)(void *arg, int err);
	/*
	 * The directory cannot be used (-EPERM: it belongs to another user, or
	 * others may write to it), or cannot be written any more. Called once,
	 * perhaps from inside symbolizer_new(). May be NULL.
	 */
	void (*cache_failed)(void *arg, int err);
	void *arg;
};

/* 0 or -errno. 'opts' is only read. */
int symbolizer_new(struct symbolizer **sp, const struct symbolizer_opts *opts);
/*
 * All files must be closed before. The loop has to run once more, for jobs in
 * its pool and to close handles.
 */
void symbolizer_free(struct symbolizer *s);

/*
 * The identity of a file. The build id is the GNU note's, cut to
 * SYMBOLIZER_BUILD_ID_MAX; build_id_len 0: none. The file id is the SHA-256 of
 * its first and last 4096 bytes and its length (u64, little endian), in that
 * order, cut to 128 bits; for a file shorter than 4096 bytes both blocks are
 * the whole file.
 */
struct symbolizer_ident {
	uint8_t build_id[SYMBOLIZER_BUILD_ID_MAX];
	uint8_t build_id_len;
	uint8_t file_id[SYMBOLIZER_FILE_ID_LEN];
	/*
	 * A hash of what tables and names are made from, and of the owner of
	 * the file. Two files share tables and names only if this, the build id
	 * and the file id are equal, so that no user can change those of
	 * another user's file. It is unique if there is too much to hash (32
	 * MiB).
	 */
	uint8_t content[SYMBOLIZER_FILE_ID_LEN];
	uint64_t dev;
	uint64_t ino;
	uint64_t size;
	int64_t mtime_ns, ctime_ns;
};

/* An executable segment, to convert file offsets to addresses in the file. */
struct symbolizer_segment {
	uint64_t vaddr;
	uint64_t offset; /* in the file */
	uint64_t size; /* in the file */
};

/* Where a process has its perf map. */
struct symbolizer_map_root {
	int fd; /* its root directory */
	uint32_t pid; /* as it sees that */
	uint32_t uid; /* that it opens files with, nearly always */
};

/* Of a living process: 0, and the caller closes the descriptor; or -errno. */
int symbolizer_map_root_open(pid_t pid, uint64_t process_start,
			     struct symbolizer_map_root *out);

struct symbolizer_open_req {
	/* 'path' is resolved below /proc/PID/root; pid 0: it is profd's own. */
	pid_t pid;
	const char *path;
	/*
	 * Only /proc/PID/exe is tried, not 'path': what the process executes
	 * now, even if it was deleted. Requires 'pid', and 'ino' to compare.
	 */
	bool by_exe;
	/*
	 * The file is no executable, but the process's perf map (the path is not
	 * used). It is owned by the process's user, or by root and readable for
	 * all. 'process_start': as in struct abi_key; another process is refused.
	 */
	bool perf_map;
	uint64_t process_start;
	/*
	 * The process has ended: its perf map is looked for here, if it was written
	 * since its start; 'pid' is another one, which may see its mounts, or 0. Used
	 * for the call only. NULL: it lives.
	 */
	const struct symbolizer_map_root *root;
	/* The file is no executable, but a jitdump; it is found like one. */
	bool jitdump;
	/*
	 * The file may be a relocatable one (ET_REL: a kernel module, a .o file, or
	 * the debug file of one), which no process executes, or compressed by xz,
	 * gzip or zstd. The addresses of a relocatable one are
	 * offsets from where its code begins in memory: sections with code
	 * follow each other in the order of the file, aligned, as the kernel places
	 * them; those whose names begin with ".init" behind all others. These are
	 * also the offsets of requests.
	 */
	bool object;
	/* Samples wait for its unwind rows: as after symbolizer_hurry(). */
	bool hurry;
	/* Of the process: fairness, and limits of hung requests, go by it. */
	uint32_t uid;
	/*
	 * Where the process has it mapped, for /proc/PID/map_files, if the path
	 * now leads to another file or nowhere. Equal values: unknown.
	 */
	uint64_t map_start, map_end;
	/*
	 * As the kernel reported for the mapping; a file with others is not
	 * opened (-ESTALE). ino 0: unknown, allowed only for paths that the
	 * user of profd gave, with pid 0. generation 0: unknown, as from /proc.
	 * On overlayfs and btrfs these may differ from stat(2), see open.c.
	 */
	uint64_t dev, ino, generation;
	/* If known, a file with another one is refused (-ESTALE). */
	const uint8_t *build_id;
	size_t build_id_len; /* 0: unknown */
};

/* Not EOPNOTSUPP: that is ENOTSUP's number, which is that of another machine. */
#define SYMBOLIZER_EPLACE EMEDIUMTYPE

/*
 * err 0: the callee owns 'file', and closes it. Otherwise -errno and NULL:
 * -ENOENT, -ESTALE (the path leads to another file), -ETIMEDOUT, -EBUSY (too
 * many openings for its mount, user or process hang), -ENOEXEC (not ELF),
 * -SYMBOLIZER_EPLACE (it is on a file system that is not read), -EACCES (a file was
 * found, perhaps another one, that must not be opened), -EMFILE, -ECANCELED...
 */
typedef void (*symbolizer_open_fn)(void *arg, int err,
				   struct symbolizer_file *file);

/* An error of opening or reading a file, as a text for users. Static, or strerror()'s. */
const char *symbolizer_problem(int err);

/* 0 or -ENOMEM. Strings of 'req' are copied. */
int symbolizer_open(struct symbolizer *s, const struct symbolizer_open_req *req,
		    symbolizer_open_fn fn, void *arg);

/*
 * Samples wait for the unwind rows of this file: its identity and its rows are
 * read before those of other files of the same user and owner, in the order of
 * these calls.
 */
void symbolizer_hurry(struct symbolizer *s, struct symbolizer_file *file);
/* The same for a request that is still being opened, if there is one. */
void symbolizer_hurry_open(struct symbolizer *s, uint64_t dev, uint64_t ino);

/*
 * Whether size, mtime or ctime changed since the file was opened, as far as is
 * known without a request to a file server.
 */
bool symbolizer_changed(const struct symbolizer_file *file);

/*
 * The i-th mount point that does not answer, and how many openings hang there;
 * NULL: no more. Valid until the loop turns.
 */
const char *symbolizer_hung(const struct symbolizer *s, size_t i,
			    unsigned int *n);

/*
 * The kernel with its modules and BPF programs, and the vDSO: owned by the
 * symbolizer, never closed. For the kernel an "offset" of a request is the
 * address.
 */
struct symbolizer_file *symbolizer_kernel(struct symbolizer *s);
struct symbolizer_file *symbolizer_vdso(struct symbolizer *s);
/*
 * Kernel text outside of the kernel proper was replaced: its symbols are re-read
 * for the next request of one there, though not more often than before.
 */
void symbolizer_kernel_changed(struct symbolizer *s);
/*
 * Modules were loaded or unloaded: the symbols are re-read now. Those of a module that
 * is gone are kept for samples from before, see symbolizer_resolve_code().
 */
void symbolizer_kernel_modules(struct symbolizer *s);

/* A descriptor of it for reading, which the caller closes; or -errno. */
int symbolizer_file_dup(const struct symbolizer_file *file);
/* Its requests end with -ECANCELED before this returns. */
void symbolizer_close(struct symbolizer *s, struct symbolizer_file *file);

/* Valid until the file is closed. What the file lacks is zero. */
const struct symbolizer_ident *
symbolizer_ident(const struct symbolizer_file *file);
/*
 * The type of a relocation (ELF64_R_TYPE) in debug information of a relocatable file
 * that is not known, so that names come from symbols only; 0: none, or names have not
 * been read yet.
 */
uint32_t symbolizer_relocation(const struct symbolizer_file *file);
/* The executable segments, in file order; *np may be 0. */
const struct symbolizer_segment *
symbolizer_segments(const struct symbolizer_file *file, size_t *np);

/*
 * Where the file has the variable; of a file that lies about it, anywhere. Valid until
 * the file is closed.
 */
const struct symbolizer_slot *
symbolizer_slot(const struct symbolizer_file *file);

/* --- process contexts ------------------------------------------------------ */

/*
 * err 0; -EINVAL: the payload is invalid; -E2BIG: it has too many attributes; -EBADMSG,
 * -EIO, -ECANCELED ... Without error 'c' is valid during the call.
 */
typedef void (*symbolizer_context_fn)(void *arg, int err,
				      const struct symbolizer_context *c);
/* Reads a payload, which is copied, of a process of this user. 0 or -errno. */
int symbolizer_context(struct symbolizer *s, const void *payload, size_t len,
		       uint32_t uid, symbolizer_context_fn fn, void *arg);

/*
 * X(NAME, "word"): where a name comes from; the words are those of `profd debug
 * symbolize`.
 */
#define SYMBOLIZER_SOURCES(X)           \
	X(NONE, "none")                 \
	X(SYMTAB, "symtab")             \
	X(DYNSYM, "dynsym")             \
	X(KALLSYMS, "kallsyms")         \
	X(DWARF, "dwarf")               \
	X(DEBUG_SYMTAB, "debug symtab") \
	X(MINIDEBUG, "minidebug")       \
	X(GO, "gopclntab")              \
	X(PERF_MAP, "perf map")         \
	X(JITDUMP, "jitdump")           \
	X(CFI, "cfi")

enum symbolizer_source {
#define X(name, word) SYMBOLIZER_SOURCE_##name,
	SYMBOLIZER_SOURCES(X)
#undef X
	SYMBOLIZER_N_SOURCES,
};

/* A function of the source. No string is NULL; "" and 0 are unknown. */
struct symbolizer_function {
	const char *name; /* demangled, not "" */
	const char *system_name; /* the linker's name, not "" */
	const char *file; /* where it is defined */
	/* The current line; in a caller of inlined code, the call's. */
	uint32_t line;
	uint32_t start_line; /* of the function */
};

struct symbolizer_symbol {
	uint64_t offset; /* from the request */
	/*
	 * The same place as an address in the file (ELF virtual address; the
	 * kernel: the address). Equal to 'offset' if no segment covers it.
	 */
	uint64_t vaddr;
	/*
	 * The result is the same for every address in [start, start + size),
	 * which has 'vaddr' in it. Size 0: nothing is known. Without functions
	 * it is a function whose name no source has; it begins at 'start'.
	 */
	uint64_t start, size;
	/*
	 * The innermost inlined function first, the one that was not inlined
	 * last; nfunctions 0: no name. Valid during the completion.
	 */
	const struct symbolizer_function *functions;
	size_t nfunctions;
	enum symbolizer_source source; /* of the name of the last function */
	/*
	 * Of a jitdump: the answer is the same for so many nanoseconds before the
	 * point of the request, and from it on; else 0.
	 */
	uint64_t before, after;
	/* Module of a kernel symbol ("vmlinux": the kernel), or NULL. */
	const char *module;
};

/* err 0, or -errno with no symbols. All is valid during the call only. */
typedef void (*symbolizer_resolve_fn)(void *arg, int err,
				      const struct symbolizer_symbol *syms,
				      size_t n);

/*
 * Looks up 'n' file offsets, which are copied; the answer has their order. For
 * a return address, pass the address less one. 0 or -ENOMEM.
 */
int symbolizer_resolve(struct symbolizer *s, struct symbolizer_file *file,
		       const uint64_t *offsets, size_t n,
		       symbolizer_resolve_fn fn, void *arg);

/* err 0, or -errno: -ENOENT; -ENOTUNIQ: functions at several addresses have the name. */
typedef void (*symbolizer_find_fn)(void *arg, int err, uint64_t vaddr,
				   uint64_t size);

/*
 * Finds a section with code or a function by its name, the linker's: its address in the
 * file, and its size, 0 if that is not known. Not of the kernel and the vDSO: -EOPNOTSUPP.
 * 0 or -errno; the name is copied.
 */
int symbolizer_find(struct symbolizer *s, struct symbolizer_file *file,
		    const char *name, symbolizer_find_fn fn, void *arg);

/* Code that a runtime made, at an address of its process. */
struct symbolizer_code {
	uint64_t addr;
	/*
	 * The point in the file that counts. Of a perf map: its size when the sample
	 * was taken, as well as it is known; of a jitdump: CLOCK_MONOTONIC then. Of
	 * the kernel: CLOCK_BOOTTIME.
	 */
	uint64_t at;
};

/*
 * The same for the kernel, by what was there at that point; or for a file opened as
 * perf_map or jitdump. Then the name is of the last entry that the file had at that point;
 * if there is none, of the first later one. -E2BIG: too much work.
 */
int symbolizer_resolve_code(struct symbolizer *s, struct symbolizer_file *file,
			    const struct symbolizer_code *codes, size_t n,
			    symbolizer_resolve_fn fn, void *arg);
/* What became of such a file since it was opened. */
struct symbolizer_fresh {
	uint64_t size;
	uint32_t written; /* how often its contents were written anew */
	uint32_t moved; /* how often it was renamed, or its inode changed otherwise */
	bool unlinked; /* it has no name any more */
};

/*
 * Reads size and times of such a file into its identity, as far as they are known
 * without a request to a file server. A file that was written to and did not grow was
 * written anew: what was read of it is read again.
 */
void symbolizer_refresh(struct symbolizer_file *file,
			struct symbolizer_fresh *out);

/* --- unwind rows ---------------------------------------------------------- */

/* How to compute a value of the calling frame. */
enum symbolizer_from {
	SYMBOLIZER_SAME, /* the register is unchanged */
	SYMBOLIZER_UNDEFINED, /* none; the return address: outermost frame */
	SYMBOLIZER_ELSEWHERE, /* the return address: n is an enum symbolizer_switch */
	SYMBOLIZER_REG, /* reg + n */
	SYMBOLIZER_AT_REG, /* in memory at reg + n */
	SYMBOLIZER_CFA, /* CFA + n */
	SYMBOLIZER_AT_CFA, /* in memory at CFA + n */
	SYMBOLIZER_PLT, /* sp + 8, from byte n of a 16-byte stub on sp + 16 */
	SYMBOLIZER_EXPR, /* the value of DWARF expression n */
	SYMBOLIZER_AT_EXPR, /* in memory at that value */
};

struct symbolizer_value {
	uint8_t from; /* enum symbolizer_from */
	uint8_t reg; /* DWARF number */
	uint16_t pad;
	int32_t n;
};

/* By DWARF number. */
extern const char *const symbolizer_reg_names[SYMBOLIZER_REGS];

/* How to get from a frame to its caller. */
struct symbolizer_rule {
	struct symbolizer_value cfa; /* SAME: the row is a gap */
	struct symbolizer_value regs[SYMBOLIZER_REGS];
	bool signal; /* a signal frame: its address is not a return address */
};

/*
 * The unwind rows of one executable, sorted: each row's rule applies from its
 * address up to that of the next row. Rule 0 is a gap: the file has no rule
 * there. Addresses are those in the file. Read-only, and independent of the
 * file and the symbolizer.
 */
struct symbolizer_rows;

/* Rows that would need more memory are refused: -EFBIG. */
#define SYMBOLIZER_ROWS_MAX (32U << 20)

struct symbolizer_rows_info {
	size_t rows, rules; /* a gap is no rule */
	size_t bytes; /* of memory, in total */
	uint64_t text; /* bytes of .text; without sections, of all code */
	/*
	 * What is wrong with the first damaged entry, its section, and its
	 * offset in the section and in the file (0: the section is compressed).
	 * The table has the other entries that could be read. NULL: no damage.
	 */
	const char *damage, *section; /* valid as long as the table */
	uint64_t section_offset, file_offset;
	uint64_t before, after; /* as in struct symbolizer_symbol */
	bool by_code; /* made from the instructions of code without CFI */
	struct symbolizer_go go;
};

/*
 * err 0: the callee owns 'rows', and frees it. Otherwise -errno and NULL:
 * -ENODATA (no unwind information), -ENOTSUP (of another machine), -EFBIG,
 * -ECANCELED...
 */
typedef void (*symbolizer_rows_fn)(void *arg, int err,
				   struct symbolizer_rows *rows);

/* 0 or -ENOMEM. The kernel has none (-ENODATA). */
int symbolizer_rows(struct symbolizer *s, struct symbolizer_file *file,
		    symbolizer_rows_fn fn, void *arg);
/*
 * The same for a file opened as jitdump: the rows of the code that was in memory at the
 * point 'at', see struct symbolizer_code; their addresses are those of the process.
 * -ENODATA: the file has no unwind information; -E2BIG: too much work.
 */
int symbolizer_code_rows(struct symbolizer *s, struct symbolizer_file *file,
			 uint64_t at, symbolizer_rows_fn fn, void *arg);
void symbolizer_rows_free(struct symbolizer_rows *rows);

void symbolizer_rows_info(const struct symbolizer_rows *rows,
			  struct symbolizer_rows_info *out);
struct symbolizer_go symbolizer_rows_go(const struct symbolizer_rows *rows);
/* The number of the rule for an address; 0: none. */
uint16_t symbolizer_rows_find(const struct symbolizer_rows *rows,
			      uint64_t vaddr);
/* The i-th row, i < info.rows: its address and the number of its rule. */
uint16_t symbolizer_rows_at(const struct symbolizer_rows *rows, size_t i,
			    uint64_t *vaddr);
/* A rule by its number, which must be a row's. */
void symbolizer_rows_rule(const struct symbolizer_rows *rows, uint16_t id,
			  struct symbolizer_rule *out);
/* The DWARF expression 'n' of a rule; NULL: none. */
const uint8_t *symbolizer_rows_expr(const struct symbolizer_rows *rows,
				    int32_t n, size_t *len);

/*
 * The table as bytes without pointers, for another process of the same host and
 * build. Valid until the table is freed.
 */
const void *symbolizer_rows_bytes(const struct symbolizer_rows *rows,
				  size_t *len);
/* May be NULL: the bytes outlive the table. */
typedef void (*symbolizer_rows_release_fn)(void *arg, const void *map,
					   size_t len);
/*
 * A table of untrusted bytes, for example in a sealed memfd: they are validated
 * completely here. They must be aligned to 8 and immutable; they are used in
 * place, and 'release' frees them with the table. -EINVAL (not a valid table),
 * -ENOMEM: then the caller still owns them.
 */
int symbolizer_rows_adopt(const void *map, size_t len,
			  symbolizer_rows_release_fn release, void *arg,
			  struct symbolizer_rows **out);

/* --- debug files from servers --------------------------------------------- */

/*
 * The debug file with this build id is wanted, for a user of the symbolizer who has
 * no executable with it.
 */
void symbolizer_fetch(struct symbolizer *s, const uint8_t *build_id,
		      size_t len);
/* The number of files that are wanted from servers now. */
size_t symbolizer_fetching(const struct symbolizer *s);
/* An error of debuginfod_failed() as a text for the user. */
const char *symbolizer_fetch_problem(int err);

/* --- the worker process --------------------------------------------------- */

#define SYMBOLIZER_WORKER "symbolize-worker"
/* If permitted, a worker runs under the user id UID_BASE + its pid. */
#define SYMBOLIZER_UID_BASE 1879048192U
/* The same program, as the process that opens files, see opener.h. */
#define SYMBOLIZER_OPENER "symbolize-opener"

/* The same, as the process that downloads debug files, see fetch/fetch.h. */
#define SYMBOLIZER_FETCH "symbolize-fetch"

/* Whether argv[1] is one of these. */
bool symbolizer_worker_wanted(int argc, char **argv);
/*
 * main() calls this first in that case, and exits with its result. Standard
 * input is a socket; all other descriptors are closed.
 */
int symbolizer_worker_main(int argc, char **argv);

/*
 * Cuts the symbol indexes to 1 / 2^halvings of opts.index_bytes, until the next call,
 * and ends workers without a job. 0: the usual size.
 */
void symbolizer_shed(struct symbolizer *s, unsigned int halvings);

/* One line about the workers' state; 'buf' ends with NUL. */
void symbolizer_worker_status(const struct symbolizer *s, char *buf,
			      size_t len);
/* Why the file with this identity is quarantined, a constant; or NULL. */
const char *symbolizer_quarantine(const struct symbolizer *s,
				  const struct symbolizer_ident *id);
/* Bytes of the file's symbols when they were used last. */
uint64_t symbolizer_symbol_bytes(const struct symbolizer_file *file);
/*
 * The i-th quarantined file, the newest first. False: no more. Valid until the
 * loop turns. If there are many, the oldest of the user with the most are
 * forgotten.
 */
bool symbolizer_quarantined(const struct symbolizer *s, size_t i,
			    struct symbolizer_quarantined *out);
/* How many are quarantined now. */
size_t symbolizer_quarantined_now(const struct symbolizer *s);
/* How many ever were, by reason: SYMBOLIZER_N_REASONS numbers. */
const uint64_t *symbolizer_quarantined_by(const struct symbolizer *s);

/*
 * Appends a rule as `profd debug unwind-table` prints it after the address:
 * short, or in full, as symbolizer_rows_parse() needs it.
 */
void symbolizer_rows_put(const struct symbolizer_rows *rows, uint16_t id,
			 bool full, struct strbuf *out);

/* An error in a text. */
struct symbolizer_rows_error {
	size_t line, column; /* from 1 */
	const char *what; /* static */
};

/*
 * Parses lines "ADDRESS RULE", ascending, the last rule being "end"; empty
 * lines and comments after '#' are skipped. -EINVAL, -E2BIG (both set *where),
 * -ENOMEM.
 */
int symbolizer_rows_parse(const char *text, size_t len,
			  struct symbolizer_rows **out,
			  struct symbolizer_rows_error *where);
/*
 * A table with the rows of 'over' wherever it has any, and else those of 'own',
 * with the damage of 'own'. The caller still owns both. -ENOMEM, -E2BIG (they
 * are more than 4 GiB apart, or have too many rules).
 */
int symbolizer_rows_overlay(const struct symbolizer_rows *own,
			    const struct symbolizer_rows *over,
			    struct symbolizer_rows **out);
/*
 * From now on symbolizer_rows() overlays these over the rows of the executable
 * with this build id or file id, if it has any. A later call for the same id
 * replaces them. Takes ownership of 'rows' unless it fails: -ENOMEM, -EINVAL
 * (no id).
 */
int symbolizer_rows_by_hand(struct symbolizer *s, const uint8_t *id, size_t len,
			    struct symbolizer_rows *rows);

/* X(name, gauge, "help"): for metrics; gauge 0: it never decreases. */
#define SYMBOLIZER_STATS(X)                                                   \
	X(opened, 0, "executable files opened")                               \
	X(open_failed, 0, "executable files that could not be opened")        \
	X(open_stale, 0, "paths that led to another file than was mapped")    \
	X(open_refused, 0,                                                    \
	  "executable files not opened, for the file system that "            \
	  "they are on")                                                      \
	X(open_timeouts, 0, "executable files that took too long to open")    \
	X(open_skipped, 0,                                                    \
	  "executable files skipped: too many openings of "                   \
	  "their mount or user hang")                                         \
	X(opener_starts, 0, "starts of processes that open files")            \
	X(opener_failed, 0,                                                   \
	  "starts of them that failed, and ends unasked "                     \
	  "for")                                                              \
	X(opener_hung, 0, "openings that did not end in time")                \
	X(opener_hung_now, 1, "openings that hang now")                       \
	X(code_opened, 0, "perf maps and jitdumps opened")                    \
	X(code_cut, 0, "perf maps and jitdumps of which only a part is read") \
	X(code_refused, 0,                                                    \
	  "perf maps refused: not a plain file of the process's user")        \
	X(resolved, 0, "addresses looked up")                                 \
	X(unnamed, 0, "addresses no symbol covers")                           \
	X(undemangled, 0, "names left mangled: they took too long")           \
	X(broken, 0, "executable files whose headers or tables are damaged")  \
	X(kallsyms_hidden, 0, "readings of kallsyms that showed no address")  \
	X(index_built, 0, "symbol indexes built")                             \
	X(index_evicted, 0, "symbol indexes put out for the byte budget")     \
	X(index_bytes, 1, "bytes of symbol indexes held now")                 \
	X(units_read, 0, "compile units of debug information read")           \
	X(units_cached, 0,                                                    \
	  "compile units taken from the cache instead of being read")         \
	X(worker_starts, 0, "starts of the process that reads files")         \
	X(worker_failed, 0, "starts of it that failed, and ends unasked for") \
	X(worker_hung, 0, "times it was ended because it took too long")      \
	X(worker_lies, 0, "times it was ended because it talked nonsense")    \
	X(worker_nomem, 0, "times it ran out of the memory it may have")      \
	X(worker_shared, 0,                                                   \
	  "failures while it had read other files: the request is "           \
	  "repeated in a new process")                                        \
	X(worker_unhurried, 0,                                                \
	  "files read without priority: their users had used theirs up")      \
	X(worker_refused, 0,                                                  \
	  "requests refused: it fails on all files of their user")            \
	X(names_waited, 0,                                                    \
	  "requests for names that waited for their user's share of CPU "     \
	  "time")                                                             \
	X(quarantined, 0, "files quarantined: the worker failed on them")     \
	X(identified_known, 0,                                                \
	  "executable files identified without reading them: they had "       \
	  "not changed")                                                      \
	X(cache_rows_hits, 0, "unwind tables found in the cache on disk")     \
	X(cache_rows_misses, 0, "unwind tables not found there")              \
	X(cache_names_hits, 0, "addresses whose names were found there")      \
	X(cache_names_misses, 0, "addresses whose names were not")            \
	X(cache_units_refused, 0,                                             \
	  "lists of compile units not kept: too much of their owner waits "   \
	  "to be written, or they are too large")                             \
	X(cache_corrupt, 0, "damaged files in the cache, which were removed") \
	X(cache_stale, 0,                                                     \
	  "files in the cache of another build of profd, too old, or made "   \
	  "before debug files changed, which were removed")                   \
	X(cache_late, 0, "times that reading the cache took too long")        \
	X(cache_written, 0, "tables and lists of names written to the cache") \
	X(cache_evicted, 0, "files removed from the cache for its size")      \
	X(cache_bytes, 1, "bytes of the cache, once it was written to")       \
	X(cache_failed, 0, "times the cache could not be opened or written")  \
	X(fetch_done, 0, "debug files downloaded from debuginfod servers")    \
	X(fetch_none, 0, "debug files that no server has")                    \
	X(fetch_failed, 0, "downloads of debug files that failed")            \
	X(fetch_refused, 0,                                                   \
	  "debug files not asked for: too many for their user, or in all")    \
	X(fetch_pending, 1, "debug files that servers are to be asked for")   \
	X(fetch_evicted, 0, "downloaded debug files removed for the size")    \
	X(fetch_bytes, 1, "bytes of downloaded debug files")

struct symbolizer_stats {
#define X(name, gauge, help) uint64_t name;
	SYMBOLIZER_STATS(X)
#undef X
};

void symbolizer_get_stats(const struct symbolizer *s,
			  struct symbolizer_stats *out);

#endif /* SYMBOLIZE_SYMBOLIZE_H */
