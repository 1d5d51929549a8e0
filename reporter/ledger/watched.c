// SPDX-License-Identifier: Apache-2.0
/* watched: a watched event as a JSON line; see reporter/ledger/ledger.h. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "reporter/ledger/ledger.h"
#include "reporter/ledger/line.h"

/* Larger numbers lose digits in readers that keep them as IEEE doubles. */
#define WATCHED_EXACT (1ULL << 53)

static json_t *watched_uint(uint64_t v)
{
	char text[24];

	if (v < WATCHED_EXACT)
		return json_integer((json_int_t)v);
	snprintf(text, sizeof(text), "%" PRIu64, v);
	return json_string(text);
}

#define WATCHED_ID_MAX 64

/* The id of a process; with 'exec' of its image. */
static void watched_id(char id[WATCHED_ID_MAX], const struct abi_key *key,
		       bool exec)
{
	int n = snprintf(id, WATCHED_ID_MAX, "%u-%" PRIx64, key->tgid,
			 (uint64_t)key->start_boottime);

	if (exec)
		snprintf(id + n, WATCHED_ID_MAX - (size_t)n, "-%" PRIu64,
			 (uint64_t)key->exec_id);
}

static void watched_ids(struct line *l, const struct abi_key *key)
{
	char id[WATCHED_ID_MAX];

	watched_id(id, key, false);
	line_str(l, "process", id);
	watched_id(id, key, true);
	line_str(l, "image", id);
}

static void watched_process(struct line *l, const struct watch_event *e,
			    const struct pm_image *of)
{
	struct pm_image_info info;

	if (!e->key.tgid)
		return;
	line_int(l, "pid", e->key.tgid);
	line_int(l, "tid", e->tid);
	line_int(l, "uid", e->uid);
	line_int(l, "gid", e->gid);
	line_str(l, "comm", e->comm);
	watched_ids(l, &e->key);
	if (!of)
		return;
	pm_image_info(of, &info);
	line_cgroup(l, info.cgroup);
}

/* Of a process: any bytes. */
static json_t *watched_bytes(struct line *l, const char *s, size_t len)
{
	size_t fits = line_fits(&l->room, s, len);

	l->cut |= fits < len;
	return ledger_text(s, fits);
}

static json_t *watched_text(struct line *l, const char *s)
{
	return watched_bytes(l, s, strlen(s));
}

/* The directory of "/x" is "/"; what is at no path has none. */
static void watched_path(struct line *l, json_t *o, const struct watch_fd *fd)
{
	if (fd->path[fd->file])
		json_object_set_new(o, "file",
				    watched_text(l, fd->path + fd->file));
	if (fd->file)
		json_object_set_new(o, "dir",
				    watched_bytes(l, fd->path,
						  fd->file > 1 ? fd->file - 1
							       : 1));
	if (fd->cut)
		json_object_set_new(o, "cut", json_true());
}

static void watched_fd(struct line *l, const struct watch_fd *fd)
{
	json_t *o;

	if (!fd->kind)
		return;
	o = json_pack("{s:s}", "kind", fd->kind);
	if (fd->num >= 0)
		json_object_set_new(o, "num", json_integer(fd->num));
	if (fd->pair >= 0)
		json_object_set_new(o, "pair", json_integer(fd->pair));
	watched_path(l, o, fd);
	if (*fd->protocol)
		json_object_set_new(o, "protocol", json_string(fd->protocol));
	if (*fd->role)
		json_object_set_new(o, "role", json_string(fd->role));
	if (*fd->src)
		json_object_set_new(o, "src", watched_text(l, fd->src));
	if (*fd->dst)
		json_object_set_new(o, "dst", watched_text(l, fd->dst));
	line_put(l, "fd", o);
}

static json_t *watched_value(struct line *l, const struct watch_attribute *a)
{
	switch (a->type) {
	case WATCH_INT:
		return json_integer(a->i);
	case WATCH_UINT:
		return watched_uint(a->u);
	case WATCH_POINTER:
		return json_sprintf("0x%" PRIx64, a->u);
	case WATCH_STRING:
		break;
	}
	return watched_text(l, a->s);
}

static void watched_attributes(struct line *l, const struct watch_event *e)
{
	static const char *const types[] = {
		[WATCH_INT] = "int",
		[WATCH_UINT] = "uint",
		[WATCH_STRING] = "string",
		[WATCH_POINTER] = "pointer",
	};
	json_t *all = json_array();
	char id[WATCHED_ID_MAX];

	for (size_t i = 0; i < e->n_attributes; i++)
		json_array_append_new(
			all, json_pack("{s:s, s:s, s:o}", "key",
				       e->attributes[i].key, "type",
				       types[e->attributes[i].type], "value",
				       watched_value(l, &e->attributes[i])));
	watched_id(id, &e->image_new, true);
	if (e->image_new.tgid)
		json_array_append_new(all, json_pack("{s:s, s:s, s:s}", "key",
						     "image_new", "type",
						     "string", "value", id));
	line_put(l, "attributes", all);
}

void ledger_watched(const struct watch_event *e, const struct pm_image *of,
		    struct strbuf *sb)
{
	struct line l = line_new(line_wall());
	const struct watch_name *name = watch_name(e->name);

	line_time(&l, "time", e->time);
	line_put(&l, "time_boot_ns", json_sprintf("%" PRIu64, e->time));
	line_str(&l, "name", name->name);
	line_str(&l, "category", e->category);
	if (e->timed)
		line_put(&l, "latency_ns", watched_uint(e->latency_ns));
	if (e->failed)
		line_put(&l, "failed", json_true());
	watched_process(&l, e, of);
	if (e->created_by.tgid) {
		struct line by = line_new(l.wall);

		line_int(&by, "pid", e->created_by.tgid);
		watched_ids(&by, &e->created_by);
		l.failed |= by.failed;
		line_put(&l, "created_by", by.o);
	}
	watched_fd(&l, &e->fd);
	watched_attributes(&l, e);
	line_end(&l, sb);
}
