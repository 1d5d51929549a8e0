// SPDX-License-Identifier: Apache-2.0
/*
 * fetch_main: the process that downloads debug files, see symbolize/fetch/fetch.h.
 * For each question it asks the servers in their order, until one has the file;
 * what it wrote must be ELF with the build id that was asked for.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/base.h"
#include "base/libcurl.h"
#include "symbolize/elf/elf.h"
#include "symbolize/fetch/fetch.h"
#include "symbolize/reader/sandbox.h"

#define FETCH_COMM "profd-fetch"
#define FETCH_MEMORY (512U << 20)
#define FETCH_CPU_S 60
#define FETCH_CONNECT_MS 5000L
/* A server may prepare a file before it sends the first byte. */
#define FETCH_SLOW_BYTES 1024L /* a second, on average over: */
#define FETCH_SLOW_S 60L
#define FETCH_REDIRECTS 3L

struct download {
	int fd;
	uint64_t len, max;
	int err; /* of writing */
};

static size_t download_write(char *p, size_t size, size_t n, void *arg)
{
	struct download *d = arg;
	size_t len = size * n, done;
	ssize_t w;

	if (len > d->max - d->len) {
		d->err = -EFBIG;
		return 0;
	}
	for (done = 0; done < len; done += (size_t)w) {
		w = write(d->fd, p + done, len - done);
		if (w < 0 && errno == EINTR)
			w = 0;
		else if (w <= 0) {
			d->err = w ? -errno : -ENOSPC;
			return 0;
		}
	}
	d->len += len;
	return len;
}

/* What results of libcurl mean; all others are -EIO. */
static const struct {
	CURLcode code;
	int err;
} fetch_errors[] = {
	{ CURLE_OK, 0 },
	{ CURLE_COULDNT_RESOLVE_HOST, -ECONNREFUSED },
	{ CURLE_COULDNT_RESOLVE_PROXY, -ECONNREFUSED },
	{ CURLE_COULDNT_CONNECT, -ECONNREFUSED },
	{ CURLE_SSL_CONNECT_ERROR, -ECONNREFUSED },
	{ CURLE_PEER_FAILED_VERIFICATION, -EKEYREJECTED },
	{ CURLE_SSL_CACERT_BADFILE, -EKEYREJECTED },
	{ CURLE_OPERATION_TIMEDOUT, -ETIMEDOUT },
	{ CURLE_FILESIZE_EXCEEDED, -EFBIG },
	{ CURLE_TOO_MANY_REDIRECTS, -ELOOP },
	{ CURLE_UNSUPPORTED_PROTOCOL, -ELOOP }, /* of a redirect */
};

static int fetch_result(CURL *curl, CURLcode code, const struct download *d)
{
	long status = 0;

	if (d->err)
		return d->err;
	for (size_t i = 0; i < ARRAY_SIZE(fetch_errors); i++) {
		if (fetch_errors[i].code != code)
			continue;
		if (code)
			return fetch_errors[i].err;
		curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
		return status == 200 ? 0 : status == 404 ? -ENOENT : -EIO;
	}
	return -EIO;
}

static CURLcode download_options(CURL *curl, struct download *d,
				 const char *url)
{
	bool tls = !strncasecmp(url, "https:", strlen("https:"));
	CURLcode code = CURLE_OK;

#define SET(option, value) \
	(code = code ? code : curl_easy_setopt(curl, CURLOPT_##option, value))
	SET(URL, url);
	SET(PROTOCOLS_STR, "http,https");
	SET(REDIR_PROTOCOLS_STR, tls ? "https" : "http,https");
	SET(FOLLOWLOCATION, 1L);
	SET(MAXREDIRS, FETCH_REDIRECTS);
	SET(NOSIGNAL, 1L);
	SET(CONNECTTIMEOUT_MS, FETCH_CONNECT_MS);
	SET(TIMEOUT, (long)FETCH_TIMEOUT_S);
	SET(LOW_SPEED_LIMIT, FETCH_SLOW_BYTES);
	SET(LOW_SPEED_TIME, FETCH_SLOW_S);
	SET(MAXFILESIZE_LARGE, (curl_off_t)d->max);
	SET(USERAGENT, "profd/" PROFD_VERSION);
	SET(WRITEFUNCTION, download_write);
	SET(WRITEDATA, d);
#undef SET
	return code;
}

/* The file's headers, which its server chose. */
static int fetch_check(const struct fetch_question *q, const struct download *d)
{
	uint8_t id[FETCH_ID_MAX + 1];
	struct symbolizer_src src;
	struct symbolizer_elf e;
	size_t len;

	symbolizer_src_fd(&src, d->fd, d->len);
	if (symbolizer_elf_init(&e, &src))
		return -EBADMSG;
	len = symbolizer_elf_build_id(&e, id, sizeof(id));
	symbolizer_elf_fini(&e);
	return len == q->id_len && !memcmp(id, q->id, len) ? 0 : -EBADMSG;
}

/* From one server. */
static int fetch_from(CURL *curl, const struct fetch_question *q,
		      const char *base, int fd)
{
	struct download d = { .fd = fd, .max = q->max };
	char url[FETCH_URLS_MAX + 2 * FETCH_ID_MAX + 32];
	size_t len = strlen(base);
	int n, err;

	while (len && base[len - 1] == '/')
		len--;
	n = snprintf(url, sizeof(url), "%.*s/buildid/", (int)len, base);
	for (size_t i = 0; i < q->id_len; i++)
		n += snprintf(url + n, 3, "%02x", q->id[i]);
	snprintf(url + n, sizeof(url) - (size_t)n, "/debuginfo");
	if (ftruncate(fd, 0) || lseek(fd, 0, SEEK_SET))
		return -errno;
	curl_easy_reset(curl);
	if (download_options(curl, &d, url))
		return -EINVAL;
	err = fetch_result(curl, curl_easy_perform(curl), &d);
	return err ? err : fetch_check(q, &d);
}

/* The error of a server that failed says more than that another lacks the file. */
static int fetch_serve(CURL *curl, const struct fetch_question *q, int fd)
{
	const char *url = (const char *)(q + 1), *end = url + q->urls_len;
	int err = -ENOENT, one = -ENOENT;

	for (; one && url < end; url += strlen(url) + 1) {
		one = fetch_from(curl, q, url, fd);
		err = one == -ENOENT ? err : one;
	}
	return one ? err : 0;
}

/* From profd; checked all the same. */
static const struct fetch_question *fetch_question(const struct worker_in *in)
{
	const struct fetch_question *q = (const void *)in->bytes;

	if (in->len < sizeof(*q) || q->head.type != FETCH_GET ||
	    q->urls_len != in->len - sizeof(*q) || !q->urls_len ||
	    in->bytes[in->len - 1] || q->id_len < FETCH_ID_MIN ||
	    q->id_len > FETCH_ID_MAX || in->fd < 0)
		return NULL;
	return q;
}

static int fetch_answer(uint64_t job, int type, int error)
{
	struct fetch_answer a = { .err = error };

	return worker_send(FETCH_SOCKET, &a.head, (uint32_t)type, sizeof(a),
			   job, -1);
}

int fetch_main(void)
{
	static struct worker_in in;
	const struct sandbox_opts opts = { .memory = FETCH_MEMORY,
					   .cpu_s = FETCH_CPU_S,
					   .file_bytes = FETCH_FILE_MAX,
					   .network = true };
	const struct fetch_question *q;
	CURL *curl = NULL;
	const char *what;
	uid_t uid;
	int err;

	prctl(PR_SET_NAME, FETCH_COMM, 0, 0, 0);
	err = libcurl_load(&what);
	if (!err)
		err = sandbox_enter(&opts, &uid, &what);
	if (!err) {
		curl_global_init(CURL_GLOBAL_ALL);
		curl = curl_easy_init();
		err = curl ? 0 : -ENOMEM;
	}
	if (fetch_answer(0, FETCH_HELLO, err) || err)
		_exit(1);
	while (!err) {
		err = worker_recv(FETCH_SOCKET, &in);
		q = err ? NULL : fetch_question(&in);
		if (!err)
			err = !q ? -EPROTO
				 : fetch_answer(q->head.job, FETCH_DONE,
						fetch_serve(curl, q, in.fd));
		worker_in_close(&in);
	}
	/* Not exit(): its handlers are those of profd. */
	_exit(err == -EPIPE ? 0 : 1);
}
