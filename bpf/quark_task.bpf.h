/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* quark_task: a record's values of a task, from the kernel's structures. */
#ifndef BPF_QUARK_TASK_BPF_H
#define BPF_QUARK_TASK_BPF_H

#include "bpf/abi.h"
#include "bpf/cast.bpf.h"
#include "bpf/quark_pack.bpf.h"

/*
 * For each pointer loaded from a trusted task, the verifier searches the kernel's BTF up to four
 * times for a safe type of that name (6.4 and newer): together some 20 ms of CPU at each start.
 * A task that was cast is not trusted, so nothing is searched, and the loads stay plain ones.
 * Kernels before 6.2 have no cast and do not search.
 */
static __always_inline struct task_struct *task_cast(struct task_struct *task)
{
	if (!CAST_EXISTS)
		return task;
	return bpf_rdonly_cast(task, bpf_core_type_id_kernel(struct task_struct));
}

static __always_inline void fill_key(struct abi_key *key, struct task_struct *task)
{
	struct task_struct *leader;

	task = task_cast(task);
	leader = task->group_leader;
	key->start_boottime = leader->start_boottime;
	key->exec_id = task->self_exec_id;
	key->tgid = task->tgid;
	key->pad = 0;
}

static __always_inline __u64 task_cap(const kernel_cap_t *c)
{
	__u64 bits = 0;

	bpf_probe_read_kernel(&bits, sizeof(bits), c);
	return bits;
}

#define CAP_OFFSET(member)                            \
	(bpf_core_field_offset(struct cred, member) - \
	 bpf_core_field_offset(struct cred, cap_inheritable))

/* Adjacent, unless the kernel randomizes the layout of structures. */
static __always_inline bool caps_in_order(void)
{
	return CAP_OFFSET(cap_permitted) == 8 && CAP_OFFSET(cap_effective) == 16 &&
	       CAP_OFFSET(cap_bset) == 24 && CAP_OFFSET(cap_ambient) == 32;
}

static __always_inline void fill_cred(struct abi_quark_ids *ids, const struct cred *cred)
{
	ids->uid = cred->uid.val;
	ids->gid = cred->gid.val;
	ids->suid = cred->suid.val;
	ids->sgid = cred->sgid.val;
	ids->euid = cred->euid.val;
	ids->egid = cred->egid.val;
	if (caps_in_order()) {
		bpf_probe_read_kernel(&ids->cap_inheritable, CAPS * sizeof(__u64),
				      &cred->cap_inheritable);
		return;
	}
	ids->cap_inheritable = task_cap(&cred->cap_inheritable);
	ids->cap_permitted = task_cap(&cred->cap_permitted);
	ids->cap_effective = task_cap(&cred->cap_effective);
	ids->cap_bset = task_cap(&cred->cap_bset);
	ids->cap_ambient = task_cap(&cred->cap_ambient);
}

static __always_inline __u32 pid_nr(const struct signal_struct *sig, enum pid_type type)
{
	struct pid *pid = sig->pids[type];

	return pid ? BPF_CORE_READ(pid, numbers[0].nr) : 0;
}

static __always_inline void fill_tty(struct abi_quark_ids *ids, struct tty_struct *tty)
{
	ids->tty_major = BPF_CORE_READ(tty, driver, major);
	ids->tty_minor = BPF_CORE_READ(tty, driver, minor_start) + BPF_CORE_READ(tty, index);
}

static __always_inline void task_fill_ids(struct abi_quark_ids *ids, struct task_struct *task)
{
	struct signal_struct *sig;
	struct nsproxy *ns;

	task = task_cast(task);
	sig = task->signal;
	ns = task->nsproxy;
	fill_cred(ids, task->real_cred);
	ids->pgid = pid_nr(sig, PIDTYPE_PGID);
	ids->sid = pid_nr(sig, PIDTYPE_SID);
	ids->tty_major = ids->tty_minor = 0;
	if (sig->tty)
		fill_tty(ids, sig->tty);
	ids->uts_inonum = ids->ipc_inonum = ids->mnt_inonum = ids->net_inonum = 0;
	if (!ns)
		return;
	ids->uts_inonum = ns->uts_ns->ns.inum;
	ids->ipc_inonum = ns->ipc_ns->ns.inum;
	ids->mnt_inonum = ns->mnt_ns->ns.inum;
	ids->net_inonum = ns->net_ns->ns.inum;
}

/* As wait_task_zombie(): the group's code, or the leader's, never the last thread's. */
static __always_inline __s32 task_wait_status(struct task_struct *leader, struct signal_struct *sig)
{
	if (sig->flags & SIGNAL_GROUP_EXIT)
		return sig->group_exit_code;
	return leader->exit_code;
}

/*
 * execve sets the new name before the new generation, and before it is certain to succeed:
 * the exec's own record has the name.
 */
static __always_inline bool in_execve(struct task_struct *task)
{
	return bpf_core_field_exists(task->in_execve) &&
	       BPF_CORE_READ_BITFIELD_PROBED(task, in_execve);
}

#endif /* BPF_QUARK_TASK_BPF_H */
