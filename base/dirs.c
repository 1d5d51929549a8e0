// SPDX-License-Identifier: Apache-2.0
/* dirs: see base/dirs.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/dirs.h"

int dirs_make_parents(const char *path, mode_t mode)
{
	char *p, *copy = strdup(path);
	int err = copy ? 0 : -ENOMEM;

	for (p = copy; p && !err && *p && (p = strchr(p + 1, '/')); *p = '/') {
		*p = '\0';
		if (mkdir(copy, mode) && errno != EEXIST)
			err = -errno;
	}
	free(copy);
	return err;
}
