/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jsonw: JSON written as it comes. A tree that a library prints in the end costs
 * some 15 us a line, ten times as much: and there may be 10,000 lines a second.
 */
#ifndef REPORTER_JSONW_H
#define REPORTER_JSONW_H

#include <stdint.h>

#include "base/base.h"

struct jsonw {
	struct strbuf *sb; /* borrowed; its errors stick */
	bool more; /* a comma comes before what follows */
};

void jsonw_open(struct jsonw *w, char bracket); /* '{' or '[' */
void jsonw_close(struct jsonw *w, char bracket);
/* Before the value of a member. The key is plain ASCII. */
void jsonw_key(struct jsonw *w, const char *key);
/*
 * Any bytes; what is not UTF-8 becomes U+FFFD. 's' goes on to a NUL at or behind its
 * end.
 */
void jsonw_text(struct jsonw *w, const char *s, size_t len);
void jsonw_int(struct jsonw *w, uint64_t value);
void jsonw_real(struct jsonw *w, double value); /* finite */
void jsonw_bool(struct jsonw *w, bool value);

#endif /* REPORTER_JSONW_H */
