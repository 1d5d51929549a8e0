/* SPDX-License-Identifier: Apache-2.0 */
/* dirs: directories that a path needs. Any thread. */
#ifndef BASE_DIRS_H
#define BASE_DIRS_H

#include <sys/types.h>

/* Makes the missing directories above the last name of 'path'. 0 or -errno. */
int dirs_make_parents(const char *path, mode_t mode);

#endif /* BASE_DIRS_H */
