/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A worker that misbehaves in one of these ways when it gets a file that
 * contains EVIL; otherwise it is correct. It is not in a sandbox, which would
 * prevent that.
 */
#ifndef TESTS_UNIT_TEST_SYMBOLIZE_FAKE_H
#define TESTS_UNIT_TEST_SYMBOLIZE_FAKE_H

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>

#include "symbolize/file.h"
#include "symbolize/reader/worker_msg.h"
#include "tests/unit/symbolize/test_symbolize.h"

static struct worker_in fake_in;

struct fake {
	const struct worker_question *q;
	uint64_t *vaddrs;
	/* One honest answer to either question. */
	struct {
		struct worker_names names;
		uint8_t bytes[WORKER_MSG_MAX];
	} out;
	size_t len;
	struct worker_rows rows;
};

static void fake_send(struct fake *f, void *msg, size_t len, int fd)
{
	worker_send(0, msg, f->q->head.type, len, f->q->head.job, fd);
}

/* A name for each address of the question. */
static void fake_names(struct fake *f, const char *name)
{
	const struct symbolizer_function fn = { name, name, "", 0, 0 };
	struct symbolizer_symbol sym = { .functions = &fn, .nfunctions = 1 };

	memset(&f->out.names, 0, sizeof(f->out.names));
	f->out.names.n = f->q->n;
	f->len = sizeof(f->out.names);
	for (uint32_t i = 0; i < f->q->n; i++) {
		sym.start = f->vaddrs[i] - 1;
		sym.size = 2;
		f->len = worker_name_add((uint8_t *)&f->out, f->len,
					 sizeof(f->out), &sym);
	}
}

static struct worker_name *fake_first(struct fake *f)
{
	return (struct worker_name *)(&f->out.names + 1);
}

static struct worker_function *fake_function(struct fake *f)
{
	return (struct worker_function *)(fake_first(f) + 1);
}

static void fake_reply(struct fake *f)
{
	fake_send(f, &f->out, f->len, -1);
}

/* --- ends ------------------------------------------------------------------------ */

static void lie_crash(struct fake *f)
{
	signal(SIGSEGV, SIG_DFL);
	raise(SIGSEGV);
}

static void lie_exit(struct fake *f)
{
	_exit(0);
}

static void lie_hang(struct fake *f)
{
	for (volatile bool forever = true; forever;)
		;
}

static void fake_spin(unsigned int ms)
{
	uint64_t end = clock_boottime_ns() + ms * CLOCK_NSEC_PER_MSEC;

	while (clock_boottime_ns() < end)
		;
}

/* An answer in pieces, each of them in time. */
static void lie_drip(struct fake *f)
{
	const struct symbolizer_function fn = { "x", "x", "", 0, 0 };
	struct symbolizer_symbol sym = { .functions = &fn, .nfunctions = 1 };
	uint32_t n = f->q->n;

	for (uint32_t i = 0; i < n; i++) {
		fake_spin(900);
		memset(&f->out.names, 0, sizeof(f->out.names));
		f->out.names.first = i;
		f->out.names.n = 1;
		sym.start = f->vaddrs[i];
		sym.size = 1;
		f->len = worker_name_add((uint8_t *)&f->out,
					 sizeof(f->out.names), sizeof(f->out),
					 &sym);
		fake_send(f, &f->out, f->len, -1);
	}
}

static void lie_close_only(struct fake *f)
{
	close(0);
	lie_hang(f);
}

/* --- messages -------------------------------------------------------------------- */

static void lie_other_job(struct fake *f)
{
	worker_send(0, &f->out.names.a.head, f->q->head.type, f->len,
		    f->q->head.job + 1, -1);
}

static void lie_other_type(struct fake *f)
{
	struct worker_ident out = { 0 };

	worker_send(0, &out.a.head, WORKER_IDENT, sizeof(out), f->q->head.job,
		    -1);
}

static void lie_hello(struct fake *f)
{
	struct worker_hello out = { 0 };

	worker_send(0, &out.head, WORKER_HELLO, sizeof(out), 0, -1);
}

static void lie_short(struct fake *f)
{
	send(0, &f->out, 5, 0);
}

static void lie_empty(struct fake *f)
{
	send(0, &f->out, 0, 0);
}

static void lie_length(struct fake *f)
{
	f->out.names.a.head.type = WORKER_NAMES;
	f->out.names.a.head.len = (uint32_t)f->len + 8;
	f->out.names.a.head.job = f->q->head.job;
	send(0, &f->out, f->len, 0);
}

static void fake_send_fds(int sock, void *msg, size_t len, const int fds[2])
{
	struct iovec iov = { msg, len };
	uint8_t control[CMSG_SPACE(2 * sizeof(int))]
		__attribute__((aligned(8)));
	struct msghdr m = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = control,
			    .msg_controllen = sizeof(control) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(2 * sizeof(int));
	memcpy(CMSG_DATA(c), fds, 2 * sizeof(int));
	sendmsg(sock, &m, 0);
}

static void lie_two_fds(struct fake *f)
{
	static const int fds[2] = { 1, 2 };

	f->out.names.a.head.type = WORKER_NAMES;
	f->out.names.a.head.len = (uint32_t)f->len;
	f->out.names.a.head.job = f->q->head.job;
	fake_send_fds(0, &f->out, f->len, fds);
}

static void lie_an_fd(struct fake *f)
{
	fake_send(f, &f->out, f->len, 1);
}

/* The second one comes without a question. */
static void lie_twice(struct fake *f)
{
	lie_other_job(f);
	fake_reply(f);
}

static void lie_err(struct fake *f)
{
	f->out.names.a.err = 5;
	fake_send(f, &f->out, sizeof(f->out.names), -1);
}

static void lie_ask_for_ever(struct fake *f)
{
	struct worker_ask a = { .name_len = 1, .name = "x" };

	for (;;) {
		if (worker_send(0, &a.head, WORKER_ASK, sizeof(a),
				f->q->head.job, -1) ||
		    worker_recv(0, &fake_in))
			_exit(0);
		worker_in_close(&fake_in);
	}
}

/* Fewer questions than the limit. */
static void lie_ask_and_exit(struct fake *f)
{
	struct worker_ask a = { .name_len = 1, .name = "x" };

	for (int i = 0; i < 40; i++) {
		if (worker_send(0, &a.head, WORKER_ASK, sizeof(a),
				f->q->head.job, -1) ||
		    worker_recv(0, &fake_in))
			break;
		worker_in_close(&fake_in);
	}
	_exit(0);
}

static void lie_ask_elsewhere(struct fake *f)
{
	struct worker_ask a = { .name_len = 16, .name = "../../etc/passwd" };

	worker_send(0, &a.head, WORKER_ASK, sizeof(a), f->q->head.job, -1);
}

/* --- names ------------------------------------------------------------------------ */

static void lie_first(struct fake *f)
{
	f->out.names.first = 1;
	fake_reply(f);
}

static void lie_none(struct fake *f)
{
	f->out.names.n = 0;
	fake_send(f, &f->out, sizeof(f->out.names), -1);
}

static void lie_more(struct fake *f)
{
	f->q = memcpy(malloc(sizeof(*f->q)), f->q, sizeof(*f->q));
	f->out.names.n++;
	memcpy((uint8_t *)&f->out + f->len, fake_first(f),
	       f->len - sizeof(f->out.names));
	fake_send(f, &f->out, 2 * f->len - sizeof(f->out.names), -1);
}

static void lie_fewer_there(struct fake *f)
{
	fake_send(f, &f->out, f->len - 1, -1);
}

static void lie_trailing(struct fake *f)
{
	fake_send(f, &f->out, f->len + 1, -1);
}

static void lie_range(struct fake *f)
{
	fake_first(f)->start += 2;
	fake_reply(f);
}

static void lie_size(struct fake *f)
{
	fake_first(f)->size = 1;
	fake_reply(f);
}

static void lie_long(struct fake *f)
{
	fake_function(f)->name_len = UINT32_MAX;
	fake_reply(f);
}

static void lie_no_nul(struct fake *f)
{
	((uint8_t *)&f->out)[f->len - 1] = 'x';
	fake_reply(f);
}

static void lie_nul_inside(struct fake *f)
{
	((uint8_t *)&f->out)[f->len - 2] = '\0';
	fake_reply(f);
}

static void lie_nameless(struct fake *f)
{
	fake_function(f)->name_len = 0;
	fake_function(f)->system_len = 3;
	fake_reply(f);
}

/* The name again, as the source file: longer than one may be. */
static void lie_source_long(struct fake *f)
{
	struct worker_function *fn = fake_function(f);

	memset((uint8_t *)&f->out + f->len, 's', WORKER_SOURCE_MAX + 1);
	f->len += WORKER_SOURCE_MAX + 1;
	((uint8_t *)&f->out)[f->len++] = '\0';
	fn->file_len = WORKER_SOURCE_MAX + 1;
	fake_reply(f);
}

/* Each function is right, but there are more than an address may have. */
static void lie_functions(struct fake *f)
{
	size_t size =
		f->len - sizeof(f->out.names) - sizeof(struct worker_name);
	uint8_t *first = (uint8_t *)fake_function(f);

	for (int i = 1; i <= WORKER_FUNCTIONS_MAX; i++)
		memcpy(first + i * size, first, size);
	f->len += WORKER_FUNCTIONS_MAX * size;
	fake_first(f)->n = WORKER_FUNCTIONS_MAX + 1;
	fake_reply(f);
}

static void lie_fewer_functions(struct fake *f)
{
	fake_first(f)->n++;
	fake_reply(f);
}

static void lie_source(struct fake *f)
{
	fake_first(f)->source = SYMBOLIZER_N_SOURCES;
	fake_reply(f);
}

/* Each function is valid, but together they are too long. */
static void lie_functions_long(struct fake *f)
{
	uint8_t *p = (uint8_t *)fake_function(f);
	struct worker_function fn = { .name_len = WORKER_TEXT_MAX };

	f->len = p - (uint8_t *)&f->out;
	fake_first(f)->n = WORKER_NAME_MAX / WORKER_TEXT_MAX + 1;
	for (uint32_t i = 0; i < fake_first(f)->n; i++) {
		memcpy(p, &fn, sizeof(fn));
		memset(p + sizeof(fn), 'n', WORKER_TEXT_MAX);
		p[sizeof(fn) + WORKER_TEXT_MAX] = '\0';
		p += sizeof(fn) + WORKER_TEXT_MAX + 1;
	}
	f->len = p - (uint8_t *)&f->out;
	fake_reply(f);
}

/* --- tables ------------------------------------------------------------------------- */

#define FAKE_TABLE (3 * 65536)
#define FAKE_SEALS (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

static int fake_memfd(size_t written, size_t size, int seals)
{
	int fd = memfd_create("fake", MFD_ALLOW_SEALING);
	static uint8_t zero[FAKE_TABLE];

	if (write(fd, zero, written) != (ssize_t)written ||
	    ftruncate(fd, (off_t)size) || fcntl(fd, F_ADD_SEALS, seals))
		_exit(3);
	return fd;
}

static void fake_table(struct fake *f, int fd, uint64_t bytes)
{
	f->rows.bytes = bytes;
	fake_send(f, &f->rows, sizeof(f->rows), fd);
}

static void lie_no_fd(struct fake *f)
{
	fake_table(f, -1, FAKE_TABLE);
}

static void lie_no_bytes(struct fake *f)
{
	fake_table(f, -1, 0);
}

static void lie_garbage_inline(struct fake *f)
{
	f->out.names.a.err = 0;
	memset(&f->out, 0, 1024);
	((struct worker_rows *)&f->out)->bytes = 1024 - sizeof(f->rows);
	fake_send(f, &f->out, 1024, -1);
}

static void lie_garbage(struct fake *f)
{
	fake_table(f, fake_memfd(FAKE_TABLE, FAKE_TABLE, FAKE_SEALS),
		   FAKE_TABLE);
}

static void lie_small_fd(struct fake *f)
{
	fake_table(f, fake_memfd(4096, 4096, FAKE_SEALS), 4096);
}

static void lie_huge(struct fake *f)
{
	fake_table(f, fake_memfd(4096, 4096, FAKE_SEALS), 1ULL << 40);
}

static void lie_longer(struct fake *f)
{
	fake_table(f, fake_memfd(FAKE_TABLE, FAKE_TABLE, FAKE_SEALS),
		   FAKE_TABLE + 65536);
}

static void lie_shorter(struct fake *f)
{
	fake_table(f, fake_memfd(FAKE_TABLE, FAKE_TABLE, FAKE_SEALS),
		   FAKE_TABLE - 65536);
}

static void lie_hole(struct fake *f)
{
	fake_table(f, fake_memfd(65536, FAKE_TABLE, FAKE_SEALS), FAKE_TABLE);
}

/* As many blocks as bytes, but not at the same places. */
static int fake_memfd_beyond(size_t written, size_t size)
{
	int fd = fake_memfd(written, size, 0);

	if (fallocate(fd, FALLOC_FL_KEEP_SIZE, (off_t)size, (off_t)size) ||
	    fcntl(fd, F_ADD_SEALS, FAKE_SEALS))
		_exit(3);
	return fd;
}

static void lie_hole_beyond(struct fake *f)
{
	fake_table(f, fake_memfd_beyond(65536, FAKE_TABLE), FAKE_TABLE);
}

static void lie_unsealed(struct fake *f)
{
	fake_table(f, fake_memfd(FAKE_TABLE, FAKE_TABLE, 0), FAKE_TABLE);
}

#define LIE_SEAL(name, seal)                                  \
	static void lie_without_##name(struct fake *f)        \
	{                                                     \
		fake_table(f,                                 \
			   fake_memfd(FAKE_TABLE, FAKE_TABLE, \
				      FAKE_SEALS & ~(seal)),  \
			   FAKE_TABLE);                       \
	}
LIE_SEAL(seal, F_SEAL_SEAL)
LIE_SEAL(shrink, F_SEAL_SHRINK)
LIE_SEAL(grow, F_SEAL_GROW)
LIE_SEAL(write, F_SEAL_WRITE)

static void lie_pipe(struct fake *f)
{
	int fds[2];

	if (pipe(fds))
		_exit(3);
	fake_table(f, fds[0], FAKE_TABLE);
}

static void lie_plain_file(struct fake *f)
{
	fake_table(f, open("/proc/self/exe", O_RDONLY), FAKE_TABLE);
}

/* A valid answer, late. */
static void lie_slow(struct fake *f)
{
	fake_spin(300);
	if (f->q->head.type == WORKER_NAMES) {
		fake_send(f, &f->out, f->len, -1);
		return;
	}
	f->rows.a.err = -ENODATA;
	fake_send(f, &f->rows, sizeof(f->rows), -1);
}

/* Each question is answered completely and in time. */
static void lie_crowd(struct fake *f)
{
	const struct symbolizer_function fn = { "x", "x", "", 0, 0 };
	struct symbolizer_symbol sym = { .functions = &fn, .nfunctions = 1 };
	uint32_t i;

	fake_spin(1200);
	for (i = 0; i < f->q->n; i += f->out.names.n) {
		memset(&f->out.names, 0, sizeof(f->out.names));
		f->len = sizeof(f->out.names);
		f->out.names.first = i;
		while (i + f->out.names.n < f->q->n && f->out.names.n < 512) {
			sym.start = f->vaddrs[i + f->out.names.n++];
			sym.size = 1;
			f->len = worker_name_add((uint8_t *)&f->out, f->len,
						 sizeof(f->out), &sym);
		}
		fake_reply(f);
	}
}

static bool fake_full;

/* A valid answer, which leaves no memory for other files. */
static void lie_full(struct fake *f)
{
	fake_full = true;
	fake_reply(f);
}

/* A valid answer that takes 300 ms of CPU time. */
static void lie_spin(struct fake *f)
{
	clock_t end = clock() + 300 * (CLOCKS_PER_SEC / 1000);

	while (clock() < end)
		;
	fake_reply(f);
}

/* A valid answer: three functions, inlined into each other. */
static void lie_inlined(struct fake *f)
{
	static const struct symbolizer_function functions[] = {
		{ "deep()", "_Z4deepv", "/src/deep.h", 12, 10 },
		{ "mid", "mid", "/src/mid.h", 99, 90 },
		{ "outer", "outer", "", 0, 0 },
	};
	struct symbolizer_symbol sym = { .functions = functions,
					 .nfunctions = 3,
					 .size = 16 };

	f->out.names.n = f->q->n;
	f->len = sizeof(f->out.names);
	for (uint32_t i = 0; i < f->q->n; i++) {
		sym.start = f->vaddrs[i] & ~15ULL;
		f->len = worker_name_add((uint8_t *)&f->out, f->len,
					 sizeof(f->out), &sym);
	}
	fake_reply(f);
}

/* A program that executes the fake, with any arguments. */
static const char *fake_program(const char *lie)
{
	const char *path = in_dir("fake");
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fprintf(f, "#!/bin/sh\nexec %s fake %s\n", self, lie);
	assert_int_equal(fchmod(fileno(f), 0755), 0);
	fclose(f);
	return path;
}

/* --- all of them ---------------------------------------------------------------------- */

enum fake_count {
	FAKE_LIES,
	FAKE_FAILED,
	FAKE_HUNG,
	FAKE_KILLED,
	FAKE_SLOW, /* no lie */
};

/* The lie, and how it is counted. KILLED: profd cannot tell by what. */
#define FAKE_ENDS(X)            \
	X(crash, FAILED)        \
	X(exit, FAILED)         \
	X(ask_and_exit, FAILED) \
	X(hang, HUNG)           \
	X(drip, HUNG)           \
	X(slow, SLOW)           \
	X(crowd, SLOW)          \
	X(inlined, SLOW)        \
	X(full, SLOW)           \
	X(spin, SLOW)           \
	X(close_only, KILLED) X(empty, KILLED)

#define FAKE_MESSAGES(X)         \
	X(other_job, LIES)       \
	X(other_type, LIES)      \
	X(hello, LIES)           \
	X(short, LIES)           \
	X(length, LIES)          \
	X(two_fds, LIES)         \
	X(an_fd, LIES)           \
	X(twice, LIES)           \
	X(err, LIES)             \
	X(ask_for_ever, LIES)    \
	X(ask_elsewhere, LIES)   \
	X(first, LIES)           \
	X(none, LIES)            \
	X(more, LIES)            \
	X(fewer_there, LIES)     \
	X(trailing, LIES)        \
	X(range, LIES)           \
	X(size, LIES)            \
	X(long, LIES)            \
	X(no_nul, LIES)          \
	X(nul_inside, LIES)      \
	X(nameless, LIES)        \
	X(source_long, LIES)     \
	X(functions, LIES)       \
	X(fewer_functions, LIES) \
	X(functions_long, LIES)  \
	X(source, LIES)

#define FAKE_TABLES(X)          \
	X(no_fd, LIES)          \
	X(no_bytes, LIES)       \
	X(garbage_inline, LIES) \
	X(garbage, LIES)        \
	X(small_fd, LIES)       \
	X(huge, LIES)           \
	X(longer, LIES)         \
	X(shorter, LIES)        \
	X(hole, LIES)           \
	X(hole_beyond, LIES)    \
	X(unsealed, LIES)       \
	X(without_seal, LIES)   \
	X(without_shrink, LIES) \
	X(without_grow, LIES)   \
	X(without_write, LIES)  \
	X(pipe, LIES)           \
	X(plain_file, LIES)

static const struct fake_lie {
	const char *name;
	void (*fn)(struct fake *f);
	enum fake_count count;
	bool table;
} fake_lies[] = {
#define X(name, count) { #name, lie_##name, FAKE_##count, false },
	FAKE_ENDS(X) FAKE_MESSAGES(X)
#undef X
#define X(name, count) { #name, lie_##name, FAKE_##count, true },
		FAKE_TABLES(X)
#undef X
};

/* --- the honest part -------------------------------------------------------------------- */

static bool fake_is_evil(int fd)
{
	static char text[1 << 16];
	ssize_t n = pread(fd, text, sizeof(text), 0);

	return n > 0 && memmem(text, (size_t)n, "EVIL", 4);
}

static void fake_ident(struct fake *f)
{
	struct {
		struct worker_ident i;
		struct symbolizer_segment segments[WORKER_SEGMENTS_MAX];
	} out = { 0 };
	struct symbolizer_file *file = symbolizer_file_new();
	struct symbolizer_src src;

	symbolizer_src_fd(&src, fake_in.fd, f->q->size);
	if (symbolizer_file_load(file, &src))
		_exit(3);
	out.i.build_id_len = file->ident.build_id_len;
	memcpy(out.i.build_id, file->ident.build_id, sizeof(out.i.build_id));
	memcpy(out.i.file_id, file->ident.file_id, sizeof(out.i.file_id));
	out.i.n = (uint32_t)file->n_segments;
	memcpy(out.segments, file->segments,
	       file->n_segments * sizeof(*file->segments));
	fake_send(f, &out, sizeof(out.i) + out.i.n * sizeof(*file->segments),
		  -1);
	symbolizer_file_free(file);
}

static void fake_context(struct fake *f)
{
	struct worker_context out = { 0 };

	fake_send(f, &out, sizeof(out), -1);
}

static void fake_serve(const struct fake_lie *lie)
{
	static struct fake f;

	f.q = worker_question(&fake_in);
	if (!f.q)
		_exit(3);
	f.vaddrs = (uint64_t *)(f.q + 1);
	memset(&f.rows, 0, sizeof(f.rows));
	if (f.q->head.type == WORKER_IDENT) {
		fake_ident(&f);
		return;
	}
	if (f.q->head.type == WORKER_CONTEXT) {
		fake_context(&f);
		return;
	}
	fake_names(&f, "honest");
	if (fake_is_evil(fake_in.fd)) {
		lie->fn(&f);
	} else if (f.q->head.type == WORKER_NAMES) {
		f.out.names.a.err = fake_full ? -ENOMEM : 0;
		if (fake_full)
			f.len = sizeof(f.out.names);
		fake_reply(&f);
	} else {
		f.rows.a.err = -ENODATA;
		fake_send(&f, &f.rows, sizeof(f.rows), -1);
	}
}

static int fake_main(const char *name)
{
	struct worker_hello h = { .uid = getuid() };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(fake_lies); i++)
		if (!strcmp(name, fake_lies[i].name))
			break;
	if (i == ARRAY_SIZE(fake_lies))
		return 3;
	/* It may hang, but not longer than the test. */
	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	worker_send(0, &h.head, WORKER_HELLO, sizeof(h), 0, -1);
	while (!worker_recv(0, &fake_in)) {
		fake_serve(&fake_lies[i]);
		worker_in_close(&fake_in);
	}
	return 0;
}

#endif /* TESTS_UNIT_TEST_SYMBOLIZE_FAKE_H */
