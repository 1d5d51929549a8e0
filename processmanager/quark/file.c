// SPDX-License-Identifier: Apache-2.0
/*
 * file: executed files that the application does not know. Their execs are told
 * as soon as they are read, since the file may be deleted, and its process gone,
 * by the time that the event is. And marks of execs among the mapping records that
 * the application reads itself.
 */
#include <errno.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "processmanager/quark/priv.h"

void quark_new_file(const struct quark_queue_priv *qq,
		    const struct abi_quark_image *im, size_t len)
{
	struct quark_new_file file = {
		.pid = im->head.key.tgid,
		.uid = im->ids.uid,
		.start_boottime = im->head.key.start_boottime,
		.boottime = im->head.time,
		.ident = { .dev = gnu_dev_makedev(im->dev >> 20,
						  im->dev & 0xfffff),
			   .ino = im->ino,
			   .ctime_ns = im->ctime_ns,
			   .size = im->size },
	};
	char path[ABI_QUARK_PATH_MAX + 1];

	if (!qq->attr.new_file || im->exe_len >= sizeof(path) ||
	    im->exe_len > len - sizeof(*im))
		return;
	memcpy(path, im + 1, im->exe_len);
	path[im->exe_len] = '\0';
	file.path = path;
	qq->attr.new_file(qq->attr.new_file_arg, &file);
}

static int file_set_known(struct quark_queue *q,
			  const struct quark_file_ident *ident, bool known)
{
	struct quark_queue_priv *qq = q->priv;
	const struct abi_quark_file file = {
		.dev = (uint64_t)gnu_dev_major(ident->dev) << 20 |
		       gnu_dev_minor(ident->dev),
		.ino = ident->ino,
		.ctime_ns = ident->ctime_ns,
		.size = ident->size,
	};
	int err;

	/* A queue that is being opened reads already, and has no priv yet. */
	if (!qq || !qq->attr.new_file || !qq->backend->know) {
		errno = ENOTSUP;
		return -1;
	}
	err = qq->backend->know(qq->b, &file, known);
	if (!err || (!known && err == -ENOENT))
		return 0;
	errno = -err;
	return -1;
}

int quark_queue_mark_execs(struct quark_queue *q, unsigned int cpu, int perf_fd)
{
	struct quark_queue_priv *qq = q->priv;
	int err = qq->backend->mark ? qq->backend->mark(qq->b, cpu, perf_fd)
				    : -ENOTSUP;

	if (!err)
		return 0;
	errno = -err;
	return -1;
}

int quark_queue_know_file(struct quark_queue *qq,
			  const struct quark_file_ident *ident)
{
	return file_set_known(qq, ident, true);
}

int quark_queue_forget_file(struct quark_queue *qq,
			    const struct quark_file_ident *ident)
{
	return file_set_known(qq, ident, false);
}
