// SPDX-License-Identifier: Apache-2.0
/* Names and patterns of watched events, and records as events. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "processmanager/watch/internal.h"

#define TCP_NAMES (WATCH_TCP | WATCH_BIT(ABI_WATCH_TCP_DROP))

static void patterns_mean_names(void **state)
{
	static const struct {
		const char *pattern;
		uint32_t names;
	} rows[] = {
		{ "tcp_connect", WATCH_BIT(ABI_WATCH_TCP_CONNECT) },
		{ "kprobe-tcp_connect", WATCH_BIT(ABI_WATCH_TCP_CONNECT) },
		{ "kretprobe-tcp_connect", WATCH_BIT(ABI_WATCH_TCP_CONNECT) },
		{ "tracepoint-procexit", WATCH_BIT(ABI_WATCH_PROCESS_EXIT) },
		{ "signaldeliver", WATCH_BIT(ABI_WATCH_SIGNAL_DELIVER) },
		{ "kfree_skb", WATCH_BIT(ABI_WATCH_TCP_DROP) },
		{ "tcp_*_reset",
		  WATCH_BIT(ABI_WATCH_TCP_SEND_RESET) |
			  WATCH_BIT(ABI_WATCH_TCP_RECEIVE_RESET) },
		{ "tcp_*", TCP_NAMES },
		{ "tcp_close/net", WATCH_BIT(ABI_WATCH_TCP_CLOSE) },
		{ "tcp_close/*", WATCH_BIT(ABI_WATCH_TCP_CLOSE) },
		{ "sched_switch", WATCH_BIT(ABI_WATCH_SCHED_SWITCH) },
		{ "tracepoint-cpu_analysis/scheduler",
		  WATCH_BIT(ABI_WATCH_CPU_ANALYSIS) },
	};
	struct strbuf why = STRBUF_INIT;
	struct watch_set names;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		memset(&names, 0, sizeof(names));
		if (watch_names_match(rows[i].pattern, &names, &why))
			fail_msg("%s: %s", rows[i].pattern, strbuf_str(&why));
		if (names.w[0] != rows[i].names)
			fail_msg("%s: %" PRIx64, rows[i].pattern, names.w[0]);
	}
	strbuf_fini(&why);
}

static size_t match(const char *pattern, struct watch_set *names,
		    struct strbuf *why)
{
	size_t n = 0;

	memset(names, 0, sizeof(*names));
	strbuf_reset(why);
	if (watch_names_match(pattern, names, why))
		fail_msg("%s: %s", pattern, strbuf_str(why));
	for (size_t i = 0; i < WATCH_N_NAMES; i++)
		n += watch_set_has(names, i);
	return n;
}

static void patterns_of_system_calls(void **state)
{
	static const struct {
		const char *pattern;
		size_t n;
		enum watch_name_index has;
	} rows[] = {
		{ "syscall_exit-read", 1, WATCH_EXIT_read },
		{ "tracepoint-syscall_exit-read", 1, WATCH_EXIT_read },
		{ "syscall_*-openat", 2, WATCH_ENTER_openat },
		{ "openat", 2, WATCH_EXIT_openat },
		{ "exit", 1, WATCH_ENTER_exit },
		{ "syscall_*-exit_group", 1, WATCH_ENTER_exit_group },
		{ "syscall_*-rt_sigreturn", 1, WATCH_ENTER_rt_sigreturn },
		{ "syscall_exit-pread", 1, WATCH_EXIT_pread64 },
		{ "pwrite", 2, WATCH_EXIT_pwrite64 },
		{ "syscall_enter-umount", 1, WATCH_ENTER_umount2 },
		{ "syscall_enter-newfstat", 1, WATCH_ENTER_fstat },
		{ "syscall_exit-mmap2", 1, WATCH_EXIT_mmap },
		{ "syscall_exit-*/signal", 6, WATCH_EXIT_tgkill },
		{ "syscall_exit-read/*", 1, WATCH_EXIT_read },
		/* Not those that need more. */
		{ "*", WATCH_N_NAMES - 2, WATCH_EXIT_file_setattr },
		{ "*/process", 3 + 2 * 19, WATCH_EXIT_execve },
	};
	struct strbuf why = STRBUF_INIT;
	struct watch_set names;
	size_t n;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		n = match(rows[i].pattern, &names, &why);
		if (n != rows[i].n || !watch_set_has(&names, rows[i].has))
			fail_msg("%s: %zu", rows[i].pattern, n);
		if (why.len)
			fail_msg("%s: %s", rows[i].pattern, why.data);
	}
	strbuf_fini(&why);
}

/* Which descriptors a pattern means, of calls that may have any. */
static void categories_by_descriptor(void **state)
{
	static const struct {
		const char *pattern;
		size_t n;
		uint8_t read, socket; /* categories of their exits */
	} rows[] = {
		{ "syscall_exit-read/file", 1, 1 << ABI_WATCH_FILE, 0 },
		{ "syscall_exit-read/net", 1, 1 << ABI_WATCH_NET, 0 },
		{ "read/ipc", 2, 1 << ABI_WATCH_IPC, 0 },
		{ "syscall_exit-read/other", 1, 1 << ABI_WATCH_OTHER, 0 },
		{ "syscall_exit-read", 1, ABI_WATCH_ANY_CATEGORY, 0 },
		{ "syscall_exit-read/[fn]*", 1,
		  1 << ABI_WATCH_FILE | 1 << ABI_WATCH_NET, 0 },
		{ "syscall_exit-*/net", 11 + 24, 1 << ABI_WATCH_NET,
		  ABI_WATCH_ANY_CATEGORY },
		{ "socket/net", 2, 0, ABI_WATCH_ANY_CATEGORY },
	};
	struct strbuf why = STRBUF_INIT;
	struct watch_set names, more;
	size_t n;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		n = match(rows[i].pattern, &names, &why);
		if (n != rows[i].n)
			fail_msg("%s: %zu", rows[i].pattern, n);
		assert_int_equal(names.categories[WATCH_EXIT_read],
				 rows[i].read);
		assert_int_equal(names.categories[WATCH_EXIT_socket],
				 rows[i].socket);
		assert_int_equal(why.len, 0);
	}
	/* Together they are all that is wanted. */
	match("syscall_exit-read/file", &names, &why);
	match("read/ipc", &more, &why);
	watch_set_join(&names, &more);
	assert_int_equal(names.categories[WATCH_EXIT_read],
			 1 << ABI_WATCH_FILE | 1 << ABI_WATCH_IPC);
	assert_int_equal(names.categories[WATCH_ENTER_read],
			 1 << ABI_WATCH_IPC);
	strbuf_fini(&why);
}

static void wrong_ones_say_why(void **state)
{
	static const struct {
		const char *pattern, *why;
	} rows[] = {
		{ "tcp_conect", "'tcp_conect': no such event; there are "
				"tcp_connect, tcp_accept" },
		{ "foo", "'foo': no such event; there are process_fork" },
		{ "", "'': no such event" },
		{ "/", "'/': no such event" },
		{ "kprobe-tcp_conect", "'kprobe-tcp_conect': no such event; "
				       "there are tcp_connect, tcp_accept" },
		{ "fork_", "'fork_': no such event; there are " },
		{ "syscall_exit-raed",
		  "no such event; there are process_fork" },
		{ "syscall_exit-op", "there are syscall_exit-open, " },
		{ "syscall_exit-exit", "no such event" },
		{ "syscall_exit-openat/net",
		  "no such event has this category; there are file" },
		{ "read/process", "no such event has this category; there are "
				  "file, net, ipc, other" },
		{ "tcp_close/signal",
		  "no such event has this category; there are net" },
		{ "*/nosuch", "no such event has this category; there are "
			      "process, signal, net, file, ipc, other" },
		{ "sched_*", "no such event; there are sched_switch" },
		{ "tcp_close-and-a-name-that-is-much-longer-than-any-of-them-is",
		  "no such event" },
	};
	struct strbuf why = STRBUF_INIT;
	struct watch_set names = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		strbuf_reset(&why);
		assert_int_equal(watch_names_match(rows[i].pattern, &names,
						   &why),
				 -EINVAL);
		if (!strstr(strbuf_str(&why), rows[i].why))
			fail_msg("%s", strbuf_str(&why));
	}
	assert_true(watch_set_is_empty(&names));
	strbuf_fini(&why);
}

static const struct watch_attribute *attribute(const struct watch_event *e,
					       const char *key)
{
	for (size_t i = 0; i < e->n_attributes; i++)
		if (!strcmp(e->attributes[i].key, key))
			return &e->attributes[i];
	return NULL;
}

/* Whatever a record has, an event's strings end, and no table is left. */
static void no_record_harms(void **state)
{
	struct abi_watch_record r;
	struct watch_event e;

	for (unsigned int name = 0; name < 40; name++) {
		memset(&r, 0xff, sizeof(r));
		r.head.name = (uint16_t)name;
		if (name >= ABI_WATCH_NAMES || name == ABI_WATCH_CPU_ANALYSIS) {
			assert_int_equal(watch_decode(&r, sizeof(r), &e),
					 -EINVAL);
			continue;
		}
		assert_int_equal(watch_decode(&r, sizeof(r) - 1, &e), -EINVAL);
		assert_int_equal(watch_decode(&r, sizeof(r), &e), 0);
		assert_true(e.n_attributes <= WATCH_ATTRIBUTES_MAX);
		assert_int_equal(strnlen(e.comm, sizeof(e.comm)),
				 sizeof(e.comm) - 1);
		assert_string_equal(e.fd.src, ""); /* of no family */
	}
}

static void states_and_addresses(void **state)
{
	struct abi_watch_record r = {
		.head.name = ABI_WATCH_TCP_STATE,
		.head.flags = ABI_WATCH_SOCKET | ABI_WATCH_CLIENT,
		.ends = { .family = 2,
			  .sport = 1,
			  .dport = 65535,
			  .src = { 127, 0, 0, 1 },
			  .dst = { 255, 255, 255, 255 } },
		.v = { 2, 99 },
	};
	struct watch_event e;

	assert_int_equal(watch_decode(&r, sizeof(r), &e), 0);
	assert_string_equal(e.fd.src, "127.0.0.1:1");
	assert_string_equal(e.fd.dst, "255.255.255.255:65535");
	assert_string_equal(e.fd.role, "client");
	assert_string_equal(attribute(&e, "old_state")->s, "SYN_SENT");
	assert_int_equal(attribute(&e, "new_state")->type, WATCH_UINT);
	assert_int_equal(attribute(&e, "new_state")->u, 99);
	r.ends.family = 10;
	memset(r.ends.dst, 0xab, 16);
	assert_int_equal(watch_decode(&r, sizeof(r), &e), 0);
	assert_string_equal(e.fd.dst,
			    "[abab:abab:abab:abab:abab:abab:abab:abab]:65535");
}

/* --- descriptors ------------------------------------------------------------------ */

/* A record of the end of a read with a descriptor and its text. */
static struct {
	struct abi_watch_call call;
	struct abi_watch_fd fd;
	char text[300];
} record;

static int decode_fd(uint8_t kind, const char *text, size_t len,
		     struct watch_event *e)
{
	memset(&record.call, 0, sizeof(record.call));
	record.call.head.name = ABI_WATCH_CALL(0, 1);
	record.call.head.flags = ABI_WATCH_DESCRIPTOR;
	record.fd.kind = kind;
	record.fd.num = 3;
	record.fd.pair = -1;
	record.fd.text_len = (uint16_t)len;
	memcpy(record.text, text, len);
	return watch_decode(&record, offsetof(__typeof__(record), text) + len,
			    e);
}

static void files_have_names(void **state)
{
	static const struct {
		const char *text;
		size_t len;
		const char *path, *file;
	} rows[] = {
		{ "/etc/passwd", 12, "/etc/passwd", "passwd" },
		{ "/x", 3, "/x", "x" },
		{ "/", 2, "/", "" },
		/* Not a string, and one that another one has come into. */
		{ "/etc/passwd", 11, "", "" },
		{ "/etc\0passwd", 12, "", "" },
		{ "", 0, "", "" },
	};
	struct watch_event e;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		memset(&record.fd, 0, sizeof(record.fd));
		assert_int_equal(decode_fd(ABI_FD_FILE, rows[i].text,
					   rows[i].len, &e),
				 0);
		assert_string_equal(e.fd.kind, "file");
		assert_string_equal(e.category, "file");
		assert_string_equal(e.fd.path, rows[i].path);
		assert_string_equal(e.fd.path + e.fd.file, rows[i].file);
	}
}

static void unix_sockets_have_two_ends(void **state)
{
	static const struct {
		const char *text;
		size_t src_len, len;
		uint8_t flags;
		const char *src, *dst, *role;
	} rows[] = {
		{ "/a\0\0b", 3, 5, ABI_WATCH_FD_CONNECTED, "/a", "@b", "" },
		{ "/a\0", 3, 3, ABI_WATCH_FD_CONNECTED, "/a", "", "server" },
		{ "/a\0", 3, 3, ABI_WATCH_FD_SERVER, "/a", "", "server" },
		{ "/a\0", 3, 3, 0, "/a", "", "" },
		{ "/a\0", 0, 3, ABI_WATCH_FD_CONNECTED, "", "/a", "client" },
		{ "\0x\0y", 4, 4, 0, "@x@y", "", "" },
		{ "/a", 200, 2, 0, "/a", "", "" },
		{ "", 0, 0, ABI_WATCH_FD_CONNECTED, "", "", "" },
	};
	char long_one[290];
	struct watch_event e;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		memset(&record.fd, 0, sizeof(record.fd));
		record.fd.ends.family = 1;
		record.fd.src_len = (uint16_t)rows[i].src_len;
		record.fd.flags = rows[i].flags;
		assert_int_equal(decode_fd(ABI_FD_UNIX, rows[i].text,
					   rows[i].len, &e),
				 0);
		assert_string_equal(e.category, "ipc");
		assert_string_equal(e.fd.protocol, "unix");
		assert_string_equal(e.fd.src, rows[i].src);
		assert_string_equal(e.fd.dst, rows[i].dst);
		assert_string_equal(e.fd.role, rows[i].role);
	}
	memset(long_one, 'x', sizeof(long_one));
	record.fd.src_len = 150;
	assert_int_equal(decode_fd(ABI_FD_UNIX, long_one, sizeof(long_one), &e),
			 0);
	assert_int_equal(strlen(e.fd.src), WATCH_ADDRESS_MAX - 1);
}

static void no_descriptor_harms(void **state)
{
	struct watch_event e;
	size_t len = offsetof(__typeof__(record), text) + sizeof(record.text);

	memset(&record, 0xff, sizeof(record));
	record.call.head.name = ABI_WATCH_CALL(0, 1);
	record.call.path_len[0] = record.call.path_len[1] = 0;
	record.fd.text_len = sizeof(record.text);
	for (unsigned int kind = 0; kind < 256; kind++) {
		record.fd.kind = (uint8_t)kind;
		assert_int_equal(watch_decode(&record, len, &e), 0);
		assert_true(!e.fd.kind == (kind >= ABI_FD_KINDS));
		assert_non_null(e.category);
		assert_int_equal(watch_decode(&record, len - 1, &e), -EINVAL);
	}
	for (size_t n = 0; n < len; n++)
		assert_int_equal(watch_decode(&record, n, &e), -EINVAL);
	/* Short texts have a slot of one size: there may be bytes behind. */
	record.fd.kind = ABI_FD_FILE;
	strcpy(record.text, "/x");
	record.fd.text_len = sizeof("/x");
	assert_int_equal(watch_decode(&record, len, &e), 0);
	assert_string_equal(e.fd.path, "/x");
	/* Without one its category is other. */
	record.call.head.flags = 0;
	assert_int_equal(watch_decode(&record, sizeof(record.call), &e), 0);
	assert_null(e.fd.kind);
	assert_string_equal(e.category, "other");
}

/* Patterns are checked, and limits hold, before anything is loaded. */
static void subscribers_are_bounded(void **state)
{
	static const char *const name[] = { "tcp_close" };
	static const uint32_t pids[WATCH_PIDS_MAX + 1];
	struct watch_want want = { .names = name, .n_names = 1 };
	struct watch_sub *subs[WATCH_SUBS_MAX], *more;
	struct strbuf why = STRBUF_INIT;
	struct watch *w;

	assert_int_equal(watch_new(&w, &(struct watch_opts){ 0 }), 0);
	assert_false(watch_pending(w));
	want.n_names = 0;
	assert_int_equal(watch_subscribe(w, &want, &more, &why), -EINVAL);
	want.n_names = 1;
	want.pids = pids;
	want.n_pids = WATCH_PIDS_MAX + 1;
	assert_int_equal(watch_subscribe(w, &want, &more, &why), -EINVAL);
	want.n_pids = 0;
	for (size_t i = 0; i < WATCH_SUBS_MAX; i++)
		assert_int_equal(watch_subscribe(w, &want, &subs[i], &why), 0);
	assert_int_equal(watch_subscribe(w, &want, &more, &why), -EUSERS);
	assert_true(watch_pending(w));
	assert_true(watch_wants(subs[0], ABI_WATCH_TCP_CLOSE));
	assert_false(watch_wants(subs[0], ABI_WATCH_TCP_CONNECT));
	watch_unsubscribe(subs[7]);
	assert_int_equal(watch_subscribe(w, &want, &more, &why), 0);
	watch_free(w);
	strbuf_fini(&why);
}

/* --- what threads do ---------------------------------------------------------------- */

#define WHAT(reason, fd) \
	ABI_WAIT_WHAT(ABI_WAIT_NO_CALL, ABI_WAIT_##reason, ABI_FD_##fd)

/* True kinds decide, not system calls. */
static void types_are_those_of_the_reason(void **state)
{
	static const struct {
		uint32_t what;
		enum watch_time type;
	} rows[] = {
		{ WHAT(ON, NONE), WATCH_TIME_ON },
		{ WHAT(WOKEN, NONE), WATCH_TIME_OTHER },
		{ WHAT(PREEMPTED, NONE), WATCH_TIME_OTHER },
		{ WHAT(YIELD, NONE), WATCH_TIME_OTHER },
		{ WHAT(NEW, NONE), WATCH_TIME_OTHER },
		{ WHAT(THROTTLED, NONE), WATCH_TIME_OTHER },
		{ WHAT(SLEEP, NONE), WATCH_TIME_IDLE },
		{ WHAT(SLEEP, TIMERFD), WATCH_TIME_IDLE },
		{ WHAT(FUTEX, NONE), WATCH_TIME_FUTEX },
		{ WHAT(POLL, NONE), WATCH_TIME_EPOLL },
		{ WHAT(POLL, EPOLL), WATCH_TIME_EPOLL },
		{ WHAT(POLL, IO_URING), WATCH_TIME_OTHER },
		{ WHAT(DISK, FILE), WATCH_TIME_FILE },
		{ WHAT(DISK, BLOCK), WATCH_TIME_FILE },
		{ WHAT(FAULT, NONE), WATCH_TIME_FILE },
		{ WHAT(SOCKET, SOCKET), WATCH_TIME_NET },
		{ WHAT(PIPE, PIPE), WATCH_TIME_OTHER },
		{ WHAT(PIPE, FIFO), WATCH_TIME_OTHER },
		{ WHAT(LOCK, FILE), WATCH_TIME_OTHER },
		{ WHAT(STOP, NONE), WATCH_TIME_OTHER },
		{ WHAT(FROZEN, NONE), WATCH_TIME_OTHER },
		{ WHAT(CHILD, NONE), WATCH_TIME_OTHER },
		{ WHAT(OTHER, EVENTFD), WATCH_TIME_OTHER },
		{ WATCH_SWITCH_UNKNOWN, WATCH_TIME_OTHER },
	};
	bool seen[ABI_WAIT_REASON_MAX + 1] = { false };

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		if (watch_time(rows[i].what) != rows[i].type)
			fail_msg("row %zu: %u", i, watch_time(rows[i].what));
		seen[ABI_WAIT_WHAT_REASON(rows[i].what)] = true;
	}
	for (size_t i = 0; i < ARRAY_SIZE(seen); i++)
		assert_true(seen[i]);
	/* As Kindling's probe numbers them. */
	assert_int_equal(WATCH_TIME_ON, 0);
	assert_int_equal(WATCH_TIME_FILE, 1);
	assert_int_equal(WATCH_TIME_NET, 2);
	assert_int_equal(WATCH_TIME_FUTEX, 3);
	assert_int_equal(WATCH_TIME_IDLE, 4);
	assert_int_equal(WATCH_TIME_OTHER, 5);
	assert_int_equal(WATCH_TIME_EPOLL, 6);
}

static int follow_any(void *arg, uint32_t pid, bool begins)
{
	*(int *)arg += begins ? 1 : -1;
	return 0;
}

static const struct watch_thread thread = {
	.key = { .tgid = 5, .start_boottime = 6, .exec_id = 7 },
	.tid = 8,
	.comm = "0123456789abcde",
};

/* A subscriber to a name of process 5. */
static struct watch_sub *subscribe_5(struct watch *w, const char *name,
				     uint64_t slower)
{
	static const uint32_t pid = 5;
	const struct watch_want want = { .names = &name,
					 .n_names = 1,
					 .pids = &pid,
					 .n_pids = 1,
					 .slower_ns = slower };
	struct strbuf why = STRBUF_INIT;
	struct watch_sub *s;

	assert_int_equal(watch_subscribe(w, &want, &s, &why), 0);
	strbuf_fini(&why);
	return s;
}

/* Into the same queues, with the same filters; who is slow loses his own only. */
static void events_of_user_space_are_queued(void **state)
{
	struct watch_switch e = { .time = 9,
				  .timed = true,
				  .what = WHAT(PIPE, PIPE) };
	struct watch_thread other = thread;
	struct watch_sub *all, *slow, *idle;
	int followed = 0, n = 0;
	struct watch_event got;
	struct watch_stats stats;
	struct watch *w;

	assert_int_equal(watch_new(&w,
				   &(struct watch_opts){
					   .follow = follow_any,
					   .arg = &followed,
				   }),
			 0);
	assert_false(watch_is_wanted(w, ABI_WATCH_SCHED_SWITCH));
	all = subscribe_5(w, "sched_switch", 0);
	slow = subscribe_5(w, "sched_switch", 100);
	idle = subscribe_5(w, "process_exec", 0);
	assert_int_equal(followed, 2);
	assert_true(watch_is_wanted(w, ABI_WATCH_SCHED_SWITCH));
	for (; n < 10000; n++) {
		e.latency_ns = (uint64_t)n;
		watch_post_switch(w, &thread, &e);
		if (n % 1000 == 0)
			assert_int_equal(watch_next(all, &got), 0);
	}
	other.key.tgid = 6;
	watch_post_switch(w, &other, &e);
	e.timed = false;
	watch_post_switch(w, &thread, &e);
	assert_int_equal(watch_lost(all, ABI_WATCH_SCHED_SWITCH),
			 10001 - 10 - 8192);
	assert_int_equal(watch_lost(slow, ABI_WATCH_SCHED_SWITCH), 9900 - 8192);
	assert_int_equal(watch_lost(idle, ABI_WATCH_SCHED_SWITCH), 0);
	assert_int_equal(watch_next(idle, &got), -EAGAIN);
	assert_int_equal(watch_next(slow, &got), 0);
	assert_int_equal(got.latency_ns, 100);
	assert_int_equal(got.tid, 8);
	assert_string_equal(got.comm, "0123456789abcde");
	assert_string_equal(attribute(&got, "fd")->s, "pipe");
	/* Of the process and the names. */
	watch_post_lost(w, 6, 1, 1);
	watch_post_lost(w, 5, 3, 4);
	assert_int_equal(watch_lost(slow, ABI_WATCH_SCHED_SWITCH),
			 9900 - 8192 + 7);
	assert_int_equal(watch_lost(slow, ABI_WATCH_CPU_ANALYSIS), 0);
	assert_int_equal(watch_lost(idle, ABI_WATCH_SCHED_SWITCH), 0);
	watch_stats(w, &stats);
	assert_int_equal(stats.made, 10002);
	assert_int_equal(stats.dropped, 4);
	assert_int_equal(stats.limited, 5);
	assert_int_equal(stats.records, 0);
	watch_free(w);
	assert_int_equal(followed, 0);
}

/* Nothing is attached for them: they are ready without a hook, and without a ring. */
static void segments_need_no_hook(void **state)
{
	struct strbuf hooks = STRBUF_INIT;
	struct watch_set names;
	struct watch_sub *s;
	const char *why;
	int followed = 0;
	struct watch *w;

	assert_int_equal(watch_new(&w,
				   &(struct watch_opts){
					   .follow = follow_any,
					   .arg = &followed,
				   }),
			 0);
	s = subscribe_5(w, "cpu_analysis", 0);
	assert_int_equal(watch_ready(s, &why), 0);
	assert_int_equal(watch_work(w), 0);
	watch_worked(w);
	assert_int_equal(watch_ready(s, &why), 1);
	assert_int_equal(watch_fd(w), -1);
	watch_hooks(s, &hooks);
	watch_name_hooks(ABI_WATCH_CPU_ANALYSIS, &hooks);
	assert_int_equal(hooks.len, 0);
	assert_non_null(
		strstr(watch_name_needs(ABI_WATCH_CPU_ANALYSIS), "--wait"));
	assert_null(watch_name_needs(ABI_WATCH_TCP_DROP));
	assert_null(watch_name_lack(ABI_WATCH_CPU_ANALYSIS));
	watch_free(w);
	match("cpu_analysis", &names, &hooks);
	assert_int_equal(watch_mask_of(&names), 0);
	assert_int_equal(watch_hook_of(ABI_WATCH_CPU_ANALYSIS), WATCH_N_HOOKS);
	strbuf_fini(&hooks);
}

/* A record with a list that does not end where it should is none. */
static void no_analysis_harms(void **state)
{
	struct {
		struct abi_watch_head head;
		uint64_t start, end, lost_ns, n;
		uint32_t len[7], pad;
		char lists[7][2];
	} r = { .head.name = ABI_WATCH_CPU_ANALYSIS, .start = 3, .lost_ns = 9 };
	const size_t len = offsetof(__typeof__(r), lists) + sizeof(r.lists);
	struct watch_event e;

	for (size_t i = 0; i < ARRAY_SIZE(r.lists); i++) {
		r.len[i] = 2;
		r.lists[i][0] = (char)('a' + i);
	}
	assert_int_equal(watch_decode(&r, len, &e), 0);
	assert_int_equal(e.name, ABI_WATCH_CPU_ANALYSIS);
	assert_int_equal(attribute(&e, "start_time")->u, 3);
	assert_int_equal(attribute(&e, "lost")->u, 9);
	assert_string_equal(attribute(&e, "time_type")->s, "a");
	assert_string_equal(attribute(&e, "fds")->s, "g");
	assert_true(e.n_attributes <= WATCH_ATTRIBUTES_MAX);
	for (size_t n = 0; n < len; n++)
		assert_int_equal(watch_decode(&r, n, &e), -EINVAL);
	for (size_t i = 0; i < ARRAY_SIZE(r.lists); i++) {
		r.lists[i][1] = 'x';
		assert_int_equal(watch_decode(&r, len, &e), -EINVAL);
		memset(r.lists[i], 0, 2);
		assert_int_equal(watch_decode(&r, len, &e), -EINVAL);
		r.lists[i][0] = 'x';
		r.len[i] = UINT32_MAX;
		assert_int_equal(watch_decode(&r, len, &e), -EINVAL);
		r.len[i] = 2;
	}
}

static void segments_need_processes(void **state)
{
	static const char *const name[] = { "cpu_analysis" };
	struct watch_want want = { .names = name, .n_names = 1 };
	struct strbuf why = STRBUF_INIT;
	struct watch_sub *s;
	int followed = 0;
	struct watch *w;

	assert_int_equal(watch_new(&w,
				   &(struct watch_opts){
					   .follow = follow_any,
					   .arg = &followed,
				   }),
			 0);
	assert_int_equal(watch_subscribe(w, &want, &s, &why), -EINVAL);
	assert_string_equal(strbuf_str(&why),
			    "cpu_analysis: it needs --pid, and comes from "
			    "these processes only");
	watch_free(w);
	strbuf_reset(&why);
	assert_int_equal(watch_new(&w, &(struct watch_opts){ 0 }), 0);
	assert_int_equal(watch_subscribe(w, &want, &s, &why), -ENOTSUP);
	assert_non_null(strstr(strbuf_str(&why), "--wait"));
	watch_free(w);
	strbuf_fini(&why);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(patterns_mean_names),
		cmocka_unit_test(patterns_of_system_calls),
		cmocka_unit_test(categories_by_descriptor),
		cmocka_unit_test(wrong_ones_say_why),
		cmocka_unit_test(no_record_harms),
		cmocka_unit_test(states_and_addresses),
		cmocka_unit_test(files_have_names),
		cmocka_unit_test(unix_sockets_have_two_ends),
		cmocka_unit_test(no_descriptor_harms),
		cmocka_unit_test(subscribers_are_bounded),
		cmocka_unit_test(types_are_those_of_the_reason),
		cmocka_unit_test(events_of_user_space_are_queued),
		cmocka_unit_test(segments_need_no_hook),
		cmocka_unit_test(no_analysis_harms),
		cmocka_unit_test(segments_need_processes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
