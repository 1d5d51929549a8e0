// SPDX-License-Identifier: Apache-2.0
/* quark-mon: prints the events of this host until interrupted. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "processmanager/quark/quark.h"

static volatile sig_atomic_t stopped;

static void stop(int sig)
{
	stopped = 1;
}

static void usage(FILE *f)
{
	fputs("usage: quark-mon [-hs]\n", f);
}

/* What the cache holds, before anything happened. */
static int print_snapshot(struct quark_queue *qq)
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

		if (quark_event_dump(&ev, stdout) < 0)
			return -1;
	}
	return 0;
}

static int follow(struct quark_queue *qq)
{
	const struct quark_event *ev;

	while (!stopped) {
		ev = quark_queue_get_event(qq);
		if (ev) {
			if (quark_event_dump(ev, stdout) < 0)
				return -1;
			continue;
		}
		if (fflush(stdout) || quark_queue_block(qq) < 0)
			return -1;
	}
	return 0;
}

static void print_stats(struct quark_queue *qq)
{
	struct quark_queue_stats st;

	quark_queue_get_stats(qq, &st);
	fprintf(stderr,
		"insertions %" PRIu64 " removals %" PRIu64
		" aggregations %" PRIu64 " non-aggregations %" PRIu64
		" lost %" PRIu64 " late %" PRIu64 " collections %" PRIu64 "\n",
		st.insertions, st.removals, st.aggregations,
		st.non_aggregations, st.lost, st.late, st.garbage_collections);
}

int main(int argc, char **argv)
{
	struct sigaction sa = { .sa_handler = stop };
	struct quark_queue_attr attr;
	struct quark_queue qq;
	bool snapshot = false;
	int c, ret = 0;

	while ((c = getopt(argc, argv, "hs")) != -1) {
		switch (c) {
		case 's':
			snapshot = true;
			break;
		case 'h':
			usage(stdout);
			return 0;
		default:
			usage(stderr);
			return 2;
		}
	}
	if (optind != argc) {
		usage(stderr);
		return 2;
	}
	quark_queue_default_attr(&attr);
	attr.flags |= QQ_NO_AGG;
	if (quark_queue_open(&qq, &attr) < 0) {
		fprintf(stderr, "quark-mon: %s\n", quark_queue_open_error());
		return 1;
	}
	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	if (snapshot)
		ret = print_snapshot(&qq);
	if (!ret)
		ret = follow(&qq);
	if (ret)
		fprintf(stderr, "quark-mon: %s\n", strerror(errno));
	print_stats(&qq);
	quark_queue_close(&qq);
	return ret ? 1 : 0;
}
