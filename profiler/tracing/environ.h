/* SPDX-License-Identifier: Apache-2.0 */
/*
 * environ: the service that a process belongs to, by the variables of OpenTelemetry's
 * specification (Environment Variable Specification, "General SDK Configuration"):
 *
 *	OTEL_SERVICE_NAME=name
 *	OTEL_RESOURCE_ATTRIBUTES=key=value,...	values are percent-encoded
 */
#ifndef PROFILER_TRACING_ENVIRON_H
#define PROFILER_TRACING_ENVIRON_H

#include <stddef.h>

#include "symbolize/symbolize.h"

/*
 * 'text': variables, each with a NUL behind it, as in /proc/PID/environ; one that is cut
 * off is left out. A process can write anything there. What is no text is left out, as in
 * symbolizer_context_set(). OTEL_SERVICE_NAME goes before the attribute.
 */
void tracing_environ_parse(const char *text, size_t len,
			   struct symbolizer_context *out);

#endif /* PROFILER_TRACING_ENVIRON_H */
