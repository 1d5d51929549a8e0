/* SPDX-License-Identifier: Apache-2.0 */
/* profile_check: whether bytes that somebody else wrote are a pprof profile. */
#ifndef REPORTER_PROFILE_CHECK_H
#define REPORTER_PROFILE_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Whether (buf, len), not compressed, is the beginning of a profile: a sequence
 * of the fields that profile.proto knows, each of its wire type, at least one
 * sample_type among them. 'whole': nothing follows, so no field may be cut off.
 */
bool profile_check(const uint8_t *buf, size_t len, bool whole);

#endif /* REPORTER_PROFILE_CHECK_H */
