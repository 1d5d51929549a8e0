// SPDX-License-Identifier: Apache-2.0
/* event: prints and copies events. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "processmanager/quark/priv.h"

static const struct {
	uint64_t bit;
	const char *name;
} event_names[] = {
	{ QUARK_EV_FORK, "FORK" },
	{ QUARK_EV_EXEC, "EXEC" },
	{ QUARK_EV_EXIT, "EXIT" },
	{ QUARK_EV_ID_CHANGE, "ID_CHANGE" },
	{ QUARK_EV_SETPROCTITLE, "SETPROCTITLE" },
	{ QUARK_EV_REAP, "REAP" },
	{ QUARK_EV_GAP, "GAP" },
};

static void print_kinds(FILE *f, uint64_t kinds)
{
	const char *sep = "";
	size_t i;

	for (i = 0; i < ARRAY_SIZE(event_names); i++) {
		if (!(kinds & event_names[i].bit))
			continue;
		fprintf(f, "%s%s", sep, event_names[i].name);
		sep = "+";
	}
}

/* Any process chooses its strings: none may send a terminal control codes. */
static void print_text(FILE *f, const char *s, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++) {
		unsigned char c = s[i];

		if (c < 0x20 || c == 0x7f || c == '\\')
			fprintf(f, "\\x%02x", c);
		else
			putc(c, f);
	}
}

static void print_string(FILE *f, const char *name, const char *s)
{
	if (!s)
		return;
	fprintf(f, "  %s\t", name);
	print_text(f, s, strlen(s));
	putc('\n', f);
}

static void print_list(FILE *f, const char *name, const char *buf, size_t len)
{
	struct quark_cmdline_iter it;
	const char *arg, *sep = "";

	if (!buf)
		return;
	fprintf(f, "  %s\t[ ", name);
	quark_cmdline_iter_init(&it, buf, len);
	while ((arg = quark_cmdline_iter_next(&it))) {
		fputs(sep, f);
		print_text(f, arg, strlen(arg));
		sep = ", ";
	}
	fputs(" ]\n", f);
}

static void print_exit(FILE *f, const struct quark_process *p)
{
	int status = p->wait_status;

	fprintf(f, "  EXIT\texit_code=%d", p->exit_code);
	if (status & 0x7f)
		fprintf(f, " signal=%d%s", status & 0x7f,
			status & 0x80 ? " core" : "");
	fprintf(f, " time=%" PRIu64 "\n", p->exit_time_event);
}

static void print_process(FILE *f, const struct quark_process *p)
{
	print_string(f, "COMM", p->comm);
	print_list(f, "CMDLINE", p->cmdline, p->cmdline_len);
	fprintf(f,
		"  PROC\tppid=%u uid=%u gid=%u suid=%u sgid=%u euid=%u egid=%u"
		" pgid=%u sid=%u tty=%u:%u\n",
		p->proc_ppid, p->proc_uid, p->proc_gid, p->proc_suid,
		p->proc_sgid, p->proc_euid, p->proc_egid, p->proc_pgid,
		p->proc_sid, p->proc_tty_major, p->proc_tty_minor);
	fprintf(f,
		"  NS\tuts=%u ipc=%u mnt=%u net=%u\n"
		"  CAP\tinheritable=%" PRIx64 " permitted=%" PRIx64
		" effective=%" PRIx64 " bset=%" PRIx64 " ambient=%" PRIx64 "\n",
		p->proc_uts_inonum, p->proc_ipc_inonum, p->proc_mnt_inonum,
		p->proc_net_inonum, p->proc_cap_inheritable,
		p->proc_cap_permitted, p->proc_cap_effective, p->proc_cap_bset,
		p->proc_cap_ambient);
	fprintf(f, "  ID\tentity=%s start=%" PRIu64 " exec_id=%" PRIu64 "\n",
		p->proc_entity_id, p->key.start_boottime, p->key.exec_id);
	print_string(f, "EXE", p->exe);
	print_string(f, "CWD", p->cwd);
	print_string(f, "CGROUP", p->cgroup);
	print_list(f, "ENV", p->env, p->env_len);
	if (p->flags & QUARK_F_EXIT)
		print_exit(f, p);
}

int quark_event_dump(const struct quark_event *ev, FILE *f)
{
	fprintf(f, "->%u (", ev->process ? ev->process->pid : 0);
	print_kinds(f, ev->events);
	fprintf(f, ")\n  TIME\t%" PRIu64 "\n", ev->time);
	if (ev->process)
		print_process(f, ev->process);
	if (ev->events & QUARK_EV_REAP)
		fprintf(f, "  CPU\t%" PRIu64 "\n", ev->cpu_time);
	if (ev->events & QUARK_EV_GAP) {
		fprintf(f,
			"  LOST\t%" PRIu64 " from=%" PRIu64 " to=%" PRIu64
			" kinds=",
			ev->gap_lost, ev->gap_from, ev->gap_to);
		print_kinds(f, ev->gap_kinds);
		putc('\n', f);
	}
	return ferror(f) ? -1 : 0;
}

void quark_cmdline_iter_init(struct quark_cmdline_iter *it, const char *cmdline,
			     size_t cmdline_len)
{
	it->buf = cmdline;
	it->len = cmdline ? cmdline_len : 0;
	it->off = 0;
}

/* A last argument that was cut, without its NUL, counts: a NUL ends the whole. */
const char *quark_cmdline_iter_next(struct quark_cmdline_iter *it)
{
	const char *arg;

	if (it->off >= it->len)
		return NULL;
	arg = it->buf + it->off;
	it->off += strnlen(arg, it->len - it->off) + 1;
	return arg;
}

/* --- copies ---------------------------------------------------------------- */

static void process_copy(struct quark_process *to,
			 const struct quark_process *from,
			 struct quark_spans *spans, char *at)
{
	*to = *from;
	quark_spans_copy(spans, at);
	quark_spans_set(to, spans);
}

struct quark_process *quark_process_dup(const struct quark_process *qp)
{
	struct quark_spans spans = quark_spans_of(qp);
	struct quark_process *p = malloc(sizeof(*p) + quark_spans_size(&spans));

	if (p)
		process_copy(p, qp, &spans, (char *)(p + 1));
	return p;
}

size_t quark_event_copy(const struct quark_event *ev, void *buf, size_t size)
{
	struct quark_spans spans = { .exe.p = NULL };
	struct {
		struct quark_event ev;
		struct quark_process p;
		char strings[];
	} *d = buf;
	size_t need;

	if (ev->process)
		spans = quark_spans_of(ev->process);
	need = sizeof(*d) + quark_spans_size(&spans);
	if (need > size)
		return need;
	d->ev = *ev;
	if (ev->process) {
		process_copy(&d->p, ev->process, &spans, d->strings);
		d->ev.process = &d->p;
	}
	return need;
}

struct quark_event *quark_event_dup(const struct quark_event *ev)
{
	size_t size = quark_event_copy(ev, NULL, 0);
	struct quark_event *copy = malloc(size);

	if (copy)
		quark_event_copy(ev, copy, size);
	return copy;
}
