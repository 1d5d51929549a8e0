/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slot: where a file has the thread-local variable of a tracer. In 'otel_thread_ctx_v1'
 * it keeps a pointer to the record of the running thread (OpenTelemetry OTEP 4947), in
 * 'elastic_apm_profiling_correlation_tls_v1' one to a record of Elastic's universal
 * profiling integration; a file with that also has a pointer to what its process says of
 * itself. These are facts of the file alone; what the loader has made of them
 * in a process is in that process's memory, at 'where'.
 *
 * Only files that define the variable have a slot: those that use another file's
 * lead to the same one.
 */
#ifndef SYMBOLIZE_SLOT_H
#define SYMBOLIZE_SLOT_H

#include "symbolize/elf/elf.h"
#include "symbolize/symbolize.h"

/*
 * 'e' has no tables yet, and gets them if the file has thread-local variables. 0, then
 * 'slot' is set, or -errno: the file could not be read. A file of another machine has none.
 */
int symbolizer_slot_find(struct symbolizer_elf *e,
			 struct symbolizer_slot *slot);
/* Whether it is one that symbolizer_slot_find() may give. */
bool symbolizer_slot_valid(const struct symbolizer_slot *slot);

#endif /* SYMBOLIZE_SLOT_H */
