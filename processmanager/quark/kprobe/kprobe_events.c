// SPDX-License-Identifier: Apache-2.0
/*
 * kprobe_events: the probes. Each is one line written to tracefs' kprobe_events
 * (Documentation/trace/kprobetrace.rst): a function whose argument is the task,
 * and values to fetch by following pointers from there, with offsets from BTF. Its
 * "format" then has the place of each value in a raw record.
 *
 * The functions were chosen by where the kernel calls them: uprobe_copy_process()
 * follows the tracepoint task_newtask, proc_exec_connector() follows
 * sched_process_exec, delayed_put_task_struct() calls sched_process_free,
 * taskstats_exit() precedes sched_process_exit and has group_dead.
 * proc_tgid_stat() serves /proc/PID/stat: reading that file makes the probe read
 * that task, so a scan gets the same values.
 *
 * The group's name contains the process that made it (struct owner), so the next
 * open of a queue removes the probes of a killed process.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <mntent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "processmanager/quark/kprobe/kprobe.h"

/* PID, its start, its pid namespace; a serial number of the process follows. */
#define GROUP "libquark_%d_%" PRIu64 "_%" PRIu64 "_"
#define GROUP_SCAN "libquark_%d_%" SCNu64 "_%" SCNu64 "_%u"
#define EXPR_MAX 63 /* of one argument: MAX_ARGSTR_LEN */

enum {
	G_KEY = 1 << 0,
	G_PARENT = 1 << 1,
	G_COMM = 1 << 2,
	G_IDS = 1 << 3,
	G_FILE = 1 << 4,
	G_CPU = 1 << 5,
	G_RUN = 1 << 6,
	G_STATUS = 1 << 7,
	G_ARGS = 1 << 8,
	G_FORK = 1 << 9,
	G_EXIT = 1 << 10,
	G_RENAME = 1 << 11,
	G_TP = 1 << 12,
	G_LIVE = 1 << 13,
	G_ENV = 1 << 14, /* only with max_env */
	G_CPUHP = 1 << 15,
	G_WHO = G_KEY | G_PARENT | G_COMM,
};

enum field_type {
	T_VALUE,
	T_NAMES, /* strings: of a dentry and its ancestors */
	T_ARGS, /* user memory behind the pointer */
	T_LITERAL, /* 'path' is the expression itself */
	T_STRING, /* the same, a string */
	T_GIVEN, /* a member of a tracepoint: nothing to fetch */
};

/*
 * 'path': pointers to follow, a word each. A word is a member; '|' separates
 * alternatives, of which the first that exists is used; '-' subtracts a member
 * (container_of), '+' adds bytes.
 */
struct field {
	const char *name;
	const char *path;
	uint32_t groups;
	uint16_t dst, size;
	uint16_t count;
	enum field_type type;
};

#define FIELD(word, member, group, kind, n, expr)                          \
	{                                                                  \
		.name = #word, .path = expr, .groups = group,              \
		.dst = offsetof(struct kprobe_values, member),             \
		.size = sizeof(((struct kprobe_values *)0)->member) / (n), \
		.count = n, .type = kind,                                  \
	}
#define X(member, group, kind, n, expr) \
	FIELD(member, member, group, kind, n, expr)
#define V(member, group, expr) X(member, group, T_VALUE, 1, expr)
#define ID(member, expr) FIELD(member, ids.member, G_IDS, T_VALUE, 1, expr)
#define TP(word, member, group) FIELD(word, member, group, T_GIVEN, 1, NULL)
#define PARENT "task_struct.real_parent task_struct."
#define CRED "task_struct.real_cred cred."
#define NS "task_struct.nsproxy nsproxy."
#define SIG "task_struct.signal signal_struct."
#define LEADER "task_struct.group_leader task_struct."
#define MM "task_struct.mm mm_struct."
#define EXE MM "exe_file "
#define INODE EXE "file.f_inode inode."

static const struct field fields[] = {
	V(start, G_KEY, LEADER "start_boottime"),
	V(exec_id, G_KEY, "task_struct.self_exec_id"),
	V(flags, G_KEY, "task_struct.flags"),
	V(pid, G_KEY, "task_struct.pid"),
	V(tgid, G_KEY, "task_struct.tgid"),
	V(exit_signal, G_KEY, "task_struct.exit_signal"),
	V(p_tgid, G_PARENT, PARENT "tgid"),
	V(p_start, G_PARENT, PARENT "group_leader task_struct.start_boottime"),
	V(p_exec_id, G_PARENT, PARENT "self_exec_id"),
	V(comm0, G_COMM, "task_struct.comm"),
	V(comm1, G_COMM, "task_struct.comm+8"),
	ID(uid, CRED "uid"),
	ID(gid, CRED "gid"),
	ID(suid, CRED "suid"),
	ID(sgid, CRED "sgid"),
	ID(euid, CRED "euid"),
	ID(egid, CRED "egid"),
	ID(cap_inheritable, CRED "cap_inheritable"),
	ID(cap_permitted, CRED "cap_permitted"),
	ID(cap_effective, CRED "cap_effective"),
	ID(cap_bset, CRED "cap_bset"),
	ID(cap_ambient, CRED "cap_ambient"),
	ID(pgid, SIG "pids+16 pid.numbers"), /* PIDTYPE_PGID */
	ID(sid, SIG "pids+24 pid.numbers"), /* PIDTYPE_SID */
	ID(tty_major, SIG "tty tty_struct.driver tty_driver.major"),
	ID(tty_minor, SIG "tty tty_struct.driver tty_driver.minor_start"),
	V(tty, G_IDS, SIG "tty"),
	V(tty_index, G_IDS, SIG "tty tty_struct.index"),
	V(nsproxy, G_IDS, "task_struct.nsproxy"),
	ID(uts_inonum, NS "uts_ns uts_namespace.ns.inum"),
	ID(ipc_inonum, NS "ipc_ns ipc_namespace.ns.inum"),
	ID(mnt_inonum, NS "mnt_ns mnt_namespace.ns.inum"),
	ID(net_inonum, NS "net_ns net.ns.inum"),
	V(live, G_LIVE, SIG "live"),
	V(sig_flags, G_STATUS, SIG "flags"),
	V(group_exit_code, G_STATUS, SIG "group_exit_code"),
	V(leader_exit_code, G_STATUS, LEADER "exit_code"),
	V(leader_pid, G_RUN, LEADER "pid"),
	V(sum_runtime, G_CPU, SIG "sum_sched_runtime"),
	V(own_runtime, G_RUN, "task_struct.se.sum_exec_runtime"),
	V(leader_runtime, G_RUN, LEADER "se.sum_exec_runtime"),
	V(utime, G_CPU, SIG "utime"),
	V(stime, G_CPU, SIG "stime"),
	V(minflt, G_CPU, SIG "min_flt"),
	V(majflt, G_CPU, SIG "maj_flt"),
	V(maxrss, G_RUN, SIG "maxrss"),
	V(mm, G_FILE, "task_struct.mm"),
	V(exe_file, G_FILE, MM "exe_file"),
	V(fs, G_FILE, "task_struct.fs"),
	V(dev, G_FILE, INODE "i_sb super_block.s_dev"),
	V(ino, G_FILE, INODE "i_ino"),
	V(size, G_FILE, INODE "i_size"),
	/* 6.11, 6.6, before. */
	V(ctime_sec, G_FILE, INODE "i_ctime_sec|inode.__i_ctime|inode.i_ctime"),
	V(ctime_nsec, G_FILE,
	  INODE "i_ctime_nsec|inode.__i_ctime.tv_nsec|inode.i_ctime.tv_nsec"),
	V(exe_mnt, G_FILE, EXE "file.f_path.mnt mount.mnt_id-mount.mnt"),
	V(cwd_mnt, G_FILE,
	  "task_struct.fs fs_struct.pwd.mnt mount.mnt_id-mount.mnt"),
	V(cgroup, G_FILE,
	  "task_struct.cgroups css_set.dfl_cgrp cgroup.kn kernfs_node.id"),
	X(exe, G_FILE, T_NAMES, KPROBE_EXE_LEVELS, EXE "file.f_path.dentry"),
	X(cwd, G_FILE, T_NAMES, KPROBE_CWD_LEVELS,
	  "task_struct.fs fs_struct.pwd.dentry"),
	V(arg_start, G_ARGS, MM "arg_start"),
	V(arg_end, G_ARGS, MM "arg_end"),
	X(args, G_ARGS, T_ARGS, KPROBE_ARGS_PIECES, MM "arg_start"),
	V(env_start, G_ENV, MM "env_start"),
	V(env_end, G_ENV, MM "env_end"),
	X(env, G_ENV, T_ARGS, 1, MM "env_start"),
	X(clone_flags, G_FORK, T_LITERAL, 1, "$arg2:u64"),
	X(group_dead, G_EXIT, T_LITERAL, 1, "$arg2:s32"),
	X(exec, G_RENAME, T_LITERAL, 1, "$arg3:u32"),
	X(name, G_RENAME, T_STRING, 1, "+0($arg2):string"),
	TP(filename, filename, G_TP),
	TP(pid, tp_pid, G_TP),
	TP(old_pid, tp_old_pid, G_TP),
	TP(cpu, tp_cpu, G_CPUHP),
};

/* Leaders have a signal for their parent; other threads have -1, unsigned. */
#define LEADERS "exit_signal != 4294967295"

static const struct probe {
	const char *name;
	uint32_t groups;
	int kind;
	const char *symbol; /* NULL: 'name' is a tracepoint */
	const char *task; /* argument that is the task */
	const char *filter;
	const char *member; /* 'task' points to this member of the task */
} probes[KPROBE_MAX] = {
	[KPROBE_FORK] = { "fork", G_WHO | G_IDS | G_FORK, ABI_QUARK_FORK,
			  "uprobe_copy_process", "$arg1",
			  "!(clone_flags & 65536)" /* CLONE_THREAD */ },
	[KPROBE_TP_EXEC] = { "sched/sched_process_exec", G_TP, -1 },
	[KPROBE_EXEC] = { "exec", G_WHO | G_IDS | G_FILE | G_ARGS | G_ENV,
			  ABI_QUARK_EXEC, "proc_exec_connector", "$arg1" },
	[KPROBE_EXIT] = { "exit", G_WHO | G_CPU | G_RUN | G_STATUS | G_EXIT,
			  ABI_QUARK_EXIT, "taskstats_exit", "$arg1",
			  "group_dead != 0" },
	[KPROBE_REAP] = { "reap", G_KEY | G_COMM | G_CPU | G_STATUS,
			  ABI_QUARK_REAP, "delayed_put_task_struct", "$arg1",
			  LEADERS, "task_struct.rcu" },
	[KPROBE_RENAME] = { "rename", G_KEY | G_RENAME, ABI_QUARK_RENAME,
			    "__set_task_comm", "$arg1", LEADERS },
	[KPROBE_UID] = { "id", G_KEY | G_IDS, ABI_QUARK_ID_CHANGE,
			 "proc_id_connector", "$arg1" },
	[KPROBE_SID] = { "sid", G_KEY | G_IDS, ABI_QUARK_ID_CHANGE,
			 "proc_sid_connector", "$arg1" },
	[KPROBE_CWD] = { "cwd", 0, ABI_QUARK_ID_CHANGE, "set_fs_pwd", "$arg1" },
	[KPROBE_CGROUP] = { "cgroup/cgroup_attach_task", G_TP,
			    ABI_QUARK_ID_CHANGE },
	[KPROBE_HOTPLUG] = { "cpuhp/cpuhp_exit", G_CPUHP, -1 },
	[KPROBE_SCAN] = { "scan", G_WHO | G_IDS | G_FILE | G_STATUS | G_LIVE,
			  -1, "proc_tgid_stat", "$arg4" },
};

const char *kprobe_filter(enum kprobe_id id, bool threads)
{
	return threads ? NULL : probes[id].filter;
}

int kprobe_kind(enum kprobe_id id)
{
	return probes[id].kind;
}

/* --- expressions ------------------------------------------------------------ */

/* The offset of a word of a path. -ENOTSUP: the kernel lacks the member. */
static int word_offset(struct quark_btf *btf, const char *word, long *out)
{
	char copy[128], *save, *alt, *end;
	long off = -1, back = 0;
	char op;

	if (snprintf(copy, sizeof(copy), "%s", word) >= (int)sizeof(copy))
		return -E2BIG;
	end = strpbrk(copy, "+-");
	op = end ? *end : '\0';
	if (end)
		*end++ = '\0';
	errno = 0;
	for (alt = strtok_r(copy, "|", &save);
	     alt && off < 0 && errno != ENOMEM;
	     alt = strtok_r(NULL, "|", &save))
		off = quark_btf_offset(btf, alt);
	if (op == '+')
		back = -atol(end);
	else if (op == '-')
		back = quark_btf_offset(btf, end);
	if (off < 0 || (op == '-' && back < 0)) {
		if (errno == ENOMEM)
			return -ENOMEM;
		quark_error("the kernel has no %s", word);
		return -ENOTSUP;
	}
	*out = off - back;
	return 0;
}

/* "+8(+16(BASE))", without a type; BASE points 'bias' bytes into the structure. */
static int kprobe_events_expression(struct quark_btf *btf, const char *path,
				    const char *base, long bias, char *out,
				    size_t size)
{
	char words[256], inner[256], *save, *w;
	long off;
	int err;

	snprintf(words, sizeof(words), "%s", path);
	snprintf(out, size, "%s", base);
	for (w = strtok_r(words, " ", &save); w;
	     w = strtok_r(NULL, " ", &save)) {
		err = word_offset(btf, w, &off);
		if (err)
			return err;
		off -= bias;
		bias = 0;
		snprintf(inner, sizeof(inner), "%s", out);
		if (snprintf(out, size, "%+ld(%s)", off, inner) >= (int)size)
			return -E2BIG;
	}
	return 0;
}

/* One argument of one field: " name=expression:type". */
static int add_argument(struct quark_btf *btf, const struct probe *p,
			const struct field *f, unsigned int index, long bias,
			struct strbuf *sb)
{
	char path[512], expr[128], arg[256];
	unsigned int i;
	int err;

	if (f->type == T_LITERAL || f->type == T_STRING) {
		strbuf_printf(sb, " %s=%s", f->name, f->path);
		return 0;
	}
	snprintf(path, sizeof(path), "%s", f->path);
	for (i = 0; f->type == T_NAMES && i < index; i++)
		strcat(path, " dentry.d_parent");
	if (f->type == T_NAMES)
		strcat(path, " dentry.d_name.name");
	err = kprobe_events_expression(btf, path, p->task, bias, expr,
				       sizeof(expr));
	if (err)
		return err;
	if (f->type == T_NAMES)
		snprintf(arg, sizeof(arg), "+0(%s):string", expr);
	else if (f->type == T_ARGS)
		/* The kernel refuses "+u" with arrays; user addresses work without. */
		snprintf(arg, sizeof(arg), "+%u(%s):x64[%u]",
			 index * KPROBE_ARGS_PIECE, expr,
			 KPROBE_ARGS_PIECE / 8);
	else
		snprintf(arg, sizeof(arg), "%s:u%u", expr, f->size * 8);
	/* The kernel refuses longer arguments: the path's depth is limited. */
	if (strlen(arg) > EXPR_MAX)
		return f->type == T_NAMES ? 0 : -E2BIG;
	if (f->count > 1)
		strbuf_printf(sb, " %s%u=%s", f->name, index, arg);
	else
		strbuf_printf(sb, " %s=%s", f->name, arg);
	return 0;
}

static bool kprobe_events_wanted(const struct kprobe_events *e,
				 const struct probe *p, const struct field *f)
{
	return f->groups & p->groups && (e->env || f->groups != G_ENV);
}

static int probe_line(struct quark_btf *btf, const struct kprobe_events *e,
		      const struct probe *p, struct strbuf *sb)
{
	long bias = 0;
	unsigned int k;
	size_t i;
	int err;

	if (p->member) {
		err = word_offset(btf, p->member, &bias);
		if (err)
			return err;
	}
	strbuf_reset(sb);
	strbuf_printf(sb, "p:%s/%s %s", e->group, p->name, p->symbol);
	for (i = 0; i < ARRAY_SIZE(fields); i++) {
		if (!kprobe_events_wanted(e, p, &fields[i]))
			continue;
		for (k = 0; k < fields[i].count; k++) {
			err = add_argument(btf, p, &fields[i], k, bias, sb);
			if (err)
				return err;
		}
	}
	strbuf_puts(sb, "\n");
	return strbuf_str(sb) ? 0 : -ENOMEM;
}

/* --- tracefs ---------------------------------------------------------------- */

static int kprobe_events_command(const char *tracefs, const char *line,
				 size_t len)
{
	char path[PATH_MAX];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "%s/kprobe_events", tracefs);
	/* O_TRUNC, as a shell's '>' has, would remove all probes of the host. */
	fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = write(fd, line, len);
	n = n < 0 ? -errno : 0;
	close(fd);
	return n;
}

static char *read_event_file(const struct kprobe_events *e, enum kprobe_id id,
			     const char *file)
{
	const struct probe *p = &probes[id];
	char path[PATH_MAX], buf[512];
	struct strbuf sb = STRBUF_INIT;
	ssize_t n;
	int fd;

	/* The name of a tracepoint contains its group. */
	snprintf(path, sizeof(path), "%s/events/%s/%s/%s", e->tracefs,
		 p->symbol ? e->group : ".", p->name, file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	while ((n = read(fd, buf, sizeof(buf))) > 0)
		strbuf_add(&sb, buf, n);
	if (n < 0)
		sb.failed = true;
	close(fd);
	return strbuf_steal(&sb);
}

/* The place of one member; -ENOENT or another error for a required one. */
static int kprobe_events_place(struct kprobe_event *ev, const struct field *f,
			       unsigned int index, const char *format)
{
	struct kprobe_place *pl = &ev->places[ev->n];
	uint16_t size;
	char name[64];
	int err;

	snprintf(name, sizeof(name), f->count > 1 ? "%s%u" : "%s", f->name,
		 index);
	err = kprobe_format(format, strlen(format), name, &pl->offset, &size);
	if (err == -ENOENT &&
	    (f->type == T_NAMES || f->type == T_GIVEN || f->groups == G_ENV))
		return 0;
	pl->dst = f->dst + index * f->size;
	pl->span = f->size == sizeof(struct quark_span);
	pl->size = pl->span ? sizeof(uint32_t) : f->size;
	if (!err && size != pl->size)
		err = -EINVAL;
	ev->n += !err;
	return err;
}

static int kprobe_events_read_format(struct kprobe_events *e, enum kprobe_id id)
{
	struct kprobe_event *ev = &e->ev[id];
	char *format = read_event_file(e, id, "format");
	char *type = read_event_file(e, id, "id");
	unsigned int k;
	int err = 0;
	size_t i;

	ev->places = calloc(ARRAY_SIZE(fields) * 8, sizeof(*ev->places));
	if (!format || !type || !ev->places)
		err = errno ? -errno : -ENOMEM;
	for (i = 0; !err && i < ARRAY_SIZE(fields); i++)
		for (k = 0; !err && fields[i].groups & probes[id].groups &&
			    k < fields[i].count;
		     k++)
			err = kprobe_events_place(ev, &fields[i], k, format);
	ev->type = err ? 0 : atoi(type);
	free(format);
	free(type);
	return err;
}

static int kprobe_events_create(struct kprobe_events *e, struct quark_btf *btf)
{
	struct strbuf sb = STRBUF_INIT;
	int err = 0, id;

	for (id = 0; !err && id < KPROBE_MAX; id++) {
		const struct probe *p = &probes[id];

		if (p->symbol) {
			err = probe_line(btf, e, p, &sb);
			if (err) {
				if (!*quark_queue_open_error())
					quark_error("probe %s: %s", p->name,
						    strerror(-err));
				break;
			}
			e->made = true;
			err = kprobe_events_command(e->tracefs, sb.data,
						    sb.len);
		}
		if (!err)
			err = kprobe_events_read_format(e, id);
		if (err == -ENOENT && id == KPROBE_HOTPLUG)
			err = 0; /* optional: kprobe.c polls without it */
		if (err)
			quark_error("kprobe on %s: %s",
				    p->symbol ? p->symbol : p->name,
				    strerror(-err));
	}
	strbuf_fini(&sb);
	return err;
}

/* Removes all events of a group; one that perf has open is EBUSY and stays. */
static void remove_group(const char *tracefs, const char *group)
{
	char path[PATH_MAX], line[400];
	struct dirent *d;
	DIR *dir;
	int n;

	snprintf(path, sizeof(path), "%s/events/%s", tracefs, group);
	dir = opendir(path);
	while (dir && (d = readdir(dir))) {
		if (d->d_name[0] == '.' || d->d_type != DT_DIR)
			continue;
		n = snprintf(line, sizeof(line), "-:%s/%s\n", group, d->d_name);
		kprobe_events_command(tracefs, line, n);
	}
	if (dir)
		closedir(dir);
}

/* A pid alone may be reused, and is ambiguous in another pid namespace. */
struct owner {
	int pid;
	uint64_t start; /* clock ticks after boot; tracefs ends with the boot */
	uint64_t ns; /* inode of the pid namespace */
};

static struct owner kprobe_events_self(void)
{
	struct owner o = { getpid(), quark_procfs_start(getpid()), 0 };
	struct stat st;

	if (!stat("/proc/self/ns/pid", &st))
		o.ns = st.st_ino;
	return o;
}

/* Whether the process has certainly ended. */
static bool is_gone(const struct owner *o, const struct owner *me,
		    struct quark_reader *reader)
{
	uint64_t start;

	if (o->ns != me->ns)
		return false;
	if (kill(o->pid, 0) && errno == ESRCH)
		return true;
	start = quark_reader_start(reader, o->pid);
	return start != QUARK_PROCFS_NO_START &&
	       o->start != QUARK_PROCFS_NO_START && start != o->start;
}

/* Removes the probes of processes that ended. */
static void kprobe_events_sweep(const char *tracefs, const struct owner *me,
				struct quark_reader *reader)
{
	char path[PATH_MAX];
	unsigned int serial;
	struct dirent *d;
	struct owner o;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/events", tracefs);
	dir = opendir(path);
	while (dir && (d = readdir(dir))) {
		if (sscanf(d->d_name, GROUP_SCAN, &o.pid, &o.start, &o.ns,
			   &serial) == 4 &&
		    is_gone(&o, me, reader))
			remove_group(tracefs, d->d_name);
	}
	if (dir)
		closedir(dir);
}

void kprobe_error(int err, const char *what)
{
	static const char file[] = "/proc/sys/kernel/perf_event_paranoid";
	bool denied = err == -EACCES || err == -EPERM;
	char text[32];

	if (denied && procfs_read(AT_FDCWD, file, text, sizeof(text)) > 0)
		quark_error("%s: %s (kernel.perf_event_paranoid is %d)", what,
			    strerror(-err), atoi(text));
	else
		quark_error("%s: %s", what, strerror(-err));
}

/* Whether kprobe events can be made there. 0, -ENOENT, or why not. */
static int try_tracefs(struct kprobe_events *e, const char *dir)
{
	int fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int err = 0, rest;

	if (fd < 0 || faccessat(fd, "kprobe_events", W_OK, 0))
		err = -errno;
	rest = err ? faccessat(fd, "events", F_OK, 0) : 0;
	if (fd >= 0)
		close(fd);
	if (!err) {
		e->tracefs = strdup(dir);
		return e->tracefs ? 0 : -ENOMEM;
	}
	if (err == -EACCES || err == -EPERM || err == -EROFS) {
		quark_error("%s/kprobe_events: %s", dir, strerror(-err));
		return -EPERM;
	}
	if (err != -ENOENT && err != -ENOTDIR) {
		quark_error("%s: %s", dir, strerror(-err));
		return err;
	}
	if (rest)
		return -ENOENT;
	quark_error("%s: the kernel has no kprobe events", dir);
	return -ENOTSUP;
}

/* Finds where it is mounted; debugfs mounts it in a directory at first access. */
static int find_tracefs(struct kprobe_events *e)
{
	FILE *f = setmntent("/proc/self/mounts", "re");
	char dir[PATH_MAX], buf[2 * PATH_MAX];
	struct mntent m;
	int err = -ENOENT;

	if (!f) {
		err = -errno;
		quark_error("/proc/self/mounts: %s", strerror(-err));
		return err;
	}
	while (err == -ENOENT && getmntent_r(f, &m, buf, sizeof(buf))) {
		bool debugfs = !strcmp(m.mnt_type, "debugfs");

		if (!debugfs && strcmp(m.mnt_type, "tracefs"))
			continue;
		snprintf(dir, sizeof(dir), "%s%s", m.mnt_dir,
			 debugfs ? "/tracing" : "");
		err = try_tracefs(e, dir);
	}
	endmntent(f);
	if (err != -ENOENT)
		return err;
	if (access("/sys/kernel/tracing", F_OK) &&
	    access("/sys/kernel/debug/tracing", F_OK))
		quark_error("the kernel has no tracefs");
	else
		quark_error("tracefs is not mounted (/sys/kernel/tracing)");
	return -ENOTSUP;
}

int kprobe_events_new(struct kprobe_events *e, bool env,
		      struct quark_reader *reader)
{
	static unsigned int serial;
	struct quark_btf *btf;
	struct owner me;
	int err;

	memset(e, 0, sizeof(*e));
	e->env = env;
	e->owner = getpid();
	err = find_tracefs(e);
	if (err)
		return err;
	btf = quark_btf_open();
	if (!btf) {
		err = quark_btf_error();
		quark_error(err == -ENOTSUP ? "the kernel has no BTF"
					    : "reading kernel types: %s",
			    strerror(-err));
	} else {
		me = kprobe_events_self();
		kprobe_events_sweep(e->tracefs, &me, reader);
		snprintf(e->group, sizeof(e->group), GROUP "%u", me.pid,
			 me.start, me.ns,
			 __atomic_add_fetch(&serial, 1, __ATOMIC_RELAXED));
		err = kprobe_events_create(e, btf);
		quark_btf_close(btf);
	}
	if (err)
		kprobe_events_free(e);
	return err;
}

void kprobe_events_free(struct kprobe_events *e)
{
	size_t i;

	if (e->made && e->owner == getpid())
		remove_group(e->tracefs, e->group);
	for (i = 0; i < KPROBE_MAX; i++)
		free(e->ev[i].places);
	free(e->tracefs);
	memset(e, 0, sizeof(*e));
}
