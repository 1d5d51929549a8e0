/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker_ask: the worker asked for a further file. It is looked for by an
 * opener, for a directory can hang as any path can.
 */
#ifndef SYMBOLIZE_WORKER_ASK_H
#define SYMBOLIZE_WORKER_ASK_H

#include "symbolize/file.h"
#include "symbolize/opener.h"
#include "symbolize/reader/worker_msg.h"

/* fd: or -errno; closed after the call. */
typedef void (*worker_ask_fn)(void *arg, uint64_t question, int fd,
			      unsigned int nth);

/* For 'file', which may be closed meanwhile. 0 or -ENOMEM. */
int worker_ask_start(struct opener *opener, const char *const *dirs,
		     const struct symbolizer_file *file,
		     const struct worker_ask *ask, worker_ask_fn fn, void *arg);

#endif /* SYMBOLIZE_WORKER_ASK_H */
