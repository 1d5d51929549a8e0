// SPDX-License-Identifier: Apache-2.0
/*
 * worker_main: the process that reads files of other processes. It receives a
 * question with a descriptor, answers, and closes the descriptor. It keeps only
 * symbol indexes, by file number, up to the size that the question allows. It
 * may be killed at any time.
 */
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>
#include <zlib.h>

#include "symbolize/context/context.h"
#include "symbolize/demangle.h"
#include "symbolize/file.h"
#include "symbolize/names/find.h"
#include "symbolize/reader/sandbox.h"
#include "symbolize/reader/worker.h"
#include "symbolize/reader/worker_msg.h"

/*
 * The checksum of a larger file is not computed: a sparse one takes nothing on disk,
 * and any time.
 */
#define MAIN_CRC_MAX (512LL << 20)

/* As in engine.c: free() returns larger blocks to the kernel. */
#define MAIN_MALLOC_LARGE (128 << 10)

/* What ps and top show; the kernel keeps 15 characters. */
#define WORKER_COMM "profd-symbolize"

struct server {
	int sock;
	TAILQ_HEAD(server_files, symbolizer_file) files; /* last used first */
	size_t index_bytes;
	uint32_t built, evicted, undemangled; /* for this question */
	struct names_tally units; /* likewise */
	size_t file_bytes; /* of its file's index */
	uint32_t relocation; /* of its file */
	struct worker_in in;
	struct worker_in further; /* the answer to an ASK */
	uint8_t out[WORKER_MSG_MAX];
};

/* --- indexes -------------------------------------------------------------- */

static void cache_unlink(struct server *sv, struct symbolizer_file *f)
{
	TAILQ_REMOVE(&sv->files, f, lru);
	sv->index_bytes -= symbolizer_file_index_bytes(f);
}

static void cache_add(struct server *sv, struct symbolizer_file *f)
{
	TAILQ_INSERT_HEAD(&sv->files, f, lru);
	sv->index_bytes += symbolizer_file_index_bytes(f);
}

/* Takes the file out of the cache, or makes a new one; NULL: no memory. */
static struct symbolizer_file *cache_take(struct server *sv, uint64_t id)
{
	struct symbolizer_file *f;

	TAILQ_FOREACH(f, &sv->files, lru) {
		if (f->id != id)
			continue;
		cache_unlink(sv, f);
		return f;
	}
	f = symbolizer_file_new();
	if (f)
		f->id = id;
	return f;
}

static void cache_cut(struct server *sv, uint64_t bytes)
{
	struct symbolizer_file *f;

	while ((f = TAILQ_LAST(&sv->files, server_files)) &&
	       sv->index_bytes > bytes) {
		cache_unlink(sv, f);
		symbolizer_file_free(f);
		sv->evicted++;
	}
}

/* --- answers -------------------------------------------------------------- */

static int worker_reply(struct server *sv, const struct worker_question *q,
			int err, bool damaged, size_t len, int fd)
{
	struct worker_answer *a = (void *)sv->out;

	a->err = err;
	a->damaged = damaged;
	a->built = sv->built;
	a->evicted = sv->evicted;
	a->undemangled = sv->undemangled;
	a->units_read = sv->units.units_read;
	a->units_kept = sv->units.units_kept;
	a->units_damaged = sv->units.units_damaged;
	a->relocation = sv->relocation;
	a->index_bytes = sv->index_bytes;
	a->file_bytes = sv->file_bytes;
	sv->built = sv->evicted = sv->undemangled = 0;
	sv->units = (struct names_tally){ 0 };
	return worker_send(sv->sock, &a->head, q->head.type, len, q->head.job,
			   fd);
}

static int serve_ident(struct server *sv, const struct worker_question *q)
{
	struct symbolizer_file *f = symbolizer_file_new();
	struct worker_ident *out = (void *)sv->out;
	struct symbolizer_src src;
	size_t len = sizeof(*out);
	int err = -ENOMEM;

	memset(out, 0, sizeof(*out));
	if (f) {
		f->fd = sv->in.fd;
		f->ident.size = q->size;
		f->object = q->object;
		err = symbolizer_file_src(f, &src);
	}
	if (!err)
		err = symbolizer_file_load(f, &src);
	if (!err) {
		out->hashed = !symbolizer_content(&src, out->content);
		memcpy(out->build_id, f->ident.build_id, sizeof(out->build_id));
		memcpy(out->file_id, f->ident.file_id, sizeof(out->file_id));
		out->build_id_len = f->ident.build_id_len;
		out->slot = f->slot;
		out->n = (uint32_t)MIN(f->n_segments,
				       (size_t)WORKER_SEGMENTS_MAX);
		memcpy(out + 1, f->segments, out->n * sizeof(*f->segments));
		len += out->n * sizeof(*f->segments);
	}
	err = worker_reply(sv, q, err, f && f->damaged, len, -1);
	if (f)
		f->fd = -1;
	symbolizer_file_free(f);
	return err;
}

/* The checksum of .gnu_debuglink, which is zlib's. */
static bool crc_is(struct server *sv, int fd, uint32_t want)
{
	uLong crc = crc32(0, NULL, 0);
	off_t at = 0, size = lseek(fd, 0, SEEK_END);
	ssize_t n;

	if (size < 0 || size > MAIN_CRC_MAX)
		return false;
	while ((n = pread(fd, sv->out, sizeof(sv->out), at)) > 0 &&
	       at < MAIN_CRC_MAX) {
		crc = crc32(crc, sv->out, (uInt)n);
		at += n;
	}
	return n == 0 && crc == want;
}

/* Asks for the next file that it may be, from a->nth on; or -errno. */
static int ask_next(struct server *sv, struct worker_ask *a)
{
	const struct worker_file *f;
	int err = worker_send(sv->sock, &a->head, WORKER_ASK, sizeof(*a),
			      sv->in.head.job, -1);

	if (!err)
		err = worker_recv(sv->sock, &sv->further);
	if (err)
		return err;
	f = worker_file(&sv->further);
	if (!f || f->err) {
		worker_in_close(&sv->further);
		return f ? f->err : -EPROTO;
	}
	a->nth = f->nth + 1;
	return worker_in_take(&sv->further);
}

/* symbolize/elf/ask.h */
static int ask_file(void *arg, const char *basename, const uint8_t *build_id,
		    size_t len, uint32_t crc, bool has_crc)
{
	size_t name_len = basename ? strlen(basename) : 0;
	struct server *sv = arg;
	struct worker_ask a;
	int fd;

	memset(&a, 0, sizeof(a));
	if (len > sizeof(a.build_id) || name_len >= sizeof(a.name))
		return -EINVAL;
	a.build_id_len = (uint32_t)len;
	a.name_len = (uint32_t)name_len;
	if (len)
		memcpy(a.build_id, build_id, len);
	if (name_len)
		memcpy(a.name, basename, name_len);
	for (;;) {
		fd = ask_next(sv, &a);
		if (fd < 0 || !has_crc || crc_is(sv, fd, crc))
			return fd;
		close(fd);
	}
}

static int ask_units(void *arg, uint64_t *at)
{
	struct worker_ask a = { .units = 1 };
	struct server *sv = arg;
	int fd = ask_next(sv, &a);

	*at = ((const struct worker_file *)sv->further.bytes)->at;
	return fd;
}

/* What cannot be handed on is not kept. */
static void keep_units(void *arg, const void *store, size_t len)
{
	struct worker_keep k = { .bytes = len };
	struct server *sv = arg;
	int fd = len <= WORKER_KEEP_MAX ? worker_table_make(store, len) : -1;

	if (fd < 0)
		return;
	worker_send(sv->sock, &k.head, WORKER_KEEP, sizeof(k), sv->in.head.job,
		    fd);
	close(fd);
}

/* In several messages, if necessary. */
static int send_names(struct server *sv, const struct worker_question *q,
		      const struct symbolizer_answer *a, uint32_t n,
		      bool damaged)
{
	struct worker_names *out = (void *)sv->out;
	uint32_t i = 0;
	size_t len, next;
	int err;

	do {
		memset(out, 0, sizeof(*out));
		out->first = i;
		len = sizeof(*out);
		for (; i < n; i++, len = next) {
			next = worker_name_add(sv->out, len, sizeof(sv->out),
					       &a->syms[i]);
			if (!next)
				break;
		}
		out->n = i - out->first;
		err = worker_reply(sv, q, 0, damaged, len, -1);
	} while (!err && i < n);
	return err;
}

/* Puts the file back, if it has something worth keeping. */
static void cache_return(struct server *sv, const struct worker_question *q,
			 struct symbolizer_file *f, int err)
{
	sv->file_bytes = 0;
	if (f && (f->names || f->jit) && !err) {
		cache_add(sv, f);
		sv->file_bytes = symbolizer_file_index_bytes(f);
	} else {
		symbolizer_file_free(f);
	}
	cache_cut(sv, q->index_bytes);
}

static int serve_names(struct server *sv, const struct worker_question *q)
{
	struct symbolizer_file *f = cache_take(sv, q->file);
	struct worker_names *out = (void *)sv->out;
	const struct symbolizer_ask ask = {
		.file = ask_file,
		.units = q->units ? ask_units : NULL,
		.keep = q->units ? keep_units : NULL,
		.arg = sv,
	};
	struct symbolizer_answer a = { 0 };
	uint32_t n = q->code ? q->n / 2 : q->n;
	bool damaged = false;
	int err = -ENOMEM;

	arena_init(&a.names);
	if (f) {
		f->fd = sv->in.fd;
		f->ident.size = q->size;
		f->written = q->written;
		f->object = q->object;
		err = q->code ? symbolizer_file_code(f, (const void *)(q + 1),
						     n, &a)
			      : symbolizer_file_resolve(f, &ask,
							(const void *)(q + 1),
							NULL, n, &a);
		f->fd = -1;
		sv->built = (uint32_t)a.tally.built;
		sv->undemangled = (uint32_t)a.tally.undemangled;
		sv->units = a.tally.units;
		damaged = f->damaged;
		sv->relocation = f->relocation;
	}
	cache_return(sv, q, f, err);
	if (err) {
		memset(out, 0, sizeof(*out));
		err = worker_reply(sv, q, err, damaged, sizeof(*out), -1);
	} else {
		err = send_names(sv, q, &a, n, damaged);
	}
	symbolizer_answer_fini(&a);
	return err;
}

static int send_rows(struct server *sv, const struct worker_question *q,
		     const struct symbolizer_rows *rows)
{
	struct worker_rows *out = (void *)sv->out;
	size_t bytes, len = sizeof(*out);
	const void *data = symbolizer_rows_bytes(rows, &bytes);
	int err = 0, fd = -1;

	if (bytes > WORKER_TABLE_MAX) {
		err = -EFBIG;
	} else if (bytes > WORKER_INLINE_MAX) {
		fd = worker_table_make(data, bytes);
		err = MIN(fd, 0);
	} else {
		memcpy(out + 1, data, bytes);
		len += bytes;
	}
	out->bytes = err ? 0 : bytes;
	err = worker_reply(sv, q, err, false, len, fd);
	if (fd >= 0)
		close(fd);
	return err;
}

/* The table of a jitdump's entries is kept, that of the rows is not. */
static int file_code_rows(struct server *sv, const struct worker_question *q,
			  struct symbolizer_rows **rows)
{
	const struct symbolizer_code *code = (const void *)(q + 1);
	struct symbolizer_file *f = cache_take(sv, q->file);
	struct symbolizer_tally tally = { 0 };
	int err = -ENOMEM;

	if (f) {
		f->fd = sv->in.fd;
		f->ident.size = q->size;
		f->written = q->written;
		err = symbolizer_file_code_rows(f, code->at, &tally, rows);
		f->fd = -1;
		sv->built = (uint32_t)tally.built;
	}
	cache_return(sv, q, f, err == -ENODATA ? 0 : err);
	return err;
}

static int serve_rows(struct server *sv, const struct worker_question *q)
{
	struct worker_rows *out = (void *)sv->out;
	struct symbolizer_file f = { .fd = sv->in.fd, .ident.size = q->size };
	const struct symbolizer_ask ask = { .file = ask_file, .arg = sv };
	struct symbolizer_rows *rows;
	int err = q->code ? file_code_rows(sv, q, &rows)
			  : symbolizer_file_rows(&f, &ask, &rows);

	memset(out, 0, sizeof(*out));
	if (err)
		return worker_reply(sv, q, err, false, sizeof(*out), -1);
	err = send_rows(sv, q, rows);
	symbolizer_rows_free(rows);
	/* Most of what was freed is small blocks at the end of the heap. */
	malloc_trim(0);
	return err;
}

static int serve_find(struct server *sv, const struct worker_question *q)
{
	struct symbolizer_file *f = cache_take(sv, q->file);
	struct worker_found *out = (void *)sv->out;
	const struct symbolizer_ask ask = { .file = ask_file, .arg = sv };
	struct symbolizer_src src;
	int err = -ENOMEM;

	memset(out, 0, sizeof(*out));
	if (f) {
		f->fd = sv->in.fd;
		f->ident.size = q->size;
		f->object = q->object;
		err = symbolizer_file_src(f, &src);
		if (!err)
			err = symbolizer_find_name(&src, &ask,
						   (const char *)(q + 1),
						   &out->vaddr, &out->size);
		f->fd = -1;
	}
	cache_return(sv, q, f, 0);
	return worker_reply(sv, q, err, false, sizeof(*out), -1);
}

/* It is not kept: a process that publishes again has another one. */
static int serve_context(struct server *sv, const struct worker_question *q)
{
	static uint8_t payload[SYMBOLIZER_CONTEXT_MAX];
	struct worker_context *out = (void *)sv->out;
	struct symbolizer_src src;
	int err;

	memset(out, 0, sizeof(*out));
	symbolizer_src_fd(&src, sv->in.fd, q->size);
	err = symbolizer_src_read(&src, 0, payload, q->size);
	if (!err)
		err = symbolizer_context_parse(payload, q->size, &out->context);
	return worker_reply(sv, q, err, false, sizeof(*out), -1);
}

static int worker_serve(struct server *sv)
{
	const struct worker_question *q = worker_question(&sv->in);

	if (!q)
		return -EPROTO;
	switch (q->head.type) {
	case WORKER_IDENT:
		return serve_ident(sv, q);
	case WORKER_NAMES:
		return serve_names(sv, q);
	case WORKER_FIND:
		return serve_find(sv, q);
	case WORKER_CONTEXT:
		return serve_context(sv, q);
	default:
		return serve_rows(sv, q);
	}
}

static int cmp_nothing(const void *a, const void *b)
{
	return 0;
}

/* glibc's first qsort() reads the size of memory, perhaps from /proc. */
static void warm_up(void)
{
	static uint64_t some[1024];

	qsort(some, ARRAY_SIZE(some), sizeof(*some), cmp_nothing);
}

static int worker_send_hello(struct server *sv, int error, uid_t uid,
			     const char *what)
{
	struct worker_hello h = { .err = error, .uid = uid };

	if (error)
		strncpy(h.what, what, sizeof(h.what) - 1);
	return worker_send(sv->sock, &h.head, WORKER_HELLO, sizeof(h), 0, -1);
}

int worker_main(int argc, char **argv)
{
	static struct server sv;
	struct sandbox_opts opts = { .file_bytes = WORKER_TABLE_MAX };
	const char *what;
	uid_t uid = 0;
	int err;

	if (argc != 4)
		return 2;
	TAILQ_INIT(&sv.files);
	opts.memory = strtoul(argv[2], NULL, 10);
	opts.cpu_s = (unsigned int)strtoul(argv[3], NULL, 10);
	mallopt(M_MMAP_THRESHOLD, MAIN_MALLOC_LARGE);
	mallopt(M_TRIM_THRESHOLD, 4 * MAIN_MALLOC_LARGE);
	warm_up();
	sv.sock = SANDBOX_SOCKET;
	prctl(PR_SET_NAME, WORKER_COMM, 0, 0, 0);
	what = "SIGPROF";
	err = symbolizer_demangle_start();
	if (!err)
		err = sandbox_enter(&opts, &uid, &what);
	if (worker_send_hello(&sv, err, uid, what) || err)
		_exit(1);
	while (!err) {
		err = worker_recv(sv.sock, &sv.in);
		if (!err)
			err = worker_serve(&sv);
		worker_in_close(&sv.in);
	}
	/* Not exit(): its handlers are those of profd. */
	_exit(err == -EPIPE ? 0 : 1);
}
