// SPDX-License-Identifier: Apache-2.0
/*
 * prog_retransmits: counts what the kernel reports at the tracepoint tcp_retransmit_skb
 * until SIGINT or SIGTERM. Prints "ready", then a line for each socket, named by its ends,
 * and one for what was not counted:
 *
 *	127.0.0.1:40000 127.0.0.1:80 EVENTS SEGMENTS UNSENT
 *	uncounted N skipped N
 *
 * "skipped": the kernel did not run the program, because it interrupted itself.
 */
#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/watch/prog_retransmits.h"
#include "tests/watch/prog_retransmits.skel.h"

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void put_end(int family, const uint8_t *address, unsigned int port)
{
	char text[INET6_ADDRSTRLEN];

	if (!inet_ntop(family, address, text, sizeof(text)))
		die("inet_ntop");
	printf(family == AF_INET6 ? "[%s]:%u " : "%s:%u ", text, port);
}

static void put_sums(int map)
{
	struct retransmits_ends ends, *from = NULL;
	struct retransmits_sums sums;

	while (!bpf_map_get_next_key(map, from, &ends)) {
		from = &ends;
		if (bpf_map_lookup_elem(map, &ends, &sums))
			die("bpf_map_lookup_elem");
		put_end(ends.family, ends.src, ends.sport);
		put_end(ends.family, ends.dst, ntohs(ends.dport));
		printf("%" PRIu64 " %" PRIu64 " %" PRIu64 "\n",
		       (uint64_t)sums.events, (uint64_t)sums.segs,
		       (uint64_t)sums.unsent);
	}
	if (errno != ENOENT)
		die("bpf_map_get_next_key");
}

int main(void)
{
	struct prog_retransmits_bpf *skel;
	struct bpf_prog_info info = { 0 };
	uint32_t len = sizeof(info);
	sigset_t ends;
	int sig;

	sigemptyset(&ends);
	sigaddset(&ends, SIGINT);
	sigaddset(&ends, SIGTERM);
	sigprocmask(SIG_BLOCK, &ends, NULL);
	skel = prog_retransmits_bpf__open_and_load();
	if (!skel || prog_retransmits_bpf__attach(skel))
		die("tcp_retransmit_skb");
	puts("ready");
	fflush(stdout);
	sigwait(&ends, &sig);
	prog_retransmits_bpf__detach(skel);
	if (bpf_obj_get_info_by_fd(
		    bpf_program__fd(skel->progs.retransmits_count), &info,
		    &len))
		die("bpf_obj_get_info_by_fd");
	put_sums(bpf_map__fd(skel->maps.retransmits));
	printf("uncounted %" PRIu64 " skipped %" PRIu64 "\n",
	       (uint64_t)skel->bss->retransmits_uncounted,
	       (uint64_t)info.recursion_misses);
	prog_retransmits_bpf__destroy(skel);
	return 0;
}
