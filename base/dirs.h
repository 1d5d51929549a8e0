/* SPDX-License-Identifier: Apache-2.0 */
/* dirs: creates directories. Any thread. */
#ifndef BASE_DIRS_H
#define BASE_DIRS_H

#include <sys/types.h>

/* Creates the missing parent directories of 'path'. 0 or -errno. */
int dirs_make_parents(const char *path, mode_t mode);

#endif /* BASE_DIRS_H */
