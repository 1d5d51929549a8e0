// SPDX-License-Identifier: Apache-2.0
/* decode: a record of the kernel as an event. */
#include <errno.h>
#include <string.h>

#include "processmanager/watch/internal.h"

enum value_kind {
	VALUE_UINT,
	VALUE_UINT_OR_NONE, /* 0: left out */
	VALUE_INT,
	VALUE_INT_OR_NONE, /* 0: left out */
	VALUE_RESULT, /* left out if the next one is set */
	VALUE_STATE, /* of a TCP socket */
	VALUE_SENT, /* what became of a signal */
	VALUE_REASON, /* of a dropped packet */
	/* Of a switch; left out if it is not known. */
	VALUE_WAIT_REASON,
	VALUE_WAIT_STATE,
	VALUE_WAIT_CALL,
	VALUE_WAIT_FD,
};

static const struct {
	uint8_t name; /* enum abi_watch_name */
	uint8_t value; /* its index */
	uint8_t kind;
	const char *key;
} values[] = {
	{ ABI_WATCH_PROCESS_FORK, 0, VALUE_UINT, "ppid" },
	{ ABI_WATCH_PROCESS_EXIT, 0, VALUE_UINT, "status" },
	{ ABI_WATCH_SIGNAL_GENERATE, 0, VALUE_UINT, "sig" },
	{ ABI_WATCH_SIGNAL_GENERATE, 1, VALUE_UINT_OR_NONE, "spid" },
	{ ABI_WATCH_SIGNAL_GENERATE, 2, VALUE_UINT, "dpid" },
	{ ABI_WATCH_SIGNAL_GENERATE, 3, VALUE_INT, "code" },
	{ ABI_WATCH_SIGNAL_GENERATE, 4, VALUE_SENT, "result" },
	{ ABI_WATCH_SIGNAL_DELIVER, 0, VALUE_UINT, "sig" },
	{ ABI_WATCH_SIGNAL_DELIVER, 1, VALUE_UINT_OR_NONE, "spid" },
	{ ABI_WATCH_SIGNAL_DELIVER, 2, VALUE_UINT, "dpid" },
	{ ABI_WATCH_SIGNAL_DELIVER, 3, VALUE_INT, "code" },
	{ ABI_WATCH_TCP_CONNECT, 0, VALUE_RESULT, "retval" },
	{ ABI_WATCH_TCP_RTT, 0, VALUE_UINT, "rtt" },
	{ ABI_WATCH_TCP_CLOSE, 0, VALUE_UINT, "bytes_acked" },
	{ ABI_WATCH_TCP_CLOSE, 1, VALUE_UINT, "bytes_received" },
	{ ABI_WATCH_TCP_CLOSE, 2, VALUE_UINT, "segs_out" },
	{ ABI_WATCH_TCP_CLOSE, 3, VALUE_UINT, "segs_in" },
	{ ABI_WATCH_TCP_CLOSE, 4, VALUE_UINT, "retransmits" },
	{ ABI_WATCH_TCP_CLOSE, 5, VALUE_UINT_OR_NONE, "rtt" },
	{ ABI_WATCH_TCP_CLOSE, 6, VALUE_UINT_OR_NONE, "error" },
	{ ABI_WATCH_TCP_STATE, 0, VALUE_STATE, "old_state" },
	{ ABI_WATCH_TCP_STATE, 1, VALUE_STATE, "new_state" },
	{ ABI_WATCH_TCP_RETRANSMIT, 0, VALUE_UINT, "segs" },
	{ ABI_WATCH_TCP_RETRANSMIT, 1, VALUE_STATE, "state" },
	{ ABI_WATCH_TCP_RETRANSMIT, 2, VALUE_INT_OR_NONE, "retval" },
	{ ABI_WATCH_TCP_DROP, 0, VALUE_REASON, "reason" },
	{ ABI_WATCH_SCHED_SWITCH, 0, VALUE_UINT_OR_NONE, "on" },
	{ ABI_WATCH_SCHED_SWITCH, 1, VALUE_WAIT_STATE, "state" },
	{ ABI_WATCH_SCHED_SWITCH, 1, VALUE_WAIT_REASON, "reason" },
	{ ABI_WATCH_SCHED_SWITCH, 1, VALUE_WAIT_CALL, "syscall" },
	{ ABI_WATCH_SCHED_SWITCH, 1, VALUE_WAIT_FD, "fd" },
};

/* net/tcp_states.h. */
static const char *const states[] = {
	NULL,		"ESTABLISHED",	  "SYN_SENT",  "SYN_RECV",
	"FIN_WAIT1",	"FIN_WAIT2",	  "TIME_WAIT", "CLOSE",
	"CLOSE_WAIT",	"LAST_ACK",	  "LISTEN",    "CLOSING",
	"NEW_SYN_RECV", "BOUND_INACTIVE",
};

/* include/trace/events/signal.h. */
static const char *const sent[] = { "delivered", "ignored", "already_pending",
				    "overflow_fail", "lose_info" };

static const char *decode_reason(uint64_t v)
{
	return v < WATCH_REASONS_MAX ? watch_kernel()->reasons[v] : NULL;
}

static void decode_text(struct watch_attribute *a, const char *text, uint64_t v)
{
	a->type = text ? WATCH_STRING : WATCH_UINT;
	if (text)
		a->s = text;
	else
		a->u = v;
}

/* Of what follows a switch. */
static bool decode_what(struct watch_attribute *a, enum value_kind kind,
			uint64_t what)
{
	const char *text = kind == VALUE_WAIT_REASON  ? watch_sched_reason(what)
			   : kind == VALUE_WAIT_STATE ? watch_sched_state(what)
			   : kind == VALUE_WAIT_CALL  ? watch_sched_call(what)
						      : watch_sched_fd(what);

	decode_text(a, text, what);
	return text;
}

/* False: it is left out. */
static bool decode_value(struct watch_attribute *a, enum value_kind kind,
			 const __u64 *v)
{
	a->type = WATCH_UINT;
	a->u = *v;
	switch (kind) {
	case VALUE_UINT:
		return true;
	case VALUE_UINT_OR_NONE:
		return *v != 0;
	case VALUE_INT:
	case VALUE_INT_OR_NONE:
	case VALUE_RESULT:
		a->type = WATCH_INT;
		a->i = (int64_t)*v;
		return kind == VALUE_INT_OR_NONE ? *v != 0
		       : kind == VALUE_RESULT	 ? !v[1]
						 : true;
	case VALUE_STATE:
		decode_text(a, *v < ARRAY_SIZE(states) ? states[*v] : NULL, *v);
		return true;
	case VALUE_SENT:
		decode_text(a, *v < ARRAY_SIZE(sent) ? sent[*v] : NULL, *v);
		return true;
	case VALUE_REASON:
		decode_text(a, decode_reason(*v), *v);
		return true;
	case VALUE_WAIT_REASON:
	case VALUE_WAIT_STATE:
	case VALUE_WAIT_CALL:
	case VALUE_WAIT_FD:
		return decode_what(a, kind, *v);
	}
	return false;
}

static void decode_head(const struct abi_watch_head *h, struct watch_event *out)
{
	*out = (struct watch_event){
		.time = h->time,
		.timed = h->flags & ABI_WATCH_TIMED,
		.failed = h->flags & ABI_WATCH_FAILED,
		.latency_ns = h->latency,
		.key = h->key,
		.tid = h->tid,
		.uid = h->uid,
		.gid = h->gid,
		.fd = { .num = -1,
			.pair = -1,
			.protocol = "",
			.role = "",
			.path = "" },
	};
	memcpy(out->comm, h->comm, sizeof(out->comm));
	out->comm[sizeof(out->comm) - 1] = '\0';
}

int watch_decode_name(const void *record, size_t len)
{
	const struct abi_watch_head *h = record;

	if (len < sizeof(*h))
		return -EINVAL;
	if (h->name >= ABI_WATCH_NAMES)
		return watch_call_name(record, len);
	if (h->name == ABI_WATCH_CPU_ANALYSIS)
		return watch_sched_is(record, len) ? h->name : -EINVAL;
	return len == sizeof(struct abi_watch_record) ? h->name : -EINVAL;
}

int watch_decode(const void *record, size_t len, struct watch_event *out)
{
	const struct abi_watch_record *r = record;
	int name = watch_decode_name(record, len);
	struct watch_attribute *a;

	if (name < 0)
		return name;
	decode_head(&r->head, out);
	out->category = watch_name((size_t)name)->category;
	if (name >= ABI_WATCH_NAMES)
		return watch_call_decode(record, len, out);
	out->name = (size_t)name;
	if (name == ABI_WATCH_CPU_ANALYSIS) {
		watch_sched_decode(record, out);
		return 0;
	}
	out->created_by = r->created_by;
	if (r->head.flags & ABI_WATCH_SOCKET)
		watch_fd_decode_tcp(r, &out->fd);
	for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
		if (values[i].name != name)
			continue;
		a = &out->attributes[out->n_attributes];
		a->key = values[i].key;
		out->n_attributes +=
			decode_value(a, values[i].kind, &r->v[values[i].value]);
	}
	return 0;
}
