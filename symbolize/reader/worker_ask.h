/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker_ask: a worker asked for a debug file. An opener looks for it: any
 * path can hang.
 */
#ifndef SYMBOLIZE_WORKER_ASK_H
#define SYMBOLIZE_WORKER_ASK_H

#include "symbolize/file.h"
#include "symbolize/opener.h"
#include "symbolize/reader/worker_msg.h"

/* 'fd', or -errno, is closed after the call. */
typedef void (*worker_ask_fn)(void *arg, uint64_t question, int fd,
			      unsigned int nth);

/* A debug file of 'file', which may be closed meanwhile. 0 or -ENOMEM. */
int worker_ask_start(struct opener *opener, const char *const *dirs,
		     const struct symbolizer_file *file,
		     const struct worker_ask *ask, worker_ask_fn fn, void *arg);

#endif /* SYMBOLIZE_WORKER_ASK_H */
