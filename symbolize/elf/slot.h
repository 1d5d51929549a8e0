/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slot: where a file has the thread-local variable 'otel_thread_ctx_v1', in which a
 * tracer keeps a pointer to the record of the running thread (OpenTelemetry
 * OTEP 4947). These are facts of the file alone; what the loader has made of them
 * in a process is in that process's memory, at 'where'.
 *
 * Only files that define the variable have a slot: those that use another file's
 * lead to the same one.
 */
#ifndef SYMBOLIZE_SLOT_H
#define SYMBOLIZE_SLOT_H

#include "symbolize/elf/elf.h"

#define SYMBOLIZER_SLOT_NAME "otel_thread_ctx_v1"

/* How code finds the variable, from the thread pointer tp ("ELF Handling For TLS"). */
enum symbolizer_slot_model {
	SYMBOLIZER_SLOT_NONE, /* not defined here, or no code here uses it */
	SYMBOLIZER_SLOT_EXEC, /* tp + offset */
	SYMBOLIZER_SLOT_INITIAL, /* tp + the word at 'where' */
	SYMBOLIZER_SLOT_DESC, /* the TLS descriptor at 'where' */
	SYMBOLIZER_SLOT_MODULE, /* module: the word at 'where'; see 'pair' */
};

struct symbolizer_slot {
	enum symbolizer_slot_model model;
	/* EXEC: from tp, negative. Else: in the file's block of such variables. */
	int64_t offset;
	uint64_t where; /* address in the file */
	bool pair; /* MODULE: the loader sets the offset, too: the word behind */
};

/*
 * 'e' has its tables. 0, then 'slot' is set, or -errno: the file could not be read.
 * A file of another machine has none.
 */
int symbolizer_slot_find(struct symbolizer_elf *e,
			 struct symbolizer_slot *slot);

#endif /* SYMBOLIZE_SLOT_H */
