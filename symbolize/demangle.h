/* SPDX-License-Identifier: Apache-2.0 */
/*
 * demangle: C++ and Rust names for reading, by libiberty, with a bound on what
 * a name may cost: by its substitutions a hostile symbol of a kilobyte can
 * stand for more text than there is memory.
 */
#ifndef SYMBOLIZE_DEMANGLE_H
#define SYMBOLIZE_DEMANGLE_H

#include <stdbool.h>

#include "base/strbuf.h"

/* Longest text made; what would be longer stays as the linker has it. */
#define SYMBOLIZER_DEMANGLED_MAX 8192

/* Appends to 'out'. False, and 'out' as it was: not mangled, or too much. */
bool symbolizer_demangle(const char *name, struct strbuf *out);

#endif /* SYMBOLIZE_DEMANGLE_H */
