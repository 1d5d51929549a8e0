/* SPDX-License-Identifier: Apache-2.0 */
/*
 * naming: a symbolizer for commands that read files without a running profd. Each
 * call waits for its answer. Files are opened with the user's own permissions.
 */
#ifndef PROFILER_NAMING_H
#define PROFILER_NAMING_H

#include "profiler/cmd/options.h"
#include "symbolize/symbolize.h"

struct naming;

/* What they are called in profiles. */
#define NAMING_KERNEL "[kernel.kallsyms]"
#define NAMING_VDSO "[vdso]"

/* With the options of 'o'; borrowed until naming_free(). 0 or -errno. */
int naming_new(struct naming **np, const struct options *o);
/* All files must be closed before. NULL is allowed. */
void naming_free(struct naming *n);
struct symbolizer *naming_symbolizer(struct naming *n);

/*
 * Opens the executable or relocatable file 'path' or, with the names that they have in profiles, the
 * kernel or the vDSO. If 'id_len' is not 0, a file with another build id is not
 * opened: -ESTALE. 0 or -errno, see symbolizer_problem().
 */
int naming_open(struct naming *n, const char *path, const uint8_t *build_id,
		size_t id_len, struct symbolizer_file **out);
/* NULL is allowed. */
void naming_close(struct naming *n, struct symbolizer_file *file);
/*
 * Whether it has no executable segment, as a separate debug file: its offsets are
 * unknown, and the addresses are taken instead.
 */
bool naming_is_debug(const struct symbolizer_file *file);

/*
 * Converts an address in the file, as addr2line(1) takes it, to the offset that
 * symbolizer_resolve() takes. False: it is in no executable segment, or, of a
 * relocatable file, beyond its sections with code.
 */
bool naming_offset(struct naming *n, const struct symbolizer_file *file,
		   uint64_t vaddr, uint64_t *offset);
/*
 * symbolizer_find(), of an address as naming_offset() takes it. 0 or -errno.
 */
int naming_find(struct naming *n, struct symbolizer_file *file,
		const char *name, uint64_t *vaddr, uint64_t *size);
/*
 * symbolizer_resolve(); calls 'fn' before it returns, once what servers of
 * --debuginfod have for it is there. 0 or -errno.
 */
int naming_resolve(struct naming *n, struct symbolizer_file *file,
		   const uint64_t *offsets, size_t count,
		   symbolizer_resolve_fn fn, void *arg);
/*
 * Asks the servers of --debuginfod for the debug file of a build id, and waits. The
 * directory where it is, or NULL without servers.
 */
const char *naming_fetch(struct naming *n, const uint8_t *id, size_t len);
/* symbolizer_rows(). 0 or -errno; the caller frees the rows. */
int naming_rows(struct naming *n, struct symbolizer_file *file,
		struct symbolizer_rows **out);

#endif /* PROFILER_NAMING_H */
