// SPDX-License-Identifier: Apache-2.0
/* cmd_common: what several commands do; see profiler/cmd.h. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "profiler/cmd.h"
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

int cmd_check_host(bool quiet)
{
	cap_t caps = cap_get_proc();
	const char *without;
	char msg[512];
	size_t i;
	int err;

	if (!caps)
		return cmd_fail("capabilities: %s", strerror(errno));
	err = privilege_check(&privilege_this_host, caps, msg, sizeof(msg));
	for (i = 0; !err && !quiet; i++) {
		without = privilege_degraded(caps, i);
		if (!without)
			break;
		log_warn("missing %s", without);
	}
	cap_free(caps);
	return err ? cmd_fail("%s", msg) : 0;
}

int cmd_check_output(const char *command, const char *path, int *format)
{
	struct strbuf tmp = STRBUF_INIT;
	struct stat st;
	int fd, err = 0;

	*format = reporter_format_of(path);
	if (*format < 0) {
		fprintf(stderr,
			"profd %s: --output '%s': must end in .pb.gz, .pb.zst "
			"or .pb\n",
			command, path);
		return OPTIONS_USAGE;
	}
	if (!stat(path, &st) && !S_ISREG(st.st_mode))
		return cmd_fail("%s: exists and is no regular file", path);
	/* What will be done in the end: a new file beside it, renamed. */
	strbuf_printf(&tmp, "%s.XXXXXX", path);
	if (tmp.failed)
		return cmd_fail("%s", strerror(ENOMEM));
	fd = mkstemp(tmp.data);
	if (fd < 0) {
		err = errno;
	} else {
		unlink(tmp.data);
		close(fd);
	}
	strbuf_fini(&tmp);
	return err ? cmd_fail("%s: %s", path, strerror(err)) : 0;
}
