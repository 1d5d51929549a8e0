/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attributes: the header of a process context, and the attributes that are read of it: a
 * part of symbolize/symbolize.h. Any thread.
 */
#ifndef SYMBOLIZE_ATTRIBUTES_H
#define SYMBOLIZE_ATTRIBUTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a process publishes about itself in its memory (OpenTelemetry OTEP 4719). */
#define SYMBOLIZER_CONTEXT_HEADER 32 /* bytes */
#define SYMBOLIZER_CONTEXT_MAX 65536 /* bytes of what the header leads to */
#define SYMBOLIZER_CONTEXT_NAME_MAX \
	128 /* bytes of a text; longer ones do not count */

struct symbolizer_context_header {
	uint64_t published_ns; /* another one: there is a new context */
	uint64_t payload; /* its address */
	uint32_t size; /* of the payload; SYMBOLIZER_CONTEXT_MAX at most */
};

/*
 * Of the first SYMBOLIZER_CONTEXT_HEADER bytes of a mapping. 0; -EAGAIN: it is being
 * written; -EFBIG: the payload is too large; -EINVAL: it is no context, or of another
 * version.
 */
int symbolizer_context_header(const void *buf, size_t len,
			      struct symbolizer_context_header *out);

/* X(member, "attribute of the resource"): as the semantic conventions name them. */
#define SYMBOLIZER_CONTEXT_NAMES(X)        \
	X(service, "service.name")         \
	X(instance, "service.instance.id") \
	X(environment, "deployment.environment.name")

/* Texts of symbolizer_context_text(), with a NUL; "": there is none. */
struct symbolizer_context {
#define X(member, key) char member[SYMBOLIZER_CONTEXT_NAME_MAX + 1];
	SYMBOLIZER_CONTEXT_NAMES(X)
#undef X
};

/* UTF-8 without control characters, not empty and not too long. */
bool symbolizer_context_text(const char *s, size_t len);
/* Sets the member of this attribute. False: it is of none, or its value is no text. */
bool symbolizer_context_set(struct symbolizer_context *c, const char *key,
			    size_t key_len, const char *value, size_t len);

#endif /* SYMBOLIZE_ATTRIBUTES_H */
