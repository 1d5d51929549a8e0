// SPDX-License-Identifier: Apache-2.0
/* quark-btf: prints the offsets of members of kernel structures, from BTF. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "processmanager/quark/quark.h"

/*
 * Members that libquark's kernel side reads and that 6.1 to 6.18 all have. Loading
 * relocates those that these versions have in different places.
 */
static const char *const members[] = {
	"cred.cap_ambient",
	"cred.cap_bset",
	"cred.cap_effective",
	"cred.cap_inheritable",
	"cred.cap_permitted",
	"cred.egid",
	"cred.euid",
	"cred.gid",
	"cred.sgid",
	"cred.suid",
	"cred.uid",
	"css_set.dfl_cgrp",
	"dentry.d_name.name",
	"dentry.d_parent",
	"file.f_inode",
	"file.f_path",
	"fs_struct.pwd.dentry",
	"fs_struct.pwd.mnt",
	"fs_struct.root.dentry",
	"fs_struct.root.mnt",
	"inode.i_ino",
	"inode.i_sb",
	"inode.i_size",
	"kernfs_node.name",
	"mm_struct.arg_end",
	"mm_struct.arg_start",
	"mm_struct.env_end",
	"mm_struct.env_start",
	"mm_struct.exe_file",
	"mount.mnt",
	"mount.mnt_mountpoint",
	"mount.mnt_parent",
	"nsproxy.ipc_ns",
	"nsproxy.mnt_ns",
	"nsproxy.net_ns",
	"nsproxy.uts_ns",
	"pid.numbers",
	"signal_struct.group_exit_code",
	"signal_struct.pids",
	"signal_struct.sum_sched_runtime",
	"signal_struct.tty",
	"task_struct.cgroups",
	"task_struct.comm",
	"task_struct.exit_code",
	"task_struct.fs",
	"task_struct.group_leader",
	"task_struct.mm",
	"task_struct.nsproxy",
	"task_struct.pid",
	"task_struct.real_cred",
	"task_struct.real_parent",
	"task_struct.se.sum_exec_runtime",
	"task_struct.self_exec_id",
	"task_struct.signal",
	"task_struct.start_boottime",
	"task_struct.tgid",
	"tty_struct.driver",
	"tty_struct.index",
	"vfsmount.mnt_root",
};

static void btf_usage(FILE *f)
{
	fputs("usage: quark-btf [-b] [-f FILE] [STRUCTURE.MEMBER ...]\n"
	      "       quark-btf -h | -V\n",
	      f);
}

static int print_member(struct quark_btf *btf, const char *name, bool bits)
{
	long off = quark_btf_offset(btf, name);

	if (off < 0) {
		fprintf(stderr, "quark-btf: %s: %s\n", name,
			errno == ENOENT ? "no such member" : strerror(errno));
		return -1;
	}
	if (bits)
		printf("%-32s %ld %ld\n", name, off, off * 8);
	else
		printf("%-32s %ld\n", name, off);
	return 0;
}

static int print_members(const char *file, bool bits, const char *const *names,
			 size_t n)
{
	struct quark_btf *btf = quark_btf_open2(file, NULL);
	int ret = 0;
	size_t i;

	if (!btf) {
		fprintf(stderr, "quark-btf: %s: %s\n",
			file ? file : "types of the running kernel",
			strerror(errno));
		return -1;
	}
	for (i = 0; i < n; i++)
		if (print_member(btf, names[i], bits))
			ret = -1;
	quark_btf_close(btf);
	if (fflush(stdout)) {
		fprintf(stderr, "quark-btf: output: %s\n", strerror(errno));
		ret = -1;
	}
	return ret;
}

int main(int argc, char **argv)
{
	const char *const *names = members;
	size_t n = sizeof(members) / sizeof(members[0]);
	const char *file = NULL;
	bool bits = false;
	int c;

	while ((c = getopt(argc, argv, "bf:hV")) != -1) {
		switch (c) {
		case 'b':
			bits = true;
			break;
		case 'f':
			file = optarg;
			break;
		case 'h':
			btf_usage(stdout);
			return 0;
		case 'V':
			puts("quark-btf " PROFD_VERSION);
			return 0;
		default:
			btf_usage(stderr);
			return 2;
		}
	}
	if (optind < argc) {
		names = (const char *const *)argv + optind;
		n = argc - optind;
	}
	return print_members(file, bits, names, n) ? 1 : 0;
}
