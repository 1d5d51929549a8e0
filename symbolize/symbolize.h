/* SPDX-License-Identifier: Apache-2.0 */
/*
 * symbolize: everything that is read from an executable file.
 *
 * The interface is request -> completion: a request is queued from the loop
 * and its completion is called later, on the loop, never from inside the
 * request itself. All calls are made on the loop's thread. Completions still
 * owed when symbolizer_free() is called come with -ECANCELED before it returns.
 *
 * The files belong to the processes being watched: paths, contents and sizes
 * are hostile. They are opened in processes of their own, for that may never
 * end, and read in another that can do nothing else: see
 * symbolizer_worker_main(). A file on which that one
 * crashes, hangs or runs out of memory is put aside, as symbolizer_quarantined()
 * tells: requests for it end with -EBADMSG. With -EIO they end while there is
 * no such process to be had at all.
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

struct symbolizer;
struct symbolizer_file;

#define SYMBOLIZER_BUILD_ID_MAX 20 /* as in the kernel's MMAP2 record */
#define SYMBOLIZER_FILE_ID_LEN 16

struct symbolizer_opts {
	uv_loop_t *loop;
	/* Ceiling for symbol indexes kept between requests; 0: 8 MiB. */
	size_t index_bytes;
	/* A path may keep its opening waiting so long; 0: 2000 ms. */
	unsigned int open_deadline_ms;
	/* Read instead of /proc/kallsyms; for tests. NULL: the kernel's. */
	const char *kallsyms;
	/*
	 * The program that is run as the worker, with SYMBOLIZER_WORKER as its
	 * first argument, and the one that opens files, with SYMBOLIZER_OPENER.
	 * NULL: this one again, /proc/self/exe.
	 */
	const char *worker, *opener;
	/* One request may take it so long; 0: 20000 ms. */
	unsigned int worker_deadline_ms;
	/* With nothing to do for so long it is let go; 0: 30000 ms. */
	unsigned int worker_idle_ms;
	/*
	 * A file put aside is tried again after so long, and twice as long each
	 * time that it fails then; 0: 600000 ms.
	 */
	unsigned int retry_ms;
	/* What one request may take of memory; 0: 384 MiB. */
	size_t worker_memory;
	/*
	 * CPU time it may use, in seconds; 0: 60. At half of it, between two
	 * requests, it is replaced.
	 */
	unsigned int worker_cpu_s;
	/*
	 * Where separate debug files are, NULL at the end; borrowed as long as
	 * the symbolizer lives. NULL: /usr/lib/debug.
	 */
	const char *const *debug_dirs;
	/*
	 * So many names of files that this user executed were left mangled:
	 * they took too long. May be NULL.
	 */
	void (*undemangled)(void *arg, uint32_t uid, uint64_t n);
	void *arg;
};

/* 0 or -errno. 'opts' is only read. */
int symbolizer_new(struct symbolizer **sp, const struct symbolizer_opts *opts);
/*
 * All files must be closed before. The loop has to run once more for what is
 * still in its pool and for a handle to close.
 */
void symbolizer_free(struct symbolizer *s);

/*
 * What a file is, by itself. The build id is the GNU note's, cut to
 * SYMBOLIZER_BUILD_ID_MAX; build_id_len 0 means the file has none. The file id
 * is the SHA-256 of its first and last 4096 bytes and its length (u64, little
 * endian), in that order, cut to 128 bits; for a file shorter than 4096 bytes
 * both blocks are the whole file.
 */
struct symbolizer_ident {
	uint8_t build_id[SYMBOLIZER_BUILD_ID_MAX];
	uint8_t build_id_len;
	uint8_t file_id[SYMBOLIZER_FILE_ID_LEN];
	/*
	 * A hash of what tables and names are made of, and of the owner of the
	 * file: where it, the build id and the file id are equal, two files may
	 * share these, so that nobody can change what another's are. A file with too
	 * much to be hashed (32 MiB) has one that is equal to no other's.
	 */
	uint8_t content[SYMBOLIZER_FILE_ID_LEN];
	uint64_t dev;
	uint64_t ino;
	uint64_t size;
	int64_t mtime_ns, ctime_ns;
};

/*
 * An executable segment, for whoever converts file offsets to the addresses
 * that are written in the file.
 */
struct symbolizer_segment {
	uint64_t vaddr;
	uint64_t offset; /* in the file */
	uint64_t size; /* in the file */
};

struct symbolizer_open_req {
	/*
	 * 'path' is looked up below /proc/PID/root, never outside of it. With
	 * pid 0 it is a path of our own, as main() sees it.
	 */
	pid_t pid;
	const char *path;
	/*
	 * Only /proc/PID/exe is tried, whatever 'path' says: what the process
	 * runs now, also if it was deleted. Needs 'pid', and 'ino' to be sure.
	 */
	bool by_exe;
	/* Samples wait for its unwind rows: as after symbolizer_hurry(). */
	bool hurry;
	/* Of the process: requests are fair, and hung ones bounded, by it. */
	uint32_t uid;
	/*
	 * Where the process has it mapped: the way to a file whose path leads
	 * to another file by now, or nowhere. Equal values: not known.
	 */
	uint64_t map_start, map_end;
	/*
	 * What the kernel reported for the mapping; a file with others is not
	 * opened (-ESTALE). ino 0: not known, which only a path that the user of
	 * profd named may have: no 'pid'. On overlayfs and btrfs the kernel may report others than stat(2):
	 * see open.c. generation 0: not known, as /proc does not tell it.
	 */
	uint64_t dev, ino, generation;
	/* If it is known: another file is refused (-ESTALE) once it is read. */
	const uint8_t *build_id;
	size_t build_id_len; /* 0: not known */
};

/*
 * err 0: 'file' is the callee's, who closes it. Otherwise -errno and NULL:
 * -ENOENT, -ESTALE (the path leads to another file), -ETIMEDOUT, -EBUSY (too
 * many openings of its mount, user or process hang), -ENOEXEC (not ELF),
 * -EOPNOTSUPP (it is on a file system that is not read), -EACCES (what is there is
 * not opened, whether or not it is the file), -EMFILE, -ECANCELED...
 */
typedef void (*symbolizer_open_fn)(void *arg, int err,
				   struct symbolizer_file *file);

/* 0 when the request was taken; -ENOMEM. Strings of 'req' are copied. */
int symbolizer_open(struct symbolizer *s, const struct symbolizer_open_req *req,
		    symbolizer_open_fn fn, void *arg);

/*
 * Samples wait for the unwind rows of this file: its identity and its rows are
 * read before those of other files of the same user and owner, in the order of
 * these calls.
 */
void symbolizer_hurry(struct symbolizer *s, struct symbolizer_file *file);
/*
 * The same for a file that is still being opened, by the 'dev' and 'ino' of the
 * request. Does nothing if there is no such request.
 */
void symbolizer_hurry_open(struct symbolizer *s, uint64_t dev, uint64_t ino);

/*
 * Whether the file was changed since it was opened, as far as is known without
 * asking a server: by size, mtime and ctime.
 */
bool symbolizer_changed(const struct symbolizer_file *file);

/*
 * The i-th mount point that does not answer, and how many openings hang there;
 * NULL: no more. Valid until the loop turns.
 */
const char *symbolizer_hung(const struct symbolizer *s, size_t i,
			    unsigned int *n);

/*
 * The kernel with its modules and BPF programs, and the vDSO: always there,
 * owned by the symbolizer, not to be closed. For the kernel an "offset" of a
 * request is the address itself.
 */
struct symbolizer_file *symbolizer_kernel(struct symbolizer *s);
struct symbolizer_file *symbolizer_vdso(struct symbolizer *s);

/*
 * May be called with requests under way; they end with -ECANCELED before it
 * returns.
 */
void symbolizer_close(struct symbolizer *s, struct symbolizer_file *file);

/* Valid until the file is closed. Fields the file has none of are zero. */
const struct symbolizer_ident *
symbolizer_ident(const struct symbolizer_file *file);
/* The executable segments, in file order; *np may be 0. */
const struct symbolizer_segment *
symbolizer_segments(const struct symbolizer_file *file, size_t *np);

/* A function of the source. No string is NULL; "" and 0 are unknown. */
struct symbolizer_function {
	const char *name; /* demangled, not "" */
	const char *system_name; /* as the linker has it, not "" */
	const char *file; /* where it is defined */
	/* The line that runs: in an inlined function's caller, of the call. */
	uint32_t line;
	uint32_t start_line; /* the function's own */
};

struct symbolizer_symbol {
	uint64_t offset; /* as asked for */
	/*
	 * The same place in the addresses the file itself uses (ELF virtual
	 * address; the kernel: the address). Equal to 'offset' if no segment
	 * covers it.
	 */
	uint64_t vaddr;
	/*
	 * When named: the first address and the size, as above, of the function
	 * that was not inlined. It is the same for every address in
	 * [start, start + size); of a function with others inside it, that is
	 * the part with the address.
	 */
	uint64_t start, size;
	/*
	 * Innermost inlined function first, last the one that was not inlined;
	 * nfunctions 0: the file has no name for it. Valid during the completion.
	 */
	const struct symbolizer_function *functions;
	size_t nfunctions;
	/* Module of a kernel symbol ("vmlinux" for the kernel proper), or NULL. */
	const char *module;
};

/* err 0, or -errno with no symbols; the rest is valid during the call only. */
typedef void (*symbolizer_resolve_fn)(void *arg, int err,
				      const struct symbolizer_symbol *syms,
				      size_t n);

/*
 * Names for 'n' file offsets, copied, in any order; the answer is in the order
 * of the question. A return address must come less one. 0 or -ENOMEM.
 */
int symbolizer_resolve(struct symbolizer *s, struct symbolizer_file *file,
		       const uint64_t *offsets, size_t n,
		       symbolizer_resolve_fn fn, void *arg);

/* --- unwind rows ------------------------------------------------------------ */

/* Where a value of the calling frame is to be had. */
enum symbolizer_from {
	SYMBOLIZER_SAME, /* the register as it is */
	SYMBOLIZER_UNDEFINED, /* nowhere; of the return address: a root */
	SYMBOLIZER_ELSEWHERE, /* of the return address: on another stack */
	SYMBOLIZER_REG, /* reg + n */
	SYMBOLIZER_AT_REG, /* in memory at reg + n */
	SYMBOLIZER_CFA, /* CFA + n */
	SYMBOLIZER_AT_CFA, /* in memory at CFA + n */
	SYMBOLIZER_PLT, /* sp + 8, from byte n of a 16-byte stub on sp + 16 */
	SYMBOLIZER_EXPR, /* what DWARF expression n says */
	SYMBOLIZER_AT_EXPR, /* in memory at what it says */
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
	bool signal; /* a signal handler's frame: no -1 on its address */
};

/*
 * The unwind rows of one executable, sorted: from each row's address on, to
 * that of the next, its rule holds. Rule 0 is a gap, where the file says
 * nothing. Addresses are those written in the file. Read only, and independent
 * of the file and the symbolizer.
 */
struct symbolizer_rows;

/* A file whose rows would take more memory has none: -EFBIG. */
#define SYMBOLIZER_ROWS_MAX (32U << 20)

struct symbolizer_rows_info {
	size_t rows, rules; /* a gap is no rule */
	size_t bytes; /* of memory, all in */
	uint64_t text; /* bytes of .text; of all code, where nobody says */
	/*
	 * NULL: all was whole. Otherwise what is wrong with the first broken
	 * entry, the section it is in, and where: from the section's start,
	 * and in the file (0: in a compressed section). What was read up to
	 * there, and what could be read behind it, is in the table.
	 */
	const char *damage, *section; /* valid as long as the table */
	uint64_t section_offset, file_offset;
};

/*
 * err 0: 'rows' is the callee's, who frees it. Otherwise -errno and NULL:
 * -ENODATA (no unwind information), -ENOTSUP (of another machine), -EFBIG...
 */
typedef void (*symbolizer_rows_fn)(void *arg, int err,
				   struct symbolizer_rows *rows);

/* 0 or -ENOMEM. The kernel has none (-ENODATA). */
int symbolizer_rows(struct symbolizer *s, struct symbolizer_file *file,
		    symbolizer_rows_fn fn, void *arg);
void symbolizer_rows_free(struct symbolizer_rows *rows);

void symbolizer_rows_info(const struct symbolizer_rows *rows,
			  struct symbolizer_rows_info *out);
/* The number of the rule that holds at an address; 0: none. */
uint16_t symbolizer_rows_find(const struct symbolizer_rows *rows,
			      uint64_t vaddr);
/* A row by its place, below info.rows: its address, and its rule. */
uint16_t symbolizer_rows_at(const struct symbolizer_rows *rows, size_t i,
			    uint64_t *vaddr);
/* A rule that a row has. */
void symbolizer_rows_rule(const struct symbolizer_rows *rows, uint16_t id,
			  struct symbolizer_rule *out);
/* The DWARF expression 'n' of a rule; NULL: there is no such. */
const uint8_t *symbolizer_rows_expr(const struct symbolizer_rows *rows,
				    int32_t n, size_t *len);

/*
 * The table as bytes, which hold no address of ours: good in another process
 * of the same host and build. Valid until the table is freed.
 */
const void *symbolizer_rows_bytes(const struct symbolizer_rows *rows,
				  size_t *len);
/* May be NULL: the bytes outlive the table. */
typedef void (*symbolizer_rows_release_fn)(void *arg, const void *map,
					   size_t len);
/*
 * A table of bytes that come from a stranger, say, in a sealed memfd: all of it
 * is looked at once, so that nothing has to be later. They lie at an address
 * that 8 divides, are used as they lie there and may not change any more; freed
 * by 'release' with the table. -EINVAL (no table that could have been made
 * here), -ENOMEM: then they stay the caller's.
 */
int symbolizer_rows_adopt(const void *map, size_t len,
			  symbolizer_rows_release_fn release, void *arg,
			  struct symbolizer_rows **out);

/* --- the worker process ------------------------------------------------------- */

#define SYMBOLIZER_WORKER "symbolize-worker"
/* Where it may, it runs as a user of its own: this and its pid. */
#define SYMBOLIZER_UID_BASE 1879048192U
/* ... and of those that open files, see opener.h: the same program. */
#define SYMBOLIZER_OPENER "symbolize-opener"

/* Whether argv[1] is one of the two. */
bool symbolizer_worker_wanted(int argc, char **argv);
/*
 * What main() of the program does then; nothing was opened before, or is needed
 * after. It has a socket for its standard input, and closes everything else. An
 * exit status.
 */
int symbolizer_worker_main(int argc, char **argv);

/* One line on how it is; 'buf' ends with NUL. */
void symbolizer_worker_status(const struct symbolizer *s, char *buf,
			      size_t len);
/*
 * The i-th file put aside, or NULL; the oldest are forgotten when they get
 * many. The path is the watched process's word. Valid until the loop turns.
 */
const char *symbolizer_quarantined(const struct symbolizer *s, size_t i,
				   const char **why);

/*
 * Adds a rule as `profd debug unwind-table` prints it behind the address: short,
 * or in full, so that it can be read back.
 */
void symbolizer_rows_put(const struct symbolizer_rows *rows, uint16_t id,
			 bool full, struct strbuf *out);

/* What is wrong with a text, and where, from 1. */
struct symbolizer_rows_error {
	size_t line, column;
	const char *what; /* static */
};

/*
 * Rows from lines "ADDRESS RULE", ascending, the last of them an "end"; empty
 * lines and what follows a '#' are passed over. -EINVAL, -E2BIG (*where says
 * why), -ENOMEM.
 */
int symbolizer_rows_parse(const char *text, size_t len,
			  struct symbolizer_rows **out,
			  struct symbolizer_rows_error *where);
/*
 * A table with the rows of 'over' wherever it has any, and else those of 'own',
 * whose damage it keeps. Both stay the caller's. -ENOMEM, -E2BIG (they lie more
 * than 4 GiB apart, or have too many rules).
 */
int symbolizer_rows_overlay(const struct symbolizer_rows *own,
			    const struct symbolizer_rows *over,
			    struct symbolizer_rows **out);
/*
 * From now on symbolizer_rows() gives these for the executable with this build
 * id, or file id, over its own; also if it has none. Of two for one the later
 * stays. 'rows' is taken over, unless it fails: -ENOMEM, -EINVAL (no id).
 */
int symbolizer_rows_by_hand(struct symbolizer *s, const uint8_t *id, size_t len,
			    struct symbolizer_rows *rows);

/* X(name, 0, "help"): what is counted, for metrics; all monotonic but those with 1. */
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
	X(resolved, 0, "addresses looked up")                                 \
	X(unnamed, 0, "addresses no symbol covers")                           \
	X(undemangled, 0, "names left mangled: they took too long")           \
	X(broken, 0, "executable files whose headers or tables are damaged")  \
	X(kallsyms_hidden, 0, "readings of kallsyms that showed no address")  \
	X(index_built, 0, "symbol indexes built")                             \
	X(index_evicted, 0, "symbol indexes put out for the byte budget")     \
	X(index_bytes, 1, "bytes of symbol indexes held now")                 \
	X(worker_starts, 0, "starts of the process that reads files")         \
	X(worker_failed, 0, "starts of it that failed, and ends unasked for") \
	X(worker_hung, 0, "times it was ended because it took too long")      \
	X(worker_lies, 0, "times it was ended because it talked nonsense")    \
	X(worker_nomem, 0, "times it ran out of the memory it may have")      \
	X(worker_unhurried, 0,                                                \
	  "files read without priority: their users had used theirs up")      \
	X(worker_refused, 0,                                                  \
	  "requests refused: it fails on all files of their user")            \
	X(put_aside, 0, "executable files put aside: it failed on them")

struct symbolizer_stats {
#define X(name, gauge, help) uint64_t name;
	SYMBOLIZER_STATS(X)
#undef X
};

void symbolizer_get_stats(const struct symbolizer *s,
			  struct symbolizer_stats *out);

#endif /* SYMBOLIZE_SYMBOLIZE_H */
