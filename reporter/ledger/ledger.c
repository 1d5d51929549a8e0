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
#include "reporter/pprof.h"

/* --- pieces ---------------------------------------------------------------- */

/*
 * Limits for the text in a line that processes control (arguments, paths and
 * names), in bytes of JSON: no line is longer than 32 KiB.
 */
#define LEDGER_TEXT_MAX (12 << 10)
#define LEDGER_ARGS_MAX (8 << 10) /* of those: arguments */
#define LEDGER_IMAGES_MAX (12 << 10) /* in addition: of all images together */

/* A line while it is made. */
struct line {
	json_t *o;
	int64_t wall; /* from boot time to wall clock time */
	size_t room; /* for text that processes control */
	bool event; /* its members have the names of events */
	bool cut; /* some text did not fit */
	bool failed; /* out of memory: members are missing */
};

/*
 * Measured once per answer and rounded to its accuracy, so that equal times are
 * equal in two answers.
 */
static int64_t ledger_wall(void)
{
	return clock_wall_offset_ns() / 1000 * 1000;
}

static struct line line_new(int64_t wall)
{
	return (struct line){ .o = json_object(),
			      .wall = wall,
			      .room = LEDGER_TEXT_MAX };
}

static void ledger_put(struct line *l, const char *key, json_t *value)
{
	char buf[LEDGER_NAME_MAX];

	if (l->event)
		key = ledger_name(key, buf);
	if (json_object_set_new_nocheck(l->o, key, value))
		l->failed = true;
}

static void put_int(struct line *l, const char *key, uint64_t value)
{
	ledger_put(l, key, json_integer((json_int_t)value));
}

json_t *ledger_text(const char *s, size_t len)
{
	struct strbuf sb = STRBUF_INIT;
	const char *utf8 = pprof_utf8(s, &len, &sb);
	json_t *v = utf8 ? json_stringn_nocheck(utf8, len) : NULL;

	strbuf_fini(&sb);
	return v;
}

/* Bytes of JSON for the character at 's', of 'n' bytes; 0: not UTF-8. */
static size_t text_cost(const char *s, size_t n)
{
	unsigned char c = *s;

	if (!n)
		return sizeof("\xef\xbf\xbd") - 1;
	if (c == '"' || c == '\\')
		return 2;
	return c < ' ' ? sizeof("\\u0000") - 1 : n;
}

/* The bytes of (s, len) that fit, in whole characters; reduces '*room'. */
static size_t ledger_text_fits(size_t *room, const char *s, size_t len)
{
	size_t i = 0, n, cost;
	uint32_t cp;

	while (i < len) {
		n = text_decode((const unsigned char *)s + i, len - i, &cp);
		cost = text_cost(s + i, n);
		if (cost > *room)
			break;
		*room -= cost;
		i += n ? n : 1;
	}
	return i;
}

static void put_text(struct line *l, const char *key, const char *s, size_t len)
{
	size_t fits = ledger_text_fits(&l->room, s, len);

	l->cut |= fits < len;
	if (fits)
		ledger_put(l, key, ledger_text(s, fits));
}

static void put_str(struct line *l, const char *key, const char *s)
{
	if (s && *s)
		put_text(l, key, s, strlen(s));
}

/* RFC 3339 in UTC, to the nanosecond. */
static void put_time(struct line *l, const char *key, uint64_t boottime)
{
	uint64_t ns = boottime + l->wall;
	time_t s = ns / CLOCK_NSEC_PER_SEC;
	char text[64];
	struct tm tm;
	size_t n;

	if (!boottime)
		return;
	gmtime_r(&s, &tm);
	n = strftime(text, sizeof(text), "%FT%T", &tm);
	snprintf(text + n, sizeof(text) - n, ".%09uZ",
		 (unsigned int)(ns % CLOCK_NSEC_PER_SEC));
	put_str(l, key, text);
}

/* The time by both clocks: ids contain boot time, which never steps. */
static void put_moment(struct line *l, const char *key, uint64_t boottime)
{
	char name[32];

	if (!boottime)
		return;
	put_time(l, key, boottime);
	snprintf(name, sizeof(name), "%s_boot_ns", key);
	put_int(l, name, boottime);
}

static void put_hex(struct line *l, const char *key, const uint8_t *p,
		    size_t len)
{
	char text[2 * SYMBOLIZER_BUILD_ID_MAX + 1] = "";
	size_t i;

	for (i = 0; i < len && i < SYMBOLIZER_BUILD_ID_MAX; i++)
		snprintf(text + 2 * i, 3, "%02x", p[i]);
	put_str(l, key, text);
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
			fits = ledger_text_fits(&room, arg, len);
			cut |= fits < len;
			if (json_array_append_new(args, ledger_text(arg, fits)))
				l->failed = true;
			if (fits < len)
				break;
			room -= MIN(room, sizeof("\"\",") - 1);
		}
		cut |= !room && quark_cmdline_iter_next(&it);
		l->room -= most - room;
		ledger_put(l, "args", args);
	}
	if (cut)
		ledger_put(l, "args_cut", json_true());
}

/* A status of wait4(2). */
static void put_wait_status(struct line *l, int status)
{
	if (status == PM_STATUS_UNKNOWN)
		return;
	if (WIFEXITED(status)) {
		put_int(l, "exit_code", WEXITSTATUS(status));
		return;
	}
	put_int(l, "signal", WTERMSIG(status));
	put_str(l, "signal_name", sigabbrev_np(WTERMSIG(status)));
	ledger_put(l, "core", json_boolean(WCOREDUMP(status)));
}

static void ledger_put_cgroup(struct line *l, const char *cgroup)
{
	struct pm_cgroup in;

	if (!cgroup)
		return;
	pm_cgroup_parse(cgroup, strlen(cgroup), &in);
	put_str(l, "cgroup", cgroup);
	put_text(l, "container", in.container.s, in.container.len);
	put_str(l, "engine", in.engine);
	put_text(l, "pod", in.pod.s, in.pod.len);
	put_text(l, "unit", in.unit.s, in.unit.len);
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
	put_str(l, "entry", entry);
	put_int(l, "entry_pid", pid);
}

static int ledger_append(const char *data, size_t len, void *arg)
{
	strbuf_add(arg, data, len);
	return 0;
}

void ledger_dump(json_t *o, struct strbuf *sb)
{
	if (json_dump_callback(o, ledger_append, sb, JSON_COMPACT))
		sb->failed = true;
	strbuf_add(sb, "\n", 1);
	json_decref(o);
}

static void put_line(struct line *l, struct strbuf *sb)
{
	if (l->cut)
		ledger_put(l, "cut", json_true());
	sb->failed |= l->failed;
	ledger_dump(l->o, sb);
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

	ledger_put(l, "coverage", json_real(p->samples / expected));
	ledger_put(l, "coverage_deviation", json_real(1 / sqrt(expected)));
}

static void put_account(struct line *l, const struct pm_process_info *p,
			unsigned int freq_hz)
{
	put_int(l, "samples", p->samples);
	if (p->maxrss)
		put_int(l, "maxrss_bytes", p->maxrss);
	if (p->minflt || p->majflt) {
		put_int(l, "minflt", p->minflt);
		put_int(l, "majflt", p->majflt);
	}
	if (p->cpu == PM_CPU_NONE)
		return;
	put_str(l, "cpu", cpu_accounts[p->cpu]);
	put_int(l, "cpu_ns", p->cpu_ns);
	if (p->cpu != PM_CPU_PROVISIONAL) {
		put_int(l, "user_ns", p->user_ns);
		put_int(l, "system_ns", p->system_ns);
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
	put_str(l, "comm", i->comm);
	put_str(l, "exe", i->exe);
	ledger_put_args(l, i->cmdline, i->cmdline_len, i->args_cut);
	put_str(l, "cwd", i->cwd);
	put_int(l, "uid", i->uid);
	put_int(l, "gid", i->gid);
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
		put_str(&e, "image", v->images[i].image_id);
		put_moment(&e, l->event ? "image_start" : "start",
			   v->images[i].begin);
		put_int(&e, "samples", v->images[i].samples);
		put_program(&e, &v->images[i]);
		put_str(&e, "cgroup", v->images[i].cgroup);
		if (json_array_append_new(list, e.o))
			e.failed = true;
		l->failed |= e.failed;
		l->cut |= e.cut;
	}
	ledger_put(l, "images", list);
}

static void ledger_put_process(struct line *l, const struct ledger_view *v,
			       unsigned int freq_hz)
{
	const struct pm_process_info *p = &v->process;
	const struct pm_image_info *i = &v->images[0];

	put_int(l, "pid", p->pid);
	put_int(l, "ppid", p->ppid);
	put_str(l, "process", p->process_id);
	put_str(l, "parent", p->parent_id);
	put_str(l, "image", i->image_id);
	put_str(l, "state", process_states[p->end]);
	put_program(l, i);
	put_int(l, "session", p->sid);
	put_int(l, "group", p->pgid);
	ledger_put_cgroup(l, i->cgroup);
	put_leader(l, p->leader_type, p->leader);
	if (p->kthread)
		ledger_put(l, "kernel_thread", json_true());
	put_moment(l, "start", p->start);
	put_moment(l, "image_start", i->begin);
	put_moment(l, "exit", p->exit);
	put_moment(l, "reap", p->reap);
	if (p->end == PM_EXITED || p->end == PM_REAPED)
		put_wait_status(l, p->wait_status);
	put_int(l, "execs", p->execs);
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
	t->wall = ledger_wall();
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
		put_line(&l, sb);
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
	ledger_put(l, key, list);
}

/* The begin of an event's line. */
static struct line ledger_begin(const struct ledger_head *head, uint64_t time,
				uint64_t kinds)
{
	struct line l = line_new(ledger_wall());

	l.event = true;
	if (head->id)
		put_int(&l, "id", head->id);
	put_moment(&l, "time", time);
	put_kinds(&l, "events", kinds);
	put_str(&l, "host", head->host);
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
	put_line(&l, sb);
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
	put_time(l, "from", ev->gap_from);
	put_time(l, "to", ev->gap_to);
	put_int(l, "lost", ev->gap_lost);
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
	put_str(l, key, id);
}

static void ledger_put_ids(struct line *l, const struct quark_process *qp)
{
	put_int(l, "pid", qp->pid);
	put_int(l, "ppid", qp->proc_ppid);
	put_key(l, "process", &qp->key);
	if (qp->parent_key.pid)
		put_key(l, "parent", &qp->parent_key);
	put_str(l, "comm", qp->comm);
}

static void ledger_put_image(struct line *l, const struct quark_process *qp)
{
	put_str(l, "exe", qp->exe);
	ledger_put_args(l, qp->cmdline, qp->cmdline_len,
			qp->x_flags & QUARK_X_ARGS_CUT);
	put_str(l, "cwd", qp->cwd);
	put_int(l, "uid", qp->proc_uid);
	put_int(l, "gid", qp->proc_gid);
	ledger_put_cgroup(l, qp->cgroup);
	put_leader(l, qp->proc_entry_leader_type, qp->proc_entry_leader);
}

static void ledger_put_end(struct line *l, const struct quark_event *ev)
{
	bool reap = ev->events & QUARK_EV_REAP;

	put_wait_status(l, ev->process->wait_status);
	put_moment(l, "start", ev->process->key.start_boottime);
	if (ev->cpu_time) {
		put_str(l, "cpu",
			cpu_accounts[reap && ev->cpu_exact
					     ? PM_CPU_EXACT
					     : PM_CPU_PROVISIONAL]);
		put_int(l, "cpu_ns", ev->cpu_time);
	}
	if (reap && ev->cpu_exact) {
		put_int(l, "user_ns", ev->utime);
		put_int(l, "system_ns", ev->stime);
	}
	if (ev->maxrss)
		put_int(l, "maxrss_bytes", ev->maxrss);
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
	put_line(&l, sb);
}

/* --- executables ------------------------------------------------------------- */

/* The result of requesting rows or names from the file. */
static void put_answer(struct line *l, const char *key, int answer)
{
	if (answer == PM_EXE_NOT_ASKED)
		return;
	put_str(l, key,
		!answer		     ? "yes"
		: answer == -ENODATA ? "none"
				     : strerror(-answer));
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
		ledger_put(l, "sources", o);
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
		put_str(&l, "short_id", text);
	}
	put_hex(&l, "build_id", i.ident.build_id, i.ident.build_id_len);
	put_str(&l, "path", i.path);
	ledger_put(&l, "open", json_boolean(i.held));
	put_int(&l, "mappings", i.mapped);
	put_answer(&l, "rows", i.rows);
	put_answer(&l, "names", i.names);
	if (i.rows_bytes)
		put_int(&l, "rows_bytes", i.rows_bytes);
	if (i.symbol_bytes)
		put_int(&l, "symbol_bytes", i.symbol_bytes);
	put_sources(&l, i.sources);
	why = pm_exe_quarantine(exe);
	if (why || i.open_error)
		put_str(&l, "error", why ? why : strerror(-i.open_error));
	put_line(&l, sb);
}
