/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of the environment that tests make. */
#ifndef TESTS_BPF_PLACE_H
#define TESTS_BPF_PLACE_H

/* Enters a new mount namespace, with private mounts. 0, or -1 and errno. */
int place_own_mounts(void);

#endif
