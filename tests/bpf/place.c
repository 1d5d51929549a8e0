// SPDX-License-Identifier: Apache-2.0
/*
 * place: linked into each program of tests/bpf, and asked by tests/e2e/lib.sh as
 * prog_place. Where the kernel refuses us BPF or perf events, as in a container,
 * a program of tests has nothing to test, and says so before its main().
 */
#include <errno.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <mntent.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/bpf/place.h"

/* Any other error is for the tests to fail by. */
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

__attribute__((constructor)) static void place(void)
{
	int bpf = refuses_bpf(), perf = refuses_perf();

	if (!bpf && !perf)
		return;
	printf("1..0 # SKIP this place forbids %s%s%s\n", bpf ? "BPF" : "",
	       bpf && perf ? " and " : "", perf ? "perf events" : "");
	exit(0);
}

/* In a chroot the root need not be a mount: there it is each that can be seen. */
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
	/* What another mount hides is out of everybody's reach. */
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
