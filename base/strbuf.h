/* SPDX-License-Identifier: Apache-2.0 */
/*
 * strbuf: a byte string that grows. After a failed allocation further calls do
 * nothing, so that the caller checks once, at the end.
 */
#ifndef BASE_STRBUF_H
#define BASE_STRBUF_H

#include <stdbool.h>
#include <stddef.h>

struct strbuf {
	char *data; /* NUL-terminated whenever it is not NULL */
	size_t len; /* without the NUL */
	size_t cap;
	bool failed;
};

#define STRBUF_INIT           \
	{                     \
		.data = NULL, \
	}

void strbuf_fini(struct strbuf *sb);
void strbuf_add(struct strbuf *sb, const void *data, size_t len);
void strbuf_puts(struct strbuf *sb, const char *s);
void strbuf_printf(struct strbuf *sb, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void strbuf_reset(struct strbuf *sb);

/* The string, "" when empty, owned by sb; NULL if an allocation failed. */
const char *strbuf_str(const struct strbuf *sb);
/* The same, to be freed by the caller; sb is empty afterwards. */
char *strbuf_steal(struct strbuf *sb);

#endif /* BASE_STRBUF_H */
