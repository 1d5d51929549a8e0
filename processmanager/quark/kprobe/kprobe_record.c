// SPDX-License-Identifier: Apache-2.0
/*
 * kprobe_record: makes the record that bpf/quark.bpf.c would send from the values of
 * a probe. They have all numbers; of an image's strings they have what fits. The
 * rest is read from /proc. That it is the same image, the scan's probe confirms: it
 * reads start and exec generation afterwards.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "processmanager/quark/kprobe/kprobe.h"

#define SIGNAL_GROUP_EXIT 4 /* linux/sched/signal.h */
#define PF_KTHREAD 0x00200000 /* linux/sched.h */
#define NSEC_MASK 0x3fffffff /* the rest is a flag (6.13) */

static void kprobe_fill_head(struct abi_quark_head *h, enum abi_quark_kind kind,
			     const struct kprobe_sample *s,
			     const struct kprobe_values *v)
{
	h->kind = kind;
	h->flags = v->flags & PF_KTHREAD ? ABI_QUARK_KTHREAD : 0;
	h->time = s->time;
	h->key.start_boottime = v->start;
	h->key.exec_id = v->exec_id;
	h->key.tgid = v->tgid;
	h->tid = v->pid;
	h->cpu = s->cpu;
}

static void fill_parent(struct abi_key *key, const struct kprobe_values *v)
{
	key->start_boottime = v->p_start;
	key->exec_id = v->p_exec_id;
	key->tgid = v->p_tgid;
}

static void fill_comm(char *comm, const struct kprobe_values *v)
{
	memcpy(comm, &v->comm0, 8);
	memcpy(comm + 8, &v->comm1, 8);
	comm[ABI_COMM_LEN - 1] = '\0';
}

static void kprobe_fill_ids(struct abi_quark_ids *ids,
			    const struct kprobe_values *v)
{
	*ids = v->ids;
	ids->tty_minor += v->tty_index;
	if (!v->tty)
		ids->tty_major = ids->tty_minor = 0;
	if (!v->nsproxy)
		ids->uts_inonum = ids->ipc_inonum = ids->mnt_inonum =
			ids->net_inonum = 0;
}

static int32_t kprobe_wait_status(const struct kprobe_values *v)
{
	return v->sig_flags & SIGNAL_GROUP_EXIT ? v->group_exit_code
						: v->leader_exit_code;
}

static int record_fork(struct kprobe_record *r, const struct kprobe_sample *s,
		       const struct kprobe_values *v, ring_fn fn, void *arg)
{
	struct abi_quark_fork f = { 0 };

	if (!v->pid) /* the idle task of a CPU that comes up */
		return 0;
	kprobe_fill_head(&f.head, ABI_QUARK_FORK, s, v);
	fill_parent(&f.parent, v);
	/*
	 * The child inherits the caller's generation. With CLONE_PARENT the
	 * child has no pointer to the caller, so its start is unknown.
	 */
	f.origin.tgid = s->tgid;
	f.origin.exec_id = v->exec_id;
	if (s->tgid == v->tgid)
		f.origin.start_boottime = v->start;
	else if (s->tgid == v->p_tgid)
		f.origin.start_boottime = v->p_start;
	f.clone_flags = v->clone_flags;
	fill_comm(f.comm, v);
	kprobe_fill_ids(&f.ids, v);
	return fn(arg, &f, sizeof(f));
}

static int record_exit(struct kprobe_record *r, const struct kprobe_sample *s,
		       const struct kprobe_values *v, ring_fn fn, void *arg)
{
	struct abi_quark_exit e = { 0 };

	kprobe_fill_head(&e.head, ABI_QUARK_EXIT, s, v);
	if (v->group_dead)
		e.head.flags |= ABI_QUARK_GROUP_DEAD;
	fill_parent(&e.parent, v);
	fill_comm(e.comm, v);
	e.cpu_time = v->sum_runtime + v->own_runtime;
	if (v->leader_pid != v->pid)
		e.cpu_time += v->leader_runtime;
	e.maxrss = v->maxrss;
	e.minflt = v->minflt;
	e.majflt = v->majflt;
	e.wait_status = kprobe_wait_status(v);
	return fn(arg, &e, sizeof(e));
}

static int record_reap(struct kprobe_record *r, const struct kprobe_sample *s,
		       const struct kprobe_values *v, ring_fn fn, void *arg)
{
	struct abi_quark_reap e = { 0 };

	/* A thread; or a leader replaced by another thread's exec. */
	if (v->pid != v->tgid)
		return 0;
	kprobe_fill_head(&e.head, ABI_QUARK_REAP, s, v);
	fill_comm(e.comm, v);
	e.cpu_time = v->sum_runtime;
	e.utime = v->utime;
	e.stime = v->stime;
	e.minflt = v->minflt;
	e.majflt = v->majflt;
	e.wait_status = kprobe_wait_status(v);
	return fn(arg, &e, sizeof(e));
}

static int record_rename(struct kprobe_record *r, const struct kprobe_sample *s,
			 const struct kprobe_values *v, ring_fn fn, void *arg)
{
	struct abi_quark_rename e = { 0 };

	/* The exec's own record has that name. */
	if (v->exec & 0xff)
		return 0;
	kprobe_fill_head(&e.head, ABI_QUARK_RENAME, s, v);
	if (v->name.p)
		memcpy(e.comm, v->name.p, MIN(v->name.len, sizeof(e.comm) - 1));
	return fn(arg, &e, sizeof(e));
}

static int record_ids(struct kprobe_record *r, const struct kprobe_sample *s,
		      const struct kprobe_values *v, ring_fn fn, void *arg)
{
	struct abi_quark_id_change e = { 0 };

	kprobe_fill_head(&e.head, ABI_QUARK_ID_CHANGE, s, v);
	kprobe_fill_ids(&e.ids, v);
	return fn(arg, &e, sizeof(e));
}

/* --- images ----------------------------------------------------------------- */

/* Whether that is the file executed. */
static bool kprobe_same_file(const struct stat *st,
			     const struct abi_quark_image *im)
{
	return st->st_ino == im->ino && st->st_dev == quark_image_ident(im).dev;
}

/* The root of the process, "" if unknown; read once per record. */
static const struct strbuf *read_root(struct kprobe_record *r,
				      const struct kprobe_values *v)
{
	if (!r->rooted) {
		strbuf_reset(&r->root);
		quark_reader_link(r->reader, v->ids.uid, v->tgid, "root",
				  &r->root);
	}
	r->rooted = true;
	return &r->root;
}

/*
 * Makes the path in our root, in 'out' from 'start' on, relative to the process's
 * root, as the other backend does. Does nothing if the process is gone.
 */
static void beneath_root(struct kprobe_record *r, const struct kprobe_values *v,
			 size_t start)
{
	const struct strbuf *root = read_root(r, v);
	size_t len = r->out.len - start, n = root->len;
	char *path;

	if (n <= 1 || n > len || !strbuf_str(&r->out))
		return;
	path = r->out.data + start;
	if (memcmp(path, root->data, n) || (path[n] && path[n] != '/') ||
	    !quark_reader_exists(r->reader, v->ids.uid, v->tgid, v->start))
		return;
	memmove(path, path + n, len - n + 1);
	r->out.len -= n;
	if (r->out.len == start)
		strbuf_add(&r->out, "/", 1);
}

/*
 * The first of these that is known: the names from the kernel; the link of /proc;
 * execve's path resolved, if it is that file; execve's path.
 */
static size_t put_exe(struct kprobe_record *r, struct abi_quark_image *im,
		      const struct kprobe_values *v)
{
	size_t start = r->out.len;
	char path[ABI_QUARK_PATH_MAX];
	struct stat st;

	if (kprobe_path(r->paths, v->exe_mnt, v->exe, KPROBE_EXE_LEVELS,
			&r->out) ||
	    (quark_reader_stat(r->reader, v->ids.uid, v->tgid, "exe", &st) &&
	     kprobe_same_file(&st, im) &&
	     quark_reader_link(r->reader, v->ids.uid, v->tgid, "exe",
			       &r->out))) {
		beneath_root(r, v, start);
		return r->out.len - start;
	}
	if (r->filename[0] == '/' && !stat(r->filename, &st) &&
	    kprobe_same_file(&st, im) && realpath(r->filename, path)) {
		strbuf_puts(&r->out, path);
		return r->out.len - start;
	}
	if (im->head.kind == ABI_QUARK_EXEC && r->filename[0]) {
		im->head.flags |= ABI_QUARK_PATH_CUT;
		strbuf_puts(&r->out, r->filename);
	}
	return r->out.len - start;
}

/* Arguments from the probe, or from the process if they are too long for it. */
static void kprobe_put_args(struct kprobe_record *r, struct abi_quark_image *im,
			    const struct kprobe_values *v,
			    const struct quark_spans *live)
{
	size_t len = v->arg_end - v->arg_start;

	if (v->arg_end <= v->arg_start)
		return;
	if (len > KPROBE_ARGS_MAX && live->cmdline.p) {
		im->args_len = live->cmdline.len;
		strbuf_add(&r->out, live->cmdline.p, live->cmdline.len);
		if (len > ABI_QUARK_ARGS_MAX)
			im->head.flags |= ABI_QUARK_ARGS_CUT;
		return;
	}
	if (len > KPROBE_ARGS_MAX) {
		im->head.flags |= ABI_QUARK_ARGS_CUT;
		len = KPROBE_ARGS_MAX;
	}
	im->args_len = len;
	strbuf_add(&r->out, v->args, len);
}

static void put_env(struct kprobe_record *r, struct abi_quark_image *im,
		    const struct kprobe_values *v,
		    const struct quark_spans *live)
{
	size_t len = v->env_end - v->env_start;

	if (v->env_end <= v->env_start)
		return;
	if (live->env.p) {
		im->env_len = live->env.len;
		strbuf_add(&r->out, live->env.p, live->env.len);
		return;
	}
	im->env_len = MIN(MIN(len, sizeof(v->env)), r->max_env);
	strbuf_add(&r->out, v->env, im->env_len);
}

static bool has_file(const struct kprobe_values *v)
{
	return v->mm && v->exe_file;
}

static void kprobe_fill_image(struct abi_quark_image *im,
			      enum abi_quark_kind kind,
			      const struct kprobe_sample *s,
			      const struct kprobe_values *v)
{
	memset(im, 0, sizeof(*im));
	kprobe_fill_head(&im->head, kind, s, v);
	fill_parent(&im->parent, v);
	fill_comm(im->comm, v);
	kprobe_fill_ids(&im->ids, v);
	if (!has_file(v))
		return;
	im->dev = v->dev;
	im->ino = v->ino;
	im->size = v->size;
	im->ctime_ns =
		v->ctime_sec * CLOCK_NSEC_PER_SEC + (v->ctime_nsec & NSEC_MASK);
}

/* Appends cwd and cgroup, in this order. */
static void put_places(struct kprobe_record *r, const struct kprobe_values *v,
		       uint32_t *cwd_len, uint32_t *cgroup_len)
{
	size_t start = r->out.len;
	const char *cgroup;

	/* A kernel thread has no cwd. */
	if (!(v->flags & PF_KTHREAD) &&
	    ((v->fs && kprobe_path(r->paths, v->cwd_mnt, v->cwd,
				   KPROBE_CWD_LEVELS, &r->out)) ||
	     quark_reader_link(r->reader, v->ids.uid, v->tgid, "cwd", &r->out)))
		beneath_root(r, v, start);
	*cwd_len = r->out.len - start;
	start = r->out.len;
	cgroup = kprobe_cgroup(r->paths, v->cgroup);
	if (cgroup)
		strbuf_puts(&r->out, cgroup);
	else
		quark_reader_cgroup(r->reader, v->ids.uid, v->tgid, v->start,
				    &r->out);
	*cgroup_len = r->out.len - start;
}

/* The record, which 'out' begins with, is complete now: its strings follow it. */
static int send_with_strings(struct kprobe_record *r, const void *record,
			     size_t size, ring_fn fn, void *arg)
{
	if (!strbuf_str(&r->out))
		return -ENOMEM;
	memcpy(r->out.data, record, size);
	return fn(arg, r->out.data, r->out.len);
}

/* The current cwd and cgroup, of values read after the event. */
static int record_places(struct kprobe_record *r, const struct kprobe_sample *s,
			 const struct kprobe_values *v, ring_fn fn, void *arg)
{
	struct abi_quark_id_change e = { 0 };

	kprobe_fill_head(&e.head, ABI_QUARK_ID_CHANGE, s, v);
	kprobe_fill_ids(&e.ids, v);
	strbuf_reset(&r->out);
	strbuf_add(&r->out, &e, sizeof(e));
	put_places(r, v, &e.cwd_len, &e.cgroup_len);
	return send_with_strings(r, &e, sizeof(e), fn, arg);
}

static int send_image(struct kprobe_record *r, struct abi_quark_image *im,
		      const struct kprobe_values *v,
		      const struct quark_spans *live, ring_fn fn, void *arg)
{
	strbuf_reset(&r->out);
	strbuf_add(&r->out, im, sizeof(*im));
	if (has_file(v))
		im->exe_len = put_exe(r, im, v);
	if (im->head.kind == ABI_QUARK_EXEC)
		kprobe_put_args(r, im, v, live);
	put_places(r, v, &im->cwd_len, &im->cgroup_len);
	if (im->head.kind == ABI_QUARK_EXEC && r->max_env)
		put_env(r, im, v, live);
	return send_with_strings(r, im, sizeof(*im), fn, arg);
}

/* Strings from /proc; none if the image read afterwards is another one. */
static void read_live(struct kprobe_record *r, const struct kprobe_values *v,
		      struct quark_spans *live)
{
	struct quark_text text = { .pid = v->tgid,
				   .uid = v->ids.uid,
				   .start = v->start };
	struct kprobe_values *now;

	memset(live, 0, sizeof(*live));
	if (v->arg_end - v->arg_start <= KPROBE_ARGS_MAX &&
	    MIN(v->env_end - v->env_start, r->max_env) <= sizeof(v->env))
		return;
	now = malloc(sizeof(*now));
	quark_reader_strings(r->reader, &text, 1, r->max_env, &r->proc);
	quark_text_spans(&text, &r->proc, live);
	if (!now || !text.known || !r->ask(r->arg, v->tgid, now) ||
	    now->start != v->start || now->exec_id != v->exec_id)
		memset(live, 0, sizeof(*live));
	free(now);
}

static int record_exec(struct kprobe_record *r, const struct kprobe_sample *s,
		       const struct kprobe_values *v, ring_fn fn, void *arg)
{
	struct quark_spans live;
	struct abi_quark_image im;

	kprobe_fill_image(&im, ABI_QUARK_EXEC, s, v);
	im.head.tid = s->exec_tid;
	read_live(r, v, &live);
	return send_image(r, &im, v, &live, fn, arg);
}

static int record_scan(struct kprobe_record *r, const struct kprobe_sample *s,
		       const struct kprobe_values *v, ring_fn fn, void *arg)
{
	static const struct quark_spans none;
	struct abi_quark_image im;

	kprobe_fill_image(&im, ABI_QUARK_TASK, s, v);
	if (!v->live) {
		im.head.flags |= ABI_QUARK_GROUP_DEAD;
		im.wait_status = kprobe_wait_status(v);
	}
	r->filename[0] = '\0';
	return send_image(r, &im, v, &none, fn, arg);
}

int kprobe_record(struct kprobe_record *r, enum kprobe_id id,
		  const struct kprobe_sample *s, const struct kprobe_values *v,
		  ring_fn fn, void *arg)
{
	static int (*const makers[KPROBE_MAX])(struct kprobe_record *,
					       const struct kprobe_sample *,
					       const struct kprobe_values *,
					       ring_fn, void *) = {
		[KPROBE_FORK] = record_fork,
		[KPROBE_EXEC] = record_exec,
		[KPROBE_EXIT] = record_exit,
		[KPROBE_REAP] = record_reap,
		[KPROBE_RENAME] = record_rename,
		[KPROBE_UID] = record_ids,
		[KPROBE_SID] = record_ids,
		[KPROBE_SCAN] = record_scan,
		[KPROBE_CWD] = record_places,
		[KPROBE_CGROUP] = record_places,
	};

	r->rooted = false;
	return makers[id] ? makers[id](r, s, v, fn, arg) : 0;
}
