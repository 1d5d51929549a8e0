// SPDX-License-Identifier: Apache-2.0
/*
 * ecs: an event as one line of JSON in the Elastic Common Schema. Members that the
 * schema does not define are below "quark".
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "processmanager/quark/priv.h"

#define ECS_VERSION "8.11.0"

/* --- JSON ------------------------------------------------------------------ */

/* Before a member or an element: a comma unless it is the first. */
static void ecs_separate(struct strbuf *sb)
{
	char last = sb->len ? sb->data[sb->len - 1] : '{';

	if (last != '{' && last != '[' && last != ':')
		strbuf_puts(sb, ",");
}

/* Bytes of a well-formed UTF-8 character (RFC 3629); 0: malformed. */
static size_t utf8_len(const unsigned char *s, size_t len)
{
	size_t n = s[0] < 0x80	 ? 1
		   : s[0] < 0xc2 ? 0
		   : s[0] < 0xe0 ? 2
		   : s[0] < 0xf0 ? 3
		   : s[0] < 0xf5 ? 4
				 : 0;
	size_t i;

	if (!n || n > len)
		return 0;
	for (i = 1; i < n; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	/* Overlong, surrogates, above U+10FFFF. */
	if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
	    (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
		return 0;
	return n;
}

static void put_string(struct strbuf *sb, const char *str, size_t len)
{
	const unsigned char *s = (const unsigned char *)str;
	size_t n;

	strbuf_puts(sb, "\"");
	for (; len; s += n, len -= n) {
		n = utf8_len(s, len);
		if (!n) {
			strbuf_puts(sb, "\xef\xbf\xbd");
			n = 1;
		} else if (*s < 0x20 || *s == 0x7f) {
			strbuf_printf(sb, "\\u%04x", *s);
		} else {
			if (*s == '"' || *s == '\\')
				strbuf_puts(sb, "\\");
			strbuf_add(sb, s, n);
		}
	}
	strbuf_puts(sb, "\"");
}

static void ecs_key(struct strbuf *sb, const char *name)
{
	ecs_separate(sb);
	strbuf_printf(sb, "\"%s\":", name);
}

static void ecs_string(struct strbuf *sb, const char *name, const char *s)
{
	if (!s)
		return;
	ecs_key(sb, name);
	put_string(sb, s, strlen(s));
}

static void ecs_number(struct strbuf *sb, const char *name, uint64_t v)
{
	ecs_key(sb, name);
	strbuf_printf(sb, "%" PRIu64, v);
}

static void open_object(struct strbuf *sb, const char *name)
{
	ecs_key(sb, name);
	strbuf_puts(sb, "{");
}

static void close_object(struct strbuf *sb)
{
	strbuf_puts(sb, "}");
}

static void ecs_element(struct strbuf *sb, const char *s)
{
	ecs_separate(sb);
	put_string(sb, s, strlen(s));
}

/* Nanoseconds since the epoch, as ISO 8601. */
static void ecs_timestamp(struct strbuf *sb, const char *name, uint64_t ns)
{
	time_t sec = ns / CLOCK_NSEC_PER_SEC;
	char date[64];
	struct tm tm;

	if (!gmtime_r(&sec, &tm) ||
	    !strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &tm))
		return;
	ecs_key(sb, name);
	strbuf_printf(sb, "\"%s.%09uZ\"", date,
		      (unsigned int)(ns % CLOCK_NSEC_PER_SEC));
}

/* --- the schema ------------------------------------------------------------ */

static const struct {
	uint64_t event;
	const char *type; /* one of ECS's values */
	const char *action;
} actions[] = {
	{ QUARK_EV_FORK, "start", "fork" },
	{ QUARK_EV_EXEC, "start", "exec" },
	{ QUARK_EV_EXIT, "end", "end" },
	{ QUARK_EV_ID_CHANGE, "change", "id_change" },
	{ QUARK_EV_SETPROCTITLE, "change", "setproctitle" },
	{ QUARK_EV_REAP, "info", "reap" },
	{ QUARK_EV_GAP, "info", "gap" },
};

static void put_event(struct strbuf *sb, const struct quark_event *ev)
{
	const char *last = "";
	size_t i;

	open_object(sb, "event");
	ecs_string(sb, "kind", "event");
	ecs_string(sb, "module", "quark");
	ecs_key(sb, "category");
	strbuf_puts(sb, "[\"process\"]");
	ecs_key(sb, "type");
	strbuf_puts(sb, "[");
	for (i = 0; i < ARRAY_SIZE(actions); i++) {
		if (!(ev->events & actions[i].event) ||
		    !strcmp(last, actions[i].type))
			continue;
		last = actions[i].type;
		ecs_element(sb, last);
	}
	strbuf_puts(sb, "]");
	ecs_key(sb, "action");
	strbuf_puts(sb, "[");
	for (i = 0; i < ARRAY_SIZE(actions); i++)
		if (ev->events & actions[i].event)
			ecs_element(sb, actions[i].action);
	strbuf_puts(sb, "]");
	close_object(sb);
}

static void ecs_put_ids(struct quark_queue *qq, struct strbuf *sb,
			const struct quark_process *p)
{
	const struct {
		const char *what;
		uint32_t id;
		bool group;
	} ids[] = {
		{ "user", p->proc_euid, false },
		{ "real_user", p->proc_uid, false },
		{ "saved_user", p->proc_suid, false },
		{ "group", p->proc_egid, true },
		{ "real_group", p->proc_gid, true },
		{ "saved_group", p->proc_sgid, true },
	};
	const struct quark_passwd *pw;
	const struct quark_group *gr;
	const char *name;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(ids); i++) {
		gr = ids[i].group ? quark_group_lookup(qq, ids[i].id) : NULL;
		pw = ids[i].group ? NULL : quark_passwd_lookup(qq, ids[i].id);
		name = gr ? gr->name : pw ? pw->name : NULL;
		open_object(sb, ids[i].what);
		ecs_key(sb, "id");
		strbuf_printf(sb, "\"%u\"", ids[i].id);
		ecs_string(sb, "name", name);
		close_object(sb);
	}
}

static void put_list(struct strbuf *sb, const char *name, const char *buf,
		     size_t len, size_t *count)
{
	struct quark_cmdline_iter it;
	const char *s;

	*count = 0;
	if (!buf)
		return;
	ecs_key(sb, name);
	strbuf_puts(sb, "[");
	quark_cmdline_iter_init(&it, buf, len);
	for (; (s = quark_cmdline_iter_next(&it)); ++*count)
		ecs_element(sb, s);
	strbuf_puts(sb, "]");
}

static void ecs_put_args(struct strbuf *sb, const struct quark_process *p)
{
	struct strbuf line = { 0 };
	size_t count, i;

	put_list(sb, "args", p->cmdline, p->cmdline_len, &count);
	if (!p->cmdline)
		return;
	ecs_number(sb, "args_count", count);
	strbuf_add(&line, p->cmdline, p->cmdline_len);
	for (i = 0; i + 1 < line.len; i++)
		if (!line.data[i])
			line.data[i] = ' ';
	ecs_string(sb, "command_line", strbuf_str(&line));
	strbuf_fini(&line);
}

static void put_capabilities(struct strbuf *sb, const char *name, uint64_t caps)
{
	/* linux/capability.h, in order. */
	static const char names[] =
		"CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID KILL SETGID "
		"SETUID SETPCAP LINUX_IMMUTABLE NET_BIND_SERVICE NET_BROADCAST "
		"NET_ADMIN NET_RAW IPC_LOCK IPC_OWNER SYS_MODULE SYS_RAWIO "
		"SYS_CHROOT SYS_PTRACE SYS_PACCT SYS_ADMIN SYS_BOOT SYS_NICE "
		"SYS_RESOURCE SYS_TIME SYS_TTY_CONFIG MKNOD LEASE AUDIT_WRITE "
		"AUDIT_CONTROL SETFCAP MAC_OVERRIDE MAC_ADMIN SYSLOG "
		"WAKE_ALARM BLOCK_SUSPEND AUDIT_READ PERFMON BPF "
		"CHECKPOINT_RESTORE ";
	const char *s;
	int n;

	ecs_key(sb, name);
	strbuf_puts(sb, "[");
	for (s = names; *s; s += n + 1, caps >>= 1) {
		n = strcspn(s, " ");
		if (!(caps & 1))
			continue;
		ecs_separate(sb);
		strbuf_printf(sb, "\"CAP_%.*s\"", n, s);
	}
	strbuf_puts(sb, "]");
}

/* Another process: its pid, and the rest if it is in the cache. */
static void put_relative(struct quark_queue *qq, struct strbuf *sb,
			 const char *name, uint32_t pid)
{
	const struct quark_process *p = quark_process_lookup(qq, pid);

	open_object(sb, name);
	ecs_number(sb, "pid", pid);
	if (p) {
		ecs_string(sb, "entity_id", p->proc_entity_id);
		ecs_string(sb, "name", p->comm);
		ecs_string(sb, "executable", p->exe);
	}
	close_object(sb);
}

static void put_entry_leader(struct quark_queue *qq, struct strbuf *sb,
			     const struct quark_process *p)
{
	static const char *const types[] = {
		[QUARK_ELT_INIT] = "init",
		[QUARK_ELT_KTHREAD] = "kthread",
		[QUARK_ELT_SSHD] = "sshd",
		[QUARK_ELT_SSM] = "ssm",
		[QUARK_ELT_CONTAINER] = "container",
		[QUARK_ELT_TERM] = "terminal",
		[QUARK_ELT_CONSOLE] = "console",
	};
	const struct quark_process *leader;

	if (p->proc_entry_leader_type == QUARK_ELT_UNKNOWN ||
	    p->proc_entry_leader_type >= ARRAY_SIZE(types))
		return;
	leader = quark_process_lookup(qq, p->proc_entry_leader);
	open_object(sb, "entry_leader");
	ecs_number(sb, "pid", p->proc_entry_leader);
	ecs_string(sb, "entity_id", leader ? leader->proc_entity_id : NULL);
	open_object(sb, "entry_meta");
	ecs_string(sb, "type", types[p->proc_entry_leader_type]);
	close_object(sb);
	close_object(sb);
}

/* The parent as it was at the fork: its pid may have been reused. */
static void put_parent(struct strbuf *sb, const struct quark_process *p)
{
	char id[17];

	open_object(sb, "parent");
	ecs_number(sb, "pid", p->proc_ppid);
	if (p->parent_key.pid && p->parent_key.pid == p->proc_ppid) {
		quark_entity_id(id, p->parent_key.pid,
				p->parent_key.start_boottime);
		ecs_string(sb, "entity_id", id);
	}
	close_object(sb);
}

static void put_tty(struct strbuf *sb, const struct quark_process *p)
{
	if (!p->proc_tty_major)
		return;
	open_object(sb, "tty");
	open_object(sb, "char_device");
	ecs_number(sb, "major", p->proc_tty_major);
	ecs_number(sb, "minor", p->proc_tty_minor);
	close_object(sb);
	close_object(sb);
}

static void ecs_put_process(struct quark_queue *qq, struct strbuf *sb,
			    const struct quark_process *p)
{
	size_t unused;

	open_object(sb, "process");
	ecs_number(sb, "pid", p->pid);
	ecs_string(sb, "entity_id", p->proc_entity_id);
	ecs_string(sb, "name", p->comm);
	ecs_string(sb, "executable", p->exe);
	ecs_put_args(sb, p);
	ecs_string(sb, "working_directory", p->cwd);
	put_list(sb, "env_vars", p->env, p->env_len, &unused);
	ecs_timestamp(sb, "start", p->proc_time_boot);
	put_parent(sb, p);
	ecs_put_ids(qq, sb, p);
	put_relative(qq, sb, "group_leader", p->proc_pgid);
	put_relative(qq, sb, "session_leader", p->proc_sid);
	put_entry_leader(qq, sb, p);
	put_tty(sb, p);
	open_object(sb, "thread");
	open_object(sb, "capabilities");
	put_capabilities(sb, "effective", p->proc_cap_effective);
	put_capabilities(sb, "permitted", p->proc_cap_permitted);
	close_object(sb);
	close_object(sb);
	if (p->flags & QUARK_F_EXIT) {
		ecs_timestamp(sb, "end", p->exit_time_event);
		ecs_number(sb, "exit_code", p->exit_code);
	}
	close_object(sb);
}

static void put_own(struct strbuf *sb, const struct quark_event *ev)
{
	const struct quark_process *p = ev->process;
	int signal = p && p->flags & QUARK_F_EXIT ? p->wait_status & 0x7f : 0;

	open_object(sb, "quark");
	if (signal) {
		ecs_number(sb, "signal", signal);
		ecs_key(sb, "core_dumped");
		strbuf_puts(sb, p->wait_status & 0x80 ? "true" : "false");
	}
	ecs_string(sb, "cgroup", p ? p->cgroup : NULL);
	if (ev->events & QUARK_EV_GAP)
		ecs_number(sb, "lost", ev->gap_lost);
	close_object(sb);
}

static void put_host(struct strbuf *sb)
{
	char name[256] = "";

	if (gethostname(name, sizeof(name) - 1))
		return;
	open_object(sb, "host");
	ecs_string(sb, "hostname", name);
	close_object(sb);
}

int quark_event_to_ecs(struct quark_queue *qq, const struct quark_event *ev,
		       char **buf, size_t *len)
{
	struct strbuf sb = { 0 };

	strbuf_puts(&sb, "{");
	ecs_timestamp(&sb, "@timestamp", ev->time);
	open_object(&sb, "ecs");
	ecs_string(&sb, "version", ECS_VERSION);
	close_object(&sb);
	put_event(&sb, ev);
	put_host(&sb);
	if (ev->process)
		ecs_put_process(qq, &sb, ev->process);
	put_own(&sb, ev);
	close_object(&sb);
	*len = sb.len;
	*buf = strbuf_steal(&sb);
	if (*buf)
		return 0;
	errno = ENOMEM;
	return -1;
}
