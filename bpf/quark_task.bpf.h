/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* quark_task: what a record says of a task, out of the kernel's structures. */
#ifndef BPF_QUARK_TASK_BPF_H
#define BPF_QUARK_TASK_BPF_H

#include "bpf/abi.h"
#include "bpf/quark_pack.bpf.h"

static __always_inline void fill_key(struct abi_key *key, struct task_struct *task)
{
	key->start_boottime = task->group_leader->start_boottime;
	key->exec_id = task->self_exec_id;
	key->tgid = task->tgid;
	key->pad = 0;
}

static __always_inline __u64 cap(const kernel_cap_t *c)
{
	__u64 bits = 0;

	bpf_probe_read_kernel(&bits, sizeof(bits), c);
	return bits;
}

/* One behind the other, unless the kernel's structures are shuffled. */
static __always_inline bool caps_in_order(void)
{
	return bpf_core_field_offset(struct cred, cap_permitted) -
			       bpf_core_field_offset(struct cred, cap_inheritable) ==
		       8 &&
	       bpf_core_field_offset(struct cred, cap_effective) -
			       bpf_core_field_offset(struct cred, cap_inheritable) ==
		       16 &&
	       bpf_core_field_offset(struct cred, cap_bset) -
			       bpf_core_field_offset(struct cred, cap_inheritable) ==
		       24 &&
	       bpf_core_field_offset(struct cred, cap_ambient) -
			       bpf_core_field_offset(struct cred, cap_inheritable) ==
		       32;
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
	ids->cap_inheritable = cap(&cred->cap_inheritable);
	ids->cap_permitted = cap(&cred->cap_permitted);
	ids->cap_effective = cap(&cred->cap_effective);
	ids->cap_bset = cap(&cred->cap_bset);
	ids->cap_ambient = cap(&cred->cap_ambient);
}

static __always_inline __u32 pid_nr(const struct signal_struct *sig, enum pid_type type)
{
	struct pid *pid = sig->pids[type];

	return pid ? BPF_CORE_READ(pid, numbers[0].nr) : 0;
}

static void fill_ids(struct abi_quark_ids *ids, struct task_struct *task)
{
	struct signal_struct *sig = task->signal;
	struct nsproxy *ns = task->nsproxy;
	struct tty_struct *tty = sig->tty;

	fill_cred(ids, task->real_cred);
	ids->pgid = pid_nr(sig, PIDTYPE_PGID);
	ids->sid = pid_nr(sig, PIDTYPE_SID);
	ids->tty_major = tty ? tty->driver->major : 0;
	ids->tty_minor = tty ? tty->driver->minor_start + tty->index : 0;
	ids->uts_inonum = ns ? ns->uts_ns->ns.inum : 0;
	ids->ipc_inonum = ns ? ns->ipc_ns->ns.inum : 0;
	ids->mnt_inonum = ns ? ns->mnt_ns->ns.inum : 0;
	ids->net_inonum = ns ? ns->net_ns->ns.inum : 0;
}

/* wait_task_zombie(): the group's code, else the leader's, never the last thread's. */
static __always_inline __s32 wait_status(struct task_struct *task)
{
	struct signal_struct *sig = task->signal;

	if (sig->flags & SIGNAL_GROUP_EXIT)
		return sig->group_exit_code;
	return task->group_leader->exit_code;
}

/*
 * In execve the new name comes before the new generation, and before it is sure
 * that the exec succeeds: the exec's own record brings it.
 */
static __always_inline bool in_execve(struct task_struct *task)
{
	return bpf_core_field_exists(task->in_execve) &&
	       BPF_CORE_READ_BITFIELD_PROBED(task, in_execve);
}

#endif /* BPF_QUARK_TASK_BPF_H */
