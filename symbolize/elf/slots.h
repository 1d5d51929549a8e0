/* SPDX-License-Identifier: Apache-2.0 */
/* slots: the thread-local variables of tracers, and where a file has one (slot.h). */
#ifndef SYMBOLIZE_SLOTS_H
#define SYMBOLIZE_SLOTS_H

#include <stdint.h>

/*
 * Thread-local variables of tracers, see slot.h. The first that a file has
 * counts. X(NAME, "symbol")
 */
#define SYMBOLIZER_SLOT_KINDS(X)      \
	X(OTEL, "otel_thread_ctx_v1") \
	X(ELASTIC, "elastic_apm_profiling_correlation_tls_v1")

enum symbolizer_slot_kind {
#define X(NAME, symbol) SYMBOLIZER_SLOT_##NAME,
	SYMBOLIZER_SLOT_KINDS(X)
#undef X
	SYMBOLIZER_N_SLOT_KINDS,
};

/* A pointer beside the variable of Elastic's: to the storage of the process. */
#define SYMBOLIZER_STORAGE_NAME \
	"elastic_apm_profiling_correlation_process_storage_v1"

/* How code finds the variable, from the thread pointer tp ("ELF Handling For TLS"). */
enum symbolizer_slot_model {
	SYMBOLIZER_SLOT_NONE, /* not defined here, or no code here uses it */
	SYMBOLIZER_SLOT_EXEC, /* tp + offset */
	SYMBOLIZER_SLOT_INITIAL, /* tp + the word at 'where' */
	SYMBOLIZER_SLOT_DESC, /* the TLS descriptor at 'where' */
	SYMBOLIZER_SLOT_MODULE, /* module: the word at 'where'; see 'pair' */
	SYMBOLIZER_N_SLOTS,
};

struct symbolizer_slot {
	/* EXEC: from tp, negative. Else: in the file's block of such variables. */
	int64_t offset;
	uint64_t where; /* address in the file */
	uint32_t model; /* enum symbolizer_slot_model */
	uint32_t pair; /* MODULE, 1: the loader sets the offset, too: the word behind */
	uint64_t storage; /* ELASTIC: address of that pointer in the file; 0: none */
	uint32_t kind; /* enum symbolizer_slot_kind */
	uint32_t pad;
};

#endif /* SYMBOLIZE_SLOTS_H */
