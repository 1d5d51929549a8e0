/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file: one executable file (or the kernel, or the vDSO), and what workers do
 * with it. A file is touched by one thread at a time: by the worker that opens
 * it, then by the loop, and while a request for names is worked at, its index
 * by that worker only.
 */
#ifndef SYMBOLIZE_FILE_H
#define SYMBOLIZE_FILE_H

#include "base/base.h"
#include "symbolize/ask.h"
#include "symbolize/index.h"
#include "symbolize/kallsyms.h"
#include "symbolize/symbolize.h"

/* What happened to a file on a worker, to be added up on the loop. */
struct symbolizer_tally {
	uint64_t resolved, unnamed, broken, built, hidden;
};

struct symbolizer_file {
	struct symbolizer_ident ident;
	struct symbolizer_segment *segments;
	size_t n_segments;
	int fd; /* or -1, then: */
	const void *image; /* the vDSO's */
	const char *kallsyms; /* the kernel: where its symbols are read */

	/* The worker's while a request is worked at. */
	struct symbolizer_index *index;
	struct kallsyms *ksyms;
	uint64_t ksyms_time; /* boot time of the last reading, 0: none yet */
	int index_err; /* why there is none, once tried */
	bool damaged; /* counted already */

	/* The loop's. */
	size_t index_bytes; /* as accounted */
	struct symbolizer_file *lru_prev, *lru_next;
	bool in_lru;
	bool busy; /* a worker has it */
	bool closed; /* to be freed when no worker has it */
};

/*
 * On a worker: opens the file of 'req', as reference has it or not at all.
 * *damaged: it is ELF, but its headers lead nowhere.
 */
int symbolizer_file_open(struct symbolizer_file **fp,
			 const struct symbolizer_open_req *req, bool *damaged);
/* 'kallsyms' is borrowed. 0 or -errno, which is not fatal to anybody. */
int symbolizer_file_kernel(struct symbolizer_file **fp, const char *kallsyms);
/* The vDSO of this process; an empty file if there is none. */
int symbolizer_file_vdso(struct symbolizer_file **fp);
void symbolizer_file_free(struct symbolizer_file *f);

/* Memory of what can be built again. */
size_t symbolizer_file_index_bytes(const struct symbolizer_file *f);
void symbolizer_file_drop_index(struct symbolizer_file *f);

/* An answer, with the memory its names are in. */
struct symbolizer_answer {
	struct symbolizer_symbol *syms;
	struct arena names;
	struct symbolizer_tally tally;
};

int symbolizer_answer_init(struct symbolizer_answer *a);
void symbolizer_answer_fini(struct symbolizer_answer *a);
/* On a worker. 0, or -errno and no symbols. */
int symbolizer_file_resolve(struct symbolizer_file *f, const uint64_t *offsets,
			    size_t n, struct symbolizer_answer *a);

/* On a worker. As symbolizer_rows() says; 'ask' may be NULL. */
int symbolizer_file_rows(const struct symbolizer_file *f,
			 const struct symbolizer_ask *ask,
			 struct symbolizer_rows **out);

/* --- open.c --------------------------------------------------------------- */

enum symbolizer_way {
	SYMBOLIZER_BY_PATH,
	SYMBOLIZER_BY_PLAIN_PATH, /* without the kernel's " (deleted)" */
	SYMBOLIZER_BY_MAPPING,
	SYMBOLIZER_N_WAYS,
};

/* A descriptor for reading a regular file, or -errno. */
int symbolizer_open_way(const struct symbolizer_open_req *req,
			enum symbolizer_way way);
/* Whether the path says that the file was deleted. */
bool symbolizer_path_deleted(const char *path);
/*
 * Whether the device and inode of a mapping and those of stat() are of two
 * minds on this file's file system (overlayfs, btrfs).
 */
bool symbolizer_inode_doubtful(int fd);

#endif /* SYMBOLIZE_FILE_H */
