// SPDX-License-Identifier: Apache-2.0
/* cmd_common: what several commands do; see profiler/cmd/cmd.h. */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "profiler/cmd/cmd.h"
#include "profiler/cmd/lines.h"
#include "profiler/privilege.h"
#include "reporter/reporter.h"

int cmd_fail(const char *fmt, ...)
{
	char line[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	/* sd-daemon(3): the priority in front, when the journal reads. */
	fprintf(stderr, "%sprofd: %s\n", getenv("JOURNAL_STREAM") ? "<3>" : "",
		line);
	return OPTIONS_FAILED;
}

#define CMD_END_SAME_NS (2 * CLOCK_NSEC_PER_SEC)

enum cmd_ending cmd_end_asked(struct cmd_end *e)
{
	uint64_t now = clock_awake_ns();

	if (!e->since) {
		e->since = now;
		return CMD_END;
	}
	return e->again++ == 0 && now - e->since < CMD_END_SAME_NS
		       ? CMD_END_SAME
		       : CMD_END_AT_ONCE;
}

void cmd_skipped(const struct lines *lines)
{
	if (lines->skipped)
		fprintf(stderr,
			"profd: %" PRIu64 " lines longer than %d MiB were "
			"left out\n",
			lines->skipped, LINES_LONGEST >> 20);
}

/* 0, or -errno and why in 'msg'; for want of BPF perf events may do. */
static int check_source(const struct options *o, bool whole, cap_t caps,
			char **why, char *msg, size_t len)
{
	const struct privilege_host *host = &privilege_this_host;
	char perf[512];
	int err = 0;

	if (o->source == SOURCE_PERF)
		return privilege_check_perf(host, caps, whole, msg, len);
	err = privilege_check(host, caps, msg, len);
	if (!err || o->source == SOURCE_BPF)
		return err;
	if (!privilege_check_perf(host, caps, whole, perf, sizeof(perf))) {
		*why = strdup(msg);
		return *why ? 0 : -ENOMEM;
	}
	/* Of the whole host, BPF is what is recommended. */
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
	/* By perf events one's own processes need none of the rest. */
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

int cmd_check_output(const char *command, const struct options *o, int *format)
{
	struct reporter_outfile file;
	const char *path = o->output;
	struct stat st;
	int err;

	*format = reporter_format_of(path);
	if (*format < 0) {
		fprintf(stderr,
			"profd %s: --output '%s': must end in .pb.gz, .pb.zst "
			"or .pb\n",
			command, path);
		return OPTIONS_USAGE;
	}
	if (!stat(path, &st)) {
		if (!S_ISREG(st.st_mode))
			return cmd_fail("%s: exists and is no regular file",
					path);
		if (!o->force && !reporter_is_profile(path))
			return cmd_fail("%s: exists and is no profile "
					"(--force replaces it)",
					path);
	}
	/* What will be done in the end: a new file beside it, renamed. */
	err = reporter_outfile_open(&file, path);
	if (err)
		return cmd_fail("%s: %s", path, strerror(-err));
	reporter_outfile_abort(&file);
	return 0;
}
