/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Kernel types, with only the members that profd's programs read. libbpf corrects their
 * offsets when it loads a program (CO-RE), so that names and types matter here, but not
 * order and gaps. Programs check with bpf_core_field_exists() for a member that some
 * supported kernel lacks. Types that differ between kernels have a suffix (___6_16).
 */
#ifndef __VMLINUX_H__
#define __VMLINUX_H__

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef int __s32;
typedef long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef int pid_t;
typedef _Bool bool;

enum {
	false = 0,
	true = 1,
};

/* include/uapi/linux/bpf.h: stable. */
enum bpf_map_type {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERF_EVENT_ARRAY = 4,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_STACK = 23,
	BPF_MAP_TYPE_SK_STORAGE = 24,
	BPF_MAP_TYPE_RINGBUF = 27,
	BPF_MAP_TYPE_TASK_STORAGE = 29,
};

enum {
	BPF_RB_NO_WAKEUP = 1,
	BPF_RB_FORCE_WAKEUP = 2,
	BPF_RB_AVAIL_DATA = 0,
	BPF_RB_RING_SIZE = 1,
};

enum {
	BPF_F_NO_PREALLOC = 1,
	BPF_F_CLONE = 512,
	BPF_F_MMAPABLE = 1024,
};

#define BPF_F_CURRENT_CPU 0xffffffffULL

enum {
	BPF_NOEXIST = 1,
	BPF_LOCAL_STORAGE_GET_F_CREATE = 1,
};

#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wpadded"

struct bpf_raw_tracepoint_args {
	__u64 args[0];
};

struct bpf_dynptr {
	__u64 opaque[2];
} __attribute__((aligned(8)));

/*
 * The registers at the entry to the kernel. All of them, in order: offsets in the context
 * of a perf_event program are not corrected. The layout is that of ptrace(2).
 */
#ifdef __TARGET_ARCH_arm64
struct pt_regs { /* the part that is struct user_pt_regs, and what follows it */
	__u64 regs[31], sp, pc, pstate;
	__u64 orig_x0;
};
#define SYSCALL_NR(r) ((r)->regs[8])
#else
struct pt_regs {
	unsigned long r15, r14, r13, r12, bp, bx;
	unsigned long r11, r10, r9, r8, ax, cx, dx, si, di;
	unsigned long orig_ax;
	unsigned long ip, cs, flags, sp, ss;
};
#define SYSCALL_NR(r) ((r)->orig_ax)
#endif

struct bpf_perf_event_data {
	struct pt_regs regs;
	__u64 sample_period;
	__u64 addr;
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

typedef struct {
	int counter;
} atomic_t;

typedef struct {
	unsigned int val;
} kuid_t;

typedef struct {
	unsigned int val;
} kgid_t;

/* Two __u32 before 6.3, one __u64 since: eight bytes. */
typedef struct {
	__u64 val;
} kernel_cap_t;

struct cred {
	kuid_t uid;
	kgid_t gid;
	kuid_t suid;
	kgid_t sgid;
	kuid_t euid;
	kgid_t egid;
	kernel_cap_t cap_inheritable;
	kernel_cap_t cap_permitted;
	kernel_cap_t cap_effective;
	kernel_cap_t cap_bset;
	kernel_cap_t cap_ambient;
};

struct upid {
	int nr;
};

struct pid {
	struct upid numbers[1];
};

enum pid_type {
	PIDTYPE_PGID = 2,
	PIDTYPE_SID = 3,
	PIDTYPE_MAX = 4,
};

struct ns_common {
	unsigned int inum;
};

struct uts_namespace {
	struct ns_common ns;
};

struct ipc_namespace {
	struct ns_common ns;
};

struct mnt_namespace {
	struct ns_common ns;
};

struct net {
	struct ns_common ns;
};

struct nsproxy {
	struct uts_namespace *uts_ns;
	struct ipc_namespace *ipc_ns;
	struct mnt_namespace *mnt_ns;
	struct net *net_ns;
};

struct tty_driver {
	int major;
	int minor_start;
};

struct tty_struct {
	int index;
	struct tty_driver *driver;
};

struct signal_struct {
	atomic_t live;
	int group_exit_code;
	unsigned int flags;
	struct pid *pids[PIDTYPE_MAX];
	struct tty_struct *tty;
	__u64 utime;
	__u64 stime;
	unsigned long min_flt;
	unsigned long maj_flt;
	unsigned long maxrss;
	unsigned long long sum_sched_runtime;
};

#define SIGNAL_GROUP_EXIT 0x00000004 /* linux/sched/signal.h */

struct qstr {
	__u32 len;
	const unsigned char *name;
};

struct super_block {
	__u32 s_dev;
	unsigned long s_magic;
};

struct timespec64 {
	__s64 tv_sec;
	long tv_nsec;
};

struct inode {
	unsigned short i_mode;
	struct super_block *i_sb;
	unsigned long i_ino;
	long long i_size;
	__s64 i_ctime_sec; /* 6.11 */
	__u32 i_ctime_nsec;
};

struct trace_event_raw_sched_process_exit___6_16 {
	bool group_dead;
};

struct trace_event_raw_tcp_retransmit_skb___6_17 {
	int err;
};

struct inode___6_6 {
	struct timespec64 __i_ctime; /* 6.6 to 6.10 */
};

struct inode___6_1 {
	struct timespec64 i_ctime; /* before 6.6 */
};

struct dentry {
	struct dentry *d_parent;
	struct qstr d_name;
};

struct vfsmount {
	struct dentry *mnt_root;
};

struct mount {
	struct mount *mnt_parent;
	struct dentry *mnt_mountpoint;
	struct vfsmount mnt;
};

struct path {
	struct vfsmount *mnt;
	struct dentry *dentry;
};

struct file {
	struct inode *f_inode;
	void *private_data;
	struct path f_path;
};

struct fdtable {
	unsigned int max_fds;
	struct file **fd;
};

struct files_struct {
	struct fdtable *fdt;
};

struct fs_struct {
	struct path root;
	struct path pwd;
};

/* Absent without CONFIG_UPROBES, as are its users. */
struct xol_area {
	unsigned long vaddr;
};

struct hlist_node {
	struct hlist_node *next;
};

struct hlist_head {
	struct hlist_node *first;
};

struct uprobes_state {
	struct xol_area *xol_area;
	struct hlist_head head_tramps; /* 6.18 */
};

struct uprobe_trampoline {
	struct hlist_node node;
	unsigned long vaddr;
};

struct return_instance {
	unsigned long stack;
	unsigned long orig_ret_vaddr;
	struct return_instance *next;
};

struct uprobe_task {
	struct return_instance *return_instances;
	unsigned long vaddr;
	unsigned long xol_vaddr;
};

struct mm_struct {
	unsigned long start_code;
	unsigned long start_stack;
	unsigned long arg_start;
	unsigned long arg_end;
	unsigned long env_start;
	unsigned long env_end;
	struct file *exe_file;
	int map_count;
	unsigned long total_vm; /* pages, as data_vm */
	unsigned long data_vm;
	struct uprobes_state uprobes_state;
};

struct kernfs_node {
	struct kernfs_node *__parent; /* 6.15 */
	const char *name;
};

struct kernfs_node___6_14 {
	struct kernfs_node *parent;
};

struct cgroup_root;

struct cgroup {
	struct kernfs_node *kn;
	struct cgroup_root *root;
};

struct cgroup_subsys_state {
	struct cgroup *cgroup;
};

/* The numbers depend on the kernel's configuration. */
enum cgroup_subsys_id {
	memory_cgrp_id = 4,
	pids_cgrp_id = 11,
	CGROUP_SUBSYS_COUNT = 12,
};

struct css_set {
	struct cgroup_subsys_state *subsys[CGROUP_SUBSYS_COUNT];
	struct cgroup *dfl_cgrp;
};

struct rq;

struct cfs_rq {
	int throttle_count; /* absent without CONFIG_CFS_BANDWIDTH */
	struct rq *rq; /* absent without CONFIG_FAIR_GROUP_SCHED */
};

struct sched_entity {
	__u64 sum_exec_runtime;
	struct cfs_rq *cfs_rq; /* absent without CONFIG_FAIR_GROUP_SCHED */
};

struct vm_area_struct {
	unsigned long vm_start;
	unsigned long vm_end;
};

struct fpstate { /* x86 */
	unsigned int user_size;
};

struct fpu { /* x86 */
	struct fpstate *fpstate;
};

struct thread_struct { /* x86 */
	unsigned long fsbase;
	struct fpu fpu;
};

struct thread_info {
	__u32 status; /* of x86 */
	__u64 preempt_count; /* of arm64 */
};

struct task_struct {
	struct thread_info thread_info;
	unsigned int __state;
	unsigned int flags;
	int on_cpu; /* absent without CONFIG_SMP */
	bool throttled; /* 6.18 */
	struct mm_struct *mm;
	int exit_code;
	unsigned int in_execve : 1;
	unsigned int in_iowait : 1;
	unsigned int frozen : 1; /* by the freezer of control groups */
	pid_t pid;
	pid_t tgid;
	unsigned long nvcsw;
	unsigned long nivcsw;
	struct task_struct *real_parent;
	struct task_struct *group_leader;
	__u64 start_boottime;
	struct sched_entity se;
	const struct cred *real_cred;
	char comm[16];
	struct fs_struct *fs;
	struct files_struct *files;
	struct nsproxy *nsproxy;
	struct signal_struct *signal;
	struct css_set *cgroups;
	unsigned long sas_ss_sp;
	unsigned long sas_ss_size;
	__u64 self_exec_id;
	struct uprobe_task *utask;
	struct thread_struct thread;
};

#define PF_KTHREAD 0x00200000 /* linux/sched.h */
#define PF_IO_WORKER 0x00000010
#define PF_USER_WORKER 0x00004000 /* 6.4; before, a bit that no task has */
#define CLONE_THREAD 0x00010000 /* uapi/linux/sched.h */
#define CLONE_INTO_CGROUP 0x200000000ULL

/* Absent from kernels without modules. */
struct module_memory {
	void *base;
	unsigned int size;
};

struct module {
	struct module_memory mem[1]; /* 0: MOD_TEXT */
};

struct module_layout {
	void *base;
	unsigned int text_size;
};

struct module___6_3 {
	struct module_layout core_layout;
};

struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
};

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
};

struct bpf_iter__task_file {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
	__u32 fd;
	struct file *file;
};

/* --- sockets and signals ---------------------------------------------------- */

struct in6_addr {
	union {
		__u8 u6_addr8[16];
	} in6_u;
};

struct sock_common {
	__be32 skc_daddr;
	__be32 skc_rcv_saddr;
	__be16 skc_dport;
	__u16 skc_num;
	unsigned short skc_family;
	volatile unsigned char skc_state;
	struct in6_addr skc_v6_daddr; /* absent from kernels without IPv6 */
	struct in6_addr skc_v6_rcv_saddr;
};

struct sock {
	struct sock_common __sk_common;
	__u16 sk_protocol;
	int sk_err;
	__u32 sk_max_ack_backlog;
};

struct sockaddr_un {
	__u16 sun_family;
	char sun_path[108];
};

struct unix_address {
	int len; /* of name[0] */
	struct sockaddr_un name[1];
};

struct unix_sock {
	struct unix_address *addr;
	struct sock *peer;
};

struct inet_bind_bucket {
	signed char fastreuse;
};

struct inet_connection_sock {
	struct inet_bind_bucket *icsk_bind_hash;
};

struct inet_sock {
	__be16 inet_sport;
};

struct tcp_sock {
	__u32 srtt_us; /* eighths of a microsecond */
	__u32 total_retrans;
	__u32 segs_in;
	__u32 segs_out;
	__u64 bytes_acked;
	__u64 bytes_received;
};

struct socket {
	struct sock *sk;
};

struct sk_buff {
	struct sock *sk;
	__be16 protocol;
	__u16 network_header;
	unsigned int tail; /* an offset, as on all 64-bit kernels */
	unsigned char *head;
	char cb[48];
};

struct tcp_skb_cb {
	__u16 tcp_gso_segs;
};

union __sifields {
	struct {
		pid_t _pid;
	} _kill;
};

struct kernel_siginfo {
	int si_code;
	union __sifields _sifields;
};

#pragma clang attribute pop
#pragma clang diagnostic pop

#endif /* __VMLINUX_H__ */
