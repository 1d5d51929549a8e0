/* SPDX-License-Identifier: Apache-2.0 */
/* What a test may do to the place it runs in. */
#ifndef TESTS_BPF_PLACE_H
#define TESTS_BPF_PLACE_H

/*
 * A mount namespace of the caller's own, from which no mount gets out. 0, or -1
 * and errno.
 */
int place_own_mounts(void);

#endif
