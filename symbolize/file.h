/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file: one executable file (or the kernel, or the vDSO). Of a file of the
 * watched, profd itself has the descriptor and what it was told of it; only in
 * the worker process is there anything read from it. The kernel and the vDSO,
 * which are nobody's, are read in a thread of the pool, and touched by nobody
 * else meanwhile.
 */
#ifndef SYMBOLIZE_FILE_H
#define SYMBOLIZE_FILE_H

#include <sys/queue.h>

#include "base/base.h"
#include "symbolize/elf/ask.h"
#include "symbolize/names/index.h"
#include "symbolize/kallsyms.h"
#include "symbolize/symbolize.h"

/* What happened to a file when it was read, to be added up on the loop. */
struct symbolizer_tally {
	uint64_t resolved, unnamed, broken, built, hidden, undemangled;
};

struct symbolizer_file {
	uint64_t id; /* no other has or will have */
	char *path; /* as it was asked for; NULL: it was not */
	uint32_t uid; /* of the process it was opened for */
	uint32_t owner; /* user id, from fstat() */
	uint64_t mount; /* id of it, of which there is never another; or 0 */
	struct symbolizer_ident ident;
	struct symbolizer_segment *segments;
	size_t n_segments;
	int fd; /* or -1, then: */
	const void *image; /* the vDSO's */
	const char *kallsyms; /* the kernel: where its symbols are read */

	/* Its reader's while a request is worked at. */
	struct symbolizer_index *index;
	struct kallsyms *ksyms;
	uint64_t ksyms_time; /* boot time of the last reading, 0: none yet */
	int index_err; /* why there is none, once tried */
	bool damaged; /* counted already */
	unsigned int exceeded; /* names that took too long to demangle */

	/* The worker process': in the order of use, see worker_main.c. */
	TAILQ_ENTRY(symbolizer_file) lru;

	/* The loop's. */
	bool busy; /* a job has it that cannot be called back */
	bool closed; /* to be freed when it is not busy */
	bool at_work; /* a worker has a job on it */
	uint64_t turn; /* when it had one last, see workers.c; 0: never */
	uint64_t hurry; /* which to wait for its rows since; 0: no sample does */
};

struct symbolizer_file *symbolizer_file_new(void);
/*
 * Identity, but for the content hash and what fstat() says, and segments.
 * *damaged: it is ELF, but its headers lead nowhere, whether or not it fails.
 */
int symbolizer_file_load(struct symbolizer_file *f, struct symbolizer_src *src,
			 bool *damaged);
/* 'kallsyms' is borrowed. 0 or -errno, which is not fatal to anybody. */
int symbolizer_file_kernel(struct symbolizer_file **fp, const char *kallsyms);
/* The vDSO of this process; an empty file if there is none. */
int symbolizer_file_vdso(struct symbolizer_file **fp);
void symbolizer_file_free(struct symbolizer_file *f);

/* Memory of what can be built again. */
size_t symbolizer_file_index_bytes(const struct symbolizer_file *f);
void symbolizer_file_drop_index(struct symbolizer_file *f);

/* As struct symbolizer_symbol says. */
uint64_t symbolizer_file_vaddr(const struct symbolizer_file *f,
			       uint64_t offset);

/* An answer, with the memory its names are in. */
struct symbolizer_answer {
	struct symbolizer_symbol *syms;
	struct arena names;
	struct symbolizer_tally tally;
};

int symbolizer_answer_init(struct symbolizer_answer *a);
void symbolizer_answer_fini(struct symbolizer_answer *a);
/* 0, or -errno and no symbols. */
int symbolizer_file_resolve(struct symbolizer_file *f, const uint64_t *offsets,
			    size_t n, struct symbolizer_answer *a);

/* As symbolizer_rows() says; 'ask' may be NULL. */
int symbolizer_file_rows(const struct symbolizer_file *f,
			 const struct symbolizer_ask *ask,
			 struct symbolizer_rows **out);

/* --- content.c ------------------------------------------------------------ */

/* A hash of the contents. -EFBIG: too much would be read; or another -errno. */
int symbolizer_content(struct symbolizer_src *src, uint8_t *out);
/*
 * Sets the content hash of 'id' from that and the user id of the file's owner, who
 * can write to the file once it was hashed, and so decide what is read later.
 */
void symbolizer_content_owned(struct symbolizer_ident *id,
			      const uint8_t *content, uint32_t owner);
/* One that no other file has, for a file that was not hashed. */
void symbolizer_content_alone(struct symbolizer_ident *id);

/* --- open.c --------------------------------------------------------------- */

enum symbolizer_way {
	SYMBOLIZER_BY_PATH,
	SYMBOLIZER_BY_PLAIN_PATH, /* without the kernel's " (deleted)" */
	SYMBOLIZER_BY_MAPPING,
	SYMBOLIZER_BY_EXE, /* /proc/PID/exe; alone */
	SYMBOLIZER_N_WAYS,
};

/* What fstat() says, as far as anybody asks. */
struct symbolizer_stat {
	uint64_t dev, ino, size;
	int64_t mtime_ns, ctime_ns;
	uint64_t mount; /* as in a symbolizer_file */
	uint32_t owner; /* user id */
	uint32_t pad;
};

/*
 * The ways that may lead to the file of 'req', in the order in which they are
 * to be tried; how many.
 */
int symbolizer_open_ways(const struct symbolizer_open_req *req,
			 enum symbolizer_way ways[SYMBOLIZER_N_WAYS]);
/*
 * A descriptor for reading a regular file that has the device and inode of
 * 'req', or -errno: -ESTALE if it has others. The device of each mount is
 * written to *where before it is entered. May never return.
 */
int symbolizer_open_way(const struct symbolizer_open_req *req,
			enum symbolizer_way way, uint64_t *where,
			struct symbolizer_stat *st);
/* Whether the build id, if there is one to compare, is the one asked for. */
bool symbolizer_open_same(const struct symbolizer_open_req *req,
			  const struct symbolizer_ident *id);
#define SYMBOLIZER_DEBUG_ID_MAX 64 /* of a build id in a path; cut to it */

/*
 * A further file that one names, the 'nth' of the places where it may be: by
 * build id or by name, beneath one of 'dirs' (which NULL ends). 'beside' is the
 * path of the file that names it, or NULL. A descriptor for reading a regular
 * file; -ENOENT behind the last place; -EAGAIN: not there, but there may be
 * further places. 'where' as above.
 */
int symbolizer_open_debug(const char *const *dirs, const char *beside,
			  const uint8_t *build_id, size_t len, const char *name,
			  unsigned int nth, uint64_t *where);

#endif /* SYMBOLIZE_FILE_H */
