// SPDX-License-Identifier: Apache-2.0
/* ledger: see reporter/ledger.h. */
#include <inttypes.h>
#include <jansson.h>
#include <malloc.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "reporter/ledger.h"
#include "reporter/pprof.h"

#define LEDGER_EVENTS_MAX 65536
/* Of events that nobody waits for, and in all: two seconds of 8,000 a second. */
#define LEDGER_BYTES_KEPT (1 << 20)
#define LEDGER_BYTES_MAX (16 << 20)

/* --- pieces ---------------------------------------------------------------- */

/* One line in the making. */
struct line {
	json_t *o;
	bool failed; /* something is missing in it, for lack of memory */
};

static void put(struct line *l, const char *key, json_t *value)
{
	if (json_object_set_new(l->o, key, value))
		l->failed = true;
}

static void put_int(struct line *l, const char *key, uint64_t value)
{
	put(l, key, json_integer((json_int_t)value));
}

/*
 * Bytes that a watched process chose; what is not UTF-8 becomes U+FFFD. 's' goes
 * on to a NUL at or behind its end.
 */
static json_t *text_of(const char *s, size_t len)
{
	struct strbuf sb = STRBUF_INIT;
	json_t *v = NULL;
	size_t i, n;

	for (i = 0; i < len; i += n ? n : 1) {
		n = pprof_utf8((const unsigned char *)s + i);
		if (n > len - i)
			n = 0;
		if (n)
			strbuf_add(&sb, s + i, n);
		else
			strbuf_puts(&sb, "\xef\xbf\xbd");
	}
	if (!sb.failed)
		v = json_stringn_nocheck(strbuf_str(&sb), sb.len);
	strbuf_fini(&sb);
	return v;
}

static void put_part(struct line *l, const char *key, const struct pm_part *p)
{
	if (p->len)
		put(l, key, text_of(p->s, p->len));
}

static void put_str(struct line *l, const char *key, const char *s)
{
	if (s && *s)
		put(l, key, text_of(s, strlen(s)));
}

/* RFC 3339 in UTC, to the nanosecond. */
static void put_time(struct line *l, const char *key, uint64_t boottime)
{
	uint64_t ns = boottime + clock_wall_offset_ns();
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

static void put_args(struct line *l, const char *cmdline, size_t len)
{
	json_t *args;
	struct quark_cmdline_iter it;
	const char *arg;

	if (!cmdline || !len)
		return;
	args = json_array();
	quark_cmdline_iter_init(&it, cmdline, len);
	while ((arg = quark_cmdline_iter_next(&it)))
		if (json_array_append_new(args, text_of(arg, strlen(arg))))
			l->failed = true;
	put(l, "args", args);
}

/* As wait4(2) gives it. */
static void put_wait_status(struct line *l, int status)
{
	if (WIFEXITED(status)) {
		put_int(l, "exit_code", WEXITSTATUS(status));
		return;
	}
	put_int(l, "signal", WTERMSIG(status));
	put_str(l, "signal_name", sigabbrev_np(WTERMSIG(status)));
	put(l, "core", json_boolean(WCOREDUMP(status)));
}

static void put_cgroup(struct line *l, const char *cgroup)
{
	struct pm_cgroup in;

	if (!cgroup)
		return;
	pm_cgroup_parse(cgroup, strlen(cgroup), &in);
	put_str(l, "cgroup", cgroup);
	put_part(l, "container", &in.container);
	put_str(l, "engine", in.engine);
	put_part(l, "pod", &in.pod);
	put_part(l, "unit", &in.unit);
}

static void put_leader(struct line *l, uint32_t type, uint32_t pid)
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

	if (type >= ARRAY_SIZE(types) || !types[type])
		return;
	put_str(l, "entry", types[type]);
	put_int(l, "entry_pid", pid);
}

static void put_line(struct line *l, struct strbuf *sb)
{
	char *text = l->failed ? NULL : json_dumps(l->o, JSON_COMPACT);

	if (text) {
		strbuf_puts(sb, text);
		strbuf_puts(sb, "\n");
	} else {
		sb->failed = true;
	}
	free(text);
	json_decref(l->o);
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
 * Samples times the period by CPU time, and how far that may lie from one by
 * chance (one standard deviation). Samples come at fixed steps of CPU time and
 * not by dice, so it is no more than a Poisson process has.
 */
static void put_coverage(struct line *l, const struct pm_process_info *p,
			 unsigned int freq_hz)
{
	double expected = (double)p->cpu_ns * freq_hz / CLOCK_NSEC_PER_SEC;

	put(l, "coverage", json_real(p->samples / expected));
	put(l, "coverage_deviation", json_real(1 / sqrt(expected)));
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
	/* Who ran before anybody took samples has no such figure. */
	if (!p->before && p->cpu_ns)
		put_coverage(l, p, freq_hz);
}

static void put_exe(struct line *l, const struct pm_exe *exe)
{
	char hex[2 * SYMBOLIZER_BUILD_ID_MAX + 1];
	struct pm_exe_info info;
	size_t i;

	if (!exe)
		return;
	pm_exe_info(exe, &info);
	for (i = 0; i < info.ident.build_id_len; i++)
		snprintf(hex + 2 * i, 3, "%02x", info.ident.build_id[i]);
	if (i)
		put_str(l, "build_id", hex);
	if (!info.opened)
		return;
	for (i = 0; i < SYMBOLIZER_FILE_ID_LEN; i++)
		snprintf(hex + 2 * i, 3, "%02x", info.ident.file_id[i]);
	put_str(l, "file_id", hex);
}

static void put_process(const struct pm_image *img, unsigned int freq_hz,
			struct strbuf *sb)
{
	struct line l = { .o = json_object() };
	struct pm_process_info p;
	struct pm_image_info i;

	pm_process_info(img, &p);
	pm_image_info(img, &i);
	put_int(&l, "pid", p.pid);
	put_int(&l, "ppid", p.ppid);
	put_str(&l, "process", p.process_id);
	put_str(&l, "parent", p.parent_id);
	put_str(&l, "image", i.image_id);
	put_str(&l, "state", process_states[p.end]);
	put_str(&l, "comm", i.comm);
	put_str(&l, "exe", i.exe);
	put_args(&l, i.cmdline, i.cmdline_len);
	put_str(&l, "cwd", i.cwd);
	put_int(&l, "uid", i.uid);
	put_int(&l, "gid", i.gid);
	put_int(&l, "session", p.sid);
	put_int(&l, "group", p.pgid);
	put_cgroup(&l, i.cgroup);
	put_leader(&l, p.leader_type, p.leader);
	if (p.kthread)
		put(&l, "kernel_thread", json_true());
	put_time(&l, "start", p.start);
	put_time(&l, "image_start", i.begin);
	put_time(&l, "exit", p.exit);
	put_time(&l, "reap", p.reap);
	if (p.end == PM_EXITED || p.end == PM_REAPED)
		put_wait_status(&l, p.wait_status);
	put_int(&l, "execs", p.execs);
	put_account(&l, &p, freq_hz);
	put_exe(&l, i.main_exe);
	put_line(&l, sb);
}

void ledger_processes(struct pm *pm, bool all, unsigned int freq_hz,
		      struct strbuf *sb)
{
	struct pm_image *img;
	struct pm_iter it;

	pm_iter_init(&it, pm, all);
	while (!sb->failed && (img = pm_iter_next(&it)))
		put_process(img, freq_hz, sb);
}

/* --- events ---------------------------------------------------------------- */

/* X(bit, word) */
#define LEDGER_KINDS(X)           \
	X(FORK, "fork")           \
	X(EXEC, "exec")           \
	X(EXIT, "exit")           \
	X(ID_CHANGE, "id_change") \
	X(SETPROCTITLE, "rename") \
	X(REAP, "reap")           \
	X(GAP, "gap")

static void put_kinds(struct line *l, const char *key, uint64_t events)
{
	static const struct {
		uint64_t bit;
		const char *word;
	} kinds[] = {
#define X(bit, word) { QUARK_EV_##bit, word },
		LEDGER_KINDS(X)
#undef X
	};
	json_t *list = json_array();
	size_t i;

	for (i = 0; i < ARRAY_SIZE(kinds); i++)
		if (events & kinds[i].bit &&
		    json_array_append_new(list, json_string(kinds[i].word)))
			l->failed = true;
	put(l, key, list);
}

static void put_gap(struct line *l, const struct quark_event *ev)
{
	put_time(l, "from", ev->gap_from);
	put_time(l, "to", ev->gap_to);
	put_int(l, "lost", ev->gap_lost);
	put_kinds(l, "kinds", ev->gap_kinds);
}

static void put_ids(struct line *l, const struct quark_process *qp)
{
	char id[40];

	put_int(l, "pid", qp->pid);
	put_int(l, "ppid", qp->proc_ppid);
	snprintf(id, sizeof(id), "%u-%" PRIx64, qp->pid,
		 qp->key.start_boottime);
	put_str(l, "process", id);
	if (qp->parent_key.pid) {
		snprintf(id, sizeof(id), "%u-%" PRIx64, qp->parent_key.pid,
			 qp->parent_key.start_boottime);
		put_str(l, "parent", id);
	}
	put_str(l, "comm", qp->comm);
}

static void put_image(struct line *l, const struct quark_process *qp)
{
	put_str(l, "exe", qp->exe);
	put_args(l, qp->cmdline, qp->cmdline_len);
	put_str(l, "cwd", qp->cwd);
	put_int(l, "uid", qp->proc_uid);
	put_int(l, "gid", qp->proc_gid);
	put_cgroup(l, qp->cgroup);
	put_leader(l, qp->proc_entry_leader_type, qp->proc_entry_leader);
}

static void put_end(struct line *l, const struct quark_event *ev)
{
	bool reap = ev->events & QUARK_EV_REAP;

	put_wait_status(l, ev->process->wait_status);
	put_time(l, "start", ev->process->key.start_boottime);
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

void ledger_event(const struct quark_event *ev, struct strbuf *sb)
{
	struct line l = { .o = json_object() };

	put_time(&l, "time", ev->boottime);
	put_kinds(&l, "events", ev->events);
	if (ev->events & QUARK_EV_GAP)
		put_gap(&l, ev);
	if (ev->process)
		put_ids(&l, ev->process);
	if (ev->process && ev->events & (QUARK_EV_EXEC | QUARK_EV_ID_CHANGE))
		put_image(&l, ev->process);
	if (ev->process && ev->events & (QUARK_EV_EXIT | QUARK_EV_REAP))
		put_end(&l, ev);
	put_line(&l, sb);
}

/* --- the last events ------------------------------------------------------- */

struct ledger_events {
	uint64_t next; /* number of the event that comes next */
	uint64_t first; /* of the oldest that is here */
	uint64_t needed; /* somebody waits for those from here on */
	size_t bytes;
	struct quark_event *v[LEDGER_EVENTS_MAX]; /* by number, modulo */
};

struct ledger_events *ledger_events_new(void)
{
	struct ledger_events *l = calloc(1, sizeof(*l));

	if (l)
		l->next = l->first = l->needed = 1;
	return l;
}

static void ledger_events_drop(struct ledger_events *l)
{
	size_t i = l->first++ % LEDGER_EVENTS_MAX;

	l->bytes -= malloc_usable_size(l->v[i]);
	free(l->v[i]);
}

void ledger_events_free(struct ledger_events *l)
{
	while (l && l->first < l->next)
		ledger_events_drop(l);
	free(l);
}

void ledger_events_add(struct ledger_events *l, struct quark_event *ev)
{
	size_t i = l->next % LEDGER_EVENTS_MAX;

	if (l->next - l->first == LEDGER_EVENTS_MAX)
		ledger_events_drop(l);
	l->v[i] = ev;
	l->bytes += malloc_usable_size(ev);
	l->next++;
	while (l->bytes > LEDGER_BYTES_MAX ||
	       (l->bytes > LEDGER_BYTES_KEPT && l->first < l->needed))
		ledger_events_drop(l);
}

void ledger_events_need(struct ledger_events *l, uint64_t at)
{
	l->needed = MIN(at, l->next);
}

uint64_t ledger_events_first(const struct ledger_events *l)
{
	return l->first;
}

uint64_t ledger_events_next(const struct ledger_events *l)
{
	return l->next;
}

void ledger_events_read(const struct ledger_events *l, uint64_t *at, size_t max,
			struct strbuf *sb)
{
	if (*at < l->first) {
		strbuf_printf(sb,
			      "{\"events\":[\"missed\"],\"count\":%" PRIu64
			      "}\n",
			      l->first - *at);
		*at = l->first;
	}
	while (*at < l->next && sb->len < max && !sb->failed)
		ledger_event(l->v[(*at)++ % LEDGER_EVENTS_MAX], sb);
}
