/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker_msg: what profd and the process that parses files for it say to each
 * other, over a SOCK_SEQPACKET pair: one struct a message, what varies in
 * length behind it. Both are the same program, so no version and no byte order.
 *
 *	to the worker			from the worker
 *	-				HELLO, once
 *	IDENT + file			IDENT
 *	NAMES + file			NAMES, one or more
 *	ROWS + file			ROWS (+ memfd)
 *	FILE (+ file)			ASK, while it works at one of these
 *
 * One question is under way at a time; its number stands in all that belongs
 * to it. Files come with each question, so a worker that was just started knows
 * as much as one that is old.
 *
 * What the worker says may be a lie: it has read hostile files. The checks here
 * are all there is between it and profd. What profd says is checked the same
 * way, for the price of nothing.
 */
#ifndef SYMBOLIZE_WORKER_MSG_H
#define SYMBOLIZE_WORKER_MSG_H

#include "base/base.h"
#include "symbolize/symbolize.h"

#define SYMBOLIZER_WORKER_ENV "SYMBOLIZER_WORKER"

#define WORKER_MSG_MAX 65536
#define WORKER_NAMES_MAX 2048 /* addresses a question; 16 KiB */
#define WORKER_TEXT_MAX 8192 /* of a name; see demangle.h */
#define WORKER_SOURCE_MAX 1024 /* of a source file's name */
#define WORKER_FUNCTIONS_MAX 64 /* of an address: inlined into each other */
#define WORKER_NAME_MAX 24576 /* bytes of an address's functions, all in */
#define WORKER_SEGMENTS_MAX 64 /* as of an ELF file, see elf.c */
#define WORKER_INLINE_MAX 32768 /* of a table in the message itself */
#define WORKER_TABLE_MAX SYMBOLIZER_ROWS_MAX /* of a table in a memfd */
#define WORKER_BASENAME_MAX 255
#define WORKER_ASK_ID_MAX 64 /* of a build id to look for */
#define WORKER_WHAT_MAX 32

enum worker_type {
	WORKER_HELLO = 1,
	WORKER_IDENT,
	WORKER_NAMES,
	WORKER_ROWS,
	WORKER_ASK,
	WORKER_FILE,
};

struct worker_head {
	uint32_t type;
	uint32_t len; /* of the message, this included */
	uint64_t job;
};

/* IDENT, NAMES, ROWS: vaddrs[n] follow NAMES. */
struct worker_question {
	struct worker_head head;
	uint64_t file; /* a number that no other file had or will have */
	uint64_t size; /* of the file */
	uint64_t index_bytes; /* indexes may stay in memory up to this */
	uint32_t n;
	uint32_t pad;
};

struct worker_hello {
	struct worker_head head;
	int32_t err; /* then 'what' it was that failed, and it ends */
	uint32_t uid;
	char what[WORKER_WHAT_MAX];
};

/* What all answers to questions begin with. */
struct worker_answer {
	struct worker_head head;
	int32_t err;
	uint8_t damaged; /* headers or tables of the file are */
	uint8_t pad[3];
	/* What happened for this answer; and what is held now. */
	uint32_t built, evicted;
	uint32_t undemangled, pad2;
	uint64_t index_bytes;
};

/* segments[n] follow. */
struct worker_ident {
	struct worker_answer a;
	uint8_t build_id[SYMBOLIZER_BUILD_ID_MAX];
	uint8_t file_id[SYMBOLIZER_FILE_ID_LEN];
	uint8_t content[SYMBOLIZER_FILE_ID_LEN];
	uint32_t build_id_len;
	uint32_t n;
	uint32_t hashed; /* 0: content is not set, there was too much */
};

/* n times struct worker_name follow, of the addresses from 'first' on. */
struct worker_names {
	struct worker_answer a;
	uint32_t first, n;
};

/* n times struct worker_function follow, innermost first; 0: it has no name. */
struct worker_name {
	uint64_t start, size;
	uint32_t n;
	uint32_t pad; /* 0 */
};

/*
 * The name, which is not empty, follows; then, if their lengths are not 0, the
 * linker's name and the source file. Each has a NUL that is not counted.
 */
struct worker_function {
	uint32_t name_len, system_len, file_len;
	uint32_t line, start_line;
};

/* Up to WORKER_INLINE_MAX bytes follow; beyond that they are in a memfd. */
struct worker_rows {
	struct worker_answer a;
	uint64_t bytes;
};

/* A file by build id or name; the 'nth' of those that there may be. */
struct worker_ask {
	struct worker_head head;
	uint32_t nth;
	uint32_t build_id_len, name_len; /* 0: none */
	uint8_t build_id[WORKER_ASK_ID_MAX];
	char name[WORKER_BASENAME_MAX + 1];
};

struct worker_file {
	struct worker_head head;
	int32_t err; /* -ENOENT: no further ones */
	uint32_t nth; /* which one it is, if there was none at those before */
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
 * 0, or -errno: -EAGAIN, -EPIPE when the other side is gone, -EPROTO for what
 * is no message: too short, another length than it says, more descriptors than
 * one.
 */
int worker_recv(int sock, struct worker_in *in);
/* The descriptor, which is the caller's then. */
int worker_in_take(struct worker_in *in);
void worker_in_close(struct worker_in *in);
/* Fills in the type, length and job of the header. 0 or -errno. */
int worker_send(int sock, struct worker_head *head, enum worker_type type,
		size_t len, uint64_t job, int fd);

/* The message is one of these, whole and as above; NULL: a lie. */
const struct worker_question *worker_question(const struct worker_in *in);
const struct worker_hello *worker_hello(const struct worker_in *in);
const struct worker_ident *worker_ident(const struct worker_in *in);
const struct worker_names *worker_names(const struct worker_in *in);
const struct worker_rows *worker_rows(const struct worker_in *in);
const struct worker_ask *worker_ask(const struct worker_in *in);
const struct worker_file *worker_file(const struct worker_in *in);

/* What follows the struct: 'each' bytes apiece. Not aligned, if not of 8. */
static inline const void *worker_behind(const void *msg, size_t size)
{
	return (const uint8_t *)msg + size;
}

/* Reads names one after the other. */
struct worker_cursor {
	const uint8_t *p, *end;
	struct symbolizer_function functions[WORKER_FUNCTIONS_MAX];
};

/*
 * The next one, of an address that has to be in its range. Its functions are in
 * the cursor until the next call, their texts in the message. False: a lie.
 */
bool worker_name_next(struct worker_cursor *c, uint64_t vaddr,
		      struct symbolizer_symbol *sym);
/*
 * Adds one behind 'len' bytes of 'buf'; the new length, 0: no room, which there
 * always is in an empty message. Of too many functions the innermost are left
 * out, of too long a text its end.
 */
size_t worker_name_add(uint8_t *buf, size_t len, size_t cap,
		       const struct symbolizer_symbol *sym);

/*
 * The memory of a memfd that the worker sent: sealed against any change, whole,
 * 'bytes' long, mapped for reading; it is the caller's to unmap. Or NULL.
 */
void *worker_table_map(int fd, uint64_t bytes);
/* The other side of it: a descriptor or -errno. */
int worker_table_make(const void *data, size_t bytes);

#endif /* SYMBOLIZE_WORKER_MSG_H */
