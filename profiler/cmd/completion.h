/* SPDX-License-Identifier: Apache-2.0 */
/* completion: completion for shells, generated from the table of options. */
#ifndef PROFILER_COMPLETION_H
#define PROFILER_COMPLETION_H

#include <stdbool.h>

#include "base/base.h"

/* For `make install`: profd completion bash|zsh. */
#define COMPLETION_COMMAND "completion"

/* The script for a shell; false if there is none. */
bool completion_script(const char *shell, struct strbuf *out);

#endif /* PROFILER_COMPLETION_H */
