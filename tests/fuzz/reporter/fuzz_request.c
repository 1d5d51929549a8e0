// SPDX-License-Identifier: Apache-2.0
/*
 * Parameters of a query, one "KEY=VALUE" a line, as HTTP passes them on; the first byte
 * says whether times are local.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "reporter/request/request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = size ? strndup((const char *)data + 1, size - 1) : NULL;
	struct reporter_request_run run = { .archive = "/nonexistent" };
	struct reporter_request *r;
	struct reporter_query *q;
	char *line, *next, *value;
	const char *want;
	int err;

	if (!text || reporter_request_new(&r, 1795435200000000000, *data & 1)) {
		free(text);
		return 0;
	}
	for (line = text; line; line = next) {
		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		value = strchr(line, '=');
		if (!value)
			continue;
		*value++ = '\0';
		err = reporter_request_set(r, line, value, &want);
		if (err == -EINVAL && !want)
			__builtin_trap();
	}
	err = reporter_request_run(r, &run, &q);
	if (!err || !*run.why || q)
		__builtin_trap();
	if (!reporter_request_empty(r, &q))
		reporter_query_free(q);
	reporter_request_free(r);
	free(text);
	return 0;
}
