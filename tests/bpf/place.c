// SPDX-License-Identifier: Apache-2.0
/*
 * place: linked into each program of tests/bpf, and run by tests/e2e/lib.sh as
 * prog_place. Where the kernel refuses BPF or perf events, as in a container, or
 * shows other process ids than BPF programs see, a test program cannot test anything,
 * and reports that before its main().
 */
#include <errno.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <mntent.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/bpf/place.h"

/* With any other error the tests fail. */
static int refused(long fd)
{
	if (fd >= 0)
		close((int)fd);
	return fd < 0 && (errno == EPERM || errno == EACCES || errno == ENOSYS);
}

static int refuses_bpf(void)
{
	const struct bpf_insn insns[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K }, /* r0 = 0 */
		{ .code = BPF_JMP | BPF_EXIT },
	};
	union bpf_attr attr = {
		.prog_type = BPF_PROG_TYPE_KPROBE,
		.insns = (uintptr_t)insns,
		.insn_cnt = 2,
		.license = (uintptr_t) "GPL",
	};

	return refused(syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof(attr)));
}

static int refuses_perf(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.disabled = 1,
	};

	return refused(syscall(SYS_perf_event_open, &attr, -1, 0, -1,
			       PERF_FLAG_FD_CLOEXEC));
}

/* PROC_PID_INIT_INO of include/linux/proc_ns.h: the first pid namespace. */
static int refuses_pids(void)
{
	const char host[] = "pid:[4026531836]";
	char link[64];
	ssize_t n = readlink("/proc/self/ns/pid", link, sizeof(link));

	return n >= 0 && ((size_t)n != strlen(host) || memcmp(link, host, n));
}

__attribute__((constructor)) static void place(void)
{
	const struct {
		int refused;
		const char *what;
	} asked[] = {
		{ refuses_bpf(), "BPF" },
		{ refuses_perf(), "perf events" },
		{ refuses_pids(), "the host's process ids" },
	};
	const char *sep = "1..0 # SKIP this place forbids ";
	size_t i;

	for (i = 0; i < sizeof(asked) / sizeof(*asked); i++) {
		if (!asked[i].refused)
			continue;
		printf("%s%s", sep, asked[i].what);
		sep = ", ";
	}
	if (*sep != ',')
		return;
	putchar('\n');
	exit(0);
}

/* In a chroot the root may not be a mount: all visible mounts are changed. */
int place_own_mounts(void)
{
	struct mntent *m;
	FILE *f;

	if (unshare(CLONE_NEWNS))
		return -1;
	if (!mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		return 0;
	f = setmntent("/proc/self/mounts", "re");
	if (!f)
		return -1;
	/* A mount that another one covers cannot be reached. */
	while ((m = getmntent(f)))
		mount(NULL, m->mnt_dir, NULL, MS_PRIVATE, NULL);
	endmntent(f);
	return 0;
}

#ifdef PLACE_MAIN
int main(void)
{
	return 0;
}
#endif
