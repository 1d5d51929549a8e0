// SPDX-License-Identifier: Apache-2.0
/* log: see base/log.h. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"

static const struct {
	const char *word;
	int syslog;
} log_levels[] = {
#define X(name, word, syslog) [LOG_##name] = { #word, syslog },
	LOG_LEVELS(X)
#undef X
};

static enum log_level log_max = LOG_INFO;

void log_set_level(enum log_level level)
{
	log_max = level;
}

/*
 * One write(2) a message, so that lines of two threads or processes do not mix.
 * Under systemd the line begins with its priority, see sd-daemon(3).
 */
void log_printf(enum log_level level, const char *fmt, ...)
{
	char line[1024];
	va_list ap;
	int n = 0, m;

	if (level > log_max)
		return;
	if (getenv("JOURNAL_STREAM"))
		n = snprintf(line, sizeof(line), "<%d>",
			     log_levels[level].syslog);
	n += snprintf(line + n, sizeof(line) - n, "profd: %s%s",
		      level == LOG_INFO ? "" : log_levels[level].word,
		      level == LOG_INFO ? "" : ": ");
	va_start(ap, fmt);
	m = vsnprintf(line + n, sizeof(line) - n, fmt, ap);
	va_end(ap);
	if (m < 0)
		return;
	n += m;
	if (n > (int)sizeof(line) - 1)
		n = sizeof(line) - 1;
	line[n++] = '\n';
	if (write(STDERR_FILENO, line, n) < 0)
		return; /* cannot be reported anywhere */
}
