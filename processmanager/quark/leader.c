// SPDX-License-Identifier: Apache-2.0
/*
 * leader: how a process came into the system. Some are recognized by their own or
 * their parent's program; all others inherit their parent's entry leader.
 */
#include <string.h>

#include "processmanager/quark/priv.h"

#define TTY_MAJOR 4 /* /dev/ttyN to 63, /dev/ttySN above */
#define TTY_SERIAL 64
#define TTY_MINORS 256
#define PTS_MAJOR_FIRST 136
#define PTS_MAJOR_LAST 143

static bool is_named(const struct quark_process *p, const char *name,
		     bool prefix)
{
	const char *s = p->exe ? strrchr(p->exe, '/') : NULL;

	s = s ? s + 1 : p->comm;
	return prefix ? !strncmp(s, name, strlen(name)) : !strcmp(s, name);
}

static bool on_pts(const struct quark_process *p)
{
	return p->proc_tty_major >= PTS_MAJOR_FIRST &&
	       p->proc_tty_major <= PTS_MAJOR_LAST;
}

static uint32_t of_session(const struct quark_process *p,
			   const struct quark_process *parent)
{
	if (p->proc_tty_major == TTY_MAJOR && p->proc_tty_minor < TTY_MINORS) {
		if (p->proc_tty_minor >= TTY_SERIAL)
			return QUARK_ELT_CONSOLE;
		if (parent && is_named(parent, "login", false))
			return QUARK_ELT_TERM;
	}
	if (!parent)
		return QUARK_ELT_UNKNOWN;
	/* Since OpenSSH 9.8 a session's program is "sshd-session". */
	if (is_named(parent, "sshd", true))
		return QUARK_ELT_SSHD;
	if (is_named(parent, "ssm-session-worker", false) && on_pts(p))
		return QUARK_ELT_SSM;
	return QUARK_ELT_UNKNOWN;
}

static uint32_t by_itself(const struct quark_process *p,
			  const struct quark_process *parent)
{
	static const char *const runtimes[] = { "containerd-shim", "runc",
						"conmon" };
	size_t i;

	if (p->pid == 1)
		return QUARK_ELT_INIT;
	if (p->pid == 2 || p->proc_ppid == 2)
		return QUARK_ELT_KTHREAD;
	/* The runtime's own helpers are not in the container yet. */
	for (i = 0; parent && i < ARRAY_SIZE(runtimes); i++)
		if (is_named(parent, runtimes[i], i == 0) &&
		    !is_named(p, runtimes[0], true) &&
		    !is_named(p, runtimes[1], false) &&
		    !is_named(p, runtimes[2], false))
			return QUARK_ELT_CONTAINER;
	return p->pid == p->proc_sid ? of_session(p, parent)
				     : QUARK_ELT_UNKNOWN;
}

void quark_entry_leader(struct quark_process *p,
			const struct quark_process *parent)
{
	uint32_t type = by_itself(p, parent);

	if (type != QUARK_ELT_UNKNOWN) {
		p->proc_entry_leader_type = type;
		p->proc_entry_leader = p->pid;
	} else if (p->proc_entry_leader_type != QUARK_ELT_UNKNOWN) {
		return;
	} else if (parent) {
		p->proc_entry_leader_type = parent->proc_entry_leader_type;
		p->proc_entry_leader = parent->proc_entry_leader;
	} else if (p->proc_ppid == 1) {
		/* Known also where pid 1 is not in the cache. */
		p->proc_entry_leader_type = QUARK_ELT_INIT;
		p->proc_entry_leader = 1;
	}
}
