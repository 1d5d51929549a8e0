// SPDX-License-Identifier: Apache-2.0
/* ledger: see reporter/ledger/ledger.h. */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "reporter/ledger/ledger.h"
#include "reporter/ledger/line.h"
#include "reporter/pprof.h"

/* --- pieces ---------------------------------------------------------------- */

/* Of LINE_TEXT_MAX. */
#define LEDGER_ARGS_MAX (8 << 10) /* of those: arguments */
#define LEDGER_IMAGES_MAX (12 << 10) /* in addition: of all images together */

static void put_hex(struct line *l, const char *key, const uint8_t *p,
		    size_t len)
{
	char text[2 * SYMBOLIZER_BUILD_ID_MAX + 1] = "";
	size_t i;

	for (i = 0; i < len && i < SYMBOLIZER_BUILD_ID_MAX; i++)
		snprintf(text + 2 * i, 3, "%02x", p[i]);
	line_str(l, key, text);
}

/* 'cut': the kernel had more. The last argument that fits may be cut, too. */
static void ledger_put_args(struct line *l, const char *cmdline, size_t len,
			    bool cut)
{
	size_t most = MIN(l->room, LEDGER_ARGS_MAX), room = most, fits;
	struct quark_cmdline_iter it;
	const char *arg;
	json_t *args;

	if (cmdline && len) {
		args = json_array();
		quark_cmdline_iter_init(&it, cmdline, len);
		while (room && (arg = quark_cmdline_iter_next(&it))) {
			len = strlen(arg);
			fits = line_fits(&room, arg, len);
			cut |= fits < len;
			if (json_array_append_new(args, ledger_text(arg, fits)))
				l->failed = true;
			if (fits < len)
				break;
			room -= MIN(room, sizeof("\"\",") - 1);
		}
		cut |= !room && quark_cmdline_iter_next(&it);
		l->room -= most - room;
		line_put(l, "args", args);
	}
	if (cut)
		line_put(l, "args_cut", json_true());
}

/* A status of wait4(2). */
static void put_wait_status(struct line *l, int status)
{
	if (status == PM_STATUS_UNKNOWN)
		return;
	if (WIFEXITED(status)) {
		line_int(l, "exit_code", WEXITSTATUS(status));
		return;
	}
	line_int(l, "signal", WTERMSIG(status));
	line_str(l, "signal_name", sigabbrev_np(WTERMSIG(status)));
	line_put(l, "core", json_boolean(WCOREDUMP(status)));
}

const char *ledger_entry(uint32_t type)
{
	static const char *const types[] = {
		[QUARK_ELT_INIT] = "init",
		[QUARK_ELT_KTHREAD] = "kthread",
		[QUARK_ELT_SSHD] = "sshd",
		[QUARK_ELT_SSM] = "ssm",
		[QUARK_ELT_CONTAINER] = "container",
		[QUARK_ELT_TERM] = "terminal",
		[QUARK_ELT_CONSOLE] = "console",
	};

	return type < ARRAY_SIZE(types) ? types[type] : NULL;
}

static void put_leader(struct line *l, uint32_t type, uint32_t pid)
{
	const char *entry = ledger_entry(type);

	if (!entry)
		return;
	line_str(l, "entry", entry);
	line_int(l, "entry_pid", pid);
}

/* --- processes ------------------------------------------------------------- */

static const char *const process_states[] = {
	[PM_ALIVE] = "alive",
	[PM_EXITED] = "exited",
	[PM_REAPED] = "reaped",
	[PM_VANISHED] = "vanished",
};

static const char *const cpu_accounts[] = {
	[PM_CPU_NOW] = "now",
	[PM_CPU_PROVISIONAL] = "provisional",
	[PM_CPU_EXACT] = "exact",
};

/*
 * Samples times the period by CPU time, and its standard deviation from 1: at
 * most that of a Poisson process, as samples come at fixed steps of CPU time.
 */
static void put_coverage(struct line *l, const struct pm_process_info *p,
			 unsigned int freq_hz)
{
	double expected = (double)p->cpu_ns * freq_hz / CLOCK_NSEC_PER_SEC;

	line_put(l, "coverage", json_real(p->samples / expected));
	line_put(l, "coverage_deviation", json_real(1 / sqrt(expected)));
}

static void put_account(struct line *l, const struct pm_process_info *p,
			unsigned int freq_hz)
{
	line_int(l, "samples", p->samples);
	if (p->maxrss)
		line_int(l, "maxrss_bytes", p->maxrss);
	if (p->minflt || p->majflt) {
		line_int(l, "minflt", p->minflt);
		line_int(l, "majflt", p->majflt);
	}
	if (p->cpu == PM_CPU_NONE)
		return;
	line_str(l, "cpu", cpu_accounts[p->cpu]);
	line_int(l, "cpu_ns", p->cpu_ns);
	if (p->cpu != PM_CPU_PROVISIONAL) {
		line_int(l, "user_ns", p->user_ns);
		line_int(l, "system_ns", p->system_ns);
	}
	/* Not for a process that ran before the sampling began. */
	if (!p->before && p->cpu_ns)
		put_coverage(l, p, freq_hz);
}

/* The data of a process's line. */
struct ledger_view {
	struct pm_process_info process;
	struct symbolizer_ident ident; /* of the main executable */
	bool opened; /* 'ident' is complete */
	size_t n; /* images, at least one */
	const struct pm_image_info *images; /* newest first */
};

static void ledger_look(const struct pm_image *img, struct ledger_view *v,
			struct pm_image_info *images)
{
	struct pm_exe_info exe;

	memset(v, 0, sizeof(*v));
	pm_process_info(img, &v->process);
	v->n = pm_image_history(img, images, PM_HISTORY_MAX);
	v->images = images;
	if (!images[0].main_exe)
		return;
	pm_exe_info(images[0].main_exe, &exe);
	v->ident = exe.ident;
	v->opened = exe.opened;
}

static void put_program(struct line *l, const struct pm_image_info *i)
{
	line_str(l, "comm", i->comm);
	line_str(l, "exe", i->exe);
	ledger_put_args(l, i->cmdline, i->cmdline_len, i->args_cut);
	line_str(l, "cwd", i->cwd);
	line_int(l, "uid", i->uid);
	line_int(l, "gid", i->gid);
}

static void put_images(struct line *l, const struct ledger_view *v)
{
	json_t *list = json_array();
	size_t i, share = LEDGER_IMAGES_MAX / v->n;
	struct line e;

	/* All images have the same room. */
	for (i = v->n; i-- > 0;) {
		e = line_new(l->wall);
		e.event = l->event;
		e.room = share;
		line_str(&e, "image", v->images[i].image_id);
		line_moment(&e, l->event ? "image_start" : "start",
			    v->images[i].begin);
		line_int(&e, "samples", v->images[i].samples);
		put_program(&e, &v->images[i]);
		line_str(&e, "cgroup", v->images[i].cgroup);
		if (json_array_append_new(list, e.o))
			e.failed = true;
		l->failed |= e.failed;
		l->cut |= e.cut;
	}
	line_put(l, "images", list);
}

static void ledger_put_process(struct line *l, const struct ledger_view *v,
			       unsigned int freq_hz)
{
	const struct pm_process_info *p = &v->process;
	const struct pm_image_info *i = &v->images[0];

	line_int(l, "pid", p->pid);
	line_int(l, "ppid", p->ppid);
	line_str(l, "process", p->process_id);
	line_str(l, "parent", p->parent_id);
	line_str(l, "image", i->image_id);
	line_str(l, "state", process_states[p->end]);
	put_program(l, i);
	line_int(l, "session", p->sid);
	line_int(l, "group", p->pgid);
	line_cgroup(l, i->cgroup);
	line_str(l, "service", i->service);
	line_str(l, "service_instance", i->instance);
	line_str(l, "environment", i->environment);
	put_leader(l, p->leader_type, p->leader);
	if (p->kthread)
		line_put(l, "kernel_thread", json_true());
	line_moment(l, "start", p->start);
	line_moment(l, "image_start", i->begin);
	line_moment(l, "exit", p->exit);
	line_moment(l, "reap", p->reap);
	if (p->end == PM_EXITED || p->end == PM_REAPED)
		put_wait_status(l, p->wait_status);
	line_int(l, "execs", p->execs);
	put_account(l, p, freq_hz);
	put_hex(l, "build_id", v->ident.build_id, v->ident.build_id_len);
	if (v->opened)
		put_hex(l, "file_id", v->ident.file_id,
			sizeof(v->ident.file_id));
	put_images(l, v);
}

struct ledger_table {
	struct pm *pm;
	struct abi_key *keys;
	size_t n, at;
	unsigned int freq_hz;
	int64_t wall;
	bool all;
};

struct ledger_table *ledger_table_new(struct pm *pm, bool all,
				      unsigned int freq_hz)
{
	struct ledger_table *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->pm = pm;
	t->all = all;
	t->freq_hz = freq_hz;
	t->wall = line_wall();
	t->keys = pm_keys(pm, all, &t->n);
	if (t->keys)
		return t;
	free(t);
	return NULL;
}

void ledger_table_free(struct ledger_table *t)
{
	if (!t)
		return;
	free(t->keys);
	free(t);
}

bool ledger_table_read(struct ledger_table *t, unsigned int max,
		       struct strbuf *sb)
{
	struct pm_image_info images[PM_HISTORY_MAX];
	struct ledger_view v;
	struct pm_image *img;
	struct line l;

	for (; max && t->at < t->n && !sb->failed; max--) {
		img = pm_newest(t->pm, &t->keys[t->at++]);
		if (!img)
			continue;
		pm_process_ask(t->pm, img);
		ledger_look(img, &v, images);
		/* It exited after the snapshot. */
		if (!t->all && v.process.end != PM_ALIVE)
			continue;
		l = line_new(t->wall);
		ledger_put_process(&l, &v, t->freq_hz);
		line_end(&l, sb);
	}
	return t->at < t->n;
}

/* --- ended processes ------------------------------------------------------- */

struct ledger_ended {
	struct ledger_view v;
	struct pm_image_info images[]; /* and their strings */
};

/* Copies strings to 'at', one behind the other; NULL: only counts bytes. */
struct ledger_pack {
	char *at;
	size_t len;
};

static void pack_text(struct ledger_pack *p, const char **s, size_t len)
{
	if (!*s)
		return;
	if (p->at) {
		memcpy(p->at + p->len, *s, len);
		p->at[p->len + len] = '\0';
		*s = p->at + p->len;
	}
	p->len += len + 1;
}

static void pack_str(struct ledger_pack *p, const char **s)
{
	pack_text(p, s, *s ? strlen(*s) : 0);
}

static void pack_images(struct ledger_pack *p, struct pm_image_info *v,
			size_t n)
{
	struct pm_image_info *i;

	for (i = v; i < v + n; i++) {
		pack_str(p, &i->comm);
		pack_str(p, &i->exe);
		pack_text(p, &i->cmdline, i->cmdline_len);
		pack_str(p, &i->cwd);
		pack_str(p, &i->cgroup);
		i->main_exe = NULL;
	}
}

struct ledger_ended *ledger_ended_new(const struct pm_image *last,
				      struct vault *vault, size_t *sizep)
{
	struct pm_image_info images[PM_HISTORY_MAX];
	struct ledger_pack pack = { .at = NULL };
	struct ledger_ended *ended;
	struct ledger_view v;
	size_t size;

	ledger_look(last, &v, images);
	pack_images(&pack, images, v.n);
	size = sizeof(*ended) + v.n * sizeof(*images);
	*sizep = size + pack.len;
	ended = vault_take(vault, *sizep);
	if (!ended)
		return NULL;
	ended->v = v;
	ended->v.images = ended->images;
	memcpy(ended->images, images, v.n * sizeof(*images));
	pack = (struct ledger_pack){ .at = (char *)ended + size };
	pack_images(&pack, ended->images, v.n);
	return ended;
}

/* --- events ---------------------------------------------------------------- */

/* A change of the control group; for libquark an event of kind ID_CHANGE. */
#define LEDGER_CGROUP (1ULL << 32)
#define LEDGER_END (1ULL << 33)
#define LEDGER_MISSED (1ULL << 34)

static const struct {
	uint64_t bit;
	const char *word;
} ledger_types[] = {
	{ QUARK_EV_FORK, "fork" },   { QUARK_EV_EXEC, "exec" },
	{ QUARK_EV_EXIT, "exit" },   { QUARK_EV_ID_CHANGE, "id_change" },
	{ LEDGER_CGROUP, "cgroup" }, { QUARK_EV_SETPROCTITLE, "rename" },
	{ QUARK_EV_REAP, "reap" },   { LEDGER_END, "end" },
	{ QUARK_EV_GAP, "gap" },     { LEDGER_MISSED, "missed" },
};

uint64_t ledger_type(const char *word, size_t len)
{
	for (size_t i = 0; i < ARRAY_SIZE(ledger_types); i++)
		if (strlen(ledger_types[i].word) == len &&
		    !memcmp(ledger_types[i].word, word, len))
			return ledger_types[i].bit;
	return 0;
}

const char *ledger_type_word(size_t i)
{
	return i < ARRAY_SIZE(ledger_types) ? ledger_types[i].word : NULL;
}

static void put_kinds(struct line *l, const char *key, uint64_t events)
{
	json_t *list = json_array();

	for (size_t i = 0; i < ARRAY_SIZE(ledger_types); i++)
		if (events & ledger_types[i].bit &&
		    json_array_append_new(list,
					  json_string(ledger_types[i].word)))
			l->failed = true;
	line_put(l, key, list);
}

/* The begin of an event's line. */
static struct line ledger_begin(const struct ledger_head *head, uint64_t time,
				uint64_t kinds)
{
	struct line l = line_new(line_wall());

	l.event = true;
	if (head->id)
		line_int(&l, "id", head->id);
	line_moment(&l, "time", time);
	put_kinds(&l, "events", kinds);
	line_str(&l, "host", head->host);
	return l;
}

static uint64_t ledger_ended_at(const struct pm_process_info *p)
{
	return p->reap ? p->reap : p->exit;
}

void ledger_ended(const struct ledger_ended *ended,
		  const struct ledger_head *head, unsigned int freq_hz,
		  struct strbuf *sb)
{
	struct line l = ledger_begin(head, ledger_ended_at(&ended->v.process),
				     LEDGER_END);

	ledger_put_process(&l, &ended->v, freq_hz);
	line_end(&l, sb);
}

void ledger_what_ended(const struct ledger_ended *ended,
		       struct ledger_what *out)
{
	const struct pm_process_info *p = &ended->v.process;

	*out = (struct ledger_what){ .types = LEDGER_END,
				     .time = ledger_ended_at(p),
				     .pid = p->pid,
				     .comm = ended->images[0].comm };
	snprintf(out->process, sizeof(out->process), "%s", p->process_id);
}

static uint64_t ledger_kinds(const struct quark_event *ev)
{
	uint64_t kinds = ev->events;

	if (!(ev->id_change & QUARK_ID_CHANGE_CGROUP))
		return kinds;
	if (ev->id_change == QUARK_ID_CHANGE_CGROUP)
		kinds &= ~(uint64_t)QUARK_EV_ID_CHANGE;
	return kinds | LEDGER_CGROUP;
}

static void ledger_put_gap(struct line *l, const struct quark_event *ev)
{
	line_time(l, "from", ev->gap_from);
	line_time(l, "to", ev->gap_to);
	line_int(l, "lost", ev->gap_lost);
	put_kinds(l, "kinds", ev->gap_kinds);
}

static void ledger_id(char id[40], const struct quark_key *k)
{
	snprintf(id, 40, "%u-%" PRIx64, k->pid, k->start_boottime);
}

static void put_key(struct line *l, const char *key, const struct quark_key *k)
{
	char id[40];

	ledger_id(id, k);
	line_str(l, key, id);
}

static void ledger_put_ids(struct line *l, const struct quark_process *qp)
{
	line_int(l, "pid", qp->pid);
	line_int(l, "ppid", qp->proc_ppid);
	put_key(l, "process", &qp->key);
	if (qp->parent_key.pid)
		put_key(l, "parent", &qp->parent_key);
	line_str(l, "comm", qp->comm);
}

static void ledger_put_image(struct line *l, const struct quark_process *qp)
{
	line_str(l, "exe", qp->exe);
	ledger_put_args(l, qp->cmdline, qp->cmdline_len,
			qp->x_flags & QUARK_X_ARGS_CUT);
	line_str(l, "cwd", qp->cwd);
	line_int(l, "uid", qp->proc_uid);
	line_int(l, "gid", qp->proc_gid);
	line_cgroup(l, qp->cgroup);
	put_leader(l, qp->proc_entry_leader_type, qp->proc_entry_leader);
}

static void ledger_put_end(struct line *l, const struct quark_event *ev)
{
	bool reap = ev->events & QUARK_EV_REAP;

	put_wait_status(l, ev->process->wait_status);
	line_moment(l, "start", ev->process->key.start_boottime);
	if (ev->cpu_time) {
		line_str(l, "cpu",
			 cpu_accounts[reap && ev->cpu_exact
					      ? PM_CPU_EXACT
					      : PM_CPU_PROVISIONAL]);
		line_int(l, "cpu_ns", ev->cpu_time);
	}
	if (reap && ev->cpu_exact) {
		line_int(l, "user_ns", ev->utime);
		line_int(l, "system_ns", ev->stime);
	}
	if (ev->maxrss)
		line_int(l, "maxrss_bytes", ev->maxrss);
}

void ledger_what_event(const struct quark_event *ev, struct ledger_what *out)
{
	*out = (struct ledger_what){ .types = ledger_kinds(ev),
				     .time = ev->boottime };
	if (!ev->process)
		return;
	out->pid = ev->process->pid;
	out->comm = ev->process->comm;
	ledger_id(out->process, &ev->process->key);
}

void ledger_event(const struct quark_event *ev, const struct ledger_head *head,
		  struct strbuf *sb)
{
	struct line l = ledger_begin(head, ev->boottime, ledger_kinds(ev));

	if (ev->events & QUARK_EV_GAP)
		ledger_put_gap(&l, ev);
	if (ev->process)
		ledger_put_ids(&l, ev->process);
	if (ev->process && ev->events & (QUARK_EV_EXEC | QUARK_EV_ID_CHANGE))
		ledger_put_image(&l, ev->process);
	if (ev->process && ev->events & (QUARK_EV_EXIT | QUARK_EV_REAP))
		ledger_put_end(&l, ev);
	line_end(&l, sb);
}

/* --- executables ------------------------------------------------------------- */

/* The result of requesting rows or names from the file. */
static void put_answer(struct line *l, const char *key, int answer)
{
	if (answer == PM_EXE_NOT_ASKED)
		return;
	line_str(l, key,
		 !answer	      ? "yes"
		 : answer == -ENODATA ? "none"
				      : symbolizer_problem(answer));
}

/* Addresses by the source of their names. */
static void put_sources(struct line *l, const uint64_t *sources)
{
	static const char *const words[] = {
#define X(name, word) [SYMBOLIZER_SOURCE_##name] = word,
		SYMBOLIZER_SOURCES(X)
#undef X
	};
	json_t *o = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		if (!sources[i])
			continue;
		if (!o)
			o = json_object();
		json_object_set_new(o, words[i],
				    json_integer((json_int_t)sources[i]));
	}
	if (o)
		line_put(l, "sources", o);
}

void ledger_executable(const struct pm_exe *exe, struct strbuf *sb)
{
	struct pm_exe_info i;
	struct line l = line_new(0);
	const char *why;
	char text[17];

	pm_exe_info(exe, &i);
	if (i.opened)
		put_hex(&l, "file_id", i.ident.file_id,
			sizeof(i.ident.file_id));
	if (i.short_id) {
		snprintf(text, sizeof(text), "%016" PRIx64, i.short_id);
		line_str(&l, "short_id", text);
	}
	put_hex(&l, "build_id", i.ident.build_id, i.ident.build_id_len);
	line_str(&l, "path", i.path);
	line_put(&l, "open", json_boolean(i.held));
	line_int(&l, "mappings", i.mapped);
	put_answer(&l, "rows", i.rows);
	put_answer(&l, "names", i.names);
	if (i.rows_bytes)
		line_int(&l, "rows_bytes", i.rows_bytes);
	if (i.symbol_bytes)
		line_int(&l, "symbol_bytes", i.symbol_bytes);
	put_sources(&l, i.sources);
	why = pm_exe_quarantine(exe);
	if (why || i.open_error)
		line_str(&l, "error",
			 why ? why : symbolizer_problem(i.open_error));
	line_end(&l, sb);
}
