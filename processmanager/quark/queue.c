// SPDX-License-Identifier: Apache-2.0
/*
 * queue: opens and closes, takes records out of the ring, gives out events when
 * they are due.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "processmanager/quark/priv.h"

#define RING_BYTES_DEFAULT (16 * 1024 * 1024)
#define RING_BYTES_MAX (1UL << 30)
/* The kernel side counts whole nanoseconds for each. */
#define REPEAT_LIMIT_MAX 1000000
#define BLOCK_MS 100
/*
 * Events that are held this long need no wakeup when they arrive: a timer is
 * enough, and a process costs the reader a fraction of the CPU time.
 */
#define POLL_MS 100
/* A smaller queue may fill, and its hold time shrink, before the timer expires. */
#define POLL_LENGTH 5000
/* The shortest pause between lookups of a zombie, also without a grace time. */
#define ZOMBIE_MIN_NS (100 * CLOCK_NSEC_PER_MSEC)
/* Zombies looked up in a call, 12 us each; the next call continues. */
#define ZOMBIE_LOOKS 64
/*
 * While the queue is full the ring is not drained to its end, and its watermark
 * does not advance. Records are in the order of reservation, and each time is read
 * after it: a record behind the newest one may be older by as long as that one's
 * CPU stopped between the two, in a virtual machine.
 */
#define FULL_SLACK_NS (100 * CLOCK_NSEC_PER_MSEC)
/* More than the jitter of two readings: the wall clock was stepped. */
#define WALL_STEP_NS ((int64_t)CLOCK_NSEC_PER_MSEC)

#define FLAGS_UNSUPPORTED                                                \
	(QQ_SOCK_CONN | QQ_DNS | QQ_BYPASS | QQ_FILE | QQ_SHM | QQ_TTY | \
	 QQ_PTRACE | QQ_MODULE_LOAD)
#define FLAGS_KNOWN                                                          \
	(QQ_ALL_BACKENDS | QQ_THREAD_EVENTS | QQ_MIN_AGG | QQ_ENTRY_LEADER | \
	 QQ_NO_AGG | QQ_OWN_EVENTS | QQ_ID_EVENTS | FLAGS_UNSUPPORTED)

static const struct {
	size_t size;
	uint32_t event;
} kinds[] = {
#define X(name, type, event) \
	[ABI_QUARK_##name] = { sizeof(struct type), event },
	ABI_QUARK_KINDS(X)
#undef X
};

_Static_assert(ARRAY_SIZE(kinds) == QUARK_X_KINDS, "kinds of loss");

void quark_queue_default_attr(struct quark_queue_attr *attr)
{
	memset(attr, 0, sizeof(*attr));
	attr->flags = QQ_ALL_BACKENDS;
	attr->max_length = 10000;
	attr->cache_grace_time = 4000;
	attr->hold_time = 1000;
	attr->max_env = 4096;
	attr->kubefd = -1;
}

static int check_attr(const struct quark_queue_attr *a)
{
	const struct {
		bool bad;
		const char *why;
	} checks[] = {
		{ a->flags & ~FLAGS_KNOWN, "unknown flags" },
		{ !(a->flags & QQ_ALL_BACKENDS), "flags name no backend" },
		{ a->max_length <= 0, "max_length is not positive" },
		{ a->cache_grace_time < 0, "cache_grace_time is negative" },
		{ a->hold_time < (a->flags & QQ_NO_AGG ? 0 : 10),
		  "hold_time is below 10 ms" },
		{ a->reap_grace_time < 0, "reap_grace_time is negative" },
		{ a->max_env < 0, "max_env is negative" },
		{ a->repeat_limit < 0 || a->repeat_limit > REPEAT_LIMIT_MAX,
		  "repeat_limit is out of range" },
		{ a->ring_bytes > RING_BYTES_MAX, "ring_bytes is above 1 GiB" },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(checks); i++) {
		if (checks[i].bad) {
			quark_error("%s", checks[i].why);
			return -EINVAL;
		}
	}
	if (!(a->flags & FLAGS_UNSUPPORTED))
		return 0;
	quark_error("flags ask for events not built yet");
	return -ENOTSUP;
}

/* Called by the ring, for each record. */
static int take_record(void *arg, void *data, size_t len)
{
	struct quark_queue_priv *qq = arg;
	const struct abi_quark_head *h = data;
	struct quark_raw *raw;

	if (len < sizeof(*h) || h->kind >= ARRAY_SIZE(kinds) ||
	    len < kinds[h->kind].size)
		return 0;
	/* First: it is urgent. */
	if (h->kind == ABI_QUARK_EXEC && h->flags & ABI_QUARK_NEW_FILE)
		quark_new_file(qq, data, len);
	raw = quark_raw_new(qq->vault, h->kind, h->time, data, len);
	if (!raw) {
		qq->stats.losses.memory[h->kind]++;
		return 0;
	}
	if (h->time < qq->delivered)
		qq->stats.late++;
	qq->newest = MAX(qq->newest, h->time);
	quark_order_add(&qq->order, raw);
	qq->stats.insertions++;
	if (qq->order.count + qq->held.count >= (size_t)qq->attr.max_length &&
	    TAILQ_FIRST(&qq->order.list)->time + FULL_SLACK_NS < qq->newest)
		return -ENOBUFS;
	return 0;
}

/* Queues a gap record for losses, at the time of the first. */
static void take_losses(struct quark_queue_priv *qq)
{
	struct quark_loss_report lost;
	struct quark_raw_gap gap = { 0 };
	struct quark_raw *raw;
	size_t k;

	qq->backend->losses(qq->b, &lost);
	qq->stats.limited = lost.limited;
	qq->stats.unwoken = lost.unwoken;
	if (!lost.total && !lost.uncounted)
		return;
	for (k = 0; k < ARRAY_SIZE(kinds); k++) {
		qq->stats.losses.kernel[k] += lost.lost[k];
		if (lost.lost[k] || lost.uncounted)
			gap.kinds |= kinds[k].event;
	}
	gap.lost = lost.total;
	/*
	 * Read between two writes of the kernel side, the time of the first loss
	 * may be 0 or that of an older one. It must not be below the watermark.
	 */
	lost.first = MAX(lost.first, qq->watermark);
	gap.to = MAX(lost.last, lost.first);
	qq->gap_from = qq->gap_to ? MIN(qq->gap_from, lost.first) : lost.first;
	/* Not 0, nor below an older gap's end: that scan is still due. */
	qq->gap_to = MAX(MAX(qq->gap_to, gap.to), 1);
	raw = quark_raw_new(qq->vault, QUARK_RAW_GAP, lost.first, &gap,
			    sizeof(gap));
	if (raw)
		quark_order_add(&qq->order, raw);
}

static void follow_wall_clock(struct quark_queue_priv *qq)
{
	int64_t now = clock_wall_offset_ns();

	if (now - qq->wall_offset > WALL_STEP_NS ||
	    qq->wall_offset - now > WALL_STEP_NS)
		qq->wall_offset = now;
}

static int queue_drain(struct quark_queue_priv *qq)
{
	uint64_t expirations, watermark;
	int n;

	/* If it has not expired, it need not be set again. */
	if (qq->timer_armed &&
	    read(qq->timerfd, &expirations, sizeof(expirations)) > 0)
		qq->timer_armed = false;
	follow_wall_clock(qq);
	n = qq->backend->consume(qq->b);
	/* After it: includes all losses below the new watermark. */
	take_losses(qq);
	watermark = n == -ENOBUFS ? qq->newest - FULL_SLACK_NS
				  : qq->backend->watermark(qq->b);
	qq->watermark = MAX(qq->watermark, watermark);
	return n == -ENOBUFS ? qq->attr.max_length : n;
}

static int open_epoll(struct quark_queue_priv *qq)
{
	struct epoll_event ev = { .events = EPOLLIN };

	qq->epfd = epoll_create1(EPOLL_CLOEXEC);
	qq->timerfd =
		timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC);
	if (qq->epfd < 0 || qq->timerfd < 0 ||
	    epoll_ctl(qq->epfd, EPOLL_CTL_ADD, qq->timerfd, &ev) ||
	    epoll_ctl(qq->epfd, EPOLL_CTL_ADD, qq->backend->epoll_fd(qq->b),
		      &ev)) {
		quark_error("epoll: %s", strerror(errno));
		return -errno;
	}
	return 0;
}

/* Puts the references of the last call. */
static void queue_release(struct quark_queue_priv *qq)
{
	size_t i;

	quark_record_put(qq->event_rec);
	qq->event_rec = NULL;
	for (i = 0; i < qq->n_copied; i++)
		quark_record_put(qq->copied[i]);
	qq->n_copied = 0;
}

static void priv_free(struct quark_queue_priv *qq)
{
	if (!qq)
		return;
	queue_release(qq);
	quark_order_fini(&qq->order);
	vault_free(qq->vault);
	if (qq->held.hash.buckets)
		quark_held_fini(&qq->held);
	quark_names_fini(&qq->names);
	strbuf_fini(&qq->shown);
	free(qq->copied);
	if (qq->cache.hash.buckets)
		quark_cache_fini(&qq->cache);
	if (qq->epfd >= 0)
		close(qq->epfd);
	if (qq->timerfd >= 0)
		close(qq->timerfd);
	if (qq->backend)
		qq->backend->close(qq->b);
	/* A child of fork(2) does not have the thread. */
	if (qq->own && *qq->own)
		patience_fini(&qq->reader.patience);
	if (qq->own)
		munmap(qq->own, 1);
	free(qq);
}

/*
 * Opens the first backend of attr.flags that can be opened. In either case
 * quark_queue_open_error() says why the others cannot.
 */
static int open_backend(struct quark_queue_priv *qq,
			const struct quark_backend_conf *conf)
{
	static const struct quark_backend *const backends[] = { &quark_ebpf,
								&quark_kprobe };
	char why[256] = "";
	int err, first = 0;
	size_t i, len;

	for (i = 0; i < ARRAY_SIZE(backends); i++) {
		if (!(qq->attr.flags & backends[i]->flag))
			continue;
		quark_error_reset();
		err = backends[i]->open(&qq->b, conf, take_record, qq);
		if (!err) {
			qq->backend = backends[i];
			qq->stats.backend = backends[i]->flag;
			break;
		}
		first = first ? first : err;
		len = strlen(why);
		snprintf(why + len, sizeof(why) - len, "%s%s: %s",
			 len ? "; " : "", backends[i]->name,
			 *quark_queue_open_error() ? quark_queue_open_error()
						   : strerror(-err));
	}
	quark_error("%s", why);
	return qq->backend ? 0 : first;
}

/*
 * A byte that is 1 here and 0 in a child of fork(2). Reading it costs nothing, and
 * unlike a pid it is never reused.
 */
static int mark_own(struct quark_queue_priv *qq)
{
	qq->own = mmap(NULL, 1, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (qq->own == MAP_FAILED)
		qq->own = NULL;
	if (!qq->own || madvise(qq->own, 1, MADV_WIPEONFORK))
		return -errno;
	*qq->own = 1;
	return 0;
}

/*
 * For calls that change the queue: in a child of fork(2) the rings, the epoll
 * instance and the timer are the parent's. NULL with errno.
 */
static struct quark_queue_priv *queue_usable(const struct quark_queue *q)
{
	if (!q->priv)
		return quark_null(EBADF);
	return *q->priv->own ? q->priv : quark_null(ECHILD);
}

static int priv_open(struct quark_queue_priv *qq)
{
	const struct quark_queue_attr *a = &qq->attr;
	struct quark_backend_conf conf = {
		.ring_bytes =
			a->ring_bytes ? a->ring_bytes : RING_BYTES_DEFAULT,
		.max_env = MIN(a->max_env, ABI_QUARK_ENV_MAX),
		.no_wakeup = a->no_wakeup,
		.threads = a->flags & QQ_THREAD_EVENTS,
		.repeats = a->repeat_limit,
		.reader = &qq->reader,
		.new_files = a->new_file,
		.syscalls = !(a->flags & QQ_NO_AGG) || a->flags & QQ_ID_EVENTS,
	};
	/* The grace time begins when the exit is given out. */
	uint64_t hold = a->flags & QQ_NO_AGG ? 0 : a->hold_time;
	uint64_t grace = a->cache_grace_time, reap = a->reap_grace_time;
	int err;

	reap = hold + (reap ? reap : grace);
	grace += hold;
	qq->polling = hold >= POLL_MS && a->max_length >= POLL_LENGTH;
	conf.no_wakeup |= qq->polling;
	quark_order_init(&qq->order);
	err = mark_own(qq);
	if (!err)
		err = vault_new(&qq->vault);
	if (!err)
		err = quark_cache_init(&qq->cache, grace * CLOCK_NSEC_PER_MSEC);
	if (!err)
		err = quark_held_init(&qq->held, a->flags & QQ_MIN_AGG);
	if (err)
		return err;
	qq->cache.zombie_ns = MAX(reap * CLOCK_NSEC_PER_MSEC, ZOMBIE_MIN_NS);
	qq->wall_offset = clock_wall_offset_ns();
	err = open_backend(qq, &conf);
	if (!err)
		err = open_epoll(qq);
	/* Attached first, scanned then: no process is missed between. */
	return err ? err : quark_scan_first(qq);
}

int quark_queue_open(struct quark_queue *q, struct quark_queue_attr *attr)
{
	struct quark_queue_attr defaults;
	struct quark_queue_priv *qq;
	int err;

	quark_error_reset();
	q->priv = NULL;
	if (!attr) {
		quark_queue_default_attr(&defaults);
		attr = &defaults;
	}
	err = check_attr(attr);
	if (err)
		return quark_result(err);
	err = -ENOMEM;
	qq = calloc(1, sizeof(*qq));
	if (qq) {
		qq->attr = *attr;
		qq->epfd = qq->timerfd = -1;
		err = priv_open(qq);
	}
	if (!err) {
		q->priv = qq;
		return 0;
	}
	if (!*quark_queue_open_error())
		quark_error("%s", strerror(-err));
	priv_free(qq);
	return quark_result(err);
}

void quark_queue_close(struct quark_queue *q)
{
	priv_free(q->priv);
	q->priv = NULL;
}

int quark_queue_populate(struct quark_queue *q)
{
	struct quark_queue_priv *qq = queue_usable(q);

	return qq ? quark_result(queue_drain(qq)) : -1;
}

static bool queue_ripe(const struct quark_queue_priv *qq)
{
	const struct quark_raw *first = TAILQ_FIRST(&qq->order.list);

	return first && first->time < qq->watermark;
}

/* Applies the oldest ripe record; as quark_apply(). */
static int apply_one(struct quark_queue_priv *qq)
{
	struct quark_raw *raw = quark_order_pop(&qq->order);
	int ret;

	qq->stats.removals++;
	qq->delivered = MAX(qq->delivered, raw->time);
	ret = quark_apply(qq, raw);
	if (ret < 0 && raw->kind < ARRAY_SIZE(kinds))
		qq->stats.losses.memory[raw->kind]++;
	vault_give(raw);
	return ret;
}

static bool queue_dropped(struct quark_queue_priv *qq)
{
	struct quark_rule *rule = NULL;

	if (qq->attr.ruleset && qq->event.process)
		rule = quark_ruleset_match(qq->attr.ruleset, &qq->event);
	return rule && rule->action == QUARK_RA_DROP;
}

/* QQ_NO_AGG: applies ripe records until one is an event for the caller. */
static bool next_raw(struct quark_queue_priv *qq)
{
	while (queue_ripe(qq)) {
		if (apply_one(qq) <= 0)
			continue;
		if (!queue_dropped(qq))
			return true;
		queue_release(qq);
	}
	return false;
}

static uint64_t hold_ns(const struct quark_queue_priv *qq)
{
	return quark_hold_ns((uint64_t)qq->attr.hold_time * CLOCK_NSEC_PER_MSEC,
			     qq->order.count + qq->held.count,
			     qq->attr.max_length);
}

/* Applies all ripe records and holds their events. */
static void queue_settle(struct quark_queue_priv *qq)
{
	uint64_t events;
	size_t k;

	while (queue_ripe(qq)) {
		if (apply_one(qq) <= 0)
			continue;
		events = qq->event.events;
		if (quark_held_add(&qq->held, &qq->event, qq->event_rec,
				   qq->event_thread))
			for (k = 0; k < ARRAY_SIZE(kinds); k++)
				qq->stats.losses.memory[k] +=
					kinds[k].event == events;
		qq->event_rec = NULL;
	}
}

/* The oldest event that was held long enough, with those that joined it. */
static bool next_held(struct quark_queue_priv *qq, struct quark_queue *q)
{
	struct raw_event *e;
	size_t joined;

	queue_settle(qq);
	while (qq->held.count &&
	       TAILQ_FIRST(&qq->held.list)->ev.boottime + hold_ns(qq) <=
		       qq->watermark) {
		e = quark_held_pop(&qq->held, q, &joined);
		qq->stats.aggregations += joined;
		qq->stats.non_aggregations += !joined;
		qq->event = e->ev;
		qq->event_rec = e->rec;
		e->rec = NULL;
		quark_held_free(e);
		if (!queue_dropped(qq))
			return true;
		queue_release(qq);
	}
	return false;
}

static bool next_event(struct quark_queue_priv *qq, struct quark_queue *q)
{
	return qq->attr.flags & QQ_NO_AGG ? next_raw(qq) : next_held(qq, q);
}

/*
 * Queues a reap that the kernel did not report: its record was lost, or the kernel
 * runs no BPF in some context (seen with a sandbox that shields its own process: an
 * RCU callback that interrupts it is not traced). A process that exited a grace
 * time ago and is not in /proc was reaped. Only when all ripe records are applied,
 * so that its own is not among them.
 */
static void infer_reaps(struct quark_queue_priv *qq)
{
	struct abi_quark_reap reap = { 0 };
	struct quark_proc *p;
	struct quark_raw *raw;
	int n;

	for (n = 0; n < ZOMBIE_LOOKS; n++) {
		const struct quark_key *k;

		p = quark_cache_overdue(&qq->cache, qq->watermark);
		if (!p)
			return;
		k = &p->rec->p.key;
		if (quark_exists(qq, &p->rec->p)) {
			quark_cache_look(&qq->cache, p, qq->watermark);
			continue;
		}
		/* Without memory for the record it is looked up again. */
		quark_cache_exit(&qq->cache, p, qq->watermark);
		reap.head.kind = ABI_QUARK_REAP;
		reap.head.flags = QUARK_RAW_INFERRED;
		reap.head.time = qq->watermark;
		reap.head.key.start_boottime = k->start_boottime;
		reap.head.key.exec_id = k->exec_id;
		reap.head.key.tgid = reap.head.tid = k->pid;
		reap.cpu_time = p->cpu_time;
		reap.wait_status = p->rec->p.wait_status;
		raw = quark_raw_new(qq->vault, ABI_QUARK_REAP, qq->watermark,
				    &reap, sizeof(reap));
		if (!raw)
			return;
		quark_order_add(&qq->order, raw);
		qq->stats.insertions++;
	}
}

/* When the oldest queued event is due; 0: none is queued. */
static uint64_t queue_due(const struct quark_queue_priv *qq)
{
	const struct raw_event *held = TAILQ_FIRST(&qq->held.list);
	const struct quark_raw *first = TAILQ_FIRST(&qq->order.list);
	uint64_t at = held ? held->ev.boottime : first ? first->time : 0;

	if (at && !(qq->attr.flags & QQ_NO_AGG))
		at += hold_ns(qq);
	/* The watermark is behind the clock; a tenth more for the drain. */
	return at ? at + qq->backend->slack(qq->b) * 11 / 10 : 0;
}

/* Lets the epoll instance wake up when the next event is due. */
static void arm_timer(struct quark_queue_priv *qq)
{
	struct itimerspec its = { 0 };
	uint64_t at = queue_due(qq), poll;

	if (qq->timer_armed || qq->attr.no_wakeup)
		return;
	/* Later by a fiftieth of the hold time, so that several are due at once. */
	if (qq->polling) {
		at += at ? qq->attr.hold_time * CLOCK_NSEC_PER_MSEC / 50 : 0;
		poll = clock_boottime_ns() + POLL_MS * CLOCK_NSEC_PER_MSEC;
		at = at ? MIN(at, poll) : poll;
	}
	if (!at)
		return;
	its.it_value.tv_sec = at / CLOCK_NSEC_PER_SEC;
	its.it_value.tv_nsec = at % CLOCK_NSEC_PER_SEC;
	qq->timer_armed =
		!timerfd_settime(qq->timerfd, TFD_TIMER_ABSTIME, &its, NULL);
}

static const struct quark_event *get_event(struct quark_queue *q)
{
	struct quark_queue_priv *qq = q->priv;

	if (next_event(qq, q))
		return &qq->event;
	/*
	 * Again while a full queue stopped the drain: the caller must not sleep
	 * because the events so far were filtered.
	 */
	while (queue_drain(qq) > 0 || queue_ripe(qq)) {
		if (next_event(qq, q))
			return &qq->event;
		if (!queue_ripe(qq) && !qq->backend->backlog(qq->b))
			break;
	}
	if (next_event(qq, q))
		return &qq->event;
	quark_scan_again(qq);
	infer_reaps(qq);
	quark_cache_collect(&qq->cache, qq->watermark);
	arm_timer(qq);
	return quark_null(EAGAIN);
}

const struct quark_event *quark_queue_get_event(struct quark_queue *q)
{
	struct quark_queue_priv *qq = queue_usable(q);

	if (!qq)
		return NULL;
	queue_release(qq);
	return get_event(q);
}

int quark_queue_get_events(struct quark_queue *q, struct quark_event *evs,
			   int n)
{
	struct quark_queue_priv *qq = queue_usable(q);
	const struct quark_event *ev;
	struct quark_record **p;
	int i;

	if (!qq)
		return -1;
	if (n <= 0)
		return quark_result(-EINVAL);
	queue_release(qq);
	p = realloc(qq->copied, n * sizeof(*p));
	if (!p)
		return -1;
	qq->copied = p;
	for (i = 0; i < n && (ev = get_event(q)); i++) {
		evs[i] = *ev;
		qq->copied[qq->n_copied++] = qq->event_rec;
		qq->event_rec = NULL;
	}
	return i;
}

int quark_queue_get_fds(struct quark_queue *q, int *fds, int n)
{
	const struct quark_queue_priv *qq = queue_usable(q);

	if (!qq)
		return -1;
	if (n < 1)
		return quark_result(-EINVAL);
	fds[0] = qq->epfd;
	return 1;
}

/* Part of the published interface; all state is in the queues. */
int quark_init(void)
{
	return 0;
}

void quark_close(void)
{
}

int quark_queue_set_agg_matrix(struct quark_queue *q, int parent, int child,
			       quark_can_aggregate_fn fn)
{
	struct quark_queue_priv *qq = queue_usable(q);

	if (!qq)
		return -1;
	if (parent < RAW_INVALID || parent >= RAW_NUM_TYPES ||
	    child < RAW_INVALID || child >= RAW_NUM_TYPES)
		return quark_result(-EINVAL);
	qq->held.matrix[parent][child] = fn;
	return 0;
}

int quark_queue_block(struct quark_queue *q)
{
	struct quark_queue_priv *qq = queue_usable(q);
	int timeout = BLOCK_MS, n;
	struct epoll_event ev;

	if (!qq)
		return -1;
	if (queue_ripe(qq))
		return 0;
	/* No timer is set for queued events. */
	if (qq->attr.no_wakeup && (qq->order.count || qq->held.count))
		timeout = 1 + qq->backend->slack(qq->b) / CLOCK_NSEC_PER_MSEC;
	n = epoll_wait(qq->epfd, &ev, 1, timeout);
	return n < 0 && errno != EINTR ? -1 : 0;
}

int quark_queue_get_epollfd(struct quark_queue *q)
{
	struct quark_queue_priv *qq = queue_usable(q);

	if (!qq)
		return -1;
	/* For a caller that waits before its first quark_queue_get_event(). */
	arm_timer(qq);
	return qq->epfd;
}

uint64_t quark_queue_watermark(struct quark_queue *q)
{
	const struct quark_queue_priv *qq = queue_usable(q);
	const struct raw_event *held;
	const struct quark_raw *first;
	uint64_t watermark;

	if (!qq)
		return 0;
	watermark = qq->watermark;
	held = TAILQ_FIRST(&qq->held.list);
	first = TAILQ_FIRST(&qq->order.list);
	if (first)
		watermark = MIN(watermark, first->time);
	if (held)
		watermark = MIN(watermark, held->ev.boottime);
	return watermark;
}

void quark_queue_get_stats(struct quark_queue *q,
			   struct quark_queue_stats *stats)
{
	const struct quark_queue_priv *qq = q->priv;
	size_t k;

	memset(stats, 0, sizeof(*stats));
	if (!qq)
		return;
	*stats = qq->stats;
	stats->garbage_collections = qq->cache.collections;
	stats->evictions = qq->cache.evictions;
	stats->text_cut = qq->cache.text_cut;
	stats->unread = qq->reader.unread;
	for (k = 0; k < QUARK_X_KINDS; k++)
		stats->lost += stats->losses.kernel[k] +
			       stats->losses.memory[k] +
			       stats->losses.length[k];
}
