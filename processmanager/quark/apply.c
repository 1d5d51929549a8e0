// SPDX-License-Identifier: Apache-2.0
/*
 * apply: one record of the kernel changes the cache and becomes the event. Records
 * arrive here in order of time: a fork copies a process from its origin, an exec
 * gives it another image, exit and reap end it. Older records of the process that
 * events still hold do not change.
 */
#include <errno.h>
#include <linux/sched.h>
#include <string.h>
#include <unistd.h>

#include "processmanager/quark/priv.h"

static uint64_t apply_wall_time(const struct quark_queue_priv *qq,
				uint64_t boottime)
{
	return boottime + qq->wall_offset;
}

static struct quark_key public_key(const struct abi_key *k)
{
	return (struct quark_key){
		.start_boottime = k->start_boottime,
		.exec_id = k->exec_id,
		.pid = k->tgid,
	};
}

static void set_ids(struct quark_process *p, const struct abi_quark_ids *ids)
{
	p->proc_uid = ids->uid;
	p->proc_gid = ids->gid;
	p->proc_suid = ids->suid;
	p->proc_sgid = ids->sgid;
	p->proc_euid = ids->euid;
	p->proc_egid = ids->egid;
	p->proc_pgid = ids->pgid;
	p->proc_sid = ids->sid;
	p->proc_tty_major = ids->tty_major;
	p->proc_tty_minor = ids->tty_minor;
	p->proc_uts_inonum = ids->uts_inonum;
	p->proc_ipc_inonum = ids->ipc_inonum;
	p->proc_mnt_inonum = ids->mnt_inonum;
	p->proc_net_inonum = ids->net_inonum;
	p->proc_cap_inheritable = ids->cap_inheritable;
	p->proc_cap_permitted = ids->cap_permitted;
	p->proc_cap_effective = ids->cap_effective;
	p->proc_cap_bset = ids->cap_bset;
	p->proc_cap_ambient = ids->cap_ambient;
}

static void set_flag(uint32_t *flags, uint32_t bit, bool on)
{
	*flags = on ? *flags | bit : *flags & ~bit;
}

/*
 * The entry of a record's process. If the record of its fork was lost, the entry
 * begins with what this record contains.
 */
static struct quark_proc *find_or_add(struct quark_queue_priv *qq,
				      const struct abi_quark_head *h,
				      const struct abi_key *parent)
{
	struct quark_proc *proc = quark_cache_find(&qq->cache, &h->key);
	struct quark_process *p;

	if (proc)
		return proc;
	proc = quark_cache_add(&qq->cache, &h->key);
	if (!proc)
		return NULL;
	p = &proc->rec->p;
	p->proc_time_boot = apply_wall_time(qq, h->key.start_boottime);
	set_flag(&p->x_flags, QUARK_X_KTHREAD, h->flags & ABI_QUARK_KTHREAD);
	if (parent) {
		p->parent_key = public_key(parent);
		p->proc_ppid = parent->tgid;
	}
	return proc;
}

/* Older than the scan that read the process: the change is in what it read. */
static bool in_scan(const struct quark_proc *proc,
		    const struct abi_quark_head *h)
{
	return h->time < proc->snap_time;
}

static bool own_events(const struct quark_queue_priv *qq)
{
	return qq->attr.flags & (QQ_NO_AGG | QQ_OWN_EVENTS);
}

static struct quark_proc *parent_of(struct quark_queue_priv *qq,
				    const struct quark_process *p)
{
	const struct abi_key key = { p->parent_key.start_boottime, 0,
				     p->parent_key.pid, 0 };

	return quark_cache_find(&qq->cache, &key);
}

static void find_leader(struct quark_queue_priv *qq, struct quark_process *p)
{
	struct quark_proc *parent;

	if (!(qq->attr.flags & QQ_ENTRY_LEADER))
		return;
	parent = parent_of(qq, p);
	quark_entry_leader(p, parent ? &parent->rec->p : NULL);
}

/* What an event changes in its process before it is given out. */
static void apply_enrich(struct quark_queue_priv *qq, struct quark_record *rec)
{
	find_leader(qq, &rec->p);
	if (qq->attr.ruleset)
		rec->p.poison_tag |=
			quark_ruleset_poison(qq->attr.ruleset, &qq->event);
}

/* Writes to 'rec', unless the event is a thread's. */
static int apply_emit(struct quark_queue_priv *qq,
		      const struct abi_quark_head *h, uint64_t events,
		      struct quark_record *rec)
{
	struct quark_event *ev = &qq->event;

	ev->events = events;
	ev->boottime = h->time;
	ev->time = apply_wall_time(qq, h->time);
	ev->tid = h->tid;
	ev->process = &rec->p;
	if (!qq->event_thread)
		apply_enrich(qq, rec);
	qq->event_rec = quark_record_get(rec);
	return 1;
}

/* An event of a thread other than the leader leaves the process as it is. */
static int emit_thread(struct quark_queue_priv *qq,
		       const struct abi_quark_head *h, uint64_t events,
		       struct quark_record *rec)
{
	qq->event_thread = true;
	return apply_emit(qq, h, events, rec);
}

/* A probe may not know the start; the process runs, so it is the youngest. */
static struct quark_proc *find_origin(const struct quark_queue_priv *qq,
				      const struct abi_key *key)
{
	return key->start_boottime ? quark_cache_find(&qq->cache, key)
				   : quark_cache_newest(&qq->cache, key->tgid);
}

static int apply_fork(struct quark_queue_priv *qq, const struct quark_raw *raw)
{
	const struct abi_quark_fork *f = (const void *)raw->data;
	struct quark_proc *proc, *origin;
	struct quark_record *rec;
	struct quark_process *p;

	qq->event.clone_flags = f->clone_flags;
	qq->event.fork_key = public_key(&f->origin);
	proc = quark_cache_find(&qq->cache, &f->head.key);
	if (proc && (f->clone_flags & CLONE_THREAD))
		return emit_thread(qq, &f->head, QUARK_EV_FORK, proc->rec);
	if (proc && in_scan(proc, &f->head))
		return 0;
	proc = find_or_add(qq, &f->head, &f->parent);
	rec = proc ? quark_proc_edit(proc) : NULL;
	if (!rec)
		return -ENOMEM;
	p = &rec->p;
	origin = find_origin(qq, &f->origin);
	if (origin && origin != proc) {
		qq->event.fork_key.start_boottime =
			origin->rec->p.key.start_boottime;
		if (origin->rec->strings)
			origin->rec->strings->refs++;
		quark_record_set_strings(rec, origin->rec->strings);
		p->exe_ident = origin->rec->p.exe_ident;
		p->poison_tag = origin->rec->p.poison_tag;
		p->proc_entry_leader = origin->rec->p.proc_entry_leader;
		p->proc_entry_leader_type =
			origin->rec->p.proc_entry_leader_type;
		set_flag(&p->x_flags, QUARK_X_ARGS_CUT,
			 origin->rec->p.x_flags & QUARK_X_ARGS_CUT);
	}
	proc->named = proc->moved = proc->forked = f->head.time;
	set_flag(&p->x_flags, QUARK_X_CLONE_VM, f->clone_flags & CLONE_VM);
	p->flags |= QUARK_F_PROC;
	p->proc_ppid = f->parent.tgid;
	quark_set_parent(qq, proc, &f->parent);
	memcpy(p->comm, f->comm, sizeof(p->comm));
	set_ids(p, &f->ids);
	return apply_emit(qq, &f->head, QUARK_EV_FORK, rec);
}

/* The strings of an image record; false if its lengths are wrong. */
static bool image_strings(const struct abi_quark_image *im, size_t len,
			  struct quark_spans *out)
{
	const char *at = (const char *)(im + 1);
	const uint32_t lens[] = { im->exe_len, im->args_len, im->cwd_len,
				  im->cgroup_len, im->env_len };
	size_t i;

	memset(out, 0, sizeof(*out));
	len -= sizeof(*im);
	for (i = 0; i < ARRAY_SIZE(lens); i++) {
		if (lens[i] > len)
			return false;
		if (lens[i])
			out->all[i] = (struct quark_span){ at, lens[i] };
		at += lens[i];
		len -= lens[i];
	}
	return true;
}

static void set_image(struct quark_process *p, const struct abi_quark_image *im)
{
	memcpy(p->comm, im->comm, sizeof(p->comm));
	set_ids(p, &im->ids);
	p->proc_ppid = im->parent.tgid;
	p->key.exec_id = im->head.key.exec_id;
	p->flags |= QUARK_F_PROC;
	p->exe_ident = quark_image_ident(im);
	p->x_flags = 0;
	set_flag(&p->x_flags, QUARK_X_ARGS_CUT,
		 im->head.flags & ABI_QUARK_ARGS_CUT);
	set_flag(&p->x_flags, QUARK_X_KTHREAD,
		 im->head.flags & ABI_QUARK_KTHREAD);
	set_flag(&p->x_flags, QUARK_X_HIDDEN,
		 im->head.flags & QUARK_RAW_HIDDEN);
}

static int apply_exec(struct quark_queue_priv *qq, const struct quark_raw *raw)
{
	const struct abi_quark_image *im = (const void *)raw->data;
	struct quark_spans init;
	struct quark_strings *strings;
	struct quark_record *rec;
	struct quark_proc *proc;
	bool stale;

	if (!image_strings(im, raw->len, &init))
		return 0;
	proc = find_or_add(qq, &im->head, &im->parent);
	if (!proc)
		return -ENOMEM;
	if (in_scan(proc, &im->head))
		return 0;
	/* An exec does not change the cgroup: a record without one lacks it. */
	if (!init.cgroup.p)
		init.cgroup = quark_spans_of(&proc->rec->p).cgroup;
	/* An event, but the cache has a newer image. */
	stale = im->head.key.exec_id < proc->rec->p.key.exec_id;
	strings = quark_strings_new(&init);
	rec = stale ? quark_record_copy(proc->rec) : quark_proc_edit(proc);
	if (!strings || !rec) {
		quark_strings_put(strings);
		if (stale)
			quark_record_put(rec);
		return -ENOMEM;
	}
	quark_record_set_strings(rec, strings);
	set_image(&rec->p, im);
	if (!stale) {
		proc->named = proc->moved = im->head.time;
		proc->forked = 0;
		quark_set_parent(qq, proc, &im->parent);
	}
	apply_emit(qq, &im->head, QUARK_EV_EXEC, rec);
	if (stale)
		quark_record_put(rec);
	else /* the event has all strings in any case */
		quark_cache_keep(&qq->cache, proc);
	return 1;
}

/* exit_code is what a shell's $? would be. */
static void set_exit(struct quark_queue_priv *qq, struct quark_process *p,
		     uint64_t time, int32_t status)
{
	p->flags |= QUARK_F_EXIT;
	p->wait_status = status;
	p->exit_code =
		status & 0x7f ? 128 + (status & 0x7f) : status >> 8 & 0xff;
	p->exit_boottime = time;
	p->exit_time_event = apply_wall_time(qq, time);
}

static int apply_exit(struct quark_queue_priv *qq, const struct quark_raw *raw)
{
	const struct abi_quark_exit *e = (const void *)raw->data;
	struct quark_event *ev = &qq->event;
	struct quark_record *rec;
	struct quark_proc *proc;

	ev->cpu_time = e->cpu_time;
	ev->maxrss = e->maxrss * sysconf(_SC_PAGESIZE);
	ev->minflt = e->minflt;
	ev->majflt = e->majflt;
	proc = find_or_add(qq, &e->head, &e->parent);
	if (!proc)
		return -ENOMEM;
	if (!(e->head.flags & ABI_QUARK_GROUP_DEAD))
		return emit_thread(qq, &e->head, QUARK_EV_EXIT, proc->rec);
	/* Before 6.16 two threads may both look like the last one. */
	if (proc->exited && qq->attr.flags & QQ_THREAD_EVENTS &&
	    !in_scan(proc, &e->head))
		return emit_thread(qq, &e->head, QUARK_EV_EXIT, proc->rec);
	if (proc->exited)
		return 0;
	rec = quark_proc_edit(proc);
	if (!rec)
		return -ENOMEM;
	quark_cache_exit(&qq->cache, proc, e->head.time);
	proc->cpu_time = e->cpu_time;
	ev->group_dead = 1;
	memcpy(rec->p.comm, e->comm, sizeof(rec->p.comm));
	rec->p.proc_ppid = e->parent.tgid;
	if (e->head.flags & ABI_QUARK_LAST_IDS) {
		rec->p.proc_uid = e->uid;
		rec->p.proc_gid = e->gid;
		rec->p.proc_pgid = e->pgid;
		rec->p.proc_sid = e->sid;
	}
	set_exit(qq, &rec->p, e->head.time, e->wait_status);
	quark_reparent(qq, proc);
	return apply_emit(qq, &e->head, QUARK_EV_EXIT, rec);
}

/*
 * The scheduler has the sum, ticks the proportion: as cputime_adjust() computes
 * what wait4(2) returns. Without a tick all of it is user time.
 */
static void set_cpu(struct quark_event *ev, const struct abi_quark_reap *r)
{
	unsigned __int128 scaled = r->stime;

	ev->cpu_time = r->cpu_time;
	if (!r->stime)
		scaled = 0;
	else if (!r->utime)
		scaled = r->cpu_time;
	else
		scaled = scaled * r->cpu_time / (r->utime + r->stime);
	ev->stime = scaled;
	ev->utime = r->cpu_time - ev->stime;
}

static int apply_reap(struct quark_queue_priv *qq, const struct quark_raw *raw)
{
	const struct abi_quark_reap *r = (const void *)raw->data;
	bool inferred = r->head.flags & QUARK_RAW_INFERRED;
	struct quark_event *ev = &qq->event;
	struct quark_record *rec;
	struct quark_proc *proc;

	set_cpu(ev, r);
	ev->minflt = r->minflt;
	ev->majflt = r->majflt;
	ev->cpu_exact = !inferred;
	proc = find_or_add(qq, &r->head, NULL);
	if (proc && proc->ended && (inferred || !proc->vanished)) {
		/* No more records of it will come. */
		if (!inferred)
			quark_cache_end(&qq->cache, proc, r->head.time, false);
		return 0;
	}
	rec = proc ? quark_proc_edit(proc) : NULL;
	if (!rec)
		return -ENOMEM;
	if (!proc->exited || proc->vanished) {
		/*
		 * Its exit was lost. The kernel frees a process in an RCU
		 * callback, so a scan may miss it before its reap.
		 */
		memcpy(rec->p.comm, r->comm, sizeof(rec->p.comm));
		set_exit(qq, &rec->p, r->head.time, r->wait_status);
	}
	proc->vanished = false;
	quark_reparent(qq, proc);
	quark_cache_end(&qq->cache, proc, r->head.time, inferred);
	if (!own_events(qq))
		return 0;
	return apply_emit(qq, &r->head, QUARK_EV_REAP, rec);
}

static int apply_rename(struct quark_queue_priv *qq,
			const struct quark_raw *raw)
{
	const struct abi_quark_rename *r = (const void *)raw->data;
	struct quark_record *rec;
	struct quark_proc *proc;

	qq->event.limited = r->limited;
	proc = find_or_add(qq, &r->head, NULL);
	if (!proc)
		return -ENOMEM;
	if (in_scan(proc, &r->head))
		return 0;
	/* Only the leader's name is the process's. */
	if (r->head.tid != r->head.key.tgid)
		return emit_thread(qq, &r->head, QUARK_EV_SETPROCTITLE,
				   proc->rec);
	rec = quark_proc_edit(proc);
	if (!rec)
		return -ENOMEM;
	memcpy(rec->p.comm, r->comm, sizeof(rec->p.comm));
	proc->named = r->head.time;
	return apply_emit(qq, &r->head, QUARK_EV_SETPROCTITLE, rec);
}

static uint32_t id_changes(const struct quark_process *p,
			   const struct abi_quark_ids *ids)
{
	uint32_t mask = 0;

	if (p->proc_sid != ids->sid)
		mask |= QUARK_ID_CHANGE_SETSID;
	if (p->proc_uid != ids->uid || p->proc_suid != ids->suid ||
	    p->proc_euid != ids->euid)
		mask |= QUARK_ID_CHANGE_SETUID;
	if (p->proc_gid != ids->gid || p->proc_sgid != ids->sgid ||
	    p->proc_egid != ids->egid)
		mask |= QUARK_ID_CHANGE_SETGID;
	return mask;
}

/* The paths of a change that are within the record. */
static void change_paths(const struct abi_quark_id_change *c, size_t len,
			 struct quark_spans *out)
{
	const char *at = (const char *)(c + 1);

	memset(out, 0, sizeof(*out));
	len -= sizeof(*c);
	if (c->cwd_len > len || c->cgroup_len > len - c->cwd_len)
		return;
	if (c->cwd_len)
		out->cwd = (struct quark_span){ at, c->cwd_len };
	if (c->cgroup_len)
		out->cgroup =
			(struct quark_span){ at + c->cwd_len, c->cgroup_len };
}

/* True if 'now' is known and differs; *was becomes it. */
static bool take_span(struct quark_span *was, const struct quark_span *now)
{
	if (!now->p || (was->p && was->len == now->len &&
			!memcmp(was->p, now->p, now->len)))
		return false;
	*was = *now;
	return true;
}

/*
 * Changes of ids and of the cgroup are events, changes of directory are not. A move
 * has a record for each hierarchy, but only the path of one is in all of them.
 */
static int apply_id_change(struct quark_queue_priv *qq,
			   const struct quark_raw *raw)
{
	const struct abi_quark_id_change *c = (const void *)raw->data;
	bool known = quark_cache_find(&qq->cache, &c->head.key), left, moved;
	struct quark_proc *proc = find_or_add(qq, &c->head, NULL);
	struct quark_strings *strings = NULL;
	struct quark_spans spans, now;
	struct quark_record *rec;

	if (!proc)
		return -ENOMEM;
	if (in_scan(proc, &c->head) ||
	    c->head.key.exec_id < proc->rec->p.key.exec_id)
		return 0;
	spans = quark_spans_of(&proc->rec->p);
	change_paths(c, raw->len, &now);
	left = take_span(&spans.cwd, &now.cwd);
	moved = take_span(&spans.cgroup, &now.cgroup);
	if (known)
		qq->event.id_change = id_changes(&proc->rec->p, &c->ids);
	if (known && moved && own_events(qq))
		qq->event.id_change |= QUARK_ID_CHANGE_CGROUP;
	if (left || moved) {
		strings = quark_strings_new(&spans);
		if (!strings)
			return -ENOMEM;
	}
	rec = quark_proc_edit(proc);
	if (!rec) {
		quark_strings_put(strings);
		return -ENOMEM;
	}
	if (strings)
		quark_record_set_strings(rec, strings);
	set_ids(&rec->p, &c->ids);
	proc->moved = c->head.time;
	if (qq->event.id_change)
		apply_emit(qq, &c->head, QUARK_EV_ID_CHANGE, rec);
	quark_cache_keep(&qq->cache, proc);
	return qq->event.id_change != 0;
}

static int apply_gap(struct quark_queue_priv *qq, const struct quark_raw *raw)
{
	const struct quark_raw_gap *g = (const void *)raw->data;
	struct quark_event *ev = &qq->event;

	if (!own_events(qq))
		return 0;
	ev->events = QUARK_EV_GAP;
	ev->boottime = raw->time;
	ev->time = apply_wall_time(qq, raw->time);
	ev->gap_from = raw->time;
	ev->gap_to = g->to;
	ev->gap_lost = g->lost;
	ev->gap_kinds = g->kinds;
	return 1;
}

int quark_apply(struct quark_queue_priv *qq, const struct quark_raw *raw)
{
	static int (*const handlers[])(struct quark_queue_priv *,
				       const struct quark_raw *) = {
		[ABI_QUARK_FORK] = apply_fork,
		[ABI_QUARK_EXEC] = apply_exec,
		[ABI_QUARK_EXIT] = apply_exit,
		[ABI_QUARK_ID_CHANGE] = apply_id_change,
		[ABI_QUARK_RENAME] = apply_rename,
		[ABI_QUARK_REAP] = apply_reap,
		[QUARK_RAW_GAP] = apply_gap,
	};

	memset(&qq->event, 0, sizeof(qq->event));
	qq->event_thread = false;
	if (raw->kind >= ARRAY_SIZE(handlers) || !handlers[raw->kind])
		return 0;
	return handlers[raw->kind](qq, raw);
}

int quark_apply_scanned(struct quark_queue_priv *qq,
			const struct abi_quark_image *im, size_t len,
			const struct quark_spans *live)
{
	struct quark_spans init;
	struct quark_strings *strings;
	struct quark_record *rec;
	struct quark_proc *proc;

	if (!image_strings(im, len, &init))
		return -EIO;
	init.cmdline = live->cmdline;
	init.env = live->env;
	proc = find_or_add(qq, &im->head, &im->parent);
	rec = proc ? quark_proc_edit(proc) : NULL;
	strings = rec ? quark_strings_new(&init) : NULL;
	if (!strings)
		return -ENOMEM;
	quark_record_set_strings(rec, strings);
	set_image(&rec->p, im);
	quark_set_parent(qq, proc, &im->parent);
	proc->forked = 0;
	/* As much as was asked for: probably not all. */
	if (init.cmdline.len == ABI_QUARK_ARGS_MAX)
		set_flag(&rec->p.x_flags, QUARK_X_ARGS_CUT, true);
	if (im->head.flags & ABI_QUARK_GROUP_DEAD && !proc->exited) {
		quark_cache_exit(&qq->cache, proc, im->head.time);
		set_exit(qq, &rec->p, im->head.time, im->wait_status);
	}
	quark_cache_keep(&qq->cache, proc);
	return 0;
}

/*
 * Sets *out to the known strings, changed ones included; arguments are read from
 * /proc again if they may be another image's. False: none has changed.
 */
static bool refresh_strings(struct quark_queue_priv *qq,
			    const struct quark_proc *proc,
			    const struct abi_quark_image *im, size_t len,
			    uint64_t gap, struct strbuf *sb,
			    struct quark_spans *out)
{
	struct quark_spans now;
	struct quark_text text = { 0 };
	bool news = false;

	*out = quark_spans_of(&proc->rec->p);
	if (!image_strings(im, len, &now))
		return false;
	if (proc->moved < im->head.time) {
		news |= take_span(&out->cwd, &now.cwd);
		news |= take_span(&out->cgroup, &now.cgroup);
	}
	if (im->head.flags & ABI_QUARK_KTHREAD)
		return news;
	if (!take_span(&out->exe, &now.exe) && proc->forked < gap)
		return news;
	text.pid = im->head.key.tgid;
	text.uid = im->ids.uid;
	text.start = im->head.key.start_boottime;
	text.hidden = im->head.flags & QUARK_RAW_HIDDEN;
	quark_read_strings(qq, &text, 1, sb);
	quark_text_spans(&text, sb, &now);
	take_span(&out->cmdline, &now.cmdline);
	take_span(&out->env, &now.env);
	return true;
}

int quark_apply_refresh(struct quark_queue_priv *qq,
			const struct abi_quark_image *im, size_t len,
			uint64_t gap, struct strbuf *sb)
{
	struct quark_proc *proc = quark_cache_find(&qq->cache, &im->head.key);
	struct quark_strings *strings = NULL;
	struct quark_spans init;
	struct quark_record *rec;
	struct quark_process p;
	bool news, args;

	if (!proc || proc->exited ||
	    proc->rec->p.key.exec_id != im->head.key.exec_id)
		return 0;
	quark_set_parent(qq, proc, &im->parent);
	p = proc->rec->p;
	if (im->ino)
		p.exe_ident = quark_image_ident(im);
	p.proc_ppid = im->parent.tgid;
	if (proc->moved < im->head.time)
		set_ids(&p, &im->ids);
	if (proc->named < im->head.time)
		memcpy(p.comm, im->comm, sizeof(p.comm));
	news = refresh_strings(qq, proc, im, len, gap, sb, &init);
	if (!news && !memcmp(&p, &proc->rec->p, sizeof(p)))
		return 0;
	args = init.cmdline.p != p.cmdline;
	if (news)
		strings = quark_strings_new(&init);
	rec = !news || strings ? quark_proc_edit(proc) : NULL;
	if (!rec) {
		quark_strings_put(strings);
		return -ENOMEM;
	}
	rec->p = p;
	if (strings)
		quark_record_set_strings(rec, strings);
	if (args)
		set_flag(&rec->p.x_flags, QUARK_X_ARGS_CUT,
			 rec->p.cmdline_len == ABI_QUARK_ARGS_MAX);
	quark_cache_keep(&qq->cache, proc);
	return 0;
}

/* Its exit and reap were lost: when and how it ended is unknown. */
int quark_apply_vanished(struct quark_queue_priv *qq, struct quark_proc *proc)
{
	struct quark_record *rec = quark_proc_edit(proc);

	if (!rec)
		return -ENOMEM;
	set_exit(qq, &rec->p, qq->watermark, 0);
	proc->vanished = true;
	quark_cache_end(&qq->cache, proc, qq->watermark, true);
	return 0;
}

/* The entry of its parent, if that is not settled yet. */
static struct quark_proc *unsettled_parent(struct quark_queue_priv *qq,
					   const struct quark_proc *proc)
{
	struct quark_proc *parent = parent_of(qq, &proc->rec->p);

	return parent && !parent->settled ? parent : NULL;
}

static void settle_scanned(struct quark_queue_priv *qq, struct quark_proc *proc)
{
	struct quark_record *rec = quark_proc_edit(proc);
	struct quark_proc *parent;
	struct quark_process *p;
	struct quark_event ev = { 0 };

	/* Without memory it stays as it is. */
	if (!rec)
		return;
	p = &rec->p;
	ev.process = p;
	parent = parent_of(qq, p);
	/* Unknown when the process's own record was read. */
	if (parent && !proc->parent && parent != proc && !proc->exited)
		quark_cache_adopt(proc, parent);
	if (parent)
		p->poison_tag |= parent->rec->p.poison_tag;
	find_leader(qq, p);
	if (qq->attr.ruleset)
		p->poison_tag |= quark_ruleset_poison(qq->attr.ruleset, &ev);
}

/*
 * Parents first: children inherit from them. Processes may be nested as deep as
 * there are pids, so the way back down is in the entries, not on the stack.
 * 'settled' is set on the way up, so that a cycle of parents ends.
 */
void quark_apply_scan_end(struct quark_queue_priv *qq)
{
	struct quark_proc *proc, *at, *up;

	TAILQ_FOREACH(proc, &qq->cache.all, link) {
		if (proc->settled)
			continue;
		proc->settled = true;
		proc->below = NULL;
		for (at = proc; (up = unsettled_parent(qq, at)); at = up) {
			up->settled = true;
			up->below = at;
		}
		for (; at; at = at->below)
			settle_scanned(qq, at);
	}
}
