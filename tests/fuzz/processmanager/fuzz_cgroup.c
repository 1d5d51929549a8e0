// SPDX-License-Identifier: Apache-2.0
/*
 * Control group paths: all pieces found lie within the path. The same
 * bytes as the text of /proc/PID/cgroup: the path found is one of its own.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "processmanager/processmanager.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void parse_text(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);
	const char *path;

	if (!text)
		return;
	memcpy(text, data, size);
	text[size] = '\0';
	path = procfs_cgroup(text);
	if (path &&
	    (path < text || path + strlen(path) > text + size || *path != '/'))
		abort();
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *path = (const char *)data;
	struct pm_cgroup c;
	size_t i;

	pm_cgroup_parse(path, size, &c);
	const struct pm_part parts[] = { c.container, c.pod, c.unit };

	for (i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		if (parts[i].len && (parts[i].s < path ||
				     parts[i].s + parts[i].len > path + size))
			abort();
	if (c.engine && !c.container.len)
		abort();
	parse_text(data, size);
	return 0;
}
