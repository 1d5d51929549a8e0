/* SPDX-License-Identifier: Apache-2.0 */
/* profile_check: whether bytes from outside are a pprof profile. */
#ifndef REPORTER_PROFILE_CHECK_H
#define REPORTER_PROFILE_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Whether (buf, len), not compressed, is the beginning of a profile: fields of
 * profile.proto with their wire types, and at least one sample_type. 'whole':
 * nothing follows, so no field may be cut off.
 */
bool profile_check(const uint8_t *buf, size_t len, bool whole);

#endif /* REPORTER_PROFILE_CHECK_H */
