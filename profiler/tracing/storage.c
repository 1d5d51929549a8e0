// SPDX-License-Identifier: Apache-2.0
/* storage: see profiler/tracing/storage.h. */
#include <errno.h>
#include <string.h>

#include "base/base.h"
#include "profiler/tracing/storage.h"

struct storage_text {
	const char *s; /* NULL: it is not all there */
	size_t len;
};

static struct storage_text storage_next(struct cursor *c)
{
	uint64_t len = cursor_fixed(c, sizeof(uint32_t));

	return (struct storage_text){
		.s = (const char *)cursor_bytes(c, len),
		.len = len,
	};
}

static void storage_name(struct symbolizer_context *names, const char *key,
			 struct storage_text text)
{
	symbolizer_context_set(names, key, strlen(key), text.s, text.len);
}

int tracing_storage_parse(const uint8_t *buf, size_t len,
			  struct tracing_storage *out)
{
	struct cursor c = { buf, buf + len, false };
	struct storage_text service, environment, path;
	uint64_t minor;

	memset(out, 0, sizeof(*out));
	minor = cursor_fixed(&c, sizeof(uint16_t));
	service = storage_next(&c);
	environment = storage_next(&c);
	path = storage_next(&c);
	if (c.bad || !minor)
		return -EINVAL;
	storage_name(&out->names, "service.name", service);
	storage_name(&out->names, "deployment.environment.name", environment);
	if (path.len && path.len < sizeof(out->socket) && *path.s == '/' &&
	    !memchr(path.s, '\0', path.len))
		memcpy(out->socket, path.s, path.len);
	return 0;
}
