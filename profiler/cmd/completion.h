/* SPDX-License-Identifier: Apache-2.0 */
/* completion: what a shell completes, made from the table of options. */
#ifndef PROFILER_COMPLETION_H
#define PROFILER_COMPLETION_H

#include <stdbool.h>

#include "base/base.h"

/* profd runs so when it is installed: profd completion bash|zsh. */
#define COMPLETION_COMMAND "completion"

/* The script for a shell; false: there is none for it. */
bool completion_script(const char *shell, struct strbuf *out);

#endif /* PROFILER_COMPLETION_H */
