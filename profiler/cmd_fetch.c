// SPDX-License-Identifier: Apache-2.0
/*
 * cmd_fetch: profd fetch. Asks a running profd for a profile and puts it, whole
 * or not at all, where the user said. The server sends zstd to whom asks for
 * it, and gzip as it stands in a file to everyone else; a raw .pb is unpacked
 * here.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "profiler/client.h"
#include "profiler/cmd.h"
#include "reporter/reporter.h"

struct fetch {
	enum reporter_format format;
	struct strbuf tmp; /* name of the file until it is whole */
	FILE *file;
	uint64_t bytes;
	unsigned char head[4]; /* the answer's first bytes */
	size_t nhead;
	z_stream unpack;
	bool unpacked; /* the gzip stream has come to its end */
	const char *bad; /* why the answer is none; NULL: it is one */
};

static volatile sig_atomic_t fetch_signal;

static void on_signal(int signum)
{
	fetch_signal = signum;
}

static bool cancelled(void *arg)
{
	return fetch_signal;
}

static bool store(struct fetch *f, const void *data, size_t len)
{
	f->bytes += len;
	if (fwrite(data, 1, len, f->file) == len)
		return true;
	f->bad = strerror(errno);
	return false;
}

/* Streams may be concatenated in a gzip file; profd sends one. */
static bool unpack(struct fetch *f, const void *data, size_t len)
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
		if (!store(f, out, sizeof(out) - f->unpack.avail_out))
			return false;
	} while (rc == Z_OK && !f->unpack.avail_out);
	f->unpacked = rc == Z_STREAM_END;
	return true;
}

static bool on_body(void *arg, const void *data, size_t len)
{
	struct fetch *f = arg;
	size_t n = MIN(len, sizeof(f->head) - f->nhead);

	memcpy(f->head + f->nhead, data, n);
	f->nhead += n;
	if (f->format == REPORTER_RAW)
		return unpack(f, data, len);
	return store(f, data, len);
}

/* Whether what came is what was asked for. */
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

static int open_tmp(struct fetch *f, const char *path)
{
	mode_t mask = umask(0);
	int fd;

	umask(mask);
	strbuf_printf(&f->tmp, "%s.XXXXXX", path);
	fd = f->tmp.failed ? -1 : mkstemp(f->tmp.data);
	if (fd >= 0 && fchmod(fd, 0666 & ~mask) == 0)
		f->file = fdopen(fd, "w");
	if (f->file)
		return 0;
	cmd_fail("%s: %s", path, strerror(errno));
	if (fd >= 0) {
		unlink(f->tmp.data);
		close(fd);
	}
	return -1;
}

/* The file gets its name when every byte is on disk, or is gone. */
static int finish(struct fetch *f, const char *path, int err, const char *msg)
{
	if (!err)
		check_body(f);
	if (!err && !f->bad && (fflush(f->file) || fsync(fileno(f->file))))
		f->bad = strerror(errno);
	fclose(f->file);
	if (!err && !f->bad && rename(f->tmp.data, path))
		f->bad = strerror(errno);
	if (!err && !f->bad) {
		fprintf(stderr, "profd: %llu bytes, %s\n",
			(unsigned long long)f->bytes, path);
		return 0;
	}
	unlink(f->tmp.data);
	if (fetch_signal) {
		cmd_fail("%s, nothing was written", strsignal(fetch_signal));
		return CMD_SIGNALLED + fetch_signal;
	}
	return f->bad ? cmd_fail("%s: %s", path, f->bad) : cmd_fail("%s", msg);
}

static void catch_signals(void)
{
	struct sigaction sa = { .sa_handler = on_signal };

	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	sigaction(SIGHUP, &sa, NULL);
}

int cmd_fetch(const struct options *o)
{
	struct fetch f = { 0 };
	struct client_request req = {
		.server = o->server,
		.wait_s = o->fetch_duration,
		.body = on_body,
		.cancelled = cancelled,
		.arg = &f,
	};
	char msg[768], path[64];
	int format, status;

	status = cmd_check_output("fetch", o->output, &format);
	if (status)
		return status;
	f.format = format;
	if (format == REPORTER_ZSTD)
		req.accept_encoding = "zstd";
	snprintf(path, sizeof(path), "/debug/pprof/profile?seconds=%llu",
		 (unsigned long long)o->fetch_duration);
	req.path = path;
	/* 16: a gzip header is expected. */
	if (inflateInit2(&f.unpack, 16 + MAX_WBITS) != Z_OK)
		return cmd_fail("%s", strerror(ENOMEM));
	catch_signals();
	status = OPTIONS_FAILED;
	if (!open_tmp(&f, o->output))
		status = finish(&f, o->output,
				client_get(&req, msg, sizeof(msg)), msg);
	inflateEnd(&f.unpack);
	strbuf_fini(&f.tmp);
	return status;
}
