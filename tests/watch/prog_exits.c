// SPDX-License-Identifier: Apache-2.0
/*
 * prog_exits UID: counts the system calls of a user that the kernel reports at the
 * tracepoint sys_exit until SIGINT or SIGTERM. Prints "ready", then "TID CALLS" lines,
 * and "uncounted N skipped N" as prog_retransmits does.
 */
#include <bpf/bpf.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/watch/prog_exits.skel.h"

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void put_calls(int map)
{
	uint32_t tid, *from = NULL;
	uint64_t calls;

	while (!bpf_map_get_next_key(map, from, &tid)) {
		from = &tid;
		if (bpf_map_lookup_elem(map, &tid, &calls))
			die("bpf_map_lookup_elem");
		printf("%" PRIu32 " %" PRIu64 "\n", tid, calls);
	}
	if (errno != ENOENT)
		die("bpf_map_get_next_key");
}

int main(int argc, char **argv)
{
	struct bpf_prog_info info = { 0 };
	struct prog_exits_bpf *skel;
	uint32_t len = sizeof(info);
	sigset_t ends;
	int sig;

	if (argc != 2)
		return 2;
	sigemptyset(&ends);
	sigaddset(&ends, SIGINT);
	sigaddset(&ends, SIGTERM);
	sigprocmask(SIG_BLOCK, &ends, NULL);
	skel = prog_exits_bpf__open();
	if (!skel)
		die("sys_exit");
	skel->rodata->exits_uid = (uint32_t)atoi(argv[1]);
	if (prog_exits_bpf__load(skel) || prog_exits_bpf__attach(skel))
		die("sys_exit");
	puts("ready");
	fflush(stdout);
	sigwait(&ends, &sig);
	prog_exits_bpf__detach(skel);
	if (bpf_obj_get_info_by_fd(bpf_program__fd(skel->progs.exits_count),
				   &info, &len))
		die("bpf_obj_get_info_by_fd");
	put_calls(bpf_map__fd(skel->maps.exits));
	printf("uncounted %" PRIu64 " skipped %" PRIu64 "\n",
	       (uint64_t)skel->bss->exits_uncounted,
	       (uint64_t)info.recursion_misses);
	prog_exits_bpf__destroy(skel);
	return 0;
}
