/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pprof: the profile's wire format, written as a stream.
 *
 * The fields of a protobuf message may come in any order, and the elements of a
 * repeated field separately. So the profile never exists as a tree: each sample,
 * location, function, mapping and string is packed alone into one buffer and
 * written behind its field number and length. Ids are the caller's: 1, 2, 3...
 * in the order of writing; strings are numbered from 0, and the first one must
 * be "".
 */
#ifndef REPORTER_PPROF_H
#define REPORTER_PPROF_H

#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "reporter/profile.pb-c.h"
#include "reporter/sink.h"

/* Field numbers of Profile, as in profile.proto. */
enum pprof_field {
	PPROF_PROFILE = 0, /* no field: members of Profile itself */
	PPROF_SAMPLE = 2,
	PPROF_MAPPING = 3,
	PPROF_LOCATION = 4,
	PPROF_FUNCTION = 5,
	PPROF_STRING = 6,
};

/* Zero but for 'sink', which keeps its own errors. */
struct pprof {
	struct sink *sink; /* borrowed */
	int err; /* -ENOMEM: something was left out */
	uint8_t *buf;
	size_t cap;
};

void pprof_fini(struct pprof *p);
/* Writes 'm', which has to be a message of that field's type. */
void pprof_put(struct pprof *p, enum pprof_field field,
	       const ProtobufCMessage *m);
/* Each byte that is not UTF-8 becomes U+FFFD. */
void pprof_string(struct pprof *p, const char *s);

/*
 * 's' itself if its '*len' bytes are UTF-8; else a copy in 'sb', which is empty
 * before, with U+FFFD for each byte that is not, and '*len' is its length. NULL:
 * out of memory.
 */
const char *pprof_utf8(const char *s, size_t *len, struct strbuf *sb);

#endif /* REPORTER_PPROF_H */
