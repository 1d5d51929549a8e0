/* SPDX-License-Identifier: Apache-2.0 */
/*
 * context: what a process publishes about itself: a protobuf message (OpenTelemetry
 * OTEP 4719, field numbers of opentelemetry/proto/common and resource)
 *
 *	Context   1 Resource, 2 KeyValue (of the writer, not read here)
 *	Resource  1 KeyValue
 *	KeyValue  1 key, 2 AnyValue
 *	AnyValue  1 string
 *
 * It is parsed in one pass over its bytes, without memory of its own. (protobuf-c would
 * merge a message that comes again, as often as it comes, in quadratic time.) Runs in the
 * worker process.
 */
#ifndef SYMBOLIZE_CONTEXT_H
#define SYMBOLIZE_CONTEXT_H

#include "symbolize/symbolize.h"

#define SYMBOLIZER_CONTEXT_ATTRIBUTES 1024

/*
 * 0; -EINVAL: no such message; -E2BIG: more attributes than that. Of an attribute that
 * comes again the last one counts; what symbolizer_context_text() refuses is left out.
 * 'out' is set in any case, and valid.
 */
int symbolizer_context_parse(const uint8_t *buf, size_t len,
			     struct symbolizer_context *out);
/* Whether its texts end inside it and are such as symbolizer_context_text() accepts. */
bool symbolizer_context_valid(const struct symbolizer_context *c);

#endif /* SYMBOLIZE_CONTEXT_H */
