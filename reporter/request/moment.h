/* SPDX-License-Identifier: Apache-2.0 */
/* moment: times and durations as people write them. */
#ifndef REPORTER_MOMENT_H
#define REPORTER_MOMENT_H

#include <stdbool.h>
#include <stdint.h>

/*
 * A time as people write it: "now"; how long before 'now' ("90" seconds, "-10m", "2h",
 * "500ms", "1d"); seconds since 1970 ("@1795430000.25"; of 9 digits and more, the '@' may
 * be missing); "2026-11-23T14:30:05.25Z", with a zone or, if 'local', in that of this
 * process, where the seconds, the clock and the date may be missing. 0 or -EINVAL.
 */
int reporter_moment_parse(const char *text, int64_t now, bool local,
			  int64_t *out);
/* "90" seconds, "500ms", "10m", "2h", "1.5h", "7d", in nanoseconds. 0 or -EINVAL. */
int reporter_duration_parse(const char *text, int64_t *out);

#endif
