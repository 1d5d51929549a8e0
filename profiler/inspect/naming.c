// SPDX-License-Identifier: Apache-2.0
/* naming: see profiler/inspect/naming.h. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "profiler/inspect/naming.h"

/*
 * Indexes kept between requests: there is one file at a time, and most of a
 * worker's memory is for it.
 */
#define NAMING_INDEX_BYTES (256U << 20)

/* Waiting for servers is reported after this time. */
#define NAMING_REPORT_MS 1000
#define NAMING_TICK_MS 100
/* A debug file may name another one: asked for this often. */
#define NAMING_FETCHES 3

struct naming {
	uv_loop_t loop;
	struct symbolizer *s;
	const struct options *o;
	const char **dirs; /* of debug files, NULL-terminated; or NULL */
	char fetched[PATH_MAX]; /* directory of --debuginfod */
	uv_timer_t tick; /* while servers are waited for */
	uint64_t waited_ms;
	bool reported;
};

/* A request that is waited for. */
struct naming_wait {
	bool done;
	bool again; /* servers may have more for it */
	int err;
	struct naming *n;
	struct symbolizer_file *file;
	struct symbolizer_rows *rows;
	uint64_t vaddr, size; /* of naming_find() */
	symbolizer_resolve_fn fn;
	void *arg;
};

/* Absolute: the process that opens them has another working directory. */
static int naming_set_dirs(struct naming *n, const struct options_strings *dirs)
{
	size_t i;

	if (!dirs->n)
		return 0;
	n->dirs = calloc(dirs->n + 1, sizeof(*n->dirs));
	for (i = 0; n->dirs && i < dirs->n; i++) {
		n->dirs[i] = realpath(dirs->items[i], NULL);
		if (!n->dirs[i])
			return -errno;
	}
	return n->dirs ? 0 : -ENOMEM;
}

/* As other programs have it, see the XDG Base Directory Specification 0.8. */
static int naming_set_fetched(struct naming *n, struct symbolizer_opts *so)
{
	const char *base = getenv("XDG_CACHE_HOME"), *under = "";
	int len;

	if (!n->o->debuginfod.n)
		return 0;
	if (!base || *base != '/') {
		base = getenv("HOME");
		under = "/.cache";
	}
	if (!base || *base != '/')
		return -ENOENT;
	len = snprintf(n->fetched, sizeof(n->fetched), "%s%s/profd/debuginfod",
		       base, under);
	if (len >= (int)sizeof(n->fetched))
		return -ENAMETOOLONG;
	so->debuginfod = n->o->debuginfod.items;
	so->debuginfod_dir = n->fetched;
	so->debuginfod_bytes = n->o->debuginfod_size;
	return 0;
}

static void naming_on_fetch_failed(void *arg, int err)
{
	struct naming *n = arg;

	fprintf(stderr, "profd: debuginfod, with files in %s: %s\n", n->fetched,
		symbolizer_fetch_problem(err));
}

int naming_new(struct naming **np, const struct options *o)
{
	struct symbolizer_opts so = {
		.index_bytes = NAMING_INDEX_BYTES,
		.debuginfod_once = true,
		.debuginfod_failed = naming_on_fetch_failed,
	};
	struct naming *n = calloc(1, sizeof(*n));
	int err;

	if (!n)
		return -ENOMEM;
	err = uv_loop_init(&n->loop);
	if (err) {
		free(n);
		return err;
	}
	n->o = o;
	uv_timer_init(&n->loop, &n->tick);
	so.loop = &n->loop;
	so.arg = n;
	err = naming_set_dirs(n, &o->debug_dir);
	so.debug_dirs = n->dirs;
	if (!err)
		err = naming_set_fetched(n, &so);
	if (!err)
		err = symbolizer_new(&n->s, &so);
	if (err) {
		naming_free(n);
		return err;
	}
	*np = n;
	return 0;
}

void naming_free(struct naming *n)
{
	size_t i;

	if (!n)
		return;
	symbolizer_free(n->s);
	uv_close((uv_handle_t *)&n->tick, NULL);
	uv_run(&n->loop, UV_RUN_DEFAULT);
	uv_loop_close(&n->loop);
	for (i = 0; n->dirs && n->dirs[i]; i++)
		free((char *)n->dirs[i]);
	free(n->dirs);
	free(n);
}

struct symbolizer *naming_symbolizer(struct naming *n)
{
	return n->s;
}

/* Runs the loop until the answer; an idle symbolizer does not keep it running. */
static int naming_wait(struct naming *n, struct naming_wait *w)
{
	while (!w->done && uv_run(&n->loop, UV_RUN_ONCE))
		;
	return w->done ? w->err : -EIO;
}

static void naming_on_open(void *arg, int err, struct symbolizer_file *file)
{
	struct naming_wait *w = arg;

	w->done = true;
	w->err = err;
	w->file = file;
}

/* The kernel, or the vDSO. */
static int naming_own(struct symbolizer_file *file, const uint8_t *build_id,
		      size_t id_len, struct symbolizer_file **out)
{
	const struct symbolizer_ident *id = symbolizer_ident(file);

	if (id_len && (id_len != id->build_id_len ||
		       memcmp(id->build_id, build_id, id_len) != 0))
		return -ESTALE;
	*out = file;
	return 0;
}

int naming_open(struct naming *n, const char *path, const uint8_t *build_id,
		size_t id_len, struct symbolizer_file **out)
{
	struct symbolizer_open_req req = { .build_id = build_id,
					   .build_id_len = id_len,
					   .object = true };
	struct naming_wait w = { .done = false };
	char *whole;
	int err;

	*out = NULL;
	if (!strcmp(path, NAMING_KERNEL))
		return naming_own(symbolizer_kernel(n->s), build_id, id_len,
				  out);
	if (!strcmp(path, NAMING_VDSO))
		return naming_own(symbolizer_vdso(n->s), build_id, id_len, out);
	/* The process that opens it has another working directory. */
	whole = realpath(path, NULL);
	req.path = whole ? whole : path;
	err = symbolizer_open(n->s, &req, naming_on_open, &w);
	if (!err)
		err = naming_wait(n, &w);
	free(whole);
	*out = w.file;
	return err;
}

bool naming_is_debug(const struct symbolizer_file *file)
{
	size_t count;

	symbolizer_segments(file, &count);
	return !count;
}

void naming_close(struct naming *n, struct symbolizer_file *file)
{
	if (file && file != symbolizer_kernel(n->s) &&
	    file != symbolizer_vdso(n->s))
		symbolizer_close(n->s, file);
}

bool naming_offset(struct naming *n, const struct symbolizer_file *file,
		   uint64_t vaddr, uint64_t *offset)
{
	const struct symbolizer_segment *seg;
	size_t i, count;

	*offset = vaddr;
	if (file == symbolizer_kernel(n->s))
		return true;
	seg = symbolizer_segments(file, &count);
	/* A separate debug file: its segments have no contents. */
	if (!count)
		return true;
	for (i = 0; i < count; i++) {
		if (vaddr < seg[i].vaddr || vaddr - seg[i].vaddr >= seg[i].size)
			continue;
		*offset = seg[i].offset + (vaddr - seg[i].vaddr);
		return true;
	}
	return false;
}

/* --- servers ------------------------------------------------------------- */

static void naming_on_tick(uv_timer_t *timer)
{
	struct naming *n = container_of(timer, struct naming, tick);

	n->waited_ms += NAMING_TICK_MS;
	if (n->waited_ms < NAMING_REPORT_MS || n->reported || n->o->quiet)
		return;
	n->reported = true;
	fprintf(stderr, "profd: waiting for debug files of %s%s\n",
		n->o->debuginfod.items[0],
		n->o->debuginfod.n > 1 ? " and others" : "");
}

/* Runs the loop until nothing is wanted from servers. */
static void naming_wait_fetch(struct naming *n)
{
	uv_timer_start(&n->tick, naming_on_tick, NAMING_TICK_MS,
		       NAMING_TICK_MS);
	while (symbolizer_fetching(n->s))
		uv_run(&n->loop, UV_RUN_ONCE);
	uv_timer_stop(&n->tick);
}

const char *naming_fetch(struct naming *n, const uint8_t *id, size_t len)
{
	if (!*n->fetched)
		return NULL;
	symbolizer_fetch(n->s, id, len);
	naming_wait_fetch(n);
	return n->fetched;
}

/* --- answers ------------------------------------------------------------- */

static void naming_on_names(void *arg, int err,
			    const struct symbolizer_symbol *syms, size_t n)
{
	struct naming_wait *w = arg;

	w->done = true;
	w->err = err;
	w->again = w->again && symbolizer_fetching(w->n->s);
	if (!err && !w->again)
		w->fn(w->arg, 0, syms, n);
}

int naming_resolve(struct naming *n, struct symbolizer_file *file,
		   const uint64_t *offsets, size_t count,
		   symbolizer_resolve_fn fn, void *arg)
{
	struct naming_wait w = { .n = n, .fn = fn, .arg = arg, .again = true };
	int err = 0;

	for (int i = 1; !err && w.again; i++) {
		w.again = i < NAMING_FETCHES;
		w.done = false;
		err = symbolizer_resolve(n->s, file, offsets, count,
					 naming_on_names, &w);
		if (!err)
			err = naming_wait(n, &w);
		if (!err && w.again)
			naming_wait_fetch(n);
	}
	return err;
}

static void naming_on_found(void *arg, int err, uint64_t vaddr, uint64_t size)
{
	struct naming_wait *w = arg;

	w->done = true;
	w->err = err;
	w->vaddr = vaddr;
	w->size = size;
}

int naming_find(struct naming *n, struct symbolizer_file *file,
		const char *name, uint64_t *vaddr, uint64_t *size)
{
	struct naming_wait w = { .done = false };
	int err = symbolizer_find(n->s, file, name, naming_on_found, &w);

	if (!err)
		err = naming_wait(n, &w);
	*vaddr = w.vaddr;
	*size = w.size;
	return err;
}

static void naming_on_rows(void *arg, int err, struct symbolizer_rows *rows)
{
	struct naming_wait *w = arg;

	w->done = true;
	w->err = err;
	w->rows = rows;
}

int naming_rows(struct naming *n, struct symbolizer_file *file,
		struct symbolizer_rows **out)
{
	struct naming_wait w = { .done = false };
	int err = symbolizer_rows(n->s, file, naming_on_rows, &w);

	if (!err)
		err = naming_wait(n, &w);
	*out = w.rows;
	return err;
}
