/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file: one executable file, or the kernel, or the vDSO. Of a file of another
 * process, profd itself holds only the descriptor and what was reported about
 * it; the contents are read in a worker process. The kernel and the vDSO cannot
 * be forged; a thread of the pool reads these and has them alone meanwhile.
 */
#ifndef SYMBOLIZE_FILE_H
#define SYMBOLIZE_FILE_H

#include <sys/queue.h>

#include "base/base.h"
#include "symbolize/elf/ask.h"
#include "symbolize/names/names.h"
#include "symbolize/kallsyms.h"
#include "symbolize/symbolize.h"

/* Counted while a file is read, added to the statistics on the loop. */
struct symbolizer_tally {
	uint64_t resolved, unnamed, broken, built, hidden, undemangled;
	struct names_tally units; /* of the last request */
};

/*
 * Where debug files of an executable may be, beside the directories of debug files
 * in profd's root: in the root that the process had for which it was opened. They
 * must be in the mount of the executable and have its owner: whoever can put them
 * there could as well have changed the executable.
 */
#define SYMBOLIZER_OWN_BESIDE 1 /* next to it, and in .debug there */
#define SYMBOLIZER_OWN_DIRS 2 /* also in the directories; not profd's root */

struct symbolizer_own {
	uint32_t in; /* flags; 0: nowhere */
	int32_t pid; /* 0: profd's root */
	uint64_t dev, ino; /* of the root */
	uint64_t mount; /* of the executable, see statx(2) */
	uint32_t owner; /* its user id */
	uint32_t pad;
};

struct symbolizer_file {
	uint64_t id; /* unique, never reused */
	char *path; /* as requested, or NULL */
	uint32_t uid; /* of the process it was opened for */
	uint32_t owner; /* user id, from fstat() */
	uint64_t mount; /* id that is never reused; 0: unknown */
	bool code; /* a perf map or jitdump */
	bool unlinked; /* of one: as in struct symbolizer_fresh; */
	uint32_t written, moved; /* these, too */
	bool object; /* it may be a relocatable file, and compressed */
	struct symbolizer_own own;
	struct symbolizer_ident ident;
	struct symbolizer_segment *segments;
	size_t n_segments;
	struct symbolizer_slot slot;
	int fd; /* or -1, then: */
	const void *image; /* the vDSO's */
	const char *kallsyms; /* the kernel: where its symbols are read */

	/* Owned by the thread or process that works on a request. */
	uint8_t *plain; /* of a compressed file: what is in it; or NULL */
	size_t plain_len;
	struct symbolizer_names *names;
	struct kallsyms *ksyms;
	struct kallsyms_past past;
	struct jit_table *jit; /* of a perf map or jitdump */
	uint64_t ksyms_time; /* boot time of the last reading, 0: none yet */
	uint64_t ksyms_changed; /* the same of the last change; atomic */
	uint64_t ksyms_modules; /* the same of modules; atomic */
	int names_err; /* why there are none, after one attempt */
	bool damaged; /* counted already */
	uint32_t relocation; /* see symbolizer_relocation() */
	unsigned int exceeded; /* names that took too long to demangle */

	/* Worker process: in the order of use, see worker_main.c. */
	TAILQ_ENTRY(symbolizer_file) lru;

	/* Loop. */
	bool busy; /* in use by a job that cannot be cancelled */
	bool closed; /* freed as soon as it is not busy */
	bool at_work; /* a worker has a job on it */
	bool alone; /* it is read by a process that read no other, see worker.h */
	uint64_t turn; /* number of its last turn, see workers.c; 0: none */
	uint64_t hurry; /* rank among files that samples need; 0: none */
	uint64_t symbol_bytes; /* of its index, when a worker used it last */
	/* The debug file that a worker found missing; len 0: none. */
	uint8_t missed[SYMBOLIZER_BUILD_ID_MAX];
	uint8_t missed_len;
	bool unitless; /* nothing that was kept of its units is read */
	bool hashed; /* ident.content is a hash of the contents */
	/* What rows and names depend on besides, see reader/witness.h. */
	bool witnessed;
	struct strbuf witness;
};

struct symbolizer_file *symbolizer_file_new(void);
/*
 * Sets the slot, the segments (of a relocatable file one, which has the offsets of requests as
 * addresses) and the identity, except the content hash and what fstat()
 * reports; also 'damaged', whether or not it fails: the file is ELF, but its
 * headers are invalid.
 */
int symbolizer_file_load(struct symbolizer_file *f, struct symbolizer_src *src);
/*
 * Sets 'src' to the contents, until the file is freed or its descriptor closed. 0; of a
 * compressed file an error of symbolizer_packed_read().
 */
int symbolizer_file_src(struct symbolizer_file *f, struct symbolizer_src *src);
/* 'kallsyms' is borrowed. 0 or -ENOMEM. */
int symbolizer_file_kernel(struct symbolizer_file **fp, const char *kallsyms);
/* The vDSO of this process; an empty file if there is none. */
int symbolizer_file_vdso(struct symbolizer_file **fp);
void symbolizer_file_free(struct symbolizer_file *f);

/* Memory of the indexes, which can be rebuilt. */
size_t symbolizer_file_index_bytes(const struct symbolizer_file *f);

/* As in struct symbolizer_symbol. */
uint64_t symbolizer_file_vaddr(const struct symbolizer_file *f,
			       uint64_t offset);

/* An answer; its names are in the arena, which the caller initializes. */
struct symbolizer_answer {
	struct symbolizer_symbol *syms;
	struct arena names;
	struct symbolizer_tally tally;
};

void symbolizer_answer_fini(struct symbolizer_answer *a);
/*
 * Sets the functions of a symbol, which are in the arena; every source of names ends
 * here, and here is no character that could mislead a terminal. 0 or -ENOMEM.
 */
int symbolizer_answer_set(struct symbolizer_answer *a,
			  struct symbolizer_symbol *sym,
			  struct symbolizer_function *fns, size_t n);
/* Copies the functions of a symbol into the answer. False: no memory. */
bool symbolizer_answer_keep(struct symbolizer_answer *a,
			    struct symbolizer_symbol *sym);
/*
 * 0, or -errno and no symbols. 'ask' may be NULL. 'times': of samples, for the kernel;
 * NULL: now.
 */
int symbolizer_file_resolve(struct symbolizer_file *f,
			    const struct symbolizer_ask *ask,
			    const uint64_t *offsets, const uint64_t *times,
			    size_t n, struct symbolizer_answer *a);

/*
 * jit/code.c: the same from a perf map or jitdump. -E2BIG: too much work, as its owner has
 * arranged.
 */
int symbolizer_file_code(struct symbolizer_file *f,
			 const struct symbolizer_code *codes, size_t n,
			 struct symbolizer_answer *a);
/* jit/code.c: as symbolizer_code_rows(). */
int symbolizer_file_code_rows(struct symbolizer_file *f, uint64_t at,
			      struct symbolizer_tally *tally,
			      struct symbolizer_rows **out);
size_t symbolizer_file_code_bytes(const struct symbolizer_file *f);
void symbolizer_file_code_free(struct symbolizer_file *f);

/* As symbolizer_rows(); 'ask' may be NULL. */
int symbolizer_file_rows(const struct symbolizer_file *f,
			 const struct symbolizer_ask *ask,
			 struct symbolizer_rows **out);

/* --- content.c ------------------------------------------------------------ */

/* A hash of the contents. -EFBIG: too much to read; or another -errno. */
int symbolizer_content(struct symbolizer_src *src, uint8_t *out);
/*
 * Sets the content hash of 'id' from that and the user id of the file's owner,
 * who can still change the file after it was hashed.
 */
void symbolizer_content_owned(struct symbolizer_ident *id,
			      const uint8_t *content, uint32_t owner);
/*
 * A unique one, for a file that was not hashed, or whose names may come from debug
 * files in another root than profd's, where its owner may lie.
 */
void symbolizer_content_alone(struct symbolizer_ident *id,
			      const struct symbolizer_own *own);

/* --- open.c --------------------------------------------------------------- */

#define SYMBOLIZER_DELETED " (deleted)" /* the kernel appends it to a path */

enum symbolizer_way {
	SYMBOLIZER_BY_PATH,
	SYMBOLIZER_BY_PLAIN_PATH, /* without SYMBOLIZER_DELETED */
	SYMBOLIZER_BY_MAPPING,
	SYMBOLIZER_BY_EXE, /* /proc/PID/exe; alone */
	SYMBOLIZER_PERF_MAP, /* perf-PID.map; alone */
	SYMBOLIZER_N_WAYS,
};

/* From fstat(). */
struct symbolizer_stat {
	uint64_t dev, ino, size;
	int64_t mtime_ns, ctime_ns;
	uint64_t mount; /* as in a symbolizer_file */
	uint32_t owner; /* user id */
	uint32_t pad;
	struct symbolizer_own own;
};

/*
 * A descriptor for reading a regular file that has the device and inode of
 * 'req', or -errno: -ESTALE if it has others. The device of each mount is
 * written to *where before it is entered. May never return.
 */
int symbolizer_open_way(const struct symbolizer_open_req *req,
			enum symbolizer_way way, uint64_t *where,
			struct symbolizer_stat *st);

/*
 * For jit/open_map.c: a place (O_PATH) below the root of a process, or below 'root' unless
 * that is -1; and opens a place for reading, if it is a regular file on a file system that
 * is read.
 */
int symbolizer_place_below(pid_t pid, int root, const char *path,
			   uint64_t *where);
int symbolizer_place_open(int place, pid_t pid, uint64_t *where,
			  struct symbolizer_stat *st);

/*
 * jit/open_map.c: likewise for the perf map of the process that req->pid is, since
 * req->process_start; or of the one of req->root. -EACCES: it has one that must not be
 * read. -ESTALE: an earlier process wrote it.
 */
int symbolizer_open_map(const struct symbolizer_open_req *req, uint64_t *where,
			struct symbolizer_stat *st);

#define SYMBOLIZER_DEBUG_ID_MAX 64 /* a build id in a path is cut to this */

/*
 * A debug file, from the 'nth' of the places where it may be: by build id or by
 * name, where 'own' allows it, then beneath one of 'dirs' (NULL-terminated).
 * 'beside' is the path of the executable, or NULL. A descriptor for reading a regular file; -ENOENT: no
 * such place; -EAGAIN: not there, try the next place. 'where' as above.
 */
int symbolizer_open_debug(const char *const *dirs,
			  const struct symbolizer_own *own, const char *beside,
			  const uint8_t *build_id, size_t len, const char *name,
			  unsigned int nth, uint64_t *where);

#endif /* SYMBOLIZE_FILE_H */
