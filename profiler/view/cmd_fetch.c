// SPDX-License-Identifier: Apache-2.0
/*
 * cmd_fetch: profd fetch. Requests a profile from a running profd, of the next seconds
 * or of the past, and writes it to a file, completely or not at all; or makes it of an
 * archive on this host. The server sends zstd to clients that
 * accept it, and else gzip, which is unpacked here for a raw .pb. A signal ends
 * the profile early: the sending side of the connection is shut down, and the
 * server answers with the samples up to then.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "profiler/view/ask.h"
#include "profiler/cmd/client.h"
#include "profiler/cmd/cmd.h"
#include "reporter/reporter.h"

struct fetch {
	const struct options *o;
	struct ask ask;
	bool past; /* of the archive */
	const char *path; /* of the file */
	enum reporter_query_format written;
	enum reporter_format format; /* of the answer */
	enum reporter_format packed; /* of the file, if that is pprof */
	/*
	 * The answer is not what is written: it is taken whole, and made into that
	 * here.
	 */
	bool convert;
	struct strbuf body;
	struct reporter_outfile file;
	uint64_t begin; /* CLOCK_BOOTTIME, ns */
	uint64_t bytes; /* written */
	bool drawn; /* a line of progress is on the terminal */
	uint64_t drawn_state;
	unsigned char head[4]; /* the first bytes of the answer */
	size_t nhead;
	z_stream unpack;
	bool unpacked; /* up to the end of the gzip stream */
	const char *bad; /* why the answer cannot be used; or NULL */
};

static struct cmd_end fetch_end; /* used by the signal handler only */
static volatile sig_atomic_t fetch_signal, fetch_at_once;

static void fetch_on_signal(int signum)
{
	fetch_signal = signum;
	if (cmd_end_request(&fetch_end, CMD_END_TWICE_NS) == CMD_END_AT_ONCE)
		fetch_at_once = 1;
}

/* --- progress and an early end --------------------------------------------- */

static uint64_t fetch_elapsed_s(const struct fetch *f)
{
	return (clock_boottime_ns() - f->begin) / CLOCK_NSEC_PER_SEC;
}

static void draw_progress(struct fetch *f)
{
	uint64_t all = f->past ? 0 : f->o->fetch_duration;
	uint64_t s = fetch_elapsed_s(f);
	uint64_t state = fetch_signal ? UINT64_MAX : f->nhead ? all : s;

	if (f->o->quiet || !isatty(STDERR_FILENO) ||
	    (f->drawn && state == f->drawn_state))
		return;
	f->drawn_state = state;
	f->drawn = true;
	if (fetch_signal)
		fputs("\rprofd: ending early\033[K", stderr);
	else if (f->past && !f->nhead)
		fprintf(stderr, "\rprofd: %llu s\033[K", (unsigned long long)s);
	else if (f->nhead || s >= all)
		fputs("\rprofd: receiving\033[K", stderr);
	else
		fprintf(stderr,
			"\rprofd: %llu s left (Ctrl-C ends early)\033[K",
			(unsigned long long)(all - s));
	fflush(stderr);
}

/* A first signal ends the profile early, a second one the request. */
static bool fetch_enough(void *arg)
{
	draw_progress(arg);
	return fetch_signal;
}

static bool fetch_cancelled(void *arg)
{
	return fetch_at_once;
}

/* --- the answer ------------------------------------------------------------ */

static bool fetch_store(struct fetch *f, const void *data, size_t len)
{
	const char *p = data;
	ssize_t n;

	if (f->convert) {
		strbuf_add(&f->body, data, len);
		if (f->body.failed || f->body.len > REPORTER_PROFILE_MAX)
			f->bad = "the answer is too large";
		return !f->bad;
	}
	for (; len; p += n, len -= n) {
		n = TEMP_FAILURE_RETRY(write(f->file.fd, p, len));
		if (n < 0) {
			f->bad = strerror(errno);
			return false;
		}
		f->bytes += n;
	}
	return true;
}

/* A gzip file may have several streams; profd sends one. */
static bool fetch_inflate(struct fetch *f, const void *data, size_t len)
{
	unsigned char out[32768];
	int rc;

	f->unpack.next_in = (void *)data;
	f->unpack.avail_in = len;
	do {
		f->unpack.next_out = out;
		f->unpack.avail_out = sizeof(out);
		rc = inflate(&f->unpack, Z_NO_FLUSH);
		if (rc != Z_OK && rc != Z_STREAM_END && rc != Z_BUF_ERROR) {
			f->bad = "the answer is not gzip";
			return false;
		}
		if (!fetch_store(f, out, sizeof(out) - f->unpack.avail_out))
			return false;
	} while (rc == Z_OK && !f->unpack.avail_out);
	f->unpacked = rc == Z_STREAM_END;
	return true;
}

static bool fetch_on_body(void *arg, const void *data, size_t len)
{
	struct fetch *f = arg;
	size_t n = MIN(len, sizeof(f->head) - f->nhead);

	memcpy(f->head + f->nhead, data, n);
	f->nhead += n;
	if (f->format == REPORTER_RAW)
		return fetch_inflate(f, data, len);
	return fetch_store(f, data, len);
}

/* Checks the format of the answer. */
static void check_body(struct fetch *f)
{
	static const unsigned char gzip[] = { 0x1f, 0x8b };
	static const unsigned char zstd[] = { 0x28, 0xb5, 0x2f, 0xfd };

	if (f->format == REPORTER_ZSTD) {
		if (f->nhead < sizeof(zstd) ||
		    memcmp(f->head, zstd, sizeof(zstd)))
			f->bad = "the answer is not zstd";
	} else if (f->nhead < sizeof(gzip) ||
		   memcmp(f->head, gzip, sizeof(gzip))) {
		f->bad = "the answer is not gzip";
	} else if (f->format == REPORTER_RAW && !f->unpacked) {
		f->bad = "the answer is cut short";
	}
}

static void fetch_report(const struct fetch *f)
{
	if (f->o->quiet)
		return;
	fputs("profd: ", stderr);
	if (!f->convert)
		fprintf(stderr, "%llu bytes, ", (unsigned long long)f->bytes);
	if (fetch_signal)
		fprintf(stderr, "ended early after %llu s, ",
			(unsigned long long)fetch_elapsed_s(f));
	fprintf(stderr, "%s\n", f->path);
}

/* Of a profile of the next seconds nothing is done yet but the choice of samples. */
static void fetch_convert(struct fetch *f)
{
	static const struct reporter_query_opts all;
	struct reporter_query *q = NULL;
	size_t len = f->body.len;
	int err;

	f->bad = NULL;
	err = f->past ? reporter_query_new(&q, &all)
		      : reporter_request_empty(f->ask.request, &q);
	if (!err)
		err = reporter_query_add_packed(q, strbuf_steal(&f->body), len,
						&f->bad);
	if (!err)
		err = reporter_query_end(q);
	if (!err && reporter_query_select(q, f->o->sample_type))
		f->bad = "no such sample type";
	if (!err && !f->bad)
		err = reporter_query_write(q, f->file.fd, f->written,
					   f->packed);
	if (err && !f->bad)
		f->bad = strerror(-err);
	reporter_query_free(q);
}

/* Renames the file, which is complete, or removes it. An exit status. */
static int fetch_finish(struct fetch *f, int err, const char *msg)
{
	const char *path = f->path;
	int failed;

	if (f->drawn)
		fputs("\r\033[K", stderr);
	if (!err)
		check_body(f);
	if (!err && !f->bad && f->convert)
		fetch_convert(f);
	if (!err && !f->bad) {
		failed = reporter_outfile_commit(&f->file);
		if (!failed) {
			reporter_outfile_fini(&f->file);
			fetch_report(f);
			return 0;
		}
		f->bad = strerror(-failed);
	}
	reporter_outfile_abort(&f->file);
	if (err == -ECANCELED && fetch_signal) {
		cmd_fail("%s, nothing was written", strsignal(fetch_signal));
		return CMD_SIGNALLED + fetch_signal;
	}
	return f->bad ? cmd_fail("%s: %s", path, f->bad) : cmd_fail("%s", msg);
}

static void fetch_catch_signals(void)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP };
	struct sigaction sa = { .sa_handler = fetch_on_signal };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(signals); i++)
		if (!cmd_is_ignored(signals[i]))
			sigaction(signals[i], &sa, NULL);
}

/* A signal ends a profile of the past without a result. */
static bool fetch_interrupted(void *arg)
{
	draw_progress(arg);
	return fetch_signal;
}

static int fetch_run(struct fetch *f)
{
	struct client_request req = {
		.wait_s = f->past ? 0 : f->o->fetch_duration,
		.body = fetch_on_body,
		.cancelled = f->past ? fetch_interrupted : fetch_cancelled,
		.enough = f->past ? NULL : fetch_enough,
		.arg = f,
	};
	struct strbuf path = STRBUF_INIT;
	char msg[768];
	int err;

	cmd_use_server(f->o, &req);
	if (f->format == REPORTER_ZSTD)
		req.accept_encoding = "zstd";
	if (f->past)
		strbuf_puts(&path, "/api/profile?format=pprof");
	else
		strbuf_printf(&path,
			      "/debug/pprof/profile?seconds=%llu&labels=all&"
			      "early=1",
			      (unsigned long long)f->o->fetch_duration);
	strbuf_puts(&path, strbuf_str(&f->ask.url));
	if (f->past)
		strbuf_puts(&path, strbuf_str(&f->ask.form));
	req.path = strbuf_str(&path);
	err = req.path ? reporter_outfile_open(&f->file, f->path) : -ENOMEM;
	if (err) {
		strbuf_fini(&path);
		return cmd_fail("%s: %s", f->path, strerror(-err));
	}
	f->begin = clock_boottime_ns();
	err = client_get(&req, msg, sizeof(msg));
	strbuf_fini(&path);
	return fetch_finish(f, err, msg);
}

/* Of an archive on this host. */
static int fetch_archive(struct fetch *f)
{
	struct reporter_query *q;
	int err, status = ask_archive(&f->ask, &q);

	if (status)
		return status;
	err = reporter_outfile_open(&f->file, f->path);
	if (!err)
		err = reporter_query_write(q, f->file.fd, f->written,
					   f->packed);
	reporter_query_free(q);
	if (!err)
		err = reporter_outfile_commit(&f->file);
	if (err) {
		reporter_outfile_abort(&f->file);
		return cmd_fail("%s: %s", f->path, strerror(-err));
	}
	reporter_outfile_fini(&f->file);
	if (!f->o->quiet)
		fprintf(stderr, "profd: %s\n", f->path);
	return 0;
}

static int fetch_server(struct fetch *f)
{
	int status;

	/* 16: a gzip header is expected. */
	if (inflateInit2(&f->unpack, 16 + MAX_WBITS) != Z_OK)
		return cmd_fail("%s", strerror(ENOMEM));
	fetch_catch_signals();
	status = fetch_run(f);
	inflateEnd(&f->unpack);
	return status;
}

/* Without --output: X(NAME, name). */
#define FETCH_NAMES(X)                         \
	X(PPROF, "profd.pb.gz")                \
	X(FOLDED, "profd.folded")              \
	X(SPEEDSCOPE, "profd.speedscope.json") \
	X(JSON, "profd.json")                  \
	X(FIREFOX, "profd.firefox.json")

/* What is written, and where. An exit status, after a message. */
static int fetch_output(struct fetch *f)
{
	static const char *const names[] = {
#define X(format, name) [REPORTER_QUERY_##format] = name,
		FETCH_NAMES(X)
#undef X
	};
	struct options o = *f->o;
	int format, status;

	f->written = o.export ? o.export : REPORTER_QUERY_PPROF;
	f->path = o.fetch_output ? o.fetch_output : names[f->written];
	if (f->written == REPORTER_QUERY_PPROF) {
		o.output = f->path;
		status = cmd_check_output("fetch", &o, &format);
		f->packed = f->format = (enum reporter_format)format;
		return status;
	}
	if (reporter_format_of(f->path) >= 0)
		return cmd_usage("fetch",
				 "--output '%s': the name of a pprof file, but "
				 "not its --format",
				 f->path);
	if (!o.force && !access(f->path, F_OK))
		return cmd_fail("%s: exists (--force replaces it)", f->path);
	return 0;
}

int cmd_fetch(const struct options *o)
{
	struct fetch f = { .o = o,
			   .file = REPORTER_OUTFILE_NONE,
			   .body = STRBUF_INIT };
	int status = fetch_output(&f);

	if (status)
		return status;
	status = ask_init(&f.ask, "fetch", o);
	if (!status) {
		f.past = reporter_request_past(f.ask.request);
		f.convert = f.written != REPORTER_QUERY_PPROF ||
			    (!f.past && f.ask.form.len);
		if (f.convert)
			f.format = REPORTER_GZIP;
		status =
			o->query_archive ? fetch_archive(&f) : fetch_server(&f);
	}
	ask_fini(&f.ask);
	strbuf_fini(&f.body);
	return status;
}
