// SPDX-License-Identifier: Apache-2.0
/*
 * opener_main: the process that opens files: see symbolize/opener.h. It has
 * profd's privileges and nothing open but a socket. It never reads the files.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "symbolize/opener.h"

#define OPENER_SOCKET 0
#define OPENER_DIRS_MAX 16

/* The next of the strings that follow a question; NULL: none. */
static const char *next_text(const char **p, const char *end)
{
	const char *text = *p;
	const char *nul =
		text < end ? memchr(text, '\0', (size_t)(end - text)) : NULL;

	if (!nul)
		return NULL;
	*p = nul + 1;
	return text;
}

static int serve_file(const struct opener_question *q, int root, const char *p,
		      const char *end, uint64_t *where, struct opener_answer *a)
{
	const struct symbolizer_map_root ended = { root, q->root_pid,
						   q->root_uid };
	struct symbolizer_open_req req = {
		.pid = q->pid,
		.path = next_text(&p, end),
		.dev = q->dev,
		.ino = q->ino,
		.generation = q->generation,
		.map_start = q->map_start,
		.map_end = q->map_end,
		.process_start = q->process_start,
		.root = root >= 0 ? &ended : NULL,
	};

	if (!req.path || q->way >= SYMBOLIZER_N_WAYS)
		return -EINVAL;
	if (q->way == SYMBOLIZER_PERF_MAP)
		return symbolizer_open_map(&req, where, &a->st);
	return symbolizer_open_way(&req, (enum symbolizer_way)q->way, where,
				   &a->st);
}

static int serve_debug(const struct opener_question *q, const char *p,
		       const char *end, uint64_t *where,
		       struct opener_answer *a)
{
	const char *beside = next_text(&p, end), *name = next_text(&p, end);
	const char *dirs[OPENER_DIRS_MAX + 1] = { NULL };
	int fd;

	for (size_t i = 0; i < OPENER_DIRS_MAX; i++)
		dirs[i] = next_text(&p, end);
	if (!name || q->id_len > sizeof(q->id))
		return -EINVAL;
	/* This ends: -EAGAIN comes once for each place and directory. */
	for (a->nth = q->nth;; a->nth++) {
		fd = symbolizer_open_debug(dirs, &q->own,
					   *beside ? beside : NULL, q->id,
					   q->id_len, *name ? name : NULL,
					   a->nth, where);
		if (fd != -EAGAIN)
			return fd;
	}
}

static int opener_serve(const struct worker_in *in, uint64_t *where)
{
	const struct opener_question *q = (const void *)in->bytes;
	const char *text = (const char *)(q + 1);
	const char *end = (const char *)in->bytes + in->len;
	struct opener_answer a = { 0 };
	int fd = -EINVAL, err;

	if (in->len < sizeof(*q))
		return -EPROTO;
	if (q->head.type == OPENER_FILE)
		fd = serve_file(q, in->fd, text, end, where, &a);
	else if (q->head.type == OPENER_DEBUG)
		fd = serve_debug(q, text, end, where, &a);
	a.err = MIN(fd, 0);
	err = worker_send(OPENER_SOCKET, &a.head, q->head.type, sizeof(a),
			  q->head.job, fd);
	if (fd >= 0)
		close(fd);
	return err;
}

static int opener_send_hello(uint64_t **where)
{
	int fd = memfd_create("place", MFD_CLOEXEC), err = -EIO;
	void *map = MAP_FAILED;
	struct worker_head h;

	if (fd >= 0 && !ftruncate(fd, sizeof(**where)))
		map = mmap(NULL, sizeof(**where), PROT_READ | PROT_WRITE,
			   MAP_SHARED, fd, 0);
	if (map != MAP_FAILED) {
		*where = map;
		err = worker_send(OPENER_SOCKET, &h, OPENER_HELLO, sizeof(h), 0,
				  fd);
	}
	if (fd >= 0)
		close(fd);
	return err;
}

/* It ends with profd, dumps no core, and cannot be traced. */
static int opener_confine(void)
{
	const struct rlimit none = { 0, 0 };

	if (close_range(3, ~0U, 0) || chdir("/") ||
	    prctl(PR_SET_NAME, "profd-open", 0, 0, 0) ||
	    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) ||
	    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) ||
	    setrlimit(RLIMIT_CORE, &none))
		return -errno;
	return 0;
}

int opener_main(void)
{
	static struct worker_in in;
	uint64_t *where;
	int err = opener_confine();

	if (!err)
		err = opener_send_hello(&where);
	while (!err) {
		err = worker_recv(OPENER_SOCKET, &in);
		if (!err)
			err = opener_serve(&in, where);
		worker_in_close(&in);
	}
	/* Not exit(): its handlers are those of profd. */
	_exit(err == -EPIPE ? 0 : 1);
}
