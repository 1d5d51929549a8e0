/* SPDX-License-Identifier: Apache-2.0 */
/* cmd: the commands of profd, and what they have in common. */
#ifndef PROFILER_CMD_H
#define PROFILER_CMD_H

#include "profiler/cmd/options.h"

/* Exit statuses beside 0 and those of enum options_result; as sh(1) has them. */
#define CMD_NOT_EXECUTABLE 126
#define CMD_NOT_FOUND 127
#define CMD_SIGNALLED 128 /* and the signal's number */

/* Each returns profd's exit status. */
#define X(name, word, args, help) int cmd_##word(const struct options *o);
OPTIONS_COMMANDS(X)
#undef X

/* profd debug files. */
int cmd_debug_files(const struct options *o);

/* One line on standard error, "profd: ..."; returns 1, the exit status. */
int cmd_fail(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/*
 * Requests to end, by signals. timeout(1) signals its child and then the child's
 * group, so that a second signal soon after the first one is the same request.
 */
struct cmd_end {
	uint64_t since; /* the first, clock_awake_ns() */
	unsigned int again; /* signals behind it */
};
enum cmd_ending {
	CMD_END, /* the first */
	CMD_END_SAME, /* nothing new */
	CMD_END_AT_ONCE,
};
/* Takes one more of them. Async-signal-safe. */
enum cmd_ending cmd_end_asked(struct cmd_end *e);

struct lines;
/* Says on standard error how many lines of an answer were too long, if any. */
void cmd_skipped(const struct lines *lines);

/*
 * Says what is missing on this host for sampling as 'o' wants it, and fails, or
 * warns of what will not be seen unless 'quiet'. 'whole': not some processes
 * only. An exit status, 0 if all is well; '*why' then says why BPF is out of the
 * question though it might have been, in words for the caller to free, or NULL.
 */
int cmd_check_host(const struct options *o, bool whole, bool quiet, char **why);

/*
 * That a profile can be written to --output, before anything is begun for it:
 * the ending of its name is one that means a format (an enum reporter_format,
 * in *format), what is there is a profile or may be replaced, and a file can be
 * made beside it. An exit status; says why.
 */
int cmd_check_output(const char *command, const struct options *o, int *format);

#endif /* PROFILER_CMD_H */
