// SPDX-License-Identifier: Apache-2.0
/* cmd_common: what several commands do; see profiler/cmd/cmd.h. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "profiler/cmd/client.h"
#include "profiler/cmd/cmd.h"
#include "profiler/cmd/lines.h"
#include "profiler/privilege.h"

int cmd_fail(const char *fmt, ...)
{
	char line[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	/* sd-daemon(3): a priority, if standard error is the journal. */
	fprintf(stderr, "%sprofd: %s\n", getenv("JOURNAL_STREAM") ? "<3>" : "",
		line);
	return OPTIONS_FAILED;
}

int cmd_usage(const char *command, const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "profd %s: ", command);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fprintf(stderr, " (see profd %s --help)\n", command);
	return OPTIONS_USAGE;
}

int cmd_print(struct strbuf *text)
{
	return lines_print(text) && !fflush(stdout)
		       ? 0
		       : cmd_fail("cannot write to standard output");
}

enum cmd_ending cmd_end_request(struct cmd_end *e, uint64_t same_ns)
{
	uint64_t now = clock_awake_ns();

	if (!e->since) {
		e->since = now;
		return CMD_END;
	}
	return e->again++ == 0 && now - e->since < same_ns ? CMD_END_SAME
							   : CMD_END_AT_ONCE;
}

bool cmd_is_ignored(int signum)
{
	struct sigaction sa;

	return signum == SIGHUP && !sigaction(signum, NULL, &sa) &&
	       sa.sa_handler == SIG_IGN;
}

int cmd_watch_signal(uv_loop_t *loop, uv_signal_t *handle, int signum,
		     uv_signal_cb fn, void *data)
{
	int err = uv_signal_init(loop, handle);

	handle->data = data;
	if (!err)
		err = uv_signal_start(handle, fn, signum);
	return err ? cmd_fail("signals: %s", uv_strerror(err)) : 0;
}

void cmd_close_handle(void *handle)
{
	uv_handle_t *h = handle;

	if (h->type != UV_UNKNOWN_HANDLE)
		uv_close(h, NULL);
}

void cmd_use_server(const struct options *o, struct client_request *req)
{
	req->server = o->server;
	req->token_file = o->client_token;
	req->ca_file = o->ca_file;
}

int cmd_request_lines(const struct options *o, struct client_request *req,
		      struct lines *lines)
{
	char msg[768];
	int err;

	cmd_use_server(o, req);
	req->body = lines_body;
	req->arg = lines;
	err = client_get(req, msg, sizeof(msg));
	lines_end(lines);
	if (err == -ECANCELED && req->cancelled && req->cancelled(lines))
		return 0;
	if (err && err != -ECANCELED)
		return cmd_fail("%s", msg);
	if (lines->bad)
		return cmd_fail("%s: %s", o->server, lines->bad);
	if (err || fflush(stdout))
		return cmd_fail("cannot write to standard output");
	if (lines->skipped)
		fprintf(stderr,
			"profd: skipped %" PRIu64 " lines longer than %d MiB\n",
			lines->skipped, LINES_LONGEST >> 20);
	return 0;
}

/* 0, or -errno and the reason in 'msg'. Perf events may replace BPF: *why. */
static int check_source(const struct options *o, bool whole, cap_t caps,
			char **why, char *msg, size_t len)
{
	const struct privilege_host *host = &privilege_this_host;
	char perf[512];
	int err;

	if (o->source == SOURCE_PERF)
		return privilege_check_perf(host, caps, whole, msg, len);
	err = privilege_check(host, caps, msg, len);
	if (!err || o->source == SOURCE_BPF)
		return err;
	if (!privilege_check_perf(host, caps, whole, perf, sizeof(perf))) {
		*why = strdup(msg);
		return *why ? 0 : -ENOMEM;
	}
	/* For the whole host the message recommends BPF. */
	if (!whole)
		snprintf(msg, len, "%s", perf);
	return err;
}

int cmd_check_host(const struct options *o, bool whole, bool quiet, char **why)
{
	cap_t caps = cap_get_proc();
	const char *without;
	char msg[512] = "out of memory";
	size_t i;
	int err;

	*why = NULL;
	if (!caps)
		return cmd_fail("capabilities: %s", strerror(errno));
	err = check_source(o, whole, caps, why, msg, sizeof(msg));
	/* Perf events of the user's own processes need none of the rest. */
	if ((*why || o->source == SOURCE_PERF) && !whole)
		quiet = true;
	for (i = 0; !err && !quiet; i++) {
		without = privilege_degraded(&privilege_this_host, caps, i);
		if (!without)
			break;
		log_warn("missing %s", without);
	}
	cap_free(caps);
	return err ? cmd_fail("%s", msg) : 0;
}

char *cmd_wait_output(const char *output)
{
	int format = reporter_format_of(output);
	const char *ending;
	char *path;

	if (format < 0)
		return NULL;
	ending = reporter_ending((enum reporter_format)format);
	if (asprintf(&path, "%.*s.wait%s",
		     (int)(strlen(output) - strlen(ending)), output,
		     ending) < 0)
		return NULL;
	return path;
}

/* A file that is not a profile is replaced only if the user says so. */
static int cmd_check_path(const char *path, bool force)
{
	struct reporter_outfile file;
	struct stat st;
	int err;

	if (!stat(path, &st)) {
		if (!S_ISREG(st.st_mode))
			return cmd_fail("%s: exists and is not a regular file",
					path);
		if (!force && !reporter_is_profile(path))
			return cmd_fail("%s: exists and is not a profile "
					"(--force replaces it)",
					path);
	}
	/* The profile too is written to a new file beside it, and renamed. */
	err = reporter_outfile_open(&file, path);
	if (err)
		return cmd_fail("%s: %s", path, strerror(-err));
	reporter_outfile_abort(&file);
	return 0;
}

int cmd_check_output(const char *command, const struct options *o, int *format)
{
	char *waits;
	int status;

	*format = reporter_format_of(o->output);
	if (*format < 0)
		return cmd_usage(command,
				 "--output '%s': must end in .pb.gz, .pb.zst "
				 "or .pb",
				 o->output);
	status = cmd_check_path(o->output, o->force);
	if (status || !o->wait)
		return status;
	waits = cmd_wait_output(o->output);
	status = waits ? cmd_check_path(waits, o->force)
		       : cmd_fail("%s", strerror(ENOMEM));
	free(waits);
	return status;
}
