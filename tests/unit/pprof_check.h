/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pprof_check: a strict reader of profiles. What any consumer refuses or gets
 * wrong is an error here, and so is what profd promises beyond that.
 */
#ifndef TESTS_UNIT_PPROF_CHECK_H
#define TESTS_UNIT_PPROF_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "reporter/profile.pb-c.h"

/*
 * Raw, gzip or zstd, by content. NULL if every rule holds; else the first that
 * does not, with its place: valid until the next call.
 */
const char *pprof_check(const void *data, size_t len);
const char *pprof_check_file(const char *path);

/*
 * The sample types that profiles checked from now on must have, as { type, unit },
 * the default and the period's type among them. NULL: those of profd's profiles
 * of the CPU clock, of which cpu is count x period. Borrowed until then.
 */
void pprof_check_expect(const char *const (*types)[2], size_t n);

/* Whether a location of a mapping without has_functions may have no line. */
void pprof_check_bare(bool bare);

/*
 * The profile of the last check that found nothing wrong: valid until the next
 * check, or pprof_check_end(), which frees it.
 */
const Perftools__Profiles__Profile *pprof_checked(void);
void pprof_check_end(void);

/*
 * For a shell: `go tool pprof`. Debian's go includes pprof. Newer ones build it at
 * its first use, in half a minute of CPU time; a cache below build/ keeps it.
 */
#define PPROF_GO                                                            \
	"b=$(realpath ${B:-build}) && mkdir -p $b/go && go=/usr/bin/go && " \
	"{ [ -x $go ] || go=go; } && HOME=$b/go GOCACHE=$b/go/cache "       \
	"PPROF_TMPDIR=$b/go $go tool pprof "

/* For tests that look into a profile. 'p' from pprof_checked(). */
const char *pprof_label(const Perftools__Profiles__Profile *p,
			const Perftools__Profiles__Sample *s, const char *key);
int64_t pprof_label_num(const Perftools__Profiles__Profile *p,
			const Perftools__Profiles__Sample *s, const char *key);
const char *pprof_frame(const Perftools__Profiles__Profile *p,
			const Perftools__Profiles__Sample *s, size_t i);
const Perftools__Profiles__Mapping *
pprof_frame_mapping(const Perftools__Profiles__Profile *p,
		    const Perftools__Profiles__Sample *s, size_t i);
/* The sum of a sample type over all samples; -1: there is no such type. */
int64_t pprof_sum(const Perftools__Profiles__Profile *p, const char *type);
int64_t pprof_samples(const Perftools__Profiles__Profile *p);
bool pprof_has_comment(const Perftools__Profiles__Profile *p, const char *text);

#endif /* TESTS_UNIT_PPROF_CHECK_H */
