// SPDX-License-Identifier: Apache-2.0
/*
 * pack: copies of processes and changes for a batch, which outlive what they were made
 * of. On the loop's thread.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "reporter/catalog/internal.h"
#include "reporter/ledger/ledger.h"

/* Wall time is rounded to its accuracy, as in the ledger. */
static int64_t pack_wall(void)
{
	return clock_wall_offset_ns() / 1000 * 1000;
}

static const char *pack_copy(struct arena *a, const char *s, bool *failed)
{
	size_t len = s ? strlen(s) : 0;
	char *copy;

	if (!len)
		return NULL;
	/* What is above the limit is cut at the begin of a character. */
	len = MIN(len, CATALOG_TEXT_MAX + 1);
	copy = arena_alloc(a, len + 1);
	if (copy) {
		memcpy(copy, s, len);
		copy[len] = '\0';
	}
	*failed |= !copy;
	return copy;
}

static const char *pack_build_id(struct arena *a, const struct pm_exe *exe,
				 bool *failed)
{
	char hex[2 * SYMBOLIZER_BUILD_ID_MAX + 1] = "";
	struct pm_exe_info info;
	size_t i;

	if (!exe)
		return NULL;
	pm_exe_info(exe, &info);
	for (i = 0; i < info.ident.build_id_len; i++)
		snprintf(hex + 2 * i, 3, "%02x", info.ident.build_id[i]);
	return pack_copy(a, hex, failed);
}

/* The bytes of its arguments that are kept, of which there may be more. */
static size_t pack_args_len(enum reporter_args which,
			    const struct pm_image_info *from)
{
	if (!from->cmdline || which == REPORTER_ARGS_NONE)
		return 0;
	if (which == REPORTER_ARGS_FIRST)
		return MIN(strnlen(from->cmdline, from->cmdline_len) + 1,
			   MIN(from->cmdline_len, CATALOG_ARGS_MAX));
	return MIN(from->cmdline_len, CATALOG_ARGS_MAX);
}

/* A NUL ends the last argument where it is cut. */
static char *pack_args(struct arena *a, const char *cmdline, size_t len)
{
	char *args = arena_alloc(a, len + 1);

	if (args) {
		memcpy(args, cmdline, len);
		args[len] = '\0';
	}
	return args;
}

static struct catalog_image pack_image(struct arena *a,
				       enum reporter_args which,
				       const struct pm_image_info *from,
				       bool *failed)
{
	struct catalog_image i = {
		.image = pack_copy(a, from->image_id, failed),
		.comm = pack_copy(a, from->comm, failed),
		.exe = pack_copy(a, from->exe, failed),
		.cwd = pack_copy(a, from->cwd, failed),
		.cgroup = pack_copy(a, from->cgroup, failed),
		.build_id = pack_build_id(a, from->main_exe, failed),
		.service = pack_copy(a, from->service, failed),
		.start = from->begin,
		.samples = from->samples,
		.uid = from->uid,
		.gid = from->gid,
	};

	i.args_len = pack_args_len(which, from);
	i.args_cut = from->args_cut || i.args_len < from->cmdline_len;
	if (!i.args_len)
		return i;
	i.args = pack_args(a, from->cmdline, i.args_len);
	*failed |= !i.args;
	return i;
}

struct catalog_process *catalog_pack(struct arena *a, enum reporter_args which,
				     const struct pm_image *newest, bool update)
{
	struct pm_image_info images[PM_HISTORY_MAX];
	size_t i, n = pm_image_history(newest, images, PM_HISTORY_MAX);
	struct catalog_process *p;
	bool failed = false;

	p = arena_alloc(a, sizeof(*p) + n * sizeof(*p->images));
	if (!p)
		return NULL;
	*p = (struct catalog_process){
		.wall = pack_wall(),
		.seen = clock_boottime_ns(),
		.nimages = n,
	};
	pm_process_info(newest, &p->info);
	p->update = update;
	for (i = 0; i < n; i++) {
		p->images[i] = pack_image(a, which, &images[i], &failed);
		p->images[i].end = i ? p->images[i - 1].start : p->info.exit;
	}
	return failed ? NULL : p;
}

/* --- changes -------------------------------------------------------------------- */

static const struct {
	const char *kind; /* as the ledger's types of events */
	bool comm, ids, cgroup; /* what has changed */
} pack_kinds[] = {
	{ .kind = "rename", .comm = true },
	{ .kind = "id_change", .ids = true },
	{ .kind = "cgroup", .cgroup = true },
	{ .kind = "gap" },
};

size_t catalog_change_kinds(const struct quark_event *ev,
			    uint32_t kinds[CATALOG_CHANGE_KINDS])
{
	struct ledger_what what;
	size_t n = 0;

	_Static_assert(ARRAY_SIZE(pack_kinds) == CATALOG_CHANGE_KINDS,
		       "room for all");
	ledger_what_event(ev, &what);
	for (uint32_t i = 0; i < ARRAY_SIZE(pack_kinds); i++)
		if (what.types &
		    ledger_type(pack_kinds[i].kind, strlen(pack_kinds[i].kind)))
			kinds[n++] = i;
	return n;
}

/* {"from_ns":N,"to_ns":N,"lost":N,"kinds":["fork",...]} */
static void pack_gap(struct strbuf *sb, const struct quark_event *ev,
		     int64_t wall)
{
	const char *word, *comma = "";

	strbuf_printf(sb,
		      "{\"from_ns\":%" PRId64 ",\"to_ns\":%" PRId64
		      ",\"lost\":%" PRIu64 ",\"kinds\":[",
		      (int64_t)ev->gap_from + wall, (int64_t)ev->gap_to + wall,
		      ev->gap_lost);
	for (size_t i = 0; (word = ledger_type_word(i)); i++) {
		if (!(ev->gap_kinds & ledger_type(word, strlen(word))))
			continue;
		strbuf_printf(sb, "%s\"%s\"", comma, word);
		comma = ",";
	}
	strbuf_puts(sb, "]}");
}

static void pack_process(struct arena *a, struct catalog_change *to,
			 const struct quark_process *qp, size_t kind,
			 bool *failed)
{
	char id[64];
	int n;

	n = snprintf(id, sizeof(id), "%u-%" PRIx64, qp->key.pid,
		     qp->key.start_boottime);
	to->process = pack_copy(a, id, failed);
	snprintf(id + n, sizeof(id) - n, "-%" PRIu64, qp->key.exec_id);
	to->image = pack_copy(a, id, failed);
	if (pack_kinds[kind].comm)
		to->comm = pack_copy(a, qp->comm, failed);
	if (pack_kinds[kind].cgroup)
		to->cgroup = pack_copy(a, qp->cgroup, failed);
	to->ids = pack_kinds[kind].ids;
	to->uid = qp->proc_uid;
	to->gid = qp->proc_gid;
}

struct catalog_change *catalog_pack_change(struct arena *a,
					   const struct quark_event *ev,
					   uint32_t kind)
{
	struct catalog_change *to = arena_alloc(a, sizeof(*to));
	struct strbuf sb = STRBUF_INIT;
	bool failed = false;

	if (!to)
		return NULL;
	*to = (struct catalog_change){
		.kind = pack_kinds[kind].kind,
		.wall = pack_wall(),
		.time = ev->boottime,
	};
	if (ev->process) {
		pack_process(a, to, ev->process, kind, &failed);
	} else {
		pack_gap(&sb, ev, to->wall);
		to->detail = pack_copy(a, strbuf_str(&sb), &failed);
		strbuf_fini(&sb);
	}
	return failed ? NULL : to;
}
