/* SPDX-License-Identifier: Apache-2.0 */
/*
 * files: files in the directory of a test program, `static char dir[]`, which is defined
 * before this is included.
 */
#ifndef TESTS_UNIT_FILES_H
#define TESTS_UNIT_FILES_H

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static inline void sh(const char *fmt, ...)
	__attribute__((format(printf, 1, 2)));

/* A command in the test's directory; it has to succeed. */
static inline void sh(const char *fmt, ...)
{
	char line[2048];
	int n = snprintf(line, sizeof(line), "cd %s && ", dir);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line + n, sizeof(line) - (size_t)n, fmt, ap);
	va_end(ap);
	if (system(line) != 0)
		fail_msg("%s", line);
}

static inline void write_file(const char *name, const char *text)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
}

#endif /* TESTS_UNIT_FILES_H */
