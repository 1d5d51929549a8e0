// SPDX-License-Identifier: Apache-2.0
/*
 * file: executed files that are new to the application. It is called as soon as
 * the exec's record is read: when the event is due, the file may be deleted and
 * the process gone. And exec marks among the application's own mapping records.
 */
#include <errno.h>
#include <string.h>

#include "processmanager/quark/priv.h"

void quark_new_file(const struct quark_queue_priv *qq,
		    const struct abi_quark_image *im, size_t len)
{
	struct quark_new_file file = {
		.pid = im->head.key.tgid,
		.uid = im->ids.uid,
		.start_boottime = im->head.key.start_boottime,
		.boottime = im->head.time,
		.ident = quark_image_ident(im),
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
	const struct quark_queue_priv *qq = q->priv;
	const struct abi_quark_file file = {
		.dev = (uint64_t)gnu_dev_major(ident->dev) << 20 |
		       gnu_dev_minor(ident->dev),
		.ino = ident->ino,
		.ctime_ns = ident->ctime_ns,
		.size = ident->size,
	};
	int err = -ENOTSUP;

	/* While a queue is opened, records are read but priv is NULL. */
	if (qq && qq->attr.new_file && qq->backend->know)
		err = qq->backend->know(qq->b, &file, known);
	return quark_result(!known && err == -ENOENT ? 0 : err);
}

int quark_queue_mark_execs(struct quark_queue *q, unsigned int cpu, int perf_fd)
{
	const struct quark_queue_priv *qq = q->priv;

	return quark_result(qq->backend->mark
				    ? qq->backend->mark(qq->b, cpu, perf_fd)
				    : -ENOTSUP);
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
