// SPDX-License-Identifier: Apache-2.0
/* load: see profiler/view/load.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "profiler/view/load.h"
#include "reporter/reporter.h"

int load_add(struct reporter_query *q, const char *path, bool base)
{
	bool input = !strcmp(path, "-");
	const char *what = NULL;
	int fd = input ? STDIN_FILENO
		       : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	int err = fd < 0 ? -errno : reporter_query_add_fd(q, fd, base, &what);

	if (fd >= 0 && !input)
		close(fd);
	return err ? cmd_fail("%s: %s", input ? "standard input" : path,
			      what ? what : strerror(-err))
		   : 0;
}

int load_end(struct reporter_query *q)
{
	int err = reporter_query_end(q);

	if (err == -ENODATA)
		return cmd_fail("no FILE has waits, which profd record --wait "
				"writes");
	return err ? cmd_fail("%s", strerror(-err)) : 0;
}

int load_files(const struct reporter_request *request, char **files, size_t n,
	       struct reporter_query **qp)
{
	int status = 0;

	*qp = NULL;
	if (reporter_request_empty(request, qp))
		return cmd_fail("%s", strerror(ENOMEM));
	for (size_t i = 0; i < n && !status; i++)
		status = load_add(*qp, files[i], false);
	return status;
}

static bool load_body(void *arg, const void *data, size_t len)
{
	struct load_get *g = arg;

	strbuf_add(&g->body, data, len);
	return !g->body.failed && g->body.len <= REPORTER_PROFILE_MAX;
}

/* req->arg is of both callbacks. */
static bool load_input(void *arg)
{
	struct load_get *g = arg;

	return g->input(g->arg);
}

int load_get(struct load_get *g)
{
	struct client_request req = {
		.path = g->path,
		.wait_s = g->wait_s,
		.accept_encoding = "zstd",
		.body = load_body,
		.input_fd = g->input_fd,
		.input = g->input ? load_input : NULL,
		.arg = g,
	};
	int err;

	strbuf_reset(&g->body);
	cmd_use_server(g->o, &req);
	err = client_get(&req, g->msg, sizeof(g->msg));
	if (err != -ECANCELED)
		return err;
	if (g->body.failed || g->body.len > REPORTER_PROFILE_MAX) {
		snprintf(g->msg, sizeof(g->msg), "%s: the answer is too large",
			 g->o->server);
		return -EFBIG;
	}
	return err;
}

int load_server(struct load_get *g, const struct reporter_request *request,
		struct reporter_query **qp)
{
	const char *what = NULL;
	int err = load_get(g);
	size_t len = g->body.len;

	*qp = NULL;
	if (err)
		return err;
	err = reporter_request_answer(request, qp);
	if (!err)
		err = reporter_query_add_packed(*qp, strbuf_steal(&g->body),
						len, &what);
	if (!err)
		err = reporter_query_end(*qp);
	if (err)
		snprintf(g->msg, sizeof(g->msg), "%s: %s", g->o->server,
			 what ? what : strerror(-err));
	return err;
}
