// SPDX-License-Identifier: Apache-2.0
/* quark-mon: prints the events of this host until interrupted. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "processmanager/quark/quark.h"

/* Of the queue's default: hold_time, and as much again. */
#define LAST_NS 2000000000ULL

struct options {
	struct quark_queue_attr attr;
	struct quark_ruleset rules;
	const char *dot;
	long ppid; /* -1: all */
	bool ecs;
	bool env;
	bool reaps;
	bool snapshot;
	bool verbose;
};

static volatile sig_atomic_t stopped;

static void mon_stop(int sig)
{
	stopped++;
}

static void mon_usage(FILE *f)
{
	fputs("usage: quark-mon [-bEegkMnRstvx] [-C FILE] [-l LENGTH]"
	      " [-P PPID] [-r RULES]\n"
	      "       quark-mon -h | --help | -V | --version\n",
	      f);
}

static void mon_help(void)
{
	mon_usage(stdout);
	fputs("Prints the events of this host's processes, see quark-mon(8).\n"
	      "  -b         use the EBPF backend\n"
	      "  -C FILE    at the end, write the cache as a graph for dot(1)\n"
	      "  -E         print each event as a line of JSON (ECS)\n"
	      "  -e         find the entry leader of each process\n"
	      "  -g         join only renames and changes of ids\n"
	      "  -h         print this help\n"
	      "  -k         use the KPROBE backend\n"
	      "  -l LENGTH  hold at most LENGTH events\n"
	      "  -M         print loads of kernel modules too (not built yet)\n"
	      "  -n         print every raw event, at once\n"
	      "  -P PPID    print only children of PPID\n"
	      "  -R         print reaps too\n"
	      "  -r RULES   drop events and tag processes by rules\n"
	      "  -s         begin with the existing processes\n"
	      "  -t         print events of threads too\n"
	      "  -V         print the version\n"
	      "  -v         print lost events by kind at the end\n"
	      "  -x         print the environment too\n",
	      stdout);
}

static int mon_complain(const char *what)
{
	fprintf(stderr, "quark-mon: %s: %s\n", what, strerror(errno));
	return -1;
}

/* --- output ---------------------------------------------------------------- */

static int mon_print_event(struct quark_queue *qq, const struct options *o,
			   const struct quark_event *ev)
{
	char *line;
	size_t len;
	int ret;

	if (ev->events == QUARK_EV_REAP && !o->reaps)
		return 0;
	if (o->ppid >= 0 && (!ev->process || ev->process->proc_ppid != o->ppid))
		return 0;
	if (!o->ecs)
		return quark_event_dump(ev, stdout);
	if (quark_event_to_ecs(qq, ev, &line, &len) < 0)
		return -1;
	line[len] = '\n';
	ret = fwrite(line, 1, len + 1, stdout) == len + 1 ? 0 : -1;
	free(line);
	return ret;
}

/* The processes in the cache, as events. */
static int print_snapshot(struct quark_queue *qq, const struct options *o)
{
	const struct quark_process *p;
	struct quark_process_iter it;

	quark_process_iter_init(&it, qq);
	while ((p = quark_process_iter_next(&it))) {
		struct quark_event ev = {
			.process = p,
			.time = p->proc_time_boot,
			.boottime = p->key.start_boottime,
		};

		if (mon_print_event(qq, o, &ev) < 0)
			return -1;
	}
	return fflush(stdout);
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_BOOTTIME, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

/* Prints all events up to the signal; those held then come out when due. */
static int mon_follow(struct quark_queue *qq, const struct options *o)
{
	const struct quark_event *ev;
	uint64_t end = 0, watermark;

	for (;;) {
		if (stopped && !end)
			end = now_ns();
		watermark = quark_queue_watermark(qq);
		/* A second signal, or held longer than expected. */
		if (end && (watermark > end || stopped > 1 ||
			    now_ns() > end + LAST_NS))
			return 0;
		ev = quark_queue_get_event(qq);
		if (ev && (!end || ev->boottime <= end) &&
		    mon_print_event(qq, o, ev) < 0)
			return -1;
		if (ev)
			continue;
		if (fflush(stdout) || quark_queue_block(qq) < 0)
			return -1;
	}
}

static void print_losses(const struct quark_losses *l)
{
	static const char *const kinds[QUARK_X_KINDS] = { "fork",   "exec",
							  "exit",   "id change",
							  "rename", "reap" };
	int i;

	for (i = 0; i < QUARK_X_KINDS; i++)
		fprintf(stderr,
			"%s: %" PRIu64 " in the kernel, %" PRIu64
			" without memory\n",
			kinds[i], l->kernel[i], l->memory[i]);
}

static void mon_print_stats(struct quark_queue *qq, const struct options *o)
{
	struct quark_queue_stats st;

	quark_queue_get_stats(qq, &st);
	fprintf(stderr,
		"insertions %" PRIu64 " removals %" PRIu64
		" aggregations %" PRIu64 " non-aggregations %" PRIu64
		" lost %" PRIu64 " late %" PRIu64 " collections %" PRIu64 "\n",
		st.insertions, st.removals, st.aggregations,
		st.non_aggregations, st.lost, st.late, st.garbage_collections);
	if (o->verbose)
		print_losses(&st.losses);
}

/* Any process chooses its name: it must not end the quoted string. */
static void print_quoted(FILE *f, const char *s)
{
	for (; *s; s++)
		putc(*s == '"' || *s == '\\' || (unsigned char)*s < 0x20 ? '_'
									 : *s,
		     f);
}

/* The cache as a graph of parents and children. */
static int write_dot(struct quark_queue *qq, const char *file)
{
	const struct quark_process *p, *parent;
	struct quark_process_iter it;
	FILE *f = fopen(file, "we");
	int bad;

	if (!f)
		return mon_complain(file);
	fputs("digraph processes {\n", f);
	quark_process_iter_init(&it, qq);
	while ((p = quark_process_iter_next(&it))) {
		fprintf(f, "\t\"%s\" [label=\"%u ", p->proc_entity_id, p->pid);
		print_quoted(f, p->comm);
		fputs("\"];\n", f);
		parent = p->proc_ppid ? quark_process_lookup(qq, p->proc_ppid)
				      : NULL;
		if (parent)
			fprintf(f, "\t\"%s\" -> \"%s\";\n",
				parent->proc_entity_id, p->proc_entity_id);
	}
	fputs("}\n", f);
	bad = ferror(f);
	if (fclose(f) || bad)
		return mon_complain(file);
	return 0;
}

/* --- options --------------------------------------------------------------- */

static int load_rules(struct options *o, const char *file)
{
	char err[256];
	FILE *f = fopen(file, "re");
	int ret;

	if (!f)
		return mon_complain(file);
	ret = quark_ruleset_parse_append(&o->rules, f, err, sizeof(err));
	fclose(f);
	if (ret < 0)
		fprintf(stderr, "quark-mon: %s: %s\n", file, err);
	o->attr.ruleset = &o->rules;
	return ret;
}

static int mon_parse_number(const char *s, long max, long *out)
{
	char *end;

	errno = 0;
	*out = strtol(s, &end, 10);
	if (errno || end == s || *end || *out < 0 || *out > max) {
		fprintf(stderr, "quark-mon: not a number from 0 to %ld: %s\n",
			max, s);
		return -1;
	}
	return 0;
}

/* 0, or the exit status for a usage error or a failure. */
static int parse_option(struct options *o, int c)
{
	const struct {
		char option;
		int flags; /* of the queue */
		bool *set;
	} flags[] = {
		{ 'b', QQ_EBPF, NULL },		{ 'E', 0, &o->ecs },
		{ 'e', QQ_ENTRY_LEADER, NULL }, { 'g', QQ_MIN_AGG, NULL },
		{ 'k', QQ_KPROBE, NULL },	{ 'M', QQ_MODULE_LOAD, NULL },
		{ 'n', QQ_NO_AGG, NULL },	{ 'R', 0, &o->reaps },
		{ 's', 0, &o->snapshot },	{ 't', QQ_THREAD_EVENTS, NULL },
		{ 'v', 0, &o->verbose },	{ 'x', 0, &o->env },
	};
	long v;
	size_t i;

	for (i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		if (flags[i].option != c)
			continue;
		o->attr.flags |= flags[i].flags;
		if (flags[i].set)
			*flags[i].set = true;
		return 0;
	}
	switch (c) {
	case 'C':
		o->dot = optarg;
		return 0;
	case 'l':
		if (mon_parse_number(optarg, INT_MAX, &v))
			return 2;
		o->attr.max_length = v;
		return 0;
	case 'P':
		return mon_parse_number(optarg, INT_MAX, &o->ppid) ? 2 : 0;
	case 'r':
		return load_rules(o, optarg) ? 1 : 0;
	}
	mon_usage(stderr);
	return 2;
}

/* -1: go on; else the exit status. */
static int parse_options(struct options *o, int argc, char **argv)
{
	static const struct option longs[] = {
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'V' },
		{ NULL, 0, NULL, 0 },
	};
	static const char letters[] = "bC:EeghkMl:nP:Rr:stVvx";
	int c, ret;

	memset(o, 0, sizeof(*o));
	o->ppid = -1;
	quark_ruleset_init(&o->rules);
	quark_queue_default_attr(&o->attr);
	o->attr.flags = QQ_OWN_EVENTS;
	while ((c = getopt_long(argc, argv, letters, longs, NULL)) != -1) {
		if (c == 'h') {
			mon_help();
			return 0;
		}
		if (c == 'V') {
			puts("quark-mon " PROFD_VERSION);
			return 0;
		}
		ret = parse_option(o, c);
		if (ret)
			return ret;
	}
	if (optind != argc) {
		mon_usage(stderr);
		return 2;
	}
	if (!o->env)
		o->attr.max_env = 0;
	if (!(o->attr.flags & QQ_ALL_BACKENDS))
		o->attr.flags |= QQ_ALL_BACKENDS;
	return -1;
}

static int mon_run(const struct options *o)
{
	struct sigaction sa = { .sa_handler = mon_stop };
	struct quark_queue qq;
	int ret = 0;

	if (quark_queue_open(&qq, (struct quark_queue_attr *)&o->attr) < 0) {
		fprintf(stderr, "quark-mon: %s\n", quark_queue_open_error());
		return 1;
	}
	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	if (o->snapshot)
		ret = print_snapshot(&qq, o);
	if (!ret)
		ret = mon_follow(&qq, o);
	if (ret)
		mon_complain("output");
	mon_print_stats(&qq, o);
	if (o->dot && write_dot(&qq, o->dot))
		ret = -1;
	quark_queue_close(&qq);
	return ret ? 1 : 0;
}

int main(int argc, char **argv)
{
	struct options o;
	int ret = parse_options(&o, argc, argv);

	if (ret < 0)
		ret = mon_run(&o);
	quark_ruleset_clear(&o.rules);
	return ret;
}
