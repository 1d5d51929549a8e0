// SPDX-License-Identifier: Apache-2.0
/* apm: see processmanager/apm.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "processmanager/internal.h"

/* Agents of Java read the count as a signed number. */
#define APM_COUNT_MAX 32767

enum {
	APM_STACK = 1,
	APM_REGISTRATION = 2,
	APM_MINOR = 1,
};

struct apm_stack {
	uint16_t type, minor;
	uint8_t trace_id[16], transaction_id[8];
	uint8_t stack_id[16];
	uint16_t count;
} __attribute__((packed));

struct apm_registration {
	uint16_t type, minor;
	uint32_t delay_ms;
	uint32_t host_id_len; /* of nothing: profd has no such id */
} __attribute__((packed));

_Static_assert(sizeof(struct apm_stack) == 46, "as the agent expects it");
_Static_assert(sizeof(struct apm_registration) == 12, "likewise");

/* What identifies a stack that waits. */
struct apm_key {
	struct pm_trace_ids ids;
	uint8_t stack_id[16];
};

struct pm_apm_stack {
	struct hash_node node; /* pm->apm.stacks */
	TAILQ_ENTRY(pm_apm_stack) link; /* agent->stacks */
	struct pm_agent *agent;
	struct apm_key key;
	uint64_t since; /* clock_awake_ns() */
	uint64_t count;
};

struct pm_agent {
	TAILQ_ENTRY(pm_agent) link; /* pm->apm.agents */
	struct pm_image *image;
	uint32_t account; /* of its user */
	int fd;
	bool registered;
	uint32_t n;
	TAILQ_HEAD(, pm_apm_stack) stacks; /* oldest first */
};

/* --- what waits ------------------------------------------------------------- */

static void apm_stack_free(struct pm *pm, struct pm_apm_stack *s)
{
	hash_remove(&pm->apm.stacks, &s->node);
	TAILQ_REMOVE(&s->agent->stacks, s, link);
	s->agent->n--;
	pm->apm.users[s->agent->account].waiting--;
	pm->stats.apm_waiting--;
	free(s);
}

static uint64_t apm_hash(const struct pm_agent *a, const struct apm_key *key)
{
	return hash_mix((uint64_t)(uintptr_t)a, hash_bytes(key, sizeof(*key)));
}

static struct pm_apm_stack *apm_stack_get(struct pm *pm, struct pm_agent *a,
					  const struct apm_key *key)
{
	uint64_t hash = apm_hash(a, key);
	struct pm_apm_stack *s;

	HASH_FIND(s, &pm->apm.stacks, hash, node,
		  s->agent == a && !memcmp(&s->key, key, sizeof(*key)));
	/* A user's agents have as many as are free. */
	if (s || a->n >= PM_APM_AGENT_WAITING ||
	    pm->apm.users[a->account].waiting >=
		    PM_APM_WAITING - pm->stats.apm_waiting)
		return s;
	s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	s->agent = a;
	s->key = *key;
	s->since = clock_awake_ns();
	hash_insert(&pm->apm.stacks, &s->node, hash);
	TAILQ_INSERT_TAIL(&a->stacks, s, link);
	a->n++;
	pm->apm.users[a->account].waiting++;
	pm->stats.apm_waiting++;
	return s;
}

/* --- agents ----------------------------------------------------------------- */

static void apm_agent_end(struct pm *pm, struct pm_agent *a)
{
	struct pm_apm_stack *s;

	while ((s = TAILQ_FIRST(&a->stacks))) {
		pm->stats.apm_lost_gone += s->count;
		apm_stack_free(pm, s);
	}
	a->image->agent = NULL;
	TAILQ_REMOVE(&pm->apm.agents, a, link);
	pm->apm.users[a->account].agents--;
	pm->stats.apm_agents--;
	close(a->fd);
	free(a);
}

void pm_apm_forget(struct pm *pm, struct pm_image *img)
{
	if (img->agent)
		apm_agent_end(pm, img->agent);
}

/* A user may have as many as are free. */
static bool apm_room(const struct pm *pm, uint32_t account)
{
	return pm->apm.users[account].agents <
	       PM_APM_AGENTS - (uint32_t)pm->stats.apm_agents;
}

static void apm_agent_send(struct pm *pm, struct pm_agent *a);

int pm_apm_connected(struct pm *pm, struct pm_image *img, int fd)
{
	uint32_t account = img->a.uid % PM_APM_USERS;
	struct pm_agent *a;

	pm_apm_forget(pm, img);
	if (!apm_room(pm, account)) {
		pm->stats.apm_refused++;
		close(fd);
		return -EDQUOT;
	}
	a = calloc(1, sizeof(*a));
	if (!a) {
		close(fd);
		return pm_nomem(pm);
	}
	TAILQ_INIT(&a->stacks);
	a->image = img;
	a->account = account;
	a->fd = fd;
	img->agent = a;
	TAILQ_INSERT_TAIL(&pm->apm.agents, a, link);
	pm->apm.users[account].agents++;
	pm->stats.apm_agents++;
	apm_agent_send(pm, a);
	return 0;
}

bool pm_apm_listens(const struct pm_image *img)
{
	return img->agent;
}

bool pm_apm_any(const struct pm *pm)
{
	return pm->stats.apm_agents;
}

const char *pm_notify_apm(struct pm *pm, struct pm_image *img,
			  const struct pm_trace_ids *ids,
			  const uint8_t stack_id[16], uint16_t count)
{
	struct apm_key key = { .ids = *ids };
	struct pm_apm_stack *s;

	if (!img->agent)
		return NULL;
	memcpy(key.stack_id, stack_id, sizeof(key.stack_id));
	s = apm_stack_get(pm, img->agent, &key);
	if (s)
		s->count += count;
	else
		pm->stats.apm_lost_full += count;
	return img->a.service ? img->a.service->s : "";
}

/* --- datagrams -------------------------------------------------------------- */

/* 0; -EAGAIN: it has no room now; or another -errno: it is gone. */
static int apm_send(const struct pm_agent *a, const void *msg, size_t len)
{
	if (send(a->fd, msg, len, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)len)
		return 0;
	return errno == ENOBUFS || errno == ENOMEM || errno == EINTR ? -EAGAIN
								     : -errno;
}

static int apm_register(struct pm *pm, struct pm_agent *a)
{
	const struct apm_registration msg = {
		.type = APM_REGISTRATION,
		.minor = APM_MINOR,
		.delay_ms = pm->opts.apm_delay_ms,
	};
	int err = a->registered ? 0 : apm_send(a, &msg, sizeof(msg));

	a->registered = !err;
	return err;
}

/* A part of the count may be left. */
static int apm_send_stack(struct pm *pm, struct pm_apm_stack *s)
{
	uint64_t count = MIN(s->count, (uint64_t)APM_COUNT_MAX);
	struct apm_stack msg = {
		.type = APM_STACK,
		.minor = APM_MINOR,
		.count = (uint16_t)count,
	};
	int err;

	memcpy(msg.trace_id, s->key.ids.trace_id, sizeof(msg.trace_id));
	memcpy(msg.transaction_id, s->key.ids.transaction_id,
	       sizeof(msg.transaction_id));
	memcpy(msg.stack_id, s->key.stack_id, sizeof(msg.stack_id));
	err = apm_send(s->agent, &msg, sizeof(msg));
	if (err)
		return err;
	pm->stats.apm_sent++;
	pm->stats.apm_samples += count;
	s->count -= count;
	if (!s->count)
		apm_stack_free(pm, s);
	return 0;
}

/* The agent does not hold their transactions any more. */
static void apm_drop_late(struct pm *pm, struct pm_agent *a)
{
	uint64_t delay = pm->opts.apm_delay_ms * CLOCK_NSEC_PER_MSEC;
	uint64_t now = clock_awake_ns();
	struct pm_apm_stack *s;

	while ((s = TAILQ_FIRST(&a->stacks)) && now - s->since > delay) {
		pm->stats.apm_lost_late += s->count;
		apm_stack_free(pm, s);
	}
}

static void apm_agent_send(struct pm *pm, struct pm_agent *a)
{
	int err = apm_register(pm, a);
	struct abi_key key;

	for (int i = 0; !err && i < PM_APM_BURST && a->n; i++)
		err = apm_send_stack(pm, TAILQ_FIRST(&a->stacks));
	if (!err || err == -EAGAIN) {
		apm_drop_late(pm, a);
		return;
	}
	key = (struct abi_key){ a->image->proc->start_boottime,
				a->image->exec_id, a->image->proc->tgid, 0 };
	apm_agent_end(pm, a);
	pm->stats.apm_gone++;
	if (pm->opts.apm_gone)
		pm->opts.apm_gone(pm->opts.arg, &key);
}

bool pm_apm_waiting(const struct pm *pm)
{
	const struct pm_agent *a;

	TAILQ_FOREACH(a, &pm->apm.agents, link)
		if (a->n || !a->registered)
			return true;
	return false;
}

void pm_apm_send(struct pm *pm)
{
	struct pm_agent *a, *next;

	for (a = TAILQ_FIRST(&pm->apm.agents); a; a = next) {
		next = TAILQ_NEXT(a, link);
		if (a->n || !a->registered)
			apm_agent_send(pm, a);
	}
}
