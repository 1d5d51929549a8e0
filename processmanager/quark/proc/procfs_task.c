// SPDX-License-Identifier: Apache-2.0
/*
 * procfs_task: reads a process that the backend's scan does not show from /proc, as
 * a record of the scan. Seen with the first process of a host, which the kernel
 * hides from BPF programs.
 *
 * What /proc does not contain stays unknown. The start is in clock ticks; the
 * caller makes it exact.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "processmanager/quark/priv.h"

size_t quark_procfs_link(uint32_t pid, const char *name, struct strbuf *sb)
{
	static const char deleted[] = " (deleted)";
	char path[64], buf[ABI_QUARK_PATH_MAX];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%u/%s", pid, name);
	n = readlink(path, buf, sizeof(buf));
	if (n <= 0 || buf[0] != '/')
		return 0;
	if (n > (ssize_t)strlen(deleted) &&
	    !memcmp(buf + n - strlen(deleted), deleted, strlen(deleted)))
		n -= strlen(deleted);
	strbuf_add(sb, buf, n);
	return n;
}

/* False for a zombie. */
static bool take_stat(const struct procfs_stat *st, struct abi_quark_image *im)
{
	im->parent.tgid = st->ppid;
	im->ids.pgid = st->pgid;
	im->ids.sid = st->sid;
	memcpy(im->comm, st->comm, MIN(sizeof(im->comm), sizeof(st->comm)));
	im->ids.tty_major = st->tty >> 8 & 0xfff;
	im->ids.tty_minor = (st->tty & 0xff) | (st->tty >> 12 & 0xfff00);
	im->head.flags = st->kthread ? ABI_QUARK_KTHREAD : 0;
	im->head.key.start_boottime = st->start;
	return st->state != 'Z' && st->state != 'X';
}

/* See proc_pid_status(5); it escapes control characters of the name. */
static void parse_status(const char *text, struct abi_quark_ids *ids)
{
	struct {
		const char *name;
		__u64 *value;
	} caps[] = {
		{ "\nCapInh:\t", &ids->cap_inheritable },
		{ "\nCapPrm:\t", &ids->cap_permitted },
		{ "\nCapEff:\t", &ids->cap_effective },
		{ "\nCapBnd:\t", &ids->cap_bset },
		{ "\nCapAmb:\t", &ids->cap_ambient },
	};
	struct procfs_ids own;
	const char *at;
	size_t i;

	if (procfs_ids_parse(text, &own)) {
		ids->uid = own.uid;
		ids->euid = own.euid;
		ids->suid = own.suid;
		ids->gid = own.gid;
		ids->egid = own.egid;
		ids->sgid = own.sgid;
	}
	for (i = 0; i < ARRAY_SIZE(caps); i++) {
		at = strstr(text, caps[i].name);
		if (at)
			*caps[i].value =
				strtoull(at + strlen(caps[i].name), NULL, 16);
	}
}

static uint32_t read_ns(uint32_t pid, const char *name)
{
	char path[64], link[64];
	unsigned int ino = 0;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%u/ns/%s", pid, name);
	n = readlink(path, link, sizeof(link) - 1);
	link[MAX(n, 0)] = '\0';
	sscanf(link, "%*[^[][%u]", &ino);
	return ino;
}

bool quark_procfs_stat(uint32_t pid, const char *name, struct stat *st)
{
	struct statx sx;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%u/%s", pid, name);
	/* Cached attributes: the file system may never answer. */
	if (statx(AT_FDCWD, path, AT_STATX_DONT_SYNC, STATX_BASIC_STATS, &sx))
		return false;
	memset(st, 0, sizeof(*st));
	st->st_dev = gnu_dev_makedev(sx.stx_dev_major, sx.stx_dev_minor);
	st->st_ino = sx.stx_ino;
	st->st_size = sx.stx_size;
	st->st_ctim.tv_sec = sx.stx_ctime.tv_sec;
	st->st_ctim.tv_nsec = sx.stx_ctime.tv_nsec;
	return true;
}

static void quark_procfs_read_exe(struct abi_quark_image *im)
{
	struct stat st;

	if (!quark_procfs_stat(im->head.key.tgid, "exe", &st))
		return;
	im->dev = (uint64_t)gnu_dev_major(st.st_dev) << 20 |
		  gnu_dev_minor(st.st_dev);
	im->ino = st.st_ino;
	im->size = st.st_size;
	im->ctime_ns =
		st.st_ctim.tv_sec * CLOCK_NSEC_PER_SEC + st.st_ctim.tv_nsec;
}

static bool read_numbers(uint32_t pid, struct abi_quark_image *im)
{
	struct procfs_stat st;
	char text[4096];

	memset(im, 0, sizeof(*im));
	im->head.kind = ABI_QUARK_TASK;
	im->head.time = clock_boottime_ns();
	im->head.key.tgid = im->head.tid = pid;
	if (!procfs_stat(pid, &st) || !take_stat(&st, im))
		return false;
	im->head.flags |= QUARK_RAW_HIDDEN;
	if (procfs_text(pid, "status", text, sizeof(text)))
		parse_status(text, &im->ids);
	im->ids.uts_inonum = read_ns(pid, "uts");
	im->ids.ipc_inonum = read_ns(pid, "ipc");
	im->ids.mnt_inonum = read_ns(pid, "mnt");
	im->ids.net_inonum = read_ns(pid, "net");
	quark_procfs_read_exe(im);
	return true;
}

/* Without arguments, which scan.c reads for several processes at once. */
bool quark_procfs_task(uint32_t pid, struct strbuf *sb)
{
	struct abi_quark_image im;

	if (!read_numbers(pid, &im))
		return false;
	strbuf_reset(sb);
	strbuf_add(sb, &im, sizeof(im));
	im.exe_len = quark_procfs_link(pid, "exe", sb);
	im.cwd_len = quark_procfs_link(pid, "cwd", sb);
	im.cgroup_len =
		quark_procfs_cgroup(pid, im.head.key.start_boottime, sb);
	if (!strbuf_str(sb))
		return false;
	memcpy(sb->data, &im, sizeof(im));
	return true;
}
