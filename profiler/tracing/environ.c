// SPDX-License-Identifier: Apache-2.0
/* environ: see profiler/tracing/environ.h. */
#include <string.h>

#include "base/base.h"
#include "profiler/tracing/environ.h"

static const char environ_service[] = "OTEL_SERVICE_NAME=";
static const char environ_attributes[] = "OTEL_RESOURCE_ATTRIBUTES=";
static const char environ_key[] = "service.name";

/* A piece of the text. */
struct environ_part {
	const char *s;
	size_t len;
};

/* Without spaces at its ends. */
static struct environ_part environ_trim(const char *s, const char *end)
{
	while (s < end && *s == ' ')
		s++;
	while (s < end && end[-1] == ' ')
		end--;
	return (struct environ_part){ s, (size_t)(end - s) };
}

static int environ_digit(char c)
{
	return c >= '0' && c <= '9'   ? c - '0'
	       : c >= 'a' && c <= 'f' ? c - 'a' + 10
	       : c >= 'A' && c <= 'F' ? c - 'A' + 10
				      : -1;
}

/* The length of what is decoded; longer than a name can be: one more than that. */
static size_t environ_decode(struct environ_part v,
			     char to[SYMBOLIZER_CONTEXT_NAME_MAX + 1])
{
	size_t n = 0;
	int high, low;

	for (size_t i = 0; i < v.len && n <= SYMBOLIZER_CONTEXT_NAME_MAX; i++) {
		high = v.len - i > 2 ? environ_digit(v.s[i + 1]) : -1;
		low = high >= 0 ? environ_digit(v.s[i + 2]) : -1;
		if (v.s[i] == '%' && low >= 0) {
			to[n++] = (char)(high << 4 | low);
			i += 2;
		} else {
			to[n++] = v.s[i];
		}
	}
	return n;
}

static void environ_attribute(const char *s, const char *end,
			      struct symbolizer_context *out)
{
	char value[SYMBOLIZER_CONTEXT_NAME_MAX + 1];
	const char *is = memchr(s, '=', (size_t)(end - s));
	struct environ_part key;

	if (!is)
		return;
	key = environ_trim(s, is);
	symbolizer_context_set(out, key.s, key.len, value,
			       environ_decode(environ_trim(is + 1, end),
					      value));
}

static void environ_list(const char *s, const char *end,
			 struct symbolizer_context *out)
{
	const char *comma;

	for (; (comma = memchr(s, ',', (size_t)(end - s))); s = comma + 1)
		environ_attribute(s, comma, out);
	environ_attribute(s, end, out);
}

/* Its value, if it is this variable ("NAME="). */
static const char *environ_value(const char *s, const char *end,
				 const char *name)
{
	size_t len = strlen(name);

	return (size_t)(end - s) >= len && !memcmp(s, name, len) ? s + len
								 : NULL;
}

void tracing_environ_parse(const char *text, size_t len,
			   struct symbolizer_context *out)
{
	const char *end = text + len, *nul, *value;
	struct environ_part service = { 0 };

	memset(out, 0, sizeof(*out));
	for (; text < end; text = nul + 1) {
		nul = memchr(text, '\0', (size_t)(end - text));
		if (!nul)
			break;
		value = environ_value(text, nul, environ_attributes);
		if (value)
			environ_list(value, nul, out);
		value = environ_value(text, nul, environ_service);
		if (value)
			service = environ_trim(value, nul);
	}
	symbolizer_context_set(out, environ_key, strlen(environ_key), service.s,
			       service.len);
}
