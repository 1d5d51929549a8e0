/* SPDX-License-Identifier: Apache-2.0 */
/* cmd: the commands of profd, and what several of them do. */
#ifndef PROFILER_CMD_H
#define PROFILER_CMD_H

#include "profiler/cmd/options.h"

/* Exit statuses beside 0 and those of enum options_result; as sh(1) has them. */
#define CMD_NOT_EXECUTABLE 126
#define CMD_NOT_FOUND 127
#define CMD_SIGNALLED 128 /* plus the signal's number */

/* Each returns profd's exit status. */
#define X(name, id, ...) int cmd_##id(const struct options *o);
OPTIONS_COMMANDS(X)
#undef X

/* profd debug symbolize, profd debug files. */
int cmd_debug_symbolize(const struct options *o);
int cmd_debug_files(const struct options *o);

/* Prints "profd: ..." on standard error; returns the exit status, 1. */
int cmd_fail(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Likewise "profd COMMAND: ... (see profd COMMAND --help)"; returns 2. */
int cmd_usage(const char *command, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/*
 * Writes 'text' to standard output and empties it. An exit status, after a
 * message.
 */
int cmd_print(struct strbuf *text);

/*
 * End requests by signals. timeout(1) signals its child and then the child's
 * group, so a second signal soon after the first one is the same request. Where it
 * would lose a profile, "soon" includes what an impatient user sends.
 */
#define CMD_END_TWICE_NS (250 * CLOCK_NSEC_PER_MSEC)
#define CMD_END_PATIENT_NS (2 * CLOCK_NSEC_PER_SEC)
struct cmd_end {
	uint64_t since; /* the first one, clock_awake_ns(); 0: none */
	unsigned int again; /* signals after it */
};
enum cmd_ending {
	CMD_END, /* the first request */
	CMD_END_SAME, /* not a new request */
	CMD_END_AT_ONCE,
};
/* Counts one more signal, CMD_END_..._NS. Async-signal-safe. */
enum cmd_ending cmd_end_request(struct cmd_end *e, uint64_t same_ns);

/* SIGHUP that is ignored since profd was started, as by nohup(1). */
bool cmd_is_ignored(int signum);
/* Calls 'fn' with handle->data == 'data'. An exit status, after a message. */
int cmd_watch_signal(uv_loop_t *loop, uv_signal_t *handle, int signum,
		     uv_signal_cb fn, void *data);
/* Closes a uv_handle_t, if it was initialized. */
void cmd_close_handle(void *handle);

struct client_request;
struct lines;
/* Sets the server of 'o', and how to reach it. */
void cmd_use_server(const struct options *o, struct client_request *req);
/*
 * Sends a request, with the server of 'o', for an answer in lines, and passes
 * them to lines->line. An exit status, after a message. 0 also if
 * req->cancelled() ended it.
 */
int cmd_request_lines(const struct options *o, struct client_request *req,
		      struct lines *lines);

/*
 * Checks that this host can be sampled as 'o' requires, the 'whole' host or some
 * processes only. Unless 'quiet' warns of data that will be missing. An exit
 * status, after a message. '*why' becomes the reason why perf events have to
 * replace BPF, for the caller to free, or NULL.
 */
int cmd_check_host(const struct options *o, bool whole, bool quiet, char **why);

/*
 * Checks, before sampling begins, that a profile can be written to --output: its
 * suffix selects a format (an enum reporter_format, in *format), an existing file
 * may be replaced, and a file can be created beside it. An exit status, after a
 * message.
 */
int cmd_check_output(const char *command, const struct options *o, int *format);
/*
 * The name of the profile of waits beside 'output': a.pb.gz, a.wait.pb.gz. malloc'd;
 * NULL: no memory, or 'output' has no ending of a profile.
 */
char *cmd_wait_output(const char *output);

#endif /* PROFILER_CMD_H */
