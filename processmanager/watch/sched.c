// SPDX-License-Identifier: Apache-2.0
/*
 * sched: the events that are made of segments of threads (bpf/abi_wait.h), sched_switch
 * and cpu_analysis: their records, and the published types of segments.
 */
#include <inttypes.h>
#include <string.h>

#include "processmanager/watch/internal.h"

/* --- types ------------------------------------------------------------------------- */

static const char *const sched_times[] = {
#define X(NAME, name) [WATCH_TIME_##NAME] = #name,
	WATCH_TIMES(X)
#undef X
};

static const char *const sched_reasons[] = {
#define X(NAME, name) [ABI_WAIT_##NAME] = #name,
	ABI_WAIT_REASONS(X)
#undef X
};

static const char *const sched_fds[] = {
#define X(NAME, word, category) [ABI_FD_##NAME] = word,
	ABI_FDS(X)
#undef X
};

/*
 * The published type of a segment, by its true reason, not by its system call: a read of a
 * pipe is none of a file, an accept is one of the network wherever it is made, and a page
 * that has to be read is one of a file without any call. The run queue and the kernel's own
 * locks have no type of their own.
 */
static const uint8_t sched_types[ABI_WAIT_REASON_MAX] = {
	[ABI_WAIT_ON] = WATCH_TIME_ON,
	[ABI_WAIT_WOKEN] = WATCH_TIME_OTHER,
	[ABI_WAIT_PREEMPTED] = WATCH_TIME_OTHER,
	[ABI_WAIT_YIELD] = WATCH_TIME_OTHER,
	[ABI_WAIT_NEW] = WATCH_TIME_OTHER,
	[ABI_WAIT_THROTTLED] = WATCH_TIME_OTHER,
	[ABI_WAIT_SLEEP] = WATCH_TIME_IDLE,
	[ABI_WAIT_FUTEX] = WATCH_TIME_FUTEX,
	[ABI_WAIT_POLL] = WATCH_TIME_EPOLL,
	[ABI_WAIT_DISK] = WATCH_TIME_FILE,
	[ABI_WAIT_SOCKET] = WATCH_TIME_NET,
	[ABI_WAIT_PIPE] = WATCH_TIME_OTHER,
	[ABI_WAIT_FAULT] = WATCH_TIME_FILE,
	[ABI_WAIT_LOCK] = WATCH_TIME_OTHER,
	[ABI_WAIT_STOP] = WATCH_TIME_OTHER,
	[ABI_WAIT_FROZEN] = WATCH_TIME_OTHER,
	[ABI_WAIT_CHILD] = WATCH_TIME_OTHER,
	[ABI_WAIT_OTHER] = WATCH_TIME_OTHER,
};

/* Where a reason has several: by the kind of the descriptor. */
static const struct {
	uint8_t reason, fd, type;
} sched_types_of_fd[] = {
	/* Of files, sockets or anything. */
	{ ABI_WAIT_POLL, ABI_FD_IO_URING, WATCH_TIME_OTHER },
};

enum watch_time watch_time(uint32_t what)
{
	uint32_t reason = ABI_WAIT_WHAT_REASON(what);
	uint32_t fd = ABI_WAIT_WHAT_FD(what);

	for (size_t i = 0; i < ARRAY_SIZE(sched_types_of_fd); i++)
		if (sched_types_of_fd[i].reason == reason &&
		    sched_types_of_fd[i].fd == fd)
			return sched_types_of_fd[i].type;
	return reason < ABI_WAIT_REASON_MAX ? sched_types[reason]
					    : WATCH_TIME_OTHER;
}

/* --- a switch ------------------------------------------------------------------------ */

const char *watch_sched_reason(uint64_t what)
{
	uint32_t reason = ABI_WAIT_WHAT_REASON((uint32_t)what);

	if (what == WATCH_SWITCH_ENDS)
		return "exit";
	return reason < ABI_WAIT_REASON_MAX ? sched_reasons[reason] : NULL;
}

const char *watch_sched_state(uint64_t what)
{
	uint32_t reason = ABI_WAIT_WHAT_REASON((uint32_t)what);

	return what == WATCH_SWITCH_ENDS      ? "dead"
	       : reason < ABI_WAIT_SLEEP      ? "runnable"
	       : reason < ABI_WAIT_REASON_MAX ? "off"
					      : NULL;
}

const char *watch_sched_call(uint64_t what)
{
	return watch_syscall(ABI_WAIT_WHAT_NR((uint32_t)what));
}

const char *watch_sched_fd(uint64_t what)
{
	uint32_t fd = ABI_WAIT_WHAT_FD((uint32_t)what);

	return fd && fd < ARRAY_SIZE(sched_fds) ? sched_fds[fd] : NULL;
}

static struct abi_watch_head sched_head(const struct watch_thread *t,
					uint16_t name, uint64_t time)
{
	struct abi_watch_head h = {
		.time = time,
		.key = t->key,
		.tid = t->tid,
		.uid = t->uid,
		.gid = t->gid,
		.name = name,
	};

	memcpy(h.comm, t->comm, sizeof(h.comm));
	return h;
}

void watch_post_switch(struct watch *w, const struct watch_thread *t,
		       const struct watch_switch *s)
{
	struct abi_watch_record r = {
		.head = sched_head(t, ABI_WATCH_SCHED_SWITCH, s->time),
		.v = { s->on_ns, s->what },
	};

	if (!watch_is_wanted(w, ABI_WATCH_SCHED_SWITCH))
		return;
	if (s->timed) {
		r.head.flags = ABI_WATCH_TIMED;
		r.head.latency = s->latency_ns;
	}
	watch_post(w, &r, sizeof(r));
}

/* --- segments ------------------------------------------------------------------------ */

/* Strings with a value for each segment, in order, with commas between. X(key, put) */
#define SCHED_LISTS(X)                   \
	X(time_type, sched_put_type)     \
	X(types, sched_put_word)         \
	X(type_specs, sched_put_ns)      \
	X(runq_latency, sched_put_queue) \
	X(reasons, sched_put_reason)     \
	X(syscalls, sched_put_call)      \
	X(fds, sched_put_fd)

enum sched_list {
#define X(key, put) SCHED_LIST_##key,
	SCHED_LISTS(X)
#undef X
	SCHED_N_LISTS,
};

/* Behind it are the lists, each with a NUL. */
struct sched_record {
	struct abi_watch_head head;
	uint64_t start, end, lost_ns;
	uint64_t n; /* segments */
	uint32_t len[SCHED_N_LISTS]; /* with the NUL */
	uint32_t pad;
};

static void sched_put_type(struct strbuf *sb, const struct watch_segment *s)
{
	strbuf_printf(sb, "%u", watch_time(s->what));
}

static void sched_put_word(struct strbuf *sb, const struct watch_segment *s)
{
	strbuf_puts(sb, sched_times[watch_time(s->what)]);
}

static void sched_put_ns(struct strbuf *sb, const struct watch_segment *s)
{
	strbuf_printf(sb, "%" PRIu64, s->ns);
}

static void sched_put_queue(struct strbuf *sb, const struct watch_segment *s)
{
	strbuf_printf(sb, "%" PRIu64, s->queued_ns);
}

/* "futex"; if something else than the wake-up kept it in the run queue "futex/throttled". */
static void sched_put_reason(struct strbuf *sb, const struct watch_segment *s)
{
	uint32_t reason = ABI_WAIT_WHAT_REASON(s->what);

	strbuf_puts(sb, reason < ABI_WAIT_REASON_MAX ? sched_reasons[reason]
						     : "other");
	if (reason >= ABI_WAIT_SLEEP && s->queue != ABI_WAIT_WOKEN &&
	    s->queue != ABI_WAIT_ON && s->queue < ABI_WAIT_REASON_MAX)
		strbuf_printf(sb, "/%s", sched_reasons[s->queue]);
}

static void sched_put_call(struct strbuf *sb, const struct watch_segment *s)
{
	strbuf_puts(sb, watch_sched_call(s->what) ?: "");
}

static void sched_put_fd(struct strbuf *sb, const struct watch_segment *s)
{
	strbuf_puts(sb, watch_sched_fd(s->what) ?: "");
}

void watch_post_analysis(struct watch *w, const struct watch_thread *t,
			 const struct watch_analysis *a)
{
	static void (*const puts[])(struct strbuf * sb,
				    const struct watch_segment *s) = {
#define X(key, put) put,
		SCHED_LISTS(X)
#undef X
	};
	struct sched_record r = {
		.head = sched_head(t, ABI_WATCH_CPU_ANALYSIS, a->end),
		.start = a->start,
		.end = a->end,
		.lost_ns = a->lost_ns,
		.n = a->n,
	};
	struct strbuf sb = STRBUF_INIT;
	size_t from;

	if (!watch_is_wanted(w, ABI_WATCH_CPU_ANALYSIS))
		return;
	strbuf_add(&sb, &r, sizeof(r));
	for (size_t list = 0; list < SCHED_N_LISTS; list++) {
		from = sb.len;
		for (size_t i = 0; i < a->n; i++) {
			strbuf_puts(&sb, i ? "," : "");
			puts[list](&sb, &a->segments[i]);
		}
		strbuf_add(&sb, "", 1);
		r.len[list] = (uint32_t)(sb.len - from);
	}
	if (sb.failed) {
		watch_post_lost(w, t->key.tgid, 1, 0);
	} else {
		memcpy(sb.data, &r, sizeof(r));
		watch_post(w, sb.data, sb.len);
	}
	strbuf_fini(&sb);
}

bool watch_sched_is(const void *record, size_t len)
{
	const struct sched_record *r = record;
	const char *text = (const char *)(r + 1);

	if (len < sizeof(*r))
		return false;
	len -= sizeof(*r);
	for (size_t i = 0; i < SCHED_N_LISTS; i++) {
		if (!r->len[i] || r->len[i] > len ||
		    strnlen(text, r->len[i]) + 1 != r->len[i])
			return false;
		text += r->len[i];
		len -= r->len[i];
	}
	return !len;
}

static void sched_add(struct watch_event *e, const char *key, uint64_t v)
{
	e->attributes[e->n_attributes++] = (struct watch_attribute){
		.key = key, .type = WATCH_UINT, .u = v
	};
}

void watch_sched_decode(const void *record, struct watch_event *out)
{
	static const char *const keys[] = {
#define X(key, put) #key,
		SCHED_LISTS(X)
#undef X
	};
	const struct sched_record *r = record;
	const char *text = (const char *)(r + 1);

	sched_add(out, "start_time", r->start);
	sched_add(out, "end_time", r->end);
	sched_add(out, "segments", r->n);
	for (size_t i = 0; i < SCHED_N_LISTS; i++) {
		out->attributes[out->n_attributes++] = (struct watch_attribute){
			.key = keys[i], .type = WATCH_STRING, .s = text
		};
		text += r->len[i];
	}
	if (r->lost_ns)
		sched_add(out, "lost", r->lost_ns);
}
