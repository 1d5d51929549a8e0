// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * wait: the account of every thread's time, see bpf/abi_wait.h. Loaded only with --wait,
 * since sched_switch is the busiest tracepoint there is.
 *
 * A thread's account begins when it is first put into a run queue, or when user space's
 * iterator finds it, and ends at its last switch, as TASK_DEAD. An exec closes the account
 * with the old image and opens one with the new. The state of a thread is changed by
 *
 *	sched_switch	on its CPU, with the run queue locked, as prev or next
 *	sched_waking	on any CPU, with its pi_lock: from waiting to runnable
 *	sched_wakeup	the same, where sched_waking came before the sleeper's switch
 *	exec		on its CPU
 *	the iterator	on any CPU, at any time: cuts the open interval
 *
 * Who is woken is off its CPU, so only the iterator is really beside others. All exchange
 * the word, and write what belongs to the new state before that.
 *
 * A wait ends at sched_waking: what follows is scheduling latency. Storage is made in
 * task_newtask, not at the first wake-up: before 6.4 it is allocated by kmalloc, which may
 * wake kswapd, and there the run queue is locked.
 */
#include "bpf/vmlinux.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "bpf/wait/wait_reason.bpf.h"
#include "bpf/wait/wait_record.bpf.h"
#include "bpf/wait/wait_segment.bpf.h"
#include "bpf/wait/wait_site.bpf.h"
#include "bpf/wait/wait_sum.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* In the low bits of the word; the others are the time at which it began. */
enum state {
	STATE_NONE, /* the account was not opened */
	STATE_ON, /* on a CPU */
	STATE_QUEUED,
	STATE_WAITS,
	STATE_FOUND, /* by the iterator, running or not: its first event tells */
	STATE_MOVING, /* on a CPU, inside an exec: the cut does not know the image */
	STATE_DEAD,
	STATE_OPENING, /* the rest is being written; it did not begin */
};

#define STATE_BITS 3
#define STATE_OF(word) ((__u32)(word)&7)
#define SINCE_OF(word) ((word) >> STATE_BITS)
#define WORD(since, state) ((since) << STATE_BITS | (state))

#define LAST_SUMS 4 /* a power of 2 */

struct thread {
	__u64 word; /* see above */
	__u64 begin; /* of its account with this image */
	__u64 cpu_ns; /* of the kernel's account: what was added as its CPU time */
	__u64 on_since; /* it was put on its CPU, or did its exec there: it is STATE_ON */
	__u64 wait_since; /* its wait began, now or the last one; cuts leave it. 0: none */
	struct abi_wait_key key; /* of its image; 'what' is the sum looked for */
	__u32 uid;
	__u32 head; /* the sum of its time on a CPU */
	__u64 queue_sum; /* of the interval in the run queue, now or next */
	__u64 wait_sum; /* likewise, of the wait; 0: not known (FOUND) */
	__u64 seed; /* of its image's sites */
	__u64 last_site[LAST_SUMS];
	__u32 last_what[LAST_SUMS], last_sum[LAST_SUMS];
	struct abi_waker waker; /* of a wait whose end is being recorded, or will be */
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct thread);
} wait_threads SEC(".maps");

/* Open intervals are added up to this time by the iterator. Set by user space. */
__u64 wait_cut_at;

static __always_inline struct thread *thread_of(struct task_struct *task)
{
	return bpf_task_storage_get(&wait_threads, task, NULL, 0);
}

static __always_inline __u64 thread_word(struct thread *t)
{
	return *(volatile __u64 *)&t->word;
}

/* Whether its account was opened: until then nothing else here may be read or written. */
static __always_inline bool thread_opened(struct thread *t)
{
	return SINCE_OF(thread_word(t));
}

/* --- its image and sums -------------------------------------------------------- */

static __always_inline void thread_set_image(struct thread *t, struct task_struct *task)
{
	struct task_struct *cast = task_cast(task), *leader = cast->group_leader;

	t->key.start_boottime = leader->start_boottime;
	t->key.exec_id = cast->self_exec_id;
	t->key.tgid = cast->tgid;
	t->key.what = ABI_WAIT_WHAT_ON;
	t->key.site = 0;
	t->seed = site_mix(site_mix(wait_seed, t->key.start_boottime),
			   (__u64)t->key.tgid << 32 ^ t->key.exec_id);
	t->uid = cast->real_cred->uid.val;
	__builtin_memset(t->last_what, 0, sizeof(t->last_what));
	t->head = sum_find(&t->key, t->uid, 0);
}

/*
 * The sum for 'what' and a site. A new site's is made when its stack was copied: else it is
 * the sum of waits whose site was not, for that reason. Sums of an image without a head
 * find no room either.
 */
static __noinline __u32 thread_find_sum(struct thread *t, __u32 what, __u64 site, __u64 now)
{
	struct abi_wait_sum *head;
	__u32 i, *known;

	if (!t)
		return 0;
	i = t->head;
	head = sum_at(i);
	if (i < ABI_WAIT_RESERVED || !head)
		return ABI_WAIT_WHAT_REASON(what);
	t->key.what = what;
	t->key.site = site;
	if (site >= ABI_WAIT_SITE_LEAST) {
		known = bpf_map_lookup_elem(&wait_index, &t->key);
		if (known && !wait_copy_all)
			return *known;
		t->key.site = site_copy(head, sum_user(t->uid), site, now) ?: site;
	}
	return sum_find(&t->key, t->uid, i);
}

/* Whether a sum that was used last is still what it was. */
static __always_inline bool thread_has_sum(const struct thread *t, __u32 i, __u32 what, __u64 site)
{
	const struct abi_wait_sum *s = sum_at(i);

	return s && s->key.what == what && s->key.site == site && !s->retired &&
	       (s->head == t->head || i == t->head);
}

static __always_inline __u32 thread_sum(struct thread *t, __u32 what, __u64 site, __u64 now)
{
	__u32 at = (what ^ what >> 8 ^ what >> 16 ^ site) & (LAST_SUMS - 1), i;

	if (t->last_what[at] == what && t->last_site[at] == site &&
	    thread_has_sum(t, t->last_sum[at], what, site) && !wait_copy_all)
		return t->last_sum[at];
	i = thread_find_sum(t, what, site, now);
	/* What found no room, or was not copied, may be the next time. */
	if (i >= ABI_WAIT_RESERVED && t->key.site == site) {
		t->last_what[at] = what;
		t->last_site[at] = site;
		t->last_sum[at] = i;
	}
	return i;
}

/* Of what has no site: not a wait, or found in it. */
static __always_inline __u32 thread_plain_sum(struct thread *t, __u32 what)
{
	return thread_sum(t, what, ABI_WAIT_SITE_NONE, 0);
}

/* The sum that an interval of this state belongs to; 'found': of STATE_FOUND. */
static __always_inline __u32 thread_state_sum(const struct thread *t, __u32 state, __u32 found)
{
	return state == STATE_QUEUED  ? t->queue_sum
	       : state == STATE_WAITS ? t->wait_sum
	       : state == STATE_FOUND ? found
				      : t->head;
}

/* What the sum 'i' is of; returns its site. Those without room know the reason only. */
static __always_inline __u64 thread_describe(__u32 i, __u32 *what)
{
	const struct abi_wait_sum *sum = sum_at(i);

	if (i < ABI_WAIT_RESERVED || !sum) {
		*what = QUEUE_WHAT(i);
		return i >= ABI_WAIT_SLEEP ? ABI_WAIT_SITE_ROOM : ABI_WAIT_SITE_NONE;
	}
	*what = sum->key.what;
	return sum->key.site;
}

/* What is added to the sum 'i' is a segment, too, if the process is chosen. */
static __always_inline void thread_segment(struct thread *t, struct task_struct *task, __u32 i,
					   struct segment s)
{
	__u64 site;

	if (!segment_wanted(t->key.tgid))
		return;
	site = thread_describe(i, &s.what);
	segment_put(task, &t->key, &t->waker, &s, site);
}

/* The wait of the sum 'i' is recorded by itself, up to 'to', if it is long enough. */
static __noinline int thread_record(struct thread *t, struct task_struct *task, __u32 i, __u64 to,
				    __u32 flags)
{
	struct segment s = { .to = to, .flags = flags };
	__u64 site;

	if (!t || !record_wanted(t->wait_since, to))
		return 0;
	s.from = t->wait_since;
	s.tid = task->pid;
	site = thread_describe(i, &s.what);
	record_put(task, &t->key, &t->waker, &s, site);
	/* Of a chosen one the segment takes it. */
	if (!(flags & ABI_SEGMENT_OPEN) && !segment_wanted(t->key.tgid))
		t->waker.kind = ABI_WAKER_NONE;
	return 0;
}

/* The interval of the old word ends; 'tid': an exec may have changed it since. */
static __always_inline void thread_close(struct thread *t, struct task_struct *task, __u32 tid,
					 __u64 old, const struct moment *now, __u32 found,
					 __u64 cpu, bool woken)
{
	__u32 i = thread_state_sum(t, STATE_OF(old), found);

	sum_add(i, SINCE_OF(old), now, cpu, true);
	thread_segment(
		t, task, i,
		(struct segment){
			.from = SINCE_OF(old), .to = now->time, .tid = tid, .woken = woken });
}

/*
 * CPU time that is in no sum yet: of a thread that leaves its CPU, whose account is exact.
 * Cuts have added the clock's time up to the begin of the open interval; that its word
 * tells so leaves no moment in which it is added twice.
 */
static __always_inline __u64 thread_take_cpu(struct thread *t, struct task_struct *cast, __u64 old)
{
	__u64 all = cast->se.sum_exec_runtime, cpu = all - t->cpu_ns;

	t->cpu_ns = all;
	if (STATE_OF(old) == STATE_ON && SINCE_OF(old) > t->on_since)
		cpu -= SINCE_OF(old) - t->on_since;
	return cpu;
}

/* --- switches ------------------------------------------------------------------ */

/*
 * The switch to this thread was not seen: on some hosts no program runs in the context of a
 * certain process. It was on the CPU for as long as the kernel accounts for.
 */
static __always_inline void switch_missed(struct thread *t, struct task_struct *task, __u64 old,
					  const struct moment *now, __u64 cpu, __u32 before)
{
	__u64 all = now->time - SINCE_OF(old), on = cpu < all ? cpu : all;
	const struct moment in = moment_of(now->time - on);

	__sync_fetch_and_add(&wait_counters.missed, 1);
	sum_add(before, SINCE_OF(old), &in, 0, true);
	sum_add(t->head, in.time, now, cpu, true);
	thread_segment(t, task, before,
		       (struct segment){ .from = SINCE_OF(old), .to = in.time, .tid = task->pid });
	thread_segment(t, task, t->head,
		       (struct segment){ .from = in.time, .to = now->time, .tid = task->pid });
}

static __always_inline void switch_out(struct task_struct *task, bool preempt, __u32 state,
				       const struct moment *now)
{
	struct task_struct *cast = task_cast(task);
	struct thread *t = thread_of(task);
	__u32 to = STATE_WAITS, queued, waited, what;
	__u64 old, cpu;

	if (!t || !thread_opened(t))
		return;
	queued = t->queue_sum;
	waited = t->wait_sum;
	if (state & TASK_DEAD) {
		to = STATE_DEAD;
	} else if (!state) {
		to = STATE_QUEUED;
		t->queue_sum = thread_plain_sum(t, preempt_what(task, preempt));
	} else if (!cast->__state) {
		/* A signal was pending: it stays in the run queue. Before 6.13 'state' is
		 * what it was before that was seen. */
		to = STATE_QUEUED;
		t->queue_sum = thread_plain_sum(t, woken_what(task));
	} else {
		what = wait_what(task, state);
		t->wait_since = now->time;
		t->wait_sum =
			thread_sum(t, what, site_of(task, t->head, t->seed, ABI_WAIT_WHAT_NR(what)),
				   now->time);
	}
	old = __sync_lock_test_and_set(&t->word, WORD(now->time, to));
	if (STATE_OF(old) == STATE_DEAD)
		return;
	cpu = thread_take_cpu(t, cast, old);
	if (STATE_OF(old) == STATE_QUEUED)
		switch_missed(t, task, old, now, cpu, queued);
	else if (STATE_OF(old) == STATE_WAITS)
		switch_missed(t, task, old, now, cpu, waited);
	else
		thread_close(t, task, task->pid, old, now, t->head, cpu, false);
	if (to == STATE_DEAD)
		sum_leave(t->head, now->time - t->begin);
}

static __always_inline void switch_in(struct task_struct *task, const struct moment *now)
{
	struct thread *t = thread_of(task);
	__u64 old;

	if (!t || !thread_opened(t))
		return;
	t->on_since = now->time;
	old = __sync_lock_test_and_set(&t->word, WORD(now->time, STATE_ON));
	if (STATE_OF(old) == STATE_WAITS) {
		__sync_fetch_and_add(&wait_counters.unwoken, 1);
		thread_record(t, task, t->wait_sum, now->time, 0);
	} else if (STATE_OF(old) == STATE_ON) {
		__sync_fetch_and_add(&wait_counters.missed, 1);
	}
	thread_close(t, task, task->pid, old, now, t->queue_sum, 0, false);
}

SEC("tp_btf/sched_switch")
int BPF_PROG(wait_switch, bool preempt, struct task_struct *prev, struct task_struct *next,
	     unsigned int prev_state)
{
	const struct moment now = moment_now();

	if (prev->pid)
		switch_out(prev, preempt, prev_state, &now);
	if (next->pid)
		switch_in(next, &now);
	return 0;
}

/* --- wake-ups ------------------------------------------------------------------- */

/* Only sched_waking runs where the waker does. */
static __always_inline void thread_record_woken(struct thread *t, struct task_struct *task,
						__u64 now, bool waking)
{
	if (waking && !segment_wanted(t->key.tgid))
		segment_waker(&t->waker);
	thread_record(t, task, t->wait_sum, now, 0);
}

static __always_inline void thread_wake(struct task_struct *task, bool waking)
{
	struct thread *t = thread_of(task);
	struct moment now;
	__u64 old;

	if (!t)
		return;
	if (waking && segment_wanted(t->key.tgid))
		segment_waker(&t->waker);
	old = thread_word(t);
	if (STATE_OF(old) != STATE_WAITS && STATE_OF(old) != STATE_FOUND)
		return;
	now = moment_now();
	if (!t->wait_sum)
		t->wait_sum = thread_sum(t, QUEUE_WHAT(ABI_WAIT_OTHER), ABI_WAIT_SITE_BEFORE, 0);
	t->queue_sum = thread_plain_sum(t, woken_what(task));
	/* The iterator may cut the interval meanwhile, once for each of its runs. */
	for (int i = 0; i < 4; i++) {
		if (__sync_val_compare_and_swap(&t->word, old, WORD(now.time, STATE_QUEUED)) ==
		    old) {
			if (record_wanted(t->wait_since, now.time))
				thread_record_woken(t, task, now.time, waking);
			thread_close(t, task, task->pid, old, &now, t->wait_sum, 0, true);
			return;
		}
		old = thread_word(t);
		if (STATE_OF(old) != STATE_WAITS && STATE_OF(old) != STATE_FOUND)
			return;
	}
}

SEC("tp_btf/sched_waking")
int BPF_PROG(wait_waking, struct task_struct *task)
{
	thread_wake(task, true);
	return 0;
}

SEC("tp_btf/sched_wakeup")
int BPF_PROG(wait_wakeup, struct task_struct *task)
{
	thread_wake(task, false);
	return 0;
}

/* --- begin, exec ---------------------------------------------------------------- */

SEC("tp_btf/task_newtask")
int BPF_PROG(wait_newtask, struct task_struct *task, __u64 clone_flags)
{
	if (task->pid &&
	    !bpf_task_storage_get(&wait_threads, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE))
		__sync_fetch_and_add(&wait_counters.untracked, 1);
	return 0;
}

/*
 * Its first wake-up and the iterator may both open it, and the iterator may lose its CPU in
 * between for a while, in which the thread runs and even ends.
 */
static __always_inline bool thread_claim(struct thread *t)
{
	return !__sync_val_compare_and_swap(&t->word, 0, STATE_OPENING);
}

/* From here on its events are seen. */
static __always_inline void thread_begin(struct thread *t, __u32 state)
{
	__u64 now = bpf_ktime_get_boot_ns();

	t->begin = now;
	sum_enter(t->head);
	__sync_lock_test_and_set(&t->word, WORD(now, state));
}

/* A new process has the mappings of the one that forks, whose context this is. */
static __always_inline void thread_inherit(const struct thread *t)
{
	struct thread *parent = thread_of(bpf_get_current_task_btf());
	struct abi_wait_sum *to = sum_at(t->head), *from;

	if (!parent || parent->head == t->head || parent->key.exec_id != t->key.exec_id)
		return;
	from = sum_at(parent->head);
	if (!from || !to || t->head < ABI_WAIT_RESERVED || to->spans[0].len)
		return;
	for (int i = 0; i < ABI_WAIT_SPANS; i++)
		to->spans[i] = from->spans[i];
}

SEC("tp_btf/sched_wakeup_new")
int BPF_PROG(wait_wakeup_new, struct task_struct *task)
{
	struct thread *t = thread_of(task);

	if (!t || !thread_claim(t))
		return 0;
	thread_set_image(t, task);
	t->cpu_ns = task->se.sum_exec_runtime;
	thread_inherit(t);
	t->queue_sum = thread_plain_sum(t, QUEUE_WHAT(ABI_WAIT_NEW));
	thread_begin(t, STATE_QUEUED);
	return 0;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(wait_exec, struct task_struct *task, pid_t old_pid)
{
	struct thread *t = thread_of(task);
	struct moment now;
	__u64 old, on;

	if (!t || !thread_opened(t))
		return 0;
	now = moment_now();
	old = __sync_lock_test_and_set(&t->word, WORD(now.time, STATE_MOVING));
	/* As in a cut: the kernel's account is behind. */
	on = now.time - SINCE_OF(old);
	t->cpu_ns += STATE_OF(old) == STATE_ON ? now.time - t->on_since : on;
	t->on_since = now.time;
	thread_close(t, task, old_pid, old, &now, t->head, on, false);
	sum_leave(t->head, now.time - t->begin);
	thread_set_image(t, task);
	sum_enter(t->head);
	t->begin = now.time;
	/* Not if it was switched out meanwhile. */
	__sync_val_compare_and_swap(&t->word, WORD(now.time, STATE_MOVING),
				    WORD(now.time, STATE_ON));
	return 0;
}

/* --- the iterator --------------------------------------------------------------- */

static __always_inline bool task_on_cpu(struct task_struct *task)
{
	return !bpf_core_field_exists(task->on_cpu) || task->on_cpu;
}

/* Its last switch may have been before the account was opened. */
static __always_inline void thread_ended(struct thread *t)
{
	__u64 old = thread_word(t);

	if (STATE_OF(old) == STATE_FOUND &&
	    __sync_val_compare_and_swap(&t->word, old, WORD(SINCE_OF(old), STATE_DEAD)) == old)
		sum_leave(t->head, SINCE_OF(old) - t->begin);
}

/* Opens the account of a thread that was there before. */
static __always_inline void thread_found(struct thread *t, struct task_struct *task)
{
	struct task_struct *cast = task_cast(task);
	__u32 state = cast->__state;

	/* One that is new is in wait_wakeup_new() soon. */
	if (state & (TASK_DEAD | TASK_NEW) || !thread_claim(t))
		return;
	thread_set_image(t, task);
	t->cpu_ns = cast->se.sum_exec_runtime;
	t->queue_sum = thread_plain_sum(t, QUEUE_WHAT(ABI_WAIT_PREEMPTED));
	t->wait_sum = t->wait_since = 0;
	if (state) {
		t->wait_since = bpf_ktime_get_boot_ns();
		t->wait_sum = thread_sum(
			t, wait_what(task, state),
			cast->flags & PF_KTHREAD ? ABI_WAIT_SITE_NONE : ABI_WAIT_SITE_BEFORE, 0);
	}
	thread_begin(t, STATE_FOUND);
	if (*(volatile unsigned int *)&cast->__state & TASK_DEAD)
		thread_ended(t);
}

static __always_inline void thread_cut(struct thread *t, struct task_struct *task)
{
	const struct moment at = moment_of(wait_cut_at);
	__u32 state, found;
	__u64 old, cpu, since;

	for (int i = 0; i < 4; i++) {
		old = thread_word(t);
		since = *(volatile __u64 *)&t->wait_since;
		state = STATE_OF(old);
		if (state == STATE_MOVING || state == STATE_DEAD || SINCE_OF(old) >= at.time)
			return;
		found = t->wait_sum ?: task_on_cpu(task_cast(task)) ? t->head : t->queue_sum;
		found = thread_state_sum(t, state, found);
		if (__sync_val_compare_and_swap(&t->word, old, WORD(at.time, state)) != old)
			continue;
		cpu = state == STATE_ON ? at.time - SINCE_OF(old) : 0;
		sum_add(found, SINCE_OF(old), &at, cpu, false);
		thread_segment(t, task, found,
			       (struct segment){ .from = SINCE_OF(old),
						 .to = at.time,
						 .tid = task->pid,
						 .flags = ABI_SEGMENT_OPEN });
		if (wait_cut_records && (state == STATE_WAITS || state == STATE_FOUND) &&
		    record_wanted(since, at.time))
			thread_record(t, task, found, at.time, ABI_SEGMENT_OPEN);
		return;
	}
}

static __always_inline void thread_pin(const struct thread *t)
{
	struct abi_wait_sum *s = sum_at(t->wait_sum);

	if (s && s->retired)
		s->retired = ABI_WAIT_PINNED;
}

/* --- waits without a site --------------------------------------------------------- */

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, ABI_WAIT_OPEN_MAX);
	__type(key, __u32);
	__type(value, struct abi_wait_given);
} wait_given SEC(".maps");

struct open_thread {
	struct pt_regs regs;
	struct abi_wait_open out;
};

/* Not per CPU: the iterator can be preempted, and only one runs at a time. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct open_thread);
} wait_open SEC(".maps");

/* Set by user space: there is something in wait_given; threads up to this were listed. */
__u32 wait_given_any;
__u32 wait_list_after;

static __always_inline __u64 task_switches(struct task_struct *task)
{
	return task->nvcsw + task->nivcsw;
}

/* The sum of a wait whose stack may still be copied. */
static __always_inline struct abi_wait_sum *thread_open_sum(struct thread *t)
{
	__u32 state = STATE_OF(thread_word(t)), i = t->wait_sum;
	struct abi_wait_sum *s = sum_at(i);

	if ((state != STATE_WAITS && state != STATE_FOUND) || i < ABI_WAIT_RESERVED || !s)
		return NULL;
	return s->key.site != ABI_WAIT_SITE_NONE && s->key.site != ABI_WAIT_SITE_ROOM &&
			       s->key.site < ABI_WAIT_SITE_LEAST
		       ? s
		       : NULL;
}

/* The wait of a thread gets the site that user space has copied, with all of its open time. */
static __always_inline void thread_give(struct thread *t, struct task_struct *task)
{
	struct abi_wait_sum *old = thread_open_sum(t);
	struct abi_wait_key key = {};
	struct abi_wait_given *given;
	__u32 tid = task->pid, made;
	__u64 i = t->wait_sum;

	given = bpf_map_lookup_elem(&wait_given, &tid);
	if (!given || !old || !given->site || given->switches != task_switches(task) ||
	    given->key.start_boottime != t->key.start_boottime ||
	    given->key.exec_id != t->key.exec_id || !sum_room(sum_user(t->uid), wait_limit / 2))
		return;
	key.start_boottime = t->key.start_boottime;
	key.exec_id = t->key.exec_id;
	key.tgid = t->key.tgid;
	key.what = old->key.what;
	key.site = given->site;
	made = sum_find(&key, t->uid, t->head);
	if (made < ABI_WAIT_RESERVED)
		return;
	if (__sync_val_compare_and_swap(&t->wait_sum, i, made) == i)
		given->site = 0;
}

SEC("iter/task")
int wait_list(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct open_thread *open;
	struct thread *t;
	__u32 zero = 0;

	if (!task || task->pid <= wait_list_after || task->flags & PF_KTHREAD)
		return 0;
	t = thread_of(task);
	open = bpf_map_lookup_elem(&wait_open, &zero);
	if (!t || !open || !thread_opened(t) || !thread_open_sum(t))
		return 0;
	open->out.switches = task_switches(task);
	open->out.key.start_boottime = t->key.start_boottime;
	open->out.key.exec_id = t->key.exec_id;
	open->out.key.tgid = t->key.tgid;
	open->out.tid = task->pid;
	bpf_probe_read_kernel(open->out.comm, sizeof(open->out.comm), task->comm);
	if (bpf_probe_read_kernel(&open->regs, sizeof(open->regs), (void *)bpf_task_pt_regs(task)))
		return 0;
	if (sampler_inside_exec(task, &open->regs))
		return 0;
	open->out.flags = arch_compat(&open->regs) ? ABI_SAMPLE_COMPAT : 0;
	arch_fill_regs(&open->out.regs, &open->regs);
	/* It is listed only if it has not run since. */
	if (open->out.switches == task_switches(task))
		bpf_seq_write(ctx->meta->seq, &open->out, sizeof(open->out));
	return 0;
}

SEC("iter/task")
int wait_cut(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct thread *t;

	if (!task || !task->pid)
		return 0;
	t = bpf_task_storage_get(&wait_threads, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!t) {
		__sync_fetch_and_add(&wait_counters.untracked, 1);
		return 0;
	}
	if (!thread_opened(t)) {
		thread_found(t, task);
	} else {
		if (wait_given_any)
			thread_give(t, task);
		thread_cut(t, task);
		thread_pin(t);
	}
	return 0;
}
