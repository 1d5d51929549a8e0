/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker_msg: the messages between profd and a worker, over a SOCK_SEQPACKET
 * pair: a struct, and what varies in length behind it. Both are the same
 * program, so there is no version and no byte order.
 *
 *	to the worker			from the worker
 *	-				HELLO, once
 *	IDENT + file			IDENT
 *	NAMES + file			NAMES, one or more
 *	ROWS + file			ROWS (+ memfd)
 *	FIND + file			FIND
 *	CONTEXT + memfd			CONTEXT
 *	FILE (+ file)			ASK, while it works at one of these
 *	-				KEEP + memfd, while it works at NAMES
 *
 * There is one question at a time; all its messages have its number in 'job'.
 * Each question comes with the file, so a new worker needs no other state.
 *
 * A worker that read a hostile file may send anything. The checks here are all
 * that protects profd from it. Messages from profd are checked in the same way.
 */
#ifndef SYMBOLIZE_WORKER_MSG_H
#define SYMBOLIZE_WORKER_MSG_H

#include "base/base.h"
#include "symbolize/symbolize.h"

#define SYMBOLIZER_WORKER_ENV "SYMBOLIZER_WORKER"

#define WORKER_MSG_MAX 65536
#define WORKER_NAMES_MAX 2048 /* addresses in a question; 16 KiB */
#define WORKER_TEXT_MAX 8192 /* of a name; see demangle.h */
#define WORKER_SOURCE_MAX 1024 /* of a source file's name */
#define WORKER_FUNCTIONS_MAX 64 /* at an address, inlined into each other */
#define WORKER_NAME_MAX 24576 /* bytes of all functions at an address */
#define WORKER_SEGMENTS_MAX 64 /* of an ELF file, see elf.c */
#define WORKER_INLINE_MAX 32768 /* of a table in the message itself */
#define WORKER_TABLE_MAX SYMBOLIZER_ROWS_MAX /* of a table in a memfd */
#define WORKER_BASENAME_MAX 255
#define WORKER_ASK_NAME_MAX 1023 /* of a file to look for, or its path */
#define WORKER_ASK_ID_MAX 64 /* of a build id to look for */
#define WORKER_WHAT_MAX 32
#define WORKER_KEEP_MAX (24U << 20) /* bytes of a KEEP; DWARF_STORE_MAX */

enum worker_type {
	WORKER_HELLO = 1,
	WORKER_IDENT,
	WORKER_NAMES,
	WORKER_ROWS,
	WORKER_FIND,
	WORKER_ASK,
	WORKER_FILE,
	WORKER_KEEP,
	WORKER_CONTEXT,
};

struct worker_head {
	uint32_t type;
	uint32_t len; /* of the message, this included */
	uint64_t job;
};

/*
 * IDENT, NAMES, ROWS, FIND, CONTEXT; vaddrs[n] follow NAMES; n words with a name, whose last
 * byte is 0, follow FIND; with 'code', n / 2 times struct
 * symbolizer_code, of a perf map or jitdump, follow NAMES and ROWS, these one.
 */
struct worker_question {
	struct worker_head head;
	uint64_t file; /* unique number, never reused */
	uint64_t size; /* of the file */
	uint64_t index_bytes; /* limit of indexes kept in memory */
	uint32_t n;
	uint32_t code;
	uint32_t object; /* as in struct symbolizer_file; not of ROWS */
	uint32_t units; /* NAMES: it may ask for units, and have them kept */
	uint32_t written; /* with 'code': as in struct symbolizer_fresh */
	uint32_t pad;
};

struct worker_hello {
	struct worker_head head;
	int32_t err; /* of the step 'what'; then it exits */
	uint32_t uid;
	char what[WORKER_WHAT_MAX];
};

/* All answers to questions begin with this. */
struct worker_answer {
	struct worker_head head;
	int32_t err;
	uint8_t damaged; /* headers or tables of the file are */
	uint8_t units_damaged; /* what was kept of its units is */
	uint8_t pad[2];
	/* Counts for this answer. */
	uint32_t built, evicted;
	uint32_t undemangled;
	uint32_t units_read, units_kept; /* as struct names_tally */
	uint32_t relocation; /* NAMES: see symbolizer_relocation() */
	uint64_t index_bytes; /* in memory now */
	uint64_t file_bytes; /* ... of this file */
};

/* segments[n] follow. */
struct worker_ident {
	struct worker_answer a;
	uint8_t build_id[SYMBOLIZER_BUILD_ID_MAX];
	uint8_t file_id[SYMBOLIZER_FILE_ID_LEN];
	uint8_t content[SYMBOLIZER_FILE_ID_LEN];
	uint32_t build_id_len;
	uint32_t n;
	uint32_t hashed; /* 0: content is not set */
	struct symbolizer_slot slot;
};

/* n times struct worker_name follow, for the addresses from 'first' on. */
struct worker_names {
	struct worker_answer a;
	uint32_t first, n;
};

/* n times struct worker_function follow, innermost first; 0: it has no name. */
struct worker_name {
	uint64_t start, size;
	uint64_t before, after; /* as in struct symbolizer_symbol */
	uint32_t n;
	uint32_t source; /* enum symbolizer_source */
};

/*
 * The name, which is not empty, follows; then, if their lengths are not 0, the
 * linker's name and the source file. Each ends with a NUL that is not counted.
 */
struct worker_function {
	uint32_t name_len, system_len, file_len;
	uint32_t line, start_line;
};

/* The table follows or, if larger than WORKER_INLINE_MAX, is in a memfd. */
struct worker_rows {
	struct worker_answer a;
	uint64_t bytes;
};

/* Where the name is. */
struct worker_found {
	struct worker_answer a;
	uint64_t vaddr, size;
};

struct worker_context {
	struct worker_answer a;
	struct symbolizer_context context;
};

/*
 * A debug file by build id or name, from the 'nth' place on; or, without these, what is
 * kept of the file's units.
 */
struct worker_ask {
	struct worker_head head;
	uint32_t units; /* 1: these */
	uint32_t nth;
	uint32_t build_id_len, name_len; /* 0: none */
	uint8_t build_id[WORKER_ASK_ID_MAX];
	char name[WORKER_ASK_NAME_MAX + 1];
};

struct worker_file {
	struct worker_head head;
	int32_t err; /* -ENOENT: not found */
	uint32_t nth; /* the place where it was */
	uint64_t at; /* where in it the units are */
};

/* A store of units, see dwarf_store.h, in a memfd. */
struct worker_keep {
	struct worker_head head;
	uint64_t bytes;
};

/* A message as it was received. */
struct worker_in {
	size_t len;
	int fd; /* or -1; closed by worker_in_close() */
	union {
		struct worker_head head;
		uint8_t bytes[WORKER_MSG_MAX];
	};
};

/*
 * 0, or -errno: -EAGAIN, -EPIPE (the other side is gone), -EPROTO (too short,
 * wrong length in the head, more than one descriptor).
 */
int worker_recv(int sock, struct worker_in *in);
/* Takes the descriptor, which the caller owns then. */
int worker_in_take(struct worker_in *in);
void worker_in_close(struct worker_in *in);
/* Sets type, length and job of the head. 0 or -errno. */
int worker_send(int sock, struct worker_head *head, uint32_t type, size_t len,
		uint64_t job, int fd);

/* The message as this type, if it is valid; NULL: it is not. */
const struct worker_question *worker_question(const struct worker_in *in);
const struct worker_hello *worker_hello(const struct worker_in *in);
const struct worker_ident *worker_ident(const struct worker_in *in);
const struct worker_names *worker_names(const struct worker_in *in);
const struct worker_rows *worker_rows(const struct worker_in *in);
const struct worker_found *worker_found(const struct worker_in *in);
const struct worker_context *worker_context(const struct worker_in *in);
const struct worker_ask *worker_ask(const struct worker_in *in);
const struct worker_file *worker_file(const struct worker_in *in);
const struct worker_keep *worker_keep(const struct worker_in *in);

/* Iterates over names. */
struct worker_cursor {
	const uint8_t *p, *end;
	struct symbolizer_function functions[WORKER_FUNCTIONS_MAX];
};

/*
 * The next name, whose range must contain 'vaddr'. Its functions are in the
 * cursor until the next call, their texts in the message. False: it is invalid.
 */
bool worker_name_next(struct worker_cursor *c, uint64_t vaddr,
		      struct symbolizer_symbol *sym);
/*
 * Appends a name to 'len' bytes of 'buf': the new length, or 0 without room. An
 * empty message always has room: of too many functions the innermost are left
 * out, and long texts are cut.
 */
size_t worker_name_add(uint8_t *buf, size_t len, size_t cap,
		       const struct symbolizer_symbol *sym);

/*
 * Maps a memfd from the worker for reading, if it is sealed against any change
 * and 'bytes' long without holes; the caller unmaps it. Or NULL.
 */
void *worker_table_map(int fd, uint64_t bytes);
/* Makes such a memfd: a descriptor or -errno. */
int worker_table_make(const void *data, size_t bytes);

#endif /* SYMBOLIZE_WORKER_MSG_H */
