/* SPDX-License-Identifier: Apache-2.0 */
/*
 * witness: what was seen at some paths, as bytes, to notice later that something
 * changed there: what was read from an executable also depends on its debug
 * file, or on there being none.
 */
#ifndef SYMBOLIZE_WITNESS_H
#define SYMBOLIZE_WITNESS_H

#include "base/base.h"

#define WITNESS_MAX 16384 /* bytes of all */

/* Appends the state of a path. May block. */
void witness_path(struct strbuf *sb, const char *path);
/* Appends that of an open file. */
void witness_fd(struct strbuf *sb, int fd);
/*
 * Appends that of the directories which have the debug files of a build id.
 * May block.
 */
void witness_dirs(struct strbuf *sb, const char *const *dirs,
		  const uint8_t *build_id, size_t len);

/* Adds what the other has and it lacks; both were checked, or made here. */
void witness_join(struct strbuf *sb, const uint8_t *p, size_t len);

/* 0: nothing changed; -ESTALE; -EBADMSG: these are no such bytes. May block. */
int witness_check(const uint8_t *p, size_t len);

#endif /* SYMBOLIZE_WITNESS_H */
