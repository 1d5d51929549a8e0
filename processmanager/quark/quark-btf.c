// SPDX-License-Identifier: Apache-2.0
/* quark-btf: prints where members of kernel structures lie. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "processmanager/quark/quark.h"

/* What is printed when nothing is named: what the library itself goes by. */
static const char *const common[] = {
	"task_struct.comm",
	"task_struct.cred",
	"task_struct.exit_code",
	"task_struct.fs",
	"task_struct.group_leader",
	"task_struct.mm",
	"task_struct.pid",
	"task_struct.real_parent",
	"task_struct.self_exec_id",
	"task_struct.signal",
	"task_struct.start_boottime",
	"task_struct.tgid",
	"signal_struct.group_exit_code",
	"signal_struct.live",
	"signal_struct.sum_sched_runtime",
	"cred.uid",
	"cred.gid",
	"mm_struct.arg_start",
	"mm_struct.arg_end",
	"fs_struct.pwd",
	"dentry.d_name",
	"dentry.d_parent",
	NULL,
};

static void usage(FILE *f)
{
	fputs("usage: quark-btf [-f FILE] [STRUCTURE.MEMBER ...]\n"
	      "       quark-btf -h | -V\n",
	      f);
}

static bool print_offset(struct quark_btf *qb, const char *name)
{
	long offset = quark_btf_offset(qb, name);

	if (offset >= 0) {
		printf("%s %ld\n", name, offset);
		return true;
	}
	fprintf(stderr, "quark-btf: %s: %s\n", name,
		errno == EINVAL ? "a bit field" : "no such member");
	return false;
}

static int print_all(const char *file, const char *const *names)
{
	struct quark_btf *qb = quark_btf_open2(file, NULL);
	int ret = 0;

	if (!qb) {
		fprintf(stderr, "quark-btf: %s: %s\n",
			file ? file : "this kernel's types", strerror(errno));
		return 1;
	}
	for (; *names; names++)
		if (!print_offset(qb, *names))
			ret = 1;
	quark_btf_close(qb);
	if (fflush(stdout)) {
		fprintf(stderr, "quark-btf: output: %s\n", strerror(errno));
		ret = 1;
	}
	return ret;
}

int main(int argc, char **argv)
{
	const char *file = NULL;
	int c;

	while ((c = getopt(argc, argv, "f:hV")) != -1) {
		switch (c) {
		case 'f':
			file = optarg;
			break;
		case 'h':
			usage(stdout);
			return 0;
		case 'V':
			puts("quark-btf " PROFD_VERSION);
			return 0;
		default:
			usage(stderr);
			return 2;
		}
	}
	return print_all(file, optind < argc
				       ? (const char *const *)argv + optind
				       : common);
}
