// SPDX-License-Identifier: Apache-2.0
/* client: see profiler/cmd/client.h. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/base.h"
#include "base/libcurl.h"
#include "profiler/cmd/client.h"

#define CONNECT_S 10L /* longest wait for a connection */
#define GRACE_S 60L /* longest wait for an answer beyond wait_s */
#define TOKEN_MAX 512
#define REASON_MAX 400 /* bytes of an error's text that are kept */
#define ADVICE_START                 \
	": is profd running there? " \
	"(start it: profd run, or systemctl start profd)"
#define ADVICE_GROUP                                                            \
	": only profd's user, root and members of the socket's group, usually " \
	"profd, may ask"
#define INPUT_MS 1000 /* longest time between calls of input() */

struct exchange {
	const struct client_request *req;
	CURL *curl;
	struct strbuf reason; /* the body of an error */
	bool stopped; /* by a callback */
	curl_socket_t fd; /* owned by curl; -1: none yet */
	bool shut; /* its sending side is shut down */
};

static size_t client_on_body(char *data, size_t size, size_t n, void *arg)
{
	struct exchange *x = arg;
	long code = 0;

	curl_easy_getinfo(x->curl, CURLINFO_RESPONSE_CODE, &code);
	if (code != 200) {
		if (x->reason.len < REASON_MAX)
			strbuf_add(&x->reason, data,
				   MIN(n, REASON_MAX - x->reason.len));
		return n;
	}
	if (x->req->body(x->req->arg, data, n))
		return n;
	x->stopped = true;
	return 0;
}

/* CURLINFO_ACTIVESOCKET is known only after the transfer. */
static int on_socket(void *arg, curl_socket_t fd, curlsocktype purpose)
{
	struct exchange *x = arg;

	x->fd = fd;
	return CURL_SOCKOPT_OK;
}

static int client_on_progress(void *arg, curl_off_t dltotal, curl_off_t dlnow,
			      curl_off_t ultotal, curl_off_t ulnow)
{
	struct exchange *x = arg;

	if (!x->shut && x->req->enough && x->req->enough(x->req->arg))
		x->shut = x->fd >= 0 && !shutdown(x->fd, SHUT_WR);
	if (!x->req->cancelled || !x->req->cancelled(x->req->arg))
		return 0;
	x->stopped = true;
	return 1;
}

/* Appends the server's text as one line, escaped: it may quote any user's. */
static void add_reason(struct strbuf *out, const struct strbuf *reason)
{
	size_t i, n = reason->len, len;

	while (n && strchr("\r\n ", reason->data[n - 1]))
		n--;
	for (i = 0; i < n; i += len + 1) {
		len = MIN(strcspn(reason->data + i, "\r\n"), n - i);
		text_add(out, reason->data + i, len);
		if (i + len < n)
			strbuf_puts(out, " ");
	}
	if (!n)
		strbuf_puts(out, "no reason given");
}

/* What an errno of connect(2) suggests to do. */
static const char *client_advice(long sys)
{
	static const struct {
		long sys;
		const char *advice;
	} list[] = {
		{ ENOENT, ADVICE_START },
		{ ECONNREFUSED, ADVICE_START },
		{ EACCES, ADVICE_GROUP },
		{ EPERM, ADVICE_GROUP },
	};

	for (size_t i = 0; i < ARRAY_SIZE(list); i++)
		if (list[i].sys == sys)
			return list[i].advice;
	return "";
}

static int client_explain(struct exchange *x, CURLcode rc, char *msg,
			  size_t len)
{
	const char *server = x->req->server;
	long code = 0, sys = 0;

	curl_easy_getinfo(x->curl, CURLINFO_RESPONSE_CODE, &code);
	curl_easy_getinfo(x->curl, CURLINFO_OS_ERRNO, &sys);
	if (x->stopped)
		return -ECANCELED;
	if (rc == CURLE_COULDNT_CONNECT) {
		snprintf(msg, len, "%s: %s%s", server,
			 sys ? strerror(sys) : curl_easy_strerror(rc),
			 client_advice(sys));
		return -ECONNREFUSED;
	}
	if (rc != CURLE_OK) {
		snprintf(msg, len, "%s: %s", server, curl_easy_strerror(rc));
		return -EIO;
	}
	if (code != 200) {
		struct strbuf why = STRBUF_INIT;

		add_reason(&why, &x->reason);
		snprintf(msg, len, "%s: %ld: %s", server, code,
			 why.failed ? strerror(ENOMEM) : why.data);
		strbuf_fini(&why);
		return -EBADMSG;
	}
	return 0;
}

/* Sets the URL, and the path of a unix socket. 0 or -ENOMEM. */
static int set_address(struct exchange *x)
{
	const struct client_request *req = x->req;
	struct strbuf url = STRBUF_INIT;
	CURLcode rc;

	if (!strncmp(req->server, "unix:", 5)) {
		curl_easy_setopt(x->curl, CURLOPT_UNIX_SOCKET_PATH,
				 req->server + 5);
		strbuf_puts(&url, "http://localhost");
	} else if (strncmp(req->server, "http://", 7) &&
		   strncmp(req->server, "https://", 8)) {
		strbuf_printf(&url, "http://%s", req->server);
	} else {
		strbuf_puts(&url, req->server);
	}
	if (!url.failed && url.data[url.len - 1] == '/')
		url.data[--url.len] = '\0';
	strbuf_puts(&url, req->path);
	rc = url.failed ? CURLE_OUT_OF_MEMORY
			: curl_easy_setopt(x->curl, CURLOPT_URL, url.data);
	strbuf_fini(&url);
	return rc == CURLE_OK ? 0 : -ENOMEM;
}

/* Sends the token of a file, its first line. 0 or -errno. */
static int set_token(CURL *c, const char *path)
{
	char token[TOKEN_MAX + 1];
	FILE *f = fopen(path, "re");
	int err = 0;

	if (!f)
		return -errno;
	if (!fgets(token, sizeof(token), f))
		err = ferror(f) ? -errno : -ENODATA;
	fclose(f);
	if (err)
		return err;
	token[strcspn(token, "\r\n")] = '\0';
	curl_easy_setopt(c, CURLOPT_HTTPAUTH, CURLAUTH_BEARER);
	if (curl_easy_setopt(c, CURLOPT_XOAUTH2_BEARER, token) != CURLE_OK)
		err = -ENOMEM;
	explicit_bzero(token, sizeof(token));
	return err;
}

static int set_up(struct exchange *x, struct curl_slist **headers)
{
	struct strbuf line = STRBUF_INIT;
	CURL *c = x->curl;

	/* CURLOPT_ACCEPT_ENCODING would decode the body. */
	if (x->req->accept_encoding) {
		strbuf_printf(&line, "Accept-Encoding: %s",
			      x->req->accept_encoding);
		if (!line.failed)
			*headers = curl_slist_append(NULL, line.data);
		strbuf_fini(&line);
		if (!*headers)
			return -ENOMEM;
		curl_easy_setopt(c, CURLOPT_HTTPHEADER, *headers);
	}
	curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https");
	if (x->req->ca_file &&
	    curl_easy_setopt(c, CURLOPT_CAINFO, x->req->ca_file) != CURLE_OK)
		return -ENOMEM;
	/* Proxies of the environment are for other hosts. */
	curl_easy_setopt(c, CURLOPT_NOPROXY, "*");
	curl_easy_setopt(c, CURLOPT_USERAGENT, "profd/" PROFD_VERSION);
	curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT, CONNECT_S);
	if (!x->req->endless)
		curl_easy_setopt(c, CURLOPT_TIMEOUT, x->req->wait_s + GRACE_S);
	curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, client_on_body);
	curl_easy_setopt(c, CURLOPT_WRITEDATA, x);
	curl_easy_setopt(c, CURLOPT_NOPROGRESS, 0L);
	curl_easy_setopt(c, CURLOPT_XFERINFOFUNCTION, client_on_progress);
	curl_easy_setopt(c, CURLOPT_XFERINFODATA, x);
	curl_easy_setopt(c, CURLOPT_SOCKOPTFUNCTION, on_socket);
	curl_easy_setopt(c, CURLOPT_SOCKOPTDATA, x);
	return set_address(x);
}

/* Until the transfer ends, or input() ends it. */
static CURLcode client_multi(struct exchange *x, CURLM *m)
{
	struct curl_waitfd in = { .fd = x->req->input_fd,
				  .events = CURL_WAIT_POLLIN };
	CURLcode rc = CURLE_ABORTED_BY_CALLBACK;
	const CURLMsg *done;
	int running, left;

	do {
		if (curl_multi_perform(m, &running))
			return CURLE_OUT_OF_MEMORY;
		if (running && curl_multi_poll(m, &in, 1, INPUT_MS, NULL))
			return CURLE_OUT_OF_MEMORY;
		x->stopped |= running && x->req->input(x->req->arg);
	} while (running && !x->stopped);
	done = x->stopped ? NULL : curl_multi_info_read(m, &left);
	if (done && done->msg == CURLMSG_DONE)
		rc = done->data.result;
	return rc;
}

static CURLcode client_perform(struct exchange *x)
{
	CURLcode rc = CURLE_OUT_OF_MEMORY;
	CURLM *m;

	if (!x->req->input)
		return curl_easy_perform(x->curl);
	m = curl_multi_init();
	if (m && !curl_multi_add_handle(m, x->curl)) {
		rc = client_multi(x, m);
		curl_multi_remove_handle(m, x->curl);
	}
	curl_multi_cleanup(m);
	return rc;
}

int client_get(const struct client_request *req, char *msg, size_t len)
{
	struct exchange x = { .req = req, .fd = -1 };
	struct curl_slist *headers = NULL;
	const char *what = req->server;
	int err = libcurl_load(&what);

	if (err) {
		snprintf(msg, len, "libcurl is needed: %s", what);
		return err;
	}
	err = -ENOMEM;
	x.curl = curl_easy_init();
	if (x.curl)
		err = set_up(&x, &headers);
	if (!err && req->token_file) {
		err = set_token(x.curl, req->token_file);
		what = req->token_file;
	}
	if (err)
		snprintf(msg, len, "%s: %s", what, strerror(-err));
	else
		err = client_explain(&x, client_perform(&x), msg, len);
	curl_easy_cleanup(x.curl);
	curl_slist_free_all(headers);
	strbuf_fini(&x.reason);
	return err;
}

void client_escape(struct strbuf *out, const char *value)
{
	const char *why;
	char *text =
		libcurl_load(&why) ? NULL : curl_easy_escape(NULL, value, 0);

	if (!text) {
		out->failed = true;
		return;
	}
	strbuf_puts(out, text);
	curl_free(text);
}
